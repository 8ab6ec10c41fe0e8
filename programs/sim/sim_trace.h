/*
 * The trace files of a simulated job, one per rank, as the plugin would have written them. Only one
 * is open at a time; records are gathered per rank and written in the order in which they were done.
 */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include <stdint.h>

#include "common/op_layout.h"
#include "common/status.h"
#include "format/trace_write.h"
#include "programs/sim/sim_identity.h"
#include "programs/sim/sim_links.h"
#include "programs/sim/sim_outcome.h"

struct sim_pending {
	uint64_t done_ns; /* what they are sorted by */
	struct op_record op;
};

struct sim_file {
	struct sim_identity identity;
	uint64_t bytes;
	uint64_t sequence;
	uint64_t detail_sequence;
	struct sim_pending *pending;
	uint32_t pending_count;
	struct op_detail *details; /* NULL until there is one */
	uint32_t detail_count;
	struct comm_info comms[SIM_ROLES];
	struct comm_counts counts[SIM_ROLES];
	uint64_t in_flight[SIM_ROLES];
	struct sim_links links;
};

struct sim_trace {
	const struct sim_job *job;
	const char *directory;
	struct sim_file *files; /* by rank */
	uint32_t pending_room;
	int blocks_fd;	       /* memory where blocks of one file are put together */
	unsigned char *buffer; /* one block, for all of them */
	struct trace_encoder *encoder;
	struct op_record *block;
	char failed[512]; /* the file that could not be written */
};

/* Makes the directory and all files, up to their first operation. ERR_SYSTEM with errno, or
 * ERR_NO_SPACE; `failed` has the path. `directory` and `job` are kept. */
enum status sim_trace_init(struct sim_trace *trace, const struct sim_job *job,
			   const char *directory);

/* Record what became of a call. */
enum status sim_trace_add(struct sim_trace *trace, struct sim_engine *engine,
			  const struct sim_outcome *outcome);

/* The run is over: write what is in flight and how each file ends. */
enum status sim_trace_finish(struct sim_trace *trace, struct sim_engine *engine);

void sim_trace_release(struct sim_trace *trace);

/* The process's own number of a rank's communicator; 0 none. */
uint32_t sim_trace_comm_id(const struct sim_job *job, int rank, int role);

#endif
