/*
 * All targets are read at about the same time:
 *
 *	check each: rights, identity, RINGSIDE_STACKS
 *	CPU time of all threads -> run the tools -> at least a second later: CPU time and /proc of all threads
 *	identity again: if the pid has another process now, nothing is kept
 *
 * A tool is a child in a process group of its own. While it runs, the states of the threads are polled every
 * millisecond; as soon as one of them has been stopped for STACKS_STOP_NS the tool is killed. A tracer that is
 * killed releases the process; but if it had sent SIGSTOP and not received the stop yet, the process stops
 * afterwards. Nobody else would continue it: SIGCONT removes such a stop, and the state is watched for a moment.
 */
#include "doctor/doctor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/child.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/text.h"

enum {
	OUTPUT_MOST = 4 << 20,
	ENVIRONMENT_MOST = 4 << 20,
	SOCKETS_MOST = 4 << 20,
	KERNEL_TEXT = 4096,
	TOOL_WORDS = 16,
};

#define TOOL_NS UINT64_C(5000000000)
#define RETRY_NS UINT64_C(500000000)
#define END_NS UINT64_C(1000000000)
/* A tracer that has just died may leave a SIGSTOP behind: watched for this long. */
#define SETTLE_NS UINT64_C(30000000)

bool stacks_are_off(void)
{
	const char *value = getenv("RINGSIDE_STACKS");

	return value != NULL && strcmp(value, "0") == 0;
}

void stacks_target_init(struct stacks_target *target, int64_t pid, uint64_t start_ticks)
{
	*target = (struct stacks_target){ .pid = pid, .start_ticks = start_ticks };
	stack_init(&target->stack, pid);
}

void stacks_target_release(struct stacks_target *target)
{
	stack_release(&target->stack);
}

static uint64_t now_ns(void)
{
	return clock_system_ns(CLOCK_MONOTONIC);
}

static bool refuse(struct stacks_target *target, const char *why)
{
	text_copy(target->why, sizeof(target->why), why);
	return false;
}

/* ---- may it be read? ------------------------------------------------------------------------- */

static bool proc_text(int64_t pid, const char *name, char *text, size_t size)
{
	char path[96];

	text_format(path, sizeof(path), "/proc/%" PRId64 "/%s", pid, name);
	return file_read_text(path, text, size);
}

static uint64_t start_of(int64_t pid, char *state)
{
	uint64_t start_ticks = 0;
	char task[24];

	text_format(task, sizeof(task), "%" PRId64, pid);
	return file_proc_stat(task, state, &start_ticks) ? start_ticks : 0;
}

/* The number after "\nName:" in the text of status; -1: it is not there. */
static int64_t status_number(const char *status, const char *name)
{
	const char *at = strstr(status, name);
	char *end;
	long long number;

	if (at == NULL)
		return -1;
	at += strlen(name);
	number = strtoll(at, &end, 10);
	return end != at ? number : -1;
}

static int64_t tracer_of(int64_t pid)
{
	char status[4096];

	if (!proc_text(pid, "status", status, sizeof(status)))
		return -1;
	return status_number(status, "\nTracerPid:");
}

/* Real, effective and saved user: all ours, or it has more rights than we do. */
static bool is_ours(const char *status, bool any_user)
{
	const char *at = strstr(status, "\nUid:");
	long long users[3];

	if (at == NULL || sscanf(at, "\nUid: %lld %lld %lld", &users[0], &users[1], &users[2]) != 3)
		return false;
	if (any_user)
		return true;
	for (size_t i = 0; i < ARRAY_LENGTH(users); i++)
		if (users[i] != (long long)geteuid())
			return false;
	return true;
}

/* A whole file of /proc, terminated; NULL: unreadable. */
static char *read_whole(const char *path, size_t most, size_t *length)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = fd != -1 ? file_read_whole(fd, most, length) : NULL;

	if (fd != -1)
		close(fd);
	return text;
}

static bool is_allowed_there(struct stacks_target *target, bool any_user)
{
	static const char setting[] = "RINGSIDE_STACKS=0";
	char pid[24], path[64], *text;
	size_t length = 0;
	struct stat st;
	bool is_off = false;

	text_format(pid, sizeof(pid), "%" PRId64, target->pid);
	text_format(path, sizeof(path), "/proc/%s/environ", pid);
	text = file_text_of(file_proc_user(pid), path, false, ENVIRONMENT_MOST, &length, &st);
	if (text == NULL && errno == ETIMEDOUT)
		return refuse(target, "the system does not answer about its memory");
	if (text == NULL && any_user)
		return refuse(target, "its environment, which may forbid it, cannot be read");
	for (size_t at = 0; text != NULL && at < length; at += strlen(text + at) + 1)
		is_off |= strcmp(text + at, setting) == 0;
	free(text);
	return !is_off || refuse(target, "RINGSIDE_STACKS=0 in its environment");
}

static bool may_read(struct stacks_target *target, const struct stacks_options *options)
{
	char status[4096], state;
	uint64_t start_ticks = start_of(target->pid, &state);

	if (stacks_are_off())
		return refuse(target, "RINGSIDE_STACKS=0");
	if (start_ticks == 0 || state == 'Z' ||
	    !proc_text(target->pid, "status", status, sizeof(status)))
		return refuse(target, "no such process");
	if (target->start_ticks == 0)
		target->start_ticks = start_ticks;
	if (target->start_ticks != start_ticks)
		return refuse(target, "the process has ended, and another one has its PID");
	if (status_number(status, "\nTgid:") != target->pid)
		return refuse(target, "not a process but one of its threads");
	if (!is_ours(status, options->any_user))
		return refuse(target, geteuid() == 0
					      ? "it belongs to another user (--any-user reads it)"
					      : "it belongs to another user");
	return is_allowed_there(target, options->any_user);
}

/* ---- /proc ----------------------------------------------------------------------------------- */

typedef void visit_thread(struct stacks_target *target, int64_t tid);

static void each_thread(struct stacks_target *target, visit_thread *visit)
{
	char path[64];
	DIR *list;

	text_format(path, sizeof(path), "/proc/%" PRId64 "/task", target->pid);
	list = opendir(path);
	for (struct dirent *entry; list != NULL && (entry = readdir(list)) != NULL;) {
		int64_t tid;

		if (text_number(entry->d_name, 1, INT32_MAX, &tid) == OK)
			visit(target, tid);
	}
	if (list != NULL)
		closedir(list);
}

static bool task_text(const struct stacks_target *target, int64_t tid, const char *name, char *text,
		      size_t size)
{
	char path[64];

	text_format(path, sizeof(path), "task/%" PRId64 "/%s", tid, name);
	return proc_text(target->pid, path, text, size);
}

static void note_thread(struct stacks_target *target, int64_t tid)
{
	struct stack_thread *thread = stack_thread(&target->stack, tid);
	char text[256], task[64];

	if (thread == NULL)
		return;
	if (task_text(target, tid, "schedstat", text, sizeof(text)))
		thread->is_cpu_known = stack_read_schedstat(text, &thread->cpu_ns);
	text_format(task, sizeof(task), "%" PRId64 "/task/%" PRId64, target->pid, tid);
	thread->own_tid = (int64_t)file_proc_own_pid(task);
}

/* Of a process in another network namespace these are its own files, too. */
static void find_peer(const struct stacks_target *target, struct stack_thread *thread,
		      uint64_t socket)
{
	static const char *const kinds[] = { "tcp", "tcp6" };
	bool is_found = false;

	for (size_t i = 0; i < ARRAY_LENGTH(kinds) && !is_found; i++) {
		char path[64], *text;
		size_t length;

		text_format(path, sizeof(path), "/proc/%" PRId64 "/net/%s", target->pid, kinds[i]);
		text = read_whole(path, SOCKETS_MOST, &length);
		is_found = text != NULL && stack_read_peer(text, socket, thread->waits_for,
							   sizeof(thread->waits_for));
		free(text);
	}
	if (!is_found)
		text_copy(thread->waits_for, sizeof(thread->waits_for), "a socket");
}

static void find_file(const struct stacks_target *target, struct stack_thread *thread)
{
	char path[96], link[1024];
	uint64_t socket;
	ssize_t length;

	if (thread->waits_on < 0)
		return;
	text_format(path, sizeof(path), "/proc/%" PRId64 "/fd/%" PRId64, target->pid,
		    thread->waits_on);
	length = readlink(path, link, sizeof(link) - 1);
	if (length <= 0)
		return;
	link[length] = '\0';
	if (!stack_read_link(link, thread->waits_for, sizeof(thread->waits_for), &socket))
		find_peer(target, thread, socket);
}

static void read_thread(struct stacks_target *target, int64_t tid)
{
	struct stack_thread *thread = stack_thread(&target->stack, tid);
	uint64_t spent_ns, passed_ns = now_ns() - target->first_ns;
	char text[KERNEL_TEXT];

	if (thread == NULL)
		return;
	if (task_text(target, tid, "stat", text, sizeof(text)))
		stack_read_stat(thread, text);
	if (task_text(target, tid, "syscall", text, sizeof(text)))
		stack_read_syscall(thread, text);
	if (task_text(target, tid, "stack", text, sizeof(text)) ||
	    task_text(target, tid, "wchan", text, sizeof(text)))
		stack_read_kernel(thread, text);
	if (thread->is_cpu_known && task_text(target, tid, "schedstat", text, sizeof(text)) &&
	    stack_read_schedstat(text, &spent_ns) && spent_ns >= thread->cpu_ns && passed_ns > 0) {
		double percent = 100.0 * (double)(spent_ns - thread->cpu_ns) / (double)passed_ns;

		thread->cpu_percent = percent > 100 ? 100 : (int)(percent + 0.5);
	}
	find_file(target, thread);
}

/* ---- tools ----------------------------------------------------------------------------------- */

struct tool {
	const char *const *words;
	char path[512];
	bool is_stopping;
	unsigned int retries; /* left */
	bool has_failed;      /* it said so itself */
	struct child child;
	char problem[sizeof("eu-stack failed: ") + 96]; /* "" none */
};

/* Its absolute path; false: it is not installed. */
static bool find_program(const char *program, char *path, size_t size)
{
	const char *list = getenv("PATH");

	for (const char *at = list; at != NULL;) {
		size_t length = strcspn(at, ":");

		if (length > 0 && at[0] == '/' &&
		    text_format(path, size, "%.*s/%s", (int)length, at, program) &&
		    access(path, X_OK) == 0)
			return true;
		at = at[length] == ':' ? at + length + 1 : NULL;
	}
	return false;
}

/* No downloads of symbols while the process is stopped. */
static bool set_environment(void)
{
	return unsetenv("DEBUGINFOD_URLS") == 0 && unsetenv("LD_PRELOAD") == 0 &&
	       setenv("LC_ALL", "C", 1) == 0;
}

/* What went wrong in its own words, without control characters. */
static void note_failure(struct tool *tool)
{
	static const char prefix[] = "Error: ";
	char words[96] = "", *own = words;

	if (tool->child.why_length > 0)
		text_copy(words, sizeof(words), tool->child.why);
	own += strncmp(words, prefix, strlen(prefix)) == 0 ? strlen(prefix) : 0;
	text_clean(own);
	text_format(tool->problem, sizeof(tool->problem), "%s failed%s%s", tool->words[0],
		    own[0] != '\0' ? ": " : "", own);
}

static char task_state(const struct stacks_target *target, int64_t tid)
{
	char text[512];
	const char *end;

	if (!task_text(target, tid, "stat", text, sizeof(text)))
		return 0;
	end = strrchr(text, ')');
	return end != NULL && end[1] == ' ' ? end[2] : 0;
}

/* eu-stack stops one thread after the other, gdb all of them. */
static void note_stop(struct stacks_target *target, int64_t tid)
{
	struct stack_thread *thread = stack_thread(&target->stack, tid);
	char state = task_state(target, tid);

	if (thread == NULL)
		return;
	if (state != 't' && state != 'T') {
		thread->stopped_ns = 0;
		return;
	}
	if (thread->stopped_ns == 0)
		thread->stopped_ns = now_ns();
	target->is_stopped_long |= now_ns() - thread->stopped_ns > STACKS_STOP_NS;
}

static bool is_stopped_long(struct stacks_target *target)
{
	target->is_stopped_long = false;
	each_thread(target, note_stop);
	return target->is_stopped_long;
}

/*
 * It ran before, so a stop that is there now is the tool's. A tool that was killed may have sent a stop that arrives
 * later, however late on a busy machine: SIGCONT removes it.
 */
static void make_it_run(const struct stacks_target *target, bool was_killed)
{
	uint64_t until_ns = now_ns() + SETTLE_NS, last_ns = now_ns() + END_NS;
	char now_state;

	if (was_killed && start_of(target->pid, &now_state) == target->start_ticks)
		kill((pid_t)target->pid, SIGCONT);
	while (now_ns() < until_ns && now_ns() < last_ns) {
		char state;

		if (start_of(target->pid, &state) != target->start_ticks)
			return;
		if (state == 'T' && tracer_of(target->pid) == 0) {
			kill((pid_t)target->pid, SIGCONT);
			until_ns = now_ns() + SETTLE_NS;
		}
		poll(NULL, 0, 1);
	}
}

/* Until the tool ends by itself: true. False: it was killed, and `problem` says why. */
static bool follow_tool(struct stacks_target *target, struct tool *tool)
{
	struct child *child = &tool->child;
	const char *why = NULL;

	while (why == NULL && !child_has_ended(child, now_ns())) {
		if (tool->is_stopping && is_stopped_long(target))
			why = "would have stopped it for too long";
		else
			child_wait(child, tool->is_stopping ? 1 : 20);
	}
	if (why == NULL && child->killed_ns == 0)
		return true;
	if (why == NULL)
		why = child->used > OUTPUT_MOST ? "wrote too much" : "took too long";
	child_release(child);
	text_format(tool->problem, sizeof(tool->problem), "%s %s", tool->words[0], why);
	return false;
}

static void run_tool(struct stacks_target *target, struct tool *tool)
{
	char *words[TOOL_WORDS];
	const struct child_task task = { .words = words,
					 .prepare = set_environment,
					 .timeout_ns = TOOL_NS,
					 .limit_bytes = OUTPUT_MOST };
	void (*before)(int) = signal(SIGCHLD, SIG_DFL);
	bool has_ended;

	words[0] = tool->path;
	for (size_t i = 1; i < TOOL_WORDS; i++) {
		words[i] = (char *)(uintptr_t)tool->words[i];
		if (words[i] == NULL)
			break;
	}
	tool->has_failed = false;
	tool->problem[0] = '\0';
	child_release(&tool->child);
	child_start(&tool->child, &task, -1, now_ns());
	if (tool->child.pid == 0) {
		text_format(tool->problem, sizeof(tool->problem), "%s cannot be started",
			    tool->words[0]);
	} else {
		has_ended = follow_tool(target, tool);
		tool->has_failed = has_ended && tool->child.code > 0;
		if (has_ended && tool->child.code != 0)
			note_failure(tool);
		if (tool->is_stopping)
			make_it_run(target, !has_ended);
	}
	signal(SIGCHLD, before);
}

/* Does any thread sleep in a way that a tracer would have to wait for, or is it stopped or traced? */
static void note_unstoppable(struct stacks_target *target, int64_t tid)
{
	char state = task_state(target, tid);

	if (state != 0 && strchr("DTtZX", state) != NULL)
		text_format(target->why, sizeof(target->why),
			    "not stopped for its native frames: a thread is in state %c", state);
}

static bool may_stop(struct stacks_target *target)
{
	char before[sizeof(target->why)];

	text_copy(before, sizeof(before), target->why);
	target->why[0] = '\0';
	if (tracer_of(target->pid) != 0)
		return refuse(target, "not stopped for its native frames: it is being traced");
	if (kill((pid_t)target->pid, 0) == -1)
		return refuse(target, "not stopped for its native frames: no right to continue it");
	each_thread(target, note_unstoppable);
	if (target->why[0] != '\0')
		return false;
	text_copy(target->why, sizeof(target->why), before);
	return true;
}

static void use_tool(struct stacks_target *target, struct tool *tool,
		     enum status (*read_output)(struct stack *stack, const char *text,
						size_t length))
{
	uint64_t until_ns = now_ns() + RETRY_NS;

	run_tool(target, tool);
	while (tool->has_failed && tool->retries > 0 && now_ns() < until_ns) {
		tool->retries--;
		run_tool(target, tool);
	}
	if (tool->problem[0] == '\0' &&
	    read_output(&target->stack, tool->child.bytes, tool->child.used) != OK)
		text_format(tool->problem, sizeof(tool->problem), "%s shows no frames",
			    tool->words[0]);
	if (tool->problem[0] != '\0')
		text_append(target->why, sizeof(target->why), "%s%s", target->why[0] ? "; " : "",
			    tool->problem);
	child_release(&tool->child);
}

static void run_tools(struct stacks_target *target, const struct stacks_options *options)
{
	char pid[24];
	const char *pyspy[] = { "py-spy", "dump", "--json", "--nonblocking", "--pid", pid, NULL };
	const char *eu_stack[] = { "eu-stack", "-n", "64", "-p", pid, NULL };
	const char *eu_stack_main[] = { "eu-stack", "-1", "-n", "64", "-p", pid, NULL };
	const char *gdb[] = { "gdb",  "-nx",
			      "-nh",  "-batch",
			      "-iex", "set auto-load off",
			      "-iex", "set print frame-arguments none",
			      "-p",   pid,
			      "-ex",  "thread apply all bt 64",
			      NULL };

	/* A thread that runs changes what py-spy reads: then it fails, for all threads. */
	struct tool python = { .words = pyspy, .retries = 4 },
		    native = { .words = eu_stack, .is_stopping = true };

	text_format(pid, sizeof(pid), "%" PRId64, target->pid);
	if (find_program("py-spy", python.path, sizeof(python.path)))
		use_tool(target, &python, stack_read_pyspy);
	if (target->stack.has_python || !options->may_stop)
		return;
	if (!find_program("eu-stack", native.path, sizeof(native.path))) {
		native.words = gdb;
		if (!find_program("gdb", native.path, sizeof(native.path)))
			return;
	}
	if (may_stop(target))
		use_tool(target, &native, stack_read_native);
	/* Of hundreds of threads the main one says most. */
	if (native.words == eu_stack && native.problem[0] != '\0' && may_stop(target)) {
		native.words = eu_stack_main;
		use_tool(target, &native, stack_read_native);
	}
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void wait_until(uint64_t until_ns)
{
	for (uint64_t now; (now = now_ns()) < until_ns;)
		poll(NULL, 0, (int)((until_ns - now) / 1000000) + 1);
}

void stacks_take(struct stacks_target *targets, size_t count, const struct stacks_options *options)
{
	uint64_t begun_ns = now_ns();
	bool has_any = false;

	for (size_t i = 0; i < count; i++) {
		targets[i].is_read = may_read(&targets[i], options);
		targets[i].first_ns = now_ns();
		if (targets[i].is_read)
			each_thread(&targets[i], note_thread);
		has_any |= targets[i].is_read;
	}
	if (!has_any)
		return;
	for (size_t i = 0; i < count; i++) {
		if (!targets[i].is_read)
			continue;
		if (options->budget_ns > 0 && now_ns() - begun_ns > options->budget_ns)
			refuse(&targets[i], "no time was left for its frames");
		else
			run_tools(&targets[i], options);
	}
	wait_until(begun_ns + SECOND_NS);
	for (size_t i = 0; i < count; i++) {
		char state;

		if (!targets[i].is_read)
			continue;
		/* Of this list only: the threads were listed before, for CPU time and by the tools. */
		targets[i].stack.threads_left_out = 0;
		each_thread(&targets[i], read_thread);
		if (start_of(targets[i].pid, &state) == targets[i].start_ticks && state != 'Z')
			continue;
		stack_release(&targets[i].stack);
		refuse(&targets[i], "the process has ended");
	}
}

static bool is_candidate(const struct recording_process *process)
{
	char value[8];

	return process->life == RECORDING_ALIVE && process->region != NULL &&
	       process->pid_here > 0 && process->stack == NULL &&
	       !(recording_info(process, "env.RINGSIDE_STACKS", value, sizeof(value)) &&
		 strcmp(value, "0") == 0);
}

size_t stacks_of_recording(struct recording *recording,
			   bool (*wanted)(const struct recording_process *process, void *context),
			   void *context, const struct stacks_options *options)
{
	struct stacks_target *targets = calloc(STACKS_PROCESSES_MAX, sizeof(*targets));
	struct recording_process *processes[STACKS_PROCESSES_MAX];
	size_t count = 0, found = 0;

	for (size_t i = 0; i < recording->count && count < STACKS_PROCESSES_MAX && targets; i++) {
		struct recording_process *process = recording->processes[i];

		if (!is_candidate(process) || (wanted != NULL && !wanted(process, context)))
			continue;
		stacks_target_init(&targets[count], process->pid_here, process->start_ticks);
		processes[count++] = process;
	}
	if (count > 0)
		stacks_take(targets, count, options);
	for (size_t i = 0; i < count; i++) {
		char place[STACK_PLACE];

		stack_say(&targets[i].stack, place, sizeof(place));
		if (place[0] != '\0')
			processes[i]->stack = strdup(place);
		found += processes[i]->stack != NULL;
		stacks_target_release(&targets[i]);
	}
	free(targets);
	return found;
}
