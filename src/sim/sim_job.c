/* Ranks, rings and trees, programs and identities of a simulated job. */
#include "sim/sim_job.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/op.h"
#include "common/text.h"
#include "plugin/abi_common.h"

/*
 * The workloads as programs. Sizes and times are typical of training jobs, with iterations long enough that a
 * simulation of minutes stays small.
 */

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

static void sim_programs_release(struct sim_programs *programs)
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

/* `stage` is in [0, stages) for a pipeline, otherwise 0 of 1. ERR_NO_SPACE. */
static enum status sim_workload_program(struct sim_programs *programs,
					const struct sim_options *options, int stage, int stages)
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

/* The job. */

static inline bool sim_fault_is_on(const struct sim_fault *fault, uint64_t ns)
{
	return ns >= fault->at_ns && ns < fault->until_ns;
}

enum { NVLINK_CHANNELS = 8, LONE_CHANNELS = 2 };

static int channels_of(const struct sim_comm *comm, int channels)
{
	if (comm->nnodes == 1)
		return NVLINK_CHANNELS;
	if (channels != 0)
		return channels;
	if (comm->locals == 1)
		return LONE_CHANNELS;
	if (comm->locals >= NVLINK_CHANNELS)
		return comm->locals;
	return comm->locals * (NVLINK_CHANNELS / comm->locals);
}

static void find_nodes(struct sim_comm *comm, int gpus)
{
	comm->nnodes = 0;
	comm->locals = 0;
	for (int i = 0; i < comm->nranks; i++) {
		if (i == 0 || comm->ranks[i] / gpus != comm->ranks[i - 1] / gpus)
			comm->node_first[comm->nnodes++] = i;
		comm->nodes[i] = comm->nnodes - 1;
		if (i + 1 - comm->node_first[comm->nnodes - 1] > comm->locals)
			comm->locals = i + 1 - comm->node_first[comm->nnodes - 1];
	}
	comm->node_first[comm->nnodes] = comm->nranks;
}

static void lay_rings(struct sim_comm *comm)
{
	for (int channel = 0; channel < comm->channels; channel++) {
		int *ring = comm->ring + (size_t)channel * (size_t)comm->nranks;
		int *position = comm->position + (size_t)channel * (size_t)comm->nranks;

		for (int i = 0; i < comm->nranks; i++) {
			int first = comm->node_first[comm->nodes[i]];
			int local = comm->node_first[comm->nodes[i] + 1] - first;

			ring[i] = first + (i - first + channel) % local;
			position[ring[i]] = i;
		}
	}
}

static void sim_comm_release(struct sim_comm *comm)
{
	free(comm->ranks);
	free(comm->nodes);
	free(comm->node_first);
	free(comm->ring);
	free(comm->position);
	*comm = (struct sim_comm){ 0 };
}

/*
 * `ranks` are copied; `gpus` is the number of ranks per node of the job, `channels` the number between nodes (0:
 * automatic). ERR_NO_SPACE.
 */
static enum status sim_comm_init(struct sim_comm *comm, enum sim_role role, int index,
				 uint64_t parent_hash, const int *ranks, int count, int gpus,
				 int channels)
{
	struct sim_comm made = { .role = role, .nranks = count };
	size_t n = (size_t)count;

	if (role == SIM_WORLD)
		text_copy(made.name, sizeof(made.name), "world");
	else
		text_format(made.name, sizeof(made.name), "%s-%d", sim_role_name(role), index);
	made.hash = hash_word(hash_word(parent_hash, (uint64_t)role), (uint64_t)index);
	made.ranks = malloc(n * sizeof(int));
	made.nodes = malloc(n * sizeof(int));
	made.node_first = malloc((n + 1) * sizeof(int));
	made.ring = malloc(SIM_CHANNELS_MAX * n * sizeof(int));
	made.position = malloc(SIM_CHANNELS_MAX * n * sizeof(int));
	if (!made.ranks || !made.nodes || !made.node_first || !made.ring || !made.position) {
		sim_comm_release(&made);
		return ERR_NO_SPACE;
	}
	for (int i = 0; i < count; i++)
		made.ranks[i] = ranks[i];
	find_nodes(&made, gpus);
	made.channels = channels_of(&made, channels);
	lay_rings(&made);
	*comm = made;
	return OK;
}

int sim_comm_next(const struct sim_comm *comm, int channel, int rank)
{
	size_t row = (size_t)channel * (size_t)comm->nranks;

	return comm->ring[row + (size_t)((comm->position[row + (size_t)rank] + 1) % comm->nranks)];
}

int sim_comm_previous(const struct sim_comm *comm, int channel, int rank)
{
	size_t row = (size_t)channel * (size_t)comm->nranks;
	int before = comm->position[row + (size_t)rank] + comm->nranks - 1;

	return comm->ring[row + (size_t)(before % comm->nranks)];
}

/*
 * The channel of a rank's n-th link (from 1), among the rings in which it sends to another node, or in which it
 * sends at all if there is only one node. -1: it has fewer.
 */
static int sim_comm_link(const struct sim_comm *comm, int rank, int n)
{
	for (int channel = 0; channel < comm->channels; channel++)
		if ((comm->nnodes == 1 ||
		     sim_comm_is_network(comm, rank, sim_comm_next(comm, channel, rank))) &&
		    --n == 0)
			return channel;
	return -1;
}

int sim_comm_leader(const struct sim_comm *comm, int channel, int node)
{
	int first = comm->node_first[node];

	return first + channel % (comm->node_first[node + 1] - first);
}

int sim_comm_tree(const struct sim_comm *comm, int channel, int rank, int peers[SIM_TREE_EDGES])
{
	int node = comm->nodes[rank];
	int count = 0;

	if (sim_comm_leader(comm, channel, node) != rank)
		return 0;
	if (node > 0)
		peers[count++] = sim_comm_leader(comm, channel, (node - 1) / 2);
	for (int child = 2 * node + 1; child <= 2 * node + 2; child++)
		if (child < comm->nnodes)
			peers[count++] = sim_comm_leader(comm, channel, child);
	return count;
}

static enum status add_comm(struct sim_job *job, enum sim_role role, int index, const int *ranks,
			    int count)
{
	uint64_t parent = role == SIM_WORLD ? sim_random(job->options.seed, 0x776f726c64,
							 (uint64_t)job->options.attempt - 1)
					    : job->comms[0].hash;
	enum status status = sim_comm_init(&job->comms[job->comm_count], role, index, parent, ranks,
					   count, job->options.gpus, job->options.channels);

	if (status != OK)
		return status;
	job->comms[job->comm_count].index = job->comm_count;
	for (int i = 0; i < count; i++)
		job->members[ranks[i]][role] =
			(struct sim_member){ .comm = job->comm_count, .rank = i };
	job->comm_count++;
	return OK;
}

/* Groups of `count` ranks with the given stride, within blocks of count * stride. */
static enum status add_groups(struct sim_job *job, enum sim_role role, int count, int stride,
			      int *ranks)
{
	enum status status = OK;
	int index = 0;

	if (count < 2)
		return OK;
	for (int block = 0; block < job->world; block += count * stride) {
		for (int first = block; first < block + stride && status == OK; first++) {
			for (int i = 0; i < count; i++)
				ranks[i] = first + i * stride;
			status = add_comm(job, role, index++, ranks, count);
		}
	}
	return status;
}

static enum status add_comms(struct sim_job *job, int *ranks)
{
	const struct sim_options *options = &job->options;
	int data = job->world / options->tensor / options->pipeline;
	enum status status = add_groups(job, SIM_WORLD, job->world, 1, ranks);

	if (options->workload == SIM_TP_PP) {
		if (status == OK)
			status = add_groups(job, SIM_TENSOR, options->tensor, 1, ranks);
		if (status == OK)
			status = add_groups(job, SIM_PIPELINE, options->pipeline,
					    options->tensor * data, ranks);
		if (status == OK)
			status = add_groups(job, SIM_DATA, data, options->tensor, ranks);
	} else if (options->workload == SIM_MOE) {
		if (status == OK)
			status = add_groups(job, SIM_EXPERT, options->expert, 1, ranks);
		if (status == OK)
			status = add_groups(job, SIM_DATA, job->world / options->expert,
					    options->expert, ranks);
	}
	return status;
}

static void sort_boundaries(struct sim_job *job)
{
	for (size_t i = 0; i < job->options.fault_count; i++) {
		job->boundaries_ns[job->boundary_count++] = job->options.faults[i].at_ns;
		job->boundaries_ns[job->boundary_count++] = job->options.faults[i].until_ns;
	}
	for (size_t i = 1; i < job->boundary_count; i++)
		for (size_t j = i; j > 0 && job->boundaries_ns[j] < job->boundaries_ns[j - 1];
		     j--) {
			uint64_t earlier = job->boundaries_ns[j];

			job->boundaries_ns[j] = job->boundaries_ns[j - 1];
			job->boundaries_ns[j - 1] = earlier;
		}
}

static enum status add_programs(struct sim_job *job)
{
	int stages = job->options.workload == SIM_TP_PP ? job->options.pipeline : 1;

	job->programs = calloc((size_t)stages, sizeof(*job->programs));
	if (job->programs == NULL)
		return ERR_NO_SPACE;
	for (; job->stages < stages; job->stages++) {
		enum status status = sim_workload_program(&job->programs[job->stages],
							  &job->options, job->stages, stages);

		if (status != OK)
			return status;
	}
	return OK;
}

enum status sim_job_init(struct sim_job *job, const struct sim_options *options)
{
	size_t world = (size_t)sim_options_world(options);
	int *ranks = malloc(world * sizeof(int));
	enum status status = ERR_NO_SPACE;

	*job = (struct sim_job){ .options = *options,
				 .world = (int)world,
				 .interface = sim_options_interface(options),
				 .times = sim_options_times(options) };
	/* Every group except the world has at least two ranks, and a workload has three kinds. */
	job->comms = calloc(2 * world + 1, sizeof(*job->comms));
	job->members = malloc(world * sizeof(*job->members));
	if (ranks && job->comms && job->members) {
		for (size_t i = 0; i < world * SIM_ROLES; i++)
			job->members[i / SIM_ROLES][i % SIM_ROLES].comm = -1;
		status = add_comms(job, ranks);
	}
	free(ranks);
	sort_boundaries(job);
	if (status == OK)
		status = add_programs(job);
	if (status != OK)
		sim_job_release(job);
	return status;
}

void sim_job_release(struct sim_job *job)
{
	for (int i = 0; i < job->comm_count; i++)
		sim_comm_release(&job->comms[i]);
	for (int i = 0; i < job->stages; i++)
		sim_programs_release(&job->programs[i]);
	free(job->comms);
	free(job->members);
	free(job->programs);
	*job = (struct sim_job){ 0 };
}

const struct sim_programs *sim_job_programs(const struct sim_job *job, int rank)
{
	/* The stages of a pipeline are as far apart as its communicator's ranks: whole blocks. */
	return &job->programs[rank / (job->world / job->stages)];
}

/* The rank's communicator of a role; NULL: none. */
static struct sim_comm *sim_job_comm(const struct sim_job *job, int rank, int role)
{
	int comm = job->members[rank][role].comm;

	return comm == -1 ? NULL : &job->comms[comm];
}

uint64_t sim_job_epoch(const struct sim_job *job, uint64_t ns)
{
	size_t epoch = 0;

	while (epoch < job->boundary_count && job->boundaries_ns[epoch] <= ns)
		epoch++;
	return epoch;
}

const struct sim_fault *sim_job_fault(const struct sim_job *job, enum sim_fault_kind kind, int rank,
				      uint64_t ns)
{
	for (size_t i = 0; i < job->options.fault_count; i++) {
		const struct sim_fault *fault = &job->options.faults[i];

		if (fault->kind == kind && (rank == -1 || fault->rank == rank) &&
		    sim_fault_is_on(fault, ns))
			return fault;
	}
	return NULL;
}

uint64_t sim_job_compute_permille(const struct sim_job *job, int rank, uint64_t ns)
{
	const struct sim_fault *fault = sim_job_fault(job, SIM_SLOW_RANK, rank, ns);
	const struct sim_fault *cap = sim_job_fault(job, SIM_POWER_CAP, -1, ns);
	uint64_t permille = fault ? fault->factor_permille : 1000;

	return cap ? permille * cap->factor_permille / 1000 : permille;
}

/* Whether a fault slows down what goes over the network from one rank to another. */
static bool slows_network(const struct sim_job *job, const struct sim_fault *fault, int from,
			  int to)
{
	int gpus = job->options.gpus;

	switch (fault->kind) {
	case SIM_DEGRADED_NETWORK:
		return true;
	case SIM_SLOW_RAIL:
		return from % gpus == fault->rail || to % gpus == fault->rail;
	case SIM_SLOW_UPLINK:
		return (fault->what != SIM_RECEIVING && sim_job_node(job, from) == fault->node) ||
		       (fault->what != SIM_SENDING && sim_job_node(job, to) == fault->node);
	case SIM_SLOW_RECEIVER:
		return to == fault->rank;
	case SIM_STARVED:
		return from == fault->rank || to == fault->rank;
	default:
		return false;
	}
}

uint64_t sim_job_link_permille(const struct sim_job *job, int from, int to, uint64_t ns)
{
	bool is_network = sim_job_node(job, from) != sim_job_node(job, to);
	uint64_t permille = 1000;

	for (size_t i = 0; i < job->options.fault_count; i++) {
		const struct sim_fault *fault = &job->options.faults[i];

		if (!sim_fault_is_on(fault, ns))
			continue;
		if ((fault->kind == SIM_SLOW_LINK && fault->from == from && fault->to == to) ||
		    (is_network && slows_network(job, fault, from, to)) ||
		    (fault->kind == SIM_SLOW_NVLINK && !is_network &&
		     (fault->node == -1 || fault->node == sim_job_node(job, from))))
			permille = permille * fault->factor_permille / 1000;
	}
	return permille;
}

struct sim_delays sim_job_delays(const struct sim_job *job, int from, int to, uint64_t ns)
{
	struct sim_delays delays = { 0 };

	for (size_t i = 0; i < job->options.fault_count; i++) {
		const struct sim_fault *fault = &job->options.faults[i];
		uint64_t share =
			fault->factor_permille ? 1000 - 1000000 / fault->factor_permille : 0;

		if (!sim_fault_is_on(fault, ns))
			continue;
		if (fault->kind == SIM_STARVED && fault->rank == from)
			delays.sender = share;
		else if (fault->kind == SIM_STARVED && fault->rank == to)
			delays.credits = delays.receiver = share / 2;
		else if (fault->kind == SIM_SLOW_RECEIVER && fault->rank == to &&
			 fault->what == SIM_NO_CREDITS)
			delays.credits = delays.receiver = share;
	}
	return delays;
}

/* Rings and trees; Sends of a pipeline and of experts. */
static bool comm_uses_link(const struct sim_comm *comm, int from, int to)
{
	int peers[SIM_TREE_EDGES];

	if (comm->role == SIM_EXPERT)
		return true;
	if (comm->role == SIM_PIPELINE)
		return from - to == 1 || to - from == 1;
	for (int channel = 0; channel < comm->channels; channel++) {
		int count = comm->nnodes > 1 ? sim_comm_tree(comm, channel, from, peers) : 0;

		if (sim_comm_next(comm, channel, from) == to)
			return true;
		for (int i = 0; i < count; i++)
			if (peers[i] == to)
				return true;
	}
	return false;
}

bool sim_job_uses_link(const struct sim_job *job, int from, int to)
{
	for (int role = 0; role < SIM_ROLES; role++) {
		const struct sim_member *a = &job->members[from][role];
		const struct sim_member *b = &job->members[to][role];

		if (a->comm != -1 && a->comm == b->comm &&
		    comm_uses_link(&job->comms[a->comm], a->rank, b->rank))
			return true;
	}
	return false;
}

void sim_job_neighbours(const struct sim_job *job, int rank, char *text, size_t size)
{
	text[0] = '\0';
	for (int other = 0; other < job->world; other++) {
		size_t used = strlen(text);

		if (other != rank && sim_job_uses_link(job, rank, other) &&
		    !text_format(text + used, size - used, "%s%d", used ? ", " : "", other))
			return;
	}
}

/* When the first fault of this kind affects the rank. */
static uint64_t first_ns(const struct sim_job *job, enum sim_fault_kind kind, int rank)
{
	uint64_t ns = UINT64_MAX;

	for (size_t i = 0; i < job->options.fault_count; i++) {
		const struct sim_fault *fault = &job->options.faults[i];

		if (fault->kind == kind && fault->rank == rank && fault->at_ns < ns)
			ns = fault->at_ns;
	}
	return ns;
}

uint64_t sim_job_killed_ns(const struct sim_job *job, int rank)
{
	return first_ns(job, SIM_KILL, rank);
}

bool sim_job_is_snapshot(const struct sim_job *job)
{
	for (size_t i = 0; i < job->options.fault_count; i++)
		if (job->options.faults[i].kind == SIM_STOP)
			return true;
	return false;
}

uint64_t sim_job_gone_ns(const struct sim_job *job, int rank)
{
	uint64_t killed_ns = first_ns(job, SIM_KILL, rank);
	uint64_t stopped_ns = first_ns(job, SIM_STOP, rank);

	return killed_ns < stopped_ns ? killed_ns : stopped_ns;
}

bool sim_job_is_stuck(const struct sim_job *job, const struct sim_comm *comm, int channel, int from,
		      int to, uint64_t ns)
{
	/* In a job of one node, sends inside it replace those over the network. */
	if (from == to || (!sim_comm_is_network(comm, from, to) && job->options.nodes > 1))
		return false;
	for (size_t i = 0; i < job->options.fault_count; i++) {
		const struct sim_fault *fault = &job->options.faults[i];

		if (fault->kind == SIM_STUCK_SEND && fault->rank == comm->ranks[from] &&
		    sim_fault_is_on(fault, ns) &&
		    (fault->to == -1 || fault->to == comm->ranks[to]) &&
		    (fault->channel == -1 || fault->channel == channel) &&
		    (fault->link == 0 || sim_comm_link(comm, from, fault->link) == channel))
			return true;
	}
	return false;
}

bool sim_job_gpu_is_stuck(const struct sim_job *job, int rank, int role, enum sim_gpu_stuck what,
			  uint64_t ns)
{
	for (size_t i = 0; i < job->options.fault_count; i++) {
		const struct sim_fault *fault = &job->options.faults[i];

		if (fault->kind == SIM_GPU_STUCK && fault->rank == rank &&
		    fault->what == (int)what && (fault->role == -1 || fault->role == role) &&
		    sim_fault_is_on(fault, ns))
			return true;
	}
	return false;
}

/* Number of communicators that include both ranks. */
static int shared_comms(const struct sim_job *job, int a, int b)
{
	int shared = 0;

	for (int role = 0; role < SIM_ROLES; role++)
		shared += job->members[a][role].comm != -1 &&
			  job->members[a][role].comm == job->members[b][role].comm;
	return shared;
}

static bool has_link(const struct sim_job *job, int rank, int link)
{
	for (int role = 0; role < SIM_ROLES; role++) {
		const struct sim_comm *comm = sim_job_comm(job, rank, role);

		if (comm && sim_comm_link(comm, job->members[rank][role].rank, link) != -1)
			return true;
	}
	return false;
}

enum status sim_job_check(const struct sim_job *job, char *why, size_t size)
{
	for (size_t i = 0; i < job->options.fault_count; i++) {
		const struct sim_fault *fault = &job->options.faults[i];

		if (fault->kind == SIM_DEADLOCK && shared_comms(job, fault->rank, fault->peer) < 2)
			text_format(
				why, size,
				"fault deadlock: ranks %d and %d do not share two communicators",
				fault->rank, fault->peer);
		else if (fault->kind == SIM_STUCK_SEND && fault->link > 0 &&
			 !has_link(job, fault->rank, fault->link))
			text_format(why, size,
				    "fault stuck-send: rank %d has fewer than %d links to other "
				    "nodes; use --channels to add some",
				    fault->rank, fault->link);
		else
			continue;
		return ERR_RANGE;
	}
	return OK;
}

#define DAY_NS (UINT64_C(86400) * 1000000000)
/* 2026-01-01: the start of a job's wall clock, so that the same seed gives the same bytes. */
#define EPOCH_NS (UINT64_C(1767225600) * 1000000000)

enum { GPU_AHEAD_NS = 220000, GPU_DRIFT_PPM = 8, INIT_NS = 150000000 };

enum identity_random {
	RANDOM_UPTIME = 0x100,
	RANDOM_WALL,
	RANDOM_GPU,
	RANDOM_DRIFT,
	RANDOM_PID,
	RANDOM_BOOT,
	RANDOM_UUID,
	RANDOM_PLACE,
};

/* In [-range, range]. */
static int64_t either_way(uint64_t range, uint64_t seed, uint64_t what, uint64_t which)
{
	return (int64_t)sim_random_below(2 * range + 1, seed, what, which) - (int64_t)range;
}

static void set_clocks(struct sim_clocks *clocks, const struct sim_job *job, int node, int rank)
{
	uint64_t seed = job->options.seed, shift_ns = job->options.clock_shift_ns;

	clocks->clock_ns = DAY_NS + job->options.begin_ns +
			   sim_random_below(30 * DAY_NS, seed, RANDOM_UPTIME, (uint64_t)node);
	clocks->wall_ns = EPOCH_NS + job->options.begin_ns +
			  (uint64_t)either_way(shift_ns / 2, seed, RANDOM_WALL, (uint64_t)node);
	clocks->gpu_ns = clocks->wall_ns + GPU_AHEAD_NS +
			 (uint64_t)either_way(shift_ns / 2, seed, RANDOM_GPU, (uint64_t)rank);
	clocks->gpu_drift_ppm = either_way(GPU_DRIFT_PPM, seed, RANDOM_DRIFT, (uint64_t)rank);
	clocks->place_ns = sim_random_below(SIM_PLACE_ERROR_NS, seed, RANDOM_PLACE, (uint64_t)rank);
}

void sim_identity_make(struct sim_identity *identity, const struct sim_job *job, int rank)
{
	uint64_t seed = job->options.seed;
	/* A restarted job gets its nodes in another order. */
	int node = (sim_job_node(job, rank) + job->options.attempt - 1) % job->options.nodes;
	uint64_t high = sim_random(seed, RANDOM_BOOT, (uint64_t)node * 2);
	uint64_t low = sim_random(seed, RANDOM_BOOT, (uint64_t)node * 2 + 1);

	*identity = (struct sim_identity){ .rank = rank, .local_rank = rank % job->options.gpus };
	set_clocks(&identity->clocks, job, node, rank);
	identity->pid = 2000 + (int64_t)sim_random_below(20000, seed, RANDOM_PID, (uint64_t)node) +
			3 * identity->local_rank + 100 * (job->options.attempt - 1);
	/* Ticks of 10 ms since the host started. */
	identity->start_ticks =
		identity->clocks.clock_ns / 10000000 + (uint64_t)identity->local_rank;
	text_format(identity->host, sizeof(identity->host), "node%04d", node);
	text_format(identity->boot_id, sizeof(identity->boot_id), "%08x-%04x-4%03x-8%03x-%012llx",
		    (unsigned int)(high >> 32), (unsigned int)(high >> 16 & 0xffff),
		    (unsigned int)(high & 0xfff), (unsigned int)(low >> 48 & 0xfff),
		    (unsigned long long)(low & UINT64_C(0xffffffffffff)));
}

static uint32_t mask_of(const struct sim_job *job)
{
	uint32_t mask = ABI_GROUP | ABI_COLL | ABI_P2P | ABI_PROXY_OP | ABI_PROXY_STEP;

	if (job->times == SIM_TIMES_KERNEL)
		mask |= ABI_KERNEL_CH;
	if (job->interface >= 5)
		mask |= ABI_GROUP_API | ABI_COLL_API | ABI_P2P_API | ABI_KERNEL_LAUNCH;
	if (job->interface >= 6)
		mask |= ABI_CE_COLL;
	return mask;
}

/*
 * A stopped process is only visible from outside: the files of such a job are like snapshots taken at the end of
 * the observation time.
 */
static void describe_state(const struct sim_identity *identity, const struct sim_job *job,
			   char *text, size_t size)
{
	const struct sim_options *options = &job->options;
	bool is_gone = sim_job_killed_ns(job, identity->rank) < options->seconds_ns;

	text[0] = '\0';
	if (sim_job_is_snapshot(job))
		text_format(text, size,
			    "snapshot_wall_ns=%llu\nsnapshot_operations=1000000000\n"
			    "snapshot_life=%s\nsnapshot_state=%c\n",
			    (unsigned long long)sim_wall(&identity->clocks, options->seconds_ns),
			    is_gone ? "killed" : "alive",
			    sim_job_fault(job, SIM_STOP, identity->rank, UINT64_MAX - 1) ? 'T'
											 : 'S');
}

/* Why there are no times, in the recorder's words. */
static const char *reason_of(const struct sim_job *job)
{
	if (job->times != SIM_TIMES_OFF)
		return "";
	return job->options.times == SIM_TIMES_OFF ? "switched off by RINGSIDE_TIMES"
						   : "NCCL before 2.28 does not show launches";
}

bool sim_identity_text(const struct sim_identity *identity, const struct sim_job *job, char *text,
		       size_t size)
{
	const struct sim_options *options = &job->options;
	bool is_kernel = job->times == SIM_TIMES_KERNEL;
	bool is_some = options->graph_times == SIM_GRAPH_TIMES_SOME;
	char file[96], snapshot[128];

	sim_identity_file(identity, file, sizeof(file));
	describe_state(identity, job, snapshot, sizeof(snapshot));
	return text_format(
		text, size,
		"host=%s\nboot_id=%s\npid=%lld\npid_namespace=4026531836\nstart_ticks=%llu\nuid="
		"1000\n"
		"exe=/usr/bin/python3\njob=sim-%llu\nrank=%d\nlocal_rank=%d\nworld_size=%d\n"
		"version=%s\nmode=%s\ninterface=%d\nregion=\nregion_kind=offline\n"
		"region_reason=written by a simulation\ntrace=%s\nbuffer=0\nquota=0\n"
		"kernel_events=%s\nkernel_events_reason=%s\ntimes=%s\ntimes_reason=%s\n"
		"events=%u\nstarted_wall_ns=%llu\n"
		"label.simulated=%s\n%s%s%s%s",
		identity->host, identity->boot_id, (long long)identity->pid,
		(unsigned long long)identity->start_ticks, (unsigned long long)options->seed,
		identity->rank, identity->local_rank, job->world, RINGSIDE_VERSION,
		options->is_full ? "full" : "trace", job->interface, file, is_kernel ? "on" : "off",
		is_kernel ? "asked for" : "default of this release", sim_times_name(job->times),
		reason_of(job), mask_of(job),
		(unsigned long long)sim_wall(&identity->clocks, INIT_NS),
		sim_workload_page(options->workload)->name, is_some ? "" : "times_graphs=",
		is_some ? "" : sim_graph_times_name(options->graph_times), is_some ? "" : "\n",
		snapshot);
}

void sim_identity_comm(const struct sim_identity *identity, const struct sim_job *job, int role,
		       uint32_t id, struct comm_info *info)
{
	const struct sim_member *member = &job->members[identity->rank][role];
	const struct sim_comm *comm = &job->comms[member->comm];
	uint64_t seed = job->options.seed, rank = (uint64_t)identity->rank;
	uint64_t high = sim_random(seed, RANDOM_UUID, rank * 2);
	uint64_t low = sim_random(seed, RANDOM_UUID, rank * 2 + 1);

	*info = (struct comm_info){ .id = id,
				    .interface = (uint32_t)job->interface,
				    .hash = comm->hash,
				    .rank = member->rank,
				    .gpu = identity->local_rank,
				    .mask = mask_of(job),
				    .init_ns = sim_clock(&identity->clocks,
							 INIT_NS + id * UINT64_C(3000000)) };
	/* The places of its times are on the recorder's clock already. */
	if (sim_job_has_cuda_events(job))
		info->gpu_offset_at_ns = info->init_ns;
	/* Before 2.27 NCCL reports neither sizes nor names. */
	if (job->interface >= 4) {
		info->nranks = comm->nranks;
		info->nnodes = comm->nnodes;
		text_copy(info->name, sizeof(info->name), comm->name);
	}
	text_format(info->gpu_uuid, sizeof(info->gpu_uuid), "GPU-%08x-%04x-4%03x-8%03x-%012llx",
		    (unsigned int)(high >> 32), (unsigned int)(high >> 16 & 0xffff),
		    (unsigned int)(high & 0xfff), (unsigned int)(low >> 48 & 0xfff),
		    (unsigned long long)(low & UINT64_C(0xffffffffffff)));
	text_format(info->gpu_bus, sizeof(info->gpu_bus), "0000:%02x:00.0",
		    0x1b + 0x10 * (unsigned int)identity->local_rank % 0xe0);
}

void sim_identity_file(const struct sim_identity *identity, char *name, size_t size)
{
	text_format(name, size, "r%d-%s-%lld-%llu.ringside", identity->rank, identity->host,
		    (long long)identity->pid, (unsigned long long)identity->start_ticks);
}
