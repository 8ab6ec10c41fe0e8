/*
 * What a second look makes of a link that stands out (link_witness.h):
 *
 *	a process at one of its ends is late in what needs no network, too      a slow rank, short of processor
 *	the receiver comes late, and what was sent waits for it                 nothing: that rank is named already
 *	few operations stand out, and not a few of the others', too             nothing
 *	few operations stand out, and both processes are fine                   a slow link, and less sure
 *	anything else                                                           a slow link
 */
#include "timeline/straggler_find.h"

enum { LOOKS_MAX = 64 };
static const double sure_of_bursts = 0.7, sure_of_process = 0.8;

static bool is_late(const struct straggler_search *search, uint32_t rank, uint32_t comm)
{
	for (size_t i = 0; i < search->count; i++)
		if (search->found[i].class == STRAGGLER_SLOW_RANK &&
		    search->found[i].rank == rank && search->found[i].comm == comm)
			return true;
	return false;
}

static void add_starved(struct straggler_search *search, const struct straggler *link,
			uint32_t rank, double own)
{
	struct straggler starved = *link;

	starved.class = STRAGGLER_SLOW_RANK;
	starved.rank = rank;
	starved.host = search->job->ranks[rank].host;
	starved.peer = UINT32_MAX;
	starved.peer_confidence = 0;
	starved.channel = -1;
	starved.is_of_sends = false;
	starved.confidence *= sure_of_process;
	starved.is_starved = true;
	starved.own_slowdown = own;
	straggler_add(search, &starved);
}

void straggler_add_link(struct straggler_search *search, struct straggler *link,
			const struct link_question *question)
{
	struct link_question within = *question;
	struct link_witness witness;

	within.since_ns = search->since_ns;
	within.until_ns = search->until_ns;
	if (search->looks++ >= LOOKS_MAX) {
		straggler_add(search, link);
		return;
	}
	link_witness_find(&witness, &within, &search->sample);
	if (witness.is_sender_starved) {
		add_starved(search, link, link->rank, witness.sender_own);
		return;
	}
	if (witness.is_receiver_starved) {
		add_starved(search, link, link->peer, witness.receiver_own);
		return;
	}
	if (link_witness_is_waiting(&witness) && link->peer != UINT32_MAX &&
	    is_late(search, link->peer, link->comm))
		return;
	/* Collectives were tested against chance, block by block. */
	if (link->is_of_sends && link_witness_is_noise(&witness))
		return;
	if (witness.operations > 0)
		link->slow_share = (double)witness.slow / (double)witness.operations;
	link->is_bursty = witness.is_bursty && witness.slow > 0;
	if (witness.is_bursty)
		link->confidence *= sure_of_bursts;
	straggler_add(search, link);
}

uint32_t straggler_seat_of(const struct job *job, uint32_t comm, uint32_t rank)
{
	for (uint32_t i = 0; i < job->comms[comm].seat_count; i++)
		if (job->seats[job->comms[comm].seats[i]].rank == rank)
			return i;
	return UINT32_MAX;
}
