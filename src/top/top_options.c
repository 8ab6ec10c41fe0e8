#include "top/top_options.h"

#include <stdlib.h>

#include "common/attributes.h"
#include "common/clock.h"

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

static const struct cli_option top_option_rows[] = {
	{ 0, "interval", "TIME", "time between refreshes, 200ms to 60s (default 1s)",
	  CLI_TIME(struct top_options, interval_ns, TOP_INTERVAL_LEAST_NS, TOP_INTERVAL_MOST_NS),
	  .like = "is not a time like 1s or 500ms", .less = "is not between 200ms and 60s" },
	{ 0, "once", NULL, "print plain text once and exit (default without a terminal)",
	  CLI_FLAG(struct top_options, is_once) },
	{ 0, "directory", "DIR",
	  "directory of the shared-memory regions (default RINGSIDE_SHM or /dev/shm)",
	  CLI_TEXT(struct top_options, directory) },
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside top", "watch the jobs on this host; press ? for help" },
	{ "ssh -t node01 ringside top", "watch another host" },
	{ "ringside top --once | less -S", "print all rows once" },
	{ NULL, NULL },
};

const struct cli_page top_page = {
	.name = "top",
	.operands = "",
	.about = "Shows the jobs on this host while they run: hangs and stragglers; communicators "
		 "with bandwidth and waiting; the ranks of one communicator; operations in flight "
		 "and what they wait for. It reads the shared-memory regions of the processes and "
		 "needs no agent; as root it sees the processes of all users.\n"
		 "For machine-readable output, use 'ringside ps --json' or 'ringside report "
		 "--json'.\n",
	.options = top_option_rows,
	.examples = examples,
};

int top_options_parse(struct top_options *options, int argc, char **argv)
{
	*options = (struct top_options){ .interval_ns = 1000000000,
					 .directory = getenv("RINGSIDE_SHM") };
	return cli_parse(&top_page, options, argc, argv);
}
