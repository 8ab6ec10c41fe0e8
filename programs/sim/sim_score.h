/*
 * A score: what each rank of a job has to play, worked out beforehand by the engine, so that a job
 * that runs and one that is written offline behave the same.
 */
#ifndef SIM_SCORE_H
#define SIM_SCORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "programs/sim/host.h"
#include "programs/sim/sim_outcome.h"

/* One call. All times are the job's. */
struct sim_play {
	uint64_t launch; /* n-th of its rank; calls of one launch are one group */
	uint64_t number;
	uint64_t match;
	uint64_t count;
	uint64_t issue_ns;
	uint64_t start_ns;    /* 0: the GPU never gets there */
	uint64_t begin_ns;    /* all are there; 0: that never happens */
	uint64_t duration_ns; /* from then on */
	uint64_t end_ns;      /* 0: never */
	uint32_t steps;
	uint32_t step_bytes;
	int32_t peer, root;
	uint8_t role, function, datatype, algorithm, protocol;
	uint8_t first_channel, channels;
	uint8_t stuck; /* enum host_stuck; not NONE: it never ends */
	uint32_t stuck_kernels;
	uint8_t edge_count;
	struct host_edge edges[HOST_EDGES];
};

struct sim_score_rank {
	struct sim_play *plays; /* in the order of their calls */
	size_t count, room;
	enum sim_rank_end end;
};

struct sim_score {
	int world;
	struct sim_score_rank *ranks;
	uint64_t end_ns; /* of the job, or of watching it hang */
	uint64_t still_ns;
	uint64_t iterations;
	bool is_hung;
};

/* Work it out. ERR_NO_SPACE. */
enum status sim_score_init(struct sim_score *score, const struct sim_job *job);
void sim_score_release(struct sim_score *score);

/* The engine hands on what became of a call. */
enum status sim_score_add(struct sim_score *score, const struct sim_outcome *outcome);

/* The rhythm of an operation's steps, such that the last one is through at its end. */
uint64_t sim_score_period(uint64_t duration_ns, uint32_t steps);

#endif
