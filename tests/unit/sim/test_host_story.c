/*
 * Everything that the simulated NCCL tells a plugin, in every release: played to the tape recorder in processes of their
 * own, with a clock that only the test moves.
 */
#include "tests/tap.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/wait.h>

#include "common/attributes.h"
#include "common/op.h"
#include "common/order.h"
#include "sim/host.h"
#include "sim/host_internal.h"
#include "tests/support/expected_file.h"
#include "tests/support/scratch.h"
#include "tests/unit/sim/tape_story.h"

struct scene {
	struct host *host;
	struct host_comm *comm;
	struct host_user user;
	FILE *remarks;
};

static uint64_t now_ns = 1000000;

static uint64_t test_clock(void *arg)
{
	(void)arg;
	return load_relaxed(&now_ns);
}

/* ---- playing --------------------------------------------------------------------------------- */

static struct host_op op_of(const struct scene *scene, enum op_function function)
{
	return host_op_make(scene->comm, function, 1000, OP_FLOAT32);
}

/* Runs it until nothing moves. */
static void play(struct scene *scene, const struct host_op *op)
{
	if (host_play(&scene->user, op) != OK)
		abort();
	host_comm_settle(scene->comm);
}

static void play_group(struct scene *scene, const struct host_group *group)
{
	if (host_play_group(&scene->user, group) != OK)
		abort();
	host_comm_settle(scene->comm);
}

static void functions(struct scene *scene)
{
	static const uint8_t list[] = { OP_ALL_REDUCE,	   OP_BROADCAST, OP_REDUCE, OP_ALL_GATHER,
					OP_REDUCE_SCATTER, OP_SEND,	 OP_RECV };

	for (size_t i = 0; i < sizeof(list); i++) {
		struct host_op op = op_of(scene, list[i]);

		op.count += i;
		op.root = 1;
		op.channels = i == 0 ? 2 : 1;
		op.first_channel = (uint8_t)i;
		op.has_network = true;
		op.steps = 2;
		op.chunk_bytes = 1 << 10;
		op.duration_ns = 5000;
		op.start_skew_ns = 10;
		op.stop_skew_ns = 100;
		op.user_tag = 40 + i;
		op.algorithm = (uint8_t)(OP_TREE + i % 7);
		op.protocol = (uint8_t)(OP_LL + i % 3);
		play(scene, &op);
	}
}

static void datatypes(struct scene *scene)
{
	for (uint8_t datatype = 0; datatype < OP_DATATYPES; datatype++) {
		struct host_op op =
			host_op_make(scene->comm, OP_ALL_GATHER, 10, (enum op_datatype)datatype);

		play(scene, &op);
		op.function = OP_SEND;
		play(scene, &op);
	}
}

/* Collectives by size, then Sends and Recvs in rounds, in plans of two. */
static void groups(struct scene *scene)
{
	struct host_op ops[7];
	struct host_group group = { .ops = ops, .count = 7, .tasks_per_plan = 2 };

	for (size_t i = 0; i < 7; i++) {
		ops[i] = op_of(scene, i < 3 ? OP_ALL_REDUCE : i % 2 ? OP_SEND : OP_RECV);
		ops[i].count = i == 1 ? 5000 : 1000;
		ops[i].first_channel = 2;
	}
	ops[5].peer = ops[6].peer = 1; /* to itself */
	play_group(scene, &group);
	group.tasks_per_plan = 0;
	group.depth = 3;
	play_group(scene, &group);
	group.flags = HOST_GROUP_SPLIT_API;
	group.count = 2;
	group.depth = 0;
	play_group(scene, &group);
}

static void exchanges(struct scene *scene)
{
	static const uint8_t list[] = { OP_ALL_TO_ALL, OP_GATHER, OP_SCATTER };

	for (size_t i = 0; i < sizeof(list); i++)
		for (int root = 0; root < 2; root++) {
			struct host_op op = op_of(scene, list[i]);

			op.root = root;
			op.has_network = root == 0;
			play(scene, &op);
		}
}

static void broadcasts(struct scene *scene)
{
	struct host_op ops[3];
	struct host_group group = { .ops = ops, .count = 3 };

	for (int i = 0; i < 3; i++) {
		ops[i] = op_of(scene, OP_BROADCAST);
		ops[i].has_network = true;
		ops[i].root = 2;
	}
	play_group(scene, &group);
	ops[2].root = 3;
	play_group(scene, &group);
}

static void graphs(struct scene *scene)
{
	struct host_op ops[2] = { op_of(scene, OP_ALL_REDUCE), op_of(scene, OP_ALL_GATHER) };
	struct host_group group = { .ops = ops, .count = 2 };

	ops[0].has_network = true;
	ops[0].channels = 2;
	if (host_graph_new(scene->host, &group.capture) != OK)
		abort();
	play_group(scene, &group);
	for (int i = 0; i < 4; i++) {
		if (host_graph_replay(group.capture) != OK)
			abort();
		host_worker_wait(&scene->host->callback);
		host_comm_settle(scene->comm);
		if (i == 1)
			play(scene, &ops[1]);
	}
	host_graph_free(group.capture);
}

static void paths(struct scene *scene)
{
	for (uint8_t path = HOST_PATH_KERNEL; path <= HOST_PATH_SIMULATED; path++) {
		struct host_op op = op_of(scene, OP_ALL_GATHER);

		op.path = path;
		op.has_network = true;
		op.has_net_events = true;
		op.edge_count = 1;
		op.edges[0] = (struct host_edge){ .peer = 3, .is_send = true };
		op.channels = 2;
		play(scene, &op);
		play(scene, &op);
	}
}

static void quirks(struct scene *scene)
{
	for (unsigned int quirk = 1; quirk <= HOST_QUIRK_NO_COLL; quirk <<= 1) {
		struct host_op op = op_of(scene, OP_ALL_REDUCE);

		if (quirk == HOST_QUIRK_FLOOD_PEER_WAIT || quirk == HOST_QUIRK_FLOOD_STEP_START ||
		    quirk == HOST_QUIRK_CHANNELS_GARBAGE)
			continue;
		op.has_network = true;
		op.channels = 2;
		op.steps = 2;
		op.quirks = quirk;
		play(scene, &op);
	}
}

/* Each in a communicator of its own, which is aborted, or released and destroyed. */
static void stuck(struct scene *scene)
{
	for (uint8_t how = HOST_STUCK_KERNEL; how <= HOST_STUCK_EDGES; how++) {
		struct host_comm_config config = {
			.hash = how, .nnodes = 2, .nranks = 4, .rank = 1
		};
		struct host_comm *comm;
		struct host_op op;

		if (host_comm_new(scene->host, &comm, &config) != OK)
			abort();
		op = host_op_make(comm, OP_ALL_REDUCE, 1000 + how, OP_FLOAT32);
		op.has_network = true;
		op.channels = 2;
		op.steps = 3;
		op.stuck = how;
		op.stuck_step = 1;
		op.stuck_channel = how % 2 ? 1 : -1;
		op.stuck_peer = how % 4 == 3 ? 0 : -1;
		op.stuck_kernels = 2;
		op.edge_count = 2;
		op.edges[0] = (struct host_edge){ .peer = 0,
						  .stuck = HOST_STUCK_RECV_FLUSH,
						  .stuck_step = 2 };
		op.edges[1] = (struct host_edge){ .peer = 2,
						  .is_send = true,
						  .channel_plus_1 = 2,
						  .stuck = HOST_STUCK_SEND_NET };
		if (host_play(&scene->user, &op) != OK)
			abort();
		host_comm_settle(comm);
		if (how == HOST_STUCK_SEND_GPU)
			host_comm_release(comm);
		if (how == HOST_STUCK_SEND_GPU)
			host_comm_destroy(comm);
		else
			host_comm_abort(comm);
	}
}

static void foreign(struct scene *scene)
{
	struct host_foreign other = { 4242, (void *)0x7f0011, (void *)0x7f0022 };
	struct host_op op = op_of(scene, OP_SEND);

	op.has_network = true;
	op.steps = 2;
	if (host_play_foreign(&op, &other) != OK)
		abort();
	host_comm_settle(scene->comm);
}

/* Several communicators in one group: one that launches later, and one that shares its proxy. */
static void communicators(struct scene *scene)
{
	struct host_comm_config configs[] = {
		{ .hash = 0xdef, .nranks = 2, .rank = 1, .flags = HOST_COMM_NONBLOCKING },
		{ .hash = 0x123, .nranks = 3, .nnodes = 2, .name = "a b", .share = scene->comm },
		{ .hash = 0x456, .rank = 2 },
		{ .hash = 0x789, .flags = HOST_COMM_NULL_CONTEXT | HOST_COMM_LAST_STOP_LOST },
	};
	struct host_comm *comms[4] = { NULL };
	struct host_op ops[4];
	struct host_group group = { .ops = ops, .count = 3 };

	for (size_t i = 0; i < 4; i++) {
		if (host_comm_new(scene->host, &comms[i], &configs[i]) != OK)
			comms[i] = NULL;
		else
			ops[i < 2 ? i : i - 1] =
				host_op_make(comms[i], OP_ALL_REDUCE, 100 + i, OP_INT8);
	}
	if (host_play_group(&scene->user, &group) != OK)
		abort();
	for (size_t i = 0; i < 4; i++)
		if (comms[i] != NULL) {
			host_comm_settle(comms[i]);
			host_comm_destroy(comms[i]);
		}
}

/* The clock goes on in steps, and a kernel waits for other ranks. */
static uint64_t gate_ns;

static bool gate(void *arg, uint64_t now, struct host_gate *answer)
{
	(void)arg;
	answer->poll_ns = now + 100;
	if (now < gate_ns)
		return false;
	*answer = (struct host_gate){ .begin_ns = gate_ns, .duration_ns = 900, .period_ns = 300 };
	return true;
}

/* How many states there have been of each kind, if there are more than before. */
static void remark_states(struct scene *scene, struct host_counts *before)
{
	struct host_counts counts;

	host_counts(scene->host, &counts);
	if (memcmp(&counts, before, sizeof(counts)) == 0)
		return;
	fprintf(scene->remarks,
		"at %" PRIu64 ": %" PRIu64 "-%" PRIu64 " proxies, %" PRIu64 "-%" PRIu64
		" kernels, states",
		now_ns, counts.starts[3], counts.stops[3], counts.starts[6], counts.stops[6]);
	for (int i = 0; i <= ABI_STEP_SEND_PEER_WAIT; i++)
		if (counts.states[i] != 0)
			fprintf(scene->remarks, " %d:%" PRIu64, i, counts.states[i]);
	fprintf(scene->remarks, "\n");
	*before = counts;
}

static void times(struct scene *scene)
{
	struct host_counts before = { 0 };
	struct host_op op = op_of(scene, OP_ALL_REDUCE);

	op.has_network = true;
	op.channels = 2;
	op.steps = 3;
	op.start_skew_ns = 7;
	op.stop_skew_ns = 9;
	op.start_ns = 1000500;
	op.duration_ns = 3000;
	op.edge_count = 2;
	op.edges[0] = (struct host_edge){ .peer = 0, .wait_ns = { 100, 20, 3 } };
	op.edges[1] = (struct host_edge){ .peer = 2, .is_send = true };
	for (int i = 0; i < 2; i++) {
		op.gate = i == 1 ? gate : NULL;
		gate_ns = op.start_ns + 450;
		if (host_play(&scene->user, &op) != OK)
			abort();
		host_comm_settle(scene->comm);
		for (int step = 0; step < 60; step++) {
			store_relaxed(&now_ns, now_ns + 100);
			host_tick(scene->host);
			host_comm_settle(scene->comm);
			remark_states(scene, &before);
		}
		op.start_ns = now_ns + 200;
	}
}

/* ---- showing --------------------------------------------------------------------------------- */

struct story_of {
	const char *name;
	void (*run)(struct scene *scene);
};

static void show_counts(FILE *to, struct host *host)
{
	struct host_counts counts;

	host_counts(host, &counts);
	fprintf(to, "counts: starts");
	for (int i = 0; i < HOST_EVENTS; i++)
		fprintf(to, " %" PRIu64 "-%" PRIu64, counts.starts[i], counts.stops[i]);
	fprintf(to, ", states");
	for (int i = 0; i < HOST_STATES; i++)
		fprintf(to, " %" PRIu64, counts.states[i]);
	fprintf(to,
		"\n  null %" PRIu64 ", extra %" PRIu64 ", foreign %" PRIu64 ", would hang %" PRIu64
		", purged %" PRIu64 ", calls %" PRIu64 ", shown %" PRIu64 ", captured %" PRIu64
		", replayed %" PRIu64 ", hidden %" PRIu64 ", API only %" PRIu64 ", shown of",
		counts.null_calls, counts.extra_stops, counts.foreign_starts, counts.would_hang,
		counts.purged, counts.calls, counts.shown, counts.captured, counts.replayed,
		counts.hidden, counts.api_only);
	for (int i = 0; i < OP_FUNCTIONS; i++)
		fprintf(to, " %" PRIu64, counts.shown_of[i]);
	fprintf(to, "\n");
}

/* In a child: the recorder keeps its file open until the end of the process. */
static void play_in_child(const struct story_of *story, int release, const char *tape,
			  const char *counts)
{
	struct host_config config = { .release = release,
				      .plugin = story_recorder(),
				      .clock = test_clock,
				      .gpu_offset_ns = 5000,
				      .seed = 3,
				      .time = story->run == times ? HOST_TIME_REAL
								  : HOST_TIME_VIRTUAL };
	struct host_comm_config comm = {
		.hash = 0xabc, .name = "a=b c%", .nnodes = 2, .nranks = 4, .rank = 1
	};
	struct scene scene = { .remarks = fopen(counts, "we") };

	setenv("RINGSIDE_TAPE", tape, 1);
	setenv("RINGSIDE_TAPE_EVENTS", "0xffdf",
	       1); /* not ProxyCtrl, which depends on the machine */
	unsetenv("NCCL_ALLGATHERV_ENABLE");
	if (scene.remarks == NULL || host_new(&scene.host, &config) != OK ||
	    host_comm_new(scene.host, &scene.comm, &comm) != OK)
		_exit(2);
	story->run(&scene);
	host_comm_destroy(scene.comm);
	show_counts(scene.remarks, scene.host);
	fclose(scene.remarks);
	host_free(scene.host);
	_exit(0);
}

static void show_story(struct sink *sink, const struct story_of *story, int release)
{
	char tape[128], counts[128], line[1024];
	int status;
	pid_t child;
	FILE *file;

	snprintf(tape, sizeof(tape), "%s/tape", scratch_dir.path);
	snprintf(counts, sizeof(counts), "%s/counts", scratch_dir.path);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
		play_in_child(story, release, tape, counts);
	}
	if (child == -1 || waitpid(child, &status, 0) != child)
		abort();
	sink_format(sink, "=== %s, NCCL %d.%d\n", story->name, release / 10000,
		    release / 100 % 100);
	if (status != 0)
		sink_format(sink, "ended with %d\n", status);
	story_show(sink, tape, true, child);
	file = fopen(counts, "re");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		sink_text(sink, line);
	if (file != NULL)
		fclose(file);
}

static void expect_stories(const char *name, const struct story_of *stories, size_t count,
			   const int *releases, size_t release_count)
{
	char path[128], sentence[128];
	struct sink sink;

	sink_init_memory(&sink);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < release_count; j++)
			show_story(&sink, &stories[i], releases[j]);
	snprintf(path, sizeof(path), "tests/unit/sim/expected/%s", name);
	snprintf(sentence, sizeof(sentence), "every call as in %s", name);
	EXPECT_THAT(sentence, sink.status == OK && expected_file(sink_string(&sink), path));
	sink_release(&sink);
}

int main(void)
{
	static const struct story_of all[] = {
		{ "functions", functions },
		{ "groups", groups },
		{ "graphs", graphs },
		{ "paths", paths },
	};
	static const struct story_of some[] = {
		{ "exchanges", exchanges },
		{ "broadcasts", broadcasts },
		{ "communicators", communicators },
		{ "foreign", foreign },
	};
	static const struct story_of others[] = {
		{ "datatypes", datatypes },
		{ "quirks", quirks },
		{ "stuck", stuck },
		{ "times", times },
	};
	static const int releases[] = { HOST_NCCL_2_23, HOST_NCCL_2_24, HOST_NCCL_2_26,
					HOST_NCCL_2_27, HOST_NCCL_2_28, HOST_NCCL_2_30,
					HOST_NCCL_2_31 };
	static const int few[] = { HOST_NCCL_2_26, HOST_NCCL_2_29, HOST_NCCL_2_31 };
	static const int two[] = { HOST_NCCL_2_26, HOST_NCCL_2_31 };

	scratch_make();
	expect_stories("host_releases.txt", all, ARRAY_LENGTH(all), releases,
		       ARRAY_LENGTH(releases));
	expect_stories("host_kinds.txt", some, ARRAY_LENGTH(some), few, ARRAY_LENGTH(few));
	expect_stories("host_odd.txt", others, ARRAY_LENGTH(others), two, ARRAY_LENGTH(two));
	return tap_done();
}
