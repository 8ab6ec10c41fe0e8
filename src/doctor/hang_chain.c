/*
 * The graph: building, sorting, walking. Nothing here calls itself: chains may be as long as a job is large.
 */
#include "doctor/hang_chain.h"

#include <stdlib.h>
#include <string.h>

void hang_graph_init(struct hang_graph *graph, const struct hang_scene *scene)
{
	*graph = (struct hang_graph){ .scene = scene,
				      .node_count =
					      scene->job->comm_count + scene->job->seat_count };
}

void hang_graph_release(struct hang_graph *graph)
{
	free(graph->edges);
	free(graph->ends);
	free(graph->first_out);
	free(graph->first_in);
	free(graph->in);
	free(graph->queue);
	free(graph->marks);
	free(graph->is_told);
	free(graph->came_by);
	free(graph->sides);
	free(graph->splits);
	free(graph->is_split);
	*graph = (struct hang_graph){ .scene = NULL };
}

uint32_t hang_seat_node(const struct hang_scene *scene, uint32_t seat)
{
	return (uint32_t)scene->job->comm_count + seat;
}

bool hang_grow(struct hang_graph *graph, void *list, size_t count, size_t *room, size_t size)
{
	void *old, *grown;
	size_t wanted = *room ? 2 * *room : 64;

	if (graph->status != OK)
		return false;
	if (count < *room)
		return true;
	memcpy(&old, list, sizeof(old));
	grown = realloc(old, wanted * size);
	if (grown == NULL) {
		graph->status = ERR_NO_SPACE;
		return false;
	}
	memcpy(list, &grown, sizeof(grown));
	*room = wanted;
	return true;
}

void hang_edge_add(struct hang_graph *graph, struct hang_edge edge)
{
	if (hang_grow(graph, &graph->edges, graph->edge_count, &graph->edge_room, sizeof(edge)))
		graph->edges[graph->edge_count++] = edge;
}

struct hang_end *hang_end_add(struct hang_graph *graph, enum verdict_class class, uint32_t node,
			      uint32_t comm, uint32_t seat)
{
	const struct hang_scene *scene = graph->scene;
	struct hang_end *end = &graph->nowhere;

	if (hang_grow(graph, &graph->ends, graph->end_count, &graph->end_room, sizeof(*end)))
		end = &graph->ends[graph->end_count++];
	*end = (struct hang_end){ .class = class,
				  .node = node,
				  .comm = comm,
				  .seat = seat,
				  .peer = HANG_NOBODY,
				  .peer_comm_rank = -1,
				  .next = HANG_NOBODY,
				  .witness = node < scene->job->comm_count
						     ? scene->meetings[node].first
						     : node - (uint32_t)scene->job->comm_count,
				  .confidence = 1 };
	if (end->witness != HANG_NOBODY)
		end->flight = scene->seats[end->witness].front;
	return end;
}

/* What a seat's front is a part of. */
static uint32_t node_of_front(const struct hang_scene *scene, uint32_t seat)
{
	return scene->seats[seat].is_pair ? hang_seat_node(scene, seat)
					  : scene->job->seats[seat].comm;
}

static bool holds(const struct hang_scene *scene, uint32_t seat, enum hang_edge_kind kind)
{
	const struct hang_seat *of = &scene->seats[seat];

	return of->front != NULL && !of->is_over && of->age_ns >= scene->pause_ns &&
	       scene->meetings[scene->job->seats[seat].comm].level != HANG_MOVES &&
	       (kind == HANG_EDGE_NOT_CALLED || of->presence == HANG_INSIDE);
}

bool hang_held_elsewhere(struct hang_graph *graph, uint32_t node, uint32_t seat,
			 enum hang_edge_kind kind)
{
	const struct hang_scene *scene = graph->scene;
	const struct job *job = scene->job;
	const struct job_seat *of = &job->seats[seat];
	bool is_held = false;

	if (scene->processes[of->process].life != HANG_RUNS)
		return false;
	for (uint32_t s = job->first_seat[of->process]; s < job->first_seat[of->process + 1]; s++) {
		if (job->seats[s].rank != of->rank || !holds(scene, s, kind) ||
		    node_of_front(scene, s) == node)
			continue;
		hang_edge_add(graph, (struct hang_edge){ .from = node,
							 .to = node_of_front(scene, s),
							 .seat = seat,
							 .held_by = s,
							 .kind = (uint8_t)kind });
		is_held = true;
	}
	return is_held;
}

struct hang_end *hang_end_of_rank(struct hang_graph *graph, uint32_t node, uint32_t seat)
{
	const struct job_seat *of = &graph->scene->job->seats[seat];
	const struct hang_process *process = &graph->scene->processes[of->process];
	enum verdict_class class = VERDICT_NEVER_ISSUED;
	struct hang_end *end;

	if (process->life == HANG_DEAD)
		class = VERDICT_PROCESS_DEAD;
	else if (process->life == HANG_STOPPED)
		class = VERDICT_PROCESS_STOPPED;
	end = hang_end_add(graph, class, node, of->comm, seat);
	if (class == VERDICT_PROCESS_DEAD)
		end->confidence = process->is_dead_for_sure ? 0.99 : 0.75;
	else
		end->confidence = class == VERDICT_PROCESS_STOPPED ? 0.99 : 0.97;
	return end;
}

/* ---- groups ------------------------------------------------------------------------------------ */

/* How ends become one verdict. */
enum { BY_RANK = 1, BY_NODE = 2, BY_HOST = 4, BY_COMPONENT = 8 };

static unsigned int grouping(const struct hang_end *end)
{
	if (end->note == HANG_NOTE_CONNECTING)
		return BY_COMPONENT;
	switch (end->class) {
	case VERDICT_NEVER_ISSUED:
	case VERDICT_PROCESS_DEAD:
	case VERDICT_PROCESS_STOPPED:
	case VERDICT_NOT_LAUNCHED:
	case VERDICT_GPU_NOT_REACHED:
	case VERDICT_GPU_STUCK:
		return BY_RANK | BY_NODE | BY_HOST;
	case VERDICT_NETWORK_STUCK:
	case VERDICT_UNSEEN:
	case VERDICT_AGENT_DEAD:
	case VERDICT_STUCK:
		return BY_COMPONENT;
	default:
		return BY_NODE;
	}
}

static uint32_t group_of(const struct hang_graph *graph, uint32_t end)
{
	while (graph->ends[end].group != end) {
		graph->ends[end].group = graph->ends[graph->ends[end].group].group;
		end = graph->ends[end].group;
	}
	return end;
}

/* The same place was met before by `*last`: one group. */
static void unite(struct hang_graph *graph, uint32_t *last, uint32_t end)
{
	if (*last != HANG_NOBODY) {
		uint32_t a = group_of(graph, *last), b = group_of(graph, end);

		graph->ends[a > b ? a : b].group = a > b ? b : a;
	}
	*last = end;
}

struct places {
	uint32_t *by_rank, *by_node, *by_host, *by_component;
};

static uint32_t component_of(const struct hang_scene *scene, const struct hang_end *end)
{
	uint32_t seat = end->seat != HANG_NOBODY ? end->seat : end->witness;

	return scene->processes[scene->job->seats[seat].process].component;
}

static void group_end(struct hang_graph *graph, const struct places *places, uint32_t e)
{
	const struct hang_scene *scene = graph->scene;
	const struct hang_end *end = &graph->ends[e];
	unsigned int how = grouping(end);

	if (end->seat != HANG_NOBODY && how & BY_RANK)
		unite(graph, &places->by_rank[scene->job->seats[end->seat].rank], e);
	if (how & BY_NODE)
		unite(graph, &places->by_node[end->node], e);
	if (end->seat != HANG_NOBODY && how & BY_HOST) {
		uint32_t *last = &places->by_host[hang_rank(scene, end->seat)->host];

		/* Another job on the same host has nothing to do with it. */
		if (*last != HANG_NOBODY &&
		    component_of(scene, &graph->ends[*last]) != component_of(scene, end))
			*last = HANG_NOBODY;
		unite(graph, last, e);
	}
	if (how & BY_COMPONENT)
		unite(graph, &places->by_component[component_of(scene, end)], e);
}

static void forget(uint32_t *list, size_t count)
{
	memset(list, 0xff, count * sizeof(*list));
}

static void make_groups(struct hang_graph *graph)
{
	const struct job *job = graph->scene->job;
	size_t hosts = job->host_count + 1, processes = job->recording->count + 1;
	uint32_t *all =
		malloc((job->rank_count + graph->node_count + hosts + processes) * sizeof(*all));
	struct places places;

	if (all == NULL) {
		graph->status = ERR_NO_SPACE;
		return;
	}
	places.by_rank = all;
	places.by_node = places.by_rank + job->rank_count;
	places.by_host = places.by_node + graph->node_count;
	places.by_component = places.by_host + hosts;
	for (uint32_t e = 0; e < graph->end_count; e++)
		graph->ends[e].group = e;
	for (unsigned int class = 0; class <= VERDICT_STUCK; class ++) {
		forget(all, job->rank_count + graph->node_count + hosts + processes);
		for (uint32_t e = 0; e < graph->end_count; e++)
			if (graph->ends[e].class == (enum verdict_class) class)
				group_end(graph, &places, e);
	}
	for (uint32_t e = 0; e < graph->end_count; e++)
		graph->ends[e].group = group_of(graph, e);
	/* Backwards, so that each list begins with the first of its group. */
	for (uint32_t e = (uint32_t)graph->end_count; e-- > 0;) {
		struct hang_end *first = &graph->ends[graph->ends[e].group];

		if (first == &graph->ends[e])
			continue;
		graph->ends[e].next = first->next;
		first->next = e;
	}
	free(all);
}

/* ---- sorted edges ------------------------------------------------------------------------------ */

static int by_from(const void *one, const void *other)
{
	const struct hang_edge *a = one, *b = other;

	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	if (a->seat != b->seat)
		return a->seat < b->seat ? -1 : 1;
	return a->held_by < b->held_by ? -1 : a->held_by > b->held_by;
}

/* first[n] .. first[n + 1] is then what belongs to node n. */
static void add_up(uint32_t *first, size_t node_count)
{
	for (size_t n = 0; n < node_count; n++)
		first[n + 1] += first[n];
}

static void sort_edges(struct hang_graph *graph)
{
	size_t nodes = graph->node_count;

	if (graph->edge_count > 1)
		qsort(graph->edges, graph->edge_count, sizeof(*graph->edges), by_from);
	for (size_t i = 0; i < graph->edge_count; i++) {
		graph->first_out[graph->edges[i].from + 1]++;
		graph->first_in[graph->edges[i].to + 1]++;
	}
	add_up(graph->first_out, nodes);
	add_up(graph->first_in, nodes);
	for (size_t i = 0; i < graph->edge_count; i++)
		graph->in[graph->first_in[graph->edges[i].to]++] = (uint32_t)i;
	/* Filling moved each to the next one's begin: back again. */
	memmove(graph->first_in + 1, graph->first_in, nodes * sizeof(*graph->first_in));
	graph->first_in[0] = 0;
}

void hang_graph_seal(struct hang_graph *graph)
{
	size_t nodes = graph->node_count;

	graph->first_out = calloc(nodes + 2, sizeof(*graph->first_out));
	graph->first_in = calloc(nodes + 2, sizeof(*graph->first_in));
	graph->in = calloc(graph->edge_count + 1, sizeof(*graph->in));
	graph->queue = calloc(nodes + 1, sizeof(*graph->queue));
	graph->marks = calloc(nodes + 1, sizeof(*graph->marks));
	graph->is_told = calloc(nodes + 1, sizeof(*graph->is_told));
	graph->came_by = malloc((nodes + 1) * sizeof(*graph->came_by));
	if (!graph->first_out || !graph->first_in || !graph->in || !graph->queue || !graph->marks ||
	    !graph->is_told || !graph->came_by)
		graph->status = ERR_NO_SPACE;
	if (graph->status != OK)
		return;
	forget(graph->came_by, nodes + 1);
	sort_edges(graph);
	if (graph->end_count > 0)
		make_groups(graph);
}

/* ---- walks ------------------------------------------------------------------------------------- */

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

		if (mark == 0 || mark == walked)
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

			if (graph->marks[to] != 0 || graph->came_by[to] != HANG_NOBODY)
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
