#include "agent/agent.h"

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
#include "common/text.h"

enum { READ_BYTES = 1 << 16, EXIT_NO_PROGRAM = 127 };

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

/* The hub's end of other pipes is closed on exec; a child without exec closes them itself. */
static void child_become(const struct hub_child_task *task, int input, int output, int errors,
			 pid_t parent) __attribute__((noreturn));
static void child_become(const struct hub_child_task *task, int input, int output, int errors,
			 pid_t parent)
{
	sigset_t none;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (getppid() != parent || dup2(input, STDIN_FILENO) == -1 ||
	    dup2(output, STDOUT_FILENO) == -1 || dup2(errors, STDERR_FILENO) == -1)
		_exit(EXIT_NO_PROGRAM);
	set_limit(RLIMIT_CORE, 0);
	if (task->memory_bytes > 0)
		set_limit(RLIMIT_AS,
			  task->memory_bytes + (task->words == NULL ? shared_bytes() : 0));
	set_limit(RLIMIT_CPU, task->timeout_ns / UINT64_C(1000000000) + 1);
	if (task->words == NULL)
		_exit(task->work(task->input, task->context));
	execv(task->words[0], task->words);
	_exit(EXIT_NO_PROGRAM);
}

void hub_child_close_others(bool keeps_files)
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

/* ---- starting -------------------------------------------------------------------------------- */

/* A file in memory: unlike a pipe, it takes everything at once. */
static int input_file(const char *text)
{
	size_t length = text ? strlen(text) : 0, at = 0;
	int fd = memfd_create("ringside-hub", MFD_CLOEXEC);

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

void hub_child_start(struct hub_child *child, const struct hub_child_task *task, int epoll,
		     uint64_t now_ns)
{
	struct epoll_event event = { .events = EPOLLIN };
	pid_t parent = getpid();
	int fds[5];

	*child = (struct hub_child){ .output = -1,
				     .errors = -1,
				     .begun_ns = now_ns,
				     .until_ns = now_ns + task->timeout_ns,
				     .limit = task->limit_bytes,
				     .code = -1 };
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
	event.data.fd = child->output = fds[3];
	child->errors = fds[4];
	epoll_ctl(epoll, EPOLL_CTL_ADD, fds[3], &event);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void child_kill(struct hub_child *child, const char *why)
{
	if (child->pid > 0)
		kill(-child->pid, SIGKILL);
	if (child->output != -1)
		close(child->output);
	child->output = -1;
	text_copy(child->why, sizeof(child->why), why);
}

static bool make_room(struct hub_child *child)
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

/* Large outputs are read in pieces, so that other clients of the hub are served in between. */
static void read_output(struct hub_child *child)
{
	for (int pieces = 0; pieces < 64 && child->output != -1; pieces++) {
		ssize_t length;

		if (!make_room(child)) {
			child_kill(child, "out of memory");
			return;
		}
		length = read(child->output, child->bytes + child->used, READ_BYTES);
		if (length == -1 && (errno == EAGAIN || errno == EINTR))
			return;
		if (length <= 0) {
			close(child->output);
			child->output = -1;
			return;
		}
		child->used += (size_t)length;
		if (child->used > child->limit)
			child_kill(child, "its output exceeds the limit");
	}
}

/* Its first line. */
static void read_errors(struct hub_child *child)
{
	char text[HUB_CHILD_WHY];
	ssize_t length = read(child->errors, text, sizeof(text) - 1);

	if (length <= 0 || child->why[0] != '\0')
		return;
	text[length] = '\0';
	text[strcspn(text, "\n")] = '\0';
	text_from_field(child->why, sizeof(child->why), text, sizeof(text));
}

static uint64_t ns_of(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * SECOND_NS + (uint64_t)time->tv_usec * 1000;
}

bool hub_child_has_ended(struct hub_child *child, uint64_t now_ns)
{
	struct rusage usage = { 0 };
	int status = 0;

	if (child->pid == 0)
		return true;
	read_output(child);
	if (now_ns >= child->until_ns && child->why[0] == '\0') {
		child_kill(child, "it took too long");
		/* Whether it is gone is asked once per second, in case it cannot die yet. */
		child->until_ns = now_ns + UINT64_C(1000000000);
	}
	if (child->output != -1 || wait4(child->pid, &status, WNOHANG, &usage) == 0)
		return false;
	read_errors(child);
	child->cpu_ns = ns_of(&usage.ru_utime) + ns_of(&usage.ru_stime);
	child->pid = 0;
	if (WIFEXITED(status))
		child->code = WEXITSTATUS(status);
	else if (child->why[0] == '\0')
		text_format(child->why, sizeof(child->why), "it was ended by signal %d",
			    WTERMSIG(status));
	if (child->code == EXIT_NO_PROGRAM && child->why[0] == '\0')
		text_copy(child->why, sizeof(child->why), "it could not be started");
	if (child->bytes)
		child->bytes[child->used] = '\0';
	return true;
}

void hub_child_release(struct hub_child *child)
{
	if (child->begun_ns == 0)
		return;
	if (child->pid > 0) {
		child_kill(child, "");
		/* Do not wait for a process that is stuck in the kernel. */
		for (int i = 0; i < 100 && waitpid(child->pid, NULL, WNOHANG) == 0; i++)
			poll(NULL, 0, 10);
	}
	if (child->output != -1)
		close(child->output);
	if (child->errors != -1)
		close(child->errors);
	free(child->bytes);
	*child = (struct hub_child){ .output = -1, .errors = -1 };
}
