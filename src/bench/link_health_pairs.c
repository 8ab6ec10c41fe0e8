/* Transfers between pairs: how fast each was, and how fast its kind of link is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "bench/bench_stats.h"
#include "bench/link_health_parts.h"
#include "common/op_layout.h"

#define DEVIATION 1.4826  /* of a normal distribution, in median absolute deviations */
#define SPREAD_LEAST 0.01 /* of the median: nothing is measured better than that */

enum health_link health_link_of(const struct bench_run *run, int32_t first, int32_t second)
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
struct shot {
	int32_t first;
	int32_t second;
	uint64_t bytes;
	double time_ns;
	size_t calls;
};

static int compare_shots(const void *left, const void *right)
{
	const struct shot *a = left, *b = right;

	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	if (a->second != b->second)
		return a->second < b->second ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static bool has_pairs(const struct bench_run *run, const struct bench_cell *cell)
{
	return cell->function == OP_SEND_RECV && cell->peers && cell->calls_of && cell->calls > 0 &&
	       cell->nranks <= run->nranks && cell->bytes > 0;
}

static double slower(const struct bench_cell *cell, int32_t a, int32_t b, uint32_t call)
{
	return fmax((double)bench_cell_call(cell, a, call)->gpu_ns,
		    (double)bench_cell_call(cell, b, call)->gpu_ns);
}

/* The median over calls of the slower of the two. False: not timed. */
static bool take_shot(const struct bench_cell *cell, int32_t rank, double *times, struct shot *shot)
{
	int32_t peer = cell->peers[rank];

	if (peer < 0 || peer >= cell->nranks || peer == rank)
		return false;
	if (cell->peers[peer] == rank && peer < rank)
		return false; /* it was taken from the other end */
	shot->first = rank < peer ? rank : peer;
	shot->second = rank < peer ? peer : rank;
	shot->bytes = cell->bytes;
	shot->calls = 0;
	for (uint32_t call = 0; call < cell->calls; call++) {
		times[shot->calls] = slower(cell, rank, peer, call);
		shot->calls += times[shot->calls] > 0;
	}
	shot->time_ns = bench_figures_of(times, shot->calls).p50;
	return shot->calls > 0;
}

static size_t shots_of(const struct bench_run *run, struct shot *shots, double *times)
{
	size_t count = 0;

	for (size_t c = 0; c < run->cell_count; c++) {
		const struct bench_cell *cell = &run->cells[c];

		for (int32_t rank = 0; has_pairs(run, cell) && rank < cell->nranks; rank++)
			count += take_shot(cell, rank, times, &shots[count]);
	}
	return count;
}

/* Shots of one pair, smallest first, of equal sizes the fastest first: it is what the link can
 * do. */
static void fill_pair(const struct bench_run *run, struct health_pair *pair,
		      const struct shot *shots, size_t count)
{
	const struct shot *small = &shots[0], *large = &shots[count - 1];

	while (large > shots && large[-1].bytes == large->bytes)
		large--;
	pair->first = shots->first;
	pair->second = shots->second;
	pair->link = health_link_of(run, pair->first, pair->second);
	for (size_t i = 0; i < count; i++)
		pair->calls += shots[i].calls;
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
			      struct shot *shots, size_t count)
{
	qsort(shots, count, sizeof(*shots), compare_shots);
	health->pairs = calloc(count + 1, sizeof(*health->pairs));
	if (health->pairs == NULL)
		return ERR_NO_SPACE;
	for (size_t at = 0, next; at < count; at = next) {
		for (next = at + 1; next < count && shots[next].first == shots[at].first &&
				    shots[next].second == shots[at].second;)
			next++;
		fill_pair(run, &health->pairs[health->pair_count++], shots + at, next - at);
	}
	return OK;
}

/* ---- kinds of links -------------------------------------------------------------------------- */

/*
 * Middle and spread of the better half (`sign` 1: more is better, -1: less is). Bad values lie on
 * one side only, so that up to half of them do not hide each other.
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

enum status health_measure(struct health_scene *scene)
{
	const struct bench_run *run = scene->run;
	struct health *health = scene->health;
	size_t room = 1, calls = 1;
	struct shot *shots;
	double *values;
	enum status status = ERR_NO_SPACE;

	for (size_t c = 0; c < run->cell_count; c++)
		if (has_pairs(run, &run->cells[c])) {
			room += (size_t)run->cells[c].nranks;
			calls = run->cells[c].calls > calls ? run->cells[c].calls : calls;
		}
	shots = calloc(room, sizeof(*shots));
	values = calloc(room > calls ? room : calls, sizeof(*values));
	if (shots && values)
		status = fill_pairs(health, run, shots, shots_of(run, shots, values));
	for (int link = 0; link < HEALTH_LINKS && status == OK; link++)
		fill_kind(health, (enum health_link)link, values);
	free(shots);
	free(values);
	return status;
}
