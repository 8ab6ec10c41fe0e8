/*
 * Tar archives (POSIX ustar), written to and read from memory: an agent's snapshots and the output
 * of `ringside bundle`. The reader trusts nothing: names are relative and without "..", sizes stay
 * within the available bytes, and everything but regular files and directories is skipped and
 * counted.
 */
#ifndef TAR_H
#define TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

enum { TAR_BLOCK = 512, TAR_NAME_MAX = 256 };

/*
 * The header of a regular file, TAR_BLOCK bytes. ERR_RANGE: the name is too long or not relative.
 */
enum status tar_header(unsigned char block[TAR_BLOCK], const char *name, uint64_t bytes,
		       uint64_t modified_s);
/*
 * Zero bytes needed after a file to fill its last block. An archive ends with two blocks of zeros.
 */
size_t tar_padding(uint64_t bytes);

struct tar_reader {
	const unsigned char *bytes; /* NULL: the archive is a file */
	int fd;			    /* -1: it is in memory */
	size_t start;		    /* where the archive begins in the file */
	size_t length;
	size_t at;
	size_t passed_over; /* links, devices, names that are unsafe or too long */
};

/* A regular file. Directories are not returned; names contain them. */
struct tar_entry {
	char name[TAR_NAME_MAX];    /* relative, without "." and "..", without control bytes */
	const unsigned char *bytes; /* NULL for an archive in a file */
	size_t offset;		    /* in memory or in the file */
	size_t length;
	uint64_t modified_s;
};

/* Does an archive begin here? Needs TAR_BLOCK bytes. Accepts ours, GNU tar's and pax. */
bool tar_is(const unsigned char *bytes, size_t length);
/* Both are borrowed while entries are read. */
void tar_reader_init(struct tar_reader *reader, const void *bytes, size_t length);
void tar_reader_init_fd(struct tar_reader *reader, int fd, size_t start, size_t length);
/*
 * OK; ERR_GONE: no more entries; ERR_TRUNCATED, ERR_FORMAT, ERR_SYSTEM: the rest cannot be read.
 * Supports the long names of pax and GNU tar.
 */
enum status tar_next(struct tar_reader *reader, struct tar_entry *entry);

#endif
