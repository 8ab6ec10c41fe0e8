/*
 * Cells of all communicators that are alike (kind, function, size, algorithm, protocol) make a row: how many of
 * them are slow says whether it is one of them or all. Changes of the report come as such rows already; the
 * rows that did not change are made of cells, for contrast.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "doctor/slow_find.h"
#include "timeline/meet.h"

enum {
	MOVES_LEAST = 16,    /* as changes need, see windows_changes.c */
	EACH_SIDE_LEAST = 8, /* collectives before a change, and after it */
};

enum status slow_rows_init(struct slow_rows *rows, enum slow_against against)
{
	*rows = (struct slow_rows){ .against = against };
	rows->list = calloc(SLOW_ROWS_MAX, sizeof(*rows->list));
	return rows->list ? OK : ERR_NO_SPACE;
}

void slow_rows_release(struct slow_rows *rows)
{
	free(rows->list);
	*rows = (struct slow_rows){ .list = NULL };
}

static struct slow_row *row_of(struct slow_rows *rows, const struct job *job,
			       const struct slow_cell *cell)
{
	enum job_comm_kind kind = job->comms[cell->comm].kind;
	size_t i = 0;

	for (; i < rows->count; i++) {
		const struct slow_row *row = &rows->list[i];

		if (row->kind == kind && row->function == cell->function &&
		    row->size_class == cell->size_class && row->algorithm == cell->algorithm &&
		    row->protocol == cell->protocol)
			return &rows->list[i];
	}
	if (rows->count == SLOW_ROWS_MAX) {
		rows->left_out++;
		return NULL;
	}
	rows->list[rows->count] = (struct slow_row){ .kind = kind,
						     .function = cell->function,
						     .size_class = cell->size_class,
						     .algorithm = cell->algorithm,
						     .protocol = cell->protocol,
						     .comm = cell->comm,
						     .host = UINT32_MAX };
	return &rows->list[rows->count++];
}

/* The host of all members; UINT32_MAX when they are on several. */
static uint32_t host_of(const struct job *job, uint32_t comm)
{
	const struct job_comm *of = &job->comms[comm];
	uint32_t host = UINT32_MAX;

	for (uint32_t i = 0; i < of->seat_count; i++) {
		uint32_t here = job->ranks[job->seats[of->seats[i]].rank].host;

		if (host != UINT32_MAX && host != here)
			return UINT32_MAX;
		host = here;
	}
	return host;
}

/* Named alike; without a name, shaped alike. */
static bool is_same_name(const struct job_comm *a, const struct job_comm *b)
{
	if (a->name[0] != '\0' || b->name[0] != '\0')
		return strcmp(a->name, b->name) == 0;
	return a->nranks == b->nranks && a->nnodes == b->nnodes;
}

/* What is lost decides whose figures stand for the row. */
static void add_slow(struct slow_row *row, const struct job *job, const struct slow_cell *cell)
{
	double spent_ns = cell->is_send ? cell->p10_ns * (double)cell->calls : cell->spent_ns;
	double lost_ns = spent_ns * (1 - 1 / cell->ratio);
	uint32_t host = host_of(job, cell->comm);

	row->host = row->comms_slow == 0 || row->host == host ? host : UINT32_MAX;
	row->is_one_name =
		row->comms_slow == 0 ||
		(row->is_one_name && is_same_name(&job->comms[row->comm], &job->comms[cell->comm]));
	if (row->comms_slow == 0 || lost_ns * row->comms_slow > row->lost_ns) {
		row->comm = cell->comm;
		row->before = cell->busbw_then;
		row->after = cell->busbw;
		row->ratio = cell->ratio;
		row->ratio_low = cell->ratio_low;
		row->ratio_high = cell->ratio_high;
		row->wire_then_ns = cell->wire_then_ns;
		row->consume_then_ns = cell->consume_then_ns;
		text_copy(row->was, sizeof(row->was), cell->was);
	}
	row->confidence = cell->confidence > row->confidence ? cell->confidence : row->confidence;
	row->is_slow = true;
	row->is_send = cell->is_send;
	row->comms_slow++;
	row->ranks += job->comms[cell->comm].seat_count;
	row->lost_ns += lost_ns;
}

void slow_rows_collect(struct slow_rows *rows, const struct timeline_report *report,
		       const struct slow_cells *cells, uint32_t group)
{
	for (size_t i = 0; i < cells->count; i++) {
		const struct slow_cell *cell = &cells->list[i];
		struct slow_row *row;

		if (!cell->is_compared || report->job.comms[cell->comm].group != group)
			continue;
		row = row_of(rows, &report->job, cell);
		if (row == NULL)
			continue;
		row->comms++;
		if (cell->is_slow)
			add_slow(row, &report->job, cell);
		else
			row->bound = fmax(row->bound, cell->ratio_high);
	}
}

/* ---- the job's own past ----------------------------------------------------------------------- */

static const struct windows_change *change_of(const struct windows *windows,
					      const struct job_comm *comm,
					      const struct slow_cell *cell, double threshold)
{
	for (size_t i = 0; i < windows->change_count; i++) {
		const struct windows_change *change = &windows->changes[i];

		if (change->kind == comm->kind && change->function == cell->function &&
		    change->size_class == cell->size_class &&
		    fabs(change->percent) >= 100 * threshold / (1 + threshold))
			return change;
	}
	return NULL;
}

static const struct slow_cell *cell_of(const struct slow_cells *cells,
				       const struct windows_change *change)
{
	for (size_t i = 0; i < cells->count; i++)
		if (cells->list[i].comm == change->example_comm &&
		    cells->list[i].function == change->function &&
		    cells->list[i].size_class == change->size_class)
			return &cells->list[i];
	return NULL;
}

/* All communicators of the example's name, and no others, would be as many as changed. */
static bool is_one_name(const struct job *job, const struct slow_cells *cells,
			const struct windows_change *change)
{
	const struct job_comm *example = &job->comms[change->example_comm];
	uint32_t count = 0;

	for (size_t i = 0; i < cells->count; i++)
		count += cells->list[i].function == change->function &&
			 cells->list[i].size_class == change->size_class &&
			 job->comms[cells->list[i].comm].kind == change->kind &&
			 is_same_name(&job->comms[cells->list[i].comm], example);
	return change->comms_changed == 1 || count == change->comms_changed;
}

/* When the speed came back, if it did. */
static uint64_t end_of(const struct windows *windows, const struct windows_change *fall)
{
	uint64_t end_ns = 0;

	for (size_t i = 0; i < windows->change_count; i++) {
		const struct windows_change *change = &windows->changes[i];

		if (change->kind == fall->kind && change->function == fall->function &&
		    change->size_class == fall->size_class && change->percent > 0 &&
		    change->at_ns > fall->at_ns && (end_ns == 0 || change->at_ns < end_ns))
			end_ns = change->at_ns;
	}
	return end_ns;
}

static bool has_fall_before(const struct windows *windows, const struct windows_change *rise)
{
	for (size_t i = 0; i < windows->change_count; i++) {
		const struct windows_change *change = &windows->changes[i];

		if (change->kind == rise->kind && change->function == rise->function &&
		    change->size_class == rise->size_class && change->percent < 0 &&
		    change->at_ns <= rise->at_ns)
			return true;
	}
	return false;
}

static void add_change(struct slow_rows *rows, const struct timeline_report *report,
		       const struct slow_cells *cells, const struct windows_change *change)
{
	const struct slow_cell *cell = cell_of(cells, change);
	bool is_rise = change->percent > 0;
	struct slow_row *row;

	if (rows->count == SLOW_ROWS_MAX) {
		rows->left_out++;
		return;
	}
	row = &rows->list[rows->count++];
	*row = (struct slow_row){ .kind = change->kind,
				  .function = change->function,
				  .size_class = change->size_class,
				  .algorithm = cell ? cell->algorithm : 0,
				  .protocol = cell ? cell->protocol : 0,
				  .is_slow = true,
				  .comms = change->comms,
				  .comms_slow = change->comms_changed,
				  .comm = change->example_comm,
				  .is_one_name = is_one_name(&report->job, cells, change),
				  .host = UINT32_MAX,
				  .ranks = change->ranks_changed,
				  .before = is_rise ? change->after : change->before,
				  .after = is_rise ? change->before : change->after,
				  .lost_ns = (double)change->lost_ns,
				  .confidence = change->confidence,
				  .is_over = is_rise };
	row->ratio = row->ratio_low = row->ratio_high = row->before / row->after;
	if (is_rise)
		row->span.until_ns = change->at_ns;
	else
		row->span = (struct slow_span){ .from_ns = change->at_ns,
						.until_ns = end_of(&report->windows, change) };
	if (change->comms_changed == 1)
		row->host = host_of(&report->job, change->example_comm);
}

/* Ranks that share a GPU, as in tests, have no link between them, and take its time from each other. */
static bool is_gpu_shared(const struct job *job, const struct job_comm *comm)
{
	for (uint32_t i = 0; comm->kind == JOB_COMM_NVLINK && i < comm->seat_count; i++)
		for (uint32_t j = 0; j < i; j++) {
			const struct job_rank *one = &job->ranks[job->seats[comm->seats[i]].rank];
			const struct job_rank *other = &job->ranks[job->seats[comm->seats[j]].rank];

			if (one->host == other->host && one->gpu_uuid[0] != '\0' &&
			    strcmp(one->gpu_uuid, other->gpu_uuid) == 0)
				return true;
		}
	return false;
}

/* Enough on both sides that it is no moment of the job's, such as its last before it hung. */
static bool has_enough(const struct windows_change *change)
{
	return change->meetings_before >= EACH_SIDE_LEAST &&
	       change->meetings_after >= EACH_SIDE_LEAST;
}

void slow_rows_past(struct slow_rows *rows, const struct timeline_report *report,
		    const struct slow_cells *cells, uint32_t group, double threshold)
{
	const struct windows *windows = &report->windows;

	for (size_t i = 0; i < windows->change_count; i++) {
		const struct windows_change *change = &windows->changes[i];
		double ratio = change->percent < 0 ? change->before / change->after
						   : change->after / change->before;

		if (ratio < 1 + threshold ||
		    report->job.comms[change->example_comm].group != group ||
		    (change->percent > 0 && has_fall_before(windows, change)) ||
		    !has_enough(change) ||
		    is_gpu_shared(&report->job, &report->job.comms[change->example_comm]))
			continue;
		add_change(rows, report, cells, change);
	}
	for (size_t i = 0; i < cells->count; i++) {
		const struct slow_cell *cell = &cells->list[i];
		const struct job_comm *comm = &report->job.comms[cell->comm];
		struct slow_row *row;

		if (cell->moves < MOVES_LEAST || !cell->is_transfer || comm->group != group ||
		    change_of(windows, comm, cell, threshold) != NULL)
			continue;
		row = row_of(rows, &report->job, cell);
		if (row == NULL || row->is_slow)
			continue;
		row->comms++;
		/* A change between its halves by more than this would have been found. */
		row->bound = fmax(row->bound, exp(4 * sqrt(cell->log_variance / cell->samples)));
	}
}
