/*
 * Who is late, from sums. All members of a communicator make the same collectives; of one function and one
 * class of size, after equally many,
 *
 *	wait(r) = time(r) - the least time of a member
 *
 * and the one who is waited for has the least time. Members are not asked at the same moment, so numbers differ
 * by a few: times are per operation, for the number of the slowest; where numbers differ by more than one part
 * in eight nothing is joined.
 */
#include "doctor/slow_sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/text.h"
#include "doctor/slow_sums_find.h"
#include "timeline/meet.h"

static const double uneven = 0.125;

/* ---- order ----------------------------------------------------------------------------------- */

int sums_by_comm(const struct slow_member *a, const struct slow_member *b)
{
	int order = strcmp(a->job, b->job);

	if (order != 0 || a->comm_hash == b->comm_hash)
		return order;
	return a->comm_hash < b->comm_hash ? -1 : 1;
}

int sums_by_kind(const struct slow_member *a, const struct slow_member *b)
{
	int order = sums_by_comm(a, b);

	if (order != 0)
		return order;
	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	return strcmp(a->size, b->size);
}

static int by_rank(const struct slow_member *a, const struct slow_member *b)
{
	return a->comm_rank < b->comm_rank ? -1 : a->comm_rank > b->comm_rank;
}

static int compare_rows(const void *left, const void *right)
{
	const struct sums_row *a = left, *b = right;
	int order = sums_by_kind(a->of, b->of);

	return order != 0 ? order : by_rank(a->of, b->of);
}

static int compare_seats(const void *left, const void *right)
{
	const struct sums_seat *a = left, *b = right;
	int order = sums_by_comm(a->of, b->of);

	return order != 0 ? order : by_rank(a->of, b->of);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static bool is_usable(const struct slow_member *member)
{
	return member->comm_hash != 0 && meet_is_synchronising(member->function) &&
	       member->operations > 0 && member->seconds > 0 && isfinite(member->operations) &&
	       isfinite(member->seconds) && isfinite(member->bus_bytes);
}

static void fill_rows(struct sums_table *table, const struct slow_sums *sums)
{
	size_t kept = 0, count = 0;

	for (size_t i = 0; i < sums->member_count; i++) {
		const struct slow_member *of = &sums->members[i];

		if (is_usable(of))
			table->rows[count++] = (struct sums_row){ of, of->operations, of->seconds,
								  of->bus_bytes, 0 };
	}
	qsort(table->rows, count, sizeof(*table->rows), compare_rows);
	for (size_t i = 0; i < count; i++) {
		struct sums_row *last = kept > 0 ? &table->rows[kept - 1] : NULL;

		if (last == NULL || compare_rows(last, &table->rows[i]) != 0) {
			table->rows[kept++] = table->rows[i];
			continue;
		}
		last->operations += table->rows[i].operations;
		last->seconds += table->rows[i].seconds;
		last->bus_bytes += table->rows[i].bus_bytes;
	}
	table->row_count = kept;
}

static void fill_seats(struct sums_table *table)
{
	size_t kept = 0;

	for (size_t i = 0; i < table->row_count; i++)
		table->seats[i] = (struct sums_seat){ .of = table->rows[i].of };
	qsort(table->seats, table->row_count, sizeof(*table->seats), compare_seats);
	for (size_t i = 0; i < table->row_count; i++)
		if (kept == 0 || compare_seats(&table->seats[kept - 1], &table->seats[i]) != 0)
			table->seats[kept++] = table->seats[i];
	table->seat_count = kept;
}

static struct sums_seat *find_seat(const struct sums_table *table, const struct slow_member *of)
{
	struct sums_seat key = { .of = of };

	return bsearch(&key, table->seats, table->seat_count, sizeof(key), compare_seats);
}

const struct sums_seat *sums_table_seat(const struct sums_table *table, const char *job,
					uint64_t comm_hash, int32_t comm_rank)
{
	struct slow_member key = { .job = job, .comm_hash = comm_hash, .comm_rank = comm_rank };

	return table->seat_count > 0 ? find_seat(table, &key) : NULL;
}

/* rows[from .. to - 1] are the members' of one function and size. */
static void join_group(struct sums_table *table, size_t from, size_t to)
{
	struct sums_group *group = &table->groups[table->group_count++];
	double fewest = INFINITY, most = 0, least = INFINITY;

	*group = (struct sums_group){ .of = table->rows[from].of };
	for (size_t i = from; i < to; i++) {
		const struct sums_row *row = &table->rows[i];

		fewest = fmin(fewest, row->operations);
		most = fmax(most, row->operations);
		group->busbw = fmax(group->busbw, row->bus_bytes / row->seconds);
		group->bus_bytes += row->bus_bytes / (double)(to - from);
	}
	if (to - from < 2 || most - fewest > uneven * most)
		return;
	for (size_t i = from; i < to; i++)
		least = fmin(least, table->rows[i].seconds / table->rows[i].operations * fewest);
	for (size_t i = from; i < to; i++) {
		const struct sums_row *row = &table->rows[i];
		struct sums_seat *seat = &table->seats[row->seat];
		double time = row->seconds / row->operations * fewest;

		seat->time += time;
		seat->wait += time - least;
	}
}

enum status sums_table_make(struct sums_table *table, const struct slow_sums *sums)
{
	size_t room = sums->member_count + 1, next;

	*table = (struct sums_table){ .rows = calloc(room, sizeof(*table->rows)),
				      .seats = calloc(room, sizeof(*table->seats)),
				      .groups = calloc(room, sizeof(*table->groups)) };
	if (table->rows == NULL || table->seats == NULL || table->groups == NULL) {
		sums_table_release(table);
		return ERR_NO_SPACE;
	}
	fill_rows(table, sums);
	fill_seats(table);
	for (size_t i = 0; i < table->row_count; i++)
		table->rows[i].seat =
			(uint32_t)(find_seat(table, table->rows[i].of) - table->seats);
	for (size_t i = 0; i < table->row_count; i = next) {
		for (next = i; next < table->row_count &&
			       sums_by_kind(table->rows[i].of, table->rows[next].of) == 0;)
			next++;
		join_group(table, i, next);
	}
	return OK;
}

void sums_table_release(struct sums_table *table)
{
	free(table->rows);
	free(table->seats);
	free(table->groups);
	*table = (struct sums_table){ .rows = NULL };
}

/* ---- verdicts -------------------------------------------------------------------------------- */

struct verdict *sums_verdict(struct sums_search *search, enum verdict_class class, const char *job,
			     const char *rule)
{
	struct verdict *verdict = verdicts_add(search->verdicts, class, VERDICT_WARNING);

	text_copy(verdict->job, sizeof(verdict->job), job);
	text_copy(verdict->rule, sizeof(verdict->rule), rule);
	verdict->for_ns = units_whole(search->now->seconds * 1e9);
	if (search->options->now_wall_ns > verdict->for_ns)
		verdict->since_wall_ns = search->options->now_wall_ns - verdict->for_ns;
	return verdict;
}

void sums_fill_member(struct verdict *verdict, const struct slow_member *member)
{
	verdict->rank = member->rank;
	verdict->pid = member->pid;
	verdict->gpu = member->gpu;
	verdict->comm_hash = member->comm_hash;
	verdict->comm_rank = member->comm_rank;
	text_copy(verdict->host, sizeof(verdict->host), member->host);
	text_copy(verdict->comm, sizeof(verdict->comm), member->comm);
	if (member->rank >= 0)
		text_format(verdict->rank_label, sizeof(verdict->rank_label), "%lld",
			    (long long)member->rank);
	else
		text_format(verdict->rank_label, sizeof(verdict->rank_label), "%.40s:%lld",
			    member->host, (long long)member->pid);
}

void sums_fill_cost(struct sums_search *search, struct verdict *verdict, double lost_s)
{
	verdict->gpu_hours = lost_s / 3600;
	verdict->money = verdict->gpu_hours * search->options->gpu_hour_price;
}

enum status slow_find_sums(struct verdicts *verdicts, const struct slow_sums *now,
			   const struct slow_sums_options *options)
{
	struct sums_search search = { .verdicts = verdicts,
				      .now = now,
				      .options = options,
				      .threshold =
					      options->threshold > 0 ? options->threshold : 0.1,
				      .first = verdicts->count };

	search.status = sums_table_make(&search.table, now);
	if (search.status == OK && options->before != NULL)
		search.status = sums_table_make(&search.before, options->before);
	if (search.status == OK)
		sums_find_links(&search);
	if (search.status == OK)
		sums_find_late(&search);
	if (search.status == OK)
		sums_find_moves(&search);
	sums_table_release(&search.table);
	sums_table_release(&search.before);
	return search.status;
}
