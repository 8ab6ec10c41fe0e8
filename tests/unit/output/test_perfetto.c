#include "output/viewer.h"

#include <stdlib.h>
#include <string.h>

#include "output/sink.h"
#include "tests/tap.h"

static void test_names(void)
{
	struct perfetto_names names;
	bool is_new, is_all = true, is_none = true;
	uint64_t one, other;
	char text[32], longest[PERFETTO_NAME_BYTES + 2];

	perfetto_names_init(&names);
	one = perfetto_names_find(&names, PERFETTO_EVENT_NAME, "a", &is_new);
	EXPECT(one != 0 && is_new);
	other = perfetto_names_find(&names, PERFETTO_ARG_NAME, "a", &is_new);
	EXPECT_THAT("kinds of names are separate", other != 0 && other != one && is_new);
	EXPECT(perfetto_names_find(&names, PERFETTO_EVENT_NAME, "a", &is_new) == one && !is_new);
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	EXPECT_THAT("long names are not interned",
		    perfetto_names_find(&names, PERFETTO_EVENT_NAME, longest, &is_new) == 0);
	for (int i = 0; i < PERFETTO_NAMES_MAX + 100; i++) {
		snprintf(text, sizeof(text), "name %d", i);
		one = perfetto_names_find(&names, PERFETTO_ARG_TEXT, text, &is_new);
		is_all &= (one != 0) == (i < PERFETTO_NAMES_MAX - 2);
	}
	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "name %d", i);
		perfetto_names_find(&names, PERFETTO_ARG_TEXT, text, &is_new);
		is_none &= !is_new;
	}
	EXPECT_THAT("names beyond the limit have no number", is_all);
	EXPECT_THAT("earlier ones are still known", is_none);
	EXPECT(names.status == OK);
	perfetto_names_release(&names);
}

/* One field of a message: its number and its bytes; 0 at the end or if it is invalid. */
struct reader {
	const unsigned char *at;
	const unsigned char *end;
	uint64_t value; /* of a number, or the length */
	const unsigned char *bytes;
};

static uint64_t read_varint(struct reader *reader)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; reader->at < reader->end && shift < 64; shift += 7) {
		value |= (uint64_t)(*reader->at & 0x7f) << shift;
		if ((*reader->at++ & 0x80) == 0)
			break;
	}
	return value;
}

static uint32_t read_field(struct reader *reader)
{
	uint64_t tag;

	if (reader->at >= reader->end)
		return 0;
	tag = read_varint(reader);
	reader->bytes = reader->at;
	if ((tag & 7) == 0) {
		reader->value = read_varint(reader);
	} else {
		reader->value = (tag & 7) == 1 ? 8 : read_varint(reader);
		reader->bytes = reader->at;
		if (reader->value > (uint64_t)(reader->end - reader->at))
			return 0;
		reader->at += reader->value;
	}
	return (uint32_t)(tag >> 3);
}

static struct reader inside(const struct reader *outer)
{
	return (struct reader){ .at = outer->bytes, .end = outer->bytes + outer->value };
}

/* Counts of packets and totals of numbers in a stream. */
struct seen {
	unsigned int packets, snapshots, descriptors, begins, ends, instants, values, flows, names;
	uint64_t first_ns, last_ns;
	bool is_whole;
};

static void look_at_event(struct reader event, struct seen *seen)
{
	uint32_t field;

	while ((field = read_field(&event)) != 0) {
		if (field == 9) {
			seen->begins += event.value == 1;
			seen->ends += event.value == 2;
			seen->instants += event.value == 3;
			seen->values += event.value == 4;
		}
		seen->flows += field == 47;
	}
}

static void look_at_packet(struct reader packet, struct seen *seen)
{
	uint32_t field;

	while ((field = read_field(&packet)) != 0) {
		struct reader inner = inside(&packet);

		if (field == 8) {
			if (seen->first_ns == 0)
				seen->first_ns = packet.value;
			seen->last_ns = packet.value;
		}
		seen->snapshots += field == 6;
		seen->descriptors += field == 60;
		if (field == 11)
			look_at_event(inner, seen);
		while (field == 12 && read_field(&inner) != 0)
			seen->names++;
	}
	seen->is_whole &= packet.at == packet.end;
}

static struct seen look_at(const struct sink *sink)
{
	struct seen seen = { .is_whole = true };
	struct reader file = { .at = (const unsigned char *)sink->bytes,
			       .end = (const unsigned char *)sink->bytes + sink->used };

	while (read_field(&file) == 1) {
		seen.packets++;
		look_at_packet(inside(&file), &seen);
	}
	seen.is_whole &= file.at == file.end;
	return seen;
}

static void test_stream(void)
{
	struct viewer_process process = { .process = 1, .name = "rank 0" };
	struct viewer_track track = { .process = 1, .track = 1, .name = "world" };
	struct viewer_track counter = { .process = 1, .track = 2, .name = "b", .unit = "GB/s" };
	struct viewer_arrow arrow = { 7, 100, false };
	struct viewer_args args = { .count = 0 };
	struct viewer_slice slice = {
		.process = 1,
		.track = 1,
		.start_ns = 100,
		.end_ns = 200,
		.name = "x",
		.category = "operation",
		.args = &args,
		.arrows = &arrow,
		.arrow_count = 1,
	};
	const uint64_t start_ns = UINT64_C(1767225600000000000);
	struct viewer viewer;
	struct seen seen;
	struct sink sink;

	sink_init_memory(&sink);
	EXPECT(viewer_init(&viewer, VIEWER_PERFETTO, &sink, NULL, start_ns) == OK);
	viewer_about(&viewer, &args);
	viewer_process(&viewer, &process);
	viewer_track(&viewer, &track);
	viewer_track(&viewer, &counter);
	viewer_arg_text(&args, "function", "AllReduce");
	viewer_slice(&viewer, &slice);
	viewer_slice(&viewer, &slice);
	slice.end_ns = VIEWER_OPEN;
	viewer_slice(&viewer, &slice);
	viewer_value(&viewer, &counter, 300, 1.5);
	EXPECT(viewer_end(&viewer) == OK);
	seen = look_at(&sink);
	EXPECT_THAT("every byte belongs to a field", seen.is_whole);
	EXPECT_EQUAL(seen.packets, 1 + 2 + 1 + 3 + 5 + 1);
	EXPECT_THAT("one clock snapshot", seen.snapshots == 1);
	EXPECT_THAT("root, global track, a process, two tracks", seen.descriptors == 5);
	EXPECT_THAT("a slice without end is not closed", seen.begins == 3 && seen.ends == 2);
	EXPECT(seen.instants == 1 && seen.values == 1 && seen.flows == 3);
	EXPECT_THAT("each name is interned once", seen.names == 6);
	EXPECT_THAT("times are wall times",
		    seen.first_ns == start_ns && seen.last_ns == start_ns + 300);
	sink_release(&sink);
}

int main(void)
{
	test_names();
	test_stream();
	return tap_done();
}
