/*
 * Schedules pairs so that every pair of ranks is measured: a round-robin tournament. In every round each rank has
 * one partner (with an odd number of ranks, one has none), and after all rounds each pair has been measured exactly
 * once.
 */
#ifndef HEALTH_H
#define HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/bench_result.h"
#include "common/status.h"
#include "import/expected.h"
#include "output/sink.h"

struct pair_schedule {
	int32_t ranks;
	int32_t rounds_all; /* to cover all pairs: n - 1, or n for an odd n; 0 below 2 ranks */
	int32_t rounds;	    /* to run */
	int32_t stride;	    /* which of all: spread evenly */
	uint64_t pairs_all;
	uint64_t pairs;	 /* measured in these rounds */
	bool is_sampled; /* not all pairs; the caller reports it */
};

/*
 * At most `most_rounds` rounds (0: no limit). If not all fit, the selected rounds are spread evenly, to include
 * near and far partners.
 */
void pair_schedule_init(struct pair_schedule *schedule, int32_t ranks, int32_t most_rounds);

/* Sets peers[r] to r's partner in this round (0 .. rounds - 1), -1: none. Room for `ranks`. */
void pair_schedule_round(const struct pair_schedule *schedule, int32_t round, int32_t *peers);

/*
 * Judges whether the job's communication is healthy, from transfers between pairs (cells OP_SEND_RECV with peers)
 * and collectives of the whole job.
 *
 * Pairs are compared with those of the same kind of link: a pair is slow if it is below HEALTH_SLOW of the median
 * of its kind and also far outside of the spread (of the better half, so that up to half of the pairs can be slow).
 * If all pairs of a rank are slow, the rank is reported instead of the pairs; if all ranks of a node are, the node.
 * Kinds of links and collectives are compared with given expectations, if any. Fewer than HEALTH_PAIRS_LEAST pairs
 * of a kind are not judged, and the verdict says so.
 */

enum {
	HEALTH_PAIRS_LEAST = 4,
	HEALTH_SMALL_BYTES = 64 << 10, /* transfers up to this size show latency */
	HEALTH_LARGE_BYTES = 1 << 20,  /* from this size on, bandwidth */
};

enum health_link {
	HEALTH_SHARED_GPU = 0, /* two ranks on one GPU: they use sockets */
	HEALTH_INSIDE = 1,     /* one node, two GPUs */
	HEALTH_BETWEEN = 2,    /* two nodes */
	HEALTH_LINKS = 3,
};

const char *health_link_key(enum health_link link);

struct health_pair {
	int32_t first; /* < second */
	int32_t second;
	enum health_link link;
	double bandwidth;  /* GB/s per direction, both directions at once; 0: not measured */
	uint64_t bytes;	   /* size of these transfers */
	double latency_ns; /* of the smallest transfers, up to HEALTH_SMALL_BYTES; 0: not measured */
	uint64_t latency_bytes;
	size_t calls;
	bool is_slow; /* bandwidth: an outlier of its kind */
	bool is_late; /* latency likewise */
};

struct health_kind {
	size_t pairs;  /* with a bandwidth */
	double median; /* GB/s */
	double spread; /* robust standard deviation */
	double least;
	double most;
	size_t slowest; /* of pairs[]; SIZE_MAX none */
	size_t slow_pairs;
	double expected;   /* GB/s; 0: not given */
	size_t late_count; /* pairs with a latency outlier */
	size_t latency_pairs;
	double latency_median_ns;
	double latency_spread_ns;
	size_t latest; /* of pairs[], SIZE_MAX none */
};

/* One collective (or SendRecv around the ring) of the whole job: the best size of each function. */
struct health_collective {
	uint8_t function;
	uint64_t bytes;
	double time_ns; /* median */
	double busbw;
	double expected;  /* busbw in GB/s; 0: not given */
	unsigned int how; /* enum expected_how */
	bool is_slow;
};

enum health_finding_kind {
	HEALTH_WRONG_RESULTS = 1,
	HEALTH_SLOW_NODE = 2, /* all links of all its ranks */
	HEALTH_SLOW_RANK = 3, /* all its links of one kind */
	HEALTH_SLOW_PAIR = 4,
	HEALTH_LATE_RANK = 5,
	HEALTH_LATE_PAIR = 6,
	HEALTH_BELOW_EXPECTED = 7,  /* a whole kind of link */
	HEALTH_SLOW_COLLECTIVE = 8, /* below the expected bandwidth */
	HEALTH_GOT_SLOWER = 9,	    /* a collective, between the start and the end */
};

enum health_confidence { HEALTH_LIKELY = 1, HEALTH_CERTAIN = 2 };

struct health_finding {
	enum health_finding_kind kind;
	enum health_confidence confidence;
	enum health_link link;
	uint8_t function; /* for collectives and wrong results */
	int32_t rank;	  /* -1 none */
	int32_t peer;	  /* -1 none */
	int32_t node;	  /* -1 none */
	double value;	  /* GB/s, or ns for latency, or elements */
	double usual;	  /* the normal value: the median of its kind, or the expectation */
	double ratio;	  /* value / usual */
	char text[384];	  /* a sentence: what, where, by how much */
	char advice[256]; /* what to check; "" none */
};

enum { HEALTH_FINDINGS_MAX = 64, HEALTH_REASONS_MAX = 8 };

enum health_verdict {
	HEALTH_OK = 0,
	HEALTH_IS_SLOW = 1,
	HEALTH_IS_WRONG = 2, /* wrong results: nothing else matters */
	HEALTH_UNJUDGED = 3, /* too little data: `reasons` */
};

struct health {
	struct health_pair *pairs;
	size_t pair_count;
	uint64_t pairs_all; /* number of possible pairs: n (n - 1) / 2 */
	struct health_kind kinds[HEALTH_LINKS];
	struct health_collective collectives[16];
	size_t collective_count;
	struct health_finding findings[HEALTH_FINDINGS_MAX]; /* most serious kind first */
	size_t finding_count;
	size_t findings_lost;
	enum health_verdict verdict;
	int exit_code;			       /* enum cli_exit */
	char sentence[512];		       /* starts with the verdict's name and a colon */
	char reasons[HEALTH_REASONS_MAX][192]; /* what was not judged, and why */
	size_t reason_count;
	bool is_checked; /* results were checked */
};

struct health_options {
	double expected_gbs
		[HEALTH_LINKS]; /* expected bandwidth of a pair by kind of link; 0: not given */
	const struct expected *expected; /* for collectives; NULL: none */
	double slow; /* share of the normal or expected value that is still healthy; 0: HEALTH_SLOW */
	bool is_unjudged_fine; /* exit code 0 for HEALTH_UNJUDGED */
};

/* Borrows nothing. ERR_NO_SPACE; ERR_RANGE: a run without ranks. The caller releases. */
enum status health_find(struct health *health, const struct bench_run *run,
			const struct health_options *options);
void health_release(struct health *health);

/*
 * The health check as text: the verdict in one line, then findings, bandwidth by kind of link compared with the
 * expected one, collectives, the slowest pairs, a matrix of all pairs, what was not judged and why.
 * docs/BENCH.md has an example.
 */

struct health_text_options {
	unsigned int width; /* 0: unlimited */
	bool is_quiet;	    /* only the verdict line */
};

/* ERR_NO_SPACE, or the sink's status. */
enum status health_text(struct sink *sink, const struct health *health, const struct bench_run *run,
			const struct health_text_options *options);

/* "rank 2 (node01, GPU 1)"; returns `to`. */
enum { HEALTH_RANK_WORDS = 128 };
const char *health_rank_words(char to[static HEALTH_RANK_WORDS], const struct bench_run *run,
			      int32_t rank);

/*
 * The same as JSON: {"format":"ringside-health","version":1,...} with the whole measurement. docs/BENCH.md
 * documents the keys.
 */

/* The document and a newline. ERR_NO_SPACE, or the sink's status. */
enum status health_json(struct sink *sink, const struct health *health,
			const struct bench_run *run);

#endif
