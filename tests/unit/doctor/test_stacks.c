/*
 * Whose threads are read, and whose are not. What the tools print is tested in tests/unit/import/test_stack_read.c,
 * that they run and end in tests/doctor/stacks.t.
 */
#include "doctor/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/file.h"
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
	struct recording_process list[5], *processes[5];
	struct recording recording = { .processes = processes, .count = 5 };
	const struct stacks_options plain = { .may_stop = false };

	memset(list, 0, sizeof(list));
	for (int i = 0; i < 5; i++) {
		processes[i] = &list[i];
		list[i].life = RECORDING_ALIVE;
		list[i].region = (void *)&region;
		list[i].pid_here = child;
	}
	list[2].life = RECORDING_ENDED;
	list[3].region = NULL;
	list[4].pid_here = -1;
	EXPECT_EQUAL(stacks_of_recording(&recording, is_second, processes, &plain), 1);
	EXPECT(list[0].stack == NULL && list[1].stack != NULL);
	EXPECT_THAT("those that are alive here and have none",
		    stacks_of_recording(&recording, NULL, NULL, &plain) == 1 &&
			    list[0].stack != NULL && list[2].stack == NULL &&
			    list[3].stack == NULL && list[4].stack == NULL);
	EXPECT_THAT("the same place is the same text",
		    list[0].stack != NULL && strcmp(list[0].stack, list[1].stack) == 0);
	free(list[0].stack);
	free(list[1].stack);
	end(child);
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
	return tap_done();
}
