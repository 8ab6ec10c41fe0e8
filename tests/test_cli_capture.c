/* Programs that end, that fail, and that nobody can end. */
#include "programs/cli/cli_capture.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "programs/cli/cli_memory.h"
#include "tests/tap.h"

static struct cli_capture got;

/* The tool's own would end the program. */
void *cli_realloc(void *old, size_t bytes)
{
	void *grown = realloc(old, bytes);

	if (grown == NULL)
		abort();
	return grown;
}

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
	EXPECT(strcmp(got.why, "'sh' ended with 3: no") == 0);
	EXPECT(run("kill -9 $$", 60) == OK && got.exit_code == -1);
	signal(SIGCHLD, SIG_IGN);
	EXPECT_THAT("also when somebody ignored the end of children",
		    run("exit 4", 5) == OK && got.exit_code == 4);
	EXPECT_THAT("which is as it was then", signal(SIGCHLD, SIG_DFL) == SIG_IGN);
}

static void test_too_long(void)
{
	EXPECT(run("echo first; exec sleep 300", 1) == ERR_SYSTEM);
	EXPECT(strcmp(got.why, "'sh' took longer than 1 s") == 0);
	EXPECT_THAT("what it said before is there", strcmp(got.bytes, "first\n") == 0);
}

/* Out of its group it is out of reach of the signal, like one that the kernel keeps. It ends with the test. */
static void test_cannot_be_ended(void)
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

	alarm(60);
	free(got.bytes);
	EXPECT(cli_capture(&got, words, -1, 2, 1000) == ERR_SYSTEM);
	EXPECT(strcmp(got.why, "'perl' took longer than 2 s and could not be ended") == 0);
	alarm(0);
}

int main(void)
{
	test_ends();
	test_too_long();
	test_cannot_be_ended();
	free(got.bytes);
	return tap_done();
}
