#include "bench/health.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/op_layout.h"
#include "tests/tap.h"

static uint64_t noise_state = 3;

static double uniform(void)
{
	uint64_t bits = noise_state += UINT64_C(0x9e3779b97f4a7c15);

	bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
	return ((double)((bits ^ bits >> 31) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

static bool is_near(double got, double wanted, double share)
{
	if (fabs(got / wanted - 1) <= share)
		return true;
	printf("#   got %.9g, wanted %.9g\n", got, wanted);
	return false;
}

/* ---- synthetic machines ---------------------------------------------------------------------- */

enum { CALLS = 7, LARGE = 32 << 20, SMALL = 8 };

struct machine {
	int32_t ranks;
	int32_t local; /* ranks per node */
	double noise;
	/* The fault; -1: none. */
	int32_t slow_rank;
	int32_t slow_node;
	int32_t slow_pair[2];
	int32_t late_rank;
	double share; /* share of the speed that is left */
};

static const struct machine well = { 8, 8, 0.02, -1, -1, { -1, -1 }, -1, 0.5 };

/* GB/s: 200 inside a node, 40 between. */
static double bandwidth_of(const struct machine *machine, int32_t a, int32_t b)
{
	bool is_inside = a / machine->local == b / machine->local;
	double bandwidth = is_inside ? 200 : 40;
	bool is_pair = (a == machine->slow_pair[0] && b == machine->slow_pair[1]) ||
		       (b == machine->slow_pair[0] && a == machine->slow_pair[1]);

	if (a == machine->slow_rank || b == machine->slow_rank || is_pair)
		bandwidth *= machine->share;
	if (!is_inside &&
	    (a / machine->local == machine->slow_node || b / machine->local == machine->slow_node))
		bandwidth *= machine->share;
	return bandwidth;
}

static double time_of(const struct machine *machine, int32_t a, int32_t b, uint64_t bytes)
{
	double latency = a / machine->local == b / machine->local ? 8000 : 20000;

	if (a == machine->late_rank || b == machine->late_rank)
		latency *= 3;
	return (latency + (double)bytes / bandwidth_of(machine, a, b)) *
	       exp(machine->noise * normal());
}

static void add_round(struct bench_run *run, const struct machine *machine, int32_t *peers,
		      uint64_t bytes)
{
	struct bench_cell like = { .function = OP_SEND_RECV,
				   .datatype = OP_FLOAT32,
				   .mode = BENCH_BLOCKING,
				   .root = -1,
				   .nranks = machine->ranks,
				   .bytes = bytes,
				   .calls = CALLS,
				   .peers = peers };
	struct bench_cell *cell = bench_run_add_cell(run, &like);

	if (cell == NULL)
		abort();
	for (int32_t rank = 0; rank < machine->ranks; rank++)
		for (uint32_t call = 0; peers[rank] > rank && call < CALLS; call++) {
			uint64_t time = (uint64_t)time_of(machine, rank, peers[rank], bytes);

			cell->calls_of[rank * CALLS + (int32_t)call].gpu_ns = time;
			cell->calls_of[peers[rank] * CALLS + (int32_t)call].gpu_ns = time - 1;
		}
}

static void make_run(struct bench_run *run, const struct machine *machine, int32_t most_rounds)
{
	struct pair_schedule schedule;
	int32_t *peers = calloc((size_t)machine->ranks, sizeof(*peers));

	bench_run_init(run);
	if (peers == NULL || bench_run_set_ranks(run, machine->ranks) != OK)
		abort();
	for (int32_t rank = 0; rank < machine->ranks; rank++) {
		struct bench_rank *one = &run->ranks[rank];

		one->node = rank / machine->local;
		one->device = rank % machine->local;
		snprintf(one->host, sizeof(one->host), "node%d", one->node);
		snprintf(one->gpu_uuid, sizeof(one->gpu_uuid), "GPU-%d", rank);
	}
	run->nodes = (machine->ranks + machine->local - 1) / machine->local;
	pair_schedule_init(&schedule, machine->ranks, most_rounds);
	for (int32_t round = 0; round < schedule.rounds; round++) {
		pair_schedule_round(&schedule, round, peers);
		add_round(run, machine, peers, LARGE);
		add_round(run, machine, peers, SMALL);
	}
	free(peers);
}

static const struct health_options plain = { .slow = 0 };

/* Makes a run of the machine and judges it; the caller releases. */
static struct health judge(const struct machine *machine, const struct health_options *options,
			   int32_t most_rounds)
{
	struct bench_run run;
	struct health health;

	make_run(&run, machine, most_rounds);
	EXPECT(health_find(&health, &run, options) == OK);
	printf("# %s\n", health.sentence);
	bench_run_release(&run);
	return health;
}

static size_t count_of(const struct health *health, enum health_finding_kind kind)
{
	size_t count = 0;

	for (size_t i = 0; i < health->finding_count; i++)
		count += health->findings[i].kind == kind;
	return count;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static void a_healthy_job(void)
{
	struct machine machine = well;
	struct health health = judge(&machine, &plain, 0);

	EXPECT(health.verdict == HEALTH_OK && health.exit_code == 0 && health.finding_count == 0);
	EXPECT_EQUAL(health.pair_count, 28);
	EXPECT_EQUAL(health.kinds[HEALTH_INSIDE].pairs, 28);
	EXPECT(is_near(health.kinds[HEALTH_INSIDE].median, 190, 0.03));
	EXPECT(is_near(health.kinds[HEALTH_INSIDE].latency_median_ns, 8000, 0.03));
	EXPECT(strncmp(health.sentence, "healthy: 28 pairs inside a node", 31) == 0);
	health_release(&health);
	machine.ranks = 16;
	health = judge(&machine, &plain, 0);
	EXPECT(health.verdict == HEALTH_OK && health.pair_count == 120);
	EXPECT_EQUAL(health.kinds[HEALTH_BETWEEN].pairs, 64);
	health_release(&health);
}

static void a_slow_pair(void)
{
	struct machine machine = well;
	struct health health;

	machine.slow_pair[0] = 5;
	machine.slow_pair[1] = 2;
	health = judge(&machine, &plain, 0);
	EXPECT(health.verdict == HEALTH_IS_SLOW && health.exit_code == 1);
	EXPECT(health.finding_count == 1 && health.findings[0].kind == HEALTH_SLOW_PAIR);
	EXPECT(health.findings[0].rank == 2 && health.findings[0].peer == 5);
	EXPECT(is_near(health.findings[0].ratio, 0.5, 0.1));
	EXPECT_EQUAL(health.findings[0].confidence, HEALTH_CERTAIN);
	EXPECT(strstr(health.sentence, "slow: the link between rank 2 (host node0, GPU 2) and rank "
				       "5 (host node0, GPU 5)"));
	EXPECT(health.findings[0].advice[0] != '\0');
	EXPECT(health.pairs[health.kinds[HEALTH_INSIDE].slowest].first == 2);
	health_release(&health);
	machine.share = 0.85;
	health = judge(&machine, &plain, 0);
	EXPECT_THAT("a little slower is not slow", health.verdict == HEALTH_OK);
	health_release(&health);
}

static void a_slow_rank(int32_t ranks)
{
	struct machine machine = well;
	struct health health;

	machine.ranks = machine.local = ranks;
	machine.slow_rank = 1;
	health = judge(&machine, &plain, 0);
	EXPECT_THAT("the rank is reported, not its pairs",
		    health.finding_count == 1 && health.findings[0].kind == HEALTH_SLOW_RANK &&
			    health.findings[0].rank == 1);
	EXPECT_EQUAL(health.kinds[HEALTH_INSIDE].slow_pairs, ranks - 1);
	health_release(&health);
}

static void a_slow_node(void)
{
	struct machine machine = well;
	struct health health;

	machine.ranks = 16;
	machine.local = 4;
	machine.slow_node = 2;
	health = judge(&machine, &plain, 0);
	EXPECT_THAT("the node is reported, not its ranks",
		    health.finding_count == 1 && health.findings[0].kind == HEALTH_SLOW_NODE &&
			    health.findings[0].node == 2);
	EXPECT_EQUAL(health.findings[0].link, HEALTH_BETWEEN);
	EXPECT(strstr(health.sentence, "node2") != NULL);
	health_release(&health);
	machine.slow_node = -1;
	machine.slow_rank = 9;
	health = judge(&machine, &plain, 0);
	EXPECT_THAT("one of its ranks is reported for both kinds of links",
		    health.finding_count == 2 && count_of(&health, HEALTH_SLOW_RANK) == 2);
	health_release(&health);
}

static void a_late_rank(void)
{
	struct machine machine = well;
	struct health health;

	machine.late_rank = 3;
	health = judge(&machine, &plain, 0);
	EXPECT(health.finding_count == 1 && health.findings[0].kind == HEALTH_LATE_RANK &&
	       health.findings[0].rank == 3);
	EXPECT(is_near(health.findings[0].ratio, 3, 0.1));
	health_release(&health);
}

/* Machines without a fault: hardly any is reported as slow, whatever the noise. */
static void noise_is_no_finding(void)
{
	const int repeats = TAP_IS_SLOW ? 20 : 300;
	int wrong = 0;

	for (int i = 0; i < repeats; i++) {
		struct machine machine = well;
		struct bench_run run;
		struct health health;

		machine.noise = 0.02 + 0.10 * uniform();
		machine.ranks = 2 + (int32_t)(uniform() * 15);
		machine.local = 1 + (int32_t)(uniform() * 8);
		make_run(&run, &machine, 0);
		if (health_find(&health, &run, &plain) != OK)
			abort();
		wrong += health.finding_count > 0;
		health_release(&health);
		bench_run_release(&run);
	}
	printf("# %d of %d healthy machines were reported as slow\n", wrong, repeats);
	EXPECT_THAT("noise is hardly ever a finding", wrong <= repeats / 50);
}

/* ---- expectations ---------------------------------------------------------------------------- */

static void numbers_to_expect(void)
{
	struct health_options options = { .expected_gbs = { 0, 400, 0 } };
	struct machine machine = well;
	struct health health = judge(&machine, &options, 0);

	EXPECT(health.verdict == HEALTH_IS_SLOW && health.finding_count == 1);
	EXPECT_EQUAL(health.findings[0].kind, HEALTH_BELOW_EXPECTED);
	EXPECT(is_near(health.findings[0].ratio, 190 / 400.0, 0.05));
	health_release(&health);
	machine.ranks = 2;
	health = judge(&machine, &options, 0);
	EXPECT_THAT("two ranks can be judged, too", health.verdict == HEALTH_IS_SLOW);
	health_release(&health);
	options.expected_gbs[HEALTH_INSIDE] = 200;
	health = judge(&machine, &options, 0);
	EXPECT(health.verdict == HEALTH_OK);
	health_release(&health);
	machine.ranks = 3;
	machine.slow_pair[0] = 0;
	machine.slow_pair[1] = 1;
	health = judge(&machine, &options, 0);
	EXPECT_THAT("with few pairs, one below the expectation is reported",
		    health.finding_count == 1 && health.findings[0].kind == HEALTH_SLOW_PAIR);
	health_release(&health);
}

static void add_collective(struct bench_run *run, double time_ns, uint64_t wrong)
{
	struct bench_cell like = { .function = OP_ALL_REDUCE,
				   .datatype = OP_FLOAT32,
				   .mode = BENCH_BLOCKING,
				   .root = -1,
				   .nranks = run->nranks,
				   .bytes = 64 << 20,
				   .wrong = wrong,
				   .calls = 1 };
	struct bench_cell *cell = bench_run_add_cell(run, &like);

	for (int32_t rank = 0; rank < run->nranks; rank++)
		cell->calls_of[rank].gpu_ns = (uint64_t)time_ns;
}

static const char table[] =
	"{\"format\":\"ringside-expected\",\"version\":1,\"ranks\":8,\"results\":["
	"{\"function\":\"AllReduce\",\"bytes\":67108864,\"time_ns\":1000000},"
	"{\"function\":\"SendRecv\",\"ranks\":2,\"bytes\":33554432,\"time_ns\":100000}]}";

static void tables_to_expect(void)
{
	struct health_options options = { 0 };
	struct machine machine = well;
	struct expected expected;
	struct bench_run run;
	struct health health;

	expected_init(&expected);
	EXPECT(expected_add_memory(&expected, table, sizeof(table) - 1, 0) == OK);
	expected_finish(&expected);
	options.expected = &expected;
	make_run(&run, &machine, 0);
	add_collective(&run, 2e6, BENCH_UNCHECKED);
	add_collective(&run, 1.9e6, 0);
	EXPECT(health_find(&health, &run, &options) == OK);
	printf("# %s\n", health.sentence);
	EXPECT_EQUAL(count_of(&health, HEALTH_SLOW_COLLECTIVE), 1);
	EXPECT_THAT("the faster of two measurements counts",
		    is_near(health.collectives[0].time_ns, 1.9e6, 1e-6));
	EXPECT_THAT("transfers of the table are used if there is only one kind of link",
		    count_of(&health, HEALTH_BELOW_EXPECTED) == 1 &&
			    is_near(health.kinds[HEALTH_INSIDE].expected, 335.5, 0.01));
	health_release(&health);
	add_collective(&run, 1e6, 12);
	EXPECT(health_find(&health, &run, &options) == OK);
	EXPECT(health.verdict == HEALTH_IS_WRONG && health.exit_code == 1 &&
	       health.findings[0].value == 12);
	EXPECT(strncmp(health.sentence, "wrong results: AllReduce", 24) == 0);
	health_release(&health);
	bench_run_release(&run);
	expected_release(&expected);
}

/* An AllReduce of five calls, of which `late` took longer. */
static void add_calls(struct bench_run *run, double time_ns, uint32_t late, double late_ns)
{
	struct bench_cell like = { .function = OP_ALL_REDUCE,
				   .datatype = OP_FLOAT32,
				   .mode = BENCH_BLOCKING,
				   .root = -1,
				   .nranks = run->nranks,
				   .bytes = 64 << 20,
				   .calls = 5 };
	struct bench_cell *cell = bench_run_add_cell(run, &like);

	for (int32_t rank = 0; rank < run->nranks; rank++)
		for (uint32_t call = 0; call < 5; call++)
			cell->calls_of[(size_t)rank * 5 + call].gpu_ns =
				(uint64_t)(call < late ? late_ns : time_ns);
}

static size_t slower_findings(double first_ns, double last_ns, uint32_t late, double late_ns)
{
	const struct health_options options = { 0 };
	struct bench_run run;
	struct health health;
	size_t count;

	make_run(&run, &well, 0);
	add_calls(&run, first_ns, 0, 0);
	add_calls(&run, last_ns, late, late_ns);
	EXPECT(health_find(&health, &run, &options) == OK);
	count = count_of(&health, HEALTH_GOT_SLOWER);
	if (count > 0)
		printf("# %s\n", health.sentence);
	EXPECT(count == 0 || (health.exit_code == 1 && health.findings[0].ratio < 0.8));
	health_release(&health);
	bench_run_release(&run);
	return count;
}

static void a_machine_that_gets_slower(void)
{
	EXPECT_THAT("slower at the end than at the start", slower_findings(1e6, 1.5e6, 0, 0) == 1);
	EXPECT_THAT("a small slowdown is no finding", slower_findings(1e6, 1.2e6, 0, 0) == 0);
	EXPECT_THAT("nor are single slow calls", slower_findings(1e6, 1e6, 2, 9e6) == 0);
	EXPECT_THAT("nor is a slower median within the scatter",
		    slower_findings(1e6, 1e6, 3, 9e6) == 0);
	EXPECT_THAT("getting faster is only warming up", slower_findings(1.5e6, 1e6, 0, 0) == 0);
}

/* ---- too little ------------------------------------------------------------------------------ */

static void too_little_to_judge(void)
{
	struct health_options lenient = { .is_unjudged_fine = true };
	struct machine machine = well;
	struct bench_run run;
	struct health health;

	machine.ranks = 2;
	health = judge(&machine, &plain, 0);
	EXPECT(health.verdict == HEALTH_UNJUDGED && health.exit_code == 3);
	EXPECT(strstr(health.sentence, "not judged: 1 pair inside a node: too few") != NULL);
	health_release(&health);
	health = judge(&machine, &lenient, 0);
	EXPECT(health.verdict == HEALTH_UNJUDGED && health.exit_code == 0);
	health_release(&health);
	bench_run_init(&run);
	EXPECT(health_find(&health, &run, &plain) == ERR_RANGE);
	bench_run_set_ranks(&run, 1);
	EXPECT(health_find(&health, &run, &plain) == OK && health.verdict == HEALTH_UNJUDGED);
	EXPECT(strstr(health.sentence, "a single rank") != NULL);
	health_release(&health);
	bench_run_release(&run);
	machine.ranks = 64;
	health = judge(&machine, &plain, 5);
	EXPECT_THAT("a sample of rounds reports how many pairs it measured",
		    health.pair_count == 5 * 32 && health.pairs_all == 64 * 63 / 2);
	health_release(&health);
}

static void ranks_on_one_gpu(void)
{
	struct machine machine = well;
	struct bench_run run;
	struct health health;

	machine.ranks = 4;
	make_run(&run, &machine, 0);
	for (int32_t rank = 0; rank < 4; rank++)
		snprintf(run.ranks[rank].gpu_uuid, sizeof(run.ranks[rank].gpu_uuid), "GPU-0");
	EXPECT(health_find(&health, &run, &plain) == OK);
	EXPECT_EQUAL(health.kinds[HEALTH_SHARED_GPU].pairs, 6);
	EXPECT_EQUAL(health.kinds[HEALTH_INSIDE].pairs, 0);
	health_release(&health);
	bench_run_release(&run);
}

int main(void)
{
	a_healthy_job();
	a_slow_pair();
	a_slow_rank(8);
	a_slow_rank(4);
	a_slow_node();
	a_late_rank();
	noise_is_no_finding();
	numbers_to_expect();
	tables_to_expect();
	a_machine_that_gets_slower();
	too_little_to_judge();
	ranks_on_one_gpu();
	return tap_done();
}
