/*
 * One GPU's file of metrics: nccl_inspector_metrics_<uuid>.prom, put in place whole, for node-exporter's
 * collector. Each process on a GPU has a file and a number of its own: the first has the name as it is,
 * the second nccl_inspector_metrics_<uuid>_2.prom, and so on. A lock, which dies with its owner, says
 * which numbers are taken.
 *
 * For a thread of the recorder's own only: it may have to wait for the disk.
 */
#ifndef INSPECTOR_GPU_H
#define INSPECTOR_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

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

/* Files of processes that were killed go, if they are the user's own. Before the first claim only: looking
 * at one's own lock would lose it. */
void inspector_gpu_clean(const char *dir);

/* A name of this process's own in `dir`. ERR_SYSTEM: errno says why not; ask again later. */
enum status inspector_gpu_claim(struct inspector_gpu *gpu, const char *dir);

/* A draft, text for it, and its way to its place. The first failure sticks and leaves what was there. */
void inspector_gpu_begin(struct inspector_gpu *gpu, char *chunk);
void inspector_gpu_add(struct inspector_gpu *gpu, const char *text, size_t length);
enum status inspector_gpu_publish(struct inspector_gpu *gpu);

/* Files and lock go. */
void inspector_gpu_leave(struct inspector_gpu *gpu);

#endif
