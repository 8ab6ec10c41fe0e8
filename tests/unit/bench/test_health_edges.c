/*
 * Health checks of hand-made machines, at the limits of what is slow: everything that is printed, in
 * tests/unit/bench/expected/health_edges.txt and .json.lines.
 */
#include "bench/health.h"

#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/op_layout.h"
#include "common/text.h"
#include "tests/support/expected_output.h"
#include "tests/tap.h"

enum { LARGE = 4000000, SMALL = 1000, EXCEPTIONS = 12, CALLS = 5 };

/* A pair that differs; 0: as the others. */
struct exception {
	int32_t first;
	int32_t second;
	double gbs;
	double latency_ns;
};

struct collective {
	uint8_t function;
	uint64_t bytes;
	double time_ns;
	uint64_t wrong;
	double late_ns; /* of the last calls; 0: as the others */
	uint32_t calls; /* 0: CALLS */
};

struct machine {
	const char *title;
	int32_t ranks;
	int32_t local; /* ranks per node */
	struct exception exceptions[EXCEPTIONS];
	struct collective collectives[8];
	struct health_options options;
	const char *expected; /* JSON of expected results; NULL: none */
	int32_t rounds;	      /* of pairs; 0: all, -1: none */
	int32_t slow_rank; /* all its links have this share of the speed; 0: none, else rank + 1 */
	int32_t slow_node; /* likewise, between nodes */
	int32_t slow_inside; /* likewise, inside this node */
	int32_t late_rank;   /* takes twice as long for small messages */
	double share;
	unsigned int width;
	bool is_shared; /* one GPU per two ranks, without ids */
	bool is_unnamed;
	bool is_unchecked;
	bool has_notes;
	bool has_json;
};

static double gbs_of(const struct machine *machine, int32_t a, int32_t b)
{
	int32_t nodes[2] = { a / machine->local, b / machine->local };
	bool is_inside = nodes[0] == nodes[1];
	double gbs = is_inside ? 200 : 40;

	for (size_t i = 0; i < EXCEPTIONS; i++)
		if (machine->exceptions[i].first == a && machine->exceptions[i].second == b &&
		    machine->exceptions[i].gbs > 0)
			return machine->exceptions[i].gbs;
	if (a + 1 == machine->slow_rank || b + 1 == machine->slow_rank)
		gbs *= machine->share;
	if (!is_inside &&
	    (nodes[0] + 1 == machine->slow_node || nodes[1] + 1 == machine->slow_node))
		gbs *= machine->share;
	if (is_inside && nodes[0] + 1 == machine->slow_inside)
		gbs *= machine->share;
	return gbs;
}

static double latency_of(const struct machine *machine, int32_t a, int32_t b)
{
	double latency = a / machine->local == b / machine->local ? 8000 : 20000;

	for (size_t i = 0; i < EXCEPTIONS; i++)
		if (machine->exceptions[i].first == a && machine->exceptions[i].second == b &&
		    machine->exceptions[i].latency_ns > 0)
			return machine->exceptions[i].latency_ns;
	return a + 1 == machine->late_rank || b + 1 == machine->late_rank ? 2 * latency : latency;
}

static struct bench_cell *add_cell(struct bench_run *run, uint8_t function, uint64_t bytes,
				   uint32_t calls, int32_t *peers)
{
	const struct bench_cell like = { .function = function,
					 .datatype = OP_FLOAT32,
					 .redop = BENCH_NO_REDOP,
					 .mode = BENCH_BLOCKING,
					 .root = -1,
					 .nranks = run->nranks,
					 .count = bytes / 4,
					 .bytes = bytes,
					 .calls = calls,
					 .wrong = 0,
					 .peers = peers };
	struct bench_cell *cell = bench_run_add_cell(run, &like);

	if (cell == NULL)
		abort();
	return cell;
}

/* The slower end counts: the other one is a little faster. */
static void add_round(struct bench_run *run, const struct machine *machine, int32_t *peers,
		      uint64_t bytes)
{
	struct bench_cell *cell = add_cell(run, OP_SEND_RECV, bytes, CALLS, peers);

	cell->wrong = machine->is_unchecked ? BENCH_UNCHECKED : 0;
	for (int32_t rank = 0; rank < run->nranks; rank++) {
		int32_t peer = peers[rank];

		if (peer <= rank)
			continue;
		for (uint32_t call = 0; call < CALLS; call++) {
			double time = bytes == LARGE ? LARGE / gbs_of(machine, rank, peer)
						     : latency_of(machine, rank, peer);

			cell->calls_of[(size_t)rank * CALLS + call].gpu_ns = (uint64_t)time;
			cell->calls_of[(size_t)peer * CALLS + call].gpu_ns = (uint64_t)time - 10;
		}
	}
}

static void add_collective(struct bench_run *run, const struct collective *one)
{
	uint32_t calls = one->calls ? one->calls : CALLS;
	struct bench_cell *cell = add_cell(run, one->function, one->bytes, calls, NULL);

	cell->wrong = one->wrong;
	for (int32_t rank = 0; rank < run->nranks; rank++)
		for (uint32_t call = 0; call < calls; call++)
			cell->calls_of[(size_t)rank * calls + call].gpu_ns =
				(uint64_t)(one->late_ns > 0 && call > 2 ? one->late_ns
									: one->time_ns);
}

static void make_run(struct bench_run *run, const struct machine *machine)
{
	struct pair_schedule schedule;
	int32_t *peers = calloc((size_t)machine->ranks, sizeof(*peers));

	bench_run_init(run);
	if (peers == NULL || bench_run_set_ranks(run, machine->ranks) != OK)
		abort();
	for (int32_t rank = 0; rank < machine->ranks; rank++) {
		struct bench_rank *one = &run->ranks[rank];

		one->node = rank / machine->local;
		one->device = rank % machine->local / (machine->is_shared ? 2 : 1);
		if (!machine->is_unnamed) {
			text_format(one->host, sizeof(one->host), "node%d", (int)one->node);
			text_copy(one->gpu_name, sizeof(one->gpu_name), "NVIDIA H200");
		}
		if (!machine->is_shared)
			text_format(one->gpu_uuid, sizeof(one->gpu_uuid), "GPU-%d", (int)rank);
		text_format(one->pci, sizeof(one->pci), "0000:0%d:00.0", (int)one->device);
	}
	run->nodes = (machine->ranks + machine->local - 1) / machine->local;
	run->nccl_version = machine->is_unnamed ? 0 : 23004;
	run->is_gpu_shared = machine->is_shared;
	if (machine->has_notes) {
		bench_run_note(run, "a note that is longer than the line of this narrow terminal");
		bench_run_note(run, "another one");
		run->notes_lost = 2;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(machine->collectives) / 2; i++)
		if (machine->collectives[i].function != 0)
			add_collective(run, &machine->collectives[i]);
	pair_schedule_init(&schedule, machine->ranks, machine->rounds > 0 ? machine->rounds : 0);
	for (int32_t round = 0; machine->rounds >= 0 && round < schedule.rounds; round++) {
		pair_schedule_round(&schedule, round, peers);
		add_round(run, machine, peers, SMALL);
		add_round(run, machine, peers, LARGE);
	}
	for (size_t i = ARRAY_LENGTH(machine->collectives) / 2;
	     i < ARRAY_LENGTH(machine->collectives); i++)
		if (machine->collectives[i].function != 0)
			add_collective(run, &machine->collectives[i]);
	free(peers);
}

static const char table[] =
	"{\"format\":\"ringside-expected\",\"version\":1,\"ranks\":4,\"results\":["
	"{\"function\":\"AllReduce\",\"bytes\":8000000,\"time_ns\":1000000},"
	"{\"function\":\"AllReduce\",\"bytes\":32000000,\"time_ns\":4000000},"
	"{\"function\":\"SendRecv\",\"ranks\":2,\"bytes\":4000000,\"time_ns\":25000}]}";

/* 28 pairs inside a node of 8; 4 and 4 on two nodes: 12 pairs inside, 16 between. */
static const struct machine machines[] = {
	{ "healthy, one node", 4, 4, .has_json = true },
	{ "most pairs of a node are slow: that is usual there", 9, 3, .slow_node = 2,
	  .share = 0.5 },
	{ "healthy, two nodes", 6, 3, .has_notes = true, .width = 60 },
	{ "exactly 80% is healthy", 4, 4, .exceptions = { { 1, 2, 160, 0 } } },
	{ "a little less is slow, and likely", 4, 4, .exceptions = { { 1, 2, 159.9, 0 } } },
	{ "exactly 60% is likely", 4, 4, .exceptions = { { 0, 3, 120, 0 } } },
	{ "less than 60% is certain", 4, 4, .exceptions = { { 0, 3, 119.9, 0 } } },
	{ "two slow pairs, the slower one first", 5, 5,
	  .exceptions = { { 0, 1, 100, 0 }, { 2, 3, 50, 0 } }, .has_json = true },
	{ "equally slow pairs, in order of ranks", 6, 6,
	  .exceptions = { { 3, 4, 50, 0 }, { 1, 5, 50, 0 }, { 1, 2, 50, 0 } } },
	{ "a slow rank", 4, 4, .slow_rank = 3, .share = 0.25 },
	{ "a slow rank and a pair it does not explain", 5, 5, .slow_rank = 5, .share = 0.25,
	  .exceptions = { { 0, 1, 20, 0 } } },
	{ "all but one link of a rank", 5, 5,
	  .exceptions = { { 0, 1, 20, 0 }, { 0, 2, 20, 0 }, { 0, 3, 20, 0 } } },
	{ "a slow rank on two nodes", 6, 3, .slow_rank = 2, .share = 0.5, .has_json = true },
	{ "a slow node", 10, 2, .slow_node = 2, .share = 0.5 },
	{ "a node that is slow inside", 12, 4, .slow_inside = 3, .share = 0.3 },
	{ "exactly 1.5x the latency is usual", 4, 4, .exceptions = { { 1, 3, 0, 12000 } } },
	{ "a little more is late", 4, 4, .exceptions = { { 1, 3, 0, 12001 } }, .has_json = true },
	{ "a late rank", 5, 5, .late_rank = 2 },
	{ "a slow link is not also late", 4, 4, .exceptions = { { 1, 3, 20, 90000 } } },
	{ "three pairs are too few", 3, 3, .exceptions = { { 0, 1, 20, 80000 } } },
	{ "unless a bandwidth is expected", 3, 3, .exceptions = { { 0, 1, 20, 0 } },
	  .options = { .expected_gbs = { 0, 150, 0 } } },
	{ "a kind of link is below, and no pair of it", 3, 3, .exceptions = { { 0, 1, 20, 0 } },
	  .options = { .expected_gbs = { 0, 250.1, 0 } } },
	{ "exactly at the tolerance", 3, 3, .options = { .expected_gbs = { 0, 250, 0 } } },
	{ "another tolerance", 4, 4, .exceptions = { { 1, 2, 158, 0 } },
	  .options = { .slow = 0.5, .expected_gbs = { 0, 390, 0 } } },
	{ "between nodes below the expectation", 4, 2,
	  .options = { .expected_gbs = { 0, 0, 51 } } },
	{ "ranks that share GPUs, without ids", 4, 4, .is_shared = true },
	{ "ranks without names", 4, 4, .exceptions = { { 1, 2, 20, 0 } }, .is_unnamed = true },
	{ "two ranks", 2, 2, .rounds = 0 },
	{ "two ranks may remain unjudged", 2, 2, .options = { .is_unjudged_fine = true } },
	{ "one rank", 1, 1, .rounds = 0 },
	{ "no pairs were measured", 3, 3, .rounds = -1 },
	{ "a sample of rounds", 8, 8, .rounds = 2 },
	{ "17 ranks have no matrix", 17, 17, .rounds = 2, .exceptions = { { 0, 16, 20, 0 } } },
	{ "one wrong element", 4, 4,
	  .collectives = { { OP_ALL_REDUCE, 8000000, 1e6, 1, 0, 0 },
			   { OP_ALL_GATHER, 8000000, 1e6, 0, 0, 0 } },
	  .has_json = true },
	{ "wrong elements of two functions, and a slow pair", 4, 4,
	  .exceptions = { { 1, 2, 20, 0 } },
	  .collectives = { { OP_ALL_GATHER, 8000000, 1e6, 7, 0, 0 },
			   { OP_ALL_REDUCE, 8000000, 1e6, 2, 0, 0 },
			   { OP_ALL_REDUCE, 4000000, 1e6, 3, 0, 0 } } },
	{ "nothing was checked", 4, 4, .is_unchecked = true,
	  .collectives = { { OP_ALL_REDUCE, 8000000, 1e6, BENCH_UNCHECKED, 0, 0 } } },
	{ "the largest size counts, of those the fastest", 4, 4,
	  .collectives = { { OP_BROADCAST, 4000000, 1e6, 0, 0, 0 },
			   { OP_BROADCAST, 8000000, 3e6, 0, 0, 0 },
			   { OP_BROADCAST, 8000000, 2e6, 0, 0, 0 },
			   { OP_BROADCAST, 8000000, 2.5e6, 0, 0, 0 } } },
	{ "a collective as expected", 4, 4, .expected = table,
	  .collectives = { { OP_ALL_REDUCE, 8000000, 1.25e6, 0, 0, 0 } } },
	{ "a collective below the expectation", 4, 4, .expected = table,
	  .collectives = { { OP_ALL_REDUCE, 8000000, 1.26e6, 0, 0, 0 } }, .has_json = true },
	{ "between two expected sizes", 4, 4, .expected = table,
	  .collectives = { { OP_ALL_REDUCE, 16000000, 3e6, 0, 0, 0 } } },
	{ "expected of another number of ranks", 5, 5, .expected = table,
	  .collectives = { { OP_ALL_REDUCE, 8000000, 3e6, 0, 0, 0 } } },
	{ "expected of other functions", 4, 4, .expected = table,
	  .collectives = { { OP_ALL_GATHER, 8000000, 3e6, 0, 0, 0 } } },
	{ "expected of one of two kinds of links", 4, 2, .expected = table },
	{ "slower at the end", 4, 4,
	  .collectives = { { OP_ALL_REDUCE, 8000000, 1e6, 0, 0, 0 },
			   { 0 },
			   { 0 },
			   { 0 },
			   { OP_ALL_REDUCE, 8000000, 1.26e6, 0, 0, 0 } },
	  .has_json = true },
	{ "exactly 80% at the end", 4, 4,
	  .collectives = { { OP_ALL_REDUCE, 8000000, 1e6, 0, 0, 0 },
			   { 0 },
			   { 0 },
			   { 0 },
			   { OP_ALL_REDUCE, 8000000, 1.25e6, 0, 0, 0 } } },
	{ "slower within the scatter", 4, 4,
	  .collectives = { { OP_ALL_REDUCE, 8000000, 1e6, 0, 5e6, 0 },
			   { 0 },
			   { 0 },
			   { 0 },
			   { OP_ALL_REDUCE, 8000000, 2e6, 0, 0, 0 } } },
	{ "too few calls for a course", 4, 4,
	  .collectives = { { OP_ALL_REDUCE, 8000000, 1e6, 0, 0, 0 },
			   { 0 },
			   { 0 },
			   { 0 },
			   { OP_ALL_REDUCE, 8000000, 2e6, 0, 0, 2 } } },
	{ "three calls have no quartiles", 4, 4,
	  .collectives = { { OP_ALL_REDUCE, 8000000, 1e6, 0, 0, 3 },
			   { 0 },
			   { 0 },
			   { 0 },
			   { OP_ALL_REDUCE, 8000000, 2e6, 0, 0, 3 } } },
	{ "four calls are enough", 4, 4,
	  .collectives = { { OP_ALL_REDUCE, 8000000, 1e6, 0, 0, 4 },
			   { OP_ALL_REDUCE, 4000000, 1e6, 0, 0, 0 },
			   { 0 },
			   { 0 },
			   { OP_ALL_REDUCE, 8000000, 2e6, 0, 0, 4 } } },
};

static void show(struct sink *text, struct sink *json, const struct machine *machine)
{
	struct health_options options = machine->options;
	const struct health_text_options style = { .width = machine->width };
	struct expected expected;
	struct bench_run run;
	struct health health;
	struct sink document;
	char *end;

	expected_init(&expected);
	if (machine->expected != NULL) {
		if (expected_add_memory(&expected, machine->expected, strlen(machine->expected),
					0) != OK)
			abort();
		expected_finish(&expected);
		options.expected = &expected;
	}
	make_run(&run, machine);
	sink_format(text, "=== %s\n", machine->title);
	if (health_find(&health, &run, &options) != OK)
		abort();
	sink_format(text, "exit %d\n", health.exit_code);
	if (health_text(text, &health, &run, &style) != OK)
		abort();
	sink_init_memory(&document);
	if (health_json(&document, &health, &run) != OK)
		abort();
	end = strstr(document.bytes, ",\"run\":");
	if (machine->has_json)
		sink_format(json, "=== %s\n%.*s}\n", machine->title, (int)(end - document.bytes),
			    document.bytes);
	sink_release(&document);
	health_release(&health);
	bench_run_release(&run);
	expected_release(&expected);
}

/* More findings than there is room for: pairs of 26 ranks, of which those of even ranks are slow. */
static void findings_are_counted(struct sink *text)
{
	struct machine machine = { "more findings than fit", 26, 26, .rounds = 0 };
	const struct health_options options = { .slow = 0 };
	struct bench_run run;
	struct health health;

	make_run(&run, &machine);
	for (size_t i = 0; i < run.cell_count; i++)
		for (int32_t rank = 0; rank < run.nranks; rank++)
			for (uint32_t call = 0; call < CALLS; call++)
				if (run.cells[i].bytes == LARGE && rank % 2 == 0 &&
				    run.cells[i].peers[rank] % 2 == 0)
					run.cells[i].calls_of[(size_t)rank * CALLS + call].gpu_ns *=
						3;
	if (health_find(&health, &run, &options) != OK)
		abort();
	sink_format(text, "=== %s\n%s\n%zu findings, %zu more, %zu slow pairs of %zu\n",
		    machine.title, health.sentence, health.finding_count, health.findings_lost,
		    health.kinds[HEALTH_INSIDE].slow_pairs, health.kinds[HEALTH_INSIDE].pairs);
	health_release(&health);
	bench_run_release(&run);
}

int main(void)
{
	struct sink text, json;

	sink_init_memory(&text);
	sink_init_memory(&json);
	for (size_t i = 0; i < ARRAY_LENGTH(machines); i++)
		show(&text, &json, &machines[i]);
	findings_are_counted(&text);
	EXPECT_THAT("verdicts as in health_edges.txt",
		    expected_text(&text, "tests/unit/bench/expected/health_edges.txt"));
	EXPECT_THAT("documents as in health_edges.json.lines",
		    expected_json(&json, "tests/unit/bench/expected/health_edges.json.lines"));
	return tap_done();
}
