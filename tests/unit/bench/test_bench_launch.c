/* Ranks started by the launcher, without a GPU. */
#include "bench/bench_launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/text.h"
#include "tests/tap.h"

enum { RANKS = 4 };

/* Shared by all processes. */
struct seen {
	int ranks;
	int fds;
	pid_t pids[RANKS];
	char text[256];
};
static struct seen *seen;
static char problem[512];

static bench_rank_fn rank_body;

/* The leak check at exit() takes longer than a rank has here. */
static int quickly(const struct bench_place *place, void *context)
{
	int code = rank_body(place, context);

	fflush(NULL);
	_exit(code);
}

static int launch_with(struct bench_launch launch, bench_rank_fn body)
{
	rank_body = body;
	memset(seen, 0, sizeof(*seen));
	launch.ranks = RANKS;
	launch.gpus = launch.gpus ? launch.gpus : RANKS;
	if (launch.results_fd == 0)
		launch.results_fd = -1;
	launch.problem = problem;
	launch.problem_size = sizeof(problem);
	return bench_launch(&launch, quickly, seen);
}

static int is_problem(const char *part)
{
	if (strstr(problem, part) != NULL)
		return 1;
	printf("#   got \"%s\"\n", problem);
	return 0;
}

static int is_gone(void)
{
	for (int i = 0; i < RANKS; i++)
		if (seen->pids[i] != 0 && kill(seen->pids[i], 0) == 0)
			return 0;
	return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD;
}

/* ---- ranks -------------------------------------------------------------------------------------- */

static int meet(const struct bench_place *place, struct bench_hub **hub)
{
	seen->pids[place->rank] = getpid();
	if (hub_open(hub, place, 20) == 0)
		return 0;
	if (hub_is_teller(*hub))
		bench_tell(place, hub_problem(*hub));
	hub_close(*hub);
	return -1;
}

static int is_number(const char *name, int number)
{
	char text[16];

	text_format(text, sizeof(text), "%d", number);
	return getenv(name) != NULL && strcmp(getenv(name), text) == 0;
}

static int good(const struct bench_place *place, void *context)
{
	struct seen *here = context;
	int ranks[RANKS], mine = place->rank;
	struct bench_hub *hub;

	if (meet(place, &hub) != 0)
		return 1;
	if (place->nranks != RANKS || place->local_rank != place->rank ||
	    (place->results_fd == -1) != (place->rank != 0) || !is_number("RANK", place->rank) ||
	    !is_number("WORLD_SIZE", RANKS) || strcmp(place->launcher, "self") != 0)
		hub_fail(hub, "not as promised");
	if (hub_gather(hub, &mine, sizeof(mine), ranks) != 0 || hub_meet(hub) != 0) {
		bench_tell(place, hub_problem(hub));
		return 1;
	}
	if (place->rank == 0)
		for (int i = 0; i < RANKS; i++)
			here->ranks += ranks[i] == i;
	hub_close(hub);
	return 0;
}

static int fail_two(const struct bench_place *place, void *context)
{
	struct bench_hub *hub;

	(void)context;
	if (meet(place, &hub) != 0)
		return 1;
	if (place->rank == 2)
		hub_fail(hub, "no GPU of mine");
	while (hub_meet(hub) == 0)
		;
	bench_tell(place, hub_problem(hub));
	hub_close(hub);
	return 1;
}

static int die_two(const struct bench_place *place, void *context)
{
	struct bench_hub *hub;

	(void)context;
	if (meet(place, &hub) != 0)
		return 1;
	if (place->rank == 2)
		kill(getpid(), SIGUSR1);
	while (hub_meet(hub) == 0)
		;
	bench_tell(place, hub_problem(hub));
	hub_close(hub);
	return 1;
}

/* Ignores every signal that can be ignored. */
static int stay(const struct bench_place *place, void *context)
{
	struct seen *here = context;

	here->pids[place->rank] = getpid();
	signal(SIGTERM, SIG_IGN);
	if (place->rank == 1)
		return 7;
	for (;;)
		pause();
}

static int hang(const struct bench_place *place, void *context)
{
	struct seen *here = context;

	here->pids[place->rank] = getpid();
	if (place->rank == 1)
		return 0;
	for (;;)
		pause();
}

static int zero_leaves(const struct bench_place *place, void *context)
{
	struct bench_hub *hub;

	(void)context;
	if (place->rank == 0)
		return 2;
	if (place->rank == 3) /* so slow that it is killed */
		pause();
	if (meet(place, &hub) == 0)
		return 0;
	return 2;
}

static int talk_much(const struct bench_place *place, void *context)
{
	struct bench_hub *hub;

	(void)context;
	if (meet(place, &hub) != 0)
		return 1;
	printf("rank %d chatters\n", place->rank);
	fflush(stdout);
	fprintf(stderr, "rank %d grumbles\n", place->rank);
	if (place->rank == 0 && write(place->results_fd, "results\n", 8) != 8)
		return 1;
	hub_close(hub);
	return 0;
}

static int look_around(const struct bench_place *place, void *context)
{
	struct seen *here = context;
	struct bench_hub *hub;
	const char *host = getenv("NCCL_HOSTID");

	if (meet(place, &hub) != 0)
		return 1;
	if (place->rank == 3)
		text_format(here->text, sizeof(here->text), "%d%d %s %s %s %s %s %s",
			    place->is_gpu_shared, place->is_mps, host ? strrchr(host, '-') : "none",
			    getenv("NCCL_SOCKET_IFNAME") ?: "none",
			    getenv("NCCL_IB_DISABLE") ?: "none", getenv("NCCL_MAX_CTAS") ?: "none",
			    getenv("MADE_UP") ?: "none", getenv("NOT_WANTED") ?: "none");
	hub_close(hub);
	return 0;
}

/* ---- tests -------------------------------------------------------------------------------------- */

static void test_good(void)
{
	EXPECT_EQUAL(launch_with((struct bench_launch){ 0 }, good), 0);
	EXPECT(seen->ranks == RANKS && problem[0] == '\0');
	EXPECT_THAT("nothing is left behind", is_gone());
}

static void test_failures(void)
{
	EXPECT_EQUAL(launch_with((struct bench_launch){ 0 }, fail_two), 1);
	EXPECT(is_problem("rank 2 on ") && is_problem("no GPU of mine") && is_gone());
	EXPECT_EQUAL(launch_with((struct bench_launch){ 0 }, die_two), 3);
	EXPECT_THAT("a death explains more than its consequences",
		    is_problem("rank 2 was killed by signal 10") && is_gone());
	EXPECT_EQUAL(launch_with((struct bench_launch){ 0 }, stay), 3);
	EXPECT_THAT("ranks that do not exit are killed",
		    is_problem("rank 1 exited with code 7") && is_gone());
	EXPECT_EQUAL(launch_with((struct bench_launch){ .limit_s = 1 }, hang), 3);
	EXPECT(is_problem("not finished after ") && is_problem("the first is rank 0") && is_gone());
	EXPECT_THAT("wrong usage stays wrong usage",
		    launch_with((struct bench_launch){ 0 }, zero_leaves) == 2 &&
			    problem[0] == '\0');
}

static size_t read_file(const char *path, char *to, size_t size)
{
	int fd = open(path, O_RDONLY);
	ssize_t got = fd == -1 ? 0 : read(fd, to, size - 1);

	to[got > 0 ? got : 0] = '\0';
	close(fd);
	return got > 0 ? (size_t)got : 0;
}

static void test_output(const char *directory)
{
	char log[256], path[256], text[256];
	int fd;

	text_format(path, sizeof(path), "%s/results", directory);
	text_format(log, sizeof(log), "%s/log-%%r", directory);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	EXPECT_EQUAL(launch_with((struct bench_launch){ .results_fd = fd, .log = log }, talk_much),
		     0);
	close(fd);
	read_file(path, text, sizeof(text));
	EXPECT_THAT("standard output has only the results", strcmp(text, "results\n") == 0);
	text_format(path, sizeof(path), "%s/log-2", directory);
	read_file(path, text, sizeof(text));
	EXPECT_THAT("one log per rank", strcmp(text, "rank 2 chatters\nrank 2 grumbles\n") == 0);
	text_format(log, sizeof(log), "%s/nowhere/log-%%r", directory);
	EXPECT_EQUAL(launch_with((struct bench_launch){ .log = log }, talk_much), 3);
	EXPECT(is_problem("cannot write") && is_gone());
}

static void test_environment(void)
{
	static const struct bench_variable variables[] = { { "MADE_UP", "yes" },
							   { "NOT_WANTED", NULL },
							   { NULL, NULL } };

	setenv("NOT_WANTED", "here", 1);
	unsetenv("NCCL_HOSTID");
	EXPECT(launch_with((struct bench_launch){ .variables = variables }, look_around) == 0);
	if (!EXPECT(strcmp(seen->text, "00 none none none none yes none") == 0))
		printf("#   got %s\n", seen->text);
	EXPECT(launch_with((struct bench_launch){ .gpus = 2 }, look_around) == 0);
	if (!EXPECT(strcmp(seen->text, "10 -3 lo 1 none none here") == 0))
		printf("#   got %s\n", seen->text);
	EXPECT(launch_with((struct bench_launch){ .gpus = 1 }, look_around) == 0);
	if (!EXPECT(strcmp(seen->text, "10 -3 lo 1 8 none here") == 0))
		printf("#   got %s\n", seen->text);
}

/* In a separate process, which gets the signal. */
static int status_after(int number)
{
	pid_t pid;
	int status = 0;

	memset(seen, 0, sizeof(*seen));
	pid = fork();
	if (pid == 0) {
		/* Background processes of a script ignore SIGINT. */
		signal(number, SIG_DFL);
		_exit(launch_with((struct bench_launch){ 0 }, hang));
	}
	while (seen->pids[0] == 0 || seen->pids[3] == 0)
		poll(NULL, 0, 1);
	kill(pid, number);
	waitpid(pid, &status, 0);
	return status;
}

static void test_signals(void)
{
	int status = status_after(SIGTERM);

	EXPECT_THAT("SIGTERM ends all", WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM);
	EXPECT(is_gone());
	status = status_after(SIGINT);
	EXPECT_THAT("Ctrl-C ends all", WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGINT);
	EXPECT(is_gone());
	status = status_after(SIGKILL);
	for (int i = 0; i < 60000 && !is_gone(); i++)
		poll(NULL, 0, 1);
	EXPECT_THAT("ranks die with their launcher", WIFSIGNALED(status) && is_gone());
}

/* A daemon like MPS: leaves a process behind and ends it when asked to quit. */
static const char control[] =
	"#!/bin/sh\n"
	"if [ \"$1\" = -d ]; then\n"
	"	[ -e \"$0.broken\" ] && exit 1\n"
	"	\"$0-daemon\" 1000 > /dev/null 2>&1 &\n"
	"	echo $! > \"$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid\"\n"
	"	echo $! > \"$0.pid\"\n"
	"	exit 0\n"
	"fi\n"
	"read word\n"
	"echo \"$word\" > \"$0.heard\"\n"
	"[ -e \"$0.deaf\" ] || kill \"$(cat "
	"\"$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid\")\"\n";

static void make_control(const char *directory)
{
	char path[256], daemon[300];
	int fd;

	text_format(path, sizeof(path), "%s/nvidia-cuda-mps-control", directory);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);
	EXPECT(write(fd, control, strlen(control)) == (ssize_t)strlen(control) && close(fd) == 0);
	text_format(daemon, sizeof(daemon), "%s-daemon", path);
	EXPECT(symlink("/bin/sleep", daemon) == 0);
	setenv("PATH", directory, 1);
}

static pid_t daemon_pid(const char *directory)
{
	char path[256], text[32];
	int64_t pid = 0;

	text_format(path, sizeof(path), "%s/nvidia-cuda-mps-control.pid", directory);
	read_file(path, text, sizeof(text));
	text[strcspn(text, "\n")] = '\0';
	return text_number(text, 2, INT32_MAX, &pid) == OK ? (pid_t)pid : 0;
}

static int is_dead(pid_t pid)
{
	for (int i = 0; i < 60000 && kill(pid, 0) == 0; i++)
		poll(NULL, 0, 1);
	return pid > 0 && kill(pid, 0) == -1;
}

static void touch(const char *directory, const char *name)
{
	char path[256];

	text_format(path, sizeof(path), "%s/nvidia-cuda-mps-control.%s", directory, name);
	close(open(path, O_WRONLY | O_CREAT, 0600));
}

static bool is_private(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && (st.st_mode & 07777) == 0700;
}

static void test_mps(const char *directory)
{
	char *path = strdup(getenv("PATH")), *around;
	struct bench_mps mps;
	char wanted[256];

	text_format(wanted, sizeof(wanted), "%s:%s", directory, path);
	make_control(directory);
	around = strdup(wanted);
	setenv("PATH", around, 1);
	unsetenv("CUDA_MPS_PIPE_DIRECTORY");
	bench_mps_start(&mps);
	EXPECT(mps.is_on && mps.is_ours && access(mps.pipe, F_OK) == 0);
	EXPECT_THAT("only its user reaches it",
		    is_private(mps.directory) && is_private(mps.pipe) && is_private(mps.log));
	EXPECT(kill(daemon_pid(directory), 0) == 0);
	text_copy(wanted, sizeof(wanted), mps.directory);
	bench_mps_stop(&mps);
	EXPECT_THAT("it quits when asked to", is_dead(daemon_pid(directory)));
	EXPECT_THAT("its directory is removed", access(wanted, F_OK) == -1);
	touch(directory, "deaf");
	EXPECT(launch_with((struct bench_launch){ .gpus = 1, .is_mps_wanted = true },
			   look_around) == 0);
	EXPECT_THAT("ranks get its directory", strncmp(seen->text, "11 ", 3) == 0);
	EXPECT_THAT("one that does not quit is killed", is_dead(daemon_pid(directory)));
	touch(directory, "broken");
	bench_mps_start(&mps);
	EXPECT_THAT("one that does not start is not used", !mps.is_on && mps.directory[0] == '\0');
	setenv("PATH", path, 1);
	free(around);
	free(path);
}

static int run_all(const char *directory)
{
	alarm(170);
	test_good();
	test_failures();
	test_output(directory);
	test_environment();
	test_signals();
	test_mps(directory);
	return tap_done();
}

int main(void)
{
	char directory[] = "/tmp/ringside-test-XXXXXX";
	const char *const words[] = { "/bin/rm", "-rf", directory, NULL };
	int code;

	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (seen == MAP_FAILED || mkdtemp(directory) == NULL)
		return 1;
	code = run_all(directory);
	bench_spawn(words, NULL, NULL, 10);
	return code;
}
