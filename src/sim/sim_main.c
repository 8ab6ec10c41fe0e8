/* `ringside sim`: its command line. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/text.h"
#include "output/sink.h"
#include "sim/host.h"
#include "sim/sim_engine.h"
#include "sim/sim_job.h"

/* The parsed command line of `ringside sim`. */

struct sim_request {
	struct sim_options options;
	const char *mode; /* NULL: not set */
	bool is_json;
	bool is_list; /* show workloads, faults and noise, simulate nothing */
};

static int take_bandwidth(const struct cli_said *said)
{
	if (text_permille(said->value, 1, said->target) == OK)
		return 0;
	return cli_usage(said->page, "--%s %s: expected a bandwidth in GB/s, e.g. 48 or 12.5",
			 said->option->name, said->value);
}

static int take_rate(const struct cli_said *said)
{
	struct sim_options *to = said->target;
	uint64_t permille;

	if (text_permille(said->value, 1, &permille) != OK || permille > UINT64_C(100000) * 1000)
		return cli_usage(said->page,
				 "--rate %s: expected iterations per second, up to 100000",
				 said->value);
	to->period_ns = UINT64_C(1000000000000) / permille;
	return 0;
}

static int take_workload(const struct cli_said *said)
{
	struct sim_options *to = said->target;
	char names[128] = "";

	to->workload = sim_workload_find(said->value);
	if (to->workload != SIM_WORKLOADS)
		return 0;
	for (int i = 0; i < SIM_WORKLOADS; i++)
		text_format(names + strlen(names), sizeof(names) - strlen(names), "%s %s",
			    i ? "," : "", sim_workload_page((enum sim_workload)i)->name);
	return cli_usage(said->page, "unknown workload '%s'; use one of%s", said->value, names);
}

static int take_fault(const struct cli_said *said)
{
	struct sim_options *to = said->target;
	char why[512];

	if (to->fault_count == SIM_FAULTS_MAX)
		return cli_usage(said->page, "more than %d faults", SIM_FAULTS_MAX);
	if (sim_fault_parse(&to->faults[to->fault_count], said->value, why, sizeof(why)) != OK)
		return cli_usage(said->page, "%s", why);
	to->fault_count++;
	return 0;
}

static int take_tags(const struct cli_said *said)
{
	struct sim_options *to = said->target;
	char why[512];

	if (sim_tags_parse(to->tags, said->value, why, sizeof(why)) != OK)
		return cli_usage(said->page, "%s", why);
	return 0;
}

static int take_noise(const struct cli_said *said)
{
	struct sim_options *to = said->target;
	char why[512];

	if (sim_noise_parse(to->noises, said->value, why, sizeof(why)) != OK)
		return cli_usage(said->page, "%s", why);
	return 0;
}

static int take_mode(const struct cli_said *said)
{
	struct sim_request *request = said->target;
	static const char *const modes[] = { "trace", "full", "flight", "profile" };

	for (size_t i = 0; i < ARRAY_LENGTH(modes); i++)
		if (strcmp(modes[i], said->value) == 0) {
			request->mode = modes[i];
			request->options.is_full = strcmp(said->value, "full") == 0;
			return 0;
		}
	return cli_usage(said->page, "unknown mode '%s'; use trace, full, flight or profile",
			 said->value);
}

static int take_jitter(const struct cli_said *said)
{
	struct sim_options *to = said->target;
	uint64_t permille;

	if (text_permille(said->value, 0, &permille) != OK || permille > 50 * 1000)
		return cli_usage(said->page, "--jitter %s: expected a percentage from 0 to 50",
				 said->value);
	to->jitter_permille = (unsigned int)(permille / 100);
	return 0;
}

static int take_release(const struct cli_said *said)
{
	struct sim_options *to = said->target;

	if (host_release_parse(said->value, &to->release) == OK &&
	    host_release_native(to->release) > 0)
		return 0;
	return cli_usage(said->page,
			 "--release %s: expected an NCCL release with profiler support, 2.23 to "
			 "2.31, e.g. 2.28 or 2.28.9",
			 said->value);
}

static int take_sizes(const struct cli_said *said)
{
	struct sim_options *to = said->target;

	if (text_sizes(said->value, to->sizes, SIM_SIZES_MAX, &to->size_count) == OK)
		return 0;
	return cli_usage(said->page,
			 "--sizes %s: expected a list of up to %d sizes, e.g. 1KiB,4MiB",
			 said->value, SIM_SIZES_MAX);
}

static int take_times(const struct cli_said *said)
{
	struct sim_options *to = said->target;

	to->is_times_said = true;
	if (sim_times_parse(said->value, &to->times, &to->graph_times) == OK)
		return 0;
	return cli_usage(said->page,
			 "--times %s: use auto, all, off or kernel, and perhaps ,graphs or "
			 ",no-graphs",
			 said->value);
}

/* --kernel, --no-kernel */
static int take_kernel(const struct cli_said *said)
{
	struct sim_options *to = said->target;

	to->times = said->option->name[0] == 'n' ? SIM_TIMES_OFF : SIM_TIMES_KERNEL;
	to->is_times_said = true;
	return 0;
}

/* --processes, --threads, --node-processes: the last one wins. */
static int take_processes(const struct cli_said *said)
{
	struct sim_options *to = said->target;

	to->is_threads = said->option->name[0] == 't';
	to->is_node_processes = said->option->name[0] == 'n';
	return 0;
}

#define SIM_TIME(field, most_ns)                                 \
	CLI_TIME(struct sim_request, options.field, 0, most_ns), \
		.like = "is not a time; use e.g. 30s, 1.5s or 500ms"

static const struct cli_option options[] = {
	{ 0, "nodes", "N", "number of nodes (default 1)",
	  CLI_INT(struct sim_request, options.nodes, 1, SIM_NODES_MAX) },
	{ 0, "gpus", "N", "GPUs per node, one rank each (default 8)",
	  CLI_INT(struct sim_request, options.gpus, 1, SIM_GPUS_MAX) },
	{ 'w', "workload", "NAME", "workload: ddp (default), fsdp, tp-pp, moe or loop",
	  CLI_CALL(struct sim_request, options, take_workload) },
	{ 0, "tp", "N", "ranks per tensor group (tp-pp; default: one node)",
	  CLI_INT(struct sim_request, options.tensor, 1, SIM_RANKS_MAX) },
	{ 0, "pp", "N", "pipeline stages (tp-pp; default: 4 if possible)",
	  CLI_INT(struct sim_request, options.pipeline, 1, SIM_RANKS_MAX) },
	{ 0, "ep", "N", "ranks per expert group (moe; default: two nodes)",
	  CLI_INT(struct sim_request, options.expert, 1, SIM_RANKS_MAX) },
	{ 0, "channels", "N",
	  "channels of communicators between nodes (default: one per GPU of a node, or more)",
	  CLI_INT(struct sim_request, options.channels, 1, SIM_CHANNELS_MAX) },
	{ 0, "iterations", "N", "end after N iterations",
	  CLI_U64(struct sim_request, options.iterations, 1, INT32_MAX) },
	{ 0, "seconds", "TIME",
	  "end after this time (default: 10s, or 10s after the last fault began)",
	  SIM_TIME(seconds_ns, 0) },
	{ 0, "sizes", "LIST", "message sizes, used in turn, e.g. 1MiB,64MiB",
	  CLI_CALL(struct sim_request, options, take_sizes) },
	{ 0, "rate", "RATE", "iterations per second, not counting communication time",
	  CLI_CALL(struct sim_request, options, take_rate) },
	{ 'f', "fault", "FAULT", "inject a fault, e.g. slow-rank:rank=3,factor=2; can be repeated",
	  CLI_CALL(struct sim_request, options, take_fault) },
	{ 0, "at", "TIME", "start time of faults without their own at= (default 0s)",
	  SIM_TIME(at_ns, 0) },
	{ 0, "noise", "NOISE",
	  "add noise of a healthy job, e.g. gc or compute:percent=5; can be repeated",
	  CLI_CALL(struct sim_request, options, take_noise) },
	{ 0, "graphs", NULL,
	  "put the calls of an iteration into CUDA graphs and replay them from then on",
	  CLI_FLAG(struct sim_request, options.has_graphs) },
	{ 0, "warm-up", "N", "with --graphs: iterations before that (default 3)",
	  CLI_INT(struct sim_request, options.warm_up, 0, INT32_MAX) },
	{ 0, "seed", "N", "random seed (default 1)",
	  CLI_U64(struct sim_request, options.seed, 0, INT64_MAX) },
	{ 0, "release", "RELEASE", "NCCL release to simulate (default 2.28)",
	  CLI_CALL(struct sim_request, options, take_release) },
	{ 0, "tag", "LIST",
	  "userTag of the operations, by communicator, e.g. world=7 or tp=1,dp=2 (release 2.31)",
	  CLI_CALL(struct sim_request, options, take_tags) },
	{ 0, "times", "WHICH",
	  "GPU times, as RINGSIDE_TIMES: auto (default: of a share of the launches, from release "
	  "2.28 on), all, off, or kernel (NCCL's kernel events, of every operation); with ,graphs "
	  "or ,no-graphs: of every launch in a graph or of none",
	  CLI_CALL(struct sim_request, options, take_times) },
	{ 0, "kernel", NULL, "the same as --times kernel",
	  CLI_CALL(struct sim_request, options, take_kernel) },
	{ 0, "no-kernel", NULL, "the same as --times off",
	  CLI_CALL(struct sim_request, options, take_kernel) },
	{ 0, "nvlink", "RATE", "bandwidth of a GPU inside its node, in GB/s (default 360)",
	  CLI_CALL(struct sim_request, options.nvlink.bytes_per_us, take_bandwidth) },
	{ 0, "network", "RATE", "bandwidth of a GPU to other nodes, in GB/s (default 48)",
	  CLI_CALL(struct sim_request, options.network.bytes_per_us, take_bandwidth) },
	{ 0, "nvlink-latency", "TIME", "latency per hop inside a node (default 1us)",
	  SIM_TIME(nvlink.latency_ns, 0) },
	{ 0, "network-latency", "TIME", "latency per hop between nodes (default 5us)",
	  SIM_TIME(network.latency_ns, 0) },
	{ 0, "jitter", "PERCENT", "variation of compute times in percent (default 2)",
	  CLI_CALL(struct sim_request, options, take_jitter) },
	{ 0, "clock-shift", "TIME",
	  "maximum difference between clocks of hosts and GPUs, up to 1s (default 100ms)",
	  SIM_TIME(clock_shift_ns, CLI_SECONDS(1)), .more = "is more than 1s" },
	{ 0, "hang", "TIME", "with --iterations: how long to observe a hung job (default 10s)",
	  SIM_TIME(hang_ns, 0) },
	{ 0, "watchdog", "TIME",
	  "with --offline: abort a hung job after this time without progress, as PyTorch does",
	  SIM_TIME(watchdog_ns, 0) },
	{ 0, "attempt", "N",
	  "with --offline: the N-th start of the same job, on its nodes in another order (default "
	  "1)",
	  CLI_INT(struct sim_request, options.attempt, 1, 100) },
	{ 0, "begin", "TIME",
	  "with --offline: when this start of the job begins, after the first (default 0s)",
	  SIM_TIME(begin_ns, 0) },
	{ 'm', "mode", "MODE",
	  "what to record: trace or full; without --offline also flight or profile",
	  CLI_CALL_ALL(take_mode) },
	{ 'o', "output", "DIR", "directory for trace files",
	  CLI_TEXT(struct sim_request, options.directory) },
	{ 0, "offline", NULL, "write the trace files without running the job",
	  CLI_FLAG(struct sim_request, options.is_offline) },
	{ 0, "processes", NULL, "one process per rank (default)",
	  CLI_CALL(struct sim_request, options, take_processes) },
	{ 0, "threads", NULL, "all ranks in one process with one recorder",
	  CLI_CALL(struct sim_request, options, take_processes) },
	{ 0, "node-processes", NULL,
	  "one process per node with its ranks as threads; for hundreds of ranks",
	  CLI_CALL(struct sim_request, options, take_processes) },
	{ 0, "node-regions", "DIR",
	  "put each node's regions in a directory of its own (DIR/node0000, ...), to run one agent "
	  "per node",
	  CLI_TEXT(struct sim_request, options.regions) },
	{ 0, "plugin", "FILE", "load this plugin instead of the installed one",
	  CLI_TEXT(struct sim_request, options.plugin) },
	{ 0, "list", NULL, "describe workloads, faults and noise",
	  CLI_FLAG(struct sim_request, is_list) },
	CLI_OPTION_JSON(struct sim_request),
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside sim --nodes 2 --gpus 4 --fault slow-link:from=3,to=4,factor=8 -o traces",
	  "eight processes with the recorder for ten seconds, with one slow link" },
	{ "ringside sim --offline --nodes 64 --gpus 8 -w fsdp -f stuck-send:rank=247 --at 30s -o "
	  "traces",
	  "what 512 ranks would have recorded of a job that hangs after 30 s" },
	{ NULL, NULL },
};

/* What earlier versions had. */
static const struct cli_other earlier[] = {
	{ 0, "kernel-sampled", "--times auto, the default, times a share of the launches" },
	{ 0, "sample-level", "the share follows from the job, as in the recorder" },
	{ 0, NULL, NULL },
};

static const struct cli_page sim_page = {
	.name = "sim",
	.operands = "",
	.about = "Simulates a job with a given topology, workload and faults, for demos, drills "
		 "and tests. Ranks are processes on this host with the Ringside plugin loaded; "
		 "communication is simulated, nothing is computed and no GPU is needed. With "
		 "--offline nothing runs: the trace files are computed and written directly, for "
		 "thousands of ranks if wanted; the same seed gives the same bytes.\n"
		 "Prints the number of operations per rank and communicator at the end.\n",
	.options = options,
	.examples = examples,
	.elsewhere = earlier,
};

/* 0, or the exit code after help or an error message. */
static int sim_request_read(struct sim_request *request, int argc, char **argv, bool *is_over)
{
	int code;

	sim_options_init(&request->options);
	code = cli_parse(&sim_page, request, argc, argv);
	*is_over = code != CLI_GO_ON;
	return *is_over ? code : 0;
}

/* Warns beforehand about faults without visible effect. */
static void sim_warn(const struct sim_job *job)
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

/* Reports afterwards a fault that should have hung the job but affected no call. */
static void tell_unmet(const struct sim_job *job, const struct sim_result *result)
{
	const struct sim_options *to = &job->options;

	for (size_t i = 0; i < to->fault_count && result->end == SIM_RESULT_FINISHED; i++)
		if (sim_fault_hangs(&to->faults[i]) && to->faults[i].at_ns < result->ns)
			cli_error("note: fault %s affected no call: this job is healthy",
				  sim_fault_page(to->faults[i].kind)->name);
}

static int sim_show(const struct sim_request *request, const struct sim_job *job,
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
		return cli_error("%s already exists; choose another directory with -o", failed);
	if (status == ERR_SYSTEM)
		return cli_error("cannot write %s: %s", failed, strerror(errno));
	if (status != OK)
		return cli_error("cannot write %s: %s", failed, status_text(status));
	return sim_show(request, job, result, directory);
}

/* Rejects what cannot run as requested. */
static int refuse_live(const struct sim_options *to)
{
	if (sim_options_world(to) > SIM_LIVE_RANKS_MAX)
		return cli_usage(&sim_page,
				 "%d ranks are too many to run (at most %d); use --offline",
				 sim_options_world(to), SIM_LIVE_RANKS_MAX);
	if (to->is_threads && to->regions)
		return cli_usage(&sim_page,
				 "--node-regions needs one process per rank or per node, not "
				 "--threads");
	for (size_t i = 0; (to->is_threads || to->is_node_processes) && i < to->fault_count; i++)
		if (to->faults[i].kind == SIM_KILL || to->faults[i].kind == SIM_STOP)
			return cli_usage(&sim_page, "fault %s needs one process per rank, not %s",
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
			return cli_error("no %s in %s; use --plugin to name the file",
					 CLI_PLUGIN_FILE, looked);
		live.plugin = plugin;
	}
	if (live.mode == NULL && getenv("RINGSIDE_MODE") == NULL)
		live.mode = live.directory ? "trace" : "flight";
	status = sim_live_run(job, &live, result, failed, sizeof(failed));
	/* The plugin could not be loaded: that says why. */
	if (status == ERR_UNKNOWN)
		return cli_error("%s", failed);
	if (status != OK)
		return cli_error("%s: %s", failed,
				 status == ERR_SYSTEM ? strerror(errno) : status_text(status));
	if (live.regions != NULL && job->options.nodes > 1 && !result->has_hosts)
		cli_note("the system does not let processes have host names of their own: all "
			 "nodes were one host");
	return sim_show(request, job, result, live.directory);
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
				 "--offline writes trace files: use mode trace or full, not %s",
				 request->mode);
	if (sim_job_init(&job, &request->options) != OK)
		return cli_error("out of memory for %d ranks",
				 sim_options_world(&request->options));
	if (sim_job_check(&job, why, sizeof(why)) != OK) {
		sim_job_release(&job);
		return cli_usage(&sim_page, "%s", why);
	}
	sim_warn(&job);
	if (sim_result_init(&result, &job) != OK)
		code = cli_error("out of memory for %d ranks", job.world);
	else if (request->options.is_offline)
		code = run_offline(request, &job, &result);
	else
		code = run_live(request, &job, &result);
	sim_result_release(&result);
	sim_job_release(&job);
	return code;
}

int main(int argc, char **argv)
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
