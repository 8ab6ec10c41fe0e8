/* What everybody waits for cannot be seen, or nothing explains it. */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "doctor/hang_tell.h"
#include "doctor/hang_words.h"

#define SAY text, sizeof(text)

enum { WAITS_MAX = 4 };

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
