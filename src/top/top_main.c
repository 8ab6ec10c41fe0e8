/* ringside-top: see docs/LIVE.md. Started by `ringside top`. */
#include <errno.h>
#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/attributes.h"
#include "common/clock.h"
#include "common/file_opener.h"
#include "common/text.h"
#include "recording/watch.h"
#include "top/top.h"

/* The processes of this host, and what is known about them after a refresh. */

struct top_source {
	struct watch watch;
	struct live live;
	struct top_model model;
	struct top_around around;
};

/* Signals are blocked except while the loop waits: none interrupts drawing and none is missed. */
static volatile sig_atomic_t ending; /* the SIGTERM, SIGINT, SIGHUP or SIGQUIT received, 0: none */
static volatile sig_atomic_t stopped, continued, resized;

static void signal_note(int signal)
{
	switch (signal) {
	case SIGTSTP:
		stopped = 1;
		break;
	case SIGCONT:
		continued = 1;
		break;
	case SIGWINCH:
		resized = 1;
		break;
	default:
		ending = signal;
		break;
	}
}

static const int ours[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH };

/* *waiting is the mask for ppoll(). */
static void catch_signals(sigset_t *waiting)
{
	struct sigaction action = { .sa_handler = signal_note };
	sigset_t blocked;

	sigemptyset(&blocked);
	for (size_t i = 0; i < ARRAY_LENGTH(ours); i++) {
		struct sigaction before;

		/* Keep signals ignored that the caller ignores: nohup, a shell without job control. */
		if (sigaction(ours[i], NULL, &before) == 0 && before.sa_handler == SIG_IGN)
			continue;
		sigaction(ours[i], &action, NULL);
		sigaddset(&blocked, ours[i]);
	}
	sigprocmask(SIG_BLOCK, &blocked, waiting);
	for (size_t i = 0; i < ARRAY_LENGTH(ours); i++)
		sigdelset(waiting, ours[i]);
}

/* Whether the signal was received since the last call. */
static bool signal_take(volatile sig_atomic_t *flag)
{
	bool was_set = *flag != 0;

	*flag = 0;
	return was_set;
}

/* Raises the signal with its default action, unblocked. */
static void send_to_self(int signal)
{
	struct sigaction plain = { .sa_handler = SIG_DFL }, before;
	sigset_t only, mask;

	sigaction(signal, &plain, &before);
	sigemptyset(&only);
	sigaddset(&only, signal);
	raise(signal);
	sigprocmask(SIG_UNBLOCK, &only, &mask);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	sigaction(signal, &before, NULL);
}

/* Processes that ended are shown for this long. */
#define KEEP_NS UINT64_C(60000000000)

/* ERR_NO_SPACE, ERR_SYSTEM. `directory` is borrowed. Must be released even if it fails. */
static enum status top_source_init(struct top_source *source, const char *directory, bool is_once)
{
	struct watch_settings settings = { .directory = directory, .keep_ns = KEEP_NS };
	struct live_limits limits = live_limits_default();

	/* There is no second judgement that could confirm the first. */
	if (is_once)
		limits.slow_times = 1;
	*source = (struct top_source){ .around = { .host = "" } };
	if (gethostname(source->around.host, sizeof(source->around.host) - 1) == -1)
		text_copy(source->around.host, sizeof(source->around.host), "?");
	live_init(&source->live, &limits);
	top_model_init(&source->model);
	return watch_init(&source->watch, &settings);
}

static void top_source_release(struct top_source *source)
{
	top_model_release(&source->model);
	live_release(&source->live);
	watch_release(&source->watch);
}

static void source_remark(struct top_source *source, enum status status)
{
	const struct watch *watch = &source->watch;
	char *text = source->around.remark;

	text[0] = '\0';
	if (status != OK)
		text_format(text, TOP_REMARK_TEXT, "refresh failed: %s", status_text(status));
	else if (watch->refused_count > 0)
		text_format(text, TOP_REMARK_TEXT, "%zu file%s cannot be read: %s: %s",
			    watch->refused_count, watch->refused_count == 1 ? "" : "s",
			    watch->refused[0].path, watch->refused[0].why);
	else if (watch->left_out > 0)
		text_format(text, TOP_REMARK_TEXT,
			    "%zu processes are not shown: uid %" PRIu32
			    " has too many, or too large ones",
			    watch->left_out, watch->recording.left_out[0].owner);
	else if (watch->unreadable > 0)
		text_format(
			text, TOP_REMARK_TEXT,
			"%zu recording%s of other users cannot be read; run as root to see them",
			watch->unreadable, watch->unreadable == 1 ? "" : "s");
}

/* Refreshes the recordings and the rows. If it fails, the result can still be drawn, and
 * around.remark has the reason. `live` points into the recording, so it is updated even if
 * watch_look() failed. */
static void top_source_refresh(struct top_source *source, struct top_view *view)
{
	enum status status = watch_look(&source->watch, WATCH_TOTALS), next;
	struct live_limits limits = source->live.limits;
	uint64_t now_ns = clock_now_system();

	while (status == OK && watch_is_searching(&source->watch))
		status = watch_look(&source->watch, WATCH_TOTALS);

	next = live_look(&source->live, &source->watch.recording, now_ns,
			 clock_system_ns(CLOCK_REALTIME));
	if (next == OK) {
		live_judge(&source->live, now_ns);
	} else {
		live_release(&source->live);
		live_init(&source->live, &limits);
		status = next;
	}
	next = top_model_make(&source->model, &source->live, view);
	source_remark(source, status != OK ? status : next);
}

/* Rebuilds the rows after a key was pressed. */
static void top_source_rebuild(struct top_source *source, struct top_view *view)
{
	if (top_model_make(&source->model, &source->live, view) != OK)
		source_remark(source, ERR_NO_SPACE);
}

/* Plain text of two refreshes on stdout: for scripts, pipes and dumb terminals. */

enum { PIPE_WIDTH = 200 };

/* Rates are computed between two refreshes. */
static void wait_for(uint64_t ns)
{
	struct timespec time = { .tv_sec = (time_t)(ns / 1000000000),
				 .tv_nsec = (long)(ns % 1000000000) };

	while (nanosleep(&time, &time) == -1 && errno == EINTR)
		;
}

static int once_show(struct top_source *source, struct top_view *view, bool is_utf8)
{
	unsigned int width = cli_width();
	struct top_canvas canvas;
	struct sink sink;
	int code;

	top_canvas_init(&canvas, is_utf8);
	if (top_draw_once(&canvas, &source->model, view, &source->around,
			  width ? width : PIPE_WIDTH) != OK) {
		top_canvas_release(&canvas);
		return cli_error("out of memory");
	}
	sink_init_fd(&sink, STDOUT_FILENO);
	top_canvas_write(&canvas, &sink);
	code = cli_finish(&sink, CLI_EXIT_DONE);
	top_canvas_release(&canvas);
	return code;
}

/* Returns the exit code. */
static int top_once(const struct top_options *options, bool is_utf8)
{
	struct top_source source;
	struct top_view view;
	int code;

	top_view_init(&view, options->interval_ns);
	view.is_once = true;
	if (top_source_init(&source, options->directory, true) != OK) {
		code = cli_error("cannot watch the processes: %s", strerror(errno));
	} else {
		top_source_refresh(&source, &view);
		if (source.live.job.rank_count > 0) {
			wait_for(options->interval_ns);
			top_source_refresh(&source, &view);
		}
		code = once_show(&source, &view, is_utf8);
	}
	top_source_release(&source);
	return code;
}

/* The live screen: refreshes, keys and signals until the user quits. */

/* A new process is shown at once, but refreshes are not more frequent than this. */
#define SOON_NS (SECOND_NS / 5)

struct loop {
	struct top_source source;
	struct top_view view;
	struct top_canvas canvas;
	sigset_t waiting;
	uint64_t next_ns; /* next refresh */
	bool is_ended;
};

static void loop_draw(struct loop *loop)
{
	unsigned int width, height;

	top_screen_size(&width, &height);
	if (top_draw(&loop->canvas, &loop->source.model, &loop->view, &loop->source.around, width,
		     height) == OK)
		top_screen_show(&loop->canvas);
}

static void loop_refresh(struct loop *loop)
{
	top_source_refresh(&loop->source, &loop->view);
	loop->next_ns = clock_now_system() + loop->view.interval_ns;
	loop_draw(loop);
}

static void take_keys(struct loop *loop)
{
	uint64_t interval_ns = loop->view.interval_ns;
	bool was_paused = loop->view.is_paused, is_changed = false;
	wchar_t character;
	enum top_key key;

	while (!loop->is_ended && (key = top_screen_key(&character)) != TOP_KEY_NONE) {
		enum top_action action =
			top_keys_take(&loop->view, &loop->source.model, key, character);

		loop->is_ended |= action == TOP_QUIT;
		/* The next key acts on what this one changed. */
		if (action == TOP_DRAW)
			top_source_rebuild(&loop->source, &loop->view);
		is_changed |= action == TOP_DRAW;
	}
	if (loop->view.interval_ns != interval_ns || (was_paused && !loop->view.is_paused))
		loop->next_ns = clock_now_system();
	if (is_changed && !loop->is_ended)
		loop_draw(loop);
}

static void take_signals(struct loop *loop)
{
	bool is_back = false;

	if (ending != 0) {
		loop->is_ended = true;
		return;
	}
	if (signal_take(&stopped)) {
		top_screen_leave();
		send_to_self(SIGTSTP);
		is_back = true;
	}
	/* Also after a SIGSTOP, which cannot be caught: the shell has used the terminal since. */
	if (signal_take(&continued) || is_back) {
		top_screen_return();
		loop_draw(loop);
	}
	if (signal_take(&resized)) {
		top_screen_resize();
		loop_draw(loop);
	}
}

/* Waits for a key, a signal, a new process or the next refresh. */
static void wait_for_something(struct loop *loop)
{
	struct pollfd fds[2] = { { .fd = STDIN_FILENO, .events = POLLIN },
				 { .fd = watch_fd(&loop->source.watch), .events = POLLIN } };
	uint64_t now_ns = clock_now_system();
	uint64_t left_ns = loop->next_ns > now_ns ? loop->next_ns - now_ns : 0;
	struct timespec time = { .tv_sec = (time_t)(left_ns / SECOND_NS),
				 .tv_nsec = (long)(left_ns % SECOND_NS) };

	if (ppoll(fds, 2, loop->view.is_paused ? NULL : &time, &loop->waiting) == -1) {
		loop->is_ended |= errno != EINTR;
		return;
	}
	if (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL))
		loop->is_ended = true;
	if (fds[1].revents != 0 && watch_heed(&loop->source.watch) &&
	    loop->next_ns > now_ns + SOON_NS)
		loop->next_ns = now_ns + SOON_NS;
}

static void loop_run(struct loop *loop)
{
	loop_refresh(loop);
	while (!loop->is_ended) {
		wait_for_something(loop);
		take_signals(loop);
		take_keys(loop);
		if (!loop->is_ended && !loop->view.is_paused && clock_now_system() >= loop->next_ns)
			loop_refresh(loop);
	}
}

/* Runs on an open screen and closes it. Returns the exit code, unless a signal ends the process. */
static int top_loop(const struct top_options *options, bool is_utf8)
{
	struct loop loop = { .next_ns = 0 };
	int code = CLI_EXIT_DONE;
	enum status status;

	catch_signals(&loop.waiting);
	top_view_init(&loop.view, options->interval_ns);
	top_canvas_init(&loop.canvas, is_utf8);
	status = top_source_init(&loop.source, options->directory, false);
	if (status == OK)
		loop_run(&loop);
	top_screen_close();
	if (status != OK)
		code = cli_error("cannot watch the processes: %s", strerror(errno));
	top_source_release(&loop.source);
	top_canvas_release(&loop.canvas);
	if (ending != 0) {
		/* The shell sees the right exit status. */
		send_to_self(ending);
		_exit(128 + ending);
	}
	return code;
}

static bool is_utf8_locale(void)
{
	setlocale(LC_CTYPE, "");
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

int main(int argc, char **argv)
{
	const struct file_opener_settings impatient = { .patience_ns = 50 * MS_NS,
							.penalty_ns = 60 * SECOND_NS,
							.only_texts = true,
							.each_ns = 50 * MS_NS,
							.all_ns = 50 * MS_NS };
	bool is_utf8 = is_utf8_locale();
	struct top_options options;
	int code = top_options_parse(&options, argc, argv);

	if (code != -1)
		return code;
	file_opener_begin(&impatient);
	if (options.is_once || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return top_once(&options, is_utf8);
	if (!top_screen_open()) {
		const char *term = getenv("TERM");

		cli_error(
			"terminal type '%s' (TERM) does not support a live display; printing once",
			term ? term : "");
		return top_once(&options, is_utf8);
	}
	return top_loop(&options, is_utf8 && top_screen_has_blocks());
}
