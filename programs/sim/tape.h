/*
 * Tapes: callbacks that a real NCCL (or the host) made, as text, one line each; docs/TAPES.md has the
 * format. Read here, and played into any plugin.
 */
#ifndef TAPE_H
#define TAPE_H

#include "programs/sim/host.h"

enum tape_what {
	TAPE_INIT = 0,
	TAPE_START = 1,
	TAPE_STATE = 2,
	TAPE_STOP = 3,
	TAPE_FINI = 4,
};

/* One callback. Words are parts of the tape's own copy of the text; a word that the line does not
 * have is NULL, a number 0. */
struct tape_line {
	uint64_t time_ns; /* CLOCK_REALTIME when NCCL called */
	uint32_t thread;  /* counted from 0 in the order of appearance */
	uint8_t what;	  /* enum tape_what */
	uint8_t version;  /* of the interface */
	bool has_args;	  /* STATE: the argument was not NULL */
	uint64_t handle;
	uint64_t context;
	uint64_t parent;
	uint64_t type;
	int64_t rank;
	int64_t state;
	uint64_t arg;
	const char *name; /* of the communicator (INIT), of a phase */
	const char *function;
	const char *datatype;
	const char *algorithm;
	const char *protocol;
	const char *variant;
	const char *sync;
	uint64_t hash; /* of the communicator */
	int64_t nnodes, nranks;
	uint64_t sequence, count, root, channels, warps, group;
	uint64_t send_buffer, recv_buffer, stream, tag, traffic;
	int64_t peer, channel, pid, steps, chunk, is_send, step;
	int64_t is_captured, depth, is_symmetric, is_collnet, is_nvls, redop;
	uint64_t gpu_ns, net_id;
	int64_t is_complete, ops, bytes, intra, batch, batches, ce_sequence, phase;
};

struct tape {
	struct tape_line *lines;
	size_t count;
	uint32_t threads;
	char *text;
};

/* Which line is wrong, and what about it. */
struct tape_error {
	size_t line; /* from 1; 0: the file as a whole */
	char text[160];
};

/*
 * All lines, or none and *error filled in: ERR_FORMAT, ERR_NO_SPACE, ERR_SYSTEM. A last line without
 * its end (the process was killed) is left out. `version` is that of tapes that do not name theirs.
 */
enum { TAPE_VERSION_UNNAMED = 5 };
enum status tape_parse(struct tape *tape, const char *text, size_t length, int version,
		       struct tape_error *error);
enum status tape_read(struct tape *tape, const char *path, int version, struct tape_error *error);
void tape_release(struct tape *tape);

struct tape_config {
	const char *plugin;		  /* value of NCCL_PROFILER_PLUGIN ... */
	const struct host_linked *linked; /* ... or a plugin that is linked in */
	int release;			  /* 0: the one whose version the tape has */
	bool is_timed;			  /* with the pauses of the recording; else at once */
	bool keeps_stamps; /* GPU stamps as recorded; else moved to now by one constant */
	abi_log_fn log;
};

struct tape_counts {
	uint64_t inits, starts, states, stops, finalizes; /* calls made */
	uint64_t unasked; /* lines left out: the plugin's mask did not ask for that event */
	int version;	  /* that was found in the plugin; 0: nothing was played */
};

/*
 * Play it: one thread per recorded thread, lines in the recorded order. Handles and contexts are
 * those that the plugin gives; ones that the tape never started (another process's) are passed as
 * they are. ERR_UNKNOWN: the plugin could not be loaded, *error says why; ERR_NO_SPACE, ERR_SYSTEM.
 */
enum status tape_play(const struct tape *tape, const struct tape_config *config,
		      struct tape_counts *counts, struct tape_error *error);

#endif
