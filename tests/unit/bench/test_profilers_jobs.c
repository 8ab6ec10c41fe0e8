/*
 * Jobs that a comparison rarely meets: Sends and Recvs of every function, sizes that nobody issued, records whose
 * rank is unclear, records at the edges of the time that a call took, totals by size class, trainings. Every row is
 * compared with tests/unit/bench/expected/profilers_jobs.txt.
 */
#include "bench/profilers.h"

#include "common/attributes.h"
#include "common/op.h"
#include "import/foreign.h"
#include "tests/support/expected_output.h"
#include "tests/tap.h"
#include "tests/unit/bench/profilers_show.h"
#include "tests/unit/bench/profilers_stage.h"

static const struct stage_faults none = { .factor = 1 };

/* A job of so many ranks on one node, without cells. */
static void job_init(struct stage_job *job, int32_t ranks)
{
	bench_run_init(&job->bench);
	recording_init(&job->recording);
	job->now_ns = SAMPLE_CREATED_NS + 1000000;
	if (bench_run_set_ranks(&job->bench, ranks) != OK)
		abort();
	job->bench.nodes = 1;
	for (int32_t rank = 0; rank < ranks; rank++) {
		snprintf(job->bench.ranks[rank].host, sizeof(job->bench.ranks[rank].host),
			 "node-1");
		job->bench.ranks[rank].pid = STAGE_PID + rank;
	}
}

/* Calls of 20 us and a bit, 100 us apart. */
static struct bench_cell *job_cell(struct stage_job *job, const struct bench_cell *like)
{
	struct bench_cell *cell = bench_run_add_cell(&job->bench, like);

	if (cell == NULL)
		abort();
	for (uint32_t i = 0; i < cell->calls; i++, job->now_ns += 100000)
		for (int32_t rank = 0; rank < cell->nranks; rank++)
			cell->calls_of[(size_t)rank * cell->calls + i] = (struct bench_call){
				.begin_ns = job->now_ns, .gpu_ns = 20000 + 100 * i, .issue_ns = 4000
			};
	return cell;
}

static void file_begin(struct stage_writer *writer, const char *info, int32_t rank, int32_t nranks)
{
	struct comm_info comm = sample_comm(1);
	struct clock_anchor anchor = { 0, SAMPLE_CREATED_NS };

	memset(writer, 0, sizeof(*writer));
	writer->faults = &none;
	comm.rank = rank;
	comm.nranks = nranks;
	sample_header(&writer->sample, TRACE_MAJOR, TRACE_MINOR);
	sample_block(&writer->sample, TRACE_PROCESS, info, strlen(info), 1);
	sample_block(&writer->sample, TRACE_COMM, &comm, sizeof(comm), 1);
	sample_block(&writer->sample, TRACE_ANCHOR, &anchor, sizeof(anchor), 1);
}

static void file_end(struct stage_writer *writer, struct stage_job *job, bool is_closed)
{
	char name[32];

	stage_flush(writer);
	if (is_closed)
		stage_close(writer);
	snprintf(name, sizeof(name), "file%zu", job->recording.count);
	if (recording_add_memory(&job->recording, name, writer->sample.bytes, writer->sample.size,
				 0) != OK)
		abort();
	free(writer->sample.bytes);
}

static void file_begin_rank(struct stage_writer *writer, int32_t rank, int32_t nranks)
{
	char info[128];

	snprintf(info, sizeof(info), "host=node-1\npid=%d\nmode=trace\n", STAGE_PID + rank);
	file_begin(writer, info, rank, nranks);
}

static void take(struct sink *text, const char *title, struct profilers *work,
		 struct profilers_trial *trial, struct stage_job *job)
{
	struct profilers_comparison comparison;

	if (trial->profiles == NULL) {
		if (recording_finish(&job->recording) != OK)
			abort();
		trial->recording = &job->recording;
	}
	trial->bench = &job->bench;
	EXPECT_EQUAL(profilers_trial(work, trial), OK);
	EXPECT_EQUAL(profilers_finish(work, &comparison), OK);
	profilers_free(work);
	stage_release(job);
	sink_format(text, "=== %s\n", title);
	for (size_t i = 0; i < comparison.job_count; i++)
		sink_format(text, "jobs: %d mode %d: %u, %u, %u, %u; lost %s%llu\n",
			    comparison.jobs[i].plugin, comparison.jobs[i].mode,
			    comparison.jobs[i].read, comparison.jobs[i].silent,
			    comparison.jobs[i].unreadable, comparison.jobs[i].failed,
			    comparison.jobs[i].tells_lost ? "" : "?",
			    (unsigned long long)comparison.jobs[i].lost);
	show_comparison(text, &comparison, 0);
	for (size_t i = 0; i < comparison.note_count; i++)
		sink_format(text, "note: %s\n", comparison.notes[i]);
	profilers_comparison_release(&comparison);
}

static struct profilers *new_work(enum profilers_kind kind)
{
	struct profilers *work = profilers_new();

	if (work == NULL)
		abort();
	EXPECT_EQUAL(profilers_plugin(work, "p", "p.so", kind), 1);
	return work;
}

/* ---- Sends and Recvs ---------------------------------------------------------------------------- */

enum { RANKS = 3, CALLS = 4 };

static struct bench_cell cell_like(uint8_t function, uint64_t bytes)
{
	return (struct bench_cell){ .function = function,
				    .datatype = OP_INT32,
				    .mode = BENCH_BACK_TO_BACK,
				    .root = -1,
				    .nranks = RANKS,
				    .count = bytes / 4,
				    .bytes = bytes,
				    .calls = CALLS,
				    .warmups = 2,
				    .checks = 1 };
}

/* What NCCL shows of one step of a cell on a rank: `sends` and `recvs` of a part each. */
static void put_steps(struct stage_writer *writer, const struct bench_cell *cell, uint32_t sends,
		      uint32_t recvs)
{
	uint64_t first = bench_cell_call(cell, writer->rank, 0)->begin_ns;

	for (uint32_t i = 0; i < cell->warmups + cell->calls + cell->checks; i++) {
		uint64_t at = first + 100000 * i - 200000, time_ns = 10000 + 1000 * i;

		for (uint32_t j = 0; j < sends; j++)
			stage_call(writer, OP_SEND, cell->count * 4, at + j, time_ns, OP_DONE);
		for (uint32_t j = 0; j < recvs; j++)
			stage_call(writer, OP_RECV, cell->count * 4, at + j, 2 * time_ns, OP_DONE);
	}
}

static void test_pairs(struct sink *text)
{
	int32_t peers[RANKS] = { 1, 0, -1 };
	struct bench_cell cells[] = { cell_like(OP_SEND_RECV, 512), cell_like(OP_SEND_RECV, 1024),
				      cell_like(OP_ALL_TO_ALL, 2048), cell_like(OP_GATHER, 4096),
				      cell_like(OP_SCATTER, 8192) };
	struct profilers_trial trial = { .plugin = 1, .output = PROFILERS_READ };
	struct stage_writer writer;
	struct stage_job job;

	cells[1].peers = peers;
	cells[3].root = 1;
	cells[4].root = 2;
	job_init(&job, RANKS);
	for (size_t i = 0; i < ARRAY_LENGTH(cells); i++)
		job_cell(&job, &cells[i]);
	for (int32_t rank = 0; rank < RANKS; rank++) {
		const struct bench_cell *done = job.bench.cells;

		file_begin_rank(&writer, rank, RANKS);
		writer.rank = rank;
		put_steps(&writer, &done[0], 1, 1);
		if (rank < 2)
			put_steps(&writer, &done[1], 1, 1);
		put_steps(&writer, &done[2], RANKS, RANKS);
		put_steps(&writer, &done[3], 1, rank == 1 ? RANKS : 0);
		put_steps(&writer, &done[4], rank == 2 ? RANKS : 0, 1);
		file_end(&writer, &job, true);
	}
	take(text, "Sends and Recvs", new_work(PROFILERS_RINGSIDE), &trial, &job);
}

/* A rank without a partner issues nothing, so that no operation is known before records are read. */
static void test_nothing_issued(struct sink *text)
{
	int32_t peers[RANKS] = { -1, -1, -1 };
	struct bench_cell like = cell_like(OP_SEND_RECV, 512);
	struct profilers_trial trial = { .plugin = 1, .output = PROFILERS_READ };
	struct stage_writer writer;
	struct stage_job job;

	like.peers = peers;
	job_init(&job, RANKS);
	job_cell(&job, &like);
	file_begin_rank(&writer, 1, RANKS);
	stage_call(&writer, OP_ALL_REDUCE, 4, job.now_ns, 1000, OP_DONE);
	file_end(&writer, &job, true);
	take(text, "nothing issued", new_work(PROFILERS_RINGSIDE), &trial, &job);
}

/* An AllReduce of up to 8 bytes counts as alignment, but only if ranks were aligned. */
static void test_aligns(struct sink *text, bool is_aligned)
{
	static const struct {
		uint8_t function;
		uint64_t bytes;
	} cells[] = {
		{ OP_ALL_GATHER, 4 }, { OP_ALL_REDUCE, 8 }, { OP_ALL_REDUCE, 12 }, { OP_REDUCE, 8 }
	};
	struct profilers_trial trial = { .plugin = 1, .output = PROFILERS_READ };
	struct stage_writer writer;
	struct stage_job job;

	job_init(&job, 1);
	for (size_t i = 0; i < ARRAY_LENGTH(cells); i++) {
		struct bench_cell like = cell_like(cells[i].function, cells[i].bytes);

		like.nranks = 1;
		like.aligns = is_aligned && i == 2 ? 3 : 0;
		job_cell(&job, &like);
	}
	file_begin_rank(&writer, 0, 1);
	for (size_t i = 0; i < ARRAY_LENGTH(cells); i++)
		for (uint32_t step = 0; step < 7; step++)
			stage_call(&writer, cells[i].function, cells[i].bytes,
				   SAMPLE_CREATED_NS + 1000 * step, 1000 + step, OP_DONE);
	stage_call(&writer, OP_ALL_REDUCE, 4, job.now_ns, 1000, OP_DONE);
	stage_call(&writer, OP_ALL_REDUCE, 4, job.now_ns, 0, OP_CAPTURED);
	file_end(&writer, &job, true);
	take(text, is_aligned ? "aligned ranks" : "small messages", new_work(PROFILERS_RINGSIDE),
	     &trial, &job);
}

/* So many sizes that were not issued have rows of their own; the others share one. */
static void test_strays(struct sink *text)
{
	struct bench_cell like = cell_like(OP_ALL_REDUCE, 1024);
	struct profilers_trial trial = { .plugin = 1, .output = PROFILERS_READ };
	struct stage_writer writer;
	struct stage_job job;

	like.nranks = 1;
	job_init(&job, 1);
	job_cell(&job, &like);
	file_begin_rank(&writer, 0, 1);
	for (uint64_t i = 1; i <= 67; i++)
		stage_call(&writer, OP_BROADCAST, 16 * i, job.now_ns, 1000, OP_DONE);
	stage_call(&writer, OP_FUNCTION_INVALID, 16, job.now_ns, 1000, OP_DONE);
	stage_call(&writer, OP_BROADCAST, 16, job.now_ns, 1000, OP_DONE);
	file_end(&writer, &job, true);
	take(text, "sizes that were not issued", new_work(PROFILERS_RINGSIDE), &trial, &job);
}

/* ---- ranks -------------------------------------------------------------------------------------- */

/* The process ID tells the rank, with the host if there are several nodes; else the process or its communicator does. */
static void test_ranks(struct sink *text, int32_t nodes)
{
	static const struct {
		const char *info;
		int32_t rank, nranks; /* of the communicator */
	} files[] = {
		{ "host=node-2\npid=5000\n", 9, 0 }, { "host=node-1\npid=5000\n", 9, 0 },
		{ "host=node-9\npid=5002\n", 9, 0 }, { "pid=5000\nrank=3\n", 9, 0 },
		{ "host=node-9\npid=5003\n", 0, 4 }, { "host=node-1\npid=77\nrank=4\n", 3, 0 },
		{ "host=node-1\npid=78\n", 2, 5 },   { "host=node-1\npid=79\n", 4, 4 }
	};
	struct bench_cell like = cell_like(OP_ALL_REDUCE, 64);
	struct profilers_trial trial = { .plugin = 1, .output = PROFILERS_READ };
	struct stage_writer writer;
	struct stage_job job;

	job_init(&job, 4);
	job.bench.nodes = nodes;
	job.bench.ranks[1].pid = STAGE_PID;
	snprintf(job.bench.ranks[1].host, sizeof(job.bench.ranks[1].host), "node-2");
	job.bench.ranks[2].host[0] = '\0';
	like.nranks = 4;
	job_cell(&job, &like);
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
		file_begin(&writer, files[i].info, files[i].rank, files[i].nranks);
		for (size_t j = 0; j <= i; j++) /* so many tell which file it was */
			stage_call(&writer, OP_ALL_REDUCE, 64, job.now_ns, 1000, OP_DONE);
		writer.faults = &(struct stage_faults){ .factor = 1, .lost = 1u << i };
		file_end(&writer, &job, i % 2 == 0);
	}
	take(text, nodes == 1 ? "ranks on one node" : "ranks on several nodes",
	     new_work(PROFILERS_RINGSIDE), &trial, &job);
}

/* More ranks than a table shows. The first cell was not checked, the second has wrong results. */
static void test_many_ranks(struct sink *text)
{
	enum { MANY = 65 };
	struct profilers_trial trial = { .plugin = 1, .output = PROFILERS_READ };
	struct stage_writer writer;
	struct stage_job job;

	job_init(&job, MANY);
	for (uint64_t i = 0; i < 2; i++) {
		struct bench_cell like = cell_like(OP_ALL_REDUCE, 64 << i);

		like.nranks = MANY;
		like.wrong = i == 0 ? BENCH_UNCHECKED : 2;
		like.function = i == 0 ? OP_ALL_REDUCE : OP_BROADCAST;
		job_cell(&job, &like);
	}
	bench_run_note(&job.bench, "a note of the job");
	bench_run_note(&job.bench, "another one");
	file_begin_rank(&writer, MANY - 1, MANY);
	for (uint32_t i = 0; i < 7; i++)
		stage_call(&writer, OP_ALL_REDUCE, 64, job.now_ns, 1000, OP_DONE);
	file_end(&writer, &job, true);
	take(text, "many ranks", new_work(PROFILERS_RINGSIDE), &trial, &job);
}

/* Sums of jobs by outcome, and what of them can be judged. */
static void test_outcomes(void)
{
	static const struct {
		uint8_t output;
		bool is_judged;
	} cases[] = { { PROFILERS_READ, true },
		      { PROFILERS_SILENT, true },
		      { PROFILERS_UNREADABLE, false },
		      { PROFILERS_FAILED, false } };

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct profilers *work = new_work(PROFILERS_COMMA);
		struct profilers_comparison comparison;
		const struct profilers_jobs *jobs;
		struct bench_cell like = cell_like(OP_ALL_REDUCE, 64);
		struct stage_job job;
		struct profilers_trial trial = { .plugin = 1,
						 .mode = BENCH_BACK_TO_BACK,
						 .output = cases[i].output,
						 .bench = &job.bench };

		job_init(&job, RANKS);
		job_cell(&job, &like);
		trial.recording = &job.recording;
		for (trial.run = 0; trial.run < 2; trial.run++)
			EXPECT_EQUAL(profilers_trial(work, &trial), OK);
		EXPECT_EQUAL(profilers_finish(work, &comparison), OK);
		profilers_free(work);
		stage_release(&job);
		jobs = profilers_jobs_of(&comparison, 1, BENCH_BACK_TO_BACK);
		EXPECT(jobs != NULL && comparison.job_count == 1 &&
		       profilers_jobs_of(&comparison, 1, BENCH_GRAPH) == NULL &&
		       profilers_jobs_of(&comparison, 0, BENCH_BACK_TO_BACK) == NULL);
		EXPECT(jobs->read == 2 * (cases[i].output == PROFILERS_READ) &&
		       jobs->silent == 2 * (cases[i].output == PROFILERS_SILENT) &&
		       jobs->unreadable == 2 * (cases[i].output == PROFILERS_UNREADABLE) &&
		       jobs->failed == 2 * (cases[i].output == PROFILERS_FAILED));
		EXPECT_EQUAL(profilers_is_judged(&comparison, 1, BENCH_BACK_TO_BACK),
			     cases[i].is_judged);
		EXPECT_EQUAL(comparison.runs, cases[i].output == PROFILERS_FAILED ? 0 : 2);
		profilers_comparison_release(&comparison);
	}
}

/* ---- by time ------------------------------------------------------------------------------------ */

/* A record belongs to a call if it lies between 10 us before its begin and 10 us after the call returned. */
static void test_times(struct sink *text)
{
	static const struct {
		int64_t second_ns; /* begin of the second call after the first */
		int64_t at_ns;	   /* of the only record, from the begin of the second call */
	} cases[] = { { 100000, -10000 }, { 100000, -10001 }, { 100000, 14000 }, { 100000, 14001 },
		      { 20000, -10000 },  { 20000, -10001 },  { 16000, -8000 },	 { 16000, -8001 },
		      { 16000, 12000 },	  { 16000, 12001 },   { 0, -10000 },	 { 0, 14001 } };
	struct profilers_trial trial = { .plugin = 1, .output = PROFILERS_READ };
	struct stage_writer writer;
	struct stage_job job;

	job_init(&job, 1);
	file_begin_rank(&writer, 0, 1);
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct bench_cell like = cell_like(OP_ALL_REDUCE, 64 * (i + 1)), *cell;

		like.nranks = 1;
		like.calls = 2;
		cell = job_cell(&job, &like);
		cell->calls_of[1].begin_ns =
			cell->calls_of[0].begin_ns + (uint64_t)cases[i].second_ns;
		cell->calls_of[1].gpu_ns = 40000;
		stage_call(&writer, OP_ALL_REDUCE, like.bytes,
			   cell->calls_of[1].begin_ns + (uint64_t)cases[i].at_ns, 30000, OP_DONE);
	}
	file_end(&writer, &job, true);
	take(text, "by time", new_work(PROFILERS_COMMA), &trial, &job);
}

/* A call whose time is not known is not compared, but its record is not that of the next call either. */
static void test_unmeasured(struct sink *text)
{
	struct bench_cell like = cell_like(OP_ALL_REDUCE, 64), *cell;
	struct profilers_trial trial = { .plugin = 1, .output = PROFILERS_READ };
	struct stage_writer writer;
	struct stage_job job;

	like.nranks = 1;
	job_init(&job, 1);
	for (int i = 0; i < 2; i++) {
		cell = job_cell(&job, &like);
		cell->calls_of[1].gpu_ns = 0;
		like.warmups++;
		like.checks = 0;
	}
	like.mode = BENCH_BACK_TO_BACK;
	like.bytes = 128;
	cell = job_cell(&job, &like);
	free(cell->calls_of);
	cell->calls_of = NULL;
	file_begin_rank(&writer, 0, 1);
	for (uint64_t i = 0; i < 14; i++)
		stage_call(&writer, OP_ALL_REDUCE, 64, job.now_ns + i, 1000 * (i + 1), OP_DONE);
	file_end(&writer, &job, true);
	take(text, "calls without a time", new_work(PROFILERS_INSPECTOR), &trial, &job);
}

/* ---- totals by size class ------------------------------------------------------------------------ */

static void test_classes(struct sink *text)
{
	static const struct {
		uint8_t function;
		uint64_t bytes;
		uint32_t aligns;
	} cells[] = { { OP_ALL_REDUCE, 64, 0 },	  { OP_BROADCAST, 64, 0 },
		      { OP_BROADCAST, 100, 0 },	  { OP_REDUCE, 4096, 2 },
		      { OP_REDUCE, 4104, 0 },	  { OP_ALL_TO_ALL, 64, 0 },
		      { OP_ALL_REDUCE, 4096, 0 }, { OP_BROADCAST, 1 << 20, 0 } };
	struct ncclsee_row rows[] = {
		{ .function = OP_ALL_REDUCE,
		  .calls = 9,
		  .has_time = true,
		  .total_ns = 9 * 30000.0 },
		{ .function = OP_BROADCAST,
		  .calls = 14,
		  .has_time = true,
		  .total_ns = 14 * 10075.0 },
		{ .function = OP_REDUCE, .calls = 14, .has_time = true, .total_ns = 14 * 40300.0 },
		{ .function = OP_SEND, .calls = 21, .has_time = true, .total_ns = 21 * 20150.0 },
		{ .function = OP_RECV, .calls = 20, .has_time = true, .total_ns = 20 * 20150.0 },
		{ .function = OP_ALL_REDUCE, .calls = 7 },
		{ .function = OP_BROADCAST, .calls = 8, .has_time = true, .total_ns = 8 * 30225.0 },
		{ .function = OP_ALL_GATHER, .calls = 3, .has_time = true, .total_ns = 1 }
	};
	static const uint64_t bytes[] = { 4, 64, 4096, 64, 64, 4096, 1 << 20, 64 };
	struct ncclsee_profile profiles[3];
	struct profilers_trial trial = {
		.plugin = 1, .output = PROFILERS_READ, .profiles = profiles, .profile_count = 3
	};
	struct stage_job job;

	job_init(&job, RANKS);
	for (size_t i = 0; i < ARRAY_LENGTH(cells); i++) {
		struct bench_cell like = cell_like(cells[i].function, cells[i].bytes);

		like.aligns = cells[i].aligns;
		job_cell(&job, &like);
	}
	job.bench.cells[7].calls_of[1].gpu_ns = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
		rows[i].size_class = (uint8_t)ncclsee_class_of(bytes[i]);
	memset(profiles, 0, sizeof(profiles));
	for (int32_t i = 0; i < 3; i++) {
		profiles[i].pid = i < 2 ? STAGE_PID + 2 * i : 99;
		profiles[i].row_count = i == 1 ? 5 : ARRAY_LENGTH(rows);
		memcpy(profiles[i].rows, rows, sizeof(rows));
	}
	profiles[1].rows[1].calls = 13;
	profiles[1].rows[4].calls = 21;
	take(text, "size classes", new_work(PROFILERS_NCCLSEE), &trial, &job);
}

/* ---- what is reported of jobs ---------------------------------------------------------------------- */

static void test_places(void)
{
	static const struct {
		const char *what;
		const char *host, *gpu;
		int32_t nccl_version, ranks;
		bool is_mps, is_gpu_shared;
		size_t notes;
	} jobs[] = { { "the same", "a", "H200", 22809, 2, false, false, 0 },
		     { "another host", "b", "H200", 22809, 2, false, false, 1 },
		     { "another GPU", "a", "H100", 22809, 2, false, false, 1 },
		     { "another NCCL", "a", "H200", 22808, 2, false, false, 1 },
		     { "more ranks", "a", "H200", 22809, 3, false, false, 1 },
		     { "with MPS", "a", "H200", 22809, 2, true, false, 1 },
		     { "a shared GPU", "a", "H200", 22809, 2, false, true, 1 } };

	for (size_t i = 0; i < ARRAY_LENGTH(jobs); i++) {
		struct profilers_comparison comparison;
		struct profilers *work = new_work(PROFILERS_UNKNOWN);

		for (uint32_t run = 0; run < 3; run++) {
			size_t which = run == 1 ? i : 0;
			struct bench_cell like = cell_like(OP_ALL_REDUCE, 64);
			struct stage_job job;
			struct profilers_trial trial = { .run = run, .bench = &job.bench };

			job_init(&job, jobs[which].ranks);
			snprintf(job.bench.ranks[0].host, sizeof(job.bench.ranks[0].host), "%s",
				 jobs[which].host);
			snprintf(job.bench.ranks[0].gpu_name, sizeof(job.bench.ranks[0].gpu_name),
				 "%s", jobs[which].gpu);
			job.bench.nccl_version = jobs[which].nccl_version;
			job.bench.is_mps = jobs[which].is_mps;
			job.bench.is_gpu_shared = jobs[which].is_gpu_shared;
			job.bench.started_ns = run == 2 ? 0 : 1000 - run;
			like.nranks = jobs[which].ranks;
			job_cell(&job, &like);
			profilers_place(work, &job.bench);
			EXPECT_EQUAL(profilers_trial(work, &trial), OK);
			stage_release(&job);
		}
		EXPECT_EQUAL(profilers_finish(work, &comparison), OK);
		profilers_free(work);
		EXPECT_THAT(jobs[i].what, comparison.note_count == jobs[i].notes &&
						  strcmp(comparison.host, "a") == 0 &&
						  strcmp(comparison.gpu, "H200") == 0);
		EXPECT_EQUAL(comparison.calls, 3 * CALLS);
		EXPECT_EQUAL(comparison.runs, 3);
		EXPECT_EQUAL(comparison.nranks, 2);
		EXPECT_THAT("the first job started it", comparison.started_ns == 999);
		profilers_comparison_release(&comparison);
	}
}

static void test_notes(void)
{
	struct profilers *work = new_work(PROFILERS_UNKNOWN);

	for (int i = 0; i < PROFILERS_NOTES_MAX + 2; i++) {
		profilers_note(work, "note %d", i);
		profilers_note(work, "note %d", i);
		profilers_not_run(work, "%d was not run", i / 2);
	}
	EXPECT_EQUAL(work->out.note_count, PROFILERS_NOTES_MAX);
	EXPECT_EQUAL(work->out.not_run_count, PROFILERS_NOTES_MAX / 2 + 1);
	EXPECT_EQUAL(work->out.notes_lost, 4);
	EXPECT(strcmp(work->out.notes[PROFILERS_NOTES_MAX - 1], "note 63") == 0);
	EXPECT(strcmp(work->out.not_run[32], "32 was not run") == 0);
	profilers_command(work, "ringside bench profilers");
	EXPECT(strcmp(work->out.command, "ringside bench profilers") == 0);
	for (size_t i = 2; i < PROFILERS_PLUGINS_MAX; i++)
		EXPECT_EQUAL(profilers_plugin(work, "x", "x.so", PROFILERS_COMMA), i);
	EXPECT_THAT("there are so many plugins",
		    profilers_plugin(work, "x", "x.so", PROFILERS_COMMA) == 0);
	profilers_free(work);
	profilers_free(NULL);
}

static void test_names(void)
{
	static const char *const names[] = { "none",  "ringside", "inspector",
					     "comma", "ncclsee",  "unknown" };

	for (unsigned int i = 0; i < PROFILERS_KINDS; i++) {
		EXPECT(strcmp(profilers_kind_name(i), names[i]) == 0);
		EXPECT_EQUAL(profilers_kind_find(names[i]), i);
	}
	EXPECT(strcmp(profilers_kind_name(PROFILERS_KINDS), "?") == 0);
	EXPECT_EQUAL(profilers_kind_find("nccl"), PROFILERS_KINDS);
}

static void test_sums(void)
{
	struct profilers_complete rows[] = {
		{ 1, 1, OP_SEND, false, 0, 64, 0, { 100, 80, 5, 30, 10 } },
		{ 1, 2, OP_SEND, false, 1, 64, 0, { 1, 2, 3, 4, 5 } },
		{ 2, 1, OP_RECV, false, 0, 64, 128, { 10, 20, 30, 40, 50 } },
		{ 2, 1, OP_SEND, true, 0, 64, 0, { 1000, 2000, 3000, 4000, 5000 } },
	};
	static const struct {
		struct profilers_which which;
		uint64_t issued, recorded, untimed, missing, excess;
	} cases[] = {
		{ { -1, -1, -1, -1, true, 0, 0 }, 1111, 2102, 3038, 4074, 5065 },
		{ { 1, -1, -1, -1, true, 0, 0 }, 101, 82, 8, 34, 15 },
		{ { -1, 1, -1, -1, true, 0, 0 }, 1110, 2100, 3035, 4070, 5060 },
		{ { -1, -1, OP_RECV, -1, true, 0, 0 }, 10, 20, 30, 40, 50 },
		{ { -1, -1, -1, 1, true, 0, 0 }, 1, 2, 3, 4, 5 },
		{ { -1, -1, -1, -1, false, 64, 0 }, 101, 82, 8, 34, 15 },
		{ { -1, -1, -1, -1, false, 64, 128 }, 10, 20, 30, 40, 50 },
		{ { 2, 1, OP_SEND, 0, false, 64, 0 }, 0, 0, 0, 0, 0 },
	};
	struct profilers_comparison comparison = { .complete = rows,
						   .complete_count = ARRAY_LENGTH(rows) };
	struct profilers_counts part = { .issued = 8, .missing = 2 }, nothing = { 0 };

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct profilers_counts sum = profilers_counts(&comparison, &cases[i].which);

		EXPECT(sum.issued == cases[i].issued && sum.recorded == cases[i].recorded &&
		       sum.untimed == cases[i].untimed && sum.missing == cases[i].missing &&
		       sum.excess == cases[i].excess);
	}
	EXPECT(profilers_share(&part) == 0.75);
	EXPECT(profilers_share(&nothing) == 1);
}

static void test_verdicts(void)
{
	static const struct {
		double low, high;
		bool has_interval;
		enum profilers_verdict verdict;
	} cases[] = { { 1.01, 1.2, true, PROFILERS_SLOWER },
		      { 1, 1.2, true, PROFILERS_NO_DIFFERENCE },
		      { 0.9, 1, true, PROFILERS_NO_DIFFERENCE },
		      { 0.9, 0.99, true, PROFILERS_FASTER },
		      { 1.01, 1.2, false, PROFILERS_NOT_KNOWN } };

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct profilers_overhead row = { .has_interval = cases[i].has_interval,
						  .ratio.low = cases[i].low,
						  .ratio.high = cases[i].high };

		EXPECT_EQUAL(profilers_verdict(&row), cases[i].verdict);
	}
}

/* Only outputs that exist, of plugins and runs that exist, and one mode. */
static void test_refused(void)
{
	static const struct {
		size_t plugin;
		uint32_t run;
		uint8_t output, mode;
		bool has_bench;
		enum status status;
	} cases[] = { { 1, 0, PROFILERS_SILENT, 0, true, OK },
		      { 1, PROFILERS_RUNS_MAX - 1, PROFILERS_SILENT, 0, true, OK },
		      { 1, PROFILERS_RUNS_MAX, PROFILERS_SILENT, 0, true, ERR_RANGE },
		      { 2, 0, PROFILERS_SILENT, 0, true, ERR_RANGE },
		      { 1, 0, 0, 0, true, ERR_RANGE },
		      { 0, 0, 0, 0, true, OK },
		      { 1, 0, PROFILERS_OUTPUTS, 0, true, ERR_RANGE },
		      { 1, 0, PROFILERS_SILENT, BENCH_GRAPH, false, ERR_RANGE },
		      { 1, 0, PROFILERS_FAILED, BENCH_GRAPH, false, OK },
		      { 1, 0, PROFILERS_FAILED, 0, false, ERR_RANGE },
		      { 1, 0, PROFILERS_FAILED, BENCH_MODES, false, ERR_RANGE } };
	struct bench_cell like = cell_like(OP_ALL_REDUCE, 64);
	struct profilers *work = new_work(PROFILERS_RINGSIDE);
	struct stage_job job, empty;
	struct profilers_trial odd = { .plugin = 1, .output = PROFILERS_SILENT };

	job_init(&job, RANKS);
	job_cell(&job, &like);
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct profilers_trial trial = { .plugin = cases[i].plugin,
						 .run = cases[i].run,
						 .output = cases[i].output,
						 .mode = cases[i].mode,
						 .bench = cases[i].has_bench ? &job.bench : NULL };

		EXPECT_EQUAL(profilers_trial(work, &trial), cases[i].status);
	}
	job_init(&empty, RANKS);
	odd.bench = &empty.bench;
	EXPECT_THAT("a job without cells has no mode", profilers_trial(work, &odd) == ERR_RANGE);
	job.bench.cells[0].mode = BENCH_MODES;
	odd.bench = &job.bench;
	EXPECT_THAT("an unknown mode is refused", profilers_trial(work, &odd) == ERR_RANGE);
	stage_release(&empty);
	stage_release(&job);
	profilers_free(work);
}

/* ---- training ------------------------------------------------------------------------------------- */

/* Operations in two of three epochs, at their edges, without times and without a time of their own. */
static void test_training_records(struct sink *text, uint32_t epochs, uint64_t begin_ns)
{
	static const struct {
		uint8_t function, state;
		uint64_t bytes, issue_ns, done_ns, time_ns;
	} ops[] = { { OP_ALL_REDUCE, OP_DONE, 64, 1999, 2500, 7 },
		    { OP_ALL_REDUCE, OP_DONE, 64, 2000, 2500, 100 },
		    { OP_ALL_REDUCE, OP_DONE, 64, 2001, 2500, 0 },
		    { OP_ALL_REDUCE, OP_DONE, 4096, 2002, 2500, 1000 },
		    { OP_ALL_REDUCE, OP_DONE, 1 << 20, 2003, 2500, 0 },
		    { OP_ALL_REDUCE, OP_DONE, 1 << 20, 1000, 2500, 50000 },
		    { OP_BROADCAST, OP_DONE, 64, 0, 3899, 10000 },
		    { OP_BROADCAST, OP_DONE, 64, 3899, 3950, 20000 },
		    { OP_BROADCAST, OP_DONE, 64, 3900, 3950, 400000 },
		    { OP_BROADCAST, OP_CAPTURED, 64, 2500, 2600, 3 },
		    { OP_REDUCE, OP_DONE, 64, 0, 0, 0 } };
	struct profilers_training training = { .ranks = 1, .epochs = epochs };
	struct stage_writer writer;
	struct stage_job job;

	for (uint32_t i = 0; i < 3; i++) {
		training.epoch_begin_ns[i] = begin_ns ? begin_ns + 1000 * i : 0;
		training.epoch_ns[i] = 900;
	}
	job_init(&job, 2);
	for (int32_t rank = 0; rank < 2; rank++) {
		file_begin_rank(&writer, rank, 2);
		for (size_t i = 0; i < ARRAY_LENGTH(ops); i++) {
			struct op_record op = { .comm = 1,
						.function = ops[i].function,
						.bytes = ops[i].bytes,
						.state = ops[i].state,
						.root = OP_NOBODY,
						.peer = OP_NOBODY,
						.issue_ns = ops[i].issue_ns,
						.done_ns = ops[i].done_ns };

			if (ops[i].time_ns > 0) {
				op.time_source = OP_TIME_KERNEL_GPU;
				op.gpu_start_ns = 9000000000;
				op.gpu_stop_ns =
					op.gpu_start_ns + ops[i].time_ns * (uint64_t)(1 + rank);
				op.kernels_started = op.kernels_stopped = 1;
			}
			stage_put(&writer, &op);
		}
		file_end(&writer, &job, true);
	}
	if (recording_finish(&job.recording) != OK)
		abort();
	EXPECT_EQUAL(profilers_training_take(&training, &job.recording), OK);
	sink_format(
		text,
		"=== %u epochs%s: AllReduce %llu, Broadcast %llu, Reduce %llu; untimed %llu, timed "
		"%llu; %llu ns%s%s\n",
		epochs, begin_ns ? "" : " whose begin is unknown",
		(unsigned long long)training.recorded[OP_ALL_REDUCE],
		(unsigned long long)training.recorded[OP_BROADCAST],
		(unsigned long long)training.recorded[OP_REDUCE],
		(unsigned long long)training.untimed, (unsigned long long)training.comm_ops,
		(unsigned long long)training.comm_ns, training.has_comm ? ", has time" : "",
		training.is_comm_by_time ? " by time" : "");
	stage_release(&job);
}

static void test_training_totals(void)
{
	struct ncclsee_profile profiles[2];
	struct profilers_training training = { .is_comm_by_time = true }, without = { 0 };

	memset(profiles, 0, sizeof(profiles));
	for (int i = 0; i < 2; i++) {
		profiles[i].row_count = 2;
		profiles[i].rows[0] = (struct ncclsee_row){
			.function = OP_ALL_REDUCE, .calls = 5, .has_time = true, .total_ns = 70
		};
		profiles[i].rows[1] = (struct ncclsee_row){ .function = OP_BROADCAST, .calls = 3 };
	}
	profilers_training_take_ncclsee(&training, profiles, 2);
	EXPECT_EQUAL(training.recorded[OP_ALL_REDUCE], 10);
	EXPECT_EQUAL(training.recorded[OP_BROADCAST], 6);
	EXPECT_EQUAL(training.untimed, 6);
	EXPECT_EQUAL(training.comm_ops, 10);
	EXPECT_EQUAL(training.comm_ns, 140);
	EXPECT(training.has_comm && !training.is_comm_by_time);
	profilers_training_take_ncclsee(&without, NULL, 0);
	EXPECT(!without.has_comm);
}

int main(void)
{
	struct sink text;

	sink_init_memory(&text);
	test_pairs(&text);
	test_nothing_issued(&text);
	test_aligns(&text, true);
	test_aligns(&text, false);
	test_strays(&text);
	test_ranks(&text, 1);
	test_ranks(&text, 2);
	test_many_ranks(&text);
	test_times(&text);
	test_unmeasured(&text);
	test_classes(&text);
	test_training_records(&text, 3, SAMPLE_CREATED_NS + 1000);
	test_training_records(&text, 3, 0);
	test_training_records(&text, 1, SAMPLE_CREATED_NS + 2000);
	EXPECT_THAT("rows as in profilers_jobs.txt",
		    expected_text(&text, "tests/unit/bench/expected/profilers_jobs.txt"));
	test_places();
	test_outcomes();
	test_notes();
	test_names();
	test_sums();
	test_verdicts();
	test_refused();
	test_training_totals();
	return tap_done();
}
