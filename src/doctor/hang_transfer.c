/*
 * All members are in a collective and it does not end. What the proxies of each show is put together:
 *
 *	send_net, and the receiver waits for data on that channel      the network between them
 *	send_net, and the receiver's GPU does not consume              not the network: look there
 *	a host where a channel has data to consume or to produce, and
 *	waits neither for the network nor for a peer                   a GPU of that host
 *	waits for a member that is not seen                            that member
 *
 * Within a node there are no proxies: rings and trees pass through GPUs that show nothing. So the side of
 * a host is looked at as one: what one of its GPUs receives, another one sends on.
 */
#include <stdlib.h>
#include <string.h>

#include "doctor/hang_chain.h"

enum { CHANNEL_WORDS = 4 };

static bool any_channel(const uint64_t channels[CHANNEL_WORDS])
{
	return (channels[0] | channels[1] | channels[2] | channels[3]) != 0;
}

static void add_channels(uint64_t to[CHANNEL_WORDS], const uint64_t channels[CHANNEL_WORDS])
{
	for (int i = 0; i < CHANNEL_WORDS; i++)
		to[i] |= channels[i];
}

/* ---- the network ------------------------------------------------------------------------------- */

/* What `seat` waits for from or towards `peer`, for these reasons, on these channels. */
static bool waits_there(const struct hang_seat *seat, int32_t peer, unsigned int reasons,
			const uint64_t on[CHANNEL_WORDS], uint64_t common[CHANNEL_WORDS])
{
	memset(common, 0, CHANNEL_WORDS * sizeof(*common));
	for (size_t i = 0; i < seat->wait_count; i++) {
		const struct flight_wait *wait = &seat->waits[i];

		if (wait->peer != peer || !(reasons >> wait->reason & 1))
			continue;
		for (int w = 0; w < CHANNEL_WORDS; w++)
			common[w] |= wait->channels[w] & on[w];
	}
	return any_channel(common);
}

enum {
	RECEIVES = 1u << FLIGHT_RECV_NET,
	HAS_DATA = 1u << FLIGHT_RECV_GPU | 1u << FLIGHT_RECV_FLUSH,
	NOT_POSTED = 1u << FLIGHT_RECV_QUEUED | 1u << FLIGHT_RECV_STARTING,
};

static void add_link(struct hang_graph *graph, uint32_t c, uint32_t sender, uint32_t receiver,
		     const struct flight_wait *wait, const uint64_t channels[CHANNEL_WORDS],
		     enum hang_note note)
{
	struct hang_end *end = hang_end_add(graph, VERDICT_NETWORK_STUCK, c, c, sender);

	end->note = note;
	end->peer = receiver;
	end->peer_comm_rank = wait->peer;
	end->witness = sender;
	end->flight = graph->scene->seats[sender].front;
	memcpy(end->channels, channels, sizeof(end->channels));
	end->since_ns = wait->since_ns;
	end->steps_done = wait->steps_done;
	end->steps = wait->steps;
	end->is_unsure =
		note == HANG_NOTE_NOT_HEARD && graph->scene->seats[sender].presence != HANG_INSIDE;
	end->confidence = note == HANG_NOTE_BOTH_ENDS ? 0.96 : 0.7;
}

/* One connection on which sends are not completed. */
static bool link_of(struct hang_graph *graph, uint32_t c, uint32_t sender,
		    const struct flight_wait *wait)
{
	const struct hang_scene *scene = graph->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	uint32_t receiver = hang_member(comm, scene->job, wait->peer);
	int32_t me = scene->job->seats[sender].comm_rank;
	uint64_t common[CHANNEL_WORDS];

	if (receiver == HANG_NOBODY) {
		/* Whether it is the network or who is behind it: only without a hash is that all. */
		if (comm->hash != 0)
			return false;
		add_link(graph, c, sender, receiver, wait, wait->channels, HANG_NOTE_NAMELESS);
		return true;
	}
	if (waits_there(&scene->seats[receiver], me, RECEIVES, wait->channels, common)) {
		add_link(graph, c, sender, receiver, wait, common, HANG_NOTE_BOTH_ENDS);
		return true;
	}
	if (waits_there(&scene->seats[receiver], me, HAS_DATA | NOT_POSTED, wait->channels, common))
		return false;
	add_link(graph, c, sender, receiver, wait, wait->channels, HANG_NOTE_ONE_END);
	return true;
}

uint32_t hang_links(struct hang_graph *graph, uint32_t c)
{
	const struct hang_scene *scene = graph->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	size_t before = graph->end_count, both = 0, kept = before;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct hang_seat *seat = &scene->seats[comm->seats[i]];

		for (size_t w = 0; w < seat->wait_count; w++)
			if (seat->waits[w].reason == FLIGHT_SEND_NET)
				link_of(graph, c, comm->seats[i], &seat->waits[w]);
	}
	for (size_t e = before; e < graph->end_count; e++)
		both += graph->ends[e].note == HANG_NOTE_BOTH_ENDS;
	/* Where both ends agree somewhere, the others are its consequence. */
	for (size_t e = before; e < graph->end_count && both > 0; e++)
		if (graph->ends[e].note == HANG_NOTE_BOTH_ENDS)
			graph->ends[kept++] = graph->ends[e];
	if (both > 0)
		graph->end_count = kept;
	return (uint32_t)(graph->end_count - before);
}

/* ---- sent, and not arrived --------------------------------------------------------------------- */

/* Has `sender` done all that it sends to `peer` on this channel? */
static bool has_sent_all(const struct hang_scene *scene, uint32_t sender, int32_t peer,
			 unsigned int channel)
{
	const struct recording_flight *front = scene->seats[sender].front;

	for (size_t i = 0; front != NULL && i < front->proxy_count; i++) {
		const struct recording_proxy *of = &front->proxies[i];

		if (of->proxy.peer == peer && of->proxy.channel == channel &&
		    of->proxy.flags & PROXY_IS_SEND)
			return of->step_count == 0 && of->proxy.steps > 0 &&
			       of->proxy.done >= (uint32_t)of->proxy.steps;
	}
	return false;
}

static unsigned int first_channel(const uint64_t channels[CHANNEL_WORDS])
{
	for (unsigned int w = 0; w < CHANNEL_WORDS; w++)
		if (channels[w] != 0)
			return w * 64 + (unsigned int)__builtin_ctzll(channels[w]);
	return 0;
}

/* The oldest receive of this seat whose sender is done, or is ready and does not hear of it. */
static bool lost_on_the_way(struct hang_graph *graph, uint32_t c, uint32_t receiver,
			    const struct flight_wait *wait)
{
	const struct hang_scene *scene = graph->scene;
	uint32_t sender = hang_member(&scene->job->comms[c], scene->job, wait->peer);
	int32_t me = scene->job->seats[receiver].comm_rank;
	struct flight_wait back = *wait;
	uint64_t common[CHANNEL_WORDS];

	if (sender == HANG_NOBODY || sender == receiver || scene->seats[sender].front == NULL ||
	    !hang_is_in_meeting(scene, sender, &scene->meetings[c]))
		return false;
	back.peer = me;
	if (waits_there(&scene->seats[sender], me, 1u << FLIGHT_SEND_PEER, wait->channels, common))
		add_link(graph, c, sender, receiver, &back, common, HANG_NOTE_NOT_HEARD);
	else if (has_sent_all(scene, sender, me, first_channel(wait->channels)))
		add_link(graph, c, sender, receiver, &back, wait->channels, HANG_NOTE_NOT_ARRIVED);
	else
		return false;
	/* The times are the receiver's. */
	graph->ends[graph->end_count - 1].witness = receiver;
	return true;
}

static uint32_t losses_of(struct hang_graph *graph, uint32_t c)
{
	const struct hang_scene *scene = graph->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	uint32_t count = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct hang_seat *seat = &scene->seats[comm->seats[i]];

		for (size_t w = 0; w < seat->wait_count && graph->status == OK; w++)
			if (seat->waits[w].reason == FLIGHT_RECV_NET)
				count += lost_on_the_way(graph, c, comm->seats[i], &seat->waits[w]);
	}
	return count;
}

/* ---- GPUs -------------------------------------------------------------------------------------- */

/* Who has got least far of those that wait for their own GPU, in one direction. */
struct least {
	uint64_t steps;
	uint32_t seat; /* HANG_NOBODY: none, or several */
	bool is_any;
};

/* What the members of a communicator on one host wait for, by channel. */
struct hang_side {
	uint64_t own[CHANNEL_WORDS];	/* for their own GPUs */
	uint64_t others[CHANNEL_WORDS]; /* for peers or the network */
	uint32_t first;			/* a seat that waits for its own GPU */
	uint32_t members;
	struct least sends, receives;
};

static void note_least(struct least *least, const struct flight_wait *wait, uint32_t s)
{
	if (least->is_any && wait->steps_done > least->steps)
		return;
	if (least->is_any && wait->steps_done == least->steps && least->seat != s)
		s = HANG_NOBODY;
	*least = (struct least){ wait->steps_done, s, true };
}

static void add_side(struct hang_side *side, const struct hang_seat *seat, uint32_t s)
{
	for (size_t i = 0; i < seat->wait_count; i++) {
		const struct flight_wait *wait = &seat->waits[i];

		switch (wait->reason) {
		case FLIGHT_SEND_GPU:
		case FLIGHT_RECV_GPU:
		case FLIGHT_RECV_FLUSH:
			if (side->first == HANG_NOBODY || wait->reason != FLIGHT_SEND_GPU)
				side->first = s;
			note_least(wait->reason == FLIGHT_SEND_GPU ? &side->sends : &side->receives,
				   wait, s);
			add_channels(side->own, wait->channels);
			break;
		default:
			add_channels(side->others, wait->channels);
		}
	}
}

/* Data passes through all GPUs of the host. The one that stands still has taken least and given least: those
 * before it could fill buffers, those behind it could send their own. */
static uint32_t least_far(const struct hang_side *side)
{
	if (side->sends.is_any && side->receives.is_any)
		return side->sends.seat == side->receives.seat ? side->sends.seat : HANG_NOBODY;
	return HANG_NOBODY;
}

static void add_gpu(struct hang_graph *graph, uint32_t c, const struct hang_side *side)
{
	uint32_t seat = side->first, least = least_far(side);
	struct hang_end *end;
	uint64_t alone[CHANNEL_WORDS];

	for (int i = 0; i < CHANNEL_WORDS; i++)
		alone[i] = side->own[i] & ~side->others[i];
	if (seat == HANG_NOBODY || !any_channel(alone))
		return;
	if (side->members > 1 && least != HANG_NOBODY)
		seat = least;
	end = hang_end_add(graph, VERDICT_GPU_STUCK, c, c, seat);
	if (side->members > 1)
		end->note = least == HANG_NOBODY ? HANG_NOTE_ONE_OF_HOST : HANG_NOTE_LEAST_FAR;
	end->witness = seat;
	end->flight = graph->scene->seats[seat].front;
	memcpy(end->channels, alone, sizeof(end->channels));
	end->is_unsure = graph->scene->seats[seat].presence != HANG_INSIDE;
	end->confidence = side->members == 1 ? 0.85 : least == HANG_NOBODY ? 0.55 : 0.75;
}

/* One per host, empty between two communicators. */
static struct hang_side *sides_of(struct hang_graph *graph)
{
	size_t hosts = graph->scene->job->host_count;

	if (graph->sides == NULL)
		graph->sides = calloc(hosts + 1, sizeof(*graph->sides));
	if (graph->sides == NULL)
		graph->status = ERR_NO_SPACE;
	return graph->sides;
}

static uint32_t gpus_of(struct hang_graph *graph, uint32_t c)
{
	const struct hang_scene *scene = graph->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	size_t before = graph->end_count;
	struct hang_side *sides = sides_of(graph);

	if (sides == NULL)
		return 0;
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t seat = comm->seats[i];
		struct hang_side *side = &sides[hang_rank(scene, seat)->host];

		if (side->members++ == 0)
			side->first = HANG_NOBODY;
		if (hang_is_in_meeting(scene, seat, &scene->meetings[c]))
			add_side(side, &scene->seats[seat], seat);
	}
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		struct hang_side *side = &sides[hang_rank(scene, comm->seats[i])->host];

		if (side->members > 0)
			add_gpu(graph, c, side);
		*side = (struct hang_side){ .members = 0 };
	}
	return (uint32_t)(graph->end_count - before);
}

/* ---- channels alone: NVLink -------------------------------------------------------------------- */

static uint32_t bits(const uint64_t words[CHANNEL_WORDS])
{
	uint32_t count = 0;

	for (int i = 0; i < CHANNEL_WORDS; i++)
		count += (uint32_t)__builtin_popcountll(words[i]);
	return count;
}

/* Channels that are open (started, not stopped) on a seat, or that it has not started. */
static void open_channels(const struct recording_flight *flight, const uint64_t all[CHANNEL_WORDS],
			  uint64_t open[CHANNEL_WORDS])
{
	for (int i = 0; i < CHANNEL_WORDS; i++)
		open[i] = all[i] & ~flight->stopped[i];
}

struct channels {
	uint64_t started[CHANNEL_WORDS]; /* by anybody */
	uint64_t open[CHANNEL_WORDS];	 /* by anybody */
	uint32_t members;
	uint32_t fewest;    /* channels open, least over the members */
	uint32_t most;	    /* the greatest */
	uint32_t with_most; /* so many have so many */
	uint32_t last;	    /* one of those */
};

static void survey_channels(const struct hang_scene *scene, uint32_t c, struct channels *channels)
{
	const struct job_comm *comm = &scene->job->comms[c];

	*channels = (struct channels){ .fewest = UINT32_MAX, .last = HANG_NOBODY };
	for (uint32_t i = 0; i < comm->seat_count; i++)
		if (hang_is_in_meeting(scene, comm->seats[i], &scene->meetings[c]))
			add_channels(channels->started,
				     scene->seats[comm->seats[i]].front->started);
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint64_t open[CHANNEL_WORDS];
		uint32_t count;

		if (!hang_is_in_meeting(scene, comm->seats[i], &scene->meetings[c]))
			continue;
		open_channels(scene->seats[comm->seats[i]].front, channels->started, open);
		add_channels(channels->open, open);
		count = bits(open);
		channels->members++;
		if (count < channels->fewest)
			channels->fewest = count;
		if (count > channels->most) {
			channels->most = count;
			channels->with_most = 0;
			channels->last = comm->seats[i];
		}
		channels->with_most += count == channels->most;
	}
}

/* One member alone is behind the others in the channels of its kernel. */
static bool straggling_kernel(struct hang_graph *graph, uint32_t c, const struct channels *channels)
{
	struct hang_end *end;

	if (channels->members < 3 || channels->with_most != 1 || channels->most <= channels->fewest)
		return false;
	end = hang_end_add(graph, VERDICT_GPU_STUCK, c, c, channels->last);
	end->note = HANG_NOTE_CHANNEL;
	end->witness = channels->last;
	end->flight = graph->scene->seats[channels->last].front;
	open_channels(end->flight, channels->started, end->channels);
	end->confidence = 0.6;
	return true;
}

/* ---- who is not seen --------------------------------------------------------------------------- */

static bool is_any_source_silent(const struct hang_scene *scene)
{
	for (size_t i = 0; scene->options && i < scene->options->source_count; i++)
		if (scene->options->sources[i].is_silent)
			return true;
	return false;
}

/* The member that is not seen and that somebody waits for, for longest. */
static const struct flight_wait *waits_for_unseen(const struct hang_scene *scene, uint32_t c,
						  uint32_t *witness)
{
	const struct job_comm *comm = &scene->job->comms[c];
	const struct flight_wait *found = NULL;
	uint64_t longest_ns = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t s = comm->seats[i];
		const struct hang_seat *seat = &scene->seats[s];

		for (size_t w = 0; w < seat->wait_count; w++) {
			const struct flight_wait *wait = &seat->waits[w];
			uint64_t ns = hang_ago(scene, scene->job->seats[s].process, wait->since_ns);

			if (wait->reason != FLIGHT_RECV_NET && wait->reason != FLIGHT_SEND_PEER &&
			    wait->reason != FLIGHT_SEND_NET)
				continue;
			if (hang_member(comm, scene->job, wait->peer) != HANG_NOBODY ||
			    (found != NULL && ns <= longest_ns))
				continue;
			found = wait;
			longest_ns = ns;
			*witness = s;
		}
	}
	return found;
}

static void add_unseen(struct hang_graph *graph, uint32_t c)
{
	const struct hang_scene *scene = graph->scene;
	uint32_t witness = HANG_NOBODY;
	const struct flight_wait *wait = waits_for_unseen(scene, c, &witness);
	bool is_silent = is_any_source_silent(scene);
	struct hang_end *end = hang_end_add(graph, is_silent ? VERDICT_AGENT_DEAD : VERDICT_UNSEEN,
					    c, c, HANG_NOBODY);

	end->confidence = is_silent ? 0.7 : 0.6;
	if (wait == NULL) {
		end->confidence -= 0.15;
		return;
	}
	end->peer_comm_rank = wait->peer;
	end->witness = witness;
	end->flight = scene->seats[witness].front;
	end->since_ns = wait->since_ns;
	memcpy(end->channels, wait->channels, sizeof(end->channels));
}

void hang_transfer(struct hang_graph *graph, uint32_t c)
{
	const struct job_comm *comm = &graph->scene->job->comms[c];
	struct channels channels;
	struct hang_end *end;

	if (gpus_of(graph, c) > 0 || hang_tree(graph, c))
		return;
	if (comm->missing > 0 && comm->hash != 0) {
		add_unseen(graph, c);
		return;
	}
	if (losses_of(graph, c) > 0)
		return;
	survey_channels(graph->scene, c, &channels);
	if (straggling_kernel(graph, c, &channels))
		return;
	end = hang_end_add(graph, VERDICT_STUCK, c, c, HANG_NOBODY);
	end->note = comm->hash == 0 ? HANG_NOTE_NAMELESS : HANG_NOTE_CHANNEL;
	memcpy(end->channels, channels.open, sizeof(end->channels));
	end->confidence = 0.3;
}
