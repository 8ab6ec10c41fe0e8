/*
 * What NCCL Inspector's metrics say of the last interval: sums per communicator's name and size, function,
 * message size, algorithm and protocol, on each GPU. The table is bounded: what finds no room in it is
 * summed up under the name "other".
 *
 * For a thread of the recorder's own only: it may have to wait for the disk.
 */
#ifndef INSPECTOR_SERIES_H
#define INSPECTOR_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "capture/inspector_gpu.h"
#include "op/comm_layout.h"
#include "op/op_layout.h"

enum { INSPECTOR_SERIES = 1024, INSPECTOR_GPUS = 16 };

struct inspector_series_entry;

struct inspector_series {
	char dir[1024];
	const char *job, *node;
	struct inspector_series_entry *entries; /* by hash of the key */
	uint32_t used;
	uint64_t count; /* operations since the last publication */
	struct inspector_gpu *gpus;
	uint32_t gpu_count;
	char *chunk;
	bool is_clean; /* what killed processes left in the directory is gone */
};

/* job and node are borrowed. Nothing is opened yet. False: no memory. */
bool inspector_series_init(struct inspector_series *series, const char *dir, const char *job,
			   const char *node);

/* An operation with a time, a size and a known communicator. False: no room for it. */
bool inspector_series_add(struct inspector_series *series, const struct comm_info *comm,
			  const struct op_record *op);

/* A GPU that has a communicator has a file, also while nothing happens. */
void inspector_series_see_gpu(struct inspector_series *series, const struct comm_info *comm);

/* One file per GPU, and begin anew. Gives back how many operations are in these files. ERR_SYSTEM: not all
 * files could be written; errno. */
uint64_t inspector_series_publish(struct inspector_series *series, enum status *status);

/* Files, locks and memory go. */
void inspector_series_leave(struct inspector_series *series);

#endif
