/* Reports and comparisons without enough memory: each allocation fails once, and is noticed. */
#include "tests/support/short_memory.h"

#include "analysis/compare.h"
#include "analysis/timeline_report.h"
#include "tests/support/busy_jobs.h"
#include "tests/tap.h"

enum { ROUNDS = 136 };

static struct busy_jobs jobs;
static struct timeline_report report;

static enum status make_report(void)
{
	struct timeline_options options = TIMELINE_OPTIONS_INIT;
	struct filter filter = { 0 };
	enum status status;

	options.windows = 8;
	options.custom_by[options.custom_count++] = TALLY_BY_COMM | TALLY_BY_HOST | TALLY_BY_SOURCE;
	status = timeline_report_make(&report, &jobs.hand.recording, &filter, &options);
	if (status == OK)
		timeline_report_release(&report);
	return status;
}

/* A pipeline: two ranks on each of eight hosts, each sends to the next host; the sixth is outside of operations for longer since
 * the middle. */
static struct hand_made pipeline;

static void make_pipeline(void)
{
	for (int rank = 0; rank < 16; rank++) {
		char host[16];
		struct recording_process *process;

		snprintf(host, sizeof(host), "h%d", rank / 2);
		process = hand_process(&pipeline, "j", rank, host);
		hand_comm(process, 1 + (uint64_t)rank / 2, "tp", rank % 2, 2, 1);
		hand_comm(process, 20 + (uint64_t)rank % 2, "pp", rank / 2, 8, 8);
		for (uint64_t second = 1; second <= 16; second++) {
			uint64_t outside_ns = rank / 2 == 5 && second > 8 ? 700000000 : 400000000;
			uint64_t end_ns = second * 1000000000;
			struct op_record *op = hand_op(process, 2, OP_SEND, 0, 1 << 20,
						       1000000000 - outside_ns, end_ns);

			op->peer = (rank / 2 + 1) % 8;
			op->launch_ns = op->active_ns;
		}
	}
}

static enum status make_pipeline_report(void)
{
	struct timeline_options options = TIMELINE_OPTIONS_INIT;
	enum status status = timeline_report_make(&report, &pipeline.recording, NULL, &options);

	if (status == OK)
		timeline_report_release(&report);
	return status;
}

static enum status make_comparison(void)
{
	struct compare compare;
	enum status status = compare_make(&compare, &report, &report, 0.05);

	if (status == OK)
		compare_release(&compare);
	return status;
}

int main(void)
{
	struct timeline_options options = TIMELINE_OPTIONS_INIT;

	options.custom_by[options.custom_count++] = TALLY_BY_FUNCTION | TALLY_BY_SIZE;
	busy_jobs_make(&jobs, ROUNDS);
	/* What is only made smaller stays as it is. */
	short_memory_each("a report", make_report, false);
	if (timeline_report_make(&report, &jobs.hand.recording, NULL, &options) != OK)
		abort();
	/* Channels of operations that cannot be read are not compared. */
	short_memory_each("a comparison", make_comparison, false);
	timeline_report_release(&report);
	busy_jobs_release(&jobs);
	make_pipeline();
	if (timeline_report_make(&report, &pipeline.recording, NULL, &options) != OK)
		abort();
	EXPECT(report.stragglers.count == 1 && report.stragglers.list[0].is_origin &&
	       report.stragglers.list[0].class == STRAGGLER_SLOW_HOST &&
	       report.stragglers.list[0].host == 5);
	timeline_report_release(&report);
	short_memory_each("a report of a pipeline", make_pipeline_report, false);
	hand_release(&pipeline);
	return tap_done();
}
