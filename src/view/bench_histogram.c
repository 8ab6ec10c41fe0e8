#include "view/bench_histogram.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/op.h"
#include "common/text.h"
#include "view/bench_plot.h"

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

/* A bar of eighths of a character, padded to `width`. What is not nothing is seen. */
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

static size_t within(size_t value, size_t usual, size_t least, size_t most)
{
	size_t wanted = value != 0 ? value : usual;

	return wanted < least ? least : wanted > most ? most : wanted;
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
		bench_bins_of(times, count, within(options->bins, BINS_USUAL, 1, BENCH_BINS_MAX),
			      &bins);
		put_bins(sink, &bins, within(options->width, WIDTH_USUAL, WIDTH_LEAST, WIDTH_MOST),
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
