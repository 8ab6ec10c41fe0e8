/*
 * Is an operation in flight, and what does it wait for? Derived from its live slot and its network side;
 * nothing here reads a clock.
 */
#ifndef FLIGHT_H
#define FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "recording/recording.h"

enum flight_kind {
	FLIGHT_OVER = 0,   /* done, or a later one of its communicator is: they run in order */
	FLIGHT_UNSEEN = 1, /* NCCL does not report its end here: unknown */
	FLIGHT_OPEN = 2,
};

enum flight_kind flight_kind(const struct recording_process *process,
			     const struct recording_flight *flight);

/* The same for all its flights in one pass: kinds[i] of flights[i]. */
void flight_kinds(const struct recording_process *process, uint8_t *kinds);

/* Of an operation that is not done: would that be known, or does NCCL report nothing more of it? */
bool flight_end_shows(const struct recording_comm *comm, const struct op_record *op);

/* What a transfer over the network waits for. */
enum flight_reason {
	FLIGHT_SEND_GPU = 0,	/* own GPU has not produced the data */
	FLIGHT_SEND_PEER = 1,	/* the peer is not ready to receive */
	FLIGHT_SEND_NET = 2,	/* the network has not completed the send */
	FLIGHT_RECV_NET = 3,	/* nothing has arrived from the peer */
	FLIGHT_RECV_FLUSH = 4,	/* data is being flushed to the GPU's memory */
	FLIGHT_RECV_GPU = 5,	/* own GPU has not consumed the data */
	FLIGHT_SEND_QUEUED = 6, /* queued behind an earlier operation on the same connection */
	FLIGHT_RECV_QUEUED = 7,
	FLIGHT_SEND_STARTING = 8, /* in progress, and no transfer is open */
	FLIGHT_RECV_STARTING = 9,
	FLIGHT_REASONS = 10,
};

const char *flight_reason_name(enum flight_reason reason); /* "recv_net" */

/* A sentence with a placeholder for the peer's rank: "waits for data from rank %d". */
const char *flight_reason_text(enum flight_reason reason);

/* All proxy operations of one operation that wait for the same thing from the same peer. */
struct flight_wait {
	enum flight_reason reason;
	int32_t peer;
	uint64_t since_ns;    /* recorder's clock: the one that has waited longest */
	uint64_t channels[4]; /* bit c: on channel c */
	uint64_t steps_done;
	uint64_t steps; /* expected; may be an upper bound */
};

/*
 * What these proxy operations wait for, the longest wait first. Those that have done all their steps are
 * left out. The caller frees *waits, NULL if *count is 0. ERR_NO_SPACE (out of memory).
 */
enum status flight_waits(const struct recording_proxy *proxies, size_t proxy_count,
			 struct flight_wait **waits, size_t *count);

/* When it was called, or first reported if the call itself was not. 0 unknown. */
uint64_t flight_since_ns(const struct recording_flight *flight);

#endif
