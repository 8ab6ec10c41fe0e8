/*
 * Frames between rank 0 and another rank: how bytes of the hub travel. For bench_hub.c and hub_arrive.c.
 *
 *	header (32 bytes) | payload (header.length bytes)
 *
 * Sockets do not block; who waits does so in poll(), with a deadline. A frame that came early, because
 * its sender is a step ahead, stays in the socket behind its header until its step is reached.
 */
#ifndef HUB_WIRE_H
#define HUB_WIRE_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/attributes.h"
#include "programs/bench/bench_hub.h"

#define HUB_MAGIC UINT32_C(0x52534832) /* also tells another byte order */

enum { HUB_HOST_BYTES = 64, HUB_VERSION = 1 };

enum hub_kind {
	HUB_HELLO = 1,	 /* another rank to rank 0: struct hub_hello */
	HUB_WELCOME = 2, /* the answer: struct hub_hello of rank 0 */
	HUB_MEET = 3,	 /* I am here */
	HUB_GO = 4,	 /* all are; value: when to go on, CLOCK_MONOTONIC ns, 0 at once */
	HUB_SHARE = 5,
	HUB_GATHER = 6,
	HUB_FAIL = 7, /* any time: payload says why */
	HUB_BYE = 8,
};

struct hub_header {
	uint32_t magic;
	uint32_t kind; /* enum hub_kind */
	uint64_t step; /* calls on the hub so far: both sides must be at the same */
	uint64_t value;
	uint64_t length; /* of the payload */
};
_Static_assert(sizeof(struct hub_header) == 32, "as it travels");

struct hub_hello {
	uint32_t version;
	int32_t rank;
	int32_t nranks;
	int32_t reserved;
	uint64_t token;
	uint64_t machine; /* hash of the boot id: the same machine has the same clock */
	char host[HUB_HOST_BYTES];
};
_Static_assert(sizeof(struct hub_hello) == 96, "as it travels");

struct hub_peer {
	int fd; /* -1: not there */
	int rank;
	char host[HUB_HOST_BYTES];
	struct hub_header header; /* of the frame that is being read */
	size_t header_got;
	size_t payload_got;
	bool is_done;	  /* its frame of this step is here */
	bool is_mid_send; /* a frame was cut: nothing sensible can follow */
};

struct bench_hub {
	int rank;
	int nranks;
	char host[HUB_HOST_BYTES];
	uint64_t machine;
	struct hub_peer *peers; /* rank 0: all others, [rank - 1]; others: rank 0 */
	struct pollfd *polls;	/* one for each peer, and the listening ones */
	size_t peer_count;
	uint64_t step;
	uint64_t patience_ns; /* 0: for ever */
	bool may_spin;	      /* enough processors for all ranks here */
	bool is_one_machine;
	pthread_mutex_t lock;  /* one frame at a time, and one reason: a watchdog may fail, too */
	atomic_bool is_broken; /* problem says why; no call succeeds any more */
	atomic_bool is_rank_0_lost; /* so it cannot tell why */
	bool is_refused;	    /* and rank 0 goes on without this one */
	char problem[HUB_PROBLEM_BYTES];
};

uint64_t hub_now(void);

/* Send one frame. 0, -1 broken. The deadline is a time of hub_now(), 0 none. */
int hub_send(struct bench_hub *hub, struct hub_peer *peer, enum hub_kind kind, uint64_t value,
	     const void *payload, size_t length, uint64_t deadline_ns);

/* A frame of this kind and length from every peer; the payload of rank r to into + r * length (on other
 * ranks than 0 to into), *value is that of the last one. 0, -1 broken. */
int hub_collect(struct bench_hub *hub, enum hub_kind kind, void *into, size_t length,
		uint64_t *value, uint64_t deadline_ns);

/* Read what is there without waiting. 0, -1 broken. */
int hub_peek(struct bench_hub *hub);

/* The hub is broken from now on: for the first time the reason is kept and, on rank 0, told to the others. */
int hub_break(struct bench_hub *hub, const struct hub_peer *except, const char *format, ...)
	PRINTF_LIKE(3, 4);

/* Read and write all of it before the deadline, outside the steps. 0; -1: errno, 0 for an end. */
int hub_read_whole(int fd, void *bytes, size_t length, uint64_t deadline_ns);
int hub_write_whole(int fd, const void *bytes, size_t length, uint64_t deadline_ns);

#endif
