#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmds/cli.h"
#include "cmds/cli_program.h"
#include "cmds/commands.h"
#include "common/text.h"
#include "output/sink.h"
#include "programs/cli/sim_request.h"
#include "programs/sim/sim_job.h"
#include "programs/sim/sim_live.h"
#include "programs/sim/sim_offline.h"
#include "programs/sim/sim_result.h"

/* What can be had but will not show, said beforehand. */
static void warn(const struct sim_job *job)
{
	const struct sim_options *to = &job->options;
	char neighbours[128];

	for (size_t i = 0; i < to->fault_count; i++) {
		const struct sim_fault *fault = &to->faults[i];
		const char *name = sim_fault_page(fault->kind)->name;

		if (fault->kind != SIM_FAULT_NONE && to->seconds_ns &&
		    fault->at_ns >= to->seconds_ns)
			cli_error("note: fault %s begins after the end of the job", name);
		if (fault->kind == SIM_SLOW_LINK &&
		    !sim_job_uses_link(job, fault->from, fault->to)) {
			sim_job_neighbours(job, fault->from, neighbours, sizeof(neighbours));
			cli_error("note: rank %d sends nothing to rank %d in this job; it sends to "
				  "%s",
				  fault->from, fault->to, neighbours);
		}
		if (fault->kind == SIM_STUCK_SEND && to->nodes == 1)
			cli_error("note: one node has no network; rank %d's kernel hangs without "
				  "network states",
				  fault->rank);
	}
}

/* What should have ended the job and found nothing to begin with, said afterwards. */
static void tell_unmet(const struct sim_job *job, const struct sim_result *result)
{
	const struct sim_options *to = &job->options;

	for (size_t i = 0; i < to->fault_count && result->end == SIM_RESULT_FINISHED; i++)
		if (sim_fault_hangs(&to->faults[i]) && to->faults[i].at_ns < result->ns)
			cli_error("note: fault %s met no call that it concerns: nothing is wrong "
				  "with this job",
				  sim_fault_page(to->faults[i].kind)->name);
}

static int show(const struct sim_request *request, const struct sim_job *job,
		const struct sim_result *result, const char *directory)
{
	bool is_wrong = result->end == SIM_RESULT_FAILED;
	struct sink sink;

	tell_unmet(job, result);
	sink_init_fd(&sink, STDOUT_FILENO);
	if (request->is_json)
		sim_result_json(&sink, job, result, directory);
	else
		sim_result_text(&sink, job, result, directory);
	return cli_finish(&sink, is_wrong ? CLI_EXIT_TROUBLE : CLI_EXIT_DONE);
}

static int run_offline(const struct sim_request *request, const struct sim_job *job,
		       struct sim_result *result)
{
	char standard[64], failed[512];
	const char *directory = request->options.directory;
	enum status status;

	if (directory == NULL) {
		text_format(standard, sizeof(standard), "ringside-sim-%llu",
			    (unsigned long long)request->options.seed);
		directory = standard;
	}
	status = sim_offline_run(job, directory, result, failed, sizeof(failed));
	if (status == ERR_SYSTEM && errno == EEXIST)
		return cli_error("%s exists already; choose another directory with -o", failed);
	if (status == ERR_SYSTEM)
		return cli_error("cannot write %s: %s", failed, strerror(errno));
	if (status != OK)
		return cli_error("cannot write %s: %s", failed, status_text(status));
	return show(request, job, result, directory);
}

/* What cannot be run as it was asked for. */
static int refuse_live(const struct sim_options *to)
{
	if (sim_options_world(to) > SIM_LIVE_RANKS_MAX)
		return cli_usage(&sim_page,
				 "%d ranks are too many to run (at most %d); add --offline",
				 sim_options_world(to), SIM_LIVE_RANKS_MAX);
	if (to->is_threads && to->regions)
		return cli_usage(&sim_page,
				 "--node-regions needs a process per rank or per node, not "
				 "--threads");
	for (size_t i = 0; (to->is_threads || to->is_node_processes) && i < to->fault_count; i++)
		if (to->faults[i].kind == SIM_KILL || to->faults[i].kind == SIM_STOP)
			return cli_usage(&sim_page, "fault %s needs a process per rank, not %s",
					 sim_fault_page(to->faults[i].kind)->name,
					 to->is_threads ? "--threads" : "--node-processes");
	return 0;
}

static int run_live(const struct sim_request *request, const struct sim_job *job,
		    struct sim_result *result)
{
	char plugin[4096], looked[4096], failed[512];
	struct sim_live live = { .plugin = request->options.plugin,
				 .directory = request->options.directory,
				 .mode = request->mode,
				 .regions = request->options.regions,
				 .is_threads = request->options.is_threads,
				 .is_node_processes = request->options.is_node_processes };
	int refused = refuse_live(&job->options);
	enum status status;

	if (refused)
		return refused;
	if (live.plugin == NULL) {
		if (!cli_plugin_find(plugin, sizeof(plugin), looked, sizeof(looked)))
			return cli_error("no %s in %s; say where it is with --plugin",
					 CLI_PLUGIN_FILE, looked);
		live.plugin = plugin;
	}
	if (live.mode == NULL && getenv("RINGSIDE_MODE") == NULL)
		live.mode = live.directory ? "trace" : "flight";
	status = sim_live_run(job, &live, result, failed, sizeof(failed));
	if (status != OK)
		return cli_error("%s: %s", failed,
				 status == ERR_SYSTEM ? strerror(errno) : status_text(status));
	return show(request, job, result, live.directory);
}

static int run(struct sim_request *request)
{
	struct sim_result result = { 0 };
	struct sim_job job;
	char why[256];
	int code;

	if (sim_options_finish(&request->options, why, sizeof(why)) != OK)
		return cli_usage(&sim_page, "%s", why);
	if (request->options.is_offline && request->mode && request->mode[0] != 't' &&
	    !request->options.is_full)
		return cli_usage(&sim_page,
				 "--offline writes trace files: mode trace or full, not %s",
				 request->mode);
	if (sim_job_init(&job, &request->options) != OK)
		return cli_error("not enough memory for %d ranks",
				 sim_options_world(&request->options));
	if (sim_job_check(&job, why, sizeof(why)) != OK) {
		sim_job_release(&job);
		return cli_usage(&sim_page, "%s", why);
	}
	warn(&job);
	if (sim_result_init(&result, &job) != OK)
		code = cli_error("not enough memory for %d ranks", job.world);
	else if (request->options.is_offline)
		code = run_offline(request, &job, &result);
	else
		code = run_live(request, &job, &result);
	sim_result_release(&result);
	sim_job_release(&job);
	return code;
}

int cmd_sim(int argc, char **argv)
{
	static struct sim_request request;
	struct sink sink;
	bool is_over;
	int code;

	code = sim_request_read(&request, argc, argv, &is_over);
	if (is_over)
		return code;
	if (!request.is_list)
		return run(&request);
	sink_init_fd(&sink, STDOUT_FILENO);
	sim_result_list(&sink, cli_width() && cli_width() < 80 ? cli_width() : 80);
	return cli_finish(&sink, CLI_EXIT_DONE);
}
