/* Runs of synthetic machines whose times come from the formulas of the cost model, with noise. */
#ifndef COST_PLAY_H
#define COST_PLAY_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cost_model.h"
#include "common/op_layout.h"

/* Parameters of the synthetic machines: call, latency inside and between, ns per byte inside, between. */
static const double truth[COST_PARAMETERS] = { 8000, 2000, 9000, 1 / 300.0, 1 / 20.0 };

static uint64_t noise_state = 42;

static inline double uniform(void)
{
	uint64_t bits = noise_state += UINT64_C(0x9e3779b97f4a7c15);

	bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
	return ((double)((bits ^ bits >> 31) >> 11) + 0.5) / 9007199254740992.0;
}

static inline double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

static inline bool is_within(double got, double wanted, double share)
{
	if (fabs(got - wanted) <= share * fabs(wanted))
		return true;
	printf("#   got %.9g, wanted %.9g\n", got, wanted);
	return false;
}

/* ---- synthetic runs -------------------------------------------------------------------------- */

static inline void run_of(struct bench_run *run, int32_t ranks, int32_t nodes)
{
	bench_run_init(run);
	if (bench_run_set_ranks(run, ranks) != OK)
		abort();
	run->nodes = nodes;
	for (int32_t rank = 0; rank < ranks; rank++)
		run->ranks[rank].node = rank / ((ranks + nodes - 1) / nodes);
}

/* A cell of five calls made by the formula with these parameters, each off by about `noise`. */
static inline struct bench_cell *add_cell(struct bench_run *run, uint8_t function,
					  uint8_t algorithm, uint8_t protocol, uint64_t bytes,
					  const double *value, double noise)
{
	struct cost_group group = { .source = { 1, 1, 1, 1, 1 } };
	struct bench_cell like = { .function = function,
				   .datatype = OP_FLOAT32,
				   .mode = BENCH_BLOCKING,
				   .algorithm = algorithm,
				   .protocol = protocol,
				   .root = -1,
				   .nranks = run->nranks,
				   .bytes = bytes,
				   .calls = 5 };
	struct bench_cell *cell = bench_run_add_cell(run, &like);
	struct cost_shape shape = cost_shape_of(run, &like, 0);
	enum cost_algorithm way = cost_algorithm_of(algorithm);
	struct cost_work work;
	double time;

	memcpy(group.value, value, sizeof(group.value));
	if (way == COST_ANY)
		way = cost_is_in_nccl(function, COST_DIRECT) ? COST_DIRECT : COST_RING;
	if (!cell || !cost_work_of(function, way, &shape, bytes, &work) ||
	    !cost_time(&group, &work, &time, NULL))
		abort();
	for (uint32_t call = 0; call < cell->calls; call++) {
		uint64_t here = (uint64_t)(time * exp(noise * normal()));

		for (int32_t rank = 0; rank < run->nranks; rank++)
			cell->calls_of[(size_t)rank * cell->calls + call].gpu_ns = here;
	}
	return cell;
}

static inline void add_sizes(struct bench_run *run, uint8_t function, uint8_t algorithm,
			     uint8_t protocol, uint64_t least, uint64_t most, double noise)
{
	for (uint64_t bytes = least; bytes <= most; bytes *= 4)
		add_cell(run, function, algorithm, protocol, bytes, truth, noise);
}

static const struct cost_fit_options plain = { .over = BENCH_OVER_MEAN };

static inline bool has_note(const struct cost_model *model, const char *words)
{
	for (size_t i = 0; i < model->note_count; i++)
		if (strstr(model->notes[i], words))
			return true;
	for (size_t i = 0; i < model->note_count; i++)
		printf("#   note: %s\n", model->notes[i]);
	return false;
}

static inline const struct cost_group *group_of(const struct cost_model *model, uint8_t function,
						enum cost_algorithm algorithm, uint8_t protocol)
{
	for (size_t i = 0; i < model->group_count; i++)
		if (model->groups[i].function == function &&
		    model->groups[i].algorithm == algorithm &&
		    model->groups[i].protocol == protocol)
			return &model->groups[i];
	return NULL;
}

enum { SHAPES = 4 };
static const int32_t shapes[SHAPES][2] = { { 4, 1 }, { 8, 1 }, { 16, 2 }, { 32, 4 } };

static inline void shapes_of(struct bench_run runs[SHAPES],
			     const struct bench_run *pointers[SHAPES], uint8_t algorithm,
			     double noise)
{
	for (int i = 0; i < SHAPES; i++) {
		run_of(&runs[i], shapes[i][0], shapes[i][1]);
		add_sizes(&runs[i], OP_ALL_REDUCE, algorithm, OP_SIMPLE, 1024, 1 << 30, noise);
		pointers[i] = &runs[i];
	}
}

static inline void shapes_release(struct bench_run runs[SHAPES])
{
	for (int i = 0; i < SHAPES; i++)
		bench_run_release(&runs[i]);
}

#endif
