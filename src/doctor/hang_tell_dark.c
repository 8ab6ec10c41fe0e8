/* What everybody waits for cannot be seen, or nothing explains it. */
#include <inttypes.h>
#include <string.h>

#include "common/text.h"
#include "doctor/hang_tell.h"
#include "doctor/hang_words.h"

#define SAY text, sizeof(text)

enum { WAITS_MAX = 4, OTHERS_MAX = 6 };

static void tell_silent(struct hang_tale *tale)
{
	const struct hang_options *options = tale->scene->options;

	for (size_t i = 0; options && i < options->source_count; i++)
		if (options->sources[i].is_silent)
			verdict_evidence(tale->verdict, "%.100s does not answer%s%.100s.",
					 options->sources[i].name ? options->sources[i].name : "?",
					 options->sources[i].problem ? ": " : "",
					 options->sources[i].problem ? options->sources[i].problem
								     : "");
}

/* The host of the only source that is silent: its name without a port. */
static void tell_silent_host(struct hang_tale *tale)
{
	const struct hang_options *options = tale->scene->options;
	const char *name = NULL;
	size_t silent = 0;

	for (size_t i = 0; options && i < options->source_count; i++)
		if (options->sources[i].is_silent) {
			name = options->sources[i].name;
			silent++;
		}
	if (silent == 1 && name != NULL && strstr(name, "//") == NULL && strchr(name, '[') == NULL)
		text_format(tale->verdict->host, sizeof(tale->verdict->host), "%.*s",
			    (int)strcspn(name, ":"), name);
}

void hang_tell_unseen(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_end *lead = tale->lead;
	const struct job_comm *comm = &scene->job->comms[lead->comm];
	bool is_agent = lead->class == VERDICT_AGENT_DEAD;
	char text[600] = "";

	if (lead->peer_comm_rank >= 0)
		text_append(SAY, "rank %d of %.40s cannot be seen", lead->peer_comm_rank,
			    comm->label);
	else
		text_append(SAY, "%u of %d ranks of %.40s cannot be seen", comm->missing,
			    comm->nranks, comm->label);
	text_append(SAY, is_agent ? ", an agent does not answer" : "");
	hang_say_victims(SAY, tale->victims);
	verdict_title(tale->verdict, "%s", text);
	if (is_agent) {
		tell_silent(tale);
		tell_silent_host(tale);
	}
	hang_tell_waiting(tale);
	if (lead->peer_comm_rank >= 0) {
		text[0] = '\0';
		hang_say_whole_rank(SAY, scene, lead->witness);
		hang_capital(text);
		verdict_evidence(tale->verdict,
				 "%s waits for rank %d of %.60s, of which nothing is "
				 "recorded.",
				 text, lead->peer_comm_rank, comm->label);
	} else {
		verdict_evidence(tale->verdict,
				 "All ranks that are seen have called it, and nothing "
				 "that they show explains why it does not end.");
	}
}

/* What its members wait for: the longest wait of each, a few of them. */
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
		hang_say_wait(SAY, scene, comm->seats[i], &seat->waits[0]);
		hang_capital(text);
		verdict_evidence(tale->verdict, "%s.", text);
		told++;
	}
}

void hang_tell_stuck(struct hang_tale *tale)
{
	const struct hang_end *lead = tale->lead;
	char text[600] = "", channels[64] = "";

	text_append(SAY, "%u rank%s still in ", tale->victims,
		    tale->victims == 1 ? " stands" : "s stand");
	hang_say_lead(tale, SAY);
	verdict_title(tale->verdict, "%s", text);
	hang_tell_waiting(tale);
	tell_waits(tale);
	hang_say_channels(channels, sizeof(channels), lead->channels);
	if (lead->note == HANG_NOTE_NAMELESS)
		verdict_missing(tale->verdict,
				"NCCL before 2.27 does not tell which communicators of "
				"different processes belong together: ranks cannot be compared.");
	else if (channels[0] != '\0' && lead->note == HANG_NOTE_CHANNEL)
		verdict_evidence(tale->verdict,
				 "All ranks are in it, with channels %s open; nothing is "
				 "on the wire, and nobody is behind the others.",
				 channels);
}

/* Communicators beside the first of which it is not known, either. */
static void tell_other_comms(struct hang_tale *tale)
{
	const struct hang_graph *graph = tale->graph;
	uint32_t count = 0, left_out = 0;
	char text[500] = "";

	for (uint32_t e = tale->first; e != HANG_NOBODY; e = graph->ends[e].next) {
		if (graph->ends[e].comm == tale->lead->comm)
			continue;
		if (count >= OTHERS_MAX)
			left_out++;
		else
			text_append(SAY, "%s%.60s", count++ > 0 ? ", " : "",
				    tale->scene->job->comms[graph->ends[e].comm].label);
	}
	if (count == 0)
		return;
	if (left_out > 0)
		text_append(SAY, " and %u more", left_out);
	verdict_evidence(tale->verdict, "The same holds for %s.", text);
}

static void tell_kernels_advice(struct hang_tale *tale, uint32_t interface)
{
	struct verdict *verdict = tale->verdict;

	verdict_advice(verdict, "See whether the ranks compute, or wait for their GPUs:");
	verdict_advice(verdict, "$ py-spy dump --pid %" PRId64, verdict->pid);
	verdict_advice(verdict, "To see next time whether kernels run, record kernel events%s:",
		       interface >= 5 ? " for a while" : "");
	if (interface >= 5)
		verdict_advice(verdict, "$ ringside record --kernel");
	else
		verdict_advice(verdict, "$ RINGSIDE_EVENTS=kernel ringside run -- COMMAND");
}

/* Nobody is accused. */
static void forget_who(struct verdict *verdict)
{
	verdict->rank = -1;
	verdict->rank_label[0] = verdict->host[0] = '\0';
	verdict->pid = verdict->gpu = verdict->comm_rank = -1;
}

/* Nothing is shown but calls, and calls do not say whether they hang. */
void hang_tell_unjudged(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_end *lead = tale->lead;
	const struct hang_meeting *meeting = &scene->meetings[lead->comm];
	const struct job_comm *comm = &scene->job->comms[lead->comm];
	struct verdict *verdict = tale->verdict;
	char text[600] = "", time[UNITS_TEXT];
	uint32_t called = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++)
		called += scene->seats[comm->seats[i]].front != NULL;
	units_duration(time, meeting->still_ns);
	verdict->is_unjudged = true;
	text_copy(verdict->rule, sizeof(verdict->rule), "hang");
	text_copy(verdict->page, sizeof(verdict->page), "DOCTOR.md#not-judged");
	verdict->victims = 0;
	verdict->for_ns = meeting->still_ns;
	hang_tell_who(tale, lead->witness);
	hang_say_lead(tale, SAY);
	verdict->confidence = 1;
	verdict_title(verdict, "not judged: %s may hang; no rank has made a call there for %s",
		      text, time);
	if (meeting->unjudged == HANG_ALL_CALLED)
		verdict_evidence(verdict,
				 "All %u ranks of %.60s that can be seen have made the same calls, "
				 "the last one, %s, %s ago.",
				 comm->seat_count, comm->label, text, time);
	else if (meeting->unjudged == HANG_NONE_STARTED)
		verdict_evidence(
			verdict,
			"All %u ranks of %.60s have called %s, NCCL has launched its kernel "
			"everywhere, and no GPU has started it.",
			comm->seat_count, comm->label, text);
	else
		verdict_evidence(verdict,
				 "%u of %u ranks of %.60s have called %s, the others have not; but "
				 "%s.",
				 called, comm->seat_count, comm->label, text,
				 lead->note == HANG_NOTE_SEVERAL
					 ? "hosts run ahead of their GPUs, so all may wait in what "
					   "they called before"
					 : "pauses like this one are usual there, and hosts run "
					   "ahead of their GPUs");
	tell_other_comms(tale);
	if (meeting->unjudged == HANG_NONE_STARTED) {
		verdict_missing(verdict,
				"What the GPUs do before it is not recorded: all of them may "
				"compute, or all are stuck.");
		verdict_advice(verdict, "See whether they compute, and what waits for them:");
		verdict_advice(verdict, "$ nvidia-smi dmon -s u -c 3");
		verdict_advice(verdict, "$ py-spy dump --pid %" PRId64, verdict->pid);
		forget_who(verdict);
		return;
	}
	verdict_missing(verdict,
			"Kernel events were not recorded for these operations, and inside a node "
			"nothing else shows whether a kernel runs: they may have ended, and the "
			"ranks compute, load data or save.");
	tell_kernels_advice(tale, scene->seats[lead->witness].comm->info.interface);
	forget_who(verdict);
}
