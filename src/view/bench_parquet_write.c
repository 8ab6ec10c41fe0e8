/*
 * Rows come rank by rank within a cell, so all but a call's own times repeats for many rows: those columns
 * are put as one run of a code, the times as values.
 */
#include "view/bench_parquet.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/op.h"
#include "common/text.h"
#include "output/parquet.h"
#include "view/bench_text.h"

enum column {
	COLUMN_RESULT,
	COLUMN_FUNCTION,
	COLUMN_BYTES,
	COLUMN_COUNT,
	COLUMN_DATATYPE,
	COLUMN_REDOP,
	COLUMN_ROOT,
	COLUMN_MODE,
	COLUMN_IN_PLACE,
	COLUMN_ALGORITHM,
	COLUMN_PROTOCOL,
	COLUMN_CHOSEN_ALGORITHM,
	COLUMN_CHOSEN_PROTOCOL,
	COLUMN_GROUPED_SENDS,
	COLUMN_RANKS,
	COLUMN_WRONG,
	COLUMN_RANK,
	COLUMN_PEER,
	COLUMN_HOST,
	COLUMN_NODE,
	COLUMN_DEVICE,
	COLUMN_PID,
	COLUMN_GPU,
	COLUMN_GPU_UUID,
	COLUMN_CALL, /* from here on: values of each row */
	COLUMN_BEGIN,
	COLUMN_GPU_NS,
	COLUMN_ISSUE_NS,
	COLUMN_DONE_NS,
	COLUMNS,
};

static const struct parquet_column columns[COLUMNS] = {
	[COLUMN_RESULT] = { "result", PARQUET_UINT32, 0, false, 0 },
	[COLUMN_FUNCTION] = { "function", PARQUET_STRING, 0, false, 0 },
	[COLUMN_BYTES] = { "bytes", PARQUET_UINT64, 0, false, 0 },
	[COLUMN_COUNT] = { "count", PARQUET_UINT64, 0, false, 0 },
	[COLUMN_DATATYPE] = { "datatype", PARQUET_STRING, 0, true, 0 },
	[COLUMN_REDOP] = { "redop", PARQUET_STRING, 0, true, 0 },
	[COLUMN_ROOT] = { "root", PARQUET_INT32, 0, true, 0 },
	[COLUMN_MODE] = { "mode", PARQUET_STRING, 0, false, 0 },
	[COLUMN_IN_PLACE] = { "in_place", PARQUET_BOOL, 0, false, 0 },
	[COLUMN_ALGORITHM] = { "algorithm", PARQUET_STRING, 0, true, 0 },
	[COLUMN_PROTOCOL] = { "protocol", PARQUET_STRING, 0, true, 0 },
	[COLUMN_CHOSEN_ALGORITHM] = { "chosen_algorithm", PARQUET_STRING, 0, true, 0 },
	[COLUMN_CHOSEN_PROTOCOL] = { "chosen_protocol", PARQUET_STRING, 0, true, 0 },
	[COLUMN_GROUPED_SENDS] = { "grouped_sends", PARQUET_BOOL, 0, false, 0 },
	[COLUMN_RANKS] = { "ranks", PARQUET_INT32, 0, false, 0 },
	[COLUMN_WRONG] = { "wrong", PARQUET_UINT64, 0, true, 0 },
	[COLUMN_RANK] = { "rank", PARQUET_INT32, 0, false, 0 },
	[COLUMN_PEER] = { "peer", PARQUET_INT32, 0, true, 0 },
	[COLUMN_HOST] = { "host", PARQUET_STRING, 0, false, 0 },
	[COLUMN_NODE] = { "node", PARQUET_INT32, 0, false, 0 },
	[COLUMN_DEVICE] = { "device", PARQUET_INT32, 0, false, 0 },
	[COLUMN_PID] = { "pid", PARQUET_INT32, 0, false, 0 },
	[COLUMN_GPU] = { "gpu", PARQUET_STRING, 0, false, 0 },
	[COLUMN_GPU_UUID] = { "gpu_uuid", PARQUET_STRING, 0, false, 0 },
	[COLUMN_CALL] = { "call", PARQUET_UINT32, PARQUET_DELTA, false, 0 },
	[COLUMN_BEGIN] = { "begin_time", PARQUET_TIME_NS, PARQUET_DELTA, false, 0 },
	[COLUMN_GPU_NS] = { "gpu_ns", PARQUET_UINT64, PARQUET_DELTA, true, 0 },
	[COLUMN_ISSUE_NS] = { "issue_ns", PARQUET_UINT64, PARQUET_DELTA, false, 0 },
	[COLUMN_DONE_NS] = { "done_ns", PARQUET_UINT64, PARQUET_DELTA, true, 0 },
};

struct writer {
	struct parquet *parquet;
	const struct bench_run *run;
	uint32_t coded; /* pieces of this row group: no column has more codes */
	uint64_t values[PARQUET_ROWS_AT_ONCE];
};

/* ---- what repeats ------------------------------------------------------------------------------ */

static uint16_t code_number(const struct writer *writer, enum column column, uint64_t number)
{
	return parquet_code_number(writer->parquet, column, number);
}

static uint16_t code_signed(const struct writer *writer, enum column column, int32_t number)
{
	return parquet_code_number(writer->parquet, column, (uint64_t)(int64_t)number);
}

static uint16_t code_text(const struct writer *writer, enum column column, const char *text)
{
	return text != NULL ? parquet_code_text(writer->parquet, column, text)
			    : parquet_code_null(writer->parquet, column);
}

static uint16_t code_name(const struct writer *writer, enum column column, enum op_name_table table,
			  uint8_t number)
{
	return code_text(writer, column, number != 0 ? op_name(table, number) : NULL);
}

/* -1 is nobody. */
static uint16_t code_rank(const struct writer *writer, enum column column, int32_t rank)
{
	return rank >= 0 ? code_signed(writer, column, rank)
			 : parquet_code_null(writer->parquet, column);
}

static uint16_t code_of_cell(const struct writer *writer, enum column column,
			     const struct bench_cell *cell)
{
	switch (column) {
	case COLUMN_RESULT:
		return code_number(writer, column, (uint64_t)(cell - writer->run->cells));
	case COLUMN_FUNCTION:
		return code_text(writer, column, op_function_name(cell->function));
	case COLUMN_BYTES:
		return code_number(writer, column, cell->bytes);
	case COLUMN_COUNT:
		return code_number(writer, column, cell->count);
	case COLUMN_DATATYPE:
		return code_name(writer, column, OP_NAMES_DATATYPE, cell->datatype);
	case COLUMN_REDOP:
		return code_text(writer, column,
				 cell->redop != 0 ? bench_redop_name(cell->redop) : NULL);
	case COLUMN_ROOT:
		return code_rank(writer, column, cell->root);
	case COLUMN_MODE:
		return code_text(writer, column, bench_mode_name(cell->mode));
	case COLUMN_IN_PLACE:
		return code_number(writer, column, cell->is_in_place);
	case COLUMN_ALGORITHM:
		return code_name(writer, column, OP_NAMES_ALGORITHM, cell->algorithm);
	case COLUMN_PROTOCOL:
		return code_name(writer, column, OP_NAMES_PROTOCOL, cell->protocol);
	case COLUMN_CHOSEN_ALGORITHM:
		return code_name(writer, column, OP_NAMES_ALGORITHM, cell->chosen_algorithm);
	case COLUMN_CHOSEN_PROTOCOL:
		return code_name(writer, column, OP_NAMES_PROTOCOL, cell->chosen_protocol);
	case COLUMN_GROUPED_SENDS:
		return code_number(writer, column, cell->is_grouped_sends);
	case COLUMN_RANKS:
		return code_signed(writer, column, cell->nranks);
	default: /* COLUMN_WRONG */
		return cell->wrong != BENCH_UNCHECKED ? code_number(writer, column, cell->wrong)
						      : parquet_code_null(writer->parquet, column);
	}
}

static uint16_t code_of_rank(const struct writer *writer, enum column column,
			     const struct bench_cell *cell, int32_t number)
{
	const struct bench_rank *rank = &writer->run->ranks[number];
	char text[BENCH_TEXT_BYTES];

	switch (column) {
	case COLUMN_RANK:
		return code_signed(writer, column, number);
	case COLUMN_PEER:
		return code_rank(writer, column, cell->peers != NULL ? cell->peers[number] : -1);
	case COLUMN_HOST:
		return code_text(writer, column,
				 bench_text_clean(text, rank->host, sizeof(rank->host)));
	case COLUMN_NODE:
		return code_signed(writer, column, rank->node);
	case COLUMN_DEVICE:
		return code_signed(writer, column, rank->device);
	case COLUMN_PID:
		return code_signed(writer, column, rank->pid);
	case COLUMN_GPU:
		return code_text(writer, column,
				 bench_text_clean(text, rank->gpu_name, sizeof(rank->gpu_name)));
	default: /* COLUMN_GPU_UUID */
		return code_text(writer, column,
				 bench_text_clean(text, rank->gpu_uuid, sizeof(rank->gpu_uuid)));
	}
}

/* ---- rows -------------------------------------------------------------------------------------- */

static uint64_t value_of(enum column column, const struct bench_call *call, uint32_t number)
{
	switch (column) {
	case COLUMN_CALL:
		return number;
	case COLUMN_BEGIN:
		return call->begin_ns;
	case COLUMN_GPU_NS:
		return call->gpu_ns;
	case COLUMN_ISSUE_NS:
		return call->issue_ns;
	default:
		return call->done_ns;
	}
}

/* Some calls of one rank. */
static void put_piece(struct writer *writer, const struct bench_cell *cell, int32_t rank,
		      uint32_t first, uint32_t rows)
{
	const struct parquet_run run = { .rows = rows, .entry = 0 };

	for (enum column column = 0; column < COLUMN_CALL; column++) {
		uint16_t code = column < COLUMN_RANK ? code_of_cell(writer, column, cell)
						     : code_of_rank(writer, column, cell, rank);

		parquet_put_runs(writer->parquet, column, &run, 1, &code);
	}
	for (enum column column = COLUMN_CALL; column < COLUMNS; column++) {
		for (uint32_t i = 0; i < rows; i++)
			writer->values[i] =
				value_of(column, bench_cell_call(cell, rank, first + i), first + i);
		parquet_put_values(writer->parquet, column, writer->values, rows);
	}
	parquet_end_rows(writer->parquet, rows);
	/* Codes end with the row group; so none runs out of them. */
	if (++writer->coded == PARQUET_DICTIONARY_MAX - 1 ||
	    parquet_is_group_full(writer->parquet)) {
		parquet_end_group(writer->parquet);
		writer->coded = 0;
	}
}

static void put_cell(struct writer *writer, const struct bench_cell *cell)
{
	uint32_t rows;

	for (int32_t rank = 0; rank < cell->nranks && rank < writer->run->nranks; rank++)
		for (uint32_t call = 0; call < cell->calls; call += rows) {
			rows = cell->calls - call;
			if (rows > PARQUET_ROWS_AT_ONCE)
				rows = PARQUET_ROWS_AT_ONCE;
			put_piece(writer, cell, rank, call, rows);
		}
}

/* ---- about the file ---------------------------------------------------------------------------- */

static void put_number_pair(struct parquet *parquet, const char *key, uint64_t number)
{
	char text[32];

	text_format(text, sizeof(text), "%" PRIu64, number);
	parquet_pair(parquet, key, text);
}

static void put_text_pair(struct parquet *parquet, const char *key, const char *field, size_t size)
{
	char text[sizeof(((struct bench_run *)NULL)->command)];

	parquet_pair(parquet, key, bench_text_clean(text, field, size));
}

static void put_pairs(struct parquet *parquet, const struct bench_run *run, uint64_t without)
{
	char key[48];

	parquet_pair(parquet, "ringside.bench_format", "1");
	parquet_pair(parquet, "ringside.version", RINGSIDE_VERSION);
	put_number_pair(parquet, "ringside.nccl_version", (uint64_t)run->nccl_version);
	put_number_pair(parquet, "ringside.cuda_version", (uint64_t)run->cuda_version);
	put_number_pair(parquet, "ringside.ranks", (uint64_t)run->nranks);
	put_number_pair(parquet, "ringside.nodes", (uint64_t)run->nodes);
	parquet_pair(parquet, "ringside.gpu_shared", run->is_gpu_shared ? "true" : "false");
	parquet_pair(parquet, "ringside.mps", run->is_mps ? "true" : "false");
	put_number_pair(parquet, "ringside.started_ns", run->started_ns);
	put_text_pair(parquet, "ringside.launcher", run->launcher, sizeof(run->launcher));
	put_text_pair(parquet, "ringside.plugin", run->plugin, sizeof(run->plugin));
	put_text_pair(parquet, "ringside.nccl_path", run->nccl_path, sizeof(run->nccl_path));
	put_text_pair(parquet, "ringside.command", run->command, sizeof(run->command));
	put_number_pair(parquet, "ringside.results", run->cell_count);
	put_number_pair(parquet, "ringside.results_without_calls", without);
	put_number_pair(parquet, "ringside.notes_lost", run->notes_lost);
	for (size_t i = 0; i < run->note_count; i++) {
		text_format(key, sizeof(key), "ringside.note.%zu", i);
		put_text_pair(parquet, key, run->notes[i], sizeof(run->notes[i]));
	}
}

enum status bench_parquet_write(struct sink *sink, const struct bench_run *run)
{
	struct writer *writer = calloc(1, sizeof(*writer));
	enum status status = ERR_NO_SPACE;
	uint64_t without = 0;

	if (writer != NULL)
		writer->parquet = parquet_new(sink, columns, COLUMNS);
	if (writer != NULL && writer->parquet != NULL) {
		writer->run = run;
		for (size_t i = 0; i < run->cell_count; i++) {
			if (run->cells[i].calls_of != NULL)
				put_cell(writer, &run->cells[i]);
			without += run->cells[i].calls_of == NULL;
		}
		put_pairs(writer->parquet, run, without);
		status = parquet_finish(writer->parquet);
	}
	if (writer != NULL)
		parquet_free(writer->parquet);
	free(writer);
	return status;
}
