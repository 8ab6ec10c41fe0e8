/*
 * A conversation with NCCL's RAS, the service by which a job tells how it is (NCCL 2.24 and later): what to say
 * next, and what was answered. Sockets are somebody else's; so is the trust. The other side may be anything that
 * listens on that port: what it says is bounded, and comes without control bytes.
 *
 *	we                       the other side
 *	client protocol 2   -->
 *	                    <--  SERVER PROTOCOL n
 *	timeout N           -->
 *	                    <--  OK
 *	set format json     -->       (JSON is asked for; from 2.28.7)
 *	                    <--  OK   (else: then it is text)
 *	verbose status      -->
 *	                    <--  the answer, until it closes
 */
#ifndef RAS_TALK_H
#define RAS_TALK_H

#include <stdbool.h>
#include <stddef.h>

#include "common/status.h"

enum {
	RAS_ANSWER_MAX = 8 * 1024 * 1024, /* bytes that are kept; more is cut, and told */
	RAS_LINE_MAX = 512,		  /* of a line before the answer */
	RAS_REQUEST_MAX = 128,
};

enum ras_state {
	RAS_GREETS = 0, /* wait for its version */
	RAS_SETS_TIME = 1,
	RAS_SETS_FORMAT = 2,
	RAS_ANSWERS = 3,
	RAS_FAILED = 4,
};

struct ras_talk {
	enum ras_state state;
	bool is_json; /* asked for; after the answer: it is JSON */
	unsigned int timeout_s;
	char request[RAS_REQUEST_MAX]; /* to be sent now; "" nothing. Clear it once it is sent */
	char line[RAS_LINE_MAX];
	size_t line_used;
	int protocol; /* the other side's; 0 unknown */
	char *answer; /* terminated; NULL none */
	size_t answer_length;
	size_t answer_room;
	bool is_cut;
	char why[160]; /* RAS_FAILED: in words */
};

/* NCCL waits up to timeout_s for its own other processes. */
void ras_talk_init(struct ras_talk *talk, bool is_json, unsigned int timeout_s);
void ras_talk_release(struct ras_talk *talk);

/* It said this. OK: send what is in request, and read on. ERR_RANGE: enough was read, the answer is cut.
 * ERR_FORMAT: this is no RAS, why says so. ERR_NO_SPACE (memory). */
enum status ras_talk_take(struct ras_talk *talk, const char *bytes, size_t length);

/* It closed. OK: the answer is whole. ERR_FORMAT as above. */
enum status ras_talk_end(struct ras_talk *talk);

#endif
