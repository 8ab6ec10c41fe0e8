/*
 * The workloads as programs. Sizes and times are typical of training jobs, with iterations long enough that a
 * simulation of minutes stays small.
 */
#include "sim/sim_job.h"
#include "sim/sim_job_internal.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/op.h"
#include "common/op_layout.h"

static struct sim_step *program_append(struct sim_program *program, enum sim_step_kind kind,
				       enum sim_role role)
{
	static struct sim_step dropped;
	struct sim_step *step;

	if (!list_grow(&program->steps, program->count, sizeof(*program->steps))) {
		program->is_broken = 1;
		return &dropped;
	}
	step = &program->steps[program->count++];
	*step = (struct sim_step){ .kind = (uint8_t)kind, .role = (uint8_t)role };
	return step;
}

static void sim_program_release(struct sim_program *program)
{
	free(program->steps);
	*program = (struct sim_program){ 0 };
}

/* Each appends; a failure sets is_broken. */
static void sim_program_compute(struct sim_program *program, uint64_t ns)
{
	program_append(program, SIM_COMPUTE, SIM_WORLD)->ns = ns;
}

/* Returns the call's number, for sim_program_wait(). */
static uint32_t sim_program_call(struct sim_program *program, enum sim_role role, uint8_t function,
				 uint8_t datatype, uint64_t count, int peer)
{
	struct sim_step *step = program_append(program, SIM_CALL, role);

	step->function = function;
	step->datatype = datatype;
	step->count = count;
	step->peer = peer;
	return program->calls[role]++;
}

static uint32_t sim_program_all_to_all(struct sim_program *program, enum sim_role role,
				       uint8_t datatype, uint64_t count, uint32_t layer,
				       bool is_back)
{
	struct sim_step *step = program_append(program, SIM_ALL_TO_ALL, role);

	step->datatype = datatype;
	step->count = count;
	step->layer = layer;
	step->is_back = is_back;
	return program->calls[role]++;
}

/* Waits until that call of the role is over. */
static void sim_program_wait(struct sim_program *program, enum sim_role role, uint32_t call)
{
	program_append(program, SIM_WAIT, role)->behind = program->calls[role] - 1 - call;
}

static void sim_program_wait_all(struct sim_program *program, enum sim_role role)
{
	program_append(program, SIM_WAIT, role)->behind = 0;
}

static void sim_program_sync(struct sim_program *program)
{
	program_append(program, SIM_SYNC, SIM_WORLD);
}

void sim_programs_release(struct sim_programs *programs)
{
	sim_program_release(&programs->start);
	sim_program_release(&programs->iteration);
	sim_program_release(&programs->evaluation);
}

#define MIB (UINT64_C(1) << 20)

enum { DDP_BUCKETS = 16, FSDP_LAYERS = 16, PIPELINE_LAYERS = 4, MICROBATCHES = 4, MOE_LAYERS = 4 };

/* The n-th of --sizes, cyclic, or the workload's default. */
static uint64_t size_of(const struct sim_options *options, size_t n, uint64_t otherwise)
{
	return options->size_count ? options->sizes[n % options->size_count] : otherwise;
}

/* Number of elements in this many bytes, divided by `ranks`; at least one. */
static uint64_t count_of(uint64_t bytes, uint8_t datatype, uint64_t ranks)
{
	uint64_t count = bytes / op_datatype_bytes(datatype) / ranks;

	return count ? count : 1;
}

static uint64_t period_of(const struct sim_options *options, uint64_t otherwise)
{
	return options->period_ns ? options->period_ns : otherwise;
}

/* A barrier, as frameworks make one. */
static void add_barrier(struct sim_program *to)
{
	sim_program_call(to, SIM_WORLD, OP_ALL_REDUCE, OP_INT32, 1, 0);
	sim_program_wait_all(to, SIM_WORLD);
	sim_program_sync(to);
}

/* The end of an iteration: the loss is reduced to one number, and the host reads it. */
static void add_loss(struct sim_program *to, uint64_t optimizer_ns)
{
	sim_program_compute(to, optimizer_ns);
	sim_program_call(to, SIM_WORLD, OP_ALL_REDUCE, OP_FLOAT32, 1, 0);
	sim_program_wait_all(to, SIM_WORLD);
	sim_program_sync(to);
}

static void build_ddp(struct sim_programs *to, const struct sim_options *options)
{
	uint64_t period_ns = period_of(options, 200 * MS_NS);

	for (size_t i = 0; i < 4; i++)
		sim_program_call(&to->start, SIM_WORLD, OP_BROADCAST, OP_FLOAT32,
				 count_of(size_of(options, i, 25 * MIB), OP_FLOAT32, 1), 0);
	add_barrier(&to->start);

	sim_program_compute(&to->iteration, period_ns * 32 / 100);
	for (size_t i = 0; i < DDP_BUCKETS; i++) {
		sim_program_compute(&to->iteration, period_ns * 64 / 100 / DDP_BUCKETS);
		sim_program_call(&to->iteration, SIM_WORLD, OP_ALL_REDUCE, OP_FLOAT32,
				 count_of(size_of(options, i, 25 * MIB), OP_FLOAT32, 1), 0);
	}
	sim_program_wait_all(&to->iteration, SIM_WORLD);
	add_loss(&to->iteration, period_ns * 4 / 100);
	sim_program_compute(&to->evaluation, period_ns * 32 / 100);
	add_loss(&to->evaluation, 0);
	to->period_ns = period_ns;
	to->depth = DDP_BUCKETS;
}

static uint32_t gather_layer(struct sim_program *to, const struct sim_options *options, int layer)
{
	uint64_t bytes = size_of(options, (size_t)layer, 256 * MIB);

	return sim_program_call(to, SIM_WORLD, OP_ALL_GATHER, OP_BFLOAT16,
				count_of(bytes, OP_BFLOAT16, (uint64_t)sim_options_world(options)),
				0);
}

/* Weights of the next layer are fetched while this one computes. */
static void pass_layers(struct sim_program *steps, const struct sim_options *options,
			uint64_t layer_ns)
{
	uint32_t here, next = gather_layer(steps, options, 0);

	for (int layer = 0; layer < FSDP_LAYERS; layer++) {
		here = next;
		if (layer + 1 < FSDP_LAYERS)
			next = gather_layer(steps, options, layer + 1);
		sim_program_wait(steps, SIM_WORLD, here);
		sim_program_compute(steps, layer_ns);
	}
}

static void build_fsdp(struct sim_programs *to, const struct sim_options *options)
{
	uint64_t period_ns = period_of(options, 800 * MS_NS);
	uint64_t layer_ns = period_ns * 96 / 100 / (3 * FSDP_LAYERS);
	struct sim_program *steps = &to->iteration;
	uint64_t world = (uint64_t)sim_options_world(options);
	uint32_t here, next;

	add_barrier(&to->start);
	pass_layers(steps, options, layer_ns);
	next = gather_layer(steps, options, FSDP_LAYERS - 1);
	for (int layer = FSDP_LAYERS - 1; layer >= 0; layer--) {
		here = next;
		if (layer > 0)
			next = gather_layer(steps, options, layer - 1);
		sim_program_wait(steps, SIM_WORLD, here);
		sim_program_compute(steps, 2 * layer_ns);
		sim_program_call(
			steps, SIM_WORLD, OP_REDUCE_SCATTER, OP_BFLOAT16,
			count_of(size_of(options, (size_t)layer, 256 * MIB), OP_BFLOAT16, world),
			0);
	}
	sim_program_call(steps, SIM_WORLD, OP_ALL_REDUCE, OP_FLOAT32, 1, 0);
	sim_program_wait_all(steps, SIM_WORLD);
	add_loss(steps, layer_ns);
	pass_layers(&to->evaluation, options, layer_ns);
	add_loss(&to->evaluation, 0);
	to->period_ns = period_ns;
	to->depth = 4;
}

/* One microbatch through the layers of this stage, in one direction. */
static void pass_stage(struct sim_program *to, const struct sim_options *options, size_t batch,
		       uint64_t layer_ns, int from, int onward)
{
	uint64_t count = count_of(size_of(options, batch, 32 * MIB), OP_BFLOAT16, 1);

	if (from != 0) {
		sim_program_call(to, SIM_PIPELINE, OP_RECV, OP_BFLOAT16, count, from);
		sim_program_wait_all(to, SIM_PIPELINE);
	}
	for (int i = 0; i < 2 * PIPELINE_LAYERS; i++) {
		sim_program_compute(to, layer_ns / 2);
		if (options->tensor == 1)
			continue;
		sim_program_call(to, SIM_TENSOR, OP_ALL_REDUCE, OP_BFLOAT16, count, 0);
		sim_program_wait_all(to, SIM_TENSOR);
	}
	if (onward != 0)
		sim_program_call(to, SIM_PIPELINE, OP_SEND, OP_BFLOAT16, count, onward);
}

/* All microbatches forward, then all backward. */
static void build_tp_pp(struct sim_programs *to, const struct sim_options *options, int stage,
			int stages)
{
	uint64_t period_ns = period_of(options, 800 * MS_NS);
	uint64_t layer_ns = period_ns * 95 / 100 / (3 * PIPELINE_LAYERS * MICROBATCHES);
	int before = stage > 0 ? -1 : 0, after = stage + 1 < stages ? 1 : 0;
	bool has_data = sim_options_world(options) > options->tensor * options->pipeline;
	struct sim_program *steps = &to->iteration;

	add_barrier(&to->start);
	for (size_t i = 0; i < MICROBATCHES; i++)
		pass_stage(steps, options, i, layer_ns, before, after);
	for (size_t i = 0; i < MICROBATCHES; i++)
		pass_stage(steps, options, i, 2 * layer_ns, after, before);
	if (stages > 1)
		sim_program_wait_all(steps, SIM_PIPELINE);
	for (size_t i = 0; i < 4 && has_data; i++)
		sim_program_call(steps, SIM_DATA, OP_ALL_REDUCE, OP_BFLOAT16,
				 count_of(128 * MIB, OP_BFLOAT16, 1), 0);
	if (has_data)
		sim_program_wait_all(steps, SIM_DATA);
	add_loss(steps, layer_ns);
	for (size_t i = 0; i < MICROBATCHES; i++)
		pass_stage(&to->evaluation, options, i, layer_ns, before, after);
	if (stages > 1)
		sim_program_wait_all(&to->evaluation, SIM_PIPELINE);
	add_loss(&to->evaluation, 0);
	to->period_ns = period_ns;
	to->depth = 8;
}

static void pass_experts(struct sim_program *to, const struct sim_options *options, size_t layer,
			 uint64_t layer_ns)
{
	uint64_t count = count_of(size_of(options, layer, 2 * MIB), OP_BFLOAT16, 1);
	uint32_t number = (uint32_t)layer + 1;
	struct sim_step *experts;

	sim_program_compute(to, layer_ns / 2);
	if (options->expert == 1)
		return;
	sim_program_call(to, SIM_EXPERT, OP_ALL_GATHER, OP_INT64, (uint64_t)options->expert, 0);
	sim_program_all_to_all(to, SIM_EXPERT, OP_BFLOAT16, count, number, false);
	sim_program_wait_all(to, SIM_EXPERT);
	experts = program_append(to, SIM_COMPUTE, SIM_EXPERT);
	experts->ns = layer_ns / 2;
	experts->layer = number;
	sim_program_all_to_all(to, SIM_EXPERT, OP_BFLOAT16, count, number, true);
	sim_program_wait_all(to, SIM_EXPERT);
}

static void build_moe(struct sim_programs *to, const struct sim_options *options)
{
	uint64_t period_ns = period_of(options, 1000 * MS_NS);
	uint64_t layer_ns = period_ns * 96 / 100 / (3 * MOE_LAYERS);
	struct sim_program *steps = &to->iteration;

	add_barrier(&to->start);
	for (size_t layer = 0; layer < MOE_LAYERS; layer++)
		pass_experts(steps, options, layer, layer_ns);
	for (size_t layer = MOE_LAYERS; layer-- > 0;) {
		pass_experts(steps, options, layer, 2 * layer_ns);
		sim_program_call(steps, SIM_WORLD, OP_ALL_REDUCE, OP_BFLOAT16,
				 count_of(64 * MIB, OP_BFLOAT16, 1), 0);
	}
	if (sim_options_world(options) > options->expert) {
		sim_program_call(steps, SIM_DATA, OP_ALL_REDUCE, OP_BFLOAT16,
				 count_of(256 * MIB, OP_BFLOAT16, 1), 0);
		sim_program_wait_all(steps, SIM_DATA);
	}
	sim_program_wait_all(steps, SIM_WORLD);
	add_loss(steps, layer_ns / 4);
	for (size_t layer = 0; layer < MOE_LAYERS; layer++)
		pass_experts(&to->evaluation, options, layer, layer_ns);
	add_loss(&to->evaluation, 0);
	to->period_ns = period_ns;
	to->depth = 6;
}

static void build_loop(struct sim_programs *to, const struct sim_options *options)
{
	static const uint8_t functions[] = { OP_ALL_REDUCE, OP_ALL_GATHER, OP_REDUCE_SCATTER };
	static const uint64_t own[] = { 1024, MIB, 64 * MIB };
	size_t sizes = options->size_count ? options->size_count : 3;
	uint64_t period_ns = period_of(options, 20 * MS_NS);
	uint64_t world = (uint64_t)sim_options_world(options);

	to->period_ns = period_ns;
	add_barrier(&to->start);
	for (size_t i = 0; i < 3 * sizes; i++) {
		uint8_t function = functions[i % 3];
		uint64_t bytes = size_of(options, i / 3, own[i / 3 % 3]);

		sim_program_compute(&to->iteration, period_ns / (3 * sizes));
		sim_program_call(&to->iteration, SIM_WORLD, function, OP_FLOAT32,
				 count_of(bytes, OP_FLOAT32, function == OP_ALL_REDUCE ? 1 : world),
				 0);
		sim_program_wait_all(&to->iteration, SIM_WORLD);
	}
	sim_program_sync(&to->iteration);
	to->depth = 3;
}

enum status sim_workload_program(struct sim_programs *programs, const struct sim_options *options,
				 int stage, int stages)
{
	struct sim_programs made = { .depth = 1 };

	switch (options->workload) {
	case SIM_DDP:
		build_ddp(&made, options);
		break;
	case SIM_FSDP:
		build_fsdp(&made, options);
		break;
	case SIM_TP_PP:
		build_tp_pp(&made, options, stage, stages);
		break;
	case SIM_MOE:
		build_moe(&made, options);
		break;
	default:
		build_loop(&made, options);
		break;
	}
	if (made.start.is_broken || made.iteration.is_broken || made.evaluation.is_broken) {
		sim_programs_release(&made);
		return ERR_NO_SPACE;
	}
	*programs = made;
	return OK;
}
