/*
 * Compares profilers like the paper "Where Did My NCCL Calls Go?": the share of calls that each one recorded, the
 * accuracy of its times, its overhead. docs/BENCH.md explains the figures.
 *
 *	profilers_new()                                  plugin 0 is "no plugin"
 *	profilers_plugin(work, label, path, kind)        1, 2, ...
 *	profilers_trial(work, &trial)                    each job: one plugin, one mode, one run
 *	profilers_training(work, &training)              each training job
 *	profilers_finish(work, &comparison)
 *	profilers_free(work)
 *	... views take the comparison ...
 *	profilers_comparison_release(&comparison)
 *
 * Arguments are not kept: release runs and recordings after each call.
 */
#ifndef PROFILERS_H
#define PROFILERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/bench_command.h"
#include "bench/bench_launch.h"
#include "bench/bench_plan.h"
#include "bench/bench_result.h"
#include "bench/count_layout.h"
#include "common/attributes.h"
#include "common/op_layout.h"
#include "common/status.h"
#include "output/sink.h"
#include "output/table.h"

struct recording;
struct ncclsee_profile;
struct profilers; /* work in progress */

/* Which profiler wrote the output. */
enum profilers_kind {
	PROFILERS_NONE = 0,	/* no plugin: the reference */
	PROFILERS_RINGSIDE = 1, /* trace files, mode trace */
	PROFILERS_INSPECTOR = 2,
	PROFILERS_COMMA = 3,
	PROFILERS_NCCLSEE = 4, /* totals per function and size class, no single calls */
	PROFILERS_UNKNOWN = 5, /* output cannot be read: only its overhead is measured */
	PROFILERS_KINDS = 6,
};

const char *profilers_kind_name(unsigned int kind); /* "none", "ringside", ...; "?" */
unsigned int profilers_kind_find(const char *name); /* PROFILERS_KINDS: unknown */

/* Outcome of a job and of its plugin's output. */
enum profilers_output {
	PROFILERS_READ = 1,	  /* recording or ncclsee is set */
	PROFILERS_SILENT = 2,	  /* the plugin left no file: 0% */
	PROFILERS_UNREADABLE = 3, /* its files cannot be read: not judged, never 0% */
	PROFILERS_FAILED = 4,	  /* the job did not finish: nothing of it is counted */
	PROFILERS_OUTPUTS = 5,
};

enum {
	PROFILERS_PLUGINS_MAX = 16,
	PROFILERS_RUNS_MAX = 64,
	PROFILERS_ROWS_MAX = 1 << 20,
	PROFILERS_EPOCHS_MAX = 32,
	PROFILERS_NOTES_MAX = 64,
	PROFILERS_TEXT_BYTES = 256,
	PROFILERS_COMMAND_BYTES = 2048,
};

struct profilers_plugin {
	char label[64];
	char path[PROFILERS_TEXT_BYTES]; /* "" for "no plugin" */
	uint8_t kind;			 /* enum profilers_kind */
};

/*
 * One job. All its cells have one mode: a profiler's output does not distinguish modes, so each mode is a separate
 * job. Calls captured into a graph do not run and are not counted; replays are.
 */
struct profilers_trial {
	size_t plugin;	/* 0: none */
	uint32_t run;	/* from 0; run i of a plugin and run i without are adjacent in time */
	uint8_t mode;	/* enum bench_mode; used if the job failed and there is no bench_run */
	uint8_t output; /* enum profilers_output; only FAILED matters for plugin 0 */
	const struct bench_run *bench;		/* NULL: the job failed */
	const struct recording *recording;	/* finished; NULL: none */
	const struct ncclsee_profile *profiles; /* of kind ncclsee, one per file */
	size_t profile_count;
	const char *problem; /* one line, if something went wrong; can be NULL */
};

/*
 * One training job: DenseNet-121 in PyTorch. The caller fills everything except what profilers_training_take()
 * does.
 */
struct profilers_training {
	size_t plugin;
	uint32_t run;
	uint8_t output; /* as above */
	int32_t ranks;
	uint32_t epochs;			 /* the first one is not compared: it warms up */
	uint64_t epoch_ns[PROFILERS_EPOCHS_MAX]; /* of the slowest rank, or the mean */
	uint64_t epoch_begin_ns[PROFILERS_EPOCHS_MAX]; /* wall time; 0 unknown */
	uint64_t issued[OP_FUNCTIONS]; /* counted by the preloaded counter, all ranks */
	bool is_counted;	       /* ... which was loaded */
	const char *problem;
	/* What the plugin recorded: from profilers_training_take(), or the caller. */
	uint64_t recorded[OP_FUNCTIONS];
	uint64_t untimed;     /* of recorded */
	uint64_t comm_ns;     /* total duration over all ranks, estimated if not all are timed */
	uint64_t comm_ops;    /* with a duration */
	bool is_comm_by_time; /* comm_ns covers the compared epochs; otherwise everything */
	bool has_comm;
};

struct profilers *profilers_new(void); /* NULL: out of memory */
void profilers_free(struct profilers *work);

/* The plugin's number, or 0: too many. `label` is truncated to its size. */
size_t profilers_plugin(struct profilers *work, const char *label, const char *path,
			enum profilers_kind kind);
/* Shown on the page: the command line; what was skipped and why; what readers must know. */
void profilers_command(struct profilers *work, const char *command);
void profilers_not_run(struct profilers *work, const char *format, ...) PRINTF_LIKE(2, 3);
void profilers_note(struct profilers *work, const char *format, ...) PRINTF_LIKE(2, 3);

/* Where the jobs run, from a run with at least one rank: for trainings without trials before them. */
void profilers_place(struct profilers *work, const struct bench_run *bench);

/*
 * ERR_RANGE: no such plugin or run, no output, or cells of several modes. An error while reading the recording:
 * nothing of this trial is counted, pass it again as unreadable. ERR_NO_SPACE: give up.
 */
enum status profilers_trial(struct profilers *work, const struct profilers_trial *trial);
/* The second one fills recorded, untimed, comm_* from a recording, the third from ncclsee's files. */
enum status profilers_training(struct profilers *work, const struct profilers_training *training);
enum status profilers_training_take(struct profilers_training *training,
				    const struct recording *recording);
void profilers_training_take_ncclsee(struct profilers_training *training,
				     const struct ncclsee_profile *profiles, size_t count);

/* ---- what comes out: the views know only this ------------------------------------------------- */

/* Bytes in rows: one size, or a size class (ncclsee) from bytes_from to below bytes_to. */
#define PROFILERS_BYTES_UNKNOWN UINT64_MAX /* the plugin did not record the size */
enum { PROFILERS_ALL = -1 };

struct profilers_counts {
	uint64_t issued;
	uint64_t recorded;
	uint64_t untimed; /* of recorded: without a time */
	uint64_t
		missing; /* total deficit, summed separately for each rank, function, size and run */
	uint64_t excess; /* total surplus, likewise: one does not compensate for the other */
};

/* The finest level; profilers_counts() adds them up. Totals over all runs whose output could be read. */
struct profilers_complete {
	uint8_t plugin;
	uint8_t mode;	  /* enum bench_mode */
	uint8_t function; /* enum op_function: Send and Recv apart */
	bool is_align;	  /* AllReduces of one element that aligned the ranks */
	int32_t rank;
	uint64_t bytes;	   /* or the lower end of a class; PROFILERS_BYTES_UNKNOWN */
	uint64_t bytes_to; /* 0: one size; otherwise the class ends below this, UINT64_MAX: open */
	struct profilers_counts counts;
};

/* Outcome of a plugin's jobs in a mode. */
struct profilers_jobs {
	uint8_t plugin;
	uint8_t mode;
	uint32_t read;
	uint32_t silent;
	uint32_t unreadable;
	uint32_t failed;
	bool tells_lost;		    /* the plugin counts its losses ... */
	uint64_t lost;			    /* ... and this is the number */
	char problem[PROFILERS_TEXT_BYTES]; /* of the last failure */
};

/* NAN: too few values, see bench_result.h. */
struct profilers_quantiles {
	double p05;
	double p25;
	double p50;
	double p75;
	double p95;
};

/* Reported time divided by measured time. Rows for each function, and with function 0 for all of them. */
struct profilers_accuracy {
	uint8_t plugin;
	uint8_t mode;
	uint8_t function;
	uint8_t source; /* of the plugin's time, as shown: op_shown_source() */
	bool is_mean_only; /* ncclsee: one value per run and rank: total reported over total measured */
	uint64_t bytes;
	uint64_t bytes_to; /* as above */
	uint64_t calls;	   /* measured calls of this size, all ranks and runs */
	uint64_t in_order; /* matched in order: as many records as calls */
	uint64_t by_time;  /* matched by time: some are missing */
	struct profilers_quantiles ratio;
};

/* 1: the interval includes 1, no significant difference. */
enum profilers_verdict {
	PROFILERS_NO_DIFFERENCE = 0,
	PROFILERS_SLOWER = 1,
	PROFILERS_FASTER = 2,
	PROFILERS_NOT_KNOWN = 3, /* too few runs for an interval */
};

/*
 * Time per call with the plugin divided by the time without. Function 0, bytes 0: all of them, the geometric mean.
 */
struct profilers_overhead {
	uint8_t plugin;
	uint8_t mode; /* 0: all modes */
	uint8_t function;
	uint8_t clock; /* enum bench_clock: BENCH_GPU, or BENCH_ISSUE: in the call, on the host */
	uint64_t bytes;
	uint32_t runs;	   /* pairs of runs */
	uint32_t cells;	   /* combined in this row */
	uint64_t calls;	   /* with the plugin */
	bool has_interval; /* otherwise low and high are 0 */
	struct bench_ratio ratio;
	struct profilers_quantiles with_ns; /* of single calls; all 0 in combined rows */
	struct profilers_quantiles without_ns;
};

enum profilers_verdict profilers_verdict(const struct profilers_overhead *row);

struct profilers_train {
	uint8_t plugin;
	uint32_t runs; /* that finished */
	uint32_t silent;
	uint32_t unreadable;
	uint32_t failed;
	uint32_t epochs; /* per run */
	int32_t ranks;
	bool is_counted; /* issued is known */
	bool is_read;	 /* recorded is known */
	bool has_comm;
	bool is_comm_by_time;
	bool has_interval;
	uint64_t issued[OP_FUNCTIONS]; /* of all runs and ranks */
	uint64_t recorded[OP_FUNCTIONS];
	uint64_t untimed;
	double epoch_ns;   /* median over runs and epochs, without the first of each run */
	double comm_ns;	   /* per rank and epoch, as reported by the plugin */
	double comm_share; /* share of the epochs' time; can exceed 1 if communicators overlap */
	struct bench_ratio slowdown; /* of the epoch: with divided by without */
	char problem[PROFILERS_TEXT_BYTES];
};

struct profilers_comparison {
	struct profilers_plugin plugins[PROFILERS_PLUGINS_MAX]; /* the first: no plugin */
	size_t plugin_count;
	char command[PROFILERS_COMMAND_BYTES];
	/* From the jobs; identical in all of them, otherwise there is a note. */
	char host[64];
	char gpu[64];
	int32_t nccl_version;
	int32_t cuda_version;
	int32_t nranks;
	int32_t nodes;
	bool is_gpu_shared;
	bool is_mps;
	uint64_t started_ns; /* wall time of the first job */
	uint32_t runs;	     /* the maximum over plugins and modes */
	uint64_t calls;	     /* measured calls in all jobs, per rank */
	char notes[PROFILERS_NOTES_MAX][PROFILERS_TEXT_BYTES];
	size_t note_count;
	char not_run[PROFILERS_NOTES_MAX][PROFILERS_TEXT_BYTES];
	size_t not_run_count;
	size_t notes_lost; /* of both, that did not fit */
	struct profilers_jobs *jobs;
	size_t job_count;
	struct profilers_complete *complete; /* by plugin, mode, rank, function, bytes */
	size_t complete_count;
	struct profilers_accuracy *accuracy; /* by plugin, mode, function, bytes, source */
	size_t accuracy_count;
	struct profilers_overhead *overhead; /* by clock, plugin, mode, function, bytes */
	size_t overhead_count;
	struct profilers_train *training; /* by plugin; empty: not run */
	size_t training_count;
};

/* ERR_NO_SPACE. Release in every case. */
enum status profilers_finish(struct profilers *work, struct profilers_comparison *comparison);
void profilers_comparison_init(struct profilers_comparison *comparison);
void profilers_comparison_release(struct profilers_comparison *comparison);

/* Selects rows to add up; PROFILERS_ALL matches any. */
struct profilers_which {
	int plugin;
	int mode;
	int function;
	int rank;
	bool is_any_size;
	uint64_t bytes;
	uint64_t bytes_to;
};

#define PROFILERS_WHICH_ALL                                                                \
	{                                                                                  \
		.plugin = PROFILERS_ALL, .mode = PROFILERS_ALL, .function = PROFILERS_ALL, \
		.rank = PROFILERS_ALL, .is_any_size = true                                 \
	}

struct profilers_counts profilers_counts(const struct profilers_comparison *comparison,
					 const struct profilers_which *which);
void profilers_counts_add(struct profilers_counts *to, const struct profilers_counts *counts);
/* Share of issued calls that were recorded, 0 to 1: missing records count, surplus ones do not. 0 issued: 1. */
double profilers_share(const struct profilers_counts *counts);
/* NULL: none. */
const struct profilers_jobs *profilers_jobs_of(const struct profilers_comparison *comparison,
					       unsigned int plugin, unsigned int mode);
/*
 * Whether the completeness of this plugin in this mode can be judged: its output was readable, or there was none.
 */
bool profilers_is_judged(const struct profilers_comparison *comparison, unsigned int plugin,
			 unsigned int mode);

/*
 * Reads a comparison from the JSON document of profilers_json_write(), to make pages and tables without a GPU. The
 * input is untrusted.
 */

/*
 * On success the caller owns *comparison; see profilers_comparison_release(). Otherwise it is empty and *problem
 * (can be NULL) says where and why. ERR_UNKNOWN: another format; ERR_VERSION: a newer version; ERR_FORMAT: damaged;
 * ERR_NO_SPACE.
 */
enum status profilers_read(struct profilers_comparison *comparison, const char *text, size_t length,
			   struct bench_read_problem *problem);

/*
 * A comparison as a page: tables and four figures (completeness, accuracy, overhead, training) as SVG.
 * Self-contained: no scripts or external resources, light and dark, with command, host and versions.
 */

/* Deterministic. Names are escaped. ERR_NO_SPACE, or the sink's status. */
enum status profilers_html_write(struct sink *sink, const struct profilers_comparison *comparison);

/* A comparison as JSON: everything the other outputs show. profilers_read() reads it back. */

/* One object and a newline. The sink's status. */
enum status profilers_json_write(struct sink *sink, const struct profilers_comparison *comparison);

/* A comparison as text tables: completeness, accuracy, overhead, training. */

/* `width` 0: unlimited. ERR_NO_SPACE, or the sink's status. */
enum status profilers_text_write(struct sink *sink, const struct profilers_comparison *comparison,
				 unsigned int width);

/* Shared by the files that compare profilers. */

/* A growing list: `items` of `size` bytes each. */
struct profilers_list {
	void *items;
	size_t size;
	size_t count;
};

/* Appends one zeroed item; NULL: out of memory, or more than `most`. */
void *profilers_list_add(struct profilers_list *list, size_t most);
void profilers_list_release(struct profilers_list *list);

/* Times of the calls of one job: of one function, size and clock. */
struct profilers_sample {
	uint8_t plugin;
	uint8_t mode;
	uint8_t function;
	uint8_t clock;
	uint32_t run;
	uint64_t bytes;
	double *values;
	size_t count;
};

/* Ratios of reported to measured times. Source OP_TIME_SHOWN_SOURCES: only the number of measured calls, no values. */
struct profilers_ratios {
	uint8_t plugin;
	uint8_t mode;
	uint8_t function;
	uint8_t source;
	bool is_mean_only;
	uint64_t bytes;
	uint64_t bytes_to;
	uint64_t calls;
	uint64_t in_order;
	uint64_t by_time;
	double *values;
	size_t count;
};

struct profilers {
	struct profilers_comparison out;
	struct profilers_list complete;	 /* struct profilers_complete, unmerged */
	struct profilers_list samples;	 /* struct profilers_sample */
	struct profilers_list ratios;	 /* struct profilers_ratios */
	struct profilers_list jobs;	 /* struct profilers_jobs */
	struct profilers_list trainings; /* struct profilers_training, problem not kept */
	char problems[PROFILERS_PLUGINS_MAX]
		     [PROFILERS_TEXT_BYTES]; /* the last one of each plugin's trainings */
};

/* Where the ratios of a function and size are collected; NULL: out of memory. */
struct profilers_ratios *profilers_ratios_of(struct profilers *work,
					     const struct profilers_ratios *like);
bool profilers_ratios_add(struct profilers_ratios *ratios, double value);

enum status profilers_take_times(struct profilers *work, const struct profilers_trial *trial);

/* Figures 1 to 4 of a comparison, as SVG and text: one chart per mode. */

enum profilers_figure {
	PROFILERS_FIGURE_COMPLETE = 1,
	PROFILERS_FIGURE_ACCURACY = 2,
	PROFILERS_FIGURE_OVERHEAD = 3,
	PROFILERS_FIGURE_TRAINING = 4,
	PROFILERS_FIGURES = 5,
};

const char *profilers_figure_title(enum profilers_figure which);
/* The caption. */
const char *profilers_figure_words(enum profilers_figure which);
/* Whether there is anything to draw. */
bool profilers_figure_is_there(const struct profilers_comparison *comparison,
			       enum profilers_figure which);
/* The same charts as text, each after an empty line. */
enum status profilers_figure_text(struct sink *sink, const struct profilers_comparison *comparison,
				  enum profilers_figure which, unsigned int width);

/* The result for a plugin in one sentence, shown at the top of the text and the page. */

enum { PROFILERS_SHORT_SENTENCE = 768 };

/*
 * "ringside: calls recorded: 100% (blocking), 100% (graph); GPU time per call 1.005x (0.981-1.030: no significant
 * difference), graph 1.030x (1.002-1.058: slower); host time in the call ...". Unknown parts are omitted; "" if all
 * are.
 */
const char *profilers_short(char to[static PROFILERS_SHORT_SENTENCE],
			    const struct profilers_comparison *comparison, size_t plugin);

/* The tables of a comparison as grids, for text and page. */

enum profilers_table {
	PROFILERS_TABLE_COMPLETE = 0,	 /* plugin x mode */
	PROFILERS_TABLE_BY_FUNCTION = 1, /* plugin and function, one column per mode */
	PROFILERS_TABLE_BY_SIZE = 2,
	PROFILERS_TABLE_BY_RANK = 3,
	PROFILERS_TABLE_ACCURACY = 4, /* plugin, mode, size */
	PROFILERS_TABLE_OVERHEAD = 5, /* plugin, mode */
	PROFILERS_TABLE_OVERHEAD_BY_SIZE = 6,
	PROFILERS_TABLE_TRAINING = 7,
	PROFILERS_TABLE_ACCURACY_CELLS = 8, /* details: each function and size */
	PROFILERS_TABLE_OVERHEAD_CELLS = 9,
	PROFILERS_TABLES = 10,
};

/* "Completeness: share of issued calls that were recorded". */
const char *profilers_table_title(enum profilers_table which);
/* Explains the columns in a sentence or two. */
const char *profilers_table_words(enum profilers_table which);

/* Adds columns and rows to an initialized grid; no rows: there is nothing to show. */
void profilers_table_fill(struct report_grid *grid, const struct profilers_comparison *comparison,
			  enum profilers_table which);

enum { PROFILERS_SHORT_TEXT = 64 };
/* "1 KiB"; "1 KiB to 8 KiB"; "from 32 MiB"; "unknown size". */
const char *profilers_size_text(char to[static PROFILERS_SHORT_TEXT], uint64_t bytes,
				uint64_t bytes_to);
/* "NVIDIA H200 on node-1, 4 ranks sharing one GPU (MPS), NCCL 2.28.9, CUDA 13.0". */
enum { PROFILERS_PLACE_TEXT = 320 };
const char *profilers_place_text(char to[static PROFILERS_PLACE_TEXT],
				 const struct profilers_comparison *comparison);
/* "5 runs alternating, 15,000 measured calls per rank". */
const char *profilers_amount_text(char to[static PROFILERS_PLACE_TEXT],
				  const struct profilers_comparison *comparison);

/*
 * One variant that `ringside bench profilers` compares: no plugin, or a plugin with its settings. Defines the
 * variables that make it record as much as it can, and where its files are.
 */

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
	struct bench_cleaner cleaner;
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

/* Reads the counts that libringside-count.so wrote for one process. */

/*
 * Checks the bytes of a .count file and copies it; strings are terminated. ERR_FORMAT: not such a file, or another
 * version; ERR_TRUNCATED: too short.
 */
enum status count_read(struct count_file *file, const void *bytes, size_t length);

/* enum op_function of an enum count_function; OP_FUNCTION_UNKNOWN for groups. */
unsigned int count_op_function(unsigned int function);

struct count_sum {
	struct count_entry entries[COUNT_FUNCTIONS];
	size_t processes;
	size_t unreadable; /* files in another format */
};

/* Adds up all .count files of a directory. ERR_SYSTEM: cannot list it. */
enum status count_sum_directory(struct count_sum *sum, const char *directory);

/* Reads what src/bench/densenet.py wrote about one rank's training. */

enum { TRAIN_EPOCHS_MAX = 32 };

struct train_epoch {
	uint64_t begin_ns; /* wall time */
	uint64_t ns;
};

struct train_result {
	int32_t rank;
	int32_t ranks;
	uint64_t parameters;
	uint64_t steps; /* per epoch */
	char torch[32];
	char nccl[32]; /* "2.28.9" */
	char host[64];
	char gpu[64];
	struct train_epoch epochs[TRAIN_EPOCHS_MAX];
	uint32_t epoch_count;
};

/* ERR_FORMAT: not JSON, a missing or wrong key, no epoch; ERR_RANGE: too many epochs. */
enum status train_read(struct train_result *result, const char *text, size_t length);

/* src/bench/densenet.py, embedded in the tool; written where a training job runs. */

/* Its bytes, static. */
const char *densenet_script(size_t *length);

#endif
