/*
 * Waiting by sums. All members of a communicator make the same collectives in the same order, so after
 * equally many of one function and size class their times can be compared:
 *
 *	wait(r) = time(r) - the least time of a member
 *
 * Regions are read one after the other, so at a look members have often finished unequal numbers. Then
 *
 *	few collectives (slow ones)    nothing is joined at this look; all of it is kept for the next at
 *	                               which the numbers are equal, which is soon: they end together
 *	many (JOIN_MANY or more)       the smallest number is joined, of the others that share of their
 *	                               time; the rest is kept. What is wrong by that is a share of a few
 *	                               operations in many, and it is made up for at the next look
 *
 * A member that has nearly all of its collectives timed is scaled up. Where fewer are timed (kernel events are
 * sampled) the timed ones are joined instead: these are the same collectives on all members, chosen by their
 * number. What they waited is then scaled up to all collectives. Where none is timed nobody is joined.
 */
#include <stdlib.h>

#include "live/live_memory.h"

enum {
	JOIN_MANY = 32,
	UNEVEN_PART = 8, /* of many, the numbers may differ by one part in so many */
	TIMED_TENTHS = 9,
};

/* The rows of one key over the members that go on. */
struct table {
	struct live_row **rows;
	uint32_t *seats;
	uint32_t count;
	bool is_sampled;      /* few are timed: numbers below are of the timed ones */
	uint64_t least, most; /* finished since their base */
	bool is_even;	      /* all have finished equally many since they exist */
	bool is_based, is_exact;
};

static bool is_nearly_all_timed(const struct live_row *row)
{
	uint64_t count = row->count - row->base_count, timed = row->timed - row->base_timed;

	return timed * 10 >= count * TIMED_TENTHS;
}

static uint64_t number_of(const struct table *table, const struct live_row *row)
{
	return table->is_sampled ? row->timed : row->count;
}

static uint64_t grown_of(const struct table *table, const struct live_row *row)
{
	return table->is_sampled ? row->timed - row->base_timed : row->count - row->base_count;
}

static void table_measure(struct table *table)
{
	table->least = UINT64_MAX;
	table->most = 0;
	table->is_even = table->is_based = table->is_exact = true;
	table->is_sampled = false;
	for (uint32_t i = 0; i < table->count; i++) {
		const struct live_row *row = table->rows[i];

		table->is_based &= row->is_based && row->count >= row->base_count &&
				   row->timed >= row->base_timed && row->sum_ns >= row->base_sum_ns;
		table->is_sampled |= !is_nearly_all_timed(row);
	}
	for (uint32_t i = 0; i < table->count; i++) {
		const struct live_row *row = table->rows[i];
		uint64_t grown = grown_of(table, row);

		table->is_even &= number_of(table, row) == number_of(table, table->rows[0]);
		table->is_exact &= table->is_sampled ? row->is_exact_timed : row->is_exact;
		if (grown < table->least)
			table->least = grown;
		if (grown > table->most)
			table->most = grown;
	}
}

/* From here on, what is finished now is behind us. */
static void table_base(struct table *table)
{
	bool is_even = true, is_even_timed = true;

	for (uint32_t i = 0; i < table->count; i++) {
		is_even &= table->rows[i]->count == table->rows[0]->count;
		is_even_timed &= table->rows[i]->timed == table->rows[0]->timed;
	}
	for (uint32_t i = 0; i < table->count; i++) {
		struct live_row *row = table->rows[i];

		row->is_based = true;
		row->is_exact = is_even;
		row->is_exact_timed = is_even_timed;
		row->base_count = row->count;
		row->base_timed = row->timed;
		row->base_sum_ns = row->sum_ns;
	}
}

/* The time in n collectives, of which the row has at least so many, nearly all timed; or n timed ones. */
static double time_of(const struct live_row *row, uint64_t n)
{
	return (double)(row->sum_ns - row->base_sum_ns) * (double)n /
	       (double)(row->timed - row->base_timed);
}

/* Whatever a file claims: no number of ours is out of its range. */
static uint64_t whole(double number)
{
	return number > 0 ? number < 1e18 ? (uint64_t)number : (uint64_t)1e18 : 0;
}

/* n of each are joined and behind us; the rest stays. */
static void row_advance(const struct table *table, struct live_row *row, uint64_t n)
{
	double share = (double)n / (double)grown_of(table, row);

	row->is_exact = row->is_exact_timed = false;
	row->base_count +=
		table->is_sampled ? whole((double)(row->count - row->base_count) * share) : n;
	row->base_timed +=
		table->is_sampled ? n : whole((double)(row->timed - row->base_timed) * share);
	row->base_sum_ns += whole((double)(row->sum_ns - row->base_sum_ns) * share);
}

static void table_join(struct live *live, struct table *table)
{
	uint64_t n = table->least;
	double least_ns = 0;

	for (uint32_t i = 0; i < table->count; i++) {
		if (table->rows[i]->timed == table->rows[i]->base_timed)
			return;
		if (i == 0 || time_of(table->rows[i], n) < least_ns)
			least_ns = time_of(table->rows[i], n);
	}
	for (uint32_t i = 0; i < table->count; i++) {
		struct live_seat *seat = &live->seats[table->seats[i]];
		const struct live_row *row = table->rows[i];
		double all = (double)(row->count - row->base_count) / (double)grown_of(table, row);

		seat->wait_grown_ns +=
			whole((time_of(row, n) - least_ns) * (table->is_sampled ? all : 1));
		seat->has_wait = true;
	}
	if (table->is_even)
		table_base(table);
	for (uint32_t i = 0; i < table->count && !table->is_even; i++)
		row_advance(table, table->rows[i], n);
}

static void table_look(struct live *live, struct table *table, bool has_gap)
{
	bool is_many;

	table_measure(table);
	if (!table->is_based || has_gap) {
		table_base(table);
		return;
	}
	is_many = table->least >= JOIN_MANY &&
		  (table->most - table->least) * UNEVEN_PART <= table->most;
	if (is_many || (table->is_even && table->is_exact && table->least > 0))
		table_join(live, table);
	else if (table->is_even && !table->is_exact)
		table_base(table);
}

/* The members' rows of the key of the first one's i-th; false: not all of them have it. */
static bool table_fill(struct live *live, struct table *table, const uint32_t *seats,
		       uint32_t count, uint32_t i)
{
	uint16_t key = live->memory->seats[seats[0]].rows[i].key;

	table->count = 0;
	for (uint32_t j = 0; j < count; j++) {
		struct live_row *row = live_row_of(&live->memory->seats[seats[j]], key);

		if (row == NULL)
			return false;
		table->seats[table->count] = seats[j];
		table->rows[table->count++] = row;
	}
	return true;
}

static void look_at_comm(struct live *live, uint32_t c, struct table *table, uint32_t *seats)
{
	const struct job_comm *comm = &live->job.comms[c];
	/* Since the last look members have not counted the same collectives: start anew. */
	bool has_gap = comm->missed != live->memory->comms[c].missed;
	uint32_t count = 0;

	live->memory->comms[c].missed = comm->missed;
	for (uint32_t i = 0; i < comm->seat_count; i++)
		if (!live->seats[comm->seats[i]].is_over)
			seats[count++] = comm->seats[i];
	if (count < 2)
		return;
	for (uint32_t i = 0; i < live->memory->seats[seats[0]].row_count; i++)
		if (table_fill(live, table, seats, count, i))
			table_look(live, table, has_gap);
	for (uint32_t i = 0; i < count; i++) {
		struct live_seat *seat = &live->seats[seats[i]];
		struct live_seat_memory *memory = &live->memory->seats[seats[i]];

		memory->wait_ns += seat->wait_grown_ns;
		memory->window_wait_ns += seat->wait_grown_ns;
		memory->knows_wait |= seat->has_wait;
		seat->wait_ns = memory->wait_ns;
		seat->knows_wait = memory->knows_wait;
		live->memory->comms[c].was_joined |= seat->has_wait;
	}
}

/* Without memory nobody is seen to wait at this look, and all of it is kept for the next. */
void live_waits(struct live *live)
{
	struct table table = { .rows = calloc(live->job.seat_count + 1, sizeof(*table.rows)),
			       .seats = calloc(live->job.seat_count + 1, sizeof(*table.seats)) };
	uint32_t *seats = calloc(live->job.seat_count + 1, sizeof(*seats));

	for (uint32_t c = 0; c < live->job.comm_count; c++) {
		const struct job_comm *comm = &live->job.comms[c];

		if (table.rows != NULL && table.seats != NULL && seats != NULL)
			look_at_comm(live, c, &table, seats);
		for (uint32_t i = 0; i < comm->seat_count; i++)
			live->comms[c].wait_ns += live->seats[comm->seats[i]].wait_ns;
	}
	free(table.rows);
	free(table.seats);
	free(seats);
}

/* ---- who is waited for ----------------------------------------------------------------------- */

/* The straggler waits little itself: at most this part of what the others do. */
enum { STRAGGLER_PART = 4, WINDOWS = 3 };

struct window {
	uint32_t least; /* seat */
	uint32_t count;
	uint64_t sum_ns;
};

static uint64_t window_wait(const struct live *live, uint32_t s)
{
	return live->memory->seats[s].window_wait_ns;
}

static struct window window_of(const struct live *live, const struct job_comm *comm)
{
	struct window window = { .least = UINT32_MAX };

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t s = comm->seats[i];

		if (live->seats[s].is_over)
			continue;
		window.count++;
		window.sum_ns += window_wait(live, s);
		if (window.least == UINT32_MAX ||
		    window_wait(live, s) < window_wait(live, window.least))
			window.least = s;
	}
	return window;
}

static uint32_t seat_with_key(const struct live *live, const struct job_comm *comm, uint64_t key)
{
	for (uint32_t i = 0; i < comm->seat_count; i++)
		if (live->memory->seat_keys[comm->seats[i]] == key)
			return comm->seats[i];
	return UINT32_MAX;
}

/* Whom do the others wait for? The one of the last window, as long as that is still so: of several that
 * are slow one is named. */
static uint32_t waited_for(const struct live *live, uint32_t c, double length_ns, double *share)
{
	const struct job_comm *comm = &live->job.comms[c];
	const struct live_comm_memory *memory = &live->memory->comms[c];
	uint32_t before = memory->straggler_key != 0
				  ? seat_with_key(live, comm, memory->straggler_key)
				  : UINT32_MAX;
	struct window window = window_of(live, comm);
	uint32_t candidates[2] = { before, window.least };

	if (window.count < 2 || !memory->was_joined)
		return UINT32_MAX;
	for (int i = 0; i < 2; i++) {
		double own, others;

		if (candidates[i] == UINT32_MAX || live->seats[candidates[i]].is_over)
			continue;
		own = (double)window_wait(live, candidates[i]);
		others = ((double)window.sum_ns - own) / (window.count - 1);
		*share = others / length_ns;
		if (*share >= live->limits.straggler_share && own * STRAGGLER_PART <= others)
			return candidates[i];
	}
	return UINT32_MAX;
}

static void window_end(struct live *live, uint32_t c)
{
	const struct job_comm *comm = &live->job.comms[c];
	struct live_comm_memory *memory = &live->memory->comms[c];
	uint64_t now_ns = live->memory->monotonic_ns;
	double share = 0;
	uint32_t seat = waited_for(live, c, (double)(now_ns - memory->window_began_ns), &share);
	uint64_t key = seat != UINT32_MAX ? live->memory->seat_keys[seat] : 0;

	if (key != 0 && key != memory->straggler_key)
		memory->straggler_since_ns = memory->window_began_ns;
	memory->straggler_key = key;
	memory->straggler_share = share;
	memory->window_began_ns = now_ns;
	memory->was_joined = false;
	for (uint32_t i = 0; i < comm->seat_count; i++)
		live->memory->seats[comm->seats[i]].window_wait_ns = 0;
}

/* Time goes by in windows, a few to straggler_ns; a straggler is one that some in a row agree on. */
void live_stragglers(struct live *live)
{
	for (uint32_t c = 0; c < live->job.comm_count; c++) {
		struct live_comm_memory *memory = &live->memory->comms[c];
		uint64_t now_ns = live->memory->monotonic_ns;

		if (memory->window_began_ns == 0)
			memory->window_began_ns = now_ns;
		else if (now_ns - memory->window_began_ns >= live->limits.straggler_ns / WINDOWS)
			window_end(live, c);
		live->comms[c].straggler =
			memory->straggler_key != 0
				? seat_with_key(live, &live->job.comms[c], memory->straggler_key)
				: UINT32_MAX;
		live->comms[c].straggler_share = memory->straggler_share;
	}
}
