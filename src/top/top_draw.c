/* Draws the rows of a refresh: head, panes, details. */
#include "top/top.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "common/attributes.h"
#include "common/op.h"
#include "common/text.h"
#include "output/recorded.h"

/* Non-interactive output: all notices with their text, all rows (TOP_DRAW_ROWS per pane at most),
 * no cursor, no keys. `view` has is_once. */
enum { TOP_DRAW_ROWS = 400 };

/* The parts of a screen. */

struct top_brush {
	struct top_canvas *canvas;
	const struct top_model *model;
	struct top_view *view;
	const struct top_around *around;
};

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

static const struct {
	const struct top_column *columns;
	size_t count;
} panes[TOP_PANES] = {
	[TOP_COMMS] = { comm_columns, ARRAY_LENGTH(comm_columns) },
	[TOP_SEATS] = { seat_columns, ARRAY_LENGTH(seat_columns) },
	[TOP_FLIGHTS] = { flight_columns, ARRAY_LENGTH(flight_columns) },
};

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

static unsigned int columns_total(const struct top_fit *fit)
{
	unsigned int sum = TOP_MARGIN;

	for (size_t i = 0; i < fit->count; i++)
		sum += fit->columns[i]->good + (i > 0);
	return sum;
}

static void fit_drop(struct top_fit *fit, size_t at)
{
	fit->count--;
	memmove(&fit->columns[at], &fit->columns[at + 1],
		(fit->count - at) * sizeof(fit->columns[0]));
}

static void columns_choose(struct top_fit *fit, const struct top_model *model, enum top_pane pane,
			   unsigned int width)
{
	for (size_t i = 0; i < panes[pane].count; i++)
		if (is_wanted(model, panes[pane].columns[i].id))
			fit->columns[fit->count++] = &panes[pane].columns[i];
	while (columns_total(fit) > width) {
		size_t worst = fit->count;

		for (size_t i = 0; i < fit->count; i++)
			if (fit->columns[i]->drop > 0 &&
			    (worst == fit->count ||
			     fit->columns[i]->drop > fit->columns[worst]->drop))
				worst = i;
		/* The remaining columns stay; the last one is cut. */
		if (worst == fit->count)
			break;
		fit_drop(fit, worst);
	}
}

/* The longest text of a column. For communicator names, over all communicators: those in flight
 * change with every refresh, and the column width should not. */
static unsigned int column_measure(const struct top_model *model, enum top_pane pane,
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

/* When no column can be dropped, the last ones get narrower. */
static void columns_narrow(struct top_fit *fit, unsigned int too_many)
{
	for (size_t i = fit->count; i-- > 0 && too_many > 0;) {
		unsigned int gives = fit->widths[i] - fit->columns[i]->least;

		gives = gives < too_many ? gives : too_many;
		fit->widths[i] -= gives;
		too_many -= gives;
	}
}

/* Gives the remaining room to the columns that can use it, one after the other. */
static unsigned int columns_widen(struct top_fit *fit, const unsigned int *wishes, bool is_measured,
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
	columns_choose(fit, model, pane, width);
	needed = columns_total(fit);
	for (size_t i = 0; i < fit->count; i++) {
		const struct top_column *column = fit->columns[i];

		fit->widths[i] = column->good;
		wishes[i] = column->is_measured ? column_measure(model, pane, column, is_utf8)
						: column->most;
	}
	if (needed > width)
		columns_narrow(fit, needed - width);
	else
		/* Names first: a truncated name is useless. */
		columns_widen(fit, wishes, false, columns_widen(fit, wishes, true, width - needed));
	for (size_t i = 0; i < fit->count; i++) {
		fit->at[i] = at;
		at += fit->widths[i] + 1;
	}
}

#define PUT(text, ...) text_format(text, TOP_CELL_TEXT, __VA_ARGS__)

/* ---- communicators --------------------------------------------------------------------------- */

static void ranks_text(char *text, const struct job_comm *comm)
{
	if (comm->nranks > 0)
		PUT(text, "%u/%d", comm->seat_count, comm->nranks);
	else
		PUT(text, "%u", comm->seat_count);
}

/* Share of the operations finished since the process started. */
static float timed_share(const struct live_sums *sums)
{
	return sums->operations > 0 ? (float)((double)sums->timed / (double)sums->operations) : NAN;
}

/* What communicators and ranks have in common. */
static void point_text(const struct top_cell_of *cell, const struct live_history *history,
		       const struct live_sums *sums, char *text)
{
	const struct live_point *point = top_model_point(cell->live, history);

	switch (cell->column) {
	case TOP_COLUMN_RATE:
		top_text_rate(text, point ? point->operations_per_s : NAN);
		break;
	case TOP_COLUMN_TIMED:
		top_text_share(text, timed_share(sums));
		break;
	case TOP_COLUMN_BUSBW:
		top_text_bandwidth(text, point ? point->busbw : NAN);
		break;
	case TOP_COLUMN_WAIT:
		top_text_share(text, point ? point->wait_share : NAN);
		break;
	case TOP_COLUMN_WAIT_BAR:
		top_bars_share(text, point ? point->wait_share : NAN, cell->width, cell->is_utf8);
		break;
	default:
		break;
	}
}

static void comm_text(const struct top_cell_of *cell, char *text)
{
	const struct live *live = cell->live;
	const struct job_comm *comm = &live->job.comms[cell->index];
	const struct live_history *history = &live->comms[cell->index].history;

	switch (cell->column) {
	case TOP_COLUMN_COMM:
		PUT(text, "%s", comm->label);
		break;
	case TOP_COLUMN_JOB:
		PUT(text, "%s", live->job.groups[comm->group].name);
		break;
	case TOP_COLUMN_KIND:
		PUT(text, "%s", job_comm_kind_name(comm->kind));
		break;
	case TOP_COLUMN_RANKS:
		ranks_text(text, comm);
		break;
	case TOP_COLUMN_OLDEST:
		top_text_age(text, top_model_oldest_ns(live, comm));
		break;
	case TOP_COLUMN_MINUTE:
		top_bars_minute(text, history, live->wall_ns, cell->width, cell->is_utf8);
		break;
	default:
		point_text(cell, history, &live->comms[cell->index].sums, text);
		break;
	}
}

/* ---- ranks ----------------------------------------------------------------------------------- */

static void seat_text(const struct top_cell_of *cell, char *text)
{
	const struct live *live = cell->live;
	const struct job_seat *at = &live->job.seats[cell->index];
	const struct live_seat *seat = &live->seats[cell->index];
	const struct job_rank *rank = &live->job.ranks[at->rank];
	const struct recording_process *process = live->job.recording->processes[at->process];

	switch (cell->column) {
	case TOP_COLUMN_RANK:
		PUT(text, "%s", rank->label);
		break;
	case TOP_COLUMN_MEMBER:
		PUT(text, at->comm_rank < 0 ? "?" : "%d", at->comm_rank);
		break;
	case TOP_COLUMN_HOST:
		PUT(text, "%s", process->host);
		break;
	case TOP_COLUMN_PID:
		PUT(text, "%" PRId64, recording_pid(process));
		break;
	case TOP_COLUMN_GPU:
		PUT(text, rank->gpu < 0 ? "?" : "%d", rank->gpu);
		break;
	case TOP_COLUMN_FLIGHTS:
		PUT(text, seat->in_flight == 0 ? "-" : "%u", seat->in_flight);
		break;
	case TOP_COLUMN_OLDEST:
		top_text_age(text, seat->is_over ? 0 : seat->oldest_age_ns);
		break;
	case TOP_COLUMN_STATE:
		PUT(text, "%s", live_state_name(live_state(live, cell->index)));
		break;
	default:
		point_text(cell, &seat->history, &seat->sums, text);
		break;
	}
}

/* ---- operations in flight -------------------------------------------------------------------- */

/* Numbered as in notices: collectives by the number that is the same on all ranks. */
static void operation_text(const struct recording_process *process,
			   const struct recording_flight *flight, char *text)
{
	char words[FLIGHT_WORDS];

	PUT(text, "%s #%" PRIu64, flight_words_operation(process, flight, words),
	    flight->op.match > 0 ? flight->op.match : flight->op.number);
}

static bool is_killed(const struct live *live, uint32_t index)
{
	const struct recording *recording = live->job.recording;

	return recording->processes[live->job.seats[index].process]->life == RECORDING_KILLED;
}

/* Details of an operation in flight, line by line: the progress of its kernel and what it waits
 * for. NULL after the last. */
static const char *top_cells_detail(const struct live *live, uint32_t index, unsigned int line,
				    char text[static TOP_CELL_TEXT])
{
	const struct job_seat *at = &live->job.seats[index];
	const struct live_seat *seat = &live->seats[index];
	const struct recording_process *process = live->job.recording->processes[at->process];
	char words[FLIGHT_WORDS], age[TOP_TEXT_NUMBER];
	const struct flight_wait *wait;
	uint64_t now_ns;

	text[0] = '\0';
	if (seat->oldest == NULL || line > seat->wait_count || line > LIVE_WAITS_MAX)
		return NULL;
	if (line == 0) {
		PUT(text, "%s", flight_words_kernel(process, seat->oldest, words));
		return text;
	}
	wait = &seat->waits[line - 1];
	now_ns = flight_since_ns(seat->oldest) + seat->oldest_age_ns;
	PUT(text, "%s", flight_words_wait(wait, words));
	if (now_ns > wait->since_ns)
		PUT(text, "%s for %s", words, top_text_age(age, now_ns - wait->since_ns));
	return text;
}

static void waits_for(const struct live *live, uint32_t index, char *text)
{
	static const char heading[] = "waits for ";
	const struct live_seat *seat = &live->seats[index];
	char words[FLIGHT_WORDS];

	text[0] = '\0';
	if (live_say_absent(text, TOP_CELL_TEXT, live, index))
		return;
	if (seat->wait_count == 0) {
		top_cells_detail(live, index, 0, text);
		return;
	}
	/* The column's title says "waits for" already. */
	flight_words_wait(&seat->waits[0], words);
	PUT(text, "%s%s",
	    strncmp(words, heading, strlen(heading)) == 0 ? words + strlen(heading) : words,
	    seat->wait_count > 1 ? ", and more" : "");
}

static void flight_text(const struct top_cell_of *cell, char *text)
{
	const struct live *live = cell->live;
	const struct job_seat *at = &live->job.seats[cell->index];
	const struct live_seat *seat = &live->seats[cell->index];
	const struct recording_process *process = live->job.recording->processes[at->process];
	char number[UNITS_TEXT];

	switch (cell->column) {
	case TOP_COLUMN_AGE:
		top_text_age(text, seat->oldest_age_ns);
		break;
	case TOP_COLUMN_COMM:
		PUT(text, "%s", live->job.comms[at->comm].label);
		break;
	case TOP_COLUMN_RANK:
		PUT(text, "%s", live->job.ranks[at->rank].label);
		break;
	case TOP_COLUMN_OPERATION:
		operation_text(process, seat->oldest, text);
		break;
	case TOP_COLUMN_SIZE:
		PUT(text, "%s",
		    seat->oldest->op.bytes == OP_BYTES_UNKNOWN
			    ? "?"
			    : units_bytes(number, seat->oldest->op.bytes));
		break;
	case TOP_COLUMN_OP_STATE:
		PUT(text, "%s",
		    seat->is_over ? live_state_name(live_state(live, cell->index))
				  : op_state_name(seat->oldest->op.state));
		break;
	case TOP_COLUMN_WAITS_FOR:
		waits_for(live, cell->index, text);
		break;
	default:
		break;
	}
}

/* An operation in flight in one sentence, for screens too narrow for its columns. */
static const char *top_cells_summary(const struct live *live, uint32_t index,
				     char text[static TOP_CELL_TEXT])
{
	const struct job_seat *at = &live->job.seats[index];
	char what[TOP_CELL_TEXT], waits[TOP_CELL_TEXT];

	operation_text(live->job.recording->processes[at->process], live->seats[index].oldest,
		       what);
	waits_for(live, index, waits);
	PUT(text, "%s of %s%s%s", what, live->job.comms[at->comm].label,
	    waits[0] ? ", waits for: " : "", waits);
	return text;
}

/* --------------------------------------------------------------------------------------------- */

const char *top_cells_text(const struct top_cell_of *cell, char text[static TOP_CELL_TEXT])
{
	text[0] = '\0';
	if (cell->pane == TOP_COMMS)
		comm_text(cell, text);
	else if (cell->pane == TOP_SEATS)
		seat_text(cell, text);
	else if (cell->pane == TOP_FLIGHTS)
		flight_text(cell, text);
	return text;
}

static enum top_style age_style(const struct live *live, uint32_t comm, uint64_t age_ns)
{
	if (age_ns >= live_hang_ns(live, live->job.comms[comm].group))
		return TOP_BAD;
	return age_ns >= live->limits.lag_ns ? TOP_WARNING : TOP_PLAIN;
}

static enum top_style seat_style(const struct top_cell_of *cell)
{
	const struct live *live = cell->live;
	const struct live_seat *seat = &live->seats[cell->index];
	const struct job_seat *at = &live->job.seats[cell->index];

	if (is_killed(live, cell->index))
		return cell->column == TOP_COLUMN_STATE ? TOP_BAD : TOP_FAINT;
	if (seat->is_over || cell->column == TOP_COLUMN_WAIT_BAR)
		return TOP_FAINT;
	if (cell->column == TOP_COLUMN_STATE)
		return live_state(live, cell->index) == LIVE_NOT_ARRIVED ||
				       live->comms[at->comm].straggler == cell->index
			       ? TOP_WARNING
			       : TOP_PLAIN;
	if (cell->column == TOP_COLUMN_OLDEST || cell->column == TOP_COLUMN_AGE)
		return age_style(live, at->comm, seat->oldest_age_ns);
	return TOP_PLAIN;
}

static enum top_style top_cells_style(const struct top_cell_of *cell)
{
	if (cell->pane == TOP_SEATS || cell->pane == TOP_FLIGHTS)
		return seat_style(cell);
	if (cell->pane == TOP_COMMS && cell->column == TOP_COLUMN_OLDEST)
		return age_style(
			cell->live, cell->index,
			top_model_oldest_ns(cell->live, &cell->live->job.comms[cell->index]));
	return TOP_PLAIN;
}

enum {
	KEYS_FROM = 10, /* with this many lines, the last one explains the keys */
	PANE_LEAST = 3, /* a title and two rows */
};

static unsigned int least_lines(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static unsigned int pane_wanted_lines(const struct top_model *model, enum top_pane pane)
{
	size_t rows = model->lists[pane].count;

	return 1 + (rows < 1 ? 1 : rows > 1000 ? 1000 : (unsigned int)rows);
}

/*
 * Operations in flight get at least a quarter of the lines, however many there are: their rows come
 * and go with every refresh, and a layout that jumps cannot be read. The other panes get half of the
 * rest each, or less if they need less.
 */
static void layout_share(struct top_layout *layout, const struct top_model *model,
			 unsigned int lines)
{
	unsigned int flights = lines / 4 > PANE_LEAST ? lines / 4 : PANE_LEAST;
	unsigned int left = lines - flights;
	unsigned int comms = least_lines(pane_wanted_lines(model, TOP_COMMS), left / 2);
	unsigned int seats = least_lines(pane_wanted_lines(model, TOP_SEATS), left - comms);

	comms = least_lines(pane_wanted_lines(model, TOP_COMMS), left - seats);
	layout->lines[TOP_COMMS] = comms;
	layout->lines[TOP_SEATS] = seats;
	layout->lines[TOP_FLIGHTS] = lines - comms - seats;
}

void top_layout(struct top_layout *layout, const struct top_model *model,
		const struct top_view *view, unsigned int height, unsigned int notice_lines,
		unsigned int remarks)
{
	unsigned int at = 1, left = height > 1 ? height - 1 : 0;
	bool is_for_notices = view->pane == TOP_NOTICES;

	*layout = (struct top_layout){ 0 };
	if (height >= KEYS_FROM || (view->is_typing && left > 1)) {
		layout->keys_at = height - 1;
		left--;
	}
	if (remarks > 0 && height >= KEYS_FROM) {
		layout->remark_at = at;
		at += remarks;
		left -= remarks;
	}
	layout->at[TOP_NOTICES] = at;
	if (left < 3 * PANE_LEAST + least_lines(notice_lines, 1)) {
		/* Only the active pane, and one line for a notice. */
		layout->lines[TOP_NOTICES] =
			is_for_notices ? left : least_lines(least_lines(notice_lines, 1), left / 2);
		if (!is_for_notices)
			layout->lines[view->pane] = left - layout->lines[TOP_NOTICES];
	} else {
		unsigned int most = is_for_notices ? left / 2 : left / 3;

		most = least_lines(most > 0 ? most : 1, left - 3 * PANE_LEAST);
		layout->lines[TOP_NOTICES] = least_lines(notice_lines, most);
		layout_share(layout, model, left - layout->lines[TOP_NOTICES]);
	}
	for (int pane = TOP_COMMS; pane < TOP_PANES; pane++)
		layout->at[pane] = layout->at[pane - 1] + layout->lines[pane - 1];
}

enum {
	DETAILS_FROM = 20, /* with this many lines, the first notice is shown with its text */
	WHOLE_FROM = 72,   /* with this many columns, every row has its important cells */
};

/* ---- the first and the last line ------------------------------------------------------------- */

static void clock_text(char *text, size_t size, uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / 1000000000);
	struct tm tm;

	text[0] = '\0';
	if (localtime_r(&seconds, &tm) != NULL)
		strftime(text, size, "%H:%M:%S", &tm);
}

static void rank_text(char *text, size_t size, const struct top_model *model)
{
	uint32_t all = model->alive + model->killed + model->ended;
	char killed[32] = "", ended[32] = "";

	if (model->killed > 0)
		text_format(killed, sizeof(killed), ", %u killed", model->killed);
	if (model->ended > 0)
		text_format(ended, sizeof(ended), ", %u ended", model->ended);
	if (model->alive == all)
		text_format(text, size, "%u rank%s alive", all, all == 1 ? "" : "s");
	else
		text_format(text, size, "%u rank%s: %u alive%s%s", all, all == 1 ? "" : "s",
			    model->alive, killed, ended);
}

static void interval_text(char *text, size_t size, const struct top_view *view)
{
	uint64_t ms = view->interval_ns / 1000000;

	if (view->is_paused)
		text_copy(text, size, "PAUSED");
	else if (ms % 1000 == 0)
		text_format(text, size, "every %us", (unsigned int)(ms / 1000));
	else
		text_format(text, size, "every %ums", (unsigned int)ms);
}

/* Shows as many parts as fit; the last in `order` is dropped first. */
static void top_brush_head(struct top_brush *brush)
{
	static const unsigned int order[] = { 3, 1, 0, 2 };
	const struct top_model *model = brush->model;
	char parts[4][320], right[32] = "";
	bool is_shown[4] = { false };
	unsigned int used = 0, at = 0;
	size_t jobs = 0, earlier = 0;
	bool is_utf8 = brush->canvas->is_utf8;

	text_format(parts[0], sizeof(parts[0]), "%.60s", brush->around->host);
	clock_text(parts[1], sizeof(parts[1]), model->live->wall_ns);
	for (size_t i = 0; i < model->live->job.group_count; i++)
		*(model->live->job.groups[i].is_earlier_run ? &earlier : &jobs) += 1;
	text_format(parts[2], sizeof(parts[2]), "%zu job%s", jobs, jobs == 1 ? "" : "s");
	if (earlier > 0)
		text_append(parts[2], sizeof(parts[2]), ", %zu earlier run%s", earlier,
			    earlier == 1 ? "" : "s");
	rank_text(parts[3], sizeof(parts[3]), model);
	if (!brush->view->is_once)
		interval_text(right, sizeof(right), brush->view);
	for (size_t i = 0; i < 4; i++) {
		unsigned int width = top_text_width(parts[order[i]], is_utf8) + 2;

		if (i > 0 && used + width > brush->canvas->width + 2)
			continue;
		is_shown[order[i]] = true;
		used += width;
	}
	for (size_t i = 0; i < 4; i++)
		if (is_shown[i])
			at += 2 +
			      top_canvas_text(brush->canvas, 0, at, brush->canvas->width,
					      i == 3 && model->killed > 0 ? TOP_BAD : TOP_STRONG,
					      parts[i]);
	if (at + strlen(right) <= brush->canvas->width || brush->view->is_paused)
		top_canvas_right(brush->canvas, 0, 0, brush->canvas->width,
				 brush->view->is_paused ? TOP_ALARM : TOP_FAINT, right);
}

static void top_brush_keys(struct top_brush *brush, unsigned int row)
{
	const struct top_view *view = brush->view;
	const struct top_list *notices = &brush->model->lists[TOP_NOTICES];
	char text[TOP_FILTER_BYTES + 64], count[32];
	unsigned int used;

	if (view->is_typing)
		text_format(text, sizeof(text), "filter: %s_", view->filter);
	else if (view->filter[0] != '\0')
		text_format(text, sizeof(text), "filter: %s   / change  escape show all  q quit",
			    view->filter);
	else
		text_copy(text, sizeof(text),
			  "q quit  ? help  tab pane  s sort  / filter  p pause  + - interval");
	used = top_canvas_text(brush->canvas, row, 0, brush->canvas->width,
			       view->filter[0] != '\0' || view->is_typing ? TOP_STRONG : TOP_FAINT,
			       text);
	text_format(count, sizeof(count), "%zu notices",
		    notices->count + brush->model->live->notices_left_out);
	if (notices->count > 1 && used + 2 + strlen(count) <= brush->canvas->width)
		top_canvas_right(brush->canvas, row, 0, brush->canvas->width, TOP_STRONG, count);
}

static void top_brush_help(struct top_brush *brush, unsigned int row)
{
	static const char *const words[] = {
		"",
		"BUSBW      bus bandwidth during operations, computed as in nccl-tests",
		"WAIT       share of time spent waiting for other ranks (lower bound)",
		"OLDEST     age of the oldest operation in flight",
		"MEMBER     rank in the communicator, if it differs from the job's",
		"AGE        age of each rank's oldest operation per communicator",
		"!          has an active alert",
		"",
		"See docs/LIVE.md for more. Press any key to return.",
	};
	const char *key, *what;

	for (unsigned int i = 0; (key = top_keys_help(i, &what)) != NULL; i++) {
		top_canvas_text(brush->canvas, row, 2, 12, TOP_STRONG, key);
		top_canvas_text(brush->canvas, row++, 15, brush->canvas->width, TOP_PLAIN, what);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
		top_canvas_text(brush->canvas, row++, 2, brush->canvas->width, TOP_PLAIN, words[i]);
}

/* Wraps text to the width. Returns the lines used, or needed if `end` is `row`. */
static unsigned int top_brush_wrap(struct top_brush *brush, unsigned int row, unsigned int end,
				   unsigned int indent, enum top_style style, const char *text)
{
	unsigned int width = brush->canvas->width > indent + 8 ? brush->canvas->width - indent : 8;
	unsigned int lines = 0;

	while (*text != '\0' && lines < 20) {
		size_t skip, length = top_text_line(text, width, brush->canvas->is_utf8, &skip);
		char line[TOP_CANVAS_WIDTH_MAX];

		text_format(line, sizeof(line), "%.*s", (int)length, text);
		if (row + lines < end)
			top_canvas_text(brush->canvas, row + lines, indent, width, style, line);
		text += length + skip;
		lines++;
	}
	return lines;
}

/* Shown when there are no recordings. */
static void top_brush_nothing(struct top_brush *brush, unsigned int row)
{
	row += top_brush_wrap(brush, row, brush->canvas->height, 0, TOP_PLAIN,
			      "No recordings found on this host that you may read.");
	top_brush_wrap(brush, row, brush->canvas->height, 0, TOP_FAINT,
		       "Start a job with 'ringside run -- CMD'.");
}

/* ---- rows and their details ------------------------------------------------------------------ */

static bool is_expanded(const struct top_brush *brush, enum top_pane pane, size_t row)
{
	const struct top_view *view = brush->view;

	if (pane != TOP_NOTICES && pane != TOP_FLIGHTS)
		return false;
	if (brush->view->is_once)
		return pane == TOP_NOTICES;
	if (view->pane == pane)
		return view->places[pane].at == row;
	return pane == TOP_NOTICES && row == 0 && brush->canvas->height >= DETAILS_FROM;
}

/* The n-th detail below a row; NULL after the last. */
static const char *row_detail(const struct top_brush *brush, enum top_pane pane, uint32_t index,
			      unsigned int n, char text[static TOP_CELL_TEXT])
{
	const struct live_notice *notice = &brush->model->live->notices[index];

	if (pane == TOP_FLIGHTS && brush->canvas->width < WHOLE_FROM && n-- == 0)
		return top_cells_summary(brush->model->live, index, text);
	if (pane == TOP_FLIGHTS)
		return top_cells_detail(brush->model->live, index, n, text);
	return n == 0 ? notice->text : n == 1 ? notice->hint : NULL;
}

/* Where a notice's text has to end to leave room for its hint. */
static unsigned int text_end(struct top_brush *brush, uint32_t index, unsigned int row,
			     unsigned int end)
{
	unsigned int hint = top_brush_wrap(brush, 0, 0, TOP_MARGIN * 2, TOP_PLAIN,
					   brush->model->live->notices[index].hint);

	return end > row + hint ? end - hint : end;
}

static unsigned int draw_details(struct top_brush *brush, enum top_pane pane, uint32_t index,
				 unsigned int row, unsigned int end)
{
	char text[TOP_CELL_TEXT];
	unsigned int lines = 0;
	const char *words;

	for (unsigned int n = 0; (words = row_detail(brush, pane, index, n, text)) != NULL; n++) {
		bool is_text = pane == TOP_NOTICES && n == 0 && end > 0;
		unsigned int until = is_text ? text_end(brush, index, row, end) : end;

		lines +=
			top_brush_wrap(brush, row + lines, until, TOP_MARGIN * 2,
				       pane == TOP_NOTICES && n > 0 ? TOP_FAINT : TOP_PLAIN, words);
		if (is_text && row + lines > until)
			lines = until > row ? until - row : 0;
	}
	return lines;
}

/* Lines that a row takes: more than one if its details are shown. */
static unsigned int top_brush_row_lines(const struct top_brush *brush, enum top_pane pane,
					size_t row)
{
	struct top_brush blind = *brush;

	if (!is_expanded(brush, pane, row))
		return 1;
	return 1 + draw_details(&blind, pane, brush->model->lists[pane].rows[row].index, 0, 0);
}

static void draw_notice(struct top_brush *brush, uint32_t index, unsigned int row)
{
	const struct live *live = brush->model->live;
	const struct live_notice *notice = &live->notices[index];
	/* Only the first is highlighted: the others follow from it or are less urgent. */
	enum top_style style = !top_model_is_alarm(notice) ? TOP_WARNING
			       : index == 0		   ? TOP_ALARM
							   : TOP_BAD;
	unsigned int width = brush->canvas->width, used;
	char age[TOP_TEXT_NUMBER], since[TOP_TEXT_NUMBER + 8];

	if (row >= brush->canvas->height)
		return;
	top_canvas_style(brush->canvas, row, style, true);
	top_canvas_text(brush->canvas, row, 0, width, style, "!");
	used = TOP_MARGIN + top_canvas_text(brush->canvas, row, TOP_MARGIN,
					    width > TOP_MARGIN ? width - TOP_MARGIN : 0, style,
					    notice->title);
	if (live->wall_ns <= notice->since_wall_ns)
		return;
	text_format(since, sizeof(since), "for %s",
		    top_text_age(age, live->wall_ns - notice->since_wall_ns));
	if (used + 2 + strlen(since) <= width)
		top_canvas_right(brush->canvas, row, 0, width, style, since);
}

static void draw_row(struct top_brush *brush, const struct top_fit *fit, enum top_pane pane,
		     uint32_t index, unsigned int row)
{
	struct top_cell_of cell = { .live = brush->model->live,
				    .pane = pane,
				    .index = index,
				    .is_utf8 = brush->canvas->is_utf8 };
	char text[TOP_CELL_TEXT];

	for (size_t i = 0; i < fit->count; i++) {
		enum top_style style;

		cell.column = fit->columns[i]->id;
		cell.width = fit->widths[i];
		style = top_cells_style(&cell);
		top_cells_text(&cell, text);
		if (fit->columns[i]->is_right)
			top_canvas_right(brush->canvas, row, fit->at[i], fit->widths[i], style,
					 text);
		else
			top_canvas_text(brush->canvas, row, fit->at[i], fit->widths[i], style,
					text);
	}
}

/* ---- panes ----------------------------------------------------------------------------------- */

static void say_comm(char *text, size_t size, const struct live *live, uint32_t comm)
{
	text_format(text, size, "of %s", live->job.comms[comm].label);
	if (live->comms[comm].user_tag != 0)
		text_append(text, size, " (tag %" PRIu64 ")", live->comms[comm].user_tag);
}

/* Row range, subject and sort order: as much as fits. */
static void pane_caption(struct top_brush *brush, enum top_pane pane, char *text, size_t size,
			 unsigned int room)
{
	const struct top_model *model = brush->model;
	const struct top_place *place = &brush->view->places[pane];
	const char *sort = top_view_sort_name(brush->view, pane);
	size_t count = model->lists[pane].count;
	char rows[64] = "", of[160] = "";
	bool is_utf8 = brush->canvas->is_utf8;

	if (count > place->shown && place->shown > 0)
		text_format(rows, sizeof(rows), "%zu-%zu/%zu", place->first + 1,
			    place->first + place->shown, count);
	if (pane == TOP_FLIGHTS)
		text_copy(of, sizeof(of), "in flight");
	if (pane == TOP_SEATS && model->comm != UINT32_MAX)
		say_comm(of, sizeof(of), model->live, model->comm);
	text_format(text, size, "%s%s%s%s%s", of, of[0] ? ", " : "", sort, rows[0] ? "  " : "",
		    rows);
	if (top_text_width(text, is_utf8) > room)
		text_format(text, size, "%s%s%s", of, of[0] && rows[0] ? "  " : "", rows);
	if (top_text_width(text, is_utf8) > room)
		text_copy(text, size, rows);
	if (top_text_width(text, is_utf8) > room)
		text[0] = '\0';
}

static void draw_title(struct top_brush *brush, const struct top_fit *fit, enum top_pane pane,
		       unsigned int row)
{
	bool is_active = !brush->view->is_once && brush->view->pane == pane;
	enum top_style style = is_active ? TOP_TITLE_ACTIVE : TOP_TITLE;
	struct top_canvas *canvas = brush->canvas;
	unsigned int end = 0;
	char text[320];

	if (row >= canvas->height)
		return;
	top_canvas_style(canvas, row, style, true);
	for (size_t i = 0; i < fit->count; i++) {
		const struct top_column *column = fit->columns[i];

		if (column->is_right)
			top_canvas_right(canvas, row, fit->at[i], fit->widths[i], style,
					 column->title);
		else
			top_canvas_text(canvas, row, fit->at[i], fit->widths[i], style,
					column->title);
		end = column->is_right ? fit->at[i] + fit->widths[i]
				       : fit->at[i] + (unsigned int)strlen(column->title);
	}
	if (brush->view->is_once || end + 2 >= canvas->width)
		return;
	pane_caption(brush, pane, text, sizeof(text), canvas->width - end - 2);
	top_canvas_right(canvas, row, end + 2, canvas->width - end - 2, style, text);
}

/* Scrolls just enough to show the cursor's row with its details. */
static void keep_visible(struct top_brush *brush, enum top_pane pane, unsigned int lines)
{
	struct top_place *place = &brush->view->places[pane];
	size_t count = brush->model->lists[pane].count;
	unsigned int cursor = count > 0 ? top_brush_row_lines(brush, pane, place->at) : 1;
	size_t before = cursor < lines ? lines - cursor : 0;

	if (brush->view->is_once) {
		place->first = 0;
		place->shown = lines;
		return;
	}
	place->shown = lines;
	if (place->first + lines > count)
		place->first = count > lines ? count - lines : 0;
	if (place->at < place->first)
		place->first = place->at;
	if (place->at - place->first > before)
		place->first = place->at - before;
}

/* The most serious notice about a row; NULL if there is none. Notices are sorted by severity. */
static const struct live_notice *notice_of(const struct live *live, enum top_pane pane,
					   uint32_t index)
{
	for (size_t i = 0; i < live->notice_count; i++)
		if (pane == TOP_COMMS	? live->notices[i].comm == index
		    : pane == TOP_SEATS ? live->notices[i].seat == index
					: false)
			return &live->notices[i];
	return NULL;
}

static void draw_mark(struct top_brush *brush, enum top_pane pane, uint32_t index, unsigned int row)
{
	const struct live_notice *notice = notice_of(brush->model->live, pane, index);

	if (notice)
		top_canvas_text(brush->canvas, row, 1, 1,
				top_model_is_alarm(notice) ? TOP_BAD : TOP_WARNING, "!");
}

static void draw_cursor(struct top_brush *brush, enum top_pane pane, size_t at, unsigned int row)
{
	bool is_active = brush->view->pane == pane;

	if (brush->view->is_once || brush->view->places[pane].at != at)
		return;
	if (is_active && pane != TOP_NOTICES)
		top_canvas_style(brush->canvas, row, TOP_CHOSEN, false);
	/* Mark the communicator whose ranks are shown, even if its pane is not active. */
	if (is_active || pane == TOP_COMMS)
		top_canvas_text(brush->canvas, row, 0, 1,
				is_active && pane != TOP_NOTICES ? TOP_CHOSEN : TOP_STRONG, ">");
}

/* Draws a pane with its title, or the notices, in this many lines from this row on. */
static void top_brush_pane(struct top_brush *brush, enum top_pane pane, unsigned int row,
			   unsigned int lines)
{
	const struct top_list *list = &brush->model->lists[pane];
	unsigned int end = row + lines;
	struct top_fit fit;

	if (lines == 0)
		return;
	top_columns_fit(&fit, brush->model, pane, brush->canvas->width, brush->canvas->is_utf8);
	keep_visible(brush, pane, pane == TOP_NOTICES ? lines : lines - 1);
	if (pane != TOP_NOTICES)
		draw_title(brush, &fit, pane, row++);
	for (size_t i = brush->view->places[pane].first; i < list->count && row < end; i++) {
		uint32_t index = list->rows[i].index;

		if (pane == TOP_NOTICES)
			draw_notice(brush, index, row);
		else
			draw_row(brush, &fit, pane, index, row);
		draw_mark(brush, pane, index, row);
		draw_cursor(brush, pane, i, row);
		row++;
		if (is_expanded(brush, pane, i))
			row += draw_details(brush, pane, index, row, end);
	}
}

static unsigned int notice_lines(const struct top_brush *brush)
{
	unsigned int lines = 0;

	for (size_t i = 0; i < brush->model->lists[TOP_NOTICES].count && lines < 1000; i++)
		lines += top_brush_row_lines(brush, TOP_NOTICES, i);
	return lines;
}

static bool has_nothing(const struct top_model *model)
{
	return model->live->job.rank_count == 0;
}

/* ---- what was judged ------------------------------------------------------------------------- */

/* Of several jobs, the first of which not everything was judged or something was found. False: none runs. */
static bool judged_text(const struct live *live, char *text, size_t size)
{
	const struct live_job *shown = NULL;

	text[0] = '\0';
	for (size_t i = 0; i < live->job.group_count; i++) {
		const struct live_job *job = &live->jobs[i];
		bool is_fine = live_is_fine(&job->hangs) && live_is_fine(&job->speed);

		if (job->is_alive && (shown == NULL || !is_fine))
			shown = job;
		if (job->is_alive && !is_fine)
			break;
	}
	if (shown == NULL)
		return false;
	if (live->job.group_count > 1)
		text_append(text, size, "%.40s: ", live->job.groups[shown - live->jobs].name);
	live_say_hangs(text, size, shown);
	text_append(text, size, ". ");
	live_say_speed(text, size, shown);
	return true;
}

/* Returns the lines used. */
static unsigned int draw_remarks(struct top_brush *brush, unsigned int row)
{
	const struct live *live = brush->model->live;
	unsigned int lines = 0;
	char text[900];

	if (brush->around->remark[0] != '\0')
		top_canvas_text(brush->canvas, row + lines++, 0, brush->canvas->width, TOP_WARNING,
				brush->around->remark);
	if (judged_text(live, text, sizeof(text)))
		top_canvas_text(brush->canvas, row + lines++, 0, brush->canvas->width, TOP_FAINT,
				text);
	return lines;
}

static unsigned int remark_lines(const struct top_brush *brush)
{
	char text[900];

	return (brush->around->remark[0] != '\0') +
	       judged_text(brush->model->live, text, sizeof(text));
}

enum status top_draw(struct top_canvas *canvas, const struct top_model *model,
		     struct top_view *view, const struct top_around *around, unsigned int width,
		     unsigned int height)
{
	struct top_brush brush = { canvas, model, view, around };
	enum status status = top_canvas_clear(canvas, width, height);
	struct top_layout layout;

	if (status != OK || canvas->width == 0 || canvas->height == 0)
		return status;
	top_layout(&layout, model, view, canvas->height, notice_lines(&brush),
		   remark_lines(&brush));
	top_brush_head(&brush);
	if (layout.remark_at > 0)
		draw_remarks(&brush, layout.remark_at);
	if (layout.keys_at > 0)
		top_brush_keys(&brush, layout.keys_at);
	if (view->has_help)
		top_brush_help(&brush, layout.at[TOP_NOTICES]);
	else if (has_nothing(model))
		top_brush_nothing(&brush, layout.at[TOP_NOTICES]);
	else
		for (int pane = 0; pane < TOP_PANES; pane++)
			top_brush_pane(&brush, (enum top_pane)pane, layout.at[pane],
				       layout.lines[pane]);
	return OK;
}

enum status top_draw_once(struct top_canvas *canvas, const struct top_model *model,
			  struct top_view *view, const struct top_around *around,
			  unsigned int width)
{
	struct top_brush brush = { canvas, model, view, around };
	unsigned int lines[TOP_PANES], at = 1, height;
	enum status status;

	/* The number of lines of a text depends on the width. */
	status = top_canvas_clear(canvas, width, 1);
	if (status != OK || canvas->width == 0)
		return status;
	lines[TOP_NOTICES] = notice_lines(&brush);
	height = 1 + lines[TOP_NOTICES] + remark_lines(&brush);
	for (int pane = TOP_COMMS; pane < TOP_PANES; pane++) {
		size_t rows = model->lists[pane].count;

		lines[pane] = 1 + (unsigned int)(rows < TOP_DRAW_ROWS ? rows : TOP_DRAW_ROWS);
		height += lines[pane] + 1;
	}
	status = top_canvas_clear(canvas, width, has_nothing(model) ? height + 2 : height);
	if (status != OK)
		return status;
	top_brush_head(&brush);
	at += draw_remarks(&brush, at);
	if (has_nothing(model)) {
		canvas->height = at + 2;
		top_brush_nothing(&brush, at);
		return OK;
	}
	for (int pane = 0; pane < TOP_PANES; pane++) {
		at += pane > TOP_NOTICES;
		top_brush_pane(&brush, (enum top_pane)pane, at, lines[pane]);
		at += lines[pane];
	}
	return OK;
}
