/* What the pass needs before it starts, and what happens with its sums. */
#include "analysis/scan.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/flight.h"
#include "common/attributes.h"
#include "common/hash.h"

static inline uint64_t scan_cell_bytes(const struct scan_cell *cell)
{
	return cell->size_class == 0 ? 0 : cell->bytes;
}

/* What to do with such an operation. */
enum scan_mark {
	SCAN_TIMED = 1u << 0, /* << op_shown_source(): of its duration, or its network span */
	SCAN_SPAN = SCAN_TIMED << OP_TIME_PROXY,
	SCAN_ANY_SOURCE = (SCAN_TIMED << OP_TIME_SHOWN_SOURCES) - 2,
	SCAN_IGNORED =
		SCAN_TIMED << OP_TIME_SHOWN_SOURCES, /* does not pass the filter: cell is NULL */
	SCAN_HIDDEN = SCAN_IGNORED << 1, /* of a rank that is not shown: matched, but in no table */
	SCAN_CAPTURED = SCAN_IGNORED << 2,  /* captured in a graph: only counted */
	SCAN_UNTIMED = SCAN_IGNORED << 3,   /* neither a duration nor a span */
	SCAN_UNTRUSTED = SCAN_IGNORED << 4, /* OP_STAMPS_UNTRUSTED */
	SCAN_JOINED = SCAN_IGNORED << 5,    /* with other ranks' */
	SCAN_APART =
		SCAN_IGNORED << 6, /* could be matched, except for its source or its communicator */
	SCAN_SEND = SCAN_IGNORED << 7,
};

/* The key of an entry. */
struct scan_key {
	uint64_t kind;
	uint64_t what;
	uint64_t tag;
	uint64_t bytes; /* of one of them: gives the size class */
};

/* A series over time: kind of communicator and function. */
static inline uint16_t scan_series_id(enum job_comm_kind kind, uint8_t function)
{
	return (uint16_t)((unsigned int)kind << 8 | function);
}

enum { LOCALS_IN_ALL = 1 << 17, LOCALS_LEAST = 64 };

/* ---- time limits ----------------------------------------------------------------------------- */

static void scan_find_limits(struct scan *scan)
{
	filter_wall_limits(scan->filter, scan->job->recording, &scan->report->since_ns,
			   &scan->report->until_ns);
}

/* The filter's limits on a process's clock, and as wall time for the report. */
static void scan_limits(struct scan *scan, uint32_t p)
{
	filter_clock_limits(scan->job->recording->processes[p], scan->report->since_ns,
			    scan->report->until_ns, &scan->since_ns, &scan->until_ns);
}

/* ---- set up ---------------------------------------------------------------------------------- */

/* For sorting: communicators of one group and name; unnamed ones by their shape. */
struct named {
	const struct job_comm *comm;
	uint32_t index;
};

static int by_name(const void *left, const void *right)
{
	const struct job_comm *a = ((const struct named *)left)->comm;
	const struct job_comm *b = ((const struct named *)right)->comm;
	int names = strcmp(a->name, b->name);

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (names != 0 || a->name[0] != '\0')
		return names;
	return ORDER(a->nranks, b->nranks) ?: ORDER(a->nnodes, b->nnodes);
}

static enum status find_first_names(struct scan *scan)
{
	size_t count = scan->job->comm_count, next;
	struct named *sorted = calloc(count + 1, sizeof(*sorted));

	if (sorted == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < count; i++)
		sorted[i] = (struct named){ &scan->job->comms[i], (uint32_t)i };
	qsort(sorted, count, sizeof(*sorted), by_name);
	for (size_t i = 0; i < count; i = next) {
		uint32_t first = sorted[i].index;

		for (next = i; next < count && by_name(&sorted[i], &sorted[next]) == 0; next++)
			first = sorted[next].index < first ? sorted[next].index : first;
		for (size_t j = i; j < next; j++)
			scan->name_first[sorted[j].index] = first;
	}
	free(sorted);
	return OK;
}

/* Which words of a process's records are needed. */
static uint32_t scan_words(const struct scan *scan, uint32_t p)
{
	uint32_t words = OP_WORDS_TIME | OP_WORD_BIT(OP_WORD_KIND) | OP_WORD_BIT(OP_WORD_MATCH) |
			 OP_WORD_BIT(OP_WORD_SIGNATURE) | OP_WORD_BIT(OP_WORD_BYTES) |
			 OP_WORD_BIT(OP_WORD_ENDS) | OP_WORD_BIT(OP_WORD_STEPS) |
			 OP_WORD_BIT(OP_WORD_WAITS + OP_WAIT_SEND_NET);

	words &= ~OP_WORD_BIT(OP_WORD_TASK);
	if (scan->job->recording->processes[p]->life != RECORDING_ENDED)
		words |= OP_WORD_BIT(OP_WORD_NUMBER);
	if (p == scan->iteration_process || scan->has_tags || scan->filter->has_tag)
		words |= OP_WORD_BIT(OP_WORD_USER_TAG);
	if (p == scan->iteration_process)
		words |= OP_WORD_BIT(OP_WORD_STREAM);
	return words | job_gaps_words(&scan->gaps);
}

static void find_iteration_process(struct scan *scan)
{
	scan->iteration_process = UINT32_MAX;
	for (size_t r = 0; r < scan->job->rank_count && scan->iteration_process == UINT32_MAX; r++)
		if (scan->report->ranks[r].is_shown && !scan->options->without_iterations) {
			scan->iteration_process = scan->job->ranks[r].process;
			scan->report->iterations.rank = (uint32_t)r;
		}
}

static uint64_t expected_ops(const struct recording *recording)
{
	uint64_t total = 0;

	for (size_t p = 0; p < recording->count; p++) {
		const struct recording_process *process = recording->processes[p];
		uint64_t here = 0;

		for (size_t i = 0; i < process->file_count; i++)
			here += process->files[i].records;
		total += here > 0 ? here : process->recorded;
	}
	return total;
}

static void list_views(struct scan *scan)
{
	struct timeline_report *report = scan->report;
	struct tally *const fixed[] = { &report->by_comm,      &report->by_comm_name,
					&report->by_function,  &report->by_size,
					&report->by_algorithm, &report->by_rank,
					&report->by_kind,      &report->by_source };

	for (size_t i = 0; i < ARRAY_LENGTH(fixed); i++)
		scan->views[scan->view_count++] = fixed[i];
	for (size_t i = 0; i < report->custom_count; i++)
		scan->views[scan->view_count++] = &report->custom[i];
	for (size_t i = 0; i < scan->view_count; i++)
		if (scan->views[i]->by & TALLY_BY_TAG)
			scan->has_tags = true;
}

enum status scan_init(struct scan *scan, struct timeline_report *report,
		      const struct filter *filter, const struct timeline_options *options)
{
	const struct job *job = &report->job;
	size_t processes = job->recording->count;
	enum status status;

	memset(scan, 0, sizeof(*scan));
	scan->report = report;
	scan->job = job;
	scan->filter = filter;
	scan->options = options;
	scan->local_room = LOCALS_IN_ALL / (uint32_t)(processes + 1) & ~1u;
	scan->local_room = scan->local_room > WINDOWS_LOCAL  ? WINDOWS_LOCAL
			   : scan->local_room < LOCALS_LEAST ? LOCALS_LEAST
							     : scan->local_room;
	scan->name_first = calloc(job->comm_count + 1, sizeof(*scan->name_first));
	scan->locals = calloc(processes + 1, sizeof(*scan->locals));
	scan->opens = calloc(job->seat_count + 1, sizeof(*scan->opens));
	scan->cells = malloc(SCAN_CELLS * sizeof(*scan->cells));
	if (scan->name_first == NULL || scan->locals == NULL || scan->opens == NULL ||
	    scan->cells == NULL)
		return ERR_NO_SPACE;
	status = match_init(&scan->matches, job, options->match_limit);
	if (status == OK)
		status = job_gaps_init(&scan->gaps, job);
	if (status == OK)
		status = find_first_names(scan);
	tally_scale_init(&scan->scale);
	list_views(scan);
	find_iteration_process(scan);
	scan_find_limits(scan);
	scan->ops_expected = expected_ops(job->recording);
	return status;
}

void scan_release(struct scan *scan)
{
	if (scan->job == NULL)
		return;
	for (size_t p = 0; scan->locals != NULL && p < scan->job->recording->count; p++)
		windows_local_release(&scan->locals[p]);
	match_release(&scan->matches);
	job_gaps_release(&scan->gaps);
	links_release(&scan->links);
	estimate_release(&scan->estimate);
	free(scan->name_first);
	free(scan->locals);
	free(scan->opens);
	free(scan->cells);
	free(scan->iteration_ops);
}

/* ---- cells into rows ------------------------------------------------------------------------- */

static struct tally_key cell_key(const struct scan *scan, uint32_t seat_index, uint32_t names,
				 uint8_t size_class, uint8_t source, uint64_t tag)
{
	const struct job_seat *seat = &scan->job->seats[seat_index];
	const struct job_rank *rank = &scan->job->ranks[seat->rank];

	return (struct tally_key){ .tag = tag,
				   .comm = seat->comm,
				   .rank = seat->rank,
				   .host = rank->host,
				   .group = rank->group,
				   .kind = (uint8_t)scan->job->comms[seat->comm].kind,
				   .function = (uint8_t)names,
				   .datatype = (uint8_t)(names >> 8),
				   .algorithm = (uint8_t)(names >> 16),
				   .protocol = (uint8_t)(names >> 24),
				   .size_class = size_class,
				   .source = source };
}

static struct tally_row *view_row(struct scan *scan, struct tally *view, struct tally_key key)
{
	if (view->by & TALLY_BY_COMM_NAME && !(view->by & TALLY_BY_COMM))
		key.comm = scan->name_first[key.comm];
	return tally_row(view, &key);
}

static bool needs_ranks(uint8_t function)
{
	return op_bus_factor(function, 0) == 0;
}

static enum status cell_row(const struct scan *scan, const struct scan_cell *cell,
			    struct tally_row *row)
{
	const struct job_comm *comm = &scan->job->comms[scan->job->seats[cell->seat].comm];
	uint8_t function = (uint8_t)cell->names;
	enum status status = OK;

	*row = (struct tally_row){ .ranks = 1,
				   .last_rank = scan->job->seats[cell->seat].rank,
				   .calls = cell->calls,
				   .open = cell->open,
				   .captured = cell->captured,
				   .unknown_size = cell->size_class == 0 ? cell->calls : 0,
				   .untrusted = cell->untrusted,
				   .bytes = scan_cell_bytes(cell) };
	row->by_source[cell->source] = cell->calls;
	if (!op_is_duration(cell->source) || cell->calls == 0)
		return OK;
	row->timed = cell->calls;
	row->sum_ns = cell->sum_ns;
	row->min_ns = cell->min_ns;
	row->max_ns = cell->max_ns;
	row->square_sum = cell->square_sum;
	if (match_is_synchronising(function)) {
		row->joined = cell->calls - cell->apart;
		row->joined_ns = cell->sum_ns - cell->apart_ns;
	}
	row->shared = cell->has_shared ? cell->calls : 0;
	if (cell->size_class != 0 && !cell->has_shared) {
		row->sized_bytes = cell->bytes;
		row->sized_ns = cell->sum_ns;
		if (comm->nranks > 0 || !needs_ranks(function)) {
			row->bus_bytes =
				(double)cell->bytes * op_bus_factor(function, comm->nranks);
			row->bus_ns = cell->sum_ns;
		}
	}
	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS && status == OK; i++)
		if (cell->buckets[i] != 0)
			status = tally_histogram_add(&row->histogram, i, cell->buckets[i]);
	return status;
}

static void add_to_rank(struct scan *scan, const struct scan_cell *cell)
{
	struct timeline_rank *rank = &scan->report->ranks[scan->job->seats[cell->seat].rank];

	rank->calls += cell->calls;
	rank->open += cell->open;
	rank->bytes += scan_cell_bytes(cell);
	if (!op_is_duration(cell->source))
		return;
	rank->timed += cell->calls;
	rank->sum_ns += cell->sum_ns;
	if (match_is_synchronising((uint8_t)cell->names)) {
		rank->joined += cell->calls - cell->apart;
		rank->joined_ns += cell->sum_ns - cell->apart_ns;
	}
}

static enum status add_to_estimate(struct scan *scan, const struct scan_cell *cell)
{
	struct estimate_part part = { .seat = cell->seat,
				      .names = cell->names,
				      .tag = cell->tag,
				      .size_class = cell->size_class };

	if (!op_is_duration(cell->source)) {
		part.untimed = cell->calls - cell->open;
	} else {
		part.timed = cell->calls;
		part.sum_ns = cell->sum_ns;
		if (match_is_synchronising((uint8_t)cell->names))
			part.joined_ns = cell->sum_ns - cell->apart_ns;
	}
	return part.timed + part.untimed > 0 ? estimate_add(&scan->estimate, &part) : OK;
}

static enum status flush_cell(struct scan *scan, const struct scan_cell *cell)
{
	struct tally_key key =
		cell_key(scan, cell->seat, cell->names, cell->size_class, cell->source, cell->tag);
	struct tally_row row;
	enum status status;

	add_to_rank(scan, cell);
	status = add_to_estimate(scan, cell);
	if (status != OK || !scan->report->ranks[key.rank].is_shown ||
	    cell->calls + cell->captured == 0)
		return status;
	status = cell_row(scan, cell, &row);
	for (size_t i = 0; i < scan->view_count && status == OK; i++) {
		struct tally_row *to = view_row(scan, scan->views[i], key);

		status = to != NULL ? tally_merge(to, &row) : ERR_NO_SPACE;
	}
	if (status == OK)
		status = tally_merge(&scan->report->total, &row);
	tally_row_release(&row);
	return status;
}

/* Moves what cells have added since the last time to the current time slot. */
static void scan_tell_series(struct scan *scan)
{
	if (scan->local == NULL || scan->local->current_end_ns == 0)
		return;
	for (size_t i = 0; i < scan->cell_count; i++) {
		struct scan_cell *cell = &scan->cells[i];
		bool is_sized = cell->size_class != 0, has_speed = is_sized && !cell->has_shared;
		struct windows_stretch what = {
			.calls = (float)(cell->calls - cell->told_calls),
			.bytes = is_sized ? (float)(cell->bytes - cell->told_bytes) : 0,
			.time_ns = has_speed ? (float)(cell->sum_ns - cell->told_ns) : 0,
		};

		if (cell->series == UINT32_MAX || cell->calls == cell->told_calls)
			continue;
		what.bus_bytes = has_speed ? (float)(what.bytes * cell->bus_factor) : 0;
		windows_local_add(scan->local, cell->series, &what);
		cell->told_calls = cell->calls;
		cell->told_bytes = cell->bytes;
		cell->told_ns = cell->sum_ns;
	}
}

/* Moves one process's cells to the tables. */
static enum status scan_flush(struct scan *scan)
{
	enum status status = OK;

	scan_tell_series(scan);

	for (size_t i = 0; i < scan->cell_count && status == OK; i++)
		status = flush_cell(scan, &scan->cells[i]);
	scan->cell_count = 0;
	memset(scan->cell_table, 0, sizeof(scan->cell_table));
	return status;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Without another rank it was not matched: its waiting is unknown. */
static void add_sum(struct tally_row *row, const struct match_sum *sum)
{
	row->joined -= sum->alone;
	row->joined_ns -= sum->alone_ns;
	row->joined_least_ns += sum->least_ns - sum->alone_ns;
	row->moves += sum->moves;
	row->move_log_sum += sum->move_log_sum;
	row->move_log_squares += sum->move_log_squares;
}

static enum status add_kind(struct scan *scan, uint32_t seat_index, const struct match_lane *lane,
			    const struct match_kind *kind, const struct match_sum *sum)
{
	struct tally_key key =
		cell_key(scan, seat_index, kind->names, kind->size_class, lane->source, kind->tag);
	struct timeline_rank *rank = &scan->report->ranks[key.rank];
	struct estimate_part *part;

	rank->joined -= sum->alone;
	rank->joined_ns -= sum->alone_ns;
	rank->least_ns += sum->least_ns - sum->alone_ns;
	part = estimate_find(&scan->estimate,
			     &(struct estimate_part){ .seat = seat_index,
						      .names = kind->names,
						      .size_class = kind->size_class });
	if (part != NULL) {
		part->joined_ns -= sum->alone_ns;
		part->least_ns += sum->least_ns - sum->alone_ns;
	}
	if (!rank->is_shown)
		return OK;
	for (size_t i = 0; i < scan->view_count; i++) {
		struct tally_row *row = view_row(scan, scan->views[i], key);

		if (row == NULL)
			return ERR_NO_SPACE;
		add_sum(row, sum);
	}
	add_sum(&scan->report->total, sum);
	return OK;
}

/* The first rank shown stands for all: its own collectives are nearly all of them. */
static void add_moves(const struct match_lane *lane, uint32_t kind_count, struct match_sum *sums)
{
	for (uint32_t kind = 0; kind < kind_count; kind++) {
		sums[kind].moves = lane->sums[kind].moves;
		sums[kind].move_log_sum = lane->sums[kind].move_log_sum;
		sums[kind].move_log_squares = lane->sums[kind].move_log_squares;
	}
}

static enum status add_seat(struct scan *scan, const struct match_lane *lane, uint32_t place,
			    struct match_sum *sums, bool *has_moves)
{
	const struct match_comm *comm = &scan->matches.comms[lane->comm];
	const struct job_seat *seat = &scan->job->seats[scan->job->comms[lane->comm].seats[place]];
	enum status status = OK;

	if (lane->seats[place].count == 0)
		return OK;
	memset(sums, 0, comm->kind_count * sizeof(*sums));
	match_sums(lane, comm->kind_count, place, sums);
	if (!*has_moves && scan->report->ranks[seat->rank].is_shown) {
		add_moves(lane, comm->kind_count, sums);
		*has_moves = true;
	}
	for (uint32_t k = 0; k < comm->kind_count && status == OK; k++)
		if (sums[k].joined > 0)
			status = add_kind(scan, scan->job->comms[lane->comm].seats[place], lane,
					  &comm->kinds[k], &sums[k]);
	return status;
}

static enum status add_comm(struct scan *scan, uint32_t c)
{
	const struct match_comm *comm = &scan->matches.comms[c];
	struct match_sum *sums = calloc(comm->kind_count + 1, sizeof(*sums));
	enum status status = sums ? OK : ERR_NO_SPACE;

	for (unsigned int i = 0; i < MATCH_LANES && status == OK; i++) {
		bool has_moves = false;

		if (comm->lanes[i] == NULL || match_has_spans(comm->lanes[i]))
			continue;
		for (uint32_t place = 0; status == OK && place < scan->job->comms[c].seat_count;
		     place++)
			status = add_seat(scan, comm->lanes[i], place, sums, &has_moves);
	}
	free(sums);
	return status;
}

static void finish_row(struct tally_row *row)
{
	row->wait_ns = row->joined_ns - row->joined_least_ns;
}

enum status scan_add_waiting(struct scan *scan)
{
	struct timeline_report *report = scan->report;
	enum status status = OK;

	for (uint32_t c = 0; c < scan->job->comm_count && status == OK; c++)
		status = add_comm(scan, c);
	for (size_t i = 0; i < scan->view_count; i++) {
		for (size_t j = 0; j < scan->views[i]->count; j++)
			finish_row(&scan->views[i]->rows[j]);
		finish_row(&scan->views[i]->other);
	}
	finish_row(&report->total);
	for (size_t r = 0; r < scan->job->rank_count; r++)
		report->ranks[r].wait_ns = report->ranks[r].joined_ns - report->ranks[r].least_ns;
	return status;
}

/* ---- estimates ------------------------------------------------------------------------------- */

static void add_covered(struct tally_row *row, uint64_t calls, const struct estimate_kind *kind)
{
	double share = (double)calls / (double)kind->timed;

	row->covered += calls;
	row->covered_ns += share * (double)kind->sum_ns;
	row->covered_joined_ns += share * (double)kind->joined_ns;
	row->covered_wait_ns += share * (double)(kind->joined_ns - kind->least_ns);
}

static enum status cover_part(struct scan *scan, const struct estimate_part *part,
			      const struct estimate_kind *kind)
{
	struct tally_key key =
		cell_key(scan, part->seat, part->names, part->size_class, OP_TIME_NONE, part->tag);
	struct timeline_rank *rank = &scan->report->ranks[key.rank];
	double share = (double)part->untimed / (double)kind->timed;

	rank->covered_ns += share * (double)kind->sum_ns;
	rank->covered_wait_ns += share * (double)(kind->joined_ns - kind->least_ns);
	if (!rank->is_shown)
		return OK;
	for (size_t i = 0; i < scan->view_count; i++) {
		struct tally_row *row;

		/* A row of one source has what that source measured. */
		if (scan->views[i]->by & TALLY_BY_SOURCE)
			continue;
		row = view_row(scan, scan->views[i], key);
		if (row == NULL)
			return ERR_NO_SPACE;
		add_covered(row, part->untimed, kind);
	}
	add_covered(&scan->report->total, part->untimed, kind);
	return OK;
}

static enum status keep_untimed(struct scan *scan, const struct estimate_part *part, uint64_t calls)
{
	const struct job_seat *seat = &scan->job->seats[part->seat];
	struct timeline_report *report = scan->report;

	if (calls == 0 || !report->ranks[seat->rank].is_shown)
		return OK;
	if (!list_grow(&report->untimed, report->untimed_count, sizeof(*report->untimed)))
		return ERR_NO_SPACE;
	report->untimed[report->untimed_count++] =
		(struct timeline_untimed){ .comm = seat->comm,
					   .names = part->names,
					   .size_class = part->size_class,
					   .calls = calls };
	return OK;
}

static int by_comm_and_names(const void *left, const void *right)
{
	const struct timeline_untimed *a = left, *b = right;

	return ORDER(a->comm, b->comm) ?:
	       ORDER(a->names, b->names) ?:
	       ORDER(a->size_class, b->size_class);
}

static int by_calls(const void *left, const void *right)
{
	const struct timeline_untimed *a = left, *b = right;

	return ORDER(b->calls, a->calls) ?: by_comm_and_names(left, right);
}

/* The same on all ranks is one kind. */
static void sort_untimed(struct timeline_report *report)
{
	struct timeline_untimed *list = report->untimed;
	size_t kept = 0;

	if (report->untimed_count == 0)
		return;
	qsort(list, report->untimed_count, sizeof(*list), by_comm_and_names);
	for (size_t i = 1; i < report->untimed_count; i++) {
		if (by_comm_and_names(&list[kept], &list[i]) == 0)
			list[kept].calls += list[i].calls;
		else
			list[++kept] = list[i];
	}
	report->untimed_count = kept + 1;
	qsort(list, report->untimed_count, sizeof(*list), by_calls);
}

/* Time of all calls and of the timed ones, by communicator: only collectives that can be matched. */
struct comm_time {
	double all_ns;
	double timed_ns;
};

static enum status cover_kind(struct scan *scan, const struct estimate_kind *kind,
			      struct comm_time *times)
{
	const struct estimate_part *first = &scan->estimate.parts[kind->first];
	struct comm_time *time = &times[scan->job->seats[first->seat].comm];
	enum status status = OK;

	if (kind->timed == 0)
		return keep_untimed(scan, first, kind->untimed);
	if (match_is_synchronising((uint8_t)first->names)) {
		time->timed_ns += (double)kind->sum_ns;
		time->all_ns +=
			(double)kind->sum_ns * (1 + (double)kind->untimed / (double)kind->timed);
	}
	for (size_t i = kind->first; i < kind->next && status == OK; i++)
		if (scan->estimate.parts[i].untimed > 0)
			status = cover_part(scan, &scan->estimate.parts[i], kind);
	return status;
}

enum status scan_add_estimates(struct scan *scan)
{
	struct comm_time *times = calloc(scan->job->comm_count + 1, sizeof(*times));
	enum status status = times ? OK : ERR_NO_SPACE;
	struct estimate_kind kind;

	for (size_t i = 0; i < scan->estimate.count && status == OK; i = kind.next) {
		kind = estimate_kind(&scan->estimate, i);
		status = cover_kind(scan, &kind, times);
	}
	for (size_t c = 0; c < scan->job->comm_count && status == OK; c++)
		scan->report->comms[c].scale =
			times[c].timed_ns > 0 ? times[c].all_ns / times[c].timed_ns : 1;
	free(times);
	sort_untimed(scan->report);
	return status;
}

/* What is known of similar operations: computed once, and found again by a few words of their records. */

static uint32_t map_names(const struct scan *scan, uint32_t names)
{
	uint32_t mapped = 0;

	for (unsigned int i = 0; i < OP_NAME_TABLES; i++)
		mapped |= (uint32_t)job_name_number(scan->job, scan->process,
						    (uint8_t)(names >> (8 * i)))
			  << (8 * i);
	return mapped;
}

/* Clears the cache: what entries point to no longer exists. */
static void scan_entry_forget(struct scan *scan)
{
	for (size_t i = 0; i < SCAN_CACHE; i++) {
		scan->cache[i].kind = 0;
		scan->cache[i].next = &scan->cache[0];
	}
	scan->latest = &scan->cache[0];
}

static struct scan_cell *find_cell(struct scan *scan, const struct scan_cell *like)
{
	uint64_t hash = hash_word(hash_word(like->tag, (uint64_t)like->seat << 32 | like->names),
				  (uint64_t)like->size_class << 8 | like->source |
					  (uint64_t)like->has_shared << 16);
	size_t place = (size_t)hash % ARRAY_LENGTH(scan->cell_table);
	struct scan_cell *cell;

	for (; scan->cell_table[place] != 0; place = (place + 1) % ARRAY_LENGTH(scan->cell_table)) {
		cell = &scan->cells[scan->cell_table[place] - 1];
		if (cell->seat == like->seat && cell->names == like->names &&
		    cell->tag == like->tag && cell->size_class == like->size_class &&
		    cell->source == like->source && cell->has_shared == like->has_shared)
			return cell;
	}
	if (scan->cell_count == SCAN_CELLS) {
		/* Flushes everything to the tables and starts over: the number of keys is unlimited. */
		scan->status = scan_flush(scan);
		scan_entry_forget(scan);
		return scan->status == OK ? find_cell(scan, like) : NULL;
	}
	cell = &scan->cells[scan->cell_count++];
	memset(cell, 0, sizeof(*cell));
	cell->seat = like->seat;
	cell->names = like->names;
	cell->tag = like->tag;
	cell->size_class = like->size_class;
	cell->source = like->source;
	cell->has_shared = like->has_shared;
	cell->min_ns = UINT64_MAX;
	scan->cell_table[place] = (uint16_t)scan->cell_count;
	return cell;
}

static struct match_cursor *find_cursor(struct scan *scan, const struct job_seat *seat,
					uint8_t source, bool is_replay)
{
	size_t index = (size_t)(seat - scan->job->seats) - scan->job->first_seat[scan->process];
	struct match_cursor **cursor =
		&scan->cursors[index * MATCH_SEQUENCES + match_sequence(source, is_replay)];

	if (!match_can_compare(source))
		return NULL;
	if (*cursor == NULL)
		*cursor = match_cursor_new(&scan->matches, seat, source, is_replay);
	return *cursor;
}

static void join_entry(struct scan *scan, const struct job_seat *seat, struct scan_entry *entry,
		       const struct scan_cell *like, bool is_replay, bool is_comparable)
{
	const struct match_kind kind = { .tag = like->tag,
					 .names = like->names,
					 .size_class = like->size_class };

	if ((uint8_t)(like->names >> 16) == OP_RING)
		entry->matches.wire_class = like->size_class;
	entry->matches.has_shared = like->has_shared;
	entry->matches.is_rough = op_state_flags(entry->what) & OP_FLAG_PLACE_ROUGH;
	if (!match_is_synchronising((uint8_t)like->names))
		return;
	if (!scan->options->without_joins && is_comparable)
		entry->matches.cursor = find_cursor(scan, seat, like->source, is_replay);
	if (entry->matches.cursor != NULL)
		entry->matches.kind = match_kind(&scan->matches, seat->comm, &kind);
	entry->marks |= entry->matches.cursor != NULL ? SCAN_JOINED : SCAN_APART;
}

/* Without the exact size: sizes may vary from iteration to iteration, kinds of calls do not. */
static uint32_t symbol_of(const struct scan_cell *like)
{
	uint64_t what = like->names & 0xffff;

	if (op_is_collective((uint8_t)like->names))
		what |= (uint64_t)like->size_class << 16;
	return (uint32_t)hash_word(like->seat, what);
}

static void start_series(struct scan *scan, struct scan_cell *cell, const struct job_seat *seat,
			 bool is_shown)
{
	const struct job_comm *comm = &scan->job->comms[seat->comm];
	uint8_t function = (uint8_t)cell->names;

	cell->bus_factor = op_bus_factor(function, comm->nranks);
	cell->series = UINT32_MAX;
	if (scan->local != NULL && is_shown && op_is_duration(cell->source))
		cell->series =
			windows_local_series(scan->local, scan_series_id(comm->kind, function));
}

static uint32_t marks_of(uint64_t what, uint32_t names)
{
	uint8_t source = op_shown_source(op_state_source(what), op_state_flags(what));
	uint32_t marks = op_is_duration(source) || source == OP_TIME_PROXY ? SCAN_TIMED << source
									   : SCAN_UNTIMED;

	if (op_state_state(what) == OP_CAPTURED)
		marks = SCAN_CAPTURED;
	if (op_state_flags(what) & OP_STAMPS_UNTRUSTED)
		marks |= SCAN_UNTRUSTED;
	if ((uint8_t)names == OP_SEND)
		marks |= SCAN_SEND;
	return marks;
}

/* What to do with operations like this one; *entry may be in use for others, and another entry may be after
 * it. Failures are in scan->status. */
static COLD void scan_entry_fill(struct scan *scan, const struct scan_key *key,
				 struct scan_entry *entry)
{
	const struct job_seat *seat = job_seat(scan->job, scan->process, op_kind_comm(key->kind));
	struct scan_cell like = { .tag = key->tag,
				  .names = map_names(scan, op_kind_names(key->kind)),
				  .size_class = (uint8_t)op_size_class(key->bytes),
				  .source = op_shown_source(op_state_source(key->what),
							    op_state_flags(key->what)),
				  .has_shared = op_state_flags(key->what) & OP_FLAG_SHARED_TIME };

	*entry = (struct scan_entry){ .kind = key->kind,
				      .what = key->what,
				      .tag = key->tag,
				      .marks = SCAN_IGNORED,
				      .next = &scan->cache[0] };
	if (seat == NULL || !filter_has_comm(scan->filter, &scan->job->comms[seat->comm]) ||
	    !filter_has_function(scan->filter, scan->job, (uint8_t)like.names))
		return;
	for (size_t i = 0; i < scan->rank_count; i++)
		if (scan->ranks[i].rank == seat->rank)
			entry->rank = &scan->ranks[i];
	if (entry->rank == NULL)
		return;
	like.seat = (uint32_t)(seat - scan->job->seats);
	entry->symbol = symbol_of(&like);
	entry->marks = marks_of(key->what, like.names) | (entry->rank->is_shown ? 0 : SCAN_HIDDEN);
	/* What the host's clock says does not tell who was late, even if another tool calls it a duration. */
	join_entry(scan, seat, entry, &like, op_state_flags(key->what) & OP_FLAG_REPLAY,
		   op_state_source(key->what) != OP_TIME_HOST);
	/* Last: it may clear the cache. */
	entry->cell = find_cell(scan, &like);
	if (entry->cell == NULL)
		entry->marks = SCAN_IGNORED;
	else if (entry->cell->calls == 0)
		start_series(scan, entry->cell, seat, entry->rank->is_shown);
	entry->kind = key->kind;
}

/*
 * What is done with each operation: the loops in which a report spends its time.
 *
 * Rows are processed in groups of some dozens. First each row is classified (gather): that waits for memory
 * and has no dependencies, so the CPU does many rows at once. Then each kind of sum has its own loop, over
 * the rows that have a duration (nearly all); the others are handled one by one (sift).
 *
 * Each sum gets its operations in the order of the records: rounded values are the same however many are
 * taken at once.
 */

enum { ROWS_AT_ONCE = 64 };

/* The words that sums are made of. */
enum {
	BYTES,
	DONE,
	FROM, /* of durations, by their source */
	TO,
	MATCH,
	SIGNATURE,
	STEPS,
	NET,
	WORDS,
};

/* Some rows of a batch. */
struct step {
	const struct op_batch *batch;
	uint32_t first; /* row of the batch */
	uint32_t rows;
	uint32_t marks; /* of any of them */
	/* Those that have a duration and pass the filter, contiguous: */
	uint32_t count;
	bool is_sifted; /* not simply all rows */
	const struct scan_entry *entries[ROWS_AT_ONCE];
	const uint64_t *words[WORDS]; /* of the batch, or copies; no FROM: their sources differ */
	uint64_t durations_ns[ROWS_AT_ONCE]; /* or spans */
	const uint64_t *ranked_ns;	     /* what is compared between ranks */
	uint64_t wires_ns[ROWS_AT_ONCE];
	uint8_t places[ROWS_AT_ONCE]; /* if sifted: which rows they are */
	uint64_t copies[WORDS][ROWS_AT_ONCE];
};

/* A column from the step's first row on. */
static const uint64_t *column(const struct step *step, unsigned int word)
{
	return step->batch->column[word] + step->first;
}

/* ---- classifying rows ------------------------------------------------------------------------ */

/* All relevant bits of a state, and above them what separates size classes (op_size_class() is a call, and
 * numbers them differently). */
static inline uint64_t what_of(uint64_t state, uint64_t bytes)
{
	const uint64_t mask = UINT64_C(0xffff00000000) |
			      (uint32_t)(OP_FLAG_REPLAY | OP_STAMPS_UNTRUSTED | OP_FLAG_CUDA_EVENT |
					 OP_FLAG_SHARED_TIME | OP_FLAG_TOOL_TIME |
					 OP_FLAG_PLACE_ROUGH | OP_FLAG_REPLAY_READ);
	uint64_t size = 64 - (unsigned int)__builtin_clzll(bytes | 1) + (bytes != 0) +
			(bytes == OP_BYTES_UNKNOWN);

	return (state & mask) | size << 48;
}

static inline struct scan_entry *cache_place(struct scan *scan, const struct scan_key *key)
{
	uint64_t mixed = (key->kind ^ key->what << 13 ^ key->what >> 30 ^ key->tag) *
			 UINT64_C(0x9e3779b97f4a7c15);

	_Static_assert(SCAN_CACHE == 256, "the hash has 8 bits");
	return &scan->cache[mixed >> 56];
}

static inline bool is_like(const struct scan_entry *entry, const struct scan_key *key)
{
	return entry->kind == key->kind && entry->what == key->what && entry->tag == key->tag;
}

static inline struct scan_key row_key(const struct scan *scan, const struct step *step,
				      uint32_t row)
{
	uint64_t bytes = column(step, OP_WORD_BYTES)[row];

	return (struct scan_key){ .kind = column(step, OP_WORD_KIND)[row],
				  .what = what_of(column(step, OP_WORD_STATE)[row], bytes),
				  .tag = scan->has_tags ? column(step, OP_WORD_USER_TAG)[row] : 0,
				  .bytes = bytes };
}

/* It came after another one than last time. NULL: never seen. */
static APART struct scan_entry *look_up(struct scan *scan, const struct step *step, uint32_t row)
{
	struct scan_key key = row_key(scan, step, row);
	struct scan_entry *entry = cache_place(scan, &key);

	return is_like(entry, &key) ? entry : NULL;
}

/* As many as there are entries for, and in the current time slot. */
static void gather(struct scan *scan, struct step *step)
{
	const uint64_t *kinds = column(step, OP_WORD_KIND), *states = column(step, OP_WORD_STATE);
	const uint64_t *bytes = column(step, OP_WORD_BYTES), *done = column(step, OP_WORD_DONE);
	const uint64_t *tags = scan->has_tags ? column(step, OP_WORD_USER_TAG) : NULL;
	struct scan_entry *latest = scan->latest;
	uint64_t end_ns = scan->stretch_end_ns;
	uint32_t n = 0, marks = 0;

	for (; n < step->rows && done[n] < end_ns; n++) {
		struct scan_entry *entry = latest->next;

		if (UNLIKELY(entry->kind != kinds[n] ||
			     entry->what != what_of(states[n], bytes[n]) ||
			     (tags != NULL && entry->tag != tags[n]))) {
			entry = look_up(scan, step, n);
			if (entry == NULL)
				break;
			latest->next = entry;
		}
		step->entries[n] = entry;
		marks |= entry->marks;
		latest = entry;
	}
	scan->latest = latest;
	step->rows = step->count = n;
	step->marks = marks;
}

/* The filter's limits in time, and its tag. */
static bool is_passing(const struct scan *scan, const struct step *step, uint32_t place)
{
	bool has_limits = scan->since_ns != 0 || scan->until_ns != UINT64_MAX;

	if (has_limits &&
	    !filter_is_within(scan->since_ns, scan->until_ns, column(step, OP_WORD_DONE)[place],
			      column(step, OP_WORD_ISSUE)[place]))
		return false;
	return !scan->filter->has_tag || column(step, OP_WORD_USER_TAG)[place] == scan->filter->tag;
}

/* ---- one by one ------------------------------------------------------------------------------ */

static uint64_t span_of(const struct step *step, uint32_t place)
{
	uint64_t done_ns = column(step, OP_WORD_DONE)[place];

	switch (op_state_source(column(step, OP_WORD_STATE)[place])) {
	case OP_TIME_KERNEL_GPU:
		return column(step, OP_WORD_GPU_STOP)[place] -
		       column(step, OP_WORD_GPU_START)[place];
	case OP_TIME_PROXY:
		return done_ns - column(step, OP_WORD_ACTIVE)[place];
	case OP_TIME_HOST:
		return done_ns - column(step, OP_WORD_ISSUE)[place];
	default:
		return 0;
	}
}

/*
 * Either may be 0: not known. What has no end stays in its slot, however old: a ring buffer that has overwritten everything
 * since then does not begin there.
 */
static void widen_span(struct scan_rank *rank, uint64_t issue_ns, uint64_t done_ns)
{
	uint64_t first_ns = issue_ns != 0 ? issue_ns : done_ns;
	uint64_t last_ns = done_ns > issue_ns ? done_ns : issue_ns;
	bool has_first = rank->untimed_first_ns != UINT64_MAX || rank->busy.first_ns != UINT64_MAX;

	if (last_ns == 0)
		return;
	if (first_ns < rank->untimed_first_ns && !(done_ns == 0 && has_first))
		rank->untimed_first_ns = first_ns;
	if (last_ns > rank->untimed_last_ns)
		rank->untimed_last_ns = last_ns;
}

/* No duration. Neither done nor captured: in flight, or its end was not recorded. */
static COLD void take_untimed(struct scan *scan, const struct scan_entry *entry,
			      const struct step *step, uint32_t place)
{
	const uint32_t blind =
		OP_FLAG_API_ONLY | OP_FLAG_COPY_ENGINE | OP_FLAG_SELF | OP_FLAG_UNTRACKED;
	const struct recording_process *process = scan->job->recording->processes[scan->process];
	size_t seat = entry->cell->seat;
	const struct recording_comm *comm =
		&process->comms[seat - scan->job->first_seat[scan->process]];
	uint64_t state_word = column(step, OP_WORD_STATE)[place];
	struct scan_open *open = &scan->opens[seat];
	uint8_t state = op_state_state(state_word);
	struct op_record op;

	entry->cell->calls++;
	entry->cell->bytes += column(step, OP_WORD_BYTES)[place];
	widen_span(entry->rank, column(step, OP_WORD_ISSUE)[place],
		   column(step, OP_WORD_DONE)[place]);
	if (entry->marks & (SCAN_JOINED | SCAN_APART))
		scan->matches.untimed++;
	if (state >= OP_DONE || column(step, OP_WORD_DONE)[place] != 0 ||
	    op_state_flags(state_word) & blind || process->life == RECORDING_ENDED)
		return;
	/* They run in order: what is before a finished one is over. */
	if (state != OP_RUNNING && comm->has_counts &&
	    column(step, OP_WORD_NUMBER)[place] <= comm->counts.last_done_number)
		return;
	op = (struct op_record){ .function = entry->cell->names & 0xff,
				 .state = state,
				 .flags = op_state_flags(state_word) };
	if (!(op.flags & OP_FLAG_CUDA_EVENT) && !flight_end_shows(comm, &op))
		return;
	entry->cell->open++;
	scan->report->completeness.in_flight++;
	if (open->count++ > 0)
		return;
	open->match = column(step, OP_WORD_MATCH)[place];
	open->signature = column(step, OP_WORD_SIGNATURE)[place];
	open->issue_ns = column(step, OP_WORD_ISSUE)[place];
	open->function = (uint8_t)entry->cell->names;
	open->state = state;
}

static const struct recording_comm *comm_of(const struct scan *scan, const struct scan_entry *entry)
{
	const struct recording_process *process = scan->job->recording->processes[scan->process];

	return &process->comms[entry->cell->seat - scan->job->first_seat[scan->process]];
}

/* NCCL shows the stream of a call from interface 5 on; a replay has none of its own. */
static bool is_on_default_stream(const struct scan *scan, const struct scan_entry *entry,
				 const struct step *step, uint32_t place)
{
	return comm_of(scan, entry)->info.interface >= 5 &&
	       column(step, OP_WORD_STREAM)[place] == 0 &&
	       !(op_state_flags(column(step, OP_WORD_STATE)[place]) & OP_FLAG_REPLAY);
}

/*
 * The end on the GPU, where it can be compared with other ends there. The place of CUDA events may be off: by less than a
 * tenth of the duration it does not matter for how much of it overlaps with others. 0: none.
 */
static uint64_t gpu_end(const struct scan *scan, const struct scan_entry *entry,
			const struct step *step, uint32_t place, uint64_t duration_ns)
{
	enum { PLACE_ERROR_SHARE = 10 };
	uint8_t source = entry->cell->source;
	uint64_t error_ns = 0;

	if (source == OP_TIME_CUDA_EVENT)
		error_ns = entry->matches.is_rough ? UINT64_MAX
						   : comm_of(scan, entry)->info.place_error_ns;
	if (!op_source_is_gpu(source) || error_ns > duration_ns / PLACE_ERROR_SHARE)
		return 0;
	return column(step, OP_WORD_GPU_STOP)[place];
}

static void take_iteration_op(struct scan *scan, const struct scan_entry *entry,
			      const struct step *step, uint32_t place)
{
	bool is_timed = op_is_duration(entry->cell->source);
	/* The host's bound says nothing of when it ended. */
	bool is_end_known = entry->cell->source != OP_TIME_HOST;
	uint64_t duration_ns = is_timed ? span_of(step, place) : 0;
	uint64_t bytes = column(step, OP_WORD_BYTES)[place];

	if (scan->iteration_count == ITERATIONS_OPS_MAX) {
		scan->is_iteration_cut = true;
		return;
	}
	if (!list_grow(&scan->iteration_ops, scan->iteration_count, sizeof(*scan->iteration_ops))) {
		scan->status = ERR_NO_SPACE;
		return;
	}
	scan->iteration_ops[scan->iteration_count++] = (struct iterations_op){
		.symbol = entry->symbol,
		.comm = entry->cell->seat,
		.tag = column(step, OP_WORD_USER_TAG)[place],
		.issue_ns = column(step, OP_WORD_ISSUE)[place],
		.done_ns = is_end_known ? column(step, OP_WORD_DONE)[place] : 0,
		.duration_ns = duration_ns,
		.bytes = bytes == OP_BYTES_UNKNOWN ? 0 : bytes,
		.gpu_stop_ns = gpu_end(scan, entry, step, place, duration_ns),
		.is_timed = is_timed,
		.is_default_stream = is_on_default_stream(scan, entry, step, place),
	};
}

static void add_link(struct scan *scan, const struct scan_entry *entry, const struct step *step,
		     uint32_t place)
{
	uint64_t bytes = column(step, OP_WORD_BYTES)[place];
	uint32_t seat = entry->cell->seat;
	struct link *link;

	if (scan->options->without_joins)
		return;
	link = links_get(&scan->links, scan->job->seats[seat].comm, seat,
			 (int32_t)(column(step, OP_WORD_ENDS)[place] >> 32));
	if (link == NULL)
		return;
	link_add(link, (uint32_t)column(step, OP_WORD_STEPS)[place],
		 column(step, OP_WORD_WAITS + OP_WAIT_SEND_NET)[place],
		 bytes == OP_BYTES_UNKNOWN ? 0 : bytes);
}

static void take_odd(struct scan *scan, const struct scan_entry *entry, const struct step *step,
		     uint32_t place)
{
	if (entry->marks & SCAN_CAPTURED) {
		entry->cell->captured++;
		return;
	}
	entry->cell->untrusted += (entry->marks & SCAN_UNTRUSTED) != 0;
	take_untimed(scan, entry, step, place);
	if (entry->marks & SCAN_SEND)
		add_link(scan, entry, step, place);
}

/* Special rows are handled now; the others are compacted. Returns how many rows are examined. */
static uint32_t sift(struct scan *scan, struct step *step)
{
	bool is_iterated = scan->process == scan->iteration_process;
	uint32_t looked_at = 0;

	step->is_sifted = true;
	step->count = 0;
	for (uint32_t n = 0; n < step->rows; n++) {
		const struct scan_entry *entry = step->entries[n];

		if (entry->cell == NULL || !is_passing(scan, step, n))
			continue;
		looked_at += !(entry->marks & SCAN_HIDDEN);
		/* Replays are read now and then, which is no pattern of the program. */
		if (is_iterated && !(entry->marks & SCAN_CAPTURED) &&
		    !(op_state_flags(entry->what) & OP_FLAG_REPLAY_READ))
			take_iteration_op(scan, entry, step, n);
		if (entry->marks & (SCAN_CAPTURED | SCAN_UNTIMED)) {
			take_odd(scan, entry, step, n);
			continue;
		}
		step->places[step->count] = (uint8_t)n;
		step->entries[step->count++] = entry;
	}
	return looked_at;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static void set_words(struct step *step)
{
	step->words[BYTES] = column(step, OP_WORD_BYTES);
	step->words[DONE] = step->words[TO] = column(step, OP_WORD_DONE);
	step->words[MATCH] = column(step, OP_WORD_MATCH);
	step->words[SIGNATURE] = column(step, OP_WORD_SIGNATURE);
	step->words[STEPS] = column(step, OP_WORD_STEPS);
	step->words[NET] = column(step, OP_WORD_WAITS + OP_WAIT_SEND_NET);
	step->words[FROM] = NULL;
	switch (step->marks & SCAN_ANY_SOURCE) {
	case SCAN_TIMED << OP_TIME_KERNEL_GPU:
	case SCAN_TIMED << OP_TIME_CUDA_EVENT:
	case SCAN_TIMED << OP_TIME_KERNEL_GPU | SCAN_TIMED << OP_TIME_CUDA_EVENT:
		step->words[FROM] = column(step, OP_WORD_GPU_START);
		step->words[TO] = column(step, OP_WORD_GPU_STOP);
		break;
	case SCAN_TIMED << OP_TIME_PROXY:
		step->words[FROM] = column(step, OP_WORD_ACTIVE);
		break;
	default: /* the time of another tool may be of either kind */
		break;
	}
}

/* Rows are missing: the rest of each word is copied without gaps. */
static void close_gaps(struct step *step)
{
	for (unsigned int word = 0; word < WORDS; word++) {
		bool is_for_joins = word >= MATCH;

		if (step->words[word] == NULL || (is_for_joins && !(step->marks & SCAN_JOINED)))
			continue;
		for (uint32_t i = 0; i < step->count; i++)
			step->copies[word][i] = step->words[word][step->places[i]];
		step->words[word] = step->copies[word];
	}
}

static void find_durations(struct step *step)
{
	const uint64_t *from = step->words[FROM], *to = step->words[TO];

	for (uint32_t i = 0; from != NULL && i < step->count; i++)
		step->durations_ns[i] = to[i] - from[i];
	for (uint32_t i = 0; from == NULL && i < step->count; i++)
		step->durations_ns[i] = span_of(step, step->is_sifted ? step->places[i] : i);
}

/* Of spans, what is compared between ranks is the time on the wire of a transfer: see match.h. */
static void find_ranked(struct step *step)
{
	step->ranked_ns = step->durations_ns;
	if (!(step->marks & SCAN_SPAN))
		return;
	step->ranked_ns = step->wires_ns;
	for (uint32_t i = 0; i < step->count; i++) {
		uint32_t sends = (uint32_t)step->words[STEPS][i];

		step->wires_ns[i] = step->durations_ns[i];
		if (step->entries[i]->marks & SCAN_SPAN)
			step->wires_ns[i] = sends > 0 ? step->words[NET][i] / sends : 0;
	}
}

static void add_to_cells(const struct tally_scale *scale, const struct step *step)
{
	const uint64_t *bytes = step->words[BYTES];

	for (uint32_t i = 0; i < step->count; i++) {
		struct scan_cell *cell = step->entries[i]->cell;
		uint64_t ns = step->durations_ns[i];

		cell->calls++;
		cell->bytes += bytes[i];
		cell->sum_ns += ns;
		cell->square_sum += (double)ns * (double)ns;
		cell->min_ns = ns < cell->min_ns ? ns : cell->min_ns;
		cell->max_ns = ns > cell->max_ns ? ns : cell->max_ns;
		cell->buckets[tally_bucket(scale, ns)]++;
	}
}

static void add_to_ranks(const struct step *step)
{
	const uint64_t *done = step->words[DONE];
	struct busy_run run = { .busy = NULL };

	for (uint32_t i = 0; i < step->count; i++) {
		struct busy *busy = &step->entries[i]->rank->busy;
		uint64_t ns = step->durations_ns[i];

		if (UNLIKELY(step->entries[i]->marks & SCAN_SPAN)) {
			uint32_t place = step->is_sifted ? step->places[i] : i;

			widen_span(step->entries[i]->rank, column(step, OP_WORD_ISSUE)[place],
				   done[i]);
			continue;
		}
		if (UNLIKELY(busy != run.busy)) {
			busy_run_end(&run);
			busy_run_start(&run, busy);
		}
		if (LIKELY(done[i] >= ns && done[i] != 0))
			busy_run_add(&run, done[i] - ns, done[i]);
	}
	busy_run_end(&run);
}

static void join_rows(const struct step *step)
{
	const struct match_columns columns = { .match = step->words[MATCH],
					       .signature = step->words[SIGNATURE],
					       .duration_ns = step->durations_ns,
					       .ranked_ns = step->ranked_ns,
					       .end_ns = step->words[DONE],
					       .send_net_ns = step->words[NET],
					       .steps = step->words[STEPS],
					       .bytes = step->words[BYTES] };
	struct match_run run = { .cursor = NULL };

	for (uint32_t i = 0, count = step->count; i < count; i++) {
		const struct match_what *what = &step->entries[i]->matches;

		if (what->cursor == NULL)
			continue;
		if (UNLIKELY(what->cursor != run.cursor)) {
			match_run_end(&run);
			match_run_start(&run, what->cursor);
		}
		if (UNLIKELY(!match_run_add(&run, &columns, i, what))) {
			step->entries[i]->cell->apart++;
			step->entries[i]->cell->apart_ns += step->durations_ns[i];
		}
	}
	match_run_end(&run);
}

/* What few operations have. */
static void take_rest(struct scan *scan, const struct scan_entry *entry, const struct step *step,
		      uint32_t i)
{
	struct scan_cell *cell = entry->cell;

	cell->untrusted += (entry->marks & SCAN_UNTRUSTED) != 0;
	if (entry->marks & SCAN_SEND)
		add_link(scan, entry, step, step->is_sifted ? step->places[i] : i);
	if (!(entry->marks & SCAN_APART))
		return;
	cell->apart++;
	cell->apart_ns += step->durations_ns[i];
	if (match_can_compare(cell->source) && op_state_source(entry->what) != OP_TIME_HOST)
		scan->matches.unmatched++;
	else
		scan->matches.untimed++;
}

static void sum_rows(struct scan *scan, struct step *step)
{
	set_words(step);
	if (step->count < step->rows)
		close_gaps(step);
	find_durations(step);
	add_to_cells(&scan->scale, step);
	add_to_ranks(step);
	if (step->marks & SCAN_JOINED) {
		find_ranked(step);
		join_rows(step);
	}
	if (step->marks & (SCAN_APART | SCAN_SEND | SCAN_UNTRUSTED))
		for (uint32_t i = 0; i < step->count; i++)
			take_rest(scan, step->entries[i], step, i);
}

static void add_rows(struct scan *scan, struct step *step)
{
	const uint32_t odd = SCAN_IGNORED | SCAN_HIDDEN | SCAN_CAPTURED | SCAN_UNTIMED;
	bool is_filtered = scan->since_ns != 0 || scan->until_ns != UINT64_MAX ||
			   scan->filter->has_tag || scan->process == scan->iteration_process;
	uint32_t looked_at = step->rows;

	step->is_sifted = false;
	if (is_filtered || step->marks & odd)
		looked_at = sift(scan, step);
	scan->report->completeness.looked_at += looked_at;
	if (step->count > 0)
		sum_rows(scan, step);
}

/* ---- batches --------------------------------------------------------------------------------- */

/* The next time slot begins with this row, unless it is not examined: then it is handled alone. */
static void take_over(struct scan *scan, struct step *step, const struct scan_entry *entry)
{
	uint64_t done_ns = column(step, OP_WORD_DONE)[0];

	if (entry->cell != NULL && !(entry->marks & SCAN_CAPTURED) && scan->local != NULL &&
	    is_passing(scan, step, 0)) {
		scan_tell_series(scan);
		windows_local_move(scan->local, done_ns);
		scan->stretch_end_ns = scan->local->current_end_ns;
		/* With those that follow it; except for a time past the end of all times. */
		if (done_ns < scan->stretch_end_ns)
			return;
	}
	step->rows = step->count = 1;
	step->entries[0] = entry;
	step->marks = entry->marks;
	add_rows(scan, step);
}

/* Some rows from `first` on; returns how many. 0: something was found out about the first one. */
static uint32_t take_some(struct scan *scan, const struct op_batch *batch, uint32_t first)
{
	uint32_t left = batch->rows - first;
	struct scan_entry *entry;
	struct scan_key key;
	struct step step;

	step.batch = batch;
	step.first = first;
	step.rows = left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE;
	gather(scan, &step);
	if (LIKELY(step.rows > 0)) {
		add_rows(scan, &step);
		return step.rows;
	}
	key = row_key(scan, &step, 0);
	entry = cache_place(scan, &key);
	if (is_like(entry, &key))
		take_over(scan, &step, entry);
	else
		scan_entry_fill(scan, &key, entry);
	return step.rows;
}

/* Cells count in 32 bits: flushed long before they are full. */
static void flush_in_time(struct scan *scan, uint32_t rows)
{
	scan->unflushed += rows;
	if (UNLIKELY(scan->unflushed > UINT32_MAX / 2)) {
		scan->status = scan_flush(scan);
		scan_entry_forget(scan);
		scan->unflushed = 0;
	}
}

static void tell_progress(struct scan *scan)
{
	double fraction = scan->ops_expected
				  ? 0.95 * (double)scan->ops_done / (double)scan->ops_expected
				  : 0.5;

	if (scan->status == OK && scan->options->progress != NULL &&
	    !scan->options->progress(fraction, scan->options->progress_context))
		scan->status = ERR_GONE;
}

/* For recording_each_batch(): a struct scan is the context. */
static bool scan_rows_visit(const struct op_batch *batch, enum recording_place place, void *context)
{
	struct scan *scan = context;
	struct op_batch copy;

	(void)place;
	batch = job_gaps_batch(&scan->gaps, scan->process, batch, &copy);
	if (scan->gaps.status != OK)
		scan->status = scan->gaps.status;
	for (uint32_t first = 0; first < batch->rows && scan->status == OK;)
		first += take_some(scan, batch, first);
	flush_in_time(scan, batch->rows);
	scan->ops_done += batch->rows;
	tell_progress(scan);
	return scan->status == OK;
}

static enum status start_process(struct scan *scan, uint32_t p)
{
	const struct job *job = scan->job;
	size_t seats = job->first_seat[p + 1] - job->first_seat[p];
	size_t count = 0;

	scan->process = p;
	scan->rank_count = 0;
	for (size_t r = job->process_rank[p]; r < job->rank_count; r++)
		count += job->ranks[r].process == p;
	scan->ranks = calloc(count + 1, sizeof(*scan->ranks));
	scan->cursors = calloc(seats * MATCH_SEQUENCES + 1, sizeof(*scan->cursors));
	if (scan->ranks == NULL || scan->cursors == NULL)
		return ERR_NO_SPACE;
	for (size_t r = job->process_rank[p]; scan->rank_count < count; r++) {
		struct scan_rank *rank = &scan->ranks[scan->rank_count];

		if (job->ranks[r].process != p)
			continue;
		*rank = (struct scan_rank){ .rank = (uint32_t)r,
					    .is_shown = scan->report->ranks[r].is_shown,
					    .busy = BUSY_INIT,
					    .untimed_first_ns = UINT64_MAX };
		scan->rank_count++;
	}
	scan_limits(scan, p);
	scan->local = scan->options->without_windows ? NULL : &scan->locals[p];
	scan->stretch_end_ns = scan->local != NULL ? 1 : UINT64_MAX;
	if (scan->local != NULL)
		windows_local_init(scan->local, scan->local_room);
	scan_entry_forget(scan);
	return OK;
}

static void end_process(struct scan *scan)
{
	size_t seats =
		scan->job->first_seat[scan->process + 1] - scan->job->first_seat[scan->process];

	for (size_t i = 0; scan->cursors != NULL && i < seats * MATCH_SEQUENCES; i++)
		match_cursor_free(scan->cursors[i]);
	for (size_t i = 0; i < scan->rank_count; i++) {
		struct timeline_rank *rank = &scan->report->ranks[scan->ranks[i].rank];
		const struct busy *busy = &scan->ranks[i].busy;

		uint64_t first_ns = scan->ranks[i].untimed_first_ns;
		uint64_t last_ns = scan->ranks[i].untimed_last_ns;

		rank->busy_ns = busy_total_ns(busy);
		first_ns = busy->first_ns < first_ns ? busy->first_ns : first_ns;
		last_ns = busy_last_ns(busy) > last_ns ? busy_last_ns(busy) : last_ns;
		if (first_ns <= last_ns) {
			rank->span_ns = last_ns - first_ns;
			/* Of its own clock, until it is aligned. */
			rank->first_ns = first_ns;
			rank->last_ns = last_ns;
		}
	}
	if (scan->local != NULL) {
		windows_local_finish(scan->local);
		if (scan->local->status != OK)
			scan->status = scan->local->status;
	}
	free(scan->ranks);
	free(scan->cursors);
	scan->ranks = NULL;
	scan->cursors = NULL;
	scan->rank_count = 0;
}

static void add_walk(struct timeline_completeness *to, const struct recording_walk *walk)
{
	to->read += walk->in_trace + walk->in_ring + walk->in_live;
	to->refused += walk->refused;
	to->damages += walk->damages + walk->torn;
	to->untimed += walk->untimed;
}

static enum status scan_process(struct scan *scan, uint32_t p)
{
	struct recording_walk walk = { 0 };
	enum status status = start_process(scan, p), flushed;

	if (status == OK)
		status = recording_each_batch(scan->job->recording->processes[p],
					      scan_words(scan, p), scan_rows_visit, scan, &walk);
	add_walk(&scan->report->completeness, &walk);
	flushed = scan_flush(scan);
	estimate_end_process(&scan->estimate);
	end_process(scan);
	if (scan->status != OK)
		return scan->status;
	if (status == OK)
		status = flushed;
	if (status == OK)
		status = scan->matches.status != OK ? scan->matches.status : scan->links.status;
	return status;
}

enum status scan_run(struct scan *scan)
{
	for (uint32_t p = 0; p < scan->job->recording->count; p++) {
		enum status status = scan_process(scan, p);

		if (status != OK)
			return status;
	}
	return OK;
}
