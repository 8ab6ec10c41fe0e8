/*
 * One variant that `ringside bench profilers` compares: no plugin, or a plugin with its settings. Defines the
 * variables that make it record as much as it can, and where its files are.
 */
#ifndef PROFILERS_SESSION_INTERNAL_H
#define PROFILERS_SESSION_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/bench_command.h"
#include "bench/bench_launch.h"
#include "bench/bench_plan.h"
#include "bench/bench_result.h"
#include "bench/profilers.h"

enum { VARIANT_VARIABLES = 256, VARIANT_PATH_BYTES = 4096, VARIANT_TEXT_BYTES = 32 << 10 };

struct profilers_variant {
	char label[64];
	char path[VARIANT_PATH_BYTES]; /* absolute; "": no plugin */
	enum profilers_kind kind;
	const char *setting; /* static: "trace"; "best", "readme", "default"; "": only one */
	size_t number;	     /* of profilers_plugin(), 0: no plugin */
};

/* Where a job's plugin can leave files. */
struct profilers_place {
	char output[VARIANT_PATH_BYTES]; /* the plugin's output; also the job's working directory */
	char regions[VARIANT_PATH_BYTES]; /* in memory: shared regions of the Ringside plugin */
};

/* The variables of a job, with their storage. */
struct profilers_variables {
	struct bench_variable list[VARIANT_VARIABLES]; /* ends with a NULL name */
	size_t count;
	char text[VARIANT_TEXT_BYTES];
	size_t used;
	bool is_full; /* something did not fit */
};

/* Adds one; both are copied, value NULL unsets it. */
void profilers_variables_add(struct profilers_variables *variables, const char *name,
			     const char *value);

/* Unsets the profilers' variables of this process's environment, then sets those of this variant. */
void profilers_variant_variables(const struct profilers_variant *variant,
				 const struct profilers_place *place,
				 struct profilers_variables *variables);

/*
 * Where the jobs of a comparison leave their files: a directory on disk and one in memory (for regions, which must
 * not wait for a disk). Both are removed at the end, by a separate child process even after a crash. With --keep
 * the one on disk is the user's and stays, and what was in memory is copied into it.
 */

enum { WORK_PATH_BYTES = 3000, WORK_TAIL_LINES = 3 };

struct profilers_work {
	char disk[WORK_PATH_BYTES];
	char memory[WORK_PATH_BYTES];
	bool is_kept;
	struct bench_keeper keeper;
};

/* `keep`: NULL, or a directory that is empty or does not exist. 0, or CLI_EXIT_UNKNOWN after a message. */
int profilers_work_open(struct profilers_work *work, const char *keep);
void profilers_work_close(struct profilers_work *work);

/* The whole file, terminated; the caller frees it. NULL with errno; EFBIG: longer than `most`. */
char *profilers_read_file(const char *path, size_t most, size_t *length);

/*
 * The run of `ringside bench profilers`: which jobs, in which order, within which time, and their output. Jobs of
 * all variants alternate, so that changes on the host affect all of them.
 *
 *	for each run
 *		for each mode (and the training)
 *			for each variant, starting with a different one in each run
 *				one job
 */

/* The parsed command line. */
struct profilers_request {
	struct bench_how how;
	struct bench_plan plan; /* of all jobs; each runs one of the modes */
	struct profilers_variant variants[PROFILERS_PLUGINS_MAX]; /* the first: no plugin */
	size_t variant_count;
	uint32_t runs;
	double seconds; /* for all jobs; 0: no limit */
	int job_seconds; /* a job counts as hung after this time; 0: derived from those without a plugin */
	bool is_measured; /* false: only training */
	bool is_trained;
	uint32_t train_runs;
	uint32_t train_epochs;
	uint32_t train_steps;
	uint32_t train_batch;
	uint32_t train_image;
	const char *keep; /* NULL: keep nothing */
};

/* The training counts as a mode here. */
enum { SESSION_TRAINING = BENCH_MODES, SESSION_KINDS = BENCH_MODES + 1 };

/* How many calls the time per cell allowed, for one mode and size. */
struct session_cut {
	uint32_t least; /* 0: not reduced */
	uint32_t most;
};

struct profilers_session {
	const struct profilers_request *request;
	struct profilers *profilers;
	struct profilers_work work;
	struct bench_mps mps; /* for all jobs, until one fails */
	const struct profilers_variant
		*failed; /* the label of the previous job if it failed; otherwise NULL */
	int gpus;
	int ranks;
	uint64_t began_ns; /* CLOCK_MONOTONIC */
	uint32_t jobs;	   /* total, as far as known */
	uint32_t done;
	uint64_t last_ns[SESSION_KINDS]
			[PROFILERS_PLUGINS_MAX]; /* duration of the last one; 0: none */
	unsigned int hangs[SESSION_KINDS][PROFILERS_PLUGINS_MAX];
	struct session_cut cuts[BENCH_MODES][PLAN_SIZES];
	bool is_training_out; /* it cannot run here; already reported */
};

/*
 * Runs all jobs and adds them to session->profilers. 0, or the exit code after a message: Ctrl-C, out of memory, no
 * CUDA.
 */
int profilers_session_run(struct profilers_session *session);

#endif
