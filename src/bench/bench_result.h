/*
 * What a benchmark measured: every call of every rank, and who they were. The one structure that the
 * benchmark fills and that tables, files, models and comparisons read. docs/BENCH.md describes it.
 *
 *	run
 *	 +-- ranks[]     where each rank was: machine, GPU
 *	 +-- cells[]     one line of the table: function, size, type, mode ...
 *	      +-- calls[]  rank * cell.calls + call
 */
#ifndef BENCH_RESULT_H
#define BENCH_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/attributes.h"
#include "common/status.h"
#include "common/text.h"
#include "output/json.h"
#include "output/sink.h"

/* How calls follow each other. */
enum bench_mode {
	BENCH_BLOCKING = 1,	/* each is waited for before the next is made */
	BENCH_BACK_TO_BACK = 2, /* all are made, then waited for */
	BENCH_GRAPH = 3,	/* captured into a CUDA graph, which is launched again and again */
	BENCH_LOOP = 4, /* as nccl-tests does: one time around all of them, no single ones */
	BENCH_MODES = 5,
};

enum bench_redop {
	BENCH_NO_REDOP = 0, /* the function does not reduce */
	BENCH_SUM = 1,
	BENCH_PROD = 2,
	BENCH_MAX = 3,
	BENCH_MIN = 4,
	BENCH_AVG = 5,
	BENCH_REDOPS = 6,
};

const char *bench_mode_name(unsigned int mode);	  /* "blocking", "back-to-back", "graph", "loop" */
const char *bench_redop_name(unsigned int redop); /* "sum"; "none" */
/* 0: no such name. */
unsigned int bench_mode_find(const char *name);
unsigned int bench_redop_find(const char *name);

/* One call on one rank. Times of calls in a graph are those of its replays. */
struct bench_call {
	uint64_t begin_ns; /* wall time before the call, or before the launch of its graph */
	uint64_t gpu_ns;   /* between CUDA events right before and right behind it; 0 not taken */
	uint64_t issue_ns; /* inside the call, on the calling thread; graph: the launch's share */
	uint64_t done_ns;  /* blocking: from begin_ns until it was seen to be over; else 0 */
};

#define BENCH_UNCHECKED UINT64_MAX

struct bench_cell {
	uint8_t function;  /* enum op_function; OP_SEND_RECV: a Send and a Recv in a group */
	uint8_t datatype;  /* enum op_datatype */
	uint8_t redop;	   /* enum bench_redop */
	uint8_t mode;	   /* enum bench_mode */
	uint8_t algorithm; /* enum op_algorithm that NCCL was made to take; 0: its own choice */
	uint8_t protocol;  /* enum op_protocol, likewise */
	uint8_t chosen_algorithm; /* what NCCL took, as the recorder saw it; 0 unknown */
	uint8_t chosen_protocol;
	bool is_in_place;
	bool is_grouped_sends; /* this NCCL has no such call: made of Sends and Recvs in a group */
	int32_t root;	       /* -1: none */
	int32_t nranks;
	uint64_t count; /* elements, as nccl-tests' column has it: of the rank's part */
	uint64_t bytes; /* of the message, as nccl-tests counts it (op_message_bytes) */
	uint64_t wrong; /* elements that are not what they must be, of all ranks; BENCH_UNCHECKED */
	uint32_t calls; /* measured, of each rank */
	uint32_t warmups;  /* before them */
	uint32_t checks;   /* made to check results, not measured */
	uint32_t aligns;   /* AllReduces of one element that kept ranks together, not measured */
	uint32_t captured; /* graph: how many calls one graph has; 0 otherwise */
	uint64_t loop_ns;  /* BENCH_LOOP: of one call, the mean over calls and ranks */
	struct bench_call *calls_of; /* [rank * calls + call]; NULL: BENCH_LOOP */
	int32_t *peers;		     /* OP_SEND_RECV between pairs: whom rank r exchanges with, -1
				      * nobody; NULL: to the next rank, from the one before */
};

struct bench_rank {
	char host[64];
	int32_t node;	/* machines numbered in order of their first rank */
	int32_t device; /* CUDA's number */
	int32_t pid;
	char gpu_name[64];
	char gpu_uuid[48]; /* "GPU-..." */
	char pci[32];
	uint64_t memory_bytes;
};

enum {
	BENCH_NOTES_MAX = 32,
	BENCH_TEXT_BYTES = 256,
	BENCH_CELLS_MAX = 1 << 16,
	BENCH_RANKS_MAX = 1 << 16
};

struct bench_run {
	int32_t nccl_version; /* 22809 */
	int32_t cuda_version; /* of the driver, 13000 */
	int32_t nranks;
	int32_t nodes;
	bool is_gpu_shared;	       /* several ranks on one GPU: they talk through sockets */
	bool is_mps;		       /* ... and MPS lets their kernels run together */
	uint64_t started_ns;	       /* wall time */
	char launcher[16];	       /* "self", "torchrun", "mpirun", "srun", "env" */
	char plugin[BENCH_TEXT_BYTES]; /* NCCL_PROFILER_PLUGIN as it was; "" none */
	char nccl_path[BENCH_TEXT_BYTES];
	char command[BENCH_TEXT_BYTES * 4];
	struct bench_rank *ranks; /* nranks of them */
	struct bench_cell *cells;
	size_t cell_count;
	size_t cell_room;
	char notes[BENCH_NOTES_MAX]
		  [BENCH_TEXT_BYTES]; /* what a reader must know beside the figures */
	size_t note_count;
	size_t notes_lost; /* those that did not fit */
};

void bench_run_init(struct bench_run *run);
void bench_run_release(struct bench_run *run);
/* Room for the ranks, all zero. ERR_RANGE, ERR_NO_SPACE. */
enum status bench_run_set_ranks(struct bench_run *run, int32_t nranks);
/* A cell like *like, which owns calls (nranks * calls, zero) and, where `like` has them, a copy of the
 * peers; NULL: no memory or too many. Valid until the next one is added. */
struct bench_cell *bench_run_add_cell(struct bench_run *run, const struct bench_cell *like);
/* Copied; one that is there already is not added again. */
void bench_run_note(struct bench_run *run, const char *format, ...) PRINTF_LIKE(2, 3);

static inline const struct bench_call *bench_cell_call(const struct bench_cell *cell, int32_t rank,
						       uint32_t call)
{
	return &cell->calls_of[(size_t)rank * cell->calls + call];
}

/* Steps that ran: warm-up, measured, checks. */
uint64_t bench_cell_steps(const struct bench_cell *cell);

/* Figures of measured times: percentiles, spread, ratios with their confidence interval. */

/* One call ran on all ranks: whose time is the call's? nccl-tests takes the mean. */
enum bench_over { BENCH_OVER_MEAN = 0, BENCH_OVER_MIN = 1, BENCH_OVER_MAX = 2 };

/* Which of a call's times. */
enum bench_clock { BENCH_GPU = 0, BENCH_ISSUE = 1, BENCH_DONE = 2 };

/* A time per call, in ns, over its ranks; ranks that did not take part (no peer) do not count. `times` has
 * room for cell->calls. Gives back how many there are: 0 in BENCH_LOOP or where that time was not taken. */
size_t bench_call_times(const struct bench_cell *cell, enum bench_clock clock, enum bench_over over,
			double *times);

struct bench_figures {
	size_t count;
	double mean;
	double deviation; /* of single values */
	double least;
	double p05;
	double p25;
	double p50;
	double p75;
	double p90;
	double p95;
	double p99;
	double most;
};

/* Smallest first. */
void bench_sort(double *values, size_t count);
/* Values are sorted in place. Percentiles interpolate between neighbours; NAN where there are too few values for one: p99
 * takes 100, p95 and p05 20, p90 10, p75 and p25 4. All 0 for no values. */
struct bench_figures bench_figures_of(double *values, size_t count);
/* Of the calls of a cell (GPU time, in loop mode the one mean); ERR_NO_SPACE. */
enum status bench_cell_figures(const struct bench_cell *cell, enum bench_over over,
			       struct bench_figures *figures);

/* algbw and busbw in GB/s (10^9) of a time; 0 for a time of 0. */
double bench_algbw(const struct bench_cell *cell, double time_ns);
double bench_busbw(const struct bench_cell *cell, double time_ns);
/* A time in words; "-" for one that is not known. */
const char *bench_duration(char to[static UNITS_TEXT], double ns);

/* Samples of one run (one job); runs alternate between two variants. */
struct bench_sample {
	const double *values;
	size_t count;
};

struct bench_ratio {
	double ratio; /* of the medians over all runs: with / without */
	double low;   /* 95 % interval: runs resampled, and calls within them */
	double high;
};

/* Seeded: the same samples give the same interval. Pairs run i of both (alternating runs); ERR_RANGE
 * for no samples, ERR_NO_SPACE. */
enum status bench_ratio_of(const struct bench_sample *with, const struct bench_sample *without,
			   size_t runs, uint64_t seed, struct bench_ratio *ratio);

/* A histogram with logarithmic classes that fits `width` bins: edges[bins + 1] and counts[bins]. */
enum { BENCH_BINS_MAX = 64 };
struct bench_bins {
	size_t bins;
	double edges[BENCH_BINS_MAX + 1];
	uint64_t counts[BENCH_BINS_MAX];
};
void bench_bins_of(const double *sorted, size_t count, size_t bins, struct bench_bins *out);

/*
 * A run, made again from the JSON document that bench_json_write() wrote. Every byte is distrusted: types,
 * ranges and the number of values are checked, and memory is never more than a small multiple of the
 * text. Keys come in the order in which they are written (docs/JSON.md); unknown ones are passed
 * over.
 */

enum { BENCH_READ_TEXT = 200 };

struct bench_read_problem {
	size_t offset; /* where in the text, in bytes from 0 */
	uint64_t line; /* from 1 */
	char text
		[BENCH_READ_TEXT]; /* what is wrong there, with the result's number where it is in one */
};

/*
 * On success the caller owns *run; see bench_run_release(). Else *run is as after bench_run_init() and
 * *problem (may be NULL) says where and why. ERR_UNKNOWN: no document of this format; ERR_VERSION: of a
 * newer version; ERR_FORMAT: damaged; ERR_NO_SPACE.
 */
enum status bench_read(struct bench_run *run, const char *text, size_t length,
		       struct bench_read_problem *problem);

/*
 * Where in a JSON document the measurement is: the whole of it ("ringside-bench"), or the value of its key
 * "run" ("ringside-crossover", "ringside-health"). bench_read() takes what is found.
 */

/* *at and *size are a part of `text`. ERR_UNKNOWN: no document of ours; ERR_FORMAT: one that is damaged, or has no
 * measurement. */
enum status run_inside(const char *text, size_t length, const char **at, size_t *size);

/*
 * A whole run as one JSON document, {"format":"ringside-bench","version":1,...}: every call of every rank,
 * figures beside them. bench_read() makes the run again from it; src/import/expected.h takes it as
 * expected bandwidth. docs/JSON.md describes it.
 */

/* The document and a newline. ERR_NO_SPACE, ERR_RANGE (a run that does not hold together: a cell of other
 * ranks than the run), or the sink's status. */
enum status bench_json_write(struct sink *sink, const struct bench_run *run);

/* The same as a value inside of another document: after json_key(), or as an item of an array. */
enum status bench_json_put(struct json *json, const struct bench_run *run);
/* A figure of which 0 says that it is not known: null then. */
void bench_json_known(struct json *json, const char *key, double value);

/*
 * What a benchmark measured as nccl-tests prints it: comments that name the test and the GPU of each
 * rank, a block of rows for each function, mode, algorithm and protocol, out of place and in place side by
 * side, the average bus bandwidth behind it. Whatever reads nccl-tests reads this; so does
 * src/import/expected.h. docs/JSON.md describes it.
 */

struct bench_table_options {
	bool is_median; /* the time column: median of the calls; else their mean, as nccl-tests has it */
	bool has_percentiles; /* columns p50, p90, p99, min and max behind #wrong */
	enum bench_over over; /* whose time a call's is; the table's head says it */
	/* What a model says, a time for each cell of the run (0: nothing): columns model and err%, how much
	 * longer the measured time is than that. Borrowed; NULL: no such columns. */
	const double *model_ns;
};

/* A cell without a time (no calls, or their GPU time was not taken) has no row; a comment says so.
 * ERR_NO_SPACE, or the sink's status. */
enum status bench_table_write(struct sink *sink, const struct bench_run *run,
			      const struct bench_table_options *options);

/* nccl-tests' name of the test: "all_reduce_perf", or "unknown". */
const char *bench_table_test(uint8_t function);
/* nccl-tests' name of a datatype: "float", "int32", or "unknown". */
const char *bench_table_type(uint8_t datatype);

/*
 * How the calls of a cell spread, as text: one line per class of time, on a logarithmic scale.
 *
 *	AllReduce 1 MiB float32 sum, out of place, blocking: 200 calls
 *	  41.2 us to 43.0 us  ██████████████▌        96
 */

struct bench_histogram_options {
	unsigned int width; /* of the terminal; 0: 80. Never less than 30: lines are wider then */
	size_t bins;	    /* 0: 16; BENCH_BINS_MAX at most */
	bool is_ascii;	    /* bars of '#' */
	enum bench_over over;
};

/* One cell. One without single calls (BENCH_LOOP, or none measured) gets a line that says so.
 * ERR_NO_SPACE, or the sink's status. */
enum status bench_histogram_cell(struct sink *sink, const struct bench_cell *cell,
				 const struct bench_histogram_options *options);
/* All cells of a run, a blank line between them. */
enum status bench_histogram_write(struct sink *sink, const struct bench_run *run,
				  const struct bench_histogram_options *options);

enum { BENCH_CELL_TEXT = 160 };
/* "AllReduce 1 MiB float32 sum, out of place, blocking, Ring/LL128": what a cell is, in words. */
const char *bench_cell_words(char to[static BENCH_CELL_TEXT], const struct bench_cell *cell);

/* Every call of every rank as a row of a Parquet file. docs/JSON.md has the columns. */

/* A cell in loop mode, and one without calls, has no single calls and so no rows: what the file does not
 * have is in its metadata ("ringside.results_without_calls"). The sink is not flushed. ERR_NO_SPACE, or the sink's
 * status. */
enum status bench_parquet_write(struct sink *sink, const struct bench_run *run);

#endif
