/* What all meetings come to, once everything is added. */
#include <math.h>
#include <stdlib.h>

#include "common/attributes.h"
#include "timeline/meet.h"
#include "timeline/meet_lane.h"

struct meet_slice meet_slice(const struct meet_lane *lane, uint32_t chunk, uint32_t bits)
{
	const struct meet_brief *brief = &lane->briefs[chunk];
	struct meet_slice slice = { 0 };

	if ((bits & brief->occupied) == brief->occupied) {
		slice.meetings = (uint32_t)__builtin_popcount(brief->occupied);
		slice.least_ns = brief->least_ns;
		slice.mean_ns = brief->mean_ns;
		return slice;
	}
	for (bits &= brief->occupied; bits != 0; bits &= bits - 1) {
		const struct meet_slot *slot = &lane->chunks[chunk]->slots[__builtin_ctz(bits)];

		slice.meetings++;
		slice.least_ns += slot->least_ns;
		slice.mean_ns += (double)slot->sum_ns / slot->count;
	}
	return slice;
}

/* times: 1 adds, -1 takes away. */
static void sum_slots(const struct meet_chunk *chunk, uint32_t bits, uint64_t times,
		      struct meet_sum *sums)
{
	for (; bits != 0; bits &= bits - 1) {
		const struct meet_slot *slot = &chunk->slots[__builtin_ctz(bits)];
		struct meet_sum *sum = &sums[slot->kind];

		sum->joined += times;
		sum->least_ns += times * slot->least_ns;
		if (slot->count == 1) {
			sum->alone += times;
			sum->alone_ns += times * slot->least_ns;
		}
	}
}

/* Its parts are of most chunks, one after the other. */
static bool is_in_most(const struct meet_lane *lane, const struct meet_seat *seat)
{
	if (seat->count < lane->chunk_count / 2)
		return false;
	for (uint32_t i = 1; i < seat->count; i++)
		if (seat->parts[i].chunk <= seat->parts[i - 1].chunk)
			return false;
	return true;
}

/* All meetings of the lane, less those without it: few, as a rule. */
static void sum_others(const struct meet_lane *lane, const struct meet_seat *seat,
		       struct meet_sum *sums)
{
	uint32_t next = 0;

	for (uint32_t chunk = 0; chunk < lane->chunk_count; chunk++) {
		uint32_t without = lane->briefs[chunk].occupied;

		if (next < seat->count && seat->parts[next].chunk == chunk)
			without &= ~seat->parts[next++].bits;
		if (without != 0)
			sum_slots(lane->chunks[chunk], without, UINT64_MAX, sums);
	}
}

void meet_sums(const struct meet_lane *lane, uint32_t kind_count, uint32_t seat,
	       struct meet_sum *sums)
{
	const struct meet_seat *of = &lane->seats[seat];

	if (!is_in_most(lane, of)) {
		for (uint32_t i = 0; i < of->count; i++)
			sum_slots(lane->chunks[of->parts[i].chunk], of->parts[i].bits, 1, sums);
		return;
	}
	for (uint32_t kind = 0; kind < kind_count; kind++) {
		sums[kind].joined += lane->sums[kind].joined;
		sums[kind].least_ns += lane->sums[kind].least_ns;
		sums[kind].alone += lane->sums[kind].alone;
		sums[kind].alone_ns += lane->sums[kind].alone_ns;
	}
	sum_others(lane, of, sums);
}

static void count_move(const struct meet_slot *slot, struct meet_sum *sums)
{
	struct meet_sum *sum = &sums[slot->kind];
	double logarithm;

	if (slot->count < 2 || slot->least_ns == 0)
		return;
	logarithm = log((double)slot->least_ns);
	sum->moves++;
	sum->move_log_sum += logarithm;
	sum->move_log_squares += logarithm * logarithm;
}

static void count_slot(struct meet *meet, struct meet_comm *comm, int32_t nranks,
		       const struct meet_slot *slot)
{
	uint64_t wait_ns = slot->sum_ns - slot->least_ns * slot->count;

	if (slot->count == 1 && nranks != 1)
		meet->alone++;
	else if (slot->count == (uint32_t)nranks)
		comm->complete++;
	else
		comm->partial++;
	comm->wait_ns += wait_ns;
}

static void count_chunk(struct meet *meet, const struct meet_lane *lane, uint32_t chunk)
{
	const struct meet_slot *slots = lane->chunks[chunk]->slots;
	int32_t nranks = meet->job->comms[lane->comm].nranks;
	struct meet_brief *brief = &lane->briefs[chunk];

	for (unsigned int i = 0; i < MEET_CHUNK; i++) {
		if (slots[i].count == 0)
			continue;
		if (brief->occupied == 0 || slots[i].count < brief->fewest)
			brief->fewest = slots[i].count;
		brief->occupied |= UINT32_C(1) << i;
		brief->least_ns += slots[i].least_ns;
		brief->mean_ns += (double)slots[i].sum_ns / slots[i].count;
		count_slot(meet, &meet->comms[lane->comm], nranks, &slots[i]);
		count_move(&slots[i], lane->sums);
	}
	sum_slots(lane->chunks[chunk], brief->occupied, 1, lane->sums);
}

static void count_lane(struct meet *meet, struct meet_lane *lane)
{
	lane->sums = calloc(meet->comms[lane->comm].kind_count + 1, sizeof(*lane->sums));
	if (lane->sums == NULL) {
		meet_fail(meet);
		return;
	}
	for (uint32_t i = 0; i < lane->chunk_count; i++)
		count_chunk(meet, lane, i);
}

uint32_t meet_signature(const struct meet *meet, uint32_t comm, uint64_t match)
{
	const uint8_t sources[] = { OP_TIME_KERNEL_GPU, OP_TIME_PROXY };

	for (size_t i = 0; i < ARRAY_LENGTH(sources); i++) {
		const struct meet_lane *lane =
			meet->comms[comm].lanes[meet_lane_index(sources[i], false, 0)];
		uint32_t at = 0;

		if (lane != NULL && lane->table_size > 0)
			at = lane->table[meet_lane_place(lane, match / MEET_CHUNK)];
		if (at != 0 && lane->chunks[at - 1]->slots[match % MEET_CHUNK].count > 0)
			return lane->chunks[at - 1]->slots[match % MEET_CHUNK].signature;
	}
	return 0;
}

static uint32_t ranks_at(const struct meet_lane *lane, uint64_t number, unsigned int place)
{
	uint32_t at;

	if (lane == NULL || lane->table_size == 0)
		return 0;
	at = lane->table[meet_lane_place(lane, number)];
	return at ? lane->chunks[at - 1]->slots[place].count : 0;
}

/* All variants but the largest differ from it. Each collective is looked at from its last variant. */
static void count_difference(struct meet *meet, const struct meet_lane *lane, uint64_t number,
			     unsigned int place)
{
	struct meet_comm *comm = &meet->comms[lane->comm];
	uint32_t total = 0, most = 0;

	for (unsigned int variant = 0; variant < MEET_VARIANTS; variant++) {
		uint32_t ranks = ranks_at(
			comm->lanes[meet_lane_index(lane->source, lane->is_replay, variant)],
			number, place);

		if (variant > lane->variant && ranks > 0)
			return;
		total += ranks;
		most = ranks > most ? ranks : most;
	}
	comm->differing += total - most;
	if (total > most && !lane->is_replay) {
		uint64_t match = number * MEET_CHUNK + place;

		if (comm->first_difference == 0 || match < comm->first_difference)
			comm->first_difference = match;
	}
}

static void count_differences(struct meet *meet, const struct meet_lane *lane)
{
	for (uint32_t i = 0; i < lane->chunk_count; i++)
		for (uint32_t bits = lane->briefs[i].occupied; bits != 0; bits &= bits - 1)
			count_difference(meet, lane, lane->briefs[i].number,
					 (unsigned int)__builtin_ctz(bits));
}

enum status meet_finish(struct meet *meet)
{
	for (size_t c = 0; c < meet->job->comm_count; c++) {
		struct meet_comm *comm = &meet->comms[c];

		for (unsigned int i = 0; i < MEET_LANES; i++)
			if (comm->lanes[i] != NULL)
				count_lane(meet, comm->lanes[i]);
		for (unsigned int i = 0; i < MEET_LANES; i++)
			if (comm->lanes[i] != NULL && comm->lanes[i]->variant > 0)
				count_differences(meet, comm->lanes[i]);
		meet->complete += comm->complete;
		meet->partial += comm->partial;
		meet->wait_ns += comm->wait_ns;
		meet->differing += comm->differing;
	}
	return meet->status;
}
