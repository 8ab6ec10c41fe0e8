/*
 * Opening a region that somebody else writes, or wrote. Nothing in it is trusted.
 *
 * A region is never mapped for reading: its file can be cut under our eyes and a mapping would then
 * answer with SIGBUS. It is read with pread(2) into private memory, and a short read means "cut".
 */
#ifndef REGION_OPEN_H
#define REGION_OPEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "region/region_layout.h"

/* A private copy of one part, see region_copy(). */
struct region_copy {
	unsigned char *bytes; /* NULL: not copied */
	uint64_t *is_stable;  /* bit i: slot i was copied consistently */
	uint32_t first;	      /* slot of the part that is slot 0 of the copy */
	uint32_t count;
	uint32_t stride;
	uint32_t *slots; /* slot i of the copy is this one of the part; NULL: first + i */
};

/* A live slot of which all is known, as long as its word stays the same. */
struct region_known {
	uint64_t word;
	uint32_t slot;
	uint32_t is_there; /* set by region_copy() when it is so */
};

struct region {
	int fd;			     /* -1: the bytes are in memory */
	const unsigned char *memory; /* borrowed, see region_open_memory() */
	uint64_t file_bytes;	     /* when it was opened */
	struct region_header header; /* as it was at region_open() or the last region_copy() */
	char info[REGION_INFO_BYTES];
	size_t info_bytes;
	struct region_copy copies[REGION_PARTS];
	bool is_moving; /* operations were issued or finished while it was copied */
	/* What REGION_COPY_BRIEF passes over: operations that are done of these communicators, by number
	 * and sorted (the recorder counts those soon enough), and these slots, sorted. Borrowed. */
	const uint32_t *hasty;
	uint32_t hasty_count;
	uint32_t known_count;
	struct region_known *known;
};

/* Why something was refused, for the one line that the user sees. */
struct region_problem {
	const char *what;     /* a few words, static */
	uint16_t found_major; /* with ERR_VERSION */
	uint16_t found_minor;
};

enum region_open_flag {
	REGION_NO_LINKS = 1u << 0, /* a symbolic link as last component is refused */
};

/*
 * Open and check: size, magic, byte order, version, that every part lies within the file, aligned,
 * with a sane count and stride. Reads header and info, nothing else. Devices, pipes and directories
 * are not even opened. A path /proc/PID/fd/N leads to a memfd.
 *
 * ERR_SYSTEM (errno), ERR_FORMAT not a region or damaged, ERR_VERSION newer major (problem has
 * found_major), ERR_TRUNCATED shorter than its header says. `problem` may be NULL; it is filled on
 * failure only. The caller owns *region; see region_close().
 */
enum status region_open(struct region *region, const char *path, unsigned int flags,
			struct region_problem *problem);

/* The same from a descriptor, which is borrowed for the call and duplicated. */
enum status region_open_fd(struct region *region, int fd, struct region_problem *problem);

/* The same from bytes that stay the caller's and must outlive *region: saved copies, fuzzing. */
enum status region_open_memory(struct region *region, const void *bytes, size_t length,
			       struct region_problem *problem);

/* Fine on a region that is not open, when it was zeroed or closed before. */
void region_close(struct region *region);

/* Read [offset, offset + length) of the region. ERR_TRUNCATED when it ends before. */
enum status region_pread(const struct region *region, void *to, size_t length, uint64_t offset);

/* Its process held a lock on it and does not any more: it is dead, in whatever pid namespace it was. False says nothing. */
bool region_is_let_go(const struct region *region);

#endif
