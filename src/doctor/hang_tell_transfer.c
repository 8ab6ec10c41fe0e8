/* Verdicts on links and GPUs: what each end of a transfer shows. */
#include "doctor/hang_internal.h"

#include <inttypes.h>

#include "common/text.h"

#define SAY text, sizeof(text)

/* ---- the network does not complete sends: a link, a host, or all of it -------------------------- */

enum { LINKS_TOLD = 8 }; /* that are listed individually */
enum { AGAIN_MAX = 64 };

/* What the links of a group have in common. */
struct links_alike {
	uint32_t count;
	bool is_one_sender, is_one_receiver;
	bool is_one_source, is_one_target; /* hosts */
};

static bool is_same_link(const struct hang_end *a, const struct hang_end *b)
{
	return a->seat == b->seat && a->comm == b->comm && a->peer_comm_rank == b->peer_comm_rank;
}

/* Did this link appear earlier in the group? A Send and its Recv both report it. */
static bool is_again(const struct hang_tale *tale, uint32_t end)
{
	const struct hang_end *ends = tale->graph->ends;

	for (uint32_t e = tale->first, looked = 0; e != end && looked < AGAIN_MAX;
	     e = ends[e].next, looked++)
		if (is_same_link(&ends[e], &ends[end]))
			return true;
	return false;
}

static struct links_alike survey_links(const struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_end *lead = tale->lead;
	struct links_alike links = { 0, true, true, true, lead->peer != HANG_NOBODY };

	for (uint32_t e = tale->first; e != HANG_NOBODY; e = tale->graph->ends[e].next) {
		const struct hang_end *end = &tale->graph->ends[e];
		const struct job_rank *from = hang_rank(scene, end->seat);

		links.count += !is_again(tale, e);
		links.is_one_sender &= from == hang_rank(scene, lead->seat);
		links.is_one_source &= from->host == hang_rank(scene, lead->seat)->host;
		if (end->peer == HANG_NOBODY || lead->peer == HANG_NOBODY) {
			links.is_one_receiver &= end->peer_comm_rank == lead->peer_comm_rank &&
						 end->comm == lead->comm;
			links.is_one_target = false;
			continue;
		}
		links.is_one_receiver &=
			hang_rank(scene, end->peer) == hang_rank(scene, lead->peer);
		links.is_one_target &=
			hang_rank(scene, end->peer)->host == hang_rank(scene, lead->peer)->host;
	}
	return links;
}

static void say_peer(char *text, size_t size, const struct hang_scene *scene,
		     const struct hang_end *end, bool is_whole)
{
	if (end->peer == HANG_NOBODY)
		text_append(text, size, "rank %d of %.40s", end->peer_comm_rank,
			    scene->job->comms[end->comm].label);
	else if (is_whole)
		hang_say_whole_rank(text, size, scene, end->peer);
	else
		job_say_rank(text, size, scene->job, end->peer);
}

/* The number of channels the operation has to that peer: only some of them may be stuck. */
static uint32_t channels_towards(const struct hang_end *end)
{
	uint64_t all[4] = { 0, 0, 0, 0 };
	uint32_t count = 0;

	for (size_t i = 0; i < end->flight->proxy_count; i++) {
		const struct region_proxy *proxy = &end->flight->proxies[i].proxy;

		if (proxy->peer == end->peer_comm_rank && proxy->flags & PROXY_IS_SEND)
			all[proxy->channel / 64] |= UINT64_C(1) << (proxy->channel % 64);
	}
	for (int i = 0; i < 4; i++)
		count += (uint32_t)__builtin_popcountll(all[i]);
	return count;
}

static uint32_t channel_count(const uint64_t channels[4])
{
	uint32_t count = 0;

	for (int i = 0; i < 4; i++)
		count += (uint32_t)__builtin_popcountll(channels[i]);
	return count;
}

static const char *what_happens(enum hang_note note)
{
	switch (note) {
	case HANG_NOTE_NOT_ARRIVED:
		return "were completed by the sender but have not arrived";
	case HANG_NOTE_NOT_HEARD:
		return "have not started although the receiver is ready (the sender has not been "
		       "notified)";
	default:
		return "were posted to the network and have not completed";
	}
}

static void tell_one(struct hang_tale *tale, const struct hang_end *end)
{
	const struct hang_scene *scene = tale->scene;
	uint32_t stuck = channel_count(end->channels), all = channels_towards(end);
	uint32_t process = scene->job->seats[end->witness].process;
	char text[700] = "";

	text_append(SAY, "Sends from ");
	hang_say_whole_rank(SAY, scene, end->seat);
	text_append(SAY, " to ");
	say_peer(SAY, scene, end, true);
	text_append(SAY, " on channel%s ", stuck == 1 ? "" : "s");
	verdict_say_channels(SAY, end->channels);
	if (all > stuck)
		text_append(SAY, " (%u of %u between them)", stuck, all);
	text_append(SAY, " %s", what_happens(end->note));
	hang_say_for(SAY, scene, " (", hang_ago(scene, process, end->since_ns), ")");
	if (end->steps > 0)
		text_append(SAY, "; %" PRIu64 " of at most %" PRIu64 " steps done", end->steps_done,
			    end->steps);
	verdict_evidence(tale->verdict, "%s.", text);
}

static void tell_agreement(struct hang_tale *tale)
{
	const struct hang_end *lead = tale->lead;
	char text[300] = "";

	say_peer(SAY, tale->scene, lead, false);
	text_capital(text);
	if (lead->note == HANG_NOTE_BOTH_ENDS)
		verdict_evidence(tale->verdict,
				 "%s agrees: it waits for this data and has posted its receives.",
				 text);
	else if (lead->note == HANG_NOTE_ONE_END)
		verdict_missing(tale->verdict,
				"%s shows nothing of this transfer; it may be the one that does "
				"not receive.",
				text);
	else if (lead->note == HANG_NOTE_NAMELESS)
		verdict_missing(tale->verdict, "NCCL before 2.27 does not identify the peer, so "
					       "the other end cannot be checked.");
}

/* The title depends on what all the links share. */
static void link_title(struct hang_tale *tale, const struct links_alike *links, char *text,
		       size_t size)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_end *lead = tale->lead;

	if (links->is_one_sender && links->is_one_receiver) {
		text_append(text, size, "network send stuck: ");
		job_say_rank(text, size, scene->job, lead->seat);
		text_append(text, size, " -> ");
		say_peer(text, size, scene, lead, false);
		text_append(text, size, ", channel%s ",
			    channel_count(lead->channels) == 1 ? "" : "s");
		verdict_say_channels(text, size < 150 ? size : 150, lead->channels);
	} else if (links->is_one_sender) {
		text_append(text, size, "network sends stuck: from ");
		job_say_rank(text, size, scene->job, lead->seat);
		text_append(text, size, ", %u links", links->count);
	} else if (links->is_one_receiver || links->is_one_target) {
		text_append(text, size, "network sends stuck: to %s",
			    links->is_one_receiver ? "" : "host ");
		if (links->is_one_receiver)
			say_peer(text, size, scene, lead, false);
		else
			text_append(text, size, "%.60s", hang_process(scene, lead->peer)->host);
		text_append(text, size, ", %u links", links->count);
	} else if (links->is_one_source) {
		text_append(text, size, "network sends stuck: from host %.60s, %u links",
			    hang_process(scene, lead->seat)->host, links->count);
	} else {
		text_append(text, size, "network sends stuck: several hosts, %u links",
			    links->count);
	}
	if (tale->victims > 0)
		text_append(text, size, "; %u rank%s blocked", tale->victims,
			    tale->victims == 1 ? "" : "s");
}

void hang_tell_link(struct hang_tale *tale)
{
	struct links_alike links = survey_links(tale);
	const struct job *job = tale->scene->job;
	uint32_t told = 0;
	char text[400] = "";

	link_title(tale, &links, SAY);
	verdict_title(tale->verdict, "%s", text);
	if (tale->lead->peer != HANG_NOBODY)
		verdict_set_peer(tale->verdict, job, job->seats[tale->lead->peer].rank);
	hang_tell_waiting(tale);
	tell_one(tale, tale->lead);
	tell_agreement(tale);
	for (uint32_t e = tale->first; e != HANG_NOBODY; e = tale->graph->ends[e].next)
		if (&tale->graph->ends[e] != tale->lead && !is_again(tale, e) &&
		    !is_same_link(&tale->graph->ends[e], tale->lead) && ++told < LINKS_TOLD)
			tell_one(tale, &tale->graph->ends[e]);
	if (told >= LINKS_TOLD)
		verdict_evidence(tale->verdict, "%u more %s like these.", told - LINKS_TOLD + 1,
				 text_which(told - LINKS_TOLD + 1, "link", "links"));
}

/* ---- GPUs that do not start an operation, or make no progress in it ------------------------------ */

/* Idle ranks of the communicator: one of them may be the peer. */
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
		verdict_evidence(tale->verdict, "All ranks of %.60s are in an operation.",
				 comm->label);
		return;
	}
	hang_say_ranks(SAY, job, tale->ranks, count);
	verdict_evidence(tale->verdict, "%s of %.60s in no operation: %s.",
			 count == 1 ? "The only rank" : "Ranks", comm->label, text);
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
	text_append(SAY, is_pair ? " but NCCL has not launched it"
				 : " but NCCL has not launched it on any rank");
	if (is_pair)
		hang_say_victims(SAY, tale->victims);
	verdict_title(tale->verdict, "%s", text);
	hang_tell_waiting(tale);
	if (!is_pair) {
		verdict_evidence(tale->verdict,
				 "On first use of a communicator, NCCL connects its ranks before "
				 "it launches. That connection may never complete.");
		return;
	}
	verdict_evidence(
		tale->verdict,
		"Without a connection to the peer, NCCL connects first and waits until the peer "
		"calls its Send or Recv. NCCL does not report the peer before that.");
	tell_idle(tale);
	hang_tell_culprits(tale);
}

/* The evidence if kernels are not recorded. */
static void tell_transfers(struct hang_tale *tale)
{
	verdict_evidence(
		tale->verdict,
		"In a ring, a kernel sends its own data first. This one has sent nothing on any "
		"channel and has not consumed the data it received; the others have sent.");
	verdict_missing(
		tale->verdict,
		"Kernel events were not recorded for this operation. That its kernel has not "
		"started is inferred from its transfers; a hung proxy thread looks the same.");
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
	text_append(SAY, is_launch ? " but NCCL has not launched it"
				   : " but its GPU has not started it");
	hang_say_victims(SAY, tale->victims);
	verdict_title(tale->verdict, "%s", text);
	hang_tell_waiting(tale);
	text[0] = '\0';
	hang_say_whole_rank(SAY, scene, lead->seat);
	text_capital(text);
	text_append(SAY, " called it");
	hang_say_for(SAY, scene, " ", scene->seats[lead->seat].age_ns, " ago");
	text_append(SAY,
		    is_launch
			    ? " and its kernel has not been launched since. The call may be inside "
			      "a group that has not ended, or the launch itself does not return"
			    : ", its kernel was launched and has not started. Earlier work on that "
			      "GPU does not finish");
	verdict_evidence(tale->verdict, "%s.", text);
	if (lead->note == HANG_NOTE_TRANSFERS)
		tell_transfers(tale);
	if (lead->note == HANG_NOTE_LAUNCH)
		hang_tell_launches(tale);
	verdict_evidence(tale->verdict, "It is in no other stuck operation.");
	hang_tell_culprits(tale);
}

/* One of a host's ranks: the host is known, the rank is not. */
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
	verdict_say_channels(channels, sizeof(channels), lead->channels);
	hang_say_whole_rank(SAY, tale->scene, lead->seat);
	switch (lead->note) {
	case HANG_NOTE_CHANNEL:
		text_capital(text);
		verdict_evidence(verdict,
				 "%s has not finished %s of its kernel; all others have. Nothing "
				 "goes over the network here, so there is no further evidence.",
				 text, channels);
		break;
	case HANG_NOTE_ALL_BUT_ONE:
		verdict_evidence(
			verdict,
			"The GPU of %s has reached it and has not finished it; the GPUs of "
			"all other ranks have finished it.",
			text);
		break;
	case HANG_NOTE_TREE:
		verdict_evidence(verdict,
				 "%.60s sends nothing into the tree on %s: its transfers wait for "
				 "its own GPUs, and they have received everything they need.",
				 host, channels);
		break;
	case HANG_NOTE_HOPS:
		verdict_evidence(
			verdict,
			"%.60s has sent less than any other host on %s. Behind a stuck rank of a "
			"ring, each rank can send one part more than the rank before it: what left "
			"this host was sent by as many ranks behind %s.",
			host, channels, text);
		verdict_missing(verdict, "This assumes that the ring passes the GPUs of a host in "
					 "order of rank.");
		break;
	case HANG_NOTE_RING:
		text_capital(text);
		verdict_evidence(
			verdict,
			"%s has sent less than any other rank on %s: its transfers wait for "
			"its own GPU. In a ring a rank sends its own data first, without "
			"waiting for others.",
			text, channels);
		break;
	default:
		verdict_evidence(verdict,
				 "Transfers of %s on %s wait for %s; nothing is on the wire, and "
				 "no other host owes data.",
				 text, channels,
				 lead->note == HANG_NOTE_NONE ? "its own GPU"
							      : "the GPUs of its host");
	}
}

void hang_tell_gpu_stuck(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_end *lead = tale->lead;
	bool is_any_of_host = lead->note == HANG_NOTE_ONE_OF_HOST || lead->note == HANG_NOTE_TREE;
	char text[600] = "";

	if (is_any_of_host) {
		text_append(SAY, "a GPU of %.60s is stuck in",
			    hang_process(scene, lead->seat)->host);
	} else {
		text_append(SAY, hang_culprits(tale) > 1 ? "GPUs of " : "GPU of ");
		hang_say_culprits(tale, SAY, "is stuck in", "are stuck in");
	}
	text_append(SAY, " ");
	hang_say_lead(tale, SAY);
	hang_say_victims(SAY, tale->victims);
	verdict_title(tale->verdict, "%s", text);
	hang_tell_waiting(tale);
	tell_signs(tale);
	if (is_any_of_host) {
		forget_rank(tale->verdict);
		verdict_missing(tale->verdict, "Data passes through several GPUs of that host that "
					       "report nothing; it may be any of them.");
	}
	if (lead->is_unsure && !is_any_of_host)
		verdict_missing(tale->verdict,
				"Kernel events were not recorded for this operation: the GPU may "
				"also not have started it.");
	if (lead->note == HANG_NOTE_LEAST_FAR)
		verdict_evidence(tale->verdict, "Data passes through all GPUs of that host; this "
						"one has received and sent the least.");
}
