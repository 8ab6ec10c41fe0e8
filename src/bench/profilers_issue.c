/*
 * What a job issued, as a profiler should see it: per rank, function and size. Warm-ups and checks are calls
 * like any other; captured calls do not run. AlltoAll, Gather and Scatter are the Sends and Recvs that NCCL
 * shows them as (docs/BLIND-SPOTS.md).
 *
 *	keys:     what was issued | what else was recorded | the rest
 *	tallies:  one row of keys for each rank, the first for records of nobody knows whom
 */
#include <stdlib.h>

#include "bench/profilers_parts.h"
#include "common/op.h"

enum { ALIGN_BYTES_MAX = 8, STRAY_KEYS = 64 };

static bool has_aligns(const struct bench_run *bench)
{
	for (size_t i = 0; i < bench->cell_count; i++)
		if (bench->cells[i].aligns > 0)
			return true;
	return false;
}

static struct profilers_key key_of(bool is_aligned, uint8_t function, uint64_t bytes,
				   uint64_t part_bytes)
{
	struct profilers_key key = { .function = function,
				     .bytes = bytes,
				     .part_bytes = part_bytes };

	/* One element more or less cannot be told from an alignment. */
	if (is_aligned && function == OP_ALL_REDUCE && bytes <= ALIGN_BYTES_MAX) {
		key.is_align = true;
		key.bytes = 0;
		key.part_bytes = 0;
	}
	return key;
}

static struct profilers_part sends(uint64_t bytes, uint64_t times)
{
	return (struct profilers_part){
		{ .function = OP_SEND, .bytes = bytes, .part_bytes = bytes }, times
	};
}

static struct profilers_part recvs(uint64_t bytes, uint64_t times)
{
	return (struct profilers_part){
		{ .function = OP_RECV, .bytes = bytes, .part_bytes = bytes }, times
	};
}

static size_t pairs_of(const struct bench_cell *cell, int32_t rank, uint64_t part_bytes,
		       struct profilers_part parts[PROFILERS_PARTS_MAX])
{
	uint64_t ranks = (uint64_t)cell->nranks;
	bool is_root = rank == cell->root;

	switch (cell->function) {
	case OP_SEND_RECV:
		if (cell->peers && cell->peers[rank] < 0)
			return 0;
		parts[0] = sends(part_bytes, 1);
		parts[1] = recvs(part_bytes, 1);
		return 2;
	case OP_ALL_TO_ALL:
		parts[0] = sends(part_bytes, ranks);
		parts[1] = recvs(part_bytes, ranks);
		return 2;
	case OP_GATHER:
		parts[0] = sends(part_bytes, 1);
		parts[1] = recvs(part_bytes, ranks);
		return is_root ? 2 : 1;
	default: /* OP_SCATTER */
		parts[0] = recvs(part_bytes, 1);
		parts[1] = sends(part_bytes, ranks);
		return is_root ? 2 : 1;
	}
}

size_t profilers_parts_of(const struct bench_run *bench, const struct bench_cell *cell,
			  int32_t rank, struct profilers_part parts[PROFILERS_PARTS_MAX])
{
	uint64_t part_bytes = cell->count * op_datatype_bytes(cell->datatype);

	switch (cell->function) {
	case OP_SEND_RECV:
	case OP_ALL_TO_ALL:
	case OP_GATHER:
	case OP_SCATTER:
		return pairs_of(cell, rank, part_bytes, parts);
	default:
		parts[0].key = key_of(has_aligns(bench), cell->function, cell->bytes, part_bytes);
		parts[0].per_step = 1;
		return 1;
	}
}

static bool is_key(const struct profilers_key *key, const struct profilers_key *other)
{
	return key->function == other->function && key->is_align == other->is_align &&
	       key->bytes == other->bytes;
}

static long find_key(const struct profilers_ledger *ledger, const struct profilers_key *key)
{
	for (size_t i = 0; i < ledger->keys.count; i++)
		if (is_key(profilers_ledger_key(ledger, i), key))
			return (long)i;
	return -1;
}

static long add_key(struct profilers_ledger *ledger, const struct profilers_key *key)
{
	long at = find_key(ledger, key);
	struct profilers_key *added;

	if (at >= 0)
		return at;
	added = profilers_list_add(&ledger->keys, PROFILERS_KEYS_MAX);
	if (added == NULL)
		return -1;
	*added = *key;
	return (long)ledger->keys.count - 1;
}

static enum status add_keys(struct profilers_ledger *ledger)
{
	const struct bench_run *bench = ledger->bench;
	struct profilers_part parts[PROFILERS_PARTS_MAX];
	struct profilers_key align = { .function = OP_ALL_REDUCE, .is_align = true };

	if (has_aligns(bench) && add_key(ledger, &align) < 0)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < bench->cell_count; i++)
		for (int32_t rank = 0; rank < bench->nranks; rank++) {
			size_t count = profilers_parts_of(bench, &bench->cells[i], rank, parts);

			for (size_t j = 0; j < count; j++)
				if (add_key(ledger, &parts[j].key) < 0)
					return ERR_NO_SPACE;
			if (bench->cells[i].function < OP_SEND && rank == 0)
				break; /* collectives: all ranks do the same */
		}
	return OK;
}

static void add_issued(struct profilers_ledger *ledger, const struct bench_cell *cell, int32_t rank)
{
	struct profilers_part parts[PROFILERS_PARTS_MAX];
	size_t count = profilers_parts_of(ledger->bench, cell, rank, parts);

	for (size_t i = 0; i < count; i++) {
		size_t key = (size_t)find_key(ledger, &parts[i].key);

		profilers_ledger_tally(ledger, rank, key)->issued +=
			bench_cell_steps(cell) * parts[i].per_step;
	}
	if (cell->aligns > 0)
		profilers_ledger_tally(ledger, rank, 0)->issued += cell->aligns;
}

enum status profilers_ledger_init(struct profilers_ledger *ledger, const struct bench_run *bench)
{
	enum status status;

	*ledger = (struct profilers_ledger){ .bench = bench,
					     .keys.size = sizeof(struct profilers_key) };
	if (bench->nranks < 1)
		return ERR_RANGE;
	status = add_keys(ledger);
	if (status != OK)
		return status;
	ledger->issued_keys = ledger->keys.count;
	ledger->key_room = ledger->keys.count + STRAY_KEYS + 1;
	ledger->tallies =
		calloc(((size_t)bench->nranks + 1) * ledger->key_room, sizeof(*ledger->tallies));
	if (ledger->tallies == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < bench->cell_count; i++)
		for (int32_t rank = 0; rank < bench->nranks; rank++)
			add_issued(ledger, &bench->cells[i], rank);
	return OK;
}

void profilers_ledger_release(struct profilers_ledger *ledger)
{
	profilers_list_release(&ledger->keys);
	free(ledger->tallies);
	ledger->tallies = NULL;
}

long profilers_ledger_find(struct profilers_ledger *ledger, uint8_t function, uint64_t bytes)
{
	bool is_aligned = ledger->issued_keys > 0 && profilers_ledger_key(ledger, 0)->is_align;
	struct profilers_key key =
		key_of(is_aligned, function < OP_FUNCTIONS ? function : 0, bytes, 0);
	struct profilers_key rest = { .bytes = PROFILERS_BYTES_UNKNOWN };
	long at = find_key(ledger, &key);

	if (at >= 0)
		return at;
	return add_key(ledger, ledger->keys.count + 1 < ledger->key_room ? &key : &rest);
}

struct profilers_tally *profilers_ledger_tally(struct profilers_ledger *ledger, int32_t rank,
					       size_t key)
{
	return &ledger->tallies[(size_t)(rank + 1) * ledger->key_room + key];
}
