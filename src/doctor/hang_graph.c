/* The graph of what waits for what: nodes, edges and ends are added, then sorted and grouped, then walked. */
#include "doctor/hang_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/union_find.h"

/* ---- nodes, edges, ends ------------------------------------------------------------------------ */

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

bool hang_grow(struct hang_graph *graph, void *list, size_t count, size_t size)
{
	if (graph->status == OK && !list_grow(list, count, size))
		graph->status = ERR_NO_SPACE;
	return graph->status == OK;
}

void hang_edge_add(struct hang_graph *graph, struct hang_edge edge)
{
	if (hang_grow(graph, &graph->edges, graph->edge_count, sizeof(edge)))
		graph->edges[graph->edge_count++] = edge;
}

uint32_t hang_node_of_front(const struct hang_scene *scene, uint32_t seat)
{
	return scene->seats[seat].is_pair ? hang_seat_node(scene, seat)
					  : scene->job->seats[seat].comm;
}

static bool holds(const struct hang_scene *scene, uint32_t seat, enum hang_edge_kind kind)
{
	const struct hang_seat *of = &scene->seats[seat];
	const struct hang_match *match = &scene->matches[scene->job->seats[seat].comm];

	/* If all ranks called the same, it is most likely over, unless it was their last call; if no GPU
	 * has started it, something earlier holds them up. */
	if ((match->unjudged == HANG_ALL_CALLED && !match->is_resting) ||
	    match->unjudged == HANG_NONE_STARTED)
		return false;
	return of->front != NULL && !of->is_over && of->age_ns >= scene->pause_ns &&
	       match->level != HANG_MOVES &&
	       (kind == HANG_EDGE_NOT_CALLED || of->presence == HANG_INSIDE);
}

/* One that was not placed can be any other of its process that is not in its communicator. */
static bool may_be_same(const struct job *job, uint32_t unplaced, uint32_t other)
{
	const struct job_seat *a = &job->seats[unplaced], *b = &job->seats[other];

	return job->ranks[a->rank].is_unplaced && a->comm != b->comm;
}

/* Is a seat of its process stuck in something else that may be this rank's? */
static bool may_wait(const struct hang_scene *scene, uint32_t node, uint32_t seat)
{
	const struct job *job = scene->job;
	uint32_t process = job->seats[seat].process;

	for (uint32_t s = job->first_seat[process]; s < job->first_seat[process + 1]; s++)
		if ((may_be_same(job, s, seat) || may_be_same(job, seat, s)) &&
		    holds(scene, s, HANG_EDGE_NOT_CALLED) && hang_node_of_front(scene, s) != node)
			return true;
	return false;
}

struct hang_end *hang_end_add(struct hang_graph *graph, enum verdict_class class, uint32_t node,
			      uint32_t comm, uint32_t seat)
{
	const struct hang_scene *scene = graph->scene;
	struct hang_end *end = &graph->nowhere;

	if (hang_grow(graph, &graph->ends, graph->end_count, sizeof(*end)))
		end = &graph->ends[graph->end_count++];
	*end = (struct hang_end){ .class = class,
				  .node = node,
				  .comm = comm,
				  .seat = seat,
				  .peer = HANG_NOBODY,
				  .peer_comm_rank = -1,
				  .next = HANG_NOBODY,
				  .witness = node < scene->job->comm_count
						     ? scene->matches[node].first
						     : node - (uint32_t)scene->job->comm_count,
				  .confidence = 1 };
	if (end->witness != HANG_NOBODY)
		end->flight = scene->seats[end->witness].front;
	if (class == VERDICT_NEVER_ISSUED || class == VERDICT_NOT_LAUNCHED ||
	    class == VERDICT_GPU_NOT_REACHED)
		end->may_wait = seat != HANG_NOBODY && may_wait(scene, node, seat);
	return end;
}

static void add_held(struct hang_graph *graph, uint32_t node, uint32_t seat, uint32_t held_by,
		     enum hang_edge_kind kind)
{
	hang_edge_add(graph, (struct hang_edge){ .from = node,
						 .to = hang_node_of_front(graph->scene, held_by),
						 .seat = seat,
						 .held_by = held_by,
						 .kind = (uint8_t)kind });
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
		if (!holds(scene, s, kind) || hang_node_of_front(scene, s) == node)
			continue;
		if (of->rank == job->seats[s].rank) {
			add_held(graph, node, seat, s, kind);
			is_held = true;
		} else if (may_be_same(job, seat, s) || may_be_same(job, s, seat)) {
			/* Guesses make no cycles; of two there are too many. */
			add_held(graph, node, seat, s, HANG_EDGE_MAYBE);
			is_held |= !job->ranks[job->seats[s].rank].is_unplaced;
		}
	}
	return is_held;
}

/* If launches are not recorded: calls this close together were launched together. */
#define TOGETHER_NS UINT64_C(100000)

bool hang_is_called_before(const struct recording_flight *one, const struct recording_flight *other)
{
	bool is_same_comm = one->op.comm == other->op.comm;

	if (one->op.launch_ns != 0 && other->op.launch_ns != 0)
		return one->op.launch_ns < other->op.launch_ns;
	return flight_since_ns(one) + (is_same_comm ? TOGETHER_NS : 0) < flight_since_ns(other);
}

/* Is the front of this seat the collective its communicator is in, and was it called earlier? */
static bool is_front_before(const struct hang_scene *scene, uint32_t s,
			    const struct recording_flight *flight)
{
	const struct hang_seat *of = &scene->seats[s];
	const struct hang_match *match = &scene->matches[scene->job->seats[s].comm];

	return match->unjudged == HANG_JUDGED && hang_is_called_before(of->front, flight) &&
	       (of->is_pair || hang_is_in_match(scene, s, match));
}

/* Did this seat make an earlier call that may not be over? */
static bool is_any_before(const struct hang_scene *scene, uint32_t s,
			  const struct recording_flight *flight)
{
	const struct recording_flight *flights = hang_flights(scene, s);

	for (size_t i = 0; i < scene->seats[s].flight_count; i++)
		if (hang_flight_kind(scene, s, i) == FLIGHT_UNSEEN &&
		    hang_is_called_before(&flights[i], flight) &&
		    !hang_has_passed(scene, s, &flights[i]))
			return true;
	return false;
}

static bool is_open_before(const struct hang_seat *of, const struct recording_flight *flight)
{
	return of->front != NULL && hang_is_called_before(of->front, flight);
}

bool hang_held_before(struct hang_graph *graph, uint32_t node, uint32_t seat,
		      const struct recording_flight *flight)
{
	const struct hang_scene *scene = graph->scene;
	const struct job *job = scene->job;
	const struct job_seat *of = &job->seats[seat];
	bool is_held = false;

	if (flight->op.state == OP_ISSUED || hang_sees_kernels(scene, seat, &flight->op) ||
	    hang_has_worked(flight) || scene->processes[of->process].life != HANG_RUNS)
		return false;
	for (uint32_t s = job->first_seat[of->process]; s < job->first_seat[of->process + 1]; s++) {
		const struct hang_seat *other = &scene->seats[s];
		bool is_front;

		if (job->seats[s].rank != of->rank || other->is_over ||
		    scene->matches[job->seats[s].comm].level == HANG_MOVES ||
		    (other->front == NULL && !scene->matches[job->seats[s].comm].is_collective) ||
		    hang_node_of_front(scene, s) == node)
			continue;
		is_front = other->front != NULL && is_front_before(scene, s, flight);
		if (!is_front && (s == seat || !(is_any_before(scene, s, flight) ||
						 is_open_before(other, flight))))
			continue;
		add_held(graph, node, seat, s,
			 is_front ? HANG_EDGE_CALLED_BEFORE : HANG_EDGE_MAYBE);
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
		end->confidence =
			process->is_dead_for_sure && !process->has_died_waiting ? 0.99 : 0.75;
	else
		end->confidence = class == VERDICT_PROCESS_STOPPED ? 0.99 : 0.97;
	return end;
}

/* ---- ends that become one verdict ------------------------------------------------------------- */

/* How ends become one verdict. */
enum { BY_RANK = 1, BY_NODE = 2, BY_HOST = 4, BY_COMPONENT = 8 };

static unsigned int grouping_of(const struct hang_end *end)
{
	if (end->note == HANG_NOTE_CONNECTING)
		return BY_COMPONENT;
	if (end->may_wait)
		return BY_NODE;
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
	case VERDICT_BLIND:
		return BY_COMPONENT;
	default:
		return BY_NODE;
	}
}

struct places {
	uint32_t *parents; /* of ends */
	/* The last end of each place; HANG_NOBODY: none. */
	uint32_t *by_rank, *by_node, *by_host, *by_component;
};

/* `*last` is an earlier end of the same place: one group. */
static void unite(const struct places *places, uint32_t *last, uint32_t end)
{
	if (*last != HANG_NOBODY)
		union_find_join(places->parents, *last, end);
	*last = end;
}

static uint32_t component_of(const struct hang_scene *scene, const struct hang_end *end)
{
	uint32_t seat = end->seat != HANG_NOBODY ? end->seat : end->witness;

	return scene->processes[scene->job->seats[seat].process].component;
}

static void group_end(struct hang_graph *graph, const struct places *places, uint32_t e)
{
	const struct hang_scene *scene = graph->scene;
	const struct hang_end *end = &graph->ends[e];
	unsigned int how = grouping_of(end);

	if (end->seat != HANG_NOBODY && how & BY_RANK)
		unite(places, &places->by_rank[scene->job->seats[end->seat].rank], e);
	if (how & BY_NODE)
		unite(places, &places->by_node[end->node], e);
	if (end->seat != HANG_NOBODY && how & BY_HOST) {
		uint32_t *last = &places->by_host[hang_rank(scene, end->seat)->host];

		/* Another job on the same host is unrelated. */
		if (*last != HANG_NOBODY &&
		    component_of(scene, &graph->ends[*last]) != component_of(scene, end))
			*last = HANG_NOBODY;
		unite(places, last, e);
	}
	if (how & BY_COMPONENT)
		unite(places, &places->by_component[component_of(scene, end)], e);
}

static void fill_with_nobody(uint32_t *list, size_t count)
{
	memset(list, 0xff, count * sizeof(*list));
}

static void make_groups(struct hang_graph *graph)
{
	const struct job *job = graph->scene->job;
	size_t hosts = job->host_count + 1, processes = job->recording->count + 1;
	uint32_t *all = malloc(
		(job->rank_count + graph->node_count + hosts + processes + graph->end_count) *
		sizeof(*all));
	struct places places;

	if (all == NULL) {
		graph->status = ERR_NO_SPACE;
		return;
	}
	places.by_rank = all;
	places.by_node = places.by_rank + job->rank_count;
	places.by_host = places.by_node + graph->node_count;
	places.by_component = places.by_host + hosts;
	places.parents = places.by_component + processes;
	union_find_init(places.parents, (uint32_t)graph->end_count);
	for (unsigned int class = 0; class < VERDICT_CLASSES; class ++) {
		fill_with_nobody(all, job->rank_count + graph->node_count + hosts + processes);
		for (uint32_t e = 0; e < graph->end_count; e++)
			if (graph->ends[e].class == (enum verdict_class) class)
				group_end(graph, &places, e);
	}
	for (uint32_t e = 0; e < graph->end_count; e++)
		graph->ends[e].group = union_find_root(places.parents, e);
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

	return ORDER(a->from, b->from) ?: ORDER(a->seat, b->seat) ?: ORDER(a->held_by, b->held_by);
}

/* first[n] .. first[n + 1] then belongs to node n. */
static void sum_degrees(uint32_t *first, size_t node_count)
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
	sum_degrees(graph->first_out, nodes);
	sum_degrees(graph->first_in, nodes);
	for (size_t i = 0; i < graph->edge_count; i++)
		graph->in[graph->first_in[graph->edges[i].to]++] = (uint32_t)i;
	/* Filling moved each start to the start of the next one: restore them. */
	memmove(graph->first_in + 1, graph->first_in, nodes * sizeof(*graph->first_in));
	graph->first_in[0] = 0;
}

/*
 * Sends and Recvs of which only the calls are known stand for all that their seat called since. If a rank has not
 * started a collective because of them, the later ones among them wait for it in turn: this is no cycle.
 */
static void open_own_rounds(struct hang_graph *graph)
{
	const struct job_seat *seats = graph->scene->job->seats;

	for (uint32_t n = (uint32_t)graph->scene->job->comm_count; n < graph->node_count; n++)
		for (uint32_t o = graph->first_out[n]; o < graph->first_out[n + 1]; o++) {
			struct hang_edge *out = &graph->edges[o];

			for (uint32_t i = graph->first_in[n]; i < graph->first_in[n + 1]; i++) {
				const struct hang_edge *in = &graph->edges[graph->in[i]];

				if (in->from == out->to && out->before == NULL &&
				    out->kind == HANG_EDGE_CALLED_BEFORE &&
				    seats[in->seat].rank == seats[out->seat].rank)
					out->kind = HANG_EDGE_MAYBE;
			}
		}
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
	fill_with_nobody(graph->came_by, nodes + 1);
	sort_edges(graph);
	open_own_rounds(graph);
	if (graph->end_count > 0)
		make_groups(graph);
}

/* ---- walks: none is recursive, a chain may be as long as the job has ranks ---------------------- */

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
		return scene->matches[node].level == HANG_HANGS &&
		       scene->matches[node].is_collective &&
		       scene->matches[node].in_ns >= scene->hang_ns;
	return scene->seats[node - comms].is_pair &&
	       scene->seats[node - comms].in_ns >= scene->hang_ns &&
	       scene->matches[scene->job->seats[node - comms].comm].level == HANG_HANGS;
}

enum { WALKED = 254, BARREN = 255, SHORTEN_MAX = 16 };

/* From this edge of a node on, the first one to a node that is unmarked or walked; HANG_NOBODY: none. */
static uint32_t way_on(const struct hang_graph *graph, uint32_t node, uint32_t edge)
{
	for (; edge < graph->first_out[node + 1]; edge++) {
		uint8_t mark = graph->marks[graph->edges[edge].to];

		if (graph->edges[edge].kind != HANG_EDGE_MAYBE && (mark == 0 || mark == WALKED))
			return edge;
	}
	return HANG_NOBODY;
}

/*
 * Walks from a node until one repeats, and returns that; HANG_NOBODY: no cycle can be reached. Dead ends are left
 * the way they were entered, and not visited again. queue[0 .. *length - 1] is the path, came_by[] the edge by
 * which each of its nodes was left.
 */
static uint32_t walk_round(struct hang_graph *graph, uint32_t start, size_t *length)
{
	size_t depth = 0;

	graph->queue[depth++] = start;
	graph->came_by[start] = graph->first_out[start];
	graph->marks[start] = WALKED;
	while (depth > 0) {
		uint32_t node = graph->queue[depth - 1], to;

		graph->came_by[node] = way_on(graph, node, graph->came_by[node]);
		if (graph->came_by[node] == HANG_NOBODY) {
			graph->marks[node] = BARREN;
			depth--;
			continue;
		}
		to = graph->edges[graph->came_by[node]].to;
		if (graph->marks[to] == WALKED) {
			*length = depth;
			return to;
		}
		graph->marks[to] = WALKED;
		graph->came_by[to] = graph->first_out[to];
		graph->queue[depth++] = to;
	}
	return HANG_NOBODY;
}

/* The shortest path from a node back to itself, in edges; 0: longer than `less`. */
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

/* A cycle was found: there may be a shorter one through one of its nodes. */
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
		uint32_t again, node;
		size_t length, count = 0;

		if (graph->marks[start] != 0 || !hang_node_hangs(graph->scene, start))
			continue;
		again = walk_round(graph, start, &length);
		if (again == HANG_NOBODY)
			continue;
		node = again;
		do {
			if (count < room)
				edges[count] = graph->came_by[node];
			count++;
			node = graph->edges[graph->came_by[node]].to;
		} while (node != again);
		for (size_t i = 0; i < length; i++) {
			graph->marks[graph->queue[i]] = 0;
			graph->came_by[graph->queue[i]] = HANG_NOBODY;
		}
		return shorten(graph, edges, count < room ? count : room);
	}
	return 0;
}
