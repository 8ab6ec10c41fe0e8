/* What windows hold and where it changed. Of more changes than are kept, the most important ones are, and
 * the number of the others is reported everywhere. */
#include "analysis/timeline_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"
#include "output/report.h"
#include "tests/tap.h"
#include "tests/support/hand_made.h"

/* Each size of each function on each kind of communicator is a separate series. */
enum { KINDS = 3, FUNCTIONS = 3, SIZES = 30, SERIES = KINDS * FUNCTIONS * SIZES };
static const uint8_t functions[FUNCTIONS] = { OP_ALL_REDUCE, OP_ALL_GATHER, OP_REDUCE_SCATTER };
static const int32_t ranks_of[KINDS] = { 2, 2, 3 }, nodes_of[KINDS] = { 1, 2, 2 };

struct made {
	struct hand_made hand;
	struct timeline_report report;
};

typedef uint64_t duration_of(int series, int call);

static void play(struct made *made, int32_t kind, int32_t rank, uint8_t algorithm, int calls,
		 duration_of *of)
{
	struct recording_process *process = hand_process(
		&made->hand, "j", algorithm * 16 + kind * 4 + rank, rank == 0 ? "a" : "b");
	uint64_t now_ns = 1000000000, match = 0;

	hand_comm(process, 0x100 + 16 * (uint64_t)algorithm + (uint64_t)kind, "comm", rank,
		  ranks_of[kind], nodes_of[kind]);
	for (int call = 0; call < calls; call++)
		for (int i = 0; i < FUNCTIONS * SIZES; i++) {
			now_ns += 1000000;
			hand_op(process, 1, functions[i / SIZES], ++match,
				UINT64_C(1) << (i % SIZES + 4),
				of(i + kind * FUNCTIONS * SIZES, call), now_ns)
				->algorithm = algorithm;
		}
}

/* With several algorithms, each on its own communicators. */
static void make(struct made *made, int calls, uint8_t algorithms, duration_of *of)
{
	struct timeline_options options = { .custom_by = { BASELINE_BY }, .custom_count = 1 };

	*made = (struct made){ .hand = { .recording = { .count = 0 } } };
	for (uint8_t i = 0; i < algorithms; i++)
		for (int32_t kind = 0; kind < KINDS; kind++)
			for (int32_t rank = 0; rank < ranks_of[kind]; rank++)
				play(made, kind, rank, i ? OP_TREE : OP_RING, calls, of);
	if (timeline_report_make(&made->report, &made->hand.recording, NULL, &options) != OK)
		abort();
}

static void release(struct made *made)
{
	timeline_report_release(&made->report);
	hand_release(&made->hand);
}

/* All take twice as long from the middle on; some of each kind are longer than the others, and the last one
 * is the longest of all. */
static uint64_t halved(int series, int call)
{
	uint64_t longer = series == SERIES - 1 ? 100 : series % 6 == 0 ? 10 : 1;

	return (call < 20 ? 10000 : 20000) * longer;
}

static uint64_t steady(int series, int call)
{
	(void)series, (void)call;
	return 10000;
}

static void test_kept(const struct windows *windows)
{
	bool is_counted = true;

	EXPECT_EQUAL(windows->change_count, WINDOWS_CHANGES_MAX);
	EXPECT_EQUAL(windows->changes_left_out, SERIES - WINDOWS_CHANGES_MAX);
	EXPECT_THAT("the most costly one is first, wherever it was found",
		    windows->changes[0].function == functions[FUNCTIONS - 1] &&
			    windows->changes[0].kind == JOB_COMM_MIXED &&
			    windows->changes[0].lost_ns > 5 * windows->changes[1].lost_ns);
	for (size_t i = 0; i < windows->change_count; i++)
		is_counted = is_counted && windows->changes[i].comms == 1 &&
			     windows->changes[i].comms_changed == 1;
	EXPECT_THAT("however many kinds there are, each has its communicators", is_counted);
}

static void test_told(const struct timeline_report *report)
{
	struct report_text_options options = { .has_all = true };
	struct json json;
	struct sink sink;

	sink_init_memory(&sink);
	report_text_windows(&sink, report, &options);
	EXPECT_THAT("the text shows how many were left out",
		    strstr(sink_string(&sink), "\n(206 smaller changes omitted)\n"));
	sink_release(&sink);

	sink_init_memory(&sink);
	json_init(&json, &sink);
	json_object(&json);
	report_json_put_windows(&json, report);
	json_end(&json);
	EXPECT_THAT("JSON does", strstr(sink_string(&sink), "\"changes_left_out\":206"));
	sink_release(&sink);
}

static const struct verdict *left_out(const struct verdicts *verdicts)
{
	for (size_t i = 0; i < verdicts->count; i++)
		if (verdicts->list[i].class == VERDICT_BLIND &&
		    strstr(verdicts->list[i].title, "not all operations could be compared"))
			return &verdicts->list[i];
	return NULL;
}

static void expect_note(const struct timeline_report *report, const char *sentence,
			const char *evidence)
{
	struct slow_options options = { .threshold = 0 };
	const struct verdict *note;
	struct verdicts verdicts;

	verdicts_init(&verdicts);
	if (slow_find(&verdicts, report, &options) != OK)
		abort();
	note = left_out(&verdicts);
	EXPECT_THAT(sentence, evidence == NULL ? note == NULL
					       : note != NULL && note->evidence.count == 1 &&
							 strstr(note->evidence.list[0], evidence));
	verdicts_release(&verdicts);
}

/* ---- one series -------------------------------------------------------------------------------- */

enum { CALLS = 400 };
#define EVERY_NS UINT64_C(10000000)
#define BYTES (UINT64_C(1) << 20)

/* Two ranks make a call every 10 ms; from this one on, it takes `then_ns`. */
static void make_one(struct made *made, int from, uint64_t first_ns, uint64_t then_ns)
{
	struct timeline_options options = { .custom_by = { BASELINE_BY }, .custom_count = 1 };

	*made = (struct made){ .hand = { .recording = { .count = 0 } } };
	for (int rank = 0; rank < 2; rank++) {
		struct recording_process *process = hand_process(&made->hand, "j", rank, "a");
		uint32_t comm = hand_comm(process, 0x100, "comm", rank, 2, 1);

		for (int n = 0; n < CALLS; n++)
			hand_op(process, comm, OP_ALL_REDUCE, (uint64_t)n + 1, BYTES,
				n < from ? first_ns : then_ns, (uint64_t)(n + 1) * EVERY_NS);
	}
	if (timeline_report_make(&made->report, &made->hand.recording, NULL, &options) != OK)
		abort();
}

/* What the windows hold adds up to all calls, and lies where it happened. */
static void test_sums(void)
{
	static struct made made;
	const struct windows *windows = &made.report.windows;
	const struct windows_series *series;
	double calls = 0, bytes = 0, time_ns = 0, bus_bytes = 0, moved = 0, move_ns = 0;
	uint32_t uneven = 0, wrong = 0;

	make_one(&made, CALLS, 100000, 0);
	if (!EXPECT(windows->series_count == 1 && windows->count > 50 && windows->count <= 100))
		exit(1);
	EXPECT(windows->start_ns + windows->count * windows->width_ns >= windows->end_ns &&
	       windows->start_ns + (windows->count - 1) * windows->width_ns <= windows->end_ns);
	series = &windows->series[0];
	EXPECT(series->function == OP_ALL_REDUCE && series->kind == JOB_COMM_NVLINK);
	for (uint32_t w = 0; w < windows->count; w++) {
		double usual = 2.0 * CALLS / windows->count;

		calls += series->calls[w];
		bytes += series->bytes[w];
		time_ns += series->time_ns[w];
		bus_bytes += series->bus_bytes[w];
		moved += series->move_bus_bytes[w];
		move_ns += series->move_ns[w];
		wrong += fabs(series->bytes[w] - series->calls[w] * (double)BYTES) > 1 ||
			 series->calls[w] < 0;
		/* A slot of a process is smaller than a window. */
		uneven += w > 0 && w + 1 < windows->count && fabs(series->calls[w] - usual) > 4;
	}
	EXPECT(fabs(calls - 2 * CALLS) < 0.01 && fabs(bytes / BYTES - 2 * CALLS) < 0.01);
	EXPECT(fabs(time_ns / 100000 - 2 * CALLS) < 0.01);
	EXPECT_THAT("two ranks: the factor of an AllReduce is 1",
		    fabs(bus_bytes / BYTES - 2 * CALLS) < 0.01);
	EXPECT_THAT("each match once, without waiting",
		    fabs(moved / BYTES - CALLS) < 0.01 && fabs(move_ns / 100000 - CALLS) < 0.01);
	EXPECT_EQUAL(wrong, 0);
	EXPECT_EQUAL(uneven, 0);
	EXPECT_EQUAL(windows->change_count, 0);
	release(&made);
}

static void test_one_change(void)
{
	static const struct {
		int from;
		uint64_t first_ns, then_ns;
		double percent;
	} cases[] = {
		{ 200, 100000, 200000, -50 },
		{ 100, 100000, 400000, -75 },
		{ 300, 200000, 100000, 100 },
	};
	static struct made made;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct windows_change *change;
		int after = CALLS - cases[i].from;
		/* All ranks, from the change on. */
		double lost = cases[i].then_ns > cases[i].first_ns
				      ? 2.0 * after * (double)(cases[i].then_ns - cases[i].first_ns)
				      : 0;

		make_one(&made, cases[i].from, cases[i].first_ns, cases[i].then_ns);
		EXPECT_EQUAL(made.report.windows.change_count, 1);
		change = made.report.windows.changes;
		if (change == NULL)
			exit(1);
		EXPECT(change->function == OP_ALL_REDUCE && change->kind == JOB_COMM_NVLINK);
		EXPECT(fabs(change->percent - cases[i].percent) < 0.5);
		EXPECT(fabs(change->before * (double)cases[i].first_ns / 1e9 / BYTES - 1) < 0.01);
		EXPECT(fabs(change->after * (double)cases[i].then_ns / 1e9 / BYTES - 1) < 0.01);
		EXPECT_EQUAL(change->matches_before, cases[i].from);
		EXPECT_EQUAL(change->matches_after, after);
		if (!EXPECT(fabs((double)change->lost_ns - lost) <= 0.02 * lost))
			printf("# lost %g, wanted %g\n", (double)change->lost_ns, lost);
		EXPECT(change->comms == 1 && change->comms_changed == 1 &&
		       change->ranks_changed == 2);
		EXPECT_THAT("it is where it happened",
			    change->at_ns > (uint64_t)cases[i].from * EVERY_NS &&
				    change->at_ns <= (uint64_t)(cases[i].from + 1) * EVERY_NS);
		EXPECT_EQUAL(change->window, (change->at_ns - made.report.windows.start_ns) /
						     made.report.windows.width_ns);
		release(&made);
	}
}

int main(void)
{
	static struct made made;

	test_sums();
	test_one_change();

	make(&made, 40, 1, halved);
	test_kept(&made.report.windows);
	test_told(&made.report);
	expect_note(&made.report, "the doctor notes changes that are left out",
		    "206 changes in operation speed were left out");
	release(&made);

	make(&made, 20, 1, steady);
	EXPECT_THAT("nothing changed, nothing is left out",
		    made.report.windows.change_count == 0 &&
			    made.report.windows.changes_left_out == 0);
	expect_note(&made.report, "and no note", NULL);
	release(&made);

	make(&made, 20, 2, steady);
	expect_note(&made.report, "the doctor notes operation types beyond its table",
		    "28 operation types of a communicator were left out");
	release(&made);
	return tap_done();
}
