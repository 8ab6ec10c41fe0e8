/* Between the files that load a recording; commands use recording.h. */
#ifndef RECORDING_LOAD_H
#define RECORDING_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/attributes.h"
#include "base/status.h"
#include "recording/recording.h"
#include "region/region_copy.h"

/* Note trouble. Out of memory here only means that one more is left out. `owner` may be NULL. */
void recording_load_trouble(struct recording *recording, enum recording_trouble_kind kind,
			    const char *path, const struct recording_process *owner,
			    const char *what, ...) PRINTF_LIKE(5, 6);

/* Say of the last trouble where it is. */
void recording_load_at(struct recording *recording, uint64_t offset, uint64_t bytes);

/* A process of its own, without contents, not yet in the list; NULL: no memory. */
struct recording_process *recording_process_new(void);
void recording_process_free(struct recording_process *process);
void recording_file_release(struct recording_file *file);

/* The list owns it from now on. ERR_NO_SPACE: it is freed. */
enum status recording_load_keep(struct recording *recording, struct recording_process *process);

/* Take over an info text and what it says. A text that is there already stays. */
enum status recording_load_info(struct recording_process *process, const char *text, size_t bytes);

/* The communicator with this id, made when it is new; NULL: no memory. Valid until the next call. */
struct recording_comm *recording_load_comm(struct recording_process *process, uint32_t id);

/* No more communicators for now: sort them. */
void recording_load_comms_end(struct recording_process *process);

/* Anchors come in order; one from before the last is passed over. */
enum status recording_load_anchor(struct recording_process *process, struct clock_anchor anchor);

/* Where the bytes of a trace file are: in a file, in a part of one, or in memory. */
struct recording_source {
	const char *path;    /* its name for people; of a file, where it is */
	const char *archive; /* the file of which it is a part; NULL: it is none */
	int fd;
	const unsigned char *memory; /* NULL: fd */
	uint64_t start;
	size_t length;
	uint64_t device;
	uint64_t inode;
};

/* One file of either kind, from a descriptor that stays the caller's, or from memory, which is copied. *process
 * is new and not in the list. Trouble is noted and gives another status than OK; ERR_NO_SPACE is memory. */
enum status recording_trace_load(struct recording *recording, const struct recording_source *source,
				 struct recording_process **process);
enum status recording_region_load(struct recording *recording, int fd, const char *path,
				  struct recording_process **process);

/* A tar archive: what is in it becomes part of the recording. A part of a file, or memory, as above. */
enum status recording_archive_load(struct recording *recording,
				   const struct recording_source *source);

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

/* Totals, by key, and links; is_full: not only where totals were before. ERR_NO_SPACE, ERR_TRUNCATED,
 * ERR_SYSTEM. */
enum status recording_totals_load(struct recording_process *process, bool is_full);
/* An operation in this live slot, when totals and communicators are there: one that is done is added to
 * them. True: nothing else is to be learned from it, and it need not be read again. */
bool recording_totals_take(struct recording_process *process, const struct region_live *live,
			   uint32_t slot);
/* When all is there: add what was known before, drop totals of communicators that are gone, and let no
 * figure be below what it was. */
void recording_totals_end(struct recording_process *now, const struct recording_process *before);
/* For the next look: which communicators are too fast for it to matter what is held back. */
void recording_totals_hasty(struct recording_process *now, const struct recording_process *before);
/* Were links read at the last look? Not at every one. */
bool recording_totals_has_links(const struct recording_follow *follow);
/* Was something passed over at the last look for that reason? */
bool recording_totals_is_behind(const struct recording_follow *follow);
void recording_totals_free(struct recording_follow *follow);

/* Does it run? By its identity; under the pid where it was found before, if it was. */
void recording_load_life(struct recording_process *process);

/* The order of processes in a recording, for qsort(). */
int recording_load_order(const struct recording_process *a, const struct recording_process *b);

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

/* Do both describe the same process? */
bool recording_load_is_same(const struct recording_process *one,
			    const struct recording_process *other);

/* Move what `from` has to `to`, the same process; frees `from`. */
enum status recording_join(struct recording *recording, struct recording_process *to,
			   struct recording_process *from);

#endif
