#include "programs/cli/cli_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/text.h"
#include "programs/cli/cli_memory.h"

#define MILLISECOND_NS UINT64_C(1000000)
#define KILL_NS (1000 * MILLISECOND_NS) /* from SIGKILL to the end */
enum { ERROR_BYTES = 256 };

struct child {
	pid_t pid;
	int out;
	int err;
};

/* In the child. */
static _Noreturn void become(const char *const *words, int fd, int out, int err)
{
	int null = open("/dev/null", O_RDONLY);

	/* What is to be at 3 may be in the way of others, and the reverse: first out of the way. */
	if (fd != -1)
		fd = fcntl(fd, F_DUPFD, 16);
	out = fcntl(out, F_DUPFD, 16);
	err = fcntl(err, F_DUPFD, 16);
	setpgid(0, 0);
	if (dup2(null, STDIN_FILENO) == -1 || dup2(out, STDOUT_FILENO) == -1 ||
	    dup2(err, STDERR_FILENO) == -1 || (fd != -1 && dup2(fd, 3) == -1))
		_exit(126);
	for (int other = fd == -1 ? 3 : 4; other < 256; other++)
		close(other);
	execvp(words[0], (char *const *)words);
	_exit(errno == ENOENT ? 127 : 126);
}

static enum status start(struct child *child, const char *const *words, int fd)
{
	int out[2] = { -1, -1 }, err[2] = { -1, -1 };
	int error;

	if (pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0) {
		child->pid = fork();
		if (child->pid == 0)
			become(words, fd, out[1], err[1]);
	} else {
		child->pid = -1;
	}
	error = errno;
	for (int i = 0; i < 2; i++) {
		int *end = i == 0 ? out : err;

		if (end[1] != -1)
			close(end[1]);
		if (child->pid == -1 && end[0] != -1)
			close(end[0]);
	}
	errno = error;
	if (child->pid == -1)
		return ERR_SYSTEM;
	setpgid(child->pid, child->pid);
	child->out = out[0];
	child->err = err[0];
	return OK;
}

/* What goes beyond `most` is read and dropped. False: that was the end. */
static bool read_some(int fd, char *to, size_t *used, size_t most, bool *is_cut)
{
	char bytes[16384];
	ssize_t got = read(fd, bytes, sizeof(bytes));
	size_t part;

	if (got <= 0)
		return got == -1 && errno == EINTR;
	part = (size_t)got < most - *used ? (size_t)got : most - *used;
	memcpy(to + *used, bytes, part);
	*used += part;
	*is_cut = *is_cut || part < (size_t)got;
	return true;
}

/* Until both are closed. False: the time was over. */
static bool read_all(struct cli_capture *capture, const struct child *child, char *error,
		     size_t most, uint64_t until_ns)
{
	struct pollfd ends[2] = { { .fd = child->out, .events = POLLIN },
				  { .fd = child->err, .events = POLLIN } };
	size_t room = 0, error_used = 0;
	bool is_dropped = false;

	while (ends[0].fd != -1 || ends[1].fd != -1) {
		uint64_t now_ns = clock_system_ns(CLOCK_MONOTONIC);

		if (now_ns >= until_ns)
			return false;
		if (poll(ends, 2, (int)((until_ns - now_ns) / MILLISECOND_NS) + 1) <= 0)
			continue;
		while (room < capture->length + 16384 + 1 && room <= most) {
			room = room * 2 + 65536;
			capture->bytes = cli_realloc(capture->bytes, room);
		}
		if (ends[0].revents && !read_some(ends[0].fd, capture->bytes, &capture->length,
						  most, &capture->is_cut))
			ends[0].fd = -1;
		if (ends[1].revents &&
		    !read_some(ends[1].fd, error, &error_used, ERROR_BYTES - 1, &is_dropped))
			ends[1].fd = -1;
		error[error_used] = '\0';
	}
	return true;
}

static bool has_ended(pid_t pid, int *how, uint64_t until_ns)
{
	do {
		if (waitpid(pid, how, WNOHANG) == pid)
			return true;
		poll(NULL, 0, 2);
	} while (clock_system_ns(CLOCK_MONOTONIC) < until_ns);
	return false;
}

enum ending { ENDED, KILLED, LEFT_BEHIND };

/* Who closed both ends is about to end. One that the kernel keeps, in a driver that does not answer, say, cannot be
 * killed either: it is not waited for. */
static enum ending wait_for(pid_t pid, int *how, uint64_t until_ns)
{
	if (until_ns > 0 && has_ended(pid, how, until_ns))
		return ENDED;
	kill(-pid, SIGKILL);
	return has_ended(pid, how, clock_system_ns(CLOCK_MONOTONIC) + KILL_NS) ? KILLED
									       : LEFT_BEHIND;
}

static void tell(struct cli_capture *capture, const char *program, const char *error, int how)
{
	if (WIFEXITED(how))
		capture->exit_code = WEXITSTATUS(how);
	if (capture->exit_code == 127 && error[0] == '\0')
		text_format(capture->why, sizeof(capture->why), "there is no program '%s' here",
			    program);
	else if (WIFSIGNALED(how))
		text_format(capture->why, sizeof(capture->why), "'%s' was ended by signal %d",
			    program, WTERMSIG(how));
	else if (capture->exit_code != 0)
		text_format(capture->why, sizeof(capture->why), "'%s' ended with %d%s%.*s", program,
			    capture->exit_code, error[0] ? ": " : "", (int)strcspn(error, "\n"),
			    error);
}

static enum status capture_it(struct cli_capture *capture, const char *const *words, int fd,
			      unsigned int timeout_s, size_t most_bytes)
{
	uint64_t until_ns = clock_system_ns(CLOCK_MONOTONIC) + timeout_s * 1000 * MILLISECOND_NS;
	char error[ERROR_BYTES] = "";
	enum ending ending;
	struct child child;
	bool is_in_time;
	int how = 0;

	*capture = (struct cli_capture){ .exit_code = -1 };
	if (start(&child, words, fd) != OK) {
		text_format(capture->why, sizeof(capture->why), "'%s' cannot be started: %s",
			    words[0], strerror(errno));
		return ERR_SYSTEM;
	}
	is_in_time = read_all(capture, &child, error, most_bytes, until_ns);
	ending = wait_for(child.pid, &how, is_in_time ? until_ns : 0);
	close(child.out);
	close(child.err);
	capture->bytes = cli_realloc(capture->bytes, capture->length + 1);
	capture->bytes[capture->length] = '\0';
	if (ending != ENDED) {
		text_format(capture->why, sizeof(capture->why), "'%s' took longer than %u s%s",
			    words[0], timeout_s, ending == KILLED ? "" : " and could not be ended");
		return ERR_SYSTEM;
	}
	tell(capture, words[0], error, how);
	return capture->exit_code == 127 ? ERR_SYSTEM : OK;
}

enum status cli_capture(struct cli_capture *capture, const char *const *words, int fd,
			unsigned int timeout_s, size_t most_bytes)
{
	/* Whoever started us may have ignored it: then nobody would know how a child ended. */
	void (*before)(int) = signal(SIGCHLD, SIG_DFL);
	enum status status = capture_it(capture, words, fd, timeout_s, most_bytes);

	signal(SIGCHLD, before);
	return status;
}
