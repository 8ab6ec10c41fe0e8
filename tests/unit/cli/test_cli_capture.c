/* Programs that exit, that fail, and that cannot be killed. */
#include "cli/cli.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/tap.h"

static struct cli_capture got;

static enum status run(const char *script, unsigned int timeout_s)
{
	const char *words[] = { "sh", "-c", script, NULL };

	free(got.bytes);
	return cli_capture(&got, words, -1, timeout_s, 1000);
}

static void test_ends(void)
{
	EXPECT(run("echo hello", 60) == OK && got.exit_code == 0 && !got.is_cut);
	EXPECT(strcmp(got.bytes, "hello\n") == 0);
	EXPECT(run("echo no >&2; exit 3", 60) == OK && got.exit_code == 3);
	EXPECT(strcmp(got.why, "'sh' exited with 3: no") == 0);
	EXPECT(run("kill -9 $$", 60) == OK && got.exit_code == -1);
	signal(SIGCHLD, SIG_IGN);
	EXPECT_THAT("also when somebody ignored the end of children",
		    run("exit 4", 60) == OK && got.exit_code == 4);
	EXPECT_THAT("which is as it was then", signal(SIGCHLD, SIG_DFL) == SIG_IGN);
}

/* On a busy machine the program may need more time: repeat with a longer timeout. */
enum { MOST_S = 64 };

static void test_too_long(void)
{
	unsigned int timeout_s = 1;
	enum status status;
	char why[64];

	do {
		status = run("echo first; exec sleep 300", timeout_s);
		snprintf(why, sizeof(why), "'sh' took longer than %u s", timeout_s);
		timeout_s *= 2;
	} while (timeout_s <= MOST_S && (got.length == 0 || strcmp(got.why, why) != 0));
	EXPECT(status == ERR_SYSTEM);
	EXPECT(strcmp(got.why, why) == 0);
	EXPECT_THAT("what it said before is there", strcmp(got.bytes, "first\n") == 0);
}

/*
 * In another process group the signal does not reach it, as if it were blocked in the kernel. It ends with the test.
 */
static bool cannot_be_ended(unsigned int timeout_s)
{
	static const char *const words[] = {
		"perl", "-e",
		"my $test = getppid; my $child = fork;"
		"setpgrp(0, 0) if !$child;"
		"while ($child && !setpgrp(0, $child)) { select undef, "
		"undef, undef, 0.01 }"
		"sleep 1 while kill 0, $test",
		NULL
	};
	char why[100];

	alarm(timeout_s + 60);
	free(got.bytes);
	EXPECT(cli_capture(&got, words, -1, timeout_s, 1000) == ERR_SYSTEM);
	alarm(0);
	snprintf(why, sizeof(why), "'perl' took longer than %u s and could not be killed",
		 timeout_s);
	return strcmp(got.why, why) == 0;
}

static void test_cannot_be_ended(void)
{
	unsigned int timeout_s = 2;

	while (!cannot_be_ended(timeout_s) && timeout_s < MOST_S)
		timeout_s *= 2;
	EXPECT_THAT("a process that cannot be ended is reported", timeout_s < MOST_S);
}

int main(void)
{
	test_ends();
	test_too_long();
	test_cannot_be_ended();
	free(got.bytes);
	return tap_done();
}
