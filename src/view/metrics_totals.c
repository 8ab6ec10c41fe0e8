/* Series of totals and links: rows, their labels once, and a family per value. */
#include "view/metrics_writer.h"

/* ---- totals ---------------------------------------------------------------------------------- */

static void fail(struct metrics_writer *writer, enum status status)
{
	if (writer->status == OK)
		writer->status = status;
}

static const char *function_text(const struct metrics_writer *writer, uint64_t number)
{
	return metrics_name_text(&writer->model, OP_NAMES_FUNCTION, (uint8_t)number);
}

/* Labels of the rows that are shown; the others have none and are dropped. */
static void keep_shown(struct metrics_writer *writer, struct metrics_rows *rows)
{
	size_t kept = 0;

	for (size_t i = 0; i < rows->count; i++)
		if (metrics_is_shown(writer, &writer->model.members[rows->rows[i].member]))
			rows->rows[kept++] = rows->rows[i];
	rows->count = kept;
}

static void begin_row(struct metrics_writer *writer, struct metrics_row *row)
{
	metrics_labels_begin(&writer->out, &row->labels);
	metrics_labels_copy(&writer->out, writer->model.members[row->member].labels);
}

/* What nobody measured has no sample: a counter of 0 would be read as no time, or as a bandwidth of 0. */
static bool is_known(enum metrics_family family, const struct metrics_row *row)
{
	switch (family) {
	case METRICS_OPERATION_BUS_BYTES:
		return row->bus_bytes > 0;
	case METRICS_OPERATION_TIMED_BYTES:
	case METRICS_OPERATION_SECONDS:
	case METRICS_ALGORITHM_SECONDS:
		return row->values[ROW_TIMED] > 0;
	default:
		return true;
	}
}

static void write_rows(struct metrics_writer *writer, enum metrics_family family,
		       const struct metrics_rows *rows, unsigned int value)
{
	metrics_family(&writer->out, family);
	for (size_t i = 0; i < rows->count; i++) {
		const struct metrics_row *row = &rows->rows[i];

		if (!is_known(family, row))
			continue;
		if (family == METRICS_OPERATION_BUS_BYTES)
			metrics_put_double(&writer->out, row->labels, row->bus_bytes);
		else if (family == METRICS_OPERATION_SECONDS || family == METRICS_ALGORITHM_SECONDS)
			metrics_put_seconds(&writer->out, row->labels, row->values[value]);
		else
			metrics_put_unsigned(&writer->out, row->labels, row->values[value]);
	}
}

static void write_sizes(struct metrics_writer *writer)
{
	struct metrics_rows rows = { 0 };
	struct metrics_out *out = &writer->out;
	size_t mark = metrics_labels_mark(out);

	fail(writer, metrics_rows_sizes(&rows, &writer->model));
	keep_shown(writer, &rows);
	for (size_t i = 0; i < rows.count; i++) {
		struct metrics_row *row = &rows.rows[i];

		begin_row(writer, row);
		metrics_label(out, "function", function_text(writer, row->what >> 8));
		metrics_label(out, "size", metrics_size_text(row->what & 0xff));
		metrics_labels_end(out, &row->labels);
	}
	write_rows(writer, METRICS_OPERATIONS, &rows, ROW_OPERATIONS);
	write_rows(writer, METRICS_OPERATION_BYTES, &rows, ROW_BYTES);
	write_rows(writer, METRICS_OPERATION_TIMED_BYTES, &rows, ROW_TIMED_BYTES);
	write_rows(writer, METRICS_OPERATION_BUS_BYTES, &rows, 0);
	write_rows(writer, METRICS_TIMED_OPERATIONS, &rows, ROW_TIMED);
	write_rows(writer, METRICS_OPERATION_SECONDS, &rows, ROW_TIME);
	writer->folded_sizes = rows.folded;
	metrics_labels_forget(out, mark);
	metrics_rows_release(&rows);
}

static void write_histogram(const struct metrics_row *row,
			    const struct metrics_histogram *histogram, void *context)
{
	struct metrics_writer *writer = context;
	struct metrics_labels labels;

	if (!metrics_is_shown(writer, &writer->model.members[row->member]))
		return;
	metrics_labels_begin(&writer->out, &labels);
	metrics_labels_copy(&writer->out, writer->model.members[row->member].labels);
	metrics_label(&writer->out, "function", function_text(writer, row->what));
	metrics_labels_end(&writer->out, &labels);
	metrics_put_histogram(&writer->out, labels, histogram);
	metrics_labels_forget(&writer->out, labels.at);
}

static void write_histograms(struct metrics_writer *writer)
{
	struct metrics_rows rows = { 0 };
	enum status status = metrics_rows_functions(&rows, &writer->model);

	metrics_family(&writer->out, METRICS_OPERATION_DURATION);
	if (status == OK)
		status = metrics_rows_histograms(&rows, &writer->model, write_histogram, writer);
	fail(writer, status);
	writer->folded_functions = rows.folded;
	metrics_rows_release(&rows);
}

static void write_choices(struct metrics_writer *writer)
{
	const struct metrics_model *model = &writer->model;
	struct metrics_rows rows = { 0 };
	struct metrics_out *out = &writer->out;
	size_t mark = metrics_labels_mark(out);

	fail(writer, metrics_rows_choices(&rows, model));
	keep_shown(writer, &rows);
	for (size_t i = 0; i < rows.count; i++) {
		struct metrics_row *row = &rows.rows[i];

		begin_row(writer, row);
		metrics_label(out, "function", function_text(writer, row->what >> 16));
		metrics_label(
			out, "algorithm",
			metrics_name_text(model, OP_NAMES_ALGORITHM, (uint8_t)(row->what >> 8)));
		metrics_label(out, "protocol",
			      metrics_name_text(model, OP_NAMES_PROTOCOL, (uint8_t)row->what));
		metrics_labels_end(out, &row->labels);
	}
	write_rows(writer, METRICS_ALGORITHM_OPERATIONS, &rows, ROW_OPERATIONS);
	write_rows(writer, METRICS_ALGORITHM_TIMED, &rows, ROW_TIMED);
	write_rows(writer, METRICS_ALGORITHM_SECONDS, &rows, ROW_TIME);
	writer->folded_choices = rows.folded;
	metrics_labels_forget(out, mark);
	metrics_rows_release(&rows);
}

void metrics_write_totals(struct metrics_writer *writer)
{
	write_sizes(writer);
	write_histograms(writer);
	write_choices(writer);
}

/* ---- links ----------------------------------------------------------------------------------- */

static const char *direction_name(const struct metrics_row *row)
{
	static const char *const names[] = { "send", "recv", "other", "other" };

	return names[row->what >> 32 & 3];
}

static void label_peer(struct metrics_out *out, const struct metrics_row *row)
{
	if ((uint32_t)row->what == METRICS_PEER_OTHER)
		metrics_label(out, "peer", "other");
	else
		metrics_label_number(out, "peer", (uint32_t)row->what);
}

static void write_link_waits(struct metrics_writer *writer, const struct metrics_rows *rows)
{
	static const char *const states[][3] = { { "gpu", "peer", "net" },
						 { "net", "flush", "gpu" },
						 { "other", NULL, NULL },
						 { "other", NULL, NULL } };
	struct metrics_out *out = &writer->out;

	metrics_family(out, METRICS_PROXY_WAIT);
	for (size_t i = 0; i < rows->count; i++) {
		const struct metrics_row *row = &rows->rows[i];

		for (unsigned int s = 0; s < 3 && states[row->what >> 32 & 3][s]; s++) {
			struct metrics_labels labels;

			metrics_labels_begin(out, &labels);
			metrics_labels_copy(out, writer->model.members[row->member].labels);
			metrics_label(out, "direction", direction_name(row));
			metrics_label(out, "state", states[row->what >> 32 & 3][s]);
			label_peer(out, row);
			metrics_labels_end(out, &labels);
			metrics_put_seconds(out, labels, row->values[ROW_WAITS + s]);
			metrics_labels_forget(out, labels.at);
		}
	}
}

void metrics_write_links(struct metrics_writer *writer)
{
	struct metrics_rows rows = { 0 };
	struct metrics_out *out = &writer->out;
	size_t mark = metrics_labels_mark(out);

	fail(writer, metrics_rows_links(&rows, &writer->model));
	keep_shown(writer, &rows);
	write_link_waits(writer, &rows);
	for (size_t i = 0; i < rows.count; i++) {
		struct metrics_row *row = &rows.rows[i];

		begin_row(writer, row);
		metrics_label(out, "direction", direction_name(row));
		label_peer(out, row);
		metrics_labels_end(out, &row->labels);
	}
	write_rows(writer, METRICS_PROXY_BYTES, &rows, ROW_LINK_BYTES);
	write_rows(writer, METRICS_PROXY_TRANSFERS, &rows, ROW_TRANSFERS);
	writer->folded_links = rows.folded;
	metrics_labels_forget(out, mark);
	metrics_rows_release(&rows);
}
