#include "programs/top/top_brush.h"

#include <string.h>
#include <time.h>

#include "common/text.h"
#include "programs/top/top_cells.h"
#include "programs/top/top_columns.h"
#include "programs/top/top_keys.h"
#include "programs/top/top_text.h"

enum {
	DETAILS_FROM = 20, /* lines from which on the first notice is told with its text */
	WHOLE_FROM = 72,   /* columns from which on no row lacks what matters */
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

/* As much of it as there is room for; what is dropped first comes last in `order`. */
void top_brush_head(struct top_brush *brush)
{
	static const unsigned int order[] = { 3, 1, 0, 2 };
	const struct top_model *model = brush->model;
	char parts[4][320], right[32] = "";
	bool is_shown[4] = { false };
	unsigned int used = 0, at = 0;
	size_t jobs = model->live->job.group_count;
	bool is_utf8 = brush->canvas->is_utf8;

	text_format(parts[0], sizeof(parts[0]), "%.60s", brush->around->host);
	clock_text(parts[1], sizeof(parts[1]), model->live->wall_ns);
	text_format(parts[2], sizeof(parts[2]), "%zu job%s", jobs, jobs == 1 ? "" : "s");
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

void top_brush_keys(struct top_brush *brush, unsigned int row)
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

void top_brush_help(struct top_brush *brush, unsigned int row)
{
	static const char *const words[] = {
		"",
		"BUSBW      bytes a second while in operations, as nccl-tests counts them",
		"WAIT       share of the time that was waited for other ranks, at least",
		"OLDEST     how long the oldest operation has been in flight",
		"MEMBER     rank in the communicator, where it is not the job's",
		"AGE        of what is in flight: the oldest of each rank and communicator",
		"!          there is a notice about this one",
		"",
		"docs/TOP.md says more. Any key goes back.",
	};
	const char *key, *what;

	for (unsigned int i = 0; (key = top_keys_help(i, &what)) != NULL; i++) {
		top_canvas_text(brush->canvas, row, 2, 12, TOP_STRONG, key);
		top_canvas_text(brush->canvas, row++, 15, brush->canvas->width, TOP_PLAIN, what);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
		top_canvas_text(brush->canvas, row++, 2, brush->canvas->width, TOP_PLAIN, words[i]);
}

void top_brush_nothing(struct top_brush *brush, unsigned int row)
{
	row += top_brush_wrap(brush, row, brush->canvas->height, 0, TOP_PLAIN,
			      "No process of this machine records, or none that may be read.");
	top_brush_wrap(brush, row, brush->canvas->height, 0, TOP_FAINT,
		       "'ringside run -- CMD' starts one.");
}

/* ---- rows and their details ------------------------------------------------------------------ */

unsigned int top_brush_wrap(struct top_brush *brush, unsigned int row, unsigned int end,
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

/* The n-th thing to say below a row; NULL after the last. */
static const char *detail(const struct top_brush *brush, enum top_pane pane, uint32_t index,
			  unsigned int n, char text[static TOP_CELL_TEXT])
{
	const struct live_notice *notice = &brush->model->live->notices[index];

	if (pane == TOP_FLIGHTS && brush->canvas->width < WHOLE_FROM && n-- == 0)
		return top_cells_summary(brush->model->live, index, text);
	if (pane == TOP_FLIGHTS)
		return top_cells_detail(brush->model->live, index, n, text);
	return n == 0 ? notice->text : n == 1 ? notice->hint : NULL;
}

/* Where a notice's text has to end so that what to type next has its lines. */
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

	for (unsigned int n = 0; (words = detail(brush, pane, index, n, text)) != NULL; n++) {
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

unsigned int top_brush_row_lines(const struct top_brush *brush, enum top_pane pane, size_t row)
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
	/* One line of alarm is enough: the others follow from it, or can wait. */
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

/* Which rows of how many, what they are of, how they are sorted: as much as there is room for. */
static void caption(struct top_brush *brush, enum top_pane pane, char *text, size_t size,
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
		text_format(of, sizeof(of), "of %s", model->live->job.comms[model->comm].label);
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
	caption(brush, pane, text, sizeof(text), canvas->width - end - 2);
	top_canvas_right(canvas, row, end + 2, canvas->width - end - 2, style, text);
}

/* Scroll as little as it takes to have the cursor's row, with its details, on the screen. */
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

/* The worst of what was noticed about a row; NULL nothing. Notices are sorted so. */
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
	/* The chosen communicator is the one whose ranks are shown, wherever the keys go. */
	if (is_active || pane == TOP_COMMS)
		top_canvas_text(brush->canvas, row, 0, 1,
				is_active && pane != TOP_NOTICES ? TOP_CHOSEN : TOP_STRONG, ">");
}

void top_brush_pane(struct top_brush *brush, enum top_pane pane, unsigned int row,
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
