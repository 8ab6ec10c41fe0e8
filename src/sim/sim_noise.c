/*
 * Noise of healthy jobs. Every kind is a function of the seed, of what it affects and of the job's time, so that
 * the order in which the engine computes does not matter and the same seed gives the same bytes.
 *
 *	wander		a value per rank that is drawn anew at regular times and moves linearly in between:
 *			correlated over about that long
 *	Pareto		1/sqrt of a uniform number: most are short, a few are ten times as long
 *	events		one in every stretch of a given length, at a random time, as long as Pareto says
 *
 * Checkpoints and evaluations happen in the same iterations on all ranks: iterations are counted as if they took
 * their compute time.
 */
#include "sim/sim_job.h"

#include "common/clock.h"

enum { PARETO_MOST = 30000, TOKENS_KEPT = 20 };

enum { RANDOM_NOISE = 0x200, RANDOM_LENGTH = 0x300 };

static const struct sim_noise *noise_of(const struct sim_job *job, enum sim_noise_kind kind)
{
	const struct sim_noise *noise = &job->options.noises[kind];

	return noise->is_on ? noise : NULL;
}

/* What a random number is for: a kind of noise and the rank or node it affects. */
static uint64_t topic(int what, enum sim_noise_kind kind, int affected)
{
	return (uint64_t)(what + (int)kind) << 32 | (uint32_t)affected;
}

/* In [0, 1000]; moves linearly between values drawn every `every_ns`. */
static uint64_t wander(uint64_t seed, uint64_t what, uint64_t every_ns, uint64_t ns)
{
	uint64_t at = ns / every_ns, share = ns % every_ns * 1000 / every_ns;
	uint64_t from = sim_random_below(1001, seed, what, at);
	uint64_t to = sim_random_below(1001, seed, what, at + 1);

	return (from * (1000 - share) + to * share) / 1000;
}

/* `ns` on average, but for the cut at PARETO_MOST. */
static uint64_t pareto(uint64_t ns, uint64_t seed, uint64_t what, uint64_t which)
{
	uint64_t uniform = 1 + sim_random_below(1 << 16, seed, what, which);
	uint64_t square = (UINT64_C(1) << 16) * 1000000 / uniform;
	uint64_t root = 1000;

	while ((root + 1) * (root + 1) <= square && root < PARETO_MOST)
		root += root / 16;
	return ns * root / 2000;
}

/* Events after `since_ns` and not after `ns`: how long they last together. */
static uint64_t events_ns(const struct sim_job *job, enum sim_noise_kind kind, int rank,
			  uint64_t since_ns, uint64_t ns)
{
	const struct sim_noise *noise = noise_of(job, kind);
	uint64_t seed = job->options.seed, sum_ns = 0;

	if (noise == NULL)
		return 0;
	for (uint64_t at = since_ns / noise->every_ns; at <= ns / noise->every_ns; at++) {
		uint64_t event_ns = at * noise->every_ns +
				    sim_random_below(noise->every_ns, seed,
						     topic(RANDOM_NOISE, kind, rank), at);

		if (event_ns > since_ns && event_ns <= ns)
			sum_ns += pareto(noise->duration_ns, seed, topic(RANDOM_LENGTH, kind, rank),
					 at);
	}
	return sum_ns;
}

uint64_t sim_noise_compute(const struct sim_job *job, int rank, uint64_t iteration, uint64_t which,
			   uint64_t at_ns, uint64_t ns)
{
	const struct sim_noise *noise;
	uint64_t seed = job->options.seed;
	int node = sim_job_node(job, rank);

	if ((noise = noise_of(job, SIM_NOISE_COMPUTE)) != NULL)
		ns = ns *
		     (1000 + noise->amount *
				     wander(seed, topic(RANDOM_NOISE, SIM_NOISE_COMPUTE, rank),
					    noise->every_ns, at_ns) /
				     1000) /
		     1000;
	if ((noise = noise_of(job, SIM_NOISE_THERMAL)) != NULL)
		ns = ns *
		     (1000 + noise->amount *
				     wander(seed, topic(RANDOM_NOISE, SIM_NOISE_THERMAL, node),
					    noise->every_ns, at_ns) /
				     1000) /
		     1000;
	if ((noise = noise_of(job, SIM_NOISE_GPUS)) != NULL)
		ns = ns *
		     (1000 + sim_random_below(noise->amount + 1, seed, RANDOM_NOISE,
					      topic(0, SIM_NOISE_GPUS, rank))) /
		     1000;
	if ((noise = noise_of(job, SIM_NOISE_BATCHES)) != NULL)
		ns = sim_random_spread(ns, (unsigned int)noise->amount, seed,
				       topic(RANDOM_NOISE, SIM_NOISE_BATCHES,
					     noise->per == SIM_PER_RANK ? rank : -1),
				       iteration);
	if ((noise = noise_of(job, SIM_NOISE_TAIL)) != NULL &&
	    sim_random_below(1000, seed, topic(RANDOM_NOISE, SIM_NOISE_TAIL, rank), which) <
		    noise->amount)
		ns += pareto(noise->duration_ns, seed, topic(RANDOM_LENGTH, SIM_NOISE_TAIL, rank),
			     which);
	return ns;
}

uint64_t sim_noise_call_pause(const struct sim_job *job, int rank, uint64_t since_ns, uint64_t ns)
{
	return events_ns(job, SIM_NOISE_GC, rank, since_ns, ns);
}

/* Whether a stretch of `every_ns` begins with this iteration, or, of the first `most` of it, goes on. */
static bool is_early_in_stretch(const struct sim_job *job, uint64_t every_ns, uint64_t iteration,
				uint64_t most)
{
	uint64_t period_ns = job->programs[0].period_ns;
	uint64_t stretch = every_ns > period_ns ? every_ns / period_ns : 1;

	return iteration >= stretch && iteration % stretch < most;
}

uint64_t sim_noise_iteration_pause(const struct sim_job *job, int rank, uint64_t iteration,
				   uint64_t since_ns, uint64_t ns)
{
	const struct sim_noise *noise = noise_of(job, SIM_NOISE_CHECKPOINT);
	uint64_t pause_ns = events_ns(job, SIM_NOISE_LOADER, rank, since_ns, ns);

	if (noise && (noise->rank == -1 || noise->rank == rank) &&
	    is_early_in_stretch(job, noise->every_ns, iteration, 1))
		pause_ns += sim_random_spread(noise->duration_ns, 100, job->options.seed,
					      topic(RANDOM_LENGTH, SIM_NOISE_CHECKPOINT, rank),
					      iteration);
	return pause_ns;
}

bool sim_noise_is_evaluation(const struct sim_job *job, uint64_t iteration)
{
	const struct sim_noise *noise = noise_of(job, SIM_NOISE_EVALUATION);

	/* A forward pass is a third of an iteration. */
	return noise && job->programs[0].evaluation.count > 0 &&
	       is_early_in_stretch(job, noise->every_ns, iteration,
				   noise->duration_ns * 3 / job->programs[0].period_ns + 1);
}

uint64_t sim_noise_expert_permille(const struct sim_job *job, uint64_t comm_hash, int rank,
				   uint64_t iteration, uint32_t layer)
{
	const struct sim_noise *noise = noise_of(job, SIM_NOISE_EXPERTS);
	uint64_t what = hash_word(comm_hash, topic(RANDOM_NOISE, SIM_NOISE_EXPERTS, rank) + layer);
	uint64_t liked;

	if (noise == NULL)
		return 1000;
	/* Which expert is popular changes slowly; each batch differs a little. */
	liked = (3 * wander(job->options.seed, what, TOKENS_KEPT, iteration) +
		 sim_random_below(1001, job->options.seed, what + 1, iteration)) /
		4;
	/* Also for amounts above 100%, a rank gets something. */
	return noise->amount < 1000 ? 1000 - noise->amount + 2 * noise->amount * liked / 1000
				    : 1 + 2 * noise->amount * liked / 1000;
}

uint64_t sim_noise_loss(const struct sim_job *job, uint64_t comm_hash, uint64_t match, int channel)
{
	const struct sim_noise *noise = noise_of(job, SIM_NOISE_LOSS);
	uint64_t what = hash_word(comm_hash, topic(RANDOM_NOISE, SIM_NOISE_LOSS, channel));

	if (noise == NULL ||
	    sim_random_below(1000, job->options.seed, what, match) >= noise->amount)
		return 0;
	return pareto(noise->duration_ns, job->options.seed, what + 1, match);
}
