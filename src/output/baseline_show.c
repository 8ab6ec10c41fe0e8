#include "output/baseline_show.h"

#include <inttypes.h>

#include "common/attributes.h"
#include "common/text.h"
#include "output/table.h"

static const struct table_column baseline_columns[] = {
	{ "COMMUNICATOR", TABLE_LEFT, 12 }, { "KIND", TABLE_LEFT, 0 },
	{ "RANKS", TABLE_RIGHT, 0 },	    { "OPERATION", TABLE_LEFT, 0 },
	{ "SIZE", TABLE_RIGHT, 0 },	    { "ALGORITHM", TABLE_LEFT, 4 },
	{ "CALLS", TABLE_RIGHT, 0 },	    { "TRANSFER", TABLE_RIGHT, 0 },
	{ "BUSBW", TABLE_RIGHT, 0 },
};

static void add_row(struct table *table, const struct baseline_row *row)
{
	char text[UNITS_TEXT];

	table_cell(table, row->comm_name[0] ? row->comm_name : "(no name)");
	table_cell(table, row->kind);
	table_cellf(table, "%d", row->nranks);
	table_cell(table, row->function);
	table_cell(table, row->size);
	table_cellf(table, "%s%s%s", row->algorithm, row->protocol[0] ? " " : "", row->protocol);
	table_cell(table, units_count(text, row->calls));
	/* Times of unmatched calls include waiting, so they are upper bounds. */
	table_cellf(table, "%s%s",
		    row->is_joined ? "" : "<= ", units_duration(text, (uint64_t)row->mean_ns));
	if (row->busbw > 0)
		table_cellf(table, "%s%.2f", row->is_joined ? "" : ">= ", row->busbw / 1e9);
	else
		table_cell(table, "-");
}

static void write_head(struct sink *sink, const struct baseline *baseline)
{
	char text[UNITS_TEXT];

	if (baseline->jobs > 1)
		sink_format(sink, "%" PRIu32 " jobs", baseline->jobs);
	else
		sink_format(sink, "job %s", baseline->job[0] ? baseline->job : "(no name)");
	sink_format(sink, ": %" PRIu32 " %s", baseline->ranks,
		    text_which(baseline->ranks, "rank", "ranks"));
	if (baseline->saved_wall_ns > 0)
		sink_format(sink, ", recorded until %s",
			    units_wall_time(text, baseline->saved_wall_ns));
	sink_format(sink, "; waiting was %.0f%% of collective time\n", 100 * baseline->wait_share);
	if (baseline->iterations > 0)
		sink_format(sink, "%" PRIu64 " %s of %" PRIu32 " %s, median %s\n",
			    baseline->iterations,
			    text_which(baseline->iterations, "iteration", "iterations"),
			    baseline->iteration_ops,
			    text_which(baseline->iteration_ops, "operation", "operations"),
			    units_duration(text, (uint64_t)baseline->iteration_ns));
	sink_text(sink, "\n");
}

enum status baseline_text(struct sink *sink, const struct baseline *baseline, unsigned int width)
{
	struct table *table = table_new(baseline_columns, ARRAY_LENGTH(baseline_columns));
	enum status status;

	if (table == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < baseline->count; i++)
		add_row(table, &baseline->rows[i]);
	write_head(sink, baseline);
	status = table_write(table, sink, width);
	table_free(table);
	return status;
}

static void put_row(struct json *json, const struct baseline_row *row)
{
	json_object(json);
	json_put_string(json, "comm_name", row->comm_name);
	json_put_string(json, "kind", row->kind);
	json_put_string(json, "function", row->function);
	json_put_string(json, "size", row->size);
	json_put_string(json, "algorithm", row->algorithm);
	json_put_string(json, "protocol", row->protocol);
	json_put_signed(json, "nranks", row->nranks > 0 ? row->nranks : 0);
	json_put_signed(json, "nnodes", row->nnodes > 0 ? row->nnodes : 0);
	json_put_unsigned(json, "calls", row->calls);
	json_put_unsigned(json, "communicators", row->comms);
	json_put_bool(json, "is_joined", row->is_joined);
	json_put_double(json, "busbw_bytes_per_second", row->busbw);
	json_put_double(json, "mean_ns", row->mean_ns);
	json_put_double(json, "median_ns", row->median_ns);
	json_put_double(json, "p10_ns", row->p10_ns);
	json_put_double(json, "p99_ns", row->p99_ns);
	json_put_double(json, "wire_ns", row->wire_ns);
	json_put_double(json, "consume_ns", row->consume_ns);
	json_put_double(json, "channels", row->channels);
	json_put_double(json, "log_mean", row->log_mean);
	json_put_double(json, "log_deviation", row->log_deviation);
	json_put_double(json, "samples", row->samples);
	json_end(json);
}

void baseline_json(struct json *json, const struct baseline *baseline)
{
	json_object(json);
	json_put_string(json, "format", "ringside-baseline");
	json_put_unsigned(json, "version", BASELINE_VERSION);
	json_put_string(json, "ringside", RINGSIDE_VERSION);
	json_put_string(json, "job", baseline->job);
	json_put_unsigned(json, "jobs", baseline->jobs);
	json_put_unsigned(json, "ranks", baseline->ranks);
	json_put_unsigned(json, "recorded_until_wall_ns", baseline->saved_wall_ns);
	json_put_double(json, "wait_share", baseline->wait_share);
	json_put_unsigned(json, "iterations", baseline->iterations);
	json_put_unsigned(json, "iteration_operations", baseline->iteration_ops);
	json_put_double(json, "iteration_median_ns", baseline->iteration_ns);
	json_put_double(json, "iteration_busy_median_ns", baseline->iteration_busy_ns);
	json_put_array(json, "rows");
	for (size_t i = 0; i < baseline->count; i++)
		put_row(json, &baseline->rows[i]);
	json_end(json);
	json_end(json);
}
