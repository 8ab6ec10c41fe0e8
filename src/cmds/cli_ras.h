/*
 * Queries NCCL's RAS over TCP (import/ras_talk.h). Time and bytes are limited, whatever the other side does, and nothing
 * is ever sent that changes the job.
 */
#ifndef CLI_RAS_H
#define CLI_RAS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/status.h"
#include "import/ras_talk.h"

struct ras_answer {
	char address[300]; /* of the server */
	char *text;	   /* the caller's to free() */
	size_t length;
	bool is_json;
	bool is_cut;
	char why[300]; /* reason of a failure */
};

/*
 * HOST:PORT, [ADDRESS]:PORT, or NULL: NCCL_RAS_ADDR, else NCCL's default. On ERR_SYSTEM, ERR_FORMAT or ERR_NO_SPACE,
 * `why` has the reason and text is NULL. Prints nothing. All processes of a node listen on one port, and the kernel
 * picks one: if that one is stopped, another is tried.
 */
enum status cli_ras_ask(struct ras_answer *answer, const char *address, enum ras_request request);

#endif
