/*
 * NCCL Inspector's metrics, one file per GPU. Only for the recorder's own threads, because writing
 * can block on the disk.
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
 * The metrics file of one GPU: nccl_inspector_metrics_<uuid>.prom, renamed into place as a whole,
 * for node-exporter's textfile collector. Each process on a GPU has a file and a number of its own:
 * the first has the plain name, the second nccl_inspector_metrics_<uuid>_2.prom, and so on. A lock
 * file, whose lock disappears with its owner, shows which numbers are taken.
 */
enum { INSPECTOR_GPU_PATH_BYTES = 1200, INSPECTOR_CHUNK_BYTES = 32 * 1024 };

struct inspector_gpu {
	char uuid[48];	  /* the driver's spelling, "": unknown */
	int32_t gpu;	  /* CUDA's number in this process, -1: unknown */
	uint32_t process; /* which process on its GPU, from 1; 0: not known yet */
	int lock;	  /* -1: none */
	char path[INSPECTOR_GPU_PATH_BYTES], draft[INSPECTOR_GPU_PATH_BYTES];
	char lock_path[INSPECTOR_GPU_PATH_BYTES];
	/* The draft while it is being written. */
	int fd;
	uint64_t offset;
	enum status status;
	size_t used;
	char *chunk; /* borrowed: INSPECTOR_CHUNK_BYTES */
};

/*
 * NCCL Inspector's metrics over the last interval: totals per GPU, communicator name and size,
 * function, message size, algorithm and protocol. The table is bounded; what finds no room is added
 * to the series "other".
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
	bool is_clean; /* files of killed processes were removed */
};

/* job and node are borrowed. Opens nothing yet. False: out of memory. */
bool inspector_series_init(struct inspector_series *series, const char *dir, const char *job,
			   const char *node);

/* Add an operation with a time, a size and a known communicator. False: no room for it. */
bool inspector_series_add(struct inspector_series *series, const struct comm_info *comm,
			  const struct op_record *op);

/* A GPU with a communicator has a file even while nothing happens. */
void inspector_series_see_gpu(struct inspector_series *series, const struct comm_info *comm);

/*
 * Write one file per GPU and start over. Returns how many operations are in these files. ERR_SYSTEM
 * (errno): not all files could be written.
 */
uint64_t inspector_series_publish(struct inspector_series *series, enum status *status);

/* Remove files and locks and free memory. */
void inspector_series_leave(struct inspector_series *series);

#endif
