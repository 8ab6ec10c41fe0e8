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

#include "base/status.h"

enum { TAR_BLOCK = 512, TAR_NAME_MAX = 256 };

/* The header of a plain file, TAR_BLOCK bytes. ERR_RANGE: the name is too long or not relative. */
enum status tar_header(unsigned char block[TAR_BLOCK], const char *name, uint64_t bytes,
		       uint64_t modified_s);
/* After a file's bytes: so many zero bytes up to the next block. At the end of all: two blocks of zeros. */
size_t tar_padding(uint64_t bytes);

struct tar_reader {
	const unsigned char *bytes;
	size_t length;
	size_t at;
	size_t passed_over; /* links, devices, names that lead elsewhere */
};

struct tar_entry {
	char name[TAR_NAME_MAX];
	const unsigned char *bytes;
	size_t length;
	uint64_t modified_s;
};

bool tar_is(const unsigned char *bytes, size_t length);
void tar_reader_init(struct tar_reader *reader, const void *bytes, size_t length);
/* OK; ERR_GONE: that was the last; ERR_TRUNCATED, ERR_FORMAT: the rest cannot be read. */
enum status tar_next(struct tar_reader *reader, struct tar_entry *entry);

#endif
