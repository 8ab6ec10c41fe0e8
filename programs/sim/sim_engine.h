/*
 * The simulation: what each rank does when, worked out without waiting for it.
 *
 *	host      goes through its program, enqueues, runs ahead by a few calls
 *	  |
 *	queue     what the GPU computes, and where its calls come in between
 *	  |
 *	streams   one per communicator: launched calls, one after the other
 *	  |
 *	meetings  a collective, or a Send and its Recv: starts when its last rank has arrived
 *
 * Each level knows the time at which it does something as a number; nothing is done in the order of
 * time. When nothing can go on any more the job is over: it has finished, or it hangs.
 */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/op_layout.h"
#include "common/status.h"
#include "programs/sim/sim_edge.h"
#include "programs/sim/sim_job.h"
#include "programs/sim/sim_model.h"

enum { SIM_ENDS = 32, SIM_DEPTH_MAX = 16 };

struct sim_trace;
struct sim_score;
struct sim_meeting;
struct sim_launch;

/* One call of one rank, from its issue until its record is written. */
struct sim_call {
	struct sim_launch *launch;
	struct sim_call *next; /* of the same launch */
	struct sim_meeting *meeting;
	uint8_t function;
	uint8_t datatype;
	uint8_t channel; /* Send and Recv */
	bool is_over;
	bool is_odd_one; /* SIM_MISMATCH: this is the call that differs */
	uint8_t odd;	 /* enum sim_mismatch: by what */
	int32_t peer;	 /* or OP_NOBODY */
	int32_t root;	 /* or OP_NOBODY */
	uint64_t count;
	uint64_t number;
	uint64_t match;
	uint64_t signature;
	uint64_t nccl_sequence;
	uint64_t issue_ns;
	uint64_t begin_ns; /* Send and Recv that are over: both were there */
	uint64_t end_ns;
	struct sim_edge edge; /* Send and Recv that are over; bytes 0: within the node */
};

/* Calls that one kernel does: a group's, or a lone one. */
struct sim_launch {
	int rank;
	int role;
	struct sim_launch *next_in_stream;
	struct sim_launch *next_of_rank, *previous_of_rank; /* all that are not over */
	struct sim_call *calls;
	unsigned int count;
	unsigned int open;
	uint64_t index;	    /* n-th launch of its rank, from 0 */
	bool is_unlaunched; /* SIM_NOT_LAUNCHED: its call was made, and that is all */
	uint64_t launch_ns;
	uint64_t ready_ns; /* its stream may start it */
	uint64_t post_ns;  /* its transfers are posted; 0: not yet */
	uint64_t start_ns; /* the kernel runs; 0: not yet */
	uint64_t end_ns;
};

struct sim_stream {
	struct sim_launch *head, *tail;
	uint64_t pushed, finished; /* launches */
	uint64_t free_ns;
	uint64_t ends_ns[SIM_ENDS];
	uint64_t numbers; /* calls */
	uint64_t collectives;
	uint64_t signature;
	uint64_t sequences[OP_FUNCTIONS];
	uint32_t *peers;	/* [peer * 2 + is_send]: how many so far */
	bool will_drift;	/* a call to itself was recorded: after this launch ... */
	bool has_drifted;	/* ... GPU stamps of channel 0 are old ones */
	bool is_drift_known;	/* the recorder has found out */
	uint64_t old_stamps[2]; /* of channel 0's last kernel: job's time */
};

/* What the GPU was given to do. */
struct sim_task {
	uint8_t kind; /* enum sim_step_kind */
	uint8_t role;
	uint32_t behind;
	uint64_t ns; /* COMPUTE */
	uint64_t enqueued_ns;
	struct sim_launch *launch;
};

enum sim_rank_end {
	SIM_GOES_ON = 0,
	SIM_FINISHED = 1,
	SIM_STOPPED = 2, /* never arrives, does not come back from its call, or got SIGSTOP */
	SIM_DEAD = 3,
};

/* SIM_DEADLOCK and SIM_MISMATCH_ORDER: the call of step `later` is made before that of `earlier`. */
struct sim_detour {
	bool is_planned;
	bool has_begun;	  /* the later call was made in place of the earlier one, or before it */
	bool is_deadlock; /* and the earlier one waits until that is over */
	uint64_t iteration;
	size_t earlier, later;
};

struct sim_rank {
	uint64_t host_ns;
	uint64_t compute_ns;
	uint64_t iteration; /* 0: the start program */
	size_t step;
	enum sim_rank_end end;
	bool is_waiting_for_iteration;
	bool has_mismatched;
	struct sim_detour detour;
	bool is_listed; /* in the list of ranks that may go on */
	struct sim_task *tasks;
	size_t task_first, task_count, task_room;
	uint64_t launches;
	uint64_t launch_ends_ns[SIM_ENDS]; /* [launch % SIM_ENDS], UINT64_MAX: not over */
	struct sim_launch *first_open, *last_open;
	struct sim_stream streams[SIM_ROLES];
};

/* A collective's ranks, or a Send [0] and its Recv [1]. */
struct sim_meeting {
	struct sim_meeting *next; /* in its bucket, or free */
	int comm;
	bool is_pair;
	bool is_broken; /* all are there and it will never end */
	int odd;	/* the rank that took another one for the root and has left; -1 none */
	int odd_root;	/* the one it took */
	int from, to;	/* of a pair: communicator's ranks */
	uint64_t match;
	int expected;
	int issued;
	int posted;
	bool has_still;
	uint64_t still_ns;  /* since when it hangs, once sim_stall.h has worked it out */
	uint32_t *progress; /* and how far it got */
	struct sim_call *calls[];
};

struct sim_engine {
	const struct sim_job *job;
	struct sim_trace *trace; /* NULL: nothing is written */
	struct sim_score *score; /* NULL: nothing is kept to be played */
	struct sim_rank *ranks;
	struct sim_meeting **buckets;
	struct sim_meeting **free_meetings; /* by communicator; [comm_count]: pairs */
	struct sim_call *free_calls;
	struct sim_launch *free_launches;
	int *list; /* ranks that may go on */
	int listed;
	uint64_t iterations_decided; /* those before it are run by everybody */
	uint64_t iterations_end;     /* UINT64_MAX: not known yet */
	uint64_t latest_ns;	     /* at which anything happened */
	uint64_t end_ns;	     /* of the job, or of watching it hang */
	bool is_hung;
	enum status status; /* of the first failure: memory, disk */
};

/* `trace` is borrowed and may be NULL. ERR_NO_SPACE. */
enum status sim_engine_init(struct sim_engine *engine, const struct sim_job *job,
			    struct sim_trace *trace);
/* To the end. Then calls that are not over are in each rank's list first_open. */
enum status sim_engine_run(struct sim_engine *engine);
void sim_engine_release(struct sim_engine *engine);

/* The parts call each other by these. */
void sim_engine_list(struct sim_engine *engine, int rank);
void sim_engine_launch_over(struct sim_engine *engine, struct sim_launch *launch);

struct sim_launch *sim_issue(struct sim_engine *engine, int rank, const struct sim_step *step);

/* The call that this rank makes at its step: the program's, unless a fault makes it take another way.
 * NULL: it was made before. */
const struct sim_step *sim_detour_step(struct sim_engine *engine, int rank,
				       const struct sim_program *program);
/* That call was made: is the step done? Else the other communicator is waited for first. */
bool sim_detour_is_done(struct sim_engine *engine, int rank);
/* Is the call that it makes at this step one of two that changed places? */
bool sim_detour_is_swapped(const struct sim_rank *rank);

void sim_meet_issue(struct sim_engine *engine, struct sim_call *call);
void sim_meet_post(struct sim_engine *engine, struct sim_launch *launch);
/* How the meeting would go from then on; `call` is one of its calls that is as it should be. */
void sim_meet_plan(const struct sim_engine *engine, const struct sim_meeting *meeting,
		   const struct sim_call *call, uint64_t start_ns, struct sim_plan *plan);
void sim_meet_plan_pair(const struct sim_engine *engine, const struct sim_meeting *meeting,
			const struct sim_call *call, uint64_t start_ns, struct sim_plan *plan);
struct sim_call *sim_meet_call_new(struct sim_engine *engine);
struct sim_launch *sim_meet_launch_new(struct sim_engine *engine);
void sim_meet_launch_free(struct sim_engine *engine, struct sim_launch *launch);

#endif
