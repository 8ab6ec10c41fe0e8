/*
 * Who is waited for: the rule of the alert NcclStraggler (deploy/prometheus). The others, all but a quarter of
 * them, spend more time in the same collectives than it does, by at least a tenth of all time; and it hardly
 * waits itself on another communicator, else it is a victim of somebody there.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "doctor/slow_sums_find.h"

static const double own_wait = 0.5; /* of its delay */

static int rising(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

/* Three quarters of the members spend at most so long, as PromQL's quantile() has it. */
static double upper_quarter(const double *sorted, size_t count)
{
	double place = 0.75 * (double)(count - 1);
	size_t below = (size_t)place;
	double share = place - (double)below;

	return below + 1 < count ? sorted[below] * (1 - share) + sorted[below + 1] * share
				 : sorted[below];
}

static void look_at_comm(struct sums_search *search, size_t from, size_t to, double *times)
{
	struct sums_seat *seats = search->table.seats;
	double usual, gap;

	if (to - from < 2)
		return;
	for (size_t i = from; i < to; i++)
		times[i - from] = seats[i].time;
	qsort(times, to - from, sizeof(*times), rising);
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

/* ---- by process ------------------------------------------------------------------------------ */

/* All seats of one process, by what identifies it. */
static int by_process(const void *left, const void *right)
{
	const struct sums_seat *a = *(struct sums_seat *const *)left;
	const struct sums_seat *b = *(struct sums_seat *const *)right;
	int order = strcmp(a->of->job, b->of->job);

	if (order == 0)
		order = strcmp(a->of->host, b->of->host);
	if (order == 0 && a->of->pid != b->of->pid)
		order = a->of->pid < b->of->pid ? -1 : 1;
	if (order == 0 && a->of->rank != b->of->rank)
		order = a->of->rank < b->of->rank ? -1 : 1;
	if (order != 0)
		return order;
	return a->delay > b->delay ? -1 : a->delay < b->delay;
}

static bool is_same_process(const struct sums_seat *a, const struct sums_seat *b)
{
	return strcmp(a->of->job, b->of->job) == 0 && strcmp(a->of->host, b->of->host) == 0 &&
	       a->of->pid == b->of->pid && a->of->rank == b->of->rank;
}

/* What its delay is a share of: the stretch, or where that is not known the others' time. */
static double share_of(const struct sums_search *search, const struct sums_seat *seat)
{
	double whole = search->now->seconds > 0 ? search->now->seconds : seat->time + seat->delay;

	return whole > 0 ? seat->delay / whole : 0;
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

/* ---- verdicts -------------------------------------------------------------------------------- */

static void tell_rank(struct sums_search *search, const struct sums_seat *seat, size_t members)
{
	struct verdict *verdict = sums_verdict(search, VERDICT_SLOW_RANK, seat->of->job, "others");
	double share = share_of(search, seat);

	sums_fill_member(verdict, seat->of);
	verdict->victims = members > 0 ? (uint32_t)members - 1 : 0;
	verdict->percent = 100 * share;
	/* Sums say that it was so all in all, not in each of them. */
	verdict->confidence = 0.9;
	sums_fill_cost(search, verdict, seat->caused);
	verdict_title(verdict, "rank %.24s on %.100s arrives late, the others wait for it",
		      verdict->rank_label, seat->of->host);
	verdict_evidence(verdict,
			 "For %.0f %% of the time the others of %.100s stand in collectives until "
			 "it arrives; it hardly waits itself.",
			 100 * share, seat->of->comm);
	verdict_missing(verdict, "From sums, not from single collectives: when exactly, and how "
				 "often, needs a trace.");
	verdict_advice(verdict, "Look at GPU clocks and temperature, data loading, other processes "
				"there.");
	verdict_advice(verdict, "$ ssh %.200s nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE,ECC",
		       seat->of->host);
	text_copy(verdict->page, sizeof(verdict->page), "runbooks/NcclStraggler.md");
}

static bool is_on(const struct sums_seat *seat, const struct sums_seat *like)
{
	return sums_by_comm(seat->of, like->of) == 0 && strcmp(seat->of->host, like->of->host) == 0;
}

/* All that a host has in the communicator are late: it is the host. */
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
	verdict_title(verdict, "all ranks of %.100s arrive late", first->of->host);
	verdict_evidence(verdict,
			 "All its %zu ranks of %.100s keep the other %zu waiting, for %.0f %% of "
			 "the time.",
			 here, first->of->comm, all - here, verdict->percent);
	verdict_missing(verdict, "From sums, not from single collectives: when exactly, and how "
				 "often, needs a trace.");
	verdict_advice(verdict, "$ ssh %.200s nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE,ECC",
		       first->of->host);
	text_copy(verdict->page, sizeof(verdict->page), "runbooks/NcclStraggler.md");
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

void sums_find_late(struct sums_search *search)
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
			look_at_comm(search, i, to, times);
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
