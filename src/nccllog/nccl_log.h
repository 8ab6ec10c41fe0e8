/*
 * What NCCL says about itself with NCCL_DEBUG=VERSION, WARN, INFO, TRACE: any mix of ranks and releases in
 * any number of files, megabytes of them, with other programs' lines in between. Every line that is NCCL's
 * is either understood and becomes a fact below, or counted by its beginning in `others`; nothing is passed over
 * in silence. Facts cite file and line.
 */
#ifndef NCCL_LOG_H
#define NCCL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Where a fact stands. */
struct nccl_log_place {
	uint32_t file; /* index into nccl_log.files */
	uint64_t line; /* from 1 */
};

struct nccl_log; /* the helper's: see nccl_log.c */

#endif
