/*
 * Reading a region that somebody else writes, or wrote. Nothing in it is trusted.
 *
 * A region is never mapped for reading: its file can be cut under our eyes and a mapping would then
 * answer with SIGBUS. It is read with pread(2) into private memory, and a short read means "cut".
 */
#ifndef REGION_READ_H
#define REGION_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/op_layout.h"
#include "common/status.h"
#include "format/region_layout.h"

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
	int fd;			      /* -1: the bytes are in memory */
	const unsigned char *memory;  /* borrowed, see region_open_memory() */
	uint64_t file_bytes;	      /* when it was opened */
	struct region_header header;  /* as it was at region_open() or the last region_copy() */
	char info[REGION_INFO_BYTES]; /* see info_get() */
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
			struct status_problem *problem);

/* The same from a descriptor, which is borrowed for the call and duplicated. */
enum status region_open_fd(struct region *region, int fd, struct status_problem *problem);

/* The same from bytes that stay the caller's and must outlive *region: saved copies, fuzzing. */
enum status region_open_memory(struct region *region, const void *bytes, size_t length,
			       struct status_problem *problem);

/* Fine on a region that is not open, when it was zeroed or closed before. */
void region_close(struct region *region);

/* Read [offset, offset + length) of the region. ERR_TRUNCATED when it ends before. */
enum status region_pread(const struct region *region, void *to, size_t length, uint64_t offset);

/* Its process held a lock on it and does not any more: it is dead, in whatever pid namespace it was. False says nothing. */
bool region_is_let_go(const struct region *region);

/* Parts that can be copied. Ring and details are not among them: they are read as a stream, see region_ring_open(). */
enum region_copy_flag {
	REGION_COPY_NAMES = 1u << REGION_NAMES,
	REGION_COPY_COMMS = 1u << REGION_COMMS,
	REGION_COPY_LIVE = 1u << REGION_LIVE,
	REGION_COPY_PROXIES = 1u << REGION_PROXIES,
	REGION_COPY_TOTALS = 1u << REGION_TOTALS,
	REGION_COPY_LINKS = 1u << REGION_LINKS,
	REGION_COPY_STATE = REGION_COPY_NAMES | REGION_COPY_COMMS | REGION_COPY_LIVE |
			    REGION_COPY_PROXIES | REGION_COPY_TOTALS | REGION_COPY_LINKS,
	/* For who comes every second: once, whether anything moved meanwhile or not; of
	 * communicators and proxies as many slots as the recorder says it ever used; and of live
	 * operations, proxies and links a copy of those slots alone that are in use. */
	REGION_COPY_BRIEF = 1u << 31,
};

/*
 * Copy these parts (again) and the header's counters, each slot consistent although somebody may be writing it.
 * Communicators, live operations and proxies are copied until nothing moved meanwhile, or a few times;
 * region->is_moving says whether it did to the end. ERR_TRUNCATED, ERR_NO_SPACE (memory), ERR_SYSTEM: each part is
 * then as before or new, never half.
 */
enum status region_copy(struct region *region, unsigned int parts);

/* Give back the memory of these parts. */
void region_copy_drop(struct region *region, unsigned int parts);

/* Slots [first, first + count) of one part into *to. ERR_RANGE when the part has not so many. */
enum status region_copy_slots(const struct region *region, enum region_part_index part,
			      uint32_t first, uint32_t count, struct region_copy *to);
void region_copy_release(struct region_copy *copy);

/* A slot's bytes, at least as many as this version's layout has; NULL when the copy has no such slot
 * (counted from its first) or the slot did not hold still. */
const unsigned char *region_copy_slot(const struct region_copy *copy, uint32_t index);

/* Which slot of the part that is. */
uint32_t region_copy_index(const struct region_copy *copy, uint32_t index);

/*
 * What a region holds, slot by slot, from a private copy: checked, and never torn.
 *
 *	region_open(&region, path, 0, &problem);
 *	region_copy(&region, REGION_COPY_STATE);
 *	for (i = 0; i < region_slots(&region, REGION_LIVE); i++)
 *		if (region_live_at(&region, i, &live, &problem)) ...
 *
 * and then the ring, see region_ring_open(). In this order nothing is missed: an operation that finishes
 * in between is in both, (comm, number) tells; one that is in neither does not exist.
 */

/* Slots of a part that were copied; 0 when it was not. */
uint32_t region_slots(const struct region *region, enum region_part_index part);

/*
 * Slot by slot, by index. False: free, unstable while copied, or not acceptable; *problem (may be
 * NULL) then says what is not acceptable, NULL when nothing is. Texts come back terminated and
 * without control bytes.
 */
bool region_comm_at(const struct region *region, uint32_t index, struct region_comm *comm,
		    const char **problem);
bool region_live_at(const struct region *region, uint32_t index, struct region_live *live,
		    const char **problem);
bool region_proxy_at(const struct region *region, uint32_t index, struct region_proxy *proxy,
		     const char **problem);
bool region_total_at(const struct region *region, uint32_t index, struct region_total *total);
/* Is it one of a peer that moved something? */
bool region_link_is_used(const struct region_link *link);
bool region_link_at(const struct region *region, uint32_t index, struct region_link *link);

/* Was that live slot just being filled? Its operation is issued and cannot be read yet. */
bool region_live_is_filling(const struct region *region, uint32_t index);

/* Does this proxy operation belong to the live operation in slot `index`? */
bool region_proxy_is_of(const struct region_proxy *proxy, uint32_t index,
			const struct region_live *live);

/* The open transfers of a proxy operation: how many were put into steps, sorted by step. */
unsigned int region_steps(const struct region_proxy *proxy, struct region_step steps[WINDOW_STEPS]);

/* The text of an interned name; false when there is none. Also for ids below OP_NAME_INTERNED. */
bool region_name(const struct region *region, uint8_t id, char *text, size_t size);

/* The recorder's clock now; false when this is not its machine and boot, or the clock is not one.
 */
bool region_now(const struct region *region, uint64_t *now_ns);

/* The recorder's clock and wall time now; false under the same conditions. */
bool region_anchor(const struct region *region, struct clock_anchor *anchor);

/* Make the texts of a communicator terminated and free of control bytes. */
void region_clean_comm(struct comm_info *info);

/*
 * Finished operations out of the ring, and details (mode full), by sequence, each once, none torn.
 * Read in pieces: memory does not grow with the ring.
 *
 *	region_ring_open(&ring, &region, REGION_RING, 0);
 *	while ((status = region_ring_next_op(&ring, &op)) == OK) ...
 *	region_ring_close(&ring);
 */

struct region_ring {
	const struct region *region; /* borrowed until the close */
	enum region_part_index part;
	uint64_t head; /* the last sequence when it was opened: later ones are not given */
	uint64_t next; /* the sequence to look for next */
	struct region_copy copy; /* the piece at hand */
	/* What was not given, so far. */
	uint64_t overwritten; /* by later ones while it was read */
	uint64_t torn;	      /* not or half written: by a writer at work, or one that was killed */
	uint64_t refused;     /* whole, but not acceptable */
	const char *problem;  /* of the last one refused */
};

/*
 * REGION_RING or REGION_DETAILS. Records with a sequence up to `after` are passed over (0: none is).
 * A region without that part has no records. ERR_TRUNCATED, ERR_SYSTEM. Close in every case.
 */
enum status region_ring_open(struct region_ring *ring, const struct region *region,
			     enum region_part_index part, uint64_t after);
/* OK; ERR_GONE after the last one; ERR_TRUNCATED, ERR_SYSTEM, ERR_NO_SPACE. */
enum status region_ring_next_op(struct region_ring *ring, struct op_record *op);
enum status region_ring_next_detail(struct region_ring *ring, struct op_detail *detail);
void region_ring_close(struct region_ring *ring);

/*
 * The "key=value" lines with which a recording says who it is: region and trace file share them.
 *
 * The value of the first line with this key, terminated, control bytes as '?', cut to `size`.
 * False, and value "", when there is none. The text needs no terminator and is not trusted.
 */
bool info_get(const char *text, size_t text_bytes, const char *key, char *value, size_t size);

/* The same as a whole number; `otherwise` when there is none or it is no number. */
int64_t info_get_number(const char *text, size_t text_bytes, const char *key, int64_t otherwise);

/*
 * Walk all lines: start with *at = 0, call until false. Lines without '=' and empty keys are
 * passed over. Keys and values as above. For labels look for keys that begin with "label.".
 */
bool info_next(const char *text, size_t text_bytes, size_t *at, char *key, size_t key_size,
	       char *value, size_t value_size);

#endif
