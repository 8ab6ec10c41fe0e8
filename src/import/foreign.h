/*
 * Logs that other tools wrote about NCCL, read as if we had recorded them: NCCL Inspector's log
 * (v4.0 to v4.4) and CoMMA's latency file, plain or gzip, and dumps of PyTorch's Flight Recorder.
 * docs/IMPORT.md describes the mapping and what those files lack.
 *
 *	foreign_log_init(&log);
 *	foreign_read(&log, fd, &(struct foreign_request){ .process = -1, ... });
 *	foreign_log_release(&log);
 *
 * One pass over the file passes operations to a visitor and fills the log with the processes and
 * communicators and the number of missing records. Lines that cannot be read are reported, counted
 * and skipped. No input is trusted: records pass op_check(), texts are terminated and without
 * control bytes, all lists are bounded.
 */
#ifndef FOREIGN_H
#define FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/op_layout.h"
#include "common/status.h"

enum foreign_format {
	FOREIGN_NONE = 0, /* not a known format */
	FOREIGN_INSPECTOR = 1,
	FOREIGN_COMMA = 2,
	FOREIGN_TORCH_DUMP = 7, /* of PyTorch's Flight Recorder */
	/* These have no operations. */
	FOREIGN_COMMA_SUMMARY = 3, /* histograms */
	FOREIGN_NCCL_TESTS = 4,	   /* expected.h reads these three */
	FOREIGN_NCCL_TESTS_JSON = 5,
	FOREIGN_EXPECTED = 6, /* our own */
};

/* "NCCL Inspector's log", ... */
const char *foreign_format_name(enum foreign_format format);

/* Does it contain operations, so that foreign_read() can read it? */
bool foreign_has_operations(enum foreign_format format);

/* From the first bytes of the text. */
enum foreign_format foreign_probe(const char *text, size_t length);

/* From the content of the descriptor, also through gzip. FOREIGN_NONE if it cannot be read. */
enum foreign_format foreign_probe_fd(int fd);

enum { FOREIGN_PROBE_BYTES = 1 << 16 };

/* NCCL counts the collectives of a communicator by function. */
enum { FOREIGN_COUNTERS = 5 };

struct foreign_comm {
	struct comm_info info; /* its id is its index in the process's list, from 1 */
	uint32_t process;
	uint64_t records;
	uint64_t timed; /* from kernel_gpu or proxy */
	/* By NCCL's own counters: how many there were, and how many of these are in the log. */
	uint64_t counted[FOREIGN_COUNTERS];
	uint64_t found[FOREIGN_COUNTERS];
	uint64_t recent[FOREIGN_COUNTERS]; /* bit i: number counted - 1 - i was found */
	uint64_t counted_p2p;		   /* by the recorder's counter; 0: it has none */
	uint64_t found_p2p;
	uint64_t dropped; /* by the recorder's own count: overwritten in its ring */
	uint64_t dropped_details;
	uint64_t last_done_ns;
	/* A dump has the last operations, in flight ones too, with the numbers of its writer. */
	bool is_from_dump;
	uint64_t open;
	uint64_t last_number;
	uint64_t last_done_number;
	uint64_t last_match;
	uint64_t last_issue_ns;
};

struct foreign_process {
	char host[256];	  /* "": unknown */
	int64_t pid;	  /* -1: unknown */
	int64_t rank;	  /* of the job; -1: unknown */
	char version[32]; /* of the format, as last seen; "": unknown */
	uint32_t *comms;  /* indexes into the log's list, by id */
	uint32_t comm_count;
	uint64_t records;
	uint64_t details;
	uint64_t untimed;  /* records without a duration */
	uint64_t coarse;   /* records that ended at an unknown time before they were written */
	uint64_t first_ns; /* recorder's clock of its first and last record; 0: unknown */
	uint64_t last_ns;
	uint64_t foreign_ops; /* transfers for other processes that its recorder left out (PXN) */
	/* Of a dump: the first call that was not over, and after how long it would be aborted. */
	uint64_t open_since_ns; /* 0: all were over */
	uint64_t open_limit_ns; /* 0: unknown */
};

struct foreign_log {
	enum foreign_format format;
	struct foreign_process *processes; /* in the order of their first line */
	uint32_t process_count;
	struct foreign_comm *comms;
	uint32_t comm_count;
	uint64_t bytes; /* read from the file */
	uint64_t lines;
	uint64_t damaged;	  /* lines that could not be read in full */
	uint64_t ignored;	  /* lines without information about operations */
	uint64_t orphans;	  /* of damaged: lines whose marker line is missing */
	uint64_t skipped_details; /* details on a clock of their own */
	bool is_cut;		  /* the last line is incomplete */
	/* Only during reading. */
	uint32_t *comm_index;
	size_t comm_index_size;
};

/* A line or a part of the file that could not be read. */
struct foreign_damage {
	uint64_t line;	 /* from 1; 0: about the file, not a line */
	uint64_t offset; /* in the text; in the file if `line` is 0 */
	uint64_t bytes;
	uint64_t missing; /* records known to be missing there; 0: unknown */
	bool is_cut;	  /* truncated, nothing follows */
	const char *what; /* static */
};

/* Where in a program a call was made: room for a few frames. */
enum { FOREIGN_WHERE_BYTES = 768 };

struct foreign_request {
	const char *name;     /* of the file: a dump has its rank nowhere else; NULL: unknown */
	int64_t process;      /* only this one; -1: all */
	uint64_t limit_bytes; /* of the file; 0: all of it */
	/* Any may be NULL. Return false to stop reading. */
	bool (*visit_op)(const struct op_record *op, uint32_t process, void *context);
	bool (*visit_detail)(const struct op_detail *detail, uint32_t process, void *context);
	void (*visit_damage)(const struct foreign_damage *damage, void *context);
	/*
	 * Where in the program calls were made, innermost frame first, if it is known: those in flight
	 * and the last of each communicator that is over. After their visit_op().
	 */
	void (*visit_where)(const struct op_record *op, const char *where, void *context);
	void *context;
};

void foreign_log_init(struct foreign_log *log);
void foreign_log_release(struct foreign_log *log);

/*
 * Read all of it once. Processes and communicators are numbered in order of appearance, so a second
 * read of the same bytes gives the same numbers. ERR_UNKNOWN: no operations in such a file;
 * ERR_NO_SPACE: memory; ERR_SYSTEM. Damage is not a failure.
 */
enum status foreign_read(struct foreign_log *log, int fd, const struct foreign_request *request);

/*
 * Operations of a process that are not in the log: those that its recorder reports as dropped, and
 * those known only from NCCL's counters (too small to be recorded, not finished, or lost).
 */
uint64_t foreign_dropped(const struct foreign_log *log, uint32_t process);
uint64_t foreign_not_recorded(const struct foreign_log *log, uint32_t process);
uint64_t foreign_dropped_details(const struct foreign_log *log, uint32_t process);

/* The process's communicator as trace files and regions count: issued and recorded. */
void foreign_comm_counts(const struct foreign_comm *comm, struct comm_counts *counts);

/* Is this time of a log relative to 1970? An old CoMMA counts from its own start. */
bool foreign_is_wall(uint64_t ns);

/*
 * The info text of the process, "key=value" lines: host, pid, job (from a directory name
 * "nccl-inspector-JOB" in `path`), and its source. False if it did not fit.
 */
bool foreign_info_text(const struct foreign_log *log, uint32_t process, const char *path,
		       char *text, size_t size);

/*
 * The lines of a file, plain or gzip: a few at a time, never the whole file. It is read, not
 * mapped, because it may be truncated in the meantime.
 */

/* No tool writes longer lines; a longer one is skipped and counted. */
enum { FOREIGN_LINE_MAX = 16 << 20 };

struct foreign_line {
	const char *text; /* without its newline; valid until the next call */
	size_t length;
	uint64_t number;  /* from 1 */
	uint64_t offset;  /* of its first byte in the (uncompressed) text */
	bool is_ended;	  /* by a newline; else the text ends here */
	bool is_too_long; /* longer than FOREIGN_LINE_MAX: `text` is "" */
};

struct foreign_lines {
	int fd;
	uint64_t read_at; /* in the file */
	uint64_t limit;	  /* bytes of the file to read; UINT64_MAX: all */
	bool is_gzip;
	bool is_over; /* no more input from the file */
	void *inflate;
	unsigned char *packed;
	char *buffer;
	size_t room;
	size_t from; /* start of what is in the buffer and not yet returned */
	size_t to;
	size_t seen;	 /* no newline up to here */
	uint64_t offset; /* of buffer[from] in the text */
	uint64_t number;
	enum status status; /* why it ended early: ERR_SYSTEM, ERR_FORMAT or ERR_TRUNCATED (gzip) */
};

/*
 * The descriptor stays the caller's; its position is not changed. The caller owns *lines; release
 * it in every case. ERR_NO_SPACE, ERR_SYSTEM.
 */
enum status foreign_lines_init(struct foreign_lines *lines, int fd, uint64_t limit);
void foreign_lines_release(struct foreign_lines *lines);

/*
 * OK and a line, or ERR_GONE at the end. ERR_NO_SPACE is memory. If the file is damaged or cannot
 * be read further, everything before that is returned first; then lines->status gives the reason,
 * at byte lines->read_at of the file.
 */
enum status foreign_lines_next(struct foreign_lines *lines, struct foreign_line *line);

/* The first bytes of the text, for format detection: up to `size`, fewer only if it is shorter. */
enum status foreign_lines_peek(int fd, char *to, size_t size, size_t *got);

/*
 * Reads the output of ncclsee: ncclsee_YYYYMMDD_HHMMSS/PID.csv, one file per process, with the
 * number of calls, the bytes and the time of each collective by size class. It contains no single
 * calls, so it is not a recording; only `ringside bench profilers` reads it. docs/BENCH.md
 * explains its numbers.
 */

enum {
	NCCLSEE_CLASSES = 8,
	NCCLSEE_FUNCTIONS = 7, /* six collectives and those it does not know */
	NCCLSEE_ROWS_MAX = NCCLSEE_CLASSES * NCCLSEE_FUNCTIONS,
	NCCLSEE_BYTES_MAX = 1 << 16, /* ten times larger than any such file */
};

struct ncclsee_row {
	uint8_t function; /* enum op_function as the file names it, see ncclsee_other_label(); 0: unknown */
	uint8_t size_class; /* of count * element size as NCCL shows them: one rank's part for AllGather,
			     * ReduceScatter and AlltoAll, the message otherwise */
	uint64_t calls;
	uint64_t bytes;	 /* what NCCL said would be moved, not the message */
	bool has_time;	 /* false: missing or impossible */
	double total_ns; /* total of host time and kernel time of all calls; it does not say which */
};

struct ncclsee_profile {
	int64_t pid; /* from the file name; -1: none */
	struct ncclsee_row rows[NCCLSEE_ROWS_MAX];
	size_t row_count;
	uint64_t groups;     /* ncclGroupEnd()s */
	size_t line;	     /* after a failure: where */
	const char *problem; /* what is wrong; static; NULL: nothing */
};

/*
 * Strict: ERR_FORMAT for a wrong header, an unknown class or collective, a duplicate row, or
 * invalid numbers. Without the last row ("Group"): ERR_TRUNCATED. See profile->line and ->problem.
 */
enum status ncclsee_read_memory(struct ncclsee_profile *profile, const char *text, size_t length);
/* From a file, whose name gives the process. Also ERR_SYSTEM (errno), ERR_RANGE: too long. */
enum status ncclsee_read(struct ncclsee_profile *profile, const char *path);

/*
 * 0 to NCCLSEE_CLASSES - 1, and the range of a class: *from to below *to, UINT64_MAX for the last.
 */
unsigned int ncclsee_class_of(uint64_t bytes);
void ncclsee_class_bounds(unsigned int size_class, uint64_t *from, uint64_t *to);

/*
 * Its table of names has Reduce and ReduceScatter in a different order than its table of counters,
 * so each is written under the other's name. A release may fix that: it shows if it is known what
 * was issued.
 */
uint8_t ncclsee_other_label(uint8_t function);

#endif
