/*
 * Iterations, from the repeating sequence of operations of one rank: no code changes needed.
 *
 * Each operation becomes a symbol (communicator, function, datatype, size). The period is found where the
 * sequence repeats; it may be interrupted by a warm-up, a checkpoint or an irregular iteration, after which
 * it is picked up again. docs/STATISTICS.md has the method.
 */
#ifndef ITERATIONS_H
#define ITERATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

enum {
	ITERATIONS_OPS_MAX = 1 << 20,	 /* operations examined */
	ITERATIONS_PERIOD_MAX = 1 << 16, /* operations of one iteration */
};

struct iteration {
	uint64_t first_op; /* how many operations of the rank came before it */
	uint32_t ops;
	uint64_t start_ns; /* call of its first operation (end, if that is unknown) */
	uint64_t end_ns;   /* start of the next one; end of its last operation for the last */
	uint32_t timed;	   /* of ops: with a duration; the next two are of these only */
	uint64_t busy_ns;  /* union of its operations' times, see collect.h */
	uint64_t sum_ns;   /* sum of their durations */
	uint64_t bytes;
	bool is_odd; /* between two runs of the pattern: a checkpoint, an evaluation, ... */
};

struct iterations {
	bool is_found;
	bool is_by_tag;		/* the user's tag marks iterations: it counts up */
	uint32_t rank;		/* index into job.ranks: the rank of these operations */
	uint32_t period_ops;	/* operations of a regular iteration */
	struct iteration *list; /* in order of time; times are common time */
	size_t count;
	size_t regular;		 /* of these: not irregular */
	uint64_t warm_up_ops;	 /* before the first */
	uint64_t tail_ops;	 /* after the last complete one */
	uint64_t ops;		 /* examined */
	bool is_cut;		 /* there were more than ITERATIONS_OPS_MAX */
	uint64_t median_ns;	 /* duration of regular ones */
	size_t timed;		 /* of regular: with all operations timed */
	uint64_t median_busy_ns; /* of these; 0 if there are none */
	uint64_t p99_ns;
	uint64_t slowest_ns;
	size_t slowest; /* index into list */
};

/* One operation as the detection sees it. */
struct iterations_op {
	uint32_t symbol;
	uint32_t reserved;
	uint64_t tag;
	uint64_t issue_ns; /* 0 unknown */
	uint64_t done_ns;  /* 0 unknown */
	uint64_t duration_ns;
	uint64_t bytes;
	bool is_timed; /* false: no duration */
};

/* ops in the order of issue; kept by the caller. ERR_NO_SPACE. */
enum status iterations_find(struct iterations *iterations, const struct iterations_op *ops,
			    size_t count);
void iterations_release(struct iterations *iterations);

#endif
