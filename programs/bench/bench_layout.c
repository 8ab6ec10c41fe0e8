#include "programs/bench/bench_layout.h"

#include <stddef.h>

#include "common/op.h"
#include "common/op_layout.h"
#include "programs/bench/bench_pattern.h"

enum { PART_ALIGN_BYTES = 16 };

bool layout_is_reduction(uint8_t function)
{
	return function == OP_ALL_REDUCE || function == OP_REDUCE_SCATTER || function == OP_REDUCE;
}

bool layout_is_rooted(uint8_t function)
{
	return function == OP_BROADCAST || function == OP_REDUCE || function == OP_GATHER ||
	       function == OP_SCATTER;
}

bool layout_has_in_place(uint8_t function)
{
	return function != OP_ALL_TO_ALL && function != OP_SEND_RECV;
}

bool layout_is_repeatable(const struct bench_cell *cell)
{
	if (!cell->is_in_place || !layout_is_reduction(cell->function))
		return true;
	return cell->redop == BENCH_MAX || cell->redop == BENCH_MIN;
}

static uint64_t part_of(uint64_t bytes, unsigned int element_bytes, uint64_t nranks)
{
	uint64_t part = bytes / element_bytes / nranks;
	uint64_t aligned = part - part % (PART_ALIGN_BYTES / element_bytes);

	return aligned ? aligned : part;
}

static bool counts_of(struct bench_layout *layout, const struct bench_cell *cell, int rank)
{
	unsigned int element_bytes = op_datatype_bytes(cell->datatype);
	uint64_t nranks = (uint64_t)cell->nranks, at = 0;
	uint64_t part = part_of(cell->bytes, element_bytes, nranks);

	switch (cell->function) {
	case OP_ALL_REDUCE:
	case OP_BROADCAST:
	case OP_REDUCE:
	case OP_SEND_RECV:
		part = cell->bytes / element_bytes;
		*layout = (struct bench_layout){ .send_count = part, .recv_count = part };
		break;
	case OP_ALL_GATHER:
	case OP_GATHER:
		at = cell->is_in_place ? (uint64_t)rank * part : 0;
		*layout = (struct bench_layout){ .send_count = part,
						 .recv_count = part * nranks,
						 .send_at = at };
		break;
	case OP_REDUCE_SCATTER:
	case OP_SCATTER:
		at = cell->is_in_place ? (uint64_t)rank * part : 0;
		*layout = (struct bench_layout){ .send_count = part * nranks,
						 .recv_count = part,
						 .recv_at = at };
		break;
	case OP_ALL_TO_ALL:
		*layout = (struct bench_layout){ .send_count = part * nranks,
						 .recv_count = part * nranks };
		break;
	default:
		return false;
	}
	layout->count = part;
	return part > 0;
}

bool layout_of(struct bench_layout *layout, const struct bench_cell *cell, int rank)
{
	unsigned int element_bytes = op_datatype_bytes(cell->datatype);

	if (element_bytes == 0 || cell->nranks < 1 || !counts_of(layout, cell, rank))
		return false;
	layout->whole_count =
		layout->send_count > layout->recv_count ? layout->send_count : layout->recv_count;
	layout->bytes =
		op_message_bytes(cell->function, layout->count, element_bytes, cell->nranks);
	return true;
}

int layout_send_peer(const struct bench_cell *cell, int rank)
{
	return cell->peers ? cell->peers[rank] : (rank + 1) % cell->nranks;
}

int layout_recv_peer(const struct bench_cell *cell, int rank)
{
	return cell->peers ? cell->peers[rank] : (rank + cell->nranks - 1) % cell->nranks;
}

bool layout_input(const struct bench_layout *layout, const struct bench_cell *cell, int rank,
		  struct layout_part *part)
{
	bool is_only_of_root = cell->function == OP_BROADCAST || cell->function == OP_SCATTER;

	if (is_only_of_root && rank != cell->root)
		return false;
	if (cell->function == OP_SEND_RECV && layout_send_peer(cell, rank) < 0)
		return false;
	*part = (struct layout_part){
		.at = layout->send_at,
		.count = layout->send_count,
		.phase = layout_is_reduction(cell->function) ? 0 : pattern_phase(rank),
	};
	return true;
}

/* All at once, from one rank or from the reduction. */
static bool expected_whole(const struct bench_layout *layout, const struct bench_cell *cell,
			   int rank, uint32_t *phase)
{
	uint64_t own = (uint64_t)rank * layout->count;
	int peer;

	switch (cell->function) {
	case OP_ALL_REDUCE:
		*phase = 0;
		return true;
	case OP_REDUCE:
		*phase = 0;
		return rank == cell->root;
	case OP_REDUCE_SCATTER:
		*phase = pattern_advance(0, own);
		return true;
	case OP_BROADCAST:
		*phase = pattern_phase(cell->root);
		return true;
	case OP_SCATTER:
		*phase = pattern_advance(pattern_phase(cell->root), own);
		return true;
	case OP_SEND_RECV:
		peer = layout_recv_peer(cell, rank);
		*phase = peer < 0 ? 0 : pattern_phase(peer);
		return peer >= 0;
	default:
		return false;
	}
}

/* Part `from` is that rank's. */
static bool expected_part(const struct bench_layout *layout, const struct bench_cell *cell,
			  int rank, int from, uint32_t *phase)
{
	*phase = pattern_phase(from);
	if (cell->function == OP_ALL_TO_ALL)
		*phase = pattern_advance(*phase, (uint64_t)rank * layout->count);
	return cell->function != OP_GATHER || rank == cell->root;
}

bool layout_expected(const struct bench_layout *layout, const struct bench_cell *cell, int rank,
		     int index, struct layout_part *part)
{
	bool has_parts = cell->function == OP_ALL_GATHER || cell->function == OP_GATHER ||
			 cell->function == OP_ALL_TO_ALL;

	*part = (struct layout_part){ .at = layout->recv_at, .count = layout->recv_count };
	if (!has_parts)
		return index == 0 && expected_whole(layout, cell, rank, &part->phase);
	part->at += (uint64_t)index * layout->count;
	part->count = layout->count;
	return index < cell->nranks && expected_part(layout, cell, rank, index, &part->phase);
}
