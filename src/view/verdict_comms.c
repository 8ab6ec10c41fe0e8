#include "view/verdict_comms.h"

#include <inttypes.h>

#include "common/text.h"
#include "view/table.h"

enum { ROWS = 4 }; /* --all shows the rest */

static void put_comm(struct table *table, const struct job *job, const struct scene_comm *comm)
{
	const struct job_comm *of = &job->comms[comm->comm];
	char number[UNITS_TEXT];

	table_cell(table, of->label);
	if (of->nranks > 0)
		table_cellf(table, "%d", of->nranks);
	else
		table_cell(table, "?");
	table_cellf(table, "%u", comm->open);
	table_cellf(table, "%u", comm->inside);
	if (comm->function[0] == '\0')
		table_cell(table, "-");
	else if (comm->number > 0)
		table_cellf(table, "%s %" PRIu64, comm->function, comm->number);
	else
		table_cell(table, comm->function);
	table_cell(table, comm->age_ns > 0 ? units_duration(number, comm->age_ns) : "-");
	if (comm->least_issued > comm->most_issued)
		table_cell(table, "?");
	else if (comm->least_issued == comm->most_issued)
		table_cellf(table, "%" PRIu64, comm->most_issued);
	else
		table_cellf(table, "%" PRIu64 "-%" PRIu64, comm->least_issued, comm->most_issued);
}

enum status verdict_comms_text(struct sink *sink, const struct verdict_look *look,
			       const struct verdict_text_options *options)
{
	static const struct table_column columns[] = {
		{ "COMMUNICATOR", TABLE_LEFT, 8 }, { "RANKS", TABLE_RIGHT, 0 },
		{ "SEEN", TABLE_RIGHT, 0 },	   { "INSIDE", TABLE_RIGHT, 0 },
		{ "OLDEST", TABLE_LEFT, 8 },	   { "FOR", TABLE_RIGHT, 0 },
		{ "ISSUED", TABLE_RIGHT, 0 },
	};
	const struct scene *scene = look->scene;
	size_t count = 0, shown;
	struct table *table = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	enum status status;

	if (table == NULL)
		return ERR_NO_SPACE;
	/* Those that nobody is in stand at the end. */
	while (count < scene->comm_count && (options->has_all || scene->comms[count].inside > 0))
		count++;
	/* One line that says that one is left out is as long as that one. */
	shown = options->has_all || count <= ROWS + 1 ? count : ROWS;
	for (size_t i = 0; i < shown; i++)
		put_comm(table, look->job, &scene->comms[i]);
	sink_text(sink, "\n");
	status = table_write(table, sink, options->width);
	table_free(table);
	if (shown < count)
		sink_format(sink, "... and %zu more: --all\n", count - shown);
	return status;
}
