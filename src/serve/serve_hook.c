/* The hook: a command of the user, one at a time, with limits. */
#include "serve/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/text.h"

/* Standard input is a file in memory: there is no pipe to feed, and a hook that does not read it is harmless. */
static int input_of(const struct serve_hook_event *event)
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

/* Do not pass on the variables of systemd, or the hook could answer in the agent's name. */
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

static bool is_said_by(const struct serve_hook_event *event, const char *variable)
{
	size_t name = strcspn(variable, "=") + 1;

	for (size_t i = 0; i < event->variable_count; i++)
		if (strncmp(event->variables[i], variable, name) == 0)
			return true;
	return false;
}

/* The strings are borrowed; the caller frees the list. */
static char **environment_of(const struct serve_hook_event *event)
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
	/* Our own descriptors are also closed by exec. */
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
}

static void hook_say(const char *text)
{
	ssize_t wrote = write(STDERR_FILENO, text, strlen(text));

	(void)wrote;
}

/* In the child. */
static _Noreturn void hook_become(char *const *words, char *const *environment, int input,
				  int output)
{
	sigset_t none;

	sigemptyset(&none);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(input, STDIN_FILENO) == -1 || dup2(output, STDOUT_FILENO) == -1 ||
	    dup2(output, STDERR_FILENO) == -1 || chdir("/") == -1 || !serve_rights_drop_all())
		_exit(126);
	close_others();
	execve(words[0], words, environment);
	hook_say(words[0]);
	hook_say(": ");
	hook_say(strerror(errno));
	hook_say("\n");
	_exit(errno == ENOENT ? 127 : 126);
}

/* On success *pid leads its own process group, and *output is the non-blocking read end of its standard output and
 * error. ERR_SYSTEM with errno. For a missing program the child prints an error and exits with 127. */
static enum status serve_hook_start(char *const *words, const struct serve_hook_event *event,
				    pid_t *pid, int *output)
{
	char **environment = environment_of(event);
	int input = input_of(event), ends[2] = { -1, -1 }, error;
	pid_t child = -1;

	if (environment && input != -1 && pipe2(ends, O_CLOEXEC) == 0)
		child = fork();
	if (child == 0)
		hook_become(words, environment, input, ends[1]);
	error = errno;
	/* The child does the same: whichever comes first. */
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

/* ---- events ----------------------------------------------------------------------------------- */

static void serve_hook_event_release(struct serve_hook_event *event)
{
	free(event->input);
	for (size_t i = 0; i < event->variable_count; i++)
		free(event->variables[i]);
	*event = (struct serve_hook_event){ .input = NULL };
}

void serve_hook_variable(struct serve_hook_event *event, const char *name, const char *format, ...)
{
	char value[512], *variable = NULL;
	va_list values;

	va_start(values, format);
	vsnprintf(value, sizeof(value), format, values);
	va_end(values);
	text_clean(value);
	if (event->variable_count == SERVE_HOOK_VARIABLES ||
	    asprintf(&variable, "RINGSIDE_%s=%s", name, value) == -1) {
		event->is_lost = true;
		return;
	}
	event->variables[event->variable_count++] = variable;
}

static void leave_out(struct serve_hook *hook, struct serve_hook_event *event)
{
	hook->left_out++;
	serve_hook_event_release(event);
}

static bool is_over(uint64_t taken_ns, uint64_t now_ns)
{
	return taken_ns == 0 || now_ns - taken_ns >= SERVE_HOOK_MINUTE_NS;
}

static uint64_t last_taken(const struct serve_hook_turns *turns)
{
	return turns->taken_ns[(turns->next + SERVE_HOOK_A_MINUTE - 1) % SERVE_HOOK_A_MINUTE];
}

/* Index of this user's slot, or of an expired one; SERVE_HOOK_USERS if there is none. */
static size_t turns_of(const struct serve_hook *hook, uint64_t user, uint64_t now_ns)
{
	size_t found = SERVE_HOOK_USERS;

	for (size_t i = 0; i < SERVE_HOOK_USERS; i++) {
		const struct serve_hook_turns *turns = &hook->turns[i];

		if (turns->user == user && last_taken(turns) != 0)
			return i;
		if (is_over(last_taken(turns), now_ns))
			found = i;
	}
	return found;
}

static size_t count_waiting(const struct serve_hook *hook, uint64_t user)
{
	size_t count = 0;

	for (size_t i = 0; i < hook->count; i++)
		count += hook->queue[(hook->first + i) % SERVE_HOOK_QUEUE].user == user;
	return count;
}

bool serve_hook_has_turn(const struct serve_hook *hook, uint64_t user, uint64_t now_ns)
{
	size_t i = turns_of(hook, user, now_ns);
	const struct serve_hook_turns *turns = &hook->turns[i % SERVE_HOOK_USERS];

	return hook->count < SERVE_HOOK_QUEUE && i < SERVE_HOOK_USERS &&
	       (turns->user != user || is_over(turns->taken_ns[turns->next], now_ns)) &&
	       count_waiting(hook, user) < SERVE_HOOK_QUEUE / 2;
}

static bool take_turn(struct serve_hook *hook, uint64_t user, uint64_t now_ns)
{
	struct serve_hook_turns *turns;

	if (!serve_hook_has_turn(hook, user, now_ns))
		return false;
	turns = &hook->turns[turns_of(hook, user, now_ns)];
	if (turns->user != user)
		*turns = (struct serve_hook_turns){ .user = user };
	turns->taken_ns[turns->next] = now_ns;
	turns->next = (turns->next + 1) % SERVE_HOOK_A_MINUTE;
	return true;
}

bool serve_hook_give(struct serve_hook *hook, struct serve_hook_event *event, bool may_wait,
		     uint64_t now_ns)
{
	if (hook->command == NULL || event->is_lost || hook->count == SERVE_HOOK_QUEUE ||
	    (may_wait && !take_turn(hook, event->user, now_ns))) {
		leave_out(hook, event);
		return false;
	}
	hook->queue[(hook->first + hook->count) % SERVE_HOOK_QUEUE] = *event;
	hook->count++;
	*event = (struct serve_hook_event){ .input = NULL };
	return true;
}

/* ---- the command ------------------------------------------------------------------------------ */

const char *serve_hook_init(struct serve_hook *hook, const char *command, int epoll)
{
	size_t count = 0;
	char *rest = NULL;

	*hook = (struct serve_hook){ .epoll = epoll,
				     .output = -1,
				     .timeout_ns = SERVE_HOOK_TIMEOUT_NS,
				     .grace_ns = SERVE_HOOK_GRACE_NS };
	if (command == NULL)
		return NULL;
	if (command[strspn(command, " \t")] != '/')
		return "must begin with the absolute path of a program, like "
		       "/usr/local/bin/page-me";
	hook->command = strdup(command);
	if (hook->command == NULL)
		return "out of memory";
	for (char *word = strtok_r(hook->command, " \t", &rest); word;
	     word = strtok_r(NULL, " \t", &rest)) {
		if (count == SERVE_HOOK_WORDS)
			return "more than 32 words";
		hook->words[count++] = word;
	}
	return NULL;
}

static void close_output(struct serve_hook *hook)
{
	if (hook->output != -1)
		close(hook->output);
	hook->output = -1;
}

/* Do not wait for a process that is stuck in the kernel. */
static void end_now(pid_t pid)
{
	kill(-pid, SIGKILL);
	for (int i = 0; i < 100 && waitpid(pid, NULL, WNOHANG) == 0; i++)
		poll(NULL, 0, 10);
}

int serve_hook_open(struct serve_hook *hook, const char *command, uint64_t timeout_ns, int epoll)
{
	const char *wrong = serve_hook_init(hook, command, epoll);

	if (wrong)
		return serve_log(SERVE_ERROR, "--hook %s: %s", command, wrong);
	hook->timeout_ns = timeout_ns;
	if (command && access(hook->words[0], X_OK) == -1)
		serve_log(SERVE_WARNING, "--hook %s: %s", hook->words[0], strerror(errno));
	return 0;
}

void serve_hook_release(struct serve_hook *hook)
{
	if (hook->pid > 0)
		end_now(hook->pid);
	hook->pid = 0;
	close_output(hook);
	for (; hook->count > 0; hook->count--) {
		serve_hook_event_release(&hook->queue[hook->first]);
		hook->first = (hook->first + 1) % SERVE_HOOK_QUEUE;
	}
	free(hook->command);
	hook->command = NULL;
}

/* ---- output ----------------------------------------------------------------------------------- */

static void end_line(struct serve_hook *hook)
{
	if (hook->line_used == 0)
		return;
	hook->line[hook->line_used] = '\0';
	hook->line_used = 0;
	if (hook->lines == SERVE_HOOK_LINES) {
		hook->lines_left_out++;
		return;
	}
	hook->lines++;
	serve_log(SERVE_INFO, "hook output: %s", hook->line);
}

static void take_output(struct serve_hook *hook, const char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (bytes[i] == '\n')
			end_line(hook);
		else if (hook->line_used < SERVE_HOOK_LINE)
			hook->line[hook->line_used++] = bytes[i];
	}
}

/* One piece at a time, so that endless output does not block the agent. */
static void read_output(struct serve_hook *hook)
{
	char bytes[16384];
	ssize_t got;

	if (hook->output == -1)
		return;
	got = read(hook->output, bytes, sizeof(bytes));
	if (got > 0) {
		take_output(hook, bytes, (size_t)got);
		hook->output_bytes += (uint64_t)got;
	}
	if (got == 0 || (got == -1 && errno != EAGAIN && errno != EINTR) ||
	    hook->output_bytes >= SERVE_HOOK_OUTPUT)
		close_output(hook);
}

/* ---- exit ------------------------------------------------------------------------------------- */

static void tell_end(const struct serve_hook *hook, int how, uint64_t now_ns)
{
	const char *after = hook->is_terminated ? ": timed out and was terminated" : "";
	double seconds = (double)(now_ns - hook->begun_ns) / 1e9;

	if (WIFEXITED(how) && WEXITSTATUS(how) == 0)
		serve_log(SERVE_INFO, "hook %s: done in %.1f s (%s)%s", hook->words[0], seconds,
			  hook->about, after);
	else if (WIFEXITED(how))
		serve_log(SERVE_WARNING, "hook %s: exit code %d after %.1f s (%s)%s",
			  hook->words[0], WEXITSTATUS(how), seconds, hook->about, after);
	else
		serve_log(SERVE_WARNING, "hook %s: signal %d after %.1f s (%s)%s", hook->words[0],
			  WIFSIGNALED(how) ? WTERMSIG(how) : 0, seconds, hook->about, after);
	if (hook->output_bytes >= SERVE_HOOK_OUTPUT)
		serve_log(SERVE_WARNING, "hook %s: wrote more than %d KiB, the rest was not read",
			  hook->words[0], SERVE_HOOK_OUTPUT / 1024);
	else if (hook->lines_left_out > 0)
		serve_log(SERVE_INFO, "hook %s: %" PRIu64 " more lines of output not shown",
			  hook->words[0], hook->lines_left_out);
}

/* The ID of a process group cannot be reused until its leader has been reaped. */
static bool has_ended(const struct serve_hook *hook)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_PID, (id_t)hook->pid, &info, WEXITED | WNOHANG | WNOWAIT) == -1 ||
	       info.si_pid == hook->pid;
}

static void hook_finish(struct serve_hook *hook, uint64_t now_ns)
{
	int how = 0;

	kill(-hook->pid, SIGKILL);
	waitpid(hook->pid, &how, 0);
	/* Its last output is in the pipe, which holds 64 KiB. */
	for (int i = 0; i < 8; i++)
		read_output(hook);
	end_line(hook);
	close_output(hook);
	hook->failures += !WIFEXITED(how) || WEXITSTATUS(how) != 0;
	tell_end(hook, how, now_ns);
	hook->pid = 0;
}

void serve_hook_handle(struct serve_hook *hook, uint64_t now_ns)
{
	if (hook->pid == 0)
		return;
	read_output(hook);
	if (has_ended(hook))
		hook_finish(hook, now_ns);
}

/* ---- timers ----------------------------------------------------------------------------------- */

static void start_next(struct serve_hook *hook, uint64_t now_ns)
{
	struct serve_hook_event *event = &hook->queue[hook->first];
	struct epoll_event listen = { .events = EPOLLIN };

	hook->first = (hook->first + 1) % SERVE_HOOK_QUEUE;
	hook->count--;
	hook->begun_ns = now_ns;
	hook->end_by_ns = now_ns + hook->timeout_ns;
	hook->is_terminated = hook->is_killed = false;
	hook->line_used = hook->lines = 0;
	hook->lines_left_out = hook->output_bytes = 0;
	memcpy(hook->about, event->about, sizeof(hook->about));
	if (serve_hook_start(hook->words, event, &hook->pid, &hook->output) == OK) {
		hook->runs++;
		listen.data.fd = hook->output;
		if (hook->epoll != -1)
			epoll_ctl(hook->epoll, EPOLL_CTL_ADD, hook->output, &listen);
	} else {
		hook->failures++;
		hook->pid = 0;
		serve_log(SERVE_WARNING, "hook %s: cannot start: %s", hook->words[0],
			  strerror(errno));
	}
	serve_hook_event_release(event);
}

static void end_late_one(struct serve_hook *hook, uint64_t now_ns)
{
	if (hook->pid == 0 || now_ns < hook->end_by_ns)
		return;
	kill(-hook->pid, hook->is_terminated ? SIGKILL : SIGTERM);
	hook->is_killed = hook->is_terminated;
	hook->is_terminated = true;
	hook->end_by_ns = now_ns + hook->grace_ns;
}

/* At most one line per minute. */
static void log_left_out(struct serve_hook *hook, uint64_t now_ns)
{
	if (hook->left_out == hook->logged_left_out || now_ns < hook->log_left_out_ns)
		return;
	serve_log(SERVE_WARNING,
		  "hook %s: %" PRIu64
		  " calls delayed: more than %d per minute for one user, or the "
		  "hook is too slow; lasting verdicts are passed on later",
		  hook->words[0], hook->left_out - hook->logged_left_out, SERVE_HOOK_A_MINUTE);
	hook->logged_left_out = hook->left_out;
	hook->log_left_out_ns = now_ns + SERVE_HOOK_MINUTE_NS;
}

uint64_t serve_hook_run(struct serve_hook *hook, uint64_t now_ns)
{
	if (hook->command == NULL)
		return UINT64_MAX;
	if (hook->pid > 0 && has_ended(hook))
		hook_finish(hook, now_ns);
	end_late_one(hook, now_ns);
	while (hook->pid == 0 && hook->count > 0)
		start_next(hook, now_ns);
	log_left_out(hook, now_ns);
	if (hook->pid > 0)
		return hook->end_by_ns;
	return hook->left_out > hook->logged_left_out ? hook->log_left_out_ns : UINT64_MAX;
}
