#include "programs/bench/bench_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/text.h"

enum { NAP_MS = 5 };

int bench_wait_child(pid_t child, int limit_s)
{
	uint64_t deadline_ns = clock_system_ns(CLOCK_MONOTONIC) + (uint64_t)limit_s * 1000000000u;
	bool is_killed = false;
	int status = -1;

	for (;;) {
		pid_t got = waitpid(child, &status, is_killed ? 0 : WNOHANG);

		if (got == child)
			return is_killed ? -1 : status;
		if (got == -1 && errno != EINTR)
			return -1;
		if (!is_killed && clock_system_ns(CLOCK_MONOTONIC) >= deadline_ns) {
			kill(child, SIGKILL);
			is_killed = true;
		} else {
			poll(NULL, 0, NAP_MS);
		}
	}
}

static void move_fd(int from, int to)
{
	if (from == -1)
		return;
	dup2(from, to);
	if (from != to)
		close(from);
}

/* In the child; does not come back. */
static void become(const char *const *words, int input, const char *log)
{
	sigset_t none;
	int out =
		open(log ? log : "/dev/null", log ? O_WRONLY | O_CREAT | O_TRUNC : O_WRONLY, 0600);

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	move_fd(input, STDIN_FILENO);
	move_fd(out, STDOUT_FILENO);
	dup2(STDOUT_FILENO, STDERR_FILENO);
	execv(words[0], (char *const *)(uintptr_t)words);
	_exit(127);
}

int bench_spawn(const char *const *words, const char *input, const char *log, int limit_s)
{
	int ends[2] = { -1, -1 };
	int status;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) == -1)
		return -1;
	/* What fits into a pipe: nothing to wait for. */
	if (input != NULL && write(ends[1], input, strlen(input)) == -1) {
		close(ends[0]);
		close(ends[1]);
		return -1;
	}
	close(ends[1]);
	child = fork();
	if (child == 0)
		become(words, ends[0], log);
	close(ends[0]);
	if (child == -1)
		return -1;
	status = bench_wait_child(child, limit_s);
	return status != -1 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool bench_find_program(const char *name, char *path, size_t size)
{
	static const char places[] =
		"/usr/local/nvidia/bin:/usr/bin:/usr/local/bin:/opt/nvidia/bin";
	const char *lists[] = { getenv("PATH"), places };

	for (size_t i = 0; i < ARRAY_LENGTH(lists); i++) {
		const char *at = lists[i] ? lists[i] : "";

		while (*at != '\0') {
			size_t length = strcspn(at, ":");

			if (length > 0 && length < PATH_MAX &&
			    text_format(path, size, "%.*s/%s", (int)length, at, name) &&
			    access(path, X_OK) == 0)
				return true;
			at += length + (at[length] == ':');
		}
	}
	return false;
}
