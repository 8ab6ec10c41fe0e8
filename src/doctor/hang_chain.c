/* The graph: building, grouping, sorting. hang_walk.c walks it. */
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
uint32_t hang_node_of_front(const struct hang_scene *scene, uint32_t seat)
{
	return scene->seats[seat].is_pair ? hang_seat_node(scene, seat)
					  : scene->job->seats[seat].comm;
}

static bool holds(const struct hang_scene *scene, uint32_t seat, enum hang_edge_kind kind)
{
	const struct hang_seat *of = &scene->seats[seat];
	const struct hang_meeting *meeting = &scene->meetings[scene->job->seats[seat].comm];

	/* Where all called the same it is most likely over, unless it was the last that they did; where no GPU has
	 * come to it, something before it holds them. */
	if ((meeting->unjudged == HANG_ALL_CALLED && !meeting->is_resting) ||
	    meeting->unjudged == HANG_NONE_STARTED)
		return false;
	return of->front != NULL && !of->is_over && of->age_ns >= scene->pause_ns &&
	       meeting->level != HANG_MOVES &&
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
		    hang_node_of_front(scene, s) == node)
			continue;
		hang_edge_add(graph, (struct hang_edge){ .from = node,
							 .to = hang_node_of_front(scene, s),
							 .seat = seat,
							 .held_by = s,
							 .kind = (uint8_t)kind });
		is_held = true;
	}
	return is_held;
}

/* What is launched together is stamped in a moment, where the launch itself is not shown. */
#define TOGETHER_NS UINT64_C(100000)

bool hang_is_called_before(const struct recording_flight *one, const struct recording_flight *other)
{
	bool is_same_comm = one->op.comm == other->op.comm;

	if (one->op.launch_ns != 0 && other->op.launch_ns != 0)
		return one->op.launch_ns < other->op.launch_ns;
	return flight_since_ns(one) + (is_same_comm ? TOGETHER_NS : 0) < flight_since_ns(other);
}

/* Is the front of this seat what its communicator is in, and was it called before? */
static bool is_front_before(const struct hang_scene *scene, uint32_t s,
			    const struct recording_flight *flight)
{
	const struct hang_seat *of = &scene->seats[s];
	const struct hang_meeting *meeting = &scene->meetings[scene->job->seats[s].comm];

	return meeting->unjudged == HANG_JUDGED && hang_is_called_before(of->front, flight) &&
	       (of->is_pair || hang_is_in_meeting(scene, s, meeting));
}

/* Did this seat call anything before of which nobody knows whether it is over? */
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
		    scene->meetings[job->seats[s].comm].level == HANG_MOVES ||
		    (other->front == NULL && !scene->meetings[job->seats[s].comm].is_collective) ||
		    hang_node_of_front(scene, s) == node)
			continue;
		is_front = other->front != NULL && is_front_before(scene, s, flight);
		if (!is_front && (s == seat || !(is_any_before(scene, s, flight) ||
						 is_open_before(other, flight))))
			continue;
		hang_edge_add(graph, (struct hang_edge){ .from = node,
							 .to = hang_node_of_front(scene, s),
							 .seat = seat,
							 .held_by = s,
							 .kind = is_front ? HANG_EDGE_CALLED_BEFORE
									  : HANG_EDGE_MAYBE });
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
	case VERDICT_BLIND:
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
	for (unsigned int class = 0; class < VERDICT_CLASSES; class ++) {
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
