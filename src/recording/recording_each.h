/* Between the files that walk a recording; commands use recording.h. */
#ifndef RECORDING_EACH_H
#define RECORDING_EACH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "recording/recording.h"
#include "trace/trace_read.h"

struct recording_batch;

struct walk {
	const struct recording_process *process;
	recording_visit_op *visit_op; /* one of the two */
	recording_visit_detail *visit_detail;
	void *context;
	/* Blocks of operations go here instead; what is in no block goes to visit_op all the same. */
	struct recording_batch *batch;
	struct recording_walk *counts;
	bool *seen;	     /* per flight */
	uint64_t floor;	     /* sequences up to here were given from earlier files */
	uint64_t last;	     /* the highest sequence met in files */
	bool is_snapshot;    /* the file at hand is one */
	uint64_t live_after; /* of the file at hand: later sequences are not of records */
	bool is_over;	     /* the visitor has had enough */
};

/* From all places. *counts may be NULL. */
enum status recording_each_walk(struct walk *walk, struct recording_walk *counts);

void recording_each_refused(struct walk *walk, const char *problem, uint64_t offset);

/* An operation was given: its live slot need not be any more. */
void recording_each_seen(struct walk *walk, uint32_t comm, uint64_t number);

/* False: it was given before, from another file. */
bool recording_each_is_new(struct walk *walk, uint64_t sequence);

/* A block of operations, as columns. */
void recording_batch_block(struct walk *walk, const struct trace_item *item);

#endif
