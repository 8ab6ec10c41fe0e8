/*
 * The simulation: computes what each rank does when, without real waiting.
 *
 *	host      executes its program, enqueues, runs a few calls ahead
 *	  |
 *	queue     what the GPU computes, and where its calls come in between
 *	  |
 *	streams   one per communicator: launched calls, one after the other
 *	  |
 *	shared    a collective, or a Send and its Recv: starts when its last rank has arrived
 *
 * Each level keeps its times as numbers; events are not processed in the order of time. When nothing can progress,
 * the job has finished or hangs.
 */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "sim/host.h"
#include "sim/sim_job.h"

/*
 * How long communication takes. A link has a bandwidth and a latency per direction; a collective is as fast as the
 * slowest link of each of its channels.
 */

/* How a collective runs once its last rank has arrived. */
struct sim_plan {
	uint8_t algorithm; /* enum op_algorithm */
	uint8_t protocol;  /* enum op_protocol */
	uint8_t channels;
	bool is_towards_root;
	int32_t root;	     /* of a chain; OP_NOBODY: ring */
	uint32_t steps;	     /* transfers per channel and connection */
	uint64_t step_bytes; /* maximum */
	uint64_t link_bytes; /* per channel and connection */
	uint64_t channel_ns[SIM_CHANNELS_MAX];
	uint64_t longest_ns;		    /* of these */
	uint64_t lost_ns[SIM_CHANNELS_MAX]; /* of channel_ns: waiting for lost packets */
	int lost_by[SIM_CHANNELS_MAX];	    /* the rank that sent them */
};

/* `bytes` as nccl-tests counts them; `ns`: when it starts. */
void sim_model_collective(struct sim_plan *plan, const struct sim_job *job, struct sim_comm *comm,
			  uint8_t function, uint64_t bytes, uint64_t ns);

/* A send to another rank or to itself; `fan` transfers share the sender's or receiver's port. The
 * plan has one channel. */
void sim_model_send(struct sim_plan *plan, const struct sim_job *job, int from, int to,
		    uint64_t bytes, unsigned int fan, uint64_t ns);

enum sim_rank_end {
	SIM_GOES_ON = 0,
	SIM_FINISHED = 1,
	SIM_STOPPED = 2, /* never arrives, does not return from its call, or got SIGSTOP */
	SIM_DEAD = 3,
};

/*
 * A score: what each rank of a job has to do when, computed beforehand by the engine, so that a live job and one
 * written offline behave the same.
 */

/* One call. All times are the job's. */
struct sim_play {
	uint64_t launch; /* n-th launch of its rank; calls of one launch are one group */
	uint64_t number;
	uint64_t match;
	uint64_t count;
	uint64_t issue_ns;
	uint64_t start_ns;    /* 0: the GPU never starts it */
	uint64_t begin_ns;    /* all ranks have arrived; 0: never */
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
	struct sim_play *plays; /* in call order */
	size_t count;
	enum sim_rank_end end;
};

struct sim_score {
	int world;
	struct sim_score_rank *ranks;
	uint64_t end_ns; /* of the job, or of observing the hang */
	uint64_t still_ns;
	uint64_t iterations;
	bool is_hung;
};

/* Computes the score. ERR_NO_SPACE. */
enum status sim_score_init(struct sim_score *score, const struct sim_job *job);
void sim_score_release(struct sim_score *score);

/* The interval between an operation's steps, so that the last one is done at its end. */
uint64_t sim_score_period(uint64_t duration_ns, uint32_t steps);

/* A job that is not run: writes its trace files as if it had been. */

/*
 * On failure `failed` names the file, if it was one; ERR_SYSTEM with errno. `result` was made by sim_result_init().
 */
enum status sim_offline_run(const struct sim_job *job, const char *directory,
			    struct sim_result *result, char *failed, size_t size);

#endif
