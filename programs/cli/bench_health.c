#include <math.h>
#include <unistd.h>

#include "bench/link_health.h"
#include "cmds/cli.h"
#include "cmds/commands.h"
#include "common/clock.h"
#include "common/text.h"
#include "programs/bench/bench_watch.h"
#include "programs/cli/bench_recall.h"
#include "programs/cli/health_options.h"
#include "programs/cli/health_steps.h"
#include "programs/cli/health_watch.h"
#include "view/health_json.h"
#include "view/health_text.h"

struct shown {
	const struct health_request *request;
	const struct health *health;
	const struct bench_run *run;
};

static enum status write_shown(const void *context, enum bench_output_kind kind, unsigned int width,
			       struct sink *sink)
{
	const struct shown *shown = context;
	const struct health_text_options style = {
		.width = width,
		.is_quiet = shown->request->is_quiet,
	};

	if (kind == BENCH_OUTPUT_JSON)
		return health_json(sink, shown->health, shown->run);
	return health_text(sink, shown->health, shown->run, &style);
}

/* The verdict, written. Gives back the exit code. */
static int judge(const struct health_request *request, const struct bench_run *run)
{
	struct health health;
	struct shown shown = { request, &health, run };
	enum status status = health_find(&health, run, &request->judge);
	int exit_code;

	if (status == ERR_NO_SPACE)
		cli_no_memory();
	if (status != OK)
		return cli_error("nothing was measured that could be judged");
	exit_code = bench_outputs_write(&request->files, write_shown, &shown, health.exit_code);
	health_release(&health);
	return exit_code;
}

/* A rank ends itself early enough for the hard limit, twice the budget: telling who does not answer takes a few
 * seconds. */
static double limit_s(const struct health_budget *budget)
{
	double passed = (double)(clock_system_ns(CLOCK_MONOTONIC) - budget->began_ns) / 1e9;

	return 1.5 * budget->seconds - passed;
}

/* As bench_team_fail(), and who did not answer is named. What is stuck on the GPU may be stuck for ever: nothing is
 * taken down in order, the driver does that when the process is gone. */
static void fail(struct bench_team *team, struct health_watch *watch) __attribute__((noreturn));
static void fail(struct bench_team *team, struct health_watch *watch)
{
	/* From here on all that waits has a limit of its own. */
	health_watch_stop(watch);
	bench_watch_tell(team->place, team->hub);
	hub_close(team->hub);
	_exit(CLI_EXIT_TROUBLE);
}

/* 0, or CLI_EXIT_TROUBLE after it was told. On success the team has to be released. */
static int measure(const struct health_request *request, const struct bench_place *place,
		   struct bench_team *team, struct health_watch *watch)
{
	struct bench_plan plan;
	int result;

	health_steps_plan(&plan, &request->budget);
	health_watch_step(watch, "meeting the other ranks");
	if (bench_team_meet(team, place, &request->how, &plan) != 0)
		return CLI_EXIT_TROUBLE;
	if (place->rank == 0 && bench_outputs_check(&request->files) != 0)
		return bench_team_quit(team);
	hub_set_patience(team->hub, (int)ceil(request->budget.seconds));
	health_watch_hub(watch, team->hub);
	health_watch_step(watch, "opening the GPU");
	if (bench_job_open(&team->job, place, team->hub, &team->plan, &team->run) != 0)
		fail(team, watch);
	health_watch_step(watch, "making the communicator");
	result = bench_job_connect(team->job, NULL, NULL);
	if (result == 0)
		result = health_steps_measure(team, &request->budget, watch);
	if (result != 0)
		fail(team, watch);
	health_watch_hub(watch, NULL);
	return bench_team_finish(team);
}

/* One rank. */
static int body(const struct bench_place *place, void *context)
{
	const struct health_request *request = context;
	struct health_watch watch;
	struct bench_team team;
	int result;

	if (health_watch_start(&watch, place, limit_s(&request->budget)) != 0) {
		bench_tell(place, "no thread can be started that keeps the time");
		return CLI_EXIT_TROUBLE;
	}
	result = measure(request, place, &team, &watch);
	health_watch_stop(&watch);
	if (result != 0)
		return CLI_EXIT_TROUBLE;
	if (place->rank == 0) {
		text_copy(team.run.command, sizeof(team.run.command), request->command);
		result = judge(request, &team.run);
	}
	bench_team_release(&team);
	return result;
}

static int judge_former(const struct health_request *request)
{
	struct bench_run run;
	int exit_code = bench_recall(&run, request->from);

	if (exit_code == 0)
		exit_code = judge(request, &run);
	bench_run_release(&run);
	return exit_code;
}

int bench_health(int argc, char **argv)
{
	struct health_request request;
	int exit_code = health_request_read(&request, argc, argv);

	if (exit_code == -1)
		exit_code = request.from != NULL ? judge_former(&request)
						 : bench_everywhere(&request.how, body, &request);
	health_request_release(&request);
	return exit_code;
}
