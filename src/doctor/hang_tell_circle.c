/* Ranks that wait for each other in a circle: every link of it. */
#include <inttypes.h>
#include <string.h>

#include "common/text.h"
#include "doctor/hang_tell.h"
#include "doctor/hang_words.h"

enum { NAMED = 4 }; /* communicators that the title names */

#define SAY text, sizeof(text)

/* The communicator of a node. */
static uint32_t comm_of(const struct hang_scene *scene, uint32_t node)
{
	uint32_t comms = (uint32_t)scene->job->comm_count;

	return node < comms ? node : scene->job->seats[node - comms].comm;
}

/* How many ranks are in the way between the same two: alone is who does it differently. */
static uint32_t parallel(const struct hang_graph *graph, const struct hang_edge *edge)
{
	uint32_t count = 0;

	for (uint32_t i = graph->first_out[edge->from]; i < graph->first_out[edge->from + 1]; i++)
		count += graph->edges[i].to == edge->to;
	return count;
}

/* "Rank 3 called AllReduce 5 of dp before AllGather 2 of tp." */
static void tell_order(struct hang_tale *tale, const struct hang_edge *edge)
{
	const struct hang_scene *scene = tale->scene;
	char text[600] = "";

	hang_say_whole_rank(SAY, scene, edge->held_by);
	hang_capital(text);
	text_append(SAY, " called ");
	hang_say_operation(SAY, scene, edge->held_by, &edge->before->op);
	text_append(SAY, " of %.60s before ", hang_comm(scene, edge->held_by)->label);
	hang_say_operation(SAY, scene, edge->seat, &edge->after->op);
	text_append(SAY, " of %.60s", hang_comm(scene, edge->seat)->label);
	if (parallel(tale->graph, edge) > 1)
		text_append(SAY, "; %u others did the same", parallel(tale->graph, edge) - 1);
	verdict_evidence(tale->verdict, "%s.", text);
}

/* "Rank 3 is in AllReduce 5 of dp and waits for rank 1, which is in AllGather 2 of tp." */
static void tell_link(struct hang_tale *tale, const struct hang_edge *edge,
		      const struct hang_edge *before)
{
	const struct hang_scene *scene = tale->scene;
	uint32_t waits = before->held_by; /* the one that the link before waits for */
	char text[600] = "";

	if (edge->before != NULL) {
		tell_order(tale, edge);
		return;
	}
	hang_say_whole_rank(SAY, scene, waits);
	hang_capital(text);
	text_append(SAY, " is in ");
	hang_say_held(SAY, scene, waits);
	text_append(SAY, " and waits for ");
	hang_say_whole_rank(SAY, scene, edge->seat);
	text_append(SAY, edge->kind == HANG_EDGE_NOT_CALLED ? ", which has not called it and is in "
			 : edge->kind == HANG_EDGE_NOT_STARTED
				 ? ", whose GPU has not come to it and is in "
				 : ", which called before it ");
	hang_say_held(SAY, scene, edge->held_by);
	if (parallel(tale->graph, edge) > 1)
		text_append(SAY, "; %u others like it", parallel(tale->graph, edge) - 1);
	verdict_evidence(tale->verdict, "%s.", text);
}

/* Each communicator of the circle once; how many there are. */
static size_t say_comms(const struct hang_tale *tale, const uint32_t *edges, size_t count,
			char *text, size_t size)
{
	const struct hang_graph *graph = tale->graph;
	size_t named = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t comm = comm_of(tale->scene, graph->edges[edges[i]].from);
		bool is_new = true;

		for (size_t j = 0; j < i && is_new; j++)
			is_new = comm_of(tale->scene, graph->edges[edges[j]].from) != comm;
		if (is_new && named++ < NAMED)
			text_append(text, size, "%s%.30s", named > 1 ? ", " : "",
				    tale->scene->job->comms[comm].label);
	}
	if (named > NAMED)
		text_append(text, size, " and %zu more", named - NAMED);
	return named;
}

/* Which part of those that belong there are in what this rank is in instead? */
static double company(const struct hang_scene *scene, const struct hang_edge *edge)
{
	if (edge->to >= scene->job->comm_count)
		return 0.5; /* a Send or Recv: one of two */
	return (double)scene->meetings[edge->to].inside /
	       (double)scene->job->comms[edge->to].seat_count;
}

/* The link with the fewest ranks in the way, and of those the one that is in something with fewest others:
 * most do it as the rest of the circle does. */
static size_t odd_link(const struct hang_tale *tale, const uint32_t *edges, size_t count)
{
	const struct hang_graph *graph = tale->graph;
	size_t found = 0;

	for (size_t i = 1; i < count; i++) {
		const struct hang_edge *edge = &graph->edges[edges[i]];
		const struct hang_edge *best = &graph->edges[edges[found]];
		uint32_t ranks = parallel(graph, edge), fewest = parallel(graph, best);

		if (ranks < fewest ||
		    (ranks == fewest && company(tale->scene, edge) < company(tale->scene, best)))
			found = i;
	}
	return found;
}

static void tell_peer(struct hang_tale *tale, uint32_t seat)
{
	tale->verdict->peer = hang_rank(tale->scene, seat)->rank;
	text_copy(tale->verdict->peer_label, sizeof(tale->verdict->peer_label),
		  hang_rank(tale->scene, seat)->label);
	text_copy(tale->verdict->peer_host, sizeof(tale->verdict->peer_host),
		  hang_process(tale->scene, seat)->host);
}

void hang_tell_circle(struct hang_tale *tale, const uint32_t *edges, size_t count)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_graph *graph = tale->graph;
	size_t at = odd_link(tale, edges, count);
	const struct hang_edge *odd = &graph->edges[edges[at]];
	uint32_t comms = (uint32_t)scene->job->comm_count;
	uint32_t witness = odd->from < comms ? scene->meetings[odd->from].first : odd->from - comms;
	char text[300] = "", names[200] = "";
	size_t named = say_comms(tale, edges, count, names, sizeof(names));

	hang_tell_who(tale, odd->seat);
	hang_tell_where(tale, comm_of(scene, odd->from), witness, scene->seats[witness].front, 0);
	tell_peer(tale, graph->edges[edges[(at + 1) % count]].seat);
	text_append(SAY, "deadlock: ranks wait for each other in a circle over %s%s", names,
		    named == 1 ? " alone" : "");
	text_append(SAY, "; %u ranks stand still", tale->victims);
	verdict_title(tale->verdict, "%s", text);
	for (size_t i = 0; i < count; i++)
		tell_link(tale, &graph->edges[edges[(at + i) % count]],
			  &graph->edges[edges[(at + i + count - 1) % count]]);
	tale->verdict->confidence = 0.9;
	for (size_t i = 0; i < count; i++)
		if (graph->edges[edges[i]].kind == HANG_EDGE_CALLED_BEFORE)
			tale->verdict->confidence = 0.75;
	if (tale->verdict->confidence < 0.9)
		verdict_missing(
			tale->verdict,
			"Kernel events were not recorded: that GPUs run these operations in "
			"the order of the calls is concluded from their standing still.");
	hang_tell_doubts(tale);
	hang_tell_advice(tale);
}
