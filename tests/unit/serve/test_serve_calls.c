/* Which system calls fail in the agent and in its children. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "tests/tap.h"

enum { OWN_BYTES = 8 };

static bool is_denied(long result)
{
	return result == -1 && errno == EPERM;
}

/* All of these work for any user without the filter, or fail with another error. */
static int try_calls(bool is_privileged)
{
	char bytes[OWN_BYTES], copy[OWN_BYTES];
	struct iovec from = { bytes, OWN_BYTES }, to = { copy, OWN_BYTES };
	bool reads_memory, traces;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 || !serve_calls_limit(is_privileged))
		return 1;
	if (!is_denied(unshare(0)) || !is_denied(syscall(SYS_keyctl, 0, 0, 0, 0, 0)) ||
	    !is_denied(syscall(SYS_io_uring_setup, 0, NULL)) ||
	    !is_denied(syscall(SYS_open_by_handle_at, -1, NULL, O_RDONLY)))
		return 2;
	reads_memory = process_vm_readv(getpid(), &to, 1, &from, 1, 0) == OWN_BYTES;
	traces = ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0;
	return reads_memory == traces && reads_memory == !is_privileged ? 0 : 3;
}

static int result_in_child(bool is_privileged)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0)
		_exit(try_calls(is_privileged));
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The filter is inherited: what a hook and other children do has to work. */
static int run_program(void)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 || !serve_calls_limit(true))
			_exit(1);
		execl("/bin/sh", "sh", "-c", "test \"$(ls / | head -n 1)\" != ''", (char *)NULL);
		_exit(2);
	}
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void)
{
	EXPECT_EQUAL(unshare(0), 0);
	EXPECT_EQUAL(result_in_child(true), 0);
	EXPECT_EQUAL(result_in_child(false), 0);
	EXPECT_EQUAL(run_program(), 0);
	return tap_done();
}
