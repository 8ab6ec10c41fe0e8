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
#ifndef RAS_STATUS_H
#define RAS_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

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
