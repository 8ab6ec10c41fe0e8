#include <string.h>

#include "bench/bench_result.h"
#include "bench/health.h"
#include "common/op_layout.h"
#include "common/text.h"
#include "tests/tap.h"

enum { RANKS = 8, CALLS = 6, LARGE = 64 << 20, SMALL = 1 << 10 };

static void add_cell(struct bench_run *run, uint8_t function, uint64_t bytes, const int32_t *peers,
		     const double *ns)
{
	const struct bench_cell like = {
		.function = function,
		.datatype = OP_FLOAT32,
		.redop = function == OP_ALL_REDUCE ? BENCH_SUM : BENCH_NO_REDOP,
		.mode = BENCH_BLOCKING,
		.root = -1,
		.nranks = RANKS,
		.count = bytes / 4,
		.bytes = bytes,
		.calls = CALLS,
		.peers = (int32_t *)peers,
	};
	struct bench_cell *cell = bench_run_add_cell(run, &like);

	for (uint32_t i = 0; i < RANKS * CALLS; i++)
		cell->calls_of[i].gpu_ns = (uint64_t)(ns[i / CALLS] * (1 + 0.002 * (i % CALLS)));
}

/* All pairs at 40 GB/s and 10 us, except the one between ranks 2 and 3. */
static void make_run(struct bench_run *run, double slow)
{
	const double all_reduce[RANKS] = { 2.9e6, 2.9e6, 2.9e6, 2.9e6, 2.9e6, 2.9e6, 2.9e6, 2.9e6 };

	bench_run_init(run);
	bench_run_set_ranks(run, RANKS);
	run->nccl_version = 22809;
	run->nodes = 1;
	for (int32_t i = 0; i < RANKS; i++) {
		text_copy(run->ranks[i].host, sizeof(run->ranks[i].host), "node01");
		text_copy(run->ranks[i].gpu_name, sizeof(run->ranks[i].gpu_name), "GPU");
		snprintf(run->ranks[i].gpu_uuid, sizeof(run->ranks[i].gpu_uuid), "GPU-%d", (int)i);
		run->ranks[i].device = i;
	}
	add_cell(run, OP_ALL_REDUCE, LARGE, NULL, all_reduce);
	for (int32_t round = 1; round < RANKS; round++) {
		int32_t peers[RANKS];
		double large[RANKS], small[RANKS];

		for (int32_t i = 0; i < RANKS; i++) {
			double share = (i ^ round) + i == 5 && round == 1 ? slow : 1;

			peers[i] = i ^ round;
			large[i] = LARGE / 40.0 / share * (1 + 0.001 * (peers[i] + i));
			small[i] = 10000 + 10.0 * (peers[i] + i);
		}
		add_cell(run, OP_SEND_RECV, LARGE, peers, large);
		add_cell(run, OP_SEND_RECV, SMALL, peers, small);
	}
	add_cell(run, OP_ALL_REDUCE, LARGE, NULL, all_reduce);
	bench_run_note(run, "made by hand");
}

static bool has(const struct sink *sink, const char *text)
{
	bool is_there = strstr(sink_string(sink), text) != NULL;

	if (!is_there)
		printf("# no '%s' in:\n# %s\n", text, sink_string(sink));
	return is_there;
}

static size_t lines_of(const struct sink *sink)
{
	size_t lines = 0;

	for (const char *at = sink_string(sink); *at != '\0'; at++)
		lines += *at == '\n';
	return lines;
}

static void check_slow(void)
{
	const struct health_options options = { .expected_gbs = { 0, 45, 0 } };
	const struct health_text_options full = { .width = 100 }, quiet = { .is_quiet = true };
	struct bench_run run, again;
	struct health health;
	struct sink sink;
	const char *at;
	size_t size;

	make_run(&run, 0.1);
	EXPECT_EQUAL(health_find(&health, &run, &options), OK);
	EXPECT_EQUAL(health.exit_code, 1);
	sink_init_memory(&sink);
	EXPECT_EQUAL(health_text(&sink, &health, &run, &full), OK);
	EXPECT_THAT("the verdict comes first", strncmp(sink_string(&sink), "slow: ", 6) == 0);
	EXPECT_THAT("both ranks are named with host and GPU",
		    has(&sink, "rank 2 (node01, GPU 2)") && has(&sink, "rank 3 (node01, GPU 3)"));
	EXPECT_THAT("links are compared with the expectation",
		    has(&sink, "inside a node") && has(&sink, "EXPECTED GB/s") &&
			    has(&sink, "45.0"));
	EXPECT_THAT("the matrix marks the slow pair", has(&sink, "3.96*"));
	EXPECT_THAT("AllReduce at the end is shown", has(&sink, "GB/s at the end"));
	EXPECT_THAT("so are notes", has(&sink, "- made by hand\n"));
	sink_release(&sink);

	sink_init_memory(&sink);
	EXPECT_EQUAL(health_text(&sink, &health, &run, &quiet), OK);
	EXPECT_EQUAL(lines_of(&sink), 1);
	sink_release(&sink);

	sink_init_memory(&sink);
	EXPECT_EQUAL(health_json(&sink, &health, &run), OK);
	EXPECT_THAT("JSON has the verdict",
		    has(&sink, "{\"format\":\"ringside-health\",\"version\":1,"
			       "\"verdict\":\"slow\""));
	EXPECT_THAT("and the finding",
		    has(&sink, "\"kind\":\"slow_pair\"") && has(&sink, "\"rank\":2,\"peer\":3"));
	EXPECT_EQUAL(run_inside(sink_string(&sink), sink.used, &at, &size), OK);
	EXPECT_EQUAL(bench_read(&again, at, size, NULL), OK);
	EXPECT_EQUAL(again.cell_count, run.cell_count);
	bench_run_release(&again);
	sink_release(&sink);
	health_release(&health);
	bench_run_release(&run);
}

static void check_healthy(void)
{
	const struct health_options options = { .expected_gbs = { 0 } };
	const struct health_text_options full = { .width = 0 };
	struct bench_run run;
	struct health health;
	struct sink sink;

	make_run(&run, 1);
	EXPECT_EQUAL(health_find(&health, &run, &options), OK);
	EXPECT_EQUAL(health.exit_code, 0);
	sink_init_memory(&sink);
	EXPECT_EQUAL(health_text(&sink, &health, &run, &full), OK);
	EXPECT_THAT("a healthy job is reported", strncmp(sink_string(&sink), "healthy: ", 9) == 0);
	EXPECT_THAT("there are no findings", strstr(sink_string(&sink), "\nFINDINGS\n") == NULL);
	EXPECT_THAT("no column without expectations",
		    strstr(sink_string(&sink), "EXPECTED") == NULL);
	EXPECT_THAT("no pair is marked", strstr(sink_string(&sink), "0*") == NULL);
	sink_release(&sink);
	health_release(&health);
	bench_run_release(&run);
}

int main(void)
{
	struct bench_run run;
	char text[HEALTH_RANK_WORDS];

	check_slow();
	check_healthy();
	make_run(&run, 1);
	EXPECT_THAT("an unknown rank has no host",
		    strcmp(health_rank_words(text, &run, RANKS), "rank 8") == 0);
	bench_run_release(&run);
	return tap_done();
}
