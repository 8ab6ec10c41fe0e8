#include "programs/top/top_view.h"

#include "common/attributes.h"

#define MS_NS UINT64_C(1000000)

void top_view_init(struct top_view *view, uint64_t interval_ns)
{
	*view = (struct top_view){ .pane = TOP_COMMS, .interval_ns = interval_ns };
	view->sorts[TOP_FLIGHTS] = TOP_BY_AGE;
}

void top_view_next_sort(struct top_view *view)
{
	enum top_sort *sort = &view->sorts[view->pane];

	if (view->pane == TOP_FLIGHTS)
		*sort = *sort == TOP_BY_AGE ? TOP_BY_ORDER : TOP_BY_AGE;
	else if (view->pane != TOP_NOTICES)
		*sort = *sort == TOP_BY_AGE ? TOP_BY_ORDER : *sort + 1;
}

const char *top_view_sort_name(const struct top_view *view, enum top_pane pane)
{
	switch (view->sorts[pane]) {
	case TOP_BY_WAIT:
		return "by wait";
	case TOP_BY_BUSBW:
		return "by busbw";
	case TOP_BY_RATE:
		return "by ops/s";
	case TOP_BY_AGE:
		return "by age";
	default:
		return pane == TOP_COMMS ? "by size" : "by rank";
	}
}

void top_view_step_interval(struct top_view *view, int direction)
{
	static const uint64_t steps[] = { TOP_INTERVAL_LEAST_NS, 500 * MS_NS,	      1000 * MS_NS,
					  2000 * MS_NS,		 5000 * MS_NS,	      10000 * MS_NS,
					  30000 * MS_NS,	 TOP_INTERVAL_MOST_NS };

	for (size_t i = 0; direction > 0 && i < ARRAY_LENGTH(steps); i++) {
		if (steps[i] > view->interval_ns) {
			view->interval_ns = steps[i];
			return;
		}
	}
	for (size_t i = ARRAY_LENGTH(steps); direction < 0 && i-- > 0;) {
		if (steps[i] < view->interval_ns) {
			view->interval_ns = steps[i];
			return;
		}
	}
}
