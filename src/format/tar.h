/*
 * Tar archives (POSIX ustar), written into and read from memory: what an agent hands out as a snapshot and
 * what `ringside bundle` makes. Reading trusts nothing: names are relative and without "..", sizes lie
 * within the bytes that are there, everything but plain files and directories is passed over and counted.
 */
#ifndef TAR_H
#define TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

enum { TAR_BLOCK = 512, TAR_NAME_MAX = 256 };

/* The header of a plain file, TAR_BLOCK bytes. ERR_RANGE: the name is too long or not relative. */
enum status tar_header(unsigned char block[TAR_BLOCK], const char *name, uint64_t bytes,
		       uint64_t modified_s);
/* After a file's bytes: so many zero bytes up to the next block. At the end of all: two blocks of zeros. */
size_t tar_padding(uint64_t bytes);

struct tar_reader {
	const unsigned char *bytes; /* NULL: it is a file */
	int fd;			    /* -1: it is memory */
	size_t start;		    /* where the archive begins in the file */
	size_t length;
	size_t at;
	size_t passed_over; /* links, devices, names that lead elsewhere or are too long */
};

/* A plain file. Directories are not told: names hold them. */
struct tar_entry {
	char name[TAR_NAME_MAX];    /* relative, without "." and "..", without control bytes */
	const unsigned char *bytes; /* NULL for an archive in a file */
	size_t offset;		    /* in the memory, or in the file */
	size_t length;
	uint64_t modified_s;
};

/* Does an archive begin here? Needs TAR_BLOCK bytes. Ours, GNU tar's and those of pax. */
bool tar_is(const unsigned char *bytes, size_t length);
/* Both are borrowed for as long as entries are read. */
void tar_reader_init(struct tar_reader *reader, const void *bytes, size_t length);
void tar_reader_init_fd(struct tar_reader *reader, int fd, size_t start, size_t length);
/* OK; ERR_GONE: that was the last; ERR_TRUNCATED, ERR_FORMAT, ERR_SYSTEM: the rest cannot be read. Names that
 * do not fit into a header are taken from where pax and GNU tar put them. */
enum status tar_next(struct tar_reader *reader, struct tar_entry *entry);

#endif
