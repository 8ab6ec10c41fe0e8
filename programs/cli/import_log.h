/* One log of another tool into trace files, one per process. */
#ifndef IMPORT_LOG_H
#define IMPORT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "programs/cli/cli_output.h"
#include "programs/cli/cli_progress.h"

/* Over all logs. */
struct import_totals {
	size_t logs;
	size_t files; /* written */
	uint64_t bytes;
	uint64_t operations;
	uint64_t details;
	uint64_t comms;
	uint64_t dropped;      /* the recorder says so */
	uint64_t not_recorded; /* NCCL counted them, the log does not have them */
	uint64_t dropped_details;
	uint64_t skipped_details; /* on a clock of their own */
	uint64_t untimed;
	uint64_t coarse;
	uint64_t damaged;
	uint64_t ignored;
	bool is_inspector; /* among the logs */
	bool is_comma;
	bool is_without_algorithms; /* among the operations */
};

struct import {
	struct cli_tree *tree;
	struct cli_progress *progress;
	struct import_totals totals;
	uint64_t
		*names; /* hashes of the names given to files so far: a table, 0 where it is free */
	size_t name_count;
	size_t name_room;
};

/* Damage is told on stderr, the first lines of it, and counted. 0, or CLI_EXIT_TROUBLE after it was
 * told why nothing can be written or read. */
int import_log(struct import *import, const char *path);

/* After the last log. */
void import_release(struct import *import);

#endif
