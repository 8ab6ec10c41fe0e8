/*
 * From slow pairs to what they have in common. A pair that is slow by itself is a link; when all
 * pairs of a rank are slow it is the rank, its GPU or its NIC; when all pairs of all ranks of a
 * node are, it is the node. What is explained by the larger is not told again.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/stats.h"
#include "bench/link_health_parts.h"

enum { RANK_PAIRS_LEAST = 2 }; /* one pair alone does not tell which end it is */

/* Below this share of the usual, and so far outside, nothing is left to doubt. */
#define CERTAIN_SHARE 0.6
#define CERTAIN_DEVIATIONS 8.0
#define LATE_LEAST_NS 1000.0

/* One look: bandwidth or latency of one kind of link. */
struct look {
	struct health_scene *scene;
	enum health_link link;
	bool is_latency;
	/* Of each rank and node: pairs, and bad ones. */
	uint32_t *rank_pairs;
	uint32_t *rank_bad;
	uint32_t *node_pairs;
	uint32_t *node_bad;
	uint32_t *node_ranks; /* that have pairs of this kind */
	bool *is_rank_told;
	bool *is_node_told;
	double *room; /* for medians: as many as there are pairs */
};

static bool is_in(const struct look *look, const struct health_pair *pair)
{
	return pair->link == look->link &&
	       (look->is_latency ? pair->latency_ns > 0 : pair->bandwidth > 0);
}

/* A slow link is late, too: once is enough. */
static bool is_bad(const struct look *look, const struct health_pair *pair)
{
	return look->is_latency ? pair->is_late && !pair->is_slow : pair->is_slow;
}

static double value_of(const struct look *look, const struct health_pair *pair)
{
	return look->is_latency ? pair->latency_ns : pair->bandwidth;
}

static int32_t node_of(const struct look *look, int32_t rank)
{
	int32_t node = look->scene->run->ranks[rank].node;

	return node >= 0 && node < look->scene->run->nranks ? node : 0;
}

/* ---- which pairs ----------------------------------------------------------------------------- */

static bool is_slow(const struct health_scene *scene, const struct health_kind *kind,
		    double bandwidth)
{
	bool is_outlier = kind->pairs >= HEALTH_PAIRS_LEAST &&
			  bandwidth < scene->slow * kind->median &&
			  kind->median - bandwidth > HEALTH_DEVIATIONS * kind->spread;
	/* Where the whole kind is below, that is told and not every pair. */
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

static void mark(struct health_scene *scene)
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

static void count(struct look *look)
{
	const struct health *health = look->scene->health;
	int32_t ranks = look->scene->run->nranks;

	for (size_t i = 0; i < health->pair_count; i++) {
		const struct health_pair *pair = &health->pairs[i];
		const int32_t ends[2] = { pair->first, pair->second };
		bool has_both = node_of(look, ends[0]) == node_of(look, ends[1]);

		if (!is_in(look, pair))
			continue;
		for (int end = 0; end < 2; end++) {
			look->rank_pairs[ends[end]]++;
			look->rank_bad[ends[end]] += is_bad(look, pair);
			if (end == 1 && has_both)
				continue;
			look->node_pairs[node_of(look, ends[end])]++;
			look->node_bad[node_of(look, ends[end])] += is_bad(look, pair);
		}
	}
	for (int32_t rank = 0; rank < ranks; rank++)
		look->node_ranks[node_of(look, rank)] += look->rank_pairs[rank] > 0;
}

/* Median over the pairs of a rank or a node. */
static double median_over(const struct look *look, int32_t rank, int32_t node)
{
	const struct health *health = look->scene->health;
	size_t values = 0;

	for (size_t i = 0; i < health->pair_count; i++) {
		const struct health_pair *pair = &health->pairs[i];
		bool is_there = rank >= 0 ? pair->first == rank || pair->second == rank
					  : node_of(look, pair->first) == node ||
						    node_of(look, pair->second) == node;

		if (is_there && is_in(look, pair))
			look->room[values++] = value_of(look, pair);
	}
	return stats_median(look->room, values);
}

/* ---- telling --------------------------------------------------------------------------------- */

/* Too few to compare with each other: what was expected stands for the usual. */
static bool is_among_few(const struct look *look)
{
	const struct health_kind *kind = &look->scene->health->kinds[look->link];

	return !look->is_latency && kind->pairs < HEALTH_PAIRS_LEAST && kind->expected > 0;
}

static double usual_of(const struct look *look)
{
	const struct health_kind *kind = &look->scene->health->kinds[look->link];

	if (look->is_latency)
		return kind->latency_median_ns;
	return is_among_few(look) ? kind->expected : kind->median;
}

static enum health_confidence confidence_of(const struct look *look, double value)
{
	const struct health_kind *kind = &look->scene->health->kinds[look->link];
	double usual = usual_of(look), spread = kind->spread;
	double share = look->is_latency ? usual / value : value / usual;

	if (look->is_latency)
		spread = kind->latency_spread_ns;
	return share < CERTAIN_SHARE && fabs(usual - value) > CERTAIN_DEVIATIONS * spread
		       ? HEALTH_CERTAIN
		       : HEALTH_LIKELY;
}

static struct health_finding *finding_of(const struct look *look, enum health_finding_kind kind,
					 double value)
{
	struct health_finding *finding =
		health_find_add(look->scene->health, kind, confidence_of(look, value));

	if (finding) {
		finding->link = look->link;
		finding->value = value;
		finding->usual = usual_of(look);
		finding->ratio = finding->usual > 0 ? value / finding->usual : 0;
	}
	return finding;
}

static void say_values(struct health_finding *finding, const struct look *look, const char *who)
{
	const char *link = health_link_name(look->link);
	char usual[80];

	if (look->is_latency) {
		health_say(finding,
			   "%s: a small transfer takes %.1f us, others %s %.1f us (%.1f times)",
			   who, finding->value / 1000, link, finding->usual / 1000, finding->ratio);
		return;
	}
	if (is_among_few(look))
		snprintf(usual, sizeof(usual), "%.2f GB/s expected", finding->usual);
	else
		snprintf(usual, sizeof(usual), "others %s %.2f GB/s", link, finding->usual);
	health_say(finding, "%s: %.2f GB/s, %s (%.0f %%)", who, finding->value, usual,
		   finding->ratio * 100);
}

static const char *advice_of(enum health_finding_kind kind, enum health_link link)
{
	if (link == HEALTH_SHARED_GPU)
		return "look at what else runs on this machine; ranks on one GPU talk through "
		       "sockets";
	if (kind == HEALTH_SLOW_NODE)
		return link == HEALTH_BETWEEN ? "look at the node's network: switch ports, link "
						"speed, error counters"
					      : "look at the node's links between GPUs: nvidia-smi "
						"nvlink -s, topo -m";
	if (kind == HEALTH_SLOW_RANK || kind == HEALTH_LATE_RANK)
		return link == HEALTH_BETWEEN ? "look at this rank's NIC (speed, error counters, "
						"GPUDirect) and GPU "
						"(clocks, other work)"
					      : "look at this GPU: clocks, PCIe width, NVLink "
						"errors (nvidia-smi -q), "
						"other work";
	return link == HEALTH_BETWEEN
		       ? "look at cables and switch ports on the way between the two"
		       : "look at the link between the two: nvidia-smi topo -m, nvlink -s";
}

static void tell_nodes(struct look *look)
{
	for (int32_t node = 0; node < look->scene->run->nranks; node++) {
		struct health_finding *finding;
		char who[HEALTH_RANK_TEXT];
		int32_t rank = 0;

		if (look->is_latency || look->node_ranks[node] < 2 ||
		    look->node_pairs[node] < RANK_PAIRS_LEAST ||
		    look->node_bad[node] < look->node_pairs[node])
			continue;
		while (node_of(look, rank) != node)
			rank++;
		look->is_node_told[node] = true;
		finding = finding_of(look, HEALTH_SLOW_NODE, median_over(look, -1, node));
		if (finding == NULL)
			continue;
		finding->node = node;
		snprintf(who, sizeof(who), "node %d (%.63s), all links of all its ranks", (int)node,
			 look->scene->run->ranks[rank].host);
		say_values(finding, look, who);
		health_advise(finding, advice_of(HEALTH_SLOW_NODE, look->link));
	}
}

static void tell_ranks(struct look *look)
{
	enum health_finding_kind kind = look->is_latency ? HEALTH_LATE_RANK : HEALTH_SLOW_RANK;

	for (int32_t rank = 0; rank < look->scene->run->nranks; rank++) {
		char name[HEALTH_RANK_TEXT], who[HEALTH_RANK_TEXT + 32];
		struct health_finding *finding;

		if (look->is_node_told[node_of(look, rank)] ||
		    look->rank_pairs[rank] < RANK_PAIRS_LEAST ||
		    look->rank_bad[rank] < look->rank_pairs[rank])
			continue;
		look->is_rank_told[rank] = true;
		finding = finding_of(look, kind, median_over(look, rank, -1));
		if (finding == NULL)
			continue;
		finding->rank = rank;
		finding->node = look->scene->run->ranks[rank].node;
		health_rank_text(name, look->scene->run, rank);
		snprintf(who, sizeof(who), "%s, all its links %s", name,
			 health_link_name(look->link));
		say_values(finding, look, who);
		health_advise(finding, advice_of(kind, look->link));
	}
}

static bool is_explained(const struct look *look, const struct health_pair *pair)
{
	return look->is_rank_told[pair->first] || look->is_rank_told[pair->second] ||
	       look->is_node_told[node_of(look, pair->first)] ||
	       look->is_node_told[node_of(look, pair->second)];
}

static void tell_pairs(struct look *look)
{
	enum health_finding_kind kind = look->is_latency ? HEALTH_LATE_PAIR : HEALTH_SLOW_PAIR;
	const struct health *health = look->scene->health;

	for (size_t i = 0; i < health->pair_count; i++) {
		const struct health_pair *pair = &health->pairs[i];
		char one[HEALTH_RANK_TEXT], other[HEALTH_RANK_TEXT], who[2 * HEALTH_RANK_TEXT + 32];
		struct health_finding *finding;

		if (!is_in(look, pair) || !is_bad(look, pair) || is_explained(look, pair))
			continue;
		finding = finding_of(look, kind, value_of(look, pair));
		if (finding == NULL)
			continue;
		finding->rank = pair->first;
		finding->peer = pair->second;
		snprintf(who, sizeof(who), "the link between %s and %s",
			 health_rank_text(one, look->scene->run, pair->first),
			 health_rank_text(other, look->scene->run, pair->second));
		say_values(finding, look, who);
		health_advise(finding, advice_of(kind, look->link));
	}
}

/* ---- one kind of link ------------------------------------------------------------------------ */

static void look_release(struct look *look)
{
	free(look->rank_pairs);
	free(look->is_rank_told);
	free(look->room);
}

static enum status look_init(struct look *look)
{
	size_t ranks = (size_t)look->scene->run->nranks;

	look->rank_pairs = calloc(ranks * 5, sizeof(*look->rank_pairs));
	look->is_rank_told = calloc(ranks * 2, sizeof(*look->is_rank_told));
	look->room = calloc(look->scene->health->pair_count + 1, sizeof(*look->room));
	if (!look->rank_pairs || !look->is_rank_told || !look->room)
		return ERR_NO_SPACE;
	look->rank_bad = look->rank_pairs + ranks;
	look->node_pairs = look->rank_bad + ranks;
	look->node_bad = look->node_pairs + ranks;
	look->node_ranks = look->node_bad + ranks;
	look->is_node_told = look->is_rank_told + ranks;
	return OK;
}

static enum status judge(struct health_scene *scene, enum health_link link, bool is_latency)
{
	struct look look = { .scene = scene, .link = link, .is_latency = is_latency };
	enum status status = look_init(&look);

	if (status == OK) {
		count(&look);
		tell_nodes(&look);
		tell_ranks(&look);
		tell_pairs(&look);
	}
	look_release(&look);
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
			      "%zu %s %s: too few to compare with each other, and no bandwidth was "
			      "given to compare with",
			      kind->pairs, kind->pairs == 1 ? "pair" : "pairs",
			      health_link_name(link));
	if (kind->expected <= 0 || kind->median >= scene->slow * kind->expected)
		return;
	finding = health_find_add(scene->health, HEALTH_BELOW_EXPECTED, HEALTH_CERTAIN);
	if (finding == NULL)
		return;
	finding->link = link;
	finding->value = kind->median;
	finding->usual = kind->expected;
	finding->ratio = kind->median / kind->expected;
	health_say(finding,
		   "links %s: %.2f GB/s in the median of %zu %s, %.2f GB/s expected (%.0f %%)",
		   health_link_name(link), kind->median, kind->pairs,
		   kind->pairs == 1 ? "pair" : "pairs", kind->expected, finding->ratio * 100);
	health_advise(finding,
		      link == HEALTH_BETWEEN
			      ? "all of them: look at what they share: NIC driver, GPUDirect, "
				"NCCL's choice of network (NCCL_DEBUG=INFO)"
			      : "all of them: look at what they share: topology, NVLink state, "
				"NCCL's transport (NCCL_DEBUG=INFO)");
}

enum status health_judge_pairs(struct health_scene *scene)
{
	enum status status = OK;

	mark(scene);
	for (int link = 0; link < HEALTH_LINKS && status == OK; link++) {
		judge_kind(scene, (enum health_link)link);
		status = judge(scene, (enum health_link)link, false);
		if (status == OK)
			status = judge(scene, (enum health_link)link, true);
	}
	return status;
}
