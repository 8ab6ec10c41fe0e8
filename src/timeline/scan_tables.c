/* What the walk needs before it starts, and what becomes of its sums. */
#include "timeline/scan.h"

#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/op.h"

enum { LOCALS_IN_ALL = 1 << 17, LOCALS_LEAST = 64 };

/* ---- time limits ----------------------------------------------------------------------------- */

void scan_find_limits(struct scan *scan)
{
	filter_wall_limits(scan->filter, scan->job->recording, &scan->report->since_ns,
			   &scan->report->until_ns);
}

void scan_limits(struct scan *scan, uint32_t p)
{
	filter_clock_limits(scan->job->recording->processes[p], scan->report->since_ns,
			    scan->report->until_ns, &scan->since_ns, &scan->until_ns);
}

/* ---- set up ---------------------------------------------------------------------------------- */

/* For sorting: communicators of one group and name; those without a name by their shape. */
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
	if (a->nranks != b->nranks)
		return a->nranks < b->nranks ? -1 : 1;
	return a->nnodes < b->nnodes ? -1 : a->nnodes > b->nnodes;
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

uint32_t scan_words(const struct scan *scan, uint32_t p)
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
	status = meet_init(&scan->meet, job, options->meet_limit);
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
	meet_release(&scan->meet);
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

static struct tally_key key_of(const struct scan *scan, uint32_t seat_index, uint32_t names,
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

static enum status row_of(const struct scan *scan, const struct scan_cell *cell,
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
	if (cell->source == OP_TIME_NONE || cell->calls == 0)
		return OK;
	row->timed = cell->calls;
	row->sum_ns = cell->sum_ns;
	row->min_ns = cell->min_ns;
	row->max_ns = cell->max_ns;
	row->square_sum = cell->square_sum;
	if (meet_is_synchronising(function)) {
		row->joined = cell->calls - cell->apart;
		row->joined_ns = cell->sum_ns - cell->apart_ns;
	}
	if (cell->size_class != 0) {
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
	rank->timed += cell->source != OP_TIME_NONE ? cell->calls : 0;
	rank->sum_ns += cell->sum_ns;
	rank->bytes += scan_cell_bytes(cell);
	if (meet_is_synchronising((uint8_t)cell->names) && cell->source != OP_TIME_NONE) {
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

	if (cell->source == OP_TIME_NONE) {
		part.untimed = cell->calls - cell->open;
	} else {
		part.timed = cell->calls;
		part.sum_ns = cell->sum_ns;
		if (meet_is_synchronising((uint8_t)cell->names))
			part.joined_ns = cell->sum_ns - cell->apart_ns;
	}
	return part.timed + part.untimed > 0 ? estimate_add(&scan->estimate, &part) : OK;
}

static enum status flush_cell(struct scan *scan, const struct scan_cell *cell)
{
	struct tally_key key =
		key_of(scan, cell->seat, cell->names, cell->size_class, cell->source, cell->tag);
	struct tally_row row;
	enum status status;

	add_to_rank(scan, cell);
	status = add_to_estimate(scan, cell);
	if (status != OK || !scan->report->ranks[key.rank].is_shown ||
	    cell->calls + cell->captured == 0)
		return status;
	status = row_of(scan, cell, &row);
	for (size_t i = 0; i < scan->view_count && status == OK; i++) {
		struct tally_row *to = view_row(scan, scan->views[i], key);

		status = to != NULL ? tally_merge(to, &row) : ERR_NO_SPACE;
	}
	if (status == OK)
		status = tally_merge(&scan->report->total, &row);
	tally_row_release(&row);
	return status;
}

void scan_tell_series(struct scan *scan)
{
	if (scan->local == NULL || scan->local->current_end_ns == 0)
		return;
	for (size_t i = 0; i < scan->cell_count; i++) {
		struct scan_cell *cell = &scan->cells[i];
		bool is_sized = cell->size_class != 0;
		struct windows_stretch what = {
			.calls = (float)(cell->calls - cell->told_calls),
			.bytes = is_sized ? (float)(cell->bytes - cell->told_bytes) : 0,
			.time_ns = is_sized ? (float)(cell->sum_ns - cell->told_ns) : 0,
		};

		if (cell->series == UINT32_MAX || cell->calls == cell->told_calls)
			continue;
		what.bus_bytes = (float)(what.bytes * cell->bus_factor);
		windows_local_add(scan->local, cell->series, &what);
		cell->told_calls = cell->calls;
		cell->told_bytes = cell->bytes;
		cell->told_ns = cell->sum_ns;
	}
}

enum status scan_flush(struct scan *scan)
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

/* Who met nobody was not joined: whether it waited is not known. */
static void add_sum(struct tally_row *row, const struct meet_sum *sum)
{
	row->joined -= sum->alone;
	row->joined_ns -= sum->alone_ns;
	row->joined_least_ns += sum->least_ns - sum->alone_ns;
	row->moves += sum->moves;
	row->move_log_sum += sum->move_log_sum;
	row->move_log_squares += sum->move_log_squares;
}

static enum status add_kind(struct scan *scan, uint32_t seat_index, const struct meet_lane *lane,
			    const struct meet_kind *kind, const struct meet_sum *sum)
{
	struct tally_key key =
		key_of(scan, seat_index, kind->names, kind->size_class, lane->source, kind->tag);
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

/* The first rank shown says for all what took place: its own collectives are nearly all of them. */
static void add_moves(const struct meet_lane *lane, uint32_t kind_count, struct meet_sum *sums)
{
	for (uint32_t kind = 0; kind < kind_count; kind++) {
		sums[kind].moves = lane->sums[kind].moves;
		sums[kind].move_log_sum = lane->sums[kind].move_log_sum;
		sums[kind].move_log_squares = lane->sums[kind].move_log_squares;
	}
}

static enum status add_seat(struct scan *scan, const struct meet_lane *lane, uint32_t place,
			    struct meet_sum *sums, bool *has_moves)
{
	const struct meet_comm *comm = &scan->meet.comms[lane->comm];
	const struct job_seat *seat = &scan->job->seats[scan->job->comms[lane->comm].seats[place]];
	enum status status = OK;

	if (lane->seats[place].count == 0)
		return OK;
	memset(sums, 0, comm->kind_count * sizeof(*sums));
	meet_sums(lane, comm->kind_count, place, sums);
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
	const struct meet_comm *comm = &scan->meet.comms[c];
	struct meet_sum *sums = calloc(comm->kind_count + 1, sizeof(*sums));
	enum status status = sums ? OK : ERR_NO_SPACE;

	for (unsigned int i = 0; i < MEET_LANES && status == OK; i++) {
		bool has_moves = false;

		for (uint32_t place = 0; comm->lanes[i] != NULL && status == OK &&
					 place < scan->job->comms[c].seat_count;
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
		key_of(scan, part->seat, part->names, part->size_class, OP_TIME_NONE, part->tag);
	struct timeline_rank *rank = &scan->report->ranks[key.rank];
	double share = (double)part->untimed / (double)kind->timed;

	rank->covered_ns += share * (double)kind->sum_ns;
	rank->covered_wait_ns += share * (double)(kind->joined_ns - kind->least_ns);
	if (!rank->is_shown)
		return OK;
	for (size_t i = 0; i < scan->view_count; i++) {
		struct tally_row *row;

		/* A row of one source says what that source measured. */
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
	if ((report->untimed_count & (report->untimed_count - 1)) == 0) {
		size_t room = report->untimed_count ? report->untimed_count * 2 : 1;
		void *grown = realloc(report->untimed, room * sizeof(*report->untimed));

		if (grown == NULL)
			return ERR_NO_SPACE;
		report->untimed = grown;
	}
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

	if (a->comm != b->comm)
		return a->comm < b->comm ? -1 : 1;
	if (a->names != b->names)
		return a->names < b->names ? -1 : 1;
	return (a->size_class > b->size_class) - (a->size_class < b->size_class);
}

static int by_calls(const void *left, const void *right)
{
	const struct timeline_untimed *a = left, *b = right;

	if (a->calls != b->calls)
		return a->calls > b->calls ? -1 : 1;
	return by_comm_and_names(left, right);
}

/* What all ranks have in common is one kind. */
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

/* Time of all calls and of the timed ones, by communicator: only collectives that can be joined. */
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
	if (meet_is_synchronising((uint8_t)first->names)) {
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
