/*
 * Profilers compared, as the paper "Where Did My NCCL Calls Go?" did: how many of the calls that were
 * made each one recorded, how true its times are, what it costs. docs/BENCH.md explains the figures.
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
 * Nothing that is handed in is kept: release runs and recordings after each call.
 */
#ifndef PROFILERS_H
#define PROFILERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/bench_result.h"
#include "common/attributes.h"
#include "common/op_layout.h"
#include "common/status.h"
#include "output/sink.h"

struct recording;
struct ncclsee_profile;
struct profilers; /* work in progress */

/* Whose output it is. */
enum profilers_kind {
	PROFILERS_NONE = 0,	/* no plugin: what the others are held against */
	PROFILERS_RINGSIDE = 1, /* trace files, mode trace */
	PROFILERS_INSPECTOR = 2,
	PROFILERS_COMMA = 3,
	PROFILERS_NCCLSEE = 4, /* sums per function and size class: no single calls */
	PROFILERS_UNKNOWN = 5, /* output in a format that nobody here reads: its cost alone */
	PROFILERS_KINDS = 6,
};

const char *profilers_kind_name(unsigned int kind); /* "none", "ringside", ...; "?" */
unsigned int profilers_kind_find(const char *name); /* PROFILERS_KINDS: no such */

/* What became of a job and of what its plugin left behind. */
enum profilers_output {
	PROFILERS_READ = 1,	  /* recording or ncclsee is there */
	PROFILERS_SILENT = 2,	  /* the plugin left no file: 0 % */
	PROFILERS_UNREADABLE = 3, /* it left files that cannot be read: not judged, never 0 % */
	PROFILERS_FAILED = 4,	  /* the job did not come to its end: nothing of it is counted */
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
 * One job. All its cells are of one mode: what a profiler wrote does not tell modes apart, so each mode is a
 * job of its own. Calls that were captured into a graph do not run and are not counted; replays are.
 */
struct profilers_trial {
	size_t plugin;	/* 0: without */
	uint32_t run;	/* from 0; run i of a plugin and run i without are neighbours in time */
	uint8_t mode;	/* enum bench_mode; where the job failed and there is no bench_run */
	uint8_t output; /* enum profilers_output; ignored for plugin 0 but for FAILED */
	const struct bench_run *bench;		/* NULL: the job failed */
	const struct recording *recording;	/* finished; NULL: none */
	const struct ncclsee_profile *profiles; /* of kind ncclsee, one per file */
	size_t profile_count;
	const char *problem; /* one line, where something went wrong; NULL none */
};

/* One training job: DenseNet-121 in PyTorch. The caller fills all but what profilers_training_take() does. */
struct profilers_training {
	size_t plugin;
	uint32_t run;
	uint8_t output; /* as above */
	int32_t ranks;
	uint32_t epochs;			       /* the first is not compared: it warms up */
	uint64_t epoch_ns[PROFILERS_EPOCHS_MAX];       /* of the slowest rank, or the mean */
	uint64_t epoch_begin_ns[PROFILERS_EPOCHS_MAX]; /* wall time; 0 unknown */
	uint64_t issued[OP_FUNCTIONS]; /* counted by the preload counter, all ranks */
	bool is_counted;	       /* ... which was there */
	const char *problem;
	/* What the plugin recorded: profilers_training_take(), or the caller. */
	uint64_t recorded[OP_FUNCTIONS];
	uint64_t untimed;  /* of recorded */
	uint64_t comm_ns;  /* sum of durations over all ranks, estimated where not all are timed */
	uint64_t comm_ops; /* with a duration */
	bool is_comm_by_time; /* comm_ns is of the epochs that are compared; else of all there is */
	bool has_comm;
};

struct profilers *profilers_new(void); /* NULL: no memory */
void profilers_free(struct profilers *work);

/* The plugin's number, or 0: too many. `label` is cut to its room. */
size_t profilers_plugin(struct profilers *work, const char *label, const char *path,
			enum profilers_kind kind);
/* What stands on the page: the command line; what was left out and why; what a reader must know. */
void profilers_command(struct profilers *work, const char *command);
void profilers_not_run(struct profilers *work, const char *format, ...) PRINTF_LIKE(2, 3);
void profilers_note(struct profilers *work, const char *format, ...) PRINTF_LIKE(2, 3);

/* Where it runs, from a run with at least one rank: for trainings, when there are no trials before them. */
void profilers_place(struct profilers *work, const struct bench_run *bench);

/* ERR_RANGE: no such plugin or run, no output, or cells of several modes. What walking the recording said: then
 * nothing of this trial is counted, hand it in again as unreadable. ERR_NO_SPACE: give up. */
enum status profilers_trial(struct profilers *work, const struct profilers_trial *trial);
/* The second fills recorded, untimed, comm_* from a recording, the third from ncclsee's files. */
enum status profilers_training(struct profilers *work, const struct profilers_training *training);
enum status profilers_training_take(struct profilers_training *training,
				    const struct recording *recording);
void profilers_training_take_ncclsee(struct profilers_training *training,
				     const struct ncclsee_profile *profiles, size_t count);

/* ---- what comes out: the views know only this ------------------------------------------------- */

/* Bytes in rows: one size, or a class of sizes (ncclsee) from bytes_from to below bytes_to. */
#define PROFILERS_BYTES_UNKNOWN UINT64_MAX /* the plugin did not tell the size */
enum { PROFILERS_ALL = -1 };

struct profilers_counts {
	uint64_t issued;
	uint64_t recorded;
	uint64_t untimed; /* of recorded: no time */
	uint64_t
		missing; /* sum of what lacks, rank by rank, function by function, size by size, run by run */
	uint64_t excess; /* sum of what is too many, likewise: one does not make up for the other */
};

/* The finest grain; profilers_counts() sums. Sums are over all runs whose output could be read. */
struct profilers_complete {
	uint8_t plugin;
	uint8_t mode;	  /* enum bench_mode */
	uint8_t function; /* enum op_function: Send and Recv apart */
	bool is_align;	  /* AllReduces of one element that kept the ranks together */
	int32_t rank;
	uint64_t bytes;	   /* or the lower end of a class; PROFILERS_BYTES_UNKNOWN */
	uint64_t bytes_to; /* 0: one size; else the class ends below this, UINT64_MAX: open */
	struct profilers_counts counts;
};

/* What became of the jobs of a plugin in a mode. */
struct profilers_jobs {
	uint8_t plugin;
	uint8_t mode;
	uint32_t read;
	uint32_t silent;
	uint32_t unreadable;
	uint32_t failed;
	bool tells_lost;		    /* the plugin itself counts what it lost ... */
	uint64_t lost;			    /* ... and this is what it says */
	char problem[PROFILERS_TEXT_BYTES]; /* of the last that went wrong */
};

/* NAN: too few values for it, see bench_result.h. */
struct profilers_quantiles {
	double p05;
	double p25;
	double p50;
	double p75;
	double p95;
};

/* Reported time over measured time. Rows for each function, and with function 0 for all of them. */
struct profilers_accuracy {
	uint8_t plugin;
	uint8_t mode;
	uint8_t function;
	uint8_t source; /* enum op_time_source: where the plugin's time comes from */
	bool is_mean_only; /* ncclsee: one value per run and rank: sum of reported over sum of measured */
	uint64_t bytes;
	uint64_t bytes_to; /* as above */
	uint64_t calls;	   /* measured calls of such size, all ranks and runs */
	uint64_t in_order; /* joined one by one: as many records as calls */
	uint64_t by_time;  /* joined by their time: some are missing */
	struct profilers_quantiles ratio;
};

/* 1: the interval includes 1, no difference is shown. */
enum profilers_verdict {
	PROFILERS_NO_DIFFERENCE = 0,
	PROFILERS_SLOWER = 1,
	PROFILERS_FASTER = 2,
	PROFILERS_NOT_KNOWN = 3, /* too few runs for an interval */
};

/* Time per call with the plugin over time without. Function 0, bytes 0: all of them, the geometric mean. */
struct profilers_overhead {
	uint8_t plugin;
	uint8_t mode; /* 0: all modes */
	uint8_t function;
	uint8_t clock; /* enum bench_clock: BENCH_GPU, or BENCH_ISSUE: in the call, on the host */
	uint64_t bytes;
	uint32_t runs;	   /* pairs of runs */
	uint32_t cells;	   /* summed up in this row */
	uint64_t calls;	   /* with the plugin */
	bool has_interval; /* else low and high are 0 */
	struct bench_ratio ratio;
	struct profilers_quantiles with_ns; /* of single calls; all 0 in sums */
	struct profilers_quantiles without_ns;
};

enum profilers_verdict profilers_verdict(const struct profilers_overhead *row);

struct profilers_train {
	uint8_t plugin;
	uint32_t runs; /* that ended */
	uint32_t silent;
	uint32_t unreadable;
	uint32_t failed;
	uint32_t epochs; /* of each run */
	int32_t ranks;
	bool is_counted; /* issued is known */
	bool is_read;	 /* recorded is known */
	bool has_comm;
	bool is_comm_by_time;
	bool has_interval;
	uint64_t issued[OP_FUNCTIONS]; /* of all runs, all ranks */
	uint64_t recorded[OP_FUNCTIONS];
	uint64_t untimed;
	double epoch_ns;   /* median over runs and epochs, the first of each run left out */
	double comm_ns;	   /* of one rank in one epoch, as the plugin reports it */
	double comm_share; /* of the epochs' time; may pass 1 where communicators overlap */
	struct bench_ratio slowdown; /* of the epoch, with over without */
	char problem[PROFILERS_TEXT_BYTES];
};

struct profilers_comparison {
	struct profilers_plugin plugins[PROFILERS_PLUGINS_MAX]; /* the first: no plugin */
	size_t plugin_count;
	char command[PROFILERS_COMMAND_BYTES];
	/* From the jobs; all the same in all of them, or a note says so. */
	char host[64];
	char gpu[64];
	int32_t nccl_version;
	int32_t cuda_version;
	int32_t nranks;
	int32_t nodes;
	bool is_gpu_shared;
	bool is_mps;
	uint64_t started_ns; /* wall time of the first job */
	uint32_t runs;	     /* the most of any plugin and mode */
	uint64_t calls;	     /* measured calls in all jobs, of one rank each */
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
	struct profilers_train *training; /* by plugin; none: it was not run */
	size_t training_count;
};

/* ERR_NO_SPACE. Release in every case. */
enum status profilers_finish(struct profilers *work, struct profilers_comparison *comparison);
void profilers_comparison_init(struct profilers_comparison *comparison);
void profilers_comparison_release(struct profilers_comparison *comparison);

/* Rows to sum up; PROFILERS_ALL takes any. */
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
/* Recorded of issued, 0 to 1: what is missing counts, what is too many does not. 0 issued: 1. */
double profilers_share(const struct profilers_counts *counts);
/* NULL: none. */
const struct profilers_jobs *profilers_jobs_of(const struct profilers_comparison *comparison,
					       unsigned int plugin, unsigned int mode);
/* Can it be said how complete this plugin was in this mode: did it leave something readable, or nothing? */
bool profilers_is_judged(const struct profilers_comparison *comparison, unsigned int plugin,
			 unsigned int mode);

/*
 * A comparison, made again from the JSON document that profilers_json_write() wrote: pages and tables can be
 * made again without a GPU. Every byte is distrusted.
 */

/*
 * On success the caller owns *comparison; see profilers_comparison_release(). Else it is empty and *problem (may be
 * NULL) says where and why. ERR_UNKNOWN: no document of this format; ERR_VERSION: of a newer version;
 * ERR_FORMAT: damaged; ERR_NO_SPACE.
 */
enum status profilers_read(struct profilers_comparison *comparison, const char *text, size_t length,
			   struct bench_read_problem *problem);

/*
 * Profilers compared, as one page: its tables and four figures (completeness, accuracy,
 * overhead, training) as SVG. It stands alone: no scripts, nothing fetched, light and dark, and the command,
 * machine and versions on it.
 */

/* The same bytes for the same comparison. Names stay text. ERR_NO_SPACE, or the sink's status. */
enum status profilers_html_write(struct sink *sink, const struct profilers_comparison *comparison);

/* Profilers compared, as JSON: all that the other views show. profilers_read() reads it back. */

/* One object and a newline. The sink's status. */
enum status profilers_json_write(struct sink *sink, const struct profilers_comparison *comparison);

/* Profilers compared, as tables for people: completeness, accuracy, overhead, training. */

/* `width` 0: as wide as it takes. ERR_NO_SPACE, or the sink's status. */
enum status profilers_text_write(struct sink *sink, const struct profilers_comparison *comparison,
				 unsigned int width);

#endif
