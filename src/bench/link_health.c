#include "bench/link_health.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/link_health_parts.h"
#include "common/op_layout.h"

/* ---- names ----------------------------------------------------------------------------------- */

const char *health_link_name(enum health_link link)
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

const char *health_verdict_name(enum health_verdict verdict)
{
	static const char *const names[] = { "healthy", "slow", "wrong results", "not judged" };

	return (unsigned int)verdict < 4 ? names[verdict] : "?";
}

const char *health_finding_name(enum health_finding_kind kind)
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

const char *health_confidence_name(enum health_confidence confidence)
{
	return confidence == HEALTH_CERTAIN ? "certain" : "likely";
}

const char *health_rank_text(char to[static HEALTH_RANK_TEXT], const struct bench_run *run,
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

struct health_finding *health_find_add(struct health *health, enum health_finding_kind kind,
				       enum health_confidence confidence)
{
	struct health_finding *finding;

	if (health->finding_count == HEALTH_FINDINGS_MAX) {
		health->findings_lost++;
		return NULL;
	}
	finding = &health->findings[health->finding_count++];
	memset(finding, 0, sizeof(*finding));
	finding->kind = kind;
	finding->confidence = confidence;
	finding->rank = finding->peer = finding->node = -1;
	return finding;
}

void health_say(struct health_finding *finding, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(finding->text, sizeof(finding->text), format, arguments);
	va_end(arguments);
}

void health_advise(struct health_finding *finding, const char *advice)
{
	snprintf(finding->advice, sizeof(finding->advice), "%s", advice);
}

void health_reason(struct health *health, const char *format, ...)
{
	va_list arguments;

	if (health->reason_count == HEALTH_REASONS_MAX)
		return;
	va_start(arguments, format);
	vsnprintf(health->reasons[health->reason_count++], sizeof(health->reasons[0]), format,
		  arguments);
	va_end(arguments);
}

/* Worst kind first; of a kind what is farthest from usual. */
static int compare_findings(const void *left, const void *right)
{
	const struct health_finding *a = left, *b = right;
	double far_a = a->ratio > 0 ? fabs(log(a->ratio)) : 0;
	double far_b = b->ratio > 0 ? fabs(log(b->ratio)) : 0;

	if (a->kind != b->kind)
		return (int)a->kind - (int)b->kind;
	if (far_a != far_b)
		return far_a > far_b ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return (a->peer > b->peer) - (a->peer < b->peer);
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

/* "28 pairs inside a node carry 41.20 GB/s, the slowest 39.80 GB/s; ..." */
static void say_healthy(struct health *health)
{
	size_t size = sizeof(health->sentence), at;

	at = (size_t)snprintf(health->sentence, size, "healthy:");
	for (int link = 0; link < HEALTH_LINKS && at < size; link++) {
		const struct health_kind *kind = &health->kinds[link];

		if (is_kind_judged(kind))
			at += (size_t)snprintf(
				health->sentence + at, size - at,
				" %zu %s %s %s %.2f GB/s in the median, the slowest %.2f;",
				kind->pairs, kind->pairs == 1 ? "pair" : "pairs",
				health_link_name((enum health_link)link),
				kind->pairs == 1 ? "carries" : "carry", kind->median, kind->least);
	}
	for (size_t i = 0; i < health->collective_count && at < size; i++)
		if (health->collectives[i].expected > 0) {
			at += (size_t)snprintf(health->sentence + at, size - at,
					       " the whole job is as fast as expected;");
			break;
		}
	if (at < size)
		snprintf(health->sentence + at, size - at, "%s",
			 health->is_checked ? " results are right" : " results were not checked");
}

static void say_findings(struct health *health)
{
	size_t more = health->finding_count - 1 + health->findings_lost;
	int at = snprintf(health->sentence, sizeof(health->sentence), "%s: %s",
			  health_verdict_name(health->verdict), health->findings[0].text);

	if (more > 0 && at > 0 && (size_t)at < sizeof(health->sentence))
		snprintf(health->sentence + at, sizeof(health->sentence) - (size_t)at,
			 "; and %zu more", more);
}

void health_conclude(struct health_scene *scene)
{
	struct health *health = scene->health;

	qsort(health->findings, health->finding_count, sizeof(*health->findings), compare_findings);
	if (health->finding_count > 0 && health->findings[0].kind == HEALTH_WRONG_RESULTS)
		health->verdict = HEALTH_IS_WRONG;
	else if (health->finding_count > 0)
		health->verdict = HEALTH_IS_SLOW;
	else
		health->verdict = is_anything_judged(health) ? HEALTH_OK : HEALTH_UNJUDGED;
	health->exit_code = health->verdict == HEALTH_OK || (health->verdict == HEALTH_UNJUDGED &&
							     scene->options->is_unjudged_fine)
				    ? 0
				    : 1;
	if (health->verdict == HEALTH_OK)
		say_healthy(health);
	else if (health->verdict == HEALTH_UNJUDGED)
		snprintf(health->sentence, sizeof(health->sentence), "not judged: %s",
			 health->reason_count ? health->reasons[0] : "nothing was measured");
	else
		say_findings(health);
}

/* ---- expectations ---------------------------------------------------------------------------- */

/* A table of measured transfers does not say over which link they went: it is taken where there
 * is but one kind here. */
static void expect(struct health_scene *scene)
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
		health_reason(health,
			      "the expectations do not say over which kind of link SendRecv "
			      "was measured");
}

/* ---- all of it ------------------------------------------------------------------------------- */

void health_release(struct health *health)
{
	free(health->pairs);
	memset(health, 0, sizeof(*health));
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
		expect(&scene);
		status = health_judge_pairs(&scene);
	}
	if (status == OK)
		status = health_judge_collectives(&scene);
	if (status != OK) {
		health_release(health);
		return status;
	}
	if (health->pair_count == 0)
		health_reason(health, run->nranks < 2 ? "one rank alone has no links"
						      : "no pairs were measured");
	health_conclude(&scene);
	return OK;
}
