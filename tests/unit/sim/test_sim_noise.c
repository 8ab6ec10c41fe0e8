/* Noise of simulated jobs: each kind changes what it should, everywhere alike, and nothing else. */
#include "tests/tap.h"

#include <string.h>

#include "common/clock.h"
#include "common/hash.h"
#include "sim/sim_engine.h"

static struct sim_job job;

/* A job of 4 nodes with 4 GPUs and this noise, or NULL. */
static void start(enum sim_workload workload, const char *noise)
{
	struct sim_options options;
	char why[256] = "";

	sim_options_init(&options);
	options.nodes = 4;
	options.gpus = 4;
	options.workload = workload;
	options.iterations = 4;
	if (noise)
		sim_noise_parse(options.noises, noise, why, sizeof(why));
	if (why[0] != '\0')
		EXPECT_THAT(why, false);
	sim_options_finish(&options, why, sizeof(why));
	sim_job_init(&job, &options);
}

static void test_words(void)
{
	struct sim_noise noises[SIM_NOISES] = { 0 };
	char why[512];

	EXPECT_EQUAL(sim_noise_parse(noises, "gc", why, sizeof(why)), OK);
	EXPECT(noises[SIM_NOISE_GC].is_on && noises[SIM_NOISE_GC].every_ns == 5 * SECOND_NS);
	EXPECT(!noises[SIM_NOISE_LOADER].is_on);
	EXPECT_EQUAL(sim_noise_parse(noises, "gc:every=1s,for=70ms", why, sizeof(why)), OK);
	EXPECT_EQUAL(noises[SIM_NOISE_GC].every_ns, SECOND_NS);
	EXPECT_EQUAL(noises[SIM_NOISE_GC].duration_ns, 70 * MS_NS);
	EXPECT_EQUAL(sim_noise_parse(noises, "compute:percent=2.5", why, sizeof(why)), OK);
	EXPECT_EQUAL(noises[SIM_NOISE_COMPUTE].amount, 25);
	EXPECT_EQUAL(sim_noise_parse(noises, "hail", why, sizeof(why)), ERR_UNKNOWN);
	EXPECT(strcmp(why,
		      "unknown noise 'hail'; use one of compute, tail, loader, gc, checkpoint, "
		      "evaluation, thermal, gpus, batches, contention, loss, experts") == 0);
	EXPECT_EQUAL(sim_noise_parse(noises, "gpus:every=1s", why, sizeof(why)), ERR_UNKNOWN);
	EXPECT(strcmp(why, "noise gpus has no key 'every'; valid keys: [percent=P]") == 0);
	EXPECT_EQUAL(sim_noise_parse(noises, "batches:per=node", why, sizeof(why)), ERR_RANGE);
	EXPECT(strcmp(why, "noise batches: 'per=node' must be job or rank") == 0);
	EXPECT_EQUAL(sim_noise_parse(noises, "gc:every=1us", why, sizeof(why)), ERR_RANGE);
	EXPECT_EQUAL(sim_noise_parse(noises, "tail:percent=501", why, sizeof(why)), ERR_RANGE);
	for (int i = 0; i < SIM_NOISES; i++)
		EXPECT_EQUAL(sim_noise_parse(noises, sim_noise_page((enum sim_noise_kind)i)->name,
					     why, sizeof(why)),
			     OK);
	EXPECT(sim_noise_page(SIM_NOISES) == NULL);
}

static uint64_t compute(int rank, uint64_t iteration, uint64_t ns)
{
	return sim_noise_compute(&job, rank, iteration, ns / 1000, ns, 1000000);
}

static void test_compute(void)
{
	uint64_t least = UINT64_MAX, most = 0, apart = 0, jump = 0;

	start(SIM_DDP, NULL);
	EXPECT_EQUAL(compute(3, 1, SECOND_NS), 1000000);
	sim_job_release(&job);

	start(SIM_DDP, "compute:percent=10,every=1s");
	for (uint64_t ns = 0; ns < 200 * SECOND_NS; ns += 20 * MS_NS) {
		uint64_t now = compute(3, 1, ns), next = compute(3, 1, ns + 20 * MS_NS);

		least = now < least ? now : least;
		most = now > most ? now : most;
		jump = now > next + jump ? now - next : next > now + jump ? next - now : jump;
		apart += now != compute(4, 1, ns);
	}
	EXPECT_THAT("the speed wanders over the whole range",
		    least >= 1000000 && least < 1010000 && most > 1090000 && most <= 1100000);
	EXPECT_THAT("but not at once", jump < 4000);
	EXPECT_THAT("and each rank on its own", apart > 9000);
	sim_job_release(&job);

	start(SIM_DDP, "thermal:percent=10,every=10s");
	EXPECT_EQUAL(compute(4, 1, 5 * SECOND_NS), compute(7, 1, 5 * SECOND_NS));
	EXPECT(compute(4, 1, 5 * SECOND_NS) != compute(8, 1, 5 * SECOND_NS));
	EXPECT(compute(4, 1, 5 * SECOND_NS) != compute(4, 1, 95 * SECOND_NS));
	sim_job_release(&job);

	start(SIM_DDP, "gpus:percent=3");
	apart = 0;
	for (int rank = 0; rank < job.world; rank++) {
		EXPECT_EQUAL(compute(rank, 1, 0), compute(rank, 9, 77 * SECOND_NS));
		EXPECT(compute(rank, 1, 0) <= 1030000);
		apart += compute(rank, 1, 0) != compute(0, 1, 0);
	}
	EXPECT_THAT("GPUs differ for good", apart > 10);
	sim_job_release(&job);
}

static void test_batches(void)
{
	unsigned int same = 0, iterations = 0;

	start(SIM_DDP, "batches:percent=20");
	for (uint64_t i = 1; i < 100; i++) {
		same += compute(0, i, 0) == compute(9, i, SECOND_NS);
		iterations += compute(0, i, 0) != compute(0, i + 1, 0);
		EXPECT(compute(0, i, 0) > 800000 - 1 && compute(0, i, 0) < 1200000 + 1);
	}
	EXPECT_EQUAL(same, 99);
	EXPECT(iterations > 90);
	sim_job_release(&job);
	start(SIM_DDP, "batches:percent=20,per=rank");
	same = 0;
	for (uint64_t i = 1; i < 100; i++)
		same += compute(0, i, 0) == compute(9, i, 0);
	EXPECT(same < 5);
	sim_job_release(&job);
}

static void test_tail(void)
{
	unsigned int longer = 0, much = 0;
	uint64_t sum_ns = 0;

	start(SIM_DDP, "tail:percent=2,for=10ms");
	for (uint64_t i = 0; i < 100000; i++) {
		uint64_t extra_ns = compute(5, 1, i * 1000) - 1000000;

		longer += extra_ns > 0;
		much += extra_ns > 40 * MS_NS;
		sum_ns += extra_ns;
	}
	EXPECT_THAT("few computations take longer", longer > 1800 && longer < 2200);
	EXPECT_THAT("of these a few take much longer", much > 10 && much < longer / 20);
	EXPECT_THAT("the average is what was asked for",
		    sum_ns / longer > 8 * MS_NS && sum_ns / longer < 12 * MS_NS);
	sim_job_release(&job);
}

/* The sum of pauses of a rank in this time, seen in calls that are `step_ns` apart. */
static uint64_t pauses(bool is_host, int rank, uint64_t step_ns, uint64_t until_ns)
{
	uint64_t sum_ns = 0;

	for (uint64_t ns = 0; ns < until_ns; ns += step_ns)
		sum_ns += is_host ? sim_noise_call_pause(&job, rank, ns, ns + step_ns)
				  : sim_noise_iteration_pause(&job, rank, 1, ns, ns + step_ns);
	return sum_ns;
}

static void test_pauses(void)
{
	start(SIM_DDP, "gc:every=2s,for=30ms");
	EXPECT_THAT("pauses add up to what was asked for",
		    pauses(true, 3, MS_NS, 1000 * SECOND_NS) > 10 * SECOND_NS &&
			    pauses(true, 3, MS_NS, 1000 * SECOND_NS) < 20 * SECOND_NS);
	EXPECT_THAT("no matter how many calls there are",
		    pauses(true, 3, MS_NS, 100 * SECOND_NS) ==
			    pauses(true, 3, SECOND_NS, 100 * SECOND_NS));
	EXPECT(pauses(true, 3, MS_NS, 100 * SECOND_NS) != pauses(true, 4, MS_NS, 100 * SECOND_NS));
	EXPECT_EQUAL(pauses(false, 3, MS_NS, 100 * SECOND_NS), 0);
	sim_job_release(&job);

	start(SIM_DDP, "loader:every=2s,for=30ms");
	EXPECT(pauses(false, 3, 100 * MS_NS, 1000 * SECOND_NS) > 10 * SECOND_NS);
	EXPECT_EQUAL(pauses(true, 3, MS_NS, 100 * SECOND_NS), 0);
	sim_job_release(&job);

	/* An iteration of ddp has 200 ms. */
	start(SIM_DDP, "checkpoint:every=2s,for=500ms");
	EXPECT_EQUAL(sim_noise_iteration_pause(&job, 3, 9, 0, 1), 0);
	EXPECT_EQUAL(sim_noise_iteration_pause(&job, 3, 11, 0, 1), 0);
	for (int rank = 0; rank < job.world; rank++)
		EXPECT(sim_noise_iteration_pause(&job, rank, 20, 0, 1) > 440 * MS_NS);
	sim_job_release(&job);
	start(SIM_DDP, "checkpoint:every=2s,for=500ms,rank=2");
	EXPECT_EQUAL(sim_noise_iteration_pause(&job, 1, 20, 0, 1), 0);
	EXPECT(sim_noise_iteration_pause(&job, 2, 20, 0, 1) > 440 * MS_NS);
	sim_job_release(&job);

	start(SIM_DDP, "evaluation:every=2s,for=200ms");
	EXPECT(!sim_noise_is_evaluation(&job, 9) && sim_noise_is_evaluation(&job, 10));
	EXPECT(sim_noise_is_evaluation(&job, 13) && !sim_noise_is_evaluation(&job, 14));
	sim_job_release(&job);
}

/* What all ranks of the job do, as one number; how long its last collective over all ranks takes. */
static uint64_t play(uint64_t *calls, uint64_t *world_ns)
{
	struct sim_score score;
	uint64_t hash = 0;

	*calls = *world_ns = 0;
	if (sim_score_init(&score, &job) != OK)
		return 0;
	for (int rank = 0; rank < score.world; rank++)
		for (size_t i = 0; i < score.ranks[rank].count; i++) {
			const struct sim_play *one = &score.ranks[rank].plays[i];

			hash = hash_word(hash_word(hash, one->issue_ns), one->end_ns);
			hash = hash_word(hash_word(hash, one->count), one->number);
			++*calls;
			if (one->role == SIM_WORLD && one->duration_ns > *world_ns)
				*world_ns = one->duration_ns;
		}
	sim_score_release(&score);
	return hash;
}

static void test_jobs(void)
{
	static const char *const short_ones[SIM_NOISES] = {
		[SIM_NOISE_LOADER] = "loader:every=1s",
		[SIM_NOISE_GC] = "gc:every=500ms",
		[SIM_NOISE_CHECKPOINT] = "checkpoint:every=2s",
		[SIM_NOISE_EVALUATION] = "evaluation:every=2s,for=1s",
		[SIM_NOISE_LOSS] = "loss:percent=5",
	};
	uint64_t calm, calls, world_ns, more, longer_ns;

	start(SIM_MOE, NULL);
	calm = play(&calls, &world_ns);
	sim_job_release(&job);
	for (int i = 0; i < SIM_NOISES; i++) {
		const char *name = sim_noise_page((enum sim_noise_kind)i)->name;
		uint64_t first;

		start(SIM_MOE, short_ones[i] ? short_ones[i] : name);
		first = play(&more, &longer_ns);
		if (first == calm || first == 0)
			EXPECT_THAT(name, false);
		EXPECT_THAT("the same seed gives the same job", play(&more, &longer_ns) == first);
		if (i != SIM_NOISE_EVALUATION)
			EXPECT_EQUAL(more, calls);
		else
			EXPECT_THAT("evaluation has fewer calls", more < calls);
		if (i == SIM_NOISE_CONTENTION || i == SIM_NOISE_LOSS)
			EXPECT_THAT("transfers take longer", longer_ns > world_ns);
		sim_job_release(&job);
	}
}

static void test_network(void)
{
	unsigned int lost = 0;
	uint64_t most = 0, least = UINT64_MAX;

	start(SIM_MOE, "loss:percent=2");
	for (uint64_t i = 0; i < 10000; i++)
		lost += sim_noise_loss(&job, job.comms[0].hash, i, 1) > 0;
	EXPECT(lost > 150 && lost < 250);
	sim_job_release(&job);

	start(SIM_MOE, "experts:percent=40");
	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t share = sim_noise_expert_permille(&job, job.comms[1].hash, 2, i, 1);

		most = share > most ? share : most;
		least = share < least ? share : least;
	}
	EXPECT_THAT("a share changes within its limits",
		    least >= 600 && least < 750 && most <= 1400 && most > 1250);
	sim_job_release(&job);
	start(SIM_MOE, NULL);
	EXPECT_EQUAL(sim_noise_expert_permille(&job, job.comms[1].hash, 2, 5, 1), 1000);
	EXPECT_EQUAL(sim_noise_loss(&job, job.comms[0].hash, 5, 1), 0);
	sim_job_release(&job);
}

int main(void)
{
	test_words();
	test_compute();
	test_batches();
	test_tail();
	test_pauses();
	test_jobs();
	test_network();
	return tap_done();
}
