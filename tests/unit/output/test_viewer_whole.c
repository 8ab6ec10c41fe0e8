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
		{ "the first in world", "world", -1, 1, 4, 1, 7930000, 9930000 },
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
	return tap_done();
}
