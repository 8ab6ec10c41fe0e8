/* A rank's first moments: from a copy of the launcher to a process of its own. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/text.h"
#include "programs/bench/bench_share.h"
#include "programs/bench/launch_parts.h"

enum { RANK_EXIT_TROUBLE = 1 };

/* A launcher that is killed takes its ranks with it: no rank stays behind on a GPU. */
static void die_with(pid_t launcher)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != launcher)
		_exit(RANK_EXIT_TROUBLE);
}

static void set_number(const char *name, int number)
{
	char text[16];

	text_format(text, sizeof(text), "%d", number);
	setenv(name, text, 1);
}

/* As torchrun does: what a profiler in this process records gets its rank from these. */
static void set_environment(const struct launch_job *job, int rank)
{
	const struct bench_launch *launch = job->launch;
	const struct bench_variable *variable = launch->variables;

	set_number("RANK", rank);
	set_number("WORLD_SIZE", launch->ranks);
	set_number("LOCAL_RANK", rank);
	set_number("LOCAL_WORLD_SIZE", launch->ranks);
	if (job->place.is_gpu_shared)
		bench_share_environment(rank, (launch->ranks + job->gpus - 1) / job->gpus);
	bench_mps_environment(&job->mps);
	for (; variable != NULL && variable->name != NULL; variable++) {
		if (variable->value != NULL)
			setenv(variable->name, variable->value, 1);
		else
			unsetenv(variable->name);
	}
}

static int open_log(const char *pattern, int rank, char *problem, size_t size)
{
	char path[4096], digits[16];
	struct text_names names = { .host = "", .job = "", .rank = digits, .pid = getpid() };
	int fd;

	text_format(digits, sizeof(digits), "%d", rank);
	if (text_expand(path, sizeof(path), pattern, &names) != OK) {
		snprintf(problem, size, "the log's name %.100s cannot be made: %%r is the rank",
			 pattern);
		return -1;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd == -1)
		snprintf(problem, size, "cannot write %.300s: %s", path, strerror(errno));
	return fd;
}

/* Whatever is written to stdout goes to stderr; rank 0 keeps the way for results. */
static int arrange_output(const struct launch_job *job, struct bench_place *place)
{
	const struct bench_launch *launch = job->launch;
	char problem[512];
	int log;

	if (place->rank == 0)
		place->results_fd =
			fcntl(launch->results_fd == -1 ? STDOUT_FILENO : launch->results_fd,
			      F_DUPFD_CLOEXEC, 3);
	if (launch->log != NULL) {
		log = open_log(launch->log, place->rank, problem, sizeof(problem));
		if (log == -1) {
			bench_tell(place, problem);
			return -1;
		}
		dup2(log, STDERR_FILENO);
		close(log);
	}
	dup2(STDERR_FILENO, STDOUT_FILENO);
	return 0;
}

void launch_become_rank(const struct launch_job *job, int rank, bench_rank_fn body, void *context)
{
	struct bench_place place = job->place;
	int code = RANK_EXIT_TROUBLE;

	die_with(job->pid);
	place.rank = place.local_rank = rank;
	place.problem_fd = job->problem_ends[1];
	close(job->problem_ends[0]);
	close(job->signal_fd);
	if (rank == 0)
		place.listen_fd = job->listen_fd;
	else
		close(job->listen_fd);
	sigprocmask(SIG_SETMASK, &job->signals_before, NULL);
	set_environment(job, rank);
	if (arrange_output(job, &place) == 0)
		code = body(&place, context);
	exit(code);
}
