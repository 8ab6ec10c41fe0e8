#include "bench/cost_observe.h"

#include <stdlib.h>
#include <string.h>

#include "common/op_layout.h"

/* ---- where ----------------------------------------------------------------------------------- */

static int32_t node_of(const struct bench_run *run, int32_t rank)
{
	if (run->is_gpu_shared)
		return rank; /* a node each, as NCCL sees it */
	return run->ranks && rank < run->nranks ? run->ranks[rank].node : 0;
}

struct cost_shape cost_shape_of(const struct bench_run *run, const struct bench_cell *cell,
				int32_t rails)
{
	struct cost_shape shape = { .ranks = cell->nranks, .nodes = 1, .rails = rails };
	int32_t highest = 0;

	/* Nodes are numbered in the order of their first rank. */
	for (int32_t rank = 0; rank < cell->nranks; rank++)
		if (node_of(run, rank) > highest)
			highest = node_of(run, rank);
	shape.nodes = highest < cell->nranks ? highest + 1 : cell->nranks;
	return shape;
}

/* Ranks of the busiest node whose peer is on another one. -1: pairs are of both kinds; -2: no
 * memory. */
static int32_t ranks_leaving(const struct bench_run *run, const struct bench_cell *cell)
{
	int32_t *leaving = calloc((size_t)cell->nranks, sizeof(*leaving));
	int32_t most = 0;
	bool has_staying = false;

	if (leaving == NULL)
		return -2;
	for (int32_t rank = 0; rank < cell->nranks; rank++) {
		int32_t peer = cell->peers[rank], node = node_of(run, rank);

		if (peer < 0 || peer >= cell->nranks || node < 0 || node >= cell->nranks)
			continue;
		if (node_of(run, peer) == node)
			has_staying = true;
		else if (++leaving[node] > most)
			most = leaving[node];
	}
	free(leaving);
	return has_staying && most > 0 ? -1 : most;
}

/* ---- what ------------------------------------------------------------------------------------ */

static bool is_direct(uint8_t function)
{
	return cost_is_in_nccl(function, COST_DIRECT);
}

/* The algorithm that the cell ran with: forced, or as the recorder saw it, or the usual one. */
static void find_algorithm(struct cost_observed *observed, const struct bench_cell *cell)
{
	uint8_t algorithm = cell->chosen_algorithm ? cell->chosen_algorithm : cell->algorithm;

	observed->cell.protocol = cell->chosen_protocol ? cell->chosen_protocol : cell->protocol;
	if (is_direct(cell->function)) {
		observed->cell.algorithm = COST_DIRECT;
	} else if (algorithm != 0) {
		observed->cell.algorithm = cost_algorithm_of(algorithm);
	} else {
		observed->cell.algorithm = COST_RING;
		observed->is_guessed = true;
	}
}

static const char *why_not(const struct bench_cell *cell, const struct cost_observed *observed,
			   const struct cost_fit_options *options)
{
	if (options->mode != 0 && cell->mode != options->mode)
		return "another mode";
	if (cell->wrong != BENCH_UNCHECKED && cell->wrong != 0)
		return "wrong results";
	if (cell->nranks < 2)
		return "one rank alone";
	if (observed->cell.algorithm == COST_ANY)
		return "an algorithm that is not modelled";
	if (observed->cell.measured_ns <= 0)
		return "no time was taken";
	return NULL;
}

static const char *find_work(struct cost_observed *observed, const struct bench_run *run,
			     const struct bench_cell *cell, bool *is_out_of_memory)
{
	int32_t leaving;

	if (cell->function != OP_SEND_RECV || cell->peers == NULL)
		return cost_work_of(cell->function, observed->cell.algorithm, &observed->shape,
				    cell->bytes, &observed->work)
			       ? NULL
			       : "a function that is not modelled";
	leaving = ranks_leaving(run, cell);
	*is_out_of_memory = leaving == -2;
	if (leaving < 0)
		return "pairs over different kinds of links";
	return cost_work_of_pairs(&observed->shape, leaving, cell->bytes, &observed->work)
		       ? NULL
		       : "pairs that do not fit their nodes";
}

enum status cost_observe(struct cost_observed *observed, const struct bench_run *run,
			 const struct bench_cell *cell, const struct cost_fit_options *options)
{
	struct bench_figures figures;
	enum status status = bench_cell_figures(cell, options->over, &figures);
	bool is_out_of_memory = false;

	if (status != OK)
		return status;
	memset(observed, 0, sizeof(*observed));
	observed->group = SIZE_MAX;
	observed->function = cell->function;
	observed->bytes = cell->bytes;
	observed->shape = cost_shape_of(run, cell, options->rails);
	observed->cell.measured_ns = figures.p50;
	find_algorithm(observed, cell);
	observed->cell.why = why_not(cell, observed, options);
	if (observed->cell.why == NULL)
		observed->cell.why = find_work(observed, run, cell, &is_out_of_memory);
	observed->cell.is_used = observed->cell.why == NULL;
	return is_out_of_memory ? ERR_NO_SPACE : OK;
}
