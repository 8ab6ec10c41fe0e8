/* What the trace file says besides records: communicators, names, counts, links, anchors. The trace thread's own. */
#ifndef DRAIN_FILE_H
#define DRAIN_FILE_H

#include <stdint.h>
#include <sys/types.h>

#include "capture/recorder.h"
#include "trace/trace_write.h"

struct drain_file {
	struct trace_writer writer;
	uint32_t *saved_comms; /* per slot: id whose description is in the file */
	uint32_t *ended_comms; /* per slot: id whose end and counts are, too */
	struct trace_comm_counts *counts;
	uint64_t names_saved;
	uint64_t slow_ns;
	uint64_t counts_head;	/* ring head when counts were last written */
	uint64_t counts_issued; /* operations issued then */
	struct region_link *links;
	uint64_t links_proxies; /* proxy operations begun when links were last written */
	uint64_t links_bytes;	/* of the file, behind them */
	uint32_t links_age;	/* counts written since */
};

/* Memory for what follows. False: there is none. */
bool drain_file_init(struct drain_file *file);

/* Make the file. `group` may read it, too; (gid_t)-1: none. On failure there is no file, and errno says why for
 * ERR_SYSTEM. */
enum status drain_file_open(struct drain_file *file, const char *path, gid_t group, uint64_t quota);

/* Say in it who writes. */
enum status drain_file_begin(struct drain_file *file);

/* There is no use for it after all. Leaves errno as it was. */
void drain_file_discard(struct drain_file *file, const char *path);

/* Communicators and names that are new. */
void drain_file_save_news(struct drain_file *file);

/* The rest, when it is time for it. */
void drain_file_save_slowly(struct drain_file *file, uint64_t now);

/* Once more everything, then the closing record. */
void drain_file_close(struct drain_file *file);

#endif
