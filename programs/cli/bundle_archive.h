/*
 * The archive that `ringside bundle` writes: files one after the other, what each is, and what could not be had
 * and why. It appears when it is whole (cli_output.h).
 *
 * Nothing fails on the way: the first failure of writing sticks, and bundle_commit() tells it.
 */
#ifndef BUNDLE_ARCHIVE_H
#define BUNDLE_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/attributes.h"
#include "programs/cli/cli_output.h"
#include "view/gzip_sink.h"

/* All names in it begin so: who unpacks it gets one directory. */
#define BUNDLE_PREFIX "ringside-bundle/"

enum bundle_packing {
	BUNDLE_PLAIN = 0,
	BUNDLE_GZIP = 1,
	BUNDLE_ZSTD = 2,
};

struct bundle_line {
	char *name; /* of the file; of what is missing */
	char *text; /* what it is; why */
	uint64_t bytes;
};

struct bundle_lines {
	struct bundle_line *list;
	size_t count;
};

struct bundle_archive {
	struct cli_output output;
	enum bundle_packing packing;
	struct gzip_sink gzip;
	struct sink plain; /* what zstd has not taken yet */
	void *zstd;
	uint64_t modified_s;
	uint64_t bytes; /* of files, before packing */
	struct bundle_lines files;
	struct bundle_lines gaps;
};

/* By the name: .tar, .tar.gz or .tgz, .tar.zst; false: none of these. "-" is a plain one. */
bool bundle_packing_of(const char *path, enum bundle_packing *packing);

/* 0, or the exit code after it was told why not. */
int bundle_open(struct bundle_archive *archive, const char *path, enum bundle_packing packing);

/* A file of these bytes. Names are relative, without BUNDLE_PREFIX; a name that no archive can have becomes a gap. */
void bundle_add(struct bundle_archive *archive, const char *name, const char *about,
		const void *bytes, size_t length);

/* What a memory sink holds, which is released. When that failed it is a gap. */
void bundle_add_sink(struct bundle_archive *archive, const char *name, const char *about,
		     struct sink *sink);

/* The first `length` bytes of an open file. When it became shorter meanwhile, zeros follow, and a gap says so. */
void bundle_add_open(struct bundle_archive *archive, const char *name, const char *about, int fd,
		     uint64_t length);

/* Something is not there. */
void bundle_gap(struct bundle_archive *archive, const char *what, const char *format, ...)
	PRINTF_LIKE(3, 4);

/* Write the end and put the file in its place: exit_code, or CLI_EXIT_TROUBLE after it was told why not. */
int bundle_commit(struct bundle_archive *archive, int exit_code);
/* Nothing of it stays. Frees lists, too; also to be called after bundle_commit(). */
void bundle_release(struct bundle_archive *archive);

#endif
