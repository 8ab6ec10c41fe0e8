#include "programs/top/top_once.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmds/cli.h"
#include "programs/top/top_look.h"

enum { PIPE_WIDTH = 200 };

/* Rates need the time between two looks. */
static void wait_for(uint64_t ns)
{
	struct timespec time = { .tv_sec = (time_t)(ns / 1000000000),
				 .tv_nsec = (long)(ns % 1000000000) };

	while (nanosleep(&time, &time) == -1 && errno == EINTR)
		;
}

static int show(struct top_look *look, struct top_view *view, bool is_utf8)
{
	unsigned int width = cli_width();
	struct top_canvas canvas;
	struct sink sink;
	int code;

	top_canvas_init(&canvas, is_utf8);
	if (top_draw_once(&canvas, &look->model, view, &look->around, width ? width : PIPE_WIDTH) !=
	    OK) {
		top_canvas_release(&canvas);
		return cli_error("there is not enough memory to show this");
	}
	sink_init_fd(&sink, STDOUT_FILENO);
	top_canvas_write(&canvas, &sink);
	code = cli_finish(&sink, CLI_EXIT_DONE);
	top_canvas_release(&canvas);
	return code;
}

int top_once(const struct top_options *options, bool is_utf8)
{
	struct top_look look;
	struct top_view view;
	int code;

	top_view_init(&view, options->interval_ns);
	view.is_once = true;
	if (top_look_init(&look, options->directory) != OK) {
		code = cli_error("cannot watch the processes: %s", strerror(errno));
	} else {
		top_look_now(&look, &view);
		if (look.live.job.rank_count > 0) {
			wait_for(options->interval_ns);
			top_look_now(&look, &view);
		}
		code = show(&look, &view, is_utf8);
	}
	top_look_release(&look);
	return code;
}
