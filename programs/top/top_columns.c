#include "programs/top/top_columns.h"

#include <string.h>

#include "common/attributes.h"
#include "programs/top/top_bars.h"
#include "programs/top/top_cells.h"
#include "programs/top/top_text.h"

static const struct top_column comm_columns[] = {
	{ TOP_COLUMN_COMM, "COMMUNICATOR", 6, 8, 40, 0, false, true },
	{ TOP_COLUMN_JOB, "JOB", 4, 4, 20, 8, false, true },
	{ TOP_COLUMN_KIND, "KIND", 11, 11, 11, 7, false, false },
	{ TOP_COLUMN_RANKS, "RANKS", 5, 5, 11, 6, true, true },
	{ TOP_COLUMN_RATE, "OPS/S", 5, 5, 6, 5, true, false },
	{ TOP_COLUMN_TIMED, "TIMED", 5, 5, 5, 2, true, false },
	{ TOP_COLUMN_BUSBW, "BUSBW", 9, 9, 9, 0, true, false },
	{ TOP_COLUMN_WAIT, "WAIT", 4, 4, 4, 3, true, false },
	{ TOP_COLUMN_OLDEST, "OLDEST", 6, 6, 6, 4, true, false },
	{ TOP_COLUMN_MINUTE, "LAST 60s", 8, 8, TOP_BARS_COLUMNS, 1, false, false },
};

static const struct top_column seat_columns[] = {
	{ TOP_COLUMN_RANK, "RANK", 4, 4, 16, 0, true, true },
	{ TOP_COLUMN_MEMBER, "MEMBER", 6, 6, 6, 7, true, false },
	{ TOP_COLUMN_HOST, "HOST", 6, 6, 24, 8, false, true },
	{ TOP_COLUMN_PID, "PID", 7, 7, 7, 5, true, false },
	{ TOP_COLUMN_GPU, "GPU", 3, 3, 3, 9, true, false },
	{ TOP_COLUMN_RATE, "OPS/S", 5, 5, 6, 6, true, false },
	{ TOP_COLUMN_TIMED, "TIMED", 5, 5, 5, 3, true, false },
	{ TOP_COLUMN_BUSBW, "BUSBW", 9, 9, 9, 1, true, false },
	{ TOP_COLUMN_WAIT, "WAIT", 4, 4, 4, 2, true, false },
	{ TOP_COLUMN_WAIT_BAR, "", 8, 8, 20, 4, false, false },
	{ TOP_COLUMN_FLIGHTS, "FLIGHT", 6, 6, 6, 3, true, false },
	{ TOP_COLUMN_OLDEST, "OLDEST", 6, 6, 6, 0, true, false },
	{ TOP_COLUMN_STATE, "STATE", 6, 6, 60, 0, false, false },
};

static const struct top_column flight_columns[] = {
	{ TOP_COLUMN_AGE, "AGE", 6, 6, 6, 0, true, false },
	{ TOP_COLUMN_COMM, "COMM", 4, 4, 24, 3, false, true },
	{ TOP_COLUMN_RANK, "RANK", 4, 4, 16, 0, true, true },
	{ TOP_COLUMN_OPERATION, "OPERATION", 6, 16, 22, 0, false, true },
	{ TOP_COLUMN_SIZE, "SIZE", 8, 8, 9, 4, true, false },
	{ TOP_COLUMN_OP_STATE, "STATE", 8, 8, 8, 5, false, false },
	{ TOP_COLUMN_WAITS_FOR, "WAITS FOR", 26, 32, 200, 2, false, false },
};

static const struct top_column *columns_of(enum top_pane pane, size_t *count)
{
	switch (pane) {
	case TOP_COMMS:
		*count = ARRAY_LENGTH(comm_columns);
		return comm_columns;
	case TOP_SEATS:
		*count = ARRAY_LENGTH(seat_columns);
		return seat_columns;
	case TOP_FLIGHTS:
		*count = ARRAY_LENGTH(flight_columns);
		return flight_columns;
	default:
		*count = 0;
		return NULL;
	}
}

static bool is_wanted(const struct top_model *model, enum top_column_id id)
{
	switch (id) {
	case TOP_COLUMN_JOB:
		return model->has_many_jobs;
	case TOP_COLUMN_HOST:
		return model->has_many_hosts;
	case TOP_COLUMN_MEMBER:
		return model->has_comm_ranks;
	case TOP_COLUMN_GPU:
		return model->has_gpus;
	case TOP_COLUMN_TIMED:
		return model->is_sampled;
	case TOP_COLUMN_MINUTE:
		return model->has_minute;
	default:
		return true;
	}
}

static unsigned int total(const struct top_fit *fit)
{
	unsigned int sum = TOP_MARGIN;

	for (size_t i = 0; i < fit->count; i++)
		sum += fit->columns[i]->good + (i > 0);
	return sum;
}

static void drop(struct top_fit *fit, size_t at)
{
	fit->count--;
	memmove(&fit->columns[at], &fit->columns[at + 1],
		(fit->count - at) * sizeof(fit->columns[0]));
}

static void choose(struct top_fit *fit, const struct top_model *model, enum top_pane pane,
		   unsigned int width)
{
	size_t count;
	const struct top_column *columns = columns_of(pane, &count);

	for (size_t i = 0; i < count; i++)
		if (is_wanted(model, columns[i].id))
			fit->columns[fit->count++] = &columns[i];
	while (total(fit) > width) {
		size_t worst = fit->count;

		for (size_t i = 0; i < fit->count; i++)
			if (fit->columns[i]->drop > 0 &&
			    (worst == fit->count ||
			     fit->columns[i]->drop > fit->columns[worst]->drop))
				worst = i;
		/* All that is left stays, and the last of it is cut. */
		if (worst == fit->count)
			break;
		drop(fit, worst);
	}
}

/* The longest text of a column. Names of communicators over all of them: those in flight change
 * with every look, and columns should not. */
static unsigned int measure(const struct top_model *model, enum top_pane pane,
			    const struct top_column *column, bool is_utf8)
{
	bool is_over_all = column->id == TOP_COLUMN_COMM;
	const struct top_list *list = &model->lists[is_over_all ? TOP_COMMS : pane];
	struct top_cell_of cell = { .live = model->live,
				    .pane = is_over_all ? TOP_COMMS : pane,
				    .column = column->id,
				    .is_utf8 = is_utf8 };
	unsigned int longest = 0;
	char text[TOP_CELL_TEXT];

	for (size_t i = 0; i < list->count && longest < column->most; i++) {
		unsigned int width;

		cell.index = list->rows[i].index;
		width = top_text_width(top_cells_text(&cell, text), is_utf8);
		if (width > longest)
			longest = width;
	}
	if (longest < strlen(column->title))
		longest = (unsigned int)strlen(column->title);
	return longest < column->most ? longest : column->most;
}

/* None of them may be dropped: the last ones give. */
static void narrow(struct top_fit *fit, unsigned int too_many)
{
	for (size_t i = fit->count; i-- > 0 && too_many > 0;) {
		unsigned int gives = fit->widths[i] - fit->columns[i]->least;

		gives = gives < too_many ? gives : too_many;
		fit->widths[i] -= gives;
		too_many -= gives;
	}
}

/* Room that is left goes to those that want it, one column after the other. */
static unsigned int widen(struct top_fit *fit, const unsigned int *wishes, bool is_measured,
			  unsigned int left)
{
	bool is_done = false;

	while (left > 0 && !is_done) {
		is_done = true;
		for (size_t i = 0; i < fit->count && left > 0; i++) {
			if (fit->columns[i]->is_measured != is_measured ||
			    fit->widths[i] >= wishes[i])
				continue;
			fit->widths[i]++;
			left--;
			is_done = false;
		}
	}
	return left;
}

void top_columns_fit(struct top_fit *fit, const struct top_model *model, enum top_pane pane,
		     unsigned int width, bool is_utf8)
{
	unsigned int wishes[TOP_COLUMNS_MAX], at = TOP_MARGIN, needed;

	*fit = (struct top_fit){ 0 };
	choose(fit, model, pane, width);
	needed = total(fit);
	for (size_t i = 0; i < fit->count; i++) {
		const struct top_column *column = fit->columns[i];

		fit->widths[i] = column->good;
		wishes[i] =
			column->is_measured ? measure(model, pane, column, is_utf8) : column->most;
	}
	if (needed > width)
		narrow(fit, needed - width);
	else
		/* Names first: they are of no use when they are cut. */
		widen(fit, wishes, false, widen(fit, wishes, true, width - needed));
	for (size_t i = 0; i < fit->count; i++) {
		fit->at[i] = at;
		at += fit->widths[i] + 1;
	}
}
