#include "view/profilers_text.h"

#include "view/profilers_tables.h"
#include "view/table.h"

static void write_head(struct sink *sink, const struct profilers_comparison *comparison,
		       unsigned int width)
{
	char text[PROFILERS_PLACE_TEXT];

	table_wrap(sink, "Profilers compared", "", 0, width);
	if (comparison->command[0] != '\0')
		table_wrap(sink, comparison->command, "  $ ", 4, width);
	table_wrap(sink, profilers_place_text(text, comparison), "  ", 2, width);
	table_wrap(sink, profilers_amount_text(text, comparison), "  ", 2, width);
	for (size_t i = 1; i < comparison->plugin_count; i++) {
		const struct profilers_plugin *plugin = &comparison->plugins[i];

		sink_format(sink, "  %s: %s (output: %s)\n", plugin->label, plugin->path,
			    profilers_kind_name(plugin->kind));
	}
}

static enum status write_table(struct sink *sink, const struct profilers_comparison *comparison,
			       enum profilers_table which, unsigned int width)
{
	struct report_grid grid;
	enum status status = OK;

	report_grid_init(&grid);
	profilers_table_fill(&grid, comparison, which);
	if (grid.used > 0 || grid.is_broken) {
		sink_format(sink, "\n%s\n\n", profilers_table_title(which));
		status = report_grid_write(&grid, sink, width, NULL);
		if (profilers_table_words(which)[0] != '\0') {
			sink_text(sink, "\n");
			table_wrap(sink, profilers_table_words(which), "", 0, width);
		}
	}
	report_grid_release(&grid);
	return status;
}

static void write_lines(struct sink *sink, const char *title,
			const char lines[][PROFILERS_TEXT_BYTES], size_t count, unsigned int width)
{
	if (count > 0)
		sink_format(sink, "\n%s\n\n", title);
	for (size_t i = 0; i < count; i++)
		table_wrap(sink, lines[i], "- ", 2, width);
}

enum status profilers_text_write(struct sink *sink, const struct profilers_comparison *comparison,
				 unsigned int width)
{
	enum status status = OK;

	write_head(sink, comparison, width);
	for (unsigned int i = 0; i <= PROFILERS_TABLE_TRAINING && status == OK; i++)
		status = write_table(sink, comparison, i, width);
	write_lines(sink, "Not run", comparison->not_run, comparison->not_run_count, width);
	write_lines(sink, "To know", comparison->notes, comparison->note_count, width);
	if (comparison->notes_lost > 0)
		sink_format(sink, "- and %zu notes more, for which there was no room\n",
			    comparison->notes_lost);
	return status != OK ? status : sink->status;
}
