/* NCCL's RAS, from outside the job: its protocol, and what its answers say. */
#ifndef RAS_H
#define RAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

/*
 * The protocol of NCCL's RAS, the service through which a job reports its state (NCCL 2.24 and
 * later): what to send next, and what was answered. The caller owns the sockets. The peer can be
 * anything that listens on that port, so its answer is bounded and stripped of control bytes.
 *
 *	we                       the other side
 *	client protocol 2   -->
 *	                    <--  SERVER PROTOCOL n
 *	timeout N           -->
 *	                    <--  OK
 *	set format json     -->       (if JSON is requested; since 2.28.7)
 *	                    <--  OK   (otherwise it is text)
 *	verbose status      -->       (or diagnostics; since 2.31)
 *	                    <--  the answer, until it closes
 *
 * Nothing else is ever sent: CONTROL (since 2.31) would change the job.
 */

enum {
	RAS_ANSWER_MAX =
		8 * 1024 * 1024, /* bytes kept; a longer answer is cut, and reported as such */
	RAS_LINE_MAX = 512,	 /* of a line before the answer */
	RAS_REQUEST_MAX = 128,
};

enum ras_state {
	RAS_GREETS = 0, /* wait for its version */
	RAS_SETS_TIME = 1,
	RAS_SETS_FORMAT = 2,
	RAS_ANSWERS = 3,
	RAS_FAILED = 4,
};

/* DIAGNOSTICS makes every process of the job read its GPUs and NICs, and start a tool if it is installed. */
enum ras_request {
	RAS_TEXT = 0,
	RAS_JSON = 1,
	RAS_DIAGNOSTICS = 2,
};

struct ras_talk {
	enum ras_state state;
	enum ras_request request_kind;
	bool is_json; /* requested; after the answer: it is JSON */
	unsigned int timeout_s;
	char request[RAS_REQUEST_MAX]; /* to be sent now; "": nothing. Clear it after sending */
	char line[RAS_LINE_MAX];
	size_t line_used;
	int protocol; /* of the peer; 0: unknown */
	char *answer; /* terminated; NULL: none */
	size_t answer_length;
	size_t answer_room;
	bool is_cut;
	char why[160]; /* RAS_FAILED: the reason */
};

/* NCCL waits up to timeout_s for its other processes. */
void ras_talk_init(struct ras_talk *talk, enum ras_request request, unsigned int timeout_s);
void ras_talk_release(struct ras_talk *talk);

/*
 * Process received bytes. OK: send what is in request, and continue reading. ERR_RANGE: enough was
 * read, the answer is cut. ERR_FORMAT: not a RAS, see why. ERR_NO_SPACE (memory).
 */
enum status ras_talk_take(struct ras_talk *talk, const char *bytes, size_t length);

/* The peer closed the connection. OK: the answer is complete. ERR_FORMAT as above. */
enum status ras_talk_end(struct ras_talk *talk);

/*
 * The answer of NCCL's RAS to STATUS, as JSON (2.28.7 and later) or as text (2.24 and later): which
 * ranks of which communicators answer, their errors, and how many collectives they have launched.
 *
 *	ras_status_init(&status);
 *	if (ras_status_read(&status, text, length) == OK)
 *		... status.ranks ...
 *	ras_status_release(&status);
 *
 * The answer comes from whatever listens on that port: every list is bounded, texts are terminated
 * and without control bytes. 2.28.9 leaves out a comma, so commas are optional here. The text
 * lists only ranks that differ from most others. The protocol has no progress counters: those of
 * 2.32 stay inside the process.
 */

enum {
	RAS_COMMS_MAX = 1 << 16,
	RAS_RANKS_MAX = 1 << 20,
	RAS_FUNCTIONS_MAX = 8, /* collectives with a count of their own */
};

/* In the text: one for each problem of a communicator, so that a hash can be there twice. */
struct ras_comm {
	uint64_t hash;			    /* NCCL's: the same as in recordings and logs */
	int32_t size;			    /* ranks; -1: unknown */
	int64_t highest[RAS_FUNCTIONS_MAX]; /* count of any rank; -1: unknown */
};

struct ras_rank {
	uint32_t comm;	 /* index */
	int32_t rank;	 /* in that communicator */
	char host[48];	 /* an address; "" unknown */
	int64_t pid;	 /* -1 unknown */
	bool is_missing; /* its process did not answer */
	bool is_gone;	 /* for a minute: dead, stopped, or unreachable for the RAS of the others */
	bool is_aborted;
	int32_t error; /* ncclResult_t of its init or of an asynchronous error; 0 none */
	int64_t counts[RAS_FUNCTIONS_MAX]; /* launched, by function; -1: unknown */
};

struct ras_status {
	char version[32]; /* "2.28.9"; "" unknown */
	bool is_json;
	struct ras_comm *comms;
	size_t comm_count;
	/* Of the text: only those that it lists, once for each problem. */
	struct ras_rank *ranks;
	size_t rank_count;
	char functions[RAS_FUNCTIONS_MAX][24];
	size_t function_count;
	bool is_cut; /* a list reached its limit */
};

void ras_status_init(struct ras_status *status);
void ras_status_release(struct ras_status *status);

/* ERR_FORMAT: not an answer of RAS, or it ends too early. ERR_NO_SPACE. */
enum status ras_status_read(struct ras_status *status, const char *text, size_t length);

/* "remote process error" for 6; "an error" if it has no name. */
const char *ras_error_text(int32_t error);

#endif
