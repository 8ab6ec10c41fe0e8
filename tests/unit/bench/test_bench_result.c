#include "bench/bench_result.h"

#include <stdio.h>
#include <string.h>

#include "common/op_layout.h"
#include "tests/tap.h"

static struct bench_cell cell_of(uint8_t function, int32_t nranks)
{
	return (struct bench_cell){ .function = function,
				    .mode = BENCH_BLOCKING,
				    .nranks = nranks,
				    .root = -1,
				    .calls = 3 };
}

static void names_are_found_again(void)
{
	for (unsigned int mode = 1; mode < BENCH_MODES; mode++)
		EXPECT_EQUAL(bench_mode_find(bench_mode_name(mode)), mode);
	for (unsigned int redop = 1; redop < BENCH_REDOPS; redop++)
		EXPECT_EQUAL(bench_redop_find(bench_redop_name(redop)), redop);
	EXPECT_EQUAL(bench_mode_find("?"), 0);
	EXPECT_EQUAL(bench_redop_find("none"), BENCH_NO_REDOP);
	EXPECT_THAT("numbers outside the tables have a name, too",
		    strcmp(bench_mode_name(99), "?") == 0 && strcmp(bench_mode_name(0), "?") == 0 &&
			    strcmp(bench_redop_name(99), "?") == 0);
}

static void cells_own_what_they_hold(void)
{
	struct bench_run run;
	int32_t peers[4] = { 1, 0, -1, -1 };
	struct bench_cell like = cell_of(OP_SEND_RECV, 4), *cell;

	like.peers = peers;
	bench_run_init(&run);
	for (int i = 0; i < 40; i++) {
		cell = bench_run_add_cell(&run, &like);
		if (cell == NULL)
			break;
		cell->calls_of[11].gpu_ns = (uint64_t)i;
	}
	peers[0] = 7;
	EXPECT_EQUAL(run.cell_count, 40);
	EXPECT_EQUAL(bench_cell_call(&run.cells[39], 3, 2)->gpu_ns, 39);
	EXPECT_EQUAL(run.cells[0].peers[0], 1);
	like.mode = BENCH_LOOP;
	cell = bench_run_add_cell(&run, &like);
	EXPECT_THAT("a loop has no single calls", cell != NULL && cell->calls_of == NULL);
	bench_run_release(&run);
	EXPECT_EQUAL(run.cell_count, 0);
}

static void ranks_are_bounded(void)
{
	struct bench_run run;

	bench_run_init(&run);
	EXPECT_EQUAL(bench_run_set_ranks(&run, 0), ERR_RANGE);
	EXPECT_EQUAL(bench_run_set_ranks(&run, BENCH_RANKS_MAX + 1), ERR_RANGE);
	EXPECT_EQUAL(bench_run_set_ranks(&run, 8), OK);
	EXPECT_EQUAL(bench_run_set_ranks(&run, 2), OK);
	EXPECT_EQUAL(run.nranks, 2);
	bench_run_release(&run);
}

static void notes_come_once_and_losses_are_counted(void)
{
	struct bench_run run;

	bench_run_init(&run);
	bench_run_note(&run, "%d ranks share one GPU", 4);
	bench_run_note(&run, "%d ranks share one GPU", 4);
	EXPECT_EQUAL(run.note_count, 1);
	for (int i = 0; i < BENCH_NOTES_MAX + 1; i++)
		bench_run_note(&run, "note %d", i);
	EXPECT_EQUAL(run.note_count, BENCH_NOTES_MAX);
	EXPECT_EQUAL(run.notes_lost, 2);
	bench_run_release(&run);
}

static void steps_are_all_that_ran(void)
{
	struct bench_cell cell = cell_of(OP_ALL_REDUCE, 4);

	cell.warmups = 5;
	cell.checks = 1;
	EXPECT_EQUAL(bench_cell_steps(&cell), 9);
}

int main(void)
{
	names_are_found_again();
	cells_own_what_they_hold();
	ranks_are_bounded();
	notes_come_once_and_losses_are_counted();
	steps_are_all_that_ran();
	return tap_done();
}
