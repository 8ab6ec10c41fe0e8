/*
 * Links that hold up.
 *
 * A transfer over a slow link stays on the wire longer than those of the other senders do. Collectives say
 * so per sender (their records sum over all peers), Sends per sender and receiver. Who stands out: a
 * sender whose time on the wire per transfer is well above the middle of all senders of the same
 * collectives, for a stretch of time, and long enough to matter for the collectives' duration.
 */
#include <math.h>
#include <stdlib.h>

#include "op/op_bytes.h"
#include "timeline/align_fit.h"
#include "timeline/link_peer.h"
#include "timeline/straggler_find.h"

static const double ratio_that_matters = 1.5; /* against the middle sender */
static const double ratio_of_two = 2;	      /* with one other sender only */
static const double share_that_matters = 0.2; /* time on the wire too much, of the duration */
static const double chance_accepted = 1e-4;

/* The middle sender's time per transfer; of two the faster one's. */
static double middle_of(const struct straggler_table *table, uint32_t block, double *scratch,
			uint32_t *senders)
{
	*senders = 0;
	for (uint32_t seat = 0; seat < table->seats; seat++) {
		double wire = table->wire_ns[(size_t)seat * table->blocks + block];

		if (!isnan(wire))
			scratch[(*senders)++] = wire;
	}
	return *senders > 1 ? align_select(scratch, *senders, (*senders - 1) / 2) : NAN;
}

/*
 * In mode full the recording says to whom, and on which channel, each proxy operation sent. The slowest of them, by
 * time per byte; those with few bytes (trees of tiny messages) are slow by nature. What the sums by peer say
 * goes before.
 */
enum { PEERS_MAX = 256 };
static const double part_that_matters = 0.05; /* of the bytes of the one with most */
static const double sure_by_details = 0.95;

struct peer_times {
	uint32_t comm_id;
	uint32_t count;
	struct {
		int32_t peer;
		uint8_t channel;
		double ns;
		double bytes;
	} list[PEERS_MAX];
};

static bool add_detail(const struct op_detail *detail, enum recording_place place, void *context)
{
	struct peer_times *times = context;
	uint32_t i = 0;

	(void)place;
	if (detail->kind != OP_DETAIL_PROXY || !(detail->flags & OP_DETAIL_IS_SEND) ||
	    detail->flags & OP_DETAIL_IS_FOREIGN || detail->comm != times->comm_id ||
	    detail->time_ns[1] == 0 || detail->time_ns[3] <= detail->time_ns[1])
		return true;
	while (i < times->count &&
	       (times->list[i].peer != detail->peer || times->list[i].channel != detail->channel))
		i++;
	if (i == PEERS_MAX)
		return true;
	if (i == times->count) {
		times->list[i].peer = detail->peer;
		times->list[i].channel = detail->channel;
		times->list[i].ns = times->list[i].bytes = 0;
		times->count++;
	}
	times->list[i].ns += (double)(detail->time_ns[3] - detail->time_ns[1]);
	times->list[i].bytes += (double)detail->bytes;
	return true;
}

/* The slowest of those to this peer (-1: to anybody); *is_one: all are to one. */
static uint32_t slowest(const struct peer_times *times, int32_t peer, bool *is_one)
{
	uint32_t found = times->count, first = times->count;
	double worst = 0, most = 0;

	for (uint32_t i = 0; i < times->count; i++)
		most = times->list[i].bytes > most ? times->list[i].bytes : most;
	*is_one = true;
	for (uint32_t i = 0; i < times->count; i++) {
		double bytes = times->list[i].bytes;

		if (bytes <= 0 || bytes < part_that_matters * most)
			continue;
		first = first < times->count ? first : i;
		*is_one = *is_one && times->list[i].peer == times->list[first].peer;
		if ((peer != -1 && times->list[i].peer != peer) ||
		    times->list[i].ns / bytes <= worst)
			continue;
		worst = times->list[i].ns / bytes;
		found = i;
	}
	return found;
}

static void find_channel(struct straggler_search *search, const struct job_seat *seat, int32_t peer,
			 struct straggler *straggler)
{
	struct peer_times *times;
	uint32_t found;
	bool is_one;

	if (search->job->recording->processes[seat->process]->file_count == 0)
		return;
	times = calloc(1, sizeof(*times));
	if (times == NULL) {
		search->status = ERR_NO_SPACE;
		return;
	}
	times->comm_id = seat->comm_id;
	recording_each_detail(search->job->recording->processes[seat->process], add_detail, times,
			      NULL);
	found = slowest(times, peer, &is_one);
	if (found < times->count) {
		straggler->peer = link_peer_rank(search->job, seat->comm, times->list[found].peer);
		if (peer == -1)
			straggler->peer_confidence = sure_by_details;
		if (times->count == 1 || !is_one)
			straggler->channel = times->list[found].channel;
	}
	free(times);
}

static void find_peer(struct straggler_search *search, uint32_t seat, struct straggler *straggler)
{
	const struct job_seat *of = &search->job->seats[seat];
	struct link_peer known;

	if (link_peer_find(&known, search->job, seat) != OK) {
		search->status = ERR_NO_SPACE;
		return;
	}
	if (known.peer != -1) {
		straggler->peer = link_peer_rank(search->job, of->comm, known.peer);
		straggler->peer_confidence = known.confidence;
	}
	find_channel(search, of, known.peer, straggler);
}

static void name_seat(struct straggler_search *search, const struct straggler_table *table,
		      uint32_t seat, const double *excess, const struct straggler_stretch *stretch,
		      double chance)
{
	const struct job_comm *comm = &search->job->comms[table->lane->comm];
	const struct job_seat *of = &search->job->seats[comm->seats[seat]];
	bool is_on[STRAGGLER_BLOCKS];
	struct straggler straggler = { .class = STRAGGLER_SLOW_LINK,
				       .rank = of->rank,
				       .host = search->job->ranks[of->rank].host,
				       .peer = UINT32_MAX,
				       .channel = -1,
				       .comm = table->lane->comm,
				       .meetings = table->took_part[seat],
				       .last_in = table->last_in[seat],
				       .slowdown = 1 + stretch->typical,
				       .confidence = 1 - chance };

	for (uint32_t b = 0; b < table->blocks; b++) {
		is_on[b] = !isnan(excess[b]) && excess[b] > stretch->typical / 2;
		if (is_on[b])
			straggler.caused_ns +=
				(uint64_t)(table->least_ns[b] * table->count[b] * table->seats *
					   (1 - 1 / straggler.slowdown));
	}
	straggler_times(&straggler, table, is_on);
	straggler.cost_share = straggler_cost_share(table, (double)straggler.caused_ns);
	find_peer(search, comm->seats[seat], &straggler);
	straggler_add(search, &straggler);
}

/* How much of the collectives' time the time on the wire too much is. */
static double share_of(const struct straggler_table *table, uint32_t seat, const double *excess)
{
	double too_much_ns = 0, duration_ns = 0;

	for (uint32_t b = 0; b < table->blocks; b++) {
		duration_ns += table->least_ns[b] * table->count[b];
		if (!isnan(excess[b]) && excess[b] > 0)
			too_much_ns += table->wire_sum[(size_t)seat * table->blocks + b] *
				       excess[b] / (1 + excess[b]);
	}
	return duration_ns > 0 ? too_much_ns / duration_ns : 0;
}

/* Per block, how much above the middle sender; NAN where it sends nothing. */
static void excess_of(const struct straggler_table *table, uint32_t seat, const double *middle,
		      double *excess)
{
	for (uint32_t b = 0; b < table->blocks; b++) {
		double wire = table->wire_ns[(size_t)seat * table->blocks + b];

		excess[b] = middle[b] > 0 ? wire / middle[b] - 1 : NAN;
	}
}

/* Ratios are compared by their logarithm: one that goes from 44 to 52 is no less certain than one that
 * stays at 2. */
static bool stands_out(const struct straggler_table *table, uint32_t seat, const double *excess,
		       uint32_t senders, struct straggler_stretch *stretch)
{
	double ratio = senders > 2 ? ratio_that_matters : ratio_of_two;
	double logarithms[STRAGGLER_BLOCKS];

	/* Nothing on the wire at all has no logarithm: a hundredth of the others' will do. */
	for (uint32_t b = 0; b < table->blocks; b++)
		logarithms[b] = log1p(excess[b] < -0.99 ? -0.99 : excess[b]);
	*stretch = straggler_stretch(logarithms, table->blocks, log(ratio), 0);
	stretch->typical = expm1(stretch->typical);
	return stretch->is_found && stretch->chance * table->seats < chance_accepted &&
	       share_of(table, seat, excess) > share_that_matters;
}

void straggler_wire(struct straggler_search *search, const struct straggler_table *table)
{
	double *scratch = calloc(table->seats + 1, sizeof(*scratch));
	double middle[STRAGGLER_BLOCKS], excess[STRAGGLER_BLOCKS];
	struct straggler_stretch stretch;
	uint32_t senders = 0, most = 0, standing_out = 0;

	if (scratch == NULL) {
		search->status = ERR_NO_SPACE;
		return;
	}
	for (uint32_t b = 0; b < table->blocks; b++) {
		middle[b] = middle_of(table, b, scratch, &senders);
		most = senders > most ? senders : most;
	}
	free(scratch);
	for (uint32_t seat = 0; seat < table->seats && most > 1; seat++) {
		excess_of(table, seat, middle, excess);
		standing_out += stands_out(table, seat, excess, most, &stretch);
	}
	/* Many that stand out are a structure that we do not know, no slow link. */
	if (standing_out > 1 + most / 16)
		return;
	for (uint32_t seat = 0; seat < table->seats && standing_out > 0; seat++) {
		excess_of(table, seat, middle, excess);
		if (stands_out(table, seat, excess, most, &stretch))
			name_seat(search, table, seat, excess, &stretch,
				  stretch.chance * table->seats);
	}
}

/* ---- Sends ----------------------------------------------------------------------------------- */

enum { LINKS_LEAST = 4, SENDS_LEAST = 8, SIZE_CLASSES = 66 };
static const double link_ratio = 2, link_excess_ns = 5000;

static bool is_comparable(const struct link *link, unsigned int size_class)
{
	return link->sends >= SENDS_LEAST && link->send_steps > 0 && link->to >= 0 &&
	       op_size_class(link->bytes / link->sends) == size_class;
}

static void name_link(struct straggler_search *search, const struct link *link, double ratio)
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
				       .slowdown = ratio,
				       /* By how many there are: no distribution is assumed. */
				       .confidence = 1 - 1 / (double)(link->sends + 1) };

	straggler_add(search, &straggler);
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

			if (is_comparable(link, size) && wire > link_ratio * middle &&
			    wire > middle + link_excess_ns)
				name_link(search, link, wire / (middle > 1 ? middle : 1));
		}
	}
	free(wires);
}
