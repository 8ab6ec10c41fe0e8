/*
 * Starts the ranks: the same program again, with --rank, before anything uses CUDA. Each gets its own NCCL_HOSTID,
 * so that NCCL treats them as separate hosts and lets them share the GPU; with --one-node they are on one host,
 * which needs NCCL_MULTI_RANK_GPU_ENABLE. They die with the process that started them.
 */
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS_MAX = 64, ARGUMENTS_MAX = 64, REPLY_BYTES = 1024 };

struct rank_process {
	pid_t pid; /* 0: has exited */
	int status;
	FILE *commands; /* serve: to the rank */
	FILE *replies;	/* serve: from the rank */
};

static void environment_set(const struct options *options, int rank)
{
	char text[32];

	snprintf(text, sizeof(text), "ringside-%d", rank);
	if (options->is_one_node)
		unsetenv("NCCL_HOSTID");
	else
		setenv("NCCL_HOSTID", text, 1);
	snprintf(text, sizeof(text), "%d", rank);
	setenv("RANK", text, 1);
	setenv("LOCAL_RANK", text, 1);
	snprintf(text, sizeof(text), "%d", options->ranks);
	setenv("WORLD_SIZE", text, 1);
}

static void log_redirect(const struct options *options, int rank, int is_stdout_too)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/rank-%d.log", options->out, rank);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (fd == -1) {
		fprintf(stderr, "nccl_driver: cannot write %s: %s\n", path, strerror(errno));
		_exit(1);
	}
	dup2(fd, STDERR_FILENO);
	if (is_stdout_too)
		dup2(fd, STDOUT_FILENO);
	close(fd);
}

static void rank_exec(const struct options *options, int argc, char **argv, int rank)
{
	char *arguments[ARGUMENTS_MAX + 3];
	char text[16];
	int count = argc < ARGUMENTS_MAX ? argc : ARGUMENTS_MAX;

	memcpy(arguments, argv, (size_t)count * sizeof(*argv));
	snprintf(text, sizeof(text), "%d", rank);
	arguments[count] = "--rank";
	arguments[count + 1] = text;
	arguments[count + 2] = NULL;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	environment_set(options, rank);
	if (options->preload && rank == options->victim)
		setenv("LD_PRELOAD", options->preload, 1);
	execv("/proc/self/exe", arguments);
	fprintf(stderr, "nccl_driver: cannot start rank %d: %s\n", rank, strerror(errno));
	_exit(1);
}

static void rank_start(struct rank_process *process, const struct options *options, int argc,
		       char **argv, int rank, int is_served)
{
	int to[2] = { -1, -1 }, from[2] = { -1, -1 };

	if (is_served && (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0))
		die("cannot make pipes: %s", strerror(errno));
	fflush(NULL);
	process->pid = fork();
	if (process->pid == -1)
		die("cannot fork: %s", strerror(errno));
	if (process->pid == 0) {
		log_redirect(options, rank, !is_served);
		if (is_served) {
			dup2(to[0], STDIN_FILENO);
			dup2(from[1], STDOUT_FILENO);
		}
		rank_exec(options, argc, argv, rank);
	}
	if (is_served) {
		close(to[0]);
		close(from[1]);
		process->commands = fdopen(to[1], "w");
		process->replies = fdopen(from[0], "r");
	}
}

static void ranks_kill(struct rank_process *processes, int ranks)
{
	for (int rank = 0; rank < ranks; rank++)
		if (processes[rank].pid > 0)
			kill(processes[rank].pid, SIGKILL);
}

static int is_good_end(const struct options *options, int status)
{
	if (options->is_killed_at_end)
		return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void end_report(int rank, int status)
{
	if (WIFSIGNALED(status))
		fprintf(stderr, "nccl_driver: rank %d was killed by signal %d\n", rank,
			WTERMSIG(status));
	else
		fprintf(stderr, "nccl_driver: rank %d exited with %d\n", rank, WEXITSTATUS(status));
}

static int rank_of(const struct rank_process *processes, int ranks, pid_t pid)
{
	for (int rank = 0; rank < ranks; rank++)
		if (processes[rank].pid == pid)
			return rank;
	return -1;
}

/*
 * One rank's failure leaves the others waiting on the GPU forever: they get a moment to report it, then they are
 * killed.
 */
static int ranks_wait(struct rank_process *processes, const struct options *options)
{
	int left = options->ranks, failures = 0, patience = 30;

	while (left > 0) {
		int status, rank;
		pid_t pid = waitpid(-1, &status, failures ? WNOHANG : 0);

		if (pid == 0) {
			struct timespec tenth = { 0, 100 * 1000 * 1000 };

			nanosleep(&tenth, NULL);
			if (patience-- == 0)
				ranks_kill(processes, options->ranks);
			continue;
		}
		if (pid == -1 && errno == EINTR)
			continue;
		if (pid == -1)
			die("cannot wait for the ranks: %s", strerror(errno));
		rank = rank_of(processes, options->ranks, pid);
		if (rank < 0)
			continue;
		left--;
		processes[rank].pid = 0;
		if (is_good_end(options, status))
			continue;
		end_report(rank, status);
		failures++;
	}
	return failures ? 1 : 0;
}

/* Ids of an earlier job in the same directory would mislead ranks. */
static void ids_remove(const struct options *options)
{
	char path[4096];

	for (int order = 1; order <= COMMS_MAX; order++) {
		snprintf(path, sizeof(path), "%s/id-%d", options->out, order);
		unlink(path);
	}
}

int launch_run(const struct options *options, int argc, char **argv)
{
	struct rank_process processes[RANKS_MAX] = { 0 };

	ids_remove(options);
	for (int rank = 0; rank < options->ranks; rank++)
		rank_start(&processes[rank], options, argc, argv, rank, 0);
	return ranks_wait(processes, options);
}

int launch_hang(const struct options *options, int argc, char **argv)
{
	struct rank_process processes[RANKS_MAX] = { 0 };
	int left = options->ranks;

	ids_remove(options);
	for (int rank = 0; rank < options->ranks; rank++)
		rank_start(&processes[rank], options, argc, argv, rank, 0);
	while (left > 0) {
		int status;
		pid_t pid = waitpid(-1, &status, 0);

		if (pid == -1 && errno != EINTR)
			die("cannot wait for the ranks: %s", strerror(errno));
		if (pid <= 0)
			continue;
		left--;
		end_report(rank_of(processes, options->ranks, pid), status);
	}
	return 1;
}

/* Sends one command to every rank and reads one line from each. */
static int command_pass(struct rank_process *processes, const struct options *options,
			const char *command)
{
	char reply[REPLY_BYTES];

	for (int rank = 0; rank < options->ranks; rank++) {
		fputs(command, processes[rank].commands);
		fflush(processes[rank].commands);
	}
	for (int rank = 0; rank < options->ranks; rank++) {
		do { /* libraries may print messages */
			if (!fgets(reply, sizeof(reply), processes[rank].replies)) {
				fprintf(stderr, "nccl_driver: rank %d did not answer\n", rank);
				return -1;
			}
		} while (*reply != '{');
		fputs(reply, stdout);
	}
	fflush(stdout);
	return 0;
}

int launch_serve(const struct options *options, int argc, char **argv)
{
	struct rank_process processes[RANKS_MAX] = { 0 };
	char command[REPLY_BYTES];

	signal(SIGPIPE, SIG_IGN);
	ids_remove(options);
	for (int rank = 0; rank < options->ranks; rank++)
		rank_start(&processes[rank], options, argc, argv, rank, 1);
	while (fgets(command, sizeof(command), stdin)) {
		if (command_pass(processes, options, command) != 0) {
			ranks_kill(processes, options->ranks);
			break;
		}
		if (strncmp(command, "quit", 4) == 0)
			break;
	}
	for (int rank = 0; rank < options->ranks; rank++)
		fclose(processes[rank].commands);
	return ranks_wait(processes, options);
}
