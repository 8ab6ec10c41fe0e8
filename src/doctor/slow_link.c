/*
 * The channels of a slow link. Details (mode full) tell for each transfer, or at least for each proxy
 * operation, its peer and channel and how long it was on the wire; the sender's own suffice. Nanoseconds per
 * byte are compared: those channels are named that are not much faster than the slowest one to the same
 * peer. Which peer that is, is told by the sums that are kept in every mode (slow_link_peer.c), and by details
 * where there are none.
 */
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "doctor/slow_find.h"

enum { PLACES_MAX = 1024, CHANNELS = 256 };
static const double alike = 0.67; /* of the slowest channel's time per byte */
/* Of the bytes of the channel with most: tiny messages take long for a byte by nature. */
static const double part_that_matters = 0.05;

struct place {
	int32_t peer;
	uint8_t channel;
	bool is_step; /* from transfers, which are exact; proxy operations wait for their GPU, too */
	double ns;
	double bytes;
};

struct places {
	uint32_t comm_id;
	uint32_t count;
	struct place list[PLACES_MAX];
};

static double wire_ns(const struct op_detail *detail)
{
	bool is_step = detail->kind == OP_DETAIL_STEP;
	uint64_t from = detail->time_ns[is_step ? 2 : 1], to = detail->time_ns[3];

	return from > 0 && to > from ? (double)(to - from) : 0;
}

static bool add_detail(const struct op_detail *detail, enum recording_place at, void *context)
{
	struct places *places = context;
	double ns = wire_ns(detail);
	uint32_t i = 0;

	(void)at;
	if ((detail->kind != OP_DETAIL_PROXY && detail->kind != OP_DETAIL_STEP) ||
	    !(detail->flags & OP_DETAIL_IS_SEND) || detail->flags & OP_DETAIL_IS_FOREIGN ||
	    detail->comm != places->comm_id || ns <= 0 || detail->bytes == 0)
		return true;
	while (i < places->count && (places->list[i].peer != detail->peer ||
				     places->list[i].channel != detail->channel ||
				     places->list[i].is_step != (detail->kind == OP_DETAIL_STEP)))
		i++;
	if (i == PLACES_MAX)
		return true;
	if (i == places->count) {
		places->list[places->count++] =
			(struct place){ .peer = detail->peer,
					.channel = detail->channel,
					.is_step = detail->kind == OP_DETAIL_STEP };
	}
	places->list[i].ns += ns;
	places->list[i].bytes += (double)detail->bytes;
	return true;
}

static double pace(const struct place *place)
{
	return place->ns / place->bytes;
}

static bool has_steps(const struct places *places)
{
	for (uint32_t i = 0; i < places->count; i++)
		if (places->list[i].is_step)
			return true;
	return false;
}

static bool is_to(const struct place *place, bool is_step, int32_t peer)
{
	return place->is_step == is_step && (peer == -1 || place->peer == peer);
}

/* To this peer (-1: to anybody); NULL: there was nothing. */
static const struct place *slowest(const struct places *places, bool is_step, int32_t peer)
{
	const struct place *worst = NULL;
	double most = 0;

	for (uint32_t i = 0; i < places->count; i++)
		if (is_to(&places->list[i], is_step, peer) && places->list[i].bytes > most)
			most = places->list[i].bytes;
	for (uint32_t i = 0; i < places->count; i++) {
		const struct place *place = &places->list[i];

		if (is_to(place, is_step, peer) && place->bytes >= part_that_matters * most &&
		    (worst == NULL || pace(place) > pace(worst)))
			worst = place;
	}
	return worst;
}

/* "0-3,7"; how many there are. */
static uint32_t channel_list(const bool is_in[CHANNELS], char *to, size_t size)
{
	uint32_t count = 0;
	size_t used = 0;

	to[0] = '\0';
	for (int c = 0; c < CHANNELS; c++) {
		int last = c;

		if (!is_in[c])
			continue;
		while (last + 1 < CHANNELS && is_in[last + 1])
			last++;
		count += (uint32_t)(last - c + 1);
		if (last > c)
			text_format(to + used, size - used, "%s%d-%d", used ? "," : "", c, last);
		else
			text_format(to + used, size - used, "%s%d", used ? "," : "", c);
		used = strlen(to);
		c = last;
	}
	return count;
}

static void name_channels(const struct places *places, const struct place *worst,
			  const struct job_comm *comm, struct verdict *verdict)
{
	bool is_step = worst->is_step, is_in[CHANNELS] = { false };
	uint32_t to_peer = 0, slow;

	for (uint32_t i = 0; i < places->count; i++) {
		const struct place *place = &places->list[i];

		if (place->is_step != is_step || place->peer != worst->peer)
			continue;
		to_peer++;
		is_in[place->channel] |= pace(place) >= alike * pace(worst);
	}
	slow = channel_list(is_in, verdict->channels, sizeof(verdict->channels));
	if (slow == 1)
		verdict->channel = worst->channel;
	verdict_evidence(
		verdict,
		"Its transfers to rank %d of %.100s are slow on channel%s %s, %u of the %u "
		"to that peer: %.3g GB/s.",
		worst->peer, comm->label, slow == 1 ? "" : "s", verdict->channels, slow, to_peer,
		1 / pace(worst));
}

/* Index into job.seats; UINT32_MAX: it has none there. */
static uint32_t seat_of(const struct job *job, uint32_t comm, uint32_t rank)
{
	for (uint32_t i = 0; i < job->comms[comm].seat_count; i++)
		if (job->seats[job->comms[comm].seats[i]].rank == rank)
			return job->comms[comm].seats[i];
	return UINT32_MAX;
}

/* Rank within the communicator of who gets it, as far as that is known; -1 not. */
static int32_t receiver_of(const struct job *job, const struct straggler *straggler,
			   const struct link_peer *known)
{
	uint32_t seat = straggler->peer != UINT32_MAX
				? seat_of(job, straggler->comm, straggler->peer)
				: UINT32_MAX;

	return seat != UINT32_MAX ? job->seats[seat].comm_rank : known->peer;
}

static void tell_unseen(struct verdict *verdict, const struct straggler *straggler,
			const struct link_peer *known)
{
	bool is_nobody = straggler->peer == UINT32_MAX && known->peer == -1;

	if (is_nobody && known->peers > 1)
		verdict_missing(verdict,
				"It sends to %u ranks over the network, and in the sums since the "
				"process began none of them stands out: to which one it is slow "
				"cannot be seen.",
				known->peers);
	verdict_missing(verdict,
			"On which channel%s cannot be seen: only RINGSIDE_MODE=full "
			"records single transfers.",
			is_nobody && known->peers == 0 ? ", and to which peer," : "");
}

void slow_link_channels(struct slow_search *search, const struct straggler *straggler,
			struct verdict *verdict)
{
	const struct job *job = &search->report->job;
	uint32_t at = seat_of(job, straggler->comm, straggler->rank);
	const struct job_seat *seat = at != UINT32_MAX ? &job->seats[at] : NULL;
	struct places *places = calloc(1, sizeof(*places));
	struct link_peer known = { .peer = -1 };
	const struct place *worst;

	if (places == NULL) {
		search->status = ERR_NO_SPACE;
		return;
	}
	if (seat != NULL)
		slow_link_peer(search, straggler, at, verdict, &known);
	if (seat != NULL && job->recording->processes[seat->process]->file_count > 0) {
		places->comm_id = seat->comm_id;
		/* Damage of the file is told elsewhere; what was read before it counts. */
		recording_each_detail(job->recording->processes[seat->process], add_detail, places,
				      NULL);
	}
	worst = slowest(places, has_steps(places), receiver_of(job, straggler, &known));
	if (worst != NULL)
		name_channels(places, worst, &job->comms[straggler->comm], verdict);
	else
		tell_unseen(verdict, straggler, &known);
	free(places);
}
