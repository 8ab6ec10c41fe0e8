/*
 * The hook at its limits: whose turn it is, what it gets and what is logged about it. The log is played; the file is
 * included for that.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"

static int play_log(enum serve_level level, const char *format, ...) PRINTF_LIKE(2, 3);
#define serve_log play_log
#include "serve/serve_hook.c"

#include <sys/resource.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "common/clock.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

#define BEGIN (1000 * SECOND_NS)

static struct serve_hook hook;
static char said[20000];

static int play_log(enum serve_level level, const char *format, ...)
{
	char line[1000];
	va_list list;

	va_start(list, format);
	vsnprintf(line, sizeof(line), format, list);
	va_end(list);
	text_append(said, sizeof(said), "<%d>%s\n", (int)level, line);
	return CLI_EXIT_UNKNOWN;
}

static bool is_said(const char *wanted)
{
	bool is_same = strcmp(said, wanted) == 0;

	if (!is_same)
		printf("# got %s# wanted %s", said, wanted);
	said[0] = '\0';
	return is_same;
}

static void begin(const char *command)
{
	said[0] = '\0';
	EXPECT(serve_hook_init(&hook, command, -1) == NULL);
}

static bool give(uint64_t user, bool may_wait, uint64_t now_ns)
{
	struct serve_hook_event event = { .user = user };

	return serve_hook_give(&hook, &event, may_wait, now_ns);
}

/* What waits is dropped, as if it had run. */
static void drop(size_t count)
{
	for (; count > 0; count--) {
		serve_hook_event_release(&hook.queue[hook.first]);
		hook.first = (hook.first + 1) % SERVE_HOOK_QUEUE;
		hook.count--;
	}
}

/* ---- turns ------------------------------------------------------------------------------------ */

static void test_minute(void)
{
	begin("/bin/true");
	for (uint64_t i = 0; i < SERVE_HOOK_A_MINUTE; i++) {
		EXPECT(give(5, true, BEGIN + i));
		drop(1);
	}
	EXPECT_THAT("ten per minute", !serve_hook_has_turn(&hook, 5, BEGIN + 10) &&
					      !give(5, true, BEGIN + 10) && hook.left_out == 1);
	EXPECT_THAT("others have their own", serve_hook_has_turn(&hook, 6, BEGIN + 10));
	EXPECT_THAT("what must not wait is not counted", give(5, false, BEGIN + 10));
	drop(1);
	EXPECT(!serve_hook_has_turn(&hook, 5, BEGIN + SERVE_HOOK_MINUTE_NS - 1));
	EXPECT_THAT("a minute after the first there is a turn again",
		    serve_hook_has_turn(&hook, 5, BEGIN + SERVE_HOOK_MINUTE_NS) &&
			    give(5, true, BEGIN + SERVE_HOOK_MINUTE_NS));
	drop(1);
	EXPECT(!serve_hook_has_turn(&hook, 5, BEGIN + SERVE_HOOK_MINUTE_NS) &&
	       serve_hook_has_turn(&hook, 5, BEGIN + SERVE_HOOK_MINUTE_NS + 1));
	serve_hook_release(&hook);
}

static void test_users(void)
{
	begin("/bin/true");
	for (uint64_t user = 0; user < SERVE_HOOK_USERS; user++) {
		EXPECT(give(100 + user, true, BEGIN + user));
		drop(1);
	}
	EXPECT_THAT("16 users per minute", !serve_hook_has_turn(&hook, 7, BEGIN + 20) &&
						   serve_hook_has_turn(&hook, 100, BEGIN + 20));
	EXPECT(!serve_hook_has_turn(&hook, 7, BEGIN + SERVE_HOOK_MINUTE_NS - 1));
	EXPECT_THAT("the slot of one that has not called for a minute is free",
		    give(7, true, BEGIN + SERVE_HOOK_MINUTE_NS));
	drop(1);
	{
		size_t slots = 0;

		for (size_t i = 0; i < SERVE_HOOK_USERS; i++)
			slots += hook.turns[i].user == 7 && hook.turns[i].next == 1 &&
				 hook.turns[i].taken_ns[0] == BEGIN + SERVE_HOOK_MINUTE_NS &&
				 hook.turns[i].taken_ns[1] == 0;
		EXPECT_EQUAL(slots, 1);
	}
	EXPECT(!serve_hook_has_turn(&hook, 8, BEGIN + SERVE_HOOK_MINUTE_NS));
	serve_hook_release(&hook);
}

static void test_queue(void)
{
	begin("/bin/true");
	hook.first = SERVE_HOOK_QUEUE - 3;
	for (int i = 0; i < SERVE_HOOK_QUEUE / 2; i++)
		EXPECT(give(5, false, BEGIN));
	EXPECT_EQUAL(count_waiting(&hook, 5), SERVE_HOOK_QUEUE / 2);
	EXPECT_EQUAL(count_waiting(&hook, 6), 0);
	EXPECT_THAT("half of the queue may be one user's",
		    !serve_hook_has_turn(&hook, 5, BEGIN) && serve_hook_has_turn(&hook, 6, BEGIN));
	drop(1);
	EXPECT(serve_hook_has_turn(&hook, 5, BEGIN));
	while (hook.count < SERVE_HOOK_QUEUE)
		EXPECT(give(6 + hook.count, false, BEGIN));
	EXPECT_THAT("the queue is full", !give(99, false, BEGIN) && hook.left_out == 1 &&
						 !serve_hook_has_turn(&hook, 99, BEGIN) &&
						 hook.count == SERVE_HOOK_QUEUE);
	serve_hook_release(&hook);
	EXPECT(hook.count == 0 && hook.command == NULL);
	EXPECT_THAT("no hook takes nothing",
		    !give(5, false, BEGIN) && serve_hook_run(&hook, BEGIN) == UINT64_MAX);
}

/* ---- what it gets ----------------------------------------------------------------------------- */

static bool has_variable(char **list, const char *variable)
{
	for (size_t i = 0; list[i]; i++)
		if (strcmp(list[i], variable) == 0)
			return true;
	return false;
}

static size_t length_of(char **list)
{
	size_t count = 0;

	while (list[count])
		count++;
	return count;
}

static void test_environment(void)
{
	static char *own[] = { "PATH=/bin",
			       "NOTIFY_SOCKET=/x",
			       "WATCHDOG_USEC=1",
			       "WATCHDOG_PID=1",
			       "LISTEN_FDS=1",
			       "LISTEN_PID=1",
			       "LISTEN_FDNAMES=",
			       "JOURNAL_STREAM=1",
			       "LISTEN_FDSX=1",
			       "RINGSIDE_JOB=old",
			       "RINGSIDE_JO=kept",
			       "HOME=/root",
			       NULL };
	char **saved = environ, **list;
	struct serve_hook_event event = { .input = NULL };
	char large[600];

	environ = own;
	serve_hook_variable(&event, "EVENT", "%s", "one\ntwo");
	serve_hook_variable(&event, "JOB", "%d", 7);
	list = environment_of(&event);
	EXPECT(length_of(list) == 6 && has_variable(list, "PATH=/bin") &&
	       has_variable(list, "LISTEN_FDSX=1") && has_variable(list, "RINGSIDE_JO=kept") &&
	       has_variable(list, "HOME=/root") && has_variable(list, "RINGSIDE_EVENT=one?two") &&
	       has_variable(list, "RINGSIDE_JOB=7"));
	free(list);
	environ = NULL;
	list = environment_of(&event);
	EXPECT_EQUAL(length_of(list), 2);
	free(list);
	environ = saved;
	while (event.variable_count < SERVE_HOOK_VARIABLES)
		serve_hook_variable(&event, "X", "%s", "y");
	EXPECT(!event.is_lost);
	serve_hook_variable(&event, "X", "%s", "y");
	EXPECT_THAT("24 variables, then the event is lost",
		    event.is_lost && event.variable_count == SERVE_HOOK_VARIABLES);
	begin("/bin/true");
	EXPECT(!serve_hook_give(&hook, &event, false, BEGIN) && event.variable_count == 0 &&
	       hook.left_out == 1);
	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	serve_hook_variable(&event, "L", "%s", large);
	EXPECT_EQUAL(strlen(event.variables[0]), strlen("RINGSIDE_L=") + 511);
	serve_hook_event_release(&event);
	EXPECT(event.variable_count == 0 && event.input == NULL);
	serve_hook_release(&hook);
}

static void test_input(void)
{
	char bytes[20] = "";
	struct serve_hook_event event = { .input = "hello", .input_length = 5 };
	int fd = input_of(&event);

	EXPECT(read(fd, bytes, sizeof(bytes)) == 5 && strcmp(bytes, "hello") == 0);
	close(fd);
	event.input_length = 0;
	fd = input_of(&event);
	EXPECT(fd != -1 && read(fd, bytes, sizeof(bytes)) == 0);
	close(fd);
}

static void test_commands(void)
{
	char many[200] = "/bin/true";

	EXPECT(serve_hook_init(&hook, "bin/true", 7) != NULL && hook.epoll == 7 &&
	       hook.output == -1);
	begin(" \t/bin/echo\ta  b ");
	EXPECT(strcmp(hook.words[0], "/bin/echo") == 0 && strcmp(hook.words[1], "a") == 0 &&
	       strcmp(hook.words[2], "b") == 0 && hook.words[3] == NULL &&
	       hook.timeout_ns == 60 * SECOND_NS && hook.grace_ns == 5 * SECOND_NS);
	serve_hook_release(&hook);
	for (int i = 1; i < SERVE_HOOK_WORDS; i++)
		text_append(many, sizeof(many), " x");
	begin(many);
	serve_hook_release(&hook);
	text_append(many, sizeof(many), " x");
	EXPECT(strcmp(serve_hook_init(&hook, many, -1), "more than 32 words") == 0);
	serve_hook_release(&hook);
	said[0] = '\0';
	EXPECT(serve_hook_open(&hook, "true", 7, -1) == CLI_EXIT_UNKNOWN);
	EXPECT(strncmp(said, "<3>--hook true: must begin with", 31) == 0);
	said[0] = '\0';
	EXPECT(serve_hook_open(&hook, "/none/of/this x", 7, -1) == 0 && hook.timeout_ns == 7);
	EXPECT(is_said("<4>--hook /none/of/this: No such file or directory\n"));
	serve_hook_release(&hook);
	EXPECT(serve_hook_open(&hook, "/bin/sh", 7, -1) == 0 && is_said(""));
	serve_hook_release(&hook);
	EXPECT(serve_hook_open(&hook, NULL, 7, -1) == 0 && is_said(""));
}

/* ---- output ----------------------------------------------------------------------------------- */

static void test_lines(void)
{
	char line[SERVE_HOOK_LINE + 20], wanted[SERVE_HOOK_LINE + 40];

	begin("/bin/true");
	take_output(&hook, "one\n\n\ntw", 8);
	EXPECT(is_said("<6>hook output: one\n") && hook.line_used == 2);
	take_output(&hook, "o\nthree", 7);
	EXPECT(is_said("<6>hook output: two\n"));
	end_line(&hook);
	EXPECT(is_said("<6>hook output: three\n") && hook.lines == 3);
	memset(line, 'x', sizeof(line));
	take_output(&hook, line, sizeof(line));
	EXPECT_EQUAL(hook.line_used, SERVE_HOOK_LINE);
	end_line(&hook);
	text_format(wanted, sizeof(wanted), "<6>hook output: %.*s\n", SERVE_HOOK_LINE, line);
	EXPECT(is_said(wanted));
	while (hook.lines < SERVE_HOOK_LINES)
		take_output(&hook, "x\n", 2);
	EXPECT_EQUAL(hook.lines_left_out, 0);
	said[0] = '\0';
	take_output(&hook, "x\ny\n", 4);
	EXPECT(is_said("") && hook.lines_left_out == 2 && hook.lines == SERVE_HOOK_LINES);
	serve_hook_release(&hook);
}

static void test_reading(void)
{
	static char bytes[16384];
	int ends[2];

	begin("/bin/true");
	EXPECT(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
	hook.output = ends[0];
	read_output(&hook);
	EXPECT_THAT("nothing yet", hook.output == ends[0] && hook.output_bytes == 0);
	EXPECT(write(ends[1], "ab\n", 3) == 3);
	read_output(&hook);
	EXPECT(hook.output_bytes == 3 && is_said("<6>hook output: ab\n"));
	hook.output_bytes = SERVE_HOOK_OUTPUT - sizeof(bytes) - 1;
	EXPECT(write(ends[1], bytes, sizeof(bytes)) == sizeof(bytes));
	read_output(&hook);
	EXPECT(hook.output == ends[0] && hook.output_bytes == SERVE_HOOK_OUTPUT - 1);
	EXPECT(write(ends[1], "c", 1) == 1);
	read_output(&hook);
	EXPECT_THAT("a MiB is read, not more", hook.output == -1);
	read_output(&hook);
	close(ends[1]);
	EXPECT(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
	hook.output = ends[0];
	hook.output_bytes = 0;
	close(ends[1]);
	read_output(&hook);
	EXPECT_THAT("its end", hook.output == -1);
	serve_hook_release(&hook);
}

/* ---- the end ---------------------------------------------------------------------------------- */

static void test_told(void)
{
	begin("/bin/true");
	text_copy(hook.about, sizeof(hook.about), "appeared: x");
	hook.begun_ns = BEGIN;
	tell_end(&hook, 0, BEGIN + 1500 * MS_NS);
	EXPECT(is_said("<6>hook /bin/true: done in 1.5 s (appeared: x)\n"));
	hook.is_terminated = true;
	tell_end(&hook, 3 << 8, BEGIN + 2000 * MS_NS);
	EXPECT(is_said(
		"<4>hook /bin/true: exit code 3 after 2.0 s (appeared: x): timed out and was "
		"terminated\n"));
	hook.is_terminated = false;
	hook.lines_left_out = 2;
	tell_end(&hook, 9, BEGIN);
	EXPECT(is_said("<4>hook /bin/true: signal 9 after 0.0 s (appeared: x)\n"
		       "<6>hook /bin/true: 2 more lines of output not shown\n"));
	hook.output_bytes = SERVE_HOOK_OUTPUT - 1;
	hook.lines_left_out = 0;
	tell_end(&hook, 0, BEGIN);
	EXPECT(is_said("<6>hook /bin/true: done in 0.0 s (appeared: x)\n"));
	hook.output_bytes++;
	hook.lines_left_out = 1;
	tell_end(&hook, 0, BEGIN);
	EXPECT(is_said("<6>hook /bin/true: done in 0.0 s (appeared: x)\n"
		       "<4>hook /bin/true: wrote more than 1024 KiB, the rest was not read\n"));
	serve_hook_release(&hook);
}

static void test_delayed(void)
{
#define DELAYED(count)                                                                       \
	"<4>hook /bin/true: " count " calls delayed: more than 10 per minute for one user, " \
	"or the hook is too slow; lasting verdicts are passed on later\n"
	begin("/bin/true");
	EXPECT(serve_hook_run(&hook, BEGIN) == UINT64_MAX && is_said(""));
	hook.left_out = 2;
	EXPECT(serve_hook_run(&hook, BEGIN) == UINT64_MAX && is_said(DELAYED("2")));
	hook.left_out = 5;
	EXPECT_EQUAL(serve_hook_run(&hook, BEGIN + SERVE_HOOK_MINUTE_NS - 1),
		     BEGIN + SERVE_HOOK_MINUTE_NS);
	EXPECT(is_said(""));
	EXPECT(serve_hook_run(&hook, BEGIN + SERVE_HOOK_MINUTE_NS) == UINT64_MAX &&
	       is_said(DELAYED("3")));
	serve_hook_release(&hook);
}

/* One that does not end gets SIGTERM, then SIGKILL; its group, too. */
static void test_late(void)
{
	char path[96], wanted[200];
	FILE *file;
	pid_t pid;

	text_format(path, sizeof(path), "%s/stays", scratch_dir.path);
	file = fopen(path, "we");
	fputs("#!/bin/sh\ntrap '' TERM\necho ready\nwhile :; do sleep 600; done\n", file);
	fclose(file);
	chmod(path, 0700);
	begin(path);
	hook.epoll = epoll_create1(EPOLL_CLOEXEC);
	EXPECT(give(5, false, BEGIN) && give(5, false, BEGIN));
	EXPECT_EQUAL(serve_hook_run(&hook, BEGIN), BEGIN + 60 * SECOND_NS);
	pid = hook.pid;
	EXPECT(pid > 0 && hook.runs == 1 && hook.count == 1 && getpgid(pid) == pid &&
	       hook.begun_ns == BEGIN && (fcntl(hook.output, F_GETFL) & O_NONBLOCK) != 0);
	EXPECT(epoll_ctl(hook.epoll, EPOLL_CTL_DEL, hook.output, NULL) == 0);
	end_late_one(&hook, BEGIN + 60 * SECOND_NS - 1);
	EXPECT(!hook.is_terminated);
	/* From now on it does not end by SIGTERM. */
	while (said[0] == '\0') {
		serve_hook_handle(&hook, BEGIN);
		poll(NULL, 0, 1);
	}
	EXPECT(is_said("<6>hook output: ready\n"));
	end_late_one(&hook, BEGIN + 60 * SECOND_NS);
	EXPECT(hook.is_terminated && !hook.is_killed && hook.end_by_ns == BEGIN + 65 * SECOND_NS);
	end_late_one(&hook, BEGIN + 65 * SECOND_NS);
	EXPECT(hook.is_killed && hook.end_by_ns == BEGIN + 70 * SECOND_NS);
	while (hook.runs == 1) {
		serve_hook_run(&hook, BEGIN + 66 * SECOND_NS);
		poll(NULL, 0, 1);
	}
	text_format(wanted, sizeof(wanted),
		    "<4>hook %s: signal 9 after 66.0 s (): timed out and was terminated\n", path);
	EXPECT(is_said(wanted) && hook.failures == 1 && hook.pid > 0 && !hook.is_terminated);
	pid = hook.pid;
	close(hook.epoll);
	serve_hook_release(&hook);
	EXPECT(hook.pid == 0 && hook.output == -1 && kill(pid, 0) == -1);
}

static void test_cannot_start(void)
{
	struct rlimit files, few;
	int next;

	begin("/bin/true");
	give(5, false, BEGIN);
	getrlimit(RLIMIT_NOFILE, &files);
	for (rlim_t more = 0; more < 3; more++) {
		give(5, false, BEGIN);
		next = dup(0);
		close(next);
		few = files;
		few.rlim_cur = (rlim_t)next + more;
		setrlimit(RLIMIT_NOFILE, &few);
		hook.pid = 0;
		start_next(&hook, BEGIN);
		setrlimit(RLIMIT_NOFILE, &files);
		EXPECT(hook.pid == 0 && hook.failures == more + 1 && hook.runs == 0);
		EXPECT(is_said("<4>hook /bin/true: cannot start: Too many open files\n"));
		EXPECT_THAT("no descriptor is left", dup(0) == next);
		close(next);
	}
	serve_hook_release(&hook);
}

int main(void)
{
	scratch_make();
	test_minute();
	test_users();
	test_queue();
	test_environment();
	test_input();
	test_commands();
	test_lines();
	test_reading();
	test_told();
	test_delayed();
	test_late();
	test_cannot_start();
	return tap_done();
}
