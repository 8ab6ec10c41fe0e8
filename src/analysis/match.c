/*
 * A lane is a sparse array of slots by match number. A cursor moves one seat's operations along it:
 *
 *	cursor -> lane -> chunk (32 slots)     shared by all seats: the shortest durations
 *	               -> seat -> part         this seat's: which slots, sums of its own durations
 *
 * Chunks are found by a hash table once per 32 operations. Nothing is moved or removed while operations are
 * added, so what earlier processes matched stays valid.
 */
#include "analysis/match.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/hash.h"

static inline unsigned int match_lane_index(uint8_t source, bool is_replay, unsigned int variant)
{
	return match_sequence(source, is_replay) + variant * MATCH_SEQUENCES;
}

/* The index of this chunk in lane->table, or its free place; the table is not empty. */
static inline uint32_t match_lane_place(const struct match_lane *lane, uint64_t number)
{
	uint32_t place = (uint32_t)hash_word(7, number) & (lane->table_size - 1);

	while (lane->table[place] != 0 && lane->briefs[lane->table[place] - 1].number != number)
		place = (place + 1) & (lane->table_size - 1);
	return place;
}

static inline void match_fail(struct matches *matches)
{
	if (matches->status == OK)
		matches->status = ERR_NO_SPACE;
}

enum { SEATS_MAX = UINT16_MAX, STORE_BYTES = MATCH_STORE * sizeof(struct match_chunk) };

bool match_is_synchronising(uint8_t function)
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

enum status match_init(struct matches *matches, const struct job *job, size_t limit)
{
	uint64_t expected;

	*matches =
		(struct matches){ .job = job, .limit = limit ? limit : MATCH_LIMIT, .stride = 1 };
	matches->comms = calloc(job->comm_count + 1, sizeof(*matches->comms));
	if (matches->comms == NULL)
		return ERR_NO_SPACE;
	expected = collectives_announced(job);
	/* Chunks at the ends of lanes are not full. */
	expected += job->comm_count * MATCH_CHUNK;
	if (expected > matches->limit)
		matches->stride = (uint32_t)((expected + matches->limit - 1) / matches->limit);
	return OK;
}

static void lane_free(struct match_lane *lane, uint32_t seat_count)
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
static void match_forget(struct matches *matches)
{
	for (size_t c = 0; matches->comms != NULL && c < matches->job->comm_count; c++) {
		for (unsigned int i = 0; i < MATCH_LANES; i++)
			lane_free(matches->comms[c].lanes[i], matches->job->comms[c].seat_count);
		free(matches->comms[c].kinds);
	}
	for (size_t i = 0; i < matches->store_count; i++)
		munmap(matches->stores[i], STORE_BYTES);
	free(matches->stores);
	free(matches->comms);
	free(matches->edges);
	matches->comms = NULL;
	matches->stores = NULL;
	matches->store_count = matches->store_left = 0;
	matches->edges = NULL;
	matches->edge_count = 0;
}

void match_release(struct matches *matches)
{
	if (matches->job != NULL)
		match_forget(matches);
	*matches = (struct matches){ .job = NULL };
}

uint32_t match_kind(struct matches *matches, uint32_t comm_index, const struct match_kind *kind)
{
	struct match_comm *comm = &matches->comms[comm_index];

	/* Each process reaches them in about the same order. */
	for (uint32_t n = 0, i = comm->kind_hint; n < comm->kind_count; n++, i++) {
		i = i < comm->kind_count ? i : 0;
		if (i > 0 && comm->kinds[i].names == kind->names &&
		    comm->kinds[i].tag == kind->tag &&
		    comm->kinds[i].size_class == kind->size_class)
			return comm->kind_hint = i;
	}
	if (comm->kind_count == MATCH_KINDS_MAX)
		return MATCH_KINDS_MAX;
	/* The first one also adds the entry that means none. */
	if (!list_grow(&comm->kinds, comm->kind_count ? comm->kind_count : 1,
		       sizeof(*comm->kinds))) {
		match_fail(matches);
		return MATCH_KINDS_MAX;
	}
	if (comm->kind_count == 0)
		comm->kinds[comm->kind_count++] = (struct match_kind){ .names = 0 };
	comm->kinds[comm->kind_count] = *kind;
	return comm->kind_count++;
}

/* ---- lanes and chunks ------------------------------------------------------------------------ */

static struct match_lane *lane_get(struct matches *matches, uint32_t comm_index, uint8_t source,
				   bool is_replay, unsigned int variant)
{
	struct match_lane **lane =
		&matches->comms[comm_index].lanes[match_lane_index(source, is_replay, variant)];

	if (*lane != NULL)
		return *lane;
	*lane = calloc(1, sizeof(**lane));
	if (*lane == NULL)
		return NULL;
	**lane = (struct match_lane){ .comm = comm_index,
				      .source = source,
				      .variant = (uint8_t)variant,
				      .is_replay = is_replay };
	(*lane)->seats =
		calloc(matches->job->comms[comm_index].seat_count + 1, sizeof(*(*lane)->seats));
	if ((*lane)->seats == NULL) {
		free(*lane);
		*lane = NULL;
	}
	return *lane;
}

static bool lane_grow(struct match_lane *lane)
{
	uint32_t room = lane->chunk_room ? lane->chunk_room * 2 : 16;
	struct match_chunk **chunks = realloc(lane->chunks, room * sizeof(*chunks));
	struct match_brief *briefs = realloc(lane->briefs, room * sizeof(*briefs));
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
		table[match_lane_place(lane, briefs[i].number)] = i + 1;
	return true;
}

/* All zero. Jobs that need more than one get large pages: they are read once per rank. */
static struct match_chunk *store_new(bool is_large)
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
static struct match_chunk *chunk_new(struct matches *matches)
{
	struct match_chunk *store;

	if (matches->store_left > 0)
		return matches->stores[matches->store_count - 1] +
		       (MATCH_STORE - matches->store_left--);
	if (!list_grow(&matches->stores, matches->store_count, sizeof(*matches->stores)))
		return NULL;
	store = store_new(matches->store_count > 0);
	if (store == NULL)
		return NULL;
	matches->stores[matches->store_count++] = store;
	matches->store_left = MATCH_STORE - 1;
	return store;
}

/* UINT32_MAX: it does not exist, and could not be created. */
static uint32_t chunk_get(struct matches *matches, struct match_lane *lane, uint64_t number,
			  uint32_t *hint)
{
	struct match_chunk *chunk;
	uint32_t place;

	/* The first process created chunks in this order, so the next one follows. */
	if (*hint + 1 < lane->chunk_count && lane->briefs[*hint + 1].number == number)
		return ++*hint;
	if (lane->table_size > 0) {
		place = match_lane_place(lane, number);
		if (lane->table[place] != 0)
			return *hint = lane->table[place] - 1;
	}
	if (matches->slot_count + MATCH_CHUNK > matches->limit)
		return UINT32_MAX;
	if (lane->chunk_count == lane->chunk_room && !lane_grow(lane)) {
		match_fail(matches);
		return UINT32_MAX;
	}
	chunk = chunk_new(matches);
	if (chunk == NULL) {
		match_fail(matches);
		return UINT32_MAX;
	}
	lane->briefs[lane->chunk_count] = (struct match_brief){ .number = number };
	lane->chunks[lane->chunk_count] = chunk;
	lane->table[match_lane_place(lane, number)] = lane->chunk_count + 1;
	matches->slot_count += MATCH_CHUNK;
	return *hint = lane->chunk_count++;
}

static struct match_part *part_get(struct matches *matches, struct match_seat *seat, uint32_t chunk)
{
	/* Numbers ascend: if it exists, it is one of the last. */
	for (uint32_t i = seat->count; chunk < seat->next_chunk && i-- > 0 && seat->count - i <= 8;)
		if (seat->parts[i].chunk == chunk)
			return &seat->parts[i];
	if (seat->count == seat->room) {
		uint32_t room = seat->room ? seat->room + seat->room / 2 : 4;
		void *grown = realloc(seat->parts, room * sizeof(*seat->parts));

		if (grown == NULL) {
			match_fail(matches);
			return NULL;
		}
		seat->parts = grown;
		seat->room = room;
	}
	seat->parts[seat->count] = (struct match_part){ .chunk = chunk };
	seat->next_chunk = chunk < seat->next_chunk ? seat->next_chunk : chunk + 1;
	matches->part_count++;
	return &seat->parts[seat->count++];
}

uint32_t match_largest_class(const struct match_lane *lane, uint32_t seats)
{
	uint32_t largest = 0;

	for (uint32_t seat = 0; seat < seats; seat++)
		for (uint32_t i = 0; i < lane->seats[seat].count; i++)
			if (lane->seats[seat].parts[i].wire_class > largest)
				largest = lane->seats[seat].parts[i].wire_class;
	return largest;
}

/* ---- cursors --------------------------------------------------------------------------------- */

struct match_cursor *match_cursor_new(struct matches *matches, const struct job_seat *seat,
				      uint8_t source, bool is_replay)
{
	const struct job_comm *comm = &matches->job->comms[seat->comm];
	uint32_t index = (uint32_t)(seat - matches->job->seats), place = 0;
	struct match_cursor *cursor;

	if (!match_can_compare(source) || comm->hash == 0 || comm->seat_count > SEATS_MAX)
		return NULL;
	while (place < comm->seat_count && comm->seats[place] != index)
		place++;
	cursor = malloc(sizeof(*cursor));
	if (cursor == NULL) {
		match_fail(matches);
		return NULL;
	}
	memset(cursor, 0, offsetof(struct match_cursor, samples));
	cursor->matches = matches;
	cursor->comm = &matches->comms[seat->comm];
	cursor->comm_index = seat->comm;
	cursor->seat = place;
	cursor->process = seat->process;
	cursor->source = source;
	cursor->is_replay = is_replay;
	cursor->number = UINT64_MAX;
	cursor->sample_step = 1;
	cursor->lane = lane_get(matches, seat->comm, source, is_replay, 0);
	if (cursor->lane == NULL) {
		free(cursor);
		match_fail(matches);
		return NULL;
	}
	return cursor;
}

/* Drops every second sample, and from now on takes every second one. */
static void thin_samples(struct match_cursor *cursor)
{
	for (uint32_t i = 0; i < MATCH_SAMPLES / 2; i++)
		cursor->samples[i] = cursor->samples[2 * i];
	cursor->sample_count = MATCH_SAMPLES / 2;
	cursor->sample_step *= 2;
}

void match_take_sample(struct match_cursor *cursor, const struct match_slot *slot, uint64_t end_ns)
{
	cursor->sample_skip = 0;
	if (end_ns == 0 || slot->end_ns == 0 || (end_ns | slot->end_ns) & MATCH_END_ROUGH)
		return;
	if (cursor->sample_count == MATCH_SAMPLES)
		thin_samples(cursor);
	cursor->samples[cursor->sample_count++] =
		(struct align_sample){ .own_ns = end_ns, .other_ns = slot->end_ns };
}

/*
 * The place of CUDA events on the recorder's clock has an error that all samples share, so that no number of them helps.
 * Up to a millisecond it is below what clocks without a common collective are apart; beyond it wall clocks are better.
 */
static bool can_align(const struct match_cursor *cursor, uint32_t place)
{
	enum { PLACE_ERROR_MOST_NS = 1000000 };
	const struct job *job = cursor->matches->job;
	uint32_t seat = job->comms[cursor->comm_index].seats[place];
	uint32_t process = job->seats[seat].process;
	const struct comm_info *info =
		&job->recording->processes[process]->comms[seat - job->first_seat[process]].info;

	return cursor->source != OP_TIME_CUDA_EVENT || info->place_error_ns <= PLACE_ERROR_MOST_NS;
}

static void add_edge(struct match_cursor *cursor)
{
	struct matches *matches = cursor->matches;
	const struct job_comm *comm = &matches->job->comms[cursor->comm_index];
	struct align_line line;

	if (!cursor->lane->has_owner || cursor->lane->owner == cursor->seat ||
	    !can_align(cursor, cursor->seat) || !can_align(cursor, cursor->lane->owner) ||
	    !align_fit(cursor->samples, cursor->sample_count, &line))
		return;
	if (!list_grow(&matches->edges, matches->edge_count, sizeof(*matches->edges))) {
		match_fail(matches);
		return;
	}
	matches->edges[matches->edge_count++] = (struct match_edge){
		.process = cursor->process,
		.other = matches->job->seats[comm->seats[cursor->lane->owner]].process,
		.samples = (uint32_t)line.samples,
		.offset_ns = line.offset_ns,
		.drift = line.drift,
		.spread_ns = line.spread_ns,
		.middle_ns = line.middle_ns,
	};
}

void match_cursor_free(struct match_cursor *cursor)
{
	if (cursor == NULL)
		return;
	if (cursor->sample_count > 0 && cursor->lane->variant == 0)
		add_edge(cursor);
	free(cursor);
}

/* Moves to the chunk of a number, in the cursor's lane. */
void match_cursor_move(struct match_cursor *cursor, uint64_t number)
{
	struct matches *matches = cursor->matches;
	uint32_t chunk = UINT32_MAX;

	cursor->number = number;
	cursor->chunk = NULL;
	cursor->part = NULL;
	if (number % matches->stride == 0)
		chunk = chunk_get(matches, cursor->lane, number, &cursor->hint);
	if (chunk == UINT32_MAX)
		return;
	cursor->chunk = cursor->lane->chunks[chunk];
	cursor->part = part_get(matches, &cursor->lane->seats[cursor->seat], chunk);
	if (cursor->part == NULL)
		cursor->chunk = NULL;
}

/* The slot has another signature or kind: go to the variant that has ours, or is free. */
COLD bool match_cursor_turn(struct match_cursor *cursor, const struct match_op *op)
{
	unsigned int place = op->match % MATCH_CHUNK;

	for (unsigned int variant = 0; variant < MATCH_VARIANTS; variant++) {
		struct match_lane *lane = lane_get(cursor->matches, cursor->comm_index,
						   cursor->source, cursor->is_replay, variant);

		if (lane == NULL) {
			match_fail(cursor->matches);
			return false;
		}
		cursor->lane = lane;
		match_cursor_move(cursor, op->match / MATCH_CHUNK);
		if (cursor->chunk == NULL)
			return false;
		if (cursor->chunk->slots[place].count == 0 ||
		    match_is_agreed(&cursor->chunk->slots[place], op))
			return true;
	}
	return false;
}

bool match_cursor_add(struct match_cursor *cursor, const struct match_op *op)
{
	if (op->match == 0) {
		cursor->matches->unmatched++;
		return false;
	}
	return match_add(cursor, op);
}

void match_slot_start(struct match_cursor *cursor, struct match_slot *slot,
		      const struct match_op *op)
{
	struct match_lane *lane = cursor->lane;

	if (!lane->has_owner) {
		lane->has_owner = true;
		lane->owner = (uint16_t)cursor->seat;
	}
	*slot = (struct match_slot){ .sum_ns = op->duration_ns,
				     .least_ns = op->ranked_ns,
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

struct match_slice match_slice(const struct match_lane *lane, uint32_t chunk, uint32_t bits)
{
	const struct match_brief *brief = &lane->briefs[chunk];
	struct match_slice slice = { 0 };

	if ((bits & brief->occupied) == brief->occupied) {
		slice.matches = (uint32_t)__builtin_popcount(brief->occupied);
		slice.least_ns = brief->least_ns;
		slice.mean_ns = brief->mean_ns;
		return slice;
	}
	for (bits &= brief->occupied; bits != 0; bits &= bits - 1) {
		const struct match_slot *slot = &lane->chunks[chunk]->slots[__builtin_ctz(bits)];

		slice.matches++;
		slice.least_ns += slot->least_ns;
		slice.mean_ns += (double)slot->sum_ns / slot->count;
	}
	return slice;
}

/* times: 1 adds, -1 subtracts. */
static void sum_slots(const struct match_chunk *chunk, uint32_t bits, uint64_t times,
		      struct match_sum *sums)
{
	for (; bits != 0; bits &= bits - 1) {
		const struct match_slot *slot = &chunk->slots[__builtin_ctz(bits)];
		struct match_sum *sum = &sums[slot->kind];

		sum->joined += times;
		sum->least_ns += times * slot->least_ns;
		if (slot->count == 1) {
			sum->alone += times;
			sum->alone_ns += times * slot->least_ns;
		}
	}
}

/* Its parts are of most chunks, in sequence. */
static bool is_in_most(const struct match_lane *lane, const struct match_seat *seat)
{
	if (seat->count < lane->chunk_count / 2)
		return false;
	for (uint32_t i = 1; i < seat->count; i++)
		if (seat->parts[i].chunk <= seat->parts[i - 1].chunk)
			return false;
	return true;
}

/* All matches of the lane, minus those without it: usually few. */
static void sum_others(const struct match_lane *lane, const struct match_seat *seat,
		       struct match_sum *sums)
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

void match_sums(const struct match_lane *lane, uint32_t kind_count, uint32_t seat,
		struct match_sum *sums)
{
	const struct match_seat *of = &lane->seats[seat];

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

static void count_move(const struct match_slot *slot, struct match_sum *sums)
{
	struct match_sum *sum = &sums[slot->kind];
	double logarithm;

	if (slot->count < 2 || slot->least_ns == 0)
		return;
	logarithm = log((double)slot->least_ns);
	sum->moves++;
	sum->move_log_sum += logarithm;
	sum->move_log_squares += logarithm * logarithm;
}

static void count_slot(struct matches *matches, struct match_comm *comm, int32_t nranks,
		       const struct match_slot *slot)
{
	uint64_t wait_ns = slot->sum_ns - slot->least_ns * slot->count;

	if (slot->count == 1 && nranks != 1)
		matches->alone++;
	else if (slot->count == (uint32_t)nranks)
		comm->complete++;
	else
		comm->partial++;
	comm->wait_ns += wait_ns;
}

/*
 * Over the network only some ranks of a tree send or receive, and the others have no span: that they are missing in its
 * matches says nothing about the ranks that were recorded. Their transfers are not compared, either (match_part).
 */
static bool has_all_ranks(const struct matches *matches, const struct match_lane *lane,
			  const struct match_slot *slot)
{
	return !match_has_spans(lane) ||
	       (uint8_t)(matches->comms[lane->comm].kinds[slot->kind].names >> 16) == OP_RING;
}

static void count_chunk(struct matches *matches, const struct match_lane *lane, uint32_t chunk)
{
	const struct match_slot *slots = lane->chunks[chunk]->slots;
	int32_t nranks = matches->job->comms[lane->comm].nranks;
	struct match_brief *brief = &lane->briefs[chunk];

	for (unsigned int i = 0; i < MATCH_CHUNK; i++) {
		if (slots[i].count == 0)
			continue;
		if (has_all_ranks(matches, lane, &slots[i]) &&
		    (brief->fewest == 0 || slots[i].count < brief->fewest))
			brief->fewest = slots[i].count;
		brief->occupied |= UINT32_C(1) << i;
		brief->least_ns += slots[i].least_ns;
		brief->mean_ns += (double)slots[i].sum_ns / slots[i].count;
		/* Spans say nothing of waiting. */
		if (!match_has_spans(lane))
			count_slot(matches, &matches->comms[lane->comm], nranks, &slots[i]);
		count_move(&slots[i], lane->sums);
	}
	sum_slots(lane->chunks[chunk], brief->occupied, 1, lane->sums);
}

static void count_lane(struct matches *matches, struct match_lane *lane)
{
	lane->sums = calloc(matches->comms[lane->comm].kind_count + 1, sizeof(*lane->sums));
	if (lane->sums == NULL) {
		match_fail(matches);
		return;
	}
	for (uint32_t i = 0; i < lane->chunk_count; i++)
		count_chunk(matches, lane, i);
}

uint32_t match_signature(const struct matches *matches, uint32_t comm, uint64_t match)
{
	const uint8_t sources[] = { OP_TIME_KERNEL_GPU, OP_TIME_CUDA_EVENT, OP_TIME_PROXY,
				    OP_TIME_TOOL };

	for (size_t i = 0; i < ARRAY_LENGTH(sources); i++) {
		const struct match_lane *lane =
			matches->comms[comm].lanes[match_lane_index(sources[i], false, 0)];
		uint32_t at = 0;

		if (lane != NULL && lane->table_size > 0)
			at = lane->table[match_lane_place(lane, match / MATCH_CHUNK)];
		if (at != 0 && lane->chunks[at - 1]->slots[match % MATCH_CHUNK].count > 0)
			return lane->chunks[at - 1]->slots[match % MATCH_CHUNK].signature;
	}
	return 0;
}

static uint32_t ranks_at(const struct match_lane *lane, uint64_t number, unsigned int place)
{
	uint32_t at;

	if (lane == NULL || lane->table_size == 0)
		return 0;
	at = lane->table[match_lane_place(lane, number)];
	return at ? lane->chunks[at - 1]->slots[place].count : 0;
}

/* All variants but the largest differ from it. Each collective is examined from its last variant. */
static void count_difference(struct matches *matches, const struct match_lane *lane,
			     uint64_t number, unsigned int place)
{
	struct match_comm *comm = &matches->comms[lane->comm];
	uint32_t total = 0, most = 0;

	for (unsigned int variant = 0; variant < MATCH_VARIANTS; variant++) {
		uint32_t ranks = ranks_at(
			comm->lanes[match_lane_index(lane->source, lane->is_replay, variant)],
			number, place);

		if (variant > lane->variant && ranks > 0)
			return;
		total += ranks;
		most = ranks > most ? ranks : most;
	}
	comm->differing += total - most;
	if (total > most && !lane->is_replay) {
		uint64_t match = number * MATCH_CHUNK + place;

		if (comm->first_difference == 0 || match < comm->first_difference)
			comm->first_difference = match;
	}
}

static void count_differences(struct matches *matches, const struct match_lane *lane)
{
	for (uint32_t i = 0; i < lane->chunk_count; i++)
		for (uint32_t bits = lane->briefs[i].occupied; bits != 0; bits &= bits - 1)
			count_difference(matches, lane, lane->briefs[i].number,
					 (unsigned int)__builtin_ctz(bits));
}

enum status match_finish(struct matches *matches)
{
	for (size_t c = 0; c < matches->job->comm_count; c++) {
		struct match_comm *comm = &matches->comms[c];

		for (unsigned int i = 0; i < MATCH_LANES; i++)
			if (comm->lanes[i] != NULL)
				count_lane(matches, comm->lanes[i]);
		for (unsigned int i = 0; i < MATCH_LANES; i++)
			if (comm->lanes[i] != NULL && comm->lanes[i]->variant > 0)
				count_differences(matches, comm->lanes[i]);
		matches->complete += comm->complete;
		matches->partial += comm->partial;
		matches->wait_ns += comm->wait_ns;
		matches->differing += comm->differing;
	}
	return matches->status;
}

static int by_number(const void *left, const void *right)
{
	const struct match_order *a = left, *b = right;

	return ORDER(a->number, b->number);
}

void match_order_sort(struct match_order *order, uint32_t count)
{
	/* They were created in the order of the first process: usually sorted already. */
	for (uint32_t i = 1; i < count; i++)
		if (order[i].number < order[i - 1].number) {
			qsort(order, count, sizeof(*order), by_number);
			break;
		}
}
