/*
 * Hand-made recordings for tests of src/analysis: processes whose operations are all in live slots,
 * which need no file. Times are small numbers that are easy to add up.
 */
#ifndef HAND_MADE_H
#define HAND_MADE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recording/recording.h"

enum { HAND_PROCESSES = 64, HAND_COMMS = 32, HAND_OPS = 4096 };

struct hand_made {
	struct recording recording;
	struct recording_process *list[HAND_PROCESSES];
};

static inline struct recording_process *hand_process(struct hand_made *hand, const char *job,
						     int64_t rank, const char *host)
{
	struct recording_process *process = calloc(1, sizeof(*process));

	if (process == NULL || hand->recording.count == HAND_PROCESSES)
		abort();
	snprintf(process->job, sizeof(process->job), "%s", job);
	snprintf(process->host, sizeof(process->host), "%s", host);
	snprintf(process->mode, sizeof(process->mode), "trace");
	process->rank = rank;
	process->pid = 1000 + (int64_t)hand->recording.count;
	process->world_size = -1;
	process->life = RECORDING_ENDED;
	process->has_counts = process->is_final = true;
	process->comms = calloc(HAND_COMMS, sizeof(*process->comms));
	process->flights = calloc(HAND_OPS, sizeof(*process->flights));
	if (process->comms == NULL || process->flights == NULL)
		abort();
	hand->list[hand->recording.count++] = process;
	hand->recording.processes = hand->list;
	return process;
}

static inline uint32_t hand_comm(struct recording_process *process, uint64_t hash, const char *name,
				 int32_t rank, int32_t nranks, int32_t nnodes)
{
	struct recording_comm *comm = &process->comms[process->comm_count++];

	if (process->comm_count > HAND_COMMS)
		abort();
	*comm = (struct recording_comm){ .info = { .id = (uint32_t)process->comm_count,
						   .interface = 5,
						   .hash = hash,
						   .rank = rank,
						   .nranks = nranks,
						   .nnodes = nnodes,
						   .gpu = -1 },
					 .has_counts = true };
	snprintf(comm->info.name, sizeof(comm->info.name), "%s", name);
	return comm->info.id;
}

/* Ranks of one communicator, two on each host. */
static inline void hand_pairs(struct hand_made *hand, int ranks)
{
	for (int rank = 0; rank < ranks; rank++) {
		char host[2] = { (char)('a' + rank / 2), '\0' };
		struct recording_process *process = hand_process(hand, "j", rank, host);

		hand_comm(process, 0x77, "world", rank, ranks, ranks / 2);
		process->comms[0].info.gpu = rank % 2;
	}
}

/* A collective that took so long by the GPU's clock and ended at end_ns of the recorder's. */
static inline struct op_record *hand_op(struct recording_process *process, uint32_t comm,
					uint8_t function, uint64_t match, uint64_t bytes,
					uint64_t duration_ns, uint64_t end_ns)
{
	struct op_record *op = &process->flights[process->flight_count++].op;
	struct recording_comm *of = &process->comms[comm - 1];

	if (process->flight_count > HAND_OPS)
		abort();
	*op = (struct op_record){ .comm = comm,
				  .function = function,
				  .datatype = OP_FLOAT32,
				  .algorithm = OP_RING,
				  .protocol = OP_SIMPLE,
				  .number = ++of->counts.issued,
				  .match = match,
				  .signature = 0x1000 + match,
				  .bytes = bytes,
				  .root = OP_NOBODY,
				  .peer = OP_NOBODY,
				  .state = OP_DONE,
				  .time_source = OP_TIME_KERNEL_GPU,
				  .issue_ns = end_ns > duration_ns ? end_ns - duration_ns : 1,
				  .active_ns = end_ns > duration_ns ? end_ns - duration_ns : 1,
				  .done_ns = end_ns,
				  .gpu_start_ns = 1000000000,
				  .gpu_stop_ns = 1000000000 + duration_ns,
				  .kernels_started = 1,
				  .kernels_stopped = 1 };
	of->counts.recorded++;
	of->counts.timed++;
	return op;
}

static inline void hand_release(struct hand_made *hand)
{
	for (size_t i = 0; i < hand->recording.count; i++) {
		free(hand->list[i]->comms);
		free(hand->list[i]->flights);
		free(hand->list[i]->anchors);
		free(hand->list[i]);
	}
	memset(hand, 0, sizeof(*hand));
}

#endif
