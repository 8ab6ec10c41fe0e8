/* Verdicts on calls that differ: each side's call, or every link of a cycle. */
#include "doctor/hang_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/op.h"
#include "common/text.h"

#define SAY text, sizeof(text)

/* ---- different calls --------------------------------------------------------------------------- */

static void say_side(char *text, size_t size, const struct hang_scene *scene,
		     const struct hang_side_of_split *side)
{
	job_say_rank(text, size, scene->job, side->first);
	if (side->count > 1)
		text_append(text, size, " and %u other%s", side->count - 1,
			    side->count == 2 ? "" : "s");
	text_append(text, size, " called ");
	if (side->call.is_known)
		hang_say_call(text, size, hang_process(scene, side->first), &side->call);
	else
		text_append(text, size, "something that is no longer recorded");
}

static void split_title(const struct hang_scene *scene, const struct hang_split *split,
			bool has_odd, char *text, size_t size)
{
	const struct hang_side_of_split *usual = &split->sides[0];
	const struct hang_side_of_split *odd = &split->sides[split->side_count - 1];
	const char *label = scene->job->comms[split->comm].label;

	if (!has_odd) {
		text_append(text, size,
			    "ranks of %.40s disagree on collective #%" PRIu64 " (evenly split)",
			    label, split->number);
	} else {
		job_say_rank(text, size, scene->job, odd->first);
		if (odd->count > 1)
			text_append(text, size, " and %u more disagree", odd->count - 1);
		else
			text_append(text, size, " disagrees");
		text_append(text, size, " with %u rank%s on collective #%" PRIu64 " of %.40s",
			    usual->count, usual->count == 1 ? "" : "s", split->number, label);
	}
	if (split->rule[0] != '\0')
		text_append(text, size, ": different %s", split->rule);
}

static void tell_rule(struct hang_tale *tale, const struct hang_split *split)
{
	if (strcmp(split->rule, "order") == 0)
		verdict_evidence(tale->verdict, "Each side makes the other's call a little later: "
						"same calls, different order.");
	if (!split->is_first)
		verdict_missing(tale->verdict,
				"The first difference is at collective #%" PRIu64
				" or earlier; earlier calls are no longer recorded.",
				split->number);
}

/* How long no rank there has called anything: a hang, as far as is known. */
static void tell_no_calls(struct hang_tale *tale, uint32_t c)
{
	const struct hang_scene *scene = tale->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	uint64_t still_ns = UINT64_MAX;
	char time[UNITS_TEXT];

	for (uint32_t i = 0; i < comm->seat_count; i++)
		if (!scene->seats[comm->seats[i]].is_over &&
		    scene->seats[comm->seats[i]].still_ns < still_ns)
			still_ns = scene->seats[comm->seats[i]].still_ns;
	tale->verdict->for_ns = still_ns;
	verdict_evidence(tale->verdict, "No rank of %.60s has made a call for %s.", comm->label,
			 units_duration(time, still_ns));
}

/* How long a rank that is not over has been in its operation; 0: none is in one. */
static uint64_t oldest_ns(const struct hang_scene *scene, uint32_t c)
{
	const struct job_comm *comm = &scene->job->comms[c];
	uint64_t longest_ns = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct hang_seat *seat = &scene->seats[comm->seats[i]];

		if (seat->front != NULL && !seat->is_over && seat->in_ns > longest_ns)
			longest_ns = seat->in_ns;
	}
	return longest_ns;
}

static bool is_any_unseen(const struct hang_scene *scene, uint32_t c)
{
	const struct job_comm *comm = &scene->job->comms[c];

	for (uint32_t i = 0; i < comm->seat_count; i++)
		if (scene->seats[comm->seats[i]].is_blind)
			return true;
	return false;
}

void hang_tell_split(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_split *split = &tale->graph->splits[tale->lead->split];
	bool has_odd = tale->lead->seat != HANG_NOBODY;
	struct verdict *verdict = tale->verdict;
	const struct hang_side_of_split *usual = &split->sides[0];
	char text[600] = "", oldest[UNITS_TEXT], limit[UNITS_TEXT];

	split_title(scene, split, has_odd, SAY);
	verdict_title(verdict, "%s", text);
	text_copy(verdict->rule, sizeof(verdict->rule), split->rule);
	verdict->number = split->number;
	if (has_odd)
		verdict_set_peer(verdict, scene->job, scene->job->seats[usual->first].rank);
	for (uint32_t i = split->side_count; i-- > 0;) {
		text[0] = '\0';
		say_side(SAY, scene, &split->sides[i]);
		text_capital(text);
		verdict_evidence(verdict, "%s.", text);
	}
	if (usual->call.is_known)
		text_copy(verdict->function, sizeof(verdict->function),
			  recording_name(hang_process(scene, usual->first), OP_NAMES_FUNCTION,
					 usual->call.function));
	tell_rule(tale, split);
	if (hang_node_hangs(scene, tale->lead->node)) {
		hang_tell_stalled(tale, split->number);
	} else if (hang_is_still(scene, split->comm)) {
		tell_no_calls(tale, split->comm);
	} else if (oldest_ns(scene, split->comm) > 0) {
		verdict->for_ns = 0;
		verdict_evidence(
			verdict,
			"Operations have been in flight for %s; a hang is reported after %s.",
			units_duration(oldest, oldest_ns(scene, split->comm)),
			units_duration(limit, scene->hang_ns));
	} else if (is_any_unseen(scene, split->comm)) {
		verdict->for_ns = 0;
		verdict_missing(verdict, "Kernel execution is not recorded there, so a hang or "
					 "corrupted data would not show.");
	} else {
		verdict->for_ns = 0;
		verdict_evidence(verdict, "The job is not hung: NCCL does not detect the mismatch, "
					  "and data may be corrupted.");
	}
}

/* ---- cycles ------------------------------------------------------------------------------------- */

enum { NAMED = 4 }; /* communicators that the title names */

/* The communicator of a node. */
static uint32_t node_comm(const struct hang_scene *scene, uint32_t node)
{
	uint32_t comms = (uint32_t)scene->job->comm_count;

	return node < comms ? node : scene->job->seats[node - comms].comm;
}

/* The number of ranks between the same two nodes, by their calls as this one or otherwise: the rank that differs is
 * alone. */
static uint32_t parallel(const struct hang_tale *tale, const struct hang_edge *edge)
{
	const struct hang_graph *graph = tale->graph;
	bool *is_counted = calloc(tale->scene->job->seat_count, sizeof(*is_counted));
	uint32_t count = 0;

	for (uint32_t i = graph->first_out[edge->from]; i < graph->first_out[edge->from + 1]; i++) {
		const struct hang_edge *other = &graph->edges[i];

		if (other->to != edge->to || (other->before != NULL) != (edge->before != NULL) ||
		    (is_counted != NULL && is_counted[other->seat]))
			continue;
		count++;
		if (is_counted != NULL)
			is_counted[other->seat] = true;
	}
	free(is_counted);
	return count;
}

/* "Rank 3 called AllReduce #5 of dp before AllGather #2 of tp." */
static void tell_order(struct hang_tale *tale, const struct hang_edge *edge)
{
	const struct hang_scene *scene = tale->scene;
	uint32_t others = parallel(tale, edge) - 1;
	char text[600] = "";

	hang_say_whole_rank(SAY, scene, edge->held_by);
	text_capital(text);
	text_append(SAY, " called ");
	hang_say_operation(SAY, scene, edge->held_by, &edge->before->op);
	text_append(SAY, " of %.60s before ", hang_comm(scene, edge->held_by)->label);
	hang_say_operation(SAY, scene, edge->seat, &edge->after->op);
	text_append(SAY, " of %.60s", hang_comm(scene, edge->seat)->label);
	if (others > 0)
		text_append(SAY, "; %u other%s did the same", others, others == 1 ? "" : "s");
	verdict_evidence(tale->verdict, "%s.", text);
}

/* "Rank 3 is in AllReduce #5 of dp and waits for rank 1, which is in AllGather #2 of tp." */
static void tell_circle_link(struct hang_tale *tale, const struct hang_edge *edge,
			     const struct hang_edge *before)
{
	const struct hang_scene *scene = tale->scene;
	uint32_t waits = before->held_by; /* the one that the previous link waits for */
	uint32_t more = parallel(tale, edge) - 1;
	char text[600] = "";

	if (edge->before != NULL) {
		tell_order(tale, edge);
		return;
	}
	hang_say_whole_rank(SAY, scene, waits);
	text_capital(text);
	text_append(SAY, " is in ");
	hang_say_held(SAY, scene, waits);
	text_append(SAY, " and waits for ");
	hang_say_whole_rank(SAY, scene, edge->seat);
	text_append(SAY, edge->kind == HANG_EDGE_NOT_CALLED ? ", which has not called it and is in "
			 : edge->kind == HANG_EDGE_NOT_STARTED
				 ? ", whose GPU has not started it and is in "
				 : ", which called it after ");
	hang_say_held(SAY, scene, edge->held_by);
	if (more > 0)
		text_append(SAY, "; %u more like this", more);
	verdict_evidence(tale->verdict, "%s.", text);
}

/* Each communicator of the cycle once; returns how many there are. */
static size_t say_comms(const struct hang_tale *tale, const uint32_t *edges, size_t count,
			char *text, size_t size)
{
	const struct hang_graph *graph = tale->graph;
	size_t named = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t comm = node_comm(tale->scene, graph->edges[edges[i]].from);
		bool is_new = true;

		for (size_t j = 0; j < i && is_new; j++)
			is_new = node_comm(tale->scene, graph->edges[edges[j]].from) != comm;
		if (is_new && named++ < NAMED)
			text_append(text, size, "%s%.30s", named > 1 ? ", " : "",
				    tale->scene->job->comms[comm].label);
	}
	if (named > NAMED)
		text_append(text, size, " and %zu more", named - NAMED);
	return named;
}

/* The share of the other node's ranks that are in what this rank is in instead. */
static double company(const struct hang_scene *scene, const struct hang_edge *edge)
{
	if (edge->to >= scene->job->comm_count)
		return 0.5; /* a Send or Recv: one of two */
	return (double)scene->matches[edge->to].inside /
	       (double)scene->job->comms[edge->to].seat_count;
}

/* The link with the fewest ranks, and of those the one whose operation has the smallest share of its ranks:
 * most ranks do what the rest of the cycle does. */
static size_t odd_link(const struct hang_tale *tale, const uint32_t *edges, size_t count)
{
	const struct hang_graph *graph = tale->graph;
	size_t found = 0;

	for (size_t i = 1; i < count; i++) {
		const struct hang_edge *edge = &graph->edges[edges[i]];
		const struct hang_edge *best = &graph->edges[edges[found]];
		uint32_t ranks = parallel(tale, edge), fewest = parallel(tale, best);

		if (ranks < fewest ||
		    (ranks == fewest && company(tale->scene, edge) < company(tale->scene, best)))
			found = i;
	}
	return found;
}

static bool is_any_missing(const struct hang_tale *tale, const uint32_t *edges, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t node = tale->graph->edges[edges[i]].from;

		if (tale->scene->job->comms[node_comm(tale->scene, node)].missing > 0)
			return true;
	}
	return false;
}

void hang_tell_circle(struct hang_tale *tale, const uint32_t *edges, size_t count)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_graph *graph = tale->graph;
	size_t at = odd_link(tale, edges, count);
	const struct hang_edge *odd = &graph->edges[edges[at]];
	uint32_t comms = (uint32_t)scene->job->comm_count;
	uint32_t witness = odd->from < comms ? scene->matches[odd->from].first : odd->from - comms;
	uint32_t peer = graph->edges[edges[(at + 1) % count]].seat;
	char text[300] = "", names[200] = "";
	size_t named = say_comms(tale, edges, count, names, sizeof(names));

	hang_tell_who(tale, odd->seat);
	hang_tell_where(tale, node_comm(scene, odd->from), witness, scene->seats[witness].front, 0);
	verdict_set_peer(tale->verdict, scene->job, scene->job->seats[peer].rank);
	text_append(SAY, "deadlock %s %s: ranks wait for each other",
		    named == 1 ? "within" : "across", names);
	text_append(SAY, "; %u ranks stuck", tale->victims);
	verdict_title(tale->verdict, "%s", text);
	for (size_t i = 0; i < count; i++)
		tell_circle_link(tale, &graph->edges[edges[(at + i) % count]],
				 &graph->edges[edges[(at + i + count - 1) % count]]);
	tale->verdict->confidence = 0.9;
	for (size_t i = 0; i < count; i++)
		if (graph->edges[edges[i]].kind == HANG_EDGE_CALLED_BEFORE)
			tale->verdict->confidence = 0.75;
	if (tale->verdict->confidence < 0.9)
		verdict_missing(tale->verdict,
				"Kernel events were not recorded. That GPUs run these operations "
				"in call order is inferred from the lack of progress.");
	if (is_any_missing(tale, edges, count)) {
		tale->verdict->confidence = 0.6;
		verdict_missing(tale->verdict, "Not all ranks of these communicators are visible; "
					       "one of them may be the cause.");
	}
	hang_tell_advice(tale);
}
