/*
 * Records against calls. Where a rank has exactly as many records of a function and size as it made such calls,
 * the n-th record is the n-th call: warm-ups, measured calls, checks, cell after cell. Where not, a record is
 * that of the call within whose time it was issued, if its profiler tells when that was.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/profilers_parts.h"

/* How far the clocks of a profiler and of the benchmark may be apart. */
enum { CLOCKS_APART_NS = 10000 };

static bool is_function_sizeless(struct profilers_ledger *ledger, int32_t rank, uint8_t function)
{
	for (size_t i = 0; i < ledger->keys.count; i++) {
		const struct profilers_key *key = profilers_ledger_key(ledger, i);

		if (key->function == function && key->bytes == PROFILERS_BYTES_UNKNOWN &&
		    profilers_ledger_tally(ledger, rank, i)->recorded > 0)
			return true;
	}
	return false;
}

/* Sizes that are not told cannot be held against sizes: all of the function together, at its first key. */
static bool sum_function(struct profilers_ledger *ledger, int32_t rank, size_t at,
			 struct profilers_tally *sum)
{
	uint8_t function = profilers_ledger_key(ledger, at)->function;

	for (size_t i = 0; i < at; i++)
		if (profilers_ledger_key(ledger, i)->function == function)
			return false;
	*sum = (struct profilers_tally){ 0 };
	for (size_t i = at; i < ledger->keys.count; i++) {
		const struct profilers_tally *tally = profilers_ledger_tally(ledger, rank, i);

		if (profilers_ledger_key(ledger, i)->function != function)
			continue;
		sum->issued += tally->issued;
		sum->recorded += tally->recorded;
		sum->untimed += tally->untimed;
	}
	return true;
}

static struct profilers_counts counts_of(const struct profilers_tally *tally)
{
	struct profilers_counts counts = { .issued = tally->issued,
					   .recorded = tally->recorded,
					   .untimed = tally->untimed };

	if (tally->issued > tally->recorded)
		counts.missing = tally->issued - tally->recorded;
	else
		counts.excess = tally->recorded - tally->issued;
	return counts;
}

static enum status add_row(struct profilers *work, const struct profilers_complete *like,
			   const struct profilers_tally *tally)
{
	struct profilers_complete *row;

	if (tally->issued == 0 && tally->recorded == 0)
		return OK;
	row = profilers_list_add(&work->complete, PROFILERS_ROWS_MAX);
	if (row == NULL)
		return ERR_NO_SPACE;
	*row = *like;
	row->counts = counts_of(tally);
	return OK;
}

enum status profilers_add_complete(struct profilers *work, const struct profilers_trial *trial,
				   uint8_t mode, struct profilers_ledger *ledger)
{
	enum status status = OK;

	for (int32_t rank = -1; rank < ledger->bench->nranks && status == OK; rank++)
		for (size_t i = 0; i < ledger->keys.count && status == OK; i++) {
			const struct profilers_key *key = profilers_ledger_key(ledger, i);
			struct profilers_tally tally = *profilers_ledger_tally(ledger, rank, i);
			struct profilers_complete row = { .plugin = (uint8_t)trial->plugin,
							  .mode = mode,
							  .rank = rank,
							  .function = key->function,
							  .is_align = key->is_align,
							  .bytes = key->bytes };

			if (is_function_sizeless(ledger, rank, key->function)) {
				if (!sum_function(ledger, rank, i, &tally))
					continue;
				row.bytes = PROFILERS_BYTES_UNKNOWN;
				row.is_align = false;
			}
			status = add_row(work, &row, &tally);
		}
	return status;
}

static bool is_ratios(const struct profilers_ratios *a, const struct profilers_ratios *b)
{
	return a->plugin == b->plugin && a->mode == b->mode && a->function == b->function &&
	       a->source == b->source && a->bytes == b->bytes && a->bytes_to == b->bytes_to;
}

struct profilers_ratios *profilers_ratios_of(struct profilers *work,
					     const struct profilers_ratios *like)
{
	struct profilers_ratios *list = work->ratios.items, *added;

	for (size_t i = 0; i < work->ratios.count; i++)
		if (is_ratios(&list[i], like))
			return &list[i];
	added = profilers_list_add(&work->ratios, PROFILERS_ROWS_MAX);
	if (added)
		*added = *like;
	return added;
}

bool profilers_ratios_add(struct profilers_ratios *ratios, double value)
{
	size_t room = ratios->room ? ratios->room * 2 : 256;
	double *values;

	if (ratios->count == ratios->room) {
		values = realloc(ratios->values, room * sizeof(*values));
		if (values == NULL)
			return false;
		ratios->values = values;
		ratios->room = room;
	}
	ratios->values[ratios->count++] = value;
	return true;
}

/* The calls of one rank, function and size, and the records that are about them. */
struct joining {
	struct profilers *work;
	struct profilers_ratios like;
	const struct profilers_ledger *ledger;
	size_t key;
	int32_t rank;
	const struct profilers_record *records;
	size_t count;
	size_t at;	 /* in order: the next call's record; by time: the next one not taken */
	uint64_t before; /* when the call before was made */
	bool is_in_order;
};

static bool add_ratio(struct joining *joining, const struct profilers_record *record,
		      uint64_t measured_ns)
{
	struct profilers_ratios *ratios;

	if (record->source == OP_TIME_NONE)
		return true;
	joining->like.source = record->source;
	ratios = profilers_ratios_of(joining->work, &joining->like);
	if (ratios == NULL)
		return false;
	ratios->in_order += joining->is_in_order;
	ratios->by_time += !joining->is_in_order;
	return profilers_ratios_add(ratios, (double)record->duration_ns / (double)measured_ns);
}

static const struct profilers_record *find_by_time(struct joining *joining,
						   const struct bench_call *call)
{
	uint64_t slack = CLOCKS_APART_NS;
	const struct profilers_record *record;

	/* Not so far that the call before could be meant. */
	if (joining->before && call->begin_ns > joining->before &&
	    (call->begin_ns - joining->before) / 2 < slack)
		slack = (call->begin_ns - joining->before) / 2;
	joining->before = call->begin_ns;
	while (joining->at < joining->count &&
	       joining->records[joining->at].wall_ns + slack < call->begin_ns)
		joining->at++;
	if (joining->at == joining->count)
		return NULL;
	record = &joining->records[joining->at];
	if (record->wall_ns > call->begin_ns + call->issue_ns + slack)
		return NULL;
	joining->at++;
	return record;
}

static bool join_cell(struct joining *joining, const struct bench_cell *cell, uint64_t per_step)
{
	struct profilers_ratios calls = joining->like, *counted;
	uint64_t measured = 0;

	joining->at += joining->is_in_order ? cell->warmups * per_step : 0;
	for (uint32_t i = 0; i < cell->calls; i++) {
		const struct bench_call *call = bench_cell_call(cell, joining->rank, i);
		const struct profilers_record *record = NULL;

		if (joining->is_in_order) {
			record = &joining->records[joining->at];
			joining->at += per_step;
		} else if (cell->mode != BENCH_GRAPH) {
			record = find_by_time(joining, call);
		}
		if (call->gpu_ns == 0 || per_step != 1)
			continue;
		measured++;
		if (record && !add_ratio(joining, record, call->gpu_ns))
			return false;
	}
	joining->at += joining->is_in_order ? cell->checks * per_step : 0;
	calls.source = OP_TIME_SOURCES;
	counted = measured ? profilers_ratios_of(joining->work, &calls) : NULL;
	if (counted)
		counted->calls += measured;
	return measured == 0 || counted != NULL;
}

/* All cells whose calls have this key. */
static enum status join_key(struct joining *joining)
{
	const struct profilers_key *key = profilers_ledger_key(joining->ledger, joining->key);
	const struct bench_run *bench = joining->ledger->bench;
	struct profilers_part parts[PROFILERS_PARTS_MAX];

	for (size_t i = 0; i < bench->cell_count; i++) {
		const struct bench_cell *cell = &bench->cells[i];
		size_t count = profilers_parts_of(bench, cell, joining->rank, parts);

		for (size_t j = 0; j < count; j++)
			if (parts[j].key.function == key->function &&
			    parts[j].key.bytes == key->bytes && !parts[j].key.is_align &&
			    cell->calls_of && !join_cell(joining, cell, parts[j].per_step))
				return ERR_NO_SPACE;
	}
	return OK;
}

enum status profilers_join(struct profilers *work, const struct profilers_trial *trial,
			   uint8_t mode, struct profilers_ledger *ledger,
			   const struct profilers_list *records)
{
	const struct profilers_record *list = records->items;
	enum status status = OK;
	size_t at = 0, from;

	while (at < records->count && list[at].rank < 0)
		at++;
	for (int32_t rank = 0; rank < ledger->bench->nranks; rank++)
		for (size_t key = 0; key < ledger->keys.count && status == OK; key++) {
			const struct profilers_key *what = profilers_ledger_key(ledger, key);
			struct joining joining = {
				.work = work, .ledger = ledger, .key = key, .rank = rank
			};

			for (from = at;
			     at < records->count && list[at].rank == rank && list[at].key == key;)
				at++;
			if (key >= ledger->issued_keys || what->is_align)
				continue;
			joining.like.plugin = (uint8_t)trial->plugin;
			joining.like.mode = mode;
			joining.like.function = what->function;
			joining.like.bytes = what->bytes;
			joining.records = list ? list + from : NULL;
			joining.count = at - from;
			joining.is_in_order =
				joining.count == profilers_ledger_tally(ledger, rank, key)->issued;
			status = join_key(&joining);
		}
	return status;
}
