#include "view/metrics_rows.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/tally.h"
#include "common/op.h"

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Class 2 + n is 2^n bytes and more: from 2^8 to 2^33 each is shown as itself. */
enum { LEAST_POWER = 8, MOST_POWER = 33, SIZE_SMALL = 2 };

unsigned int metrics_size(unsigned int size_class)
{
	unsigned int power = size_class - 2;

	if (size_class < 2)
		return size_class == 0 ? METRICS_SIZE_UNKNOWN : METRICS_SIZE_ZERO;
	if (power < LEAST_POWER)
		return SIZE_SMALL;
	return SIZE_SMALL + 1 + (power < MOST_POWER ? power : MOST_POWER) - LEAST_POWER;
}

const char *metrics_size_text(unsigned int size)
{
	static const char *const texts[METRICS_SIZES] = {
		"unknown", "0",	    "1B",    "256B",  "512B",	"1KiB",	  "2KiB",   "4KiB",
		"8KiB",	   "16KiB", "32KiB", "64KiB", "128KiB", "256KiB", "512KiB", "1MiB",
		"2MiB",	   "4MiB",  "8MiB",  "16MiB", "32MiB",	"64MiB",  "128MiB", "256MiB",
		"512MiB",  "1GiB",  "2GiB",  "4GiB",  "8GiB",	"other",
	};

	return texts[size < METRICS_SIZES ? size : METRICS_SIZE_OTHER];
}

/* ---- adding up ------------------------------------------------------------------------------- */

static int by_member_and_what(const void *left, const void *right)
{
	const struct metrics_row *a = left, *b = right;

	if (a->member != b->member)
		return a->member < b->member ? -1 : 1;
	if (a->what != b->what)
		return a->what < b->what ? -1 : 1;
	return 0;
}

static void add_up(struct metrics_rows *rows)
{
	size_t kept = 0;

	qsort(rows->rows, rows->count, sizeof(*rows->rows), by_member_and_what);
	for (size_t i = 0; i < rows->count; i++) {
		const struct metrics_row *row = &rows->rows[i];
		struct metrics_row *last = &rows->rows[kept - (kept > 0)];

		if (kept == 0 || by_member_and_what(last, row) != 0) {
			rows->rows[kept++] = *row;
			continue;
		}
		for (size_t v = 0; v < METRICS_ROW_VALUES; v++)
			last->values[v] += row->values[v];
		last->bus_bytes += row->bus_bytes;
	}
	rows->count = kept;
}

enum budget { BUDGET_OF_GPU, BUDGET_OF_DIRECTION };

/* Rows beyond the limit become `other`, less the bits of `keep`. The rows of `other` take no room. */
static enum status fold(struct metrics_rows *rows, const struct metrics_model *model,
			enum budget budget, size_t limit, uint64_t other, uint64_t keep)
{
	struct metrics_candidate *candidates = calloc(rows->count + 1, sizeof(*candidates));
	size_t count = 0, beyond;

	if (candidates == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < rows->count; i++) {
		const struct metrics_row *row = &rows->rows[i];

		if ((row->what & ~keep) == other)
			continue;
		candidates[count++] = (struct metrics_candidate){
			.group = budget == BUDGET_OF_GPU
					 ? model->members[row->member].gpu
					 : (uint64_t)row->member << 2 | row->what >> 32,
			.use = row->values[0],
			.index = (uint32_t)i,
		};
	}
	beyond = metrics_choose(candidates, count, limit);
	for (size_t i = 0; i < beyond; i++) {
		struct metrics_row *row = &rows->rows[candidates[i].index];

		row->what = (row->what & keep) | other;
	}
	free(candidates);
	rows->folded += beyond;
	if (beyond > 0)
		add_up(rows);
	return OK;
}

/* ---- totals ---------------------------------------------------------------------------------- */

/* What a total's key says, as it is shown. */
struct total_key {
	uint32_t member; /* METRICS_NOBODY: not shown */
	uint8_t function;
	uint8_t algorithm;
	uint8_t protocol;
	uint8_t size;
	double bus_factor;
};

static void key_of_names(struct total_key *to, const struct metrics_model *model, size_t process,
			 uint64_t key)
{
	to->function = metrics_name_number(model, process, OP_NAMES_FUNCTION, (uint8_t)(key >> 32));
	to->algorithm =
		metrics_name_number(model, process, OP_NAMES_ALGORITHM, (uint8_t)(key >> 16));
	to->protocol = metrics_name_number(model, process, OP_NAMES_PROTOCOL, (uint8_t)(key >> 8));
	to->size = (uint8_t)metrics_size((uint8_t)key);
}

/* The same for totals of communicators that the process does not list: they are its others. */
static struct total_key read_key(const struct metrics_model *model, size_t process, size_t index)
{
	const struct recording_process *of = model->recording->processes[process];
	uint64_t key = of->totals[index].key;
	uint32_t comm = (uint32_t)(key >> 40);
	const struct job_seat *seat = comm ? job_seat(model->job, process, comm) : NULL;
	struct total_key to = { .member = model->other_member[process],
				.function = METRICS_NAME_OTHER,
				.algorithm = METRICS_NAME_OTHER,
				.protocol = METRICS_NAME_OTHER,
				.size = METRICS_SIZE_OTHER };
	int nranks = 0;

	if ((index > 0 && key <= SLOT_FORGOTTEN) || of->totals[index].count == 0) {
		to.member = METRICS_NOBODY;
		return to;
	}
	if (seat != NULL) {
		size_t number = (size_t)(seat - model->job->seats);

		to.member = model->seat_member[number];
		nranks = of->comms[number - model->job->first_seat[process]].info.nranks;
	}
	if (key != 0) {
		key_of_names(&to, model, process, key);
		to.bus_factor = op_bus_factor((uint8_t)(key >> 32), nranks);
	}
	return to;
}

static size_t count_totals(const struct metrics_model *model)
{
	size_t count = 0;

	for (size_t p = 0; p < model->recording->count; p++)
		count += model->recording->processes[p]->total_count;
	return count;
}

enum totals_by { BY_SIZE, BY_CHOICE, BY_FUNCTION };

static uint64_t what_of(const struct total_key *key, enum totals_by by)
{
	switch (by) {
	case BY_SIZE:
		return METRICS_SIZE_KEY(key->function, key->size);
	case BY_CHOICE:
		return METRICS_CHOICE_KEY(key->function, key->algorithm, key->protocol);
	default:
		return key->function;
	}
}

static enum status make_rows(struct metrics_rows *rows, const struct metrics_model *model,
			     enum totals_by by)
{
	rows->rows = calloc(count_totals(model) + 1, sizeof(*rows->rows));
	if (rows->rows == NULL)
		return ERR_NO_SPACE;
	for (size_t p = 0; p < model->recording->count; p++) {
		const struct recording_process *process = model->recording->processes[p];

		for (size_t i = 0; i < process->total_count; i++) {
			const struct region_total *total = &process->totals[i];
			struct total_key key = read_key(model, p, i);

			if (key.member == METRICS_NOBODY || (by == BY_FUNCTION && !total->timed))
				continue;
			rows->rows[rows->count++] = (struct metrics_row){
				.member = key.member,
				.what = what_of(&key, by),
				.values = { total->count, total->bytes, total->timed_bytes,
					    total->sum_ns, total->timed },
				.bus_bytes = (double)total->timed_bytes * key.bus_factor,
			};
		}
	}
	add_up(rows);
	return OK;
}

enum status metrics_rows_sizes(struct metrics_rows *rows, const struct metrics_model *model)
{
	enum status status = make_rows(rows, model, BY_SIZE);

	if (status != OK)
		return status;
	return fold(rows, model, BUDGET_OF_GPU, METRICS_SIZE_ROWS,
		    METRICS_SIZE_KEY(METRICS_NAME_OTHER, METRICS_SIZE_OTHER), 0);
}

enum status metrics_rows_choices(struct metrics_rows *rows, const struct metrics_model *model)
{
	enum status status = make_rows(rows, model, BY_CHOICE);

	if (status != OK)
		return status;
	return fold(rows, model, BUDGET_OF_GPU, METRICS_CHOICE_ROWS,
		    METRICS_CHOICE_KEY(METRICS_NAME_OTHER, METRICS_NAME_OTHER, METRICS_NAME_OTHER),
		    0);
}

enum status metrics_rows_functions(struct metrics_rows *rows, const struct metrics_model *model)
{
	enum status status = make_rows(rows, model, BY_FUNCTION);

	if (status != OK)
		return status;
	return fold(rows, model, BUDGET_OF_GPU, METRICS_FUNCTION_ROWS, METRICS_NAME_OTHER, 0);
}

/* ---- histograms ------------------------------------------------------------------------------ */

/* A total, and the row that it belongs to. */
struct reference {
	size_t row;
	const struct region_total *total;
};

static int by_row(const void *left, const void *right)
{
	const struct reference *a = left, *b = right;

	return a->row < b->row ? -1 : a->row > b->row;
}

/* The row of a total, or of the function "other" when its own was folded. */
static const struct metrics_row *row_of(const struct metrics_rows *rows, uint32_t member,
					uint64_t what)
{
	struct metrics_row key = { .member = member, .what = what };
	const struct metrics_row *row =
		bsearch(&key, rows->rows, rows->count, sizeof(*rows->rows), by_member_and_what);

	if (row != NULL || what == METRICS_NAME_OTHER)
		return row;
	return row_of(rows, member, METRICS_NAME_OTHER);
}

static size_t make_references(struct reference *references, const struct metrics_rows *rows,
			      const struct metrics_model *model)
{
	size_t count = 0;

	for (size_t p = 0; p < model->recording->count; p++) {
		const struct recording_process *process = model->recording->processes[p];

		for (size_t i = 0; i < process->total_count; i++) {
			struct total_key key = read_key(model, p, i);
			const struct metrics_row *row = NULL;

			if (key.member != METRICS_NOBODY && process->totals[i].timed > 0)
				row = row_of(rows, key.member, key.function);
			if (row != NULL)
				references[count++] =
					(struct reference){ (size_t)(row - rows->rows),
							    &process->totals[i] };
		}
	}
	qsort(references, count, sizeof(*references), by_row);
	return count;
}

static void add_total(struct metrics_histogram *histogram, const struct region_total *total)
{
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		uint64_t room = METRICS_COUNT_MAX - histogram->buckets[i];

		/* Most are empty. */
		if (total->buckets[i] != 0)
			histogram->buckets[i] +=
				total->buckets[i] < room ? total->buckets[i] : room;
	}
	histogram->sum_ns += total->sum_ns;
}

enum status metrics_rows_histograms(const struct metrics_rows *functions,
				    const struct metrics_model *model,
				    metrics_visit_histogram *visit, void *context)
{
	struct reference *references = calloc(count_totals(model) + 1, sizeof(*references));
	struct metrics_histogram histogram;
	size_t count, next;

	if (references == NULL)
		return ERR_NO_SPACE;
	count = make_references(references, functions, model);
	for (size_t i = 0; i < count; i = next) {
		memset(&histogram, 0, sizeof(histogram));
		for (next = i; next < count && references[next].row == references[i].row; next++)
			add_total(&histogram, references[next].total);
		visit(&functions->rows[references[i].row], &histogram, context);
	}
	free(references);
	return OK;
}

/* ---- links ----------------------------------------------------------------------------------- */

static void add_link(struct metrics_rows *rows, const struct metrics_model *model, size_t process,
		     size_t index)
{
	const struct region_link *link = &model->recording->processes[process]->links[index];
	const struct job_seat *seat = job_seat(model->job, process, (uint32_t)(link->key >> 34));
	uint32_t member = model->other_member[process];
	uint64_t direction = link->key >> 32 & 1 ? METRICS_RECV : METRICS_SEND;
	struct metrics_row *row = &rows->rows[rows->count];

	if ((index > 0 && link->key <= SLOT_FORGOTTEN) || link->proxies == 0)
		return;
	if (seat != NULL)
		member = model->seat_member[seat - model->job->seats];
	if (member == METRICS_NOBODY)
		return;
	*row = (struct metrics_row){ .member = member,
				     .what = METRICS_LINK_KEY(direction, link->key - 1),
				     .values = { link->bytes, link->steps, link->wait_ns[0],
						 link->wait_ns[1], link->wait_ns[2] } };
	if (link->key == 0) {
		row->what = METRICS_LINK_KEY(METRICS_EITHER, METRICS_PEER_OTHER);
		row->values[ROW_WAITS] += link->wait_ns[1] + link->wait_ns[2];
		row->values[ROW_WAITS + 1] = row->values[ROW_WAITS + 2] = 0;
	}
	rows->count++;
}

enum status metrics_rows_links(struct metrics_rows *rows, const struct metrics_model *model)
{
	const uint64_t directions = UINT64_C(3) << 32;
	enum status status;
	size_t count = 0;

	for (size_t p = 0; p < model->recording->count; p++)
		count += model->recording->processes[p]->link_count;
	rows->rows = calloc(count + 1, sizeof(*rows->rows));
	if (rows->rows == NULL)
		return ERR_NO_SPACE;
	for (size_t p = 0; p < model->recording->count; p++)
		for (size_t i = 0; i < model->recording->processes[p]->link_count; i++)
			add_link(rows, model, p, i);
	add_up(rows);
	status = fold(rows, model, BUDGET_OF_DIRECTION, METRICS_PEERS_PER_COMM, METRICS_PEER_OTHER,
		      directions);
	if (status != OK)
		return status;
	return fold(rows, model, BUDGET_OF_GPU, METRICS_LINK_ROWS, METRICS_PEER_OTHER, directions);
}

/* ---------------------------------------------------------------------------------------------- */

void metrics_rows_release(struct metrics_rows *rows)
{
	free(rows->rows);
	*rows = (struct metrics_rows){ 0 };
}
