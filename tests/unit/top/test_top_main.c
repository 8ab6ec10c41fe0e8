/*
 * ringside-top: what it does when, with a played terminal, clock and watch. The program is included for that; signals are
 * real ones, apart from those that it sends to itself.
 */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/attributes.h"
#include "common/clock.h"
#include "common/text.h"
#include "recording/watch.h"
#include "tests/support/noted_calls.h"
#include "tests/tap.h"
#include "top/top.h"

/* ---- the stage -------------------------------------------------------------------------------- */

/* What happens while the loop waits. */
struct turn {
	uint64_t later_ns;
	int error;   /* of ppoll(); 0 none */
	int signal;  /* 0 none */
	short input; /* revents of the keyboard, and of the watch */
	short watch;
	const char *keys;
	bool is_stranger; /* the watch's event is about another file */
};

enum { BEGIN_S = 1000 };

static struct {
	uint64_t now_ns;
	const struct turn *turns;
	size_t turn_count;
	const char *keys;
	bool is_stranger;
	unsigned int searches; /* scans until everything has been found */
	uint32_t ranks;
	enum status init, scan, look, model, draw;
	bool is_terminal[2], has_screen, has_blocks;
	bool is_interrupted; /* the next sleep */
	unsigned int width;
	const char *codeset;
	int parse;
	bool is_nameless;
	size_t host_room;
	struct top_options options;
} play;
static jmp_buf ended;

static const int signals_of_loop[] = {
	SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH
};

/* Without a turn left, the terminal is broken. */
static int play_ppoll(struct pollfd *fds, const struct timespec *time, const sigset_t *mask)
{
	struct turn turn = { .error = EBADF };
	sigset_t before;

	for (size_t i = 0; i < ARRAY_LENGTH(signals_of_loop); i++)
		if (sigismember(mask, signals_of_loop[i]))
			note("blocked: %d", signals_of_loop[i]);
	if (fds[0].fd != 0 || fds[0].events != POLLIN || fds[1].fd != 5 || fds[1].events != POLLIN)
		note("other descriptors");
	if (time == NULL)
		note("wait for ever");
	else
		note("wait %ld.%03ld s", (long)time->tv_sec, time->tv_nsec / 1000000);
	if (play.turn_count > 0) {
		turn = *play.turns++;
		play.turn_count--;
	}
	play.now_ns += turn.later_ns;
	play.keys = turn.keys;
	play.is_stranger = turn.is_stranger;
	fds[0].revents = turn.input;
	fds[1].revents = turn.watch;
	if (turn.signal != 0) {
		raise(turn.signal);
		sigprocmask(SIG_SETMASK, mask, &before);
		sigprocmask(SIG_SETMASK, &before, NULL);
	}
	errno = turn.error;
	return turn.error != 0 ? -1 : 0;
}

static int play_host(char *to, size_t size)
{
	play.host_room = size;
	if (!play.is_nameless)
		text_copy(to, size, "node-7");
	return play.is_nameless ? -1 : 0;
}

static enum status play_watch_init(struct watch *watch, const struct watch_settings *settings)
{
	memset(watch, 0, sizeof(*watch));
	note("watch %s, keep %d s", settings->directory ? settings->directory : "default",
	     (int)(settings->keep_ns / SECOND_NS));
	errno = EMFILE;
	return play.init;
}

static enum status play_scan(unsigned int flags)
{
	note("scan %u", flags);
	if (play.searches > 0)
		play.searches--;
	return play.scan;
}

static enum status play_look(struct live *live, uint64_t now_ns, uint64_t wall_ns)
{
	note("look at %d.%03d, wall %d", (int)(now_ns / SECOND_NS),
	     (int)(now_ns % SECOND_NS / 1000000), (int)wall_ns);
	live->job.rank_count = play.ranks;
	return play.look;
}

static int play_sleep(const struct timespec *time, struct timespec *left)
{
	note("sleep %ld.%03ld s", (long)time->tv_sec, time->tv_nsec / 1000000);
	errno = EINTR;
	if (!play.is_interrupted)
		return 0;
	play.is_interrupted = false;
	*left = (struct timespec){ .tv_sec = 0, .tv_nsec = 7000000 };
	return -1;
}

static enum top_key play_key(wchar_t *character)
{
	*character = 0;
	if (play.keys == NULL || *play.keys == '\0')
		return TOP_KEY_NONE;
	*character = (wchar_t)*play.keys++;
	return TOP_KEY_CHARACTER;
}

static enum status play_draw(const char *what, const struct top_view *view,
			     const struct top_around *around, unsigned int width,
			     unsigned int height)
{
	note("%s %ux%u%s%s%s", what, width, height, view->is_paused ? ", paused" : "",
	     around->remark[0] ? ": " : "", around->remark);
	return play.draw;
}

static int play_error(const char *format, ...) PRINTF_LIKE(1, 2);
static int play_error(const char *format, ...)
{
	char text[200];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	note("error: %s", text);
	return 2;
}

static void __attribute__((noreturn)) play_exit(int code)
{
	note("exit %d", code);
	longjmp(ended, 1);
}

static int play_parse(struct top_options *options)
{
	*options = play.options;
	return play.parse;
}

static const char *limits_name(const struct live *live)
{
	return live->limits.slow_times == 1 ? "once" : "twice";
}

#define gethostname(to, size) play_host(to, size)
#define watch_init(watch, settings) play_watch_init(watch, settings)
#define watch_release(watch) note("release")
#define watch_look(watch, flags) play_scan(flags)
#define watch_is_searching(watch) (play.searches > 0)
#define watch_fd(watch) 5
#define watch_heed(watch) (note("heed"), !play.is_stranger)
#define live_look(live, recording, now_ns, wall_ns) play_look(live, now_ns, wall_ns)
#define live_judge(live, now_ns) note("judge %s", limits_name(live))
#define clock_now_system() play.now_ns
#define clock_system_ns(clock) ((clock) == CLOCK_REALTIME ? UINT64_C(77) : 0)
#define top_model_make(to, live, view) ((void)(view), note("rows"), play.model)
#define nanosleep(time, left) play_sleep(time, left)
#define ppoll(fds, count, time, mask) play_ppoll(fds, time, mask)
#define raise(signal) note("raise %d", signal)
#define _exit(code) play_exit(code)
#define isatty(fd) play.is_terminal[fd]
#define setlocale(category, name) note("locale%s", name)
#define nl_langinfo(item) ((item) == CODESET ? play.codeset : "")
#define top_options_parse(options, argc, argv) ((void)(argc), (void)(argv), play_parse(options))
#define top_screen_open() (note("open"), play.has_screen)
#define top_screen_close() note("close")
#define top_screen_leave() note("leave")
#define top_screen_return() note("return")
#define top_screen_resize() note("resize")
#define top_screen_size(width, height) (*(width) = 80, *(height) = 24)
#define top_screen_show(canvas) note("show%s", (canvas)->is_utf8 ? "" : " ASCII")
#define top_screen_key(character) play_key(character)
#define top_screen_has_blocks() play.has_blocks
#define top_draw(canvas, model, view, around, width, height) \
	play_draw("draw", view, around, width, height)
#define top_draw_once(canvas, model, view, around, width) \
	play_draw((view)->is_once ? "draw once" : "draw", view, around, width, 0)
#define top_canvas_write(canvas, sink) \
	note("write to %d%s", (sink)->fd, (canvas)->is_utf8 ? "" : ", ASCII")
#define cli_width() play.width
#define cli_error(...) play_error(__VA_ARGS__)
#define cli_finish(sink, code) ((void)(sink), note("finish"), code)
#pragma push_macro("main")
#undef main
#define main top_program
int top_program(int argc, char **argv);
#include "top/top_main.c"
#undef main
#pragma pop_macro("main")
#undef raise

static void begin(void)
{
	memset(&play, 0, sizeof(play));
	play.now_ns = BEGIN_S * SECOND_NS;
	play.is_terminal[0] = play.is_terminal[1] = play.has_screen = play.has_blocks = true;
	play.codeset = "UTF-8";
	play.parse = -1;
	play.options = (struct top_options){ .interval_ns = 1500 * 1000000ull, .directory = "/d" };
	ending = stopped = continued = resized = 0;
	calls[0] = '\0';
}

static int run(const struct turn *turns, size_t count)
{
	static char *arguments[] = { "ringside-top", NULL };

	play.turns = turns;
	play.turn_count = count;
	return setjmp(ended) ? -1 : top_program(1, arguments);
}

/* ---- once ------------------------------------------------------------------------------------- */

#define LOOK_ONCE "scan 1\nlook at 1000.000, wall 77\njudge once\nrows\n"

static void test_once(void)
{
	begin();
	play.options.is_once = true;
	EXPECT_EQUAL(run(NULL, 0), 0);
	EXPECT_THAT("without a rank, one refresh tells as much as two",
		    is_called("locale\nwatch /d, keep 60 s\n" LOOK_ONCE
			      "draw once 200x0\nwrite to 1\nfinish\nrelease\n"));
	begin();
	play.options.is_once = true;
	play.options.directory = NULL;
	play.ranks = 1;
	play.width = 90;
	play.searches = 3;
	play.is_interrupted = true;
	play.codeset = "ANSI_X3.4-1968";
	EXPECT_EQUAL(run(NULL, 0), 0);
	EXPECT_THAT("rates are those between two refreshes, the first of which finds everything",
		    is_called("locale\nwatch default, keep 60 s\nscan 1\nscan 1\n" LOOK_ONCE
			      "sleep 1.500 s\nsleep 0.007 s\n" LOOK_ONCE
			      "draw once 90x0\nwrite to 1, ASCII\nfinish\nrelease\n"));
	begin();
	play.options.is_once = true;
	play.draw = ERR_NO_SPACE;
	EXPECT_EQUAL(run(NULL, 0), 2);
	EXPECT(strstr(calls, "draw once 200x0\nerror: out of memory\nrelease\n") != NULL);
	begin();
	play.options.is_once = true;
	play.init = ERR_SYSTEM;
	EXPECT_EQUAL(run(NULL, 0), 2);
	EXPECT(is_called("locale\nwatch /d, keep 60 s\n"
			 "error: cannot watch the processes: Too many open files\nrelease\n"));
}

/* Where it is printed once, and where there is a screen. */
static void test_ways(void)
{
	static const struct {
		bool is_once, has_input, has_output, has_screen;
		bool is_live;
	} cases[] = {
		{ false, true, true, true, true },    { true, true, true, true, false },
		{ false, false, true, true, false },  { false, true, false, true, false },
		{ false, false, false, true, false }, { false, true, true, false, false },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		begin();
		play.options.is_once = cases[i].is_once;
		play.is_terminal[0] = cases[i].has_input;
		play.is_terminal[1] = cases[i].has_output;
		play.has_screen = cases[i].has_screen;
		setenv("TERM", "vt52", 1);
		run(NULL, 0);
		EXPECT_EQUAL(strstr(calls, "wait") != NULL, cases[i].is_live);
		EXPECT_EQUAL(strstr(calls, "draw once") == NULL, cases[i].is_live);
		EXPECT_EQUAL(strstr(calls, "open\nerror: terminal type 'vt52' (TERM) does not "
					   "support a live display; printing once\nwatch") != NULL,
			     !cases[i].has_screen);
	}
	begin();
	play.has_screen = false;
	unsetenv("TERM");
	run(NULL, 0);
	EXPECT(strstr(calls, "terminal type ''") != NULL);
	begin();
	play.parse = 2;
	EXPECT_EQUAL(run(NULL, 0), 2);
	EXPECT_THAT("after wrong options it ends", is_called("locale\n"));
}

static void test_host(void)
{
	struct top_source source;

	begin();
	EXPECT_EQUAL(top_source_init(&source, NULL, true), OK);
	EXPECT(strcmp(source.around.host, "node-7") == 0);
	EXPECT_THAT("a name that does not fit is cut before the end",
		    play.host_room == sizeof(source.around.host) - 1);
	top_source_release(&source);
	play.is_nameless = true;
	EXPECT_EQUAL(top_source_init(&source, NULL, true), OK);
	EXPECT(strcmp(source.around.host, "?") == 0);
	top_source_release(&source);
}

/* ---- remarks ---------------------------------------------------------------------------------- */

static void test_remarks(void)
{
	static struct recording_left_out left_out = { .owner = 1001 };
	static struct watch_refused refused[2] = { { .path = "/a", .why = "no header" } };
	static const struct {
		enum status status;
		size_t refused, left_out, unreadable;
		const char *text;
	} cases[] = {
		{ OK, 0, 0, 0, "" },
		{ ERR_NO_SPACE, 1, 1, 1, NULL },
		{ OK, 1, 1, 1, "1 file cannot be read: /a: no header" },
		{ OK, 2, 0, 0, "2 files cannot be read: /a: no header" },
		{ OK, 0, 5, 1,
		  "5 processes are not shown: uid 1001 has too many, or too large ones" },
		{ OK, 0, 0, 1,
		  "1 recording of other users cannot be read; run as root to see them" },
		{ OK, 0, 0, 2,
		  "2 recordings of other users cannot be read; run as root to see them" },
	};
	static struct top_source source;

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		char failed[100];

		snprintf(failed, sizeof(failed), "refresh failed: %s", status_text(ERR_NO_SPACE));
		source.watch.refused = refused;
		source.watch.refused_count = cases[i].refused;
		source.watch.left_out = cases[i].left_out;
		source.watch.recording.left_out = &left_out;
		source.watch.unreadable = cases[i].unreadable;
		source_remark(&source, cases[i].status);
		EXPECT(strcmp(source.around.remark, cases[i].text ? cases[i].text : failed) == 0);
	}
}

/* ---- the loop --------------------------------------------------------------------------------- */

#define START "locale\nopen\nwatch /d, keep 60 s\n"
#define LOOK(when) "scan 1\nlook at " when ", wall 77\njudge twice\nrows\ndraw 80x24\nshow\n"
#define DRAW "draw 80x24\nshow\n"
#define END "close\nrelease\n"

static void test_refreshes(void)
{
	static const struct turn turns[] = {
		{ .later_ns = 600 * 1000000ull },  /* too early */
		{ .later_ns = 900 * 1000000ull },  /* just in time */
		{ .later_ns = 5000 * 1000000ull }, /* late */
		{ .later_ns = 0, .error = EINTR },
	};

	begin();
	EXPECT_EQUAL(run(turns, ARRAY_LENGTH(turns)), 0);
	EXPECT_THAT("every 1.5 s, until the terminal is gone",
		    is_called(START LOOK("1000.000") "wait 1.500 s\nwait 0.900 s\n" LOOK(
			    "1001.500") "wait 1.500 s\n" LOOK("1006.500") "wait 1.500 s\nwait "
									  "1.500 s\n" END));
}

static void test_failures(void)
{
	char wanted[1000];

	begin();
	play.scan = ERR_SYSTEM;
	play.searches = 5;
	run(NULL, 0);
	snprintf(wanted, sizeof(wanted),
		 START "scan 1\nlook at 1000.000, wall 77\njudge twice\nrows\ndraw 80x24: refresh "
		       "failed: %s\nshow\nwait 1.500 s\n" END,
		 status_text(ERR_SYSTEM));
	EXPECT_THAT("after a failed scan the last state is shown", is_called(wanted));
	begin();
	play.look = ERR_NO_SPACE;
	run(NULL, 0);
	snprintf(wanted, sizeof(wanted),
		 START "scan 1\nlook at 1000.000, wall 77\nrows\ndraw 80x24: refresh failed: "
		       "%s\nshow\nwait 1.500 s\n" END,
		 status_text(ERR_NO_SPACE));
	EXPECT_THAT("what could not be looked at is not judged", is_called(wanted));
	begin();
	play.model = ERR_NO_SPACE;
	run(NULL, 0);
	EXPECT(strstr(calls, "rows\ndraw 80x24: refresh failed: ") != NULL);
	begin();
	play.draw = ERR_NO_SPACE;
	run(NULL, 0);
	EXPECT_THAT("what could not be drawn is not shown",
		    strstr(calls, "draw") != NULL && strstr(calls, "show") == NULL);
	begin();
	play.init = ERR_SYSTEM;
	EXPECT_EQUAL(run(NULL, 0), 2);
	EXPECT_THAT("the error is printed when the terminal is restored",
		    is_called(START
			      "close\nerror: cannot watch the processes: Too many open files\n"
			      "release\n"));
}

static void test_keys(void)
{
	static const struct turn quit[] = { { .keys = "sq"
						      "s" } };
	static const struct turn several[] = { { .keys = "zs/" }, { .keys = "z" } };
	static const struct turn nothing[] = { { .keys = "z" } };
	static const struct turn pause[] = { { .keys = "p", .later_ns = 100 },
					     { .later_ns = 100 * SECOND_NS },
					     { .keys = "p", .later_ns = 1 },
					     { .keys = "q" } };
	static const struct turn short_pause[] = { { .keys = "p", .later_ns = 1000000 },
						   { .keys = "z", .later_ns = 1000000 },
						   { .keys = "p", .later_ns = 1000000 } };
	static const struct turn faster[] = { { .keys = "-", .later_ns = 1000000 } };

	begin();
	EXPECT_EQUAL(run(quit, 1), 0);
	EXPECT_THAT("the rest is not read after q, nor drawn",
		    is_called(START LOOK("1000.000") "wait 1.500 s\nrows\n" END));
	begin();
	run(several, 2);
	EXPECT_THAT("drawn once for all keys, with the rows after each",
		    is_called(START LOOK("1000.000") "wait 1.500 s\nrows\nrows\n" DRAW
						     "wait 1.500 s\nrows\n" DRAW
						     "wait 1.500 s\n" END));
	begin();
	run(nothing, 1);
	EXPECT_THAT("a key without a meaning changes nothing",
		    is_called(START LOOK("1000.000") "wait 1.500 s\nwait 1.500 s\n" END));
	begin();
	run(pause, ARRAY_LENGTH(pause));
	EXPECT_THAT(
		"no refresh during a pause, and one at its end",
		is_called(START LOOK("1000.000") "wait 1.500 s\nrows\ndraw 80x24, paused\nshow\n"
						 "wait for ever\nwait for ever\nrows\n" DRAW LOOK(
							 "1100.000") "wait 1.500 s\n" END));
	begin();
	run(short_pause, ARRAY_LENGTH(short_pause));
	EXPECT_THAT(
		"also if the next one was not due yet",
		is_called(START LOOK("1000.000") "wait 1.500 s\nrows\ndraw 80x24, paused\nshow\n"
						 "wait for ever\nwait for ever\nrows\n" DRAW LOOK(
							 "1000.003") "wait 1.500 s\n" END));
	begin();
	run(faster, 1);
	EXPECT_THAT("another interval begins at once",
		    is_called(START LOOK("1000.000") "wait 1.500 s\nrows\n" DRAW LOOK(
			    "1000.001") "wait 1.000 s\n" END));
	begin();
	play.model = ERR_NO_SPACE;
	run(several, 1);
	EXPECT(strstr(calls, "wait 1.500 s\nrows\nrows\ndraw 80x24: refresh failed: ") != NULL);
}

static void test_events(void)
{
	static const short broken[] = { POLLHUP, POLLERR, POLLNVAL };
	static const struct turn new_one[] = { { .watch = POLLIN, .later_ns = 100 * 1000000ull },
					       { .later_ns = 100 * 1000000ull } };
	static const struct turn stranger[] = { { .watch = POLLIN, .is_stranger = true } };
	static const struct turn soon[] = { { .later_ns = 1310 * 1000000ull },
					    { .watch = POLLIN } };

	for (size_t i = 0; i < ARRAY_LENGTH(broken); i++) {
		struct turn turns[] = { { .input = broken[i], .keys = "s" } };

		begin();
		run(turns, 1);
		EXPECT_THAT("it ends with its terminal",
			    is_called(START LOOK("1000.000") "wait 1.500 s\n" END));
	}
	begin();
	run(&(struct turn){ .input = POLLIN, .keys = "z" }, 1);
	EXPECT(is_called(START LOOK("1000.000") "wait 1.500 s\nwait 1.500 s\n" END));
	begin();
	run(new_one, 2);
	EXPECT_THAT("a new process is shown 0.2 s later",
		    is_called(START LOOK("1000.000") "wait 1.500 s\nheed\nwait 0.100 s\n" LOOK(
			    "1000.200") "wait 1.500 s\n" END));
	begin();
	run(stranger, 1);
	EXPECT(is_called(START LOOK("1000.000") "wait 1.500 s\nheed\nwait 1.500 s\n" END));
	begin();
	run(soon, 2);
	EXPECT_THAT("what is due sooner anyway is not put off",
		    is_called(START LOOK("1000.000") "wait 1.500 s\nwait 0.190 s\nheed\nwait 0.190 "
						     "s\n" END));
}

/* ---- signals ---------------------------------------------------------------------------------- */

static void test_signals(void)
{
	static const int fatal[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };
	static const struct turn stop[] = { { .signal = SIGTSTP, .error = EINTR } };
	static const struct turn back[] = { { .signal = SIGCONT, .error = EINTR } };
	static const struct turn resize[] = { { .signal = SIGWINCH, .error = EINTR } };
	char wanted[1000];

	for (size_t i = 0; i < ARRAY_LENGTH(fatal); i++) {
		struct turn turns[] = { { .signal = fatal[i], .error = EINTR, .keys = "s" } };

		begin();
		EXPECT_EQUAL(run(turns, 1), -1);
		snprintf(wanted, sizeof(wanted),
			 START LOOK("1000.000") "wait 1.500 s\n" END "raise %d\nexit %d\n",
			 fatal[i], 128 + fatal[i]);
		EXPECT_THAT("the terminal is restored before it dies from the signal",
			    is_called(wanted));
	}
	begin();
	run(stop, 1);
	snprintf(wanted, sizeof(wanted),
		 START LOOK("1000.000") "wait 1.500 s\nleave\nraise %d\nreturn\n" DRAW
					"wait 1.500 s\n" END,
		 SIGTSTP);
	EXPECT(is_called(wanted));
	begin();
	run(back, 1);
	EXPECT(is_called(START LOOK("1000.000") "wait 1.500 s\nreturn\n" DRAW
						"wait 1.500 s\n" END));
	begin();
	run(resize, 1);
	EXPECT(is_called(START LOOK("1000.000") "wait 1.500 s\nresize\n" DRAW
						"wait 1.500 s\n" END));
}

/* What the caller ignores stays ignored; the rest is blocked, except while it waits. */
static void test_mask(void)
{
	struct sigaction ignored = { .sa_handler = SIG_IGN }, plain = { .sa_handler = SIG_DFL };
	struct sigaction now;
	sigset_t blocked, waiting;

	sigemptyset(&blocked);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	for (size_t i = 0; i < ARRAY_LENGTH(signals_of_loop); i++)
		sigaction(signals_of_loop[i], &plain, NULL);
	sigaction(SIGHUP, &ignored, NULL);
	catch_signals(&waiting);
	sigprocmask(SIG_SETMASK, NULL, &blocked);
	for (size_t i = 0; i < ARRAY_LENGTH(signals_of_loop); i++) {
		int signal = signals_of_loop[i];

		sigaction(signal, NULL, &now);
		EXPECT(now.sa_handler == (signal == SIGHUP ? SIG_IGN : signal_note));
		EXPECT_EQUAL(sigismember(&blocked, signal), signal != SIGHUP);
		EXPECT_EQUAL(sigismember(&waiting, signal), 0);
	}
	begin();
	send_to_self(SIGTERM);
	sigaction(SIGTERM, NULL, &now);
	sigprocmask(SIG_SETMASK, NULL, &blocked);
	EXPECT_THAT("what it sends to itself is handled and blocked as before, afterwards",
		    now.sa_handler == signal_note && sigismember(&blocked, SIGTERM));
}

static void test_blocks(void)
{
	begin();
	play.has_blocks = false;
	run(NULL, 0);
	EXPECT(strstr(calls, "show ASCII") != NULL);
	begin();
	play.codeset = "ISO-8859-1";
	run(NULL, 0);
	EXPECT(strstr(calls, "show ASCII") != NULL);
}

int main(void)
{
	test_once();
	test_ways();
	test_host();
	test_remarks();
	test_refreshes();
	test_failures();
	test_keys();
	test_events();
	test_signals();
	test_blocks();
	test_mask();
	return tap_done();
}
