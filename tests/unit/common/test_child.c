/* Child processes: their input, output, limits and end. That one cannot be killed is played; the file is included for that. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int play_kill(pid_t pid, int number);
#define kill play_kill
#include "common/child.c"
#undef kill
#include "tests/tap.h"

#define BEGIN (1000 * SECOND_NS)

static struct child child;
static bool is_unkillable;

static int play_kill(pid_t pid, int number)
{
	return is_unkillable ? 0 : kill(pid, number);
}

/* Until it has ended, at this time. */
static void run(const struct child_task *task, uint64_t now_ns)
{
	child_start(&child, task, -1, BEGIN);
	while (!child_has_ended(&child, now_ns))
		poll(NULL, 0, 1);
}

static void run_shell(const char *text, const char *input)
{
	char *words[] = { "/bin/sh", "-c", (char *)(uintptr_t)text, NULL };
	struct child_task task = { .words = words,
				   .input = input,
				   .timeout_ns = 600 * SECOND_NS,
				   .limit_bytes = 1 << 20 };

	run(&task, BEGIN);
}

static size_t open_fds(void)
{
	size_t count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) != -1;
	return count;
}

static void test_words(void)
{
	size_t fds = open_fds();
	char *large = malloc(300001);

	EXPECT(!(child = (struct child){ .output = -1 }).pid);
	child_release(&child);
	run_shell("cat; echo end; exit 7", "some input");
	EXPECT(child.code == 7 && strcmp(child.bytes, "some inputend\n") == 0 && child.used == 14 &&
	       child.why[0] == '\0' && child.pid == 0 && child.begun_ns == BEGIN &&
	       child.until_ns == BEGIN + 600 * SECOND_NS);
	EXPECT(child_has_ended(&child, BEGIN));
	child_release(&child);
	EXPECT(child.begun_ns == 0 && child.bytes == NULL && child.output == -1 &&
	       child.errors == -1);
	run_shell("cat", NULL);
	EXPECT_THAT("no input and no output", child.code == 0 && child.used == 0);
	child_release(&child);
	memset(large, 'x', 300000);
	large[300000] = '\0';
	run_shell("cat", large);
	EXPECT_THAT("a large input comes back",
		    child.code == 0 && child.used == 300000 && strcmp(child.bytes, large) == 0);
	child_release(&child);
	run_shell("echo first >&2; echo second >&2; exit 3", NULL);
	EXPECT(child.code == 3 && strcmp(child.why, "first") == 0);
	child_release(&child);
	run_shell("exit 127", NULL);
	EXPECT(child.code == 127 && strcmp(child.why, "it could not be started") == 0);
	child_release(&child);
	run_shell("echo mine >&2; exit 127", NULL);
	EXPECT(child.code == 127 && strcmp(child.why, "mine") == 0);
	child_release(&child);
	run_shell("kill -9 $$", NULL);
	EXPECT(child.code == -1 && strcmp(child.why, "it was ended by signal 9") == 0);
	child_release(&child);
	run_shell("echo said >&2; kill -9 $$", NULL);
	EXPECT(child.code == -1 && strcmp(child.why, "said") == 0);
	child_release(&child);
	EXPECT_EQUAL(open_fds(), fds);
	free(large);
}

/* A pipe holds 64 KiB: a child whose messages nobody reads would wait until it is killed. */
static void test_noise(void)
{
	run_shell("echo first >&2; head -c 3000000 /dev/zero >&2; echo done", NULL);
	EXPECT_THAT(
		"one that writes megabytes of messages ends, with its output and its first line",
		child.code == 0 && strcmp(child.bytes, "done\n") == 0 &&
			strcmp(child.why, "first") == 0);
	child_release(&child);
}

static void test_stuck(void)
{
	char *words[] = { "/bin/sleep", "600", NULL }, *next[] = { "/bin/true", NULL };
	struct child_task task = { .words = words, .timeout_ns = SECOND_NS, .limit_bytes = 10 };
	uint64_t late_ns = BEGIN + SECOND_NS, before = child_given_up();
	pid_t pid;

	child_start(&child, &task, -1, BEGIN);
	pid = child.pid;
	is_unkillable = true;
	EXPECT(!child_has_ended(&child, late_ns));
	EXPECT(!child_has_ended(&child, late_ns + 2 * SECOND_NS - 1) && child_given_up() == before);
	EXPECT_THAT("one that cannot be killed is given up and counted",
		    child_has_ended(&child, late_ns + 2 * SECOND_NS) &&
			    child_given_up() == before + 1 && child.code == -1 &&
			    strcmp(child.why,
				   "it took too long; it cannot be killed and was given up") == 0);
	child_release(&child);
	task.words = next;
	child_start(&child, &task, -1, BEGIN);
	EXPECT_THAT("while it is there, there is no other",
		    child.pid == 0 && child_has_ended(&child, BEGIN) && child.code == -1 &&
			    strstr(child.why, "cannot be killed") != NULL);
	child_release(&child);
	is_unkillable = false;
	kill(pid, SIGKILL);
	EXPECT(waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT) == 0);
	run(&task, BEGIN);
	EXPECT_THAT("afterwards there is", child.code == 0);
	child_release(&child);
}

/* The end of its owner does not wait for it either. */
static void test_stuck_at_release(void)
{
	char *words[] = { "/bin/sleep", "600", NULL };
	struct child_task task = { .words = words, .timeout_ns = SECOND_NS, .limit_bytes = 10 };
	uint64_t before = child_given_up();
	pid_t pid;

	child_start(&child, &task, -1, BEGIN);
	pid = child.pid;
	is_unkillable = true;
	child_release(&child);
	EXPECT(child.stuck == pid && child_given_up() == before + 1);
	child_start(&child, &task, -1, BEGIN);
	EXPECT_THAT("nor is there another one", child.pid == 0 && child.code == -1);
	child_release(&child);
	is_unkillable = false;
	kill(pid, SIGKILL);
	EXPECT(waitpid(pid, NULL, 0) == pid);
	child.stuck = 0;
}

static void test_limits(void)
{
	char *words[] = { "/bin/sh", "-c", "head -c 1000 /dev/zero", NULL };
	struct child_task task = { .words = words,
				   .timeout_ns = 600 * SECOND_NS,
				   .limit_bytes = 1000 };

	run(&task, BEGIN);
	EXPECT_THAT("as much as the limit", child.code == 0 && child.used == 1000);
	child_release(&child);
	task.limit_bytes = 999;
	run(&task, BEGIN);
	EXPECT_THAT("not more", child.code != 0 || child.why[0] != '\0');
	EXPECT(strcmp(child.why, "its output exceeds the limit") == 0);
	child_release(&child);
	words[2] = "echo noise >&2; head -c 1000 /dev/zero";
	run(&task, BEGIN);
	EXPECT_THAT("the reason is why it was ended, whatever it wrote",
		    strcmp(child.why, "its output exceeds the limit") == 0);
	child_release(&child);
	words[2] = "ulimit -t; ulimit -c; exec sleep 600";
	task.limit_bytes = 1000;
	task.timeout_ns = 1500 * MS_NS;
	child_start(&child, &task, -1, BEGIN);
	while (child.used < 4) {
		child_has_ended(&child, BEGIN + 1500 * MS_NS - 1);
		poll(NULL, 0, 1);
	}
	EXPECT_THAT("CPU time is limited to a second more, and there is no core file",
		    memcmp(child.bytes, "2\n0\n", 4) == 0);
	EXPECT(child.pid > 0 && child.why[0] == '\0');
	while (!child_has_ended(&child, BEGIN + 1500 * MS_NS)) {
		EXPECT_THAT("it is killed, and its end is asked for once per second",
			    strcmp(child.why, "it took too long") == 0 &&
				    child.until_ns == BEGIN + 2500 * MS_NS && child.output == -1);
		poll(NULL, 0, 20);
	}
	EXPECT(child.code == -1 && strcmp(child.why, "it took too long") == 0);
	child_release(&child);
}

/* One that still runs is killed, and everything that it started: all of them hold the end of a pipe. */
static void test_release(void)
{
	char *words[] = { "/bin/sh", "-c", "sleep 600 & echo ready; wait", NULL };
	struct child_task task = { .words = words,
				   .timeout_ns = 600 * SECOND_NS,
				   .limit_bytes = 1000 };
	size_t fds = open_fds();
	int epoll = epoll_create1(EPOLL_CLOEXEC), ends[2];
	struct epoll_event event;
	char byte;
	pid_t pid;

	EXPECT(pipe(ends) == 0);
	child_start(&child, &task, epoll, BEGIN);
	close(ends[1]);
	pid = child.pid;
	EXPECT_THAT("its output is an event",
		    epoll_wait(epoll, &event, 1, 60000) == 1 && event.data.fd == child.output);
	EXPECT(getpgid(pid) == pid);
	child_release(&child);
	EXPECT_THAT("none of its processes is left", read(ends[0], &byte, 1) == 0);
	EXPECT(waitpid(pid, NULL, WNOHANG) == -1 && errno == ECHILD);
	close(ends[0]);
	close(epoll);
	EXPECT_EQUAL(open_fds(), fds);
}

static int work_says(const char *input, void *context)
{
	dprintf(STDOUT_FILENO, "%s %d", input, *(int *)context);
	return 5;
}

static int work_limit(const char *input, void *context)
{
	struct rlimit memory;

	(void)input, (void)context;
	if (getrlimit(RLIMIT_AS, &memory) == -1)
		return 1;
	return memory.rlim_cur > UINT64_C(1) << 30 && memory.rlim_cur < UINT64_C(1) << 50 ? 0 : 2;
}

static int work_closes(const char *input, void *context)
{
	(void)input, (void)context;
	dprintf(STDERR_FILENO, "still here\n");
	return 4;
}

static int work_burns(const char *input, void *context)
{
	struct rusage usage;

	(void)input, (void)context;
	do
		getrusage(RUSAGE_SELF, &usage);
	while (usage.ru_utime.tv_sec == 0 &&
	       usage.ru_utime.tv_usec + usage.ru_stime.tv_usec < 20000);
	return 0;
}

/* The parent's descriptors that it can see, but for its own three. */
static int work_lists(const char *input, void *context)
{
	(void)input;
	for (int fd = STDERR_FILENO + 1; fd < 64; fd++)
		if (fcntl(fd, F_GETFD) != -1)
			printf("%d ", fd);
	fflush(stdout);
	return *(int *)context;
}

static void test_descriptors(void)
{
	int answer = 0, pair[2], file = open("/dev/null", O_RDWR);
	struct child_task task = { .work = work_lists,
				   .context = &answer,
				   .timeout_ns = 600 * SECOND_NS,
				   .limit_bytes = 1000 };

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 || file == -1)
		abort();
	run(&task, BEGIN);
	EXPECT_THAT("it keeps none of its parent's sockets and files",
		    child.code == 0 && child.used == 0);
	child_release(&child);
	close(pair[0]);
	close(pair[1]);
	close(file);
}

static void test_work(void)
{
	int number = 8;
	struct child_task task = { .work = work_says,
				   .context = &number,
				   .input = "in",
				   .timeout_ns = 600 * SECOND_NS,
				   .limit_bytes = 1000 };

	run(&task, BEGIN);
	EXPECT(child.code == 5 && strcmp(child.bytes, "in 8") == 0);
	child_release(&child);
	task.work = work_limit;
	task.memory_bytes = UINT64_C(1) << 30;
	run(&task, BEGIN);
	EXPECT_THAT("what it shares with its parent does not count as its memory", child.code == 0);
	child_release(&child);
	task.memory_bytes = 0;
	task.work = work_closes;
	run(&task, BEGIN);
	EXPECT_THAT("its three descriptors stay open",
		    child.code == 4 && strcmp(child.why, "still here") == 0);
	child_release(&child);
	task.work = work_burns;
	run(&task, BEGIN);
	EXPECT_THAT("its CPU time is known, in nanoseconds",
		    child.code == 0 && child.cpu_ns >= 20 * MS_NS &&
			    child.cpu_ns < 600 * SECOND_NS);
	child_release(&child);
}

static void test_cannot_start(void)
{
	char *words[] = { "/bin/true", NULL };
	struct child_task task = { .words = words, .timeout_ns = SECOND_NS, .limit_bytes = 1000 };
	struct rlimit files, few;
	size_t fds = open_fds();

	words[0] = "/none/of/this";
	run(&task, BEGIN);
	EXPECT(child.code == 127 && strcmp(child.why, "it could not be started") == 0);
	child_release(&child);
	words[0] = "/bin/true";
	getrlimit(RLIMIT_NOFILE, &files);
	for (rlim_t more = 0; more < 5; more++) {
		int next = dup(0);

		close(next);
		few = files;
		few.rlim_cur = (rlim_t)next + more;
		setrlimit(RLIMIT_NOFILE, &few);
		child_start(&child, &task, -1, BEGIN);
		setrlimit(RLIMIT_NOFILE, &files);
		EXPECT(child.pid == 0 && child.code == -1 &&
		       strcmp(child.why, "cannot start a process: Too many open files") == 0 &&
		       child_has_ended(&child, BEGIN));
		child_release(&child);
		EXPECT_EQUAL(open_fds(), fds);
	}
}

int main(void)
{
	test_words();
	test_noise();
	test_stuck();
	test_stuck_at_release();
	test_limits();
	test_release();
	test_descriptors();
	test_work();
	test_cannot_start();
	return tap_done();
}
