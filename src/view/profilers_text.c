#include "view/profilers_text.h"

#include "common/attributes.h"
#include "common/text.h"
#include "output/table.h"
#include "view/profilers_figures.h"
#include "view/profilers_short.h"
#include "view/profilers_tables.h"

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

static void write_short(struct sink *sink, const struct profilers_comparison *comparison,
			unsigned int width)
{
	char text[PROFILERS_SHORT_SENTENCE], first[PROFILERS_SHORT_TEXT + 8];

	sink_text(sink, "\nIn short\n\n");
	for (size_t i = 1; i < comparison->plugin_count; i++) {
		text_format(first, sizeof(first), "- %s: ", comparison->plugins[i].label);
		profilers_short(text, comparison, i);
		table_wrap(sink, text[0] != '\0' ? text : "nothing is known", first, 2, width);
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

/* A figure, and the tables that have its numbers, up to and without `end`. */
static const struct {
	enum profilers_figure figure;
	enum profilers_table first;
	enum profilers_table end;
} parts[] = {
	{ PROFILERS_FIGURE_COMPLETE, PROFILERS_TABLE_COMPLETE, PROFILERS_TABLE_ACCURACY },
	{ PROFILERS_FIGURE_ACCURACY, PROFILERS_TABLE_ACCURACY, PROFILERS_TABLE_OVERHEAD },
	{ PROFILERS_FIGURE_OVERHEAD, PROFILERS_TABLE_OVERHEAD, PROFILERS_TABLE_TRAINING },
	{ PROFILERS_FIGURE_TRAINING, PROFILERS_TABLE_TRAINING, PROFILERS_TABLE_ACCURACY_CELLS },
};

static enum status write_part(struct sink *sink, const struct profilers_comparison *comparison,
			      size_t part, unsigned int width)
{
	enum profilers_figure figure = parts[part].figure;
	enum status status = OK;

	if (profilers_figure_is_there(comparison, figure)) {
		sink_format(sink, "\n%s\n", profilers_figure_title(figure));
		status = profilers_figure_text(sink, comparison, figure, width);
		sink_text(sink, "\n");
		table_wrap(sink, profilers_figure_words(figure), "", 0, width);
	}
	for (unsigned int i = parts[part].first; i < parts[part].end && status == OK; i++)
		status = write_table(sink, comparison, i, width);
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
	write_short(sink, comparison, width);
	for (size_t i = 0; i < ARRAY_LENGTH(parts) && status == OK; i++)
		status = write_part(sink, comparison, i, width);
	write_lines(sink, "Not run", comparison->not_run, comparison->not_run_count, width);
	write_lines(sink, "To know", comparison->notes, comparison->note_count, width);
	if (comparison->notes_lost > 0)
		sink_format(sink, "- and %zu notes more, for which there was no room\n",
			    comparison->notes_lost);
	return status != OK ? status : sink->status;
}
