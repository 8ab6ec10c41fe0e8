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

#include <string.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/text.h"

enum noise_key {
	KEY_PERCENT = 1u << 0,
	KEY_EVERY = 1u << 1,
	KEY_FOR = 1u << 2,
	KEY_RANK = 1u << 3,
	KEY_PER = 1u << 4,
};

static const char *const key_names[] = { "percent", "every", "for", "rank", "per" };
static const char *const key_wants[] = { "a percentage from 0 to 500", "a time, e.g. 30s",
					 "a time, e.g. 200ms", "a rank number", "job or rank" };

enum { AMOUNT_MOST = 5000, PARETO_MOST = 30000, TOKENS_KEPT = 20 };

static const struct {
	struct sim_fault_page page;
	unsigned int allowed;
	struct sim_noise defaults;
} kinds[SIM_NOISES] = {
	[SIM_NOISE_COMPUTE] = { { "compute", "[percent=P][,every=T]",
				  "The compute speed of each rank wanders by up to P% (3), "
				  "correlated over about T (2s)." },
				KEY_PERCENT | KEY_EVERY,
				{ .amount = 30, .every_ns = 2 * SECOND_NS } },
	[SIM_NOISE_TAIL] = { { "tail", "[percent=P][,for=T]",
			       "P% (0.5) of the computations take longer, by T (10ms) on average; "
			       "a few by much more (Pareto)." },
			     KEY_PERCENT | KEY_FOR,
			     { .amount = 5, .duration_ns = 10 * MS_NS } },
	[SIM_NOISE_LOADER] = { { "loader", "[every=T][,for=T]",
				 "Data loading: each rank waits for data before an iteration, "
				 "about "
				 "every 20s for 200ms, independently of the others." },
			       KEY_EVERY | KEY_FOR,
			       { .every_ns = 20 * SECOND_NS, .duration_ns = 200 * MS_NS } },
	[SIM_NOISE_GC] = { { "gc", "[every=T][,for=T]",
			     "Garbage collection: each rank's host pauses before a call, about "
			     "every 5s for 30ms. The GPU goes on with what is queued." },
			   KEY_EVERY | KEY_FOR,
			   { .every_ns = 5 * SECOND_NS, .duration_ns = 30 * MS_NS } },
	[SIM_NOISE_CHECKPOINT] = { { "checkpoint", "[every=T][,for=T][,rank=R]",
				     "All ranks, or only rank R, write a checkpoint before an "
				     "iteration, every 30s for 1s." },
				   KEY_EVERY | KEY_FOR | KEY_RANK,
				   { .every_ns = 30 * SECOND_NS,
				     .duration_ns = SECOND_NS,
				     .rank = -1 } },
	[SIM_NOISE_EVALUATION] = { { "evaluation", "[every=T][,for=T]",
				     "Phases of iterations without backward pass, every 30s for "
				     "4s." },
				   KEY_EVERY | KEY_FOR,
				   { .every_ns = 30 * SECOND_NS, .duration_ns = 4 * SECOND_NS } },
	[SIM_NOISE_THERMAL] = { { "thermal", "[percent=P][,every=T]",
				  "Thermal and power drift: the GPUs of a node get slower and "
				  "faster again by up to P% (4), over about T (30s)." },
				KEY_PERCENT | KEY_EVERY,
				{ .amount = 40, .every_ns = 30 * SECOND_NS } },
	[SIM_NOISE_GPUS] = { { "gpus", "[percent=P]",
			       "Unequal GPUs: each is slower by up to P% (2), for good." },
			     KEY_PERCENT,
			     { .amount = 20 } },
	[SIM_NOISE_BATCHES] = { { "batches", "[percent=P][,per=job|rank]",
				  "Variable batches: the compute time of an iteration differs by "
				  "up "
				  "to P% (20), the same on all ranks (job) or not (rank)." },
				KEY_PERCENT | KEY_PER,
				{ .amount = 200 } },
	[SIM_NOISE_CONTENTION] = { { "contention", "[percent=P]",
				     "Communicators of a node share its network: an operation "
				     "loses "
				     "P% (50) of the time that it overlaps with one of another "
				     "communicator." },
				   KEY_PERCENT,
				   { .amount = 500 } },
	[SIM_NOISE_LOSS] = { { "loss", "[percent=P][,for=T]",
			       "Packet loss: in P% (0.5) of the operations a channel between "
			       "nodes "
			       "loses packets and waits for T (2ms) on average; sometimes much "
			       "longer (Pareto)." },
			     KEY_PERCENT | KEY_FOR,
			     { .amount = 5, .duration_ns = 2 * MS_NS } },
	[SIM_NOISE_EXPERTS] = { { "experts", "[percent=P]",
				  "Uneven experts (moe): a rank gets up to P% (40) more or fewer "
				  "tokens than others, and computes as much longer or shorter." },
				KEY_PERCENT,
				{ .amount = 400 } },
};

const struct sim_fault_page *sim_noise_page(enum sim_noise_kind kind)
{
	return (unsigned int)kind < SIM_NOISES ? &kinds[kind].page : NULL;
}

static enum status find_kind(const char *name, size_t length, enum sim_noise_kind *kind, char *why,
			     size_t size)
{
	size_t used;

	for (int i = 0; i < SIM_NOISES; i++)
		if (strlen(kinds[i].page.name) == length &&
		    memcmp(kinds[i].page.name, name, length) == 0) {
			*kind = (enum sim_noise_kind)i;
			return OK;
		}
	text_format(why, size, "unknown noise '%.*s'; use one of", (int)length, name);
	for (int i = 0; i < SIM_NOISES; i++) {
		used = strlen(why);
		text_format(why + used, size - used, "%s %s", i ? "," : "", kinds[i].page.name);
	}
	return ERR_UNKNOWN;
}

static enum status set_amount(struct sim_noise *noise, const char *value)
{
	uint64_t permille;
	enum status status = text_permille(value, 0, &permille);

	if (status == OK && permille / 100 > AMOUNT_MOST)
		status = ERR_RANGE;
	if (status == OK)
		noise->amount = permille / 100;
	return status;
}

/* At least a millisecond: events are looked for one by one. */
static enum status set_every(struct sim_noise *noise, const char *value)
{
	uint64_t ns;
	enum status status = text_duration(value, &ns);

	if (status == OK && ns < MS_NS)
		status = ERR_RANGE;
	if (status == OK)
		noise->every_ns = ns;
	return status;
}

static enum status set_key(struct sim_noise *noise, enum noise_key key, const char *value)
{
	int64_t rank;
	enum status status;

	switch (key) {
	case KEY_PERCENT:
		return set_amount(noise, value);
	case KEY_EVERY:
		return set_every(noise, value);
	case KEY_FOR:
		return text_duration(value, &noise->duration_ns);
	case KEY_RANK:
		status = text_number(value, 0, SIM_RANKS_MAX - 1, &rank);
		if (status == OK)
			noise->rank = (int)rank;
		return status;
	case KEY_PER:
		noise->is_per_rank = strcmp(value, "rank") == 0;
		return noise->is_per_rank || strcmp(value, "job") == 0 ? OK : ERR_UNKNOWN;
	}
	return ERR_UNKNOWN;
}

/* One "key=value" of `length` bytes. */
static enum status parse_pair(struct sim_noise *noise, enum sim_noise_kind kind, const char *text,
			      size_t length, char *why, size_t size)
{
	const struct sim_fault_page *page = &kinds[kind].page;
	const char *equals = memchr(text, '=', length);
	size_t key_length = equals ? (size_t)(equals - text) : length;
	char value[64];

	for (unsigned int i = 0; i < ARRAY_LENGTH(key_names); i++) {
		if (strlen(key_names[i]) != key_length ||
		    memcmp(key_names[i], text, key_length) != 0 || !(kinds[kind].allowed & 1u << i))
			continue;
		text_format(value, sizeof(value), "%.*s",
			    (int)(equals ? length - key_length - 1 : 0), equals ? equals + 1 : "");
		if (set_key(noise, (enum noise_key)(1u << i), value) == OK)
			return OK;
		text_format(why, size, "noise %s: '%s=%s' must be %s", page->name, key_names[i],
			    value, key_wants[i]);
		return ERR_RANGE;
	}
	text_format(why, size, "noise %s has no key '%.*s'; valid keys: %s", page->name,
		    (int)key_length, text, page->keys);
	return ERR_UNKNOWN;
}

enum status sim_noise_parse(struct sim_noise noises[SIM_NOISES], const char *text, char *why,
			    size_t size)
{
	size_t length = strcspn(text, ":");
	enum sim_noise_kind kind;
	enum status status = find_kind(text, length, &kind, why, size);
	struct sim_noise made;

	if (status != OK)
		return status;
	made = kinds[kind].defaults;
	made.is_on = true;
	text += length;
	while (*text != '\0' && text[1] != '\0') {
		text++;
		length = strcspn(text, ",");
		status = parse_pair(&made, kind, text, length, why, size);
		if (status != OK)
			return status;
		text += length;
	}
	noises[kind] = made;
	return OK;
}

/* ---- how it varies --------------------------------------------------------------------------- */

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

uint64_t sim_noise_compute(const struct sim_job *job, int rank, uint64_t iteration, uint64_t at_ns,
			   uint64_t ns)
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
		ns = sim_random_spread(
			ns, (unsigned int)noise->amount, seed,
			topic(RANDOM_NOISE, SIM_NOISE_BATCHES, noise->is_per_rank ? rank : -1),
			iteration);
	if ((noise = noise_of(job, SIM_NOISE_TAIL)) != NULL &&
	    sim_random_below(1000, seed, topic(RANDOM_NOISE, SIM_NOISE_TAIL, rank), at_ns) <
		    noise->amount)
		ns += pareto(noise->duration_ns, seed, topic(RANDOM_LENGTH, SIM_NOISE_TAIL, rank),
			     at_ns);
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
