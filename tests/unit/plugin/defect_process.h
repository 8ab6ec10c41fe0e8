/*
 * For tests that need a process of their own: the plugin sets itself up once per process, and much
 * of what can go wrong goes wrong at its end. defect_run() forks before anything is set up; the
 * child records into a fresh directory; the parent reads what it left.
 */
#ifndef DEFECT_PROCESS_H
#define DEFECT_PROCESS_H

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/text.h"
#include "recording/recording.h"
#include "tests/unit/plugin/callback_play.h"
#include "tests/tap.h"

/* A test that hangs is killed and fails. */
enum { DEFECT_PATIENCE_S = 170 };

/* Weak: one of several files of a program defines it. */
__attribute__((weak)) bool defect_is_child;

#if TAP_IS_SLOW
/*
 * Searching for leaks takes seconds on some machines: once is enough, in the parent. This also
 * avoids a second of sleep at each exit. The names are the sanitizers'.
 */
EXPORTED __attribute__((weak)) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return defect_is_child;
}

EXPORTED __attribute__((weak)) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "atexit_sleep_ms=0";
}
#endif

struct defect_run {
	char dir[64];
	int status; /* of waitpid() */
	struct recording recording;
	const struct recording_process *process; /* what the child recorded; NULL: nothing */
	struct recording_account account;
};

/* Remove settings from the tester's environment. */
static inline void defect_clean_settings(void)
{
	static const char *const names[] = { "RINGSIDE_MODE",  "RINGSIDE_DIR",
					     "RINGSIDE_SHM",   "RINGSIDE_BUFFER",
					     "RINGSIDE_QUOTA", "RINGSIDE_EVENTS",
					     "RINGSIDE_JOB",   "RINGSIDE_LABELS",
					     "RINGSIDE_GROUP", "RINGSIDE_DISABLE" };

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		unsetenv(names[i]);
}

static inline void defect_read(struct defect_run *run)
{
	recording_init(&run->recording);
	if (recording_add(&run->recording, run->dir, 0) != OK ||
	    recording_finish(&run->recording) != OK)
		exit(1);
	run->process = run->recording.count == 1 ? run->recording.processes[0] : NULL;
	memset(&run->account, 0, sizeof(run->account));
	if (run->process != NULL && recording_account(&run->account, run->process) != OK)
		exit(1);
}

/* Fork, let `body` record in this mode, exit as a program does, read. */
static inline struct defect_run defect_run(const char *mode, void (*body)(void))
{
	struct defect_run run = { .dir = "/tmp/ringside-test-XXXXXX" };
	pid_t child;

	fflush(stdout);
	if (mkdtemp(run.dir) == NULL)
		exit(1);
	child = fork();
	if (child == -1)
		exit(1);
	if (child == 0) {
		defect_is_child = true;
		alarm(DEFECT_PATIENCE_S);
		defect_clean_settings();
		setenv("RINGSIDE_SHM", run.dir, 1);
		setenv("RINGSIDE_DIR", run.dir, 1);
		setenv("RINGSIDE_MODE", mode, 1);
		body();
		exit(0);
	}
	if (waitpid(child, &run.status, 0) != child)
		exit(1);
	defect_read(&run);
	return run;
}

/*
 * The child ended well, and its recording adds up: issued == readable + counted as lost. What was
 * lost on its way to the file but is still in the ring is both.
 */
static inline bool defect_adds_up(const struct defect_run *run, uint64_t issued)
{
	const struct recording_account *account = &run->account;

	if (run->status == 0 && run->process != NULL && account->is_exact &&
	    account->issued == issued &&
	    account->kept + account->lost_operations - account->walk.recovered == issued)
		return true;
	printf("# status 0x%x, %zu processes, exact %d, issued %llu, kept %llu, lost %llu\n",
	       (unsigned int)run->status, run->recording.count, account->is_exact,
	       (unsigned long long)account->issued, (unsigned long long)account->kept,
	       (unsigned long long)account->lost_operations);
	return false;
}

static inline void defect_release(struct defect_run *run)
{
	char command[96];

	recording_account_release(&run->account);
	recording_release(&run->recording);
	/* The name is our own, from mkdtemp(). */
	if (text_format(command, sizeof(command), "rm -rf '%s'", run->dir) && system(command) != 0)
		printf("# %s is left behind\n", run->dir);
}

#endif
