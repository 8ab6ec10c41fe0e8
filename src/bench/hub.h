/*
 * Frames between rank 0 and another rank: how bytes of the hub travel.
 *
 *	header (32 bytes) | payload (header.length bytes)
 *
 * Sockets do not block; who waits does so in poll(), with a deadline. A frame that came early, because
 * its sender is a step ahead, stays in the socket behind its header until its step is reached.
 */
#ifndef HUB_H
#define HUB_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/bench_launch.h"
#include "common/status.h"

struct bench_hub;

/*
 * How ranks speak to each other beside NCCL: a star around rank 0 over TCP. For the unique id, for
 * keeping ranks together, for results; never inside a timed region. All ranks make the same calls in the
 * same order, as with MPI. A rank that fails says why, and every other rank's next call fails with
 * that reason; one that dies is noticed by its closed connection.
 *
 * All give back 0, or -1 with hub_problem() saying in one line what happened, on which rank. All ranks know
 * it then; hub_is_teller() is true on the one that tells the user.
 */

enum { HUB_PROBLEM_BYTES = 512, HUB_MESSAGE_MAX = 1 << 30 };

/* Meet all ranks. `patience_s`: how long to wait for the last one (names who is missing). With one
 * rank there is no network. After -1, too, there is a hub to ask why and to close; NULL: no memory for one. */
int hub_open(struct bench_hub **hub, const struct bench_place *place, int patience_s);
void hub_close(struct bench_hub *hub);

/* From now on a call that waits longer for the others fails and names who did not answer; 0, as it is
 * at first: they may take as long as they like. */
void hub_set_patience(struct bench_hub *hub, int seconds);

/* All wait for all. Where all are on one machine with processors to spare, they come out of it within a few
 * microseconds of each other. */
int hub_meet(struct bench_hub *hub);
/* Rank 0's bytes to everybody. */
int hub_share(struct bench_hub *hub, void *bytes, size_t length);
/* Rank 0 gets `length` bytes of every rank, in order, its own first: into[rank * length]. Others: into may be NULL. */
int hub_gather(struct bench_hub *hub, const void *bytes, size_t length, void *into);
/* Without waiting: did another rank fail or die? For those who wait for a GPU: -1 and the reason in
 * hub_problem(), else 0. Costs a system call. */
int hub_look(struct bench_hub *hub);
/* Tell everybody that this rank cannot go on; the first reason wins. Also from another thread, while this
 * rank's own is in one of the calls above: that call ends when it next has something to look at. */
void hub_fail(struct bench_hub *hub, const char *reason);
const char *hub_problem(const struct bench_hub *hub);
/* After a call failed: ends this rank's side of all connections and waits until the others have ended theirs, as
 * all do whose call fails. Gives back how many did not within `wait_ms`, their numbers in `ranks`: they are
 * stopped, or their machine is. Rank 0 asks for all, others for rank 0. Nothing can be sent afterwards. */
size_t hub_silent(struct bench_hub *hub, int wait_ms, int *ranks, size_t most);
/* Rank 0; when rank 0 is gone, rank 1. Each rank that has no hub. */
bool hub_is_teller(const struct bench_hub *hub);

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

/* A frame of this kind and length from every peer; the payload of rank r to into + r * length (on other
 * ranks than 0 to into), *value is that of the last one. 0, -1 broken. */
int hub_collect(struct bench_hub *hub, enum hub_kind kind, void *into, size_t length,
		uint64_t *value, uint64_t deadline_ns);

/* Read what is there without waiting. 0, -1 broken. */
int hub_peek(struct bench_hub *hub);

/* Read and write all of it before the deadline, outside the steps. 0; -1: errno, 0 for an end. */
int hub_read_whole(int fd, void *bytes, size_t length, uint64_t deadline_ns);

/*
 * The file in which rank 0 says where it can be met. One line for each of its addresses, the same token in
 * each: HOST:PORT TOKEN, an IPv6 address in brackets.
 *
 *	127.0.0.1:40123 9f86d081884c7d65
 */

enum { HUB_CARD_ADDRESSES = 16, HUB_CARD_HOST = 256, HUB_CARD_BYTES = 8192 };

struct hub_card {
	size_t count;
	char hosts[HUB_CARD_ADDRESSES][HUB_CARD_HOST];
	int port;
	uint64_t token;
};

/* Reads "host:port" and "[::1]:port"; ERR_FORMAT. */
enum status hub_card_address(const char *text, size_t length, char host[static HUB_CARD_HOST],
			     int *port);

enum status hub_card_parse(struct hub_card *card, const char *text, size_t length);

/* Written whole or not at all, mode 0600. ERR_SYSTEM: errno. */
enum status hub_card_write(const struct hub_card *card, const char *path);

#endif
