/*
 * Graphs and events. A graph is the list of what was captured, in order; launching it enqueues all of that on the
 * stream again.
 */
#include <stdlib.h>
#include <string.h>

#include "common/order.h"
#include "tests/fake_gpu/fake_queue.h"

struct CUgraphExec_st {
	struct CUgraph_st graph;
};

struct CUevent_st {
	unsigned int flags;
	int references;
	uint32_t issued; /* enqueued records ... */
	uint32_t passed; /* ... and those that the stream has reached */
	bool is_captured;
	uint64_t time_ns;
};

/* ---- graphs ---------------------------------------------------------------------------------- */

cuda_result fake_graph_add(struct CUgraph_st *graph, struct fake_node *node)
{
	if (graph->count == graph->room) {
		size_t room = graph->room > 0 ? 2 * graph->room : 64;
		struct fake_node **nodes = realloc(graph->nodes, room * sizeof(struct fake_node *));

		if (nodes == NULL)
			return FAKE_OUT_OF_MEMORY;
		graph->nodes = nodes;
		graph->room = room;
	}
	graph->nodes[graph->count++] = node;
	return 0;
}

static void nodes_drop(struct CUgraph_st *graph)
{
	for (size_t i = 0; i < graph->count; i++)
		fake_node_drop(graph->nodes[i]);
	free(graph->nodes);
}

cuda_result cuGraphDestroy(struct CUgraph_st *graph)
{
	FAKE_ENTER(true);
	if (graph == NULL)
		return FAKE_INVALID_VALUE;
	nodes_drop(graph);
	free(graph);
	return 0;
}

cuda_result cuGraphInstantiateWithFlags(struct CUgraphExec_st **exec, struct CUgraph_st *graph,
					unsigned long long flags)
{
	struct CUgraphExec_st *made;

	FAKE_ENTER(true);
	if (graph == NULL || flags != 0)
		return FAKE_INVALID_VALUE;
	made = calloc(1, sizeof(*made));
	if (made == NULL)
		return FAKE_OUT_OF_MEMORY;
	for (size_t i = 0; i < graph->count; i++) {
		if (fake_graph_add(&made->graph, graph->nodes[i]) != 0) {
			nodes_drop(&made->graph);
			free(made);
			return FAKE_OUT_OF_MEMORY;
		}
		add_relaxed(&graph->nodes[i]->references, 1);
	}
	*exec = made;
	return 0;
}

cuda_result cuGraphLaunch(struct CUgraphExec_st *exec, struct CUstream_st *stream)
{
	FAKE_ENTER(true);
	if (exec == NULL || stream == NULL)
		return FAKE_INVALID_HANDLE;
	if (stream->capture != NULL)
		return FAKE_CAPTURE_UNSUPPORTED;
	for (size_t i = 0; i < exec->graph.count; i++) {
		add_relaxed(&exec->graph.nodes[i]->references, 1);
		if (fake_stream_push(stream, exec->graph.nodes[i]) != 0) {
			fake_node_drop(exec->graph.nodes[i]);
			return FAKE_OUT_OF_MEMORY;
		}
	}
	return 0;
}

cuda_result cuGraphExecDestroy(struct CUgraphExec_st *exec)
{
	FAKE_ENTER(true);
	if (exec == NULL)
		return FAKE_INVALID_VALUE;
	nodes_drop(&exec->graph);
	free(exec);
	return 0;
}

/* ---- events ---------------------------------------------------------------------------------- */

cuda_result cuEventCreate(struct CUevent_st **event, unsigned int flags)
{
	struct CUevent_st *made;

	FAKE_ENTER(true);
	made = calloc(1, sizeof(*made));
	if (made == NULL)
		return FAKE_OUT_OF_MEMORY;
	made->flags = flags;
	made->references = 1;
	*event = made;
	return 0;
}

static void event_drop(void *arg)
{
	struct CUevent_st *event = arg;

	if (__atomic_sub_fetch(&event->references, 1, __ATOMIC_ACQ_REL) == 0)
		free(event);
}

cuda_result cuEventDestroy_v2(struct CUevent_st *event)
{
	FAKE_ENTER(true);
	if (event == NULL)
		return FAKE_INVALID_HANDLE;
	event_drop(event);
	return 0;
}

static void event_issue(void *arg)
{
	struct CUevent_st *event = arg;

	add_relaxed(&event->issued, 1);
}

static int event_pass(void *arg, struct CUstream_st *stream)
{
	struct CUevent_st *event = arg;

	store_relaxed(&event->time_ns, fake_stream_time(stream));
	/* The time is written before the count. Pairs with event_time(). */
	add_release(&event->passed, 1);
	return 0;
}

static cuda_result event_record(struct CUevent_st *event, struct CUstream_st *stream,
				unsigned int flags)
{
	struct fake_work work = { .run = event_pass, .release = event_drop, .arg = event };
	struct fake_node *node;
	cuda_result result;

	if (event == NULL || stream == NULL)
		return FAKE_INVALID_HANDLE;
	/* Captured without the flag it is a dependency without a time. */
	event->is_captured = stream->capture != NULL && !(flags & CUDA_EVENT_RECORD_EXTERNAL);
	if (event->is_captured)
		return 0;
	node = fake_node_new(&work, event_issue);
	if (node == NULL)
		return FAKE_OUT_OF_MEMORY;
	add_relaxed(&event->references, 1);
	result = fake_stream_put(stream, node);
	if (result != 0)
		fake_node_drop(node);
	return result;
}

cuda_result cuEventRecord(struct CUevent_st *event, struct CUstream_st *stream)
{
	FAKE_ENTER(true);
	return event_record(event, stream, CUDA_EVENT_DEFAULT);
}

cuda_result cuEventRecordWithFlags(struct CUevent_st *event, struct CUstream_st *stream,
				   unsigned int flags)
{
	FAKE_ENTER(true);
	return event_record(event, stream, flags);
}

bool fake_event_is_reached(const struct CUevent_st *event)
{
	/* Pairs with event_pass(). */
	return load_acquire(&event->passed) == load_relaxed(&event->issued);
}

static cuda_result event_time(const struct CUevent_st *event, uint64_t *time_ns)
{
	uint32_t issued, passed;

	if (event == NULL || event->is_captured || event->flags & CUDA_EVENT_DISABLE_TIMING)
		return FAKE_INVALID_HANDLE;
	issued = load_relaxed(&event->issued);
	passed = load_acquire(&event->passed);
	if (issued == 0)
		return FAKE_INVALID_HANDLE;
	if (passed != issued)
		return CUDA_NOT_READY;
	*time_ns = load_relaxed(&event->time_ns);
	return 0;
}

cuda_result cuEventElapsedTime(float *ms, struct CUevent_st *start, struct CUevent_st *stop)
{
	uint64_t from, to;
	cuda_result result;

	FAKE_ENTER(true);
	result = event_time(start, &from);
	if (result == 0)
		result = event_time(stop, &to);
	if (result != 0)
		return result;
	*ms = (float)((double)(int64_t)(to - from) / 1e6);
	return 0;
}
