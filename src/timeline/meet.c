/*
 * A lane is a sparse array of slots by match number. A cursor walks one seat's operations along it:
 *
 *	cursor -> lane -> chunk (32 slots)     shared by all seats: the shortest durations
 *	               -> seat -> part         this seat's: which slots, sums of its own durations
 *
 * Chunks are found by a hash table once per 32 operations. Nothing is ever moved or removed while
 * operations are added, so what earlier processes joined stays valid.
 */
#include "timeline/meet.h"

#include <stdlib.h>
#include <string.h>

#include "base/attributes.h"
#include "base/hash.h"
#include "timeline/meet_cursor.h"

enum { SEATS_MAX = UINT16_MAX };

bool meet_is_synchronising(uint8_t function)
{
	return function == OP_ALL_REDUCE || function == OP_ALL_GATHER ||
	       function == OP_REDUCE_SCATTER || function == OP_ALL_TO_ALL;
}

static unsigned int lane_index(uint8_t source, bool is_replay, unsigned int variant)
{
	return (source == OP_TIME_PROXY ? 1u : 0u) | (is_replay ? 2u : 0u) | variant << 2;
}

static void fail(struct meet *meet)
{
	if (meet->status == OK)
		meet->status = ERR_NO_SPACE;
}

/* How many collectives the recorders counted, over all communicators. */
static uint64_t announced(const struct job *job)
{
	uint64_t total = 0;

	for (size_t c = 0; c < job->comm_count; c++) {
		uint64_t most = 0;

		for (uint32_t i = 0; i < job->comms[c].seat_count; i++) {
			const struct job_seat *seat = &job->seats[job->comms[c].seats[i]];
			const struct recording_process *process =
				job->recording->processes[seat->process];
			const struct comm_counts *counts =
				&process->comms[job->comms[c].seats[i] -
						job->first_seat[seat->process]]
					 .counts;
			/* In flight mode the ring has only the last ones. */
			uint64_t kept = counts->collectives + counts->replays;

			if (kept > counts->recorded)
				kept = counts->recorded;
			if (kept > most)
				most = kept;
		}
		total += most;
	}
	return total;
}

enum status meet_init(struct meet *meet, const struct job *job, size_t limit)
{
	uint64_t expected;

	*meet = (struct meet){ .job = job, .limit = limit ? limit : MEET_LIMIT, .stride = 1 };
	meet->comms = calloc(job->comm_count + 1, sizeof(*meet->comms));
	if (meet->comms == NULL)
		return ERR_NO_SPACE;
	expected = announced(job);
	/* Chunks at the ends of lanes are not full. */
	expected += job->comm_count * MEET_CHUNK;
	if (expected > meet->limit)
		meet->stride = (uint32_t)((expected + meet->limit - 1) / meet->limit);
	return OK;
}

static void lane_free(struct meet_lane *lane, uint32_t seat_count)
{
	if (lane == NULL)
		return;
	for (uint32_t i = 0; i < lane->chunk_count; i++)
		free(lane->chunks[i]);
	for (uint32_t i = 0; i < seat_count; i++)
		free(lane->seats[i].parts);
	free(lane->chunks);
	free(lane->table);
	free(lane->seats);
	free(lane);
}

void meet_forget(struct meet *meet)
{
	for (size_t c = 0; meet->comms != NULL && c < meet->job->comm_count; c++) {
		for (unsigned int i = 0; i < MEET_LANES; i++)
			lane_free(meet->comms[c].lanes[i], meet->job->comms[c].seat_count);
		free(meet->comms[c].kinds);
	}
	free(meet->comms);
	free(meet->edges);
	meet->comms = NULL;
	meet->edges = NULL;
	meet->edge_count = meet->edge_room = 0;
}

void meet_release(struct meet *meet)
{
	if (meet->job != NULL)
		meet_forget(meet);
	*meet = (struct meet){ .job = NULL };
}

uint32_t meet_kind(struct meet *meet, uint32_t comm_index, const struct meet_kind *kind)
{
	struct meet_comm *comm = &meet->comms[comm_index];

	/* Each process goes through them in about the same order. */
	for (uint32_t n = 0, i = comm->kind_hint; n < comm->kind_count; n++, i++) {
		i = i < comm->kind_count ? i : 0;
		if (comm->kinds[i].names == kind->names && comm->kinds[i].tag == kind->tag &&
		    comm->kinds[i].size_class == kind->size_class)
			return comm->kind_hint = i;
	}
	if (comm->kind_count == MEET_KINDS_MAX)
		return MEET_KINDS_MAX;
	if (comm->kind_count == comm->kind_room) {
		uint32_t room = comm->kind_room ? comm->kind_room * 2 : 8;
		void *grown = realloc(comm->kinds, room * sizeof(*comm->kinds));

		if (grown == NULL) {
			fail(meet);
			return MEET_KINDS_MAX;
		}
		comm->kinds = grown;
		comm->kind_room = room;
	}
	comm->kinds[comm->kind_count] = *kind;
	return comm->kind_count++;
}

/* ---- lanes and chunks ------------------------------------------------------------------------ */

static struct meet_lane *lane_get(struct meet *meet, uint32_t comm_index, uint8_t source,
				  bool is_replay, unsigned int variant)
{
	struct meet_lane **lane =
		&meet->comms[comm_index].lanes[lane_index(source, is_replay, variant)];

	if (*lane != NULL)
		return *lane;
	*lane = calloc(1, sizeof(**lane));
	if (*lane == NULL)
		return NULL;
	**lane = (struct meet_lane){ .comm = comm_index,
				     .source = source,
				     .variant = (uint8_t)variant,
				     .is_replay = is_replay };
	(*lane)->seats =
		calloc(meet->job->comms[comm_index].seat_count + 1, sizeof(*(*lane)->seats));
	if ((*lane)->seats == NULL) {
		free(*lane);
		*lane = NULL;
	}
	return *lane;
}

static uint32_t table_place(const struct meet_lane *lane, uint64_t number)
{
	uint32_t place = (uint32_t)hash_word(7, number) & (lane->table_size - 1);

	while (lane->table[place] != 0 && lane->chunks[lane->table[place] - 1]->number != number)
		place = (place + 1) & (lane->table_size - 1);
	return place;
}

static bool lane_grow(struct meet_lane *lane)
{
	uint32_t room = lane->chunk_room ? lane->chunk_room * 2 : 16;
	struct meet_chunk **chunks = realloc(lane->chunks, room * sizeof(*chunks));
	uint32_t *table;

	if (chunks == NULL)
		return false;
	lane->chunks = chunks;
	table = calloc((size_t)room * 2, sizeof(*table));
	if (table == NULL)
		return false;
	free(lane->table);
	lane->table = table;
	lane->table_size = room * 2;
	lane->chunk_room = room;
	for (uint32_t i = 0; i < lane->chunk_count; i++)
		table[table_place(lane, chunks[i]->number)] = i + 1;
	return true;
}

/* UINT32_MAX: it is not there, and could not be made. */
static uint32_t chunk_get(struct meet *meet, struct meet_lane *lane, uint64_t number,
			  uint32_t *hint)
{
	struct meet_chunk *chunk;
	uint32_t place;

	/* Chunks were made in this order by the first process, so the next one follows. */
	if (*hint + 1 < lane->chunk_count && lane->chunks[*hint + 1]->number == number)
		return ++*hint;
	if (lane->table_size > 0) {
		place = table_place(lane, number);
		if (lane->table[place] != 0)
			return *hint = lane->table[place] - 1;
	}
	if (meet->slot_count + MEET_CHUNK > meet->limit)
		return UINT32_MAX;
	chunk = calloc(1, sizeof(*chunk));
	if (chunk == NULL || (lane->chunk_count == lane->chunk_room && !lane_grow(lane))) {
		free(chunk);
		fail(meet);
		return UINT32_MAX;
	}
	chunk->number = number;
	lane->chunks[lane->chunk_count] = chunk;
	lane->table[table_place(lane, number)] = lane->chunk_count + 1;
	meet->slot_count += MEET_CHUNK;
	return *hint = lane->chunk_count++;
}

static struct meet_part *part_get(struct meet *meet, struct meet_seat *seat, uint32_t chunk)
{
	/* Numbers rise: if it is there at all, it is one of the last. */
	for (uint32_t i = seat->count; i-- > 0 && seat->count - i <= 8;)
		if (seat->parts[i].chunk == chunk)
			return &seat->parts[i];
	if (seat->count == seat->room) {
		uint32_t room = seat->room ? seat->room + seat->room / 2 : 4;
		void *grown = realloc(seat->parts, room * sizeof(*seat->parts));

		if (grown == NULL) {
			fail(meet);
			return NULL;
		}
		seat->parts = grown;
		seat->room = room;
	}
	seat->parts[seat->count] = (struct meet_part){ .chunk = chunk };
	meet->part_count++;
	return &seat->parts[seat->count++];
}

/* ---- cursors --------------------------------------------------------------------------------- */

struct meet_cursor *meet_cursor_new(struct meet *meet, const struct job_seat *seat, uint8_t source,
				    bool is_replay)
{
	const struct job_comm *comm = &meet->job->comms[seat->comm];
	uint32_t index = (uint32_t)(seat - meet->job->seats), place = 0;
	struct meet_cursor *cursor;

	if ((source != OP_TIME_KERNEL_GPU && source != OP_TIME_PROXY) || comm->hash == 0 ||
	    comm->seat_count > SEATS_MAX)
		return NULL;
	while (place < comm->seat_count && comm->seats[place] != index)
		place++;
	cursor = malloc(sizeof(*cursor));
	if (cursor == NULL) {
		fail(meet);
		return NULL;
	}
	memset(cursor, 0, offsetof(struct meet_cursor, samples));
	cursor->meet = meet;
	cursor->comm = &meet->comms[seat->comm];
	cursor->comm_index = seat->comm;
	cursor->seat = place;
	cursor->process = seat->process;
	cursor->source = source;
	cursor->is_replay = is_replay;
	cursor->number = UINT64_MAX;
	cursor->sample_step = 1;
	cursor->lane = lane_get(meet, seat->comm, source, is_replay, 0);
	if (cursor->lane == NULL) {
		free(cursor);
		fail(meet);
		return NULL;
	}
	return cursor;
}

/* Every second sample goes, and from now on every second moment. */
static void thin_samples(struct meet_cursor *cursor)
{
	for (uint32_t i = 0; i < MEET_SAMPLES / 2; i++)
		cursor->samples[i] = cursor->samples[2 * i];
	cursor->sample_count = MEET_SAMPLES / 2;
	cursor->sample_step *= 2;
}

void meet_take_sample(struct meet_cursor *cursor, const struct meet_slot *slot, uint64_t end_ns)
{
	cursor->sample_skip = 0;
	if (end_ns == 0 || slot->end_ns == 0)
		return;
	if (cursor->sample_count == MEET_SAMPLES)
		thin_samples(cursor);
	cursor->samples[cursor->sample_count++] =
		(struct align_sample){ .own_ns = end_ns, .other_ns = slot->end_ns };
}

static void add_edge(struct meet_cursor *cursor)
{
	struct meet *meet = cursor->meet;
	const struct job_comm *comm = &meet->job->comms[cursor->comm_index];
	struct align_line line;

	if (!cursor->lane->has_owner || cursor->lane->owner == cursor->seat ||
	    !align_fit(cursor->samples, cursor->sample_count, &line))
		return;
	if (meet->edge_count == meet->edge_room) {
		size_t room = meet->edge_room ? meet->edge_room * 2 : 64;
		void *grown = realloc(meet->edges, room * sizeof(*meet->edges));

		if (grown == NULL) {
			fail(meet);
			return;
		}
		meet->edges = grown;
		meet->edge_room = room;
	}
	meet->edges[meet->edge_count++] = (struct meet_edge){
		.process = cursor->process,
		.other = meet->job->seats[comm->seats[cursor->lane->owner]].process,
		.samples = (uint32_t)line.samples,
		.offset_ns = line.offset_ns,
		.drift = line.drift,
		.spread_ns = line.spread_ns,
		.middle_ns = line.middle_ns,
	};
}

void meet_cursor_free(struct meet_cursor *cursor)
{
	if (cursor == NULL)
		return;
	if (cursor->sample_count > 0 && cursor->lane->variant == 0)
		add_edge(cursor);
	free(cursor);
}

/* To the chunk of a number, in the cursor's lane. */
void meet_cursor_move(struct meet_cursor *cursor, uint64_t number)
{
	struct meet *meet = cursor->meet;
	uint32_t chunk = UINT32_MAX;

	cursor->number = number;
	cursor->chunk = NULL;
	cursor->part = NULL;
	if (number % meet->stride == 0)
		chunk = chunk_get(meet, cursor->lane, number, &cursor->hint);
	if (chunk == UINT32_MAX)
		return;
	cursor->chunk = cursor->lane->chunks[chunk];
	cursor->part = part_get(meet, &cursor->lane->seats[cursor->seat], chunk);
	if (cursor->part == NULL)
		cursor->chunk = NULL;
}

/* The slot has another signature or kind: to the variant where it has ours, or is free. */
COLD bool meet_cursor_turn(struct meet_cursor *cursor, const struct meet_op *op)
{
	unsigned int place = op->match % MEET_CHUNK;

	for (unsigned int variant = 0; variant < MEET_VARIANTS; variant++) {
		struct meet_lane *lane = lane_get(cursor->meet, cursor->comm_index, cursor->source,
						  cursor->is_replay, variant);

		if (lane == NULL) {
			fail(cursor->meet);
			return false;
		}
		cursor->lane = lane;
		meet_cursor_move(cursor, op->match / MEET_CHUNK);
		if (cursor->chunk == NULL)
			return false;
		if (cursor->chunk->slots[place].count == 0 ||
		    meet_is_agreed(&cursor->chunk->slots[place], op))
			return true;
	}
	return false;
}

void meet_slot_start(struct meet_cursor *cursor, struct meet_slot *slot, const struct meet_op *op)
{
	struct meet_lane *lane = cursor->lane;

	if (!lane->has_owner) {
		lane->has_owner = true;
		lane->owner = (uint16_t)cursor->seat;
	}
	*slot = (struct meet_slot){ .sum_ns = op->duration_ns,
				    .least_ns = op->duration_ns,
				    .second_ns = UINT64_MAX,
				    .end_ns = op->end_ns,
				    .signature = (uint32_t)op->signature,
				    .count = 1,
				    .last = (uint16_t)cursor->seat,
				    .owner = (uint16_t)cursor->seat,
				    .kind = (uint16_t)op->kind,
				    .bytes = op->bytes };
}

/* ---- afterwards ------------------------------------------------------------------------------ */

struct meet_slice meet_slice(const struct meet_chunk *chunk, uint32_t bits)
{
	struct meet_slice slice = { 0 };

	if ((bits & chunk->occupied) == chunk->occupied) {
		slice.meetings = (uint32_t)__builtin_popcount(chunk->occupied);
		slice.least_ns = chunk->least_ns;
		slice.mean_ns = chunk->mean_ns;
		return slice;
	}
	for (bits &= chunk->occupied; bits != 0; bits &= bits - 1) {
		const struct meet_slot *slot = &chunk->slots[__builtin_ctz(bits)];

		slice.meetings++;
		slice.least_ns += slot->least_ns;
		slice.mean_ns += (double)slot->sum_ns / slot->count;
	}
	return slice;
}

void meet_sums(const struct meet_lane *lane, uint32_t seat, struct meet_sum *sums)
{
	const struct meet_seat *of = &lane->seats[seat];

	for (uint32_t i = 0; i < of->count; i++) {
		const struct meet_chunk *chunk = lane->chunks[of->parts[i].chunk];

		for (uint32_t bits = of->parts[i].bits; bits != 0; bits &= bits - 1) {
			const struct meet_slot *slot = &chunk->slots[__builtin_ctz(bits)];

			sums[slot->kind].joined++;
			sums[slot->kind].least_ns += slot->least_ns;
		}
	}
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

static void count_lane(struct meet *meet, struct meet_lane *lane)
{
	for (uint32_t i = 0; i < lane->chunk_count; i++) {
		struct meet_chunk *chunk = lane->chunks[i];

		for (unsigned int j = 0; j < MEET_CHUNK; j++) {
			if (chunk->slots[j].count == 0)
				continue;
			chunk->occupied |= UINT32_C(1) << j;
			chunk->least_ns += chunk->slots[j].least_ns;
			chunk->mean_ns += (double)chunk->slots[j].sum_ns / chunk->slots[j].count;
			count_slot(meet, &meet->comms[lane->comm],
				   meet->job->comms[lane->comm].nranks, &chunk->slots[j]);
		}
	}
}

uint32_t meet_signature(const struct meet *meet, uint32_t comm, uint64_t match)
{
	const uint8_t sources[] = { OP_TIME_KERNEL_GPU, OP_TIME_PROXY };

	for (size_t i = 0; i < ARRAY_LENGTH(sources); i++) {
		const struct meet_lane *lane =
			meet->comms[comm].lanes[lane_index(sources[i], false, 0)];
		uint32_t at = 0;

		if (lane != NULL && lane->table_size > 0)
			at = lane->table[table_place(lane, match / MEET_CHUNK)];
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
	at = lane->table[table_place(lane, number)];
	return at ? lane->chunks[at - 1]->slots[place].count : 0;
}

/* All variants but the largest differ from it. Each collective is looked at from its last variant. */
static void count_difference(struct meet *meet, const struct meet_lane *lane, uint64_t number,
			     unsigned int place)
{
	struct meet_comm *comm = &meet->comms[lane->comm];
	uint32_t total = 0, most = 0;

	for (unsigned int variant = 0; variant < MEET_VARIANTS; variant++) {
		uint32_t ranks =
			ranks_at(comm->lanes[lane_index(lane->source, lane->is_replay, variant)],
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
		for (uint32_t bits = lane->chunks[i]->occupied; bits != 0; bits &= bits - 1)
			count_difference(meet, lane, lane->chunks[i]->number,
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
