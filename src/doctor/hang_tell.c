/* One verdict per group of ends: who, where, since when, in sentences. */
#include "doctor/hang_tell.h"

#include <inttypes.h>
#include <string.h>

#include "common/text.h"
#include "doctor/hang_words.h"

enum { OTHERS_MAX = 6 }; /* communicators that are told to be held up, too */

#define SAY text, sizeof(text)

/* ---- whom, where, when ----------------------------------------------------------------------------- */

void hang_tell_who(struct hang_tale *tale, uint32_t seat)
{
	const struct hang_scene *scene = tale->scene;
	struct verdict *verdict = tale->verdict;
	const struct recording_process *process;
	const struct job_rank *rank;

	if (seat == HANG_NOBODY)
		return;
	process = hang_process(scene, seat);
	rank = hang_rank(scene, seat);
	verdict->rank = rank->rank;
	text_copy(verdict->rank_label, sizeof(verdict->rank_label), rank->label);
	text_copy(verdict->host, sizeof(verdict->host), process->host);
	verdict->pid = process->pid_here > 0 ? process->pid_here : process->pid;
	verdict->gpu = rank->gpu;
	verdict->comm_rank = scene->job->seats[seat].comm_rank;
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

size_t hang_culprits(struct hang_tale *tale)
{
	const struct hang_graph *graph = tale->graph;
	size_t count = 0;

	tale->asked++;
	for (uint32_t e = tale->first; e != HANG_NOBODY; e = graph->ends[e].next) {
		uint32_t rank;

		if (graph->ends[e].seat == HANG_NOBODY)
			continue;
		rank = tale->scene->job->seats[graph->ends[e].seat].rank;
		if (tale->culprit_stamps[rank] == tale->asked)
			continue;
		tale->culprit_stamps[rank] = tale->asked;
		tale->ranks[count++] = rank;
	}
	return count;
}

/* ---- who waits ------------------------------------------------------------------------------------- */

static void say_since(char *text, size_t size, const struct hang_scene *scene, uint32_t process,
		      uint64_t since_ns, bool is_called)
{
	uint64_t wall_ns = hang_wall(scene, process, since_ns);

	hang_say_for(text, size, scene, is_called ? " " : " for ",
		     hang_ago(scene, process, since_ns), is_called ? " ago" : "");
	if (wall_ns == 0)
		return;
	text_append(text, size, is_called ? ", at " : ", since ");
	hang_say_wall(text, size, wall_ns);
}

/* Members of a meeting that have come so far, and whose process goes on. */
static uint32_t seats_in(const struct hang_scene *scene, uint32_t c, enum hang_presence least)
{
	const struct job_comm *comm = &scene->job->comms[c];
	uint32_t count = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t s = comm->seats[i];

		count += hang_is_in_meeting(scene, s, &scene->meetings[c]) &&
			 scene->seats[s].presence >= least && !scene->seats[s].is_over &&
			 scene->processes[scene->job->seats[s].process].life == HANG_RUNS;
	}
	return count;
}

/* "7 of 8 ranks of dp are in ", "wait in their call of " where nobody is inside. */
static void say_members(char *text, size_t size, const struct hang_scene *scene, uint32_t c)
{
	const struct job_comm *comm = &scene->job->comms[c];
	uint32_t inside = seats_in(scene, c, HANG_UNSURE);
	uint32_t count = inside > 0 ? inside : seats_in(scene, c, HANG_ISSUED);
	bool is_one = count == 1;

	text_append(text, size, "%u of %u ranks %sof %.60s %s ", count, comm->seat_count,
		    comm->missing > 0 ? "that are seen " : "", comm->label,
		    scene->meetings[c].is_by_calls ? (is_one ? "has called" : "have called")
		    : inside > 0		   ? (is_one ? "is in" : "are in")
				 : (is_one ? "waits in its call of" : "wait in their call of"));
}

/* One node that waits, as a sentence. */
static void say_node(char *text, size_t size, const struct hang_scene *scene, uint32_t node)
{
	uint32_t comms = (uint32_t)scene->job->comm_count;
	uint32_t witness = node < comms ? scene->meetings[node].first : node - comms;
	const struct recording_flight *front = scene->seats[witness].front;
	const struct job_comm *comm = hang_comm(scene, witness);

	if (node < comms) {
		say_members(text, size, scene, node);
	} else {
		hang_say_rank(text, size, scene, witness);
		text_append(text, size,
			    scene->seats[witness].presence == HANG_ISSUED ? " waits in its call of "
			    : scene->seats[witness].is_by_calls		  ? " has called "
									  : " is in ");
	}
	hang_say_operation(text, size, scene, witness, &front->op);
	if (node >= comms)
		text_append(text, size, " of %.60s", comm->label);
	say_since(text, size, scene, scene->job->seats[witness].process,
		  front->op.active_ns ? front->op.active_ns : flight_since_ns(front),
		  scene->seats[witness].is_by_calls);
}

/* Why a node waits for another one of the chain. */
static void say_edge(char *text, size_t size, const struct hang_scene *scene,
		     const struct hang_edge *edge)
{
	text_append(text, size, ": ");
	hang_say_rank(text, size, scene, edge->seat);
	text_append(text, size,
		    edge->kind == HANG_EDGE_NOT_CALLED	    ? " has not come, it is in "
		    : edge->kind == HANG_EDGE_NOT_STARTED   ? " has not started it, its GPU is in "
		    : edge->kind == HANG_EDGE_CALLED_BEFORE ? " called before it "
							    : " may be before it, in ");
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

/* What a stopped process is in itself tells nothing of who waits. */
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
	hang_capital(text);
	verdict_evidence(tale->verdict, "%s.", text);
}

void hang_tell_stalled(struct hang_tale *tale, uint64_t number)
{
	const struct hang_scene *scene = tale->scene;
	uint32_t first = scene->meetings[tale->lead->comm].first;
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
			 "%u of %u ranks of %.60s stand still in collective %" PRIu64
			 " or a later one%s.",
			 count, comm->seat_count, comm->label, number, text);
}

/* Everything else that stands still because of it, a few of them. */
static void tell_others(struct hang_tale *tale)
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
		hang_capital(text);
		verdict_evidence(tale->verdict, "%s.", text);
	}
	if (left_out > 0)
		verdict_evidence(tale->verdict, "%u more like these wait for the same.", left_out);
}

/* ---- for all of them ---------------------------------------------------------------------------- */

/* "; 7 ranks wait". */
void hang_say_victims(char *text, size_t size, uint32_t victims)
{
	if (victims > 0)
		text_append(text, size, "; %u rank%s", victims, victims == 1 ? " waits" : "s wait");
}

/* "rank 5 has", "ranks 5-8 (4) have". */
void hang_say_culprits(struct hang_tale *tale, char *text, size_t size, const char *one,
		       const char *many)
{
	size_t count = hang_culprits(tale);

	if (count <= 1) {
		hang_say_rank(text, size, tale->scene, tale->lead->seat);
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
	verdict_evidence(tale->verdict, "It concerns %zu ranks: %s.%s%.60s%s", count, text,
			 is_one_host ? " All of them are on " : "",
			 is_one_host ? tale->scene->job->hosts[host].name : "",
			 is_one_host ? "." : "");
}

static void tell_channels(struct hang_tale *tale)
{
	const uint64_t *channels = tale->lead->channels;
	struct verdict *verdict = tale->verdict;
	int count = 0;

	hang_say_channels(verdict->channels, sizeof(verdict->channels), channels);
	for (int c = 0; c < 256; c++)
		if (channels[c / 64] >> (c % 64) & 1) {
			verdict->channel = c;
			count++;
		}
	if (count != 1)
		verdict->channel = -1;
}

void hang_tell_group(struct hang_tale *tale)
{
	const struct hang_end *lead = tale->lead;

	tell_channels(tale);
	hang_tell_who(tale, lead->seat);
	hang_tell_where(tale, lead->comm, lead->witness, lead->flight, lead->since_ns);
	switch (lead->class) {
	case VERDICT_NEVER_ISSUED:
		hang_tell_never_issued(tale);
		break;
	case VERDICT_PROCESS_DEAD:
	case VERDICT_PROCESS_STOPPED:
		hang_tell_process(tale);
		break;
	case VERDICT_NOT_LAUNCHED:
	case VERDICT_GPU_NOT_REACHED:
		hang_tell_gpu_waiting(tale);
		break;
	case VERDICT_GPU_STUCK:
		hang_tell_gpu_stuck(tale);
		break;
	case VERDICT_NETWORK_STUCK:
		hang_tell_link(tale);
		break;
	case VERDICT_MISMATCH:
		hang_tell_split(tale);
		break;
	case VERDICT_UNSEEN:
	case VERDICT_AGENT_DEAD:
		hang_tell_unseen(tale);
		break;
	case VERDICT_BLIND:
		hang_tell_unjudged(tale);
		return;
	default:
		hang_tell_stuck(tale);
	}
	if (tale->is_hang)
		tell_others(tale);
	hang_tell_doubts(tale);
	hang_tell_advice(tale);
}
