/*
 * Links that hold up.
 *
 * A transfer over a slow link stays on the wire longer than those of the other senders do. Collectives say
 * so per sender (their records sum over all peers); Sends, per sender and receiver, are in straggler_sends.c.
 * Who stands out: a sender whose time on the wire per transfer is well above the middle of all senders of
 * the same collectives, for a stretch of time, and long enough to matter for the collectives' duration. Then a
 * second look decides whether it is the link, or a process at one of its ends (link_witness.h).
 */
#include <math.h>
#include <stdlib.h>

#include "common/text.h"
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

/* What the second look needs to know of each block. */
struct blocks {
	double behind_ns[STRAGGLER_BLOCKS];
	double limit_ns[STRAGGLER_BLOCKS];
};

/* ratio: what stands out against the middle sender. */
static void fill_blocks(struct blocks *blocks, const struct straggler_table *table, uint32_t seat,
			uint32_t receiver, const double *middle, double ratio)
{
	for (uint32_t b = 0; b < table->blocks; b++) {
		double behind = 0;

		/* Both are against the mean of all; NAN compares as false. */
		if (receiver != UINT32_MAX)
			behind = table->late_ns[(size_t)receiver * table->blocks + b] -
				 table->late_ns[(size_t)seat * table->blocks + b];
		blocks->behind_ns[b] = behind > 0 ? behind : 0;
		blocks->limit_ns[b] = middle[b] * ratio;
	}
}

/* A link that stands out, after a second look. */
static void judge(struct straggler_search *search, const struct straggler_table *table,
		  uint32_t seat, const bool *is_on, const double *middle, double ratio,
		  struct straggler *straggler)
{
	uint32_t comm = table->lane->comm;
	uint32_t receiver = straggler->peer != UINT32_MAX
				    ? straggler_seat_of(search->job, comm, straggler->peer)
				    : UINT32_MAX;
	struct blocks blocks;
	struct link_question question = { .job = search->job,
					  .comm = comm,
					  .sender = seat,
					  .receiver = receiver,
					  .is_replay = table->lane->is_replay,
					  .size_class = (uint8_t)table->wire_class,
					  .slowdown = straggler->slowdown,
					  .is_on = is_on,
					  .blocks = table->blocks,
					  .first_number = table->first_number,
					  .behind_ns = blocks.behind_ns,
					  .limit_ns = blocks.limit_ns };

	fill_blocks(&blocks, table, seat, receiver, middle, ratio);
	straggler_add_link(search, straggler, &question);
}

static void name_seat(struct straggler_search *search, const struct straggler_table *table,
		      uint32_t seat, const double *middle, const double *excess,
		      const struct straggler_stretch *stretch, double ratio)
{
	const struct job_comm *comm = &search->job->comms[table->lane->comm];
	struct straggler straggler = straggler_begin(search, table, seat, STRAGGLER_SLOW_LINK);
	bool is_on[STRAGGLER_BLOCKS];
	double caused_ns = 0;

	straggler.slowdown = 1 + stretch->typical;
	straggler.confidence = 1 - stretch->chance * table->seats;
	for (uint32_t b = 0; b < table->blocks; b++) {
		is_on[b] = !isnan(excess[b]) && excess[b] > stretch->typical / 2;
		if (is_on[b])
			caused_ns += table->least_ns[b] * table->count[b] * table->seats *
				     (1 - 1 / straggler.slowdown);
	}
	straggler_times(&straggler, table, is_on);
	caused_ns *= straggler_scale(search, table->lane->comm);
	straggler.caused_ns = units_whole(caused_ns);
	straggler.cost_share = straggler_cost_share(table, caused_ns);
	find_peer(search, comm->seats[seat], &straggler);
	judge(search, table, seat, is_on, middle, ratio, &straggler);
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
		       double ratio, struct straggler_stretch *stretch)
{
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
	double ratio;

	if (scratch == NULL) {
		search->status = ERR_NO_SPACE;
		return;
	}
	for (uint32_t b = 0; b < table->blocks; b++) {
		middle[b] = middle_of(table, b, scratch, &senders);
		most = senders > most ? senders : most;
	}
	free(scratch);
	ratio = most > 2 ? ratio_that_matters : ratio_of_two;
	for (uint32_t seat = 0; seat < table->seats && most > 1; seat++) {
		excess_of(table, seat, middle, excess);
		standing_out += stands_out(table, seat, excess, ratio, &stretch);
	}
	/* Many that stand out are a structure that we do not know, no slow link. */
	if (standing_out > 1 + most / 16)
		return;
	for (uint32_t seat = 0; seat < table->seats && standing_out > 0; seat++) {
		excess_of(table, seat, middle, excess);
		if (stands_out(table, seat, excess, ratio, &stretch))
			name_seat(search, table, seat, middle, excess, &stretch, ratio);
	}
}
