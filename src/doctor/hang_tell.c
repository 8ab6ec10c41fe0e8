/* The verdict of a group of ends, by its class. */
#include "doctor/hang_internal.h"

#include <inttypes.h>
#include <string.h>

#include "common/clock.h"
#include "common/text.h"

#define SAY text, sizeof(text)

/* ---- a missing rank, and a process that is gone or stopped ------------------------------------- */

/* The last known operation of a seat. */
static const struct recording_flight *last_flight(const struct hang_scene *scene, uint32_t seat)
{
	const struct hang_seat *of = &scene->seats[seat];

	if (of->flight_count == 0)
		return NULL;
	return &hang_process(scene, seat)->flights[of->first_flight + of->flight_count - 1];
}

/* Its last activity, on this communicator and anywhere. */
static void tell_last_deed(struct hang_tale *tale, uint32_t seat)
{
	const struct hang_scene *scene = tale->scene;
	const struct comm_counts *counts = &scene->seats[seat].comm->counts;
	const struct recording_flight *flight;
	uint64_t ago_ns;
	uint32_t last = hang_last_active(scene, seat, &ago_ns);
	char text[600] = "";

	hang_say_whole_rank(SAY, scene, seat);
	text_capital(text);
	if (tale->lead->note == HANG_NOTE_PEER)
		text_append(SAY, " has made %" PRIu64 " %s on %.60s", counts->issued,
			    text_which(counts->issued, "call", "calls"),
			    hang_comm(scene, seat)->label);
	else
		text_append(SAY, " has called %" PRIu64 " %s on %.60s", counts->collectives,
			    text_which(counts->collectives, "collective", "collectives"),
			    hang_comm(scene, seat)->label);
	if (counts->last_issue_ns != 0)
		hang_say_for(
			SAY, scene, ", the last one ",
			hang_ago(scene, scene->job->seats[seat].process, counts->last_issue_ns),
			" ago");
	verdict_evidence(tale->verdict, "%s.", text);
	if (last == HANG_NOBODY) {
		verdict_evidence(tale->verdict, "It has not called anything on any communicator.");
		return;
	}
	flight = last_flight(scene, last);
	text[0] = '\0';
	if (flight != NULL)
		hang_say_operation(SAY, scene, last, &flight->op);
	else
		text_append(SAY, "collective #%" PRIu64,
			    scene->seats[last].comm->counts.collectives);
	text_append(SAY, " of %.60s", hang_comm(scene, last)->label);
	hang_say_for(SAY, scene, ", ", ago_ns, " ago");
	verdict_evidence(tale->verdict, "Last recorded activity: %s.%s", text,
			 scene->seats[seat].is_over ? "" : " It has been in no operation since.");
}

/* What it has not called: for a Send or Recv, the other half. */
static void say_missing_call(const struct hang_tale *tale, char *text, size_t size)
{
	const struct hang_end *lead = tale->lead;

	text_append(text, size, " not called ");
	if (lead->note == HANG_NOTE_PEER) {
		text_append(text, size, "the %s for ",
			    lead->flight->op.function == OP_SEND ? "Recv" : "Send");
		job_say_rank(text, size, tale->scene->job, lead->witness);
		text_append(text, size, "'s ");
	}
	hang_say_lead(tale, text, size);
}

static void tell_never_issued(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_end *lead = tale->lead;
	uint32_t process = scene->job->seats[lead->seat].process;
	const char *rest = "";
	char text[300] = "";

	if (scene->processes[process].life == HANG_ENDED)
		rest = " and has ended";
	else if (scene->seats[lead->seat].comm->info.flags & COMM_FLAG_FINALIZED)
		rest = " and has closed the communicator";
	hang_say_culprits(tale, SAY, "has", "have");
	say_missing_call(tale, SAY);
	text_append(SAY, "%s", rest);
	hang_say_victims(SAY, tale->victims);
	verdict_title(tale->verdict, "%s", text);
	hang_tell_waiting(tale);
	hang_tell_culprits(tale);
	tell_last_deed(tale, lead->seat);
	if (rest[0] != '\0')
		verdict_evidence(tale->verdict, "It ended%s after collective #%" PRIu64 ".",
				 scene->processes[process].life == HANG_ENDED ? " cleanly"
									      : " its part",
				 scene->seats[lead->seat].comm->counts.collectives);
}

/* Is the rank of this seat alive and in nothing at all, on any communicator? */
static bool is_idle(const struct hang_scene *scene, uint32_t seat)
{
	const struct job *job = scene->job;
	const struct job_seat *of = &job->seats[seat];

	if (scene->processes[of->process].life != HANG_RUNS || scene->seats[seat].is_over)
		return false;
	for (uint32_t s = job->first_seat[of->process]; s < job->first_seat[of->process + 1]; s++)
		if (job->seats[s].rank == of->rank &&
		    (scene->seats[s].front != NULL || scene->seats[s].is_blind))
			return false;
	return true;
}

/* Ranks that have not called it either do not wait for the dead one, as far as is seen. */
static void tell_others_missing(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct job_comm *comm = &scene->job->comms[tale->lead->comm];
	const struct hang_match *match = &scene->matches[tale->lead->comm];
	size_t count = 0;
	char text[300] = "";

	if (!match->is_collective || match->is_by_calls || tale->lead->node != tale->lead->comm)
		return;
	for (uint32_t i = 0; i < comm->seat_count; i++)
		if (!hang_has_issued(scene, comm->seats[i], match) &&
		    is_idle(scene, comm->seats[i]))
			tale->ranks[count++] = scene->job->seats[comm->seats[i]].rank;
	if (count == 0)
		return;
	text_append(SAY, count == 1 ? "Rank " : "Ranks ");
	hang_say_ranks(SAY, scene->job, tale->ranks, count);
	verdict_missing(tale->verdict,
			"%s %s not called it either and %s in nothing: there may be a second "
			"cause.",
			text, count == 1 ? "has" : "have", count == 1 ? "is" : "are");
}

/* All are over, and this one gave no sign of life long before: afterwards nobody can tell whether it was dead by then. */
static bool may_have_been_stopped(const struct hang_process *process)
{
	return process->life == HANG_DEAD && process->is_dead_for_sure &&
	       process->dead_wall_ns != 0 && process->lag_ns > 0;
}

static const char *dead_words(const struct hang_process *process, bool is_one)
{
	if (may_have_been_stopped(process))
		return "died or was stopped";
	if (process->is_dead_for_sure)
		return is_one ? "is dead" : "are dead";
	return is_one ? "is probably dead" : "are probably dead";
}

static void tell_process(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_end *lead = tale->lead;
	const struct hang_process *process =
		&scene->processes[scene->job->seats[lead->seat].process];
	bool is_dead = lead->class == VERDICT_PROCESS_DEAD;
	char text[600] = "", end[60] = "";

	if (process->life == HANG_ENDED)
		hang_say_culprits(tale, SAY, "has exited", "have exited");
	else if (is_dead)
		hang_say_culprits(tale, SAY, dead_words(process, true), dead_words(process, false));
	else
		hang_say_culprits(tale, SAY, "is stopped", "are stopped");
	hang_say_victims(SAY, tale->victims);
	text_append(SAY, " in ");
	hang_say_lead(tale, SAY);
	verdict_title(tale->verdict, "%s", text);
	text[0] = '\0';
	hang_say_whole_rank(SAY, scene, lead->seat);
	hang_say_wall(end, sizeof(end), process->end_wall_ns);
	if (!is_dead)
		verdict_evidence(
			tale->verdict,
			"The process of %s is stopped (SIGSTOP, a debugger or a frozen container).",
			text);
	else if (process->life == HANG_ENDED)
		verdict_evidence(tale->verdict,
				 "The process of %s exited by itself%s%s, in the middle of this "
				 "operation and without leaving the communicator.",
				 text, end[0] ? ", at " : "", end);
	else if (may_have_been_stopped(process))
		verdict_evidence(
			tale->verdict,
			"The process of %s gave its last sign of life%s%s, %" PRIu64
			" s before the others. It died then, or it was stopped (SIGSTOP, a "
			"debugger or a frozen container) until it was killed.",
			text, end[0] ? " at " : "", end, process->lag_ns / SECOND_NS);
	else if (process->is_dead_for_sure)
		verdict_evidence(tale->verdict,
				 "The process of %s is gone and did not close its recording: it "
				 "was killed or crashed.",
				 text);
	else
		verdict_evidence(tale->verdict,
				 "The recording of %s ends %" PRIu64
				 " s before the others%s%s; it was not closed.",
				 text, process->lag_ns / SECOND_NS, end[0] ? ", at " : "", end);
	hang_tell_waiting(tale);
	hang_tell_culprits(tale);
	if (process->has_died_waiting)
		verdict_missing(tale->verdict,
				"It was in the operation for long when it died, and so were the "
				"others: there may be an earlier cause.");
	tell_others_missing(tale);
	if (scene->seats[lead->seat].front != NULL) {
		text[0] = '\0';
		hang_say_operation(SAY, scene, lead->seat, &scene->seats[lead->seat].front->op);
		verdict_evidence(tale->verdict, "It was in %s of %.60s.", text,
				 hang_comm(scene, lead->seat)->label);
	} else {
		tell_last_deed(tale, lead->seat);
	}
}

/* ---- the cause is not visible, or nothing explains the hang ------------------------------------- */

enum { WAITS_MAX = 4, OTHER_COMMS_TOLD = 6 };

/* If only one source is silent, its host is the name without the port. */
static void tell_silent(struct hang_tale *tale)
{
	const struct hang_options *options = tale->scene->options;
	const char *name = NULL;
	size_t silent = 0;

	for (size_t i = 0; options && i < options->source_count; i++) {
		const struct hang_source *source = &options->sources[i];

		if (!source->is_silent)
			continue;
		verdict_evidence(tale->verdict, "%.100s does not answer%s%.100s.",
				 source->name ? source->name : "?", source->problem ? ": " : "",
				 source->problem ? source->problem : "");
		name = source->name;
		silent++;
	}
	if (silent == 1 && name != NULL && strstr(name, "//") == NULL && strchr(name, '[') == NULL)
		text_format(tale->verdict->host, sizeof(tale->verdict->host), "%.*s",
			    (int)strcspn(name, ":"), name);
}

static void tell_unseen(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_end *lead = tale->lead;
	const struct job_comm *comm = &scene->job->comms[lead->comm];
	bool is_agent = lead->class == VERDICT_AGENT_DEAD;
	bool is_only = lead->peer_comm_rank >= 0 && comm->missing == 1;
	char text[600] = "";

	/* If several ranks are not visible, the one that a visible rank waits for may wait itself. */
	if (is_only)
		text_append(SAY, "no data from rank %d of %.40s", lead->peer_comm_rank,
			    comm->label);
	else
		text_append(SAY, "no data from %u of %d ranks of %.40s", comm->missing,
			    comm->nranks, comm->label);
	text_append(SAY, is_agent ? " (an agent does not respond)" : "");
	hang_say_victims(SAY, tale->victims);
	verdict_title(tale->verdict, "%s", text);
	if (is_agent)
		tell_silent(tale);
	hang_tell_waiting(tale);
	if (lead->note == HANG_NOTE_ONE_OF_HOST) {
		const char *host = hang_process(scene, lead->witness)->host;

		text_copy(tale->verdict->host, sizeof(tale->verdict->host), host);
		verdict_evidence(
			tale->verdict,
			"Transfers of %.60s wait for one of its own GPUs, and fewer of its "
			"ranks are recorded than of other hosts.",
			host);
	} else if (lead->peer_comm_rank >= 0 && lead->note != HANG_NOTE_ONLY_UNSEEN) {
		text[0] = '\0';
		hang_say_whole_rank(SAY, scene, lead->witness);
		text_capital(text);
		verdict_evidence(tale->verdict,
				 "%s waits for rank %d of %.60s, which is not recorded%s.", text,
				 lead->peer_comm_rank, comm->label,
				 is_only ? "" : " and may itself wait for another rank");
	} else {
		verdict_evidence(tale->verdict, "All recorded ranks have called it, and nothing "
						"recorded explains why it does not finish.");
	}
}

/* "rank 1 waits for data from rank 3 on channel 0 (21 s)". */
static void say_wait(char *text, size_t size, const struct hang_scene *scene, uint32_t seat,
		     const struct flight_wait *wait)
{
	/* The sentence contains "rank %d" once, for the peer. */
	const char *sentence = flight_reason_text(wait->reason);
	const char *place = strstr(sentence, "rank %d");
	uint32_t peer = job_member(scene->job, hang_comm(scene, seat), wait->peer);
	bool is_one;

	job_say_rank(text, size, scene->job, seat);
	text_append(text, size, " %.*s", place ? (int)(place - sentence) : 80, sentence);
	if (place != NULL && peer != HANG_NOBODY)
		job_say_rank(text, size, scene->job, peer);
	else if (place != NULL)
		text_append(text, size, "its rank %d", wait->peer);
	if (place != NULL)
		text_append(text, size, "%s", place + strlen("rank %d"));
	is_one = !(wait->channels[0] & (wait->channels[0] - 1)) && !wait->channels[1] &&
		 !wait->channels[2] && !wait->channels[3];
	text_append(text, size, is_one ? " on channel " : " on channels ");
	verdict_say_channels(text, size, wait->channels);
	hang_say_for(text, size, scene, " (",
		     hang_ago(scene, scene->job->seats[seat].process, wait->since_ns), ")");
}

/* What its ranks wait for: the longest wait of each, a few of them. */
static void tell_waits(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct job_comm *comm = &scene->job->comms[tale->lead->comm];
	uint32_t told = 0;

	for (uint32_t i = 0; i < comm->seat_count && told < WAITS_MAX; i++) {
		const struct hang_seat *seat = &scene->seats[comm->seats[i]];
		char text[300] = "";

		if (seat->wait_count == 0)
			continue;
		say_wait(SAY, scene, comm->seats[i], &seat->waits[0]);
		text_capital(text);
		verdict_evidence(tale->verdict, "%s.", text);
		told++;
	}
}

/* Kernels were launched everywhere, and none runs. */
static void tell_none_started(struct hang_tale *tale)
{
	const struct job_comm *comm = &tale->scene->job->comms[tale->lead->comm];
	char text[600] = "";

	hang_say_lead(tale, SAY);
	verdict_evidence(tale->verdict,
			 "All %u ranks of %.60s have called %s and NCCL has launched its kernel on "
			 "all of them, but no GPU %s started it.",
			 comm->seat_count, comm->label, text,
			 hang_ranks_with(tale, HANG_GPU_UNKNOWN) > 0 ? "is known to have" : "has");
	hang_tell_between(tale);
	verdict_missing(tale->verdict,
			"Earlier GPU work is not recorded: all GPUs may be computing, "
			"or all be stuck.");
}

static void tell_stuck(struct hang_tale *tale)
{
	const struct hang_end *lead = tale->lead;
	char text[600] = "", channels[64] = "";

	text_append(SAY, "%u rank%s stuck in ", tale->victims, tale->victims == 1 ? "" : "s");
	hang_say_lead(tale, SAY);
	verdict_title(tale->verdict, "%s", text);
	if (lead->note == HANG_NOTE_NONE_STARTED) {
		tell_none_started(tale);
		return;
	}
	hang_tell_waiting(tale);
	hang_tell_reached(tale);
	tell_waits(tale);
	verdict_say_channels(channels, sizeof(channels), lead->channels);
	if (lead->note == HANG_NOTE_NAMELESS)
		verdict_missing(tale->verdict, "NCCL before 2.27 does not identify communicators "
					       "across processes, so ranks cannot be compared.");
	else if (channels[0] != '\0' && lead->note == HANG_NOTE_CHANNEL)
		verdict_evidence(tale->verdict,
				 "All ranks are in it, with channels %s open; nothing is on the "
				 "wire, and all ranks are equally far.",
				 channels);
}

/* Other communicators that cannot be judged either. */
static void tell_other_comms(struct hang_tale *tale)
{
	const struct hang_graph *graph = tale->graph;
	uint32_t count = 0, left_out = 0;
	char text[500] = "";

	for (uint32_t e = tale->first; e != HANG_NOBODY; e = graph->ends[e].next) {
		if (graph->ends[e].comm == tale->lead->comm)
			continue;
		if (count >= OTHER_COMMS_TOLD)
			left_out++;
		else
			text_append(SAY, "%s%.60s", count++ > 0 ? ", " : "",
				    tale->scene->job->comms[graph->ends[e].comm].label);
	}
	if (count == 0)
		return;
	if (left_out > 0)
		text_append(SAY, " and %u more", left_out);
	verdict_evidence(tale->verdict, "The same applies to %s.", text);
}

/* No rank is named. */
static void forget_who(struct verdict *verdict)
{
	verdict->rank = -1;
	verdict->rank_label[0] = verdict->host[0] = '\0';
	verdict->pid = verdict->gpu = verdict->comm_rank = -1;
}

/* Only calls are recorded, and calls do not show whether they hang. */
static void tell_unjudged(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_end *lead = tale->lead;
	const struct hang_match *match = &scene->matches[lead->comm];
	const struct job_comm *comm = &scene->job->comms[lead->comm];
	struct verdict *verdict = tale->verdict;
	char text[600] = "", time[UNITS_TEXT];
	uint32_t called = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++)
		called += scene->seats[comm->seats[i]].front != NULL;
	units_duration(time, match->still_ns);
	verdict->is_unjudged = true;
	text_copy(verdict->rule, sizeof(verdict->rule), "hang");
	text_copy(verdict->page, sizeof(verdict->page), "DOCTOR.md#not-judged");
	verdict->victims = 0;
	verdict->for_ns = match->still_ns;
	hang_tell_who(tale, lead->witness);
	hang_say_lead(tale, SAY);
	verdict->confidence = 1;
	verdict_title(verdict, "not judged: possible hang in %s; no calls for %s", text, time);
	if (match->unjudged == HANG_ALL_CALLED)
		verdict_evidence(verdict,
				 "All %u visible ranks of %.60s have made the same calls, the last "
				 "one (%s) %s ago.",
				 comm->seat_count, comm->label, text, time);
	else if (match->unjudged == HANG_NONE_STARTED)
		tell_none_started(tale);
	else
		verdict_evidence(
			verdict, "%u of %u ranks of %.60s have called %s, the others have not; %s.",
			called, comm->seat_count, comm->label, text,
			lead->note == HANG_NOTE_SEVERAL ? "hosts run ahead of their GPUs, so all "
							  "may be waiting in an earlier call"
							: "but pauses like this are common there, "
							  "and hosts run ahead of their GPUs");
	if (match->unjudged == HANG_ALL_CALLED)
		hang_tell_between(tale);
	tell_other_comms(tale);
	hang_doubt_silent_gpus(tale);
	if (match->unjudged == HANG_NONE_STARTED) {
		verdict_advice(verdict,
			       "Find out whether the GPUs compute, and what waits for them:");
		verdict_advice(verdict, "$ nvidia-smi dmon -s u -c 3");
		hang_advise_stacks(verdict);
		forget_who(verdict);
		return;
	}
	verdict_missing(
		verdict,
		"Kernel events were not recorded for these operations, %sand inside a node "
		"nothing else shows whether a kernel runs. The operations may have finished "
		"while the ranks compute, load data or save.",
		hang_is_by_launches(scene, lead->comm) ? "CUDA events do not show their end, "
						       : "");
	hang_advise_kernels(tale, scene->seats[lead->witness].comm->info.interface);
	forget_who(verdict);
}

/* ---- by class ----------------------------------------------------------------------------------- */

static void tell_channels(struct hang_tale *tale)
{
	const uint64_t *channels = tale->lead->channels;
	struct verdict *verdict = tale->verdict;
	int count = 0;

	verdict_say_channels(verdict->channels, sizeof(verdict->channels), channels);
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
		tell_never_issued(tale);
		break;
	case VERDICT_PROCESS_DEAD:
	case VERDICT_PROCESS_STOPPED:
		tell_process(tale);
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
		tell_unseen(tale);
		break;
	case VERDICT_BLIND:
		tell_unjudged(tale);
		return;
	default:
		tell_stuck(tale);
	}
	if (tale->is_hang)
		hang_tell_others(tale);
	hang_tell_doubts(tale);
	hang_tell_advice(tale);
}
