/* The formulas of cost_model.h; docs/BENCH.md derives them. */
#include "bench/cost_model.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "common/text.h"

static const char *const algorithm_names[COST_ALGORITHMS] = {
	[COST_ANY] = "any",	  [COST_RING] = "ring",
	[COST_TREE] = "tree",	  [COST_DOUBLE_TREE] = "double-tree",
	[COST_DIRECT] = "direct",
};

const char *cost_algorithm_name(enum cost_algorithm algorithm)
{
	return (unsigned int)algorithm < COST_ALGORITHMS ? algorithm_names[algorithm] : "?";
}

const char *cost_link_name(enum cost_link link)
{
	return link == COST_INSIDE ? "inside" : "between";
}

enum cost_algorithm cost_algorithm_find(const char *name)
{
	for (unsigned int i = COST_RING; i < COST_ALGORITHMS; i++)
		if (strcmp(name, algorithm_names[i]) == 0)
			return (enum cost_algorithm)i;
	return COST_ANY;
}

enum cost_algorithm cost_algorithm_of(uint8_t op_algorithm)
{
	switch (op_algorithm) {
	case OP_RING:
		return COST_RING;
	case OP_TREE:
		return COST_DOUBLE_TREE;
	default:
		return COST_ANY;
	}
}

bool cost_is_in_nccl(uint8_t function, enum cost_algorithm algorithm)
{
	switch (function) {
	case OP_ALL_REDUCE:
		return algorithm == COST_RING || algorithm == COST_DOUBLE_TREE;
	case OP_ALL_GATHER:
	case OP_REDUCE_SCATTER:
	case OP_BROADCAST:
	case OP_REDUCE:
		return algorithm == COST_RING;
	case OP_SEND_RECV:
	case OP_ALL_TO_ALL:
	case OP_GATHER:
	case OP_SCATTER:
		return algorithm == COST_DIRECT;
	default:
		return false;
	}
}

/* The shape, in the variables of the formulas. */
struct scene {
	double ranks;
	double nodes;
	double local; /* ranks per node */
	double nics;  /* shared by its ranks */
	double bytes;
	double levels; /* of a tree over the nodes */
};

static bool scene_init(struct scene *scene, const struct cost_shape *shape, uint64_t bytes)
{
	if (shape->ranks < 1 || shape->nodes < 1 || shape->nodes > shape->ranks || shape->rails < 0)
		return false;
	scene->ranks = shape->ranks;
	scene->nodes = shape->nodes;
	scene->local = ceil(scene->ranks / scene->nodes);
	scene->nics = shape->rails > 0 ? fmin(scene->local, shape->rails) : scene->local;
	scene->bytes = (double)bytes;
	scene->levels = ceil(log2(scene->nodes));
	return true;
}

/* ---- pipelines ------------------------------------------------------------------------------- */

/* As many chunks as keep all hops busy, within the buffer size. */
static double chunk_bytes(double bytes, double hops)
{
	double chunk = bytes / (COST_CHUNKS_PER_HOP * hops);

	chunk = fmin(fmax(chunk, COST_CHUNK_LEAST), COST_CHUNK_MOST);
	return fmin(chunk, bytes);
}

/*
 * Every hop but one passes a chunk before the last hop has its first; that one is of the slower kind of link, whose
 * transfer is already counted.
 */
static void fill_pipeline(struct cost_work *work, const struct scene *scene)
{
	double hops = work->hops[COST_INSIDE] + work->hops[COST_BETWEEN];
	double chunk;

	if (hops < 1)
		return;
	chunk = chunk_bytes(scene->bytes, hops);
	work->fill[COST_INSIDE] = work->hops[COST_INSIDE] * chunk;
	work->fill[COST_BETWEEN] = work->hops[COST_BETWEEN] * chunk / scene->nics;
	if (work->hops[COST_BETWEEN] > 0)
		work->fill[COST_BETWEEN] -= chunk / scene->nics;
	else
		work->fill[COST_INSIDE] -= chunk;
	work->steps = hops;
	work->step_bytes = chunk;
}

/* ---- ring ------------------------------------------------------------------------------------ */

/*
 * How many of `hops` consecutive hops leave a node, at worst, in a ring that visits every node once. Each lap lacks
 * one hop: one between nodes, if there are no others.
 */
static double ring_between(const struct scene *scene, double laps)
{
	if (scene->nodes < 2)
		return 0;
	if (scene->local < 2)
		return laps * (scene->ranks - 1);
	if (scene->local < 3)
		return laps * scene->nodes - (laps - 1);
	return laps * scene->nodes;
}

static void ring_laps(struct cost_work *work, const struct scene *scene, double laps)
{
	double steps = laps * (scene->ranks - 1);

	work->steps = steps;
	work->step_bytes = scene->bytes / scene->ranks;
	work->hops[COST_BETWEEN] = ring_between(scene, laps);
	work->hops[COST_INSIDE] = steps - work->hops[COST_BETWEEN];
	if (scene->local > 1)
		work->bytes[COST_INSIDE] = steps * work->step_bytes;
	if (scene->nodes > 1)
		work->bytes[COST_BETWEEN] = steps * work->step_bytes / scene->nics;
}

/* From the root along the ring, or towards it; the root is the first rank of its node. */
static void ring_chain(struct cost_work *work, const struct scene *scene)
{
	work->hops[COST_INSIDE] = scene->ranks - scene->nodes;
	work->hops[COST_BETWEEN] = scene->nodes - 1;
	if (scene->local > 1)
		work->bytes[COST_INSIDE] = scene->bytes;
	if (scene->nodes > 1)
		work->bytes[COST_BETWEEN] = scene->bytes / scene->nics;
	fill_pipeline(work, scene);
}

static bool work_ring(uint8_t function, struct cost_work *work, const struct scene *scene)
{
	switch (function) {
	case OP_ALL_REDUCE:
		ring_laps(work, scene, 2);
		return true;
	case OP_ALL_GATHER:
	case OP_REDUCE_SCATTER:
		ring_laps(work, scene, 1);
		return true;
	case OP_BROADCAST:
	case OP_REDUCE:
		ring_chain(work, scene);
		return true;
	default:
		return false;
	}
}

/* ---- trees ----------------------------------------------------------------------------------- */

/* Messages through the busiest node in one direction. */
static double tree_load(const struct scene *scene, bool is_double, bool is_all_reduce)
{
	if (scene->nodes < 2)
		return 0;
	if (is_all_reduce)
		return is_double ? fmin(2, scene->nodes / 2) : fmin(3, scene->nodes - 1);
	return is_double ? 1 : fmin(2, floor(scene->nodes / 2));
}

static bool work_tree(uint8_t function, struct cost_work *work, const struct scene *scene,
		      bool is_double)
{
	bool is_all_reduce = function == OP_ALL_REDUCE;
	double ways = is_all_reduce ? 2 : 1;

	if (!is_all_reduce && function != OP_BROADCAST && function != OP_REDUCE)
		return false;
	work->hops[COST_INSIDE] = ways * (scene->local - 1);
	work->hops[COST_BETWEEN] = ways * scene->levels;
	if (scene->local > 1)
		work->bytes[COST_INSIDE] = scene->bytes * (scene->local > 2 ? ways : 1);
	work->bytes[COST_BETWEEN] =
		scene->bytes * tree_load(scene, is_double, is_all_reduce) / scene->nics;
	for (int link = 0; link < COST_LINKS; link++)
		work->bytes[link] /= COST_TREE_SHARE;
	fill_pipeline(work, scene);
	return true;
}

/* ---- direct ---------------------------------------------------------------------------------- */

static void send_recv(struct cost_work *work, const struct scene *scene, double leaving)
{
	double nics = fmin(leaving, scene->nics);

	work->steps = 1;
	work->step_bytes = scene->bytes;
	if (leaving > 0) {
		work->hops[COST_BETWEEN] = 1;
		work->bytes[COST_BETWEEN] = scene->bytes * leaving / nics;
	} else {
		work->hops[COST_INSIDE] = 1;
		work->bytes[COST_INSIDE] = scene->bytes;
	}
}

static bool work_direct(uint8_t function, struct cost_work *work, const struct scene *scene)
{
	double part = scene->bytes / scene->ranks;
	double near = scene->local - 1, far = scene->ranks - scene->local;

	if (function == OP_SEND_RECV) {
		send_recv(work, scene, scene->nodes > 1);
		return true;
	}
	if (function != OP_ALL_TO_ALL && function != OP_GATHER && function != OP_SCATTER)
		return false;
	work->steps = scene->ranks - 1;
	work->step_bytes = part;
	work->hops[COST_INSIDE] = ceil(near / COST_DIRECT_WIDTH);
	work->hops[COST_BETWEEN] = ceil(far / COST_DIRECT_WIDTH);
	work->bytes[COST_INSIDE] = near * part;
	work->bytes[COST_BETWEEN] = far * part;
	if (function == OP_ALL_TO_ALL)
		work->bytes[COST_BETWEEN] *= scene->local / scene->nics;
	return true;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool work_of(uint8_t function, enum cost_algorithm algorithm, const struct scene *scene,
		    struct cost_work *work)
{
	switch (algorithm) {
	case COST_RING:
		return work_ring(function, work, scene);
	case COST_TREE:
	case COST_DOUBLE_TREE:
		return work_tree(function, work, scene, algorithm == COST_DOUBLE_TREE);
	case COST_DIRECT:
		return work_direct(function, work, scene);
	default:
		return false;
	}
}

bool cost_work_of(uint8_t function, enum cost_algorithm algorithm, const struct cost_shape *shape,
		  uint64_t bytes, struct cost_work *work)
{
	struct cost_work found = { 0 };
	struct scene scene;

	if (!scene_init(&scene, shape, bytes) || !work_of(function, algorithm, &scene, &found))
		return false;
	if (shape->ranks == 1)
		memset(&found, 0, sizeof(found));
	*work = found;
	return true;
}

bool cost_work_of_pairs(const struct cost_shape *shape, int32_t leaving, uint64_t bytes,
			struct cost_work *work)
{
	struct cost_work found = { 0 };
	struct scene scene;

	if (!scene_init(&scene, shape, bytes) || leaving < 0 || leaving > scene.local)
		return false;
	send_recv(&found, &scene, leaving);
	*work = found;
	return true;
}

static const char *const parameter_names[COST_PARAMETERS] = {
	[COST_CALL] = "call overhead",
	[COST_LATENCY_INSIDE] = "latency inside a node",
	[COST_LATENCY_BETWEEN] = "latency between nodes",
	[COST_TIME_INSIDE] = "bandwidth inside a node",
	[COST_TIME_BETWEEN] = "bandwidth between nodes",
};

const char *cost_parameter_name(enum cost_parameter parameter)
{
	return (unsigned int)parameter < COST_PARAMETERS ? parameter_names[parameter] : "?";
}

void cost_model_init(struct cost_model *model)
{
	memset(model, 0, sizeof(*model));
}

void cost_model_note(struct cost_model *model, const char *format, ...)
{
	char note[COST_NOTE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(note, sizeof(note), format, arguments);
	va_end(arguments);
	for (size_t i = 0; i < model->note_count; i++)
		if (strcmp(model->notes[i], note) == 0)
			return;
	if (model->note_count == COST_NOTES_MAX) {
		model->notes_lost++;
		return;
	}
	memcpy(model->notes[model->note_count++], note, sizeof(note));
}

/* ---- parameters ------------------------------------------------------------------------------ */

static void group_put(struct cost_group *group, enum cost_parameter parameter, double value,
		      enum cost_source source)
{
	group->value[parameter] = value;
	group->source[parameter] = (uint8_t)source;
	group->inseparable &= ~(1u << parameter);
	for (int p = 0; p < COST_PARAMETERS; p++)
		group->covariance[parameter][p] = group->covariance[p][parameter] = 0;
}

/* Protocols of textbook values keep their ratios: a value given by hand is that of the last one, Simple. */
static double in_proportion(const struct cost_model *model, const struct cost_group *group, int p)
{
	const struct cost_group *simple = &model->groups[model->group_count - 1];

	if (group->source[p] != COST_FROM_HARDWARE || simple->source[p] != COST_FROM_HARDWARE ||
	    simple->value[p] <= 0)
		return 1;
	return group->value[p] / simple->value[p];
}

enum status cost_model_set(struct cost_model *model, enum cost_parameter parameter, double value)
{
	bool is_time = parameter == COST_TIME_INSIDE || parameter == COST_TIME_BETWEEN;

	if ((unsigned int)parameter >= COST_PARAMETERS || !isfinite(value) || value < 0 ||
	    (is_time && value == 0))
		return ERR_RANGE;
	if (model->group_count == 0)
		model->group_count = 1;
	for (size_t i = 0; i < model->group_count; i++) {
		struct cost_group *group = &model->groups[i];

		group_put(group, parameter, value * in_proportion(model, group, parameter),
			  COST_BY_HAND);
		if (is_time)
			group->faster &= ~(1u << (parameter - COST_TIME_INSIDE));
	}
	return OK;
}

/* ---- textbooks ------------------------------------------------------------------------------- */

/* Line rates times the share that NCCL usually achieves. */
static const struct cost_hardware machines[] = {
	{ "a100-ib", "8 A100 SXM with NVLink 3 per node, 8 NICs of 200 Gb/s", 8, 8, 230, 24 },
	{ "h100-ib", "8 H100 or H200 SXM with NVLink 4 per node, 8 NICs of 400 Gb/s", 8, 8, 370,
	  48 },
	{ "b200-ib", "8 B200 with NVLink 5 per node, 8 NICs of 400 Gb/s", 8, 8, 700, 48 },
	{ "pcie4-eth", "4 GPUs on PCIe 4 per node, 1 NIC of 100 Gb/s", 4, 1, 20, 11 },
};

/*
 * Cost of a protocol on any hardware, in round numbers. LL sends a flag with every four bytes, LL128 one with every
 * 120; Simple waits for whole chunks.
 */
static const struct {
	uint8_t protocol;
	double call_ns;
	double inside_ns;
	double between_ns;
	double share; /* of the bandwidth */
} protocols[] = {
	{ OP_LL, 7000, 700, 4000, 0.4 },
	{ OP_LL128, 9000, 1500, 6000, 0.9 },
	{ OP_SIMPLE, 9000, 3500, 14000, 1 },
};

enum { PROTOCOLS = sizeof(protocols) / sizeof(protocols[0]) };

const struct cost_hardware *cost_hardware(size_t index)
{
	return index < sizeof(machines) / sizeof(machines[0]) ? &machines[index] : NULL;
}

static void group_from_textbook(struct cost_group *group, const struct cost_hardware *machine,
				size_t row)
{
	const double values[COST_PARAMETERS] = {
		[COST_CALL] = protocols[row].call_ns,
		[COST_LATENCY_INSIDE] = protocols[row].inside_ns,
		[COST_LATENCY_BETWEEN] = protocols[row].between_ns,
		[COST_TIME_INSIDE] = 1 / (machine->inside * protocols[row].share),
		[COST_TIME_BETWEEN] = 1 / (machine->between * protocols[row].share),
	};

	for (int p = 0; p < COST_PARAMETERS; p++)
		if (group->source[p] == 0)
			group_put(group, (enum cost_parameter)p, values[p], COST_FROM_HARDWARE);
	/* Their speed is known now, so it is used. */
	group->faster = 0;
}

/* If the protocol is unknown: the one for large messages. */
static size_t row_of(uint8_t protocol)
{
	for (size_t row = 0; row < PROTOCOLS; row++)
		if (protocols[row].protocol == protocol)
			return row;
	return PROTOCOLS - 1;
}

bool cost_model_hardware(struct cost_model *model, const char *name)
{
	const struct cost_hardware *machine = NULL;

	for (size_t i = 0; cost_hardware(i) != NULL && machine == NULL; i++)
		if (strcmp(cost_hardware(i)->name, name) == 0)
			machine = cost_hardware(i);
	if (machine == NULL)
		return false;
	text_copy(model->hardware, sizeof(model->hardware), machine->name);
	if (model->rails == 0)
		model->rails = machine->rails;
	if (model->group_count == 0) {
		for (size_t row = 0; row < PROTOCOLS; row++)
			model->groups[row].protocol = protocols[row].protocol;
		model->group_count = PROTOCOLS;
	}
	for (size_t i = 0; i < model->group_count; i++)
		group_from_textbook(&model->groups[i], machine, row_of(model->groups[i].protocol));
	return true;
}

/* ---- the formula ----------------------------------------------------------------------------- */

/* Links known to be faster need no speed if the others are the bottleneck. */
static bool is_needed(const struct cost_group *group, const struct cost_work *work, int parameter)
{
	int link = (parameter - COST_LATENCY_INSIDE) % COST_LINKS;

	if (parameter == COST_CALL)
		return false;
	if (parameter < COST_TIME_INSIDE)
		return work->hops[link] > 0;
	return work->bytes[link] + work->fill[link] > 0 &&
	       !(group->faster & 1u << link && work->bytes[1 - link] > 0);
}

bool cost_time(const struct cost_group *group, const struct cost_work *work, double *time_ns,
	       enum cost_parameter *missing)
{
	double row[COST_PARAMETERS];

	for (int p = 0; p < COST_PARAMETERS; p++) {
		if (group->source[p] != 0 || (group->inseparable & 1u << p) ||
		    !is_needed(group, work, p))
			continue;
		if (missing)
			*missing = (enum cost_parameter)p;
		return false;
	}
	cost_row(work, cost_slow(work, group->value), row);
	*time_ns = cost_product(row, group->value);
	return true;
}

/*
 * Confidence interval of an answer. Three independent sources, so their squares add up:
 *
 *	scatter		of single measurements around the fit, relative to the time
 *	parameters	row x covariance x row: the uncertainty of each parameter, times the hops and bytes
 *			that need it here
 *	distance	every doubling beyond the measured range adds the scatter once more: it is unknown
 *			whether the formula still holds there, and the scatter is how well it held so far
 *
 * Parameters are on the scale of times (a latency of 0 may be one of 20 us, and then 1000 hops take 20 ms), scatter
 * and distance on that of logarithms.
 */

#define MEDIAN_WORTH 0.37
#define FREEDOM_OF_NOISE 3.0

/* One standard deviation, relative to the time. */
static double share_of_parameters(const struct cost_answer *answer, const double *row)
{
	double variance = 0;

	for (int p = 0; p < COST_PARAMETERS; p++)
		for (int q = 0; q < COST_PARAMETERS; q++)
			variance += row[p] * answer->group->covariance[p][q] * row[q];
	return variance > 0 ? sqrt(variance) / answer->time_ns : 0;
}

/*
 * Whether these very parameters were measured. Those of another algorithm or function may be far off, and textbook
 * values are not measurements: their error is unknown.
 */
static bool is_measured(const struct cost_answer *answer, const double *row)
{
	const struct cost_group *group = answer->group;

	if (group->cells == 0 || answer->flags & COST_OTHER_ALGORITHM ||
	    (answer->flags & COST_OTHER_FUNCTION && group->function != 0))
		return false;
	for (int p = 0; p < COST_PARAMETERS; p++)
		if (row[p] > 0 && group->source[p] == COST_FROM_HARDWARE)
			return false;
	return true;
}

/*
 * Degrees of freedom of the scatter. It comes from a median, which on average is worth MEDIAN_WORTH of as many
 * values; repeated cells say little about the misfit, but if there are few distinct ones they show the noise.
 */
static double freedom_of(const struct cost_group *group)
{
	double used = 0, by_cells, by_points;

	for (int p = 0; p < COST_PARAMETERS; p++)
		used += group->source[p] == COST_FROM_FIT;
	by_cells = MEDIAN_WORTH * ((double)group->cells - used);
	by_points = fmax((double)group->points - used, FREEDOM_OF_NOISE);
	return fmax(fmin(by_cells, by_points), 1);
}

/* Sets the answer's interval; needs its group, time, flags and factors. */
static void cost_interval(struct cost_answer *answer, const double *row)
{
	const struct cost_group *group = answer->group;
	double times, by_parameters, by_scatter, wide, other;

	answer->low_ns = answer->high_ns = answer->time_ns;
	if (answer->time_ns <= 0 || !is_measured(answer, row))
		return;
	times = stats_student_quantile(0.025, freedom_of(group));
	by_parameters = times * share_of_parameters(answer, row);
	by_scatter = expm1(times * group->scatter * sqrt(1 + answer->doublings));
	wide = 1 + hypot(by_parameters, by_scatter);
	if (answer->flags & COST_UNSEPARATED) {
		other = group->fixed_ns + answer->transfer_ns;
		answer->low_ns = fmin(answer->low_ns, other);
		answer->high_ns = fmax(answer->high_ns, other);
	}
	answer->low_ns /= wide;
	answer->high_ns *= wide;
	answer->has_interval = true;
}

/* Answers of the model: which of its groups to use, the time, and its uncertainty. */

/* Sizes within this factor of measured ones count as measured when a protocol is chosen. */
#define COVERS 2.0

static const char *const missing_words[COST_PARAMETERS] = {
	[COST_CALL] = "the call overhead is unknown",
	[COST_LATENCY_INSIDE] = "the latency inside a node was neither measured nor given",
	[COST_LATENCY_BETWEEN] = "the latency between nodes was neither measured nor given",
	[COST_TIME_INSIDE] = "the bandwidth inside a node was neither measured nor given",
	[COST_TIME_BETWEEN] = "the bandwidth between nodes was neither measured nor given",
};

struct question {
	uint8_t function;
	enum cost_algorithm algorithm;
	uint8_t protocol;
	const struct cost_shape *shape;
	uint64_t bytes;
	struct cost_work work;
};

/* How far a value is outside of [least, most] as a factor: 1 inside. */
static double share_beyond(double value, double least, double most)
{
	if (most <= 0 || value <= 0)
		return 1;
	return value > most ? value / most : least > 0 && value < least ? least / value : 1;
}

static double beyond_bytes(const struct cost_group *group, uint64_t bytes)
{
	if (group->cells == 0)
		return 1;
	return share_beyond((double)bytes, (double)group->range.bytes_least,
			    (double)group->range.bytes_most);
}

/* Whether ranks or nodes differ from all that were measured. */
static bool is_other_shape(const struct cost_group *group, const struct cost_shape *shape)
{
	return group->cells > 0 &&
	       (shape->ranks < group->range.ranks_least || shape->ranks > group->range.ranks_most ||
		shape->nodes < group->range.nodes_least || shape->nodes > group->range.nodes_most);
}

/* No measured time grew with the size, which says nothing about larger sizes. */
static bool is_flat(const struct cost_group *group, const struct question *question)
{
	const struct cost_work *work = &question->work;
	double row[COST_PARAMETERS];

	cost_row(work, cost_slow(work, group->value), row);
	return group->cells > 0 && question->bytes > group->range.bytes_most &&
	       work->bytes[COST_INSIDE] + work->bytes[COST_BETWEEN] > 0 &&
	       row[COST_TIME_INSIDE] * group->value[COST_TIME_INSIDE] +
			       row[COST_TIME_BETWEEN] * group->value[COST_TIME_BETWEEN] <=
		       0;
}

static bool is_tree(enum cost_algorithm algorithm)
{
	return algorithm == COST_TREE || algorithm == COST_DOUBLE_TREE;
}

/* How well a group fits the question: less is better; -1: not at all. */
static int group_distance(const struct cost_group *group, const struct question *question)
{
	int far = 0;

	if (question->protocol != 0 && group->protocol != 0 &&
	    group->protocol != question->protocol)
		return -1;
	if (is_flat(group, question))
		return -1;
	/* Of other algorithms, trees are closest to each other. */
	if (group->algorithm != question->algorithm && group->algorithm != COST_ANY)
		far += is_tree(group->algorithm) && is_tree(question->algorithm) ? 8 : 16;
	if (group->function != question->function)
		far += group->function == 0 ? 2 : 4;
	/* Its measurements cannot separate calls from hops: prefer others that can. */
	if (group->inseparable && is_other_shape(group, question->shape))
		far += 3;
	return far;
}

/*
 * Of the ranges of one kind, only the one nearest to this size is used: another one may seem faster where it was
 * never measured.
 */
static bool is_nearest_stretch(const struct cost_model *model, const struct cost_group *group,
			       uint64_t bytes)
{
	for (size_t i = 0; i < model->group_count; i++) {
		const struct cost_group *other = &model->groups[i];

		if (other->function == group->function && other->algorithm == group->algorithm &&
		    other->protocol == group->protocol &&
		    beyond_bytes(other, bytes) < beyond_bytes(group, bytes))
			return false;
	}
	return true;
}

/*
 * Whether `group`, as close as `best`, is preferred. Of the protocols measured at this size, or about as close to
 * it as any, the fastest.
 */
static bool is_better(const struct cost_group *group, double time, const struct cost_answer *best,
		      uint64_t bytes)
{
	double here = beyond_bytes(group, bytes), there = beyond_bytes(best->group, bytes);

	if (fmax(here, COVERS) == fmax(there, COVERS))
		return time < best->time_ns;
	return here < there;
}

/* ---- figures of an answer -------------------------------------------------------------------- */

static void set_flags(struct cost_answer *answer, const struct question *question)
{
	const struct cost_group *group = answer->group;
	const struct cost_range *range = &group->range;

	answer->bytes_factor = answer->ranks_factor = answer->nodes_factor = 1;
	if (!cost_is_in_nccl(question->function, question->algorithm))
		answer->flags |= COST_NOT_IN_NCCL;
	if (group->cells == 0)
		return;
	answer->bytes_factor = beyond_bytes(group, question->bytes);
	answer->ranks_factor =
		share_beyond(question->shape->ranks, range->ranks_least, range->ranks_most);
	answer->nodes_factor =
		share_beyond(question->shape->nodes, range->nodes_least, range->nodes_most);
	answer->doublings =
		log2(answer->bytes_factor) + log2(fmax(answer->ranks_factor, answer->nodes_factor));
	answer->flags |= answer->bytes_factor > 1 ? COST_BEYOND_BYTES : 0;
	answer->flags |= answer->ranks_factor > 1 ? COST_BEYOND_RANKS : 0;
	answer->flags |= answer->nodes_factor > 1 ? COST_BEYOND_NODES : 0;
	if (group->algorithm != question->algorithm && group->algorithm != COST_ANY)
		answer->flags |= COST_OTHER_ALGORITHM;
	if (group->function != question->function)
		answer->flags |= COST_OTHER_FUNCTION;
	if (group->inseparable && is_other_shape(group, question->shape))
		answer->flags |= COST_UNSEPARATED;
}

static void answer_finish(struct cost_answer *answer, const struct question *question)
{
	const double *value = answer->group->value;
	double row[COST_PARAMETERS];

	answer->algorithm = question->algorithm;
	answer->protocol = answer->group->protocol;
	answer->work = question->work;
	if (answer->time_ns > 0)
		answer->algbw = (double)question->bytes / answer->time_ns;
	answer->busbw = answer->algbw * op_bus_factor(question->function, question->shape->ranks);
	cost_row(&question->work, cost_slow(&question->work, value), row);
	answer->call_ns = value[COST_CALL];
	answer->latency_ns = row[COST_LATENCY_INSIDE] * value[COST_LATENCY_INSIDE] +
			     row[COST_LATENCY_BETWEEN] * value[COST_LATENCY_BETWEEN];
	answer->transfer_ns = answer->time_ns - answer->call_ns - answer->latency_ns;
	set_flags(answer, question);
	cost_interval(answer, row);
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool answer_question(const struct cost_model *model, const struct question *question,
			    struct cost_answer *answer, const char **why)
{
	struct cost_answer best = { 0 };
	enum cost_parameter missing = COST_CALL;
	bool has_missing = false;
	int nearest = -1;

	for (size_t i = 0; i < model->group_count; i++) {
		const struct cost_group *group = &model->groups[i];
		int far = group_distance(group, question);
		double time;

		if (far < 0 || (nearest >= 0 && far > nearest) ||
		    !is_nearest_stretch(model, group, question->bytes))
			continue;
		if (!cost_time(group, &question->work, &time, &missing)) {
			has_missing = true;
			continue;
		}
		if (nearest < 0 || far < nearest ||
		    is_better(group, time, &best, question->bytes)) {
			best.group = group;
			best.time_ns = time;
			nearest = far;
		}
	}
	if (nearest < 0) {
		*why = has_missing ? missing_words[missing]
				   : "no parameters for this size and protocol";
		return false;
	}
	answer_finish(&best, question);
	*answer = best;
	return true;
}

bool cost_predict(const struct cost_model *model, uint8_t function, enum cost_algorithm algorithm,
		  uint8_t protocol, const struct cost_shape *shape, uint64_t bytes,
		  struct cost_answer *answer, const char **why)
{
	struct question question = {
		.function = function, .algorithm = algorithm, .protocol = protocol, .bytes = bytes
	};
	struct cost_shape here = *shape;
	const char *unused;

	if (here.rails == 0)
		here.rails = model->rails;
	question.shape = &here;
	why = why ? why : &unused;
	if (!cost_work_of(function, algorithm, &here, bytes, &question.work)) {
		*why = shape->ranks < 1 || shape->nodes < 1 || shape->nodes > shape->ranks
			       ? "ranks and nodes are inconsistent"
			       : "this function has no such algorithm";
		return false;
	}
	return answer_question(model, &question, answer, why);
}

static int by_time(const void *left, const void *right)
{
	const struct cost_answer *a = left, *b = right;
	bool is_a_other = a->flags & COST_NOT_IN_NCCL, is_b_other = b->flags & COST_NOT_IN_NCCL;

	if (is_a_other != is_b_other)
		return is_a_other ? 1 : -1;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return (int)a->algorithm - (int)b->algorithm;
}

size_t cost_predict_all(const struct cost_model *model, uint8_t function,
			const struct cost_shape *shape, uint64_t bytes,
			struct cost_answer answers[COST_ALGORITHMS], const char **why)
{
	const char *reason = "this function is not modeled", *here;
	struct cost_work work;
	size_t count = 0;

	for (int algorithm = COST_RING; algorithm < COST_ALGORITHMS; algorithm++) {
		if (cost_predict(model, function, (enum cost_algorithm)algorithm, 0, shape, bytes,
				 &answers[count], &here))
			count++;
		else if (cost_work_of(function, (enum cost_algorithm)algorithm, shape, bytes,
				      &work) ||
			 shape->nodes > shape->ranks)
			reason = here;
	}
	qsort(answers, count, sizeof(*answers), by_time);
	if (count == 0 && why)
		*why = reason;
	return count;
}
