/*
 * A region with one value changed at a time: what is loaded from it, and from a snapshot of it, as text. Of each change only
 * the lines are compared that it makes different. The region is of another host, so nothing depends on this one.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "recording/recording.h"
#include "tests/support/expected_file.h"
#include "tests/support/sample_region.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"
#include "tests/unit/recording/recording_show.h"

enum { HEADER = REGION_PARTS };

struct change {
	const char *name;
	int part;
	uint32_t slot;
	size_t offset, bytes;
	uint64_t value;
};

#define OF(type, field) offsetof(struct type, field), sizeof(((struct type *)0)->field)
#define HEAD(field, value)                                                    \
	{                                                                     \
#field " " #value, HEADER, 0, OF(region_header, field), value \
	}
#define COMM(slot, field, value)                                                                 \
	{                                                                                        \
		"comm " #slot " " #field " " #value, REGION_COMMS, slot, OF(region_comm, field), \
			value                                                                    \
	}
#define LIVE(slot, field, value)                                                                \
	{                                                                                       \
		"live " #slot " " #field " " #value, REGION_LIVE, slot, OF(region_live, field), \
			value                                                                   \
	}
#define PROXY(slot, field, value)                                           \
	{                                                                   \
		"proxy " #slot " " #field " " #value, REGION_PROXIES, slot, \
			OF(region_proxy, field), value                      \
	}
#define RING(slot, field, value)                                                              \
	{                                                                                     \
		"ring " #slot " " #field " " #value, REGION_RING, slot, OF(op_record, field), \
			value                                                                 \
	}
#define DETAIL(slot, field, value)                                                                 \
	{                                                                                          \
		"detail " #slot " " #field " " #value, REGION_DETAILS, slot, OF(op_detail, field), \
			value                                                                      \
	}
#define LINK(slot, field, value)                                                                 \
	{                                                                                        \
		"link " #slot " " #field " " #value, REGION_LINKS, slot, OF(region_link, field), \
			value                                                                    \
	}
#define GENERATION(number) ((uint64_t)(number) << 32)

static const struct change changes[] = {
	HEAD(magic, 0),
	HEAD(major, REGION_MAJOR + 1),
	HEAD(minor, REGION_MINOR + 1),
	HEAD(byte_order, 0x04030201),
	HEAD(header_bytes, REGION_HEADER_BYTES - 1),
	HEAD(total_bytes, 0),
	HEAD(pid, 0),
	HEAD(pid_namespace, 0),
	HEAD(start_ticks, 0),
	HEAD(mode, REGION_MODE_OFF),
	HEAD(mode, REGION_MODE_PROFILE),
	HEAD(mode, REGION_MODE_TRACE),
	HEAD(mode, REGION_MODE_FULL),
	HEAD(mode, 5),
	HEAD(kind, REGION_KIND_OFFLINE),
	HEAD(interface, 0),
	HEAD(info_bytes, 0),
	HEAD(info_bytes, SAMPLE_INFO_BYTES + 1),
	HEAD(alive_ns, 3000000),
	HEAD(ended_ns, 4000000),
	HEAD(drained, 7),
	HEAD(drained, 99),
	HEAD(ring_head, 0),
	HEAD(ring_head, 3),
	HEAD(ring_head, 10),
	HEAD(ring_head, 12),
	HEAD(ring_head, 40),
	HEAD(details_head, 0),
	HEAD(details_head, 9),
	HEAD(comms_made, 0),
	HEAD(names_used, 0),
	HEAD(names_used, 99),
	HEAD(lost[0], 5),
	HEAD(lost[LOST_REASONS - 1], 6),
	HEAD(odd[ODD_REASONS - 1], 7),
	HEAD(first_anchor.wall_ns, 0),
	HEAD(last_anchor.wall_ns, 0),
	HEAD(last_anchor.clock_ns, 1),
	HEAD(parts[REGION_RING].count, 0),
	HEAD(parts[REGION_RING].count, 4),
	HEAD(parts[REGION_LIVE].count, 1 << 30),
	HEAD(parts[REGION_LIVE].stride, 8),
	HEAD(parts[REGION_COMMS].offset, 1),
	HEAD(parts[REGION_COMMS].offset, UINT64_MAX - 7),
	HEAD(parts[REGION_PROXIES].count, 0),
	COMM(0, word, 0),
	COMM(0, word, GENERATION(2)),
	COMM(0, word, GENERATION(3)),
	COMM(0, word, GENERATION(1) | COMM_ENDED),
	COMM(2, word, GENERATION(1)),
	COMM(0, info.id, 0),
	COMM(0, info.id, 2),
	COMM(0, info.id, 9),
	COMM(0, info.nranks, 0),
	COMM(0, info.nranks, UINT32_MAX),
	COMM(0, info.rank, 8),
	COMM(0, info.hash, 0),
	COMM(0, info.finalize_ns, 7),
	COMM(0, info.name[0], 1),
	COMM(0, counts.issued, 6),
	COMM(0, counts.issued, 99),
	COMM(0, counts.recorded, 99),
	COMM(0, counts.last_issue_ns, 5000000),
	LIVE(1, word, 0),
	LIVE(1, word, GENERATION(4)),
	LIVE(1, word, GENERATION(5)),
	LIVE(1, word, GENERATION(3) | LIVE_RETIRING | 2),
	LIVE(1, word, GENERATION(3)),
	LIVE(4, word, GENERATION(5) | LIVE_RETIRING),
	LIVE(6, word, GENERATION(7)),
	LIVE(6, word, GENERATION(7) | 1),
	LIVE(0, word, GENERATION(1)),
	LIVE(1, op.comm, 0),
	LIVE(1, op.comm, 7),
	LIVE(1, op.number, 0),
	LIVE(1, op.number, 7),
	LIVE(1, op.state, OP_STATE_NONE),
	LIVE(1, op.state, OP_ISSUED),
	LIVE(1, op.state, OP_DONE),
	LIVE(1, op.state, OP_STATES),
	LIVE(1, op.function, 77),
	LIVE(1, op.sequence, 5),
	LIVE(1, op.time_source, OP_TIME_HOST),
	LIVE(1, started[3], UINT64_C(1) << 63),
	LIVE(1, stopped[0], 3),
	PROXY(0, word, 0),
	PROXY(0, word, GENERATION(2)),
	PROXY(0, live, 4),
	PROXY(0, live, 99),
	PROXY(0, live_generation, 0),
	PROXY(0, live_generation, 5),
	PROXY(0, comm, 2),
	PROXY(0, number, 7),
	PROXY(0, channel, 255),
	PROXY(0, flags, 0),
	PROXY(0, flags, 0xff),
	PROXY(0, done, 0),
	PROXY(0, done, 20),
	PROXY(0, posted, 0),
	PROXY(0, steps, 0),
	PROXY(0, open[1].step_plus_1, 0),
	PROXY(0, open[1].state, 20),
	PROXY(0, open[1].state, 10),
	PROXY(0, open[1].state, 7),
	PROXY(0, open[1].state, 13),
	PROXY(0, since_ns, 6000000),
	PROXY(2, comm, 0),
	PROXY(3, word, GENERATION(1)),
	RING(0, sequence, 9 | RING_BUSY),
	RING(0, sequence, 1),
	RING(0, sequence, 17),
	RING(0, sequence, 0),
	RING(2, sequence, 11 | RING_BUSY),
	RING(0, comm, 0),
	RING(0, number, 0),
	RING(0, state, 0),
	RING(0, function, 77),
	RING(0, gpu_stop_ns, 5),
	RING(0, gpu_start_ns, 0),
	DETAIL(0, sequence, 1 | RING_BUSY),
	DETAIL(0, sequence, 5),
	DETAIL(0, kind, 0),
	DETAIL(0, kind, 9),
	DETAIL(2, comm, 0),
	LINK(2, key, 0),
	LINK(2, key, SLOT_FORGOTTEN),
	LINK(0, key, 7),
	LINK(0, bytes, 9),
	LINK(3, key, REGION_LINK_KEY(1, false, 4)),
};

/* All that is loaded from the region, and from its snapshot. The caller frees it. */
static char *text_of(const struct sample *sample)
{
	struct recording recording, again;
	unsigned char *bytes;
	size_t length;
	struct sink sink;
	char path[100], *text;
	int fd;

	snprintf(path, sizeof(path), "%s/region", scratch_dir.path);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd == -1 || write(fd, sample->bytes, sample->size) != (ssize_t)sample->size ||
	    close(fd) == -1)
		abort();
	recording_init(&recording);
	if (recording_add(&recording, path, 0) != OK || recording_finish(&recording) != OK)
		abort();
	sink_init_memory(&sink);
	show_recording(&sink, &recording);
	for (size_t i = 0; i < recording.count; i++) {
		recording_init(&again);
		/* A snapshot has its owner, who is whoever runs this. */
		recording.processes[i]->owner = 4242424;
		if (recording_snapshot(recording.processes[i], 3, 0, &bytes, &length) != OK ||
		    recording_add_memory(&again, "snapshot", bytes, length, 0) != OK ||
		    recording_finish(&again) != OK)
			abort();
		sink_text(&sink, "its snapshot:\n");
		show_recording(&sink, &again);
		recording_release(&again);
		free(bytes);
	}
	recording_release(&recording);
	text = strdup(sink_string(&sink));
	sink_release(&sink);
	return text;
}

static bool has_line(const char *text, const char *line, size_t length)
{
	for (; *text != '\0'; text += strcspn(text, "\n") + 1)
		if (strcspn(text, "\n") == length && memcmp(text, line, length) == 0)
			return true;
	return false;
}

/* Those of the text that the other one has not; returns how many. */
static size_t show_new_lines(struct sink *sink, const char *text, const char *other)
{
	size_t count = 0;

	for (; *text != '\0'; text += strcspn(text, "\n") + 1) {
		if (has_line(other, text, strcspn(text, "\n")))
			continue;
		count++;
		if (sink != NULL)
			sink_format(sink, "+ %.*s\n", (int)strcspn(text, "\n"), text);
	}
	return count;
}

int main(void)
{
	struct sample sample = sample_region();
	char *base, *text;
	struct sink sink;

	scratch_make();
	base = text_of(&sample);
	sink_init_memory(&sink);
	sink_format(&sink, "=== as it is\n%s", base);
	for (size_t i = 0; i < ARRAY_LENGTH(changes); i++) {
		const struct change *change = &changes[i];
		unsigned char kept[8],
			*at = change->part == HEADER
				      ? sample.bytes
				      : sample_slot(&sample, (enum region_part_index)change->part,
						    change->slot);

		at += change->offset;
		memcpy(kept, at, change->bytes);
		memcpy(at, &change->value, change->bytes);
		text = text_of(&sample);
		memcpy(at, kept, change->bytes);
		sink_format(&sink, "=== %s: %zu lines are gone\n", change->name,
			    show_new_lines(NULL, base, text));
		show_new_lines(&sink, text, base);
		free(text);
	}
	EXPECT_THAT("a region is loaded as expected, whatever is in it",
		    sink.status == OK &&
			    expected_file(sink_string(&sink),
					  "tests/unit/recording/expected/region_changes.txt"));
	sink_release(&sink);
	free(base);
	free(sample.bytes);
	return tap_done();
}
