/*
 * From a scene to verdicts: build the graph, then report the causes that explain most first.
 *
 *	strong ends     a rank, a link, a GPU, a mismatch
 *	cycles          among what these do not explain
 *	weak ends       invisible, unexplained: only for ranks of which nothing else is known
 *	past hangs      communicators that were aborted
 *
 * Dead jobs of which nothing is reported are examined once more: see guess_dead_jobs().
 */
#include "doctor/doctor.h"
#include "doctor/hang_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"

enum { REACHED = 1, TOLD = 2, CIRCLE_MAX = 64, CIRCLES_MAX = 32 };

static void graph_build(struct hang_graph *graph)
{
	const struct hang_scene *scene = graph->scene;
	const struct job *job = scene->job;

	hang_mismatches(graph);
	for (uint32_t c = 0; c < job->comm_count && graph->status == OK; c++) {
		const struct job_comm *comm = &job->comms[c];

		if (scene->matches[c].level == HANG_MOVES)
			continue;
		if (scene->matches[c].is_collective)
			hang_collective(graph, c);
		/* Whatever happens after a mismatch follows from it. */
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
	PARTED = 0, /* mismatches */
	STRONG = 1,
	UNSURE = 2, /* GPUs that may wait elsewhere: kernels are not recorded */
	WEAK = 3,   /* invisible, unexplained, not judged */
};

static enum strength strength_of(const struct hang_end *end)
{
	if (end->class == VERDICT_STUCK || end->class == VERDICT_UNSEEN ||
	    end->class == VERDICT_AGENT_DEAD || end->class == VERDICT_BLIND ||
	    end->note == HANG_NOTE_CONNECTING)
		return WEAK;
	if (end->class == VERDICT_MISMATCH)
		return PARTED;
	return end->is_unsure || end->may_wait ? UNSURE : STRONG;
}

/* ---- what waits for it ------------------------------------------------------------------------------ */

static void count_victim(struct hang_tale *tale, uint32_t seat)
{
	const struct hang_seat *of = &tale->scene->seats[seat];
	uint32_t rank = tale->scene->job->seats[seat].rank;

	/* One that was not placed may be a rank that counts already. */
	if (of->front == NULL || of->is_over || tale->stamps[rank] == tale->number ||
	    (tale->scene->job->ranks[rank].is_unplaced &&
	     tale->scene->job->seats[seat].comm != tale->lead->comm))
		return;
	tale->stamps[rank] = tale->number;
	tale->is_involved[rank] |= tale->is_hang;
	tale->victims++;
}

/* Ranks that are in something that was reached, except the cause itself. */
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

/* Does this node hang for certain, not only by its calls? */
static bool is_known_to_hang(const struct hang_scene *scene, uint32_t node)
{
	uint32_t comms = (uint32_t)scene->job->comm_count;
	uint32_t c = node < comms ? node : scene->job->seats[node - comms].comm;

	if (!hang_node_hangs(scene, node) || scene->matches[c].unjudged != HANG_JUDGED)
		return false;
	return node < comms
		       ? scene->matches[c].first != HANG_NOBODY && !scene->matches[c].is_by_calls
		       : scene->seats[node - comms].presence == HANG_INSIDE;
}

/* What they wait for cannot be judged, but that they wait is certain: stuck, with an unknown cause. */
static void judge_waiting(struct hang_tale *tale, struct hang_end *known)
{
	const struct hang_scene *scene = tale->scene;
	uint32_t comms = (uint32_t)scene->job->comm_count;

	for (size_t i = 0; i < tale->reached && tale->lead->class == VERDICT_BLIND; i++) {
		uint32_t node = tale->graph->queue[i];

		if (!is_known_to_hang(scene, node))
			continue;
		*known = *tale->lead;
		known->class = VERDICT_STUCK;
		known->node = node;
		known->witness = node < comms ? scene->matches[node].first : node - comms;
		known->comm = scene->job->seats[known->witness].comm;
		known->flight = scene->seats[known->witness].front;
		known->confidence = 0.3;
		tale->lead = known;
	}
}

/* ---- groups ----------------------------------------------------------------------------------------- */

static uint64_t waited_ns(const struct hang_scene *scene, uint32_t node)
{
	uint32_t comms = (uint32_t)scene->job->comm_count;

	return node < comms ? scene->matches[node].in_ns : scene->seats[node - comms].in_ns;
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

/* Puts the nodes of the group's ends into the queue; weak ones only if nothing was reported yet. */
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

/* A running job always has some transfers in progress: in a killed job they prove nothing. */
static bool is_too_weak_to_guess(const struct hang_end *lead)
{
	return lead->class == VERDICT_STUCK || lead->class == VERDICT_UNSEEN ||
	       lead->class == VERDICT_BLIND || lead->class == VERDICT_AGENT_DEAD ||
	       lead->class == VERDICT_NETWORK_STUCK || lead->class == VERDICT_GPU_STUCK;
}

/* Calls differ and none was made since: whatever else these ranks are stuck in follows from that. */
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

static bool is_undated(const struct hang_tale *tale)
{
	const struct job *job = tale->scene->job;
	uint32_t seat = job->comms[tale->lead->comm].seats[0];

	return tale->scene->processes[job->seats[seat].process].is_undated;
}

/*
 * Dumps without a time may have been made one after the other while the job worked. Then a rank has finished, or left
 * behind, what another seems not to have called.
 */
static bool is_of_one_moment(const struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct job_comm *comm = &scene->job->comms[tale->lead->comm];
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct recording_comm *of = scene->seats[comm->seats[i]].comm;

		if (of->has_counts && of->counts.collectives < least)
			least = of->counts.collectives;
	}
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct hang_seat *seat = &scene->seats[comm->seats[i]];
		bool is_in_it = seat->front != NULL && !seat->is_pair;

		if (is_in_it ? seat->front->op.match > least + 1
			     : seat->comm->has_counts && seat->comm->counts.collectives > least)
			return false;
	}
	return true;
}

/* Does this end deserve a verdict, given the options? */
static bool is_asked_for(const struct hang_tale *tale)
{
	const struct hang_options *options = tale->scene->options;

	if (tale->lead->class == VERDICT_NEVER_ISSUED &&
	    tale->is_parted[tale->scene->job->seats[tale->lead->seat].rank])
		return false;
	if (tale->lead->class == VERDICT_BLIND && !(options && options->has_unjudged))
		return false;
	if (is_undated(tale))
		return is_of_one_moment(tale);
	return !(tale->scene->is_guess && is_too_weak_to_guess(tale->lead));
}

/* Is this rank in nothing else that its GPU could be waiting in? */
static bool is_only_here(const struct hang_scene *scene, uint32_t seat)
{
	const struct job *job = scene->job;

	for (uint32_t i = 0; i < job->seat_count; i++)
		if (i != seat && job->seats[i].rank == job->seats[seat].rank &&
		    scene->seats[i].front != NULL && !scene->seats[i].is_over)
			return false;
	return true;
}

/*
 * A rank that never came holds up a collective, and of those that called it most GPUs are inside. One whose GPU has not
 * started it, though nothing else holds it up, has a trouble of its own, which shows when the first is solved.
 */
static void tell_second(struct hang_tale *tale)
{
	enum { NAMED = 3 };
	const struct hang_scene *scene = tale->scene;
	const struct job_comm *comm = &scene->job->comms[tale->lead->comm];
	uint32_t inside = 0, unsure = 0, behind = 0, seats[NAMED];

	if (tale->lead->node >= scene->job->comm_count || tale->lead->class == VERDICT_MISMATCH ||
	    tale->lead->class == VERDICT_GPU_NOT_REACHED ||
	    tale->lead->class == VERDICT_NOT_LAUNCHED || strength_of(tale->lead) > STRONG)
		return;
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t seat = comm->seats[i];
		const struct hang_seat *of = &scene->seats[seat];

		if (of->is_over || seat == tale->lead->seat || of->front == NULL ||
		    !hang_is_in_match(scene, seat, &scene->matches[tale->lead->comm]))
			continue;
		inside += of->presence == HANG_INSIDE;
		unsure += of->presence == HANG_UNSURE;
		if ((of->presence == HANG_LAUNCHED || of->presence == HANG_UNSURE) &&
		    is_only_here(scene, seat) && behind++ < NAMED)
			seats[behind - 1] = seat;
	}
	/* The same collectives are timed on all ranks: one alone without a kernel has none. */
	if (unsure > 1 || inside <= behind)
		return;
	for (uint32_t i = 0; i < behind && i < NAMED; i++)
		verdict_missing(tale->verdict,
				"Rank %.24s has called it, but its GPU has not started it, and "
				"nothing else holds it up: it may hang as well once this is "
				"solved.",
				scene->job->ranks[scene->job->seats[seats[i]].rank].label);
}

static void tell_group(struct hang_tale *tale, uint32_t first, bool is_weak_one)
{
	struct hang_graph *graph = tale->graph;
	size_t owners = queue_owners(graph, first, is_weak_one);
	struct hang_end known;

	if (owners == 0)
		return;
	tale->first = first;
	tale->lead = choose_lead(graph, first, is_weak_one);
	tale->number++;
	tale->reached = hang_graph_reach(graph, owners, REACHED);
	judge_waiting(tale, &known);
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
		tell_second(tale);
	}
	/* Marks serve one walk at a time: save what was reached and clear the marks. */
	for (size_t i = 0; i < tale->reached; i++) {
		graph->marks[graph->queue[i]] = 0;
		graph->is_told[graph->queue[i]] = true;
	}
}

static bool is_rank_involved(const struct hang_tale *tale, uint32_t seat)
{
	return !tale->scene->seats[seat].is_over &&
	       tale->is_involved[tale->scene->job->seats[seat].rank];
}

/* Ranks with a known cause may wait elsewhere because of it: something unexplained about them is not a
 * second cause. */
static void leave_out_involved(struct hang_tale *tale)
{
	const struct job *job = tale->scene->job;
	uint32_t comms = (uint32_t)job->comm_count;

	for (uint32_t e = 0; e < tale->graph->end_count; e++) {
		uint32_t node = tale->graph->ends[e].node;
		bool *is_told = &tale->graph->is_told[node];

		if (strength_of(&tale->graph->ends[e]) <= STRONG)
			continue;
		/* A Send is explained together with its communicator. */
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

/* ---- cycles ---------------------------------------------------------------------------------- */

/* Calls of one communicator, in sequence: whatever holds up the first holds up all. */
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

static uint32_t edge_rank(const struct hang_graph *graph, uint32_t edge)
{
	return graph->scene->job->seats[graph->edges[edge].seat].rank;
}

/* An edge between the same nodes because of another rank; HANG_NOBODY: none. */
static uint32_t edge_of_another(const struct hang_graph *graph, uint32_t edge)
{
	uint32_t from = graph->edges[edge].from;

	for (uint32_t i = graph->first_out[from]; i < graph->first_out[from + 1]; i++)
		if (graph->edges[i].to == graph->edges[edge].to &&
		    graph->edges[i].kind != HANG_EDGE_MAYBE &&
		    edge_rank(graph, i) != edge_rank(graph, edge))
			return i;
	return HANG_NOBODY;
}

/* A rank does not wait for itself: its calls run in order, and something else holds up the first. Such a cycle
 * becomes one between several ranks, if there is one, else it makes no cycles any more. */
static bool is_of_one_rank(struct hang_graph *graph, uint32_t *edges, size_t count)
{
	uint32_t another = HANG_NOBODY;

	for (size_t i = 1; i < count; i++)
		if (edge_rank(graph, edges[i]) != edge_rank(graph, edges[0]))
			return false;
	for (size_t i = 0; i < count && another == HANG_NOBODY; i++) {
		another = edge_of_another(graph, edges[i]);
		if (another != HANG_NOBODY)
			edges[i] = another;
	}
	for (size_t i = 0; i < count && another == HANG_NOBODY; i++)
		graph->edges[edges[i]].kind = HANG_EDGE_MAYBE;
	return another == HANG_NOBODY;
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
		if (is_of_one_rank(graph, edges, count))
			continue;
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

/* ---- entry points ---------------------------------------------------------------------------- */

static enum status tell_all(struct verdicts *verdicts, struct hang_graph *graph)
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

static enum status look_once(struct verdicts *verdicts, const struct job *job,
			     const struct hang_options *options, bool is_guess)
{
	struct hang_scene scene;
	struct hang_graph graph;
	enum status status = hang_scene_make(&scene, job, options, is_guess);

	if (status != OK)
		return status;
	hang_graph_init(&graph, &scene);
	graph_build(&graph);
	status = graph.status;
	if (status == OK)
		status = tell_all(verdicts, &graph);
	hang_graph_release(&graph);
	hang_scene_release(&scene);
	return status;
}

static bool is_reported(const struct verdicts *verdicts, size_t first, size_t end, const char *job)
{
	for (size_t i = first; i < end; i++)
		if (strcmp(verdicts->list[i].job, job) == 0)
			return true;
	return false;
}

/* Its communicator was read from dumps of which nobody knows when they were made. */
static bool is_from_undated(const struct verdict *verdict, const struct job *job)
{
	for (size_t s = 0; s < job->seat_count; s++) {
		const struct job_comm *comm = &job->comms[job->seats[s].comm];

		if (comm->hash == verdict->comm_hash &&
		    strcmp(job->groups[comm->group].name, verdict->job) == 0 &&
		    job->recording->processes[job->seats[s].process]->is_undated)
			return true;
	}
	return false;
}

/* Who has called what needs no clock: only for how long is unknown. */
static void doubt_undated(struct verdict *verdict)
{
	verdict->for_ns = 0;
	if (verdict->confidence > 0.9)
		verdict->confidence = 0.9;
	verdict_missing(verdict,
			"The dumps do not show when they were made: how long it has lasted is "
			"unknown, and if "
			"they were made on demand while the job worked, it may have gone on.");
}

/*
 * Regions of a killed job do not show when it was killed: it may have been a second or an hour after the
 * last record. So whether it hung is unknown. But the cause it would have had is known, which is what one
 * wants to know about a job that was just killed because it hung. For a job that was killed while it made
 * progress, it means nothing.
 */
static enum status guess_dead_jobs(struct verdicts *verdicts, size_t first, const struct job *job,
				   const struct hang_options *options)
{
	size_t end = verdicts->count;
	struct verdicts guesses;
	enum status status;

	verdicts_init(&guesses);
	status = look_once(&guesses, job, options, true);
	for (size_t i = 0; i < guesses.count; i++) {
		const struct verdict *guess = &guesses.list[i];
		struct verdict *verdict;

		if (is_from_undated(guess, job)) {
			doubt_undated(verdicts_add_copy(verdicts, guess));
			continue;
		}
		if (is_reported(verdicts, first, end, guess->job))
			continue;
		verdict = verdicts_add_copy(verdicts, guess);
		verdict_title(verdict, "possible hang at exit: %s", guess->title);
		verdict->severity = VERDICT_WARNING;
		verdict->for_ns = 0;
		if (verdict->confidence > 0.4)
			verdict->confidence = 0.4;
		verdict_missing(verdict, "All processes are dead and the time of death is unknown, "
					 "so the job may not have been hung.");
	}
	verdicts_release(&guesses);
	return status;
}

static bool has_dated_snapshots(const struct job *job, const struct hang_options *options)
{
	uint64_t first_ns = UINT64_MAX, last_ns = 0;

	for (size_t p = 0; p < job->recording->count; p++) {
		uint64_t wall_ns = job->recording->processes[p]->snapshot_wall_ns;

		if (wall_ns != 0 && wall_ns < first_ns)
			first_ns = wall_ns;
		if (wall_ns > last_ns)
			last_ns = wall_ns;
	}
	return last_ns > first_ns && !(options && (options->is_one_moment || options->now_ns));
}

/* The cause may be among what was left out. */
static void doubt_outdated(struct verdicts *verdicts, size_t first, size_t outdated, size_t torn,
			   const struct job *job)
{
	for (size_t i = first; i < verdicts->count; i++) {
		struct verdict *verdict = &verdicts->list[i];

		if (torn > 0)
			verdict_missing(verdict,
					"%zu of %zu recordings were left out: their files are "
					"truncated, and they were active when these end.",
					torn, job->recording->count);
		if (outdated == 0)
			continue;
		if (verdict->confidence > 0.5)
			verdict->confidence = 0.5;
		verdict_missing(
			verdict,
			"%zu of %zu snapshots were left out: they were made earlier than the "
			"others, while their processes were still active, so they do not show "
			"this moment.",
			outdated, job->recording->count);
		verdict_advice(verdict, "Take the snapshots of all nodes at the same time:");
		verdict_advice(verdict,
			       "$ ringside bundle --agents 'node[001-064]' -o hang.tar.gz");
	}
}

/* Judges without outdated snapshots, as if their ranks were not recorded. */
static enum status find_without(struct verdicts *verdicts, const struct job *job,
				const struct hang_options *options, const bool *is_outdated,
				size_t outdated, size_t torn)
{
	struct recording recording = *job->recording;
	size_t before = verdicts->count;
	enum status status = ERR_NO_SPACE;
	struct job rest;

	recording.count = 0;
	recording.processes = malloc((job->recording->count + 1) * sizeof(*recording.processes));
	for (size_t p = 0; recording.processes && p < job->recording->count; p++)
		if (!is_outdated[p])
			recording.processes[recording.count++] = job->recording->processes[p];
	if (recording.processes)
		status = job_make(&rest, &recording);
	if (status == OK) {
		status = look_once(verdicts, &rest, options, false);
		job_release(&rest);
	}
	free(recording.processes);
	doubt_outdated(verdicts, before, outdated - torn, torn, job);
	return status;
}

/* What their processes did last is lost, even if it was not much. */
static void doubt_torn(struct verdicts *verdicts, size_t first, size_t torn, const struct job *job)
{
	for (size_t i = first; i < verdicts->count && torn > 0; i++) {
		struct verdict *verdict = &verdicts->list[i];

		if (verdict->confidence > 0.5)
			verdict->confidence = 0.5;
		verdict_missing(verdict,
				"The files of %zu of %zu processes are truncated: what these "
				"did last is missing.",
				torn, job->recording->count);
	}
}

static enum status find_now(struct verdicts *verdicts, const struct job *job,
			    const struct hang_options *options)
{
	bool *is_outdated = NULL;
	size_t outdated = 0, torn = 0, all_torn = hang_count_torn(job), before = verdicts->count;
	enum status status = OK;

	if (has_dated_snapshots(job, options) || all_torn > 0) {
		is_outdated = calloc(job->recording->count, sizeof(*is_outdated));
		status = is_outdated
				 ? hang_find_outdated(job, options, is_outdated, &outdated, &torn)
				 : ERR_NO_SPACE;
	}
	if (status == OK)
		status = outdated > 0
				 ? find_without(verdicts, job, options, is_outdated, outdated, torn)
				 : look_once(verdicts, job, options, false);
	free(is_outdated);
	doubt_torn(verdicts, before, all_torn - torn, job);
	return status;
}

/* A rank that writes a checkpoint looks like this; a dead process or a deadlock does not. */
static bool may_be_work(const struct verdict *verdict)
{
	switch (verdict->class) {
	case VERDICT_NEVER_ISSUED:
	case VERDICT_NOT_LAUNCHED:
	case VERDICT_GPU_NOT_REACHED:
	case VERDICT_AGENT_DEAD:
	case VERDICT_UNSEEN:
	case VERDICT_STUCK:
		return true;
	default:
		return verdict->is_unjudged && strcmp(verdict->rule, "hang") == 0;
	}
}

/* The user of this job expects such waits. A job that died in one is not excused. */
static void allow_waits(struct verdicts *verdicts, size_t first, const struct job *job)
{
	for (size_t i = first; i < verdicts->count; i++) {
		struct verdict *verdict = &verdicts->list[i];
		uint64_t allowed_ns = job_hang_after_ns(job, verdict->job);
		char title[sizeof(verdict->title)], time[UNITS_TEXT];

		if (!may_be_work(verdict) || verdict->for_ns == 0 ||
		    verdict->for_ns >= allowed_ns || verdict->dead_wall_ns != 0)
			continue;
		verdict->is_allowed = true;
		verdict->severity = VERDICT_NOTE;
		text_copy(title, sizeof(title), verdict->title);
		verdict_title(verdict, "within RINGSIDE_HANG_AFTER: %s", title);
		verdict_evidence(verdict,
				 "RINGSIDE_HANG_AFTER of this job is %s: ranks may wait that long.",
				 units_duration(time, allowed_ns));
	}
}

/*
 * Where in the program: a rank that has not called what the others are in was last seen at its last
 * call, and the others wait in theirs. Known if the program's own recorder wrote a dump.
 */

/* Ranks wait in a few places; what differs from rank to rank would fill the page. */
enum { PLACES_SHOWN = 3 };

static const struct recording_process *process_of(const struct job *job, uint32_t rank)
{
	return job->recording->processes[job->ranks[rank].process];
}

/* Several jobs may have a rank of this name. */
static bool is_of_job(const struct verdict *verdict, const struct job *job, uint32_t rank)
{
	return strcmp(job->groups[job->ranks[rank].group].name, verdict->job) == 0;
}

static bool is_culprit(const struct verdict *verdict, const struct job *job, uint32_t rank)
{
	return is_of_job(verdict, job, rank) &&
	       strcmp(job->ranks[rank].label, verdict->rank_label) == 0;
}

/* The first call in flight on the verdict's communicator; of any if it names none. NULL: none. */
static const struct recording_where *waits_at(const struct verdict *verdict,
					      const struct recording_process *process)
{
	const struct recording_where *first = NULL;

	for (size_t i = 0; i < process->where_count; i++) {
		const struct recording_where *where = &process->wheres[i];
		const struct recording_comm *comm;

		if (!where->is_open || where->text == NULL)
			continue;
		comm = recording_comm(process, where->comm);
		if (verdict->comm_hash != 0 && verdict->class != VERDICT_DEADLOCK &&
		    (comm == NULL || comm->info.hash != verdict->comm_hash))
			continue;
		if (first == NULL || where->issue_ns < first->issue_ns)
			first = where;
	}
	return first;
}

static void say_culprit(struct verdict *verdict, const struct job *job)
{
	for (uint32_t r = 0; r < job->rank_count; r++) {
		const struct recording_process *process = process_of(job, r);
		const struct recording_where *last;

		if (!is_culprit(verdict, job, r))
			continue;
		last = recording_where(process, 0, 0);
		if (last != NULL)
			verdict_evidence(verdict, "Rank %s made its %s call at %s.",
					 job->ranks[r].label, last->is_open ? "current" : "last",
					 last->text);
	}
}

/* One line for all ranks in the same place: by rank, NULL none. Clears them. */
static void say_shared(struct verdict *verdict, const struct job *job, const char **places,
		       const char *one, const char *many, const char *others)
{
	uint32_t *ranks = calloc(job->rank_count + 1, sizeof(*ranks));
	unsigned int shown = 0;

	for (uint32_t first = 0; ranks != NULL && first < job->rank_count; first++) {
		const char *place = places[first];
		char text[160] = "";
		size_t count = 0;

		if (place == NULL)
			continue;
		if (shown++ == PLACES_SHOWN) {
			verdict_evidence(verdict, "%s", others);
			break;
		}
		for (uint32_t r = first; r < job->rank_count; r++) {
			if (places[r] == NULL || strcmp(places[r], place) != 0)
				continue;
			places[r] = NULL;
			ranks[count++] = r;
		}
		hang_say_ranks(text, sizeof(text), job, ranks, count);
		verdict_evidence(verdict, "Rank%s %s %s %s.", count == 1 ? "" : "s", text,
				 count == 1 ? one : many, place);
	}
	free(ranks);
}

static void say_places(struct verdict *verdict, const struct job *job)
{
	const char **places = calloc(job->rank_count + 1, sizeof(*places));

	if (places == NULL)
		return;
	for (uint32_t r = 0; r < job->rank_count; r++) {
		const struct recording_where *at = waits_at(verdict, process_of(job, r));

		if (at != NULL && is_of_job(verdict, job, r) && !is_culprit(verdict, job, r))
			places[r] = at->text;
	}
	say_shared(verdict, job, places, "waits at", "wait at",
		   "Others wait elsewhere in the program.");
	free(places);
}

/* How long ago its last NCCL call was when it was read, as in the rest of the verdict; 0: unknown. */
static uint64_t since_last_call(const struct recording_process *process, uint64_t now_ns)
{
	uint64_t last_ns = recording_last_call_ns(process);

	return last_ns > 0 && now_ns > last_ns ? now_ns - last_ns : 0;
}

static void say_stack_of_culprit(struct verdict *verdict, const struct job *job, uint32_t rank,
				 const uint64_t *now_ns)
{
	const struct recording_process *process = process_of(job, rank);
	uint64_t at_ns = now_ns ? now_ns[job->ranks[rank].process] : process->counts_ns;
	uint64_t since_ns = 0;

	if (verdict->class == VERDICT_NEVER_ISSUED)
		since_ns = since_last_call(process, at_ns);

	text_copy(verdict->place, sizeof(verdict->place), process->stack);
	if (since_ns > 0)
		text_append(verdict->place, sizeof(verdict->place), ", %s after its last NCCL call",
			    units_of_ns((double)since_ns).text);
	verdict_evidence(verdict, "Rank %s is %s.", job->ranks[rank].label, verdict->place);
}

static void say_stacks(struct verdict *verdict, const struct job *job, const uint64_t *now_ns)
{
	const char **places = calloc(job->rank_count + 1, sizeof(*places));
	uint32_t *shares = calloc(job->recording->count + 1, sizeof(*shares));
	bool has_memory = places != NULL && shares != NULL;

	for (uint32_t r = 0; has_memory && r < job->rank_count; r++)
		shares[job->ranks[r].process]++;
	for (uint32_t r = 0; has_memory && r < job->rank_count; r++) {
		const char *stack = process_of(job, r)->stack;

		/* Several ranks may share a process: then its stack belongs to none of them. */
		if (stack == NULL || !is_of_job(verdict, job, r) ||
		    shares[job->ranks[r].process] > 1)
			continue;
		if (is_culprit(verdict, job, r))
			say_stack_of_culprit(verdict, job, r, now_ns);
		else
			places[r] = stack;
	}
	if (has_memory)
		say_shared(verdict, job, places, "is", "are",
			   "Other ranks are elsewhere in the program.");
	free(places);
	free(shares);
}

void hang_say_stacks(struct verdicts *verdicts, size_t first, const struct job *job,
		     const uint64_t *now_ns)
{
	bool has_any = false;

	for (size_t p = 0; p < job->recording->count; p++)
		has_any |= job->recording->processes[p]->stack != NULL;
	for (size_t i = first; has_any && i < verdicts->count; i++)
		if (verdict_is_hang(verdicts->list[i].class))
			say_stacks(&verdicts->list[i], job, now_ns);
}

static void say_where(struct verdicts *verdicts, size_t first, const struct job *job)
{
	bool has_any = false;

	for (size_t p = 0; p < job->recording->count; p++)
		has_any |= job->recording->processes[p]->where_count > 0;
	for (size_t i = first; has_any && i < verdicts->count; i++) {
		say_culprit(&verdicts->list[i], job);
		say_places(&verdicts->list[i], job);
	}
}

enum status hang_find(struct verdicts *verdicts, const struct job *job,
		      const struct hang_options *options)
{
	size_t before = verdicts->count;
	enum status status = find_now(verdicts, job, options);

	if (options && options->has_job_limits)
		allow_waits(verdicts, before, job);

	if (status == OK && !(options && options->only_living))
		status = guess_dead_jobs(verdicts, before, job, options);
	say_where(verdicts, before, job);
	hang_say_stacks(verdicts, before, job, options ? options->now_ns : NULL);
	return status;
}
