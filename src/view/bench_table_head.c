/* The comments around the rows. A line of a comment never ends early: control bytes become '?'. */
#include <inttypes.h>
#include <string.h>

#include "common/op.h"
#include "common/op_layout.h"
#include "view/bench_table_parts.h"

enum { PAIRS_SHOWN = 8 };

const char *bench_table_test(uint8_t function)
{
	switch (function) {
	case OP_ALL_REDUCE:
		return "all_reduce_perf";
	case OP_ALL_GATHER:
		return "all_gather_perf";
	case OP_REDUCE_SCATTER:
		return "reduce_scatter_perf";
	case OP_BROADCAST:
		return "broadcast_perf";
	case OP_REDUCE:
		return "reduce_perf";
	case OP_ALL_TO_ALL:
		return "alltoall_perf";
	case OP_GATHER:
		return "gather_perf";
	case OP_SCATTER:
		return "scatter_perf";
	case OP_SEND_RECV:
		return "sendrecv_perf";
	default:
		return "unknown";
	}
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

static void put_text(struct sink *sink, const char *text)
{
	for (; *text != '\0'; text++)
		sink_byte(sink, (unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
}

static void put_comment(struct sink *sink, const char *key, const char *text)
{
	sink_format(sink, "# %s: ", key);
	put_text(sink, text);
	sink_byte(sink, '\n');
}

/* ---- of the run ------------------------------------------------------------------------------ */

void bench_table_start(struct sink *sink, const struct bench_run *run)
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
		put_text(sink, length > 0 ? rank->host : "unknown");
		sink_format(sink, " device %2" PRId32 " [", rank->device);
		put_text(sink, rank->pci);
		sink_text(sink, "] ");
		put_text(sink, rank->gpu_name);
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

/* "nThread" tells readers that ranks follow: it stands only where they do. */
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
		sink_text(sink, "one time around all calls, divided by their number\n");
	else
		sink_format(sink, "%s of the calls, each the %s ranks, by CUDA events\n",
			    options->is_median ? "median" : "mean",
			    (unsigned int)options->over < 3 ? overs[options->over] : "?");
	if (cell->algorithm != 0 || cell->protocol != 0)
		sink_format(sink, "# NCCL was made to take: algorithm %s, protocol %s\n",
			    cell->algorithm ? op_algorithm_name(cell->algorithm) : "any",
			    cell->protocol ? op_protocol_name(cell->protocol) : "any");
	if (cell->is_grouped_sends)
		sink_text(sink,
			  "# Made of Sends and Recvs in a group: this NCCL has no such call\n");
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

		/* Both of a pair name each other: the lower one tells. */
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

/* In the middle of `width`, which begins after `blanks`. Gives back the blanks up to its end. */
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

void bench_table_head(const struct bench_block *block)
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

void bench_table_foot(const struct bench_block *block)
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
			    "# %-20s : %" PRIu64 " percentiles; p90 takes 10 calls, p99 100\n",
			    "Too few calls", block->unsupported);
	sink_format(sink, "# %-20s : %g\n", "Avg bus bandwidth",
		    block->measures > 0 ? block->busbw_sum / (double)block->measures : 0);
	sink_format(sink, "#\n# Collective test concluded: %s\n", bench_table_test(cell->function));
}
