/* The fake CUDA driver: what it returns was read from a real one. The recorder's tests rely on it. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/order.h"
#include "tests/fake_gpu/fake_control.h"
#include "tests/fake_gpu/fake_cuda.h"
#include "tests/tap.h"
#include "tests/unit/plugin/gpu_play.h"

static struct cuda cuda;
static struct cuda_driver driver;
static struct {
#define MEMBER(member, symbol, parameters) int(*member) parameters;
	CUDA_MORE_FUNCTIONS(MEMBER)
#undef MEMBER
} more;
static struct fake_control control;
static struct CUstream_st *stream;

static bool driver_open(void)
{
	void *library;

	setenv("FAKE_GPUS", "2", 1);
	setenv("FAKE_GPU_CLOCK", "model", 1);
	library = gpu_play_library();
	if (!gpu_play_use(library, 0) || !fake_control_open(&control, library))
		return false;
#define FIND(member, symbol, parameters) *(void **)&cuda.member = dlsym(library, #symbol);
	CUDA_FUNCTIONS(FIND)
#undef FIND
#define FIND(member, symbol, parameters) *(void **)&more.member = dlsym(library, #symbol);
	CUDA_MORE_FUNCTIONS(FIND)
#undef FIND
	gpu_play_driver(library, &driver);
	return cuda.stream_create(&stream, CUDA_STREAM_NON_BLOCKING) == 0;
}

static struct CUevent_st *event_new(void)
{
	struct CUevent_st *event = NULL;

	(void)cuda.event_create(&event, CUDA_EVENT_DEFAULT);
	return event;
}

/* ---- controls -------------------------------------------------------------------------------- */

static void calls_are_counted_and_fail_as_told(void)
{
	struct CUevent_st *event;

	control.clear();
	control.fail("cuEventCreate", 2, 2);
	EXPECT_EQUAL(cuda.event_create(&event, 0), 0);
	EXPECT_EQUAL(cuda.event_create(&event, 0), 2);
	EXPECT_EQUAL(cuda.event_create(&event, 0), 0);
	EXPECT_EQUAL(control.calls("cuEventCreate"), 3);
	EXPECT_EQUAL(control.calls("*"), 3);
	EXPECT_EQUAL(control.last_thread("cuEventCreate"), gettid());
	EXPECT_EQUAL(control.calls_by(gettid()), 3);
	EXPECT_EQUAL(control.last_thread("cuEventRecord"), 0);
	control.fail("*", 0, 719);
	EXPECT_EQUAL(cuda.event_record(event, stream), 719);
	EXPECT_EQUAL(cuda.stream_query(stream), 719);
	control.clear();
	control.shut_down(true);
	EXPECT_THAT("after the driver has shut down nothing works",
		    cuda.event_record(event, stream) == 4 && cuda.init(0) == 4);
	control.clear();
	EXPECT_EQUAL(cuda.event_record(event, stream), 0);
	EXPECT_THAT("an event recorded without flags is one call",
		    control.calls("cuEventRecord") == 1 &&
			    control.calls("cuEventRecordWithFlags") == 0);
}

static int has_returned;

static void *query_once(void *arg)
{
	(void)arg;
	(void)cuda.stream_query(stream);
	store_relaxed(&has_returned, 1);
	return NULL;
}

static void a_blocked_call_returns_when_it_is_let_go(void)
{
	pthread_t thread;

	control.block("cuStreamQuery", true);
	pthread_create(&thread, NULL, query_once, NULL);
	while (control.blocked("cuStreamQuery") == 0)
		usleep(100);
	EXPECT_THAT("others are not blocked", cuda.init(0) == 0);
	EXPECT_EQUAL(load_relaxed(&has_returned), 0);
	control.block("cuStreamQuery", false);
	pthread_join(thread, NULL);
	EXPECT_EQUAL(load_relaxed(&has_returned), 1);
}

static void a_test_decides_when_the_gpu_reaches_an_event(void)
{
	struct CUevent_st *before = event_new(), *after = event_new();
	float ms = 0;

	EXPECT_EQUAL(control.hold(stream), 0);
	EXPECT_EQUAL(cuda.event_record(before, stream), 0);
	EXPECT_EQUAL(control.kernel(stream, 3000000), 0);
	EXPECT_EQUAL(cuda.event_record(after, stream), 0);
	EXPECT_EQUAL(cuda.event_elapsed(&ms, before, after), CUDA_NOT_READY);
	EXPECT_THAT("up to an event", control.step_to(stream, before));
	EXPECT_THAT("which is one step",
		    cuda.event_elapsed(&ms, before, before) == 0 &&
			    cuda.event_elapsed(&ms, before, after) == CUDA_NOT_READY);
	EXPECT_EQUAL(control.step(stream, 1), 1);
	EXPECT_EQUAL(cuda.event_elapsed(&ms, before, after), CUDA_NOT_READY);
	EXPECT_EQUAL(control.step(stream, 5), 1);
	EXPECT_EQUAL(cuda.event_elapsed(&ms, before, after), 0);
	EXPECT_THAT("the time is the kernel's", ms == 3);
	EXPECT_EQUAL(cuda.event_record(before, stream), 0);
	EXPECT_EQUAL(control.release(stream), 0);
	EXPECT_EQUAL(cuda.stream_wait(stream), 0);
	EXPECT_EQUAL(cuda.event_elapsed(&ms, after, before), 0);
	EXPECT_THAT("an event that is not there is not reached",
		    control.step_to(stream, before) && control.step(stream, 1) == 0);
}

/* ---- events ---------------------------------------------------------------------------------- */

static struct CUevent_st *event_recorded(void)
{
	struct CUevent_st *event = event_new();

	(void)cuda.event_record(event, stream);
	(void)cuda.stream_wait(stream);
	return event;
}

static void an_event_has_a_time_once_it_was_recorded(void)
{
	struct CUevent_st *never = event_new(), *event = event_recorded(), *untimed;
	float ms = -1;

	EXPECT_THAT("an event that was never recorded is over, and has no time",
		    driver.event_query(never) == 0 &&
			    driver.event_elapsed(&ms, never, event) == CUDA_INVALID_HANDLE &&
			    driver.event_elapsed(&ms, event, never) == CUDA_INVALID_HANDLE);
	EXPECT_EQUAL(driver.event_create(&untimed, CUDA_EVENT_DISABLE_TIMING), 0);
	EXPECT_EQUAL(driver.event_record(untimed, stream), 0);
	EXPECT_EQUAL(cuda.stream_wait(stream), 0);
	EXPECT_EQUAL(driver.event_elapsed(&ms, event, untimed), CUDA_INVALID_HANDLE);
	EXPECT_THAT("nothing was written", ms == -1);
	EXPECT_EQUAL(driver.event_record_with_flags(event, stream, CUDA_RECORD_EXTERNAL), 401);
	EXPECT_EQUAL(driver.event_record_with_flags(event, stream, 2), 1);
	EXPECT_EQUAL(driver.event_query(NULL), CUDA_INVALID_HANDLE);
	EXPECT_EQUAL(driver.event_record(NULL, stream), CUDA_INVALID_HANDLE);
	EXPECT_EQUAL(driver.event_record(event, (struct CUstream_st *)0x1000), CUDA_INVALID_HANDLE);
	control.hold(stream);
	driver.event_record(event, stream);
	EXPECT_EQUAL(driver.event_query(event), CUDA_NOT_READY);
	control.release(stream);
	cuda.stream_wait(stream);
	EXPECT_EQUAL(driver.event_query(event), 0);
}

static void a_stream_waits_for_an_event_of_another(void)
{
	struct CUevent_st *event = event_new(), *last = event_new();
	struct CUstream_st *other;

	cuda.stream_create(&other, CUDA_STREAM_NON_BLOCKING);
	control.hold(stream);
	cuda.event_record(event, stream);
	EXPECT_EQUAL(more.stream_wait_event(other, event, 0), 0);
	cuda.event_record(last, other);
	EXPECT_EQUAL(driver.event_query(last), CUDA_NOT_READY);
	control.release(stream);
	EXPECT_EQUAL(cuda.stream_wait(other), 0);
	EXPECT_EQUAL(driver.event_query(last), 0);
	cuda.stream_destroy(other);
	EXPECT_EQUAL(driver.event_record(last, other), 201);
}

static void an_error_of_a_kernel_stays(void)
{
	struct CUevent_st *event;
	struct CUstream_st *own;
	struct CUctx_st *context;

	EXPECT_EQUAL(more.context_create(&context, 0, 1), 0);
	cuda.stream_create(&own, 0);
	event = event_new();
	control.fault(own, 700);
	driver.event_record(event, own);
	EXPECT_EQUAL(cuda.stream_wait(own), 700);
	EXPECT_EQUAL(driver.event_query(event), 700);
	EXPECT_EQUAL(more.context_destroy(context), 0);
}

/* ---- contexts -------------------------------------------------------------------------------- */

static void *without_context(void *arg)
{
	struct CUevent_st *event = arg, *made;
	struct CUctx_st *context = (struct CUctx_st *)event;
	unsigned long long id;
	float ms;
	int number = -1;

	EXPECT_THAT("a new thread has no context",
		    driver.ctx_get_current(&context) == 0 && context == NULL);
	EXPECT_EQUAL(driver.ctx_get_device(&number), 201);
	EXPECT_EQUAL(driver.ctx_get_id(NULL, &id), 201);
	EXPECT_EQUAL(driver.event_create(&made, 0), 201);
	EXPECT_EQUAL(driver.event_record(event, NULL), 201);
	EXPECT_EQUAL(driver.stream_get_ctx(NULL, &context), 201);
	EXPECT_THAT("and needs none for events and streams that exist",
		    driver.event_record(event, stream) == 0 && cuda.stream_wait(stream) == 0 &&
			    driver.event_query(event) == 0 &&
			    driver.event_elapsed(&ms, event, event) == 0 &&
			    driver.stream_get_ctx(stream, &context) == 0 && context != NULL);
	return NULL;
}

static void events_need_no_current_context(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, without_context, event_recorded());
	pthread_join(thread, NULL);
}

static void events_belong_to_a_context(void)
{
	struct CUctx_st *first, *second, *third, *found;
	struct CUevent_st *event = event_recorded(), *foreign;
	struct CUstream_st *other;
	unsigned long long id, next;
	float ms;

	EXPECT_EQUAL(driver.ctx_get_current(&first), 0);
	EXPECT_EQUAL(more.context_create(&second, 0, 0), 0);
	EXPECT_THAT("a new context is current",
		    driver.ctx_get_current(&found) == 0 && found == second);
	cuda.stream_create(&other, 0);
	foreign = event_new();
	EXPECT_EQUAL(driver.event_record(foreign, other), 0);
	EXPECT_EQUAL(driver.event_record(event, other), CUDA_INVALID_HANDLE);
	EXPECT_EQUAL(driver.event_record(foreign, stream), CUDA_INVALID_HANDLE);
	EXPECT_THAT("streams 0, 1 and 2 are those of the current context",
		    driver.event_record(foreign, NULL) == 0 &&
			    driver.event_record(event, NULL) == CUDA_INVALID_HANDLE &&
			    driver.event_record(event, (struct CUstream_st *)2) ==
				    CUDA_INVALID_HANDLE &&
			    driver.stream_get_ctx((struct CUstream_st *)1, &found) == 0 &&
			    found == second);
	cuda.stream_wait(NULL);
	EXPECT_EQUAL(driver.event_elapsed(&ms, event, foreign), CUDA_INVALID_HANDLE);
	EXPECT_THAT("a stream knows its context",
		    driver.stream_get_ctx(stream, &found) == 0 && found == first);
	EXPECT_EQUAL(driver.ctx_get_id(second, &id), 0);
	control.clear();
	EXPECT_EQUAL(more.context_destroy(second), 0);
	EXPECT_THAT("the one before is current again",
		    driver.ctx_get_current(&found) == 0 && found == first);
	EXPECT_EQUAL(driver.ctx_get_id(second, &next), 709);
	EXPECT_EQUAL(control.stale_uses(), 0);
	EXPECT_EQUAL(driver.event_query(foreign), 709);
	EXPECT_EQUAL(driver.stream_get_ctx(other, &found), 709);
	EXPECT_EQUAL(control.stale_uses(), 2);
	more.context_create(&third, 0, 0);
	EXPECT_THAT("an address is used again, an id is not",
		    third == second && driver.ctx_get_id(third, &next) == 0 && next > id);
	EXPECT_EQUAL(more.context_destroy(third), 0);
}

/* As cudaDeviceReset() does. */
static void a_reset_ends_events_and_streams(void)
{
	struct CUctx_st *primary, *again;
	struct CUevent_st *event, *made;
	struct CUstream_st *own;
	unsigned long long id, next;
	unsigned int flags;
	int is_active = -1;
	float ms;

	EXPECT_EQUAL(cuda.primary_retain(&primary, 1), 0);
	EXPECT_EQUAL(driver.ctx_set_current(primary), 0);
	EXPECT_EQUAL(driver.ctx_get_id(primary, &id), 0);
	cuda.stream_create(&own, 0);
	event = event_new();
	control.hold(own);
	driver.event_record(event, own);
	control.clear();
	EXPECT_EQUAL(more.primary_reset(1), 0);
	EXPECT_THAT("the context is not active",
		    driver.primary_ctx_get_state(1, &flags, &is_active) == 0 && is_active == 0);
	EXPECT_EQUAL(driver.ctx_get_id(primary, &next), 709);
	EXPECT_EQUAL(driver.event_create(&made, 0), 709);
	EXPECT_THAT("it is still current, and can be made so",
		    driver.ctx_get_current(&again) == 0 && again == primary &&
			    driver.ctx_set_current(primary) == 0);
	EXPECT_EQUAL(control.stale_uses(), 0);
	EXPECT_EQUAL(driver.event_query(event), 709);
	EXPECT_EQUAL(driver.event_elapsed(&ms, event, event), 709);
	EXPECT_EQUAL(driver.event_record(event, own), 709);
	EXPECT_EQUAL(control.stale_uses(), 3);
	EXPECT_EQUAL(cuda.primary_retain(&again, 1), 0);
	EXPECT_THAT("it comes back at the same address with another id",
		    again == primary && driver.ctx_get_id(again, &next) == 0 && next > id);
	EXPECT_EQUAL(driver.event_query(event), 709);
	EXPECT_EQUAL(driver.event_create(&made, 0), 0);
	EXPECT_EQUAL(cuda.primary_release(1), 0);
	EXPECT_EQUAL(driver.event_query(made), 709);
	EXPECT_EQUAL(cuda.primary_release(1), 201);
	EXPECT_EQUAL(driver.primary_ctx_get_state(9, &flags, &is_active), 101);
	cuda.primary_retain(&again, 0);
	EXPECT_EQUAL(driver.ctx_set_current(again), 0);
}

/* ---- captures -------------------------------------------------------------------------------- */

enum { GLOBAL = 0, THREAD_LOCAL = 1, RELAXED = CUDA_CAPTURE_MODE_RELAXED };

static int state_of(struct CUstream_st *of)
{
	int state = -1, result = driver.stream_is_capturing(of, &state);

	return result != 0 ? result : state;
}

/* The types of the nodes that the next work depends on, and how many there are: 7, 76 ... */
static int dependencies(struct CUstream_st *of)
{
	struct CUgraphNode_st *const *nodes = NULL;
	struct CUgraph_st *graph;
	size_t count = 0;
	uint64_t id;
	int state, type, all = 0;

	if (driver.stream_get_capture_info(of, &state, &id, &graph, &nodes, &count) != 0 ||
	    state != CUDA_CAPTURE_ACTIVE)
		return -1;
	for (size_t i = 0; i < count; i++) {
		(void)driver.graph_node_get_type(nodes[i], &type);
		all = 10 * all + type;
	}
	return all;
}

static size_t nodes_of(struct CUgraph_st *graph)
{
	size_t count = 0;

	(void)more.graph_nodes(graph, NULL, &count);
	return count;
}

struct asking {
	int mode; /* of the thread; -1: as it is */
	struct CUevent_st *event;
	int result;
};

static void *ask(void *arg)
{
	struct asking *asking = arg;

	if (asking->mode >= 0)
		(void)driver.thread_exchange_capture_mode(&asking->mode);
	asking->result = driver.event_query(asking->event);
	return NULL;
}

/* A query while another thread captures: what it returns, and what it makes of the capture. */
static int asked(int capture_mode, int thread_mode, int *state)
{
	struct asking asking = { .mode = thread_mode, .event = event_recorded() };
	struct CUgraph_st *graph;
	pthread_t thread;

	(void)cuda.capture_begin(stream, capture_mode);
	pthread_create(&thread, NULL, ask, &asking);
	pthread_join(thread, NULL);
	*state = state_of(stream);
	if (cuda.capture_end(stream, &graph) == 0)
		(void)cuda.graph_destroy(graph);
	return asking.result;
}

static void a_query_ends_captures_of_other_threads(void)
{
	static const struct {
		int capture_mode, thread_mode, result, state;
	} cases[] = {
		{ GLOBAL, -1, 900, 2 },		{ GLOBAL, GLOBAL, 900, 2 },
		{ GLOBAL, THREAD_LOCAL, 0, 1 }, { GLOBAL, RELAXED, 0, 1 },
		{ THREAD_LOCAL, -1, 0, 1 },	{ RELAXED, -1, 0, 1 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		int state = -1, result = asked(cases[i].capture_mode, cases[i].thread_mode, &state);

		EXPECT_EQUAL(result, cases[i].result);
		EXPECT_EQUAL(state, cases[i].state);
	}
}

static void other_calls_do_not_end_captures(void)
{
	struct CUevent_st *one = event_recorded(), *other = event_recorded(), *made;
	struct CUstream_st *second;
	struct CUctx_st *context;
	struct CUgraph_st *graph;
	unsigned long long id;
	unsigned int flags;
	int is_active;
	float ms;

	cuda.stream_create(&second, CUDA_STREAM_NON_BLOCKING);
	EXPECT_EQUAL(cuda.capture_begin(stream, GLOBAL), 0);
	EXPECT_THAT("all of these are legal",
		    driver.event_elapsed(&ms, one, other) == 0 &&
			    driver.event_create(&made, 0) == 0 &&
			    driver.event_record(made, second) == 0 && state_of(second) == 0 &&
			    driver.stream_get_ctx(second, &context) == 0 &&
			    driver.ctx_get_id(context, &id) == 0 &&
			    driver.ctx_set_current(context) == 0 &&
			    driver.primary_ctx_get_state(0, &flags, &is_active) == 0);
	EXPECT_EQUAL(state_of(stream), CUDA_CAPTURE_ACTIVE);
	EXPECT_EQUAL(cuda.capture_begin(stream, GLOBAL), 401);
	EXPECT_EQUAL(driver.event_record_with_flags(NULL, stream, CUDA_RECORD_EXTERNAL), 400);
	EXPECT_EQUAL(driver.event_record_with_flags(one, stream, 7), 1);
	EXPECT_EQUAL(cuda.capture_end(stream, &graph), 0);
	EXPECT_EQUAL(nodes_of(graph), 0);
	cuda.graph_destroy(graph);
	cuda.stream_destroy(second);
}

static void an_invalidated_capture_takes_nothing(void)
{
	struct CUevent_st *event = event_recorded();
	struct CUgraph_st *graph;

	cuda.capture_begin(stream, THREAD_LOCAL);
	EXPECT_EQUAL(cuda.stream_query(stream), 900);
	EXPECT_EQUAL(state_of(stream), CUDA_CAPTURE_INVALIDATED);
	EXPECT_EQUAL(driver.event_record_with_flags(event, stream, CUDA_RECORD_EXTERNAL), 901);
	EXPECT_EQUAL(driver.event_record(event, stream), 901);
	EXPECT_EQUAL(control.kernel(stream, 1000), 901);
	EXPECT_EQUAL(cuda.capture_end(stream, &graph), 901);
	EXPECT_THAT("there is no graph", graph == NULL);
	EXPECT_EQUAL(cuda.capture_end(stream, &graph), 401);
	EXPECT_EQUAL(state_of(stream), CUDA_CAPTURE_NONE);
}

static void the_legacy_stream_does_not_go_with_captures(void)
{
	struct CUevent_st *event = event_recorded();
	struct CUstream_st *blocking, *own = (struct CUstream_st *)2;
	struct CUctx_st *context;
	struct CUgraph_st *graph;

	cuda.stream_create(&blocking, 0);
	cuda.capture_begin(blocking, THREAD_LOCAL);
	EXPECT_EQUAL(state_of(NULL), CUDA_CAPTURE_IMPLICIT);
	EXPECT_EQUAL(state_of((struct CUstream_st *)1), CUDA_CAPTURE_IMPLICIT);
	EXPECT_EQUAL(state_of(own), CUDA_CAPTURE_NONE);
	EXPECT_THAT("to ask for the state breaks nothing",
		    state_of(blocking) == CUDA_CAPTURE_ACTIVE);
	EXPECT_EQUAL(driver.stream_get_ctx(NULL, &context), CUDA_CAPTURE_IMPLICIT);
	EXPECT_THAT("to ask for its context does", state_of(blocking) == CUDA_CAPTURE_INVALIDATED);
	EXPECT_EQUAL(cuda.capture_end(blocking, &graph), 901);
	cuda.capture_begin(blocking, THREAD_LOCAL);
	EXPECT_EQUAL(driver.event_record(event, NULL), CUDA_CAPTURE_IMPLICIT);
	EXPECT_EQUAL(cuda.capture_end(blocking, &graph), 901);
	EXPECT_EQUAL(cuda.capture_begin(NULL, THREAD_LOCAL), 900);
	EXPECT_EQUAL(cuda.capture_begin(own, THREAD_LOCAL), 0);
	EXPECT_EQUAL(state_of(NULL), CUDA_CAPTURE_IMPLICIT);
	EXPECT_EQUAL(driver.event_record_with_flags(event, own, CUDA_RECORD_EXTERNAL), 0);
	EXPECT_EQUAL(cuda.capture_end(own, &graph), 0);
	cuda.graph_destroy(graph);
	cuda.capture_begin(stream, THREAD_LOCAL);
	EXPECT_THAT("a stream that does not block is no matter",
		    state_of(NULL) == CUDA_CAPTURE_NONE && driver.event_record(event, NULL) == 0);
	EXPECT_EQUAL(cuda.capture_end(stream, &graph), 0);
	cuda.graph_destroy(graph);
	cuda.stream_destroy(blocking);
}

static void an_event_in_a_capture_is_a_dependency_or_a_node(void)
{
	struct CUevent_st *plain = event_recorded(), *external = event_recorded();
	struct CUevent_st *last = event_new(), *outside = event_recorded();
	struct CUstream_st *second;
	struct CUgraph_st *graph;
	int relaxed = RELAXED;
	float ms;

	cuda.stream_create(&second, CUDA_STREAM_NON_BLOCKING);
	cuda.capture_begin(stream, THREAD_LOCAL);
	EXPECT_EQUAL(dependencies(stream), 0);
	EXPECT_EQUAL(cuda.memory_set(0, 0, 0, stream), 0);
	EXPECT_EQUAL(dependencies(stream), 2);
	EXPECT_EQUAL(driver.event_record_with_flags(external, stream, CUDA_RECORD_EXTERNAL), 0);
	EXPECT_EQUAL(dependencies(stream), 7);
	EXPECT_EQUAL(cuda.memory_set(0, 0, 0, stream), 0);
	EXPECT_EQUAL(driver.event_record(plain, stream), 0);
	EXPECT_EQUAL(dependencies(stream), 2);
	EXPECT_EQUAL(more.stream_wait_event(stream, outside, 1), 0);
	EXPECT_EQUAL(dependencies(stream), 6);
	EXPECT_EQUAL(more.stream_wait_event(second, plain, 0), 0);
	EXPECT_THAT("another stream joins behind the event",
		    state_of(second) == CUDA_CAPTURE_ACTIVE && dependencies(second) == 2);
	EXPECT_EQUAL(cuda.memory_set(0, 0, 0, second), 0);
	EXPECT_EQUAL(driver.event_record(last, second), 0);
	EXPECT_EQUAL(more.stream_wait_event(stream, last, 0), 0);
	EXPECT_EQUAL(dependencies(stream), 62);
	EXPECT_THAT("an external event keeps its time",
		    driver.event_elapsed(&ms, external, outside) == 0);
	EXPECT_EQUAL(driver.event_elapsed(&ms, plain, outside), 907);
	EXPECT_EQUAL(state_of(stream), CUDA_CAPTURE_ACTIVE);
	EXPECT_EQUAL(cuda.capture_end(stream, &graph), 0);
	EXPECT_EQUAL(state_of(second), CUDA_CAPTURE_NONE);
	EXPECT_EQUAL(nodes_of(graph), 5);
	EXPECT_EQUAL(driver.event_query(plain), 1);
	EXPECT_EQUAL(driver.event_elapsed(&ms, plain, outside), 1);
	cuda.graph_destroy(graph);
	cuda.capture_begin(stream, THREAD_LOCAL);
	EXPECT_EQUAL(driver.event_record(plain, stream), 0);
	EXPECT_EQUAL(driver.thread_exchange_capture_mode(&relaxed), 0);
	EXPECT_EQUAL(driver.event_query(plain), 907);
	EXPECT_EQUAL(driver.thread_exchange_capture_mode(&relaxed), 0);
	EXPECT_EQUAL(relaxed, RELAXED);
	EXPECT_EQUAL(cuda.capture_end(stream, &graph), 901);
	cuda.capture_begin(stream, THREAD_LOCAL);
	EXPECT_EQUAL(more.stream_wait_event(stream, outside, 0), 905);
	EXPECT_EQUAL(cuda.capture_end(stream, &graph), 901);
	cuda.stream_destroy(second);
}

/* A kernel between two events. */
static struct CUgraph_st *timed_graph(struct CUevent_st *before, struct CUevent_st *after)
{
	struct CUgraph_st *graph = NULL;

	(void)cuda.capture_begin(stream, THREAD_LOCAL);
	if (before != NULL)
		(void)driver.event_record_with_flags(before, stream, CUDA_RECORD_EXTERNAL);
	(void)control.kernel(stream, 2000000);
	if (after != NULL)
		(void)driver.event_record_with_flags(after, stream, CUDA_RECORD_EXTERNAL);
	(void)cuda.capture_end(stream, &graph);
	return graph;
}

static void each_replay_records_the_events_again(void)
{
	struct CUevent_st *before = event_new(), *after = event_new();
	struct CUgraph_st *graph = timed_graph(before, after);
	struct CUgraphExec_st *exec;
	float ms = 0;

	EXPECT_EQUAL(cuda.graph_instantiate(&exec, graph, 0), 0);
	EXPECT_THAT("before the first replay they are over, and have no time",
		    driver.event_query(after) == 0 &&
			    driver.event_elapsed(&ms, before, after) == CUDA_INVALID_HANDLE);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQUAL(control.hold(stream), 0);
		EXPECT_EQUAL(cuda.graph_launch(exec, stream), 0);
		EXPECT_THAT("the first one is reached", control.step_to(stream, before));
		EXPECT_EQUAL(driver.event_query(after), CUDA_NOT_READY);
		EXPECT_EQUAL(control.release(stream), 0);
		EXPECT_EQUAL(cuda.stream_wait(stream), 0);
		EXPECT_EQUAL(driver.event_elapsed(&ms, before, after), 0);
		EXPECT_THAT("the time is that of the kernel", ms == 2);
	}
	EXPECT_EQUAL(cuda.event_destroy(after), 0);
	EXPECT_THAT("a graph can be launched without its event",
		    cuda.graph_launch(exec, stream) == 0 && cuda.stream_wait(stream) == 0);
	EXPECT_EQUAL(cuda.graph_free(exec) | cuda.graph_destroy(graph), 0);
}

static void some_graphs_may_not_have_event_nodes(void)
{
	struct CUevent_st *event = event_new();
	struct CUgraph_st *plain = timed_graph(NULL, NULL), *timed = timed_graph(event, NULL);
	struct CUgraph_st *again = timed_graph(event_new(), NULL), *outer, *body, *ended;
	struct CUgraphExec_st *exec, *other;
	struct fake_update update;

	EXPECT_EQUAL(cuda.graph_instantiate(&exec, plain, 4), 0);
	EXPECT_EQUAL(cuda.graph_instantiate(&other, timed, 4), 1);
	EXPECT_EQUAL(cuda.graph_instantiate(&other, timed, 0), 0);
	EXPECT_EQUAL(more.graph_update(other, again, &update), 0);
	EXPECT_EQUAL(more.graph_update(other, plain, &update), 910);
	EXPECT_EQUAL(update.reason, 2);
	cuda.graph_free(exec);
	cuda.graph_free(other);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQUAL(more.graph_create(&outer, 0), 0);
		EXPECT_EQUAL(control.conditional(outer, &body), 0);
		EXPECT_EQUAL(more.capture_begin_to(stream, body, NULL, NULL, 0, THREAD_LOCAL), 0);
		control.kernel(stream, 1000);
		if (i == 1)
			driver.event_record_with_flags(event, stream, CUDA_RECORD_EXTERNAL);
		EXPECT_EQUAL(cuda.capture_end(stream, &ended), 0);
		EXPECT_THAT("the graph is the body", ended == body);
		EXPECT_EQUAL(cuda.graph_instantiate(&exec, outer, 0), i);
		if (i == 0) {
			control.hold(stream);
			cuda.graph_launch(exec, stream);
			EXPECT_THAT("the body runs", control.step(stream, 5) == 2);
			control.release(stream);
			cuda.graph_free(exec);
		}
		cuda.graph_destroy(outer);
	}
	cuda.graph_destroy(plain);
	cuda.graph_destroy(timed);
	cuda.graph_destroy(again);
}

int main(void)
{
	if (!driver_open())
		return 1;
	calls_are_counted_and_fail_as_told();
	a_blocked_call_returns_when_it_is_let_go();
	a_test_decides_when_the_gpu_reaches_an_event();
	an_event_has_a_time_once_it_was_recorded();
	a_stream_waits_for_an_event_of_another();
	an_error_of_a_kernel_stays();
	events_need_no_current_context();
	events_belong_to_a_context();
	a_reset_ends_events_and_streams();
	a_query_ends_captures_of_other_threads();
	other_calls_do_not_end_captures();
	an_invalidated_capture_takes_nothing();
	the_legacy_stream_does_not_go_with_captures();
	an_event_in_a_capture_is_a_dependency_or_a_node();
	each_replay_records_the_events_again();
	some_graphs_may_not_have_event_nodes();
	return tap_done();
}
