/*
 * A report beside a second one that is computed the simple way: each value of each row from a list of all operations.
 * Four ranks and seven communicators; functions, sizes, sources of time, tags and flags in any mixture.
 */
#include "analysis/timeline_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"
#include "tests/support/hand_made.h"

enum { RANKS = 4, OPS_MAX = 4096 };

static const struct {
	uint64_t hash;
	const char *name;
	int first; /* rank */
	int nranks;
	int nnodes;
} comms[] = {
	{ 0x10, "world", 0, 4, 2 }, { 0x21, "pair", 0, 2, 1 }, { 0x22, "pair", 2, 2, 1 },
	{ 0x31, "", 0, 2, 1 },	    { 0x32, "", 2, 2, 1 },     { 0x33, "", 0, 4, 2 },
	{ 0, "unknown", 0, 2, 1 },
};
enum { COMMS = sizeof(comms) / sizeof(comms[0]) };

struct model_op {
	const struct op_record *op;
	uint32_t comm; /* index into job.comms */
	uint32_t rank;
	uint64_t ns;
	bool is_used;	/* passes the filter */
	bool is_joined; /* numbered, and could be matched */
	uint32_t met;	/* ranks in the same collective, itself too */
	uint64_t least_ns;
};

static struct hand_made hand;
static struct timeline_report report;
static struct filter filter;
static struct timeline_options options;
static struct model_op list[OPS_MAX];
static size_t count;

static uint32_t any(uint32_t below)
{
	static uint32_t seed = 2024;

	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

static void describe(struct op_record *op, uint64_t ns)
{
	/* What is not the source of its duration is something else. */
	op->issue_ns = op->done_ns - ns - (op->time_source == OP_TIME_HOST ? 0 : 300);
	op->active_ns = op->done_ns - ns - (op->time_source == OP_TIME_PROXY ? 0 : 70);
	op->gpu_start_ns = 1000000000;
	op->gpu_stop_ns = 1000000000 + ns + (op->time_source == OP_TIME_KERNEL_GPU ? 0 : 11);
}

/* One call of each rank of a communicator; that of the last one may be lost. */
static void call(size_t c, uint64_t number, uint64_t end_ns)
{
	static const uint8_t functions[] = { OP_ALL_REDUCE, OP_ALL_GATHER, OP_REDUCE_SCATTER,
					     OP_BROADCAST };
	static const uint64_t sizes[] = { 0, 1, 8, 4095, 4096, 1 << 20, OP_BYTES_UNKNOWN };
	static const uint8_t sources[] = { OP_TIME_KERNEL_GPU, OP_TIME_CUDA_EVENT, OP_TIME_PROXY,
					   OP_TIME_HOST, OP_TIME_NONE };
	uint8_t function = functions[any(4)], shown = sources[any(5)];
	uint8_t source = shown == OP_TIME_CUDA_EVENT ? OP_TIME_KERNEL_GPU : shown;
	bool is_tool = (source == OP_TIME_PROXY || source == OP_TIME_HOST) && any(2);
	uint32_t timing = is_tool			? OP_FLAG_TOOL_TIME
			  : shown != OP_TIME_CUDA_EVENT ? 0
			  : any(3) == 0			? OP_FLAG_CUDA_EVENT | OP_FLAG_SHARED_TIME
							: OP_FLAG_CUDA_EVENT;
	uint64_t bytes = sizes[any(7)], tag = any(4);
	bool is_untrusted = source != OP_TIME_KERNEL_GPU && any(4) == 0;
	bool is_replay = any(4) == 0, is_captured = source == OP_TIME_NONE && any(3) == 0;
	bool has_number = any(12) != 0, is_last_lost = any(5) == 0;
	uint8_t protocol = any(2) ? OP_LL : OP_SIMPLE;

	for (int rank = comms[c].first; rank < comms[c].first + comms[c].nranks; rank++) {
		uint32_t id = 0;
		struct op_record *op;
		uint64_t ns = 1000 + any(30000);

		if (is_last_lost && rank == comms[c].first + comms[c].nranks - 1)
			continue;
		for (size_t i = 0; i <= c; i++)
			id += rank >= comms[i].first && rank < comms[i].first + comms[i].nranks;
		op = hand_op(hand.list[rank], id, function, has_number ? number : 0, bytes, ns,
			     end_ns);
		op->time_source = source;
		op->user_tag = tag;
		op->protocol = protocol;
		op->flags = timing | (is_untrusted ? OP_FLAG_STAMP_STALE : 0) |
			    (is_replay ? OP_FLAG_REPLAY : 0);
		if (is_captured)
			op->state = OP_CAPTURED;
		describe(op, ns);
	}
}

static void recorded(void)
{
	for (int rank = 0; rank < RANKS; rank++) {
		hand_process(&hand, "j", rank, rank < 2 ? "a" : "b");
		for (size_t c = 0; c < COMMS; c++)
			if (rank >= comms[c].first && rank < comms[c].first + comms[c].nranks)
				hand_comm(hand.list[rank], comms[c].hash, comms[c].name,
					  rank - comms[c].first, comms[c].nranks, comms[c].nnodes);
	}
	for (uint64_t number = 1; number <= 60; number++)
		for (size_t c = 0; c < COMMS; c++)
			call(c, number, 1000000 + (number * COMMS + c) * 10000);
}

static uint8_t source_of(const struct op_record *op)
{
	return op_shown_source(op->time_source, op->flags);
}

/* Matched for their time on the wire only; here nothing is sent. */
static bool is_span(const struct op_record *op)
{
	return source_of(op) == OP_TIME_PROXY;
}

static bool is_shown(uint32_t rank)
{
	return report.ranks[rank].is_shown;
}

static bool is_call(const struct model_op *own)
{
	return own->is_used && own->op->state != OP_CAPTURED;
}

/* Collectives by communicator, source of time, replay and number. */
static void match_all(void)
{
	for (size_t i = 0; i < count; i++) {
		struct model_op *own = &list[i];

		own->met = 0;
		own->least_ns = UINT64_MAX;
		own->is_joined = is_call(own) && match_is_synchronising(own->op->function) &&
				 own->op->match != 0 && report.job.comms[own->comm].hash != 0 &&
				 (own->op->time_source == OP_TIME_KERNEL_GPU ||
				  own->op->time_source == OP_TIME_PROXY) &&
				 !is_span(own->op) && !options.without_joins;
	}
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < count; j++) {
			const struct op_record *a = list[i].op, *b = list[j].op;

			if (!list[i].is_joined || !list[j].is_joined ||
			    list[i].comm != list[j].comm || source_of(a) != source_of(b) ||
			    a->match != b->match ||
			    (a->flags & OP_FLAG_REPLAY) != (b->flags & OP_FLAG_REPLAY))
				continue;
			list[i].met++;
			if (list[j].ns < list[i].least_ns)
				list[i].least_ns = list[j].ns;
		}
}

static void modelled(void)
{
	enum status status = timeline_report_make(&report, &hand.recording, &filter, &options);

	if (status != OK)
		abort();
	count = 0;
	for (uint32_t p = 0; p < RANKS; p++)
		for (size_t i = 0; i < hand.list[p]->flight_count; i++) {
			const struct op_record *op = &hand.list[p]->flights[i].op;
			const struct job_seat *seat = job_seat(&report.job, p, op->comm);

			list[count++] = (struct model_op){
				.op = op,
				.comm = seat->comm,
				.rank = seat->rank,
				.ns = op_duration_ns(op),
				.is_used = (!filter.has_tag || filter.tag == op->user_tag) &&
					   (filter.function_count == 0 ||
					    op->function == OP_ALL_REDUCE),
			};
		}
	match_all();
}

static void over(void)
{
	timeline_report_release(&report);
	memset(&filter, 0, sizeof(filter));
	memset(&options, 0, sizeof(options));
}

/* The first communicator that belongs into the same row of a table by name. */
static uint32_t first_named(uint32_t c)
{
	const struct job_comm *own = &report.job.comms[c];

	for (uint32_t i = 0; i < c; i++) {
		const struct job_comm *other = &report.job.comms[i];

		if (other->group == own->group && strcmp(other->name, own->name) == 0 &&
		    (own->name[0] != '\0' ||
		     (own->nranks == other->nranks && own->nnodes == other->nnodes)))
			return i;
	}
	return c;
}

static bool is_in_row(const struct model_op *own, uint32_t by, const struct tally_key *key)
{
	const struct job_rank *rank = &report.job.ranks[own->rank];

	return (!(by & TALLY_BY_COMM) || key->comm == own->comm) &&
	       (!(by & TALLY_BY_COMM_NAME) || by & TALLY_BY_COMM ||
		key->comm == first_named(own->comm)) &&
	       (!(by & TALLY_BY_KIND) || key->kind == report.job.comms[own->comm].kind) &&
	       (!(by & TALLY_BY_FUNCTION) || key->function == own->op->function) &&
	       (!(by & TALLY_BY_SIZE) || key->size_class == op_size_class(own->op->bytes)) &&
	       (!(by & TALLY_BY_DATATYPE) || key->datatype == own->op->datatype) &&
	       (!(by & TALLY_BY_ALGORITHM) || key->algorithm == own->op->algorithm) &&
	       (!(by & TALLY_BY_PROTOCOL) || key->protocol == own->op->protocol) &&
	       (!(by & TALLY_BY_RANK) || key->rank == own->rank) &&
	       (!(by & TALLY_BY_HOST) || key->host == rank->host) &&
	       (!(by & TALLY_BY_TAG) || key->tag == own->op->user_tag) &&
	       (!(by & TALLY_BY_SOURCE) || key->source == source_of(own->op)) &&
	       (!(by & TALLY_BY_GROUP) || key->group == rank->group);
}

static void add_timed(struct tally_row *row, const struct model_op *own)
{
	int32_t nranks = report.job.comms[own->comm].nranks;

	row->min_ns = row->timed == 0 || own->ns < row->min_ns ? own->ns : row->min_ns;
	row->max_ns = own->ns > row->max_ns ? own->ns : row->max_ns;
	row->timed++;
	row->sum_ns += own->ns;
	row->square_sum += (double)own->ns * (double)own->ns;
	row->shared += own->op->flags & OP_FLAG_SHARED_TIME ? 1 : 0;
	if (own->op->bytes == OP_BYTES_UNKNOWN || own->op->flags & OP_FLAG_SHARED_TIME)
		return;
	row->sized_bytes += own->op->bytes;
	row->sized_ns += own->ns;
	row->bus_bytes += (double)own->op->bytes * op_bus_factor(own->op->function, nranks);
	row->bus_ns += own->ns;
}

static void add_call(struct tally_row *row, const struct model_op *own, bool *ranks)
{
	row->ranks += !ranks[own->rank];
	ranks[own->rank] = true;
	if (own->op->state == OP_CAPTURED) {
		row->captured++;
		return;
	}
	row->calls++;
	row->by_source[source_of(own->op)]++;
	row->untrusted += own->op->flags & OP_STAMPS_UNTRUSTED ? 1 : 0;
	if (own->op->bytes == OP_BYTES_UNKNOWN)
		row->unknown_size++;
	else
		row->bytes += own->op->bytes;
	if (op_has_duration(own->op))
		add_timed(row, own);
	if (!own->is_joined || own->met < 2)
		return;
	row->joined++;
	row->joined_ns += own->ns;
	row->joined_least_ns += own->least_ns;
	row->wait_ns += own->ns - own->least_ns;
}

static bool is_near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b));
}

/* Each collective once: of those that are shown, the first rank's. */
static void add_moves(struct tally_row *row, uint32_t by)
{
	for (size_t i = 0; i < count; i++) {
		bool is_first = true;

		if (!list[i].is_joined || list[i].met < 2 || !is_shown(list[i].rank) ||
		    !is_in_row(&list[i], by, &row->key))
			continue;
		for (uint32_t r = 0; r < list[i].rank; r++)
			for (uint32_t s = 0; s < report.job.comms[list[i].comm].seat_count; s++) {
				uint32_t seat = report.job.comms[list[i].comm].seats[s];

				is_first = is_first &&
					   !(report.job.seats[seat].rank == r && is_shown(r));
			}
		if (!is_first)
			continue;
		row->moves++;
		row->move_log_sum += log((double)list[i].least_ns);
		row->move_log_squares +=
			log((double)list[i].least_ns) * log((double)list[i].least_ns);
	}
}

static bool is_row_right(const struct tally_row *row, uint32_t by)
{
	struct tally_row wanted = { .key = row->key };
	bool ranks[RANKS] = { false };
	uint64_t buckets = 0;

	for (size_t i = 0; i < count; i++)
		if (list[i].is_used && is_shown(list[i].rank) && is_in_row(&list[i], by, &row->key))
			add_call(&wanted, &list[i], ranks);
	add_moves(&wanted, by);
	for (unsigned int i = 0; i < row->histogram.used; i++)
		buckets += row->histogram.counts[i];
	return row->ranks == wanted.ranks && row->calls == wanted.calls && row->open == 0 &&
	       row->captured == wanted.captured && row->unknown_size == wanted.unknown_size &&
	       row->untrusted == wanted.untrusted && row->bytes == wanted.bytes &&
	       row->timed == wanted.timed && row->shared == wanted.shared &&
	       memcmp(row->by_source, wanted.by_source, sizeof(wanted.by_source)) == 0 &&
	       row->sum_ns == wanted.sum_ns && row->min_ns == wanted.min_ns &&
	       row->max_ns == wanted.max_ns && is_near(row->square_sum, wanted.square_sum) &&
	       row->sized_bytes == wanted.sized_bytes && row->sized_ns == wanted.sized_ns &&
	       is_near(row->bus_bytes, wanted.bus_bytes) && row->bus_ns == wanted.bus_ns &&
	       row->joined == wanted.joined && row->joined_ns == wanted.joined_ns &&
	       row->joined_least_ns == wanted.joined_least_ns && row->wait_ns == wanted.wait_ns &&
	       buckets == wanted.timed && row->moves == wanted.moves &&
	       is_near(row->move_log_sum, wanted.move_log_sum) &&
	       is_near(row->move_log_squares, wanted.move_log_squares);
}

static void expect_table(const char *name, const struct tally *tally)
{
	uint64_t calls = 0;
	size_t wrong = 0;

	for (size_t i = 0; i < tally->count; i++) {
		wrong += !is_row_right(&tally->rows[i], tally->by);
		calls += tally->rows[i].calls + tally->rows[i].captured;
	}
	EXPECT_THAT(name, wrong == 0 && !tally->has_other);
	EXPECT_THAT("each operation is in one row",
		    calls == report.total.calls + report.total.captured);
}

static int by_start(const void *left, const void *right)
{
	const struct exposed_span *a = left, *b = right;

	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* The time in which at least one of a rank's operations ran. */
static uint64_t busy_of(uint32_t rank)
{
	static struct exposed_span spans[OPS_MAX];
	uint64_t busy_ns = 0, end_ns = 0;
	size_t used = 0;

	for (size_t i = 0; i < count; i++)
		if (list[i].rank == rank && is_call(&list[i]) && list[i].ns > 0)
			spans[used++] = (struct exposed_span){ list[i].op->done_ns - list[i].ns,
							       list[i].op->done_ns };
	qsort(spans, used, sizeof(spans[0]), by_start);
	for (size_t i = 0; i < used; i++) {
		uint64_t start_ns = spans[i].start_ns > end_ns ? spans[i].start_ns : end_ns;

		if (spans[i].end_ns <= start_ns)
			continue;
		busy_ns += spans[i].end_ns - start_ns;
		end_ns = spans[i].end_ns;
	}
	return busy_ns;
}

static void expect_ranks(void)
{
	for (uint32_t r = 0; r < RANKS; r++) {
		const struct timeline_rank *rank = &report.ranks[r];
		struct tally_row row = { .calls = 0 };
		bool ranks[RANKS] = { false };
		uint64_t first_ns = UINT64_MAX, last_ns = 0;

		for (size_t i = 0; i < count; i++) {
			const struct op_record *op = list[i].op;
			bool is_timed = op_has_duration(op);
			uint64_t from_ns = is_timed ? op->done_ns - list[i].ns : op->issue_ns;

			if (!list[i].is_used || list[i].rank != r)
				continue;
			add_call(&row, &list[i], ranks);
			if (op->state == OP_CAPTURED)
				continue;
			first_ns = from_ns < first_ns ? from_ns : first_ns;
			last_ns = op->done_ns > last_ns ? op->done_ns : last_ns;
		}
		EXPECT(rank->calls == row.calls && rank->open == 0 && rank->timed == row.timed &&
		       rank->sum_ns == row.sum_ns && rank->bytes == row.bytes);
		EXPECT(rank->joined == row.joined && rank->joined_ns == row.joined_ns &&
		       rank->least_ns == row.joined_least_ns && rank->wait_ns == row.wait_ns);
		EXPECT_EQUAL(rank->busy_ns, busy_of(r));
		EXPECT_EQUAL(rank->span_ns, last_ns - first_ns);
	}
}

static void expect_counts(void)
{
	uint64_t joined = 0, untimed = 0, unmatched = 0, looked_at = 0;

	for (size_t i = 0; i < count; i++) {
		uint8_t source = list[i].op->time_source;

		looked_at += list[i].is_used && is_shown(list[i].rank);
		if (!is_call(&list[i]) || !match_is_synchronising(list[i].op->function))
			continue;
		if (source == OP_TIME_NONE || source == OP_TIME_HOST)
			untimed++;
		else if (list[i].is_joined ||
			 (is_span(list[i].op) && list[i].op->match != 0 &&
			  report.job.comms[list[i].comm].hash != 0 && !options.without_joins))
			joined++;
		else
			unmatched++;
	}
	EXPECT_EQUAL(report.completeness.looked_at, looked_at);
	EXPECT_EQUAL(report.completeness.read, count);
	EXPECT_EQUAL(report.matches.joined, joined);
	EXPECT_EQUAL(report.matches.untimed, untimed);
	EXPECT_EQUAL(report.matches.unmatched, unmatched);
}

static double total_of(const double *values)
{
	double total = 0;

	for (uint32_t w = 0; w < report.windows.count; w++)
		total += values[w];
	return total;
}

static bool is_about(double a, double b)
{
	return fabs(a - b) <= 1e-4 * (fabs(a) + fabs(b));
}

/* Rounded to float on their way. */
static void expect_series(void)
{
	for (size_t s = 0; s < report.windows.series_count; s++) {
		const struct windows_series *series = &report.windows.series[s];
		struct tally_row row = { .calls = 0 };
		bool ranks[RANKS] = { false };

		for (size_t i = 0; i < count; i++)
			if (is_call(&list[i]) && is_shown(list[i].rank) &&
			    op_has_duration(list[i].op) &&
			    report.job.comms[list[i].comm].kind == series->kind &&
			    list[i].op->function == series->function)
				add_call(&row, &list[i], ranks);
		EXPECT(row.calls > 0 && is_about(total_of(series->calls), (double)row.calls) &&
		       is_about(total_of(series->bytes), (double)row.bytes));
		EXPECT(is_about(total_of(series->time_ns), (double)row.sized_ns) &&
		       is_about(total_of(series->bus_bytes), row.bus_bytes));
	}
}

/* Is it counted where each collective is counted once? */
static bool is_collective(size_t i)
{
	if (!list[i].is_joined || list[i].met < 2)
		return false;
	for (size_t j = 0; j < i; j++)
		if (list[j].is_joined && list[j].comm == list[i].comm &&
		    source_of(list[j].op) == source_of(list[i].op) &&
		    list[j].op->match == list[i].op->match &&
		    (list[j].op->flags & OP_FLAG_REPLAY) == (list[i].op->flags & OP_FLAG_REPLAY))
			return false;
	return true;
}

/* Collectives without waiting, in the window in which they ended. */
static void expect_moves(void)
{
	const struct windows *windows = &report.windows;
	size_t wrong = 0;

	for (size_t s = 0; s < windows->series_count; s++)
		for (uint32_t w = 0; w < windows->count; w++) {
			uint64_t from_ns = windows->start_ns + w * windows->width_ns;
			double bus_bytes = 0, ns = 0;

			for (size_t i = 0; i < count; i++) {
				const struct job_comm *comm = &report.job.comms[list[i].comm];
				uint64_t end_ns = list[i].op->done_ns;

				if (comm->kind != windows->series[s].kind ||
				    list[i].op->function != windows->series[s].function ||
				    list[i].op->bytes == OP_BYTES_UNKNOWN ||
				    list[i].op->bytes == 0 ||
				    list[i].op->flags & OP_FLAG_SHARED_TIME || end_ns < from_ns ||
				    end_ns >= from_ns + windows->width_ns || !is_collective(i))
					continue;
				bus_bytes += (double)list[i].op->bytes *
					     op_bus_factor(list[i].op->function, comm->nranks);
				ns += (double)list[i].least_ns;
			}
			wrong += !is_near(windows->series[s].move_bus_bytes[w], bus_bytes) ||
				 !is_near(windows->series[s].move_ns[w], ns);
		}
	EXPECT_THAT("transfers are in the windows in which they ended", wrong == 0);
}

/* Matches are kept in chunks; what a rank waited in one lies evenly over the time of its matches. */
static void chunk_ends(size_t of, uint64_t *first_ns, uint64_t *last_ns)
{
	*first_ns = UINT64_MAX;
	*last_ns = 0;
	for (size_t i = 0; i < count; i++) {
		if (!list[i].is_joined || list[i].comm != list[of].comm ||
		    source_of(list[i].op) != source_of(list[of].op) ||
		    list[i].op->match / MATCH_CHUNK != list[of].op->match / MATCH_CHUNK ||
		    (list[i].op->flags & OP_FLAG_REPLAY) != (list[of].op->flags & OP_FLAG_REPLAY))
			continue;
		*first_ns = list[i].op->done_ns < *first_ns ? list[i].op->done_ns : *first_ns;
		*last_ns = list[i].op->done_ns > *last_ns ? list[i].op->done_ns : *last_ns;
	}
}

static double share_in(uint64_t from_ns, uint64_t to_ns, uint64_t first_ns, uint64_t last_ns)
{
	uint64_t from = first_ns > from_ns ? first_ns : from_ns;
	uint64_t to = last_ns + 1 < to_ns ? last_ns + 1 : to_ns;

	return to > from ? (double)(to - from) / (double)(last_ns + 1 - first_ns) : 0;
}

static void expect_matrix(void)
{
	const struct windows *windows = &report.windows;
	const struct windows_matrix *matrix = &windows->waiting;
	static double wait_ns[RANKS][WINDOWS_MOST], joined_ns[RANKS][WINDOWS_MOST];
	uint32_t row = 0;
	size_t wrong = 0;

	memset(wait_ns, 0, sizeof(wait_ns));
	memset(joined_ns, 0, sizeof(joined_ns));
	for (size_t i = 0; i < count && windows->count > 0; i++) {
		uint64_t first_ns, last_ns;

		if (!list[i].is_joined)
			continue;
		chunk_ends(i, &first_ns, &last_ns);
		for (uint32_t w = 0; w < windows->count; w++) {
			uint64_t from_ns = windows->start_ns + w * windows->width_ns;
			double share =
				share_in(from_ns, from_ns + windows->width_ns, first_ns, last_ns);

			wait_ns[list[i].rank][w] += (double)(list[i].ns - list[i].least_ns) * share;
			joined_ns[list[i].rank][w] += (double)list[i].ns * share;
		}
	}
	for (uint32_t r = 0; r < RANKS && windows->count > 0; r++) {
		if (!is_shown(r))
			continue;
		wrong += matrix->first_rank[row] != r || matrix->last_rank[row] != r;
		for (uint32_t w = 0; w < windows->count; w++) {
			size_t at = (size_t)row * windows->count + w;

			wrong += fabs(matrix->wait_ns[at] - wait_ns[r][w]) > 0.01 ||
				 fabs(matrix->joined_ns[at] - joined_ns[r][w]) > 0.01;
		}
		row++;
	}
	EXPECT_THAT("waiting by rank and window", wrong == 0);
	EXPECT_EQUAL(matrix->rows, row);
	EXPECT_EQUAL(matrix->ranks_per_row, windows->count > 0 ? 1 : 0);
}

/* The part of the recording that a collective is in, by its number. */
static unsigned int part_of(size_t of)
{
	uint64_t first = UINT64_MAX, last = 0;
	double place;

	for (size_t i = 0; i < count; i++) {
		uint64_t chunk = list[i].op->match / MATCH_CHUNK;

		if (!list[i].is_joined || list[i].comm != list[of].comm ||
		    source_of(list[i].op) != source_of(list[of].op) ||
		    (list[i].op->flags & OP_FLAG_REPLAY) != (list[of].op->flags & OP_FLAG_REPLAY))
			continue;
		first = chunk < first ? chunk : first;
		last = chunk > last ? chunk : last;
	}
	place = (double)list[of].op->match / MATCH_CHUNK - (double)first;
	return (unsigned int)(place * PACE_BLOCKS / (double)(last - first + 1));
}

static bool is_of_cell(const struct model_op *own, const struct tally_key *key)
{
	return key->comm == own->comm && key->kind == report.job.comms[own->comm].kind &&
	       key->function == own->op->function && key->datatype == own->op->datatype &&
	       key->algorithm == own->op->algorithm && key->protocol == own->op->protocol &&
	       key->size_class == op_size_class(own->op->bytes) &&
	       key->source == source_of(own->op) &&
	       (report.custom_count < 2 || key->tag == own->op->user_tag);
}

/* All cells of one key together, and all operations of it. */
static void expect_paces(void)
{
	static double wait_ns[PACE_BLOCKS], wait_calls[PACE_BLOCKS];
	uint64_t moves = 0, all = 0;
	size_t wrong = 0;

	memset(wait_ns, 0, sizeof(wait_ns));
	memset(wait_calls, 0, sizeof(wait_calls));
	for (size_t c = 0; c < report.paces.cell_count; c++) {
		const struct tally_key *key = &report.paces.cells[c].key;
		struct pace_cell got = { .moves = 0 }, wanted = { .moves = 0 };

		moves += report.paces.cells[c].moves;
		for (size_t i = 0; i < report.paces.cell_count; i++) {
			const struct pace_cell *cell = &report.paces.cells[i];

			if (memcmp(&cell->key, key, sizeof(*key)) != 0)
				continue;
			got.moves += cell->moves;
			got.least_ns += cell->least_ns;
			got.bytes += cell->bytes;
			got.sized += cell->sized;
			pace_add(&got.series, &cell->series);
		}
		for (size_t i = 0; i < count; i++) {
			bool is_sized = list[i].op->bytes != 0 &&
					list[i].op->bytes != OP_BYTES_UNKNOWN &&
					!(list[i].op->flags & OP_FLAG_SHARED_TIME);

			if (!is_of_cell(&list[i], key) || !is_collective(i))
				continue;
			wanted.moves++;
			wanted.least_ns += (double)list[i].least_ns;
			wanted.bytes += is_sized ? (double)list[i].op->bytes : 0;
			wanted.sized += is_sized;
			wanted.series.count[part_of(i)]++;
			wanted.series.log_sum[part_of(i)] += log((double)list[i].least_ns);
		}
		wrong += got.moves != wanted.moves || !is_near(got.least_ns, wanted.least_ns) ||
			 !is_near(got.bytes, wanted.bytes) || got.sized != wanted.sized;
		for (size_t b = 0; b < PACE_BLOCKS; b++)
			wrong += got.series.count[b] != wanted.series.count[b] ||
				 !is_near(got.series.log_sum[b], wanted.series.log_sum[b]);
	}
	for (size_t i = 0; i < count; i++) {
		all += is_collective(i);
		if (!list[i].is_joined || list[i].met < 2)
			continue;
		wait_ns[part_of(i)] += (double)(list[i].ns - list[i].least_ns);
		wait_calls[part_of(i)]++;
	}
	for (size_t b = 0; b < PACE_BLOCKS; b++)
		wrong += !is_near(report.paces.wait_ns[b], wait_ns[b]) ||
			 report.paces.wait_calls[b] != wait_calls[b];
	EXPECT_THAT("transfers by part of the recording", wrong == 0);
	EXPECT_EQUAL(moves, all);
}

static void expect_all(const char *sentence)
{
	printf("# %s\n", sentence);
	EXPECT_THAT("the total", is_row_right(&report.total, 0));
	expect_table("by communicator", &report.by_comm);
	expect_table("by name of the communicator", &report.by_comm_name);
	expect_table("by function", &report.by_function);
	expect_table("by size", &report.by_size);
	expect_table("by algorithm", &report.by_algorithm);
	expect_table("by kind of communicator", &report.by_kind);
	expect_table("by source of time", &report.by_source);
	for (size_t i = 0; i < report.custom_count; i++)
		expect_table("by what was asked for", &report.custom[i]);
	expect_ranks();
	expect_counts();
	expect_series();
	expect_moves();
	expect_matrix();
	expect_paces();
}

int main(void)
{
	recorded();
	modelled();
	expect_all("all operations");
	EXPECT(report.windows.series_count > 0 && report.windows.count > 20 &&
	       report.paces.cell_count > 20);
	over();

	options.custom_by[0] = TALLY_BY_TAG;
	options.custom_by[1] = TALLY_BY_COMM | TALLY_BY_COMM_NAME | TALLY_BY_TAG | TALLY_BY_SIZE;
	options.custom_by[2] = TALLY_BY_SOURCE | TALLY_BY_SIZE | TALLY_BY_COMM_NAME;
	options.custom_by[3] = TALLY_BY_DATATYPE | TALLY_BY_GROUP | TALLY_BY_PROTOCOL;
	options.custom_count = 4;
	modelled();
	expect_all("by tag, too");
	over();

	options.custom_by[0] = TALLY_BY_SIZE;
	options.custom_count = 1;
	options.without_windows = options.without_iterations = true;
	filter_add_ranks(&filter, "1,2");
	modelled();
	expect_all("two ranks are shown");
	EXPECT(report.windows.series_count == 0);
	over();

	filter.has_tag = true;
	filter.tag = 2;
	modelled();
	expect_all("one tag");
	over();

	filter.functions[0] = "allreduce";
	filter.function_count = 1;
	options.without_windows = true;
	modelled();
	expect_all("one function");
	over();

	options.without_joins = true;
	modelled();
	expect_all("without a comparison of ranks");
	over();
	hand_release(&hand);
	return tap_done();
}
