/* Between the files that compare profilers; others use profilers.h. */
#ifndef PROFILERS_PARTS_H
#define PROFILERS_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/bench_result.h"
#include "bench/profilers.h"
#include "common/status.h"

/* A list that grows: `items` of `size` bytes each. */
struct profilers_list {
	void *items;
	size_t size;
	size_t count;
	size_t room;
};

/* Room for one more, all zero; NULL: no memory, or past `most`. */
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

/* Ratios of reported to measured times. Source OP_TIME_SOURCES: how many calls were measured, no values. */
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
	size_t room;
};

struct profilers {
	struct profilers_comparison out;
	struct profilers_list complete;	 /* struct profilers_complete, unmerged */
	struct profilers_list samples;	 /* struct profilers_sample */
	struct profilers_list ratios;	 /* struct profilers_ratios */
	struct profilers_list jobs;	 /* struct profilers_jobs */
	struct profilers_list trainings; /* struct profilers_training, problem not kept */
	char problems[PROFILERS_PLUGINS_MAX][PROFILERS_TEXT_BYTES]; /* of trainings, the last */
};

/* ---- what was issued: profilers_issue.c ------------------------------------------------------- */

/* What a record can be told by. */
struct profilers_key {
	uint8_t function;
	bool is_align;
	uint64_t bytes;	     /* 0 for alignment */
	uint64_t part_bytes; /* of one rank: what NCCL shows; 0 where nothing was issued */
};

/* NCCL operations of one function and size that a step of a cell is on one rank. */
struct profilers_part {
	struct profilers_key key;
	uint64_t per_step;
};

enum { PROFILERS_PARTS_MAX = 2, PROFILERS_KEYS_MAX = 4096 };

/* How many; 0: the rank does not take part. */
size_t profilers_parts_of(const struct bench_run *bench, const struct bench_cell *cell,
			  int32_t rank, struct profilers_part parts[PROFILERS_PARTS_MAX]);

/* One per rank and key. */
struct profilers_tally {
	uint64_t issued;
	uint64_t recorded;
	uint64_t untimed;
};

/* All keys of a job, and what was issued and recorded of each. */
struct profilers_ledger {
	const struct bench_run *bench;
	struct profilers_list
		keys; /* struct profilers_key: issued first, then what else was recorded */
	size_t issued_keys;
	struct profilers_tally
		*tallies; /* [(rank + 1) * PROFILERS_KEYS_MAX + key]: see ledger_tally() */
	size_t key_room;
};

enum status profilers_ledger_init(struct profilers_ledger *ledger, const struct bench_run *bench);
void profilers_ledger_release(struct profilers_ledger *ledger);
/* The place of a recorded operation's key, a new one where nothing like it was issued; -1: no room. */
long profilers_ledger_find(struct profilers_ledger *ledger, uint8_t function, uint64_t bytes);
/* `rank` -1: nobody knows whose it is. */
struct profilers_tally *profilers_ledger_tally(struct profilers_ledger *ledger, int32_t rank,
					       size_t key);
static inline const struct profilers_key *profilers_ledger_key(
	const struct profilers_ledger *ledger, size_t key)
{
	return (const struct profilers_key *)ledger->keys.items + key;
}

/* ---- what was recorded: profilers_take.c ------------------------------------------------------ */

struct profilers_record {
	uint32_t key; /* in the ledger */
	int32_t rank; /* -1 unknown */
	uint32_t comm;
	uint8_t source;
	uint64_t number; /* order of issue in its communicator */
	uint64_t duration_ns;
	uint64_t wall_ns; /* when it was issued; 0 unknown */
};

/* All records of a recording into the ledger's counts and a list, sorted by rank, key, order. */
enum status profilers_take_records(struct profilers_ledger *ledger,
				   const struct recording *recording,
				   struct profilers_list *records);
/* What the plugin itself says it lost. False: it does not say. */
bool profilers_take_lost(const struct recording *recording, enum profilers_kind kind,
			 uint64_t *lost);
/* The rank whose process this is; -1: none, or several. */
int32_t profilers_rank_of_pid(const struct bench_run *bench, const char *host, int64_t pid);

/* ---- joining: profilers_join.c, profilers_ncclsee.c ------------------------------------------- */

/* Counts of the ledger become rows. */
enum status profilers_add_complete(struct profilers *work, const struct profilers_trial *trial,
				   uint8_t mode, struct profilers_ledger *ledger);
/* Where the ratios of a function and size are collected; NULL: no memory. */
struct profilers_ratios *profilers_ratios_of(struct profilers *work,
					     const struct profilers_ratios *like);
bool profilers_ratios_add(struct profilers_ratios *ratios, double value);
enum status profilers_join(struct profilers *work, const struct profilers_trial *trial,
			   uint8_t mode, struct profilers_ledger *ledger,
			   const struct profilers_list *records);
enum status profilers_take_ncclsee(struct profilers *work, const struct profilers_trial *trial,
				   uint8_t mode);

/* ---- overhead and the end: profilers_overhead.c, profilers_training.c, profilers_finish.c ------ */

enum status profilers_take_times(struct profilers *work, const struct profilers_trial *trial);
enum status profilers_make_overhead(struct profilers *work);
enum status profilers_make_training(struct profilers *work);
struct profilers_quantiles profilers_quantiles_of(double *values, size_t count);

#endif
