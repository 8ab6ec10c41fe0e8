/* Dumps of PyTorch's Flight Recorder: alone, when they were made, and beside recordings of the same ranks. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/text.h"
#include "recording/recording.h"
#include "tests/support/sample_trace.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

#define T0 SAMPLE_CREATED_NS
#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

static struct recording recording;
static char directory[48];

/* One call of a process group. */
struct call {
	int group;
	int number;
	const char *state;
	uint64_t created_ns;
	uint64_t timeout_ms;
	const char *file; /* NULL: no stack */
};

static const char *dump_path(int rank)
{
	static char path[128];

	text_format(path, sizeof(path), "%s/trace_rank_%d", directory, rank);
	return path;
}

/* Groups 0, 1 and 2 of eight ranks. */
static void put_dump(int rank, const struct call *calls, size_t count)
{
	FILE *file = fopen(dump_path(rank), "w");

	if (file == NULL)
		abort();
	fprintf(file, "{\"version\":\"2.10\",\"pg_config\":{");
	for (int group = 0; group < 3; group++)
		fprintf(file,
			"%s\"%d\":{\"name\":\"%d\",\"desc\":\"group-%d\","
			"\"ranks\":\"[0, 1, 2, 3, 4, 5, 6, 7]\"}",
			group > 0 ? "," : "", group, group, group);
	fprintf(file, "},\"entries\":[");
	for (size_t i = 0; i < count; i++) {
		fprintf(file,
			"%s{\"process_group\":[\"%d\",\"group-%d\"],\"profiling_name\":"
			"\"nccl:all_reduce\",\"state\":\"%s\",\"op_id\":%d,\"time_created_ns\":%"
			"llu,"
			"\"timeout_ms\":%llu",
			i > 0 ? "," : "", calls[i].group, calls[i].group, calls[i].state,
			calls[i].number, (unsigned long long)calls[i].created_ns,
			(unsigned long long)calls[i].timeout_ms);
		if (calls[i].file != NULL)
			fprintf(file,
				",\"frames\":[{\"filename\":\"%s\",\"line\":%d,\"name\":\"\"}]",
				calls[i].file, calls[i].number);
		fprintf(file, "}");
	}
	fprintf(file, "]}\n");
	if (fclose(file) != 0)
		abort();
}

static void written_at(int rank, uint64_t ns)
{
	const struct timespec times[2] = { { 0, UTIME_OMIT },
					   { (time_t)(ns / SECOND), (long)(ns % SECOND) } };

	if (utimensat(AT_FDCWD, dump_path(rank), times, 0) == -1)
		abort();
}

static void begin(void)
{
	recording_release(&recording);
	recording_init(&recording);
}

static void load_dump(int rank)
{
	begin();
	if (recording_add(&recording, dump_path(rank), 0) != OK ||
	    recording_finish(&recording) != OK || recording.count != 1)
		abort();
}

/* "COMM#NUMBER state children sequence". */
static bool has_flights(const struct recording_process *process, const char *wanted)
{
	char text[512] = "";

	for (size_t i = 0; i < process->flight_count; i++) {
		const struct recording_flight *flight = &process->flights[i];

		text_append(text, sizeof(text), "%u#%llu %s %u %llu\n", flight->op.comm,
			    (unsigned long long)flight->op.number,
			    flight->op.state == OP_DONE ? "done" : "open", flight->open_children,
			    (unsigned long long)flight->op.sequence);
	}
	if (strcmp(text, wanted) != 0)
		printf("# %zu: %s\n", process->flight_count, text);
	return strcmp(text, wanted) == 0;
}

/* "COMM#NUMBER ISSUE_MS open TEXT", times after T0. */
static bool has_wheres(const struct recording_process *process, const char *wanted)
{
	char text[512] = "";

	for (size_t i = 0; i < process->where_count; i++) {
		const struct recording_where *where = &process->wheres[i];

		text_append(text, sizeof(text), "%u#%llu %llu%s %s\n", where->comm,
			    (unsigned long long)where->number,
			    (unsigned long long)((where->issue_ns - T0) / MS),
			    where->is_open ? " open" : "", where->text);
	}
	if (strcmp(text, wanted) != 0)
		printf("# %zu: %s\n", process->where_count, text);
	return strcmp(text, wanted) == 0;
}

static bool count_op(const struct op_record *op, enum recording_place place, void *context)
{
	int *counts = context;

	counts[place == RECORDING_IN_LIVE]++;
	return op->state == OP_DONE || place == RECORDING_IN_LIVE;
}

/* Of each group the last call that is over, and all that are open. */
static void what_is_in_flight(void)
{
	static const struct call calls[] = {
		{ 0, 1, "completed", T0 + 1 * MS, 0, "a.py" },
		{ 1, 1, "completed", T0 + 2 * MS, 0, "b.py" },
		{ 1, 2, "completed", T0 + 3 * MS, 0, "b.py" },
		{ 0, 2, "completed", T0 + 4 * MS, 0, "a.py" },
		{ 1, 3, "started", T0 + 7 * MS, 0, "b.py" },
		{ 0, 3, "completed", T0 + 5 * MS, 0, "a.py" },
		{ 1, 4, "scheduled", T0 + 6 * MS, 0, "b.py" },
		{ 2, 1, "scheduled", T0 + 8 * MS, 0, NULL },
	};
	const struct recording_process *process;
	struct recording_walk walk;
	int counts[2] = { 0, 0 };

	put_dump(3, calls, ARRAY_LENGTH(calls));
	load_dump(3);
	process = recording.processes[0];
	EXPECT(process->foreign != NULL && process->foreign->is_dump && process->rank == 3 &&
	       process->is_snapshot && process->is_final && recording.trouble_count == 0);
	EXPECT_EQUAL(process->snapshot_operations, 8);
	EXPECT(has_flights(process, "1#3 done 0 6\n"
				    "2#2 done 0 3\n"
				    "2#3 open 1 0\n"
				    "2#4 open 1 0\n"
				    "3#1 open 1 0\n"));
	EXPECT(has_wheres(process, "2#3 7 open b.py:3\n"
				   "2#4 6 open b.py:4\n"
				   "1#3 5 a.py:3\n"
				   "2#2 3 b.py:2\n"));
	EXPECT_EQUAL(recording_each_op(process, count_op, counts, &walk), OK);
	EXPECT(counts[0] == 5 && counts[1] == 3 && walk.in_trace == 5 && walk.in_live == 3 &&
	       walk.refused == 0);
	EXPECT(strcmp(recording_where(process, 2, 4)->text, "b.py:4") == 0 &&
	       recording_where(process, 2, 5) == NULL && recording_where(process, 3, 4) == NULL);
	EXPECT_THAT("the last of all", strcmp(recording_where(process, 0, 0)->text, "b.py:3") == 0);
}

/* A file that was copied later says nothing about its moment. */
static void when_it_was_made(void)
{
	static const struct {
		const char *sentence;
		uint64_t written_ns;
		uint64_t timeout_ms;
		const char *state;
		uint64_t wanted_ns;
	} cases[] = {
		{ "when the file was written", T0 + 20 * SECOND + 7, 1000, "started",
		  T0 + 20 * SECOND + 7 },
		{ "as late as a watchdog may be", T0 + 601 * SECOND, 1000, "started",
		  T0 + 601 * SECOND },
		{ "later, it was copied", T0 + 601 * SECOND + 1, 1000, "started", T0 + 9 * SECOND },
		{ "nothing is open", T0 + 9999 * SECOND, 1000, "completed", T0 + 9999 * SECOND },
		{ "no limit is known", T0 + 9999 * SECOND, 0, "started", T0 + 9999 * SECOND },
		{ "not before its last call", T0 + 9 * SECOND - 1, 1000, "started",
		  T0 + 9 * SECOND },
		{ "no time", 999, 1000, "started", T0 + 9 * SECOND },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		const struct call calls[] = {
			{ 0, 1, cases[i].state, T0, cases[i].timeout_ms, NULL },
			{ 0, 2, "completed", T0 + 9 * SECOND, 0, NULL },
		};

		put_dump(3, calls, 2);
		written_at(3, cases[i].written_ns);
		load_dump(3);
		EXPECT_THAT(cases[i].sentence,
			    recording.processes[0]->counts_ns == cases[i].wanted_ns &&
				    recording.processes[0]->snapshot_wall_ns == cases[i].wanted_ns);
	}
}

/* One that has no call in flight does not show by itself that it was copied. */
static void dumps_of_a_directory(void)
{
	static const struct call waits[] = { { 0, 2, "started", T0 + 9 * SECOND, 1000, NULL } };
	static const struct call idle[] = { { 0, 1, "completed", T0, 0, NULL } };

	put_dump(1, waits, 1);
	put_dump(2, idle, 1);
	for (int copied = 0; copied < 2; copied++) {
		written_at(1, T0 + 30 * SECOND);
		written_at(2, T0 + (copied ? 9999 : 31) * SECOND);
		begin();
		if (recording_add(&recording, dump_path(1), 0) != OK ||
		    recording_add(&recording, dump_path(2), 0) != OK ||
		    recording_finish(&recording) != OK || recording.count != 2)
			abort();
		EXPECT_THAT("they are dated if all can be",
			    recording.processes[0]->is_undated == (copied == 1) &&
				    recording.processes[1]->is_undated == (copied == 1));
		EXPECT_THAT("else all end with the last entry of any",
			    recording.processes[0]->counts_ns == T0 + (copied ? 9 : 30) * SECOND &&
				    recording.processes[1]->counts_ns ==
					    T0 + (copied ? 9 : 31) * SECOND);
	}
	if (unlink(dump_path(1)) == -1 || unlink(dump_path(2)) == -1)
		abort();
}

/* A trace of a rank with three communicators, and when each was last called; 0: never. */
struct trace {
	int rank;
	int comm_rank;
	int nranks;
	const char *names[3];
	uint64_t last_wall_ns[3];
};

static struct sample trace_of(const struct trace *trace, int pid)
{
	struct {
		struct trace_counts counts;
		struct trace_comm_counts comms[3];
	} counts = { .counts = { .comms = 3, .clock_ns = 2000000 } };
	struct clock_anchor anchor = { 1000, T0 };
	struct sample sample = { NULL, 0, 0 };
	struct comm_info comms[3];
	char info[256];

	text_format(info, sizeof(info),
		    "host=h\nboot_id=b\npid=%d\nstart_ticks=%d\nrank=%d\nmode=trace\n", pid, pid,
		    trace->rank);
	for (uint32_t i = 0; i < 3; i++) {
		comms[i] = sample_comm(i + 1);
		comms[i].rank = trace->comm_rank;
		comms[i].nranks = trace->nranks;
		text_copy(comms[i].name, sizeof(comms[i].name), trace->names[i]);
		counts.comms[i].id = i + 1;
		if (trace->last_wall_ns[i] != 0)
			counts.comms[i].counts.last_issue_ns = trace->last_wall_ns[i] - T0 + 1000;
	}
	sample_header(&sample, TRACE_MAJOR, TRACE_MINOR);
	sample_block(&sample, TRACE_PROCESS, info, strlen(info), 1);
	sample_block(&sample, TRACE_COMM, comms, sizeof(comms), 3);
	sample_block(&sample, TRACE_ANCHOR, &anchor, sizeof(anchor), 1);
	sample_block(&sample, TRACE_CLOSE, &counts, sizeof(counts), 1);
	return sample;
}

enum { TRACES_MAX = 3 };
static struct sample samples[TRACES_MAX];

/* The dump of this rank beside these traces. */
static void join(int rank, const struct trace *traces, size_t count)
{
	begin();
	for (size_t i = 0; i < TRACES_MAX; i++) {
		free(samples[i].bytes);
		samples[i] = (struct sample){ NULL, 0, 0 };
	}
	for (size_t i = 0; i < count; i++) {
		char name[16];

		samples[i] = trace_of(&traces[i], 100 + (int)i);
		text_format(name, sizeof(name), "trace-%zu", i);
		if (recording_add_memory(&recording, name, samples[i].bytes, samples[i].size, 0) !=
		    OK)
			abort();
	}
	if (recording_add(&recording, dump_path(rank), 0) != OK ||
	    recording_finish(&recording) != OK)
		abort();
}

static const struct call joined_calls[] = {
	{ 0, 11, "completed", T0 + 10 * SECOND, 0, "a.py" },
	{ 1, 12, "started", T0 + 20 * SECOND, 0, "b.py" },
	{ 2, 13, "completed", T0 + 30 * SECOND, 0, "c.py" },
};

static void a_dump_beside_its_recording(void)
{
	static const struct trace trace = { 3,
					    3,
					    8,
					    { "", "tensor", "" },
					    { T0 + 10 * SECOND, T0 + 30 * SECOND,
					      T0 + 20 * SECOND } };
	const struct recording_process *process;

	put_dump(3, joined_calls, ARRAY_LENGTH(joined_calls));
	join(3, &trace, 1);
	if (!EXPECT(recording.count == 1 && recording.trouble_count == 0))
		return;
	process = recording.processes[0];
	EXPECT_THAT("communicators without a name get the group's",
		    strcmp(process->comms[0].info.name, "group-0") == 0 &&
			    strcmp(process->comms[1].info.name, "tensor") == 0 &&
			    strcmp(process->comms[2].info.name, "group-1") == 0);
	EXPECT_THAT("calls get their place in the program",
		    has_wheres(process, "3#0 20000 open b.py:12\n"
					"1#0 10000 a.py:11\n"
					"2#0 30000 c.py:13\n"));
	EXPECT(process->foreign == NULL && !process->is_snapshot);
}

/* Group 0 of the dump was last called at T0 + 10 s. */
static void which_communicator_it_was(void)
{
	static const struct {
		const char *sentence;
		struct trace trace;
		int found; /* -1: the dump is not used */
	} cases[] = {
		{ "less than half a second apart",
		  { 3, 3, 8, { "", "", "" }, { T0 + 10 * SECOND + 500 * MS - 1, 0, 0 } },
		  0 },
		{ "the same before", { 3, 3, 8, { "", "", "" }, { 0, T0 + 9500 * MS + 1, 0 } }, 1 },
		{ "half a second after",
		  { 3, 3, 8, { "", "", "" }, { T0 + 10500 * MS, 0, 0 } },
		  -1 },
		{ "half a second before",
		  { 3, 3, 8, { "", "", "" }, { T0 + 9500 * MS, 0, 0 } },
		  -1 },
		{ "the closest one",
		  { 3, 3, 8, { "", "", "" }, { T0 + 9800 * MS, T0 + 10100 * MS, T0 + 10300 * MS } },
		  1 },
		{ "the last of three",
		  { 3, 3, 8, { "", "", "" }, { T0 + 9700 * MS, T0 + 10200 * MS, T0 + 10000 * MS } },
		  2 },
		{ "two equally close ones",
		  { 3, 3, 8, { "", "", "" }, { T0 + 9900 * MS, T0 + 10100 * MS, 0 } },
		  -1 },
		{ "two equally close ones, and a closer one",
		  { 3, 3, 8, { "", "", "" }, { T0 + 9900 * MS, T0 + 10100 * MS, T0 + 10050 * MS } },
		  2 },
		{ "another number of ranks",
		  { 3, 3, 7, { "", "", "" }, { T0 + 10 * SECOND, 0, 0 } },
		  -1 },
		{ "another rank in it",
		  { 3, 2, 8, { "", "", "" }, { T0 + 10 * SECOND, 0, 0 } },
		  -1 },
		{ "another rank of the job",
		  { 2, 3, 8, { "", "", "" }, { T0 + 10 * SECOND, 0, 0 } },
		  -1 },
		{ "none was called", { 3, 3, 8, { "", "", "" }, { 0, 0, 0 } }, -1 },
	};

	put_dump(3, joined_calls, 1);
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		const struct recording_process *process;
		bool is_right = true;

		join(3, &cases[i].trace, 1);
		process = recording.processes[0];
		for (int comm = 0; comm < 3; comm++)
			is_right = is_right && strcmp(process->comms[comm].info.name,
						      comm == cases[i].found ? "group-0" : "") == 0;
		is_right = is_right && process->where_count == (cases[i].found >= 0);
		if (cases[i].found >= 0)
			is_right = is_right && recording.trouble_count == 0 &&
				   process->wheres[0].comm == (uint32_t)cases[i].found + 1;
		else
			is_right = is_right && recording.trouble_count == 1 &&
				   strcmp(recording.troubles[0].what,
					  "dump of rank 3 is not used: no recording here has its "
					  "calls") == 0 &&
				   recording.troubles[0].kind == RECORDING_NOTHING;
		EXPECT_THAT(cases[i].sentence, recording.count == 1 && is_right);
	}
}

/* A rank that was restarted has two recordings. */
static void which_process_it_was(void)
{
	static const struct trace traces[TRACES_MAX] = {
		{ 3, 3, 8, { "", "", "" }, { T0 + 10 * SECOND, 0, 0 } },
		{ 3, 3, 8, { "", "", "" }, { T0 + 10 * SECOND, T0 + 20 * SECOND, 0 } },
		{ 3, 3, 8, { "", "", "" }, { 0, T0 + 20 * SECOND, T0 + 30 * SECOND } },
	};
	size_t owner = TRACES_MAX;

	put_dump(3, joined_calls, ARRAY_LENGTH(joined_calls));
	join(3, traces, TRACES_MAX);
	EXPECT_EQUAL(recording.count, TRACES_MAX);
	for (size_t i = 0; i < recording.count; i++)
		if (recording.processes[i]->where_count > 0)
			owner = i;
	EXPECT_THAT("the first that shares the most calls",
		    owner < TRACES_MAX && recording.processes[owner]->pid == 101 &&
			    has_wheres(recording.processes[owner], "2#0 20000 open b.py:12\n"
								   "1#0 10000 a.py:11\n"));
	EXPECT(recording.processes[0]->where_count + recording.processes[1]->where_count +
		       recording.processes[2]->where_count ==
	       2);
}

static void a_second_dump_of_a_rank(void)
{
	static const struct trace trace = { 3, 3, 8, { "", "", "" }, { T0 + 10 * SECOND, 0, 0 } };
	char second[160];

	put_dump(3, joined_calls, 1);
	text_format(second, sizeof(second), "%s.copy_3", dump_path(3));
	if (rename(dump_path(3), second) == -1)
		abort();
	put_dump(3, joined_calls, 1);
	samples[0] = trace_of(&trace, 100);
	begin();
	if (recording_add_memory(&recording, "trace", samples[0].bytes, samples[0].size, 0) != OK ||
	    recording_add(&recording, dump_path(3), 0) != OK ||
	    recording_add(&recording, second, 0) != OK || recording_finish(&recording) != OK)
		abort();
	EXPECT(recording.count == 1 && recording.processes[0]->where_count == 1);
	EXPECT_THAT("the second one is not used", recording.trouble_count == 1);
}

/* Of rank 0, which is a rank as any other. */
static void dumps_alone(void)
{
	static const struct trace trace = { 0, 0, 8, { "", "", "" }, { T0 + 10 * SECOND, 0, 0 } };

	put_dump(0, joined_calls, 1);
	put_dump(1, joined_calls, 1);
	begin();
	if (recording_add(&recording, dump_path(0), 0) != OK ||
	    recording_add(&recording, dump_path(1), 0) != OK || recording_finish(&recording) != OK)
		abort();
	EXPECT_THAT("stay as they are", recording.count == 2 && recording.trouble_count == 0 &&
						recording.processes[0]->where_count == 1 &&
						recording.processes[1]->where_count == 1);
	join(0, &trace, 1);
	EXPECT_THAT("beside a recording of rank 0",
		    recording.count == 1 && recording.processes[0]->where_count == 1 &&
			    recording.processes[0]->foreign == NULL);
}

int main(void)
{
	text_copy(directory, sizeof(directory), scratch_make());
	what_is_in_flight();
	when_it_was_made();
	dumps_of_a_directory();
	a_dump_beside_its_recording();
	which_communicator_it_was();
	which_process_it_was();
	a_second_dump_of_a_rank();
	dumps_alone();
	recording_release(&recording);
	for (size_t i = 0; i < TRACES_MAX; i++)
		free(samples[i].bytes);
	return tap_done();
}
