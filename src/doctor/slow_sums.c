/*
 * Stragglers from totals. All ranks of a communicator make the same collectives; for one function and one
 * size class, after equally many,
 *
 *	wait(r) = time(r) - the least time of a rank
 *
 * and the straggler has the least time. Ranks are not scraped at the same moment, so numbers differ by a
 * few: times are per operation, for the number of the slowest; if numbers differ by more than one part in
 * eight nothing is matched.
 */
#include "doctor/doctor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/match.h"
#include "analysis/stats.h"
#include "common/attributes.h"
#include "common/text.h"

/* One rank's totals of one function and size, duplicates added up. Seconds and bytes are those of all
 * operations: of the timed ones, scaled up. */
struct sums_row {
	const struct slow_member *of;
	double operations;
	double timed;
	double seconds;
	double bus_bytes;
	uint32_t seat;
};

/* One rank of one communicator, over all functions and sizes that could be matched. */
struct sums_seat {
	const struct slow_member *of;
	double time;   /* in collectives */
	double wait;   /* at least */
	double delay;  /* how long the others, all but a quarter, wait for it */
	double caused; /* waiting of the others that would not have happened without it */
	bool is_least; /* no rank of its communicator waited less */
};

/* All ranks' operations of one function and size: the one that waits least shows their speed. */
struct sums_group {
	const struct slow_member *of;
	double busbw;
	double bus_bytes; /* of a rank, mean */
};

struct sums_table {
	struct sums_row *rows; /* by communicator, function, size, rank */
	size_t row_count;
	struct sums_seat *seats; /* by communicator and rank */
	size_t seat_count;
	struct sums_group *groups; /* by communicator, function, size */
	size_t group_count;
};

/* A communicator's operations, now and at the speeds before. */
struct move {
	const struct slow_member *of;
	double now_s;
	double then_s;
	bool is_counted; /* it spends enough time in transfers to be judged */
	bool is_slow;
};

struct sums_search {
	struct verdicts *verdicts;
	const struct slow_sums *now;
	const struct slow_sums_options *options;
	double threshold;
	size_t first; /* verdicts[first...] are ours */
	struct sums_table table;
	struct sums_table before;
	struct move *moves; /* by communicator: those that both tables have */
	size_t move_count;
	enum status status;
};

static const double uneven = 0.125;

/* ---- order ----------------------------------------------------------------------------------- */

static int compare_comms(const char *a_job, uint64_t a_hash, const char *b_job, uint64_t b_hash)
{
	return strcmp(a_job, b_job) ?: ORDER(a_hash, b_hash);
}

/* By job, communicator; then function and size for rows and groups. */
static int sums_by_comm(const struct slow_member *a, const struct slow_member *b)
{
	return compare_comms(a->job, a->comm_hash, b->job, b->comm_hash);
}

static int sums_by_kind(const struct slow_member *a, const struct slow_member *b)
{
	return sums_by_comm(a, b) ?: ORDER(a->function, b->function) ?: strcmp(a->size, b->size);
}

static int compare_rows(const void *left, const void *right)
{
	const struct sums_row *a = left, *b = right;

	return sums_by_kind(a->of, b->of) ?: ORDER(a->of->comm_rank, b->of->comm_rank);
}

static int compare_seats(const void *left, const void *right)
{
	const struct sums_seat *a = left, *b = right;

	return sums_by_comm(a->of, b->of) ?: ORDER(a->of->comm_rank, b->of->comm_rank);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static bool member_is_usable(const struct slow_member *member)
{
	return member->comm_hash != 0 && match_is_synchronising(member->function) &&
	       member->operations > 0 && member->seconds > 0 && isfinite(member->operations) &&
	       isfinite(member->timed) && isfinite(member->seconds) && isfinite(member->bus_bytes);
}

static struct sums_row row_of(const struct slow_member *of)
{
	bool is_sampled = of->timed > 0 && of->timed < of->operations;
	double scale = is_sampled ? of->operations / of->timed : 1;

	return (struct sums_row){ .of = of,
				  .operations = of->operations,
				  .timed = of->operations / scale,
				  .seconds = of->seconds * scale,
				  .bus_bytes = of->bus_bytes * scale };
}

static void fill_rows(struct sums_table *table, const struct slow_sums *sums)
{
	size_t kept = 0, count = 0;

	for (size_t i = 0; i < sums->member_count; i++) {
		const struct slow_member *of = &sums->members[i];

		if (member_is_usable(of))
			table->rows[count++] = row_of(of);
	}
	qsort(table->rows, count, sizeof(*table->rows), compare_rows);
	for (size_t i = 0; i < count; i++) {
		struct sums_row *last = kept > 0 ? &table->rows[kept - 1] : NULL;

		if (last == NULL || compare_rows(last, &table->rows[i]) != 0) {
			table->rows[kept++] = table->rows[i];
			continue;
		}
		last->operations += table->rows[i].operations;
		last->timed += table->rows[i].timed;
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

/* NULL: no such rank. */
static const struct sums_seat *sums_table_seat(const struct sums_table *table, const char *job,
					       uint64_t comm_hash, int32_t comm_rank)
{
	struct slow_member key = { .job = job, .comm_hash = comm_hash, .comm_rank = comm_rank };

	return table->seat_count > 0 ? find_seat(table, &key) : NULL;
}

/* Did they do equally many? Also of timed ones: with unequal numbers they are not the same ones. */
static bool is_even(const struct sums_row *rows, size_t count)
{
	double fewest = INFINITY, most = 0, fewest_timed = INFINITY, most_timed = 0;

	for (size_t i = 0; i < count; i++) {
		fewest = fmin(fewest, rows[i].operations);
		most = fmax(most, rows[i].operations);
		fewest_timed = fmin(fewest_timed, rows[i].timed);
		most_timed = fmax(most_timed, rows[i].timed);
	}
	return most - fewest <= uneven * most && most_timed - fewest_timed <= uneven * most_timed;
}

/* rows[from .. to - 1] are the ranks' rows of one function and size. */
static void join_group(struct sums_table *table, size_t from, size_t to)
{
	struct sums_group *group = &table->groups[table->group_count++];
	double fewest = INFINITY, least = INFINITY;

	*group = (struct sums_group){ .of = table->rows[from].of };
	for (size_t i = from; i < to; i++) {
		const struct sums_row *row = &table->rows[i];

		fewest = fmin(fewest, row->operations);
		group->busbw = fmax(group->busbw, row->bus_bytes / row->seconds);
		group->bus_bytes += row->bus_bytes / (double)(to - from);
	}
	if (to - from < 2 || !is_even(&table->rows[from], to - from))
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

static void sums_table_release(struct sums_table *table)
{
	free(table->rows);
	free(table->seats);
	free(table->groups);
	*table = (struct sums_table){ .rows = NULL };
}

static enum status sums_table_make(struct sums_table *table, const struct slow_sums *sums)
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

/* ---- verdicts -------------------------------------------------------------------------------- */

static struct verdict *sums_verdict(struct sums_search *search, enum verdict_class class,
				    const char *job, const char *rule)
{
	struct verdict *verdict = verdicts_add(search->verdicts, class, VERDICT_WARNING);

	text_copy(verdict->job, sizeof(verdict->job), job);
	text_copy(verdict->rule, sizeof(verdict->rule), rule);
	verdict_set_page(verdict);
	verdict->for_ns = units_whole(search->now->seconds * 1e9);
	if (search->options->now_wall_ns > verdict->for_ns)
		verdict->since_wall_ns = search->options->now_wall_ns - verdict->for_ns;
	return verdict;
}

/* Its number, or where it is. */
static void say_rank(char *text, size_t size, const struct slow_member *member)
{
	if (member->rank >= 0)
		text_format(text, size, "%lld", (long long)member->rank);
	else
		text_format(text, size, "%.40s:%lld", member->host, (long long)member->pid);
}

static void sums_fill_member(struct verdict *verdict, const struct slow_member *member)
{
	verdict->rank = member->rank;
	verdict->pid = member->pid;
	verdict->gpu = member->gpu;
	verdict->comm_hash = member->comm_hash;
	verdict->comm_rank = member->comm_rank;
	text_copy(verdict->host, sizeof(verdict->host), member->host);
	text_copy(verdict->comm, sizeof(verdict->comm), member->comm);
	say_rank(verdict->rank_label, sizeof(verdict->rank_label), member);
}

static void sums_fill_cost(struct sums_search *search, struct verdict *verdict, double lost_s)
{
	verdict->gpu_hours = lost_s / 3600;
	verdict->money = verdict->gpu_hours * search->options->gpu_hour_price;
}

/* ---- stragglers ------------------------------------------------------------------------------ */

/*
 * Stragglers: the rule of the alert NcclStraggler (deploy/prometheus). The others, all but a quarter of
 * them, spend more time in the same collectives than it does, by at least a tenth of all time; and it
 * hardly waits itself on another communicator, otherwise it is a victim there.
 */

static const double own_wait = 0.5; /* of its delay */

/* 75% of the ranks spend at most this long, as in PromQL's quantile(). */
static double upper_quarter(const double *sorted, size_t count)
{
	double place = 0.75 * (double)(count - 1);
	size_t below = (size_t)place;
	double share = place - (double)below;

	return below + 1 < count ? sorted[below] * (1 - share) + sorted[below + 1] * share
				 : sorted[below];
}

static void late_in_comm(struct sums_search *search, size_t from, size_t to, double *times)
{
	struct sums_seat *seats = search->table.seats;
	double usual, gap;

	if (to - from < 2)
		return;
	for (size_t i = from; i < to; i++)
		times[i - from] = seats[i].time;
	stats_sort(times, to - from);
	usual = upper_quarter(times, to - from);
	gap = times[1] - times[0];
	for (size_t i = from; i < to; i++) {
		seats[i].delay = fmax(0, usual - seats[i].time);
		seats[i].is_least = seats[i].time <= times[0];
		seats[i].caused = seats[i].is_least ? gap * (double)(to - from - 1) : 0;
	}
}

static size_t comm_end(const struct sums_table *table, size_t from)
{
	size_t to = from;

	while (to < table->seat_count &&
	       sums_by_comm(table->seats[from].of, table->seats[to].of) == 0)
		to++;
	return to;
}

/* All seats of one process, by its identity. */
static int by_process(const void *left, const void *right)
{
	const struct sums_seat *a = *(struct sums_seat *const *)left;
	const struct sums_seat *b = *(struct sums_seat *const *)right;

	return strcmp(a->of->job, b->of->job) ?:
	       strcmp(a->of->host, b->of->host) ?:
	       ORDER(a->of->pid, b->of->pid) ?:
	       ORDER(a->of->rank, b->of->rank) ?:
	       ORDER(b->delay, a->delay);
}

static bool is_same_process(const struct sums_seat *a, const struct sums_seat *b)
{
	return strcmp(a->of->job, b->of->job) == 0 && strcmp(a->of->host, b->of->host) == 0 &&
	       a->of->pid == b->of->pid && a->of->rank == b->of->rank;
}

/* Its delay relative to the time span, or if unknown to the others' time. Increases over a short span are
 * extrapolated: they may exceed it a little. */
static double share_of(const struct sums_search *search, const struct sums_seat *seat)
{
	double whole = search->now->seconds > 0 ? search->now->seconds : seat->time + seat->delay;

	return whole > 0 ? fmin(seat->delay / whole, 1) : 0;
}

struct late {
	const struct sums_seat *seat;
	bool is_told;
};

static bool is_link_end(const struct sums_search *search, const struct sums_seat *seat)
{
	for (size_t i = search->first; i < search->verdicts->count; i++) {
		const struct verdict *verdict = &search->verdicts->list[i];

		if (verdict->class == VERDICT_SLOW_LINK && seat->of->rank >= 0 &&
		    strcmp(verdict->job, seat->of->job) == 0 &&
		    (verdict->rank == seat->of->rank || verdict->peer == seat->of->rank))
			return true;
	}
	return false;
}

static size_t find_late(const struct sums_search *search, struct sums_seat **order, size_t count,
			struct late *late)
{
	size_t found = 0, next;

	for (size_t i = 0; i < count; i = next) {
		double wait = 0;

		for (next = i; next < count && is_same_process(order[i], order[next]); next++)
			wait += order[next]->wait;
		if (search->now->seconds > 0)
			wait = fmin(wait, search->now->seconds);
		if (share_of(search, order[i]) > search->threshold &&
		    wait <= own_wait * order[i]->delay && !is_link_end(search, order[i]))
			late[found++] = (struct late){ order[i], false };
	}
	return found;
}

static void tell_rank(struct sums_search *search, const struct sums_seat *seat, size_t members)
{
	struct verdict *verdict = sums_verdict(search, VERDICT_SLOW_RANK, seat->of->job, "others");
	double share = share_of(search, seat);

	sums_fill_member(verdict, seat->of);
	verdict->victims = members > 0 ? (uint32_t)members - 1 : 0;
	verdict->percent = 100 * share;
	/* Totals show it overall, not for each operation. */
	verdict->confidence = 0.9;
	sums_fill_cost(search, verdict, seat->caused);
	verdict_title(verdict, "straggler: rank %.24s on %.100s", verdict->rank_label,
		      seat->of->host);
	verdict_evidence(verdict,
			 "The other ranks of %.100s wait in collectives until it arrives, %.0f%% "
			 "of the time; it hardly waits itself.",
			 seat->of->comm, 100 * share);
	verdict_missing(verdict, "Based on totals, not on individual collectives; a trace shows "
				 "when and how often.");
	verdict_advice(verdict,
		       "Check GPU clocks and temperature, data loading and other processes there.");
	verdict_advice(verdict, "$ ssh %.200s nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE,ECC",
		       seat->of->host);
}

static bool is_on(const struct sums_seat *seat, const struct sums_seat *like)
{
	return sums_by_comm(seat->of, like->of) == 0 && strcmp(seat->of->host, like->of->host) == 0;
}

/* All ranks of a host in the communicator are late: it is the host. */
static bool tell_host(struct sums_search *search, struct late *late, size_t count, size_t which)
{
	const struct sums_seat *first = late[which].seat;
	size_t here = 0, all = 0, slow = 0;
	struct verdict *verdict;

	for (size_t i = 0; i < search->table.seat_count; i++) {
		all += sums_by_comm(search->table.seats[i].of, first->of) == 0;
		here += is_on(&search->table.seats[i], first);
	}
	for (size_t i = 0; i < count; i++)
		slow += is_on(late[i].seat, first) && late[i].seat->delay * 2 >= first->delay;
	if (here < 2 || slow < here || all == here)
		return false;
	for (size_t i = 0; i < count; i++)
		late[i].is_told |= is_on(late[i].seat, first);
	verdict = sums_verdict(search, VERDICT_SLOW_HOST, first->of->job, "others");
	text_copy(verdict->host, sizeof(verdict->host), first->of->host);
	text_copy(verdict->comm, sizeof(verdict->comm), first->of->comm);
	verdict->comm_hash = first->of->comm_hash;
	verdict->victims = (uint32_t)(all - here);
	verdict->percent = 100 * share_of(search, first);
	verdict->confidence = 0.9;
	sums_fill_cost(search, verdict, first->delay * (double)(all - here));
	verdict_title(verdict, "straggler: all ranks of %.100s", first->of->host);
	verdict_evidence(verdict,
			 "Its %zu ranks of %.100s keep the other %zu waiting %.0f%% of the time.",
			 here, first->of->comm, all - here, verdict->percent);
	verdict_missing(verdict, "Based on totals, not on individual collectives; a trace shows "
				 "when and how often.");
	verdict_advice(verdict, "$ ssh %.200s nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE,ECC",
		       first->of->host);
	return true;
}

static size_t members_of(const struct sums_search *search, const struct sums_seat *seat)
{
	size_t count = 0;

	for (size_t i = 0; i < search->table.seat_count; i++)
		count += sums_by_comm(search->table.seats[i].of, seat->of) == 0;
	return seat->of->nranks > (int32_t)count ? (size_t)seat->of->nranks : count;
}

static void tell_late(struct sums_search *search, struct late *late, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!late[i].is_told && !tell_host(search, late, count, i))
			tell_rank(search, late[i].seat, members_of(search, late[i].seat));
}

static void sums_find_late(struct sums_search *search)
{
	struct sums_table *table = &search->table;
	struct sums_seat **order = calloc(table->seat_count + 1, sizeof(*order));
	struct late *late = calloc(table->seat_count + 1, sizeof(*late));
	double *times = calloc(table->seat_count + 1, sizeof(*times));
	size_t to;

	if (order == NULL || late == NULL || times == NULL) {
		search->status = ERR_NO_SPACE;
	} else {
		for (size_t i = 0; i < table->seat_count; i = to) {
			to = comm_end(table, i);
			late_in_comm(search, i, to, times);
		}
		for (size_t i = 0; i < table->seat_count; i++)
			order[i] = &table->seats[i];
		qsort(order, table->seat_count, sizeof(struct sums_seat *), by_process);
		tell_late(search, late, find_late(search, order, table->seat_count, late));
	}
	free(order);
	free(late);
	free(times);
}

/*
 * Operations compared with the job's own past, from totals: the rule of the alerts NcclNetworkDegraded and
 * NcclNvlinkDegraded (deploy/prometheus). The rank that waits least shows the speed; per communicator, the
 * time its transfers take relative to the time they would have taken at the earlier speeds.
 */

static const double time_that_matters = 0.01; /* of the time span */

static double ratio_of(const struct move *move)
{
	return move->now_s / move->then_s;
}

/* Groups of both are sorted alike. */
static const struct sums_group *group_before(const struct sums_table *before,
					     const struct sums_group *group, size_t *at)
{
	while (*at < before->group_count && sums_by_kind(before->groups[*at].of, group->of) < 0)
		++*at;
	return *at < before->group_count && sums_by_kind(before->groups[*at].of, group->of) == 0
		       ? &before->groups[*at]
		       : NULL;
}

static void find_moves(struct sums_search *search)
{
	const struct sums_table *table = &search->table;
	struct move *moves = calloc(table->group_count + 1, sizeof(*moves));
	size_t count = 0, at = 0;

	if (moves == NULL) {
		search->status = ERR_NO_SPACE;
		return;
	}
	for (size_t i = 0; i < table->group_count; i++) {
		const struct sums_group *now = &table->groups[i];
		const struct sums_group *then = group_before(&search->before, now, &at);

		if (then == NULL || now->busbw <= 0 || then->busbw <= 0)
			continue;
		if (count == 0 || sums_by_comm(moves[count - 1].of, now->of) != 0)
			moves[count++] = (struct move){ .of = now->of };
		moves[count - 1].now_s += now->bus_bytes / now->busbw;
		moves[count - 1].then_s += now->bus_bytes / then->busbw;
	}
	for (size_t i = 0; i < count; i++) {
		moves[i].is_counted = moves[i].now_s > time_that_matters * search->now->seconds;
		moves[i].is_slow =
			moves[i].is_counted && ratio_of(&moves[i]) > 1 + search->threshold;
	}
	search->moves = moves;
	search->move_count = count;
}

/*
 * Links from totals: a link whose transfers are on the wire much longer than those of the other links of
 * its communicator that carry as much. If many stand out it is the structure of the collective, and none is
 * named. If it did not stand out before, its collectives must be slower than before: where transfers queue up does not
 * show by how much they are held up.
 */

enum { TRANSFERS_LEAST = 32, EDGES_LEAST = 3, MIDDLES_KEPT = 16 };
static const double ratio_that_matters = 2, excess_s = 5e-6;
static const double traffic_that_matters = 0.25, size_alike = 2, size_same = 0.01;

static int edges_by_comm(const struct slow_edge *a, const struct slow_edge *b)
{
	return compare_comms(a->job, a->comm_hash, b->job, b->comm_hash);
}

static int by_edge(const void *left, const void *right)
{
	const struct slow_edge *a = left, *b = right;

	return edges_by_comm(a, b) ?: ORDER(a->from, b->from) ?: ORDER(a->to, b->to);
}

static double wire_s(const struct slow_edge *edge)
{
	return edge->wire_seconds / edge->transfers;
}

static bool edge_is_usable(const struct slow_edge *edge)
{
	return edge->comm_hash != 0 && edge->transfers >= TRANSFERS_LEAST &&
	       edge->wire_seconds > 0 && isfinite(edge->transfers) &&
	       isfinite(edge->wire_seconds) && edge->bytes > 0 && isfinite(edge->bytes);
}

/* The median of those that carry messages of about its size; 0: too few. */
static double wire_middle_of(const struct slow_edge *list, size_t count,
			     const struct slow_edge *edge, double *scratch, size_t *alike)
{
	double size = edge->bytes / edge->transfers;

	*alike = 0;
	for (size_t i = 0; i < count; i++) {
		double other = list[i].bytes / list[i].transfers;

		if (other <= size * size_alike && size <= other * size_alike)
			scratch[(*alike)++] = wire_s(&list[i]);
	}
	if (*alike < EDGES_LEAST)
		return 0;
	return stats_lower_middle(scratch, *alike);
}

static void tell_slow_link(struct sums_search *search, const struct slow_edge *edge, double ratio,
			   double lost_s, size_t alike)
{
	struct verdict *verdict = sums_verdict(search, VERDICT_SLOW_LINK, edge->job, "others");
	const struct sums_seat *from =
		sums_table_seat(&search->table, edge->job, edge->comm_hash, edge->from);
	const struct sums_seat *to =
		sums_table_seat(&search->table, edge->job, edge->comm_hash, edge->to);

	verdict->comm_hash = edge->comm_hash;
	verdict->comm_rank = edge->from;
	text_copy(verdict->comm, sizeof(verdict->comm), edge->comm);
	if (from != NULL)
		sums_fill_member(verdict, from->of);
	else
		text_format(verdict->rank_label, sizeof(verdict->rank_label), "%d of %.40s",
			    edge->from, edge->comm);
	if (to != NULL) {
		verdict->peer = to->of->rank;
		say_rank(verdict->peer_label, sizeof(verdict->peer_label), to->of);
		text_copy(verdict->peer_host, sizeof(verdict->peer_host), to->of->host);
	}
	verdict->victims =
		from != NULL && from->of->nranks > 0 ? (uint32_t)from->of->nranks - 1 : 0;
	verdict->percent = 100 * (ratio - 1);
	verdict->confidence = 0.85;
	sums_fill_cost(search, verdict, lost_s * (verdict->victims + 1));
	if (to != NULL)
		verdict_title(verdict, "slow link: rank %.24s%s%.60s -> rank %.24s on %.60s",
			      verdict->rank_label, verdict->host[0] ? " on " : "", verdict->host,
			      verdict->peer_label, verdict->peer_host);
	else
		verdict_title(verdict, "slow link: from rank %.24s%s%.100s", verdict->rank_label,
			      verdict->host[0] ? " on " : "", verdict->host);
	verdict_evidence(verdict,
			 "Its %.0f transfers took %s each on the wire, %.1fx the median of %zu "
			 "similar links of %.100s.",
			 edge->transfers, units_of_ns(1e9 * wire_s(edge)).text, ratio, alike,
			 edge->comm);
	if (to == NULL)
		verdict_missing(verdict, "The metrics do not show the receiver.");
	verdict_missing(verdict, "The metrics do not show the channel.");
	verdict_advice(
		verdict,
		"Check its network port: errors, speed, cable, and the switch it is connected to.");
	verdict_advice(verdict, "$ ssh %.200s ibstat", verdict->host[0] ? verdict->host : "NODE");
}

static double usual_traffic(const struct slow_edge *list, size_t count, double *scratch)
{
	for (size_t i = 0; i < count; i++)
		scratch[i] = list[i].transfers;
	return stats_lower_middle(scratch, count);
}

/* Cached medians, by size: most links of a communicator carry the same, and there may be thousands. */
struct middles {
	struct {
		double size, wire;
		size_t alike;
	} known[MIDDLES_KEPT];
	size_t count;
};

static double known_middle(struct middles *middles, const struct slow_edge *list, size_t count,
			   const struct slow_edge *edge, double *scratch, size_t *alike)
{
	double size = edge->bytes / edge->transfers;
	size_t at;

	for (size_t i = 0; i < MIDDLES_KEPT && i < middles->count; i++) {
		if (fabs(middles->known[i].size - size) > size_same * size)
			continue;
		*alike = middles->known[i].alike;
		return middles->known[i].wire;
	}
	at = middles->count++ % MIDDLES_KEPT;
	middles->known[at].size = size;
	middles->known[at].wire = wire_middle_of(list, count, edge, scratch, alike);
	middles->known[at].alike = *alike;
	return middles->known[at].wire;
}

static double stands_out(struct middles *middles, const struct slow_edge *list, size_t count,
			 size_t i, double traffic, double *scratch, size_t *alike)
{
	double middle = known_middle(middles, list, count, &list[i], scratch, alike);

	if (middle <= 0 || list[i].transfers < traffic_that_matters * traffic ||
	    wire_s(&list[i]) < ratio_that_matters * middle || wire_s(&list[i]) < middle + excess_s)
		return 0;
	return middle;
}

/* Links of all communicators, sorted; scratch has as many. */
struct edges {
	struct slow_edge *list;
	double *scratch;
	size_t count;
};

/* Did it not stand out before? False if that is not known. */
static bool was_fine(const struct edges *before, const struct slow_edge *edge)
{
	size_t first = 0, end, alike;
	double middle;

	while (first < before->count && edges_by_comm(&before->list[first], edge) < 0)
		first++;
	for (end = first; end < before->count && edges_by_comm(&before->list[end], edge) == 0;)
		end++;
	for (size_t i = first; i < end; i++) {
		if (by_edge(&before->list[i], edge) != 0)
			continue;
		middle = wire_middle_of(&before->list[first], end - first, &before->list[i],
					before->scratch, &alike);
		return middle > 0 && wire_s(&before->list[i]) < ratio_that_matters * middle;
	}
	return false;
}

/* Do its communicator's collectives take as long as before? False if that is not known. */
static bool is_as_fast(const struct sums_search *search, const struct slow_edge *edge)
{
	for (size_t i = 0; i < search->move_count; i++) {
		const struct move *move = &search->moves[i];

		if (compare_comms(move->of->job, move->of->comm_hash, edge->job, edge->comm_hash) ==
		    0)
			return move->is_counted && !move->is_slow;
	}
	return false;
}

static void links_of_comm(struct sums_search *search, const struct edges *before,
			  const struct slow_edge *list, size_t count, double *scratch)
{
	struct middles middles = { .count = 0 };
	double traffic;
	size_t standing_out = 0, alike;

	if (count < EDGES_LEAST)
		return;
	traffic = usual_traffic(list, count, scratch);
	for (size_t i = 0; i < count; i++)
		standing_out += stands_out(&middles, list, count, i, traffic, scratch, &alike) > 0;
	if (standing_out == 0 || standing_out > 1 + count / 16)
		return;
	for (size_t i = 0; i < count; i++) {
		double middle = stands_out(&middles, list, count, i, traffic, scratch, &alike);

		if (middle > 0 && !(is_as_fast(search, &list[i]) && was_fine(before, &list[i])))
			tell_slow_link(search, &list[i], wire_s(&list[i]) / middle,
				       (wire_s(&list[i]) - middle) * list[i].transfers, alike);
	}
}

static enum status fill_edges(struct edges *edges, const struct slow_sums *sums)
{
	size_t most = sums != NULL ? sums->edge_count : 0, kept = 0;
	struct slow_edge *list = calloc(most + 1, sizeof(*list));

	*edges = (struct edges){ .list = list, .scratch = calloc(most + 1, sizeof(double)) };
	if (list == NULL || edges->scratch == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < most; i++)
		if (edge_is_usable(&sums->edges[i]))
			list[edges->count++] = sums->edges[i];
	qsort(list, edges->count, sizeof(*list), by_edge);
	for (size_t i = 0; i < edges->count; i++) {
		if (kept == 0 || by_edge(&list[kept - 1], &list[i]) != 0) {
			list[kept++] = list[i];
			continue;
		}
		list[kept - 1].transfers += list[i].transfers;
		list[kept - 1].wire_seconds += list[i].wire_seconds;
		list[kept - 1].bytes += list[i].bytes;
	}
	edges->count = kept;
	return OK;
}

static void sums_find_links(struct sums_search *search)
{
	struct edges now, before;
	size_t next;

	search->status = fill_edges(&now, search->now);
	if (fill_edges(&before, search->options->before) != OK)
		search->status = ERR_NO_SPACE;
	for (size_t i = 0; search->status == OK && i < now.count; i = next) {
		for (next = i;
		     next < now.count && edges_by_comm(&now.list[i], &now.list[next]) == 0;)
			next++;
		links_of_comm(search, &before, &now.list[i], next - i, now.scratch);
	}
	free(now.list);
	free(now.scratch);
	free(before.list);
	free(before.scratch);
}

/* ---- communicators that are slower than before ------------------------------------------------- */

struct tally_of {
	size_t all, slow;
	double worst, lost_s;
	uint32_t ranks;
	const struct move *example;
	bool is_one_host;
};

static struct tally_of sum_up_moves(const struct move *moves, size_t count, bool over_network)
{
	struct tally_of sum = { .is_one_host = true };

	for (size_t i = 0; i < count; i++) {
		const struct move *move = &moves[i];

		if (over_network ? !job_comm_is_over_network(move->of->kind)
				 : move->of->kind != JOB_COMM_NVLINK)
			continue;
		sum.all += move->is_counted;
		if (!move->is_slow)
			continue;
		sum.slow++;
		sum.ranks += move->of->nranks > 0 ? (uint32_t)move->of->nranks : 0;
		sum.lost_s += (move->now_s - move->then_s) *
			      (move->of->nranks > 0 ? move->of->nranks : 1);
		if (sum.example != NULL)
			sum.is_one_host &= strcmp(sum.example->of->host, move->of->host) == 0;
		if (sum.example == NULL || ratio_of(move) > ratio_of(sum.example))
			sum.example = move;
	}
	return sum;
}

static bool is_link_named(const struct sums_search *search, const char *job)
{
	for (size_t i = search->first; i < search->verdicts->count; i++)
		if (search->verdicts->list[i].class == VERDICT_SLOW_LINK &&
		    strcmp(search->verdicts->list[i].job, job) == 0)
			return true;
	return false;
}

static void tell_slow_moves(struct sums_search *search, enum verdict_class class,
			    const struct tally_of *sum)
{
	const struct slow_member *of = sum->example->of;
	struct verdict *verdict = sums_verdict(search, class, of->job, "past");
	bool is_network = class == VERDICT_SLOW_NETWORK;

	verdict->percent = 100 * (ratio_of(sum->example) - 1);
	verdict->victims = sum->ranks;
	verdict->confidence = 0.85;
	verdict->since_wall_ns = verdict->for_ns = 0;
	sums_fill_cost(search, verdict, sum->lost_s);
	if (!is_network && sum->is_one_host)
		text_copy(verdict->host, sizeof(verdict->host), of->host);
	if (is_network)
		verdict_title(verdict,
			      "slow network: inter-node traffic is slower than before everywhere");
	else if (verdict->host[0] != '\0')
		verdict_title(verdict, "slow NVLink: traffic within %.80s is slower than before",
			      verdict->host);
	else
		verdict_title(verdict, "slow NVLink: intra-node traffic is slower than before");
	verdict_evidence(verdict,
			 "Collectives of %zu of %zu communicators that %s take longer than before, "
			 "those of %.100s %.2fx; waiting excluded.",
			 sum->slow, sum->all, is_network ? "span nodes" : "stay within a node",
			 of->comm, ratio_of(sum->example));
	verdict_missing(verdict, "Based on totals; the rates over time show when it started.");
	verdict_advice(verdict, "%s",
		       is_network ? "Check the fabric: congestion from other jobs, a failed switch "
				    "or uplink, adaptive routing."
				  : "Check NVLink and the GPU clocks.");
}

/* moves[0 .. count - 1] are of one job. */
static void moves_of_job(struct sums_search *search, const struct move *moves, size_t count)
{
	struct tally_of network = sum_up_moves(moves, count, true);
	struct tally_of nvlink = sum_up_moves(moves, count, false);

	if (nvlink.slow > 0)
		tell_slow_moves(search, VERDICT_SLOW_NVLINK, &nvlink);
	else if (network.slow > 0 && network.slow * 5 >= network.all * 4 &&
		 !is_link_named(search, moves[0].of->job))
		tell_slow_moves(search, VERDICT_SLOW_NETWORK, &network);
}

static void sums_find_moves(struct sums_search *search)
{
	const struct move *moves = search->moves;
	size_t next;

	for (size_t i = 0; i < search->move_count; i = next) {
		for (next = i; next < search->move_count &&
			       strcmp(moves[i].of->job, moves[next].of->job) == 0;)
			next++;
		moves_of_job(search, &moves[i], next - i);
	}
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
		find_moves(&search);
	if (search.status == OK)
		sums_find_links(&search);
	if (search.status == OK)
		sums_find_late(&search);
	if (search.status == OK)
		sums_find_moves(&search);
	sums_table_release(&search.table);
	sums_table_release(&search.before);
	free(search.moves);
	return search.status;
}
