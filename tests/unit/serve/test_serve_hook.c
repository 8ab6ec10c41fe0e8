/* The hook: one process at a time, bounded in number, time and output; it never blocks the agent. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "common/clock.h"
#include "common/text.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

static char log_path[200], out_path[200];

/* The agent's log goes to a file, which is read and emptied. */
static char *said(void)
{
	static char text[20000];
	FILE *file = fopen(log_path, "r");
	size_t got = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

	text[got] = '\0';
	if (file)
		fclose(file);
	if (truncate(log_path, 0) == -1)
		exit(1);
	return text;
}

static char *content(const char *path)
{
	static char text[20000];
	FILE *file = fopen(path, "r");
	size_t got = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

	text[got] = '\0';
	if (file)
		fclose(file);
	return text;
}

static const char *script(const char *name, const char *body)
{
	static char path[200];
	FILE *file;

	text_format(path, sizeof(path), "%s/%s", scratch_dir.path, name);
	file = fopen(path, "w");
	if (file == NULL)
		exit(1);
	fprintf(file, "#!/bin/sh\nout=%s\n%s\n", out_path, body);
	fclose(file);
	chmod(path, 0700);
	return path;
}

static bool give(struct serve_hook *hook, const char *what, bool may_be_left_out, uint64_t now_ns)
{
	struct serve_hook_event event = { .input = strdup("{\"event\":\"x\"}\n"),
					  .input_length = 14 };

	text_copy(event.about, sizeof(event.about), what);
	serve_hook_variable(&event, "EVENT", "%s", what);
	serve_hook_variable(&event, "JOB", "%s", "a\nb; rm -rf /");
	return serve_hook_give(hook, &event, may_be_left_out, now_ns);
}

/* Polls every 5 ms: give up after two minutes. */
enum { PATIENCE = 24000 };

/* Lets it end by itself: the hook's clock is stopped. */
static void settle(struct serve_hook *hook, uint64_t now_ns)
{
	for (int i = 0; i < PATIENCE && (hook->pid != 0 || hook->count > 0); i++) {
		serve_hook_run(hook, now_ns);
		serve_hook_handle(hook, now_ns);
		poll(NULL, 0, 5);
	}
	serve_hook_run(hook, now_ns);
}

static void test_fine(void)
{
	struct serve_hook hook;
	const char *path =
		script("fine", "cat >$out; echo \"$# $1 $2\" >>$out; env | grep ^RINGSIDE_ "
			       "| sort >>$out; ls /proc/self/fd | tr '\\n' ' ' >>$out; "
			       "echo hello; printf 'no end'");
	char command[300];

	text_format(command, sizeof(command), "%s  one \ttwo's", path);
	EXPECT(serve_hook_init(&hook, command, -1) == NULL);
	EXPECT(give(&hook, "appeared", true, SECOND_NS));
	settle(&hook, SECOND_NS);
	EXPECT_THAT(
		"it gets its arguments, input and variables, and no descriptors except three and "
		"ls's own",
		strcmp(content(out_path),
		       "{\"event\":\"x\"}\n2 one two's\nRINGSIDE_EVENT=appeared\n"
		       "RINGSIDE_JOB=a?b; rm -rf /\n0 1 2 3 ") == 0);
	EXPECT_THAT("its output and exit are logged", strcmp(said(), "") != 0);
	EXPECT_EQUAL(hook.runs, 1);
	EXPECT_EQUAL(hook.failures, 0);
	serve_hook_release(&hook);
}

static void test_said(void)
{
	struct serve_hook hook;
	char *text;

	EXPECT(serve_hook_init(&hook, script("says", "echo hello; printf 'no end'; exit 1"), -1) ==
	       NULL);
	give(&hook, "appeared", true, SECOND_NS);
	settle(&hook, SECOND_NS);
	text = said();
	EXPECT_THAT("output lines are logged",
		    strstr(text, "hook output: hello\n") && strstr(text, "hook output: no end\n"));
	EXPECT_THAT("and its exit code",
		    strstr(text, "exit code 1 after") && strstr(text, "(appeared)"));
	EXPECT_EQUAL(hook.failures, 1);
	serve_hook_release(&hook);
}

static void test_missing(void)
{
	struct serve_hook hook;
	char *text;

	EXPECT(strstr(serve_hook_init(&hook, "page-me", -1), "absolute path"));
	serve_hook_release(&hook);
	EXPECT(serve_hook_init(&hook, "/nowhere/page-me", -1) == NULL);
	give(&hook, "appeared", true, SECOND_NS);
	settle(&hook, SECOND_NS);
	text = said();
	EXPECT_THAT("a missing program is logged",
		    strstr(text, "/nowhere/page-me: No such file or directory") &&
			    strstr(text, "exit code 127"));
	EXPECT_EQUAL(hook.failures, 1);
	serve_hook_release(&hook);
	EXPECT(serve_hook_init(&hook, NULL, -1) == NULL);
	EXPECT(!give(&hook, "appeared", true, SECOND_NS));
	EXPECT(serve_hook_run(&hook, SECOND_NS) == UINT64_MAX);
	serve_hook_release(&hook);
}

static bool is_written(const char *path)
{
	for (int i = 0; i < PATIENCE; i++) {
		struct stat st;

		if (stat(path, &st) == 0 && st.st_size > 0)
			return true;
		poll(NULL, 0, 5);
	}
	return false;
}

static bool is_gone(pid_t pid)
{
	for (int i = 0; i < PATIENCE; i++) {
		if (kill(pid, 0) == -1 && errno == ESRCH)
			return true;
		poll(NULL, 0, 5);
	}
	return false;
}

static void test_hangs(void)
{
	struct serve_hook hook;
	uint64_t now_ns = SECOND_NS;
	pid_t grandchild;
	char *text;

	unlink(out_path);
	EXPECT(serve_hook_init(&hook,
			       script("hangs",
				      "trap '' TERM; sleep 1000 & echo $! >$out; wait; sleep 1000"),
			       -1) == NULL);
	give(&hook, "appeared", true, now_ns);
	give(&hook, "cleared", false, now_ns);
	EXPECT_THAT("it is due at its timeout",
		    serve_hook_run(&hook, now_ns) == now_ns + SERVE_HOOK_TIMEOUT_NS);
	EXPECT(is_written(out_path));
	grandchild = (pid_t)atoi(content(out_path));
	serve_hook_run(&hook, now_ns + SERVE_HOOK_TIMEOUT_NS - 1);
	EXPECT_THAT("until then it runs and the next one waits",
		    hook.pid > 0 && !hook.is_terminated && hook.count == 1);
	now_ns += SERVE_HOOK_TIMEOUT_NS;
	EXPECT_THAT("then it gets SIGTERM and a grace period",
		    serve_hook_run(&hook, now_ns) == now_ns + SERVE_HOOK_GRACE_NS);
	EXPECT(hook.is_terminated && !hook.is_killed);
	now_ns += SERVE_HOOK_GRACE_NS;
	serve_hook_run(&hook, now_ns);
	EXPECT_THAT("then SIGKILL", hook.is_killed);
	for (int i = 0; i < PATIENCE && hook.count == 1; i++) {
		serve_hook_handle(&hook, now_ns);
		serve_hook_run(&hook, now_ns);
		poll(NULL, 0, 5);
	}
	text = said();
	EXPECT(strstr(text, "signal 9 after 65.0 s (appeared): timed out and was terminated"));
	EXPECT_THAT("its children are killed, too", is_gone(grandchild));
	EXPECT_THAT("the next one runs", hook.runs == 2 && hook.pid > 0);
	serve_hook_release(&hook);
}

static void test_floods(void)
{
	struct serve_hook hook;
	char *text, *at;
	int lines = 0;

	EXPECT(serve_hook_init(&hook, script("floods", "exec yes 'x\033[31m'"), -1) == NULL);
	give(&hook, "appeared", true, SECOND_NS);
	settle(&hook, SECOND_NS);
	text = said();
	for (at = text; (at = strstr(at, "hook output: x?[31m")) != NULL; at++)
		lines++;
	EXPECT_EQUAL(lines, SERVE_HOOK_LINES);
	EXPECT(strstr(text, "wrote more than 1024 KiB, the rest was not read"));
	EXPECT_THAT("it ended because its pipe was closed", strstr(text, "signal 13"));
	EXPECT(hook.output == -1 && hook.pid == 0);
	serve_hook_release(&hook);
}

static void test_rate(void)
{
	struct serve_hook hook;
	uint64_t now_ns = 5 * SECOND_NS;
	int taken = 0;
	char *text;

	unlink(out_path);
	EXPECT(serve_hook_init(&hook, script("counts", "echo $RINGSIDE_EVENT >>$out"), -1) == NULL);
	for (int i = 0; i < 15; i++)
		taken += give(&hook, "appeared", true, now_ns);
	EXPECT_EQUAL(taken, SERVE_HOOK_A_MINUTE);
	for (int i = 0; i < 10; i++)
		taken += give(&hook, "cleared", false, now_ns);
	EXPECT_THAT("events that cannot be delayed are accepted", taken == 20);
	settle(&hook, now_ns);
	text = said();
	EXPECT_THAT("the others are counted and logged", strstr(text, "5 calls delayed"));
	EXPECT_EQUAL(hook.runs, 20);
	EXPECT_THAT("in order", strncmp(content(out_path), "appeared\nappeared\n", 18) == 0);
	EXPECT(!give(&hook, "appeared", true, now_ns + SERVE_HOOK_MINUTE_NS - 1));
	EXPECT(give(&hook, "appeared", true, now_ns + SERVE_HOOK_MINUTE_NS));
	settle(&hook, now_ns + SERVE_HOOK_MINUTE_NS);
	serve_hook_release(&hook);

	EXPECT(serve_hook_init(&hook, "/bin/true", -1) == NULL);
	taken = 0;
	for (int i = 0; i < 100; i++)
		taken += give(&hook, "cleared", false, now_ns);
	EXPECT_EQUAL(taken, SERVE_HOOK_QUEUE);
	EXPECT_EQUAL(hook.left_out, 100 - SERVE_HOOK_QUEUE);
	serve_hook_release(&hook);
}

/* Outside its group it is not reached by the signal, like a process stuck in the kernel. It ends with the test. */
static void test_cannot_be_ended(void)
{
	struct serve_hook hook;
	const char *path = script("stays", "exec perl -e 'my $test = getppid; my $child = fork; "
					   "setpgrp(0, 0) if !$child; while ($child && !setpgrp(0, "
					   "$child)) { select undef, undef, undef, 0.01 } "
					   "print STDERR \"moved\\n\" if $child; "
					   "sleep 1 while kill 0, $test'");

	said();
	EXPECT(serve_hook_init(&hook, path, -1) == NULL);
	give(&hook, "appeared", true, SECOND_NS);
	for (int i = 0; i < PATIENCE && strstr(content(log_path), "moved") == NULL; i++) {
		serve_hook_run(&hook, SECOND_NS);
		serve_hook_handle(&hook, SECOND_NS);
		poll(NULL, 0, 5);
	}
	EXPECT(hook.pid > 0 && strstr(said(), "moved") != NULL);
	alarm(60);
	serve_hook_release(&hook);
	alarm(0);
	EXPECT_THAT("the agent ends nevertheless", hook.pid == 0);
}

int main(void)
{
	int fd;

	scratch_make();
	text_format(log_path, sizeof(log_path), "%s/log", scratch_dir.path);
	text_format(out_path, sizeof(out_path), "%s/out", scratch_dir.path);
	fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd == -1 || dup2(fd, STDERR_FILENO) == -1)
		return 1;
	test_fine();
	test_said();
	test_missing();
	test_hangs();
	test_floods();
	test_rate();
	test_cannot_be_ended();
	return tap_done();
}
