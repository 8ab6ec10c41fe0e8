/* Shared by the files of this directory; commands use recording.h. */
#ifndef RECORDING_INTERNAL_H
#define RECORDING_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/status.h"
#include "format/region_layout.h"
#include "format/region_read.h"
#include "format/trace_read.h"
#include "recording/recording.h"

/* Set the location of the last trouble. */
void recording_load_at(struct recording *recording, uint64_t offset, uint64_t bytes);

/* Take over an info text and its values. An existing text is kept. */
enum status recording_load_info(struct recording_process *process, const char *text, size_t bytes);

/*
 * Fill a new process from a region: counts, anchors, communicators, flights. These parts must have
 * been copied.
 */
enum {
	RECORDING_REGION_PARTS =
		REGION_COPY_NAMES | REGION_COPY_COMMS | REGION_COPY_LIVE | REGION_COPY_PROXIES,
};
enum status recording_region_state(struct recording_process *process);

/*
 * Load the links of a process that has none yet. Call before the region's state is copied: this
 * rereads the header's counters. ERR_NO_SPACE, ERR_TRUNCATED, ERR_SYSTEM.
 */
enum status recording_links_load(struct recording_process *process);

/*
 * Handle the operation in this live slot if totals and communicators were loaded: one that is done
 * is added to them. True: there is nothing else to learn from it, so it need not be read again.
 */
bool recording_totals_take(struct recording_process *process, const struct region_live *live,
			   uint32_t slot);
void recording_totals_free(struct recording_follow *follow);

/*
 * Load a file written by another tool: one process for each in it, owned by the list. If nothing in
 * it can be read, that is noted. ERR_NO_SPACE: memory.
 */
enum status recording_foreign_load(struct recording *recording, int fd, const char *path,
				   const struct stat *st);
void recording_foreign_free(struct recording_foreign *foreign);
/* Only list the file, for later. */
enum status recording_foreign_list(struct recording *recording, const char *path);

/* Like recording_each_op() and recording_each_detail(); one of the visitors is NULL. */
enum status recording_foreign_each(const struct recording_process *process,
				   recording_visit_op *visit_op,
				   recording_visit_detail *visit_detail, void *context,
				   struct recording_walk *walk);

/*
 * Other tools do not record a process's rank in the job. If all of their processes are in one
 * communicator, use the rank there.
 */
/* The places in the program that a snapshot's info text has. */
void recording_load_wheres(struct recording_process *process);
/*
 * Dumps beside recordings of the same ranks: their places in the program and names of process groups
 * go to those, and they are no processes of their own.
 */
void recording_foreign_join(struct recording *recording);
/* When dumps of other recorders were made, as far as their files show. */
void recording_foreign_dates(struct recording *recording);
void recording_foreign_ranks(struct recording *recording);

/* Is it the same part of the same file? */
bool recording_foreign_is_same(const struct recording_process *one,
			       const struct recording_process *other);

/* Move everything from `from` to `to`, the same process; frees `from`. */
enum status recording_join(struct recording *recording, struct recording_process *to,
			   struct recording_process *from);

/*
 * Is it in flight with CUDA events around its launch, and did the GPU not pass the second? A record in a file
 * may claim OP_FLAG_SEEN_OPEN otherwise: then the flag is cleared.
 */
void recording_flight_clean(struct op_record *op);

/* By communicator and number, their proxy operations by channel, peer and direction. */
void recording_flights_sort(struct recording_process *process);

/* Of duplicates keep the one that is further on. They are sorted and have no proxies yet. */
void recording_flights_unique(struct recording_process *process);

/*
 * Add what the details in its trace files show about flights that are not done: kernel channels,
 * proxy operations and their open transfers; also running proxy operations for other processes.
 * ERR_NO_SPACE, or any error of recording_each_detail().
 */
enum status recording_flights_details(struct recording_process *process);

/*
 * Complete a snapshot after the blocks of its trace file were read, including info and counts; does
 * nothing if its info does not say that it is one. docs/FORMATS.md has the rules. Moves `reader`.
 * ERR_NO_SPACE.
 */
enum status recording_snapshot_load(struct recording_process *process, struct recording_file *file,
				    struct trace_reader *reader);

/* recording_past.c, for the files that write and read snapshots. */
enum { RECORDING_PAST_TEXT = 4096 };
struct recording_past_ops {
	struct op_record *ops; /* the caller's to free() */
	size_t count;
	char text[RECORDING_PAST_TEXT]; /* for the info; "" none */
};
/* At most this many of those before this sequence. ERR_NO_SPACE. */
enum status recording_past_copy(struct recording_past_ops *to,
				const struct recording_process *process, uint64_t before,
				size_t most);
void recording_past_free(struct recording_past *past);
void recording_past_load(struct recording_process *process);
/* Of a snapshot: puts an operation where readers see it. False: they do not. */
bool recording_past_place(const struct recording_process *process, struct op_record *op);

#endif
