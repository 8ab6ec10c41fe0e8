/*
 * Where lateness comes from, in jobs that exchange data by Send and Recv.
 *
 * There a rank is late for a collective because it waited for a peer's Send, or in another communicator: the
 * ranks that arrive late are mostly victims. What a victim waited, it spent inside an operation. Only the
 * origin of the lateness spends more time outside of all operations than its peers, which computes or waits
 * for data:
 *
 *	own(r) = time in which rank r is in no operation at all
 *
 * Peers are the other members of a rank's communicators; it must exceed the median of each. Members of one
 * pipeline are no peers, because stages may differ by design: a stage is compared with other stages only if
 * nothing else is left, and then with its own past. This needs GPU times of nearly all operations. No clocks
 * are compared but for the borders of windows.
 */
#include "analysis/straggler_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "analysis/timeline_report.h"
#include "common/attributes.h"
#include "common/clock.h"
#include "common/op.h"
#include "common/text.h"

enum { WINDOWS_LEAST = STRAGGLER_BLOCKS_LEAST, RANKS_LEAST = 3 };

static const uint64_t window_least_ns = UINT64_C(1000000000);
static const double timed_least = 0.98; /* of a rank's collectives */
static const double sends_timed_least = 0.98;
static const double share_of_time_that_matters = 0.01;
static const double chance_accepted = 1e-4;
/* What looks the same: a stage of a pipeline with more work, and a slow host. */
static const double sure_of_stage = 0.6;
static const double clear_second = 0.7; /* the next one must be below this share */

/* Ranks of one job over time. */
struct own_table {
	const struct straggler_search *search;
	uint32_t group;
	uint32_t windows;
	uint64_t start_ns; /* common time */
	uint64_t width_ns;
	double *share;	     /* [rank * windows + window]: of the window; NAN unknown */
	double *sure_share;  /* the same without what precedes operations not timed by the GPU */
	bool is_vague;	     /* of some rank, the beginning of these is unknown */
	bool *is_compared;   /* per communicator: its members are peers */
	double *scratch;     /* as many as ranks */
	double *comm_middle; /* [comm * windows + window]: of large communicators */
};

/* ---- time outside of operations --------------------------------------------------------------- */

/*
 * What is known about an operation's beginning: the GPU's own time; or, where its timestamps were rejected, the
 * first kernel channel that was seen, unless its network side was seen earlier. Then it is vague.
 */
struct own_span {
	uint64_t start_ns;
	uint64_t end_ns;
	bool is_seen; /* not by the GPU's time; 0 in start_ns: vague */
};

/* Operations that are launched together begin together. */
struct own_launch {
	uint64_t launch_ns;
	uint64_t start_ns;
};

enum { LAUNCHES = 8 }; /* remembered */

struct own_reading {
	struct own_launch launches[LAUNCHES];
	uint32_t next_launch;
	struct own_span *list; /* those that end together are one */
	size_t count;
	uint64_t operations[2]; /* collectives; Sends and Recvs */
	uint64_t timed[2];
	uint64_t vague;
	bool has_seen;
	bool is_sorted;
	bool is_out_of_memory;
};

static void add_span(struct own_reading *to, const struct own_span *span)
{
	struct own_span *last = to->count > 0 ? &to->list[to->count - 1] : NULL;

	if (last != NULL && last->end_ns == span->end_ns && last->is_seen == span->is_seen) {
		last->start_ns = span->start_ns < last->start_ns ? span->start_ns : last->start_ns;
		return;
	}
	to->is_sorted = to->is_sorted && (last == NULL || last->end_ns <= span->end_ns);
	if (list_grow(&to->list, to->count, sizeof(*to->list)))
		to->list[to->count++] = *span;
	else
		to->is_out_of_memory = true;
}

/* When the GPU began it; 0: none of them has a time. */
static uint64_t launch_start(const struct own_reading *reading, uint64_t launch_ns)
{
	for (uint32_t i = 0; launch_ns > 0 && i < LAUNCHES; i++)
		if (reading->launches[i].launch_ns == launch_ns)
			return reading->launches[i].start_ns;
	return 0;
}

static void note_launch(struct own_reading *reading, uint64_t launch_ns, uint64_t start_ns)
{
	if (launch_start(reading, launch_ns) == 0)
		reading->launches[reading->next_launch++ % LAUNCHES] =
			(struct own_launch){ launch_ns, start_ns };
}

static bool read_batch(const struct op_batch *batch, enum recording_place place, void *context)
{
	struct own_reading *to = context;
	const uint64_t *state = batch->column[OP_WORD_STATE], *done = batch->column[OP_WORD_DONE];
	const uint64_t *start = batch->column[OP_WORD_GPU_START];
	const uint64_t *stop = batch->column[OP_WORD_GPU_STOP];

	(void)place;
	for (uint32_t i = 0; i < batch->rows && !to->is_out_of_memory; i++) {
		uint64_t children = batch->column[OP_WORD_CHILDREN][i];
		uint64_t active_ns = batch->column[OP_WORD_ACTIVE][i];
		uint64_t launch_ns = batch->column[OP_WORD_LAUNCH][i];
		uint8_t function = (uint8_t)op_kind_names(batch->column[OP_WORD_KIND][i]);
		bool is_send = function == OP_SEND || function == OP_RECV;
		bool has_kernel = (uint16_t)children > 0,
		     has_proxy = (uint16_t)(children >> 32) > 0;
		struct own_span span = { .end_ns = done[i] };

		/* What it sends to itself is a copy without a kernel. */
		if (done[i] == 0 || op_state_flags(state[i]) & OP_FLAG_SELF)
			continue;
		to->operations[is_send]++;
		if (op_state_source(state[i]) == OP_TIME_KERNEL_GPU &&
		    stop[i] - start[i] <= done[i])
			span.start_ns = done[i] - (stop[i] - start[i]);
		else if (is_send)
			span.start_ns = launch_start(to, launch_ns);
		else if (has_kernel && active_ns > 0 && active_ns <= done[i])
			span = (struct own_span){ has_proxy ? 0 : active_ns, done[i], true };
		if (span.start_ns == 0 && !span.is_seen)
			continue;
		to->timed[is_send]++;
		to->vague += span.start_ns == 0;
		to->has_seen |= span.is_seen;
		if (is_send)
			note_launch(to, launch_ns, span.start_ns);
		add_span(to, &span);
	}
	return !to->is_out_of_memory;
}

static int by_end(const void *left, const void *right)
{
	const struct own_span *a = left, *b = right;

	return ORDER(a->end_ns, b->end_ns);
}

/* Takes [from, to) away from the share of the windows that it is in. */
static void take_away(const struct own_table *table, double *share, uint64_t from, uint64_t to)
{
	uint64_t end_ns = table->start_ns + table->windows * table->width_ns;

	from = from > table->start_ns ? from : table->start_ns;
	to = to < end_ns ? to : end_ns;
	while (from < to) {
		uint64_t window = (from - table->start_ns) / table->width_ns;
		uint64_t border = table->start_ns + (window + 1) * table->width_ns;
		uint64_t until = to < border ? to : border;

		share[window] -= (double)(until - from) / (double)table->width_ns;
		from = until;
	}
}

/* From the last end backwards: what ends earlier covers only what lies before all of them. A vague beginning
 * is the end of the one before. */
static void fill_shares(const struct own_table *table, uint32_t rank, double *share,
			const struct own_reading *reading, bool is_seen_vague)
{
	const struct align *align = table->search->align;
	uint32_t process = table->search->job->ranks[rank].process;
	uint64_t covered_ns = UINT64_MAX;

	for (uint32_t w = 0; w < table->windows; w++)
		share[w] = 1;
	for (size_t i = reading->count; i-- > 0;) {
		const struct own_span *span = &reading->list[i];
		bool is_vague = span->is_seen && (span->start_ns == 0 || is_seen_vague);
		uint64_t end_ns = span->end_ns < covered_ns ? span->end_ns : covered_ns;
		uint64_t start_ns = span->start_ns;

		if (is_vague)
			start_ns = i > 0 ? reading->list[i - 1].end_ns : end_ns;
		if (start_ns >= end_ns)
			continue;
		take_away(table, share, align_ns(align, process, start_ns),
			  align_ns(align, process, end_ns));
		covered_ns = start_ns;
	}
}

static void fill_rank(struct own_table *table, uint32_t rank, struct own_reading *reading)
{
	size_t first = (size_t)rank * table->windows;

	if ((double)reading->timed[0] < timed_least * (double)reading->operations[0] ||
	    (double)reading->timed[1] < sends_timed_least * (double)reading->operations[1] ||
	    reading->timed[0] + reading->timed[1] == 0)
		return;
	if (!reading->is_sorted)
		qsort(reading->list, reading->count, sizeof(*reading->list), by_end);
	fill_shares(table, rank, &table->share[first], reading, false);
	if (reading->has_seen)
		fill_shares(table, rank, &table->sure_share[first], reading, true);
	else
		memcpy(&table->sure_share[first], &table->share[first],
		       table->windows * sizeof(*table->share));
	table->is_vague |= (double)reading->vague > (1 - timed_least) * (double)reading->timed[0];
}

static enum status read_rank(struct own_table *table, uint32_t rank)
{
	const struct job *job = table->search->job;
	struct own_reading reading = { .is_sorted = true };
	const uint32_t words = OP_WORD_BIT(OP_WORD_KIND) | OP_WORD_BIT(OP_WORD_STATE) |
			       OP_WORD_BIT(OP_WORD_LAUNCH) | OP_WORD_BIT(OP_WORD_ACTIVE) |
			       OP_WORD_BIT(OP_WORD_DONE) | OP_WORD_BIT(OP_WORD_CHILDREN) |
			       OP_WORD_BIT(OP_WORD_GPU_START) | OP_WORD_BIT(OP_WORD_GPU_STOP);

	/* What cannot be read was reported when the report was made. */
	recording_each_batch(job->recording->processes[job->ranks[rank].process], words, read_batch,
			     &reading, NULL);
	if (!reading.is_out_of_memory)
		fill_rank(table, rank, &reading);
	free(reading.list);
	return reading.is_out_of_memory ? ERR_NO_SPACE : OK;
}

/* ---- the table -------------------------------------------------------------------------------- */

static bool is_known(const struct own_table *table, uint32_t rank)
{
	return table->search->job->ranks[rank].group == table->group &&
	       !isnan(table->share[(size_t)rank * table->windows]);
}

/* The time in which all ranks of the job run; false: too short, or several ranks share a process. */
static bool find_time(struct own_table *table, const struct timeline_rank *ranks)
{
	const struct job *job = table->search->job;
	uint64_t from_ns = 0, until_ns = UINT64_MAX;
	uint32_t count = 0, process = UINT32_MAX;

	for (uint32_t r = 0; r < job->rank_count; r++) {
		if (job->ranks[r].group != table->group)
			continue;
		if (job->ranks[r].process == process || ranks[r].last_ns == 0)
			return false;
		process = job->ranks[r].process;
		from_ns = ranks[r].first_ns > from_ns ? ranks[r].first_ns : from_ns;
		until_ns = ranks[r].last_ns < until_ns ? ranks[r].last_ns : until_ns;
		count++;
	}
	if (count < RANKS_LEAST || until_ns < from_ns + WINDOWS_LEAST * window_least_ns)
		return false;
	table->windows = (uint32_t)((until_ns - from_ns) / window_least_ns);
	if (table->windows > STRAGGLER_BLOCKS)
		table->windows = STRAGGLER_BLOCKS;
	table->start_ns = from_ns;
	table->width_ns = (until_ns - from_ns) / table->windows;
	return true;
}

static void own_table_release(struct own_table *table)
{
	free(table->share);
	free(table->sure_share);
	free(table->is_compared);
	free(table->scratch);
	free(table->comm_middle);
	*table = (struct own_table){ .search = NULL };
}

static enum status own_table_allocate(struct own_table *table)
{
	const struct job *job = table->search->job;
	size_t cells = job->rank_count * table->windows;

	table->share = calloc(cells + 1, sizeof(*table->share));
	table->sure_share = calloc(cells + 1, sizeof(*table->sure_share));
	table->is_compared = calloc(job->comm_count + 1, sizeof(*table->is_compared));
	table->scratch = calloc(job->rank_count + 1, sizeof(*table->scratch));
	table->comm_middle =
		calloc(job->comm_count * table->windows + 1, sizeof(*table->comm_middle));
	if (table->share == NULL || table->sure_share == NULL || table->is_compared == NULL ||
	    table->scratch == NULL || table->comm_middle == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < cells; i++)
		table->share[i] = table->sure_share[i] = NAN;
	return OK;
}

/* ---- peers ------------------------------------------------------------------------------------ */

enum { SMALL = 16 }; /* the median of fewer must not contain the rank that is compared with it */

/* The median of the members; of small communicators without those of one host, or without one rank
 * (UINT32_MAX: none). NAN: nobody is left. */
static double comm_middle(const struct own_table *table, uint32_t comm, uint32_t window,
			  uint32_t but_rank, uint32_t but_host)
{
	const struct job *job = table->search->job;
	const struct job_comm *of = &job->comms[comm];
	uint32_t count = 0;

	for (uint32_t i = 0; i < of->seat_count; i++) {
		uint32_t rank = job->seats[of->seats[i]].rank;

		if (rank != but_rank && job->ranks[rank].host != but_host && is_known(table, rank))
			table->scratch[count++] =
				table->share[(size_t)rank * table->windows + window];
	}
	return count > 0 ? stats_lower_middle(table->scratch, count) : NAN;
}

static void fill_middles(struct own_table *table)
{
	const struct job *job = table->search->job;

	for (uint32_t c = 0; c < job->comm_count; c++)
		for (uint32_t w = 0; table->is_compared[c] && job->comms[c].seat_count > SMALL &&
				     w < table->windows;
		     w++)
			table->comm_middle[(size_t)c * table->windows + w] =
				comm_middle(table, c, w, UINT32_MAX, UINT32_MAX);
}

/* How much longer than its peers in every communicator; false: it has none. *with: the smallest of these. */
static bool rank_excess(const struct own_table *table, uint32_t rank, double *excess,
			uint32_t *with)
{
	const struct job *job = table->search->job;
	double most[STRAGGLER_BLOCKS];

	*with = UINT32_MAX;
	for (uint32_t c = 0; c < job->comm_count; c++) {
		if (!table->is_compared[c] || !job_is_member(job, c, rank))
			continue;
		for (uint32_t w = 0; w < table->windows; w++) {
			double middle = job->comms[c].seat_count > SMALL
						? table->comm_middle[(size_t)c * table->windows + w]
						: comm_middle(table, c, w, rank, UINT32_MAX);

			if (*with == UINT32_MAX || isnan(most[w]) || middle > most[w])
				most[w] = middle;
		}
		if (*with == UINT32_MAX || job->comms[c].seat_count < job->comms[*with].seat_count)
			*with = c;
	}
	for (uint32_t w = 0; *with != UINT32_MAX && w < table->windows; w++)
		excess[w] = table->share[(size_t)rank * table->windows + w] - most[w];
	return *with != UINT32_MAX;
}

static double host_middle(const struct own_table *table, uint32_t host, uint32_t window)
{
	const struct job *job = table->search->job;
	uint32_t count = 0;

	for (uint32_t r = 0; r < job->rank_count; r++)
		if (job->ranks[r].host == host && is_known(table, r))
			table->scratch[count++] = table->share[(size_t)r * table->windows + window];
	return count > 0 ? stats_lower_middle(table->scratch, count) : NAN;
}

/* Against the members on other hosts of every communicator that it shares with some; without one, against
 * all other hosts (*with is UINT32_MAX). */
static bool host_excess(const struct own_table *table, uint32_t host, const double *middles,
			double *excess, uint32_t *with)
{
	const struct job *job = table->search->job;
	uint32_t w, others = 0;
	double most[STRAGGLER_BLOCKS];

	*with = UINT32_MAX;
	for (w = 0; w < table->windows; w++)
		most[w] = NAN;
	for (uint32_t c = 0; c < job->comm_count; c++) {
		uint32_t here = table->is_compared[c] ? job_members_on(job, c, host) : 0;

		if (here == 0 || here == job->comms[c].seat_count)
			continue;
		for (w = 0; w < table->windows; w++)
			most[w] = fmax(most[w], comm_middle(table, c, w, UINT32_MAX, host));
		if (*with == UINT32_MAX || job->comms[c].seat_count < job->comms[*with].seat_count)
			*with = c;
	}
	for (uint32_t h = 0; *with == UINT32_MAX && h < job->host_count; h++) {
		if (h == host || isnan(middles[(size_t)h * table->windows]))
			continue;
		others++;
		for (w = 0; w < table->windows; w++)
			most[w] = fmax(most[w], middles[(size_t)h * table->windows + w]);
	}
	for (w = 0; w < table->windows; w++)
		excess[w] = middles[(size_t)host * table->windows + w] - most[w];
	return *with != UINT32_MAX || others > 0;
}

/* ---- origins ---------------------------------------------------------------------------------- */

/* The spread of what is compared, from window to window; a few that stand out do not matter. */
static double noise_of(double *sizes, size_t count)
{
	return count > 0 ? stats_median(sizes, count) / 0.6745 : 0;
}

static void take_times(struct straggler *origin, const struct own_table *table,
		       const double *excess, const struct straggler_stretch *stretch)
{
	struct straggler_table blocks = { .blocks = table->windows };
	uint64_t start_ns[STRAGGLER_BLOCKS], end_ns[STRAGGLER_BLOCKS];
	bool is_on[STRAGGLER_BLOCKS];
	double sum = 0;

	for (uint32_t w = 0; w < table->windows; w++) {
		start_ns[w] = table->start_ns + w * table->width_ns;
		end_ns[w] = start_ns[w] + table->width_ns;
		is_on[w] = !isnan(excess[w]) && excess[w] > stretch->typical / 2;
		sum += is_on[w] ? excess[w] : 0;
	}
	blocks.start_ns = start_ns;
	blocks.end_ns = end_ns;
	straggler_times(origin, &blocks, is_on);
	origin->own_excess = stretch->typical;
	origin->cost_share = sum / table->windows;
}

static void add_origin(struct straggler_search *search, const struct own_table *table,
		       struct straggler *origin, const double *excess,
		       const struct straggler_stretch *stretch, double chance)
{
	const struct job *job = search->job;
	uint32_t others = 0;
	double span_ns = (double)table->width_ns * table->windows;

	for (uint32_t r = 0; r < job->rank_count; r++)
		others += job->ranks[r].group == table->group &&
			  (origin->class == STRAGGLER_SLOW_HOST ? job->ranks[r].host != origin->host
								: r != origin->rank);
	origin->peer = UINT32_MAX;
	origin->channel = -1;
	origin->is_origin = true;
	origin->confidence = 1 - chance;
	take_times(origin, table, excess, stretch);
	origin->caused_ns = units_whole(origin->cost_share * span_ns * others);
	origin->share_of_ns = 1 / (span_ns * (others + 1));
	straggler_add(search, origin);
}

static uint32_t comm_of_host(const struct job *job, uint32_t group, uint32_t host)
{
	uint32_t best = 0, most = 0;

	for (uint32_t c = 0; c < job->comm_count; c++)
		if (job->comms[c].group == group && job->comms[c].seat_count > most &&
		    job_members_on(job, c, host) > 0) {
			best = c;
			most = job->comms[c].seat_count;
		}
	return best;
}

/* A host is slow if it stands out from its peers. Asynchronous Sends cover some compute of the ranks that wait
 * for it, and not of others: those stand out a little, too. So only the one that stands out most is named. */
struct own_best {
	uint32_t host; /* UINT32_MAX none */
	struct straggler_stretch stretch;
	double second; /* what the next one is above its peers */
};

static void add_host(struct straggler_search *search, const struct own_table *table,
		     const struct own_best *best, uint32_t with, const double *excess,
		     uint32_t hosts)
{
	struct straggler origin = {
		.class = STRAGGLER_SLOW_HOST, .rank = UINT32_MAX, .host = best->host, .comm = with
	};
	struct straggler *added;

	if (with == UINT32_MAX)
		origin.comm = comm_of_host(search->job, table->group, best->host);
	add_origin(search, table, &origin, excess, &best->stretch, best->stretch.chance * hosts);
	if (search->status != OK)
		return;
	added = &search->found[search->count - 1];
	/* From the beginning, it may have more work by design. */
	added->is_stage = with == UINT32_MAX &&
			  (added->pattern == STRAGGLER_ALWAYS || added->pattern == STRAGGLER_UNTIL);
	if (added->is_stage || best->second > clear_second * best->stretch.typical)
		added->confidence *= sure_of_stage;
}

/* excess: [host * windows + window] */
static void judge_hosts(struct straggler_search *search, const struct own_table *table,
			const double *middles, double *excess, uint32_t *with)
{
	const struct job *job = search->job;
	size_t cells = job->host_count * table->windows, count = 0;
	double *sizes = calloc(cells + 1, sizeof(*sizes)), noise;
	struct own_best best = { .host = UINT32_MAX };
	uint32_t hosts = 0;

	if (sizes == NULL) {
		search->status = ERR_NO_SPACE;
		return;
	}
	for (uint32_t h = 0; h < job->host_count; h++) {
		double *of = &excess[(size_t)h * table->windows];

		if (!host_excess(table, h, middles, of, &with[h]))
			of[0] = NAN;
		hosts += !isnan(of[0]);
		for (uint32_t w = 0; !isnan(of[0]) && w < table->windows; w++)
			sizes[count++] = fabs(of[w]);
	}
	noise = noise_of(sizes, count);
	free(sizes);
	for (uint32_t h = 0; h < job->host_count && hosts > 1; h++) {
		const double *of = &excess[(size_t)h * table->windows];
		struct straggler_stretch stretch;

		if (isnan(of[0]))
			continue;
		stretch = straggler_stretch(of, table->windows, share_of_time_that_matters, noise);
		if (!stretch.is_found || stretch.chance * hosts >= chance_accepted)
			continue;
		if (best.host != UINT32_MAX && stretch.typical <= best.stretch.typical) {
			best.second = fmax(best.second, stretch.typical);
			continue;
		}
		best = (struct own_best){ h, stretch,
					  best.host != UINT32_MAX ? best.stretch.typical : 0 };
	}
	if (best.host != UINT32_MAX)
		add_host(search, table, &best, with[best.host],
			 &excess[(size_t)best.host * table->windows], hosts);
}

static void find_hosts(struct straggler_search *search, const struct own_table *table)
{
	const struct job *job = search->job;
	double *middles = calloc(job->host_count * table->windows + 1, sizeof(*middles));
	double *excess = calloc(job->host_count * table->windows + 1, sizeof(*excess));
	uint32_t *with = calloc(job->host_count + 1, sizeof(*with));

	if (middles == NULL || excess == NULL || with == NULL) {
		search->status = ERR_NO_SPACE;
	} else {
		for (uint32_t h = 0; h < job->host_count; h++)
			for (uint32_t w = 0; w < table->windows; w++)
				middles[(size_t)h * table->windows + w] = host_middle(table, h, w);
		judge_hosts(search, table, middles, excess, with);
	}
	free(middles);
	free(excess);
	free(with);
}

static void find_ranks(struct straggler_search *search, const struct own_table *table)
{
	const struct job *job = search->job;
	double *excess = calloc(job->rank_count * table->windows + 1, sizeof(*excess));
	double *sizes = calloc(job->rank_count * table->windows + 1, sizeof(*sizes)), noise;
	uint32_t *with = calloc(job->rank_count + 1, sizeof(*with)), compared = 0;
	size_t count = 0;

	if (excess == NULL || sizes == NULL || with == NULL)
		search->status = ERR_NO_SPACE;
	for (uint32_t r = 0; search->status == OK && r < job->rank_count; r++) {
		double *of = &excess[(size_t)r * table->windows];

		with[r] = UINT32_MAX;
		if (!is_known(table, r) || !rank_excess(table, r, of, &with[r]))
			continue;
		compared++;
		for (uint32_t w = 0; w < table->windows; w++)
			sizes[count++] = fabs(of[w]);
	}
	noise = search->status == OK ? noise_of(sizes, count) : 0;
	for (uint32_t r = 0; search->status == OK && r < job->rank_count; r++) {
		const double *of = &excess[(size_t)r * table->windows];
		struct straggler origin = { .class = STRAGGLER_SLOW_RANK,
					    .rank = r,
					    .host = job->ranks[r].host,
					    .comm = with[r] };
		struct straggler_stretch stretch;

		if (with[r] == UINT32_MAX)
			continue;
		stretch = straggler_stretch(of, table->windows, share_of_time_that_matters, noise);
		if (stretch.is_found && stretch.chance * compared < chance_accepted)
			add_origin(search, table, &origin, of, &stretch, stretch.chance * compared);
	}
	free(excess);
	free(sizes);
	free(with);
}

/* Most ranks of a host stand out, about equally: it is the host. first: the job's first in search->found. */
static void merge_ranks(struct straggler_search *search, const struct own_table *table,
			size_t first)
{
	const struct job *job = search->job;

	for (size_t i = first; i < search->count; i++) {
		struct straggler *one = &search->found[i];
		uint32_t members = 0, late = 0;
		double most = 0;

		for (uint32_t r = 0; r < job->rank_count; r++)
			members += job->ranks[r].host == one->host && is_known(table, r);
		for (size_t j = first; j < search->count; j++)
			if (search->found[j].host == one->host)
				most = fmax(most, search->found[j].own_excess);
		for (size_t j = first; j < search->count; j++)
			late += search->found[j].host == one->host &&
				search->found[j].own_excess * 2 > most;
		if (members < 2 || late * 4 < members * 3 || job->host_count < 2)
			continue;
		one->class = STRAGGLER_SLOW_HOST;
		one->rank = UINT32_MAX;
		for (size_t j = i + 1; j < search->count;) {
			if (search->found[j].host == one->host)
				search->found[j] = search->found[--search->count];
			else
				j++;
		}
	}
}

/* ---- one job ---------------------------------------------------------------------------------- */

bool straggler_has_sends(const struct straggler_search *search, uint32_t group)
{
	for (size_t i = 0; i < search->links->count; i++) {
		const struct link *link = &search->links->list[i];

		if (search->job->comms[link->comm].group == group &&
		    link->to != search->job->seats[link->from].comm_rank)
			return true;
	}
	return false;
}

static uint32_t count_known(const struct own_table *table)
{
	uint32_t count = 0, known = 0;

	for (uint32_t r = 0; r < table->search->job->rank_count; r++) {
		count += table->search->job->ranks[r].group == table->group;
		known += is_known(table, r);
	}
	return known * 20 >= count * 19 ? known : 0;
}

static bool fill_table(struct straggler_search *search, struct own_table *table)
{
	const struct job *job = search->job;

	search->status = own_table_allocate(table);
	for (uint32_t r = 0; search->status == OK && r < job->rank_count; r++)
		if (job->ranks[r].group == table->group)
			search->status = read_rank(table, r);
	if (search->status != OK || count_known(table) < RANKS_LEAST)
		return false;
	/* All ranks are compared by the same. */
	if (table->is_vague)
		memcpy(table->share, table->sure_share,
		       job->rank_count * table->windows * sizeof(*table->share));
	for (uint32_t c = 0; c < job->comm_count; c++)
		table->is_compared[c] = job->comms[c].group == table->group &&
					job->comms[c].seat_count > 1 && !search->is_staggered[c];
	fill_middles(table);
	return true;
}

bool straggler_origins(struct straggler_search *search, uint32_t group,
		       const struct timeline_rank *ranks)
{
	struct own_table table = { .search = search, .group = group };
	size_t first = search->count;
	bool is_judged;

	if (!find_time(&table, ranks))
		return false;
	is_judged = fill_table(search, &table);
	if (is_judged)
		find_ranks(search, &table);
	if (is_judged && search->status == OK)
		merge_ranks(search, &table, first);
	if (is_judged && search->status == OK && search->count == first)
		find_hosts(search, &table);
	own_table_release(&table);
	return is_judged;
}
