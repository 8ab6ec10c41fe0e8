/*
 * Records as NCCL Inspector writes them: JSON lines in its format v4.0, which every reader of its
 * logs takes, NVIDIA's perf_summary_exporter.py among them. Every line says whose it is. The plugin
 * writes them while a job runs, `ringside export` afterwards: from here, both.
 *
 * There is a file per process, called <host>-pid<pid>.log.
 */
#ifndef INSPECTOR_LINE_H
#define INSPECTOR_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op/comm_layout.h"
#include "op/op_layout.h"

enum {
	INSPECTOR_LINE_BYTES = 4096,	     /* the longest line without events */
	INSPECTOR_VERBOSE_BYTES = 64 * 1024, /* and with those of INSPECTOR_CHANNELS channels */
	INSPECTOR_CHANNELS = 256,
	INSPECTOR_NAME_BYTES = 320,
};

/* How long it took, and by which clock; ns 0: nobody knows. */
struct inspector_time {
	uint64_t ns;
	uint8_t source; /* enum op_time_source */
};

/*
 * The record's own time. Where it has none, but its end was seen: from its call to then, source host. That
 * is an upper bound, with all the time it waited in its queue.
 */
struct inspector_time inspector_time(const struct op_record *op);

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

#endif
