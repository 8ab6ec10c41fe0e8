/*
 * Asking NCCL's RAS how a job is, over TCP (nccllog/ras_talk.h). The whole of it takes a limited time, whatever
 * the other side does.
 */
#ifndef RAS_CLIENT_H
#define RAS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/status.h"

enum { RAS_CLIENT_TIME_S = 12, RAS_CLIENT_WAITS_S = 5 };
#define RAS_CLIENT_ADDRESS "localhost:28028"

struct ras_answer {
	char address[300]; /* that was asked */
	char *text;	   /* the caller's to free() */
	size_t length;
	bool is_json;
	bool is_cut;
	char why[300]; /* why there is none */
};

/* HOST:PORT, [ADDRESS]:PORT, or NULL: NCCL_RAS_ADDR, else where NCCL listens. ERR_SYSTEM, ERR_FORMAT or
 * ERR_NO_SPACE: why says it in words, text is NULL. Prints nothing. */
enum status ras_client_ask(struct ras_answer *answer, const char *address, bool is_json);

#endif
