/*
 * Judges pairs and collectives, and formats the verdict.
 *
 * Pairs are scheduled by the circle method. The last rank (or, with an odd number, nobody) stays in place; all
 * others form a circle that turns by one position per round, and ranks opposite each other are paired. In round r,
 * ranks whose numbers add up to r modulo n - 1 are paired; the one that would be paired with itself gets the rank
 * that stays in place.
 */
#include "bench/health.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "cli/cli.h"
#include "common/attributes.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "common/text.h"
#include "output/json.h"
#include "output/table.h"

#define HEALTH_SLOW 0.8	      /* share of the median of its kind, or of the expected bandwidth */
#define HEALTH_LATE 1.5	      /* factor over the median latency of its kind */
#define HEALTH_DEVIATIONS 4.0 /* robust standard deviations */

struct health_scene {
	struct health *health;
	const struct bench_run *run;
	const struct health_options *options;
	double slow;		    /* share that is still healthy */
	struct health_finding lost; /* the last one that did not fit */
};

/* ---- words ----------------------------------------------------------------------------------- */

enum { HEALTH_RANK_TEXT = 128 };

enum { HEALTH_MATRIX_RANKS = 16, HEALTH_SLOWEST = 5 };

void pair_schedule_init(struct pair_schedule *schedule, int32_t ranks, int32_t most_rounds)
{
	uint64_t count = ranks > 0 ? (uint64_t)ranks : 0;

	memset(schedule, 0, sizeof(*schedule));
	schedule->ranks = ranks > 0 ? ranks : 0;
	schedule->stride = 1;
	if (ranks < 2)
		return;
	schedule->rounds_all = ranks % 2 == 0 ? ranks - 1 : ranks;
	schedule->rounds = schedule->rounds_all;
	schedule->pairs_all = count * (count - 1) / 2;
	if (most_rounds > 0 && most_rounds < schedule->rounds_all) {
		schedule->rounds = most_rounds;
		schedule->stride = schedule->rounds_all / most_rounds;
		schedule->is_sampled = true;
	}
	schedule->pairs = (uint64_t)schedule->rounds * (count / 2);
}

void pair_schedule_round(const struct pair_schedule *schedule, int32_t round, int32_t *peers)
{
	int64_t circle = schedule->rounds_all; /* ranks on the circle: always an odd number */
	int64_t turn = (int64_t)round * schedule->stride;

	for (int64_t rank = 0; rank < schedule->ranks; rank++) {
		int64_t peer;

		peers[rank] = -1;
		if (round < 0 || round >= schedule->rounds || rank == circle)
			continue;
		peer = (turn - rank) % circle;
		peer += peer < 0 ? circle : 0;
		if (peer != rank)
			peers[rank] = (int32_t)peer;
		else if (circle < schedule->ranks)
			peers[rank] = (int32_t)circle;
	}
	for (int64_t rank = 0; rank < circle && circle < schedule->ranks; rank++)
		if (peers[rank] == circle)
			peers[circle] = (int32_t)rank;
}

/* Transfers between pairs: the speed of each, and of its kind of link. */

#define DEVIATION 1.4826  /* converts the median absolute deviation to a standard deviation */
#define SPREAD_LEAST 0.01 /* of the median: measurements are not more accurate than that */

/* Link between two ranks. */
static enum health_link health_link_of(const struct bench_run *run, int32_t first, int32_t second)
{
	const struct bench_rank *a = &run->ranks[first], *b = &run->ranks[second];

	if (a->node != b->node)
		return HEALTH_BETWEEN;
	if (a->gpu_uuid[0] && b->gpu_uuid[0])
		return strcmp(a->gpu_uuid, b->gpu_uuid) == 0 ? HEALTH_SHARED_GPU : HEALTH_INSIDE;
	return a->device == b->device && strcmp(a->pci, b->pci) == 0 ? HEALTH_SHARED_GPU
								     : HEALTH_INSIDE;
}

/* ---- what each pair took --------------------------------------------------------------------- */

/* One cell's transfers between two ranks. */
struct pair_sample {
	int32_t first;
	int32_t second;
	uint64_t bytes;
	double time_ns;
	size_t calls;
};

static int compare_samples(const void *left, const void *right)
{
	const struct pair_sample *a = left, *b = right;

	return ORDER(a->first, b->first) ?: ORDER(a->second, b->second)
		?: ORDER(a->bytes, b->bytes) ?: ORDER(a->time_ns, b->time_ns);
}

static bool has_pairs(const struct bench_run *run, const struct bench_cell *cell)
{
	return cell->function == OP_SEND_RECV && cell->peers && cell->calls_of && cell->calls > 0 &&
	       cell->nranks <= run->nranks && cell->bytes > 0;
}

static double pair_slower_ns(const struct bench_cell *cell, int32_t a, int32_t b, uint32_t call)
{
	return fmax((double)bench_cell_call(cell, a, call)->gpu_ns,
		    (double)bench_cell_call(cell, b, call)->gpu_ns);
}

/* The median over calls of the slower of the two ranks. False: not timed. */
static bool take_sample(const struct bench_cell *cell, int32_t rank, double *times,
			struct pair_sample *sample)
{
	int32_t peer = cell->peers[rank];

	if (peer < 0 || peer >= cell->nranks || peer == rank)
		return false;
	if (cell->peers[peer] == rank && peer < rank)
		return false; /* already taken from the other end */
	sample->first = rank < peer ? rank : peer;
	sample->second = rank < peer ? peer : rank;
	sample->bytes = cell->bytes;
	sample->calls = 0;
	for (uint32_t call = 0; call < cell->calls; call++) {
		times[sample->calls] = pair_slower_ns(cell, rank, peer, call);
		sample->calls += times[sample->calls] > 0;
	}
	sample->time_ns = bench_figures_of(times, sample->calls).p50;
	return sample->calls > 0;
}

static size_t samples_of(const struct bench_run *run, struct pair_sample *samples, double *times)
{
	size_t count = 0;

	for (size_t c = 0; c < run->cell_count; c++) {
		const struct bench_cell *cell = &run->cells[c];

		for (int32_t rank = 0; has_pairs(run, cell) && rank < cell->nranks; rank++)
			count += take_sample(cell, rank, times, &samples[count]);
	}
	return count;
}

/* Samples of one pair: smallest size first, the fastest first within a size, because that is what the link can do. */
static void fill_pair(const struct bench_run *run, struct health_pair *pair,
		      const struct pair_sample *samples, size_t count)
{
	const struct pair_sample *small = &samples[0], *large = &samples[count - 1];

	while (large > samples && large[-1].bytes == large->bytes)
		large--;
	pair->first = samples->first;
	pair->second = samples->second;
	pair->link = health_link_of(run, pair->first, pair->second);
	for (size_t i = 0; i < count; i++)
		pair->calls += samples[i].calls;
	if (large->bytes >= HEALTH_LARGE_BYTES) {
		pair->bytes = large->bytes;
		pair->bandwidth = (double)large->bytes / large->time_ns;
	}
	if (small->bytes <= HEALTH_SMALL_BYTES) {
		pair->latency_bytes = small->bytes;
		pair->latency_ns = small->time_ns;
	}
}

static enum status fill_pairs(struct health *health, const struct bench_run *run,
			      struct pair_sample *samples, size_t count)
{
	qsort(samples, count, sizeof(*samples), compare_samples);
	health->pairs = calloc(count + 1, sizeof(*health->pairs));
	if (health->pairs == NULL)
		return ERR_NO_SPACE;
	for (size_t at = 0, next; at < count; at = next) {
		for (next = at + 1; next < count && samples[next].first == samples[at].first &&
				    samples[next].second == samples[at].second;)
			next++;
		fill_pair(run, &health->pairs[health->pair_count++], samples + at, next - at);
	}
	return OK;
}

/* ---- kinds of links -------------------------------------------------------------------------- */

/*
 * Median and spread of the better half (`sign` 1: more is better, -1: less is). Bad values are on one side only, so
 * up to half of them cannot hide each other.
 */
static double middle_of(double *values, size_t count, int sign, double *spread)
{
	double middle;
	size_t better = 0;

	if (count == 0) {
		*spread = 0;
		return 0;
	}
	middle = sign > 0 ? stats_median(values, count) : 0;
	if (sign < 0) {
		for (size_t i = 0; i < count; i++)
			values[i] = -values[i];
		middle = stats_median(values, count);
	}
	for (size_t i = 0; i < count; i++)
		if (values[i] >= middle)
			values[better++] = values[i] - middle;
	*spread = fmax(DEVIATION * stats_median(values, better), SPREAD_LEAST * fabs(middle));
	return fabs(middle);
}

static void count_pair(struct health_kind *kind, const struct health *health, size_t at)
{
	const struct health_pair *pair = &health->pairs[at];

	if (pair->bandwidth > 0) {
		if (kind->slowest == SIZE_MAX || pair->bandwidth < kind->least) {
			kind->slowest = at;
			kind->least = pair->bandwidth;
		}
		kind->most = fmax(kind->most, pair->bandwidth);
		kind->pairs++;
	}
	if (pair->latency_ns > 0) {
		if (kind->latest == SIZE_MAX ||
		    pair->latency_ns > health->pairs[kind->latest].latency_ns)
			kind->latest = at;
		kind->latency_pairs++;
	}
}

static void fill_kind(struct health *health, enum health_link link, double *room)
{
	struct health_kind *kind = &health->kinds[link];
	size_t count = 0;

	kind->slowest = kind->latest = SIZE_MAX;
	for (size_t i = 0; i < health->pair_count; i++)
		if (health->pairs[i].link == link)
			count_pair(kind, health, i);
	for (size_t i = 0; i < health->pair_count; i++)
		if (health->pairs[i].link == link && health->pairs[i].bandwidth > 0)
			room[count++] = health->pairs[i].bandwidth;
	kind->median = middle_of(room, count, 1, &kind->spread);
	count = 0;
	for (size_t i = 0; i < health->pair_count; i++)
		if (health->pairs[i].link == link && health->pairs[i].latency_ns > 0)
			room[count++] = health->pairs[i].latency_ns;
	kind->latency_median_ns = middle_of(room, count, -1, &kind->latency_spread_ns);
}

/* Fills pairs[] and kinds[] without judging. ERR_NO_SPACE. */
static enum status health_measure(struct health_scene *scene)
{
	const struct bench_run *run = scene->run;
	struct health *health = scene->health;
	size_t room = 1, calls = 1;
	struct pair_sample *samples;
	double *values;
	enum status status = ERR_NO_SPACE;

	for (size_t c = 0; c < run->cell_count; c++)
		if (has_pairs(run, &run->cells[c])) {
			room += (size_t)run->cells[c].nranks;
			calls = run->cells[c].calls > calls ? run->cells[c].calls : calls;
		}
	samples = calloc(room, sizeof(*samples));
	values = calloc(room > calls ? room : calls, sizeof(*values));
	if (samples && values)
		status = fill_pairs(health, run, samples, samples_of(run, samples, values));
	for (int link = 0; link < HEALTH_LINKS && status == OK; link++)
		fill_kind(health, (enum health_link)link, values);
	free(samples);
	free(values);
	return status;
}

/* ---- names ----------------------------------------------------------------------------------- */

/*
 * For display: "on one GPU", "inside a node", "between nodes"; for options and JSON: "shared", "inside", "between".
 */
static const char *health_link_name(enum health_link link)
{
	static const char *const names[HEALTH_LINKS] = { "on one GPU", "inside a node",
							 "between nodes" };

	return (unsigned int)link < HEALTH_LINKS ? names[link] : "?";
}

const char *health_link_key(enum health_link link)
{
	static const char *const keys[HEALTH_LINKS] = { "shared", "inside", "between" };

	return (unsigned int)link < HEALTH_LINKS ? keys[link] : "?";
}

/* "healthy", "slow", "wrong results", "not judged" */
static const char *health_verdict_name(enum health_verdict verdict)
{
	static const char *const names[] = { "healthy", "slow", "wrong results", "not judged" };

	return (unsigned int)verdict < 4 ? names[verdict] : "?";
}

/* "slow_rank" */
static const char *health_finding_name(enum health_finding_kind kind)
{
	static const char *const names[] = {
		[HEALTH_WRONG_RESULTS] = "wrong_results",
		[HEALTH_SLOW_NODE] = "slow_node",
		[HEALTH_SLOW_RANK] = "slow_rank",
		[HEALTH_SLOW_PAIR] = "slow_pair",
		[HEALTH_LATE_RANK] = "late_rank",
		[HEALTH_LATE_PAIR] = "late_pair",
		[HEALTH_BELOW_EXPECTED] = "below_expected",
		[HEALTH_SLOW_COLLECTIVE] = "slow_collective",
		[HEALTH_GOT_SLOWER] = "got_slower",
	};

	return (unsigned int)kind < sizeof(names) / sizeof(names[0]) && names[kind] ? names[kind]
										    : "?";
}

/* "likely", "certain" */
static const char *health_confidence_name(enum health_confidence confidence)
{
	return confidence == HEALTH_CERTAIN ? "certain" : "likely";
}

/* "rank 3 (host b, GPU 1)" */
static const char *health_rank_text(char to[static HEALTH_RANK_TEXT], const struct bench_run *run,
				    int32_t rank)
{
	const struct bench_rank *one = &run->ranks[rank];

	if (one->host[0])
		snprintf(to, HEALTH_RANK_TEXT, "rank %d (host %.63s, GPU %d)", (int)rank, one->host,
			 (int)one->device);
	else
		snprintf(to, HEALTH_RANK_TEXT, "rank %d", (int)rank);
	return to;
}

/* ---- findings -------------------------------------------------------------------------------- */

/* Adds a finding without its text. If there are too many it is only counted, but may be filled in. */
static struct health_finding *health_find_add(struct health_scene *scene,
					      enum health_finding_kind kind,
					      enum health_confidence confidence, double value,
					      double usual, const char *advice)
{
	struct health *health = scene->health;
	struct health_finding *finding = &scene->lost;

	if (health->finding_count == HEALTH_FINDINGS_MAX)
		health->findings_lost++;
	else
		finding = &health->findings[health->finding_count++];
	*finding = (struct health_finding){
		.kind = kind,
		.confidence = confidence,
		.rank = -1,
		.peer = -1,
		.node = -1,
		.value = value,
		.usual = usual,
		.ratio = usual > 0 ? value / usual : 0,
	};
	text_copy(finding->advice, sizeof(finding->advice), advice);
	return finding;
}

static void PRINTF_LIKE(2, 3) health_say(struct health_finding *finding, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(finding->text, sizeof(finding->text), format, arguments);
	va_end(arguments);
}

static void PRINTF_LIKE(2, 3) health_reason(struct health *health, const char *format, ...)
{
	va_list arguments;

	if (health->reason_count == HEALTH_REASONS_MAX)
		return;
	va_start(arguments, format);
	vsnprintf(health->reasons[health->reason_count++], sizeof(health->reasons[0]), format,
		  arguments);
	va_end(arguments);
}

/* Most serious kind first; within a kind, the farthest from normal. */
static int compare_findings(const void *left, const void *right)
{
	const struct health_finding *a = left, *b = right;
	double far_a = a->ratio > 0 ? fabs(log(a->ratio)) : 0;
	double far_b = b->ratio > 0 ? fabs(log(b->ratio)) : 0;

	return ORDER(a->kind, b->kind) ?: ORDER(far_b, far_a) ?: ORDER(a->rank, b->rank)
		?: ORDER(a->peer, b->peer);
}

/* ---- verdict --------------------------------------------------------------------------------- */

static bool is_kind_judged(const struct health_kind *kind)
{
	return kind->pairs >= HEALTH_PAIRS_LEAST || (kind->pairs > 0 && kind->expected > 0);
}

static bool is_anything_judged(const struct health *health)
{
	for (int link = 0; link < HEALTH_LINKS; link++)
		if (is_kind_judged(&health->kinds[link]))
			return true;
	for (size_t i = 0; i < health->collective_count; i++)
		if (health->collectives[i].expected > 0)
			return true;
	return false;
}

/* "28 pairs inside a node: median 41.20 GB/s, slowest 39.80 GB/s; ..." */
static void say_healthy(struct health *health)
{
	size_t size = sizeof(health->sentence);

	text_copy(health->sentence, size, "healthy:");
	for (int link = 0; link < HEALTH_LINKS; link++) {
		const struct health_kind *kind = &health->kinds[link];

		if (is_kind_judged(kind))
			text_append(health->sentence, size,
				    " %zu %s %s: median %.2f GB/s, slowest %.2f GB/s;", kind->pairs,
				    text_which(kind->pairs, "pair", "pairs"),
				    health_link_name((enum health_link)link), kind->median,
				    kind->least);
	}
	for (size_t i = 0; i < health->collective_count; i++)
		if (health->collectives[i].expected > 0) {
			text_append(health->sentence, size,
				    " collectives reach the expected bandwidth;");
			break;
		}
	text_append(health->sentence, size, "%s",
		    health->is_checked ? " results are correct" : " results were not checked");
}

static void say_findings(struct health *health)
{
	size_t more = health->finding_count - 1 + health->findings_lost;

	text_format(health->sentence, sizeof(health->sentence), "%s: %s",
		    health_verdict_name(health->verdict), health->findings[0].text);
	if (more > 0)
		text_append(health->sentence, sizeof(health->sentence), "; and %zu more", more);
}

/* Derives verdict, exit code and summary from the findings. */
static void health_conclude(struct health_scene *scene)
{
	struct health *health = scene->health;

	qsort(health->findings, health->finding_count, sizeof(*health->findings), compare_findings);
	if (health->finding_count > 0 && health->findings[0].kind == HEALTH_WRONG_RESULTS)
		health->verdict = HEALTH_IS_WRONG;
	else if (health->finding_count > 0)
		health->verdict = HEALTH_IS_SLOW;
	else
		health->verdict = is_anything_judged(health) ? HEALTH_OK : HEALTH_UNJUDGED;
	if (health->verdict == HEALTH_UNJUDGED)
		health->exit_code =
			scene->options->is_unjudged_fine ? CLI_EXIT_DONE : CLI_EXIT_UNKNOWN;
	else
		health->exit_code = health->verdict == HEALTH_OK ? CLI_EXIT_DONE : CLI_EXIT_TROUBLE;
	if (health->verdict == HEALTH_OK)
		say_healthy(health);
	else if (health->verdict == HEALTH_UNJUDGED)
		snprintf(health->sentence, sizeof(health->sentence), "not judged: %s",
			 health->reason_count ? health->reasons[0] : "nothing was measured");
	else
		say_findings(health);
}

/* ---- expectations ---------------------------------------------------------------------------- */

/*
 * A table of measured transfers does not say which link they used: it is only applied if there is just one kind
 * here.
 */
static void scene_expect(struct health_scene *scene)
{
	struct health *health = scene->health;
	struct expected_value value;
	struct health_kind *only = NULL;
	size_t kinds = 0;

	for (int link = 0; link < HEALTH_LINKS; link++) {
		struct health_kind *kind = &health->kinds[link];

		kind->expected = scene->options->expected_gbs[link];
		kinds += kind->pairs > 0;
		only = kind->pairs > 0 ? kind : only;
	}
	if (scene->options->expected == NULL || only == NULL || only->expected > 0 ||
	    !expected_find(scene->options->expected, OP_SEND_RECV,
			   health->pairs[only->slowest].bytes, 2, &value))
		return;
	if (kinds == 1)
		only->expected = value.busbw;
	else
		health_reason(health, "the expectations do not say which kind of link SendRecv was "
				      "measured on");
}

/* ---- all of it ------------------------------------------------------------------------------- */

void health_release(struct health *health)
{
	free(health->pairs);
	memset(health, 0, sizeof(*health));
}

/*
 * Finds what slow pairs have in common. A single slow pair is a link; if all pairs of a rank are slow, it is the
 * rank, its GPU or its NIC; if all pairs of all ranks of a node are slow, it is the node. What the larger one
 * explains is not reported again.
 */

enum { RANK_PAIRS_LEAST = 2 }; /* a single pair does not show which end it is */

/* Below this share of normal, and this far outside the spread, the finding is certain. */
#define CERTAIN_SHARE 0.6
#define CERTAIN_DEVIATIONS 8.0
#define LATE_LEAST_NS 1000.0

/* One pass: bandwidth or latency of one kind of link. */
struct link_pass {
	struct health_scene *scene;
	enum health_link link;
	bool is_latency;
	/* For each rank and node: pairs, and bad ones. */
	uint32_t *rank_pairs;
	uint32_t *rank_bad;
	uint32_t *node_pairs;
	uint32_t *node_bad;
	uint32_t *node_ranks; /* with pairs of this kind */
	bool *is_rank_told;
	bool *is_node_told;
	double *room; /* for medians: one per pair */
};

static bool pass_has_pair(const struct link_pass *pass, const struct health_pair *pair)
{
	return pair->link == pass->link &&
	       (pass->is_latency ? pair->latency_ns > 0 : pair->bandwidth > 0);
}

/* A slow link has a high latency, too; report it once. */
static bool is_bad(const struct link_pass *pass, const struct health_pair *pair)
{
	return pass->is_latency ? pair->is_late && !pair->is_slow : pair->is_slow;
}

static double pair_value(const struct link_pass *pass, const struct health_pair *pair)
{
	return pass->is_latency ? pair->latency_ns : pair->bandwidth;
}

static int32_t node_of(const struct link_pass *pass, int32_t rank)
{
	int32_t node = pass->scene->run->ranks[rank].node;

	return node >= 0 && node < pass->scene->run->nranks ? node : 0;
}

/* ---- which pairs ----------------------------------------------------------------------------- */

static bool is_slow(const struct health_scene *scene, const struct health_kind *kind,
		    double bandwidth)
{
	bool is_outlier = kind->pairs >= HEALTH_PAIRS_LEAST &&
			  bandwidth < scene->slow * kind->median &&
			  kind->median - bandwidth > HEALTH_DEVIATIONS * kind->spread;
	/* If the whole kind is below the expectation, that is reported instead of every pair. */
	bool is_below = kind->expected > 0 && kind->median >= scene->slow * kind->expected &&
			bandwidth < scene->slow * kind->expected;

	return is_outlier || is_below;
}

static bool is_late(const struct health_kind *kind, double latency_ns)
{
	return kind->latency_pairs >= HEALTH_PAIRS_LEAST &&
	       latency_ns > HEALTH_LATE * kind->latency_median_ns &&
	       latency_ns - kind->latency_median_ns >
		       fmax(HEALTH_DEVIATIONS * kind->latency_spread_ns, LATE_LEAST_NS);
}

static void mark_pairs(struct health_scene *scene)
{
	struct health *health = scene->health;

	for (size_t i = 0; i < health->pair_count; i++) {
		struct health_pair *pair = &health->pairs[i];
		struct health_kind *kind = &health->kinds[pair->link];

		pair->is_slow = pair->bandwidth > 0 && is_slow(scene, kind, pair->bandwidth);
		pair->is_late = pair->latency_ns > 0 && is_late(kind, pair->latency_ns);
		kind->slow_pairs += pair->is_slow;
		kind->late_count += pair->is_late;
	}
}

/* ---- counting -------------------------------------------------------------------------------- */

static void pass_count(struct link_pass *pass)
{
	const struct health *health = pass->scene->health;
	int32_t ranks = pass->scene->run->nranks;

	for (size_t i = 0; i < health->pair_count; i++) {
		const struct health_pair *pair = &health->pairs[i];
		const int32_t ends[2] = { pair->first, pair->second };
		bool has_both = node_of(pass, ends[0]) == node_of(pass, ends[1]);

		if (!pass_has_pair(pass, pair))
			continue;
		for (int end = 0; end < 2; end++) {
			pass->rank_pairs[ends[end]]++;
			pass->rank_bad[ends[end]] += is_bad(pass, pair);
			if (end == 1 && has_both)
				continue;
			pass->node_pairs[node_of(pass, ends[end])]++;
			pass->node_bad[node_of(pass, ends[end])] += is_bad(pass, pair);
		}
	}
	for (int32_t rank = 0; rank < ranks; rank++)
		pass->node_ranks[node_of(pass, rank)] += pass->rank_pairs[rank] > 0;
}

/* Median over the pairs of a rank or a node. */
static double median_over(const struct link_pass *pass, int32_t rank, int32_t node)
{
	const struct health *health = pass->scene->health;
	size_t values = 0;

	for (size_t i = 0; i < health->pair_count; i++) {
		const struct health_pair *pair = &health->pairs[i];
		bool is_there = rank >= 0 ? pair->first == rank || pair->second == rank
					  : node_of(pass, pair->first) == node ||
						    node_of(pass, pair->second) == node;

		if (is_there && pass_has_pair(pass, pair))
			pass->room[values++] = pair_value(pass, pair);
	}
	return stats_median(pass->room, values);
}

/* ---- telling --------------------------------------------------------------------------------- */

/* Too few to compare with each other: compared with the expected value. */
static bool is_among_few(const struct link_pass *pass)
{
	const struct health_kind *kind = &pass->scene->health->kinds[pass->link];

	return !pass->is_latency && kind->pairs < HEALTH_PAIRS_LEAST && kind->expected > 0;
}

static double usual_of(const struct link_pass *pass)
{
	const struct health_kind *kind = &pass->scene->health->kinds[pass->link];

	if (pass->is_latency)
		return kind->latency_median_ns;
	return is_among_few(pass) ? kind->expected : kind->median;
}

static enum health_confidence confidence_of(const struct link_pass *pass, double value)
{
	const struct health_kind *kind = &pass->scene->health->kinds[pass->link];
	double usual = usual_of(pass), spread = kind->spread;
	double share = pass->is_latency ? usual / value : value / usual;

	if (pass->is_latency)
		spread = kind->latency_spread_ns;
	return share < CERTAIN_SHARE && fabs(usual - value) > CERTAIN_DEVIATIONS * spread
		       ? HEALTH_CERTAIN
		       : HEALTH_LIKELY;
}

static void say_values(struct health_finding *finding, const struct link_pass *pass,
		       const char *who)
{
	const char *link = health_link_name(pass->link);
	char usual[80];

	if (pass->is_latency) {
		health_say(finding, "%s: a small transfer takes %.1f us, others %s %.1f us (%.1fx)",
			   who, finding->value / 1000, link, finding->usual / 1000, finding->ratio);
		return;
	}
	if (is_among_few(pass))
		snprintf(usual, sizeof(usual), "%.2f GB/s expected", finding->usual);
	else
		snprintf(usual, sizeof(usual), "others %s %.2f GB/s", link, finding->usual);
	health_say(finding, "%s: %.2f GB/s, %s (%.0f%%)", who, finding->value, usual,
		   finding->ratio * 100);
}

static const char *advice_of(enum health_finding_kind kind, enum health_link link)
{
	if (link == HEALTH_SHARED_GPU)
		return "check what else runs on this host; ranks on one GPU communicate over "
		       "sockets";
	if (kind == HEALTH_SLOW_NODE)
		return link == HEALTH_BETWEEN ? "check the node's network: switch ports, link "
						"speed, error counters"
					      : "check the node's GPU links: nvidia-smi nvlink -s, "
						"nvidia-smi topo -m";
	if (kind == HEALTH_SLOW_RANK || kind == HEALTH_LATE_RANK)
		return link == HEALTH_BETWEEN ? "check this rank's NIC (speed, error counters, "
						"GPUDirect) and GPU (clocks, other work)"
					      : "check this GPU: clocks, PCIe width, NVLink errors "
						"(nvidia-smi -q), other work";
	return link == HEALTH_BETWEEN
		       ? "check cables and switch ports between the two"
		       : "check the link between the two: nvidia-smi topo -m, nvidia-smi nvlink -s";
}

static struct health_finding *finding_of(const struct link_pass *pass,
					 enum health_finding_kind kind, double value)
{
	struct health_finding *finding =
		health_find_add(pass->scene, kind, confidence_of(pass, value), value,
				usual_of(pass), advice_of(kind, pass->link));

	finding->link = pass->link;
	return finding;
}

static void tell_nodes(struct link_pass *pass)
{
	for (int32_t node = 0; node < pass->scene->run->nranks; node++) {
		struct health_finding *finding;
		char who[HEALTH_RANK_TEXT];
		int32_t rank = 0;

		if (pass->is_latency || pass->node_ranks[node] < 2 ||
		    pass->node_pairs[node] < RANK_PAIRS_LEAST ||
		    pass->node_bad[node] < pass->node_pairs[node])
			continue;
		while (node_of(pass, rank) != node)
			rank++;
		pass->is_node_told[node] = true;
		finding = finding_of(pass, HEALTH_SLOW_NODE, median_over(pass, -1, node));
		finding->node = node;
		snprintf(who, sizeof(who), "node %d (%.63s), all links of all its ranks", (int)node,
			 pass->scene->run->ranks[rank].host);
		say_values(finding, pass, who);
	}
}

static void tell_ranks(struct link_pass *pass)
{
	enum health_finding_kind kind = pass->is_latency ? HEALTH_LATE_RANK : HEALTH_SLOW_RANK;

	for (int32_t rank = 0; rank < pass->scene->run->nranks; rank++) {
		char name[HEALTH_RANK_TEXT], who[HEALTH_RANK_TEXT + 32];
		struct health_finding *finding;

		if (pass->is_node_told[node_of(pass, rank)] ||
		    pass->rank_pairs[rank] < RANK_PAIRS_LEAST ||
		    pass->rank_bad[rank] < pass->rank_pairs[rank])
			continue;
		pass->is_rank_told[rank] = true;
		finding = finding_of(pass, kind, median_over(pass, rank, -1));
		finding->rank = rank;
		finding->node = pass->scene->run->ranks[rank].node;
		health_rank_text(name, pass->scene->run, rank);
		snprintf(who, sizeof(who), "%s, all its links %s", name,
			 health_link_name(pass->link));
		say_values(finding, pass, who);
	}
}

static bool is_explained(const struct link_pass *pass, const struct health_pair *pair)
{
	return pass->is_rank_told[pair->first] || pass->is_rank_told[pair->second] ||
	       pass->is_node_told[node_of(pass, pair->first)] ||
	       pass->is_node_told[node_of(pass, pair->second)];
}

static void tell_pairs(struct link_pass *pass)
{
	enum health_finding_kind kind = pass->is_latency ? HEALTH_LATE_PAIR : HEALTH_SLOW_PAIR;
	const struct health *health = pass->scene->health;

	for (size_t i = 0; i < health->pair_count; i++) {
		const struct health_pair *pair = &health->pairs[i];
		char one[HEALTH_RANK_TEXT], other[HEALTH_RANK_TEXT], who[2 * HEALTH_RANK_TEXT + 32];
		struct health_finding *finding;

		if (!pass_has_pair(pass, pair) || !is_bad(pass, pair) || is_explained(pass, pair))
			continue;
		finding = finding_of(pass, kind, pair_value(pass, pair));
		finding->rank = pair->first;
		finding->peer = pair->second;
		snprintf(who, sizeof(who), "the link between %s and %s",
			 health_rank_text(one, pass->scene->run, pair->first),
			 health_rank_text(other, pass->scene->run, pair->second));
		say_values(finding, pass, who);
	}
}

/* ---- one kind of link ------------------------------------------------------------------------ */

static void pass_release(struct link_pass *pass)
{
	free(pass->rank_pairs);
	free(pass->is_rank_told);
	free(pass->room);
}

static enum status pass_init(struct link_pass *pass)
{
	size_t ranks = (size_t)pass->scene->run->nranks;

	pass->rank_pairs = calloc(ranks * 5, sizeof(*pass->rank_pairs));
	pass->is_rank_told = calloc(ranks * 2, sizeof(*pass->is_rank_told));
	pass->room = calloc(pass->scene->health->pair_count + 1, sizeof(*pass->room));
	if (!pass->rank_pairs || !pass->is_rank_told || !pass->room)
		return ERR_NO_SPACE;
	pass->rank_bad = pass->rank_pairs + ranks;
	pass->node_pairs = pass->rank_bad + ranks;
	pass->node_bad = pass->node_pairs + ranks;
	pass->node_ranks = pass->node_bad + ranks;
	pass->is_node_told = pass->is_rank_told + ranks;
	return OK;
}

static enum status judge_links(struct health_scene *scene, enum health_link link, bool is_latency)
{
	struct link_pass pass = { .scene = scene, .link = link, .is_latency = is_latency };
	enum status status = pass_init(&pass);

	if (status == OK) {
		pass_count(&pass);
		tell_nodes(&pass);
		tell_ranks(&pass);
		tell_pairs(&pass);
	}
	pass_release(&pass);
	return status;
}

static void judge_kind(struct health_scene *scene, enum health_link link)
{
	const struct health_kind *kind = &scene->health->kinds[link];
	struct health_finding *finding;

	if (kind->pairs == 0)
		return;
	if (kind->pairs < HEALTH_PAIRS_LEAST && kind->expected <= 0)
		health_reason(scene->health,
			      "%zu %s %s: too few to compare with each other, and no expected "
			      "bandwidth was given",
			      kind->pairs, kind->pairs == 1 ? "pair" : "pairs",
			      health_link_name(link));
	if (kind->expected <= 0 || kind->median >= scene->slow * kind->expected)
		return;
	finding = health_find_add(
		scene, HEALTH_BELOW_EXPECTED, HEALTH_CERTAIN, kind->median, kind->expected,
		link == HEALTH_BETWEEN
			? "all of them are slow: check what they share: NIC driver, "
			  "GPUDirect, NCCL's choice of network (NCCL_DEBUG=INFO)"
			: "all of them are slow: check what they share: topology, NVLink "
			  "state, NCCL's transport (NCCL_DEBUG=INFO)");
	finding->link = link;
	health_say(finding, "links %s: median %.2f GB/s of %zu %s, %.2f GB/s expected (%.0f%%)",
		   health_link_name(link), kind->median, kind->pairs,
		   kind->pairs == 1 ? "pair" : "pairs", kind->expected, finding->ratio * 100);
}

/* Which pairs are slow or have a high latency, and which ranks and nodes cause it. ERR_NO_SPACE. */
static enum status health_judge_pairs(struct health_scene *scene)
{
	enum status status = OK;

	mark_pairs(scene);
	for (int link = 0; link < HEALTH_LINKS && status == OK; link++) {
		judge_kind(scene, (enum health_link)link);
		status = judge_links(scene, (enum health_link)link, false);
		if (status == OK)
			status = judge_links(scene, (enum health_link)link, true);
	}
	return status;
}

/* Collectives of the whole job: correct results and expected bandwidth. */

enum { CALLS_FOR_COURSE = 3 };

/* ---- results --------------------------------------------------------------------------------- */

static void judge_results(struct health_scene *scene, uint8_t function)
{
	const struct bench_run *run = scene->run;
	struct health_finding *finding;
	uint64_t wrong = 0;
	size_t cells = 0;

	for (size_t c = 0; c < run->cell_count; c++) {
		if (run->cells[c].function != function || run->cells[c].wrong == BENCH_UNCHECKED)
			continue;
		scene->health->is_checked = true;
		wrong += run->cells[c].wrong;
		cells += run->cells[c].wrong != 0;
	}
	if (wrong == 0)
		return;
	finding = health_find_add(
		scene, HEALTH_WRONG_RESULTS, HEALTH_CERTAIN, (double)wrong, 0,
		"take these GPUs out of service; check their memory errors (nvidia-smi -q -d "
		"ECC) and the kernel log (Xid)");
	finding->function = function;
	health_say(finding, "%s gave wrong results: %llu %s in %zu %s", op_function_name(function),
		   (unsigned long long)wrong, wrong == 1 ? "element" : "elements", cells,
		   cells == 1 ? "measurement" : "measurements");
}

/* ---- speed ----------------------------------------------------------------------------------- */

/* The largest size of a function; of several such cells the fastest. */
static enum status find_collective(struct health_scene *scene, uint8_t function,
				   struct health_collective *found)
{
	const struct bench_run *run = scene->run;

	for (size_t c = 0; c < run->cell_count; c++) {
		const struct bench_cell *cell = &run->cells[c];
		struct bench_figures figures;
		enum status status;

		if (cell->function != function || cell->peers || cell->bytes < found->bytes)
			continue;
		status = bench_cell_figures(cell, BENCH_OVER_MEAN, &figures);
		if (status != OK)
			return status;
		if (figures.p50 <= 0 || (cell->bytes == found->bytes && found->time_ns > 0 &&
					 figures.p50 >= found->time_ns))
			continue;
		found->function = function;
		found->bytes = cell->bytes;
		found->time_ns = figures.p50;
		found->busbw = bench_busbw(cell, figures.p50);
	}
	return OK;
}

static void judge_collective(struct health_scene *scene, struct health_collective *one)
{
	struct expected_value value;
	struct health_finding *finding;
	char size[UNITS_TEXT];

	if (scene->options->expected == NULL ||
	    !expected_find(scene->options->expected, one->function, one->bytes, scene->run->nranks,
			   &value) ||
	    value.busbw <= 0)
		return;
	one->expected = value.busbw;
	one->how = value.how;
	one->is_slow = one->busbw < scene->slow * one->expected;
	if (!one->is_slow)
		return;
	finding = health_find_add(
		scene, HEALTH_SLOW_COLLECTIVE,
		value.how & ~(unsigned int)EXPECTED_BETWEEN ? HEALTH_LIKELY : HEALTH_CERTAIN,
		one->busbw, one->expected,
		"compare with the pairs: one slow link slows down the whole ring");
	finding->function = one->function;
	health_say(finding, "%s of %s: busbw %.2f GB/s, %.2f GB/s expected (%.0f%%)%s",
		   op_function_name(one->function), units_bytes(size, one->bytes), one->busbw,
		   one->expected, finding->ratio * 100,
		   value.how & EXPECTED_OTHER_RANKS ? ", which was measured with a different "
						      "number of ranks"
						    : "");
}

static void tell_slower(struct health_scene *scene, const struct health_collective *one,
			double first_gbs, double last_gbs, double percent)
{
	struct health_finding *finding =
		health_find_add(scene, HEALTH_GOT_SLOWER, HEALTH_LIKELY, last_gbs, first_gbs,
				"check clocks and temperatures (nvidia-smi -q -d "
				"PERFORMANCE,TEMPERATURE) and jobs started meanwhile");
	char size[UNITS_TEXT];

	finding->function = one->function;
	health_say(finding,
		   "%s of %s slowed down: busbw %.2f GB/s at the start, %.2f GB/s at the end "
		   "(%.0f%%)",
		   op_function_name(one->function), units_bytes(size, one->bytes), first_gbs,
		   last_gbs, percent);
}

/*
 * The same collective was measured at the start and at the end: reports a slowdown beyond the scatter of the calls
 * and beyond the tolerance for links. A speedup is only warming up.
 */
static enum status judge_course(struct health_scene *scene, const struct health_collective *one)
{
	const struct bench_run *run = scene->run;
	const struct bench_cell *first = NULL, *last = NULL;
	struct bench_figures before, after;
	enum status status;

	for (size_t c = 0; c < run->cell_count; c++) {
		const struct bench_cell *cell = &run->cells[c];

		if (cell->function != one->function || cell->peers || cell->bytes != one->bytes ||
		    cell->calls < CALLS_FOR_COURSE)
			continue;
		first = first ? first : cell;
		last = cell;
	}
	if (first == last)
		return OK;
	status = bench_cell_figures(first, BENCH_OVER_MEAN, &before);
	if (status == OK)
		status = bench_cell_figures(last, BENCH_OVER_MEAN, &after);
	if (status == OK && before.p50 > 0 && before.p50 < scene->slow * after.p50 &&
	    before.p75 < after.p25)
		tell_slower(scene, one, bench_busbw(first, before.p50),
			    bench_busbw(last, after.p50), 100 * before.p50 / after.p50);
	return status;
}

/* The collectives of the whole job. ERR_NO_SPACE. */
static enum status health_judge_collectives(struct health_scene *scene)
{
	struct health *health = scene->health;
	const size_t room = sizeof(health->collectives) / sizeof(health->collectives[0]);
	enum status status = OK;
	size_t judged = 0;

	for (uint8_t function = 1; function < OP_FUNCTIONS && status == OK; function++) {
		struct health_collective found = { 0 };

		judge_results(scene, function);
		status = find_collective(scene, function, &found);
		if (status != OK || found.time_ns <= 0 || health->collective_count == room)
			continue;
		judge_collective(scene, &found);
		status = judge_course(scene, &found);
		judged += found.expected > 0;
		health->collectives[health->collective_count++] = found;
	}
	if (status == OK && health->collective_count > 0 && judged == 0)
		health_reason(health,
			      scene->options->expected
				      ? "the expectations include none of the measured functions"
				      : "no expected bandwidth of collectives was given");
	return status;
}

enum status health_find(struct health *health, const struct bench_run *run,
			const struct health_options *options)
{
	struct health_scene scene = { .health = health, .run = run, .options = options };
	enum status status;

	memset(health, 0, sizeof(*health));
	if (run->nranks < 1 || run->ranks == NULL)
		return ERR_RANGE;
	scene.slow = options->slow > 0 ? options->slow : HEALTH_SLOW;
	health->pairs_all = (uint64_t)run->nranks * ((uint64_t)run->nranks - 1) / 2;
	status = health_measure(&scene);
	if (status == OK) {
		scene_expect(&scene);
		status = health_judge_pairs(&scene);
	}
	if (status == OK)
		status = health_judge_collectives(&scene);
	if (status != OK) {
		health_release(health);
		return status;
	}
	if (health->pair_count == 0)
		health_reason(health, run->nranks < 2 ? "a single rank has no links"
						      : "no pairs were measured");
	health_conclude(&scene);
	return OK;
}

enum { NUMBER_TEXT = 32 };

/* Three digits, the accuracy of such measurements; "-": unknown. */
static const char *health_number(char to[static NUMBER_TEXT], double value)
{
	int digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;

	if (value > 0)
		text_format(to, NUMBER_TEXT, "%.*f", digits, value);
	else
		text_copy(to, NUMBER_TEXT, "-");
	return to;
}

static const char *percent_text(char to[static NUMBER_TEXT], double part, double of)
{
	if (part > 0 && of > 0)
		text_format(to, NUMBER_TEXT, "%.0f%%", part / of * 100);
	else
		text_copy(to, NUMBER_TEXT, "-");
	return to;
}

const char *health_rank_words(char to[static HEALTH_RANK_WORDS], const struct bench_run *run,
			      int32_t rank)
{
	const struct bench_rank *who;

	if (rank < 0 || rank >= run->nranks || run->ranks == NULL) {
		text_format(to, HEALTH_RANK_WORDS, "rank %d", (int)rank);
		return to;
	}
	who = &run->ranks[rank];
	text_format(to, HEALTH_RANK_WORDS, "rank %d (%s, GPU %d)", (int)rank,
		    who->host[0] != '\0' ? who->host : "unknown host", (int)who->device);
	return to;
}

/* ---- who, and what was found ----------------------------------------------------------------- */

static void write_who(struct sink *sink, const struct bench_run *run, unsigned int width)
{
	const char *gpu = run->nranks > 0 && run->ranks != NULL ? run->ranks[0].gpu_name : "";
	struct sink line;

	sink_init_memory(&line);
	sink_format(&line, "%d %s on %d %s", (int)run->nranks,
		    text_which((uint64_t)run->nranks, "rank", "ranks"), (int)run->nodes,
		    text_which((uint64_t)run->nodes, "node", "nodes"));
	if (gpu[0] != '\0')
		sink_format(&line, ", %s", gpu);
	if (run->nccl_version > 0)
		sink_format(&line, ", NCCL %d.%d.%d", run->nccl_version / 10000,
			    run->nccl_version / 100 % 100, run->nccl_version % 100);
	if (run->is_gpu_shared)
		sink_text(&line, "; ranks share GPUs: their links are sockets of this host");
	table_wrap(sink, sink_string(&line), "", 0, width);
	sink_release(&line);
}

static void write_findings(struct sink *sink, const struct health *health, unsigned int width)
{
	if (health->finding_count == 0)
		return;
	sink_text(sink, "\nFINDINGS\n");
	for (size_t i = 0; i < health->finding_count; i++) {
		const struct health_finding *one = &health->findings[i];
		struct sink text;

		sink_init_memory(&text);
		sink_format(&text, "%s (%s)", one->text, health_confidence_name(one->confidence));
		table_wrap(sink, sink_string(&text), "- ", 2, width);
		sink_release(&text);
		if (one->advice[0] != '\0')
			table_wrap(sink, one->advice, "  ", 2, width);
	}
	if (health->findings_lost > 0)
		sink_format(sink, "  and %zu more\n", health->findings_lost);
}

/* ---- kinds of links, collectives ------------------------------------------------------------- */

static void pair_cell(struct report_grid *grid, const struct health *health, size_t index)
{
	if (index < health->pair_count)
		report_grid_cellf(grid, "%d-%d", (int)health->pairs[index].first,
				  (int)health->pairs[index].second);
	else
		report_grid_cell(grid, "-");
}

static void add_kind(struct report_grid *grid, const struct health *health, enum health_link link)
{
	const struct health_kind *kind = &health->kinds[link];
	char text[NUMBER_TEXT], time[UNITS_TEXT];

	report_grid_cell(grid, health_link_name(link));
	report_grid_cellf(grid, "%zu", kind->pairs);
	report_grid_cell(grid, health_number(text, kind->median));
	report_grid_cell(grid, health_number(text, kind->least));
	pair_cell(grid, health, kind->slowest);
	report_grid_cell(grid, health_number(text, kind->expected));
	report_grid_cell(grid, percent_text(text, kind->median, kind->expected));
	report_grid_cell(grid, bench_duration(time, kind->latency_median_ns));
	report_grid_cell(grid, bench_duration(time, kind->latest < health->pair_count
							    ? health->pairs[kind->latest].latency_ns
							    : 0));
	pair_cell(grid, health, kind->latest);
}

static enum status write_kinds(struct sink *sink, const struct health *health, unsigned int width)
{
	struct report_grid grid;
	enum status status;

	report_grid_init(&grid);
	report_grid_column(&grid, "LINKS", TABLE_LEFT, 0, 0);
	report_grid_column(&grid, "PAIRS", TABLE_RIGHT, 0, 5);
	report_grid_column(&grid, "MEDIAN GB/s", TABLE_RIGHT, 0, 0);
	report_grid_column(&grid, "MIN GB/s", TABLE_RIGHT, 0, 2);
	report_grid_column(&grid, "SLOWEST", TABLE_LEFT, 0, 3);
	report_grid_column(&grid, "EXPECTED GB/s", TABLE_RIGHT, 0, 1);
	report_grid_column(&grid, "OF EXPECTED", TABLE_RIGHT, 0, 1);
	report_grid_column(&grid, "LATENCY", TABLE_RIGHT, 0, 4);
	report_grid_column(&grid, "MAX LATENCY", TABLE_RIGHT, 0, 6);
	report_grid_column(&grid, "MAX AT", TABLE_LEFT, 0, 7);
	for (unsigned int link = 0; link < HEALTH_LINKS; link++)
		if (health->kinds[link].pairs > 0 || health->kinds[link].latency_pairs > 0)
			add_kind(&grid, health, (enum health_link)link);
	if (grid.table.used > 0)
		sink_byte(sink, '\n');
	status = report_grid_write(&grid, sink, width, NULL);
	report_grid_release(&grid);
	return status;
}

static enum status write_collectives(struct sink *sink, const struct health *health,
				     unsigned int width)
{
	struct report_grid grid;
	enum status status;

	if (health->collective_count == 0)
		return OK;
	report_grid_init(&grid);
	report_grid_column(&grid, "COLLECTIVE", TABLE_LEFT, 0, 0);
	report_grid_column(&grid, "SIZE", TABLE_RIGHT, 0, 2);
	report_grid_column(&grid, "TIME", TABLE_RIGHT, 0, 3);
	report_grid_column(&grid, "BUSBW GB/s", TABLE_RIGHT, 0, 0);
	report_grid_column(&grid, "EXPECTED GB/s", TABLE_RIGHT, 0, 1);
	report_grid_column(&grid, "OF EXPECTED", TABLE_RIGHT, 0, 1);
	for (size_t i = 0; i < health->collective_count; i++) {
		const struct health_collective *one = &health->collectives[i];
		char text[NUMBER_TEXT], units[UNITS_TEXT];

		report_grid_cell(&grid, op_function_name(one->function));
		report_grid_cell(&grid, units_bytes(units, one->bytes));
		report_grid_cell(&grid, bench_duration(units, one->time_ns));
		report_grid_cell(&grid, health_number(text, one->busbw));
		report_grid_cell(&grid, health_number(text, one->expected));
		report_grid_cell(&grid, percent_text(text, one->busbw, one->expected));
	}
	sink_byte(sink, '\n');
	status = report_grid_write(&grid, sink, width, NULL);
	report_grid_release(&grid);
	return status;
}

/* The largest AllReduce was measured before and after the pairs: shows a slowdown. */
static enum status write_before_and_after(struct sink *sink, const struct bench_run *run)
{
	const struct bench_cell *first = NULL, *last = NULL;
	struct bench_figures before, after;
	char a[NUMBER_TEXT], b[NUMBER_TEXT], size[UNITS_TEXT];
	enum status status;

	for (size_t i = 0; i < run->cell_count; i++) {
		const struct bench_cell *cell = &run->cells[i];

		if (cell->function != OP_ALL_REDUCE || cell->calls == 0)
			continue;
		if (first == NULL || cell->bytes > first->bytes)
			first = cell;
		if (first->bytes == cell->bytes)
			last = cell;
	}
	if (first == NULL || last == first)
		return OK;
	status = bench_cell_figures(first, BENCH_OVER_MEAN, &before);
	if (status == OK)
		status = bench_cell_figures(last, BENCH_OVER_MEAN, &after);
	if (status == OK && bench_busbw(first, before.p50) > 0 && bench_busbw(last, after.p50) > 0)
		sink_format(sink,
			    "\nAllReduce of %s: busbw %s GB/s at the start, %s GB/s at the end\n",
			    units_bytes(size, first->bytes),
			    health_number(a, bench_busbw(first, before.p50)),
			    health_number(b, bench_busbw(last, after.p50)));
	return status;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* Relative to the median of their kind: a link between nodes is not a slow link inside one. */
static double pair_share(const struct health *health, const struct health_pair *pair)
{
	double median = health->kinds[pair->link].median;

	return pair->bandwidth > 0 && median > 0 ? pair->bandwidth / median : INFINITY;
}

static void add_pair(struct report_grid *grid, const struct health *health,
		     const struct bench_run *run, const struct health_pair *pair)
{
	char text[NUMBER_TEXT], time[UNITS_TEXT], who[HEALTH_RANK_WORDS];

	report_grid_cell(grid, health_rank_words(who, run, pair->first));
	report_grid_cell(grid, health_rank_words(who, run, pair->second));
	report_grid_cell(grid, health_link_name(pair->link));
	report_grid_cellf(grid, "%s%s", health_number(text, pair->bandwidth),
			  pair->is_slow ? "*" : "");
	report_grid_cell(grid,
			 percent_text(text, pair->bandwidth, health->kinds[pair->link].median));
	report_grid_cellf(grid, "%s%s", bench_duration(time, pair->latency_ns),
			  pair->is_late ? "*" : "");
}

/* A few of thousands: repeatedly selects the slowest not yet shown. */
static enum status write_slowest(struct sink *sink, const struct health *health,
				 const struct bench_run *run, unsigned int width)
{
	size_t shown[HEALTH_SLOWEST], count = 0;
	struct report_grid grid;
	enum status status;

	report_grid_init(&grid);
	report_grid_column(&grid, "SLOWEST PAIRS", TABLE_LEFT, 0, 0);
	report_grid_column(&grid, "AND", TABLE_LEFT, 0, 0);
	report_grid_column(&grid, "LINK", TABLE_LEFT, 0, 4);
	report_grid_column(&grid, "GB/s", TABLE_RIGHT, 0, 0);
	report_grid_column(&grid, "OF MEDIAN", TABLE_RIGHT, 0, 2);
	report_grid_column(&grid, "LATENCY", TABLE_RIGHT, 0, 3);
	while (count < HEALTH_SLOWEST) {
		size_t slowest = SIZE_MAX;

		for (size_t i = 0; i < health->pair_count; i++) {
			bool is_shown = false;

			for (size_t s = 0; s < count; s++)
				is_shown |= shown[s] == i;
			if (is_shown || isinf(pair_share(health, &health->pairs[i])))
				continue;
			if (slowest == SIZE_MAX ||
			    pair_share(health, &health->pairs[i]) <
				    pair_share(health, &health->pairs[slowest]))
				slowest = i;
		}
		if (slowest == SIZE_MAX)
			break;
		shown[count++] = slowest;
		add_pair(&grid, health, run, &health->pairs[slowest]);
	}
	if (count > 0)
		sink_byte(sink, '\n');
	status = report_grid_write(&grid, sink, width, NULL);
	report_grid_release(&grid);
	return status;
}

static void fill_matrix(struct report_grid *grid, const struct health *health, int32_t nranks)
{
	const struct health_pair *at[HEALTH_MATRIX_RANKS][HEALTH_MATRIX_RANKS] = { 0 };

	for (size_t i = 0; i < health->pair_count; i++) {
		const struct health_pair *pair = &health->pairs[i];

		if (pair->first >= 0 && pair->first < nranks && pair->second >= 0 &&
		    pair->second < nranks)
			at[pair->first][pair->second] = at[pair->second][pair->first] = pair;
	}
	for (int32_t row = 0; row < nranks; row++) {
		report_grid_cellf(grid, "%d", (int)row);
		for (int32_t column = 0; column < nranks; column++) {
			const struct health_pair *pair = at[row][column];
			char text[NUMBER_TEXT];

			if (row == column || pair == NULL)
				report_grid_cell(grid, row == column ? "." : "?");
			else
				report_grid_cellf(grid, "%s%s",
						  health_number(text, pair->bandwidth),
						  pair->is_slow ? "*" : "");
		}
	}
}

static enum status write_matrix(struct sink *sink, const struct health *health, int32_t nranks,
				unsigned int width)
{
	char titles[HEALTH_MATRIX_RANKS][NUMBER_TEXT];
	struct report_grid grid;
	enum status status;

	if (nranks < 2 || health->pair_count == 0)
		return OK;
	if (nranks > HEALTH_MATRIX_RANKS) {
		sink_format(sink,
			    "\n"
			    "(all %zu pairs are in the JSON; the matrix is only shown for up to %d "
			    "ranks)\n",
			    health->pair_count, HEALTH_MATRIX_RANKS);
		return OK;
	}
	report_grid_init(&grid);
	report_grid_column(&grid, "RANK", TABLE_RIGHT, 0, 0);
	for (int32_t i = 0; i < nranks; i++) {
		text_format(titles[i], sizeof(titles[i]), "%d", (int)i);
		report_grid_column(&grid, titles[i], TABLE_RIGHT, 0, (unsigned int)i);
	}
	fill_matrix(&grid, health, nranks);
	sink_text(sink, "\n"
			"GB/s of each pair per direction, both directions at once (* slow, ? not "
			"measured)\n");
	status = report_grid_write(&grid, sink, width, NULL);
	report_grid_release(&grid);
	return status;
}

/* ---- what is not known ----------------------------------------------------------------------- */

static void write_unknown(struct sink *sink, const struct health *health,
			  const struct bench_run *run, unsigned int width)
{
	if (health->reason_count > 0)
		sink_text(sink, "\nNOT JUDGED\n");
	for (size_t i = 0; i < health->reason_count; i++)
		table_wrap(sink, health->reasons[i], "- ", 2, width);
	if (run->note_count > 0)
		sink_text(sink, "\nNOTES\n");
	for (size_t i = 0; i < run->note_count; i++)
		table_wrap(sink, run->notes[i], "- ", 2, width);
	if (run->notes_lost > 0)
		sink_format(sink, "- and %zu more notes\n", run->notes_lost);
}

enum status health_text(struct sink *sink, const struct health *health, const struct bench_run *run,
			const struct health_text_options *options)
{
	unsigned int width = options->width;
	enum status status;

	sink_format(sink, "%s\n", health->sentence);
	if (options->is_quiet)
		return sink->status;
	write_who(sink, run, width);
	write_findings(sink, health, width);
	status = write_kinds(sink, health, width);
	if (status == OK)
		status = write_collectives(sink, health, width);
	if (status == OK)
		status = write_before_and_after(sink, run);
	if (status == OK)
		status = write_slowest(sink, health, run, width);
	if (status == OK)
		status = write_matrix(sink, health, run->nranks, width);
	write_unknown(sink, health, run, width);
	return status == OK ? sink->status : status;
}

static void put_findings(struct json *json, const struct health *health)
{
	json_put_array(json, "findings");
	for (size_t i = 0; i < health->finding_count; i++) {
		const struct health_finding *one = &health->findings[i];
		bool has_link = one->kind != HEALTH_WRONG_RESULTS &&
				one->kind != HEALTH_SLOW_COLLECTIVE &&
				one->kind != HEALTH_GOT_SLOWER;

		json_object(json);
		json_put_string(json, "kind", health_finding_name(one->kind));
		json_put_string(json, "confidence", health_confidence_name(one->confidence));
		json_put_string(json, "link", has_link ? health_link_key(one->link) : NULL);
		json_put_string(json, "function",
				one->function != 0 ? op_function_name(one->function) : NULL);
		json_put_natural_or_null(json, "rank", one->rank);
		json_put_natural_or_null(json, "peer", one->peer);
		json_put_natural_or_null(json, "node", one->node);
		json_put_double(json, "value", one->value);
		bench_json_known(json, "usual", one->usual);
		bench_json_known(json, "ratio", one->ratio);
		json_put_string(json, "text", one->text);
		json_put_string(json, "advice", one->advice[0] != '\0' ? one->advice : NULL);
		json_end(json);
	}
	json_end(json);
	json_put_unsigned(json, "findings_left_out", health->findings_lost);
}

static void put_pair_of(struct json *json, const char *key, const struct health *health,
			size_t index)
{
	if (index >= health->pair_count) {
		json_put_null(json, key);
		return;
	}
	json_put_array(json, key);
	json_signed(json, health->pairs[index].first);
	json_signed(json, health->pairs[index].second);
	json_end(json);
}

static void put_links(struct json *json, const struct health *health)
{
	json_put_array(json, "links");
	for (unsigned int link = 0; link < HEALTH_LINKS; link++) {
		const struct health_kind *kind = &health->kinds[link];

		if (kind->pairs == 0 && kind->latency_pairs == 0)
			continue;
		json_object(json);
		json_put_string(json, "link", health_link_key((enum health_link)link));
		json_put_unsigned(json, "pairs", kind->pairs);
		bench_json_known(json, "median_gbs", kind->median);
		bench_json_known(json, "least_gbs", kind->least);
		bench_json_known(json, "most_gbs", kind->most);
		json_put_double(json, "spread_gbs", kind->spread);
		bench_json_known(json, "expected_gbs", kind->expected);
		put_pair_of(json, "slowest", health, kind->slowest);
		json_put_unsigned(json, "slow_pairs", kind->slow_pairs);
		json_put_unsigned(json, "latency_pairs", kind->latency_pairs);
		bench_json_known(json, "latency_median_ns", kind->latency_median_ns);
		json_put_double(json, "latency_spread_ns", kind->latency_spread_ns);
		put_pair_of(json, "latest", health, kind->latest);
		json_put_unsigned(json, "late_pairs", kind->late_count);
		json_end(json);
	}
	json_end(json);
}

static void put_collectives(struct json *json, const struct health *health)
{
	json_put_array(json, "collectives");
	for (size_t i = 0; i < health->collective_count; i++) {
		const struct health_collective *one = &health->collectives[i];

		json_object(json);
		json_put_string(json, "function", op_function_name(one->function));
		json_put_unsigned(json, "bytes", one->bytes);
		bench_json_known(json, "time_ns", one->time_ns);
		bench_json_known(json, "busbw_gbs", one->busbw);
		bench_json_known(json, "expected_gbs", one->expected);
		json_put_bool(json, "is_slow", one->is_slow);
		json_end(json);
	}
	json_end(json);
}

static void put_pairs(struct json *json, const struct health *health)
{
	json_put_unsigned(json, "pairs_all", health->pairs_all);
	json_put_array(json, "pairs");
	for (size_t i = 0; i < health->pair_count; i++) {
		const struct health_pair *pair = &health->pairs[i];

		json_object(json);
		json_put_signed(json, "first", pair->first);
		json_put_signed(json, "second", pair->second);
		json_put_string(json, "link", health_link_key(pair->link));
		bench_json_known(json, "bandwidth_gbs", pair->bandwidth);
		json_put_unsigned(json, "bytes", pair->bytes);
		bench_json_known(json, "latency_ns", pair->latency_ns);
		json_put_unsigned(json, "latency_bytes", pair->latency_bytes);
		json_put_bool(json, "is_slow", pair->is_slow);
		json_put_bool(json, "is_late", pair->is_late);
		json_end(json);
	}
	json_end(json);
}

enum status health_json(struct sink *sink, const struct health *health, const struct bench_run *run)
{
	enum status status;
	struct json json;

	json_init(&json, sink);
	json_object(&json);
	json_put_string(&json, "format", "ringside-health");
	json_put_unsigned(&json, "version", 1);
	json_put_string(&json, "verdict", health_verdict_name(health->verdict));
	json_put_string(&json, "sentence", health->sentence);
	json_put_signed(&json, "exit_code", health->exit_code);
	json_put_bool(&json, "is_checked", health->is_checked);
	put_findings(&json, health);
	put_links(&json, health);
	put_collectives(&json, health);
	put_pairs(&json, health);
	json_put_array(&json, "not_judged");
	for (size_t i = 0; i < health->reason_count; i++)
		json_string(&json, health->reasons[i]);
	json_end(&json);
	json_key(&json, "run");
	status = bench_json_put(&json, run);
	json_end(&json);
	json_line(&json);
	return status != OK ? status : json_status(&json);
}
