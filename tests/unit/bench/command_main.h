/*
 * `ringside bench` itself as bench_main(), and what it measured, cell by cell. Its users define main again, as the
 * build does: test_FILE_main.
 */
#ifndef COMMAND_MAIN_H
#define COMMAND_MAIN_H

#include "tests/unit/bench/command_stage.h"

static int bench_main(int argc, char **argv);

#undef main
#define main bench_main
#include "bench/bench_main.c"
#undef main

/* Host times differ each time: they are only set, or 0, and in order. */
static inline void show_calls(struct sink *sink, const struct bench_cell *cell, int32_t rank)
{
	uint64_t before = 0;
	bool is_ordered = true, is_issued = true, is_done = true, is_never_done = true;

	sink_format(sink, "  rank %d:", (int)rank);
	for (uint32_t i = 0; i < cell->calls; i++) {
		const struct bench_call *call = bench_cell_call(cell, rank, i);

		is_ordered &= call->begin_ns >= before;
		is_issued &= call->issue_ns > 0;
		is_done &= call->done_ns > 0;
		is_never_done &= call->done_ns == 0;
		before = call->begin_ns;
		if (cell->mode != BENCH_LOOP)
			sink_format(sink, " %llu", (unsigned long long)call->gpu_ns);
	}
	sink_format(sink, "%s%s%s\n", is_ordered ? "" : ", out of order",
		    is_issued ? "" : ", not issued",
		    is_done	    ? ", with the end"
		    : is_never_done ? ""
				    : ", partly with the end");
}

static inline void show_cell(struct sink *sink, const struct bench_cell *cell)
{
	char words[BENCH_CELL_TEXT];

	sink_format(sink,
		    "%s, %s: %llu elements, %llu bytes, root %d; %u calls, %u warm-up, %u checks, "
		    "%u aligned, %u captured, %s%s",
		    bench_cell_words(words, cell), bench_mode_name(cell->mode),
		    (unsigned long long)cell->count, (unsigned long long)cell->bytes,
		    (int)cell->root, cell->calls, cell->warmups, cell->checks, cell->aligns,
		    cell->captured, cell->loop_ns > 0 ? "one time for all, " : "",
		    cell->is_grouped_sends ? "Sends and Recvs, " : "");
	if (cell->wrong == BENCH_UNCHECKED)
		sink_text(sink, "not checked\n");
	else
		sink_format(sink, "%llu wrong\n", (unsigned long long)cell->wrong);
	for (int32_t rank = 0; cell->calls_of != NULL && rank < cell->nranks; rank++)
		show_calls(sink, cell, rank);
}

static inline void show_run(struct stage *stage, const char *name)
{
	struct bench_run run;
	char path[200];

	text_format(path, sizeof(path), "%s/%s", stage->directory, name);
	sink_format(&stage->text, "=== %s\n", name);
	if (bench_recall(&run, path) != 0)
		return;
	sink_format(&stage->text, "launcher %s, NCCL %d, CUDA %d, %d nodes%s%s, ranks on GPUs",
		    run.launcher, run.nccl_version, run.cuda_version, (int)run.nodes,
		    run.is_gpu_shared ? ", shared GPUs" : "", run.is_mps ? ", MPS" : "");
	for (int32_t i = 0; i < run.nranks; i++)
		sink_format(&stage->text, " %d", (int)run.ranks[i].device);
	sink_text(&stage->text, "\n");
	for (size_t i = 0; i < run.note_count; i++)
		sink_format(&stage->text, "note: %s\n", run.notes[i]);
	for (size_t i = 0; i < run.cell_count; i++)
		show_cell(&stage->text, &run.cells[i]);
	bench_run_release(&run);
}

#endif
