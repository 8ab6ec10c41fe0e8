/*
 * Reading a region that another process writes or wrote. Nothing in it is trusted.
 *
 * A region is never mapped for reading: its file can be truncated at any time, and a mapping would
 * then raise SIGBUS. It is read with pread(2) into private memory, and a short read means
 * truncated.
 */
#ifndef REGION_READ_H
#define REGION_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

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
	uint32_t *slots; /* slot i of the copy is this slot of the part; NULL: first + i */
};

/* A live slot that is fully known as long as its word does not change. */
struct region_known {
	uint64_t word;
	uint32_t slot;
	uint32_t is_there; /* set by region_copy() if the slot is unchanged */
};

struct region {
	int fd;			      /* -1: the bytes are in memory */
	const unsigned char *memory;  /* borrowed, see region_open_memory() */
	uint64_t file_bytes;	      /* when it was opened */
	struct region_header header;  /* as of region_open() or the last region_copy() */
	char info[REGION_INFO_BYTES]; /* see info_get() */
	size_t info_bytes;
	struct region_copy copies[REGION_PARTS];
	bool is_moving; /* operations were issued or finished during the copy */
	/* As the header had it before the live operations were copied: they are at least as new. */
	uint64_t times_read_ns;
	/*
	 * What REGION_COPY_BRIEF skips: finished operations of these communicators (sorted by
	 * number; the recorder counts them soon enough), and these slots (sorted). Borrowed.
	 */
	const uint32_t *hasty;
	uint32_t hasty_count;
	uint32_t known_count;
	struct region_known *known;
};

enum region_open_flag {
	REGION_NO_LINKS = 1u << 0, /* reject a symbolic link as last component */
};

/*
 * Open and check: size, magic, byte order, version, and that every part is inside the file,
 * aligned, with a plausible count and stride. Reads only header and info. Devices, pipes and
 * directories are not opened. A path /proc/PID/fd/N leads to a memfd.
 *
 * ERR_SYSTEM (errno), ERR_FORMAT: not a region or damaged, ERR_VERSION: newer major version
 * (problem has found_major), ERR_TRUNCATED: shorter than its header says. `problem` may be NULL; it
 * is set only on failure. The caller owns *region; see region_close().
 */
enum status region_open(struct region *region, const char *path, unsigned int flags,
			struct status_problem *problem);

/* From a descriptor, which is borrowed for the call and duplicated. */
enum status region_open_fd(struct region *region, int fd, struct status_problem *problem);

/* From bytes that stay the caller's and must outlive *region: saved copies, fuzzing. */
enum status region_open_memory(struct region *region, const void *bytes, size_t length,
			       struct status_problem *problem);

/* A region that is not open is fine if it was zeroed or closed before. */
void region_close(struct region *region);

/* Read [offset, offset + length) of the region. ERR_TRUNCATED if it ends before that. */
enum status region_pread(const struct region *region, void *to, size_t length, uint64_t offset);

/*
 * Its process held a lock on it and no longer does: the process is dead, in whatever pid namespace.
 * False means nothing.
 */
bool region_is_let_go(const struct region *region);

/* It is a copy of the file that its process writes, and does not change any more. False means nothing. */
bool region_is_copy(const struct region *region);

/*
 * Parts that can be copied. Ring and details are not among them: they are read as a stream, see
 * region_ring_open().
 */
enum region_copy_flag {
	REGION_COPY_NAMES = 1u << REGION_NAMES,
	REGION_COPY_COMMS = 1u << REGION_COMMS,
	REGION_COPY_LIVE = 1u << REGION_LIVE,
	REGION_COPY_PROXIES = 1u << REGION_PROXIES,
	REGION_COPY_TOTALS = 1u << REGION_TOTALS,
	REGION_COPY_LINKS = 1u << REGION_LINKS,
	REGION_COPY_STATE = REGION_COPY_NAMES | REGION_COPY_COMMS | REGION_COPY_LIVE |
			    REGION_COPY_PROXIES | REGION_COPY_TOTALS | REGION_COPY_LINKS,
	/*
	 * For readers that come every second: a single pass, whether anything moved or not; of
	 * communicators and proxies only as many slots as the recorder has ever used; of live
	 * operations, proxies and links only the slots in use.
	 */
	REGION_COPY_BRIEF = 1u << 31,
};

/*
 * Copy these parts (again) and the header's counters. Each slot is consistent although the job may
 * be writing. Communicators, live operations and proxies are copied until nothing moved in between,
 * at most a few times; region->is_moving says whether something still did. ERR_TRUNCATED,
 * ERR_NO_SPACE (memory), ERR_SYSTEM: each part is then either old or new, never half.
 */
enum status region_copy(struct region *region, unsigned int parts);

/* Free the memory of these parts. */
void region_copy_drop(struct region *region, unsigned int parts);

/* Copy slots [first, first + count) of one part into *to. ERR_RANGE if the part has fewer. */
enum status region_copy_slots(const struct region *region, enum region_part_index part,
			      uint32_t first, uint32_t count, struct region_copy *to);
void region_copy_release(struct region_copy *copy);

/*
 * The bytes of a slot, at least as many as in this version's layout. NULL if the copy has no such
 * slot (counted from its first) or the slot was changing.
 */
const unsigned char *region_copy_slot(const struct region_copy *copy, uint32_t index);

/* The index of that slot in the part. */
uint32_t region_copy_index(const struct region_copy *copy, uint32_t index);

/*
 * The contents of a region, slot by slot, from a private copy: checked and never torn.
 *
 *	region_open(&region, path, 0, &problem);
 *	region_copy(&region, REGION_COPY_STATE);
 *	for (i = 0; i < region_slots(&region, REGION_LIVE); i++)
 *		if (region_live_at(&region, i, &live, &problem)) ...
 *
 * Then read the ring, see region_ring_open(). In this order nothing is missed: an operation that
 * finishes in between is in both, recognizable by (comm, number); one that is in neither does not
 * exist.
 */

/* Copied slots of a part; 0 if it was not copied. */
uint32_t region_slots(const struct region *region, enum region_part_index part);

/*
 * Slot by index. False: free, changing during the copy, or invalid; *problem (may be NULL) then
 * says what is invalid, or is NULL. Texts are terminated and without control bytes.
 */
bool region_comm_at(const struct region *region, uint32_t index, struct region_comm *comm,
		    const char **problem);
bool region_live_at(const struct region *region, uint32_t index, struct region_live *live,
		    const char **problem);
bool region_proxy_at(const struct region *region, uint32_t index, struct region_proxy *proxy,
		     const char **problem);
bool region_total_at(const struct region *region, uint32_t index, struct region_total *total);
/* Does it belong to a peer and has moved something? */
bool region_link_is_used(const struct region_link *link);
bool region_link_at(const struct region *region, uint32_t index, struct region_link *link);

/* Was that live slot being filled? Its operation is issued and cannot be read yet. */
bool region_live_is_filling(const struct region *region, uint32_t index);

/* Does this proxy operation belong to the live operation in slot `index`? */
bool region_proxy_is_of(const struct region_proxy *proxy, uint32_t index,
			const struct region_live *live);

/* The open transfers of a proxy operation, sorted by step. Returns how many were put into steps. */
unsigned int region_steps(const struct region_proxy *proxy, struct region_step steps[WINDOW_STEPS]);

/* The text of an interned name; false if there is none. Also for ids below OP_NAME_INTERNED. */
bool region_name(const struct region *region, uint8_t id, char *text, size_t size);

/* The recorder's clock now; false on another host or boot, or if the clock is invalid. */
bool region_now(const struct region *region, uint64_t *now_ns);

/* The recorder's clock and wall time now; false under the same conditions. */
bool region_anchor(const struct region *region, struct clock_anchor *anchor);

/* Terminate the texts of a communicator and remove control bytes. */
void region_clean_comm(struct comm_info *info);

/*
 * Finished operations and details (mode full) from the rings, by sequence, each once, never torn.
 * Read in pieces, so memory does not grow with the ring.
 *
 *	region_ring_open(&ring, &region, REGION_RING, 0);
 *	while ((status = region_ring_next_op(&ring, &op)) == OK) ...
 *	region_ring_close(&ring);
 */

struct region_ring {
	const struct region *region; /* borrowed until the close */
	enum region_part_index part;
	uint64_t head; /* the last sequence when it was opened; later ones are not returned */
	uint64_t next; /* the next sequence to read */
	struct region_copy copy; /* the current piece */
	/* Records not returned so far: */
	uint64_t overwritten; /* by later ones during reading */
	uint64_t torn;	      /* unwritten or half written: by an active writer or a killed one */
	uint64_t refused;     /* whole but invalid */
	const char *problem;  /* of the last invalid one */
};

/*
 * REGION_RING or REGION_DETAILS. Records with a sequence up to `after` are skipped (0: none). A
 * region without that part has no records. ERR_TRUNCATED, ERR_SYSTEM. Close in every case.
 */
enum status region_ring_open(struct region_ring *ring, const struct region *region,
			     enum region_part_index part, uint64_t after);
/* OK; ERR_GONE after the last one; ERR_TRUNCATED, ERR_SYSTEM, ERR_NO_SPACE. */
enum status region_ring_next_op(struct region_ring *ring, struct op_record *op);
enum status region_ring_next_detail(struct region_ring *ring, struct op_detail *detail);
void region_ring_close(struct region_ring *ring);

/*
 * The "key=value" lines that identify a recording; region and trace file share them.
 *
 * The value of the first line with this key, terminated, as text_clean() makes it, cut to `size`.
 * False and value "" if there is none. The text needs no terminator and is not trusted.
 */
bool info_get(const char *text, size_t text_bytes, const char *key, char *value, size_t size);

/* A path to open, byte for byte: clean it before it is shown. False if there is none or it does not fit. */
bool info_get_path(const char *text, size_t text_bytes, const char *key, char *path, size_t size);

/* The same as an integer; `otherwise` if it is missing or not a number. */
int64_t info_get_number(const char *text, size_t text_bytes, const char *key, int64_t otherwise);

/*
 * Iterate over all lines: start with *at = 0, call until false. Lines without '=' and empty keys
 * are skipped. Keys and values as above. Labels have keys that begin with "label.".
 */
bool info_next(const char *text, size_t text_bytes, size_t *at, char *key, size_t key_size,
	       char *value, size_t value_size);

/*
 * Finds the regions on this host, in containers, too, and which of their processes are alive. Opens
 * nothing for writing and follows no symbolic links.
 */

enum region_place_kind {
	REGION_PLACE_FILE = 0,
	REGION_PLACE_MEMFD = 1,	    /* /proc/PID/fd/N of a process that has it open */
	REGION_PLACE_CONTAINER = 2, /* /proc/PID/root/..., a file that only its container sees */
};

struct region_place {
	char *path;
	struct stat st; /* when it was found; a region with two names is listed once */
	enum region_place_kind kind;
};

struct region_places {
	struct region_place *list; /* sorted by path */
	size_t count;
	size_t unreadable;	     /* directories and files we may not read */
	size_t foreign;		     /* files in a recorder's directory that are not regions */
	struct region_owner *owners; /* whose directories were searched */
	size_t owner_count;
};

/* What one user had to be searched. */
struct region_owner {
	uint32_t uid;
	uint32_t files;	      /* opened in recorders' directories */
	uint32_t descriptors; /* of processes */
	uint64_t mounts;      /* effort of reading its processes' lists of mounts */
	uint32_t
		directories_left_out; /* not searched to their end: beyond the limits of a search */
};

/* The default directory of regions. */
#define REGION_FIND_DIRECTORY "/dev/shm"

/*
 * Regions in files: directory/ringside-* /x and directory/x.region (NULL: REGION_FIND_DIRECTORY);
 * memfds named "ringside", and files in the directory of this name in other mount namespaces, of
 * processes we may inspect. A missing directory is not an error. ERR_SYSTEM (errno), ERR_NO_SPACE
 * (memory). Release in every case.
 */
enum status region_find(struct region_places *places, const char *directory);
void region_find_release(struct region_places *places);

/*
 * The same in steps, for a program with other things to do: a user can have any number of files. Nothing
 * below follows from the duration of a step; the effort is counted.
 *
 *	region_search_new(&search, NULL, true, &limits);
 *	do
 *		region_search_step(search, effort, &is_over);
 *	while (!is_over);
 *	region_search_places(search);
 */

/* Of one user; 0: unlimited. */
struct region_search_limits {
	uint32_t owner_files; /* opened in recorders' directories */
	/* Of its processes; root's are not limited. */
	uint32_t owner_descriptors;
	uint64_t
		owner_mounts; /* effort of reading lists of mounts: 1 per line, and more where there are many */
};
struct region_search;

/*
 * with_processes: with what is reached through processes, which is expensive. ERR_SYSTEM (errno), ERR_NO_SPACE. Free in
 * every case.
 */
enum status region_search_new(struct region_search **search, const char *directory,
			      bool with_processes, const struct region_search_limits *limits);
/* A name that is listed takes an effort of 1, what is opened 17. */
enum status region_search_step(struct region_search *search, uint64_t effort, bool *is_over);
/* Complete when it is over. */
const struct region_places *region_search_places(const struct region_search *search);
/* Of all steps so far. */
uint64_t region_search_effort(const struct region_search *search);
void region_search_free(struct region_search *search);

/*
 * Open for reading what was found. -1 with errno; ESTALE: the path names another file now. A path
 * in a container must not be opened in any other way: its links would lead out of the container.
 */
int region_place_open(const struct region_place *place);

/* Is the process that wrote a recording alive? Checks its identity, because pids are reused. */
enum region_alive {
	REGION_ALIVE_UNKNOWN = 0, /* another host, or a pid namespace we cannot inspect */
	REGION_ALIVE_YES = 1,
	REGION_ALIVE_NO = 2, /* gone, a zombie, or its host was rebooted */
};

struct region_identity {
	const char *host;	/* "": unknown */
	const char *boot_id;	/* "": unknown */
	uint64_t pid;		/* in its own namespace */
	uint64_t pid_namespace; /* inode; 0: unknown */
	uint64_t start_ticks;	/* 0: unknown */
};

/*
 * If it is alive, *pid_here (may be NULL) is set to its pid in our namespace. An unknown namespace
 * is assumed to be ours; with unknown start_ticks the result is never YES.
 */
enum region_alive region_alive(const struct region_identity *identity, uint64_t *pid_here);

/*
 * For a process that was alive as pid_here at the last check: the same at the cost of one small
 * file, in any namespace. *state is set as by region_process_state().
 */
enum region_alive region_alive_still(const struct region_identity *identity, uint64_t pid_here,
				     char *state);

/*
 * State of a process: R, S, D, T (stopped), t (traced) ... as in /proc/PID/stat; 0: unknown or
 * gone.
 */
char region_process_state(uint64_t pid_here);

/* Of this host; "" if /proc does not provide it. */
void region_boot_id(char boot_id[40]);

#endif
