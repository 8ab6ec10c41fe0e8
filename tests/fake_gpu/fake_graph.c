/*
 * A graph is the list of what was captured, in order; launching it enqueues all of that on the
 * stream again.
 */
#include <stdlib.h>
#include <string.h>

#include "common/order.h"
#include "tests/fake_gpu/fake_queue.h"

struct CUgraphExec_st {
	struct CUgraph_st graph;
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

cuda_result cuGraphLaunch(struct CUgraphExec_st *exec, struct CUstream_st *handle)
{
	struct CUstream_st *stream;
	cuda_result result;

	FAKE_ENTER(true);
	if (exec == NULL)
		return FAKE_INVALID_HANDLE;
	result = fake_stream_get(handle, &stream);
	if (result != 0)
		return result;
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
