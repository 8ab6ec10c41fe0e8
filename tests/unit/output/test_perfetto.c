#include "output/viewer.h"

#include <stdlib.h>
#include <string.h>

#include "output/sink.h"
#include "tests/tap.h"

static int is_bytes(struct sink *sink, const char *wanted, size_t length)
{
	int is_same = sink->used == length && memcmp(sink->bytes, wanted, length) == 0;

	if (!is_same) {
		printf("# got:");
		for (size_t i = 0; i < sink->used; i++)
			printf(" %02x", (unsigned char)sink->bytes[i]);
		printf("\n");
	}
	sink->used = 0;
	return is_same;
}
#define IS_BYTES(sink, wanted) is_bytes((sink), (wanted), sizeof(wanted) - 1)

static void test_wire(void)
{
	struct sink sink, inner;

	sink_init_memory(&sink);
	sink_init_memory(&inner);
	wire_unsigned(&sink, 1, 150);
	EXPECT_THAT("a number in groups of seven bits", IS_BYTES(&sink, "\x08\x96\x01"));
	wire_unsigned(&sink, 60, 0);
	EXPECT_THAT("a field number above 15 takes two bytes", IS_BYTES(&sink, "\xe0\x03\x00"));
	wire_unsigned(&sink, 1, UINT64_MAX);
	EXPECT_THAT("the largest number takes ten bytes",
		    IS_BYTES(&sink, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
	wire_signed(&sink, 2, -2);
	EXPECT_THAT("a negative one",
		    IS_BYTES(&sink, "\x10\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
	wire_fixed64(&sink, 47, 0x0102030405060708);
	EXPECT_THAT("fixed64, little-endian",
		    IS_BYTES(&sink, "\xf9\x02\x08\x07\x06\x05\x04\x03\x02\x01"));
	wire_double(&sink, 5, 1.0);
	EXPECT_THAT("a double is written as its bits",
		    IS_BYTES(&sink, "\x29\x00\x00\x00\x00\x00\x00\xf0\x3f"));
	wire_text(&sink, 2, "");
	EXPECT_THAT("an empty text", IS_BYTES(&sink, "\x12\x00"));
	wire_unsigned(&inner, 1, 1);
	wire_message(&sink, 3, &inner);
	EXPECT_THAT("a message has its length before it", IS_BYTES(&sink, "\x1a\x02\x08\x01"));
	EXPECT_THAT("and its sink can be reused", inner.used == 0);
	inner.status = ERR_NO_SPACE;
	wire_message(&sink, 3, &inner);
	EXPECT_THAT("a failure of the inner message is passed on", sink.status == ERR_NO_SPACE);
	sink_release(&sink);
	sink_release(&inner);
}

static void test_text(void)
{
	struct sink sink;

	sink_init_memory(&sink);
	wire_text(&sink, 1, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	EXPECT_THAT("characters of two, three and four bytes stay",
		    IS_BYTES(&sink, "\x0a\x09\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));
	wire_text(&sink, 1, "a\xff\xc3");
	EXPECT_THAT("bytes that are not UTF-8 become ?", IS_BYTES(&sink, "\x0a\x03"
									 "a??"));
	wire_text(&sink, 1, "\xc0\x80\xed\xa0\x80\xf5\x80\x80\x80");
	EXPECT_THAT("so do overlong forms, surrogates and values past the last code point",
		    IS_BYTES(&sink, "\x0a\x09?????????"));
	sink_release(&sink);
}

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
	test_wire();
	test_text();
	test_names();
	test_stream();
	return tap_done();
}
