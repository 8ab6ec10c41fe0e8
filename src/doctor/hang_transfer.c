/* A collective that all ranks are in and that does not end: what their transfers wait for. */
#include "doctor/hang_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/op.h"

/*
 * A GPU that sends nothing, in an AllReduce by tree. What a host sends up a tree waits for data from the
 * hosts below, and what it sends down for data from above. So if a host's connection waits for its own GPU,
 * and the host waits for nothing else than that connection's other end, it is one of two:
 *
 *	the host that sends nothing      its parent waits for it, and so on up to the root
 *	the root host                    it waits for the child that sends nothing
 *
 * The first is so in all channels. The root is the host of rank 0 in half of NCCL's trees and another one
 * in the others; if the root were the cause itself, it would wait for nothing, which was checked before.
 */
enum { WORDS = 4, CHANNELS = 64 * WORDS };

/* On one host, by channel: what its ranks wait for other than their own GPUs. */
enum { NO_PEER = 0, SEVERAL_PEERS = -1 }; /* else the peer's rank plus 1 */

struct tree_host {
	int32_t waits_for[CHANNELS];
	uint64_t gives_nothing[WORDS];
	uint32_t seat; /* one that waits for its own GPU */
	uint32_t members;
	bool has_first_rank;
};

static bool is_own(enum flight_reason reason)
{
	return reason == FLIGHT_SEND_GPU || reason == FLIGHT_RECV_GPU ||
	       reason == FLIGHT_RECV_FLUSH;
}

static bool has_channel(const struct flight_wait *wait, int channel)
{
	return wait->channels[channel / 64] >> (channel % 64) & 1;
}

static void note_others(struct tree_host *host, const struct flight_wait *wait)
{
	for (int c = 0; c < CHANNELS && !is_own(wait->reason); c++)
		if (has_channel(wait, c))
			host->waits_for[c] = host->waits_for[c] == NO_PEER ||
							     host->waits_for[c] == wait->peer + 1
						     ? wait->peer + 1
						     : SEVERAL_PEERS;
}

static void note_own(struct tree_host *host, const struct flight_wait *wait, uint32_t seat)
{
	for (int c = 0; c < CHANNELS && wait->reason == FLIGHT_SEND_GPU; c++)
		if (has_channel(wait, c) && host->waits_for[c] == wait->peer + 1) {
			host->gives_nothing[c / 64] |= UINT64_C(1) << (c % 64);
			host->seat = seat;
		}
}

/* All ranks in it, starting with the data from elsewhere. */
static void survey_tree(const struct hang_scene *scene, uint32_t c, struct tree_host *hosts)
{
	const struct job_comm *comm = &scene->job->comms[c];

	for (int is_second = 0; is_second < 2; is_second++)
		for (uint32_t i = 0; i < comm->seat_count; i++) {
			uint32_t s = comm->seats[i];
			const struct hang_seat *seat = &scene->seats[s];
			struct tree_host *host = &hosts[hang_rank(scene, s)->host];

			host->has_first_rank |= scene->job->seats[s].comm_rank == 0;
			host->members += is_second;
			for (size_t w = 0; w < seat->wait_count && !is_second; w++)
				note_others(host, &seat->waits[w]);
			for (size_t w = 0; w < seat->wait_count && is_second; w++)
				note_own(host, &seat->waits[w], s);
		}
}

/* The only host for which this holds in all channels where it holds for any host. */
static const struct tree_host *only_one(const struct tree_host *hosts, size_t count)
{
	const struct tree_host *found = NULL;
	uint64_t all[WORDS] = { 0, 0, 0, 0 };
	size_t candidates = 0;

	for (size_t h = 0; h < count; h++)
		for (int w = 0; w < WORDS; w++)
			all[w] |= hosts[h].gives_nothing[w];
	if ((all[0] | all[1] | all[2] | all[3]) == 0)
		return NULL;
	for (size_t h = 0; h < count; h++) {
		bool is_all = !hosts[h].has_first_rank;

		for (int w = 0; w < WORDS; w++)
			is_all &= hosts[h].gives_nothing[w] == all[w];
		if (!is_all)
			continue;
		candidates++;
		found = &hosts[h];
	}
	return candidates == 1 ? found : NULL;
}

/* In an AllReduce by tree: the host that sends nothing; false: unknown. */
static bool hang_tree(struct hang_graph *graph, uint32_t c)
{
	const struct hang_scene *scene = graph->scene;
	uint32_t first = scene->matches[c].first;
	const struct tree_host *host;
	struct tree_host *hosts;
	struct hang_end *end;

	if (first == HANG_NOBODY || scene->seats[first].front->op.algorithm != OP_TREE ||
	    scene->job->comms[c].missing > 0)
		return false;
	hosts = calloc(scene->job->host_count + 1, sizeof(*hosts));
	if (hosts == NULL) {
		graph->status = ERR_NO_SPACE;
		return false;
	}
	survey_tree(scene, c, hosts);
	host = only_one(hosts, scene->job->host_count);
	if (host != NULL) {
		end = hang_end_add(graph, VERDICT_GPU_STUCK, c, c, host->seat);
		if (host->members > 1)
			end->note = HANG_NOTE_TREE;
		end->witness = host->seat;
		end->flight = scene->seats[host->seat].front;
		for (int w = 0; w < WORDS; w++)
			end->channels[w] = host->gives_nothing[w];
		end->confidence = 0.5;
	}
	free(hosts);
	return host != NULL;
}

/*
 * All ranks are in a collective and it does not end. The proxies of all ranks are combined:
 *
 *	send_net, and the receiver waits for data on that channel      the network between them
 *	send_net, and the receiver's GPU does not consume              not the network: check there
 *	a host where a channel has data to consume or to produce, and
 *	waits neither for the network nor for a peer                   a GPU of that host
 *	waits for an invisible rank                                    that rank
 *
 * Within a node there are no proxies: rings and trees pass through GPUs that report nothing. So a host is
 * treated as one unit: what one of its GPUs receives, another one forwards.
 */

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

/* What `seat` waits for from or to `peer`, for these reasons, on these channels. */
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

/* One connection with unfinished sends. */
static bool link_of(struct hang_graph *graph, uint32_t c, uint32_t sender,
		    const struct flight_wait *wait)
{
	const struct hang_scene *scene = graph->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	uint32_t receiver = job_member(scene->job, comm, wait->peer);
	int32_t me = scene->job->seats[sender].comm_rank;
	uint64_t common[CHANNEL_WORDS];

	if (receiver == HANG_NOBODY) {
		/* The network, or a rank beyond it: without a hash nothing more is known. */
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
	/* If both ends agree on one link, the others are consequences of it. */
	for (size_t e = before; e < graph->end_count && both > 0; e++)
		if (graph->ends[e].note == HANG_NOTE_BOTH_ENDS)
			graph->ends[kept++] = graph->ends[e];
	if (both > 0)
		graph->end_count = kept;
	return (uint32_t)(graph->end_count - before);
}

/* ---- sent, but not arrived ------------------------------------------------------------------- */

/* Has `sender` finished all its sends to `peer` on this channel? */
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

/* The oldest receive of this seat whose sender is done, or is ready but was not notified. */
static bool lost_on_the_way(struct hang_graph *graph, uint32_t c, uint32_t receiver,
			    const struct flight_wait *wait)
{
	const struct hang_scene *scene = graph->scene;
	uint32_t sender = job_member(scene->job, &scene->job->comms[c], wait->peer);
	int32_t me = scene->job->seats[receiver].comm_rank;
	struct flight_wait back = *wait;
	uint64_t common[CHANNEL_WORDS];

	if (sender == HANG_NOBODY || sender == receiver || scene->seats[sender].front == NULL ||
	    !hang_is_in_match(scene, sender, &scene->matches[c]))
		return false;
	back.peer = me;
	if (waits_there(&scene->seats[sender], me, 1u << FLIGHT_SEND_PEER, wait->channels, common))
		add_link(graph, c, sender, receiver, &back, common, HANG_NOTE_NOT_HEARD);
	else if (has_sent_all(scene, sender, me, first_channel(wait->channels)))
		add_link(graph, c, sender, receiver, &back, wait->channels, HANG_NOTE_NOT_ARRIVED);
	else
		return false;
	/* Times are the receiver's. */
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

/* The rank that is least far of those that wait for their own GPU, in one direction. */
struct least {
	uint64_t steps;
	uint32_t seat; /* HANG_NOBODY: none, or several */
	bool is_any;
};

/* What the ranks of a communicator on one host wait for, by channel. */
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

/* Data passes through all GPUs of the host. The stuck one has received and sent the least: GPUs upstream of
 * it could fill buffers, GPUs downstream could send their own data. */
static uint32_t least_far(const struct hang_side *side)
{
	if (side->sends.is_any && side->receives.is_any)
		return side->sends.seat == side->receives.seat ? side->sends.seat : HANG_NOBODY;
	return HANG_NOBODY;
}

/* The communicator rank that is not visible, if it is only one; -1: several. */
static int32_t only_missing(const struct job *job, const struct job_comm *comm)
{
	for (int32_t r = 0; r < comm->nranks && comm->missing == 1; r++)
		if (job_member(job, comm, r) == HANG_NOBODY)
			return r;
	return -1;
}

/* A host with fewer visible ranks than others waits for one of its own GPUs: for one that is not visible. */
static void missing_gpu(struct hang_graph *graph, uint32_t c, uint32_t seat)
{
	const struct job_comm *comm = &graph->scene->job->comms[c];
	struct hang_end *end = hang_end_add(graph, VERDICT_UNSEEN, c, c, HANG_NOBODY);

	end->note = HANG_NOTE_ONE_OF_HOST;
	end->peer_comm_rank = only_missing(graph->scene->job, comm);
	end->witness = seat;
	end->flight = graph->scene->seats[seat].front;
	end->confidence = 0.5;
	/* Before 2.27 NCCL does not tell how many ranks there are. */
	if (comm->nranks <= 0) {
		end->class = VERDICT_STUCK;
		end->note = HANG_NOTE_NONE;
		end->confidence = 0.3;
	}
}

static void add_gpu(struct hang_graph *graph, uint32_t c, const struct hang_side *side,
		    uint32_t most_members)
{
	const struct job_comm *comm = &graph->scene->job->comms[c];
	uint32_t seat = side->first, least = least_far(side);
	struct hang_end *end;
	uint64_t alone[CHANNEL_WORDS];

	for (int i = 0; i < CHANNEL_WORDS; i++)
		alone[i] = side->own[i] & ~side->others[i];
	if (seat == HANG_NOBODY || !any_channel(alone))
		return;
	if ((comm->missing > 0 || comm->nranks <= 0) &&
	    (side->members < most_members ||
	     (comm->nnodes > 0 && side->members < (uint32_t)(comm->nranks / comm->nnodes)))) {
		missing_gpu(graph, c, seat);
		return;
	}
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

/* One per host, cleared between two communicators. */
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
	uint32_t most_members = 0;

	if (sides == NULL)
		return 0;
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t seat = comm->seats[i];
		struct hang_side *side = &sides[hang_rank(scene, seat)->host];

		if (side->members++ == 0)
			side->first = HANG_NOBODY;
		if (side->members > most_members)
			most_members = side->members;
		if (hang_is_in_match(scene, seat, &scene->matches[c]))
			add_side(side, &scene->seats[seat], seat);
	}
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		struct hang_side *side = &sides[hang_rank(scene, comm->seats[i])->host];

		if (side->members > 0)
			add_gpu(graph, c, side, most_members);
		*side = (struct hang_side){ .members = 0 };
	}
	return (uint32_t)(graph->end_count - before);
}

/* ---- rings ------------------------------------------------------------------------------------- */

/*
 * In a ring a rank sends its own data first, then what it receives from the rank before it. So behind a stuck
 * rank each rank can send one part more than the rank before it, and the one that has sent least is the stuck
 * one, or the first behind it that is visible: one of the same host. A rank that has sent nothing needed no
 * other rank for that.
 */
struct ring {
	uint32_t least[CHANNELS]; /* the seat, per channel; HANG_NOBODY none or several */
	uint64_t steps[CHANNELS];
	bool is_any[CHANNELS];
};

static bool are_steps_in(const struct recording_proxy *proxy, uint8_t state)
{
	for (size_t i = 0; i < proxy->step_count; i++)
		if (proxy->steps[i].state != state)
			return false;
	return true;
}

/* Those that wait for their peer come before the stuck rank: what it does not take fills all buffers. false: a send
 * is on the wire. */
static bool add_to_ring(struct ring *ring, const struct recording_flight *flight, uint32_t seat)
{
	enum { FOR_ITS_GPU_TO_FILL = 8, FOR_ITS_PEER = 20 }; /* NCCL's numbers */

	for (size_t i = 0; i < flight->proxy_count; i++) {
		const struct recording_proxy *of = &flight->proxies[i];
		unsigned int channel = of->proxy.channel;

		if (!(of->proxy.flags & PROXY_IS_SEND) || of->step_count == 0)
			continue;
		if (are_steps_in(of, FOR_ITS_PEER))
			continue;
		if (!are_steps_in(of, FOR_ITS_GPU_TO_FILL))
			return false;
		if (ring->is_any[channel] && of->proxy.done > ring->steps[channel])
			continue;
		ring->least[channel] =
			ring->is_any[channel] && of->proxy.done == ring->steps[channel]
				? HANG_NOBODY
				: seat;
		ring->steps[channel] = of->proxy.done;
		ring->is_any[channel] = true;
	}
	return true;
}

/* The seats that are least far agree on a host. The one that has sent nothing, or one of them. */
static uint32_t least_of_ring(const struct hang_scene *scene, const struct ring *ring,
			      bool *is_certain, uint64_t channels[CHANNEL_WORDS])
{
	uint32_t found = HANG_NOBODY;

	*is_certain = false;
	for (unsigned int c = 0; c < CHANNELS; c++) {
		if (!ring->is_any[c])
			continue;
		if (ring->least[c] == HANG_NOBODY)
			return HANG_NOBODY;
		channels[c / 64] |= UINT64_C(1) << (c % 64);
		if (found != HANG_NOBODY &&
		    hang_rank(scene, found)->host != hang_rank(scene, ring->least[c])->host)
			return HANG_NOBODY;
		/* Two ranks that have sent nothing: neither can be the only cause. */
		if (*is_certain && ring->steps[c] == 0 && ring->least[c] != found)
			return HANG_NOBODY;
		if (found == HANG_NOBODY || ring->steps[c] == 0)
			found = ring->least[c];
		*is_certain |= ring->steps[c] == 0;
	}
	return found;
}

/* It has called this one and has no transfers of its own in it: its neighbours are on its host, and nothing is
 * recorded of what it does. */
static bool is_only_passed(const struct hang_scene *scene, uint32_t seat,
			   const struct hang_match *match)
{
	const struct hang_seat *of = &scene->seats[seat];
	const struct recording_flight *flights = hang_flights(scene, seat);

	if (hang_is_in_match(scene, seat, match) || of->is_pair || of->is_over)
		return false;
	for (size_t i = 0; i < of->flight_count; i++)
		if (flights[i].op.match == match->match && flights[i].op.algorithm == OP_RING &&
		    hang_flight_kind(scene, seat, i) == FLIGHT_UNSEEN)
			return flights[i].proxy_count == 0;
	return false;
}

/* The seats of one host in a communicator, by communicator rank, and where a channel enters and leaves it. */
struct ring_host {
	uint32_t seats[64];
	uint32_t count;
	uint32_t entry, exit; /* places in seats[]; HANG_NOBODY unknown or several */
};

static void note_way(struct ring_host *host, const struct recording_flight *front,
		     unsigned int channel)
{
	for (size_t i = 0; i < front->proxy_count; i++) {
		const struct region_proxy *proxy = &front->proxies[i].proxy;

		if (proxy->channel != channel)
			continue;
		if (proxy->flags & PROXY_IS_SEND)
			host->exit = host->count - 1;
		else
			host->entry = host->count - 1;
	}
}

static bool survey_host(const struct hang_scene *scene, uint32_t c, uint32_t of,
			unsigned int channel, struct ring_host *host)
{
	const struct job_comm *comm = &scene->job->comms[c];

	*host = (struct ring_host){ .entry = HANG_NOBODY, .exit = HANG_NOBODY };
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t seat = comm->seats[i];

		if (hang_rank(scene, seat)->host != hang_rank(scene, of)->host)
			continue;
		if (host->count == sizeof(host->seats) / sizeof(host->seats[0]))
			return false;
		host->seats[host->count++] = seat;
		if (hang_is_in_match(scene, seat, &scene->matches[c]))
			note_way(host, scene->seats[seat].front, channel);
	}
	return host->entry != HANG_NOBODY && host->exit != HANG_NOBODY;
}

/* Of one part per rank: each rank behind a stuck one has sent one part more than the rank before it. */
static bool is_one_step_per_part(const struct hang_scene *scene, uint32_t c, uint32_t seat,
				 unsigned int channel)
{
	const struct recording_flight *front = scene->seats[seat].front;
	int64_t hops = scene->job->comms[c].nranks - 1;

	for (size_t i = 0; i < front->proxy_count; i++) {
		const struct region_proxy *proxy = &front->proxies[i].proxy;

		if (proxy->channel == channel && proxy->flags & PROXY_IS_SEND)
			return proxy->steps ==
			       (front->op.function == OP_ALL_REDUCE ? 2 * hops : hops);
	}
	return false;
}

/* The rank so many hops before the one that leaves the host, if the ring passes the host's ranks in ascending or in
 * descending order; HANG_NOBODY: it does not. */
static uint32_t hops_before_exit(const struct ring_host *host, uint64_t hops)
{
	uint32_t n = host->count;

	if (hops >= n)
		return HANG_NOBODY;
	if ((host->exit + 1) % n == host->entry)
		return host->seats[(host->exit + n - (uint32_t)hops) % n];
	if ((host->entry + 1) % n == host->exit)
		return host->seats[(host->exit + (uint32_t)hops) % n];
	return HANG_NOBODY;
}

/* The stuck rank, from how much its host has sent in each channel: all of them agree; HANG_NOBODY: unknown. */
static uint32_t find_by_hops(const struct hang_scene *scene, uint32_t c, const struct ring *ring)
{
	uint32_t found = HANG_NOBODY;
	struct ring_host host;

	for (unsigned int channel = 0; channel < CHANNELS; channel++) {
		uint32_t seat;

		if (!ring->is_any[channel])
			continue;
		if (ring->least[channel] == HANG_NOBODY ||
		    !is_one_step_per_part(scene, c, ring->least[channel], channel) ||
		    !survey_host(scene, c, ring->least[channel], channel, &host))
			return HANG_NOBODY;
		seat = hops_before_exit(&host, ring->steps[channel]);
		if (seat == HANG_NOBODY || (found != HANG_NOBODY && found != seat))
			return HANG_NOBODY;
		found = seat;
	}
	return found;
}

/* all: also a host whose rank is not known. */
static bool hang_ring(struct hang_graph *graph, uint32_t c, bool all)
{
	const struct hang_scene *scene = graph->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	uint32_t first = scene->matches[c].first, seat, members = 0;
	uint32_t by_hops;
	uint64_t channels[CHANNEL_WORDS] = { 0 };
	struct ring ring = { .steps = { 0 } };
	struct hang_end *end;
	bool is_certain;

	if (first == HANG_NOBODY || comm->missing > 0 ||
	    !hang_is_ring(&scene->seats[first].front->op))
		return false;
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		if (is_only_passed(scene, comm->seats[i], &scene->matches[c]))
			continue;
		if (!hang_is_in_match(scene, comm->seats[i], &scene->matches[c]) ||
		    !add_to_ring(&ring, scene->seats[comm->seats[i]].front, comm->seats[i]))
			return false;
	}
	seat = least_of_ring(scene, &ring, &is_certain, channels);
	if (seat == HANG_NOBODY)
		return false;
	by_hops = is_certain ? HANG_NOBODY : find_by_hops(scene, c, &ring);
	if (!is_certain && !all && by_hops == HANG_NOBODY)
		return false;
	if (by_hops != HANG_NOBODY)
		seat = by_hops;
	for (uint32_t i = 0; i < comm->seat_count; i++)
		members += hang_rank(scene, comm->seats[i])->host == hang_rank(scene, seat)->host;
	end = hang_end_add(graph, VERDICT_GPU_STUCK, c, c, seat);
	end->note = HANG_NOTE_RING;
	if (by_hops != HANG_NOBODY)
		end->note = HANG_NOTE_HOPS;
	else if (!is_certain && members > 1)
		end->note = HANG_NOTE_ONE_OF_HOST;
	end->witness = hang_is_in_match(scene, seat, &scene->matches[c]) ? seat : first;
	end->flight = scene->seats[end->witness].front;
	memcpy(end->channels, channels, sizeof(end->channels));
	end->is_unsure = scene->seats[seat].presence != HANG_INSIDE;
	end->confidence = is_certain ? 0.8 : by_hops != HANG_NOBODY ? 0.6 : 0.55;
	return true;
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
	uint64_t started[CHANNEL_WORDS]; /* by any rank */
	uint64_t open[CHANNEL_WORDS];	 /* by any rank */
	uint32_t members;
	uint32_t fewest;    /* open channels, minimum over the ranks */
	uint32_t most;	    /* the maximum */
	uint32_t with_most; /* number of ranks with that many */
	uint32_t last;	    /* one of those */
};

static void survey_channels(const struct hang_scene *scene, uint32_t c, struct channels *channels)
{
	const struct job_comm *comm = &scene->job->comms[c];

	*channels = (struct channels){ .fewest = UINT32_MAX, .last = HANG_NOBODY };
	for (uint32_t i = 0; i < comm->seat_count; i++)
		if (hang_is_in_match(scene, comm->seats[i], &scene->matches[c]))
			add_channels(channels->started,
				     scene->seats[comm->seats[i]].front->started);
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint64_t open[CHANNEL_WORDS];
		uint32_t count;

		if (!hang_is_in_match(scene, comm->seats[i], &scene->matches[c]))
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

/* A single rank is behind the others in the channels of its kernel. */
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

/* ---- the last GPU ------------------------------------------------------------------------------ */

/* Is the collective known to be over on this seat's GPU? */
static bool has_finished(const struct hang_scene *scene, uint32_t seat,
			 const struct hang_match *match)
{
	const struct hang_seat *of = &scene->seats[seat];
	const struct recording_flight *flights = hang_flights(scene, seat);

	for (size_t i = 0; i < of->flight_count; i++)
		if (op_is_collective(flights[i].op.function) &&
		    flights[i].op.match == match->match &&
		    ((flights[i].op.flags & OP_FLAG_REPLAY) != 0) == match->is_replay)
			return hang_gpu(scene, seat, &flights[i]) == HANG_GPU_OVER ||
			       hang_flight_kind(scene, seat, i) == FLIGHT_OVER;
	return false;
}

/* One rank is in it, and all others have finished it: nothing that they do can hold it up. */
static bool only_one_inside(struct hang_graph *graph, uint32_t c)
{
	const struct hang_scene *scene = graph->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	const struct hang_match *match = &scene->matches[c];
	uint32_t inside = HANG_NOBODY;
	struct hang_end *end;

	if (comm->missing > 0 || comm->hash == 0 || comm->seat_count < 2)
		return false;
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t seat = comm->seats[i];

		if (has_finished(scene, seat, match))
			continue;
		if (inside != HANG_NOBODY || !hang_is_in_match(scene, seat, match) ||
		    scene->seats[seat].presence != HANG_INSIDE)
			return false;
		inside = seat;
	}
	if (inside == HANG_NOBODY)
		return false;
	end = hang_end_add(graph, VERDICT_GPU_STUCK, c, c, inside);
	end->note = HANG_NOTE_ALL_BUT_ONE;
	end->witness = inside;
	end->flight = scene->seats[inside].front;
	end->confidence = 0.75;
	return true;
}

/* ---- invisible ranks ------------------------------------------------------------------------- */

static bool is_any_source_silent(const struct hang_scene *scene)
{
	for (size_t i = 0; scene->options && i < scene->options->source_count; i++)
		if (scene->options->sources[i].is_silent)
			return true;
	return false;
}

/* The invisible rank that a rank has waited for the longest. */
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
			if (job_member(scene->job, comm, wait->peer) != HANG_NOBODY ||
			    (found != NULL && ns <= longest_ns))
				continue;
			found = wait;
			longest_ns = ns;
			*witness = s;
		}
	}
	return found;
}

static void transfer_unseen(struct hang_graph *graph, uint32_t c)
{
	const struct hang_scene *scene = graph->scene;
	uint32_t witness = HANG_NOBODY;
	const struct flight_wait *wait = waits_for_unseen(scene, c, &witness);
	bool is_silent = is_any_source_silent(scene);
	struct hang_end *end = hang_end_add(graph, is_silent ? VERDICT_AGENT_DEAD : VERDICT_UNSEEN,
					    c, c, HANG_NOBODY);

	end->confidence = is_silent ? 0.7 : 0.6;
	if (wait == NULL) {
		end->note = HANG_NOTE_ONLY_UNSEEN;
		end->peer_comm_rank = only_missing(scene->job, &scene->job->comms[c]);
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

	if (hang_ring(graph, c, false) || gpus_of(graph, c) > 0 || hang_ring(graph, c, true) ||
	    hang_tree(graph, c))
		return;
	if (comm->missing > 0 && comm->hash != 0) {
		transfer_unseen(graph, c);
		return;
	}
	if (losses_of(graph, c) > 0 || only_one_inside(graph, c))
		return;
	survey_channels(graph->scene, c, &channels);
	if (straggling_kernel(graph, c, &channels))
		return;
	end = hang_end_add(graph, VERDICT_STUCK, c, c, HANG_NOBODY);
	end->note = comm->hash == 0 ? HANG_NOTE_NAMELESS : HANG_NOTE_CHANNEL;
	memcpy(end->channels, channels.open, sizeof(end->channels));
	end->confidence = 0.3;
}
