/* Parts of a process made by hand: identity, wall time, troubles, and what a snapshot says in words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/text.h"
#include "recording/recording.h"
#include "recording/recording_internal.h"
#include "tests/support/sample_trace.h"
#include "tests/tap.h"

static void the_time_after_which_it_hangs(void)
{
	static const struct {
		const char *info;
		uint64_t seconds;
	} cases[] = {
		{ "", 0 },
		{ "hang_after=5\n", 0 },
		{ "hang_after_s=20\n", 20 },
		{ "hang_after_s=0\n", 0 },
		{ "hang_after_s=1\n", 1 },
		{ "hang_after_s=604800\n", 604800 },
		{ "hang_after_s=604801\n", 0 },
		{ "hang_after_s=soon\n", 0 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		char info[64];
		struct recording_process process = { .info = info };

		text_copy(info, sizeof(info), cases[i].info);
		process.info_bytes = strlen(info);
		EXPECT_EQUAL(recording_hang_after_ns(&process), cases[i].seconds * 1000000000);
	}
}

static void the_last_call(void)
{
	struct recording_comm comms[3] = { { .counts.last_issue_ns = 5 },
					   { .counts.last_issue_ns = 9 },
					   { .counts.last_issue_ns = 7 } };
	struct recording_process process = { .comms = comms };

	EXPECT_EQUAL(recording_last_call_ns(&process), 0);
	process.comm_count = 3;
	EXPECT_EQUAL(recording_last_call_ns(&process), 9);
	comms[2].counts.last_issue_ns = 11;
	EXPECT_EQUAL(recording_last_call_ns(&process), 11);
}

/* A second on its clock is a second and 100 us of wall time; then the wall clock was set back by 50 s. */
static void wall_time(void)
{
	const uint64_t start = SAMPLE_CREATED_NS, s = 1000000000;
	struct recording_process *process = recording_process_new();
	const struct {
		uint64_t clock_ns, wall_ns;
	} ways[] = {
		{ 9 * s, start - s },
		{ 10 * s, start },
		{ 10 * s + s / 2, start + s / 2 + 50000 },
		{ 11 * s, start + s + 100000 },
		{ 11 * s + 7, start + s + 100007 },
		{ 20 * s, start - 50 * s },
		{ 21 * s, start - 49 * s },
	};
	uint64_t ns = 77;

	if (process == NULL)
		abort();
	EXPECT_THAT("none without anchors", !recording_wall_ns(process, 1, &ns) &&
						    !recording_clock_ns(process, 1, &ns) &&
						    ns == 77);
	EXPECT(recording_load_anchor(process, (struct clock_anchor){ 10 * s, start }) == OK &&
	       recording_load_anchor(process, (struct clock_anchor){ 10 * s, start + 1 }) == OK &&
	       recording_load_anchor(process, (struct clock_anchor){ 9 * s, start + 2 }) == OK &&
	       recording_load_anchor(process, (struct clock_anchor){ 12 * s, 0 }) == OK);
	EXPECT_THAT("an anchor is later than the one before, and has a wall time",
		    process->anchor_count == 1 && process->anchors[0].wall_ns == start);
	EXPECT(recording_load_anchor(process,
				     (struct clock_anchor){ 11 * s, start + s + 100000 }) == OK &&
	       recording_load_anchor(process, (struct clock_anchor){ 20 * s, start - 50 * s }) ==
		       OK &&
	       process->anchor_count == 3);
	for (size_t i = 0; i < ARRAY_LENGTH(ways); i++)
		EXPECT(recording_wall_ns(process, ways[i].clock_ns, &ns) && ns == ways[i].wall_ns);
	process->anchor_count = 2;
	for (size_t i = 0; i < 5; i++)
		EXPECT(recording_clock_ns(process, ways[i].wall_ns, &ns) && ns == ways[i].clock_ns);
	EXPECT_THAT("not before its clock began",
		    recording_clock_ns(process, start - 10 * s + 1, &ns) && ns == 1 &&
			    recording_clock_ns(process, start - 10 * s, &ns) && ns == 1 &&
			    recording_clock_ns(process, start - 11 * s, &ns) && ns == 1 &&
			    recording_clock_ns(process, start - 10 * s + 2, &ns) && ns == 2);
	recording_process_free(process);
}

static struct recording_process identity(void)
{
	return (struct recording_process){ .pid = 5,
					   .start_ticks = 6,
					   .started_wall_ns = 7,
					   .owner = 8,
					   .pid_namespace = 9,
					   .rank = 1,
					   .boot_id = "boot",
					   .host = "host",
					   .job = "job" };
}

static bool is_same(const struct recording_process *one, const struct recording_process *other)
{
	return recording_load_is_same(one, other) && recording_load_is_same(other, one);
}

static void which_processes_are_the_same(void)
{
	struct recording_process one = identity(), other = identity();

	EXPECT(is_same(&one, &other));
#define EXPECT_DIFFERENT(field, value)                                    \
	do {                                                              \
		other = identity();                                       \
		other.field = (value);                                    \
		EXPECT(!is_same(&one, &other) && !is_same(&other, &one)); \
	} while (0)
	EXPECT_DIFFERENT(pid, 4);
	EXPECT_DIFFERENT(start_ticks, 5);
	EXPECT_DIFFERENT(owner, 7);
	EXPECT_DIFFERENT(pid_namespace, 8);
	EXPECT_DIFFERENT(rank, 0);
	EXPECT_DIFFERENT(boot_id[0], 'r');
	EXPECT_DIFFERENT(host[0], 'm');
	EXPECT_DIFFERENT(job[0], 'r');
	other = identity();
	other.started_wall_ns = 99;
	EXPECT_THAT("ticks are enough", is_same(&one, &other));
	other = identity();
	other.owner = -1;
	EXPECT_THAT("an unknown owner may be any", is_same(&one, &other));
	one.owner = 0;
	other.owner = 1;
	EXPECT_THAT("root is an owner", !is_same(&one, &other));
	one = other = identity();
	one.start_ticks = other.start_ticks = 0;
	EXPECT_THAT("without ticks by their start", is_same(&one, &other));
	other.started_wall_ns = 8;
	EXPECT(!is_same(&one, &other));
	one.started_wall_ns = other.started_wall_ns = 0;
	EXPECT_THAT("without either nothing is known", !is_same(&one, &other));
	one = other = identity();
	one.pid = other.pid = 0;
	EXPECT(!is_same(&one, &other));
	one.pid = other.pid = 1;
	EXPECT(is_same(&one, &other));
}

static void troubles_beyond_the_last(void)
{
	struct recording recording;

	recording_init(&recording);
	recording_load_at(&recording, 1, 2);
	for (int i = 0; i < RECORDING_TROUBLES_MAX; i++) {
		recording_load_trouble(&recording, RECORDING_DAMAGE, "path", NULL, "number %d", i);
		recording_load_at(&recording, (uint64_t)i, 10);
	}
	EXPECT(recording.trouble_count == RECORDING_TROUBLES_MAX &&
	       recording.troubles_left_out == 0);
	for (int i = 0; i < 3; i++) {
		recording_load_trouble(&recording, RECORDING_DAMAGE, "other", NULL, "more");
		recording_load_at(&recording, 77, 78);
	}
	EXPECT(recording.trouble_count == RECORDING_TROUBLES_MAX &&
	       recording.troubles_left_out == 3);
	EXPECT(recording.troubles[999].offset == 999 && recording.troubles[999].bytes == 10 &&
	       strcmp(recording.troubles[999].what, "number 999") == 0 &&
	       strcmp(recording.troubles[999].path, "path") == 0 &&
	       recording.troubles[0].offset == 0 && recording.troubles[0].process == NULL);
	recording_release(&recording);
}

static void truncated_files_hide_no_damage(void)
{
	struct recording recording;

	recording_init(&recording);
	for (int i = 0; i < RECORDING_TROUBLES_MAX + 7; i++)
		recording_load_trouble(&recording, RECORDING_CUT, "cut", NULL, "number %d", i);
	recording_load_trouble(&recording, RECORDING_DAMAGE, "damaged", NULL, "at byte 7");
	EXPECT(recording.trouble_count == RECORDING_TROUBLES_MAX + 1);
	EXPECT(recording.cut_count == RECORDING_TROUBLES_MAX);
	EXPECT(recording.troubles_left_out == 7 && recording.cuts_left_out == 7);
	EXPECT(strcmp(recording.troubles[RECORDING_TROUBLES_MAX].path, "damaged") == 0);
	recording_release(&recording);
}

static void load(struct recording *recording, const void *bytes, size_t length)
{
	recording_init(recording);
	if (recording_add_memory(recording, "sample", bytes, length, 0) != OK ||
	    recording_finish(recording) != OK || recording->count != 1)
		abort();
}

enum { WHERES = 10 };

/* Ten places: #1, #3, ... are over. The eighth is too long, the fourth has no text. */
static void put_wheres(struct recording_process *process)
{
	process->wheres = calloc(WHERES, sizeof(*process->wheres));
	process->where_count = WHERES;
	for (uint64_t i = 0; i < WHERES; i++) {
		struct recording_where *where = &process->wheres[i];

		*where = (struct recording_where){ .comm = (uint32_t)i + 1,
						   .number = i + 100,
						   .issue_ns = i + 1000,
						   .is_open = i % 2 == 0 };
		where->text = i == 3 ? NULL : calloc(1, 2000);
		if (where->text == NULL)
			continue;
		memset(where->text, 'a' + (int)i, i == 7 ? 1999 : 5);
	}
	process->stack = strdup("in train.py:88 in step");
}

static void a_snapshot_in_words(void)
{
	static const struct {
		uint32_t comm;
		bool is_open;
		size_t length;
	} wanted[RECORDING_WHERES_KEPT] = {
		{ 1, true, 5 },	 { 3, true, 5 },
		{ 5, true, 5 },	 { 7, true, 5 },
		{ 9, true, 5 },	 { 2, false, 5 },
		{ 6, false, 5 }, { 8, false, RECORDING_WHERE_BYTES - 1 }
	};
	struct sample sample = sample_trace();
	struct recording recording, again;
	struct recording_process *from;
	const struct recording_process *to;
	unsigned char *bytes;
	size_t length;
	char text[64];

	load(&recording, sample.bytes, sample.size);
	from = recording.processes[0];
	put_wheres(from);
	from->owner = 0;
	from->process_state = 'T';
	from->is_moving = true;
	from->filling = 3;
	from->refused = 2;
	from->refused_why = "x";
	if (recording_snapshot(from, 3, 0, &bytes, &length) != OK)
		abort();
	load(&again, bytes, length);
	to = again.processes[0];
	EXPECT(to->is_snapshot && to->owner == 0 && to->snapshot_state == 'T' && to->is_moving);
	EXPECT(to->filling == 3 && to->refused == 2 && to->snapshot_operations == 3 &&
	       to->snapshot_life == RECORDING_ENDED);
	EXPECT(strcmp(to->refused_why, "already in the region when the snapshot was made") == 0);
	EXPECT(to->stack != NULL && strcmp(to->stack, "in train.py:88 in step") == 0);
	EXPECT(recording_info(to, "label.team", text, sizeof(text)) && strcmp(text, "blue") == 0);
	if (EXPECT(to->where_count == RECORDING_WHERES_KEPT))
		for (size_t i = 0; i < RECORDING_WHERES_KEPT; i++) {
			const struct recording_where *where = &to->wheres[i];

			EXPECT(where->comm == wanted[i].comm &&
			       where->is_open == wanted[i].is_open &&
			       where->number == where->comm + 99 &&
			       where->issue_ns == where->comm + 999 &&
			       strlen(where->text) == wanted[i].length &&
			       where->text[0] == (char)('a' + where->comm - 1));
		}
	free(bytes);
	/* A snapshot of the snapshot has the same words once. */
	if (recording_snapshot(to, 3, 0, &bytes, &length) != OK)
		abort();
	recording_release(&recording);
	load(&recording, bytes, length);
	from = recording.processes[0];
	EXPECT(from->where_count == RECORDING_WHERES_KEPT && from->filling == 3 &&
	       from->refused == 2 && strcmp(from->stack, to->stack) == 0);
	EXPECT(from->info_bytes == to->info_bytes);
	recording_release(&again);
	recording_release(&recording);
	free(bytes);
	free(sample.bytes);
}

/* Lines that are no place end the list. */
static void places_that_are_damaged(void)
{
	static const struct {
		const char *line;
		bool is_good;
	} cases[] = {
		{ "1 2 3 0 a.py:1", true },
		{ "1 2 3 1 ", true },
		{ "1 2 3 1", false },
		{ "1 2 a.py:1", false },
		{ "x 2 3 0 a.py:1", false },
		{ "1 2 -3 0 a.py:1", false },
		{ "1 2 9223372036854775807 0 a", true },
		{ "1 2 9223372036854775808 0 a", false },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct sample sample = { NULL, 0, 0 };
		struct recording recording;
		char info[256];

		text_format(info, sizeof(info), "host=h\nmode=trace\nsnapshot_where_1=%s\n",
			    cases[i].line);
		sample_header(&sample, TRACE_MAJOR, TRACE_MINOR);
		sample_block(&sample, TRACE_PROCESS, info, strlen(info), 1);
		load(&recording, sample.bytes, sample.size);
		EXPECT_THAT(cases[i].line, recording.processes[0]->where_count == cases[i].is_good);
		recording_release(&recording);
		free(sample.bytes);
	}
}

int main(void)
{
	the_time_after_which_it_hangs();
	the_last_call();
	wall_time();
	which_processes_are_the_same();
	troubles_beyond_the_last();
	truncated_files_hide_no_damage();
	a_snapshot_in_words();
	places_that_are_damaged();
	return tap_done();
}
