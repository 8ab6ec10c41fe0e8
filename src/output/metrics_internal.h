/* Shared by the files of metrics. */
#ifndef METRICS_INTERNAL_H
#define METRICS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/job.h"
#include "common/op.h"
#include "common/status.h"
#include "doctor/live.h"
#include "output/metrics.h"
#include "output/sink.h"
#include "recording/recording.h"

/* In the order of output; metrics_names() has their names. */
enum metrics_family {
	METRICS_PROCESS_INFO = 0,
	METRICS_JOB_INFO,
	METRICS_JOB_HANG_THRESHOLD,
	METRICS_COMMUNICATOR_INFO,
	METRICS_OPERATIONS_ISSUED,
	METRICS_OPERATIONS_FINISHED,
	METRICS_OPERATIONS,
	METRICS_OPERATION_BYTES,
	METRICS_OPERATION_TIMED_BYTES,
	METRICS_OPERATION_BUS_BYTES,
	METRICS_TIMED_OPERATIONS,
	METRICS_OPERATION_SECONDS,
	METRICS_SHARED_OPERATIONS,
	METRICS_SHARED_SECONDS,
	METRICS_OPERATION_DURATION,
	METRICS_ALGORITHM_OPERATIONS,
	METRICS_ALGORITHM_TIMED,
	METRICS_ALGORITHM_SECONDS,
	METRICS_WAIT_SECONDS,
	METRICS_IN_FLIGHT,
	METRICS_OLDEST_AGE,
	METRICS_OLDEST_INFO,
	METRICS_OLDEST_WAIT,
	METRICS_ACTIVITY_AGE,
	METRICS_LAST_COLLECTIVE,
	METRICS_COLLECTIVE_NUMBER,
	METRICS_REPLAY_NUMBER,
	METRICS_NUMBER_ISSUED,
	METRICS_NUMBER_DONE,
	METRICS_SIGNATURE,
	METRICS_PROXY_WAIT,
	METRICS_PROXY_BYTES,
	METRICS_PROXY_TRANSFERS,
	METRICS_WIRE_BYTES,
	METRICS_WIRE_SECONDS,
	METRICS_UNTRUSTED,
	METRICS_LOST_OPERATIONS,
	METRICS_LOST_DETAILS,
	METRICS_ODD_EVENTS,
	METRICS_NOTICE_INFO,
	METRICS_VERDICT_INFO,
	METRICS_VERDICT_SLOWDOWN,
	METRICS_BUILD_INFO,
	METRICS_AGENT_PROCESSES,
	METRICS_AGENT_LOOKS,
	METRICS_AGENT_LOOK_SECONDS,
	METRICS_AGENT_JUDGEMENTS,
	METRICS_AGENT_JUDGE_SECONDS,
	METRICS_AGENT_GIVEN_UP,
	METRICS_AGENT_REFUSED,
	METRICS_AGENT_UNREADABLE,
	METRICS_AGENT_LEFT_OUT,
	METRICS_AGENT_USER_LEFT_OUT,
	METRICS_AGENT_MERGED,
	METRICS_AGENT_FOLDED,
	METRICS_AGENT_VERDICTS,
	METRICS_AGENT_KERNEL,
	METRICS_CPU_SECONDS,
	METRICS_RESIDENT_BYTES,
	METRICS_OPEN_FDS,
	METRICS_START_TIME,
	METRICS_FAMILIES,
};

/*
 * One interface for text, OpenMetrics and protocol buffers, so that they cannot disagree.
 *
 *	metrics_out_begin(&out, sink, format);
 *	labels = metrics_labels_begin(&out), metrics_label(&out, "rank", "3"), metrics_labels_end(&out)
 *	metrics_family(&out, METRICS_IN_FLIGHT);
 *	metrics_put_unsigned(&out, labels, 2);
 *	metrics_out_end(&out);
 *
 * A set of labels is encoded once and can be used for many samples. A family without samples is not
 * written. There is no allocation per sample: buffers grow as needed and are reused.
 */

enum metrics_type { METRICS_COUNTER = 0, METRICS_GAUGE = 1, METRICS_HISTOGRAM = 2 };

/* Encoded labels: a range in out->labels. */
struct metrics_labels {
	size_t at;
	size_t length;
};

struct metrics_out {
	struct sink *sink; /* borrowed */
	enum metrics_format format;
	const struct metrics_name *family; /* NULL before the first */
	enum metrics_type type;
	bool is_info;
	bool has_samples;
	char name[64]; /* of its samples: with _total for counters */
	size_t name_length;
	struct sink labels;  /* all encoded sets of labels */
	struct sink clean;   /* a value without invalid UTF-8 */
	struct sink body;    /* protocol buffers: samples of the family */
	struct sink message; /* protocol buffers: one sample */
	struct sink part;    /* protocol buffers: a part of the sample */
};

struct metrics_histogram {
	uint64_t buckets[HISTOGRAM_BUCKETS];
	uint64_t sum_ns;
};

void metrics_out_begin(struct metrics_out *out, struct sink *sink, enum metrics_format format);
/* Ends the last family and the output; frees. A failure is passed to the sink. */
void metrics_out_end(struct metrics_out *out);

/* Sets of labels. Empty values are omitted: Prometheus treats them as absent. */
void metrics_labels_begin(struct metrics_out *out, struct metrics_labels *labels);
void metrics_labels_copy(struct metrics_out *out, struct metrics_labels from);
void metrics_label(struct metrics_out *out, const char *name, const char *value);
void metrics_label_number(struct metrics_out *out, const char *name, int64_t number);
void metrics_labels_end(struct metrics_out *out, struct metrics_labels *labels);
/* Discards all sets created since. */
size_t metrics_labels_mark(const struct metrics_out *out);
void metrics_labels_forget(struct metrics_out *out, size_t mark);
/* Whether the labels and their values are equal. */
bool metrics_labels_equal(const struct metrics_out *out, struct metrics_labels a,
			  struct metrics_labels b);

/* Every family at most once, in any order. */
void metrics_family(struct metrics_out *out, enum metrics_family family);
void metrics_put_unsigned(struct metrics_out *out, struct metrics_labels labels, uint64_t value);
/* Nanoseconds as seconds, with all digits in text formats. */
void metrics_put_seconds(struct metrics_out *out, struct metrics_labels labels, uint64_t ns);
void metrics_put_double(struct metrics_out *out, struct metrics_labels labels, double value);
void metrics_put_histogram(struct metrics_out *out, struct metrics_labels labels,
			   const struct metrics_histogram *histogram);

/* `text` with invalid UTF-8 replaced by U+FFFD. Appends to a memory sink. */
void metrics_clean_text(struct sink *to, const char *text);

/* A number as text. Both return how many bytes they wrote. */
enum { METRICS_NUMBER = 32 };

/*
 * The exported series and the seats that make them up.
 *
 *	job.seats[]  --+--> members   (nccl_job, comm, rank): the most used communicators of each GPU
 *	processes[]  --+--> others    (nccl_job, "other", rank): the rest of a process
 *	             --+--> processes (nccl_job, global_rank, pid)
 *
 * Seats with the same labels are one member, and their values are summed. If some of its processes have
 * ended and others are alive, only those alive count: a restarted rank starts over, like a counter reset.
 */

#define METRICS_NOBODY UINT32_MAX

/* Of a signature: as many as a double holds exactly. */
#define METRICS_SIGNATURE_BITS ((UINT64_C(1) << 52) - 1)

enum metrics_member_kind {
	METRICS_HASHED = 0,  /* a communicator by its hash */
	METRICS_UNKNOWN = 1, /* a communicator with unknown hash */
	METRICS_OTHER = 2,   /* the rest of a process */
	METRICS_PROCESS = 3, /* the process itself */
};

struct metrics_member {
	enum metrics_member_kind kind;
	bool is_folded;	  /* its seats are exported with METRICS_OTHER of their process */
	bool is_used;	  /* it has values: an empty METRICS_OTHER is not exported */
	bool is_ended;	  /* the process of its main seat ended cleanly */
	uint32_t process; /* the process whose textfile contains it */
	uint32_t seat;	  /* its main seat, METRICS_NOBODY: none */
	uint32_t gpu;	  /* index into job.ranks: the GPU whose budget it uses */
	uint32_t oldest;  /* the seat with the oldest operation, METRICS_NOBODY: none */
	uint64_t issued;  /* these four are totals */
	uint64_t finished;
	uint64_t wait_ns;
	bool knows_wait; /* it was compared with others */
	uint64_t untrusted;
	uint64_t in_flight; /* the total for METRICS_OTHER, else the maximum */
	uint64_t oldest_age_ns;
	uint64_t still_ns;    /* of the main seat */
	uint64_t collectives; /* these four are the maximum of those alive */
	uint64_t replays;
	uint64_t number_issued;
	uint64_t number_done;
	uint64_t signature; /* of the main seat, METRICS_SIGNATURE_BITS */
	struct metrics_labels labels;
};

struct metrics_model {
	const struct live *live;
	const struct job *job;
	const struct recording *recording;
	struct metrics_member *members; /* by kind, then labels */
	size_t member_count;
	uint32_t *seat_member; /* per seat: its member, METRICS_NOBODY: replaced by another seat */
	uint32_t *
		next_process; /* per process: the next one of its METRICS_PROCESS, METRICS_NOBODY: none */
	uint32_t *other_member; /* per process: the METRICS_OTHER of it, or METRICS_NOBODY */
	uint8_t name_map[OP_NAME_TABLES]
			[256]; /* a job's number of a name: the one it is shown as */
	uint64_t merged;       /* seats and processes beyond the first of a member */
	uint64_t folded_comms;
};

/* ERR_NO_SPACE (memory). Must be released even if it fails. Labels of members are encoded in `out`. */
enum status metrics_model_make(struct metrics_model *model, const struct live *live,
			       struct metrics_out *out);
void metrics_model_release(struct metrics_model *model);

/* The number under which a process's name is exported, and its text ("other" for METRICS_NAME_OTHER). */
uint8_t metrics_name_number(const struct metrics_model *model, size_t process,
			    enum op_name_table table, uint8_t number);
const char *metrics_name_text(const struct metrics_model *model, enum op_name_table table,
			      uint8_t number);

/* The communicator of a seat in its process. */
const struct recording_comm *metrics_seat_comm(const struct metrics_model *model, uint32_t seat);

/* The value of label comm for a seat. */
enum { METRICS_COMM_TEXT = 160 };
void metrics_comm_text(const struct metrics_model *model, uint32_t seat,
		       char to[static METRICS_COMM_TEXT]);

/*
 * Totals and links, summed into exported rows: one row per member and set of distinguishing labels. Rows
 * beyond the budget of a GPU are summed as "other" of their member, so that totals stay correct.
 */

enum { METRICS_ROW_VALUES = 7 };

struct metrics_row {
	uint32_t member;
	uint64_t what;			     /* METRICS_..._KEY below */
	uint64_t values[METRICS_ROW_VALUES]; /* the first is its use: rows with the most use stay */
	double bus_bytes;
	struct metrics_labels labels; /* the writer's */
};

struct metrics_rows {
	struct metrics_row *rows; /* by member and what */
	size_t count;
	uint64_t folded; /* rows that are exported as other */
};

const char *metrics_size_text(unsigned int size); /* "1MiB", "0", "unknown", "other" */

#define METRICS_PEER_OTHER UINT32_MAX
enum { ROW_LINK_BYTES = 0, ROW_TRANSFERS = 1, ROW_WAITS = 2, ROW_WIRE_BYTES = 5, ROW_WIRE = 6 };

enum metrics_rows_of {
	METRICS_ROWS_SIZES = 0,
	METRICS_ROWS_CHOICES,
	METRICS_ROWS_FUNCTIONS, /* timed operations */
	METRICS_ROWS_LINKS,
	METRICS_ROWS_KINDS,
};

/* Zeroed `rows`; release them even if it fails. */
enum status metrics_rows_make(struct metrics_rows *rows, const struct metrics_model *model,
			      enum metrics_rows_of of);
void metrics_rows_release(struct metrics_rows *rows);

/* The histograms of the rows of (function), in order. */
typedef void metrics_visit_histogram(const struct metrics_row *row,
				     const struct metrics_histogram *histogram, void *context);
enum status metrics_rows_histograms(const struct metrics_rows *functions,
				    const struct metrics_model *model,
				    metrics_visit_histogram *visit, void *context);

#endif
