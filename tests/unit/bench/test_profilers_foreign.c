/* The comparison on synthetic logs of NCCL Inspector and CoMMA. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/profilers.h"
#include "tests/unit/bench/profilers_stage.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

enum { CALLS = 10, STEPS = CALLS + 3, SIZE = 1 << 20 };

static const char *directory;

static FILE *open_log(const char *name, int32_t rank)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s-%d.log", directory, name, (int)rank);
	file = fopen(path, "w");
	if (file == NULL)
		abort();
	return file;
}

static void add_log(struct stage_job *job, const char *name, int32_t rank)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s-%d.log", directory, name, (int)rank);
	if (recording_add(&job->recording, path, 0) != OK)
		abort();
}

/* Inspector counts a rank's part for AllGather; its times are in whole microseconds. */
static void write_inspector(int32_t rank, uint64_t *sequence, FILE *file, const char *function,
			    uint64_t bytes, uint64_t time_us)
{
	fprintf(file,
		"{\"header\":{\"id\":\"0x5eed00c0ffee01\",\"comm_name\":\"world\",\"rank\":%d,"
		"\"n_ranks\":%d,\"nnodes\":1},\"metadata\":{\"inspector_output_format_version\":"
		"\"v4.0\",\"git_rev\":\"\",\"rec_mechanism\":\"nccl_profiler_interface\","
		"\"dump_timestamp_us\":%llu,\"hostname\":\"node-1\",\"pid\":%d},\"coll_perf\":{"
		"\"coll\":\"%s\",\"coll_sn\":%llu,\"coll_msg_size_bytes\":%llu,"
		"\"coll_exec_time_us\":%llu,\"coll_timing_source\":\"kernel_gpu\","
		"\"coll_algobw_gbs\":1.5,\"coll_busbw_gbs\":2.5}}\n",
		(int)rank, STAGE_RANKS, 1700000000000000 + (unsigned long long)*sequence,
		STAGE_PID + (int)rank, function, (unsigned long long)*sequence,
		(unsigned long long)bytes, (unsigned long long)time_us);
	++*sequence;
}

static void record_inspector(struct stage_job *job, int32_t rank)
{
	uint64_t reduce = 0, gather = 0;
	FILE *file = open_log("inspector", rank);

	for (uint32_t step = 0; step < STEPS; step++) {
		/* Warm-up and check take longer: they must not be matched to measured calls. */
		bool is_measured = step >= 2 && step < 2 + CALLS;

		write_inspector(rank, &reduce, file, "AllReduce", SIZE, is_measured ? 10 : 500);
	}
	for (uint32_t step = 0; step < STEPS - 4; step++)
		write_inspector(rank, &gather, file, "AllGather", SIZE / STAGE_RANKS,
				step % 2 ? 10 : 0);
	fclose(file);
	add_log(job, "inspector", rank);
}

static struct profilers_counts counts_of(const struct profilers_comparison *comparison,
					 int function, int rank)
{
	struct profilers_which which = PROFILERS_WHICH_ALL;

	which.function = function;
	which.rank = rank;
	return profilers_counts(comparison, &which);
}

static const struct profilers_accuracy *accuracy_of(const struct profilers_comparison *comparison,
						    uint8_t function)
{
	for (size_t i = 0; i < comparison->accuracy_count; i++)
		if (comparison->accuracy[i].function == function)
			return &comparison->accuracy[i];
	return NULL;
}

static void start(struct stage_job *job)
{
	stage_init(job);
	stage_cell(job, BENCH_BACK_TO_BACK, OP_ALL_REDUCE, SIZE, CALLS, 1);
	stage_cell(job, BENCH_BACK_TO_BACK, OP_ALL_GATHER, SIZE, CALLS, 1);
}

static void compare(struct stage_job *job, enum profilers_kind kind,
		    struct profilers_comparison *comparison)
{
	struct profilers_trial trial = { .plugin = 1,
					 .output = PROFILERS_READ,
					 .bench = &job->bench,
					 .recording = &job->recording };
	struct profilers *work = profilers_new();

	profilers_plugin(work, "foreign", "foreign.so", kind);
	EXPECT_EQUAL(recording_finish(&job->recording), OK);
	EXPECT_EQUAL(profilers_trial(work, &trial), OK);
	EXPECT_EQUAL(profilers_finish(work, comparison), OK);
	profilers_free(work);
	stage_release(job);
}

static void test_inspector(void)
{
	struct profilers_comparison comparison;
	const struct profilers_accuracy *row;
	struct profilers_counts sum;
	struct stage_job job;

	start(&job);
	for (int32_t rank = 0; rank < STAGE_RANKS; rank++)
		record_inspector(&job, rank);
	compare(&job, PROFILERS_INSPECTOR, &comparison);
	sum = counts_of(&comparison, OP_ALL_REDUCE, 1);
	EXPECT_THAT("its lines are assigned to their rank",
		    sum.issued == STEPS && sum.recorded == STEPS && sum.missing == 0);
	sum = counts_of(&comparison, OP_ALL_GATHER, PROFILERS_ALL);
	EXPECT_THAT("a rank's part is converted to the message size, and missing records are "
		    "counted",
		    sum.recorded == 2 * (STEPS - 4) && sum.missing == 8 && sum.excess == 0);
	EXPECT_THAT("less than a microsecond is no time", sum.untimed == 2 * 5);
	row = accuracy_of(&comparison, OP_ALL_REDUCE);
	EXPECT(row && row->in_order == row->calls && row->source == OP_TIME_KERNEL_GPU);
	EXPECT_THAT("10 us reported of 20 us measured",
		    row && row->ratio.p05 > 0.48 && row->ratio.p95 < 0.51);
	row = accuracy_of(&comparison, OP_ALL_GATHER);
	EXPECT_THAT("without call times the rest cannot be matched",
		    row && row->in_order + row->by_time == 0 && row->calls == 2 * CALLS);
	EXPECT_THAT("gaps found by the reader are not losses reported by the plugin",
		    !profilers_jobs_of(&comparison, 1, BENCH_BACK_TO_BACK)->tells_lost);
	profilers_comparison_release(&comparison);
}

static void record_comma(struct stage_job *job, int32_t rank)
{
	FILE *file = open_log("comma", rank);

	for (size_t i = 0; i < job->bench.cell_count; i++) {
		const struct bench_cell *cell = &job->bench.cells[i];
		const char *name = i == 0 ? "all_reduce" : "all_gather";

		/* Only the measured calls. */
		for (uint32_t call = 0; call < CALLS; call++) {
			uint64_t at = bench_cell_call(cell, rank, call)->begin_ns / 1000 + 1;

			fprintf(file,
				"{\"algo\":\"ring\",\"args\":{\"size\":%llu},\"cat\":\"COLL\","
				"\"child_dur\":30,\"child_start_ts\":%llu,\"comm_hash\":\"0x11\","
				"\"dur\":40,\"n_max_channel\":2,\"name\":\"%s\",\"ph\":\"X\","
				"\"proto\":\"simple\",\"rank\":%d,\"seq_num\":%u,\"ts\":%llu}\n",
				(unsigned long long)SIZE, (unsigned long long)at + 2, name,
				(int)rank, call, (unsigned long long)at);
		}
	}
	fclose(file);
	add_log(job, "comma", rank);
}

static void test_comma(void)
{
	struct profilers_comparison comparison;
	const struct profilers_accuracy *row;
	struct profilers_counts sum;
	struct stage_job job;

	start(&job);
	for (int32_t rank = 0; rank < STAGE_RANKS; rank++)
		record_comma(&job, rank);
	compare(&job, PROFILERS_COMMA, &comparison);
	sum = counts_of(&comparison, OP_ALL_REDUCE, 0);
	EXPECT_THAT("the communicator's rank identifies them if nothing else does",
		    sum.recorded == CALLS && sum.missing == 3);
	row = accuracy_of(&comparison, OP_ALL_REDUCE);
	EXPECT_THAT("existing records are matched by time",
		    row && row->by_time == row->calls && row->source == OP_TIME_TOOL);
	EXPECT(row && row->ratio.p05 > 1.4 && row->ratio.p95 < 1.51);
	sum = counts_of(&comparison, OP_ALL_GATHER, PROFILERS_ALL);
	EXPECT_THAT("AllGather has no size there, but is counted",
		    sum.recorded == 2 * CALLS && sum.missing == 6 && sum.excess == 0);
	profilers_comparison_release(&comparison);
}

int main(void)
{
	directory = scratch_make();
	test_inspector();
	test_comma();
	return tap_done();
}
