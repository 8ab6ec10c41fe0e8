#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmds/cli.h"
#include "cmds/cli_program.h"
#include "common/text.h"
#include "common/text_amounts.h"
#include "output/sink.h"
#include "sim/host.h"
#include "sim/sim_engine.h"
#include "sim/sim_job.h"
#include "sim/sim_live.h"

/* What `ringside sim` is asked: words and numbers of its command line, understood. */

struct sim_request {
	struct sim_options options;
	const char *mode; /* NULL: not said */
	bool is_json;
	bool is_list; /* explain workloads and faults, play nothing */
};

enum sim_option {
	SIM_OPTION_NODES = CLI_LONG_ONLY,
	SIM_OPTION_GPUS,
	SIM_OPTION_TP,
	SIM_OPTION_PP,
	SIM_OPTION_EP,
	SIM_OPTION_CHANNELS,
	SIM_OPTION_ITERATIONS,
	SIM_OPTION_SECONDS,
	SIM_OPTION_SIZES,
	SIM_OPTION_RATE,
	SIM_OPTION_AT,
	SIM_OPTION_SEED,
	SIM_OPTION_RELEASE,
	SIM_OPTION_KERNEL,
	SIM_OPTION_KERNEL_SAMPLED,
	SIM_OPTION_SAMPLE_LEVEL,
	SIM_OPTION_NO_KERNEL,
	SIM_OPTION_NVLINK,
	SIM_OPTION_NETWORK,
	SIM_OPTION_NVLINK_LATENCY,
	SIM_OPTION_NETWORK_LATENCY,
	SIM_OPTION_JITTER,
	SIM_OPTION_CLOCK_SHIFT,
	SIM_OPTION_HANG,
	SIM_OPTION_OFFLINE,
	SIM_OPTION_PROCESSES,
	SIM_OPTION_THREADS,
	SIM_OPTION_NODE_PROCESSES,
	SIM_OPTION_NODE_REGIONS,
	SIM_OPTION_PLUGIN,
	SIM_OPTION_LIST,
};

static const struct cli_option options[] = {
	{ SIM_OPTION_NODES, "nodes", "N", "nodes (1)" },
	{ SIM_OPTION_GPUS, "gpus", "N", "GPUs, and so ranks, of a node (8)" },
	{ 'w', "workload", "NAME", "what the job does: ddp (default), fsdp, tp-pp, moe, loop" },
	{ SIM_OPTION_TP, "tp", "N", "ranks of a tensor group (tp-pp; default: a node's)" },
	{ SIM_OPTION_PP, "pp", "N", "stages of a pipeline (tp-pp; default: 4 where that fits)" },
	{ SIM_OPTION_EP, "ep", "N", "ranks of an expert group (moe; default: two nodes')" },
	{ SIM_OPTION_CHANNELS, "channels", "N",
	  "channels of communicators between nodes (default: one per GPU of a node, or more)" },
	{ SIM_OPTION_ITERATIONS, "iterations", "N", "end after N iterations" },
	{ SIM_OPTION_SECONDS, "seconds", "TIME",
	  "end after this time (default: 10s, or 10s after the last fault began)" },
	{ SIM_OPTION_SIZES, "sizes", "LIST", "sizes of messages, like 1MiB,64MiB, used in turn" },
	{ SIM_OPTION_RATE, "rate", "RATE", "iterations per second, if communication took no time" },
	{ 'f', "fault", "FAULT",
	  "what goes wrong, like slow-rank:rank=3,factor=2; may be said several times" },
	{ SIM_OPTION_AT, "at", "TIME", "when faults begin that do not say it themselves (0s)" },
	{ SIM_OPTION_SEED, "seed", "N", "another number, another job (1)" },
	{ SIM_OPTION_RELEASE, "release", "RELEASE", "the release of NCCL that is played (2.28)" },
	{ SIM_OPTION_KERNEL, "kernel", NULL,
	  "with GPU times of all kernels (default: as the recorder does with this release)" },
	{ SIM_OPTION_KERNEL_SAMPLED, "kernel-sampled", NULL,
	  "with GPU times of a sample of the collectives" },
	{ SIM_OPTION_NO_KERNEL, "no-kernel", NULL, "without GPU times of kernels" },
	{ SIM_OPTION_SAMPLE_LEVEL, "sample-level", "N",
	  "with --offline: a sample of one block of collectives in 2^N, N up to 12 (3)" },
	{ SIM_OPTION_NVLINK, "nvlink", "RATE", "a GPU's bandwidth within its node, in GB/s (360)" },
	{ SIM_OPTION_NETWORK, "network", "RATE", "a GPU's bandwidth to other nodes, in GB/s (48)" },
	{ SIM_OPTION_NVLINK_LATENCY, "nvlink-latency", "TIME", "per hop within a node (1us)" },
	{ SIM_OPTION_NETWORK_LATENCY, "network-latency", "TIME", "per hop between nodes (5us)" },
	{ SIM_OPTION_JITTER, "jitter", "PERCENT", "how much compute times vary, either way (2)" },
	{ SIM_OPTION_CLOCK_SHIFT, "clock-shift", "TIME",
	  "how far clocks of hosts and GPUs are apart, at most; up to 1s (100ms)" },
	{ SIM_OPTION_HANG, "hang", "TIME",
	  "with --iterations: how long a job that hangs is watched (10s)" },
	{ 'm', "mode", "MODE",
	  "what is recorded: trace, full; without --offline also flight, profile" },
	{ 'o', "output", "DIR", "directory for trace files" },
	{ SIM_OPTION_OFFLINE, "offline", NULL, "write the trace files without running the job" },
	{ SIM_OPTION_PROCESSES, "processes", NULL, "a process per rank (default)" },
	{ SIM_OPTION_THREADS, "threads", NULL,
	  "all ranks in one process, which one recorder sees" },
	{ SIM_OPTION_NODE_PROCESSES, "node-processes", NULL,
	  "a process per node, its ranks are threads: for hundreds of ranks" },
	{ SIM_OPTION_NODE_REGIONS, "node-regions", "DIR",
	  "regions of each node in a directory of its own, DIR/node0000 and so on, as for agents "
	  "of single nodes" },
	{ SIM_OPTION_PLUGIN, "plugin", "FILE", "this plugin instead of the one found" },
	{ SIM_OPTION_LIST, "list", NULL, "explain workloads and faults" },
	CLI_OPTION_JSON,
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside sim --nodes 2 --gpus 4 --fault slow-link:from=3,to=4,factor=8 -o traces",
	  "eight processes with the recorder for ten seconds, one of their links slow" },
	{ "ringside sim --offline --nodes 64 --gpus 8 -w fsdp -f stuck-send:rank=247 --at 30s -o "
	  "traces",
	  "what 512 ranks would have recorded of a job that hangs after half a minute" },
	{ NULL, NULL },
};

static const struct cli_page sim_page = {
	.name = "sim",
	.operands = "",
	.about = "Plays a job with a chosen topology, workload and faults, for trying things out, "
		 "for "
		 "drills and for tests. Ranks are processes of this machine with the recorder in "
		 "them; their communication is played, nothing is computed and no GPU is needed. "
		 "With "
		 "--offline nothing runs: the trace files are worked out and written, of thousands "
		 "of "
		 "ranks if wanted, the same bytes for the same seed.\n"
		 "At the end it says how many operations each rank issued on each communicator.\n",
	.options = options,
	.examples = examples,
};

static int take_number(const char *name, const char *text, int64_t least, int64_t most,
		       int64_t *number)
{
	if (text_number(text, least, most, number) == OK)
		return 0;
	return cli_usage(&sim_page, "--%s %s is not a number from %lld to %lld", name, text,
			 (long long)least, (long long)most);
}

static int take_int(const char *name, const char *text, int least, int most, int *number)
{
	int64_t value = *number;
	int failed = take_number(name, text, least, most, &value);

	*number = (int)value;
	return failed;
}

static int take_time(const char *name, const char *text, uint64_t *ns)
{
	if (text_duration(text, ns) == OK)
		return 0;
	return cli_usage(&sim_page, "--%s %s is not a time like 30s, 1.5s or 500ms", name, text);
}

static int take_bandwidth(const char *name, const char *text, uint64_t *bytes_per_us)
{
	if (text_permille(text, 1, bytes_per_us) == OK)
		return 0;
	return cli_usage(&sim_page, "--%s %s is not a bandwidth in GB/s like 48 or 12.5", name,
			 text);
}

static int take_rate(struct sim_options *to, const char *text)
{
	uint64_t permille;

	if (text_permille(text, 1, &permille) != OK || permille > UINT64_C(100000) * 1000)
		return cli_usage(&sim_page,
				 "--rate %s is not a number of iterations per second, up to "
				 "100000",
				 text);
	to->period_ns = UINT64_C(1000000000000) / permille;
	return 0;
}

static int take_workload(struct sim_options *to, const char *text)
{
	char names[128] = "";

	to->workload = sim_workload_find(text);
	if (to->workload != SIM_WORKLOADS)
		return 0;
	for (int i = 0; i < SIM_WORKLOADS; i++)
		text_format(names + strlen(names), sizeof(names) - strlen(names), "%s %s",
			    i ? "," : "", sim_workload_page((enum sim_workload)i)->name);
	return cli_usage(&sim_page, "there is no workload '%s'; there are%s", text, names);
}

static int take_fault(struct sim_options *to, const char *text)
{
	char why[512];

	if (to->fault_count == SIM_FAULTS_MAX)
		return cli_usage(&sim_page, "more than %d faults", SIM_FAULTS_MAX);
	if (sim_fault_parse(&to->faults[to->fault_count], text, why, sizeof(why)) != OK)
		return cli_usage(&sim_page, "%s", why);
	to->fault_count++;
	return 0;
}

static int take_mode(struct sim_request *request, const char *text)
{
	static const char *const modes[] = { "trace", "full", "flight", "profile" };

	for (size_t i = 0; i < ARRAY_LENGTH(modes); i++)
		if (strcmp(modes[i], text) == 0) {
			request->mode = modes[i];
			request->options.is_full = strcmp(text, "full") == 0;
			return 0;
		}
	return cli_usage(&sim_page,
			 "there is no mode '%s'; there are trace, full, flight and profile", text);
}

static int take_clock_shift(struct sim_options *to, const char *text)
{
	int failed = take_time("clock-shift", text, &to->clock_shift_ns);

	if (failed == 0 && to->clock_shift_ns > 1000000000)
		return cli_usage(&sim_page, "--clock-shift %s is more than 1s", text);
	return failed;
}

static int take_jitter(struct sim_options *to, const char *text)
{
	uint64_t permille;

	if (text_permille(text, 0, &permille) != OK || permille > 50 * 1000)
		return cli_usage(&sim_page, "--jitter %s is not a percentage from 0 to 50", text);
	to->jitter_permille = (unsigned int)(permille / 100);
	return 0;
}

/* Options of the job's shape and length. */
static int take_shape(struct sim_options *to, int id, const char *value)
{
	int64_t number = 0;
	int failed;

	switch (id) {
	case SIM_OPTION_NODES:
		return take_int("nodes", value, 1, SIM_NODES_MAX, &to->nodes);
	case SIM_OPTION_GPUS:
		return take_int("gpus", value, 1, SIM_GPUS_MAX, &to->gpus);
	case SIM_OPTION_TP:
		return take_int("tp", value, 1, SIM_RANKS_MAX, &to->tensor);
	case SIM_OPTION_PP:
		return take_int("pp", value, 1, SIM_RANKS_MAX, &to->pipeline);
	case SIM_OPTION_EP:
		return take_int("ep", value, 1, SIM_RANKS_MAX, &to->expert);
	case SIM_OPTION_CHANNELS:
		return take_int("channels", value, 1, SIM_CHANNELS_MAX, &to->channels);
	case SIM_OPTION_ITERATIONS:
		failed = take_number("iterations", value, 1, INT32_MAX, &number);
		to->iterations = (uint64_t)number;
		return failed;
	case SIM_OPTION_SECONDS:
		return take_time("seconds", value, &to->seconds_ns);
	case SIM_OPTION_SIZES:
		if (text_sizes(value, to->sizes, SIM_SIZES_MAX, &to->size_count) == OK)
			return 0;
		return cli_usage(&sim_page,
				 "--sizes %s is not a list of up to %d sizes like 1KiB,4MiB", value,
				 SIM_SIZES_MAX);
	case SIM_OPTION_RATE:
		return take_rate(to, value);
	case 'w':
		return take_workload(to, value);
	default:
		return -1;
	}
}

/* Options of links, clocks and faults. */
static int take_physics(struct sim_options *to, int id, const char *value)
{
	int64_t number = 0;
	int failed;

	switch (id) {
	case SIM_OPTION_AT:
		return take_time("at", value, &to->at_ns);
	case SIM_OPTION_SEED:
		failed = take_number("seed", value, 0, INT64_MAX, &number);
		to->seed = (uint64_t)number;
		return failed;
	case SIM_OPTION_NVLINK:
		return take_bandwidth("nvlink", value, &to->nvlink.bytes_per_us);
	case SIM_OPTION_NETWORK:
		return take_bandwidth("network", value, &to->network.bytes_per_us);
	case SIM_OPTION_NVLINK_LATENCY:
		return take_time("nvlink-latency", value, &to->nvlink.latency_ns);
	case SIM_OPTION_NETWORK_LATENCY:
		return take_time("network-latency", value, &to->network.latency_ns);
	case SIM_OPTION_JITTER:
		return take_jitter(to, value);
	case SIM_OPTION_CLOCK_SHIFT:
		return take_clock_shift(to, value);
	case SIM_OPTION_HANG:
		return take_time("hang", value, &to->hang_ns);
	case 'f':
		return take_fault(to, value);
	default:
		return -1;
	}
}

static int take_release(struct sim_options *to, const char *text)
{
	if (host_release_parse(text, &to->release) == OK && host_release_native(to->release) > 0)
		return 0;
	return cli_usage(&sim_page,
			 "--release %s is no release of NCCL with profilers: 2.23 to 2.31, "
			 "like 2.28 or 2.28.9",
			 text);
}

static int take_kernel(struct sim_options *to, enum kernel_events kernel)
{
	to->is_kernel_said = true;
	to->kernel = kernel;
	return 0;
}

static int take_sample_level(struct sim_options *to, const char *text)
{
	int level = (int)to->sample_level;
	int failed = take_int("sample-level", text, 0, SAMPLE_LEVEL_MOST, &level);

	to->sample_level = (unsigned int)level;
	return failed;
}

static int sim_take_option(struct sim_request *request, int id, const char *value)
{
	struct sim_options *to = &request->options;
	int failed = take_shape(to, id, value);

	if (failed == -1)
		failed = take_physics(to, id, value);
	if (failed != -1)
		return failed;
	switch (id) {
	case SIM_OPTION_RELEASE:
		return take_release(to, value);
	case SIM_OPTION_KERNEL:
		return take_kernel(to, KERNEL_EVENTS_ON);
	case SIM_OPTION_KERNEL_SAMPLED:
		return take_kernel(to, KERNEL_EVENTS_SAMPLED);
	case SIM_OPTION_NO_KERNEL:
		return take_kernel(to, KERNEL_EVENTS_OFF);
	case SIM_OPTION_SAMPLE_LEVEL:
		return take_sample_level(to, value);
	case SIM_OPTION_OFFLINE:
		to->is_offline = true;
		return 0;
	case SIM_OPTION_THREADS:
	case SIM_OPTION_NODE_PROCESSES:
	case SIM_OPTION_PROCESSES:
		to->is_threads = id == SIM_OPTION_THREADS;
		to->is_node_processes = id == SIM_OPTION_NODE_PROCESSES;
		return 0;
	case SIM_OPTION_NODE_REGIONS:
		to->regions = value;
		return 0;
	case SIM_OPTION_PLUGIN:
		to->plugin = value;
		return 0;
	case SIM_OPTION_LIST:
		request->is_list = true;
		return 0;
	case 'm':
		return take_mode(request, value);
	case 'o':
		to->directory = value;
		return 0;
	default:
		request->is_json = true;
		return 0;
	}
}

/* 0, or the exit code after help was shown or an error was told. */
static int sim_request_read(struct sim_request *request, int argc, char **argv, bool *is_over)
{
	struct cli_args args;
	int found, failed;

	*is_over = true;
	sim_options_init(&request->options);
	cli_args_init(&args, &sim_page, argc, argv);
	while ((found = cli_next(&args)) != CLI_END) {
		if (found == CLI_STOP)
			return args.exit_code;
		if (found == CLI_OPERAND)
			return cli_usage(&sim_page, "'%s' is not expected", args.value);
		failed = sim_take_option(request, found, args.value);
		if (failed)
			return failed;
	}
	*is_over = false;
	return 0;
}

/* What can be had but will not show, said beforehand. */
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
		return cli_error("%s exists already; choose another directory with -o", failed);
	if (status == ERR_SYSTEM)
		return cli_error("cannot write %s: %s", failed, strerror(errno));
	if (status != OK)
		return cli_error("cannot write %s: %s", failed, status_text(status));
	return sim_show(request, job, result, directory);
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
				 "--offline writes trace files: mode trace or full, not %s",
				 request->mode);
	if (sim_job_init(&job, &request->options) != OK)
		return cli_error("not enough memory for %d ranks",
				 sim_options_world(&request->options));
	if (sim_job_check(&job, why, sizeof(why)) != OK) {
		sim_job_release(&job);
		return cli_usage(&sim_page, "%s", why);
	}
	sim_warn(&job);
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
