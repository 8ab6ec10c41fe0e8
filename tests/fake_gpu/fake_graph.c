/*
 * A graph is the list of what was captured, in order; launching it enqueues all of that on the stream again.
 */
#include <stdlib.h>
#include <string.h>

#include "common/order.h"
#include "tests/fake_gpu/fake_control.h"
#include "tests/fake_gpu/fake_queue.h"

enum { INSTANTIATE_DEVICE_LAUNCH = 4, INSTANTIATE_FLAGS_MAX = 15, UPDATE_TOPOLOGY_CHANGED = 2 };

#define FAKE_DECLARE(type, member, symbol, parameters) EXPORTED type symbol parameters;
FAKE_CONTROL_FUNCTIONS(FAKE_DECLARE)
#undef FAKE_DECLARE

struct CUgraphExec_st {
	struct CUgraph_st graph;
};

cuda_result fake_graph_add(struct CUgraph_st *graph, struct CUgraphNode_st *node)
{
	if (graph->count == graph->room) {
		size_t room = graph->room > 0 ? 2 * graph->room : 64;
		struct CUgraphNode_st **nodes =
			realloc(graph->nodes, room * sizeof(struct CUgraphNode_st *));

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

void fake_graph_free(struct CUgraph_st *graph)
{
	nodes_drop(graph);
	free(graph);
}

static cuda_result nodes_copy(struct CUgraph_st *to, const struct CUgraph_st *from)
{
	for (size_t i = 0; i < from->count; i++) {
		if (fake_graph_add(to, from->nodes[i]) != 0) {
			nodes_drop(to);
			return FAKE_OUT_OF_MEMORY;
		}
		add_relaxed(&from->nodes[i]->references, 1);
	}
	return 0;
}

cuda_result cuGraphCreate(struct CUgraph_st **graph, unsigned int flags)
{
	struct CUgraph_st *made;

	FAKE_ENTER(false);
	if (flags != 0)
		return FAKE_INVALID_VALUE;
	made = calloc(1, sizeof(*made));
	if (made == NULL)
		return FAKE_OUT_OF_MEMORY;
	*graph = made;
	return 0;
}

cuda_result cuGraphDestroy(struct CUgraph_st *graph)
{
	FAKE_ENTER(false);
	if (graph == NULL)
		return FAKE_INVALID_VALUE;
	fake_graph_free(graph);
	return 0;
}

cuda_result cuGraphGetNodes(struct CUgraph_st *graph, struct CUgraphNode_st **nodes, size_t *count)
{
	FAKE_ENTER(false);
	if (graph == NULL)
		return FAKE_INVALID_VALUE;
	for (size_t i = 0; nodes != NULL && i < graph->count && i < *count; i++)
		nodes[i] = graph->nodes[i];
	*count = graph->count;
	return 0;
}

cuda_result cuGraphNodeGetType(struct CUgraphNode_st *node, int *type)
{
	FAKE_ENTER(false);
	if (node == NULL)
		return FAKE_INVALID_VALUE;
	*type = node->type;
	return 0;
}

/* ---- conditional bodies ---------------------------------------------------------------------- */

static int nothing_run(void *arg, struct CUstream_st *stream)
{
	(void)arg, (void)stream;
	return 0;
}

int fake_graph_conditional(struct CUgraph_st *graph, struct CUgraph_st **body)
{
	struct fake_work work = { .run = nothing_run };
	struct CUgraphNode_st *node = fake_node_new(&work, NULL, FAKE_NODE_CONDITIONAL);

	if (node == NULL)
		return FAKE_OUT_OF_MEMORY;
	node->body = calloc(1, sizeof(*node->body));
	if (node->body == NULL || fake_graph_add(graph, node) != 0) {
		fake_node_drop(node);
		return FAKE_OUT_OF_MEMORY;
	}
	*body = node->body;
	return 0;
}

static bool has_events(const struct CUgraph_st *graph)
{
	for (size_t i = 0; i < graph->count; i++) {
		if (graph->nodes[i]->type == CUDA_NODE_EVENT_WAIT ||
		    graph->nodes[i]->type == CUDA_NODE_EVENT_RECORD)
			return true;
	}
	return false;
}

static bool has_events_in_bodies(const struct CUgraph_st *graph)
{
	for (size_t i = 0; i < graph->count; i++) {
		const struct CUgraph_st *body = graph->nodes[i]->body;

		if (body != NULL && (has_events(body) || has_events_in_bodies(body)))
			return true;
	}
	return false;
}

/* ---- instances ------------------------------------------------------------------------------- */

cuda_result cuGraphInstantiateWithFlags(struct CUgraphExec_st **exec, struct CUgraph_st *graph,
					unsigned long long flags)
{
	struct CUgraphExec_st *made;

	FAKE_ENTER(true);
	if (graph == NULL || flags > INSTANTIATE_FLAGS_MAX || has_events_in_bodies(graph) ||
	    (flags & INSTANTIATE_DEVICE_LAUNCH && has_events(graph)))
		return FAKE_INVALID_VALUE;
	made = calloc(1, sizeof(*made));
	if (made == NULL)
		return FAKE_OUT_OF_MEMORY;
	if (nodes_copy(&made->graph, graph) != 0) {
		free(made);
		return FAKE_OUT_OF_MEMORY;
	}
	*exec = made;
	return 0;
}

cuda_result cuGraphExecUpdate_v2(struct CUgraphExec_st *exec, struct CUgraph_st *graph,
				 struct fake_update *update)
{
	struct CUgraph_st now = { 0 };
	bool is_same;

	FAKE_ENTER(true);
	if (exec == NULL || graph == NULL)
		return FAKE_INVALID_VALUE;
	is_same = exec->graph.count == graph->count;
	for (size_t i = 0; i < graph->count && is_same; i++)
		is_same = exec->graph.nodes[i]->type == graph->nodes[i]->type;
	*update = (struct fake_update){ .reason = is_same ? 0 : UPDATE_TOPOLOGY_CHANGED };
	if (!is_same)
		return FAKE_UPDATE_FAILURE;
	if (nodes_copy(&now, graph) != 0)
		return FAKE_OUT_OF_MEMORY;
	nodes_drop(&exec->graph);
	exec->graph = now;
	return 0;
}

/* A conditional body runs once. */
static cuda_result nodes_push(const struct CUgraph_st *graph, struct CUstream_st *stream)
{
	cuda_result result = 0;

	for (size_t i = 0; i < graph->count && result == 0; i++) {
		struct CUgraphNode_st *node = graph->nodes[i];

		add_relaxed(&node->references, 1);
		result = fake_stream_push(stream, node);
		if (result != 0)
			fake_node_drop(node);
		else if (node->body != NULL)
			result = nodes_push(node->body, stream);
	}
	return result;
}

cuda_result cuGraphLaunch(struct CUgraphExec_st *exec, struct CUstream_st *handle)
{
	struct CUstream_st *stream;
	cuda_result result;
	bool is_captured;

	FAKE_ENTER(false);
	if (exec == NULL)
		return FAKE_INVALID_HANDLE;
	result = fake_stream_get(handle, &stream);
	if (result == 0)
		result = fake_capture_use(stream, &is_captured);
	if (result != 0)
		return result;
	return is_captured ? FAKE_CAPTURE_UNSUPPORTED : nodes_push(&exec->graph, stream);
}

cuda_result cuGraphExecDestroy(struct CUgraphExec_st *exec)
{
	FAKE_ENTER(false);
	if (exec == NULL)
		return FAKE_INVALID_VALUE;
	nodes_drop(&exec->graph);
	free(exec);
	return 0;
}
