/*
 * Live jobs: ranks as processes, threads and processes of nodes, with the tape recorder as their plugin. All jobs run
 * at the same time, each below a process of its own, because they mostly sleep. Only what does not depend on the
 * machine's speed is compared: all of a job that finishes, and how the ranks of a hung one end.
 */
#include "tests/tap.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/attributes.h"
#include "sim/sim_engine.h"
#include "sim/sim_job.h"
#include "tests/support/expected_file.h"
#include "tests/support/scratch.h"
#include "tests/unit/sim/tape_story.h"

static const char *const end_names[] = { "finished", "hung",	    "stopped",
					 "killed",   "interrupted", "failed" };

struct live_job {
	const char *name;
	int nodes, gpus;
	enum sim_workload workload;
	const char *fault; /* NULL: none */
	bool is_threads, is_node_processes;
	bool is_interrupted; /* before it begins */
	bool has_regions;
	bool is_every_timed;
	uint64_t iterations; /* 0: for 700 ms */
	const char *plugin;  /* NULL: the recorder */
	const char *mode;
	pid_t pid;
};

/* ---- in the child ---------------------------------------------------------------------------- */

static void show_environment(FILE *to)
{
	static const char *const names[] = { "WORLD_SIZE",    "LOCAL_WORLD_SIZE", "RANK",
					     "LOCAL_RANK",    "GROUP_RANK",	  "RINGSIDE_JOB",
					     "RINGSIDE_MODE", "RINGSIDE_BUFFER",  "RINGSIDE_EVENTS",
					     "RINGSIDE_TIMES" };

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		if (getenv(names[i]) != NULL)
			fprintf(to, "%s=%s ", names[i], getenv(names[i]));
	fprintf(to, "%s\n", getenv("RINGSIDE_DIR") ? "with RINGSIDE_DIR" : "");
}

static void show_result(FILE *to, const struct sim_job *job, const struct sim_result *result)
{
	bool is_finished = result->end == SIM_RESULT_FINISHED;

	fprintf(to, "%s, iterations %" PRIu64 "\n", end_names[result->end], result->iterations);
	for (int rank = 0; rank < job->world; rank++) {
		const struct sim_result_rank *one = &result->ranks[rank];

		/* How far the others are when a rank is stopped depends on the machine. */
		if (job->options.fault_count > 0 &&
		    sim_job_gone_ns(job, job->options.faults[0].rank) != UINT64_MAX &&
		    rank != job->options.faults[0].rank)
			continue;
		if (one->end == SIM_RESULT_HUNG && sim_job_gone_ns(job, rank) != UINT64_MAX) {
			fprintf(to, "rank %d stopped\n", rank);
			continue;
		}
		fprintf(to, "rank %d %s%s%s", rank, end_names[one->end],
			one->pid > 1 ? "" : ", no pid", one->host[0] != '\0' ? "" : ", no host");
		for (int role = 0; role < SIM_ROLES; role++)
			if (is_finished && one->issued[role] != 0)
				fprintf(to,
					", %s: %" PRIu64 " calls, %" PRIu64 " in flight, %" PRIu64
					" hidden",
					sim_role_name(role), one->issued[role],
					one->in_flight[role], one->hidden[role]);
		fprintf(to, "\n");
	}
}

static void run_job(const struct live_job *live_job, const char *folder)
{
	struct sim_options options;
	struct sim_result result = { 0 };
	struct sim_job job;
	char regions[256], path[256], why[256] = "", failed[512] = "";
	struct sim_live live = { .plugin = live_job->plugin ? live_job->plugin : story_recorder(),
				 .directory = folder,
				 .mode = live_job->mode,
				 .is_threads = live_job->is_threads,
				 .is_node_processes = live_job->is_node_processes };
	enum status status;
	sigset_t interrupt;
	FILE *to;

	snprintf(path, sizeof(path), "%s/result", folder);
	to = fopen(path, "we");
	snprintf(regions, sizeof(regions), "%s/regions", folder);
	if (live_job->has_regions)
		live.regions = regions;
	snprintf(path, sizeof(path), "%s/tape-%%j-%%r", folder);
	setenv("RINGSIDE_TAPE", path, 1);
	setenv("RINGSIDE_TAPE_EVENTS", "0xffdf", 1);
	sim_options_init(&options);
	options.nodes = live_job->nodes;
	options.gpus = live_job->gpus;
	options.workload = live_job->workload;
	options.seed = 7;
	options.period_ns = 1000000;
	options.sizes[0] = 100000;
	options.size_count = 1;
	options.iterations = live_job->iterations;
	options.seconds_ns = live_job->iterations ? 0 : 700000000;
	options.at_ns = 250000000;
	options.is_times_said = live_job->is_every_timed;
	options.times = live_job->is_every_timed ? SIM_TIMES_ALL : SIM_TIMES_AUTO;
	if (live_job->fault != NULL && sim_fault_parse(&options.faults[options.fault_count++],
						       live_job->fault, why, sizeof(why)) != OK)
		_exit(2);
	if (to == NULL || sim_options_finish(&options, why, sizeof(why)) != OK ||
	    sim_job_init(&job, &options) != OK || sim_result_init(&result, &job) != OK)
		_exit(3);
	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	if (live_job->is_interrupted) {
		sigprocmask(SIG_BLOCK, &interrupt, NULL);
		raise(SIGINT);
	}
	status = sim_live_run(&job, &live, &result, failed, sizeof(failed));
	if (status == OK)
		show_result(to, &job, &result);
	else
		fprintf(to, "%s: %s\n", status_text(status), failed);
	show_environment(to);
	if (waitpid(-1, NULL, WNOHANG) != -1)
		fprintf(to, "a process is left\n");
	fclose(to);
	_exit(0);
}

/* ---- in the parent --------------------------------------------------------------------------- */

static void folder_of(char *folder, size_t size, size_t index)
{
	snprintf(folder, size, "%s/%zu", scratch_dir.path, index);
}

/* How many lines there are of each kind. */
static void show_lines(struct sink *sink, const char *path)
{
	static const char *const kinds[] = { "INIT",	   " Group ", " CollApi ", " P2pApi ",
					     " Coll ",	   " P2p ",   " ProxyOp ", " ProxyStep ",
					     " KernelCh ", " STATE ", " STOP ",	   "FINI" };
	size_t counts[ARRAY_LENGTH(kinds)] = { 0 };
	FILE *file = fopen(path, "re");
	char line[2048];

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
			counts[i] += strstr(line, kinds[i]) != NULL;
	if (file != NULL)
		fclose(file);
	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
		sink_format(sink, "%s%s: %zu", i ? ", " : "  ", kinds[i] + strspn(kinds[i], " "),
			    counts[i]);
	sink_text(sink, "\n");
}

static void show_job(struct sink *sink, const struct live_job *job, size_t index)
{
	char folder[128], path[256], line[1024];
	struct stat st;
	int status;
	FILE *file;

	folder_of(folder, sizeof(folder), index);
	if (waitpid(job->pid, &status, 0) != job->pid)
		abort();
	sink_format(sink, "=== %s\n", job->name);
	if (status != 0)
		sink_format(sink, "ended with %d\n", status);
	snprintf(path, sizeof(path), "%s/result", folder);
	file = fopen(path, "re");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		sink_text(sink, line);
	if (file != NULL)
		fclose(file);
	for (int rank = 0; rank < job->nodes * job->gpus && job->iterations != 0; rank++) {
		snprintf(path, sizeof(path), "%s/tape-sim-7-%d", folder, rank);
		if (access(path, R_OK) != 0)
			continue;
		sink_format(sink, "tape of rank %d\n", rank);
		if (job->workload == SIM_LOOP)
			story_show(sink, path, false, -1);
		else
			show_lines(sink, path);
	}
	for (int node = 0; node < job->nodes && job->has_regions; node++) {
		snprintf(path, sizeof(path), "%s/regions/node%04d", folder, node);
		if (stat(path, &st) != 0 || (st.st_mode & 0777) != 0700)
			sink_format(sink, "no directory for regions of node %d\n", node);
	}
}

int main(void)
{
	static struct live_job jobs[] = {
		{ "a process per rank", 2, 2, SIM_LOOP, .iterations = 1 },
		{ "a thread per rank", 2, 2, SIM_MOE, .iterations = 1, .is_threads = true },
		{ "a process per node", 2, 2, SIM_TP_PP, .iterations = 1, .is_node_processes = true,
		  .has_regions = true, .mode = "full" },
		{ "times of every launch", 1, 2, SIM_LOOP, .iterations = 2,
		  .is_every_timed = true },
		{ "a stuck send", 2, 2, SIM_FSDP, .fault = "stuck-send:rank=1" },
		{ "a stuck send of threads", 2, 2, SIM_FSDP, .fault = "stuck-send:rank=1",
		  .is_threads = true },
		{ "a rank that does not arrive", 2, 2, SIM_DDP, .fault = "never-arrives:rank=2" },
		{ "a call that does not return", 2, 2, SIM_DDP,
		  .fault = "gpu-stuck:rank=1,what=not-launched" },
		{ "a killed rank", 2, 2, SIM_LOOP, .fault = "kill:rank=1" },
		{ "a stopped rank", 2, 2, SIM_LOOP, .fault = "stop:rank=3" },
		{ "interrupted processes", 2, 2, SIM_DDP, .is_interrupted = true },
		{ "interrupted threads", 2, 2, SIM_DDP, .is_interrupted = true,
		  .is_threads = true },
		{ "no plugin", 1, 2, SIM_DDP, .iterations = 1, .plugin = "/none/none.so" },
	};
	char folder[128];
	struct sink sink;

	unsetenv("RINGSIDE_JOB");
	unsetenv("RINGSIDE_MODE");
	scratch_make();
	fflush(stdout);
	for (size_t i = 0; i < ARRAY_LENGTH(jobs); i++) {
		folder_of(folder, sizeof(folder), i);
		if (mkdir(folder, 0700) != 0)
			abort();
		jobs[i].pid = fork();
		if (jobs[i].pid == 0) {
			dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
			run_job(&jobs[i], folder);
		}
	}
	sink_init_memory(&sink);
	for (size_t i = 0; i < ARRAY_LENGTH(jobs); i++)
		show_job(&sink, &jobs[i], i);
	EXPECT_THAT("live jobs run, hang and end as expected",
		    sink.status == OK && expected_file(sink_string(&sink),
						       "tests/unit/sim/expected/sim_live.txt"));
	sink_release(&sink);
	return tap_done();
}
