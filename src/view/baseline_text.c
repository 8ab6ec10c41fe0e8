#include "view/baseline_text.h"

#include <inttypes.h>

#include "common/attributes.h"
#include "common/text.h"
#include "view/table.h"

static const struct table_column columns[] = {
	{ "COMMUNICATOR", TABLE_LEFT, 12 }, { "KIND", TABLE_LEFT, 0 },
	{ "RANKS", TABLE_RIGHT, 0 },	    { "OPERATION", TABLE_LEFT, 0 },
	{ "SIZE", TABLE_RIGHT, 0 },	    { "ALGORITHM", TABLE_LEFT, 4 },
	{ "CALLS", TABLE_RIGHT, 0 },	    { "TRANSFER", TABLE_RIGHT, 0 },
	{ "GB/s BUS", TABLE_RIGHT, 0 },
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
	/* With waiting it is no transfer alone. */
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
	sink_format(sink, "; %.0f %% of the time in collectives was waiting\n",
		    100 * baseline->wait_share);
	if (baseline->iterations > 0)
		sink_format(sink,
			    "%" PRIu64 " iterations of %" PRIu32 " operations, %s in the middle\n",
			    baseline->iterations, baseline->iteration_ops,
			    units_duration(text, (uint64_t)baseline->iteration_ns));
	sink_text(sink, "\n");
}

enum status baseline_text(struct sink *sink, const struct baseline *baseline, unsigned int width)
{
	struct table *table = table_new(columns, ARRAY_LENGTH(columns));
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
