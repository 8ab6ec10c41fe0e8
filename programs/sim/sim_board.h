/*
 * What the ranks of a running job share: memory that all of them map. A collective has a seat where
 * each rank counts itself in; so have a Send and its Recv. Seats are used again and again:
 *
 *	arrived	how many ever sat down here: the n-th use is complete at n * expected
 *	last_ns	when the last of them came: times only grow, so it need not be cleared
 *
 * No rank comes to the next use of a seat before the last one was complete, because none is ahead by
 * as many calls as there are seats.
 */
#ifndef SIM_BOARD_H
#define SIM_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "programs/sim/sim_job.h"
#include "programs/sim/sim_result.h"

enum { SIM_SEATS = 64, SIM_PAIR_SEATS = 64 };

enum sim_board_stop {
	SIM_STOP_INTERRUPTED = 1, /* somebody ended it: tear down and leave */
	SIM_STOP_HUNG = 2,	  /* it hangs and was watched long enough: leave as it is */
};

struct sim_seat {
	uint64_t arrived;
	uint64_t last_ns;
};

/* A rank tells what it does; the first process looks. */
struct sim_board_rank {
	uint64_t slip_ns; /* by how much it is behind the score */
	uint64_t issued[SIM_ROLES];
	uint64_t in_flight[SIM_ROLES]; /* at its end */
	uint64_t hidden[SIM_ROLES];    /* at its end */
	uint32_t is_ready;
	uint32_t is_over; /* it said how it ended */
	uint32_t end;	  /* enum sim_result_end */
	char trouble[256];
};

struct sim_board {
	size_t bytes;
	uint64_t start_ns; /* wall time of the job's time 0; 0: wait */
	uint32_t stop;	   /* enum sim_board_stop: everybody leaves; 0: go on */
	size_t ranks_offset;
	size_t seats_offset;
};

/* Shared with all processes forked later. ERR_NO_SPACE, ERR_SYSTEM. */
enum status sim_board_new(struct sim_board **board, const struct sim_job *job);
void sim_board_free(struct sim_board *board);

struct sim_board_rank *sim_board_rank(struct sim_board *board, int rank);

/* The seat of a communicator's n-th collective. */
struct sim_seat *sim_board_seat(struct sim_board *board, const struct sim_job *job, int comm,
				uint64_t match);
/* The seat of the n-th Send from one rank to another of a communicator, and its Recv. */
struct sim_seat *sim_board_pair(struct sim_board *board, const struct sim_job *job, int comm,
				int from, int to, uint64_t match);

void sim_board_arrive(struct sim_seat *seat, uint64_t ns);
/* Are all there for this use of the seat? Then *last_ns says when the last one came. */
bool sim_board_is_full(const struct sim_seat *seat, uint64_t match, unsigned int seats,
		       unsigned int expected, uint64_t *last_ns);

#endif
