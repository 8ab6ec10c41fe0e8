/*
 * Is this job's communication healthy? From transfers between pairs (cells OP_SEND_RECV with peers)
 * and collectives of the whole job.
 *
 * Pairs are judged among those of their own kind of link: a pair is slow when it is both below
 * HEALTH_SLOW of the median of its kind and far outside of its kind's spread (of the better half,
 * so that half of the pairs may be slow). When all pairs of a rank are slow the rank is named and
 * not the pairs, when all ranks of a node are, the node. Against numbers from outside: kinds of
 * links and collectives, where there are such. Nothing is judged from fewer than HEALTH_PAIRS_LEAST
 * pairs of a kind; then the verdict says that it could not.
 */
#ifndef LINK_HEALTH_H
#define LINK_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/bench_result.h"
#include "common/status.h"
#include "import/expected.h"

#define HEALTH_SLOW 0.8	      /* of the median of its kind, or of what was expected: bandwidth */
#define HEALTH_LATE 1.5	      /* times the median of its kind: latency */
#define HEALTH_DEVIATIONS 4.0 /* robust standard deviations */
enum {
	HEALTH_PAIRS_LEAST = 4,
	HEALTH_SMALL_BYTES = 64 << 10, /* up to here a transfer tells latency */
	HEALTH_LARGE_BYTES = 1 << 20,  /* from here on bandwidth */
};

enum health_link {
	HEALTH_SHARED_GPU = 0, /* two ranks on one GPU: they talk through sockets */
	HEALTH_INSIDE = 1,     /* one node, two GPUs */
	HEALTH_BETWEEN = 2,    /* two nodes */
	HEALTH_LINKS = 3,
};

/* For people: "on one GPU", "inside a node", "between nodes"; for options and JSON: "shared",
 * "inside", "between". */
const char *health_link_name(enum health_link link);
const char *health_link_key(enum health_link link);

struct health_pair {
	int32_t first; /* < second */
	int32_t second;
	enum health_link link;
	double bandwidth;  /* GB/s in each direction, both at once; 0 not measured */
	uint64_t bytes;	   /* of the transfers that it is from */
	double latency_ns; /* of the smallest transfers, up to HEALTH_SMALL_BYTES; 0 not measured */
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
	double expected;   /* GB/s; 0: nobody told */
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
	double expected;  /* GB/s busbw; 0: nobody told */
	unsigned int how; /* enum expected_how */
	bool is_slow;
};

enum health_finding_kind {
	HEALTH_WRONG_RESULTS = 1,
	HEALTH_SLOW_NODE = 2, /* all links of all its ranks */
	HEALTH_SLOW_RANK = 3, /* all its links of a kind */
	HEALTH_SLOW_PAIR = 4,
	HEALTH_LATE_RANK = 5,
	HEALTH_LATE_PAIR = 6,
	HEALTH_BELOW_EXPECTED = 7,  /* a kind of link as a whole */
	HEALTH_SLOW_COLLECTIVE = 8, /* below what was expected */
	HEALTH_GOT_SLOWER = 9,	    /* a collective, from the beginning to the end */
};

enum health_confidence { HEALTH_LIKELY = 1, HEALTH_CERTAIN = 2 };

struct health_finding {
	enum health_finding_kind kind;
	enum health_confidence confidence;
	enum health_link link;
	uint8_t function; /* collectives, wrong results */
	int32_t rank;	  /* -1 none */
	int32_t peer;	  /* -1 none */
	int32_t node;	  /* -1 none */
	double value;	  /* GB/s, or ns for latency, or elements */
	double usual;	  /* what it should be: the median of its kind, or the expectation */
	double ratio;	  /* value / usual */
	char text[384];	  /* a sentence: what, where, by how much */
	char advice[256]; /* what to look at; "" none */
};

enum { HEALTH_FINDINGS_MAX = 64, HEALTH_REASONS_MAX = 8 };

enum health_verdict {
	HEALTH_OK = 0,
	HEALTH_IS_SLOW = 1,
	HEALTH_IS_WRONG = 2, /* wrong results: nothing else matters */
	HEALTH_UNJUDGED = 3, /* too little to go by: `reasons` */
};

struct health {
	struct health_pair *pairs;
	size_t pair_count;
	uint64_t pairs_all; /* that there are: n (n - 1) / 2 */
	struct health_kind kinds[HEALTH_LINKS];
	struct health_collective collectives[16];
	size_t collective_count;
	struct health_finding findings[HEALTH_FINDINGS_MAX]; /* the worst kind first */
	size_t finding_count;
	size_t findings_lost;
	enum health_verdict verdict;
	int exit_code;	    /* 0 healthy; 1 slow, wrong results, or could not be judged */
	char sentence[512]; /* begins with the verdict's name and a colon */
	char reasons[HEALTH_REASONS_MAX][192]; /* what could not be judged, and why */
	size_t reason_count;
	bool is_checked; /* results were compared with what they must be */
};

struct health_options {
	double expected_gbs[HEALTH_LINKS]; /* bandwidth of a pair per kind of link; 0: not told */
	const struct expected *expected;   /* for collectives; NULL: none */
	double slow; /* share of the usual or expected that is still fine; 0: HEALTH_SLOW */
	bool is_unjudged_fine; /* exit code 0 for HEALTH_UNJUDGED */
};

/* Borrows nothing. ERR_NO_SPACE; ERR_RANGE: a run without ranks. The caller releases. */
enum status health_find(struct health *health, const struct bench_run *run,
			const struct health_options *options);
void health_release(struct health *health);

/* "healthy", "slow", "wrong results", "not judged" */
const char *health_verdict_name(enum health_verdict verdict);
const char *health_finding_name(enum health_finding_kind kind);	       /* "slow_rank" */
const char *health_confidence_name(enum health_confidence confidence); /* "likely", "certain" */

/* Of two ranks. */
enum health_link health_link_of(const struct bench_run *run, int32_t first, int32_t second);

#endif
