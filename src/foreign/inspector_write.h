/*
 * Records as NCCL Inspector writes them: JSON lines in its format v4.0, which every reader of its
 * logs takes, NVIDIA's perf_summary_exporter.py among them. Every line says whose it is.
 *
 * There is a file per process, called <host>-pid<pid>.log.
 */
#ifndef INSPECTOR_WRITE_H
#define INSPECTOR_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "op/comm_layout.h"
#include "op/op_layout.h"

enum { INSPECTOR_LINE_BYTES = 4096, INSPECTOR_NAME_BYTES = 320 };

/* Who is speaking, and when. */
struct inspector_speaker {
	const char *host; /* "" becomes "unknown"; cut to 255 bytes */
	int64_t pid;	  /* -1 unknown becomes 0 */
	uint64_t wall_ns; /* when the record was known to be done, 0 unknown */
};

/*
 * One line with its newline into `line`; its length. 0: there is no line for such a record. It has no
 * duration or no known size, its communicator's rank or size is unknown, or Inspector knows no such
 * function. `comm` is the record's communicator; p2p_number the number of this Send or Recv on it, from
 * 1, of whatever peer.
 *
 * Durations are rounded to microseconds, bandwidths come from the nanoseconds. Time sources: kernel_gpu;
 * proxy becomes kernel_cpu, host becomes collective_cpu.
 */
size_t inspector_write_op(char line[static INSPECTOR_LINE_BYTES],
			  const struct inspector_speaker *speaker, const struct comm_info *comm,
			  const struct op_record *op, uint64_t p2p_number);

/* "node01-pid4711.log"; what does not belong into a file's name becomes '_'. */
void inspector_file_name(char name[static INSPECTOR_NAME_BYTES], const char *host, int64_t pid);

#endif
