/* The simulated CUDA driver: a plugin records events around launches, as the recorder does, and reads them. */
#include "sim/sim_cuda.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "common/attributes.h"
#include "common/order.h"
#include "plugin/abi_v5.h"
#include "plugin/abi_v7.h"
#include "sim/host.h"
#include "sim/host_internal.h"
#include "tests/tap.h"

enum { LAUNCHES = 512, UNUSED = 500 };

/* What the plugin did: two events around each launch. */
static struct {
	struct CUevent_st *before[LAUNCHES], *after[LAUNCHES];
	struct CUctx_st *context[LAUNCHES];
	int capture[LAUNCHES];
	int results[LAUNCHES];
	uint64_t count;
	struct CUctx_st *init_context;
	int mask;
	bool times_graphs;
	uint64_t graphs[LAUNCHES]; /* by number; 0: none */
} timer;

static int timer_init(void **context, uint64_t hash, int *mask, const char *name, int nnodes,
		      int nranks, int rank, abi_log_fn log)
{
	struct CUctx_st *current = NULL;

	(void)hash;
	(void)name;
	(void)nnodes;
	(void)nranks;
	(void)rank;
	(void)log;
	*context = &timer;
	store_relaxed(mask, timer.mask);
	(void)cuCtxGetCurrent(&current);
	store_relaxed(&timer.init_context, current);
	return NCCL_SUCCESS;
}

/* As the recorder does: only behind an event of NCCL. */
static void timer_begin_in_graph(uint64_t n, void *stream)
{
	struct CUgraphNode_st *const *nodes = NULL;
	struct CUgraph_st *unused = NULL;
	int state = CUDA_CAPTURE_NONE, type = 0;
	size_t count = 0;

	timer.results[n] |= cuStreamGetCaptureInfo_v2(stream, &state, &timer.graphs[n], &unused,
						      &nodes, &count);
	for (size_t i = 0; i < count; i++)
		timer.results[n] |= cuGraphNodeGetType(nodes[i], &type);
	if (state == CUDA_CAPTURE_ACTIVE && type == CUDA_NODE_EVENT_WAIT)
		timer.results[n] |=
			cuEventRecordWithFlags(timer.before[n], stream, CUDA_RECORD_EXTERNAL);
}

static void timer_begin(void **handle, void *stream)
{
	uint64_t n = add_relaxed(&timer.count, 1);

	*handle = (void *)(uintptr_t)(n + 1);
	timer.results[n] = cuStreamGetCtx(stream, &timer.context[n]);
	timer.results[n] |= cuStreamIsCapturing(stream, &timer.capture[n]);
	if (timer.capture[n] == CUDA_CAPTURE_NONE)
		timer.results[n] |= cuEventRecord(timer.before[n], stream);
	else if (timer.times_graphs)
		timer_begin_in_graph(n, stream);
}

static int timer_start_v5(void *context, void **handle, struct abi_descr_v5 *descr)
{
	(void)context;
	*handle = NULL;
	if (descr->type == ABI_KERNEL_LAUNCH)
		timer_begin(handle, descr->kernel_launch.stream);
	return NCCL_SUCCESS;
}

static int timer_start_v7(void *context, void **handle, struct abi_descr_v7 *descr)
{
	(void)context;
	*handle = NULL;
	if (descr->type == ABI_KERNEL_LAUNCH)
		timer_begin(handle, descr->kernel_launch.stream);
	return NCCL_SUCCESS;
}

static int timer_stop(void *handle)
{
	uint64_t n = (uint64_t)(uintptr_t)handle - 1;

	if (handle != NULL && timer.capture[n] == CUDA_CAPTURE_NONE)
		timer.results[n] |= cuEventRecord(timer.after[n], NULL);
	else if (handle != NULL && timer.times_graphs)
		timer.results[n] |=
			cuEventRecordWithFlags(timer.after[n], NULL, CUDA_RECORD_EXTERNAL);
	return NCCL_SUCCESS;
}

static int timer_state_v5(void *handle, int state, union abi_args_v5 *args)
{
	(void)handle;
	(void)state;
	(void)args;
	return NCCL_SUCCESS;
}

static int timer_state_v7(void *handle, int state, union abi_args_v7 *args)
{
	(void)handle;
	(void)state;
	(void)args;
	return NCCL_SUCCESS;
}

static int timer_finalize(void *context)
{
	(void)context;
	return NCCL_SUCCESS;
}

static const struct abi_plugin_v5 timer_v5 = { "timer",	   timer_init,	   timer_start_v5,
					       timer_stop, timer_state_v5, timer_finalize };
static const struct abi_plugin_v7 timer_v7 = { "timer",	   timer_init,	   timer_start_v7,
					       timer_stop, timer_state_v7, timer_finalize };
static const struct host_linked timer_linked = { .v5 = &timer_v5, .v7 = &timer_v7 };

static uint64_t now_ns;

static uint64_t test_clock(void *arg)
{
	(void)arg;
	return load_relaxed(&now_ns);
}

struct scene {
	struct host *host;
	struct host_comm *comm;
	struct host_user user;
};

static struct scene scene_set(int release, enum host_time time, int mask)
{
	struct host_config config = { .release = release,
				      .time = time,
				      .clock = test_clock,
				      .gpu_offset_ns = 220000,
				      .linked = &timer_linked,
				      .watcher = &sim_cuda_watcher };
	struct host_comm_config comm = { .nranks = 4, .rank = 1, .gpu = 3 };
	struct scene scene = { 0 };

	store_relaxed(&now_ns, 1000000);
	store_relaxed(&timer.count, 0);
	timer.mask = mask;
	if (host_new(&scene.host, &config) != OK ||
	    host_comm_new(scene.host, &scene.comm, &comm) != OK)
		abort();
	return scene;
}

static void scene_strike(struct scene *scene)
{
	host_comm_destroy(scene->comm);
	host_free(scene->host);
}

static struct host_op scene_op(const struct scene *scene)
{
	struct host_op op = host_op_make(scene->comm, OP_ALL_REDUCE, 1024, OP_FLOAT32);

	op.channels = 2;
	op.duration_ns = 5000;
	return op;
}

static size_t move_to(struct scene *scene, uint64_t ns)
{
	store_relaxed(&now_ns, ns);
	host_tick(scene->host);
	return host_comm_settle(scene->comm);
}

/* "1-2": both events of the n-th launch have fired, "1-", "-". */
static bool have_fired(uint64_t n, bool before, bool after)
{
	return cuEventQuery(timer.before[n]) == (before ? CUDA_OK : CUDA_NOT_READY) &&
	       cuEventQuery(timer.after[n]) == (after ? CUDA_OK : CUDA_NOT_READY);
}

static double elapsed_us(struct CUevent_st *from, struct CUevent_st *to)
{
	float ms = -1;

	return cuEventElapsedTime(&ms, from, to) == CUDA_OK ? (double)ms * 1e3 : -1;
}

static bool is_us(double got, double wanted)
{
	return got > wanted - 0.01 && got < wanted + 0.01;
}

/* ---- one launch after the other --------------------------------------------------------------- */

enum { LAUNCHES_ONLY = ABI_KERNEL_LAUNCH, WITH_KERNELS = ABI_KERNEL_LAUNCH | ABI_KERNEL_CH };

static void events_fire_with_their_kernel(int release, int mask)
{
	struct scene scene = scene_set(release, HOST_TIME_REAL, mask);
	struct host_op op = scene_op(&scene);
	uint64_t last;

	op.start_ns = 1002000;
	op.stop_skew_ns = 100;
	for (int i = 0; i < 2; i++)
		EXPECT_EQUAL(host_play(&scene.user, &op), OK);
	host_comm_settle(scene.comm);
	EXPECT_THAT("nothing fires before the kernel", have_fired(0, false, false));
	EXPECT_EQUAL(elapsed_us(timer.before[0], timer.after[0]), -1);
	move_to(&scene, 1002000);
	EXPECT_THAT("the first event when it starts", have_fired(0, true, false));
	EXPECT_THAT("the next launch waits for it", have_fired(1, false, false));
	move_to(&scene, 1007099);
	EXPECT_THAT("not before all channels have stopped", have_fired(0, true, false));
	last = 1007100;
	move_to(&scene, last);
	EXPECT_THAT("the second event when it is over", have_fired(0, true, true));
	move_to(&scene, 1020000);
	EXPECT_THAT("a launch takes as long as its kernel",
		    is_us(elapsed_us(timer.before[0], timer.after[0]), 5.1));
	EXPECT_THAT("and begins after the one before it",
		    is_us(elapsed_us(timer.after[0], timer.before[1]), 0) &&
			    is_us(elapsed_us(timer.before[0], timer.after[1]), 10.2));
	EXPECT_EQUAL(timer.results[0] | timer.results[1], CUDA_OK);
	EXPECT_EQUAL(timer.count, 2);
	scene_strike(&scene);
}

/* Without proxies and kernel events nothing else moves in virtual time. */
static void events_fire_in_virtual_time(int release)
{
	struct scene scene = scene_set(release, HOST_TIME_VIRTUAL, LAUNCHES_ONLY);
	struct host_op op = scene_op(&scene);

	EXPECT_EQUAL(host_play(&scene.user, &op), OK);
	host_comm_settle(scene.comm);
	EXPECT_THAT("an operation inside a node has its time",
		    have_fired(0, true, true) &&
			    is_us(elapsed_us(timer.before[0], timer.after[0]), 5));
	op.has_network = true;
	EXPECT_EQUAL(host_play(&scene.user, &op), OK);
	host_comm_settle(scene.comm);
	EXPECT_THAT("so has one over the network",
		    have_fired(1, true, true) &&
			    is_us(elapsed_us(timer.before[1], timer.after[1]), 5));
	scene_strike(&scene);
}

struct arrival {
	uint64_t at_ns;
};

static bool gate(void *arg, uint64_t now, struct host_gate *answer)
{
	const struct arrival *arrival = arg;

	*answer = (struct host_gate){ .begin_ns = arrival->at_ns,
				      .duration_ns = 2000,
				      .poll_ns = arrival->at_ns };
	return now >= arrival->at_ns;
}

static void time_spans_waiting_for_peers(void)
{
	struct scene scene = scene_set(HOST_NCCL_2_30, HOST_TIME_REAL, LAUNCHES_ONLY);
	struct arrival arrival = { 1050000 };
	struct host_op op = scene_op(&scene);

	op.gate = gate;
	op.gate_arg = &arrival;
	EXPECT_EQUAL(host_play(&scene.user, &op), OK);
	move_to(&scene, 1049999);
	EXPECT_THAT("the kernel runs while it waits", have_fired(0, true, false));
	move_to(&scene, 1050000);
	move_to(&scene, 1052000);
	EXPECT_THAT("its time spans waiting",
		    is_us(elapsed_us(timer.before[0], timer.after[0]), 52));
	scene_strike(&scene);
}

/* All operations of a group are one kernel. */
static void a_group_is_one_launch(void)
{
	struct scene scene = scene_set(HOST_NCCL_2_28, HOST_TIME_REAL, LAUNCHES_ONLY);
	struct host_op ops[3];
	struct host_group group = { .ops = ops, .count = 3 };

	for (int i = 0; i < 3; i++) {
		ops[i] = scene_op(&scene);
		ops[i].first_channel = (uint8_t)(2 * i);
		ops[i].stop_skew_ns = (uint32_t)i * 1000;
	}
	EXPECT_EQUAL(host_play_group(&scene.user, &group), OK);
	EXPECT_EQUAL(timer.count, 1);
	move_to(&scene, 1006999);
	EXPECT_THAT("it is over with its last operation", have_fired(0, true, false));
	move_to(&scene, 1007000);
	EXPECT_THAT("not earlier", is_us(elapsed_us(timer.before[0], timer.after[0]), 7));
	scene_strike(&scene);
}

/* ---- what never ends -------------------------------------------------------------------------- */

static void stuck_launches_stay_open(int release, enum host_time time)
{
	static const struct {
		enum host_stuck stuck;
		bool has_network, is_reached;
	} cases[] = {
		{ HOST_STUCK_KERNEL, false, false }, { HOST_STUCK_KERNEL_END, false, true },
		{ HOST_STUCK_KERNEL, true, false },  { HOST_STUCK_KERNEL_END, true, true },
		{ HOST_STUCK_SEND_NET, true, true }, { HOST_STUCK_RECV_NET, true, true },
		{ HOST_STUCK_SEND_GPU, true, true },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct scene scene = scene_set(release, time, LAUNCHES_ONLY | ABI_PROXY_OP);
		struct host_op op = scene_op(&scene);
		char sentence[96];

		op.stuck = (uint8_t)cases[i].stuck;
		op.has_network = cases[i].has_network;
		EXPECT_EQUAL(host_play(&scene.user, &op), OK);
		move_to(&scene, 9000000);
		snprintf(sentence, sizeof(sentence), "release %d, time %d, stuck %d, %s network",
			 release, time, cases[i].stuck, cases[i].has_network ? "with" : "no");
		EXPECT_THAT(sentence, have_fired(0, cases[i].is_reached, false));
		host_comm_release(scene.comm);
		host_comm_settle(scene.comm);
		move_to(&scene, 90000000);
		EXPECT_THAT("it ends when it is released", have_fired(0, true, true));
		scene_strike(&scene);
	}
}

static void aborted_launches_never_end(void)
{
	struct scene scene = scene_set(HOST_NCCL_2_30, HOST_TIME_REAL, LAUNCHES_ONLY);
	struct host_op op = scene_op(&scene);

	for (int i = 0; i < 3; i++)
		EXPECT_EQUAL(host_play(&scene.user, &op), OK);
	host_comm_settle(scene.comm);
	host_comm_abort(scene.comm);
	EXPECT(have_fired(0, true, false) && have_fired(2, false, false));
	host_free(scene.host);
	/* Recorded again they forget it, which would be seen under AddressSanitizer. */
	EXPECT(cuEventRecord(timer.before[0], NULL) == CUDA_OK &&
	       cuEventRecord(timer.after[0], NULL) == CUDA_OK);
}

/* ---- the driver ------------------------------------------------------------------------------- */

static void graphs_are_left_alone(void)
{
	struct scene scene = scene_set(HOST_NCCL_2_30, HOST_TIME_VIRTUAL, LAUNCHES_ONLY);
	struct host_op op = scene_op(&scene);
	struct host_group group = { .ops = &op, .count = 1 };

	if (host_graph_new(scene.host, &group.capture) != OK)
		abort();
	EXPECT_EQUAL(host_play_group(&scene.user, &group), OK);
	EXPECT_EQUAL(timer.count, 1);
	EXPECT_EQUAL(timer.capture[0], CUDA_CAPTURE_ACTIVE);
	EXPECT_EQUAL(host_graph_replay(group.capture), OK);
	EXPECT_EQUAL(host_play(&scene.user, &op), OK);
	host_comm_settle(scene.comm);
	EXPECT_EQUAL(timer.capture[1], CUDA_CAPTURE_NONE);
	EXPECT_THAT("what is not captured is timed", have_fired(1, true, true));
	host_graph_free(group.capture);
	scene_strike(&scene);
}

static void replay_at(struct scene *scene, struct host_graph *graph, size_t launch,
		      struct host_op op, uint64_t start_ns, uint64_t duration_ns)
{
	op.start_ns = start_ns;
	op.duration_ns = duration_ns;
	EXPECT_EQUAL(host_graph_replay_one(graph, launch, &op), OK);
	host_worker_wait(&scene->host->callback);
	host_comm_settle(scene->comm);
}

/* The events of `first` and the next launch were in no other scene. */
static void replays_record_events_again(int release, bool has_network, uint64_t first)
{
	struct scene scene = scene_set(release, HOST_TIME_REAL, LAUNCHES_ONLY);
	struct host_op op = scene_op(&scene);
	struct host_group group = { .ops = &op, .count = 1 };
	uint64_t second = first + 1;

	timer.times_graphs = true;
	store_relaxed(&timer.count, first);
	op.has_network = has_network;
	if (host_graph_new(scene.host, &group.capture) != OK)
		abort();
	EXPECT_EQUAL(host_play_group(&scene.user, &group), OK);
	EXPECT_EQUAL(host_play_group(&scene.user, &group), OK);
	EXPECT_EQUAL(timer.results[first] | timer.results[second], CUDA_OK);
	EXPECT_THAT("both are in one graph",
		    timer.graphs[first] != 0 && timer.graphs[first] == timer.graphs[second]);
	move_to(&scene, 1900000);
	EXPECT_THAT("a capture records nothing",
		    elapsed_us(timer.before[second], timer.after[second]) < 0 &&
			    have_fired(second, true, true));
	replay_at(&scene, group.capture, 1, op, 2000000, 5000);
	move_to(&scene, 1999999);
	EXPECT_THAT("nor does a replay before its kernel", have_fired(second, true, true));
	move_to(&scene, 2000000);
	EXPECT_THAT("the first event when the kernel starts", have_fired(second, true, false));
	move_to(&scene, 2005000);
	EXPECT_THAT("the second when it is over",
		    is_us(elapsed_us(timer.before[second], timer.after[second]), 5));
	replay_at(&scene, group.capture, 1, op, 3000000, 7000);
	EXPECT_THAT("until the next kernel the times are the last replay's",
		    is_us(elapsed_us(timer.before[second], timer.after[second]), 5));
	move_to(&scene, 3000000);
	EXPECT_THAT("while it runs there are none",
		    elapsed_us(timer.before[second], timer.after[second]) < 0);
	move_to(&scene, 3007000);
	EXPECT_THAT("then they are its own",
		    is_us(elapsed_us(timer.before[second], timer.after[second]), 7));
	EXPECT_THAT("the other launch was not replayed",
		    elapsed_us(timer.before[first], timer.after[first]) < 0);
	EXPECT_EQUAL(host_graph_replay_one(group.capture, 2, &op), ERR_RANGE);
	timer.times_graphs = false;
	host_graph_free(group.capture);
	scene_strike(&scene);
}

static void contexts_are_those_of_the_gpus(void)
{
	struct scene scene = scene_set(HOST_NCCL_2_30, HOST_TIME_VIRTUAL, LAUNCHES_ONLY);
	struct host_op op = scene_op(&scene);
	struct host_comm_config other = { .hash = 2, .nranks = 4, .gpu = 5 };
	struct CUctx_st *first = timer.init_context;
	unsigned long long ids[2] = { 0, 0 };
	unsigned int flags = 7;
	int device = -1, is_active = 0;

	EXPECT(cuCtxGetDevice(&device) == CUDA_OK && device == 3);
	EXPECT(cuDevicePrimaryCtxGetState(3, &flags, &is_active) == CUDA_OK && is_active == 1);
	EXPECT_EQUAL(host_comm_new(scene.host, &op.comm, &other), OK);
	EXPECT_THAT("each GPU has its context", timer.init_context != first && first != NULL);
	EXPECT(cuCtxGetId(first, &ids[0]) == CUDA_OK &&
	       cuCtxGetId(timer.init_context, &ids[1]) == CUDA_OK && ids[0] != ids[1]);
	EXPECT_EQUAL(host_play(&scene.user, &op), OK);
	op.comm = scene.comm;
	EXPECT_EQUAL(host_play(&scene.user, &op), OK);
	EXPECT_THAT("which is that of a launch's stream",
		    timer.context[0] == timer.init_context && timer.context[1] == first);
	host_comm_settle(scene.comm);
	for (struct host_comm *comm = scene.host->comms; comm; comm = comm->next)
		host_comm_destroy(comm);
	host_free(scene.host);
}

static void programs_export_it(void)
{
#define EXPORTED_AS(member, name, parameters) \
	EXPECT_THAT(#name " is found in the program", dlsym(RTLD_DEFAULT, #name) != NULL);
	CUDA_TIMING_FUNCTIONS(EXPORTED_AS)
	CUDA_TIMING_FUNCTIONS_NEWER(EXPORTED_AS)
#undef EXPORTED_AS
}

static void events_without_a_launch(void)
{
	struct CUevent_st *one, *two;
	float ms;

	EXPECT(cuEventCreate(&one, 0) == CUDA_OK && cuEventCreate(&two, 0) == CUDA_OK);
	EXPECT_EQUAL(cuEventQuery(one), CUDA_OK);
	EXPECT_EQUAL(cuEventElapsedTime(&ms, one, two), CUDA_INVALID_HANDLE);
	EXPECT(cuEventRecord(one, NULL) == CUDA_OK && cuEventRecord(two, NULL) == CUDA_OK);
	EXPECT(elapsed_us(one, two) >= 0);
	free(one);
	free(two);
}

/* ---- threads ---------------------------------------------------------------------------------- */

static uint32_t is_reading;

/* What the recorder's thread does meanwhile. */
static void *read_events(void *arg)
{
	float ms;

	(void)arg;
	while (load_relaxed(&is_reading))
		for (uint64_t n = 0; n < load_relaxed(&timer.count); n++)
			if (cuEventQuery(timer.after[n]) == CUDA_OK)
				(void)cuEventElapsedTime(&ms, timer.before[n], timer.after[n]);
	return NULL;
}

struct caller {
	struct host *host;
	unsigned int flags;
	int rank;
};

static void *play_many(void *arg)
{
	const struct caller *caller = arg;
	struct host_comm_config config = {
		.nranks = 4, .rank = caller->rank, .gpu = caller->rank, .flags = caller->flags
	};
	struct host_user user = { 0 };
	struct host_comm *comm;
	struct host_op op;

	if (host_comm_new(caller->host, &comm, &config) != OK)
		abort();
	op = host_op_make(comm, OP_ALL_REDUCE, 1024, OP_FLOAT32);
	for (int i = 0; i < 100; i++) {
		op.has_network = i % 2 != 0;
		if (host_play(&user, &op) != OK)
			abort();
	}
	host_comm_wait(comm, 0);
	host_comm_destroy(comm);
	return NULL;
}

/* Blocking and nonblocking communicators, and a thread that reads. */
static void threads_launch_and_read(int release)
{
	struct host_config config = { .release = release,
				      .linked = &timer_linked,
				      .watcher = &sim_cuda_watcher };
	struct caller callers[4];
	pthread_t threads[5];
	struct host *host;
	size_t right = 0;

	store_relaxed(&timer.count, 0);
	timer.mask = LAUNCHES_ONLY;
	if (host_new(&host, &config) != OK)
		abort();
	store_relaxed(&is_reading, 1);
	pthread_create(&threads[4], NULL, read_events, NULL);
	for (int i = 0; i < 4; i++) {
		callers[i] = (struct caller){ host, i % 2 ? HOST_COMM_NONBLOCKING : 0, i };
		pthread_create(&threads[i], NULL, play_many, &callers[i]);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	store_relaxed(&is_reading, 0);
	pthread_join(threads[4], NULL);
	EXPECT_EQUAL(timer.count, 400);
	for (uint64_t n = 0; n < 400; n++)
		right += timer.results[n] == CUDA_OK && have_fired(n, true, true) &&
			 is_us(elapsed_us(timer.before[n], timer.after[n]), 1);
	EXPECT_EQUAL(right, 400);
	host_free(host);
}

int main(void)
{
	static const int releases[] = { HOST_NCCL_2_28, HOST_NCCL_2_30, HOST_NCCL_2_31 };

	for (size_t i = 0; i < LAUNCHES; i++)
		if (cuEventCreate(&timer.before[i], 0) != CUDA_OK ||
		    cuEventCreate(&timer.after[i], 0) != CUDA_OK)
			abort();
	for (size_t i = 0; i < ARRAY_LENGTH(releases); i++) {
		events_fire_with_their_kernel(releases[i], LAUNCHES_ONLY);
		events_fire_with_their_kernel(releases[i], WITH_KERNELS);
		events_fire_in_virtual_time(releases[i]);
		stuck_launches_stay_open(releases[i], HOST_TIME_REAL);
		stuck_launches_stay_open(releases[i], HOST_TIME_VIRTUAL);
		threads_launch_and_read(releases[i]);
	}
	time_spans_waiting_for_peers();
	a_group_is_one_launch();
	aborted_launches_never_end();
	graphs_are_left_alone();
	for (size_t i = 0; i < ARRAY_LENGTH(releases); i++) {
		replays_record_events_again(releases[i], false, UNUSED + 4 * i);
		replays_record_events_again(releases[i], true, UNUSED + 4 * i + 2);
	}
	contexts_are_those_of_the_gpus();
	events_without_a_launch();
	programs_export_it();
	return tap_done();
}
