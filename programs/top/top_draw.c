#include "programs/top/top_brush.h"

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
		   around->remark[0] != '\0');
	top_brush_head(&brush);
	if (layout.remark_at > 0)
		top_canvas_text(canvas, layout.remark_at, 0, canvas->width, TOP_WARNING,
				around->remark);
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

	/* The width decides how many lines texts take. */
	status = top_canvas_clear(canvas, width, 1);
	if (status != OK || canvas->width == 0)
		return status;
	lines[TOP_NOTICES] = notice_lines(&brush);
	height = 1 + lines[TOP_NOTICES] + (around->remark[0] != '\0');
	for (int pane = TOP_COMMS; pane < TOP_PANES; pane++) {
		size_t rows = model->lists[pane].count;

		lines[pane] = 1 + (unsigned int)(rows < TOP_DRAW_ROWS ? rows : TOP_DRAW_ROWS);
		height += lines[pane] + 1;
	}
	status = top_canvas_clear(canvas, width, has_nothing(model) ? height + 2 : height);
	if (status != OK)
		return status;
	top_brush_head(&brush);
	if (around->remark[0] != '\0')
		top_canvas_text(canvas, at++, 0, canvas->width, TOP_WARNING, around->remark);
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
