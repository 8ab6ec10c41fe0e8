/*
 * Frames between rank 0 and another rank.
 *
 *	header (32 bytes) | payload (header.length bytes)
 *
 * Sockets are nonblocking; waiting happens in poll(), with a deadline. A frame that arrives early, because its
 * sender is a step ahead, stays in the socket after its header until its step is reached.
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
 * Communication between ranks besides NCCL: a star around rank 0 over TCP. Used for the unique id, for aligning
 * ranks and for results; never inside a timed region. All ranks make the same calls in the same order, as with MPI.
 * A rank that fails sends the reason, and every other rank's next call fails with it; a rank that dies is noticed
 * by its closed connection.
 *
 * Functions return 0, or -1 with one line in hub_problem(): what happened, on which rank. All ranks know it then;
 * hub_is_teller() is true on the one that reports it to the user.
 */

enum { HUB_PROBLEM_BYTES = 512, HUB_MESSAGE_MAX = 1 << 30 };

/*
 * Joins all ranks. `patience_s`: how long to wait for the last one (missing ranks are named). A single rank needs
 * no network. Even after -1 there is a hub to query and close; NULL: out of memory.
 */
int hub_open(struct bench_hub **hub, const struct bench_place *place, int patience_s);
void hub_close(struct bench_hub *hub);

/*
 * From now on, a call that waits longer for the others fails and names those that did not answer; 0, the default:
 * no limit.
 */
void hub_set_patience(struct bench_hub *hub, int seconds);

/* Barrier. If all ranks are on one host with enough CPUs, they leave it within a few microseconds of each other. */
int hub_meet(struct bench_hub *hub);
/* Sends rank 0's bytes to all ranks. */
int hub_share(struct bench_hub *hub, void *bytes, size_t length);
/*
 * Rank 0 gets `length` bytes of every rank, in order, its own first: into[rank * length]. On other ranks `into` can
 * be NULL.
 */
int hub_gather(struct bench_hub *hub, const void *bytes, size_t length, void *into);
/*
 * Checks without waiting whether another rank failed or died, e.g. while waiting for a GPU: -1 and the reason in
 * hub_problem(), otherwise 0. Costs a system call.
 */
int hub_poll(struct bench_hub *hub);
/*
 * Informs all ranks that this one cannot continue; the first reason wins. Can be called from another thread while
 * this rank is in one of the calls above, which then ends at the next event.
 */
void hub_fail(struct bench_hub *hub, const char *reason);
const char *hub_problem(const struct bench_hub *hub);
/*
 * After a call failed: closes this rank's side of all connections and waits until the others have closed theirs, as
 * all do whose call fails. Returns how many did not within `wait_ms`, with their numbers in `ranks`: they are
 * stopped, or their host is down. Rank 0 checks all, others rank 0. Nothing can be sent afterwards.
 */
size_t hub_silent(struct bench_hub *hub, int wait_ms, int *ranks, size_t most);
/* Rank 0; if rank 0 is gone, rank 1. Every rank that has no hub. */
bool hub_is_teller(const struct bench_hub *hub);

#define HUB_MAGIC UINT32_C(0x52534832) /* also detects another byte order */

enum { HUB_HOST_BYTES = 64, HUB_VERSION = 1 };

enum hub_kind {
	HUB_HELLO = 1,	 /* to rank 0: struct hub_hello */
	HUB_WELCOME = 2, /* the answer: struct hub_hello of rank 0 */
	HUB_MEET = 3,	 /* arrived at a barrier */
	HUB_GO = 4, /* all have arrived; value: when to continue, CLOCK_MONOTONIC ns, 0: at once */
	HUB_SHARE = 5,
	HUB_GATHER = 6,
	HUB_FAIL = 7, /* at any time: the payload is the reason */
	HUB_BYE = 8,
};

struct hub_header {
	uint32_t magic;
	uint32_t kind; /* enum hub_kind */
	uint64_t step; /* calls on the hub so far: must be equal on both sides */
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
	uint64_t machine; /* hash of the boot id: equal on the same host, which has one clock */
	char host[HUB_HOST_BYTES];
};
_Static_assert(sizeof(struct hub_hello) == 96, "as it travels");

struct hub_peer {
	int fd; /* -1: none */
	int rank;
	char host[HUB_HOST_BYTES];
	struct hub_header header; /* of the frame being read */
	size_t header_got;
	size_t payload_got;
	bool is_done;	  /* its frame of this step has been received */
	bool is_mid_send; /* a frame was only partly sent: nothing can follow */
};

struct bench_hub {
	int rank;
	int nranks;
	char host[HUB_HOST_BYTES];
	uint64_t machine;
	struct hub_peer *peers; /* rank 0: all others, [rank - 1]; others: rank 0 */
	struct pollfd *polls;	/* one per peer, plus the listening ones */
	size_t peer_count;
	uint64_t step;
	uint64_t patience_ns; /* 0: no limit */
	bool may_spin;	      /* enough CPUs for all ranks on this host */
	bool is_one_machine;
	pthread_mutex_t lock;  /* one frame at a time, and one reason: a watchdog can fail, too */
	atomic_bool is_broken; /* problem has the reason; every further call fails */
	atomic_bool is_rank_0_lost; /* so it cannot report the reason */
	bool is_refused;	    /* and rank 0 continues without this one */
	char problem[HUB_PROBLEM_BYTES];
};

/*
 * Receives a frame of this kind and length from every peer; the payload of rank r goes to into + r * length (on
 * ranks other than 0 to into), *value is that of the last one. 0, -1: broken.
 */
int hub_collect(struct bench_hub *hub, enum hub_kind kind, void *into, size_t length,
		uint64_t *value, uint64_t deadline_ns);

/* Reads what is available without waiting. 0, -1: broken. */
int hub_peek(struct bench_hub *hub);

/* Reads or writes everything before the deadline, outside the steps. 0; -1: errno, 0 for end of file. */
int hub_read_whole(int fd, void *bytes, size_t length, uint64_t deadline_ns);

/*
 * The file with rank 0's addresses. One line per address, all with the same token: HOST:PORT TOKEN, an IPv6 address
 * in brackets.
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

/* Parses "host:port" and "[::1]:port"; ERR_FORMAT. */
enum status hub_card_address(const char *text, size_t length, char host[static HUB_CARD_HOST],
			     int *port);

enum status hub_card_parse(struct hub_card *card, const char *text, size_t length);

/* Written atomically, mode 0600. ERR_SYSTEM: errno. */
enum status hub_card_write(const struct hub_card *card, const char *path);

#endif
