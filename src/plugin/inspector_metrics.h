/*
 * NCCL Inspector's metrics, a file per GPU. For a thread of the recorder's own only: it may have to wait for the disk.
 */
#ifndef INSPECTOR_METRICS_H
#define INSPECTOR_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/op_layout.h"
#include "common/status.h"

struct inspector_series_entry;

/*
 * One GPU's file of metrics: nccl_inspector_metrics_<uuid>.prom, put in place whole, for node-exporter's
 * collector. Each process on a GPU has a file and a number of its own: the first has the name as it is,
 * the second nccl_inspector_metrics_<uuid>_2.prom, and so on. A lock, which dies with its owner, says
 * which numbers are taken.
 */
enum { INSPECTOR_GPU_PATH_BYTES = 1200, INSPECTOR_CHUNK_BYTES = 32 * 1024 };

struct inspector_gpu {
	char uuid[48];	  /* as the driver says it, "" unknown */
	int32_t gpu;	  /* CUDA's number in this process, -1 unknown */
	uint32_t process; /* which one on its GPU, from 1; 0 not known yet */
	int lock;	  /* -1 none */
	char path[INSPECTOR_GPU_PATH_BYTES], draft[INSPECTOR_GPU_PATH_BYTES];
	char lock_path[INSPECTOR_GPU_PATH_BYTES];
	/* The draft while it is written. */
	int fd;
	uint64_t offset;
	enum status status;
	size_t used;
	char *chunk; /* borrowed: INSPECTOR_CHUNK_BYTES */
};

/*
 * What NCCL Inspector's metrics say of the last interval: sums per communicator's name and size, function,
 * message size, algorithm and protocol, on each GPU. The table is bounded: what finds no room in it is
 * summed up under the name "other".
 */
enum { INSPECTOR_SERIES = 1024, INSPECTOR_GPUS = 16 };

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
