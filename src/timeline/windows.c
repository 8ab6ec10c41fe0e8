#include "timeline/windows.h"

#include <stdlib.h>

#include "common/op.h"
#include "timeline/scan.h"
#include "timeline/windows_make.h"

enum { OPS_PER_WINDOW = 4, WIDTH_LEAST_NS = 1000 };

void windows_release(struct windows *windows)
{
	for (size_t i = 0; i < windows->series_count; i++)
		free(windows->series[i].calls);
	free(windows->series);
	free(windows->waiting.first_rank);
	free(windows->waiting.last_rank);
	free(windows->waiting.wait_ns);
	free(windows->waiting.joined_ns);
	free(windows->changes);
	*windows = (struct windows){ .count = 0 };
}

/* Enough operations in each window to be worth one. */
static void choose_width(struct windows *windows, const struct timeline_report *report,
			 uint32_t most)
{
	uint64_t span_ns = report->end_ns - report->start_ns, calls = 0, wanted;

	for (size_t r = 0; r < report->job.rank_count; r++)
		if (report->ranks[r].is_shown && report->ranks[r].timed > calls)
			calls = report->ranks[r].timed;
	wanted = calls / OPS_PER_WINDOW;
	wanted = wanted < 1 ? 1 : wanted > most ? most : wanted;
	windows->start_ns = report->start_ns;
	windows->end_ns = report->end_ns;
	windows->width_ns = span_ns / wanted + 1;
	if (windows->width_ns < WIDTH_LEAST_NS)
		windows->width_ns = WIDTH_LEAST_NS;
	windows->count = (uint32_t)(span_ns / windows->width_ns) + 1;
}

/* A share of something for each window that [from, to) touches. */
struct lay {
	uint32_t first;
	uint32_t last;
	double first_share;
	double middle_share;
	double last_share;
};

static uint32_t window_of(const struct windows *windows, uint64_t ns)
{
	uint64_t index = ns > windows->start_ns ? (ns - windows->start_ns) / windows->width_ns : 0;

	return index < windows->count ? (uint32_t)index : windows->count - 1;
}

static struct lay lay_over(const struct windows *windows, uint64_t from_ns, uint64_t to_ns)
{
	struct lay lay = { .first = window_of(windows, from_ns),
			   .last = window_of(windows, to_ns > from_ns ? to_ns - 1 : from_ns) };
	double span = (double)(to_ns - from_ns), before;

	lay.first_share = lay.last_share = 1;
	if (lay.first == lay.last || to_ns <= from_ns)
		return lay;
	before = (double)(windows->start_ns + (lay.first + 1) * windows->width_ns - from_ns);
	lay.first_share = before / span;
	lay.middle_share = (double)windows->width_ns / span;
	lay.last_share =
		1 - lay.first_share - lay.middle_share * (double)(lay.last - lay.first - 1);
	return lay;
}

static double share_of(const struct lay *lay, uint32_t window)
{
	if (window == lay->first)
		return lay->first_share;
	return window == lay->last ? lay->last_share : lay->middle_share;
}

/* ---- series ---------------------------------------------------------------------------------- */

static struct windows_series *find_series(struct windows *windows, enum job_comm_kind kind,
					  uint8_t function, enum status *status)
{
	struct windows_series *series;
	double *values;

	for (size_t i = 0; i < windows->series_count; i++)
		if (windows->series[i].kind == kind && windows->series[i].function == function)
			return &windows->series[i];
	if (windows->series_count == WINDOWS_SERIES_MAX) {
		windows->series_left_out++;
		return NULL;
	}
	if (windows->series == NULL)
		windows->series = calloc(WINDOWS_SERIES_MAX, sizeof(*windows->series));
	values = calloc(6 * (size_t)windows->count, sizeof(*values));
	if (windows->series == NULL || values == NULL) {
		free(values);
		*status = ERR_NO_SPACE;
		return NULL;
	}
	series = &windows->series[windows->series_count++];
	*series = (struct windows_series){
		.kind = kind,
		.function = function,
		.calls = values,
		.bytes = values + windows->count,
		.time_ns = values + 2 * (size_t)windows->count,
		.bus_bytes = values + 3 * (size_t)windows->count,
		.move_bus_bytes = values + 4 * (size_t)windows->count,
		.move_ns = values + 5 * (size_t)windows->count,
	};
	return series;
}

static void add_stretch(struct windows *windows, struct windows_series *series,
			const struct windows_stretch *from, const struct lay *lay)
{
	for (uint32_t w = lay->first; w <= lay->last; w++) {
		double share = share_of(lay, w);

		series->calls[w] += from->calls * share;
		series->bytes[w] += from->bytes * share;
		series->time_ns[w] += from->time_ns * share;
		series->bus_bytes[w] += from->bus_bytes * share;
	}
	(void)windows;
}

static enum status add_local(struct windows *windows, const struct timeline_report *report,
			     uint32_t process, const struct windows_local *local)
{
	enum status status = OK;

	for (uint32_t i = 0; i < local->series_count && status == OK; i++) {
		struct windows_series *series =
			find_series(windows, (enum job_comm_kind)(local->series_id[i] >> 8),
				    (uint8_t)local->series_id[i], &status);

		for (uint32_t j = 0; series != NULL && j < local->used; j++) {
			uint64_t from_ns = local->origin_ns + j * local->width_ns;
			struct lay lay;

			if (local->stretches[i][j].calls <= 0)
				continue;
			lay = lay_over(
				windows, align_ns(&report->align, process, from_ns),
				align_ns(&report->align, process, from_ns + local->width_ns));
			add_stretch(windows, series, &local->stretches[i][j], &lay);
		}
	}
	return status;
}

/* The window of moments that come in order, nearly: a division is the exception. */
struct place {
	uint64_t start_ns;
	uint32_t window;
};

static inline uint32_t place_of(const struct windows *windows, struct place *place, uint64_t ns)
{
	if (ns - place->start_ns >= windows->width_ns) {
		place->window = window_of(windows, ns);
		place->start_ns = windows->start_ns + place->window * windows->width_ns;
		/* Before the first or behind the last window: not to be taken for it. */
		if (ns - place->start_ns >= windows->width_ns)
			place->start_ns = UINT64_MAX;
	}
	return place->window;
}

/* What its meetings moved goes to the series of their kinds; gives back when they ended, as a stretch of
 * windows. */
static struct lay add_chunk(const struct windows *windows, const struct timeline_report *report,
			    const struct meet_lane *lane, uint32_t chunk,
			    struct windows_series *const *series, const double *factors)
{
	uint64_t first_ns = UINT64_MAX, last_ns = 0;
	struct place place = { .start_ns = UINT64_MAX };

	for (uint32_t bits = lane->briefs[chunk].occupied; bits != 0; bits &= bits - 1) {
		const struct meet_slot *slot = &lane->chunks[chunk]->slots[__builtin_ctz(bits)];
		struct windows_series *of = series[slot->kind];
		uint64_t ns = windows_slot_ns(report, lane, slot);

		first_ns = ns < first_ns ? ns : first_ns;
		last_ns = ns > last_ns ? ns : last_ns;
		if (of == NULL || slot->bytes <= 0 || slot->count < 2)
			continue;
		place_of(windows, &place, ns);
		of->move_bus_bytes[place.window] += (double)slot->bytes * factors[slot->kind];
		of->move_ns[place.window] += (double)slot->least_ns;
	}
	return last_ns >= first_ns ? lay_over(windows, first_ns, last_ns + 1)
				   : (struct lay){ .first = 0 };
}

/* lays: of each chunk, when its meetings ended. */
static enum status add_lane(struct windows *windows, const struct timeline_report *report,
			    const struct meet *meet, const struct meet_lane *lane, struct lay *lays)
{
	const struct job_comm *comm = &report->job.comms[lane->comm];
	const struct meet_comm *of = &meet->comms[lane->comm];
	struct windows_series **series = calloc(of->kind_count + 1, sizeof(*series));
	double *factors = calloc(of->kind_count + 1, sizeof(*factors));
	enum status status = series && factors ? OK : ERR_NO_SPACE;

	for (uint32_t k = 1; k < of->kind_count && status == OK; k++) {
		series[k] = find_series(windows, comm->kind, (uint8_t)of->kinds[k].names, &status);
		factors[k] = op_bus_factor((uint8_t)of->kinds[k].names, comm->nranks);
	}
	for (uint32_t i = 0; i < lane->chunk_count && status == OK; i++)
		lays[i] = add_chunk(windows, report, lane, i, series, factors);
	free(series);
	free(factors);
	return status;
}

/* ---- waiting, rank by window ----------------------------------------------------------------- */

static enum status start_matrix(struct windows *windows, const struct timeline_report *report,
				uint32_t *row_of)
{
	struct windows_matrix *matrix = &windows->waiting;
	uint32_t shown = 0, next = 0;

	for (size_t r = 0; r < report->job.rank_count; r++)
		shown += report->ranks[r].is_shown;
	matrix->ranks_per_row = shown / WINDOWS_ROWS + (shown % WINDOWS_ROWS != 0);
	if (matrix->ranks_per_row == 0)
		matrix->ranks_per_row = 1;
	matrix->rows = (shown + matrix->ranks_per_row - 1) / matrix->ranks_per_row;
	matrix->first_rank = calloc(matrix->rows + 1, sizeof(*matrix->first_rank));
	matrix->last_rank = calloc(matrix->rows + 1, sizeof(*matrix->last_rank));
	matrix->wait_ns =
		calloc((size_t)matrix->rows * windows->count + 1, sizeof(*matrix->wait_ns));
	matrix->joined_ns =
		calloc((size_t)matrix->rows * windows->count + 1, sizeof(*matrix->joined_ns));
	if (!matrix->first_rank || !matrix->last_rank || !matrix->wait_ns || !matrix->joined_ns)
		return ERR_NO_SPACE;
	for (uint32_t r = 0; r < report->job.rank_count; r++) {
		row_of[r] = UINT32_MAX;
		if (!report->ranks[r].is_shown)
			continue;
		row_of[r] = next / matrix->ranks_per_row;
		if (next % matrix->ranks_per_row == 0)
			matrix->first_rank[row_of[r]] = r;
		matrix->last_rank[row_of[r]] = r;
		next++;
	}
	return OK;
}

static void add_part(struct windows *windows, const struct meet_lane *lane,
		     const struct meet_part *part, const struct lay *lay, uint32_t row)
{
	struct meet_slice slice = meet_slice(lane, part->chunk, part->bits);
	double wait_ns = (double)(part->sum_ns - slice.least_ns);

	for (uint32_t w = lay->first; w <= lay->last; w++) {
		size_t at = (size_t)row * windows->count + w;

		windows->waiting.wait_ns[at] += wait_ns * share_of(lay, w);
		windows->waiting.joined_ns[at] += (double)part->sum_ns * share_of(lay, w);
	}
}

static void add_waiting(struct windows *windows, const struct timeline_report *report,
			const struct meet_lane *lane, const struct lay *lays,
			const uint32_t *row_of)
{
	const struct job_comm *comm = &report->job.comms[lane->comm];

	for (uint32_t seat = 0; seat < comm->seat_count; seat++) {
		uint32_t row = row_of[report->job.seats[comm->seats[seat]].rank];
		const struct meet_seat *of = &lane->seats[seat];

		for (uint32_t i = 0; row != UINT32_MAX && i < of->count; i++)
			if (of->parts[i].bits != 0)
				add_part(windows, lane, &of->parts[i], &lays[of->parts[i].chunk],
					 row);
	}
}

static enum status add_meetings_of(struct windows *windows, const struct timeline_report *report,
				   const struct meet *meet, const struct meet_lane *lane,
				   const uint32_t *row_of)
{
	struct lay *lays = calloc(lane->chunk_count + 1, sizeof(*lays));
	enum status status =
		lays != NULL ? add_lane(windows, report, meet, lane, lays) : ERR_NO_SPACE;

	if (status == OK)
		add_waiting(windows, report, lane, lays, row_of);
	free(lays);
	return status;
}

static enum status add_meetings(struct windows *windows, const struct timeline_report *report,
				const struct meet *meet)
{
	uint32_t *row_of = calloc(report->job.rank_count + 1, sizeof(*row_of));
	enum status status = row_of ? start_matrix(windows, report, row_of) : ERR_NO_SPACE;

	for (size_t c = 0; c < report->job.comm_count && status == OK; c++)
		for (unsigned int i = 0; i < MEET_LANES && status == OK; i++)
			if (meet->comms[c].lanes[i] != NULL)
				status = add_meetings_of(windows, report, meet,
							 meet->comms[c].lanes[i], row_of);
	free(row_of);
	return status;
}

enum status windows_make(struct windows *windows, const struct timeline_report *report,
			 const struct meet *meet, const struct windows_local *locals, uint32_t most)
{
	enum status status = OK;

	*windows = (struct windows){ .count = 0 };
	if (report->end_ns <= report->start_ns)
		return OK;
	choose_width(windows, report, most < WINDOWS_MOST ? most : WINDOWS_MOST);
	for (uint32_t p = 0; p < report->recording->count && status == OK; p++)
		status = add_local(windows, report, p, &locals[p]);
	if (status == OK)
		status = add_meetings(windows, report, meet);
	if (status == OK)
		status = windows_find_changes(windows, report, meet);
	if (status != OK)
		windows_release(windows);
	return status;
}
