/* Events. Their memory is not used again, so that a use after the end is an error and not a crash. */
#include <stdlib.h>

#include "common/order.h"
#include "tests/fake_gpu/fake_queue.h"

enum { EVENTS_MAX = 1 << 16, EVENT_FLAGS_MAX = 7 };
enum { WAIT_NS = 100000 };

struct CUevent_st {
	struct fake_home home;
	unsigned int flags;
	bool is_destroyed;
	uint32_t issued; /* enqueued records ... */
	uint32_t passed; /* ... and those that the stream has reached */
	uint64_t time_ns;
	struct fake_mark mark; /* its latest record was captured, without a time */
};

static struct CUevent_st events[EVENTS_MAX];
static uint32_t event_count;

/* Whether the handle can be used. */
static cuda_result event_check(const struct CUevent_st *event)
{
	uintptr_t offset = (uintptr_t)event - (uintptr_t)events;

	if (offset >= sizeof(events) || offset % sizeof(*event) != 0 ||
	    offset / sizeof(*event) >= load_relaxed(&event_count))
		return FAKE_INVALID_HANDLE;
	if (!fake_home_exists(&event->home) || event->is_destroyed)
		return fake_stale(FAKE_CONTEXT_IS_DESTROYED);
	return load_relaxed(&event->home.context->error);
}

cuda_result cuEventCreate(struct CUevent_st **event, unsigned int flags)
{
	uint32_t number;

	FAKE_ENTER(true);
	if (flags > EVENT_FLAGS_MAX)
		return FAKE_INVALID_VALUE;
	number = add_relaxed(&event_count, 1);
	if (number >= EVENTS_MAX) {
		store_relaxed(&event_count, EVENTS_MAX);
		return FAKE_OUT_OF_MEMORY;
	}
	events[number] = (struct CUevent_st){ .home = fake_home_current(), .flags = flags };
	*event = &events[number];
	return 0;
}

/* Graphs that have it continue to record it. */
cuda_result cuEventDestroy_v2(struct CUevent_st *event)
{
	cuda_result result;

	FAKE_ENTER(false);
	result = event_check(event);
	if (result == 0)
		event->is_destroyed = true;
	return result;
}

/* ---- records --------------------------------------------------------------------------------- */

static void event_issue(void *arg)
{
	struct CUevent_st *event = arg;

	add_relaxed(&event->issued, 1);
}

static int event_pass(void *arg, struct CUstream_st *stream)
{
	struct CUevent_st *event = arg;

	store_relaxed(&event->time_ns, fake_stream_time(stream));
	/* The time is written before the count. Pairs with event_state(). */
	add_release(&event->passed, 1);
	return 0;
}

static struct CUgraphNode_st *record_node(struct CUevent_st *event)
{
	struct fake_work work = { .run = event_pass, .arg = event };

	return fake_node_new(&work, event_issue, CUDA_NODE_EVENT_RECORD);
}

static cuda_result event_record(struct CUevent_st *event, struct CUstream_st *handle,
				unsigned int flags)
{
	cuda_result result = event_check(event);
	struct CUgraphNode_st *node;
	struct CUstream_st *stream;
	bool is_captured;

	if (result == 0)
		result = fake_stream_get(handle, &stream);
	if (result != 0)
		return result;
	if (flags > CUDA_RECORD_EXTERNAL)
		return FAKE_INVALID_VALUE;
	result = fake_capture_use(stream, &is_captured);
	if (result != 0)
		return result;
	/* Captured without the flag it is a dependency without a time, and no node. */
	if (is_captured && flags != CUDA_RECORD_EXTERNAL)
		return fake_capture_record(stream, &event->mark);
	if (!is_captured && flags == CUDA_RECORD_EXTERNAL)
		return FAKE_ILLEGAL_STATE;
	if (!is_captured && stream->home.id != event->home.id)
		return FAKE_INVALID_HANDLE;
	node = record_node(event);
	if (node == NULL)
		return FAKE_OUT_OF_MEMORY;
	if (!is_captured)
		fake_capture_forget(&event->mark);
	result = fake_stream_put(stream, node);
	if (result != 0)
		fake_node_drop(node);
	return result;
}

cuda_result cuEventRecord(struct CUevent_st *event, struct CUstream_st *stream)
{
	FAKE_ENTER(false);
	return event_record(event, stream, CUDA_EVENT_DEFAULT);
}

cuda_result cuEventRecordWithFlags(struct CUevent_st *event, struct CUstream_st *stream,
				   unsigned int flags)
{
	FAKE_ENTER(false);
	return event_record(event, stream, flags);
}

/* ---- state and time -------------------------------------------------------------------------- */

/* 0: reached; CUDA_NOT_READY. An event that was never recorded counts as reached. */
static cuda_result event_state(const struct CUevent_st *event)
{
	/* Pairs with event_pass(). */
	return load_acquire(&event->passed) == load_relaxed(&event->issued) ? 0 : CUDA_NOT_READY;
}

bool fake_event_is_reached(const struct CUevent_st *event)
{
	return event_state(event) == 0;
}

cuda_result cuEventQuery(struct CUevent_st *event)
{
	cuda_result result;

	FAKE_ENTER(false);
	result = event_check(event);
	if (result == 0)
		result = fake_capture_unsafe();
	if (result == 0)
		result = fake_capture_ask(&event->mark, true);
	return result != 0 ? result : event_state(event);
}

static cuda_result event_time_check(const struct CUevent_st *event)
{
	cuda_result result = event_check(event);

	if (result == 0)
		result = fake_capture_ask(&event->mark, false);
	if (result != 0)
		return result;
	if (event->flags & CUDA_EVENT_DISABLE_TIMING || load_relaxed(&event->issued) == 0)
		return FAKE_INVALID_HANDLE;
	return 0;
}

cuda_result cuEventElapsedTime(float *ms, struct CUevent_st *start, struct CUevent_st *stop)
{
	cuda_result result;

	FAKE_ENTER(false);
	result = event_time_check(start);
	if (result == 0)
		result = event_time_check(stop);
	if (result == 0 && start->home.id != stop->home.id)
		result = FAKE_INVALID_HANDLE;
	if (result == 0)
		result = event_state(start);
	if (result == 0)
		result = event_state(stop);
	if (result != 0)
		return result;
	*ms = (float)((double)(int64_t)(load_relaxed(&stop->time_ns) -
					load_relaxed(&start->time_ns)) /
		      1e6);
	return 0;
}

/* ---- waiting --------------------------------------------------------------------------------- */

struct event_wait {
	struct CUevent_st *event;
	uint32_t issued;
};

static int wait_run(void *arg, struct CUstream_st *stream)
{
	const struct event_wait *wait = arg;

	/* Pairs with event_pass(). */
	while ((int32_t)(load_acquire(&wait->event->passed) - wait->issued) < 0 &&
	       fake_home_exists(&wait->event->home))
		fake_stream_pass(stream, fake_clock(), WAIT_NS);
	return 0;
}

/* For what is recorded when the work is made: a graph does not wait for later ones. */
static bool wait_work(struct CUevent_st *event, struct fake_work *work)
{
	struct event_wait *wait = malloc(sizeof(*wait));

	if (wait == NULL)
		return false;
	*wait = (struct event_wait){ .event = event, .issued = load_relaxed(&event->issued) };
	*work = (struct fake_work){ .run = wait_run, .release = free, .arg = wait };
	return true;
}

cuda_result cuStreamWaitEvent(struct CUstream_st *handle, struct CUevent_st *event,
			      unsigned int flags)
{
	struct CUstream_st *stream;
	struct fake_work work;
	bool is_captured;
	cuda_result result;

	FAKE_ENTER(false);
	result = event_check(event);
	if (result == 0)
		result = fake_stream_get(handle, &stream);
	if (result != 0)
		return result;
	if (flags > CUDA_RECORD_EXTERNAL)
		return FAKE_INVALID_VALUE;
	if (fake_capture_has(&event->mark))
		return fake_capture_join(stream, &event->mark);
	result = fake_capture_use(stream, &is_captured);
	if (result != 0)
		return result;
	if (is_captured && flags != CUDA_RECORD_EXTERNAL)
		return fake_capture_isolation(stream);
	if (!wait_work(event, &work))
		return FAKE_OUT_OF_MEMORY;
	result = fake_stream_enqueue(handle, &work, CUDA_NODE_EVENT_WAIT);
	if (result != 0)
		free(work.arg);
	return result;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static cuda_result node_add(struct CUgraphNode_st **node, struct CUgraph_st *graph,
			    struct CUgraphNode_st *made)
{
	cuda_result result = made == NULL ? FAKE_OUT_OF_MEMORY : fake_graph_add(graph, made);

	if (result == 0)
		*node = made;
	else if (made != NULL)
		fake_node_drop(made);
	return result;
}

cuda_result cuGraphAddEventRecordNode(struct CUgraphNode_st **node, struct CUgraph_st *graph,
				      struct CUgraphNode_st *const *after, size_t count,
				      struct CUevent_st *event)
{
	cuda_result result;

	FAKE_ENTER(false);
	(void)after, (void)count; /* nodes run in the order in which they were added */
	result = event_check(event);
	return result != 0 ? result : node_add(node, graph, record_node(event));
}

cuda_result cuGraphAddEventWaitNode(struct CUgraphNode_st **node, struct CUgraph_st *graph,
				    struct CUgraphNode_st *const *after, size_t count,
				    struct CUevent_st *event)
{
	struct fake_work work;
	cuda_result result;

	FAKE_ENTER(false);
	(void)after, (void)count;
	result = event_check(event);
	if (result != 0)
		return result;
	if (!wait_work(event, &work))
		return FAKE_OUT_OF_MEMORY;
	return node_add(node, graph, fake_node_new(&work, NULL, CUDA_NODE_EVENT_WAIT));
}
