/* The network does not complete: a link, a host, or all of it, with both ends. */
#include <inttypes.h>
#include <string.h>

#include "common/text.h"
#include "doctor/hang_tell.h"
#include "doctor/hang_words.h"

enum { LINKS_MAX = 8 }; /* that are told one by one */
enum { AGAIN_MAX = 64 };

#define SAY text, sizeof(text)

/* What the links of a group have in common. */
struct links {
	uint32_t count;
	bool is_one_sender, is_one_receiver;
	bool is_one_source, is_one_target; /* hosts */
};

static bool is_same_link(const struct hang_end *a, const struct hang_end *b)
{
	return a->seat == b->seat && a->comm == b->comm && a->peer_comm_rank == b->peer_comm_rank;
}

/* Was the same link met before in the group? A Send and its Recv both tell of it. */
static bool is_again(const struct hang_tale *tale, uint32_t end)
{
	const struct hang_end *ends = tale->graph->ends;

	for (uint32_t e = tale->first, looked = 0; e != end && looked < AGAIN_MAX;
	     e = ends[e].next, looked++)
		if (is_same_link(&ends[e], &ends[end]))
			return true;
	return false;
}

static struct links survey(const struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_end *lead = tale->lead;
	struct links links = { 0, true, true, true, lead->peer != HANG_NOBODY };

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
		hang_say_rank(text, size, scene, end->peer);
}

/* How many channels the operation has towards that peer: the stuck ones may be some of them. */
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
		return "were completed at the sender and have not arrived";
	case HANG_NOTE_NOT_HEARD:
		return "have not begun, although the receiver is ready: the sender does not hear "
		       "of it";
	default:
		return "were taken by the network and are not completed";
	}
}

static void tell_one(struct hang_tale *tale, const struct hang_end *end)
{
	const struct hang_scene *scene = tale->scene;
	uint32_t stuck = channel_count(end->channels), all = channels_towards(end);
	uint32_t process = scene->job->seats[end->witness].process;
	char text[700] = "";

	text_append(SAY, "Sends of ");
	hang_say_whole_rank(SAY, scene, end->seat);
	text_append(SAY, " to ");
	say_peer(SAY, scene, end, true);
	text_append(SAY, " on channel%s ", stuck == 1 ? "" : "s");
	hang_say_channels(SAY, end->channels);
	if (all > stuck)
		text_append(SAY, " (%u of the %u between them)", stuck, all);
	text_append(SAY, " %s", what_happens(end->note));
	hang_say_for(SAY, scene, ", for ", hang_ago(scene, process, end->since_ns), "");
	if (end->steps > 0)
		text_append(SAY, "; %" PRIu64 " of at most %" PRIu64 " steps are done",
			    end->steps_done, end->steps);
	verdict_evidence(tale->verdict, "%s.", text);
}

static void tell_agreement(struct hang_tale *tale)
{
	const struct hang_end *lead = tale->lead;
	char text[300] = "";

	say_peer(SAY, tale->scene, lead, false);
	hang_capital(text);
	if (lead->note == HANG_NOTE_BOTH_ENDS)
		verdict_evidence(tale->verdict,
				 "%s agrees: it waits for that data, and has posted "
				 "its receives.",
				 text);
	else if (lead->note == HANG_NOTE_ONE_END)
		verdict_missing(tale->verdict,
				"%s shows nothing of that transfer: it may be the one "
				"that does not receive.",
				text);
	else if (lead->note == HANG_NOTE_NAMELESS)
		verdict_missing(tale->verdict,
				"NCCL before 2.27 does not tell who that is: the other "
				"end cannot be looked at.");
}

/* Who is meant depends on what all the links share. */
static void say_title(struct hang_tale *tale, const struct links *links, char *text, size_t size)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_end *lead = tale->lead;

	if (links->is_one_sender && links->is_one_receiver) {
		text_append(text, size, "the network does not complete what ");
		hang_say_rank(text, size, scene, lead->seat);
		text_append(text, size, " sends to ");
		say_peer(text, size, scene, lead, false);
		text_append(text, size, " on channel%s ",
			    channel_count(lead->channels) == 1 ? "" : "s");
		hang_say_channels(text, size < 150 ? size : 150, lead->channels);
	} else if (links->is_one_sender) {
		text_append(text, size, "the network does not complete what ");
		hang_say_rank(text, size, scene, lead->seat);
		text_append(text, size, " sends, on %u links", links->count);
	} else if (links->is_one_receiver || links->is_one_target) {
		text_append(text, size, "the network does not complete what is sent to %s",
			    links->is_one_receiver ? "" : "host ");
		if (links->is_one_receiver)
			say_peer(text, size, scene, lead, false);
		else
			text_append(text, size, "%.60s", hang_process(scene, lead->peer)->host);
		text_append(text, size, ", on %u links", links->count);
	} else if (links->is_one_source) {
		text_append(text, size,
			    "the network of host %.60s does not complete sends, on %u links",
			    hang_process(scene, lead->seat)->host, links->count);
	} else {
		text_append(text, size,
			    "the network does not complete sends of several hosts, on %u links",
			    links->count);
	}
	text_append(text, size, "; %u rank%s", tale->victims,
		    tale->victims == 1 ? " waits" : "s wait");
}

static void fill_peer(struct hang_tale *tale)
{
	const struct hang_end *lead = tale->lead;
	struct verdict *verdict = tale->verdict;

	if (lead->peer == HANG_NOBODY)
		return;
	verdict->peer = hang_rank(tale->scene, lead->peer)->rank;
	text_copy(verdict->peer_label, sizeof(verdict->peer_label),
		  hang_rank(tale->scene, lead->peer)->label);
	text_copy(verdict->peer_host, sizeof(verdict->peer_host),
		  hang_process(tale->scene, lead->peer)->host);
}

void hang_tell_link(struct hang_tale *tale)
{
	struct links links = survey(tale);
	uint32_t told = 0;
	char text[400] = "";

	say_title(tale, &links, SAY);
	verdict_title(tale->verdict, "%s", text);
	fill_peer(tale);
	hang_tell_waiting(tale);
	tell_one(tale, tale->lead);
	tell_agreement(tale);
	for (uint32_t e = tale->first; e != HANG_NOBODY; e = tale->graph->ends[e].next)
		if (&tale->graph->ends[e] != tale->lead && !is_again(tale, e) &&
		    !is_same_link(&tale->graph->ends[e], tale->lead) && ++told < LINKS_MAX)
			tell_one(tale, &tale->graph->ends[e]);
	if (told >= LINKS_MAX)
		verdict_evidence(tale->verdict, "%u more links like these.", told - LINKS_MAX + 1);
}
