/* The formulas of cost_work.h; docs/MODEL.md says why they are so. */
#include "bench/cost_work.h"

#include <math.h>
#include <string.h>

#include "common/op_layout.h"

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

/* The shape in numbers that the formulas are written in. */
struct scene {
	double ranks;
	double nodes;
	double local; /* ranks of a node */
	double nics;  /* that its ranks use together */
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

/* As many chunks as keep all hops busy, within what buffers hold. */
static double chunk_bytes(double bytes, double hops)
{
	double chunk = bytes / (COST_CHUNKS_PER_HOP * hops);

	chunk = fmin(fmax(chunk, COST_CHUNK_LEAST), COST_CHUNK_MOST);
	return fmin(chunk, bytes);
}

/* Every hop but one passes a chunk before the last hop has its first; that one is of the slower
 * kind of link, whose transfer is counted already. */
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

/* How many of `hops` hops in a row leave a node, at worst, in a ring that passes every node once.
 * Laps of the ring are whole but for a hop each: a hop between nodes, where there are no others. */
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

/* From the root along the ring, or towards it; the root is the first of its node. */
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

static bool ring(uint8_t function, struct cost_work *work, const struct scene *scene)
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

/* Messages that pass the busiest node in one direction. */
static double tree_load(const struct scene *scene, bool is_double, bool is_all_reduce)
{
	if (scene->nodes < 2)
		return 0;
	if (is_all_reduce)
		return is_double ? fmin(2, scene->nodes / 2) : fmin(3, scene->nodes - 1);
	return is_double ? 1 : fmin(2, floor(scene->nodes / 2));
}

static bool tree(uint8_t function, struct cost_work *work, const struct scene *scene,
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

static bool direct(uint8_t function, struct cost_work *work, const struct scene *scene)
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
		return ring(function, work, scene);
	case COST_TREE:
	case COST_DOUBLE_TREE:
		return tree(function, work, scene, algorithm == COST_DOUBLE_TREE);
	case COST_DIRECT:
		return direct(function, work, scene);
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
