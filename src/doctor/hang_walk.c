/* Walks over the graph. Nothing here calls itself: chains may be as long as a job is large. */
#include <string.h>

#include "doctor/hang_chain.h"

size_t hang_graph_reach(struct hang_graph *graph, size_t count, uint8_t mark)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (graph->marks[graph->queue[i]] != mark) {
			graph->marks[graph->queue[i]] = mark;
			graph->queue[kept++] = graph->queue[i];
		}
	for (size_t at = 0; at < kept; at++) {
		uint32_t node = graph->queue[at];

		for (uint32_t i = graph->first_in[node]; i < graph->first_in[node + 1]; i++) {
			uint32_t from = graph->edges[graph->in[i]].from;

			if (graph->marks[from] != mark) {
				graph->marks[from] = mark;
				graph->queue[kept++] = from;
			}
		}
	}
	return kept;
}

bool hang_node_hangs(const struct hang_scene *scene, uint32_t node)
{
	uint32_t comms = (uint32_t)scene->job->comm_count;

	if (node < comms)
		return scene->meetings[node].level == HANG_HANGS &&
		       scene->meetings[node].is_collective &&
		       scene->meetings[node].in_ns >= scene->hang_ns;
	return scene->seats[node - comms].is_pair &&
	       scene->seats[node - comms].in_ns >= scene->hang_ns &&
	       scene->meetings[scene->job->seats[node - comms].comm].level == HANG_HANGS;
}

/* The way on from a node: its first edge into a node without a mark but `walked`. */
static uint32_t way_on(const struct hang_graph *graph, uint32_t node, uint8_t walked)
{
	for (uint32_t i = graph->first_out[node]; i < graph->first_out[node + 1]; i++) {
		uint8_t mark = graph->marks[graph->edges[i].to];

		if (graph->edges[i].kind != HANG_EDGE_MAYBE && (mark == 0 || mark == walked))
			return i;
	}
	return HANG_NOBODY;
}

enum { WALKED = 254, BARREN = 255, SHORTEN_MAX = 16 };

/* From this node on: the last edge before a node comes again; HANG_NOBODY: it leads nowhere. */
static uint32_t walk_round(struct hang_graph *graph, uint32_t node)
{
	uint32_t edge = HANG_NOBODY;

	while (graph->marks[node] == 0) {
		graph->marks[node] = WALKED;
		edge = way_on(graph, node, WALKED);
		if (edge == HANG_NOBODY)
			return HANG_NOBODY;
		node = graph->edges[edge].to;
	}
	return edge;
}

/* It led nowhere: nobody needs to go there again. */
static void give_up(struct hang_graph *graph, uint32_t node)
{
	uint32_t edge;

	do {
		edge = way_on(graph, node, WALKED);
		graph->marks[node] = BARREN;
		node = edge == HANG_NOBODY ? node : graph->edges[edge].to;
	} while (edge != HANG_NOBODY);
}

static void replace_marks(struct hang_graph *graph, uint8_t old, uint8_t new)
{
	for (size_t n = 0; n < graph->node_count; n++)
		if (graph->marks[n] == old)
			graph->marks[n] = new;
}

/* The shortest way from a node back to itself, in edges; 0: more than `less` of them. */
static size_t shortest_round(struct hang_graph *graph, uint32_t start, uint32_t *edges, size_t less)
{
	size_t seen = 0, count = 0;
	uint32_t node = start;

	graph->queue[seen++] = start;
	for (size_t at = 0; at < seen && graph->came_by[start] == HANG_NOBODY; at++) {
		node = graph->queue[at];
		for (uint32_t i = graph->first_out[node]; i < graph->first_out[node + 1]; i++) {
			uint32_t to = graph->edges[i].to;

			if (graph->marks[to] != 0 || graph->came_by[to] != HANG_NOBODY ||
			    graph->edges[i].kind == HANG_EDGE_MAYBE)
				continue;
			graph->came_by[to] = i;
			if (to != start)
				graph->queue[seen++] = to;
		}
	}
	node = start;
	while (graph->came_by[start] != HANG_NOBODY) {
		uint32_t edge = graph->came_by[node];

		if (count < less)
			edges[less - 1 - count] = edge;
		count++;
		node = graph->edges[edge].from;
		if (node == start)
			break;
	}
	for (size_t i = 0; i < seen; i++)
		graph->came_by[graph->queue[i]] = HANG_NOBODY;
	if (count > less)
		return 0;
	memmove(edges, edges + less - count, count * sizeof(*edges));
	return count;
}

/* A circle was found: perhaps there is a shorter one through one of its nodes. */
static size_t shorten(struct hang_graph *graph, uint32_t *edges, size_t count)
{
	uint32_t nodes[SHORTEN_MAX], found[SHORTEN_MAX];
	size_t tries = count < SHORTEN_MAX ? count : SHORTEN_MAX;

	for (size_t i = 0; i < tries; i++)
		nodes[i] = graph->edges[edges[i]].from;
	for (size_t i = 0; i < tries; i++) {
		size_t less = count - 1 < SHORTEN_MAX ? count - 1 : SHORTEN_MAX;
		size_t length = shortest_round(graph, nodes[i], found, less);

		if (length == 0)
			continue;
		memcpy(edges, found, length * sizeof(*edges));
		count = length;
	}
	return count;
}

size_t hang_graph_circle(struct hang_graph *graph, uint32_t *edges, size_t room)
{
	for (uint32_t start = 0; start < graph->node_count; start++) {
		uint32_t last, node, edge;
		size_t count = 0;

		if (graph->marks[start] != 0 || !hang_node_hangs(graph->scene, start))
			continue;
		last = walk_round(graph, start);
		if (last == HANG_NOBODY) {
			give_up(graph, start);
			continue;
		}
		node = graph->edges[last].to;
		do {
			edge = way_on(graph, node, WALKED);
			if (count < room)
				edges[count] = edge;
			count++;
			node = graph->edges[edge].to;
		} while (node != graph->edges[last].to);
		replace_marks(graph, WALKED, 0);
		return shorten(graph, edges, count < room ? count : room);
	}
	return 0;
}
