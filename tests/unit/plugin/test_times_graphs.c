/* GPU times of launches in CUDA graphs: which graphs get events, what is read from them, and what must not change. */
#include "tests/unit/plugin/times_play.h"

/* Kernels take their real time here: where replays lie in time is what tells them apart. */
enum { RELAXED = 2, FLOATS_OF_MIB = 256 * 1024, SHORT = 2 * 1000 * 1000 };

#define FIND_MORE(member, symbol, parameters) cuda_result(*member) parameters;
static struct {
	CUDA_MORE_FUNCTIONS(FIND_MORE)
	int (*capture_info)(struct CUstream_st *, int *, uint64_t *, struct CUgraph_st **,
			    struct CUgraphNode_st *const **, size_t *);
} more;

static void *begin_graphs(const char *times)
{
	void *context;

	setenv("FAKE_GPU_CLOCK", "real", 1);
	context = begin(times);
#define FIND(member, symbol, parameters) find(&more.member, #symbol);
	CUDA_MORE_FUNCTIONS(FIND)
#undef FIND
	find(&more.capture_info, "cuStreamGetCaptureInfo_v2");
	return context;
}

/* How many operations there were before the capture, and how many of them have a time. */
static uint64_t ordinary, timed;

/* Ordinary calls first, as programs make before they capture. */
static void *begin_warm(const char *times)
{
	void *context = begin_graphs(times);

	/* A busy machine can hold the host up between the two events, and the time is dropped. */
	for (int i = 0; i < 1000 && load_relaxed(&header()->times_taken) < 2; i++) {
		collective(context, SHORT);
		until(all_are_taken);
	}
	ordinary = recorder.region.comms[0].counts.issued;
	timed = recorder.region.comms[0].counts.timed;
	return SAYS(load_relaxed(&header()->times_taken) >= 2) ? context : NULL;
}

/* What NCCL adds to a captured stream when it allows graphs beside ordinary launches. */
static bool add_event_of_nccl(void)
{
	struct CUgraphNode_st *const *nodes, *node = NULL;
	static struct CUevent_st *event;
	struct CUgraph_st *graph;
	int state = 0, result;
	uint64_t id;
	size_t count;

	if (event == NULL && cuda.event_create(&event, 0) != 0)
		return false;
	result = more.capture_info(stream, &state, &id, &graph, &nodes, &count);
	if (result == 0)
		result = more.graph_add_wait(&node, graph, NULL, 0, event);
	if (result == 0)
		result = more.capture_depend(stream, &node, 1, 0);
	return SAYS(result == 0);
}

static void *captured;

static void capture_one(void *context, size_t floats, unsigned int calls, uint64_t duration_ns)
{
	struct abi_descr_v5 group = { .type = ABI_GROUP_API };
	struct launch made = { .group = play_start(context, group) };

	for (unsigned int i = 0; i < calls; i++) {
		void *api = play_coll_api(context, made.group, "AllReduce", floats, "ncclFloat32",
					  true);

		captured = i == 0 ? api : captured;
	}
	launch(context, &made, stream, duration_ns);
	play_stop(made.group);
}

/* A graph of so many launches. NULL: it could not be captured. */
static struct CUgraph_st *capture(void *context, unsigned int launches, size_t floats,
				  bool is_mixing)
{
	struct CUgraph_st *graph = NULL;

	if (!SAYS(cuda.capture_begin(stream, RELAXED) == 0))
		return NULL;
	for (unsigned int i = 0; i < launches; i++) {
		if (is_mixing && i == 0 && !add_event_of_nccl())
			return NULL;
		capture_one(context, floats, 1, SHORT);
	}
	return SAYS(cuda.capture_end(stream, &graph) == 0) ? graph : NULL;
}

static size_t nodes_of(struct CUgraph_st *graph)
{
	size_t count = 0;

	return more.graph_nodes(graph, NULL, &count) == 0 ? count : 0;
}

static struct CUgraphExec_st *instantiate(struct CUgraph_st *graph)
{
	struct CUgraphExec_st *exec = NULL;

	return graph != NULL && SAYS(cuda.graph_instantiate(&exec, graph, 0) == 0) ? exec : NULL;
}

static uint64_t read_wanted;

static bool are_read(void)
{
	return load_relaxed(&header()->replays_read) >= read_wanted;
}

/* Replays far enough apart for the reader. */
static bool replay(struct CUgraphExec_st *exec, unsigned int times)
{
	for (unsigned int i = 0; i < times; i++) {
		read_wanted = load_relaxed(&header()->replays_read) + 1;
		if (!SAYS(cuda.graph_launch(exec, stream) == 0) ||
		    !SAYS(cuda.stream_wait(stream) == 0) || !SAYS(until(are_read)))
			return false;
	}
	return true;
}

/* ---- scenes ------------------------------------------------------------------------------------ */

static bool replays_become_records_with_a_time(void)
{
	void *context = begin_warm("auto,graphs");
	struct CUgraph_st *graph = capture(context, 1, 1024, true);
	struct CUgraphExec_st *exec = instantiate(graph);
	const struct comm_counts *counts = &recorder.region.comms[0].counts;
	struct op_record op;

	if (!SAYS(nodes_of(graph) == 4) || !SAYS(header()->timed_captures == 1) ||
	    !SAYS(counts->captured == 1) || !replay(exec, 5))
		return false;
	ncclProfiler_v5.finalize(context);
	op = op_of(ordinary + 6);
	return SAYS(header()->replays_read == 5) &&
	       SAYS(counts->issued == ordinary + 6 && counts->recorded == ordinary + 6) &&
	       SAYS(counts->replayed == 5 && counts->timed == timed + 5 && counts->replays == 0) &&
	       SAYS(op.captured_number == ordinary + 1 && op.number == ordinary + 6) &&
	       SAYS(op.match == 0 && op.time_source == OP_TIME_KERNEL_GPU) &&
	       SAYS(op.function == OP_ALL_REDUCE && op.bytes == 4096) &&
	       SAYS((op.flags & (OP_FLAG_REPLAY | OP_FLAG_REPLAY_READ | OP_FLAG_CUDA_EVENT)) ==
		    (OP_FLAG_REPLAY | OP_FLAG_REPLAY_READ | OP_FLAG_CUDA_EVENT)) &&
	       SAYS(!(op.flags & OP_FLAG_SHARED_TIME)) && SAYS(op.state == OP_DONE) &&
	       SAYS(op_duration_ns(&op) >= SHORT) && SAYS(op.done_ns <= recorder_now()) &&
	       SAYS(counts->last_issue_ns >= op.issue_ns);
}

/* NCCL's host node in the graph shows each replay before its kernel. */
static bool a_replay_that_nccl_shows_gets_the_time(void)
{
	void *context = begin_warm("auto,graphs");
	struct CUgraphExec_st *exec = instantiate(capture(context, 1, 1024, true));
	const struct comm_counts *counts = &recorder.region.comms[0].counts;

	for (uint64_t i = 0; i < 4; i++) {
		play_stop(play_coll(context, captured, "AllReduce", 1024, "ncclFloat32", 4));
		if (!replay(exec, 1))
			return false;
	}
	ncclProfiler_v5.finalize(context);
	for (uint64_t number = ordinary + 2; number <= ordinary + 5; number++) {
		struct op_record op = op_of(number);

		if (!SAYS(op_duration_ns(&op) >= SHORT) ||
		    !SAYS((op.flags & (OP_FLAG_REPLAY | OP_FLAG_REPLAY_READ |
				       OP_FLAG_NOT_SAMPLED)) == OP_FLAG_REPLAY))
			return false;
	}
	return SAYS(counts->issued == ordinary + 5 && counts->recorded == ordinary + 5) &&
	       SAYS(counts->replays == 4);
}

/* Some replays have left their slots by then. */
static bool all_were_asked(void)
{
	return load_relaxed(&header()->replays_read) + load_relaxed(&header()->replays_dropped) >=
	       GRAPH_PAIRS;
}

/* As many as there are pairs of events: no call takes the place of another where replays look for their events. */
static bool all_replays_that_nccl_shows_find_their_events(void)
{
	void *context = begin_warm("auto,graphs"), *calls[GRAPH_PAIRS];
	const struct comm_counts *counts = &recorder.region.comms[0].counts;
	struct CUgraph_st *graph = NULL;

	if (!SAYS(cuda.capture_begin(stream, RELAXED) == 0) || !add_event_of_nccl())
		return false;
	for (unsigned int i = 0; i < GRAPH_PAIRS; i++) {
		capture_one(context, 1024, 1, SHORT / 10);
		calls[i] = captured;
	}
	if (!SAYS(cuda.capture_end(stream, &graph) == 0))
		return false;
	for (unsigned int i = 0; i < GRAPH_PAIRS; i++)
		play_stop(play_coll(context, calls[i], "AllReduce", 1024, "ncclFloat32", 4));
	if (!SAYS(cuda.graph_launch(instantiate(graph), stream) == 0) ||
	    !SAYS(cuda.stream_wait(stream) == 0))
		return false;
	return SAYS(until(all_were_asked)) && SAYS(counts->replays == GRAPH_PAIRS) &&
	       SAYS(counts->issued == ordinary + 2 * GRAPH_PAIRS);
}

static bool calls_of_one_launch_are_one_record(void)
{
	void *context = begin_warm("auto,graphs");
	struct CUgraph_st *graph = NULL;

	if (!SAYS(cuda.capture_begin(stream, RELAXED) == 0) || !add_event_of_nccl())
		return false;
	capture_one(context, 1024, 3, SHORT);
	return SAYS(cuda.capture_end(stream, &graph) == 0) && replay(instantiate(graph), 2) &&
	       SAYS(op_of(ordinary + 4).flags & OP_FLAG_SHARED_TIME) &&
	       SAYS(op_of(ordinary + 5).flags & OP_FLAG_SHARED_TIME);
}

/* Without events of NCCL in the graph they may be forbidden there: in bodies of conditional nodes they are. */
static bool other_graphs_are_left_alone(void)
{
	void *context = begin_warm("auto,graphs");
	struct CUgraph_st *graph = capture(context, 3, 64 * FLOATS_OF_MIB, false), *body = NULL;
	struct CUgraph_st *parent = NULL, *same;
	bool is_good = SAYS(nodes_of(graph) == 3) && SAYS(header()->closed_captures == 3) &&
		       SAYS(header()->timed_captures == 0);

	is_good = is_good && SAYS(more.graph_create(&parent, 0) == 0) &&
		  SAYS(gpu.conditional(parent, &body) == 0) &&
		  SAYS(more.capture_begin_to(stream, body, NULL, NULL, 0, RELAXED) == 0);
	capture_one(context, 64 * FLOATS_OF_MIB, 1, SHORT);
	return is_good && SAYS(cuda.capture_end(stream, &same) == 0) &&
	       SAYS(instantiate(parent) != NULL) && SAYS(header()->sampling == SAMPLING_ACTIVE) &&
	       SAYS(gpu.calls("cuEventRecordWithFlags") == 0);
}

static bool by_default_a_share_of_large_launches_is_timed(void)
{
	void *context = begin_warm("auto");
	struct CUgraph_st *small = capture(context, 50, 1024, true);
	uint64_t of_small = header()->timed_captures,
		 asked = gpu.calls("cuStreamGetCaptureInfo_v2");
	struct CUgraph_st *large = capture(context, 30, 64 * FLOATS_OF_MIB, true);
	struct CUgraph_st *again = capture(context, 30, 64 * FLOATS_OF_MIB, true);
	struct fake_update update;

	return SAYS(of_small == 0 && nodes_of(small) == 51) && SAYS(asked == 1) &&
	       SAYS(header()->timed_captures == 2 * ((nodes_of(large) - 31) / 2)) &&
	       SAYS(nodes_of(large) > 31 + 2 * 5 && nodes_of(large) < 31 + 2 * 20) &&
	       SAYS(nodes_of(again) == nodes_of(large)) &&
	       SAYS(more.graph_update(instantiate(large), again, &update) == 0);
}

static bool no_graphs_is_a_setting(void)
{
	void *context = begin_warm("all,no-graphs");
	struct CUgraph_st *graph = capture(context, 10, 64 * FLOATS_OF_MIB, true);

	return SAYS(nodes_of(graph) == 11) && SAYS(header()->closed_captures == 0) &&
	       SAYS(gpu.calls("cuStreamGetCaptureInfo_v2") == 1);
}

/* The graph of a later capture updates the earlier one, so it must look the same. */
static bool without_a_free_pair_graphs_look_the_same(void)
{
	void *context = begin_warm("auto,graphs");
	struct CUgraph_st *first = capture(context, 1, 1024, true), *last = NULL;
	struct CUgraphExec_st *exec = instantiate(first);
	struct fake_update update;

	for (int i = 0; i < GRAPH_PAIRS + 10; i++)
		last = capture(context, 1, 1024, true);
	return SAYS(header()->timed_captures == GRAPH_PAIRS) &&
	       SAYS(header()->untimed_captures == 11) && SAYS(nodes_of(last) == nodes_of(first)) &&
	       SAYS(more.graph_update(exec, last, &update) == 0) &&
	       SAYS(cuda.graph_launch(exec, stream) == 0 && cuda.stream_wait(stream) == 0) &&
	       SAYS(gpu.stale_uses() == 0);
}

static bool the_end_of_a_communicator_frees_its_events(void)
{
	void *context = begin_warm("auto,graphs");

	if (!replay(instantiate(capture(context, GRAPH_PAIRS, 1024, true)), 1))
		return false;
	ncclProfiler_v5.finalize(context);
	context = play_init(0xbeef, 1, 8, 0);
	/* The old times are still in the events. */
	if (instantiate(capture(context, 2, 1024, true)) == NULL)
		return false;
	read_wanted = header()->replays_read;
	collective(context, SHORT);
	usleep(200 * 1000);
	return SAYS(header()->timed_captures == GRAPH_PAIRS + 2) &&
	       SAYS(header()->untimed_captures == 0) &&
	       SAYS(header()->replays_read == read_wanted) &&
	       SAYS(recorder.region.comms[0].counts.issued +
			    recorder.region.comms[1].counts.issued >=
		    GRAPH_PAIRS);
}

/* The first failure of the driver must not be one inside a capture. */
static bool without_ordinary_times_graphs_are_left_alone(void)
{
	void *context = begin_graphs("auto,graphs");
	struct CUgraph_st *graph = capture(context, 2, 64 * FLOATS_OF_MIB, true);

	/* Decided for good. */
	for (int i = 0; i < 3; i++)
		collective(context, SHORT);
	return SAYS(nodes_of(graph) == 3) && SAYS(until(all_are_taken)) &&
	       SAYS(nodes_of(capture(context, 2, 64 * FLOATS_OF_MIB, true)) == 3) &&
	       SAYS(gpu.calls("cuEventRecordWithFlags") == 0);
}

static bool several_gpus_in_a_process_are_left_alone(void)
{
	void *context = begin_warm("auto,graphs");

	if (!gpu_play_use(library, 1))
		return false;
	play_init(0xbeef, 1, 8, 1);
	return gpu_play_use(library, 0) &&
	       SAYS(nodes_of(capture(context, 2, 64 * FLOATS_OF_MIB, true)) == 3);
}

/* A replay that runs has no time yet; its predecessor's may not be taken for it. */
static bool a_running_replay_is_not_read(void)
{
	void *context = begin_warm("auto,graphs");
	struct CUgraphExec_st *exec = instantiate(capture(context, 1, 1024, true));
	uint64_t before;

	if (!replay(exec, 2))
		return false;
	before = header()->replays_read;
	gpu.hold(stream);
	if (!SAYS(cuda.graph_launch(exec, stream) == 0))
		return false;
	gpu.step(stream, 2);
	usleep(150 * 1000);
	if (!SAYS(header()->replays_read == before))
		return false;
	read_wanted = before + 1;
	gpu.release(stream);
	return SAYS(until(are_read));
}

static const char *failing;
static int failing_code;
static unsigned int failing_call;

static bool a_failing_driver_leaves_captures_whole(void)
{
	void *context = begin_warm("auto,graphs");
	struct CUgraph_st *graph = NULL;
	struct CUgraphExec_st *exec;

	gpu.fail(failing, failing_call, failing_code);
	/* add_event_of_nccl() asks, too. */
	if (!SAYS(cuda.capture_begin(stream, RELAXED) == 0))
		return false;
	for (int i = 0; i < 4; i++)
		capture_one(context, 64 * FLOATS_OF_MIB, 1, SHORT);
	if (!SAYS(cuda.capture_end(stream, &graph) == 0))
		return false;
	exec = instantiate(graph);
	for (int i = 0; i < 3; i++)
		if (!SAYS(cuda.graph_launch(exec, stream) == 0 && cuda.stream_wait(stream) == 0))
			return false;
	gpu.fail(failing, 0, 0);
	collective(context, SHORT);
	ask_again();
	ncclProfiler_v5.finalize(context);
	return SAYS(header()->sampling == SAMPLING_ACTIVE) &&
	       SAYS(recorder.region.comms[0].counts.issued ==
		    recorder.region.comms[0].counts.recorded);
}

static bool a_failing_record_ends_timing(void)
{
	void *context = begin_warm("auto,graphs");
	struct CUgraph_st *graph;

	gpu.fail("cuEventRecordWithFlags", failing_call, failing_code);
	graph = capture(context, 4, 1024, true);
	ask_again();
	return SAYS(graph != NULL) && SAYS(header()->sampling == SAMPLING_BY_CUDA) &&
	       SAYS(header()->timing_error == (uint64_t)failing_code) &&
	       SAYS(header()->timed_captures == (failing_call >= 3)) &&
	       SAYS(gpu.calls("cuEventRecordWithFlags") == failing_call) &&
	       SAYS(instantiate(graph) != NULL);
}

static void failures(void)
{
	static const char *const functions[] = { "cuStreamGetCaptureInfo_v2",
						 "cuGraphNodeGetType" };
	static const int codes[] = { 1, 4, 400, 901, 909, 999 };

	for (size_t f = 0; f < ARRAY_LENGTH(functions); f++)
		for (size_t c = 0; c < ARRAY_LENGTH(codes); c++) {
			char sentence[120];

			failing = functions[f];
			failing_call = c % 2;
			failing_code = codes[c];
			snprintf(sentence, sizeof(sentence),
				 "%s returns %d: the graph is left alone", failing, failing_code);
			EXPECT_THAT(sentence, play_scene(a_failing_driver_leaves_captures_whole));
		}
	for (failing_call = 1; failing_call <= 4; failing_call++) {
		failing_code = codes[failing_call];
		EXPECT(play_scene(a_failing_record_ends_timing));
	}
}

int main(void)
{
	unsetenv("RINGSIDE_EVENTS");
	EXPECT(play_scene(replays_become_records_with_a_time));
	EXPECT(play_scene(a_replay_that_nccl_shows_gets_the_time));
	EXPECT(play_scene(all_replays_that_nccl_shows_find_their_events));
	EXPECT(play_scene(calls_of_one_launch_are_one_record));
	EXPECT(play_scene(other_graphs_are_left_alone));
	EXPECT(play_scene(by_default_a_share_of_large_launches_is_timed));
	EXPECT(play_scene(no_graphs_is_a_setting));
	EXPECT(play_scene(without_a_free_pair_graphs_look_the_same));
	EXPECT(play_scene(the_end_of_a_communicator_frees_its_events));
	EXPECT(play_scene(without_ordinary_times_graphs_are_left_alone));
	EXPECT(play_scene(several_gpus_in_a_process_are_left_alone));
	EXPECT(play_scene(a_running_replay_is_not_read));
	failures();
	return tap_done();
}
