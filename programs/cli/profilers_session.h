/*
 * `ringside bench profilers` at work: which jobs, in which order, within which time, and what each of them
 * left behind. Jobs of all variants take turns, so that whatever changes on the machine changes for all.
 *
 *	for each run
 *		for each mode (and the training)
 *			for each variant, beginning with another one in each run
 *				one job
 */
#ifndef PROFILERS_SESSION_H
#define PROFILERS_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/bench_result.h"
#include "bench/profilers.h"
#include "common/attributes.h"
#include "programs/bench/bench_mps.h"
#include "programs/bench/bench_plan.h"
#include "programs/cli/bench_command.h"
#include "programs/cli/profilers_variant.h"
#include "programs/cli/profilers_work.h"

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

/* One job: its variant, number and directories. */
struct session_job {
	const struct profilers_variant *variant;
	uint32_t run;
	unsigned int kind; /* enum bench_mode, or SESSION_TRAINING */
	char name[128];	   /* "run 2, graph, inspector": for people */
	char directory[WORK_PATH_BYTES + 200];
	struct profilers_place place;
	struct profilers_variables variables;
	int limit_s;
	char problem
		[PROFILERS_TEXT_BYTES]; /* why it failed, or what is wrong with its output; "" */
};

/* All jobs, fed into session->profilers. 0, or the exit code after it was told: ^C, no memory, no CUDA. */
int profilers_session_run(struct profilers_session *session);

/* ---- between the files that do it ------------------------------------------------------------ */

/* Directories and variables. 0, or CLI_EXIT_TROUBLE. */
int session_job_open(struct profilers_session *session, struct session_job *job);
/* Run `body` on all ranks. 0: it ended well; 1: it failed, and why is in job->problem; else 128 + n: signal n ended
 * the command. */
int session_job_launch(struct profilers_session *session, struct session_job *job,
		       bench_rank_fn body, void *context);
/* The first thing a rank does: the command itself holds signals back between jobs. */
void session_unblock_signals(void);
/* Take its files away, but for those that are kept. */
void session_job_close(struct profilers_session *session, struct session_job *job);

/* Measure, read, hand over. 0, or the exit code. */
int session_measure(struct profilers_session *session, struct session_job *job);
int session_train(struct profilers_session *session, struct session_job *job);
/* Can training run here? False: told, once. */
bool session_train_is_possible(struct profilers_session *session);

/* What the plugin left behind: for a trial or a training. */
struct session_output {
	uint8_t output; /* enum profilers_output */
	struct recording *recording;
	struct ncclsee_profile *profiles;
	size_t profile_count;
};
/* 0, or CLI_EXIT_TROUBLE (no memory). Release in every case. */
int session_output_read(struct session_output *output, struct session_job *job);
void session_output_release(struct session_output *output);

#endif
