/* Everything that can be chosen for a simulated job. */
#ifndef SIM_OPTIONS_H
#define SIM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/nccl_interface.h"
#include "common/status.h"
#include "programs/sim/sim_fault.h"

enum sim_workload {
	SIM_DDP = 0,
	SIM_FSDP = 1,
	SIM_TP_PP = 2,
	SIM_MOE = 3,
	SIM_LOOP = 4,
	SIM_WORKLOADS = 5,
};

enum {
	SIM_NODES_MAX = 4096,
	SIM_GPUS_MAX = 16,
	SIM_RANKS_MAX = 16384,
	SIM_LIVE_RANKS_MAX = 512,
	SIM_SIZES_MAX = 16,
};

/* A link's two figures. Bandwidth in bytes per microsecond: the same number as MB/s. */
struct sim_link {
	uint64_t bytes_per_us;
	uint64_t latency_ns;
};

struct sim_options {
	int nodes;
	int gpus; /* of a node */
	enum sim_workload workload;
	int tensor, pipeline, expert; /* sizes of these groups; 0: the workload's own choice */
	int channels;		      /* of communicators between nodes; 0: as many as suit */
	uint64_t iterations;	      /* 0: by time */
	uint64_t seconds_ns;	      /* 0: by iterations, or 10 s past the last fault's begin */
	uint64_t sizes[SIM_SIZES_MAX];
	size_t size_count;  /* 0: the workload's own */
	uint64_t period_ns; /* compute time of an iteration; 0: the workload's own */
	struct sim_fault faults[SIM_FAULTS_MAX];
	size_t fault_count;
	uint64_t at_ns; /* of faults that do not say it themselves */
	uint64_t seed;
	int release; /* 22809 */
	enum kernel_events kernel;
	bool is_kernel_said;	   /* else: the recorder's default for the release */
	unsigned int sample_level; /* sampled: one block of collectives in 2^level is timed */
	bool is_full;		   /* mode full: details of every operation */
	uint64_t clock_shift_ns;
	uint64_t hang_ns; /* how long a hung job is watched */
	unsigned int jitter_permille;
	struct sim_link nvlink, network;
	bool is_offline;
	bool is_threads;	/* all ranks in one process */
	bool is_node_processes; /* those of a node in one process */
	const char *plugin;
	const char *directory;
	const char *regions; /* below it a directory per node for its regions; NULL: one for all */
};

void sim_options_init(struct sim_options *options);

/* Fill in what depends on other options and check that they fit each other. On failure `why` has
 * one line. */
enum status sim_options_finish(struct sim_options *options, char *why, size_t size);

/* The profiler interface version of the release. */
int sim_options_interface(const struct sim_options *options);

static inline int sim_options_world(const struct sim_options *options)
{
	return options->nodes * options->gpus;
}

/* What --list says. NULL past the table. */
struct sim_workload_page {
	const char *name;
	const char *about;
	const char *sizes; /* what --sizes means */
};
const struct sim_workload_page *sim_workload_page(enum sim_workload workload);
/* SIM_WORKLOADS: no such. */
enum sim_workload sim_workload_find(const char *name);

#endif
