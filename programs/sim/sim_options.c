#include "programs/sim/sim_options.h"

#include <string.h>

#include "common/text.h"
#include "programs/sim/host.h"
#include "programs/sim/sim_role.h"

enum { DEFAULT_SECONDS = 10, DEFAULT_SAMPLE_LEVEL = 3 };
#define SECOND_NS UINT64_C(1000000000)

static const struct sim_workload_page pages[SIM_WORKLOADS] = {
	[SIM_DDP] = { "ddp",
		      "Data parallel: gradients are summed over all ranks by one AllReduce per "
		      "bucket, "
		      "while the backward pass still computes. Begins with a Broadcast of the "
		      "weights.",
		      "of the buckets (25MiB)" },
	[SIM_FSDP] = { "fsdp",
		       "Sharded data parallel: each layer's weights are collected by an AllGather "
		       "before "
		       "they are used, forward and backward, and its gradients go back by a "
		       "ReduceScatter. One small AllReduce for the norm of the gradients.",
		       "of a layer's weights (256MiB)" },
	[SIM_TP_PP] = { "tp-pp",
			"Tensor and pipeline parallel: AllReduce in each tensor group (--tp, one "
			"node), "
			"Send and Recv between the stages of a pipeline (--pp), AllReduce of "
			"gradients "
			"between the pipelines at the end.",
			"of the activations (32MiB)" },
	[SIM_MOE] = { "moe",
		      "Mixture of experts: tokens go to their experts and back by an all-to-all "
		      "(grouped "
		      "Send and Recv, to itself, too) in each expert group (--ep), after an "
		      "AllGather of "
		      "how many; AllReduce of gradients between groups and over all ranks.",
		      "of what one rank sends another (2MiB)" },
	[SIM_LOOP] = { "loop",
		       "A benchmark: AllReduce, AllGather and ReduceScatter of each size in turn "
		       "over all "
		       "ranks.",
		       "of the messages (1KiB,1MiB,64MiB)" },
};

const struct sim_workload_page *sim_workload_page(enum sim_workload workload)
{
	return (unsigned int)workload < SIM_WORKLOADS ? &pages[workload] : NULL;
}

enum sim_workload sim_workload_find(const char *name)
{
	int i = 0;

	while (i < SIM_WORKLOADS && strcmp(pages[i].name, name) != 0)
		i++;
	return (enum sim_workload)i;
}

void sim_options_init(struct sim_options *options)
{
	*options = (struct sim_options){
		.nodes = 1,
		.gpus = 8,
		.workload = SIM_DDP,
		.seed = 1,
		.release = HOST_NCCL_2_28,
		.clock_shift_ns = 100000000,
		.sample_level = DEFAULT_SAMPLE_LEVEL,
		.hang_ns = DEFAULT_SECONDS * SECOND_NS,
		.jitter_permille = 20,
		.nvlink = { .bytes_per_us = 360000, .latency_ns = 1000 },
		.network = { .bytes_per_us = 48000, .latency_ns = 5000 },
	};
}

int sim_options_interface(const struct sim_options *options)
{
	return host_release_native(options->release);
}

static enum status check_group(const char *name, int size, int world, char *why, size_t why_size)
{
	if (size >= 1 && size <= world && world % size == 0)
		return OK;
	text_format(why, why_size, "%d ranks cannot be split into groups of %d (--%s)", world, size,
		    name);
	return ERR_RANGE;
}

static enum status finish_groups(struct sim_options *options, char *why, size_t size)
{
	int world = sim_options_world(options);
	enum status status;

	if (options->tensor == 0)
		options->tensor = options->gpus;
	status = check_group("tp", options->tensor, world, why, size);
	if (status != OK)
		return status;
	if (options->pipeline == 0)
		for (options->pipeline = 4; world / options->tensor % options->pipeline != 0;)
			options->pipeline /= 2;
	if (world / options->tensor % options->pipeline != 0) {
		text_format(why, size,
			    "%d groups of %d ranks cannot be put into pipelines of %d (--pp)",
			    world / options->tensor, options->tensor, options->pipeline);
		return ERR_RANGE;
	}
	if (options->expert == 0)
		options->expert = options->nodes % 2 == 0 ? 2 * options->gpus : options->gpus;
	return check_group("ep", options->expert, world, why, size);
}

static enum status check_rank(const struct sim_fault *fault, const char *key, int rank, int world,
			      char *why, size_t size)
{
	if (rank < world)
		return OK;
	text_format(why, size, "fault %s: there is no rank %d (%s=), the last one is %d",
		    sim_fault_page(fault->kind)->name, rank, key, world - 1);
	return ERR_RANGE;
}

static bool has_role(const struct sim_options *options, int role)
{
	switch (role) {
	case -1:
	case SIM_WORLD:
		return true;
	case SIM_TENSOR:
	case SIM_PIPELINE:
		return options->workload == SIM_TP_PP;
	case SIM_EXPERT:
		return options->workload == SIM_MOE;
	default:
		return options->workload == SIM_TP_PP || options->workload == SIM_MOE;
	}
}

static enum status check_ranks(const struct sim_fault *fault, int world, char *why, size_t size)
{
	enum status status = check_rank(fault, "rank", fault->rank, world, why, size);

	if (status == OK)
		status = check_rank(fault, "from", fault->from, world, why, size);
	if (status == OK)
		status = check_rank(fault, "to", fault->to, world, why, size);
	if (status == OK)
		status = check_rank(fault, "peer", fault->peer, world, why, size);
	return status;
}

/* What a fault needs of the job. */
static enum status check_needs(const struct sim_options *options, const struct sim_fault *fault,
			       char *why, size_t size)
{
	const char *name = sim_fault_page(fault->kind)->name;
	const char *workload = pages[options->workload].name;

	if (fault->kind == SIM_DEGRADED_NETWORK && options->nodes == 1)
		text_format(why, size, "fault %s: one node has no network; say --nodes 2 or more",
			    name);
	else if (fault->kind == SIM_SLOW_NVLINK && options->gpus == 1)
		text_format(why, size, "fault %s: nodes of one GPU have no links inside", name);
	else if (fault->kind == SIM_SLOW_NVLINK && fault->node >= options->nodes)
		text_format(why, size, "fault %s: there is no node %d, the last one is %d", name,
			    fault->node, options->nodes - 1);
	else if (fault->kind == SIM_DEADLOCK && options->workload != SIM_TP_PP &&
		 options->workload != SIM_MOE)
		text_format(why, size, "fault %s: workload %s has one communicator; say -w tp-pp",
			    name, workload);
	else if (fault->kind == SIM_MISMATCH && fault->what == SIM_MISMATCH_ROOT &&
		 options->workload != SIM_DDP)
		text_format(why, size, "fault %s: workload %s has no call with a root; say -w ddp",
			    name, workload);
	else if (fault->kind == SIM_GPU_STUCK && fault->what == SIM_NOT_LAUNCHED &&
		 sim_options_interface(options) < 5)
		text_format(why, size,
			    "fault %s: this release does not show calls that were not launched; "
			    "say --release 2.28",
			    name);
	else
		return OK;
	return ERR_RANGE;
}

static enum status finish_fault(const struct sim_options *options, struct sim_fault *fault,
				char *why, size_t size)
{
	const char *name = sim_fault_page(fault->kind)->name;
	enum status status = check_ranks(fault, sim_options_world(options), why, size);

	if (status != OK)
		return status;
	if (!fault->has_at)
		fault->at_ns = options->at_ns;
	if (fault->until_ns <= fault->at_ns) {
		text_format(why, size, "fault %s ends (until=) before it begins (at=)", name);
		return ERR_RANGE;
	}
	if (!has_role(options, fault->role)) {
		text_format(why, size, "fault %s: workload %s has no communicator '%s'", name,
			    pages[options->workload].name, sim_role_name(fault->role));
		return ERR_UNKNOWN;
	}
	return check_needs(options, fault, why, size);
}

static enum status finish_kernel(struct sim_options *options, char *why, size_t size)
{
	const struct kernel_policy *policy =
		kernel_policy_of((unsigned int)sim_options_interface(options));

	if (!options->is_kernel_said)
		options->kernel = (enum kernel_events)policy->by_default;
	if (options->kernel != KERNEL_EVENTS_SAMPLED || policy->can_sample)
		return OK;
	text_format(why, size,
		    "kernel events of this release cannot be sampled; say --kernel, --no-kernel or "
		    "--release 2.28");
	return ERR_RANGE;
}

enum status sim_options_finish(struct sim_options *options, char *why, size_t size)
{
	uint64_t last_ns = 0;
	enum status status;

	if (sim_options_world(options) > SIM_RANKS_MAX) {
		text_format(why, size, "%d nodes of %d GPUs are more than %d ranks", options->nodes,
			    options->gpus, SIM_RANKS_MAX);
		return ERR_RANGE;
	}
	if (sim_options_world(options) < 2) {
		text_format(why, size, "one rank alone does not communicate; say --gpus 2 or more");
		return ERR_RANGE;
	}
	status = finish_kernel(options, why, size);
	if (status != OK)
		return status;
	status = finish_groups(options, why, size);
	for (size_t i = 0; i < options->fault_count && status == OK; i++) {
		status = finish_fault(options, &options->faults[i], why, size);
		if (options->faults[i].kind != SIM_FAULT_NONE && options->faults[i].at_ns > last_ns)
			last_ns = options->faults[i].at_ns;
	}
	if (options->seconds_ns == 0 && options->iterations == 0)
		options->seconds_ns = last_ns + DEFAULT_SECONDS * SECOND_NS;
	return status;
}
