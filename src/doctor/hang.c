/*
 * From a scene to verdicts: build the graph, then tell what explains most first.
 *
 *	strong ends     a rank, a link, a GPU, a mismatch
 *	circles         among what these do not explain
 *	weak ends       not seen, not explained: only among ranks of which nothing else is known
 *	what is over    communicators that were given up
 *
 * Where nothing is told, jobs that are dead get a second look: see guess().
 */
#include "doctor/hang.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "doctor/hang_chain.h"
#include "doctor/hang_scene.h"
#include "doctor/hang_tell.h"

enum { REACHED = 1, TOLD = 2, CIRCLE_MAX = 64, CIRCLES_MAX = 32 };

static void build(struct hang_graph *graph)
{
	const struct hang_scene *scene = graph->scene;
	const struct job *job = scene->job;

	hang_mismatches(graph);
	for (uint32_t c = 0; c < job->comm_count && graph->status == OK; c++) {
		const struct job_comm *comm = &job->comms[c];

		if (scene->meetings[c].level == HANG_MOVES)
			continue;
		if (scene->meetings[c].is_collective)
			hang_collective(graph, c);
		/* What comes after calls that differ follows from these. */
		if (graph->is_split[c])
			continue;
		for (uint32_t i = 0; i < comm->seat_count && graph->status == OK; i++)
			if (scene->seats[comm->seats[i]].is_pair &&
			    !scene->seats[comm->seats[i]].is_over)
				hang_pair(graph, comm->seats[i]);
	}
	if (graph->status == OK)
		hang_orders(graph);
	if (graph->status == OK)
		hang_graph_seal(graph);
}

/* Reported first. The rest is reported only for ranks of which nothing else is known. */
enum strength {
	PARTED = 0, /* calls that differ */
	STRONG = 1,
	UNSURE = 2, /* GPUs that may wait elsewhere: kernels are not shown */
	WEAK = 3,   /* not seen, not explained, not judged */
};

static enum strength strength_of(const struct hang_end *end)
{
	if (end->class == VERDICT_STUCK || end->class == VERDICT_UNSEEN ||
	    end->class == VERDICT_AGENT_DEAD || end->class == VERDICT_BLIND ||
	    end->note == HANG_NOTE_CONNECTING)
		return WEAK;
	if (end->class == VERDICT_MISMATCH)
		return PARTED;
	return end->is_unsure ? UNSURE : STRONG;
}

/* ---- what waits for it ------------------------------------------------------------------------------ */

static void count_victim(struct hang_tale *tale, uint32_t seat)
{
	const struct hang_seat *of = &tale->scene->seats[seat];
	uint32_t rank = tale->scene->job->seats[seat].rank;

	if (of->front == NULL || of->is_over || tale->stamps[rank] == tale->number)
		return;
	tale->stamps[rank] = tale->number;
	tale->is_involved[rank] |= tale->is_hang;
	tale->victims++;
}

/* Ranks that are in something that was reached, but for those that are the cause. */
static void count_victims(struct hang_tale *tale, size_t culprits)
{
	const struct job *job = tale->scene->job;
	uint32_t comms = (uint32_t)job->comm_count;

	tale->victims = 0;
	for (size_t i = 0; i < culprits; i++) {
		tale->stamps[tale->ranks[i]] = tale->number;
		tale->is_involved[tale->ranks[i]] |= tale->is_hang;
	}
	for (size_t i = 0; i < tale->reached; i++) {
		uint32_t node = tale->graph->queue[i];

		if (node >= comms)
			count_victim(tale, node - comms);
		for (uint32_t s = 0; node < comms && s < job->comms[node].seat_count; s++)
			count_victim(tale, job->comms[node].seats[s]);
	}
}

static bool is_any_hung(const struct hang_tale *tale)
{
	for (size_t i = 0; i < tale->reached; i++)
		if (hang_node_hangs(tale->scene, tale->graph->queue[i]))
			return true;
	return false;
}

/* Marks serve one walk at a time: what was reached is written down and the marks are taken back. */
static void finish_reach(struct hang_tale *tale, bool is_told)
{
	for (size_t i = 0; i < tale->reached; i++) {
		tale->graph->marks[tale->graph->queue[i]] = 0;
		tale->graph->is_told[tale->graph->queue[i]] |= is_told;
	}
}

/* ---- groups ----------------------------------------------------------------------------------------- */

static uint64_t waited_ns(const struct hang_scene *scene, uint32_t node)
{
	uint32_t comms = (uint32_t)scene->job->comm_count;

	return node < comms ? scene->meetings[node].in_ns : scene->seats[node - comms].in_ns;
}

static bool is_better_lead(const struct hang_scene *scene, const struct hang_end *end,
			   const struct hang_end *lead)
{
	uint64_t longest_ns = waited_ns(scene, lead->node), ns = waited_ns(scene, end->node);

	if (end->confidence != lead->confidence)
		return end->confidence > lead->confidence;
	if (ns != longest_ns)
		return ns > longest_ns;
	return end->seat != HANG_NOBODY && lead->seat != HANG_NOBODY &&
	       scene->job->seats[end->seat].rank < scene->job->seats[lead->seat].rank;
}

static const struct hang_end *choose_lead(const struct hang_graph *graph, uint32_t first,
					  bool only_untold)
{
	const struct hang_end *lead = NULL;

	for (uint32_t e = first; e != HANG_NOBODY; e = graph->ends[e].next) {
		const struct hang_end *end = &graph->ends[e];

		if (only_untold && graph->is_told[end->node])
			continue;
		if (lead == NULL || is_better_lead(graph->scene, end, lead))
			lead = end;
	}
	return lead;
}

/* Nodes of the group's ends into the queue; weak ones where nothing is told yet. */
static size_t queue_owners(struct hang_graph *graph, uint32_t first, bool only_untold)
{
	size_t count = 0;

	for (uint32_t e = first; e != HANG_NOBODY; e = graph->ends[e].next) {
		uint32_t node = graph->ends[e].node;

		if ((only_untold && graph->is_told[node]) || graph->marks[node] == TOLD)
			continue;
		graph->marks[node] = TOLD;
		graph->queue[count++] = node;
	}
	for (size_t i = 0; i < count; i++)
		graph->marks[graph->queue[i]] = 0;
	return count;
}

/* At any moment of a job that runs some transfers are under way: of one that was killed they say nothing. */
static bool is_too_weak_to_guess(const struct hang_end *lead)
{
	return lead->class == VERDICT_STUCK || lead->class == VERDICT_UNSEEN ||
	       lead->class == VERDICT_BLIND || lead->class == VERDICT_AGENT_DEAD ||
	       lead->class == VERDICT_NETWORK_STUCK || lead->class == VERDICT_GPU_STUCK;
}

/* Calls differ and none was made since: whatever else these ranks stand still in follows from that. */
static bool is_split_still(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct job_comm *comm = &scene->job->comms[tale->lead->comm];

	if (tale->lead->class != VERDICT_MISMATCH || !hang_is_still(scene, tale->lead->comm))
		return false;
	for (uint32_t i = 0; i < comm->seat_count; i++)
		tale->is_involved[scene->job->seats[comm->seats[i]].rank] =
			tale->is_parted[scene->job->seats[comm->seats[i]].rank] = true;
	return true;
}

/* Is this end worth a verdict at all, for who asks? */
static bool is_asked_for(const struct hang_tale *tale)
{
	const struct hang_options *options = tale->scene->options;

	if (tale->lead->class == VERDICT_NEVER_ISSUED &&
	    tale->is_parted[tale->scene->job->seats[tale->lead->seat].rank])
		return false;
	if (tale->lead->class == VERDICT_BLIND && !(options && options->has_unjudged))
		return false;
	return !(tale->scene->is_guess && is_too_weak_to_guess(tale->lead));
}

static void tell_group(struct hang_tale *tale, uint32_t first, bool is_weak_one)
{
	struct hang_graph *graph = tale->graph;
	size_t owners = queue_owners(graph, first, is_weak_one);

	if (owners == 0)
		return;
	tale->first = first;
	tale->lead = choose_lead(graph, first, is_weak_one);
	tale->number++;
	tale->reached = hang_graph_reach(graph, owners, REACHED);
	tale->is_hang = is_split_still(tale);
	tale->is_hang |= is_any_hung(tale);
	if ((tale->is_hang || tale->lead->class == VERDICT_MISMATCH) && is_asked_for(tale)) {
		count_victims(tale, hang_culprits(tale));
		tale->verdict = verdicts_add(tale->verdicts, tale->lead->class,
					     tale->lead->class == VERDICT_BLIND ? VERDICT_WARNING
										: VERDICT_ERROR);
		tale->verdict->confidence = tale->lead->confidence;
		tale->verdict->victims = tale->victims;
		hang_tell_group(tale);
	}
	finish_reach(tale, true);
}

static bool is_rank_involved(const struct hang_tale *tale, uint32_t seat)
{
	return !tale->scene->seats[seat].is_over &&
	       tale->is_involved[tale->scene->job->seats[seat].rank];
}

/* Ranks of which it is known why they wait may wait elsewhere because of that: what cannot be explained of
 * these is no second cause. */
static void leave_out_involved(struct hang_tale *tale)
{
	const struct job *job = tale->scene->job;
	uint32_t comms = (uint32_t)job->comm_count;

	for (uint32_t e = 0; e < tale->graph->end_count; e++) {
		uint32_t node = tale->graph->ends[e].node;
		bool *is_told = &tale->graph->is_told[node];

		if (strength_of(&tale->graph->ends[e]) <= STRONG)
			continue;
		/* A Send is explained with its communicator. */
		if (node >= comms)
			node = job->seats[node - comms].comm;
		for (uint32_t i = 0; !*is_told && i < job->comms[node].seat_count; i++)
			*is_told = is_rank_involved(tale, job->comms[node].seats[i]);
	}
}

static void tell_groups(struct hang_tale *tale, enum strength strength)
{
	if (strength > STRONG)
		leave_out_involved(tale);
	for (uint32_t e = 0; e < tale->graph->end_count; e++)
		if (tale->graph->ends[e].group == e &&
		    strength_of(&tale->graph->ends[e]) == strength)
			tell_group(tale, e, strength > STRONG);
}

/* ---- circles ---------------------------------------------------------------------------------------- */

/* Calls of one communicator, one behind the other: they are in order, and whatever holds up the first holds up all. */
static bool is_queue(const struct hang_graph *graph, const uint32_t *edges, size_t count)
{
	bool is_any_before = false;

	for (size_t i = 0; i < count; i++) {
		const struct hang_edge *edge = &graph->edges[edges[i]];
		const struct job_seat *seats = graph->scene->job->seats;

		if (seats[edge->held_by].comm != seats[graph->edges[edges[0]].held_by].comm)
			return false;
		is_any_before |= edge->kind == HANG_EDGE_CALLED_BEFORE;
	}
	return is_any_before;
}

static void tell_circles(struct hang_tale *tale)
{
	struct hang_graph *graph = tale->graph;
	uint32_t edges[CIRCLE_MAX];
	size_t count, circles = 0;

	for (size_t n = 0; n < graph->node_count; n++)
		graph->marks[n] = graph->is_told[n] ? TOLD : 0;
	while (circles++ < CIRCLES_MAX &&
	       (count = hang_graph_circle(graph, edges, CIRCLE_MAX)) > 0) {
		for (size_t i = 0; i < count; i++)
			graph->queue[i] = graph->edges[edges[i]].from;
		tale->number++;
		tale->lead = NULL;
		tale->reached = hang_graph_reach(graph, count, TOLD);
		tale->is_hang = true;
		if (is_queue(graph, edges, count))
			continue;
		count_victims(tale, 0);
		tale->verdict = verdicts_add(tale->verdicts, VERDICT_DEADLOCK, VERDICT_ERROR);
		tale->verdict->victims = tale->victims;
		hang_tell_circle(tale, edges, count);
		for (size_t i = 0; i < tale->reached; i++)
			graph->is_told[graph->queue[i]] = true;
	}
	memset(graph->marks, 0, graph->node_count);
}

/* ---- all of it -------------------------------------------------------------------------------------- */

static enum status tell(struct verdicts *verdicts, struct hang_graph *graph)
{
	size_t ranks = graph->scene->job->rank_count + 1;
	struct hang_tale tale = { .verdicts = verdicts, .graph = graph, .scene = graph->scene };

	tale.stamps = calloc(ranks, sizeof(*tale.stamps));
	tale.culprit_stamps = calloc(ranks, sizeof(*tale.culprit_stamps));
	tale.ranks = calloc(ranks, sizeof(*tale.ranks));
	tale.is_involved = calloc(ranks, sizeof(*tale.is_involved));
	tale.is_parted = calloc(ranks, sizeof(*tale.is_parted));
	if (!tale.stamps || !tale.culprit_stamps || !tale.ranks || !tale.is_involved ||
	    !tale.is_parted)
		graph->status = ERR_NO_SPACE;
	if (graph->status == OK) {
		tell_groups(&tale, PARTED);
		tell_groups(&tale, STRONG);
		tell_circles(&tale);
		tell_groups(&tale, UNSURE);
		tell_groups(&tale, WEAK);
		if (!graph->scene->is_guess) {
			hang_tell_gone(&tale);
			hang_tell_aborted(&tale);
		}
	}
	free(tale.stamps);
	free(tale.culprit_stamps);
	free(tale.ranks);
	free(tale.is_involved);
	free(tale.is_parted);
	return graph->status;
}

static enum status look(struct verdicts *verdicts, const struct job *job,
			const struct hang_options *options, bool is_guess)
{
	struct hang_scene scene;
	struct hang_graph graph;
	enum status status = hang_scene_make(&scene, job, options, is_guess);

	if (status != OK)
		return status;
	hang_graph_init(&graph, &scene);
	build(&graph);
	status = graph.status;
	if (status == OK)
		status = tell(verdicts, &graph);
	hang_graph_release(&graph);
	hang_scene_release(&scene);
	return status;
}

/*
 * Regions of a job that was killed do not say when: a second or an hour after what was recorded last. So
 * whether it hung is not known, but who would have been the cause is, and that is what one wants to know of a
 * job that one has just killed because it hung. Of a job that was ended while it ran it means nothing.
 */
static enum status guess(struct verdicts *verdicts, const struct job *job,
			 const struct hang_options *options)
{
	size_t first = verdicts->count;
	enum status status = look(verdicts, job, options, true);

	for (size_t i = first; i < verdicts->count; i++) {
		struct verdict *verdict = &verdicts->list[i];
		char title[sizeof(verdict->title)];

		text_copy(title, sizeof(title), verdict->title);
		verdict_title(verdict, "if it hung when it was ended: %s", title);
		verdict->severity = VERDICT_WARNING;
		verdict->for_ns = 0;
		if (verdict->confidence > 0.4)
			verdict->confidence = 0.4;
		verdict_missing(verdict, "Its processes are dead, and nothing says when they died: "
					 "whether it stood still before is not known.");
	}
	return status;
}

enum status hang_find(struct verdicts *verdicts, const struct job *job,
		      const struct hang_options *options)
{
	size_t before = verdicts->count;
	enum status status = look(verdicts, job, options, false);

	if (status == OK && verdicts->count == before && !(options && options->only_living))
		status = guess(verdicts, job, options);
	return status;
}
