/*
 * Sends that hold up. They are known by sender and receiver, so links are compared with each other: those with
 * messages of one size, by the time on the wire per transfer.
 */
#include <stdlib.h>

#include "common/op.h"
#include "timeline/align_fit.h"
#include "timeline/link_peer.h"
#include "timeline/straggler_find.h"

enum { LINKS_LEAST = 4, SENDS_LEAST = 8, SIZE_CLASSES = 66 };
static const double link_ratio = 2, link_excess_ns = 5000;

static bool is_comparable(const struct link *link, unsigned int size_class)
{
	return link->sends >= SENDS_LEAST && link->send_steps > 0 && link->to >= 0 &&
	       op_size_class(link->bytes / link->sends) == size_class;
}

/* A transfer that is longer on the wire than this stands out. */
static double limit_of(double middle_ns)
{
	double by_ratio = link_ratio * middle_ns, by_excess = middle_ns + link_excess_ns;

	return by_ratio > by_excess ? by_ratio : by_excess;
}

static void name_link(struct straggler_search *search, const struct link *link,
		      unsigned int size_class, double wire_ns, double middle_ns)
{
	const struct job_seat *seat = &search->job->seats[link->from];
	struct straggler straggler = { .class = STRAGGLER_SLOW_LINK,
				       .rank = seat->rank,
				       .host = search->job->ranks[seat->rank].host,
				       .peer = link_peer_rank(search->job, link->comm, link->to),
				       .peer_confidence = 1,
				       .channel = -1,
				       .comm = link->comm,
				       .meetings = link->sends,
				       .share_of_time = 1,
				       .is_of_sends = true,
				       .slowdown = wire_ns / (middle_ns > 1 ? middle_ns : 1),
				       /* By how many there are: no distribution is assumed. */
				       .confidence = 1 - 1 / (double)(link->sends + 1) };

	double limit_ns = limit_of(middle_ns);
	struct link_question question = { .job = search->job,
					  .comm = link->comm,
					  .is_send = true,
					  .size_class = (uint8_t)size_class,
					  .slowdown = straggler.slowdown,
					  .blocks = 1,
					  .limit_ns = &limit_ns };

	question.sender = straggler_seat_of(search->job, link->comm, straggler.rank);
	question.receiver = straggler.peer != UINT32_MAX
				    ? straggler_seat_of(search->job, link->comm, straggler.peer)
				    : UINT32_MAX;
	straggler_add_link(search, &straggler, &question);
}

void straggler_links(struct straggler_search *search)
{
	const struct links *links = search->links;
	double *wires = calloc(links->count + 1, sizeof(*wires));

	if (wires == NULL) {
		search->status = ERR_NO_SPACE;
		return;
	}
	for (unsigned int size = 1; size < SIZE_CLASSES; size++) {
		size_t count = 0;
		double middle;

		for (size_t i = 0; i < links->count; i++)
			if (is_comparable(&links->list[i], size))
				wires[count++] = (double)links->list[i].send_net_ns /
						 (double)links->list[i].send_steps;
		if (count < LINKS_LEAST)
			continue;
		middle = align_select(wires, count, (count - 1) / 2);
		for (size_t i = 0; i < links->count; i++) {
			const struct link *link = &links->list[i];
			double wire = (double)link->send_net_ns /
				      (double)(link->send_steps + !link->send_steps);

			if (is_comparable(link, size) && wire > limit_of(middle))
				name_link(search, link, size, wire, middle);
		}
	}
	free(wires);
}
