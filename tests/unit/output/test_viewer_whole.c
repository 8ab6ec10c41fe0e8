/* Whole timelines of the jobs in whole_job.h, as Chrome's JSON, which has a line per event. */
#include "output/viewer.h"

#include <string.h>

#include "tests/support/busy_jobs.h"
#include "tests/support/expected_output.h"
#include "tests/support/wire_show.h"
#include "tests/tap.h"
#include "tests/unit/output/whole_job.h"

enum { ROUNDS = 3 };
#define EXPECTED "tests/unit/output/expected/"

struct shown {
	const char *name; /* of the expected file; NULL: none */
	struct filter filter;
	bool has_details;
	bool has_calls;
	bool is_perfetto;
	uint64_t from_ns; /* after the first; 0 and 0: everything */
	uint64_t to_ns;
};

static struct recording recording;
static struct job job;
static struct align align;

static void put_count(struct sink *sink, const char *what, uint64_t count)
{
	sink_format(sink, "%s %llu\n", what, (unsigned long long)count);
}

static void put_tally(struct sink *sink, const struct viewer_plan *plan,
		      const struct viewer *viewer)
{
	const struct viewer_counts *counts = &viewer->counts;
	const struct viewer_tally *tally = &plan->tally;

	put_count(sink, "span", plan->end_ns - plan->origin_ns);
	put_count(sink, "expected operations", plan->expected);
	put_count(sink, "expected details", plan->expected_details);
	put_count(sink, "walked", plan->walked);
	put_count(sink, "to walk", plan->to_walk);
	put_count(sink, "read", tally->read);
	put_count(sink, "shown", tally->shown);
	put_count(sink, "timed", tally->timed);
	put_count(sink, "seen", tally->seen);
	put_count(sink, "called", tally->called);
	put_count(sink, "in flight", tally->in_flight);
	put_count(sink, "nowhere", tally->nowhere);
	put_count(sink, "crowded", tally->crowded);
	put_count(sink, "waiting", tally->waiting);
	put_count(sink, "details", tally->details);
	put_count(sink, "details out", tally->details_out);
	put_count(sink, "missing", tally->missing);
	put_count(sink, "refused", tally->refused);
	put_count(sink, "processes", counts->processes);
	put_count(sink, "tracks", counts->tracks);
	put_count(sink, "slices", counts->slices);
	put_count(sink, "open slices", counts->open_slices);
	put_count(sink, "instants", counts->instants);
	put_count(sink, "tails", counts->tails);
	put_count(sink, "heads", counts->heads);
	put_count(sink, "values", counts->values);
}

/* Perfetto's stream, as text. */
static void expect_packets(struct sink *sink, const char *path)
{
	struct sink text;

	sink_init_memory(&text);
	EXPECT(wire_show(&text, (const unsigned char *)sink->bytes,
			 (const unsigned char *)sink->bytes + sink->used, 0));
	EXPECT_THAT(path, expected_text(&text, path));
	sink_release(sink);
}

static void expect_timeline(const struct shown *shown)
{
	struct viewer_args about = { .count = 0 };
	struct viewer_plan plan;
	struct viewer viewer;
	char path[128];
	struct sink sink;

	sink_init_memory(&sink);
	EXPECT_EQUAL(viewer_plan_init(&plan, &job, &align, &shown->filter), OK);
	plan.has_details = shown->has_details;
	plan.has_calls = shown->has_calls;
	EXPECT_EQUAL(viewer_plan_survey(&plan), OK);
	if (shown->to_ns > 0) {
		plan.from_ns = plan.first_ns + shown->from_ns;
		plan.to_ns = plan.first_ns + shown->to_ns;
	}
	EXPECT_EQUAL(viewer_plan_join(&plan), OK);
	EXPECT_EQUAL(viewer_init(&viewer, shown->is_perfetto ? VIEWER_PERFETTO : VIEWER_JSON, &sink,
				 NULL, plan.origin_ns),
		     OK);
	viewer_about(&viewer, &about);
	EXPECT_EQUAL(viewer_plan_write(&plan, &viewer), OK);
	EXPECT_EQUAL(viewer_end(&viewer), OK);
	snprintf(path, sizeof(path), EXPECTED "timeline-%s.txt", shown->name);
	if (shown->is_perfetto) {
		expect_packets(&sink, path);
	} else {
		put_tally(&sink, &plan, &viewer);
		EXPECT_THAT(path, expected_text(&sink, path));
	}
	viewer_plan_release(&plan);
}

static void test_timelines(void)
{
	static const struct shown timelines[] = {
		{ .name = "all" },
		{ .name = "details",
		  .has_details = true,
		  .has_calls = true,
		  .filter = { .ranks = { { 3, 3 } }, .range_count = 1 } },
		{ .name = "details-closed",
		  .has_details = true,
		  .filter = { .ranks = { { 0, 0 } }, .range_count = 1 } },
		{ .name = "window",
		  .has_details = true,
		  .filter = { .comms = { "world" }, .comm_count = 1 },
		  .from_ns = 12000000,
		  .to_ns = 25000000 },
		{ .name = "perfetto",
		  .has_details = true,
		  .is_perfetto = true,
		  .filter = { .comms = { "world" }, .comm_count = 1 },
		  .from_ns = 12000000,
		  .to_ns = 21000000 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(timelines); i++)
		expect_timeline(&timelines[i]);
}

struct found {
	const char *sentence;
	const char *comm;
	int64_t rank;
	uint64_t number;
	uint64_t count, comm_count, start_ns, end_ns; /* times after the first start */
};

static void test_find(void)
{
	static const struct found cases[] = {
		{ "the first in world", "world", -1, 1, 4, 1, 7930000, 9935000 },
		{ "by rank", "world", 1, 1, 1, 1, 8930000, 9930000 },
		{ "in any communicator", NULL, -1, 1, 6, 3, 0, 9935000 },
		{ "by hash", "0x0000000000000033", -1, 5, 2, 1, 11430000, 11930000 },
		{ "a number that nobody called", "world", -1, 500, 0, 0, 0, 0 },
		{ "a name that nobody has", "w", -1, 1, 0, 0, 0, 0 },
	};
	static const struct filter everything;
	struct viewer_plan plan;

	EXPECT_EQUAL(viewer_plan_init(&plan, &job, &align, &everything), OK);
	EXPECT_EQUAL(viewer_plan_survey(&plan), OK);
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct viewer_find find = { .comm = cases[i].comm,
					    .rank = cases[i].rank,
					    .number = cases[i].number };

		EXPECT_EQUAL(viewer_find(&plan, &find), OK);
		EXPECT_THAT(cases[i].sentence,
			    find.count == cases[i].count &&
				    find.comm_count == cases[i].comm_count &&
				    (find.count == 0 ||
				     (find.start_ns - plan.first_ns == cases[i].start_ns &&
				      find.end_ns - plan.first_ns == cases[i].end_ns)));
	}
	viewer_plan_release(&plan);
}

/* Its last four operations were in flight when it was killed: two of them called at the same time. */
static void leave_open(struct recording_process *process)
{
	for (size_t i = process->flight_count - 4; i < process->flight_count; i++) {
		struct op_record *op = &process->flights[i].op;

		op->state = i % 2 ? OP_ISSUED : OP_RUNNING;
		op->time_source = OP_TIME_NONE;
		op->gpu_start_ns = op->gpu_stop_ns = op->done_ns = 0;
		op->kernels_stopped = 0;
		op->kernels_started = i % 2 == 0;
		op->active_ns = i % 2 ? 0 : op->issue_ns;
		process->comms[op->comm - 1].counts.recorded--;
		process->comms[op->comm - 1].counts.timed--;
	}
	process->flights[process->flight_count - 1].op.issue_ns =
		process->flights[process->flight_count - 3].op.issue_ns;
}

/* Both jobs of busy_jobs.h: clocks that are the same, waiting in every collective, and Sends with their Recvs. */
static void test_busy(void)
{
	static const struct shown timelines[] = {
		{ .name = "busy" },
		{ .name = "busy-hosts",
		  .has_calls = true,
		  .filter = { .ranks = { { 4, 5 } }, .range_count = 1 },
		  .from_ns = 30000000,
		  .to_ns = 120000000 },
	};
	static struct busy_jobs jobs;

	busy_jobs_make(&jobs, 3);
	if (job_make(&job, &jobs.hand.recording) != OK ||
	    align_make(&align, &job, NULL, NULL) != OK)
		abort();
	for (size_t i = 0; i < ARRAY_LENGTH(timelines); i++)
		expect_timeline(&timelines[i]);
	align_release(&align);
	job_release(&job);
	leave_open(jobs.hand.list[jobs.hand.recording.count - 1]);
	if (job_make(&job, &jobs.hand.recording) != OK ||
	    align_make(&align, &job, NULL, NULL) != OK)
		abort();
	expect_timeline(&(struct shown){ .name = "busy-open",
					 .has_calls = true,
					 .filter = { .ranks = { { 5, 5 } }, .range_count = 1 } });
	align_release(&align);
	job_release(&job);
	busy_jobs_release(&jobs);
}

/* One job, of two processes with two GPUs each, whose clocks differ and drift. */
static void test_gpus(void)
{
	static const struct shown timelines[] = { { .name = "gpus" } };
	static struct hand_made hand;

	for (int rank = 0; rank < 2; rank++) {
		struct recording_process *process =
			hand_process(&hand, "j", 5 + rank, rank ? "b" : "a");

		for (int gpu = 0; gpu < 2; gpu++) {
			uint32_t comm = hand_comm(process, 0x50 + (uint64_t)gpu,
						  gpu ? "odd" : "even", rank, 2, 2);

			process->comms[gpu].info.gpu = 2 * rank + gpu;
			for (uint64_t i = 1; i <= 4; i++) {
				uint64_t end_ns = i * 10000000 + (uint64_t)gpu * 3000000;
				struct op_record *op =
					hand_op(process, comm, OP_ALL_REDUCE, i, 1 << 20,
						1000000 + busy_noise(rank, i, 1, 90000), end_ns);
				uint64_t ns = op->gpu_stop_ns - op->gpu_start_ns;

				op->gpu_stop_ns = 7000000000 + (uint64_t)(gpu + 1) * 1000000000 +
						  end_ns + end_ns / 1000 * (uint64_t)(rank + gpu);
				op->gpu_start_ns = op->gpu_stop_ns - ns;
				/* Seen a bit later, but not always by as much. */
				op->done_ns += busy_noise(rank, i, 2, 20000);
			}
		}
		process->life = rank ? RECORDING_UNKNOWN : RECORDING_ENDED;
	}
	if (job_make(&job, &hand.recording) != OK || align_make(&align, &job, NULL, NULL) != OK)
		abort();
	expect_timeline(&timelines[0]);
	align_release(&align);
	job_release(&job);
	hand_release(&hand);
}

/* ---- progress --------------------------------------------------------------------------------- */

static struct {
	struct sink *to;
	int count, last; /* calls, and the one that ends it */
} told;

static bool tell(double fraction, void *context)
{
	sink_format(told.to, " %.4f%s", fraction, context == &told ? "" : " of another");
	return ++told.count != told.last;
}

/* Every 4,096 operations, in each of the three passes, the first of which takes many at a time; the receiver may end it. */
static void test_progress(void)
{
	static const struct filter everything;
	static struct busy_jobs jobs;
	struct sink sink;

	busy_jobs_make(&jobs, 288);
	if (job_make(&job, &jobs.hand.recording) != OK ||
	    align_make(&align, &job, NULL, NULL) != OK)
		abort();
	for (int last = 1; last <= 7; last += 2) {
		struct viewer_args about = { .count = 0 };
		enum status status, end = OK;
		struct viewer_plan plan;
		struct viewer viewer;
		struct sink output;

		sink_init_memory(&sink);
		sink_init_memory(&output);
		told.to = &sink;
		told.count = 0;
		told.last = last;
		EXPECT_EQUAL(viewer_plan_init(&plan, &job, &align, &everything), OK);
		plan.progress = tell;
		plan.progress_context = &told;
		status = viewer_plan_survey(&plan);
		if (status == OK)
			status = viewer_plan_join(&plan);
		if (status == OK) {
			EXPECT_EQUAL(
				viewer_init(&viewer, VIEWER_JSON, &output, NULL, plan.origin_ns),
				OK);
			viewer_about(&viewer, &about);
			status = viewer_plan_write(&plan, &viewer);
			end = viewer_end(&viewer);
		}
		EXPECT_EQUAL(status, ERR_GONE);
		EXPECT_EQUAL(end, OK);
		EXPECT_EQUAL(told.count, last);
		EXPECT_THAT(sink_string(&sink),
			    strncmp(" 0.1415 0.2665 0.3951 0.5267 0.6584 0.7901 0.9218",
				    sink_string(&sink), (size_t)last * 7) == 0);
		sink_release(&sink);
		sink_release(&output);
		viewer_plan_release(&plan);
	}
	align_release(&align);
	job_release(&job);
	busy_jobs_release(&jobs);
}

int main(void)
{
	whole_make(&recording, ROUNDS);
	if (job_make(&job, &recording) != OK || align_make(&align, &job, NULL, NULL) != OK)
		abort();
	test_timelines();
	test_find();
	align_release(&align);
	job_release(&job);
	recording_release(&recording);
	test_busy();
	test_gpus();
	test_progress();
	return tap_done();
}
