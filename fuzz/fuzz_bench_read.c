/*
 * A benchmark's JSON: any bytes are rejected with a position and a reason, or read; what was read
 * is written and read again unchanged, and every view accepts it.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/bench_result.h"
#include "common/op_layout.h"
#include "fuzz/fuzz_main.h"

static void check_text(const char *text, size_t size)
{
	if (memchr(text, '\0', size) == NULL)
		abort();
}

static void check_cell(const struct bench_run *run, const struct bench_cell *cell)
{
	bool has_calls = cell->mode != BENCH_LOOP && cell->calls > 0;

	if (cell->function == 0 || cell->function >= OP_FUNCTIONS ||
	    cell->datatype >= OP_DATATYPES || cell->redop >= BENCH_REDOPS || cell->mode == 0 ||
	    cell->mode >= BENCH_MODES || cell->algorithm >= OP_ALGORITHMS ||
	    cell->protocol >= OP_PROTOCOLS || cell->nranks < 1 || cell->nranks > run->nranks ||
	    cell->root < -1 || cell->root >= cell->nranks || (cell->calls_of != NULL) != has_calls)
		abort();
	for (int32_t i = 0; cell->peers != NULL && i < cell->nranks; i++)
		if (cell->peers[i] < -1 || cell->peers[i] >= cell->nranks)
			abort();
}

static void check_run(const struct bench_run *run)
{
	if (run->nranks < 1 || run->note_count > BENCH_NOTES_MAX)
		abort();
	check_text(run->command, sizeof(run->command));
	check_text(run->plugin, sizeof(run->plugin));
	for (int32_t i = 0; i < run->nranks; i++)
		check_text(run->ranks[i].host, sizeof(run->ranks[i].host));
	for (size_t i = 0; i < run->cell_count; i++)
		check_cell(run, &run->cells[i]);
}

static void check_again(const struct bench_run *run)
{
	struct bench_run again;
	struct sink first, second;

	sink_init_memory(&first);
	sink_init_memory(&second);
	if (bench_json_write(&first, run) != OK ||
	    bench_read(&again, first.bytes, first.used, NULL) != OK ||
	    bench_json_write(&second, &again) != OK || first.used != second.used ||
	    memcmp(first.bytes, second.bytes, first.used) != 0)
		abort();
	bench_run_release(&again);
	sink_release(&first);
	sink_release(&second);
}

static void check_views(const struct bench_run *run)
{
	static const struct bench_table_options table = { .has_percentiles = true };
	static const struct bench_histogram_options histogram = { .width = 40 };
	struct sink sink;

	sink_init_memory(&sink);
	if (bench_table_write(&sink, run, &table) != OK ||
	    bench_histogram_write(&sink, run, &histogram) != OK)
		abort();
	sink_release(&sink);
	sink_init_memory(&sink);
	if (bench_parquet_write(&sink, run) != OK)
		abort();
	sink_release(&sink);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of the exact size, so that reads past the end are caught. */
	char *text = malloc(size == 0 ? 1 : size);
	struct bench_read_problem problem = { .text = "" };
	struct bench_run run;

	if (size > 0)
		memcpy(text, data, size);
	if (bench_read(&run, text, size, &problem) == OK) {
		check_run(&run);
		check_again(&run);
		check_views(&run);
		bench_run_release(&run);
	} else if (problem.text[0] == '\0' || problem.offset > size || problem.line == 0 ||
		   run.cells != NULL || run.ranks != NULL) {
		abort();
	}
	free(text);
	return 0;
}
