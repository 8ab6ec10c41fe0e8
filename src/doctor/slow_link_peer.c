/*
 * The receiving end of a slow link, from the sums that recorders keep for each peer in every mode. They go back to
 * the start of the process; where the slowness does not, and there are several peers, that is said.
 */
#include "common/text.h"
#include "doctor/slow_find.h"

static const double sure_though_late = 0.9;

static void fill_peer(struct verdict *verdict, const struct job *job, uint32_t rank)
{
	const struct job_rank *peer = &job->ranks[rank];

	verdict->peer = peer->rank;
	text_copy(verdict->peer_label, sizeof(verdict->peer_label), peer->label);
	text_copy(verdict->peer_host, sizeof(verdict->peer_host), job->hosts[peer->host].name);
}

static void tell(struct verdict *verdict, const struct link_peer *known,
		 const struct job_comm *comm)
{
	char against[96] = "";

	if (known->slowdown > 0)
		text_format(against, sizeof(against),
			    ", %.1f times as long as over the middle link", known->slowdown);
	if (known->peers == 1)
		verdict_evidence(
			verdict,
			"Over the network it sends to rank %d of %.100s and to nobody else: %s in "
			"%llu transfers since the process began, %s a MiB on the wire%s.",
			known->peer, comm->label, units_of_bytes(known->bytes).text,
			(unsigned long long)known->transfers, units_of_ns(known->ns_per_mib).text,
			against);
	else
		verdict_evidence(
			verdict,
			"Of the %u ranks of %.100s to which it sends over the network it is rank "
			"%d: %s in %llu transfers since the process began, %s a MiB on the wire%s.",
			known->peers, comm->label, known->peer, units_of_bytes(known->bytes).text,
			(unsigned long long)known->transfers, units_of_ns(known->ns_per_mib).text,
			against);
}

static void doubt(struct verdict *verdict, const struct straggler *straggler,
		  const struct link_peer *known)
{
	bool is_late = straggler->has_times && straggler->pattern != STRAGGLER_ALWAYS;

	if (known->peers_weighed > 1 && is_late) {
		verdict->confidence *= sure_though_late;
		verdict_missing(verdict,
				"What is sent to each peer is summed up since the process began, "
				"and it was not slow all that time: that of the %u peers it is "
				"this one is less certain than who sends.",
				known->peers_weighed);
	}
	verdict->confidence *= known->confidence;
}

void slow_link_peer(struct slow_search *search, const struct straggler *straggler, uint32_t seat,
		    struct verdict *verdict, struct link_peer *known)
{
	const struct job *job = &search->report->job;
	uint32_t rank;

	if (link_peer_find(known, job, seat) != OK) {
		search->status = ERR_NO_SPACE;
		return;
	}
	if (known->peer == -1)
		return;
	rank = link_peer_rank(job, straggler->comm, known->peer);
	/* Sends say themselves to whom they are slow. */
	if (straggler->peer != UINT32_MAX && straggler->peer != rank)
		return;
	if (rank != UINT32_MAX)
		fill_peer(verdict, job, rank);
	tell(verdict, known, &job->comms[straggler->comm]);
	if (straggler->peer == UINT32_MAX || straggler->peer_confidence < 1)
		doubt(verdict, straggler, known);
}
