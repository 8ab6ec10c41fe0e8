/* Starts the ranks of a benchmark or joins them, and writes the files that were asked for. */
#include "bench/bench_command.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench_job.h"
#include "cli/cli.h"
#include "common/text.h"

/* A run with the maximum number of calls and ranks is smaller. */
enum { RECALL_MOST = 1 << 30 };

static int recall_tell(const char *path, enum status status,
		       const struct bench_read_problem *problem)
{
	switch (status) {
	case ERR_UNKNOWN:
		return cli_error("%s: not a JSON result of 'ringside bench'", path);
	case ERR_VERSION:
		return cli_error("%s: written by a newer version: %s", path, problem->text);
	case ERR_NO_SPACE:
		cli_no_memory();
	default:
		return cli_error("%s, line %" PRIu64 ": %s", path, problem->line,
				 problem->text[0] != '\0' ? problem->text
							  : "damaged, or contains no measurement");
	}
}

int bench_recall(struct bench_run *run, const char *path)
{
	struct bench_read_problem problem = { .line = 1 };
	enum status status;
	const char *at;
	size_t length, size;
	char *text;

	bench_run_init(run);
	text = cli_read_file(path, RECALL_MOST, &length);
	if (text == NULL)
		return CLI_EXIT_UNKNOWN;
	status = run_inside(text, length, &at, &size);
	if (status == OK)
		status = bench_read(run, at, size, &problem);
	free(text);
	return status == OK ? 0 : recall_tell(path, status, &problem);
}

int bench_recall_check(const struct cli_page *page, const char *from, const char *measuring)
{
	if (from == NULL || measuring == NULL)
		return 0;
	return cli_usage(page, "%s%s cannot be used with --from, which measures nothing",
			 measuring[0] ? "--" : "", measuring[0] ? measuring : "a function");
}

enum { STANDARD_PATIENCE_S = 60 };

/* ---- options ----------------------------------------------------------------------------------- */

void bench_how_init(struct bench_how *how)
{
	*how = (struct bench_how){ .is_mps_wanted = true, .patience_s = STANDARD_PATIENCE_S };
}

/* ---- everywhere -------------------------------------------------------------------------------- */

static const char *from_environment(void *context, const char *name)
{
	(void)context;
	return getenv(name);
}

/* A launcher started this process as one rank of a job. */
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
		return cli_error("--meet is only for ranks started by a launcher (RANK, "
				 "OMPI_COMM_WORLD_RANK, PMI_RANK and SLURM_PROCID are not set)");
	launch.gpus = bench_look(true, how->nccl, problem, sizeof(problem));
	if (launch.gpus < 1)
		return cli_error("%s", problem);
	if (launch.ranks == 0) {
		launch.ranks = launch.gpus;
		if (launch.gpus == 1)
			fprintf(stderr, "ringside: found one GPU, starting one rank; use --ranks 2 "
					"to share it between two\n");
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
		return place.rank != 0 ? CLI_EXIT_UNKNOWN
				       : cli_error("--ranks %d, but %s started %d; omit --ranks",
						   how->ranks, place.launcher, place.nranks);
	return be_rank(&place, body, context);
}

/* ---- one rank ---------------------------------------------------------------------------------- */

/* Rank 0 has printed which one, and why. */
static const char quit_reason[] = "cannot write a file";

/* Under a launcher, one rank reports the problem. Ranks started here report to their parent. */
static void team_tell(const struct bench_team *team)
{
	if (text_ends_with(hub_problem(team->hub), quit_reason))
		return;
	if (team->place->problem_fd != -1 || hub_is_teller(team->hub))
		bench_tell(team->place, hub_problem(team->hub));
}

/* As bench_team_fail(), after the reason has been reported. */
static int bench_team_drop(struct bench_team *team)
{
	bench_job_close(team->job);
	hub_close(team->hub);
	bench_run_release(&team->run);
	team->job = NULL;
	team->hub = NULL;
	return CLI_EXIT_UNKNOWN;
}

int bench_team_fail(struct bench_team *team)
{
	team_tell(team);
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
		bench_tell(place, "--nccl: file name too long");
		return CLI_EXIT_UNKNOWN;
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
		return CLI_EXIT_UNKNOWN;
	/* Opening the GPU can hang too, so the limit starts here. */
	hub_set_patience(team->hub, plan->patience_s);
	if (bench_job_open(&team->job, place, team->hub, &team->plan, &team->run) != 0)
		return bench_team_fail(team);
	hub_set_patience(team->hub, 0);
	return 0;
}

int bench_team_finish(struct bench_team *team)
{
	/* No rank may destroy its communicator while another still uses it. */
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

void bench_outputs_command(char *to, size_t size, int argc, char **argv)
{
	text_copy(to, size, "ringside bench");
	for (int i = 0; i < argc; i++)
		text_append(to, size, " %s", argv[i]);
}

static int outputs_add(const struct cli_said *said, enum bench_output_kind kind)
{
	struct bench_outputs *files = said->target;

	if (said->value[0] == '\0')
		return cli_usage(said->page, "-o '': empty file name");
	if (strcmp(said->value, "-") == 0)
		return cli_usage(said->page,
				 "results go to standard output anyway; use --json for JSON");
	if (files->count == BENCH_OUTPUTS_MOST)
		return cli_usage(said->page, "more than %d files", BENCH_OUTPUTS_MOST);
	files->kinds[files->count] = kind;
	files->paths[files->count++] = said->value;
	return 0;
}

int bench_outputs_take(const struct cli_said *said)
{
	return outputs_add(said, text_ends_with(said->value, ".json") ? BENCH_OUTPUT_JSON
								      : BENCH_OUTPUT_TEXT);
}

int bench_outputs_take_table(const struct cli_said *said)
{
	return text_ends_with(said->value, ".parquet") ? outputs_add(said, BENCH_OUTPUT_PARQUET)
						       : bench_outputs_take(said);
}

int bench_outputs_take_html(const struct cli_said *said)
{
	return outputs_add(said, BENCH_OUTPUT_HTML);
}

int bench_outputs_take_page(const struct cli_said *said)
{
	return text_ends_with(said->value, ".html") ? bench_outputs_take_html(said)
						    : bench_outputs_take(said);
}

int bench_outputs_check(const struct bench_outputs *files)
{
	int failed = 0;

	for (size_t i = 0; i < files->count && failed == 0; i++)
		failed = cli_output_check(files->paths[i]);
	return failed;
}

int bench_team_quit(struct bench_team *team)
{
	hub_fail(team->hub, quit_reason);
	return bench_team_drop(team);
}

static int output_write_one(const char *path, enum bench_output_kind kind, unsigned int width,
			    bench_outputs_fn write, const void *context, int exit_code)
{
	struct cli_output output;
	enum status status;
	int failed = cli_output_open(&output, path);

	if (failed != 0)
		return failed;
	status = write(context, kind, width, &output.sink);
	if (status == ERR_NO_SPACE && output.sink.status == OK)
		cli_no_memory();
	if (status != OK && output.sink.status == OK) {
		cli_output_discard(&output);
		return cli_error("%s: inconsistent measurement: %s", path, status_text(status));
	}
	return cli_output_commit(&output, exit_code);
}

int bench_outputs_write(const struct bench_outputs *files, bench_outputs_fn write,
			const void *context, int exit_code)
{
	int trouble = 0;

	for (size_t i = 0; i < files->count; i++)
		trouble |= output_write_one(files->paths[i], files->kinds[i], 0, write, context,
					    CLI_EXIT_DONE);
	trouble |= output_write_one("-", files->is_json ? BENCH_OUTPUT_JSON : BENCH_OUTPUT_TEXT,
				    cli_width(), write, context, CLI_EXIT_DONE);
	return trouble != 0 ? CLI_EXIT_UNKNOWN : exit_code;
}
