#include "programs/top/top_draw.h"

enum {
	KEYS_FROM = 10, /* lines from which on the last one explains the keys */
	PANE_LEAST = 3, /* a title and two rows */
};

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static unsigned int wanted(const struct top_model *model, enum top_pane pane)
{
	size_t rows = model->lists[pane].count;

	return 1 + (rows < 1 ? 1 : rows > 1000 ? 1000 : (unsigned int)rows);
}

/*
 * A quarter at least is for what is in flight, whatever that is at the moment: its rows come and go
 * with every look, and lines that move cannot be read. The others have half of the rest each, or
 * less if they need less.
 */
static void share(struct top_layout *layout, const struct top_model *model, unsigned int lines)
{
	unsigned int flights = lines / 4 > PANE_LEAST ? lines / 4 : PANE_LEAST;
	unsigned int left = lines - flights;
	unsigned int comms = least(wanted(model, TOP_COMMS), left / 2);
	unsigned int seats = least(wanted(model, TOP_SEATS), left - comms);

	comms = least(wanted(model, TOP_COMMS), left - seats);
	layout->lines[TOP_COMMS] = comms;
	layout->lines[TOP_SEATS] = seats;
	layout->lines[TOP_FLIGHTS] = lines - comms - seats;
}

void top_layout(struct top_layout *layout, const struct top_model *model,
		const struct top_view *view, unsigned int height, unsigned int notice_lines,
		bool has_remark)
{
	unsigned int at = 1, left = height > 1 ? height - 1 : 0;
	bool is_for_notices = view->pane == TOP_NOTICES;

	*layout = (struct top_layout){ 0 };
	if (height >= KEYS_FROM || (view->is_typing && left > 1)) {
		layout->keys_at = height - 1;
		left--;
	}
	if (has_remark && height >= KEYS_FROM) {
		layout->remark_at = at++;
		left--;
	}
	layout->at[TOP_NOTICES] = at;
	if (left < 3 * PANE_LEAST + least(notice_lines, 1)) {
		/* One alone, and a line that says that something is wrong. */
		layout->lines[TOP_NOTICES] =
			is_for_notices ? left : least(least(notice_lines, 1), left / 2);
		if (!is_for_notices)
			layout->lines[view->pane] = left - layout->lines[TOP_NOTICES];
	} else {
		unsigned int most = is_for_notices ? left / 2 : left / 3;

		most = least(most > 0 ? most : 1, left - 3 * PANE_LEAST);
		layout->lines[TOP_NOTICES] = least(notice_lines, most);
		share(layout, model, left - layout->lines[TOP_NOTICES]);
	}
	for (int pane = TOP_COMMS; pane < TOP_PANES; pane++)
		layout->at[pane] = layout->at[pane - 1] + layout->lines[pane - 1];
}
