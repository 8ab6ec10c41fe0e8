/*
 * One of the things that `ringside bench profilers` compares: no plugin, or a plugin with its settings. Which
 * variables make it record all it can, and where its files then are.
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
	const char
		*setting; /* static: "trace"; "best", "readme", "default"; "": there is but one */
	size_t number;	  /* of profilers_plugin(), 0: no plugin */
};

/* Where one job's plugin may leave files. */
struct profilers_place {
	char output
		[VARIANT_PATH_BYTES]; /* what the plugin writes; also the job's working directory */
	char regions[VARIANT_PATH_BYTES]; /* in memory: what the Ringside plugin shares */
};

/* The variables of a job, with what they point to. */
struct profilers_variables {
	struct bench_variable list[VARIANT_VARIABLES]; /* ends with a NULL name */
	size_t count;
	char text[VARIANT_TEXT_BYTES];
	size_t used;
	bool is_full; /* something did not fit */
};

/* One more; both are copied, value NULL unsets it. */
void profilers_variables_add(struct profilers_variables *variables, const char *name,
			     const char *value);

/* Takes away what a profiler was told in this process's own environment, then sets what this one needs. */
void profilers_variant_variables(const struct profilers_variant *variant,
				 const struct profilers_place *place,
				 struct profilers_variables *variables);

/*
 * Where the jobs of a comparison leave their files: a directory on disk and one in memory (for regions, which must not
 * wait for a disk). Both are removed at the end, however that comes: a child that does nothing else waits for it. With
 * --keep the one on disk is the user's and stays, with what was in memory copied into it.
 */

enum { WORK_PATH_BYTES = 3000, WORK_TAIL_LINES = 3 };

struct profilers_work {
	char disk[WORK_PATH_BYTES];
	char memory[WORK_PATH_BYTES];
	bool is_kept;
	struct bench_keeper keeper;
};

/* `keep`: NULL, or a directory that is empty or not there yet. 0, or CLI_EXIT_UNKNOWN after the reason was told. */
int profilers_work_open(struct profilers_work *work, const char *keep);
void profilers_work_close(struct profilers_work *work);

/* The whole file, terminated; the caller frees it. NULL: errno says why; EFBIG: longer than `most`. */
char *profilers_read_file(const char *path, size_t most, size_t *length);

/*
 * `ringside bench profilers` at work: which jobs, in which order, within which time, and what each of them
 * left behind. Jobs of all variants take turns, so that whatever changes on the machine changes for all.
 *
 *	for each run
 *		for each mode (and the training)
 *			for each variant, beginning with another one in each run
 *				one job
 */

/* What the command line wants. */
struct profilers_request {
	struct bench_how how;
	struct bench_plan plan; /* of all jobs; each has one of the modes */
	struct profilers_variant variants[PROFILERS_PLUGINS_MAX]; /* the first: no plugin */
	size_t variant_count;
	uint32_t runs;
	double seconds;	  /* for all jobs; 0: as long as it takes */
	int job_seconds;  /* a job that takes longer hangs; 0: found from those without a plugin */
	bool is_measured; /* false: training alone */
	bool is_trained;
	uint32_t train_runs;
	uint32_t train_epochs;
	uint32_t train_steps;
	uint32_t train_batch;
	uint32_t train_image;
	const char *keep; /* NULL: nothing is kept */
};

/* The training counts as a mode of its own here. */
enum { SESSION_TRAINING = BENCH_MODES, SESSION_KINDS = BENCH_MODES + 1 };

/* How many calls the time for a cell allowed, of one mode and size. */
struct session_cut {
	uint32_t least; /* 0: nothing was cut */
	uint32_t most;
};

struct profilers_session {
	const struct profilers_request *request;
	struct profilers *profilers;
	struct profilers_work work;
	struct bench_mps mps; /* for all jobs, until one fails */
	const struct profilers_variant
		*failed; /* the job before failed, with this; NULL: it did not */
	int gpus;
	int ranks;
	uint64_t began_ns; /* CLOCK_MONOTONIC */
	uint32_t jobs;	   /* all, as far as they are known */
	uint32_t done;
	uint64_t last_ns[SESSION_KINDS]
			[PROFILERS_PLUGINS_MAX]; /* how long the last one took; 0: none did */
	unsigned int hangs[SESSION_KINDS][PROFILERS_PLUGINS_MAX];
	struct session_cut cuts[BENCH_MODES][PLAN_SIZES];
	bool is_training_out; /* it cannot run here: told */
};

/* All jobs, fed into session->profilers. 0, or the exit code after it was told: ^C, no memory, no CUDA. */
int profilers_session_run(struct profilers_session *session);

#endif
