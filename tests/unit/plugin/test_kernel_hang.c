/*
 * Does NCCL hang because of what the plugin requests? Jobs that are known to hang with kernel
 * events are simulated with each setting of the plugin. The plugin reads its settings once per process, so each job has its own process.
 */
#include <stdio.h>
#include <sys/wait.h>

#include "common/attributes.h"
#include "common/text.h"
#include "plugin/settings.h"
#include "tests/support/plugin_host.h"
#include "tests/tap.h"

enum { REPLAYS = 40, ROUNDS = 400, PATIENCE_S = 170 };

struct hang_job {
	struct host *host;
	struct host_comm *parent, *child;
	struct host_user user;
};

static struct hang_job job_begin(int release)
{
	struct host_config config = { .release = release, .linked = &plugin_linked, .seed = 7 };
	struct host_comm_config parent = { .hash = 0xabc, .nnodes = 2, .nranks = 4, .rank = 1 };
	struct host_comm_config child = { .hash = 0xdef, .nnodes = 2, .nranks = 2, .rank = 1 };
	struct hang_job job = { 0 };

	if (host_new(&job.host, &config) != OK ||
	    host_comm_new(job.host, &job.parent, &parent) != OK ||
	    host_comm_new(job.host, &job.child, &child) != OK)
		abort();
	return job;
}

/* How a job ended: exit code of its process. */
enum { HANGS = 1, HAS_KERNEL_EVENTS = 2 };

static int job_end(struct hang_job *job)
{
	struct host_counts counts;

	host_comm_destroy(job->child);
	host_comm_destroy(job->parent);
	host_counts(job->host, &counts);
	host_free(job->host);
	return (counts.would_hang > 0 ? HANGS : 0) | (counts.starts[6] > 0 ? HAS_KERNEL_EVENTS : 0);
}

static void play(struct hang_job *job, struct host_comm *comm, enum op_function function,
		 struct host_graph *graph)
{
	struct host_op op = host_op_make(comm, function, 1024, OP_FLOAT32);
	struct host_group group = { .ops = &op, .count = 1, .capture = graph };

	if (host_play_group(&job->user, &group) != OK)
		abort();
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* AllReduce and Broadcast on a split communicator, AllReduce on its parent, in a CUDA graph. */
static void split_graph(struct hang_job *job)
{
	struct host_graph *graph;

	if (host_graph_new(job->host, &graph) != OK)
		abort();
	play(job, job->child, OP_ALL_REDUCE, graph);
	play(job, job->child, OP_BROADCAST, graph);
	play(job, job->parent, OP_ALL_REDUCE, graph);
	for (int i = 0; i < REPLAYS; i++)
		if (host_graph_replay(graph) != OK)
			abort();
	host_graph_free(graph);
}

/* Eager operations between captures and replays. */
static void graphs_between(struct hang_job *job)
{
	struct host_graph *graphs[ROUNDS / 20];

	for (int i = 0; i < ROUNDS; i++) {
		play(job, job->parent, OP_ALL_REDUCE, NULL);
		play(job, job->child, OP_ALL_GATHER, NULL);
		if (i % 20 == 7) {
			if (host_graph_new(job->host, &graphs[i / 20]) != OK)
				abort();
			play(job, job->parent, OP_ALL_REDUCE, graphs[i / 20]);
			play(job, job->child, OP_REDUCE_SCATTER, graphs[i / 20]);
		}
		if (i >= 20 && host_graph_replay(graphs[i / 20 - 1]) != OK)
			abort();
	}
	for (size_t i = 0; i < ARRAY_LENGTH(graphs); i++)
		host_graph_free(graphs[i]);
}

/* All-to-all, which includes a send to the own rank. */
static void all_to_all(struct hang_job *job)
{
	for (int i = 0; i < ROUNDS; i++) {
		play(job, job->parent, OP_ALL_REDUCE, NULL);
		if (i % 50 == 30)
			play(job, job->parent, OP_ALL_TO_ALL, NULL);
		play(job, job->child, OP_ALL_REDUCE, NULL);
	}
}

static void pairs(struct hang_job *job)
{
	struct host_op ops[2] = { host_op_make(job->parent, OP_SEND, 1024, OP_FLOAT32),
				  host_op_make(job->parent, OP_RECV, 1024, OP_FLOAT32) };
	struct host_group group = { .ops = ops, .count = 2 };

	for (int i = 0; i < ROUNDS; i++) {
		play(job, job->parent, OP_ALL_REDUCE, NULL);
		if (host_play_group(&job->user, &group) != OK)
			abort();
	}
}

/* Broadcasts from several roots in one group: AllGatherV since 2.29. */
static void all_gather_v(struct hang_job *job)
{
	struct host_op ops[2] = { host_op_make(job->parent, OP_BROADCAST, 1024, OP_FLOAT32),
				  host_op_make(job->parent, OP_BROADCAST, 1024, OP_FLOAT32) };
	struct host_group group = { .ops = ops, .count = 2 };

	ops[1].root = 3;
	for (int i = 0; i < ROUNDS; i++) {
		play(job, job->parent, OP_ALL_REDUCE, NULL);
		if (i % 50 == 30 && host_play_group(&job->user, &group) != OK)
			abort();
	}
}

/* Nothing dangerous. */
static void collectives(struct hang_job *job)
{
	for (int i = 0; i < ROUNDS; i++) {
		play(job, job->parent, OP_ALL_REDUCE, NULL);
		play(job, job->child, OP_REDUCE_SCATTER, NULL);
		play(job, job->parent, OP_ALL_GATHER, NULL);
	}
}

/* The same plus Broadcasts from one root. */
static void broadcasts(struct hang_job *job)
{
	for (int i = 0; i < ROUNDS; i++) {
		play(job, job->parent, OP_ALL_REDUCE, NULL);
		if (i % 3 == 0)
			play(job, job->parent, OP_BROADCAST, NULL);
		play(job, job->child, OP_ALL_REDUCE, NULL);
	}
}

/* ---- settings -------------------------------------------------------------------------------- */

struct hang_settings {
	const char *name;
	const char *events;  /* RINGSIDE_EVENTS; NULL: not set */
	bool no_allgatherv;  /* NCCL_ALLGATHERV_ENABLE=0 */
	bool has_all_events; /* kernel events are requested, regardless of this host's /dev/shm */
};

/* In its own process. */
static int job_run(int release, const struct hang_settings *settings,
		   void (*body)(struct hang_job *job))
{
	struct hang_job job;

	unsetenv("RINGSIDE_EVENTS");
	unsetenv("NCCL_ALLGATHERV_ENABLE");
	if (settings->events != NULL)
		setenv("RINGSIDE_EVENTS", settings->events, 1);
	if (settings->no_allgatherv)
		setenv("NCCL_ALLGATHERV_ENABLE", "0", 1);
	job = job_begin(release);
	if (settings->has_all_events)
		*host_mask(job.host) |= ABI_KERNEL_CH;
	body(&job);
	return job_end(&job);
}

static int end_of(int release, const struct hang_settings *settings,
		  void (*body)(struct hang_job *job))
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		alarm(PATIENCE_S);
		_exit(job_run(release, settings, body));
	}
	if (child == -1 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		abort();
	return WEXITSTATUS(status);
}

static bool hangs(int release, const struct hang_settings *settings,
		  void (*body)(struct hang_job *job))
{
	return end_of(release, settings, body) & HANGS;
}

static const struct {
	const char *name;
	void (*body)(struct hang_job *job);
} jobs[] = {
	{ "split and graph", split_graph }, { "graphs between", graphs_between },
	{ "all-to-all", all_to_all },	    { "pairs", pairs },
	{ "all-gather-v", all_gather_v },   { "collectives", collectives },
	{ "broadcasts", broadcasts },
};

static const int releases[] = { HOST_NCCL_2_26, HOST_NCCL_2_27, HOST_NCCL_2_28,
				HOST_NCCL_2_29, HOST_NCCL_2_30, HOST_NCCL_2_31 };

static void nothing_hangs(const struct hang_settings *settings, int first, int last)
{
	char sentence[200];

	for (size_t r = 0; r < ARRAY_LENGTH(releases); r++)
		for (size_t i = 0; i < ARRAY_LENGTH(jobs); i++) {
			if (releases[r] < first || releases[r] > last)
				continue;
			text_format(sentence, sizeof(sentence), "%s, 2.%d, %s: no hang",
				    settings->name, releases[r] / 100 % 100, jobs[i].name);
			EXPECT_THAT(sentence, !hangs(releases[r], settings, jobs[i].body));
		}
}

int main(void)
{
	static const struct hang_settings by_default = { .name = "default" };
	static const struct hang_settings none = { .name = "-kernel", .events = "-kernel" };
	static const struct hang_settings all = { .name = "kernel",
						  .events = "kernel",
						  .has_all_events = true };
	static const struct hang_settings all_no_allgatherv = { .name = "kernel, no AllGatherV",
								.events = "kernel",
								.no_allgatherv = true,
								.has_all_events = true };
	static const struct hang_settings no_allgatherv = { .name = "default, no AllGatherV",
							    .no_allgatherv = true };

	plugin_host_setup("flight");
	setenv("RINGSIDE_BUFFER", "1MiB", 1);
	EXPECT_THAT("the test can fail: all kernel events on 2.29 with split and graph hang",
		    hangs(HOST_NCCL_2_29, &all, split_graph));
	EXPECT(hangs(HOST_NCCL_2_30, &all, split_graph));
	EXPECT(hangs(HOST_NCCL_2_30, &all, all_gather_v));
	EXPECT(!hangs(HOST_NCCL_2_28, &all, split_graph));
	EXPECT(!hangs(HOST_NCCL_2_31, &all, split_graph));
	EXPECT(!hangs(HOST_NCCL_2_29, &all_no_allgatherv, split_graph));
	EXPECT(!hangs(HOST_NCCL_2_30, &all_no_allgatherv, all_gather_v));
	nothing_hangs(&by_default, HOST_NCCL_2_26, HOST_NCCL_2_31);
	nothing_hangs(&none, HOST_NCCL_2_26, HOST_NCCL_2_31);
	nothing_hangs(&no_allgatherv, HOST_NCCL_2_29, HOST_NCCL_2_30);
	return tap_done();
}
