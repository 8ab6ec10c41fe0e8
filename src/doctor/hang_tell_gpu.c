/* GPUs that do not come to an operation, or do not get on in it. */
#include <inttypes.h>
#include <string.h>

#include "common/text.h"
#include "doctor/hang_tell.h"
#include "doctor/hang_words.h"

#define SAY text, sizeof(text)

/* Ranks of the communicator that are in nothing anywhere: one of them may be the peer. */
static void tell_idle(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct job *job = scene->job;
	const struct job_comm *comm = &job->comms[tale->lead->comm];
	char text[300] = "";
	size_t count = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct job_seat *of = &job->seats[comm->seats[i]];
		bool is_idle = !scene->seats[comm->seats[i]].is_over;

		for (uint32_t s = job->first_seat[of->process];
		     s < job->first_seat[of->process + 1] && is_idle; s++)
			is_idle = job->seats[s].rank != of->rank || scene->seats[s].front == NULL;
		if (is_idle)
			tale->ranks[count++] = of->rank;
	}
	if (count == 0) {
		verdict_evidence(tale->verdict, "All ranks of %.60s are in something.",
				 comm->label);
		return;
	}
	hang_say_ranks(SAY, job, tale->ranks, count);
	verdict_evidence(tale->verdict, "%s of %.60s that %s in nothing: %s.",
			 count == 1 ? "The only rank" : "Ranks", comm->label,
			 count == 1 ? "is" : "are", text);
}

/* NCCL waits in the call itself: it connects before it launches. */
static void tell_connecting(struct hang_tale *tale)
{
	const struct hang_end *lead = tale->lead;
	bool is_pair = lead->seat != HANG_NOBODY;
	char text[600] = "";

	if (is_pair)
		hang_say_culprits(tale, SAY, "has", "have");
	else
		text_append(SAY, "all %u ranks have",
			    tale->scene->job->comms[lead->comm].seat_count);
	text_append(SAY, " called ");
	hang_say_lead(tale, SAY);
	text_append(SAY, is_pair ? ", and NCCL has not launched it"
				 : ", and NCCL has launched it nowhere");
	if (is_pair)
		hang_say_victims(SAY, tale->victims);
	verdict_title(tale->verdict, "%s", text);
	hang_tell_waiting(tale);
	if (!is_pair) {
		verdict_evidence(tale->verdict,
				 "When a communicator is used for the first time NCCL connects its "
				 "ranks before it launches: that may not come to an end.");
		return;
	}
	verdict_evidence(tale->verdict,
			 "With no connection to the peer yet NCCL connects first, and waits until "
			 "the peer calls its Send or Recv. Who the peer is, NCCL does not tell "
			 "before.");
	tell_idle(tale);
	hang_tell_culprits(tale);
}

/* Why that is so where kernels are not shown. */
static void tell_transfers(struct hang_tale *tale)
{
	verdict_evidence(
		tale->verdict,
		"In a ring a kernel first sends its own data. This one has sent nothing on "
		"any channel, and has not taken the data that came for it; the others have "
		"sent.");
	verdict_missing(tale->verdict,
			"Kernel events were not recorded for this operation: that its kernel has "
			"not started follows from its transfers. A proxy thread that hangs looks "
			"the same.");
}

void hang_tell_gpu_waiting(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_end *lead = tale->lead;
	bool is_launch = lead->class == VERDICT_NOT_LAUNCHED;
	char text[600] = "";

	if (lead->note == HANG_NOTE_CONNECTING) {
		tell_connecting(tale);
		return;
	}
	hang_say_culprits(tale, SAY, "has called", "have called");
	text_append(SAY, " ");
	hang_say_lead(tale, SAY);
	text_append(SAY, is_launch ? ", and NCCL has not launched it"
				   : ", and the GPU has not started it");
	hang_say_victims(SAY, tale->victims);
	verdict_title(tale->verdict, "%s", text);
	hang_tell_waiting(tale);
	text[0] = '\0';
	hang_say_whole_rank(SAY, scene, lead->seat);
	hang_capital(text);
	text_append(SAY, " called it");
	hang_say_for(SAY, scene, " ", scene->seats[lead->seat].age_ns, " ago");
	text_append(SAY,
		    is_launch ? ", and its kernel was not launched since. The call may be inside a "
				"group that is not ended, or the launch itself does not return"
			      : " and its kernel was launched; it has not started. Something "
				"before it on that GPU does not end");
	verdict_evidence(tale->verdict, "%s.", text);
	if (lead->note == HANG_NOTE_TRANSFERS)
		tell_transfers(tale);
	verdict_evidence(tale->verdict, "It is inside no other operation that stands still.");
	hang_tell_culprits(tale);
}

/* One of those of a host: the host is known, the rank is not. */
static void forget_rank(struct verdict *verdict)
{
	verdict->rank = -1;
	verdict->rank_label[0] = '\0';
	verdict->pid = -1;
	verdict->gpu = -1;
	verdict->comm_rank = -1;
}

static void tell_signs(struct hang_tale *tale)
{
	const struct hang_end *lead = tale->lead;
	struct verdict *verdict = tale->verdict;
	const char *host = hang_process(tale->scene, lead->seat)->host;
	char text[600] = "", channels[80] = "";
	bool is_one = verdict->channel >= 0;

	text_append(channels, sizeof(channels), is_one ? "channel " : "channels ");
	hang_say_channels(channels, sizeof(channels), lead->channels);
	hang_say_whole_rank(SAY, tale->scene, lead->seat);
	switch (lead->note) {
	case HANG_NOTE_CHANNEL:
		hang_capital(text);
		verdict_evidence(verdict,
				 "%s has not finished %s of its kernel, which all others have. "
				 "Nothing goes over the network here, so that is all there is.",
				 text, channels);
		break;
	case HANG_NOTE_TREE:
		verdict_evidence(verdict,
				 "%.60s gives nothing to the tree on %s: its transfers wait for "
				 "its own GPUs, and nothing that they need is outstanding.",
				 host, channels);
		break;
	default:
		verdict_evidence(verdict,
				 "Transfers of %s on %s wait for %s: nothing is on the wire, and "
				 "nothing is outstanding from another host.",
				 text, channels,
				 lead->note == HANG_NOTE_NONE ? "its own GPU" : "GPUs of its host");
	}
}

void hang_tell_gpu_stuck(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_end *lead = tale->lead;
	bool is_any_of_host = lead->note == HANG_NOTE_ONE_OF_HOST || lead->note == HANG_NOTE_TREE;
	char text[600] = "";

	if (is_any_of_host)
		text_append(SAY, "a GPU of %.60s gets nowhere in",
			    hang_process(scene, lead->seat)->host);
	else
		hang_say_culprits(tale, SAY, "gets nowhere in", "get nowhere in");
	text_append(SAY, " ");
	hang_say_lead(tale, SAY);
	hang_say_victims(SAY, tale->victims);
	verdict_title(tale->verdict, "%s", text);
	hang_tell_waiting(tale);
	tell_signs(tale);
	if (is_any_of_host) {
		forget_rank(tale->verdict);
		verdict_missing(tale->verdict,
				"Data passes through several GPUs of that host, which show nothing "
				"of it: it may be any of them.");
	}
	if (lead->note == HANG_NOTE_LEAST_FAR)
		verdict_evidence(tale->verdict,
				 "Data passes through all GPUs of that host: of these it has taken "
				 "least and given least.");
}
