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
#ifndef RAS_TALK_H
#define RAS_TALK_H

#include <stdbool.h>
#include <stddef.h>

#include "common/status.h"

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

#endif
