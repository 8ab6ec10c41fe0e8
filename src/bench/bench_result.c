#include "bench/bench_result.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/op_layout.h"

static const char *const mode_names[BENCH_MODES] = {
	[BENCH_BLOCKING] = "blocking",
	[BENCH_BACK_TO_BACK] = "back-to-back",
	[BENCH_GRAPH] = "graph",
	[BENCH_LOOP] = "loop",
};

static const char *const redop_names[BENCH_REDOPS] = {
	[BENCH_NO_REDOP] = "none", [BENCH_SUM] = "sum", [BENCH_PROD] = "prod",
	[BENCH_MAX] = "max",	   [BENCH_MIN] = "min", [BENCH_AVG] = "avg",
};

const char *bench_mode_name(unsigned int mode)
{
	return mode < BENCH_MODES && mode_names[mode] ? mode_names[mode] : "?";
}

const char *bench_redop_name(unsigned int redop)
{
	return redop < BENCH_REDOPS ? redop_names[redop] : "?";
}

unsigned int bench_mode_find(const char *name)
{
	for (unsigned int mode = 1; mode < BENCH_MODES; mode++)
		if (strcmp(name, mode_names[mode]) == 0)
			return mode;
	return 0;
}

unsigned int bench_redop_find(const char *name)
{
	for (unsigned int redop = 1; redop < BENCH_REDOPS; redop++)
		if (strcmp(name, redop_names[redop]) == 0)
			return redop;
	return 0;
}

void bench_run_init(struct bench_run *run)
{
	memset(run, 0, sizeof(*run));
}

void bench_run_release(struct bench_run *run)
{
	for (size_t i = 0; i < run->cell_count; i++) {
		free(run->cells[i].calls_of);
		free(run->cells[i].peers);
	}
	free(run->cells);
	free(run->ranks);
	bench_run_init(run);
}

enum status bench_run_set_ranks(struct bench_run *run, int32_t nranks)
{
	struct bench_rank *ranks;

	if (nranks < 1 || nranks > BENCH_RANKS_MAX)
		return ERR_RANGE;
	ranks = calloc((size_t)nranks, sizeof(*ranks));
	if (ranks == NULL)
		return ERR_NO_SPACE;
	free(run->ranks);
	run->ranks = ranks;
	run->nranks = nranks;
	return OK;
}

static bool cells_grow(struct bench_run *run)
{
	size_t room = run->cell_room ? run->cell_room * 2 : 16;
	struct bench_cell *cells;

	if (run->cell_count < run->cell_room)
		return true;
	if (run->cell_count >= BENCH_CELLS_MAX)
		return false;
	cells = realloc(run->cells, room * sizeof(*cells));
	if (cells == NULL)
		return false;
	run->cells = cells;
	run->cell_room = room;
	return true;
}

struct bench_cell *bench_run_add_cell(struct bench_run *run, const struct bench_cell *like)
{
	struct bench_cell cell = *like;
	size_t ranks = like->nranks > 0 ? (size_t)like->nranks : 0;
	size_t peers_bytes = ranks * sizeof(*cell.peers);

	cell.calls_of = NULL;
	cell.peers = NULL;
	if (!cells_grow(run))
		return NULL;
	if (like->mode != BENCH_LOOP && ranks && like->calls) {
		cell.calls_of = calloc(ranks * like->calls, sizeof(*cell.calls_of));
		if (cell.calls_of == NULL)
			return NULL;
	}
	if (like->peers && ranks) {
		cell.peers = malloc(peers_bytes);
		if (cell.peers == NULL) {
			free(cell.calls_of);
			return NULL;
		}
		memcpy(cell.peers, like->peers, peers_bytes);
	}
	run->cells[run->cell_count] = cell;
	return &run->cells[run->cell_count++];
}

void bench_run_note(struct bench_run *run, const char *format, ...)
{
	char note[BENCH_TEXT_BYTES] = "";
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(note, sizeof(note), format, arguments);
	va_end(arguments);
	for (size_t i = 0; i < run->note_count; i++)
		if (strcmp(run->notes[i], note) == 0)
			return;
	if (run->note_count == BENCH_NOTES_MAX) {
		run->notes_lost++;
		return;
	}
	memcpy(run->notes[run->note_count++], note, sizeof(note));
}

/* NCCL shows AlltoAll, Gather and Scatter as the Sends and Recvs they are made of, its own calls too; a
 * rank's part for itself is one Send and one Recv. */
uint64_t bench_cell_operations(const struct bench_cell *cell, int32_t rank)
{
	uint64_t ranks = (uint64_t)cell->nranks;

	switch (cell->function) {
	case OP_SEND_RECV:
		return cell->peers && cell->peers[rank] < 0 ? 0 : 2;
	case OP_ALL_TO_ALL:
		return 2 * ranks;
	case OP_GATHER:
	case OP_SCATTER:
		return rank == cell->root ? ranks + 1 : 1;
	default:
		return 1;
	}
}

uint64_t bench_cell_steps(const struct bench_cell *cell)
{
	return (uint64_t)cell->warmups + cell->calls + cell->checks;
}
