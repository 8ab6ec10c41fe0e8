/*
 * NCCL Inspector's four metrics as Prometheus' text format has them: names, labels and their order as
 * Inspector writes them, and what it lacks: HELP and TYPE, the same in every file; label values that are
 * escaped; size classes that are few; two labels more, so that no two files of a node have the same
 * series (docs/INSPECTOR.md).
 */
#ifndef INSPECTOR_PROM_H
#define INSPECTOR_PROM_H

#include <stddef.h>
#include <stdint.h>

/* In the order in which a file has them. */
enum inspector_metric {
	INSPECTOR_BUS_BANDWIDTH = 0, /* GB/s, of collectives */
	INSPECTOR_EXEC_TIME = 1,     /* microseconds, of collectives */
	INSPECTOR_P2P_BUS_BANDWIDTH = 2,
	INSPECTOR_P2P_EXEC_TIME = 3,
	INSPECTOR_METRICS = 4,
};

const char *inspector_metric_name(enum inspector_metric metric);

/* Of one series. Texts that are "" or NULL become "unknown". */
struct inspector_labels {
	const char *job;
	const char *node;
	const char *gpu_uuid; /* "GPU-..." */
	int32_t gpu;	      /* CUDA's number in the process, -1 unknown */
	uint32_t process;     /* 2 and more: not the first process on its GPU; else no such label */
	const char *comm_name;
	int32_t nnodes, nranks;
	const char *function;		  /* "AllReduce" */
	unsigned int size;		  /* inspector_size_class() */
	const char *algorithm, *protocol; /* of collectives */
};

/* Size classes by powers of two; all below 1 KiB are one, and so are those from 64 GiB on. */
enum { INSPECTOR_SIZES = 30, INSPECTOR_SIZE_BYTES = 16 };
unsigned int inspector_size_class(uint64_t bytes);
/* "4-8GB". */
const char *inspector_size_text(char text[static INSPECTOR_SIZE_BYTES], unsigned int size_class);

enum { INSPECTOR_SAMPLE_BYTES = 4096 };

/* The HELP and TYPE lines of a metric; length of what was written. */
size_t inspector_metric_head(char text[static INSPECTOR_SAMPLE_BYTES],
			     enum inspector_metric metric);
/* One sample's line; its length. */
size_t inspector_metric_sample(char text[static INSPECTOR_SAMPLE_BYTES],
			       enum inspector_metric metric, const struct inspector_labels *labels,
			       double value);

/* "nccl_inspector_metrics_<uuid without GPU->.prom", "..._2.prom" for the second process on a GPU. */
enum { INSPECTOR_PROM_NAME_BYTES = 128 };
void inspector_prom_name(char name[static INSPECTOR_PROM_NAME_BYTES], const char *gpu_uuid,
			 uint32_t process);

#endif
