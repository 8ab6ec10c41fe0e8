#include "programs/cli/bench_command.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmds/cli.h"
#include "common/text.h"
#include "programs/bench/bench_look.h"

enum { STANDARD_PATIENCE_S = 60, HOW_RANKS_MAX = 1024 };

/* ---- options ----------------------------------------------------------------------------------- */

void bench_how_init(struct bench_how *how)
{
	*how = (struct bench_how){ .is_mps_wanted = true, .patience_s = STANDARD_PATIENCE_S };
}

int bench_how_take(struct bench_how *how, const struct cli_page *page, int id, const char *value)
{
	int64_t number;

	switch (id) {
	case BENCH_HOW_RANKS:
		if (text_number(value, 1, HOW_RANKS_MAX, &number) != OK)
			return cli_usage(page, "--ranks %s is not a number from 1 to %d", value,
					 HOW_RANKS_MAX);
		how->ranks = (int)number;
		break;
	case BENCH_HOW_MEET:
		how->meet = value;
		break;
	case BENCH_HOW_NCCL:
		how->nccl = value;
		break;
	case BENCH_HOW_NO_MPS:
		how->is_mps_wanted = false;
		break;
	case BENCH_HOW_PATIENCE:
		if (text_number(value, 1, 86400, &number) != OK)
			return cli_usage(page, "--patience %s is not a number of seconds", value);
		how->patience_s = (int)number;
		break;
	}
	return 0;
}

/* ---- everywhere -------------------------------------------------------------------------------- */

static const char *from_environment(void *context, const char *name)
{
	(void)context;
	return getenv(name);
}

/* A launcher made this process one rank of a job. */
static int be_rank(struct bench_place *place, bench_rank_fn body, void *context)
{
	char problem[HUB_PROBLEM_BYTES];
	int code;

	if (bench_place_prepare(place, problem, sizeof(problem)) != 0)
		return cli_error("%s", problem);
	fflush(stdout);
	if (place->rank == 0)
		place->results_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	code = body(place, context);
	bench_place_clean(place);
	return code;
}

static int start_ranks(const struct bench_how *how, bench_rank_fn body, void *context)
{
	struct bench_launch launch = { .ranks = how->ranks,
				       .is_mps_wanted = how->is_mps_wanted,
				       .results_fd = -1,
				       .variables = how->variables,
				       .log = how->log,
				       .limit_s = how->limit_s };
	char problem[512] = "";

	if (how->meet != NULL)
		return cli_error("--meet is for ranks that a launcher started; none did (RANK, "
				 "OMPI_COMM_WORLD_RANK, PMI_RANK and SLURM_PROCID are not set)");
	launch.gpus = bench_look(true, how->nccl, problem, sizeof(problem));
	if (launch.gpus < 1)
		return cli_error("%s", problem);
	if (launch.ranks == 0) {
		launch.ranks = launch.gpus;
		if (launch.gpus == 1)
			fprintf(stderr, "ringside: one GPU, so one rank; --ranks 2 would let two "
					"share it\n");
	}
	return bench_launch(&launch, body, context);
}

int bench_everywhere(const struct bench_how *how, bench_rank_fn body, void *context)
{
	struct bench_place place;
	char problem[HUB_PROBLEM_BYTES];
	int found = bench_place_find(&place, from_environment, NULL, how->meet, problem,
				     sizeof(problem));

	if (found == -1)
		return cli_error("%s", problem);
	if (found == 0 || (place.nranks == 1 && how->ranks > 1))
		return start_ranks(how, body, context);
	if (how->ranks != 0 && how->ranks != place.nranks)
		return place.rank != 0
			       ? CLI_EXIT_TROUBLE
			       : cli_error("--ranks %d, but %s started %d; leave --ranks out",
					   how->ranks, place.launcher, place.nranks);
	return be_rank(&place, body, context);
}

/* ---- one rank ---------------------------------------------------------------------------------- */

/* In a job of a launcher one rank tells it. The one that started the ranks here hears all. */
static void tell(const struct bench_team *team)
{
	if (team->place->problem_fd != -1 || hub_is_teller(team->hub))
		bench_tell(team->place, hub_problem(team->hub));
}

int bench_team_drop(struct bench_team *team)
{
	bench_job_close(team->job);
	hub_close(team->hub);
	bench_run_release(&team->run);
	team->job = NULL;
	team->hub = NULL;
	return CLI_EXIT_TROUBLE;
}

int bench_team_fail(struct bench_team *team)
{
	tell(team);
	return bench_team_drop(team);
}

int bench_team_meet(struct bench_team *team, const struct bench_place *place,
		    const struct bench_how *how, const struct bench_plan *plan)
{
	memset(team, 0, sizeof(*team));
	bench_run_init(&team->run);
	team->place = place;
	team->plan = *plan;
	if (how->nccl != NULL &&
	    !text_copy(team->plan.nccl_path, sizeof(team->plan.nccl_path), how->nccl)) {
		bench_tell(place, "--nccl: the file's name is too long");
		return CLI_EXIT_TROUBLE;
	}
	if (hub_open(&team->hub, place, how->patience_s) != 0) {
		if (hub_is_teller(team->hub))
			bench_tell(place, hub_problem(team->hub));
		return bench_team_drop(team);
	}
	return 0;
}

int bench_team_open(struct bench_team *team, const struct bench_place *place,
		    const struct bench_how *how, const struct bench_plan *plan)
{
	if (bench_team_meet(team, place, how, plan) != 0)
		return CLI_EXIT_TROUBLE;
	/* A GPU that does not open does not come back from it, either. */
	hub_set_patience(team->hub, plan->patience_s);
	if (bench_job_open(&team->job, place, team->hub, &team->plan, &team->run) != 0)
		return bench_team_fail(team);
	hub_set_patience(team->hub, 0);
	return 0;
}

int bench_team_finish(struct bench_team *team)
{
	/* Nobody takes its communicator down while another still uses it. */
	if (hub_meet(team->hub) != 0)
		return bench_team_fail(team);
	bench_job_close(team->job);
	hub_close(team->hub);
	team->job = NULL;
	team->hub = NULL;
	fflush(stdout);
	if (team->place->results_fd != -1)
		dup2(team->place->results_fd, STDOUT_FILENO);
	return 0;
}

void bench_team_release(struct bench_team *team)
{
	bench_run_release(&team->run);
}
