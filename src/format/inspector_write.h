/*
 * Records in NCCL Inspector's format: JSON lines, format v4.0, accepted by every reader of its logs
 * including NVIDIA's perf_summary_exporter.py. Every line names the tool that wrote it. Both the
 * plugin (while a job runs) and `ringside export` (afterwards) use this.
 *
 * There is one file per process, <host>-pid<pid>.log.
 */
#ifndef INSPECTOR_WRITE_H
#define INSPECTOR_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/op_layout.h"

enum {
	INSPECTOR_LINE_BYTES = 4096,	     /* the longest line without events */
	INSPECTOR_VERBOSE_BYTES = 64 * 1024, /* ... and with those of INSPECTOR_CHANNELS channels */
	INSPECTOR_CHANNELS = 256,
	INSPECTOR_NAME_BYTES = 320,
};

/* What to write. All zeros: everything possible. */
struct inspector_filter {
	uint64_t least_bytes;	 /* of one rank's part, as Inspector counts */
	bool is_without_p2p;	 /* no Send, no Recv */
	bool is_kernel_gpu_only; /* nothing timed by the host's clock */
	bool is_without_bounds;	 /* only durations: neither network spans nor bounds */
};

/* What happens to an operation. Checked in this order. */
enum inspector_fate {
	INSPECTOR_WRITTEN = 0,
	INSPECTOR_CAPTURED,	  /* put into a CUDA graph; its replays are separate operations */
	INSPECTOR_OTHER_FUNCTION, /* a function that Inspector does not know */
	INSPECTOR_UNKNOWN_RANKS, /* rank or size of the communicator is unknown (NCCL before 2.27) */
	INSPECTOR_NO_P2P,	 /* filtered */
	INSPECTOR_UNKNOWN_SIZE,	 /* the datatype is not in our tables */
	INSPECTOR_SMALL,	 /* filtered */
	INSPECTOR_NO_TIME,	 /* its end was not seen, or its time was rejected */
	INSPECTOR_HOST_TIME,	 /* filtered, by one of the last two options */
	INSPECTOR_FATES,
};

enum inspector_fate inspector_fate(const struct op_record *op, const struct comm_info *comm,
				   const struct inspector_filter *filter);

/* "without a time": for a sentence that counts them. */
const char *inspector_fate_text(enum inspector_fate fate);

static inline bool inspector_is_p2p(uint8_t function)
{
	return function == OP_SEND || function == OP_RECV;
}

/*
 * What Inspector calls the size: what a rank contributes to AllGather, what it gets from
 * ReduceScatter.
 */
uint64_t inspector_rank_bytes(const struct op_record *op, const struct comm_info *comm);

/* The process that a line is about, and the time. */
struct inspector_speaker {
	const char *host; /* "" becomes "unknown"; cut to 255 bytes */
	int64_t pid;	  /* -1 (unknown) becomes 0 */
	uint64_t wall_ns; /* when the record was finished; 0: unknown */
};

/* One channel of an operation as the host saw it: wall time; 0: unknown. */
struct inspector_channel {
	uint64_t start_ns, stop_ns;
	uint8_t channel;
};

/* What a verbose line has in addition. */
struct inspector_events {
	uint64_t op_ns; /* when the operation was issued: wall time; 0: unknown */
	const struct inspector_channel *channels;
	size_t count; /* at most INSPECTOR_CHANNELS */
};

/*
 * Write a line with its newline into `line`, which has room for `size` bytes; returns its length.
 * 0: it does not fit, or there is no line for such a record (see inspector_fate). `comm` is the
 * record's communicator; p2p_number counts the Sends and Recvs on it, from 1, over all peers.
 * events: NULL for a plain line.
 *
 * Durations are rounded to microseconds; bandwidths are computed from nanoseconds. Time sources:
 * kernel_gpu stays, proxy becomes kernel_cpu, host becomes collective_cpu. Independent of the
 * locale.
 */
size_t inspector_line(char *line, size_t size, const struct inspector_speaker *speaker,
		      const struct comm_info *comm, const struct op_record *op, uint64_t p2p_number,
		      const struct inspector_events *events);

/* "node01-pid4711.log"; characters that do not belong in a file name become '_'. */
void inspector_file_name(char name[static INSPECTOR_NAME_BYTES], const char *host, int64_t pid);

/* A number with six decimals and a point in any locale; negative and absurd ones become 0. */
enum { INSPECTOR_NUMBER_BYTES = 32 };
const char *inspector_number(char to[static INSPECTOR_NUMBER_BYTES], double number);

/*
 * NCCL Inspector's four metrics in Prometheus' text format. Names, labels and their order are
 * Inspector's. Added are what it lacks: HELP and TYPE, identical in every file; escaped label
 * values; a small number of size classes; and two more labels, so that no two files of a node have
 * the same series (docs/IMPORT.md).
 */

/* In the order they have in a file. */
enum inspector_metric {
	INSPECTOR_BUS_BANDWIDTH = 0, /* GB/s, of collectives */
	INSPECTOR_EXEC_TIME = 1,     /* microseconds, of collectives */
	INSPECTOR_P2P_BUS_BANDWIDTH = 2,
	INSPECTOR_P2P_EXEC_TIME = 3,
	INSPECTOR_METRICS = 4,
};

/* The labels of one series. Texts that are "" or NULL become "unknown". */
struct inspector_labels {
	const char *job;
	const char *node;
	const char *gpu_uuid; /* "GPU-..." */
	int32_t gpu;	      /* CUDA's number in the process; -1: unknown */
	uint32_t process;     /* from 2 on: not the first process on its GPU; else no such label */
	const char *comm_name;
	int32_t nnodes, nranks;
	const char *function;		  /* "AllReduce" */
	unsigned int size;		  /* inspector_size_class() */
	const char *algorithm, *protocol; /* of collectives */
};

/*
 * Size classes by powers of two; everything below 1 KiB is one class, and so is everything from 64
 * GiB on.
 */
enum { INSPECTOR_SIZES = 30, INSPECTOR_SIZE_BYTES = 16 };
unsigned int inspector_size_class(uint64_t bytes);
/* "4-8GB". */
const char *inspector_size_text(char text[static INSPECTOR_SIZE_BYTES], unsigned int size_class);

enum { INSPECTOR_SAMPLE_BYTES = 4096 };

/* The HELP and TYPE lines of a metric; returns their length. */
size_t inspector_metric_head(char text[static INSPECTOR_SAMPLE_BYTES],
			     enum inspector_metric metric);
/* The line of one sample; returns its length. */
size_t inspector_metric_sample(char text[static INSPECTOR_SAMPLE_BYTES],
			       enum inspector_metric metric, const struct inspector_labels *labels,
			       double value);

/*
 * "nccl_inspector_metrics_<uuid without GPU->.prom"; "..._2.prom" for the second process on a GPU.
 */
enum { INSPECTOR_PROM_NAME_BYTES = 128 };
void inspector_prom_name(char name[static INSPECTOR_PROM_NAME_BYTES], const char *gpu_uuid,
			 uint32_t process);

#endif
