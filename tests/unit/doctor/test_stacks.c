/*
 * Whose threads are read, and whose are not; and what becomes of a process while a tool reads it. The tools are shell
 * scripts here. What real ones print is tested in tests/unit/import/test_stack_read.c.
 */
#include "doctor/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/file.h"
#include "common/text.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

enum { NOBODY = 65534 };

/* The only thread of a process; ThreadSanitizer adds one of its own to our children. */
static bool is_alone(size_t threads)
{
#ifdef __SANITIZE_THREAD__
	return threads == 1 || threads == 2;
#else
	return threads == 1;
#endif
}

static uint64_t ticks_of(pid_t pid)
{
	char task[24], state;
	uint64_t ticks = 0;

	snprintf(task, sizeof(task), "%d", (int)pid);
	return file_proc_stat(task, &state, &ticks) ? ticks : 0;
}

static void wait_for_state(pid_t pid, char wanted)
{
	char task[24], state = 0;
	uint64_t ticks;

	snprintf(task, sizeof(task), "%d", (int)pid);
	while (!file_proc_stat(task, &state, &ticks) || state != wanted)
		sched_yield();
}

static int never[2];

/* A child that waits for what nobody writes. */
static pid_t waiting_child(uid_t user)
{
	int ready[2];
	pid_t child;
	char byte = 0;

	if (pipe(ready) == -1 || (child = fork()) == -1)
		abort();
	if (child == 0) {
		if (user != geteuid() && setresuid(user, user, user) == -1)
			_exit(1);
		if (write(ready[1], &byte, 1) != 1)
			_exit(1);
		while (read(never[0], &byte, 1) == -1 && errno == EINTR)
			;
		_exit(0);
	}
	if (read(ready[0], &byte, 1) != 1)
		abort();
	close(ready[0]);
	close(ready[1]);
	wait_for_state(child, 'S');
	return child;
}

/* A program of its own: only then is the environment its own, too. */
static pid_t program_with(const char *setting)
{
	char line[64];
	char *const arguments[] = { (char[]){ "sleep" }, (char[]){ "1000" }, NULL };
	char *const environment[] = { (char[]){ "A=B" }, line, (char[]){ "C=D" }, NULL };
	int started[2];
	pid_t child;

	snprintf(line, sizeof(line), "%s", setting);
	/* Closed by the exec. */
	if (pipe2(started, O_CLOEXEC) == -1 || (child = fork()) == -1)
		abort();
	if (child == 0) {
		execve("/bin/sleep", arguments, environment);
		_exit(1);
	}
	close(started[1]);
	if (read(started[0], line, 1) != 0)
		abort();
	close(started[0]);
	return child;
}

static pid_t zombie(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	wait_for_state(child, 'Z');
	return child;
}

static void *wait_in_thread(void *tid)
{
	char byte;

	__atomic_store_n((pid_t *)tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	if (read(never[0], &byte, 1) != 1)
		return NULL;
	return tid;
}

static pid_t thread_of_ours(void)
{
	static pid_t tid;
	pthread_t thread;

	if (pthread_create(&thread, NULL, wait_in_thread, &tid) != 0)
		abort();
	while (__atomic_load_n(&tid, __ATOMIC_ACQUIRE) == 0)
		sched_yield();
	pthread_detach(thread);
	return tid;
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* All at once: a reading takes a second. */
static void who_is_read(void)
{
	pid_t good = waiting_child(geteuid()), off = program_with("RINGSIDE_STACKS=0"),
	      on = program_with("RINGSIDE_STACKS=01"), dead = zombie(), gone = zombie();
	bool is_root = geteuid() == 0;
	pid_t other = is_root ? waiting_child(NOBODY) : 1;
	const struct {
		const char *sentence;
		pid_t pid;
		uint64_t start_ticks;
		const char *why; /* NULL: it is read */
	} cases[] = {
		{ "a process of ours", good, ticks_of(good), NULL },
		{ "whoever has the PID", good, 0, NULL },
		{ "not one that has the PID of another", good, ticks_of(good) + 1,
		  "the process has ended, and another one has its PID" },
		{ "a program with another setting", on, 0, NULL },
		{ "not one that forbids it", off, 0, "RINGSIDE_STACKS=0 in its environment" },
		{ "not a dead one", dead, 0, "no such process" },
		{ "not one that is gone", gone, 0, "no such process" },
		{ "not a thread", thread_of_ours(), 0, "not a process but one of its threads" },
		{ "not one of another user", other, 0,
		  is_root ? "it belongs to another user (--any-user reads it)"
			  : "it belongs to another user" },
	};
	struct stacks_target targets[sizeof(cases) / sizeof(cases[0])];
	const struct stacks_options plain = { .may_stop = false }, any = { .any_user = true };
	const struct stack_thread *thread;

	end(gone);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		stacks_target_init(&targets[i], cases[i].pid, cases[i].start_ticks);
	stacks_take(targets, sizeof(cases) / sizeof(cases[0]), &plain);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *why = cases[i].why != NULL ? cases[i].why : "";

		if (!EXPECT_THAT(cases[i].sentence,
				 strcmp(targets[i].why, why) == 0 &&
					 (cases[i].why == NULL
						  ? is_alone(targets[i].stack.thread_count)
						  : targets[i].stack.thread_count == 0)))
			printf("# %s, %zu threads\n", targets[i].why,
			       targets[i].stack.thread_count);
	}
	thread = targets[0].stack.threads;
	EXPECT(thread != NULL && thread->tid == good && thread->state == 'S' &&
	       thread->cpu_percent <= 0);
	/* Some systems do not show it. */
	if (thread != NULL && thread->syscall[0] != '\0')
		EXPECT(strcmp(thread->syscall, "read") == 0 && thread->waits_on == never[0] &&
		       strcmp(thread->waits_for, "a pipe") == 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		stacks_target_release(&targets[i]);
	if (is_root) {
		stacks_target_init(&targets[0], other, 0);
		stacks_take(targets, 1, &any);
		EXPECT_THAT("with --any-user also those of others",
			    targets[0].why[0] == '\0' && is_alone(targets[0].stack.thread_count));
		stacks_target_release(&targets[0]);
		end(other);
	}
	setenv("RINGSIDE_STACKS", "0", 1);
	stacks_target_init(&targets[0], good, 0);
	stacks_take(targets, 1, &plain);
	EXPECT_THAT("turned off here, nobody is read",
		    stacks_are_off() && strcmp(targets[0].why, "RINGSIDE_STACKS=0") == 0 &&
			    targets[0].stack.thread_count == 0);
	stacks_target_release(&targets[0]);
	setenv("RINGSIDE_STACKS", "1", 1);
	EXPECT(!stacks_are_off());
	unsetenv("RINGSIDE_STACKS");
	EXPECT(!stacks_are_off());
	end(good);
	end(off);
	end(on);
	end(dead);
}

static bool is_second(const struct recording_process *process, void *context)
{
	return process == ((struct recording_process **)context)[1];
}

static void processes_of_a_recording(void)
{
	static struct region_header region;
	pid_t child = waiting_child(geteuid());
	static char forbids[] = "env.RINGSIDE_STACKS=0\n", allows[] = "env.RINGSIDE_STACKS=00\n";
	enum { COUNT = 7 + STACKS_PROCESSES_MAX };
	struct recording_process list[COUNT], *processes[COUNT];
	struct recording recording = { .processes = processes, .count = COUNT };
	const struct stacks_options plain = { .may_stop = false };

	memset(list, 0, sizeof(list));
	for (int i = 0; i < COUNT; i++) {
		processes[i] = &list[i];
		list[i].life = RECORDING_ALIVE;
		list[i].region = (void *)&region;
		list[i].pid_here = child;
	}
	list[2].life = RECORDING_ENDED;
	list[3].region = NULL;
	list[4].pid_here = -1;
	list[5].info = forbids;
	list[5].info_bytes = strlen(forbids);
	list[6].info = allows;
	list[6].info_bytes = strlen(allows);
	EXPECT_EQUAL(stacks_of_recording(&recording, is_second, processes, &plain), 1);
	EXPECT(list[0].stack == NULL && list[1].stack != NULL);
	EXPECT_THAT("those that are alive here and have none",
		    stacks_of_recording(&recording, NULL, NULL, &plain) == STACKS_PROCESSES_MAX &&
			    list[0].stack != NULL && list[2].stack == NULL &&
			    list[3].stack == NULL && list[4].stack == NULL);
	EXPECT_THAT("none that was forbidden, and not more than the limit",
		    list[5].stack == NULL && list[6].stack != NULL &&
			    list[COUNT - 3].stack != NULL && list[COUNT - 2].stack == NULL &&
			    list[COUNT - 1].stack == NULL);
	EXPECT_THAT("the same place is the same text",
		    list[0].stack != NULL && strcmp(list[0].stack, list[1].stack) == 0);
	for (int i = 0; i < COUNT; i++)
		free(list[i].stack);
	end(child);
}

/* ---- tools -------------------------------------------------------------------------------------------- */

static const char *directory;

/* `tool` runs what is written for the process that it is given, in a shell; without that it prints nothing. */
static void install(const char *below, const char *tool, mode_t mode)
{
	char path[128];
	FILE *file;

	text_format(path, sizeof(path), "%s/%s", directory, below);
	mkdir(path, 0700);
	text_append(path, sizeof(path), "/%s", tool);
	file = fopen(path, "w");
	if (file == NULL ||
	    fputs("#!/bin/sh\nfor word; do\ncase $before in -p | --pid) pid=$word; esac\n"
		  "before=$word\ndone\n[ -e \"$0.$pid\" ] || exit 0\n"
		  "echo >>\"$0.runs.$pid\"\n. \"$0.$pid\"\n",
		  file) < 0)
		abort();
	fclose(file);
	chmod(path, mode);
}

static void teach(const char *tool, pid_t pid, const char *script)
{
	char path[128];
	FILE *file;

	text_format(path, sizeof(path), "%s/%s.%d", directory, tool, (int)pid);
	file = fopen(path, "w");
	if (file == NULL || fputs(script, file) < 0)
		abort();
	fclose(file);
}

static size_t runs_of(const char *tool, pid_t pid)
{
	char path[128];
	struct stat st;

	text_format(path, sizeof(path), "%s/%s.runs.%d", directory, tool, (int)pid);
	return stat(path, &st) == 0 ? (size_t)st.st_size : 0;
}

static char state_of(pid_t pid)
{
	char task[24], state = 0;
	uint64_t ticks;

	snprintf(task, sizeof(task), "%d", (int)pid);
	return file_proc_stat(task, &state, &ticks) ? state : 0;
}

/* Where the main thread is, from the frames. */
static const char *frame_of(const struct stacks_target *target)
{
	for (size_t i = 0; i < target->stack.thread_count; i++)
		if (target->stack.threads[i].tid == target->pid)
			return target->stack.threads[i].frame_count == 1
				       ? target->stack.threads[i].frames[0].function
				       : "";
	return "no thread";
}

struct tool_case {
	const char *sentence, *script, *why, *frame;
	size_t least_runs, most_runs;
};

static void check_case(const struct tool_case *of, const struct stacks_target *target, size_t runs)
{
	if (!EXPECT_THAT(of->sentence, strcmp(target->why, of->why) == 0 &&
					       strcmp(frame_of(target), of->frame) == 0 &&
					       runs >= of->least_runs && runs <= of->most_runs))
		printf("# %s, in %s, %zu runs\n", target->why, frame_of(target), runs);
}

#define PYTHON(function)                                                                 \
	"echo '[{\"thread_name\":\"MainThread\",\"os_thread_id\":'$pid',\"frames\":[{\"" \
	"name\":\"'" function "'\",\"filename\":\"/t.py\",\"line\":7}]}]'\n"
#define NATIVE(function) "echo \"TID $pid:\"; echo '#0  0x1 " function "'\n"
#define RATHER_LONG \
	"a tool that complains for longer than anybody wants to read it at three in the night"

static void one_that_reads_python(void)
{
	static const struct tool_case cases[] = {
		{ "its frames, in the language of the machine, without downloads, files and input",
		  "read line || read_nothing=y; [ -e /proc/$$/fd/97 ] || no_file=y\n"
		  "echo noise >&2\n" PYTHON(
			  "$LC_ALL$DEBUGINFOD_URLS$LD_PRELOAD$read_nothing$no_file"),
		  "", "Cyy", 1, 1 },
		{ "one that fails is tried again, a few times",
		  "echo 'Error: no right' >&2; echo more >&2; exit 1\n", "py-spy failed: no right",
		  "", 1, 5 },
		{ "one that is killed is not", "kill -KILL $$\n", "py-spy failed", "", 1, 1 },
		{ "not what it is expected to print", "echo nonsense\n", "py-spy shows no frames",
		  "", 1, 1 },
		{ "too much", "while :; do printf '%65536s' ''; done\n", "py-spy wrote too much",
		  "", 1, 1 },
		{ "the beginning of what it says, in one line",
		  "printf '" RATHER_LONG "\\033, and so on, and so on' >&2; kill -TERM $$\n",
		  "py-spy failed: " RATHER_LONG "?, and so o", "", 1, 1 },
		{ "what it says in two parts, with its output closed",
		  "printf 'one ' >&2; exec >&-; printf two >&2; kill -TERM $$\n",
		  "py-spy failed: one two", "", 1, 1 },
		{ "a process that ends meanwhile",
		  "kill -KILL $pid\nwhile read -r _ _ state _ </proc/$pid/stat && [ $state != Z ]; "
		  "do :; done\n" PYTHON("main"),
		  "the process has ended", "no thread", 1, 1 },
	};
	const struct stacks_options options = { .budget_ns = UINT64_C(3600000000000) };
	struct stacks_target targets[ARRAY_LENGTH(cases)];
	pid_t children[ARRAY_LENGTH(cases)];
	char path[256];

	install("python", "py-spy", 0700);
	install("locked", "py-spy", 0600);
	text_format(path, sizeof(path), ":%s/locked::python:%s/missing:%s/python", directory,
		    directory, directory);
	setenv("PATH", path, 1);
	setenv("DEBUGINFOD_URLS", "http://localhost", 1);
	if (dup2(never[0], 97) == -1)
		abort();
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		children[i] = waiting_child(geteuid());
		teach("python/py-spy", children[i], cases[i].script);
		stacks_target_init(&targets[i], children[i], 0);
	}
	stacks_take(targets, ARRAY_LENGTH(cases), &options);
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		check_case(&cases[i], &targets[i], runs_of("python/py-spy", children[i]));
		stacks_target_release(&targets[i]);
		end(children[i]);
	}
	close(97);
	unsetenv("DEBUGINFOD_URLS");
}

static pid_t traced_child(void)
{
	pid_t child = fork();

	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		for (;;)
			pause();
	}
	wait_for_state(child, 'S');
	return child;
}

/* Until the process is stopped, as a signal does it. */
#define STOP                                                                                    \
	"kill -STOP $pid; while read line </proc/$pid/stat; do case $line in *') T '*) break; " \
	"esac; done\n"

static void one_that_stops_it(void)
{
	static const struct tool_case cases[] = {
		{ "native frames", NATIVE("poll"), "", "poll", 1, 1 },
		{ "if that fails, those of the main thread",
		  "[ $1 = -1 ] || { echo many threads >&2; exit 3; }\n" NATIVE("main"),
		  "eu-stack failed: many threads", "main", 2, 2 },
		{ "if that fails, too, nothing", "echo no >&2; exit 3\n",
		  "eu-stack failed: no; eu-stack failed: no", "", 2, 2 },
		{ "one that stops it for long is ended",
		  "[ $1 = -1 ] || { " STOP "while :; do :; done; }\n" NATIVE("main"),
		  "eu-stack would have stopped it for too long", "main", 2, 2 },
		{ "one that leaves it stopped", STOP NATIVE("poll"), "", "poll", 1, 1 },
		{ "not for a process that is stopped anyway", NATIVE("poll"),
		  "not stopped for its native frames: a thread is in state T", "", 0, 0 },
		{ "not for a process that is traced", NATIVE("poll"),
		  "not stopped for its native frames: it is being traced", "", 0, 0 },
	};
	enum { STOPPED = 5, TRACED };
	const struct stacks_options options = { .may_stop = true };
	struct stacks_target targets[ARRAY_LENGTH(cases)];
	pid_t children[ARRAY_LENGTH(cases)];
	char path[128];

	install("native", "eu-stack", 0700);
	install("native", "gdb", 0700);
	text_format(path, sizeof(path), "%s/native", directory);
	setenv("PATH", path, 1);
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		children[i] = i == TRACED ? traced_child() : waiting_child(geteuid());
		teach("native/eu-stack", children[i], cases[i].script);
		teach("native/gdb", children[i], NATIVE("gdb"));
		stacks_target_init(&targets[i], children[i], 0);
	}
	kill(children[STOPPED], SIGSTOP);
	wait_for_state(children[STOPPED], 'T');
	stacks_take(targets, ARRAY_LENGTH(cases), &options);
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		check_case(&cases[i], &targets[i], runs_of("native/eu-stack", children[i]));
		EXPECT_THAT("afterwards it waits as before",
			    state_of(children[i]) == (i == STOPPED ? 'T' : 'S'));
		stacks_target_release(&targets[i]);
		end(children[i]);
	}
}

static void one_that_waits_on(pid_t *child, int fd, bool is_listening)
{
	*child = fork();
	if (*child == 0) {
		char byte;

		while ((is_listening ? accept(fd, NULL, NULL) : (int)read(fd, &byte, 1)) == -1)
			;
		_exit(0);
	}
	wait_for_state(*child, 'S');
}

/* Both kinds of tools: native frames are only for what has no Python. */
static void both(void)
{
	static const struct tool_case cases[] = {
		{ "no Python: gdb, where eu-stack is missing", NATIVE("poll"),
		  "py-spy shows no frames", "poll", 1, 1 },
		{ "Python: no need to stop it", NATIVE("poll"), "", "main", 0, 0 },
	};
	const struct stacks_options options = { .may_stop = true }, in_time = { .budget_ns = 1 };
	static const char *const waits[] = { "a socket", "a listening socket" };
	struct stacks_target targets[2];
	pid_t children[2];
	int sockets[2], listening = socket(AF_INET, SOCK_STREAM, 0);
	char path[128];

	install("both", "py-spy", 0700);
	install("both", "gdb", 0700);
	text_format(path, sizeof(path), "%s/both", directory);
	setenv("PATH", path, 1);
	for (size_t i = 0; i < 2; i++) {
		children[i] = waiting_child(geteuid());
		teach("both/gdb", children[i], cases[i].script);
		stacks_target_init(&targets[i], children[i], 0);
	}
	teach("both/py-spy", children[1], PYTHON("main"));
	stacks_take(targets, 2, &options);
	for (size_t i = 0; i < 2; i++) {
		check_case(&cases[i], &targets[i], runs_of("both/gdb", children[i]));
		stacks_target_release(&targets[i]);
		end(children[i]);
	}

	if (listening == -1 || listen(listening, 1) == -1 ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == -1)
		abort();
	for (size_t i = 0; i < 2; i++) {
		one_that_waits_on(&children[i], i == 0 ? sockets[0] : listening, i == 1);
		teach("both/py-spy", children[i], PYTHON("main"));
		stacks_target_init(&targets[i], children[i], 0);
	}
	stacks_take(targets, 2, &in_time);
	for (size_t i = 0; i < 2; i++) {
		const struct stack_thread *thread = targets[i].stack.threads;

		EXPECT_THAT("out of time: only what the system shows",
			    strcmp(targets[i].why, "no time was left for its frames") == 0 &&
				    is_alone(targets[i].stack.thread_count) &&
				    runs_of("both/py-spy", children[i]) == 0);
		if (thread != NULL && thread->syscall[0] != '\0')
			EXPECT(strcmp(thread->waits_for, waits[i]) == 0);
		stacks_target_release(&targets[i]);
		end(children[i]);
	}
	close(listening);
	close(sockets[0]);
	close(sockets[1]);
}

int main(void)
{
	/* No tool is found. */
	setenv("PATH", "/nonexistent", 1);
	unsetenv("RINGSIDE_STACKS");
	if (pipe(never) == -1)
		return 1;
	who_is_read();
	processes_of_a_recording();
	directory = scratch_make();
	one_that_reads_python();
	one_that_stops_it();
	both();
	return tap_done();
}
