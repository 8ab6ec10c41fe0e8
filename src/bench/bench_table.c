/* A run as tables: text like nccl-tests, histogram, Parquet. */
#include "bench/bench_result.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "bench/bench_plot.h"
#include "common/attributes.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "output/parquet.h"

/* A row of the table; one of both can be NULL. */
struct bench_row {
	const struct bench_cell *out;
	const struct bench_cell *in;
};

struct bench_block {
	struct sink *sink;
	const struct bench_run *run;
	const struct bench_table_options *options;
	const struct bench_row *rows;
	size_t count;
	bool is_first; /* first block of the run: lists the GPUs */
	/* Accumulated while rows are written. */
	double busbw_sum;
	uint64_t measures;
	uint64_t wrong; /* measurements with wrong results */
	uint64_t unchecked;
	uint64_t untimed;
	uint64_t unsupported; /* percentiles with too few calls */
};

static inline const struct bench_cell *bench_row_cell(const struct bench_row *row)
{
	return row->out != NULL ? row->out : row->in;
}

enum { PAIRS_SHOWN = 8 };

const char *bench_table_test(uint8_t function)
{
	static const char *const names[OP_FUNCTIONS] = {
		[OP_ALL_REDUCE] = "all_reduce_perf",
		[OP_ALL_GATHER] = "all_gather_perf",
		[OP_REDUCE_SCATTER] = "reduce_scatter_perf",
		[OP_BROADCAST] = "broadcast_perf",
		[OP_REDUCE] = "reduce_perf",
		[OP_ALL_TO_ALL] = "alltoall_perf",
		[OP_GATHER] = "gather_perf",
		[OP_SCATTER] = "scatter_perf",
		[OP_SEND_RECV] = "sendrecv_perf",
	};

	return function < OP_FUNCTIONS && names[function] ? names[function] : "unknown";
}

const char *bench_table_type(uint8_t datatype)
{
	switch (datatype) {
	case OP_FLOAT16:
		return "half";
	case OP_FLOAT32:
		return "float";
	case OP_FLOAT64:
		return "double";
	case OP_FLOAT8_E4M3:
		return "f8e4m3";
	case OP_FLOAT8_E5M2:
		return "f8e5m2";
	case OP_DATATYPE_UNKNOWN:
		return "unknown";
	default:
		return datatype < OP_DATATYPES ? op_datatype_name(datatype) : "unknown";
	}
}

static void put_comment(struct sink *sink, const char *key, const char *text)
{
	sink_format(sink, "# %s: ", key);
	bench_line_text(sink, text);
	sink_byte(sink, '\n');
}

/* ---- of the run ------------------------------------------------------------------------------ */

/* At the top: versions, the command, notes. */
static void bench_table_start(struct sink *sink, const struct bench_run *run)
{
	sink_format(sink, "# ringside bench nccl-library=%" PRId32 " cuda-driver=%" PRId32 "\n",
		    run->nccl_version, run->cuda_version);
	if (run->command[0] != '\0')
		put_comment(sink, "Command", run->command);
	if (run->plugin[0] != '\0')
		put_comment(sink, "Profiler plugin", run->plugin);
	for (size_t i = 0; i < run->note_count; i++)
		put_comment(sink, "Note", run->notes[i]);
	if (run->notes_lost > 0)
		sink_format(sink, "# Note: %zu more did not fit\n", run->notes_lost);
	if (run->cell_count == 0)
		sink_text(sink, "# Nothing was measured\n");
}

static void put_devices(struct sink *sink, const struct bench_run *run)
{
	sink_text(sink, "# Using devices\n");
	for (int32_t i = 0; i < run->nranks; i++) {
		const struct bench_rank *rank = &run->ranks[i];
		size_t length = strlen(rank->host);

		sink_format(sink, "#  Rank %2" PRId32 " Group  0 Pid %6" PRId32 " on ", i,
			    rank->pid);
		sink_repeat(sink, ' ', length < 10 ? 10 - length : 0);
		bench_line_text(sink, length > 0 ? rank->host : "unknown");
		sink_format(sink, " device %2" PRId32 " [", rank->device);
		bench_line_text(sink, rank->pci);
		sink_text(sink, "] ");
		bench_line_text(sink, rank->gpu_name);
		sink_byte(sink, '\n');
	}
}

/* ---- of a block ------------------------------------------------------------------------------ */

struct settings {
	uint64_t least_bytes;
	uint64_t most_bytes;
	uint32_t least_calls;
	uint32_t most_calls;
	uint32_t warmups;
	uint32_t captured;
	bool is_checked;
};

static void add_settings(struct settings *settings, const struct bench_cell *cell)
{
	if (cell == NULL)
		return;
	if (cell->bytes < settings->least_bytes)
		settings->least_bytes = cell->bytes;
	if (cell->bytes > settings->most_bytes)
		settings->most_bytes = cell->bytes;
	if (cell->calls < settings->least_calls)
		settings->least_calls = cell->calls;
	if (cell->calls > settings->most_calls)
		settings->most_calls = cell->calls;
	if (cell->warmups > settings->warmups)
		settings->warmups = cell->warmups;
	if (cell->captured > settings->captured)
		settings->captured = cell->captured;
	settings->is_checked |= cell->wrong != BENCH_UNCHECKED;
}

/* Parsers take "nThread" as a sign that the list of ranks follows, so it is only printed with one. */
static void put_settings(const struct bench_block *block)
{
	struct settings settings = { .least_bytes = UINT64_MAX, .least_calls = UINT32_MAX };
	struct sink *sink = block->sink;

	for (size_t i = 0; i < block->count; i++) {
		add_settings(&settings, block->rows[i].out);
		add_settings(&settings, block->rows[i].in);
	}
	sink_format(sink,
		    "# %sminBytes %" PRIu64 " maxBytes %" PRIu64 " warmup iters: %" PRIu32
		    " iters: %" PRIu32,
		    block->is_first ? "nThread 1 nGpus 1 " : "", settings.least_bytes,
		    settings.most_bytes, settings.warmups, settings.least_calls);
	if (settings.most_calls != settings.least_calls)
		sink_format(sink, "..%" PRIu32, settings.most_calls);
	sink_format(sink, " agg iters: 1 validation: %d graph: %" PRIu32 "\n", settings.is_checked,
		    settings.captured);
}

static void put_mode(const struct bench_block *block)
{
	static const char *const overs[] = { "mean over", "shortest of", "longest of" };
	const struct bench_table_options *options = block->options;
	const struct bench_cell *cell = bench_row_cell(&block->rows[0]);
	struct sink *sink = block->sink;

	sink_format(sink, "# Mode: %s; time: ", bench_mode_name(cell->mode));
	if (cell->mode == BENCH_LOOP)
		sink_text(sink, "one time for all calls, divided by their number\n");
	else
		sink_format(sink, "%s of the calls, each the %s ranks, by CUDA events\n",
			    options->is_median ? "median" : "mean",
			    (unsigned int)options->over < 3 ? overs[options->over] : "?");
	if (cell->algorithm != 0 || cell->protocol != 0)
		sink_format(sink, "# NCCL was made to take: algorithm %s, protocol %s\n",
			    cell->algorithm ? op_algorithm_name(cell->algorithm) : "any",
			    cell->protocol ? op_protocol_name(cell->protocol) : "any");
	if (cell->is_grouped_sends)
		sink_text(sink, "# Grouped Sends and Recvs: this NCCL has no such call\n");
}

static void put_pairs(const struct bench_block *block)
{
	const struct bench_cell *cell = bench_row_cell(&block->rows[0]);
	struct sink *sink = block->sink;
	size_t pairs = 0;

	if (cell->peers == NULL)
		return;
	sink_text(sink, "# Pairs:");
	for (int32_t rank = 0; rank < cell->nranks; rank++) {
		int32_t peer = cell->peers[rank];

		/* Printed by the lower rank of a pair that names each other. */
		if (peer < 0 || (peer < rank && peer < cell->nranks && cell->peers[peer] == rank))
			continue;
		if (pairs++ < PAIRS_SHOWN)
			sink_format(sink, " %" PRId32 "-%" PRId32, rank, peer);
	}
	if (pairs > PAIRS_SHOWN)
		sink_format(sink, " and %zu more", pairs - PAIRS_SHOWN);
	sink_text(sink, pairs == 0 ? " none\n" : "\n");
}

static void put_measure_titles(const struct bench_block *block, bool is_units)
{
	struct sink *sink = block->sink;

	for (int i = 0; i < 2; i++) {
		sink_format(sink, "  %7s  %6s  %6s  %6s", is_units ? "(us)" : "time",
			    is_units ? "(GB/s)" : "algbw", is_units ? "(GB/s)" : "busbw",
			    is_units ? "" : "#wrong");
		if (block->options->has_percentiles)
			sink_format(sink, "  %7s  %7s  %7s  %7s  %7s", is_units ? "(us)" : "p50",
				    is_units ? "(us)" : "p90", is_units ? "(us)" : "p99",
				    is_units ? "(us)" : "min", is_units ? "(us)" : "max");
		if (block->options->model_ns != NULL)
			sink_format(sink, "  %7s  %6s", is_units ? "(us)" : "model",
				    is_units ? "(%)" : "err%");
	}
	sink_byte(sink, '\n');
}

/* Centred in `width`, which starts after `blanks`. Returns the number of blanks up to its end. */
static size_t put_place_title(struct sink *sink, size_t blanks, const char *title, size_t width)
{
	size_t before = (width - strlen(title)) / 2;

	sink_repeat(sink, ' ', blanks + before);
	sink_text(sink, title);
	return width - before - strlen(title);
}

static void put_titles(const struct bench_block *block)
{
	struct sink *sink = block->sink;
	size_t width = 33u + (block->options->has_percentiles ? 45 : 0) +
		       (block->options->model_ns != NULL ? 17 : 0);

	sink_text(sink, "#\n# ");
	put_place_title(sink, put_place_title(sink, 50, "out-of-place", width), "in-place", width);
	sink_byte(sink, '\n');
	sink_format(sink, "# %10s  %12s  %8s  %6s  %6s", "size", "count", "type", "redop", "root");
	put_measure_titles(block, false);
	sink_format(sink, "# %10s  %12s  %8s  %6s  %6s", "(B)", "(elements)", "", "", "");
	put_measure_titles(block, true);
}

/* Before and after the rows of a block. */
static void bench_table_head(const struct bench_block *block)
{
	const struct bench_cell *cell = bench_row_cell(&block->rows[0]);

	sink_format(block->sink, "#\n# Collective test starting: %s\n",
		    bench_table_test(cell->function));
	put_settings(block);
	put_mode(block);
	put_pairs(block);
	if (block->is_first)
		put_devices(block->sink, block->run);
	put_titles(block);
}

static void bench_table_foot(const struct bench_block *block)
{
	const struct bench_cell *cell = bench_row_cell(&block->rows[0]);
	struct sink *sink = block->sink;

	sink_format(sink, "# %-20s : %" PRIu64 " %s\n", "Out of bounds values", block->wrong,
		    block->wrong > 0 ? "FAILED" : "OK");
	if (block->unchecked > 0)
		sink_format(sink, "# %-20s : %" PRIu64 " measurements\n", "Not checked",
			    block->unchecked);
	if (block->untimed > 0)
		sink_format(sink, "# %-20s : %" PRIu64 " measurements\n", "Without a time",
			    block->untimed);
	if (block->unsupported > 0)
		sink_format(sink,
			    "# %-20s : %" PRIu64 " percentiles; p90 needs 10 calls, p99 100\n",
			    "Too few calls", block->unsupported);
	sink_format(sink, "# %-20s : %g\n", "Avg bus bandwidth",
		    block->measures > 0 ? block->busbw_sum / (double)block->measures : 0);
	sink_format(sink, "#\n# Collective test concluded: %s\n", bench_table_test(cell->function));
}

/*
 * nccl-tests prints one test: comments, a head, rows, a foot. A run here has many, so cells are sorted into blocks,
 * and cells that only differ in "in place" share a row:
 *
 *	# Collective test starting: all_reduce_perf
 *	# ...
 *	#       size         count      type   redop    root     time   algbw   busbw  #wrong     time ...
 *	     1048576        262144     float     sum      -1    71.20   14.73   22.09       0    70.91 ...
 *	# Out of bounds values : 0 OK
 *	# Avg bus bandwidth    : 22.1311
 *
 * Values that were not measured are "N/A": every row has all its columns.
 */

/* ---- order ----------------------------------------------------------------------------------- */

struct sorted_cell {
	const struct bench_cell *cell;
	uint32_t turn; /* within its function: the order of the run */
	uint32_t index;
};

static int compare_peers(const struct bench_cell *a, const struct bench_cell *b)
{
	if (a->peers == NULL || b->peers == NULL)
		return ORDER(a->peers != NULL, b->peers != NULL);
	if (a->nranks != b->nranks)
		return ORDER((uint32_t)a->nranks, (uint32_t)b->nranks);
	return memcmp(a->peers, b->peers, (size_t)a->nranks * sizeof(*a->peers));
}

static int compare_blocks(const struct sorted_cell *a, const struct sorted_cell *b)
{
	return ORDER(a->turn, b->turn) ?: ORDER(a->cell->mode, b->cell->mode)
		?: ORDER(a->cell->algorithm, b->cell->algorithm)
		?: ORDER(a->cell->protocol, b->cell->protocol)
		?: ORDER(a->cell->is_grouped_sends, b->cell->is_grouped_sends)
		?: compare_peers(a->cell, b->cell);
}

static int compare_rows(const struct sorted_cell *a, const struct sorted_cell *b)
{
	return compare_blocks(a, b) ?: ORDER(a->cell->datatype, b->cell->datatype)
		?: ORDER(a->cell->redop, b->cell->redop)
		?: ORDER((uint32_t)a->cell->root, (uint32_t)b->cell->root)
		?: ORDER(a->cell->bytes, b->cell->bytes)
		?: ORDER(a->cell->count, b->cell->count);
}

static int compare_cells(const void *left, const void *right)
{
	const struct sorted_cell *a = left, *b = right;

	return compare_rows(a, b) ?: ORDER(a->index, b->index);
}

static void sort_cells(const struct bench_run *run, struct sorted_cell *sorted)
{
	uint32_t turns[UINT8_MAX + 1] = { 0 }, last = 0;

	for (size_t i = 0; i < run->cell_count; i++) {
		uint32_t *turn = &turns[run->cells[i].function];

		if (*turn == 0)
			*turn = ++last;
		sorted[i] = (struct sorted_cell){ &run->cells[i], *turn, (uint32_t)i };
	}
	qsort(sorted, run->cell_count, sizeof(*sorted), compare_cells);
}

/* The next row: the first remaining cell of its kind, out of place and in place. */
static size_t pair_cells(const struct sorted_cell *sorted, size_t count, struct bench_row *rows)
{
	size_t row_count = 0, end;

	for (size_t from = 0; from < count; from = end) {
		size_t outs = 0, ins = 0;

		for (end = from; end < count && compare_rows(&sorted[from], &sorted[end]) == 0;
		     end++) {
			bool is_in = sorted[end].cell->is_in_place;
			struct bench_row *row = &rows[row_count + (is_in ? ins++ : outs++)];

			*(is_in ? &row->in : &row->out) = sorted[end].cell;
		}
		row_count += outs > ins ? outs : ins;
	}
	return row_count;
}

static bool is_same_block(const struct bench_row *a, const struct bench_row *b)
{
	struct sorted_cell one = { .cell = bench_row_cell(a), .turn = bench_row_cell(a)->function };
	struct sorted_cell two = { .cell = bench_row_cell(b), .turn = bench_row_cell(b)->function };

	return compare_blocks(&one, &two) == 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* As many digits as fit, like nccl-tests. */
static void put_number(struct sink *sink, double value, int width)
{
	char text[32];

	for (int digits = 2; digits >= 0; digits--)
		if (text_format(text, (size_t)width + 1, "%*.*f", width, digits, value)) {
			sink_format(sink, "  %s", text);
			return;
		}
	sink_format(sink, "  %*.*e", width, width >= 7 ? 1 : 0, value);
}

static void put_percentiles(struct bench_block *block, const struct bench_cell *cell,
			    const struct bench_figures *figures)
{
	const double values[] = { figures->p50, figures->p90, figures->p99, figures->least,
				  figures->most };

	for (size_t i = 0; i < ARRAY_LENGTH(values); i++) {
		/* A loop has no percentiles. */
		bool has_calls = cell != NULL && cell->mode != BENCH_LOOP && figures->count > 0;

		if (has_calls && !isnan(values[i]))
			put_number(block->sink, values[i] / 1000, 7);
		else
			sink_format(block->sink, "  %7s", "N/A");
		block->unsupported += has_calls && isnan(values[i]);
	}
}

static void put_model(struct bench_block *block, const struct bench_cell *cell, double time_ns)
{
	double model_ns = cell != NULL ? block->options->model_ns[cell - block->run->cells] : 0;

	if (model_ns > 0 && isfinite(model_ns))
		put_number(block->sink, model_ns / 1000, 7);
	else
		sink_format(block->sink, "  %7s", "N/A");
	if (model_ns > 0 && isfinite(model_ns) && time_ns > 0)
		put_number(block->sink, (model_ns / time_ns - 1) * 100, 6);
	else
		sink_format(block->sink, "  %6s", "N/A");
}

/* NULL: this place was not measured. */
static enum status put_measure(struct bench_block *block, const struct bench_cell *cell)
{
	struct sink *sink = block->sink;
	struct bench_figures figures = { 0 };
	enum status status = OK;
	double time_ns = 0;

	if (cell != NULL)
		status = bench_cell_figures(cell, block->options->over, &figures);
	if (status != OK)
		return status;
	if (cell != NULL)
		time_ns = block->options->is_median ? figures.p50 : figures.mean;
	if (time_ns > 0) {
		put_number(sink, time_ns / 1000, 7);
		put_number(sink, bench_algbw(cell, time_ns), 6);
		put_number(sink, bench_busbw(cell, time_ns), 6);
		block->busbw_sum += bench_busbw(cell, time_ns);
		block->measures++;
	} else {
		sink_format(sink, "  %7s  %6s  %6s", "N/A", "N/A", "N/A");
		block->untimed += cell != NULL;
	}
	if (cell == NULL || cell->wrong == BENCH_UNCHECKED)
		sink_format(sink, "  %6s", "N/A");
	else
		sink_format(sink, "  %6" PRIu64, cell->wrong);
	block->wrong += cell != NULL && cell->wrong != BENCH_UNCHECKED && cell->wrong > 0;
	block->unchecked += cell != NULL && cell->wrong == BENCH_UNCHECKED;
	if (block->options->has_percentiles)
		put_percentiles(block, cell, &figures);
	if (block->options->model_ns != NULL)
		put_model(block, cell, time_ns);
	return OK;
}

static enum status put_row(struct bench_block *block, const struct bench_row *row)
{
	const struct bench_cell *cell = bench_row_cell(row);
	enum status status;

	sink_format(block->sink, "%12" PRIu64 "  %12" PRIu64 "  %8s  %6s  %6" PRId32, cell->bytes,
		    cell->count, bench_table_type(cell->datatype), bench_redop_name(cell->redop),
		    cell->root);
	status = put_measure(block, row->out);
	if (status == OK)
		status = put_measure(block, row->in);
	sink_byte(block->sink, '\n');
	return status;
}

static enum status put_block(struct bench_block *block)
{
	enum status status = OK;

	bench_table_head(block);
	for (size_t i = 0; i < block->count && status == OK; i++)
		status = put_row(block, &block->rows[i]);
	bench_table_foot(block);
	return status;
}

enum status bench_table_write(struct sink *sink, const struct bench_run *run,
			      const struct bench_table_options *options)
{
	struct sorted_cell *sorted = calloc(run->cell_count + 1, sizeof(*sorted));
	struct bench_row *rows = calloc(run->cell_count + 1, sizeof(*rows));
	enum status status = sorted != NULL && rows != NULL ? OK : ERR_NO_SPACE;
	size_t count = 0, to;

	if (status == OK) {
		sort_cells(run, sorted);
		count = pair_cells(sorted, run->cell_count, rows);
		bench_table_start(sink, run);
	}
	for (size_t from = 0; from < count && status == OK; from = to) {
		struct bench_block block = { .sink = sink, .run = run, .options = options };

		for (to = from + 1; to < count && is_same_block(&rows[from], &rows[to]);)
			to++;
		block.rows = &rows[from];
		block.count = to - from;
		block.is_first = from == 0;
		status = put_block(&block);
	}
	free(sorted);
	free(rows);
	return status != OK ? status : sink->status;
}

enum { WIDTH_USUAL = 80, WIDTH_LEAST = 30, WIDTH_MOST = 400, BINS_USUAL = 16, BAR_LEAST = 4 };

const char *bench_cell_words(char to[static BENCH_CELL_TEXT], const struct bench_cell *cell)
{
	char bytes[UNITS_TEXT], redop[16] = "", root[24] = "", path[48] = "";

	if (cell->redop != BENCH_NO_REDOP)
		text_format(redop, sizeof(redop), " %s", bench_redop_name(cell->redop));
	if (cell->root >= 0)
		text_format(root, sizeof(root), ", root %" PRId32, cell->root);
	if (cell->algorithm != 0 && cell->protocol != 0)
		text_format(path, sizeof(path), ", %s/%s", op_algorithm_name(cell->algorithm),
			    op_protocol_name(cell->protocol));
	else if (cell->algorithm != 0 || cell->protocol != 0)
		text_format(path, sizeof(path), ", %s",
			    cell->algorithm ? op_algorithm_name(cell->algorithm)
					    : op_protocol_name(cell->protocol));
	text_format(to, BENCH_CELL_TEXT, "%s %s %s%s%s, %s, %s%s%s",
		    op_function_name(cell->function), units_bytes(bytes, cell->bytes),
		    op_datatype_name(cell->datatype), redop, root,
		    cell->is_in_place ? "in place" : "out of place", bench_mode_name(cell->mode),
		    path, cell->peers != NULL ? ", pairs" : "");
	return to;
}

/* A bar in eighths of a character, padded to `width`. A value above 0 is always visible. */
static void put_bar(struct sink *sink, double part, size_t width, bool is_ascii)
{
	/* U+258F to U+2589: one to seven eighths, from the left. */
	static const char *const eighths[] = { "",
					       "\342\226\217",
					       "\342\226\216",
					       "\342\226\215",
					       "\342\226\214",
					       "\342\226\213",
					       "\342\226\212",
					       "\342\226\211" };
	size_t length = (size_t)lround(part * (double)width * 8), whole;

	if (length == 0 && part > 0)
		length = 1;
	if (is_ascii)
		length = (length + 7) / 8 * 8;
	whole = length / 8;
	for (size_t i = 0; i < whole; i++)
		sink_text(sink, is_ascii ? "#" : "\342\226\210");
	sink_text(sink, eighths[length % 8]);
	sink_repeat(sink, ' ', width - whole - (length % 8 != 0));
}

static void put_bins(struct sink *sink, const struct bench_bins *bins, size_t width, bool is_ascii)
{
	char edges[BENCH_BINS_MAX + 1][PLOT_VALUE_TEXT];
	size_t widest = 0, label, digits;
	uint64_t most = 1;
	char text[32];

	for (size_t i = 0; i <= bins->bins; i++) {
		size_t length = strlen(bench_plot_value(edges[i], bins->edges[i], PLOT_NS));

		widest = length > widest ? length : widest;
	}
	for (size_t i = 0; i < bins->bins; i++)
		most = bins->counts[i] > most ? bins->counts[i] : most;
	text_format(text, sizeof(text), "%" PRIu64, most);
	digits = strlen(text);
	/* "  41.2 us to 43.0 us  ####  96" */
	label = 2 + widest + 4 + widest + 2;
	for (size_t i = 0; i < bins->bins; i++) {
		size_t used = label + digits + 1;

		sink_format(sink, "  %*s to %*s  ", (int)widest, edges[i], (int)widest,
			    edges[i + 1]);
		put_bar(sink, (double)bins->counts[i] / (double)most,
			width > used + BAR_LEAST ? width - used : BAR_LEAST, is_ascii);
		sink_format(sink, " %*" PRIu64 "\n", (int)digits, bins->counts[i]);
	}
}

enum status bench_histogram_cell(struct sink *sink, const struct bench_cell *cell,
				 const struct bench_histogram_options *options)
{
	double *times = calloc((size_t)cell->calls + 1, sizeof(*times));
	char words[BENCH_CELL_TEXT], median[PLOT_VALUE_TEXT];
	struct bench_figures figures;
	struct bench_bins bins;
	size_t count;

	if (times == NULL)
		return ERR_NO_SPACE;
	count = bench_call_times(cell, BENCH_GPU, options->over, times);
	sink_text(sink, bench_cell_words(words, cell));
	if (count == 0) {
		sink_text(sink, ": no times of single calls\n");
	} else {
		figures = bench_figures_of(times, count);
		sink_format(sink, ": %zu %s, median %s\n", count,
			    text_which(count, "call", "calls"),
			    bench_plot_value(median, figures.p50, PLOT_NS));
		bench_bins_of(times, count,
			      bench_within(options->bins, BINS_USUAL, 1, BENCH_BINS_MAX), &bins);
		put_bins(sink, &bins,
			 bench_within(options->width, WIDTH_USUAL, WIDTH_LEAST, WIDTH_MOST),
			 options->is_ascii);
	}
	free(times);
	return sink->status;
}

enum status bench_histogram_write(struct sink *sink, const struct bench_run *run,
				  const struct bench_histogram_options *options)
{
	enum status status = sink->status;

	for (size_t i = 0; i < run->cell_count && status == OK; i++) {
		if (i > 0)
			sink_byte(sink, '\n');
		status = bench_histogram_cell(sink, &run->cells[i], options);
	}
	return status;
}

/*
 * Rows come rank by rank within a cell, so everything except a call's times repeats over many rows: those columns
 * are written as one run of a dictionary code, the times as values.
 */

/* Columns of a cell, then of a rank, then of a call; only the last kind has a value per row. */
enum column {
	COLUMN_RESULT = 0,
	COLUMN_RANK = 16,
	COLUMN_PEER = 17,
	COLUMN_CALL = 24,
	COLUMNS = 29
};

#define CELL(kind, member) kind, FIELD_AT(bench_cell, member)
#define RANK(kind, member) kind, FIELD_AT(bench_rank, member)
#define CALL(member) FIELD_UINT64, FIELD_AT(bench_call, member)
#define TIMES(type, is_nullable) type, PARQUET_DELTA, is_nullable, 0

static const struct {
	struct parquet_column column;
	enum bench_field_kind kind; /* type of the source field; FIELD_OWN: not a field */
	size_t offset;
	size_t size;
} columns[COLUMNS] = {
	[COLUMN_RESULT] = { { "result", PARQUET_UINT32, 0, false, 0 }, FIELD_OWN, 0, 0 },
	{ { "function", PARQUET_STRING, 0, false, 0 }, CELL(FIELD_FUNCTION, function) },
	{ { "bytes", PARQUET_UINT64, 0, false, 0 }, CELL(FIELD_UINT64, bytes) },
	{ { "count", PARQUET_UINT64, 0, false, 0 }, CELL(FIELD_UINT64, count) },
	{ { "datatype", PARQUET_STRING, 0, true, 0 }, CELL(FIELD_DATATYPE, datatype) },
	{ { "redop", PARQUET_STRING, 0, true, 0 }, CELL(FIELD_REDOP, redop) },
	{ { "root", PARQUET_INT32, 0, true, 0 }, CELL(FIELD_INT32, root) },
	{ { "mode", PARQUET_STRING, 0, false, 0 }, CELL(FIELD_MODE, mode) },
	{ { "in_place", PARQUET_BOOL, 0, false, 0 }, CELL(FIELD_BOOL, is_in_place) },
	{ { "algorithm", PARQUET_STRING, 0, true, 0 }, CELL(FIELD_ALGORITHM, algorithm) },
	{ { "protocol", PARQUET_STRING, 0, true, 0 }, CELL(FIELD_PROTOCOL, protocol) },
	{ { "chosen_algorithm", PARQUET_STRING, 0, true, 0 },
	  CELL(FIELD_ALGORITHM, chosen_algorithm) },
	{ { "chosen_protocol", PARQUET_STRING, 0, true, 0 },
	  CELL(FIELD_PROTOCOL, chosen_protocol) },
	{ { "grouped_sends", PARQUET_BOOL, 0, false, 0 }, CELL(FIELD_BOOL, is_grouped_sends) },
	{ { "ranks", PARQUET_INT32, 0, false, 0 }, CELL(FIELD_INT32, nranks) },
	{ { "wrong", PARQUET_UINT64, 0, true, 0 }, CELL(FIELD_WRONG, wrong) },
	[COLUMN_RANK] = { { "rank", PARQUET_INT32, 0, false, 0 }, FIELD_OWN, 0, 0 },
	[COLUMN_PEER] = { { "peer", PARQUET_INT32, 0, true, 0 }, FIELD_OWN, 0, 0 },
	{ { "host", PARQUET_STRING, 0, false, 0 }, RANK(FIELD_TEXT, host) },
	{ { "node", PARQUET_INT32, 0, false, 0 }, RANK(FIELD_INT32, node) },
	{ { "device", PARQUET_INT32, 0, false, 0 }, RANK(FIELD_INT32, device) },
	{ { "pid", PARQUET_INT32, 0, false, 0 }, RANK(FIELD_INT32, pid) },
	{ { "gpu", PARQUET_STRING, 0, false, 0 }, RANK(FIELD_TEXT, gpu_name) },
	{ { "gpu_uuid", PARQUET_STRING, 0, false, 0 }, RANK(FIELD_TEXT, gpu_uuid) },
	[COLUMN_CALL] = { { "call", TIMES(PARQUET_UINT32, false) }, FIELD_OWN, 0, 0 },
	{ { "begin_time", TIMES(PARQUET_TIME_NS, false) }, CALL(begin_ns) },
	{ { "gpu_ns", TIMES(PARQUET_UINT64, true) }, CALL(gpu_ns) },
	{ { "issue_ns", TIMES(PARQUET_UINT64, false) }, CALL(issue_ns) },
	{ { "done_ns", TIMES(PARQUET_UINT64, true) }, CALL(done_ns) },
};

struct writer {
	struct parquet *parquet;
	const struct bench_run *run;
	uint32_t coded; /* pieces in this row group: no column has more codes */
	struct parquet_column columns[COLUMNS];
	uint64_t values[PARQUET_ROWS_AT_ONCE];
};

/* ---- what repeats ------------------------------------------------------------------------------ */

/* -1 means none and is only possible in nullable columns. */
static uint16_t code_signed(struct parquet *parquet, enum column column, int32_t number)
{
	return number < 0 && columns[column].column.is_nullable
		       ? parquet_code_null(parquet, column)
		       : parquet_code_number(parquet, column, (uint64_t)(int64_t)number);
}

static uint16_t code_name(struct parquet *parquet, enum column column, uint8_t number)
{
	/* "No reduction" has a name, too. */
	const char *name = number != 0 ? bench_field_name(columns[column].kind, number) : NULL;

	return name != NULL ? parquet_code_text(parquet, column, name)
			    : parquet_code_null(parquet, column);
}

static uint16_t code_field(struct parquet *parquet, enum column column, const void *object)
{
	const void *from = (const char *)object + columns[column].offset;
	char text[BENCH_TEXT_BYTES];

	switch (columns[column].kind) {
	case FIELD_TEXT:
		return parquet_code_text(parquet, column,
					 bench_text_clean(text, from, columns[column].size));
	case FIELD_INT32:
		return code_signed(parquet, column, *(const int32_t *)from);
	case FIELD_BOOL:
		return parquet_code_number(parquet, column, *(const bool *)from);
	case FIELD_WRONG:
		if (*(const uint64_t *)from == BENCH_UNCHECKED)
			return parquet_code_null(parquet, column);
		/* fallthrough */
	case FIELD_UINT64:
		return parquet_code_number(parquet, column, *(const uint64_t *)from);
	default:
		return code_name(parquet, column, *(const uint8_t *)from);
	}
}

static uint16_t code_of(const struct writer *writer, enum column column,
			const struct bench_cell *cell, int32_t rank)
{
	switch (column) {
	case COLUMN_RESULT:
		return parquet_code_number(writer->parquet, column,
					   (uint64_t)(cell - writer->run->cells));
	case COLUMN_RANK:
		return code_signed(writer->parquet, column, rank);
	case COLUMN_PEER:
		return code_signed(writer->parquet, column,
				   cell->peers != NULL ? cell->peers[rank] : -1);
	default:
		return code_field(writer->parquet, column,
				  column < COLUMN_RANK ? (const void *)cell
						       : &writer->run->ranks[rank]);
	}
}

/* ---- rows -------------------------------------------------------------------------------------- */

/* Some calls of one rank. */
static void put_piece(struct writer *writer, const struct bench_cell *cell, int32_t rank,
		      uint32_t first, uint32_t rows)
{
	const struct parquet_run run = { .rows = rows, .entry = 0 };

	for (enum column column = 0; column < COLUMN_CALL; column++) {
		uint16_t code = code_of(writer, column, cell, rank);

		parquet_put_runs(writer->parquet, column, &run, 1, &code);
	}
	for (enum column column = COLUMN_CALL; column < COLUMNS; column++) {
		for (uint32_t i = 0; i < rows; i++) {
			const char *call = (const char *)bench_cell_call(cell, rank, first + i);

			if (column == COLUMN_CALL)
				writer->values[i] = first + i;
			else
				memcpy(&writer->values[i], call + columns[column].offset,
				       sizeof(writer->values[i]));
		}
		parquet_put_values(writer->parquet, column, writer->values, rows);
	}
	parquet_end_rows(writer->parquet, rows);
	/* Dictionaries end with the row group, so none overflows. */
	if (++writer->coded == PARQUET_DICTIONARY_MAX - 1 ||
	    parquet_is_group_full(writer->parquet)) {
		parquet_end_group(writer->parquet);
		writer->coded = 0;
	}
}

static void parquet_put_cell(struct writer *writer, const struct bench_cell *cell)
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

static void parquet_put_pairs(struct parquet *parquet, const struct bench_run *run,
			      uint64_t without)
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

	for (size_t i = 0; writer != NULL && i < COLUMNS; i++)
		writer->columns[i] = columns[i].column;
	if (writer != NULL)
		writer->parquet = parquet_new(sink, writer->columns, COLUMNS);
	if (writer != NULL && writer->parquet != NULL) {
		writer->run = run;
		for (size_t i = 0; i < run->cell_count; i++) {
			if (run->cells[i].calls_of != NULL)
				parquet_put_cell(writer, &run->cells[i]);
			without += run->cells[i].calls_of == NULL;
		}
		parquet_put_pairs(writer->parquet, run, without);
		status = parquet_finish(writer->parquet);
	}
	if (writer != NULL)
		parquet_free(writer->parquet);
	free(writer);
	return status;
}
