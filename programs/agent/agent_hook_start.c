#include "programs/agent/agent_hook_start.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/attributes.h"

/* What it reads is in a file in memory: nobody has to feed a pipe, and who does not read it does no harm. */
static int input_of(const struct agent_hook_event *event)
{
	int fd = memfd_create("ringside-verdict", MFD_CLOEXEC);
	size_t done = 0;

	while (fd != -1 && done < event->input_length) {
		ssize_t wrote = write(fd, event->input + done, event->input_length - done);

		if (wrote == -1 && errno == EINTR)
			continue;
		if (wrote == -1) {
			close(fd);
			return -1;
		}
		done += (size_t)wrote;
	}
	if (fd != -1)
		lseek(fd, 0, SEEK_SET);
	return fd;
}

/* What systemd tells the agent is not for others, who could answer in its name. */
static bool is_for_agent_alone(const char *variable)
{
	static const char *const names[] = {
		"NOTIFY_SOCKET=", "WATCHDOG_",	     "LISTEN_FDS=",
		"LISTEN_PID=",	  "LISTEN_FDNAMES=", "JOURNAL_STREAM="
	};

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static bool is_said_by(const struct agent_hook_event *event, const char *variable)
{
	size_t name = strcspn(variable, "=") + 1;

	for (size_t i = 0; i < event->variable_count; i++)
		if (strncmp(event->variables[i], variable, name) == 0)
			return true;
	return false;
}

/* The strings stay where they are; the list is the caller's to free(). */
static char **environment_of(const struct agent_hook_event *event)
{
	size_t own = 0, count = 0;
	char **list;

	while (environ && environ[own])
		own++;
	list = calloc(own + event->variable_count + 1, sizeof(*list));
	if (list == NULL)
		return NULL;
	for (size_t i = 0; i < own; i++)
		if (!is_for_agent_alone(environ[i]) && !is_said_by(event, environ[i]))
			list[count++] = environ[i];
	for (size_t i = 0; i < event->variable_count; i++)
		list[count++] = event->variables[i];
	return list;
}

static void close_others(void)
{
#ifdef SYS_close_range
	if (syscall(SYS_close_range, 3u, UINT_MAX, 0u) == 0)
		return;
#endif
	/* All of ours are closed by exec as well. */
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
}

static void say(const char *text)
{
	ssize_t wrote = write(STDERR_FILENO, text, strlen(text));

	(void)wrote;
}

/* In the child. */
static _Noreturn void become(char *const *words, char *const *environment, int input, int output)
{
	sigset_t none;

	sigemptyset(&none);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(input, STDIN_FILENO) == -1 || dup2(output, STDOUT_FILENO) == -1 ||
	    dup2(output, STDERR_FILENO) == -1 || chdir("/") == -1)
		_exit(126);
	close_others();
	execve(words[0], words, environment);
	say(words[0]);
	say(": ");
	say(strerror(errno));
	say("\n");
	_exit(errno == ENOENT ? 127 : 126);
}

enum status agent_hook_start(char *const *words, const struct agent_hook_event *event, pid_t *pid,
			     int *output)
{
	char **environment = environment_of(event);
	int input = input_of(event), ends[2] = { -1, -1 }, error;
	pid_t child = -1;

	if (environment && input != -1 && pipe2(ends, O_CLOEXEC) == 0)
		child = fork();
	if (child == 0)
		become(words, environment, input, ends[1]);
	error = errno;
	/* The child does so, too: whoever comes first. */
	if (child > 0)
		setpgid(child, child);
	free(environment);
	if (input != -1)
		close(input);
	if (ends[1] != -1)
		close(ends[1]);
	if (child == -1) {
		if (ends[0] != -1)
			close(ends[0]);
		errno = error;
		return ERR_SYSTEM;
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	*pid = child;
	*output = ends[0];
	return OK;
}
