/*
 * A second look at a link that stands out: is it the link, or one of the two processes at its ends?
 *
 * How long a send is "on the wire" is measured by the sender's proxy thread, from handing it to the network to the poll
 * that finds it completed. Three things besides a slow link make that long: the thread gets no processor and polls
 * late; the receiver's thread does not, and reads late; or the receiver has not come yet and what was sent
 * early waits for it.
 */
#ifndef LINK_WITNESS_H
#define LINK_WITNESS_H

#include <stdbool.h>
#include <stdint.h>

#include "timeline/job.h"

/* What is asked. Times are per block of the stretch of meetings in which it stands out. */
struct link_question {
	const struct job *job;
	uint32_t comm;	    /* index into job.comms */
	uint32_t sender;    /* index into job_comm.seats, like the next */
	uint32_t receiver;  /* UINT32_MAX: unknown */
	bool is_send;	    /* Sends to the receiver; else the rings of collectives */
	bool is_replay;	    /* of collectives: replays, which count apart; else calls */
	uint8_t size_class; /* of their messages */
	double slowdown;    /* time on the wire against the others */
	uint64_t since_ns;  /* only what ended then, wall time; 0, like the next: no limit */
	uint64_t until_ns;
	const bool *is_on; /* [block]; NULL, like the next three: one block, all of it */
	uint32_t blocks;
	const uint64_t *first_number; /* [block]: match / MEET_CHUNK with which it begins */
	const double *
		behind_ns; /* [block]: so much later than the sender the receiver came, on average */
	const double *limit_ns; /* [block]: a transfer that is longer on the wire stands out */
};

struct link_witness {
	uint64_t operations; /* of the sender */
	uint64_t slow;	     /* of these: their transfers stand out */
	uint64_t waiting; /* of slow: not without what may be waiting for a receiver that is late */
	bool is_bursty;	  /* few operations stand out: something that comes and goes */
	double others_share; /* of what the others send: as slow, 0..1 */
	/* What a process takes for transfers that are not on the wire, against the slowest of nine in ten others;
	 * 0 unknown. */
	double sender_own;
	double receiver_own;
	bool is_sender_starved;
	bool is_receiver_starved;
};

/* What one rank's operations add up to. */
struct link_sums {
	uint32_t seat; /* index into job_comm.seats */
	double flush_ns;
	double consume_ns;
	double receives;
	uint64_t operations; /* those that send */
	uint64_t slow;
	uint64_t slow_again; /* of slow: the one before was, too */
	uint64_t waiting;
	bool is_last_slow;
};

enum { LINK_SEATS_MAX = 64 };

/* Ranks that the two are compared with. Kept from one question to the next: several about Sends need the same. All 0
 * at first. */
struct link_sample {
	bool is_of_sends;
	uint32_t comm;
	uint8_t size_class;
	double limit_ns;
	uint32_t count;
	struct link_sums list[LINK_SEATS_MAX];
};

/* Walks the operations of the two, and of some of the others. */
void link_witness_find(struct link_witness *witness, const struct link_question *question,
		       struct link_sample *sample);

/* Most of what stands out is waiting for the receiver. */
bool link_witness_is_waiting(const struct link_witness *witness);

/* It comes and goes, and what the others send stands out not much less often. */
bool link_witness_is_noise(const struct link_witness *witness);

#endif
