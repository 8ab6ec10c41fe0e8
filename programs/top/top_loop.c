#include "programs/top/top_loop.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmds/cli.h"
#include "programs/top/top_keys.h"
#include "programs/top/top_look.h"
#include "programs/top/top_screen.h"
#include "programs/top/top_signals.h"

#define SECOND_NS UINT64_C(1000000000)
/* A process that comes is shown at once, but not ten of them ten times. */
#define SOON_NS (SECOND_NS / 5)

struct loop {
	struct top_look look;
	struct top_view view;
	struct top_canvas canvas;
	struct top_signals signals;
	uint64_t next_ns; /* when to look */
	bool is_ended;
};

static void draw(struct loop *loop)
{
	unsigned int width, height;

	top_screen_size(&width, &height);
	if (top_draw(&loop->canvas, &loop->look.model, &loop->view, &loop->look.around, width,
		     height) == OK)
		top_screen_show(&loop->canvas);
}

static void look(struct loop *loop)
{
	top_look_now(&loop->look, &loop->view);
	loop->next_ns = top_look_clock() + loop->view.interval_ns;
	draw(loop);
}

static void take_keys(struct loop *loop)
{
	uint64_t interval_ns = loop->view.interval_ns;
	bool was_paused = loop->view.is_paused, is_changed = false;
	wchar_t character;
	enum top_key key;

	while (!loop->is_ended && (key = top_screen_key(&character)) != TOP_KEY_NONE) {
		enum top_action action =
			top_keys_take(&loop->view, &loop->look.model, key, character);

		loop->is_ended |= action == TOP_QUIT;
		/* The next key may be about what this one changed. */
		if (action == TOP_DRAW)
			top_look_again(&loop->look, &loop->view);
		is_changed |= action == TOP_DRAW;
	}
	if (loop->view.interval_ns != interval_ns || (was_paused && !loop->view.is_paused))
		loop->next_ns = top_look_clock();
	if (is_changed && !loop->is_ended)
		draw(loop);
}

static void take_signals(struct loop *loop)
{
	bool is_back = false;

	if (top_signals_end() != 0) {
		loop->is_ended = true;
		return;
	}
	if (top_signals_take_stop()) {
		top_screen_leave();
		top_signals_stop();
		is_back = true;
	}
	/* Also after a SIGSTOP, of which nobody was told: the shell used the terminal meanwhile. */
	if (top_signals_take_continue() || is_back) {
		top_screen_return();
		draw(loop);
	}
	if (top_signals_take_resize()) {
		top_screen_resize();
		draw(loop);
	}
}

/* Until a key, a signal, a new process or the next look. */
static void wait_for_something(struct loop *loop)
{
	struct pollfd fds[2] = { { .fd = STDIN_FILENO, .events = POLLIN },
				 { .fd = watch_fd(&loop->look.watch), .events = POLLIN } };
	uint64_t now_ns = top_look_clock();
	uint64_t left_ns = loop->next_ns > now_ns ? loop->next_ns - now_ns : 0;
	struct timespec time = { .tv_sec = (time_t)(left_ns / SECOND_NS),
				 .tv_nsec = (long)(left_ns % SECOND_NS) };

	if (ppoll(fds, 2, loop->view.is_paused ? NULL : &time, &loop->signals.waiting) == -1) {
		loop->is_ended |= errno != EINTR;
		return;
	}
	if (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL))
		loop->is_ended = true;
	if (fds[1].revents != 0 && watch_heed(&loop->look.watch) &&
	    loop->next_ns > now_ns + SOON_NS)
		loop->next_ns = now_ns + SOON_NS;
}

static void run(struct loop *loop)
{
	look(loop);
	while (!loop->is_ended) {
		wait_for_something(loop);
		take_signals(loop);
		take_keys(loop);
		if (!loop->is_ended && !loop->view.is_paused && top_look_clock() >= loop->next_ns)
			look(loop);
	}
}

int top_loop(const struct top_options *options, bool is_utf8)
{
	struct loop loop = { .next_ns = 0 };
	int code = CLI_EXIT_DONE;
	enum status status;

	top_signals_init(&loop.signals);
	top_view_init(&loop.view, options->interval_ns);
	top_canvas_init(&loop.canvas, is_utf8);
	status = top_look_init(&loop.look, options->directory);
	if (status == OK)
		run(&loop);
	top_screen_close();
	if (status != OK)
		code = cli_error("cannot watch the processes: %s", strerror(errno));
	top_look_release(&loop.look);
	top_canvas_release(&loop.canvas);
	if (top_signals_end() != 0)
		top_signals_die(top_signals_end());
	return code;
}
