/*
 * Totals by key: calls, bytes, time, bandwidth, waiting.
 *
 * The caller selects the parts of the key (enum tally_by). Durations of different sources are added up in
 * one row unless the source is part of the key; every row has the number of each. Network spans and bounds by
 * the host's clock are no durations (op_is_duration()): they are only counted. docs/STATISTICS.md defines each
 * value.
 */
#ifndef TALLY_H
#define TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/op.h"
#include "common/op_layout.h"
#include "common/status.h"

enum tally_by {
	TALLY_BY_COMM = 1u << 0,      /* index into job.comms */
	TALLY_BY_COMM_NAME = 1u << 1, /* communicators of one group and one name together */
	TALLY_BY_KIND = 1u << 2,      /* enum job_comm_kind */
	TALLY_BY_FUNCTION = 1u << 3,
	TALLY_BY_SIZE = 1u << 4, /* op_size_class() */
	TALLY_BY_DATATYPE = 1u << 5,
	TALLY_BY_ALGORITHM = 1u << 6,
	TALLY_BY_PROTOCOL = 1u << 7,
	TALLY_BY_RANK = 1u << 8, /* index into job.ranks */
	TALLY_BY_HOST = 1u << 9, /* index into job.hosts */
	TALLY_BY_TAG = 1u << 10,
	TALLY_BY_SOURCE = 1u << 11, /* op_shown_source() */
	TALLY_BY_GROUP = 1u << 12,  /* index into job.groups */
	TALLY_BYS = 13,
};

const char *tally_by_name(unsigned int bit); /* 0: "comm", ...; NULL after the table */
/* "function,size" to bits. ERR_UNKNOWN: *bad is where the unknown word starts. */
enum status tally_by_parse(const char *text, uint32_t *by, const char **bad);

/* Parts that are not in the table's key are 0. */
struct tally_key {
	uint64_t tag;
	uint32_t comm; /* for TALLY_BY_COMM_NAME: the first communicator with that name */
	uint32_t rank;
	uint32_t host;
	uint32_t group;
	uint8_t kind;
	uint8_t function; /* job_name() has the names of these four */
	uint8_t datatype;
	uint8_t algorithm;
	uint8_t protocol;
	uint8_t size_class;
	uint8_t source;
	uint8_t reserved;
};

/* Durations by bucket of common/op.h; only the range in use has memory. */
struct tally_histogram {
	uint64_t *counts; /* [bucket - first], `used` of them; NULL: empty */
	uint16_t first;
	uint16_t used;
};

struct tally_row {
	struct tally_key key;
	uint32_t ranks;	       /* ranks with a part in it */
	uint32_t last_rank;    /* for counting them */
	uint64_t calls;	       /* operations without captures: those are executed as replays */
	uint64_t open;	       /* of calls: still in flight when the recording ended */
	uint64_t captured;     /* captured in CUDA graphs; not in calls */
	uint64_t unknown_size; /* of calls: message size not known */
	uint64_t untrusted;    /* of calls: GPU timestamps rejected (OP_STAMPS_UNTRUSTED) */
	uint64_t bytes;	       /* of calls with known size */
	uint64_t timed;	       /* of calls: with a duration, whatever its source */
	/* Calls by the shown source of their time; adds up to calls. Not all are durations. */
	uint64_t by_source[OP_TIME_SHOWN_SOURCES];
	/* Of timed: NCCL executed others with it and they have one time for all. Not in bandwidths. */
	uint64_t shared;
	uint64_t sum_ns; /* of timed */
	uint64_t min_ns; /* of timed; 0 if none */
	uint64_t max_ns;
	double square_sum; /* of durations in ns, squared: for the spread around the mean */
	/* Bandwidth: bytes over time, both over the timed calls of known size (for busbw also known number
	 * of ranks). Not a mean of ratios. */
	uint64_t sized_bytes;
	uint64_t sized_ns;
	double bus_bytes; /* bytes x factor of the function */
	uint64_t bus_ns;
	/* Waiting: over the calls that were matched with those of other ranks, see match.h. Calls without
	 * another rank are not included: with joined 0, waiting is unknown. */
	uint64_t joined;
	uint64_t joined_ns;	  /* their durations */
	uint64_t joined_least_ns; /* of each, the shortest duration among the matched ranks */
	uint64_t wait_ns;	  /* joined_ns - joined_least_ns */
	/* Transfers without waiting: of the matched collectives, each once however many ranks it has, the
	 * logarithms of their shortest durations in ns. Not in tables by rank or host. */
	uint64_t moves;
	double move_log_sum;
	double move_log_squares;
	/* Estimates for untimed calls of kinds with timed ones: see collect.h. Not in tables by source of
	 * time. */
	uint64_t covered; /* of calls: number of these */
	double covered_ns;
	double covered_joined_ns; /* by how much joined_ns and wait_ns would increase */
	double covered_wait_ns;
	struct tally_histogram histogram;
};

struct tally {
	uint32_t by;
	struct tally_row *rows;
	size_t count;
	size_t limit; /* maximum number of rows; further keys are added up in the row `other` */
	bool has_other;
	struct tally_row other; /* key is meaningless */
	uint64_t other_keys;	/* new keys that did not fit */
	uint32_t *slots;	/* hash table of indices into rows, + 1 */
	size_t slot_count;
};

enum { TALLY_ROWS_MAX = 100000 };

/* Calls that could have a duration: those in flight have none yet. */
static inline uint64_t tally_over(const struct tally_row *row)
{
	return row->calls - row->open;
}

/* Fewer are timed than could be: totals are estimates. */
static inline bool tally_is_sampled(const struct tally_row *row)
{
	return row->timed < tally_over(row);
}

/* Timed on the GPU: by kernel events or by CUDA events. */
static inline uint64_t tally_gpu_timed(const struct tally_row *row)
{
	return row->by_source[OP_TIME_KERNEL_GPU] + row->by_source[OP_TIME_CUDA_EVENT];
}

/* Most of what is known of its times comes from the network's side or from another tool: late ranks do not show. */
static inline bool tally_is_by_network(const struct tally_row *row)
{
	uint64_t gpu = tally_gpu_timed(row);

	return gpu < row->by_source[OP_TIME_PROXY] + row->by_source[OP_TIME_TOOL];
}

/* Of kinds without any timed call: not in any estimate. */
static inline uint64_t tally_not_timed(const struct tally_row *row)
{
	return tally_over(row) - row->timed - row->covered;
}

/* Totals of all calls, estimated if not all were timed: sum_ns, joined_ns, wait_ns plus estimates. */
double tally_total_ns(const struct tally_row *row);
double tally_total_joined_ns(const struct tally_row *row);
double tally_total_wait_ns(const struct tally_row *row);
/* Share of the time in matched collectives; 0 if nothing was matched. */
double tally_wait_share(const struct tally_row *row);

/* A percentile needs enough calls for one to be beyond it; the bench has the same rule. */
enum { TALLY_P99_LEAST = 100, TALLY_P90_LEAST = 10 };

double tally_mean_ns(const struct tally_row *row);	/* 0 if nothing was timed */
double tally_deviation_ns(const struct tally_row *row); /* standard deviation; 0 below two calls */
/* Bytes per second; 0 if unknown. */
double tally_algbw(const struct tally_row *row);
double tally_busbw(const struct tally_row *row);

/*
 * The duration that a share q of the timed calls does not exceed (the ceil(q n)-th smallest). Accurate to
 * the bucket: the true value is within TALLY_QUANTILE_ERROR of it, relatively; below 238 ns and above 1024
 * s it is only between them and min_ns or max_ns. 0 if nothing was timed.
 */
#define TALLY_QUANTILE_ERROR 0.0906
uint64_t tally_quantile_ns(const struct tally_row *row, double q);

/* histogram_bucket() from tables and without a branch, for millions of calls. */
struct tally_scale {
	uint64_t upper_ns[HISTOGRAM_BUCKETS]; /* of the last one: UINT64_MAX */
	/* By position of the highest bit and the four below it, the first bucket. Such a range is at most
	 * 6.25% wide, a bucket 9%: there are at most two. */
	uint8_t start[64 * 16 + 1];
};

void tally_scale_init(struct tally_scale *scale);

static inline unsigned int tally_bucket(const struct tally_scale *scale, uint64_t ns)
{
	/* As a floating point number it has these bits in sequence. Rounding, above a hundred days, may
	 * lead to the next range, also that of the last bucket. */
	double as_double = (double)(ns | 1);
	unsigned int bucket;
	uint64_t bits;

	memcpy(&bits, &as_double, sizeof(bits));
	bucket = scale->start[(bits >> 48) - (1023u << 4)];
	return bucket + (ns > scale->upper_ns[bucket]);
}

void tally_init(struct tally *tally, uint32_t by, size_t limit);
void tally_release(struct tally *tally);

/* The row of a key (parts outside tally->by are ignored); NULL: out of memory. */
struct tally_row *tally_row(struct tally *tally, const struct tally_key *key);
/* Adds `count` durations of one bucket. ERR_NO_SPACE. */
enum status tally_histogram_add(struct tally_histogram *histogram, unsigned int bucket,
				uint64_t count);
/* Adds all values of `from` to `to`, without keys. ERR_NO_SPACE. */
enum status tally_merge(struct tally_row *to, const struct tally_row *from);
void tally_row_release(struct tally_row *row);

enum tally_order {
	TALLY_BY_TIME_SPENT = 0, /* tally_total_ns() descending */
	TALLY_BY_KEY = 1,	 /* the parts of the key ascending, in the order of enum tally_by */
};
/* Sorts rows; the hash table is dropped: no tally_row() afterwards. */
void tally_sort(struct tally *tally, enum tally_order order);

#endif
