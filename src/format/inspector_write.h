/*
 * Records as NCCL Inspector writes them: JSON lines in its format v4.0, which every reader of its
 * logs takes, NVIDIA's perf_summary_exporter.py among them. Every line says whose it is. The plugin
 * writes them while a job runs, `ringside export` afterwards: from here, both.
 *
 * There is a file per process, called <host>-pid<pid>.log.
 */
#ifndef INSPECTOR_WRITE_H
#define INSPECTOR_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/op_layout.h"

enum {
	INSPECTOR_LINE_BYTES = 4096,	     /* the longest line without events */
	INSPECTOR_VERBOSE_BYTES = 64 * 1024, /* and with those of INSPECTOR_CHANNELS channels */
	INSPECTOR_CHANNELS = 256,
	INSPECTOR_NAME_BYTES = 320,
};

/* What is to be written. All zeros: whatever can be. */
struct inspector_filter {
	uint64_t least_bytes;	 /* of one rank's part, as Inspector counts */
	bool is_without_p2p;	 /* no Send, no Recv */
	bool is_kernel_gpu_only; /* nothing that was timed by the host's clock */
	bool is_without_bounds;	 /* only times that the record itself has */
};

/* What becomes of an operation, in the order in which it is asked. */
enum inspector_fate {
	INSPECTOR_WRITTEN = 0,
	INSPECTOR_CAPTURED, /* put into a CUDA graph; its replays are operations of their own */
	INSPECTOR_OTHER_FUNCTION, /* Inspector knows no such function */
	INSPECTOR_UNKNOWN_RANKS, /* the communicator's rank or size is unknown (NCCL before 2.27) */
	INSPECTOR_NO_P2P,	 /* by the filter */
	INSPECTOR_UNKNOWN_SIZE,	 /* of a datatype that our tables lack */
	INSPECTOR_SMALL,	 /* by the filter */
	INSPECTOR_NO_TIME,	 /* its end was not seen, or what was seen is not believed */
	INSPECTOR_HOST_TIME,	 /* by the filter, one of its last two */
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

/* What Inspector calls the size: what one rank gave to AllGather, what it got from ReduceScatter. */
uint64_t inspector_rank_bytes(const struct op_record *op, const struct comm_info *comm);

/* Who is speaking, and when. */
struct inspector_speaker {
	const char *host; /* "" becomes "unknown"; cut to 255 bytes */
	int64_t pid;	  /* -1 unknown becomes 0 */
	uint64_t wall_ns; /* when the record was known to be done, 0 unknown */
};

/* One channel of an operation as the host saw it: wall time, 0 unknown. */
struct inspector_channel {
	uint64_t start_ns, stop_ns;
	uint8_t channel;
};

/* What a verbose line has more. */
struct inspector_events {
	uint64_t op_ns; /* when the operation was handed over: wall time, 0 unknown */
	const struct inspector_channel *channels;
	size_t count; /* at most INSPECTOR_CHANNELS */
};

/*
 * One line with its newline into `line`, which has room for `size` bytes; its length. 0: it does not fit,
 * or there is no line for such a record (see inspector_fate). `comm` is the record's communicator;
 * p2p_number the number of this Send or Recv on it, from 1, of whatever peer. events: NULL for a plain
 * line.
 *
 * Durations are rounded to microseconds, bandwidths come from the nanoseconds. Time sources: kernel_gpu;
 * proxy becomes kernel_cpu, host becomes collective_cpu. A job's locale changes nothing.
 */
size_t inspector_line(char *line, size_t size, const struct inspector_speaker *speaker,
		      const struct comm_info *comm, const struct op_record *op, uint64_t p2p_number,
		      const struct inspector_events *events);

/* "node01-pid4711.log"; what does not belong into a file's name becomes '_'. */
void inspector_file_name(char name[static INSPECTOR_NAME_BYTES], const char *host, int64_t pid);

/* A number with six decimals and a point, whatever the locale; negative and absurd ones are 0. */
enum { INSPECTOR_NUMBER_BYTES = 32 };
const char *inspector_number(char to[static INSPECTOR_NUMBER_BYTES], double number);

/*
 * NCCL Inspector's four metrics as Prometheus' text format has them: names, labels and their order as
 * Inspector writes them, and what it lacks: HELP and TYPE, the same in every file; label values that are
 * escaped; size classes that are few; two labels more, so that no two files of a node have the same
 * series (docs/INSPECTOR.md).
 */

/* In the order in which a file has them. */
enum inspector_metric {
	INSPECTOR_BUS_BANDWIDTH = 0, /* GB/s, of collectives */
	INSPECTOR_EXEC_TIME = 1,     /* microseconds, of collectives */
	INSPECTOR_P2P_BUS_BANDWIDTH = 2,
	INSPECTOR_P2P_EXEC_TIME = 3,
	INSPECTOR_METRICS = 4,
};

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
