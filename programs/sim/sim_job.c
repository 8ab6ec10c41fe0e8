#include "programs/sim/sim_job.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "programs/sim/sim_random.h"

static enum status add_comm(struct sim_job *job, enum sim_role role, int index, const int *ranks,
			    int count)
{
	uint64_t parent = role == SIM_WORLD ? sim_random(job->options.seed, 0x776f726c64, 0)
					    : job->comms[0].hash;
	enum status status = sim_comm_init(&job->comms[job->comm_count], role, index, parent, ranks,
					   count, job->options.gpus, job->options.channels);

	if (status != OK)
		return status;
	for (int i = 0; i < count; i++)
		job->members[ranks[i]][role] =
			(struct sim_member){ .comm = job->comm_count, .rank = i };
	job->comm_count++;
	return OK;
}

/* Groups of `count` ranks that lie `stride` apart, within blocks of count * stride. */
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
				 .interface = sim_options_interface(options) };
	/* Every group but the world has two ranks or more, and a workload has three kinds. */
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
	/* A pipeline's stages are as far apart as its communicator's ranks: whole blocks. */
	return &job->programs[rank / (job->world / job->stages)];
}

struct sim_comm *sim_job_comm(const struct sim_job *job, int rank, int role)
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

	return fault ? fault->factor_permille : 1000;
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
		    (fault->kind == SIM_DEGRADED_NETWORK && is_network) ||
		    (fault->kind == SIM_SLOW_NVLINK && !is_network &&
		     (fault->node == -1 || fault->node == sim_job_node(job, from))))
			permille = permille * fault->factor_permille / 1000;
	}
	return permille;
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

/* When the first fault of this kind happens to the rank. */
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
	/* In a job of one node sends within it stand for those over the network. */
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

/* Communicators of which both are members. */
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
			text_format(why, size,
				    "fault deadlock: ranks %d and %d are not together in two "
				    "communicators",
				    fault->rank, fault->peer);
		else if (fault->kind == SIM_STUCK_SEND && fault->link > 0 &&
			 !has_link(job, fault->rank, fault->link))
			text_format(why, size,
				    "fault stuck-send: rank %d has fewer than %d links to other "
				    "nodes; --channels makes more of them",
				    fault->rank, fault->link);
		else
			continue;
		return ERR_RANGE;
	}
	return OK;
}
