/*
 * A lane is a sparse array of slots by match number. A cursor moves one seat's operations along it:
 *
 *	cursor -> lane -> chunk (32 slots)     shared by all seats: the shortest durations
 *	               -> seat -> part         this seat's: which slots, sums of its own durations
 *
 * Chunks are found by a hash table once per 32 operations. Nothing is moved or removed while operations are
 * added, so what earlier processes matched stays valid.
 */
#include "analysis/meet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "analysis/meet_cursor.h"
#include "common/attributes.h"
#include "common/hash.h"

static inline unsigned int meet_lane_index(uint8_t source, bool is_replay, unsigned int variant)
{
	return (source == OP_TIME_PROXY ? 1u : 0u) | (is_replay ? 2u : 0u) | variant << 2;
}

/* The index of this chunk in lane->table, or its free place; the table is not empty. */
static inline uint32_t meet_lane_place(const struct meet_lane *lane, uint64_t number)
{
	uint32_t place = (uint32_t)hash_word(7, number) & (lane->table_size - 1);

	while (lane->table[place] != 0 && lane->briefs[lane->table[place] - 1].number != number)
		place = (place + 1) & (lane->table_size - 1);
	return place;
}

static inline void meet_fail(struct meet *meet)
{
	if (meet->status == OK)
		meet->status = ERR_NO_SPACE;
}

enum { SEATS_MAX = UINT16_MAX, STORE_BYTES = MEET_STORE * sizeof(struct meet_chunk) };

bool meet_is_synchronising(uint8_t function)
{
	return function == OP_ALL_REDUCE || function == OP_ALL_GATHER ||
	       function == OP_REDUCE_SCATTER || function == OP_ALL_TO_ALL;
}

/* The number of collectives the recorders counted, over all communicators. */
static uint64_t collectives_announced(const struct job *job)
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
	expected = collectives_announced(job);
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
	for (uint32_t i = 0; i < seat_count; i++)
		free(lane->seats[i].parts);
	free(lane->chunks);
	free(lane->briefs);
	free(lane->sums);
	free(lane->table);
	free(lane->seats);
	free(lane);
}

/* Frees the matches, keeps the counts. */
static void meet_forget(struct meet *meet)
{
	for (size_t c = 0; meet->comms != NULL && c < meet->job->comm_count; c++) {
		for (unsigned int i = 0; i < MEET_LANES; i++)
			lane_free(meet->comms[c].lanes[i], meet->job->comms[c].seat_count);
		free(meet->comms[c].kinds);
	}
	for (size_t i = 0; i < meet->store_count; i++)
		munmap(meet->stores[i], STORE_BYTES);
	free(meet->stores);
	free(meet->comms);
	free(meet->edges);
	meet->comms = NULL;
	meet->stores = NULL;
	meet->store_count = meet->store_left = 0;
	meet->edges = NULL;
	meet->edge_count = 0;
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

	/* Each process reaches them in about the same order. */
	for (uint32_t n = 0, i = comm->kind_hint; n < comm->kind_count; n++, i++) {
		i = i < comm->kind_count ? i : 0;
		if (i > 0 && comm->kinds[i].names == kind->names &&
		    comm->kinds[i].tag == kind->tag &&
		    comm->kinds[i].size_class == kind->size_class)
			return comm->kind_hint = i;
	}
	if (comm->kind_count == MEET_KINDS_MAX)
		return MEET_KINDS_MAX;
	/* The first one also adds the entry that means none. */
	if (!list_grow(&comm->kinds, comm->kind_count ? comm->kind_count : 1,
		       sizeof(*comm->kinds))) {
		meet_fail(meet);
		return MEET_KINDS_MAX;
	}
	if (comm->kind_count == 0)
		comm->kinds[comm->kind_count++] = (struct meet_kind){ .names = 0 };
	comm->kinds[comm->kind_count] = *kind;
	return comm->kind_count++;
}

/* ---- lanes and chunks ------------------------------------------------------------------------ */

static struct meet_lane *lane_get(struct meet *meet, uint32_t comm_index, uint8_t source,
				  bool is_replay, unsigned int variant)
{
	struct meet_lane **lane =
		&meet->comms[comm_index].lanes[meet_lane_index(source, is_replay, variant)];

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

static bool lane_grow(struct meet_lane *lane)
{
	uint32_t room = lane->chunk_room ? lane->chunk_room * 2 : 16;
	struct meet_chunk **chunks = realloc(lane->chunks, room * sizeof(*chunks));
	struct meet_brief *briefs = realloc(lane->briefs, room * sizeof(*briefs));
	uint32_t *table = calloc((size_t)room * 2, sizeof(*table));

	lane->chunks = chunks != NULL ? chunks : lane->chunks;
	lane->briefs = briefs != NULL ? briefs : lane->briefs;
	if (chunks == NULL || briefs == NULL || table == NULL) {
		free(table);
		return false;
	}
	free(lane->table);
	lane->table = table;
	lane->table_size = room * 2;
	lane->chunk_room = room;
	for (uint32_t i = 0; i < lane->chunk_count; i++)
		table[meet_lane_place(lane, briefs[i].number)] = i + 1;
	return true;
}

/* All zero. Jobs that need more than one get large pages: they are read once per rank. */
static struct meet_chunk *store_new(bool is_large)
{
	void *store =
		mmap(NULL, STORE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (store == MAP_FAILED)
		return NULL;
	if (is_large)
		madvise(store, STORE_BYTES, MADV_HUGEPAGE);
	return store;
}

/* Consecutive, so that what is used together is close together. */
static struct meet_chunk *chunk_new(struct meet *meet)
{
	struct meet_chunk *store;

	if (meet->store_left > 0)
		return meet->stores[meet->store_count - 1] + (MEET_STORE - meet->store_left--);
	if (!list_grow(&meet->stores, meet->store_count, sizeof(*meet->stores)))
		return NULL;
	store = store_new(meet->store_count > 0);
	if (store == NULL)
		return NULL;
	meet->stores[meet->store_count++] = store;
	meet->store_left = MEET_STORE - 1;
	return store;
}

/* UINT32_MAX: it does not exist, and could not be created. */
static uint32_t chunk_get(struct meet *meet, struct meet_lane *lane, uint64_t number,
			  uint32_t *hint)
{
	struct meet_chunk *chunk;
	uint32_t place;

	/* The first process created chunks in this order, so the next one follows. */
	if (*hint + 1 < lane->chunk_count && lane->briefs[*hint + 1].number == number)
		return ++*hint;
	if (lane->table_size > 0) {
		place = meet_lane_place(lane, number);
		if (lane->table[place] != 0)
			return *hint = lane->table[place] - 1;
	}
	if (meet->slot_count + MEET_CHUNK > meet->limit)
		return UINT32_MAX;
	if (lane->chunk_count == lane->chunk_room && !lane_grow(lane)) {
		meet_fail(meet);
		return UINT32_MAX;
	}
	chunk = chunk_new(meet);
	if (chunk == NULL) {
		meet_fail(meet);
		return UINT32_MAX;
	}
	lane->briefs[lane->chunk_count] = (struct meet_brief){ .number = number };
	lane->chunks[lane->chunk_count] = chunk;
	lane->table[meet_lane_place(lane, number)] = lane->chunk_count + 1;
	meet->slot_count += MEET_CHUNK;
	return *hint = lane->chunk_count++;
}

static struct meet_part *part_get(struct meet *meet, struct meet_seat *seat, uint32_t chunk)
{
	/* Numbers ascend: if it exists, it is one of the last. */
	for (uint32_t i = seat->count; chunk < seat->next_chunk && i-- > 0 && seat->count - i <= 8;)
		if (seat->parts[i].chunk == chunk)
			return &seat->parts[i];
	if (seat->count == seat->room) {
		uint32_t room = seat->room ? seat->room + seat->room / 2 : 4;
		void *grown = realloc(seat->parts, room * sizeof(*seat->parts));

		if (grown == NULL) {
			meet_fail(meet);
			return NULL;
		}
		seat->parts = grown;
		seat->room = room;
	}
	seat->parts[seat->count] = (struct meet_part){ .chunk = chunk };
	seat->next_chunk = chunk < seat->next_chunk ? seat->next_chunk : chunk + 1;
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
		meet_fail(meet);
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
		meet_fail(meet);
		return NULL;
	}
	return cursor;
}

/* Drops every second sample, and from now on takes every second one. */
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
	if (!list_grow(&meet->edges, meet->edge_count, sizeof(*meet->edges))) {
		meet_fail(meet);
		return;
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

/* Moves to the chunk of a number, in the cursor's lane. */
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

/* The slot has another signature or kind: go to the variant that has ours, or is free. */
COLD bool meet_cursor_turn(struct meet_cursor *cursor, const struct meet_op *op)
{
	unsigned int place = op->match % MEET_CHUNK;

	for (unsigned int variant = 0; variant < MEET_VARIANTS; variant++) {
		struct meet_lane *lane = lane_get(cursor->meet, cursor->comm_index, cursor->source,
						  cursor->is_replay, variant);

		if (lane == NULL) {
			meet_fail(cursor->meet);
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

bool meet_cursor_add(struct meet_cursor *cursor, const struct meet_op *op)
{
	if (op->match == 0) {
		cursor->meet->unmatched++;
		return false;
	}
	return meet_add(cursor, op);
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

/* The results of all matches, once everything is added. */

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

/* times: 1 adds, -1 subtracts. */
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

/* Its parts are of most chunks, in sequence. */
static bool is_in_most(const struct meet_lane *lane, const struct meet_seat *seat)
{
	if (seat->count < lane->chunk_count / 2)
		return false;
	for (uint32_t i = 1; i < seat->count; i++)
		if (seat->parts[i].chunk <= seat->parts[i - 1].chunk)
			return false;
	return true;
}

/* All matches of the lane, minus those without it: usually few. */
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

/* All variants but the largest differ from it. Each collective is examined from its last variant. */
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

static int by_number(const void *left, const void *right)
{
	const struct meet_order *a = left, *b = right;

	return ORDER(a->number, b->number);
}

void meet_order_sort(struct meet_order *order, uint32_t count)
{
	/* They were created in the order of the first process: usually sorted already. */
	for (uint32_t i = 1; i < count; i++)
		if (order[i].number < order[i - 1].number) {
			qsort(order, count, sizeof(*order), by_number);
			break;
		}
}
