/* Archives that are packed: `ringside bundle -o x.tar.zst`, or what somebody packed with gzip. */
#ifndef CLI_UNPACK_H
#define CLI_UNPACK_H

#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

/* What is unpacked lies in memory: more than this has to be unpacked by hand. */
#define CLI_UNPACK_MOST (UINT64_C(1) << 30)

/*
 * The archive in a file that is packed with gzip or zstd, in one stream or in many one after the other: *bytes is the
 * caller's to free(). ERR_UNKNOWN: it is not packed, or what is packed is no archive: read it as any other. ERR_RANGE:
 * more than `most` bytes. ERR_FORMAT, ERR_TRUNCATED: it is damaged. ERR_NO_SPACE (memory), ERR_SYSTEM.
 */
enum status cli_unpack(const char *path, uint64_t most, unsigned char **bytes, size_t *length);

#endif
