/* What all verdicts on hangs are made of: names of ranks and operations, times, who waits. */
#include "doctor/hang_internal.h"

#include <inttypes.h>
#include <stdlib.h>

#include "analysis/match.h"
#include "common/attributes.h"
#include "common/op.h"
#include "common/text.h"

#define SAY text, sizeof(text)

enum { NAMED = 12 }; /* ranks, or ranges of them, that a sentence lists */

void hang_say_whole_rank(char *text, size_t size, const struct hang_scene *scene, uint32_t seat)
{
	const struct recording_process *process = hang_process(scene, seat);
	const struct job_rank *rank = hang_rank(scene, seat);

	job_say_rank(text, size, scene->job, seat);
	text_append(text, size, " (%.60s", process->host[0] ? process->host : "host unknown");
	if (recording_pid(process) > 0)
		text_append(text, size, ", pid %" PRId64, recording_pid(process));
	if (rank->gpu >= 0)
		text_append(text, size, ", GPU %d", rank->gpu);
	text_append(text, size, ")");
}

void hang_say_operation(char *text, size_t size, const struct hang_scene *scene, uint32_t seat,
			const struct op_record *op)
{
	const struct job_comm *comm = hang_comm(scene, seat);
	uint32_t peer;

	job_say_operation(text, size, scene->job, seat, op);
	if (op->peer < 0 || (op->function != OP_SEND && op->function != OP_RECV))
		return;
	text_append(text, size, op->function == OP_SEND ? " to " : " from ");
	peer = job_member(scene->job, comm, op->peer);
	/* The name of one that was not placed has the communicator in it. */
	if (peer == HANG_NOBODY || hang_rank(scene, peer)->is_unplaced)
		text_append(text, size, "its rank %d", op->peer);
	else
		job_say_rank(text, size, scene->job, peer);
}

void hang_say_held(char *text, size_t size, const struct hang_scene *scene, uint32_t seat)
{
	const struct hang_seat *of = &scene->seats[seat];
	const struct recording_flight *flight = of->front;

	if (flight == NULL && of->flight_count > 0)
		flight = &hang_flights(scene, seat)[of->flight_count - 1];
	if (flight != NULL)
		hang_say_operation(text, size, scene, seat, &flight->op);
	else
		text_append(text, size, "something");
	text_append(text, size, " of %.60s", hang_comm(scene, seat)->label);
}

void hang_say_call(char *text, size_t size, const struct recording_process *process,
		   const struct hang_call *call)
{
	text_append(text, size, "%.24s of %" PRIu64 " %.24s",
		    recording_name(process, OP_NAMES_FUNCTION, call->function), call->count,
		    recording_name(process, OP_NAMES_DATATYPE, call->datatype));
	if (call->root >= 0 && !match_is_synchronising(call->function))
		text_append(text, size, " with root %d", call->root);
}

void hang_say_for(char *text, size_t size, const struct hang_scene *scene, const char *before,
		  uint64_t ns, const char *after)
{
	char time[UNITS_TEXT];

	if (!scene->is_guess)
		text_append(text, size, "%s%s%s", before, units_duration(time, ns), after);
}

void hang_say_wall(char *text, size_t size, uint64_t wall_ns)
{
	char time[UNITS_TEXT];

	if (wall_ns != 0)
		text_append(text, size, "%s UTC", units_date(time, wall_ns));
}

static int ascending(const void *one, const void *other)
{
	const uint32_t *a = one, *b = other;

	return ORDER(*a, *b);
}

/* Do both have a plain number, and are they consecutive? */
static bool is_next(const struct job *job, uint32_t a, uint32_t b)
{
	return job->ranks[a].rank >= 0 && job->ranks[a].attempt == 0 &&
	       job->ranks[b].attempt == 0 && job->ranks[a].group == job->ranks[b].group &&
	       job->ranks[b].rank == job->ranks[a].rank + 1;
}

/* Ranks are sorted by group and number, so their indices are, too. */
void hang_say_ranks(char *text, size_t size, const struct job *job, uint32_t *ranks, size_t count)
{
	size_t at = 0;

	qsort(ranks, count, sizeof(*ranks), ascending);
	for (size_t named = 0; at < count && named < NAMED; named++) {
		size_t last = at;

		while (last + 1 < count && is_next(job, ranks[last], ranks[last + 1]))
			last++;
		text_append(text, size, "%s%.24s", named > 0 ? ", " : "",
			    job->ranks[ranks[at]].label);
		if (last > at)
			text_append(text, size, "%s%.24s", last > at + 1 ? "-" : ", ",
				    job->ranks[ranks[last]].label);
		at = last + 1;
	}
	if (at < count)
		text_append(text, size, " and %zu more", count - at);
}

enum { OTHERS_MAX = 6 }; /* other affected communicators that are listed */

/* ---- rank, place, time ----------------------------------------------------------------------- */

void hang_tell_who(struct hang_tale *tale, uint32_t seat)
{
	const struct job *job = tale->scene->job;

	if (seat == HANG_NOBODY)
		return;
	verdict_set_rank(tale->verdict, job, job->seats[seat].rank);
	tale->verdict->comm_rank = job->seats[seat].comm_rank;
}

void hang_tell_where(struct hang_tale *tale, uint32_t c, uint32_t witness,
		     const struct recording_flight *flight, uint64_t since_ns)
{
	const struct hang_scene *scene = tale->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	struct verdict *verdict = tale->verdict;
	uint32_t process;

	text_copy(verdict->job, sizeof(verdict->job), scene->job->groups[comm->group].name);
	text_copy(verdict->comm, sizeof(verdict->comm), comm->label);
	verdict->comm_hash = comm->hash;
	verdict->dead_wall_ns =
		scene->processes[scene->job->seats[comm->seats[0]].process].dead_wall_ns;
	if (witness == HANG_NOBODY || flight == NULL)
		return;
	process = scene->job->seats[witness].process;
	text_copy(verdict->function, sizeof(verdict->function),
		  recording_name(hang_process(scene, witness), OP_NAMES_FUNCTION,
				 flight->op.function));
	verdict->number = flight->op.match;
	if (since_ns == 0)
		since_ns = flight->op.active_ns ? flight->op.active_ns : flight_since_ns(flight);
	verdict->for_ns = hang_ago(scene, process, since_ns);
	verdict->since_wall_ns = hang_wall(scene, process, since_ns);
}

/* A seat that was not placed, of a process of which another rank is a culprit: it may be the same one. */
static bool may_be_named(const struct hang_tale *tale, const struct hang_end *end)
{
	const struct job *job = tale->scene->job;
	const struct job_rank *rank = &job->ranks[job->seats[end->seat].rank];

	if (!rank->is_unplaced || end == tale->lead)
		return false;
	for (uint32_t e = tale->first; e != HANG_NOBODY; e = tale->graph->ends[e].next) {
		const struct hang_end *other = &tale->graph->ends[e];

		if (other->seat != HANG_NOBODY &&
		    job->seats[other->seat].process == rank->process && other != end &&
		    (other == tale->lead || !job->ranks[job->seats[other->seat].rank].is_unplaced))
			return true;
	}
	return false;
}

size_t hang_culprits(struct hang_tale *tale)
{
	const struct hang_graph *graph = tale->graph;
	size_t count = 0;

	tale->asked++;
	for (uint32_t e = tale->first; e != HANG_NOBODY; e = graph->ends[e].next) {
		uint32_t rank;

		if (graph->ends[e].seat == HANG_NOBODY || may_be_named(tale, &graph->ends[e]))
			continue;
		rank = tale->scene->job->seats[graph->ends[e].seat].rank;
		if (tale->culprit_stamps[rank] == tale->asked)
			continue;
		tale->culprit_stamps[rank] = tale->asked;
		tale->ranks[count++] = rank;
	}
	return count;
}

/* ---- waiting ranks --------------------------------------------------------------------------- */

static void say_since(char *text, size_t size, const struct hang_scene *scene, uint32_t process,
		      uint64_t since_ns, bool is_called)
{
	uint64_t wall_ns = hang_wall(scene, process, since_ns);

	hang_say_for(text, size, scene, is_called ? " " : " for ",
		     hang_ago(scene, process, since_ns), is_called ? " ago" : "");
	if (wall_ns == 0)
		return;
	text_append(text, size, is_called ? " (at " : " (since ");
	hang_say_wall(text, size, wall_ns);
	text_append(text, size, ")");
}

/* Ranks of a match that are at least this far and whose process is alive. */
static uint32_t seats_in(const struct hang_scene *scene, uint32_t c, enum hang_presence least)
{
	const struct job_comm *comm = &scene->job->comms[c];
	uint32_t count = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t s = comm->seats[i];

		/* Where others are known to be in it, a call does not count. */
		count += hang_is_in_match(scene, s, &scene->matches[c]) &&
			 (scene->matches[c].is_by_calls || !scene->seats[s].is_by_calls) &&
			 scene->seats[s].presence >= least && !scene->seats[s].is_over &&
			 scene->processes[scene->job->seats[s].process].life == HANG_RUNS;
	}
	return count;
}

/* "7 of 8 ranks of dp have been in "; "have been waiting in their call to " if no rank is inside. */
static void say_members(char *text, size_t size, const struct hang_scene *scene, uint32_t c)
{
	const struct job_comm *comm = &scene->job->comms[c];
	uint32_t inside = seats_in(scene, c, HANG_UNSURE);
	uint32_t count = inside > 0 ? inside : seats_in(scene, c, HANG_ISSUED);
	bool is_one = count == 1;

	text_append(text, size, "%u of %u %sranks of %.60s %s ", count, comm->seat_count,
		    comm->missing > 0 ? "recorded " : "", comm->label,
		    scene->matches[c].is_by_calls ? "called"
		    : inside > 0		  ? (is_one ? "has been in" : "have been in")
						  : (is_one ? "has been waiting in its call to"
							    : "have been waiting in their call to"));
}

/* One waiting node, as a sentence. */
static void say_node(char *text, size_t size, const struct hang_scene *scene, uint32_t node)
{
	uint32_t comms = (uint32_t)scene->job->comm_count;
	uint32_t witness = node < comms ? scene->matches[node].first : node - comms;
	const struct recording_flight *front = scene->seats[witness].front;
	const struct job_comm *comm = hang_comm(scene, witness);

	if (node < comms) {
		say_members(text, size, scene, node);
	} else {
		job_say_rank(text, size, scene->job, witness);
		text_append(text, size,
			    scene->seats[witness].presence == HANG_ISSUED
				    ? " has been waiting in its call to "
			    : scene->seats[witness].is_by_calls ? " called "
								: " has been in ");
	}
	hang_say_operation(text, size, scene, witness, &front->op);
	if (node >= comms)
		text_append(text, size, " of %.60s", comm->label);
	say_since(text, size, scene, scene->job->seats[witness].process,
		  front->op.active_ns ? front->op.active_ns : flight_since_ns(front),
		  node < comms ? scene->matches[node].is_by_calls
			       : scene->seats[witness].is_by_calls);
}

/* Why a node waits for the next one of the chain. */
static void say_edge(char *text, size_t size, const struct hang_scene *scene,
		     const struct hang_edge *edge)
{
	text_append(text, size, ": ");
	job_say_rank(text, size, scene->job, edge->seat);
	text_append(text, size,
		    edge->kind == HANG_EDGE_NOT_CALLED	    ? " has not called it and is in "
		    : edge->kind == HANG_EDGE_NOT_STARTED   ? " has not started it; its GPU is in "
		    : edge->kind == HANG_EDGE_CALLED_BEFORE ? " called it after "
							    : " may still be in ");
	hang_say_held(text, size, scene, edge->held_by);
}

static const struct hang_edge *edge_of(const struct hang_graph *graph, uint32_t node, uint8_t mark)
{
	for (uint32_t i = graph->first_out[node]; i < graph->first_out[node + 1]; i++)
		if (graph->marks[graph->edges[i].to] == mark)
			return &graph->edges[i];
	return NULL;
}

static bool is_owner(const struct hang_tale *tale, uint32_t node)
{
	for (uint32_t e = tale->first; e != HANG_NOBODY; e = tale->graph->ends[e].next)
		if (tale->graph->ends[e].node == node)
			return true;
	return false;
}

/* The operation a stopped process is in is not evidence of waiting. */
static bool is_of_culprit(const struct hang_tale *tale, uint32_t node)
{
	uint32_t comms = (uint32_t)tale->scene->job->comm_count;

	return tale->lead->class == VERDICT_PROCESS_STOPPED && node >= comms &&
	       tale->scene->processes[tale->scene->job->seats[node - comms].process].life ==
		       HANG_STOPPED;
}

void hang_tell_waiting(struct hang_tale *tale)
{
	char text[600] = "";

	if (is_of_culprit(tale, tale->lead->node))
		return;
	say_node(SAY, tale->scene, tale->lead->node);
	text_capital(text);
	verdict_evidence(tale->verdict, "%s.", text);
}

void hang_tell_stalled(struct hang_tale *tale, uint64_t number)
{
	const struct hang_scene *scene = tale->scene;
	uint32_t first = scene->matches[tale->lead->comm].first;
	const struct recording_flight *front = scene->seats[first].front;
	const struct job_comm *comm = &scene->job->comms[tale->lead->comm];
	uint32_t count = 0;
	char text[300] = "";

	for (uint32_t i = 0; i < comm->seat_count; i++)
		count += scene->seats[comm->seats[i]].front != NULL &&
			 !scene->seats[comm->seats[i]].is_over;
	say_since(SAY, scene, scene->job->seats[first].process,
		  front->op.active_ns ? front->op.active_ns : flight_since_ns(front), false);
	verdict_evidence(tale->verdict,
			 "%u of %u ranks of %.60s have been stuck in collective #%" PRIu64
			 " or a later one%s.",
			 count, comm->seat_count, comm->label, number, text);
}

void hang_tell_others(struct hang_tale *tale)
{
	const struct hang_graph *graph = tale->graph;
	uint32_t told = 0, left_out = 0;

	for (size_t i = 0; i < tale->reached; i++) {
		uint32_t node = graph->queue[i];
		const struct hang_edge *edge;
		char text[600] = "";

		if (node == tale->lead->node || !hang_node_hangs(tale->scene, node) ||
		    is_of_culprit(tale, node))
			continue;
		if (told == OTHERS_MAX) {
			left_out++;
			continue;
		}
		told++;
		say_node(SAY, tale->scene, node);
		edge = is_owner(tale, node) ? NULL : edge_of(graph, node, graph->marks[node]);
		if (edge != NULL)
			say_edge(SAY, tale->scene, edge);
		text_capital(text);
		verdict_evidence(tale->verdict, "%s.", text);
	}
	if (left_out > 0)
		verdict_evidence(tale->verdict, "%u more like these wait for the same cause.",
				 left_out);
}

/* ---- common parts ---------------------------------------------------------------------------- */

void hang_say_victims(char *text, size_t size, uint32_t victims)
{
	if (victims > 0)
		text_append(text, size, "; %u rank%s", victims, victims == 1 ? " waits" : "s wait");
}

void hang_say_culprits(struct hang_tale *tale, char *text, size_t size, const char *one,
		       const char *many)
{
	size_t count = hang_culprits(tale);

	if (count <= 1) {
		job_say_rank(text, size, tale->scene->job, tale->lead->seat);
		text_append(text, size, " %s", one);
		return;
	}
	text_append(text, size, "ranks ");
	hang_say_ranks(text, size < 110 ? size : 110, tale->scene->job, tale->ranks, count);
	text_append(text, size, " %s", many);
}

void hang_say_lead(const struct hang_tale *tale, char *text, size_t size)
{
	const struct hang_end *lead = tale->lead;

	hang_say_operation(text, size, tale->scene, lead->witness, &lead->flight->op);
	text_append(text, size, " of %.40s", tale->scene->job->comms[lead->comm].label);
}

void hang_tell_culprits(struct hang_tale *tale)
{
	size_t count = hang_culprits(tale);
	char text[600] = "";
	uint32_t host;
	bool is_one_host = true;

	if (count < 2)
		return;
	host = tale->scene->job->ranks[tale->ranks[0]].host;
	for (size_t i = 1; i < count; i++)
		is_one_host &= tale->scene->job->ranks[tale->ranks[i]].host == host;
	hang_say_ranks(SAY, tale->scene->job, tale->ranks, count);
	verdict_evidence(tale->verdict, "Affected: %zu ranks (%s).%s%.60s%s", count, text,
			 is_one_host ? " All are on " : "",
			 is_one_host ? tale->scene->job->hosts[host].name : "",
			 is_one_host ? "." : "");
}
