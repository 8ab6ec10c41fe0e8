/* Child processes: starting, reading, killing and giving up. */
#include "common/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/order.h"
#include "common/text.h"

enum { READ_BYTES = 1 << 16, EXIT_NO_PROGRAM = 127, NAP_MS = 2, ROUND_MS = 20 };
#define GIVE_UP_NS (2 * SECOND_NS)

static uint64_t given_up;

/* ---- in the child ---------------------------------------------------------------------------- */

static void set_limit(int what, uint64_t most)
{
	struct rlimit limit = { most, most };

	setrlimit(what, &limit);
}

static uint64_t shared_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;

	if (file != NULL && fscanf(file, "%lu", &pages) != 1)
		pages = 0;
	if (file != NULL)
		fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void close_others(bool keeps_files)
{
	DIR *list = opendir("/proc/self/fd");
	const struct dirent *entry;
	struct stat st;

	while (list != NULL && (entry = readdir(list)) != NULL) {
		int fd = (int)strtol(entry->d_name, NULL, 10);

		if (fd > STDERR_FILENO && fd != dirfd(list) &&
		    !(keeps_files && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)))
			close(fd);
	}
	if (list != NULL)
		closedir(list);
}

void child_close_files(int kept)
{
	DIR *list = opendir("/proc/self/fd");
	const struct dirent *entry;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && null != -1; fd++)
		dup2(null, fd);
	while (list != NULL && (entry = readdir(list)) != NULL) {
		int fd = (int)strtol(entry->d_name, NULL, 10);

		if (fd > STDERR_FILENO && fd != dirfd(list) && fd != kept)
			close(fd);
	}
	if (list != NULL)
		closedir(list);
}

static bool take_streams(int input, int output, int errors)
{
	/* Where our own were closed, the pipes have their numbers. */
	input = fcntl(input, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	output = fcntl(output, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	errors = fcntl(errors, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return dup2(input, STDIN_FILENO) != -1 && dup2(output, STDOUT_FILENO) != -1 &&
	       dup2(errors, STDERR_FILENO) != -1;
}

static void child_become(const struct child_task *task, int input, int output, int errors,
			 pid_t parent) __attribute__((noreturn));
static void child_become(const struct child_task *task, int input, int output, int errors,
			 pid_t parent)
{
	sigset_t none;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	if (getppid() != parent || !take_streams(input, output, errors))
		_exit(EXIT_NO_PROGRAM);
	close_others(task->words == NULL && task->keeps_files);
	set_limit(RLIMIT_CORE, 0);
	if (task->memory_bytes > 0)
		set_limit(RLIMIT_AS,
			  task->memory_bytes + (task->words == NULL ? shared_bytes() : 0));
	set_limit(RLIMIT_CPU, task->timeout_ns / SECOND_NS + 1);
	if (task->prepare != NULL && !task->prepare())
		_exit(EXIT_NO_PROGRAM);
	if (task->words == NULL)
		_exit(task->work(task->input, task->context));
	execv(task->words[0], task->words);
	_exit(EXIT_NO_PROGRAM);
}

/* ---- starting -------------------------------------------------------------------------------- */

/* A file in memory: unlike a pipe, it takes everything at once. */
static int input_file(const char *text)
{
	size_t length = text ? strlen(text) : 0, at = 0;
	int fd = memfd_create("ringside-child", MFD_CLOEXEC);

	while (fd != -1 && at < length) {
		ssize_t written = write(fd, text + at, length - at);

		if (written == -1 && errno != EINTR)
			break;
		at += written > 0 ? (size_t)written : 0;
	}
	if (fd != -1 && (at < length || lseek(fd, 0, SEEK_SET) == -1)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void close_all(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] != -1)
			close(fds[i]);
}

static bool open_pipes(int fds[static 5], const char *input)
{
	int output[2] = { -1, -1 }, errors[2] = { -1, -1 };
	bool is_good = pipe2(output, O_CLOEXEC) == 0 && pipe2(errors, O_CLOEXEC) == 0;

	fds[0] = input_file(input);
	fds[1] = output[1];
	fds[2] = errors[1];
	fds[3] = output[0];
	fds[4] = errors[0];
	return is_good && fds[0] != -1 && fcntl(output[0], F_SETFL, O_NONBLOCK) == 0 &&
	       fcntl(errors[0], F_SETFL, O_NONBLOCK) == 0;
}

static void watch(int epoll, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (epoll != -1)
		epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

/* An earlier one that could not be killed is gone. */
static bool is_free(struct child *child)
{
	if (child->stuck != 0 && waitpid(child->stuck, NULL, WNOHANG) == 0)
		return false;
	child->stuck = 0;
	return true;
}

void child_start(struct child *child, const struct child_task *task, int epoll, uint64_t now_ns)
{
	bool may_start = is_free(child);
	pid_t parent = getpid();
	int fds[5];

	*child = (struct child){ .output = -1,
				 .errors = -1,
				 .begun_ns = now_ns,
				 .until_ns = now_ns + task->timeout_ns,
				 .limit = task->limit_bytes,
				 .code = -1,
				 .stuck = child->stuck };
	if (!may_start) {
		text_copy(child->why, sizeof(child->why),
			  "an earlier process cannot be killed and is still there");
		return;
	}
	if (!open_pipes(fds, task->input) || (child->pid = fork()) == -1) {
		text_format(child->why, sizeof(child->why), "cannot start a process: %s",
			    strerror(errno));
		child->pid = 0;
		close_all(fds, 5);
		return;
	}
	if (child->pid == 0)
		child_become(task, fds[0], fds[1], fds[2], parent);
	/* Its group exists from now on, whoever runs first: it is killed as a group. */
	setpgid(child->pid, child->pid);
	close_all(fds, 3);
	child->output = fds[3];
	child->errors = fds[4];
	watch(epoll, child->output);
	watch(epoll, child->errors);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void close_end(int *fd)
{
	if (*fd != -1)
		close(*fd);
	*fd = -1;
}

static void child_kill(struct child *child, const char *why, uint64_t now_ns)
{
	if (child->pid > 0)
		kill(-child->pid, SIGKILL);
	close_end(&child->output);
	child->killed_ns = now_ns;
	/* Whether it is gone is asked once per second, in case it cannot die yet. */
	child->until_ns = now_ns + SECOND_NS;
	text_copy(child->why, sizeof(child->why), why);
}

static bool make_room(struct child *child)
{
	size_t room = child->room * 2 + READ_BYTES;
	char *grown;

	if (child->used + READ_BYTES < child->room)
		return true;
	grown = realloc(child->bytes, room);
	if (grown == NULL)
		return false;
	child->bytes = grown;
	child->room = room;
	return true;
}

/* Large outputs are read in pieces, so that others are served in between. */
static void read_output(struct child *child, uint64_t now_ns)
{
	for (int pieces = 0; pieces < 64 && child->output != -1; pieces++) {
		ssize_t length;

		if (!make_room(child)) {
			child_kill(child, "out of memory", now_ns);
			return;
		}
		length = read(child->output, child->bytes + child->used, READ_BYTES);
		if (length == -1 && (errno == EAGAIN || errno == EINTR))
			return;
		if (length <= 0) {
			close_end(&child->output);
			return;
		}
		child->used += (size_t)length;
		if (child->used > child->limit)
			child_kill(child, "its output exceeds the limit", now_ns);
	}
}

/* The beginning is kept, and the rest is read as well: a child whose pipe is full would wait for ever. */
static void read_errors(struct child *child)
{
	char text[READ_BYTES];

	for (int pieces = 0; pieces < 64 && child->errors != -1; pieces++) {
		ssize_t length = read(child->errors, text, sizeof(text));
		size_t room = sizeof(child->why) - 1 - child->why_length;

		if (length == -1 && (errno == EAGAIN || errno == EINTR))
			return;
		if (length <= 0) {
			close_end(&child->errors);
			return;
		}
		if (child->killed_ns != 0)
			continue;
		if ((size_t)length < room)
			room = (size_t)length;
		memcpy(child->why + child->why_length, text, room);
		child->why_length += room;
	}
}

/* Its first line. */
static void keep_first_line(struct child *child)
{
	char text[CHILD_WHY];

	child->why[child->why_length] = '\0';
	memcpy(text, child->why, child->why_length + 1);
	text[strcspn(text, "\n")] = '\0';
	text_from_field(child->why, sizeof(child->why), text, sizeof(text));
}

static uint64_t ns_of(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * SECOND_NS + (uint64_t)time->tv_usec * 1000;
}

/* A process that is blocked in the kernel, in a driver or a file system, cannot be killed. */
static void give_up(struct child *child)
{
	child->stuck = child->pid;
	child->pid = 0;
	add_relaxed(&given_up, 1);
	text_append(child->why, sizeof(child->why), "; it cannot be killed and was given up");
}

static void note_end(struct child *child, bool is_known, int status, const struct rusage *usage)
{
	if (child->killed_ns == 0)
		keep_first_line(child);
	child->cpu_ns = ns_of(&usage->ru_utime) + ns_of(&usage->ru_stime);
	child->pid = 0;
	if (!is_known)
		text_copy(child->why, sizeof(child->why), "how it ended is unknown");
	else if (WIFEXITED(status))
		child->code = WEXITSTATUS(status);
	else
		child->signal = WTERMSIG(status);
	if (child->signal != 0 && child->why[0] == '\0')
		text_format(child->why, sizeof(child->why), "it was ended by signal %d",
			    WTERMSIG(status));
	if (child->code == EXIT_NO_PROGRAM && child->why[0] == '\0')
		text_copy(child->why, sizeof(child->why), "it could not be started");
}

/* What it started is killed while its group still has its number. 0: it runs; -1: nothing is known of it. */
static pid_t collect(const struct child *child, int *status, struct rusage *usage)
{
	siginfo_t ended = { .si_pid = 0 };

	if (waitid(P_PID, (id_t)child->pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    ended.si_pid == child->pid)
		kill(-child->pid, SIGKILL);
	return wait4(child->pid, status, WNOHANG, usage);
}

bool child_has_ended(struct child *child, uint64_t now_ns)
{
	struct rusage usage = { 0 };
	int status = 0;
	pid_t gone;

	if (child->pid == 0)
		return true;
	read_output(child, now_ns);
	read_errors(child);
	if (now_ns >= child->until_ns && child->killed_ns == 0)
		child_kill(child, "it took too long", now_ns);
	if (child->output != -1)
		return false;
	gone = collect(child, &status, &usage);
	if (gone == 0 && (child->killed_ns == 0 || now_ns < child->killed_ns + GIVE_UP_NS)) {
		if (now_ns >= child->until_ns)
			child->until_ns = now_ns + SECOND_NS;
		return false;
	}
	read_errors(child);
	if (gone == 0)
		give_up(child);
	else
		note_end(child, gone == child->pid, status, &usage);
	close_end(&child->errors);
	if (child->bytes)
		child->bytes[child->used] = '\0';
	return true;
}

void child_wait(const struct child *child, int most_ms)
{
	struct pollfd ends[] = { { .fd = child->output, .events = POLLIN },
				 { .fd = child->errors, .events = POLLIN } };

	/* Both ends are closed: it is about to exit. */
	if (child->output == -1 && most_ms > NAP_MS)
		most_ms = NAP_MS;
	poll(ends, 2, most_ms);
}

void child_run(struct child *child, const struct child_task *task)
{
	child_start(child, task, -1, clock_system_ns(CLOCK_MONOTONIC));
	while (!child_has_ended(child, clock_system_ns(CLOCK_MONOTONIC)))
		child_wait(child, ROUND_MS);
}

/* Do not wait for a process that is stuck in the kernel. */
static bool is_gone_soon(pid_t pid)
{
	for (int i = 0; i < 100; i++) {
		if (waitpid(pid, NULL, WNOHANG) != 0)
			return true;
		poll(NULL, 0, 10);
	}
	return false;
}

void child_release(struct child *child)
{
	pid_t stuck;

	if (child->begun_ns == 0)
		return;
	if (child->pid > 0) {
		child_kill(child, "", child->until_ns);
		if (!is_gone_soon(child->pid))
			give_up(child);
	}
	stuck = child->stuck;
	close_end(&child->output);
	close_end(&child->errors);
	free(child->bytes);
	*child = (struct child){ .output = -1, .errors = -1, .stuck = stuck };
}

int child_keep_output(void)
{
	int output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	return output == -1 || dup2(STDERR_FILENO, STDOUT_FILENO) == -1 ? -1 : output;
}

uint64_t child_given_up(void)
{
	return load_relaxed(&given_up);
}
