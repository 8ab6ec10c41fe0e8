/* Answers of the model: which of its groups to ask, the time, and how sure that is. */
#include "bench/cost_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cost_parts.h"
#include "common/op.h"

/* Sizes within this factor of what was measured count as measured where protocols are chosen. */
#define COVERS 2.0

static const char *const missing_words[COST_PARAMETERS] = {
	[COST_CALL] = "the call overhead is not known",
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

/* How far a value is outside of [least, most]: 1 inside. */
static double beyond(double value, double least, double most)
{
	if (most <= 0 || value <= 0)
		return 1;
	return value > most ? value / most : least > 0 && value < least ? least / value : 1;
}

static double beyond_bytes(const struct cost_group *group, uint64_t bytes)
{
	if (group->cells == 0)
		return 1;
	return beyond((double)bytes, (double)group->range.bytes_least,
		      (double)group->range.bytes_most);
}

/* Ranks or nodes other than all that were measured. */
static bool is_other_shape(const struct cost_group *group, const struct cost_shape *shape)
{
	return group->cells > 0 &&
	       (shape->ranks < group->range.ranks_least || shape->ranks > group->range.ranks_most ||
		shape->nodes < group->range.nodes_least || shape->nodes > group->range.nodes_most);
}

/* Nothing that was measured got slower with its size: that says nothing of larger ones. */
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

/* How well a group suits the question: less is better; -1 not at all. */
static int distance(const struct cost_group *group, const struct question *question)
{
	int far = 0;

	if (question->protocol != 0 && group->protocol != 0 &&
	    group->protocol != question->protocol)
		return -1;
	if (is_flat(group, question))
		return -1;
	/* Of other algorithms, trees are nearest to each other. */
	if (group->algorithm != question->algorithm && group->algorithm != COST_ANY)
		far += is_tree(group->algorithm) && is_tree(question->algorithm) ? 8 : 16;
	if (group->function != question->function)
		far += group->function == 0 ? 2 : 4;
	/* Its own measurements do not tell calls from hops: others', if they do, are better. */
	if (group->inseparable && is_other_shape(group, question->shape))
		far += 3;
	return far;
}

/* Of the stretches of one kind, the nearest to this size alone has a say: another one may seem to be
 * faster, where it was never measured. */
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

/* Is `group`, as near as `best`, the one to take? Of protocols, those that were measured at this size,
 * or about as near to it as any, and of these the fastest. */
static bool is_better(const struct cost_group *group, double time, const struct cost_answer *best,
		      uint64_t bytes)
{
	double here = beyond_bytes(group, bytes), there = beyond_bytes(best->group, bytes);

	if (fmax(here, COVERS) == fmax(there, COVERS))
		return time < best->time_ns;
	return here < there;
}

/* ---- figures of an answer -------------------------------------------------------------------- */

static void split(struct cost_answer *answer, const double *row)
{
	const double *value = answer->group->value;

	answer->call_ns = value[COST_CALL];
	answer->latency_ns = row[COST_LATENCY_INSIDE] * value[COST_LATENCY_INSIDE] +
			     row[COST_LATENCY_BETWEEN] * value[COST_LATENCY_BETWEEN];
	answer->transfer_ns = answer->time_ns - answer->call_ns - answer->latency_ns;
}

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
		beyond(question->shape->ranks, range->ranks_least, range->ranks_most);
	answer->nodes_factor =
		beyond(question->shape->nodes, range->nodes_least, range->nodes_most);
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

static void finish(struct cost_answer *answer, const struct question *question)
{
	double row[COST_PARAMETERS];

	answer->algorithm = question->algorithm;
	answer->protocol = answer->group->protocol;
	answer->work = question->work;
	if (answer->time_ns > 0)
		answer->algbw = (double)question->bytes / answer->time_ns;
	answer->busbw = answer->algbw * op_bus_factor(question->function, question->shape->ranks);
	cost_row(&question->work, cost_slow(&question->work, answer->group->value), row);
	split(answer, row);
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
		int far = distance(group, question);
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
				   : "there are no parameters for this size and protocol";
		return false;
	}
	finish(&best, question);
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
			       ? "these ranks and nodes do not go together"
			       : "this function cannot be done so";
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
	const char *reason = "no model knows this function", *here;
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
