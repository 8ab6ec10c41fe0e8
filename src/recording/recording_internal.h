/* What the files of this room share; commands use recording.h. */
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

/* Say of the last trouble where it is. */
void recording_load_at(struct recording *recording, uint64_t offset, uint64_t bytes);

/* Take over an info text and what it says. A text that is there already stays. */
enum status recording_load_info(struct recording_process *process, const char *text, size_t bytes);

/* What a region says now, into a process that says nothing yet: counts, anchors, communicators, flights.
 * Of these parts there must be copies. */
enum {
	RECORDING_REGION_PARTS =
		REGION_COPY_NAMES | REGION_COPY_COMMS | REGION_COPY_LIVE | REGION_COPY_PROXIES,
};
enum status recording_region_state(struct recording_process *process);

/* Links, of a process that has none yet. Before the region's state is copied: the header's counters are read
 * anew. ERR_NO_SPACE, ERR_TRUNCATED, ERR_SYSTEM. */
enum status recording_links_load(struct recording_process *process);

/* An operation in this live slot, when totals and communicators are there: one that is done is added to
 * them. True: nothing else is to be learned from it, and it need not be read again. */
bool recording_totals_take(struct recording_process *process, const struct region_live *live,
			   uint32_t slot);
void recording_totals_free(struct recording_follow *follow);

/* A file that another tool wrote: a process each for those that are in it, which the list owns. When
 * there is nothing in it that can be read, that is noted. ERR_NO_SPACE: memory. */
enum status recording_foreign_load(struct recording *recording, int fd, const char *path,
				   const struct stat *st);
void recording_foreign_free(struct recording_foreign *foreign);
/* The same, for later. */
enum status recording_foreign_list(struct recording *recording, const char *path);

/* As recording_each_op() and recording_each_detail(); one of the visitors is NULL. */
enum status recording_foreign_each(const struct recording_process *process,
				   recording_visit_op *visit_op,
				   recording_visit_detail *visit_detail, void *context,
				   struct recording_walk *walk);

/* Other tools do not tell a process's rank in the job. Where all of their processes are in one
 * communicator, it is the rank there. */
void recording_foreign_ranks(struct recording *recording);

/* Is it the same part of the same file? */
bool recording_foreign_is_same(const struct recording_process *one,
			       const struct recording_process *other);

/* Move what `from` has to `to`, the same process; frees `from`. */
enum status recording_join(struct recording *recording, struct recording_process *to,
			   struct recording_process *from);

/* By communicator and number, their proxy operations by channel, peer and direction. */
void recording_flights_sort(struct recording_process *process);

/* Of the same operation twice, the one that is further on stays. They are sorted and have no proxies yet. */
void recording_flights_unique(struct recording_process *process);

/* What the details of its trace files say about flights that are not done: kernel channels, proxy
 * operations and their open transfers. Also proxy operations for other processes that have not stopped.
 * ERR_NO_SPACE, or what recording_each_detail() said. */
enum status recording_flights_details(struct recording_process *process);

/* What makes a snapshot of a trace file whose blocks were read, info and counts among them: nothing when its
 * info does not say that it is one. docs/SNAPSHOT.md has the rules. `reader` is moved. ERR_NO_SPACE. */
enum status recording_snapshot_load(struct recording_process *process, struct recording_file *file,
				    struct trace_reader *reader);

#endif
