/*
 * A hand-made job of nodes x gpus ranks, for tests of slowness: tensor groups within nodes (tp0 ...), data
 * groups between nodes (dp0 ...), one communicator of all (world). Each test says which transfers are
 * slower and which rank is late.
 */
#ifndef TRANSFERS_H
#define TRANSFERS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "doctor/doctor.h"
#include "tests/support/hand_made.h"
#include "tests/support/poisoned_rest.h"

enum { TRANSFERS_CALLS = 160 };

enum transfers_group { TRANSFERS_TP = 0, TRANSFERS_DP = 1, TRANSFERS_WORLD = 2 };

struct transfers_what {
	enum transfers_group group;
	int index; /* of the group's communicator */
	uint64_t bytes;
	unsigned int call; /* from 0 */
};

struct transfers {
	int nodes;
	int gpus;
	uint64_t seed;
	/* How many times longer than usual; NULL: 1. */
	double (*slower)(const struct transfers_what *what);
	/* Does it run as a tree instead of a ring? NULL: never. */
	bool (*is_tree)(const struct transfers_what *what);
	int late_rank; /* late by late_ns for everything; -1 none */
	double late_ns;
	unsigned int late_from; /* from this call on */
	double pause_ns;	/* between calls; 0: 5 ms */
	uint64_t small_bytes;	/* instead of the smaller size; 0: none */
	bool costs_time; /* what is slower delays the next call; else it hides behind compute */
	/* Filled in by transfers_make(): */
	struct hand_made hand;
	struct timeline_report report;
};

static const uint64_t transfers_sizes[] = { 4 << 20, 16 << 20 };

static inline double transfers_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (double)(*seed >> 40) / (double)(1 << 24);
}

/* The time of a transfer, with some percent of noise. Rings: n - 1 steps of latency, plus bandwidth. */
static inline double transfers_ns(const struct transfers *job, const struct transfers_what *what)
{
	static const double gigabytes[] = { 200, 25, 50 };
	const int ranks[] = { job->gpus, job->nodes, job->nodes * job->gpus };
	double n = ranks[what->group];
	uint64_t seed = job->seed * 977 + (uint64_t)what->group * 131 + (uint64_t)what->index * 31 +
			what->bytes + what->call;
	double noise;

	transfers_random(&seed);
	noise = 0.97 + 0.06 * transfers_random(&seed);
	return (5000 + 2 * (n - 1) / n * (double)what->bytes / gigabytes[what->group]) * noise *
	       (job->slower ? job->slower(what) : 1);
}

static inline void transfers_call(struct transfers *job, struct recording_process *process,
				  uint32_t comm, const struct transfers_what *what, uint64_t match,
				  int rank, uint64_t *now_ns)
{
	uint64_t seed = job->seed + (uint64_t)rank * 7919 + match * 104729;
	double waits = rank == job->late_rank ? 0 : 20000 * transfers_random(&seed);
	bool is_with = (what->group == TRANSFERS_WORLD) ||
		       (what->group == TRANSFERS_TP && what->index == job->late_rank / job->gpus) ||
		       (what->group == TRANSFERS_DP && what->index == job->late_rank % job->gpus);
	struct op_record *op;

	if (job->late_rank >= 0 && rank != job->late_rank && is_with &&
	    what->call >= job->late_from)
		waits += job->late_ns;
	*now_ns += (uint64_t)(job->pause_ns > 0 ? job->pause_ns : 5e6);
	if (job->costs_time && job->slower)
		*now_ns += (uint64_t)(transfers_ns(job, what) * (1 - 1 / job->slower(what)));
	op = hand_op(process, comm, OP_ALL_REDUCE, match, what->bytes,
		     (uint64_t)(transfers_ns(job, what) + waits), *now_ns);
	if (job->is_tree && job->is_tree(what))
		op->algorithm = OP_TREE;
}

static inline void transfers_rank(struct transfers *job, int rank)
{
	int node = rank / job->gpus, gpu = rank % job->gpus;
	char host[32], name[32];
	struct recording_process *process;
	uint64_t now_ns = 1000000000;
	uint32_t comms[3];

	snprintf(host, sizeof(host), "node%d", node);
	process = hand_process(&job->hand, "job", rank, host);
	snprintf(name, sizeof(name), "tp%d", node);
	comms[TRANSFERS_TP] = hand_comm(process, 0x100 + (uint64_t)node, name, gpu, job->gpus, 1);
	snprintf(name, sizeof(name), "dp%d", gpu);
	comms[TRANSFERS_DP] =
		hand_comm(process, 0x200 + (uint64_t)gpu, name, node, job->nodes, job->nodes);
	comms[TRANSFERS_WORLD] =
		hand_comm(process, 0x300, "world", rank, job->nodes * job->gpus, job->nodes);
	for (unsigned int call = 0; call < TRANSFERS_CALLS; call++)
		for (unsigned int group = 0; group < 3; group++)
			for (unsigned int size = 0; size < 2; size++) {
				struct transfers_what what = {
					.group = (enum transfers_group)group,
					.index = group == TRANSFERS_TP	 ? node
						 : group == TRANSFERS_DP ? gpu
									 : 0,
					.bytes = size == 0 && job->small_bytes > 0
							 ? job->small_bytes
							 : transfers_sizes[size],
					.call = call,
				};

				transfers_call(job, process, comms[group], &what,
					       2 * call + size + 1, rank, &now_ns);
			}
}

static inline void transfers_make(struct transfers *job)
{
	struct timeline_options options = { .custom_by = { BASELINE_BY }, .custom_count = 1 };

	for (int rank = 0; rank < job->nodes * job->gpus; rank++)
		transfers_rank(job, rank);
	if (timeline_report_make(&job->report, &job->hand.recording, NULL, &options) != OK)
		abort();
	poison_job(&job->report.job);
}

static inline void transfers_release(struct transfers *job)
{
	timeline_report_release(&job->report);
	hand_release(&job->hand);
}

#endif
