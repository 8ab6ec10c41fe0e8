/* How slowness is found from sums. For the room's own use. */
#ifndef SLOW_SUMS_FIND_H
#define SLOW_SUMS_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "doctor/slow_sums.h"

/* One member's sums of one function and size, those that occurred twice added up. */
struct sums_row {
	const struct slow_member *of;
	double operations;
	double seconds;
	double bus_bytes;
	uint32_t seat;
};

/* One member of one communicator, over all functions and sizes that its members could be joined in. */
struct sums_seat {
	const struct slow_member *of;
	double time;   /* in collectives */
	double wait;   /* at least */
	double delay;  /* the others, all but a quarter, wait for it so long */
	double caused; /* waiting of the others that would not have been without it */
	bool is_least; /* nobody of its communicator waited less */
};

/* All members' transfers of one function and size: the one that waits least tells their speed. */
struct sums_group {
	const struct slow_member *of;
	double busbw;
	double bus_bytes; /* of a member, the mean */
};

struct sums_table {
	struct sums_row *rows; /* by communicator, function, size, rank */
	size_t row_count;
	struct sums_seat *seats; /* by communicator and rank */
	size_t seat_count;
	struct sums_group *groups; /* by communicator, function, size */
	size_t group_count;
};

enum status sums_table_make(struct sums_table *table, const struct slow_sums *sums);
void sums_table_release(struct sums_table *table);

/* NULL: no such member. */
const struct sums_seat *sums_table_seat(const struct sums_table *table, const char *job,
					uint64_t comm_hash, int32_t comm_rank);

/* By job, communicator; then function and size for rows and groups. */
int sums_by_comm(const struct slow_member *a, const struct slow_member *b);
int sums_by_kind(const struct slow_member *a, const struct slow_member *b);

struct sums_search {
	struct verdicts *verdicts;
	const struct slow_sums *now;
	const struct slow_sums_options *options;
	double threshold;
	size_t first; /* verdicts[first...] are ours */
	struct sums_table table;
	struct sums_table before;
	enum status status;
};

struct verdict *sums_verdict(struct sums_search *search, enum verdict_class class, const char *job,
			     const char *rule);
void sums_fill_member(struct verdict *verdict, const struct slow_member *member);
void sums_fill_cost(struct sums_search *search, struct verdict *verdict, double lost_s);

void sums_find_late(struct sums_search *search);
void sums_find_links(struct sums_search *search);
void sums_find_moves(struct sums_search *search);

#endif
