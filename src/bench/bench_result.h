/*
 * The results of a benchmark: every call of every rank, and where the ranks ran. The benchmark fills this
 * structure; tables, files, models and comparisons read it. docs/BENCH.md describes it.
 *
 *	run
 *	 +-- ranks[]     where each rank was: host, GPU
 *	 +-- cells[]     one line of the table: function, size, type, mode ...
 *	      +-- calls[]  rank * cell.calls + call
 */
#ifndef BENCH_RESULT_H
#define BENCH_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/attributes.h"
#include "common/status.h"
#include "common/text.h"
#include "import/json_scan.h"
#include "output/json.h"
#include "output/sink.h"

/* How calls follow each other. */
enum bench_mode {
	BENCH_BLOCKING = 1,	/* each one completes before the next is made */
	BENCH_BACK_TO_BACK = 2, /* all are made, then completed */
	BENCH_GRAPH = 3,	/* captured into a CUDA graph, which is launched repeatedly */
	BENCH_LOOP = 4, /* as nccl-tests: one time for all of them, no times of single calls */
	BENCH_MODES = 5,
};

enum bench_redop {
	BENCH_NO_REDOP = 0, /* no reduction */
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

/* One call on one rank. In a graph, times are those of the replays. */
struct bench_call {
	uint64_t begin_ns; /* wall time before the call, or before the graph launch */
	uint64_t gpu_ns;   /* between CUDA events right before and after it; 0: not measured */
	uint64_t
		issue_ns; /* inside the call, on the calling thread; graph: its share of the launch */
	uint64_t done_ns; /* blocking: from begin_ns until completion was seen; otherwise 0 */
};

#define BENCH_UNCHECKED UINT64_MAX

struct bench_cell {
	uint8_t function;	  /* enum op_function; OP_SEND_RECV: a Send and a Recv in a group */
	uint8_t datatype;	  /* enum op_datatype */
	uint8_t redop;		  /* enum bench_redop */
	uint8_t mode;		  /* enum bench_mode */
	uint8_t algorithm;	  /* enum op_algorithm that was forced; 0: NCCL's choice */
	uint8_t protocol;	  /* enum op_protocol, likewise */
	uint8_t chosen_algorithm; /* NCCL's choice, as recorded by the plugin; 0: unknown */
	uint8_t chosen_protocol;
	bool is_in_place;
	bool is_grouped_sends; /* this NCCL has no such call: grouped Sends and Recvs */
	int32_t root;	       /* -1: none */
	int32_t nranks;
	uint64_t count;	   /* elements per rank, as in nccl-tests' column */
	uint64_t bytes;	   /* of the message, as nccl-tests counts it (op_message_bytes) */
	uint64_t wrong;	   /* wrong elements of all ranks; BENCH_UNCHECKED */
	uint32_t calls;	   /* measured calls per rank */
	uint32_t warmups;  /* before the measured calls */
	uint32_t checks;   /* made to check results, not measured */
	uint32_t aligns;   /* AllReduces of one element that aligned the ranks, not measured */
	uint32_t captured; /* graph: calls per graph; otherwise 0 */
	uint64_t loop_ns;  /* BENCH_LOOP: time per call, mean over calls and ranks */
	struct bench_call *calls_of; /* [rank * calls + call]; NULL: BENCH_LOOP */
	int32_t *
		peers; /* OP_SEND_RECV in pairs: the peer of rank r, -1: none; NULL: send to the next
				      * rank, receive from the previous one
				      */
};

struct bench_rank {
	char host[64];
	int32_t node;	/* hosts numbered in order of their first rank */
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
	bool is_gpu_shared;	       /* several ranks on one GPU: they use sockets */
	bool is_mps;		       /* ... and MPS runs their kernels concurrently */
	uint64_t started_ns;	       /* wall time */
	char launcher[16];	       /* "self", "torchrun", "mpirun", "srun", "env" */
	char plugin[BENCH_TEXT_BYTES]; /* NCCL_PROFILER_PLUGIN; "" none */
	char nccl_path[BENCH_TEXT_BYTES];
	char command[BENCH_TEXT_BYTES * 4];
	struct bench_rank *ranks; /* nranks of them */
	struct bench_cell *cells;
	size_t cell_count;
	size_t cell_room;
	char notes[BENCH_NOTES_MAX]
		  [BENCH_TEXT_BYTES]; /* what readers must know besides the numbers */
	size_t note_count;
	size_t notes_lost; /* notes that did not fit */
};

void bench_run_init(struct bench_run *run);
void bench_run_release(struct bench_run *run);
/* Allocates the ranks, zeroed. ERR_RANGE, ERR_NO_SPACE. */
enum status bench_run_set_ranks(struct bench_run *run, int32_t nranks);
/*
 * Adds a copy of *like that owns its calls (nranks * calls, zeroed) and a copy of the peers, if any. NULL: out of
 * memory or too many. Valid until the next one is added.
 */
struct bench_cell *bench_run_add_cell(struct bench_run *run, const struct bench_cell *like);
/* Copied; duplicates are ignored. */
void bench_run_note(struct bench_run *run, const char *format, ...) PRINTF_LIKE(2, 3);

static inline const struct bench_call *bench_cell_call(const struct bench_cell *cell, int32_t rank,
						       uint32_t call)
{
	return &cell->calls_of[(size_t)rank * cell->calls + call];
}

/* Calls that were made: warm-up, measured, checks. */
uint64_t bench_cell_steps(const struct bench_cell *cell);

/* Statistics of measured times: percentiles, spread, ratios with confidence intervals. */

/* How the times of all ranks are combined to one per call. nccl-tests takes the mean. */
enum bench_over { BENCH_OVER_MEAN = 0, BENCH_OVER_MIN = 1, BENCH_OVER_MAX = 2 };

/* Which of a call's times. */
enum bench_clock { BENCH_GPU = 0, BENCH_ISSUE = 1, BENCH_DONE = 2 };

/*
 * One time per call in ns, combined over its ranks; ranks that did not take part (no peer) are ignored. `times` has
 * room for cell->calls. Returns the number of times: 0 for BENCH_LOOP or if that time was not measured.
 */
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

/*
 * Sorts the values in place. Percentiles interpolate between neighbours; NAN if there are too few values: p99 needs
 * 100, p95 and p05 20, p90 10, p75 and p25 4. All 0 without values.
 */
struct bench_figures bench_figures_of(double *values, size_t count);
/* Of a cell's calls (GPU time; in loop mode the single mean); ERR_NO_SPACE. */
enum status bench_cell_figures(const struct bench_cell *cell, enum bench_over over,
			       struct bench_figures *figures);

/* algbw and busbw in GB/s (10^9) of a time; 0 for a time of 0. */
double bench_algbw(const struct bench_cell *cell, double time_ns);
double bench_busbw(const struct bench_cell *cell, double time_ns);
/* A formatted time; "-" if unknown. */
const char *bench_duration(char to[static UNITS_TEXT], double ns);

/* Samples of one run (one job); runs of two variants alternate. */
struct bench_sample {
	const double *values;
	size_t count;
};

struct bench_ratio {
	double ratio; /* ratio of the medians over all runs: with / without */
	double low;   /* 95% interval: runs are resampled, and calls within them */
	double high;
};

/*
 * Seeded: the same samples give the same interval. Run i of both is drawn together (runs alternate); ERR_RANGE
 * without samples, ERR_NO_SPACE.
 */
enum status bench_ratio_of(const struct bench_sample *with, const struct bench_sample *without,
			   size_t runs, uint64_t seed, struct bench_ratio *ratio);

/* A histogram with at most `width` logarithmic bins: edges[bins + 1] and counts[bins]. */
enum { BENCH_BINS_MAX = 64 };
struct bench_bins {
	size_t bins;
	double edges[BENCH_BINS_MAX + 1];
	uint64_t counts[BENCH_BINS_MAX];
};
void bench_bins_of(const double *sorted, size_t count, size_t bins, struct bench_bins *out);

/*
 * Reads a run from the JSON document of bench_json_write(). The input is untrusted: types, ranges and counts are
 * checked, and memory use is limited to a small multiple of the text. Keys must be in the order in which they are
 * written (docs/JSON.md); unknown ones are skipped.
 */

enum { BENCH_READ_TEXT = 200 };

struct bench_read_problem {
	size_t offset; /* position in the text in bytes, from 0 */
	uint64_t line; /* from 1 */
	char text
		[BENCH_READ_TEXT]; /* what is wrong, with the number of the result if it is in one */
};

/*
 * On success the caller owns *run; see bench_run_release(). Otherwise *run is as after bench_run_init() and
 * *problem (can be NULL) says where and why. ERR_UNKNOWN: another format; ERR_VERSION: a newer version; ERR_FORMAT:
 * damaged; ERR_NO_SPACE.
 */
enum status bench_read(struct bench_run *run, const char *text, size_t length,
		       struct bench_read_problem *problem);

/*
 * Finds the measurement in a JSON document: all of it ("ringside-bench"), or the value of its key "run"
 * ("ringside-crossover", "ringside-health"). bench_read() reads what is found.
 */

/* *at and *size are a part of `text`. ERR_UNKNOWN: another format; ERR_FORMAT: damaged, or no measurement. */
enum status run_inside(const char *text, size_t length, const char **at, size_t *size);

/*
 * Writes a whole run as one JSON document, {"format":"ringside-bench","version":1,...}: every call of every rank,
 * and statistics. bench_read() reads it back; src/import/expected.h uses it as expected bandwidth.
 * docs/JSON.md describes it.
 */

/*
 * The document and a newline. ERR_NO_SPACE, ERR_RANGE (inconsistent: a cell has other ranks than the run), or the
 * sink's status.
 */
enum status bench_json_write(struct sink *sink, const struct bench_run *run);

/* The same as a value inside another document: after json_key(), or as an array element. */
enum status bench_json_put(struct json *json, const struct bench_run *run);
/* A number that is unknown if 0: writes null then. */
void bench_json_known(struct json *json, const char *key, double value);

/*
 * Prints results like nccl-tests: comments that name the test and the GPU of each rank, a block of rows per
 * function, mode, algorithm and protocol, out of place and in place side by side, followed by the average bus
 * bandwidth. Parsers of nccl-tests output can read it, including src/import/expected.h. docs/JSON.md
 * describes it.
 */

struct bench_table_options {
	bool is_median; /* time column: median of the calls; otherwise the mean, as in nccl-tests */
	bool has_percentiles; /* columns p50, p90, p99, min and max after #wrong */
	enum bench_over over; /* how ranks' times are combined; shown in the table's head */
	/*
	 * Predicted time for each cell of the run (0: none): adds columns model and err%, how much longer the
	 * measured time is. Borrowed; NULL: no such columns.
	 */
	const double *model_ns;
};

/*
 * A cell without a time (no calls, or no GPU time) has no row, only a comment. ERR_NO_SPACE, or the sink's status.
 */
enum status bench_table_write(struct sink *sink, const struct bench_run *run,
			      const struct bench_table_options *options);

/* nccl-tests' name of the test: "all_reduce_perf", or "unknown". */
const char *bench_table_test(uint8_t function);
/* nccl-tests' name of a datatype: "float", "int32", or "unknown". */
const char *bench_table_type(uint8_t datatype);

/*
 * The distribution of a cell's call times as text: one line per bin, on a logarithmic scale.
 *
 *	AllReduce 1 MiB float32 sum, out of place, blocking: 200 calls
 *	  41.2 us to 43.0 us  ██████████████▌        96
 */

struct bench_histogram_options {
	unsigned int width; /* terminal width; 0: 80. Below 30 lines are wider than it */
	size_t bins;	    /* 0: 16; at most BENCH_BINS_MAX */
	bool is_ascii;	    /* bars made of '#' */
	enum bench_over over;
};

/*
 * One cell. Without single calls (BENCH_LOOP, or none measured), writes a line that says so. ERR_NO_SPACE, or the
 * sink's status.
 */
enum status bench_histogram_cell(struct sink *sink, const struct bench_cell *cell,
				 const struct bench_histogram_options *options);
/* All cells of a run, separated by blank lines. */
enum status bench_histogram_write(struct sink *sink, const struct bench_run *run,
				  const struct bench_histogram_options *options);

enum { BENCH_CELL_TEXT = 160 };
/* Describes a cell: "AllReduce 1 MiB float32 sum, out of place, blocking, Ring/LL128". */
const char *bench_cell_words(char to[static BENCH_CELL_TEXT], const struct bench_cell *cell);

/* Writes every call of every rank as a row of a Parquet file. docs/JSON.md has the columns. */

/*
 * Cells without single calls (loop mode, or none measured) have no rows; their number is in the metadata
 * ("ringside.results_without_calls"). Does not flush the sink. ERR_NO_SPACE, or the sink's status.
 */
enum status bench_parquet_write(struct sink *sink, const struct bench_run *run);

/* Shared by the files that read and write benchmark results. */

/*
 * Cleans text from elsewhere (host names, commands) for formats that require UTF-8. Copies a field of `size` bytes
 * with '?' for each invalid byte, so that it never gets longer. `to` has the same size.
 */
static inline char *bench_text_clean(char *to, const char *field, size_t size)
{
	size_t length = strnlen(field, size - 1), bytes;

	memcpy(to, field, length);
	to[length] = '\0';
	for (size_t at = 0; at < length; at += bytes) {
		bytes = (unsigned char)to[at] < 0x80
				? 1
				: utf8_bytes((const unsigned char *)to + at, length - at);
		if (bytes == 0) {
			to[at] = '?';
			bytes = 1;
		}
	}
	return to;
}

/* Reads the benchmark's JSON. The first failure is kept. */

struct bench_reader {
	struct json_scan scan;
	struct bench_run *run;
	int32_t *peers; /* room for one per rank of the run */
	bool is_ours;	/* the format has been recognized */
	size_t result;	/* number of the result being read, from 1; 0: none */
	enum json_scan_token token;
	enum status status;
	struct bench_read_problem problem;
};

void bench_reader_start(struct bench_reader *reader, struct bench_run *run, const char *text,
			size_t length);
void bench_reader_end(struct bench_reader *reader);

/* Records a failure at the current position; ERR_FORMAT. */
void bench_reader_fail(struct bench_reader *reader, const char *format, ...) PRINTF_LIKE(2, 3);
void bench_reader_no_memory(struct bench_reader *reader);

/* After a key: expects an array. False: it is not one. */
bool bench_reader_array(struct bench_reader *reader, const char *name);
/* Puts the next element, or the value at the top, into reader->token; false at the end of the array. */
bool bench_reader_item(struct bench_reader *reader);
/* Copies the last string. */
void bench_reader_text(struct bench_reader *reader, const char *name, char *to, size_t size);

/* ---- objects of plain values: one table to read and to write them ----------------------------- */

enum bench_field_kind {
	FIELD_OWN, /* read by its own function */
	FIELD_BOOL,
	FIELD_INT32, /* within [least, most] */
	FIELD_UINT32,
	FIELD_UINT64,
	FIELD_SIZE,
	FIELD_WRONG, /* null: BENCH_UNCHECKED */
	FIELD_TEXT,  /* written with '?' for each invalid UTF-8 byte, so that the length stays */
	FIELD_PLAIN_TEXT, /* as json_string() writes it */
	FIELD_FUNCTION,	  /* names; null is 0, except for a function or mode */
	FIELD_DATATYPE,
	FIELD_ALGORITHM,
	FIELD_PROTOCOL,
	FIELD_REDOP,
	FIELD_MODE,
};

struct bench_field {
	struct json_scan_key key;
	enum bench_field_kind kind;
	size_t offset; /* in its struct */
	size_t size;
	int64_t least;
	int64_t most;
};

#define FIELD_KEY(name) JSON_SCAN_KEY_OF(name)

/* Called after the key of a FIELD_OWN field; `seen` has a bit for each key read before. */
typedef void (*bench_own_fn)(struct bench_reader *reader, const struct bench_field *field,
			     uint64_t seen, void *object);

/* reader->token is the start of an object that must have each of these keys once. */
void bench_reader_object(struct bench_reader *reader, const char *what,
			 const struct bench_field *fields, size_t count, void *object,
			 bench_own_fn own);

/* Writes the same fields in order into an open object; `own` writes key and value of FIELD_OWN fields. */
typedef void (*bench_put_own_fn)(struct json *json, const struct bench_field *field,
				 const void *object);
void bench_fields_put(struct json *json, const struct bench_field *fields, size_t count,
		      const void *object, bench_put_own_fn own);

/* The name of a number in a field of a name kind; NULL: unknown. */
const char *bench_field_name(enum bench_field_kind kind, uint8_t number);

/* Location of a field: offset and size. */
#define FIELD_AT(type, member) offsetof(struct type, member), sizeof(((struct type *)NULL)->member)
/* A field that needs its own function. */
#define FIELD_OF_OWN(name)                             \
	{                                              \
		FIELD_KEY(name), FIELD_OWN, 0, 0, 0, 0 \
	}

/* Formats the reason for a failure; always returns -1. */
int bench_problem(char *problem, size_t size, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
