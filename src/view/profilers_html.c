#include "view/profilers_html.h"

#include <string.h>

#include "bench/bench_result.h"
#include "view/bench_page.h"
#include "view/profilers_figures.h"
#include "view/profilers_short.h"
#include "view/profilers_tables.h"

/* "-" in every row says nothing, as in the text. */
static bool is_column_shown(const struct report_grid *grid, size_t column)
{
	size_t rows = grid->used / grid->column_count;

	for (size_t row = 0; row < rows; row++)
		if (strcmp(grid->cells[row * grid->column_count + column], "-") != 0)
			return true;
	return column == 0;
}

static void write_rows(struct sink *sink, const struct report_grid *grid)
{
	for (size_t i = 0; i < grid->column_count; i++)
		if (is_column_shown(grid, i))
			bench_page_head(sink, grid->columns[i].title,
					grid->columns[i].align == TABLE_RIGHT);
	for (size_t row = 0; row < grid->used / grid->column_count; row++) {
		bench_page_row(sink);
		for (size_t i = 0; i < grid->column_count; i++)
			if (is_column_shown(grid, i))
				bench_page_cell(sink,
						grid->columns[i].align == TABLE_RIGHT ? PAGE_NUMBER
										      : PAGE_WORDS,
						"%s", grid->cells[row * grid->column_count + i]);
	}
}

/* Below the table, with the first two words of the row that each is about. */
static void write_notes(struct sink *sink, const struct report_grid *grid)
{
	if (grid->note_count == 0)
		return;
	bench_page_list(sink);
	for (size_t i = 0; i < grid->note_count; i++) {
		size_t row = grid->notes[i].row > 0 ? grid->notes[i].row - 1 : 0;

		bench_page_item(sink, "%s, %s: %s", grid->cells[row * grid->column_count],
				grid->cells[row * grid->column_count + 1], grid->notes[i].text);
	}
	bench_page_list_end(sink);
}

/* `is_folded`: for those who want it all. */
static enum status write_table(struct sink *sink, const struct profilers_comparison *comparison,
			       enum profilers_table which, bool is_folded)
{
	struct report_grid grid;
	enum status status = OK;

	report_grid_init(&grid);
	profilers_table_fill(&grid, comparison, which);
	if (grid.is_broken) {
		status = ERR_NO_SPACE;
	} else if (grid.used > 0) {
		if (is_folded) {
			sink_text(sink, "<details><summary>");
			bench_page_text(sink, profilers_table_title(which));
			sink_text(sink, "</summary>\n");
		}
		bench_page_table(sink, profilers_table_title(which));
		write_rows(sink, &grid);
		bench_page_table_end(sink);
		write_notes(sink, &grid);
		if (profilers_table_words(which)[0] != '\0')
			bench_page_paragraph(sink, "%s", profilers_table_words(which));
		if (is_folded)
			sink_text(sink, "</details>\n");
	}
	report_grid_release(&grid);
	return status;
}

static void write_head(struct sink *sink, const struct profilers_comparison *comparison)
{
	char text[PROFILERS_PLACE_TEXT];

	bench_page_section(sink, "what", "What was run");
	bench_page_paragraph(sink, "%s.", profilers_place_text(text, comparison));
	bench_page_paragraph(sink, "%s.", profilers_amount_text(text, comparison));
	if (comparison->command[0] != '\0') {
		sink_text(sink, "<p><code>$ ");
		bench_page_text(sink, comparison->command);
		sink_text(sink, "</code></p>\n");
	}
	bench_page_list(sink);
	for (size_t i = 1; i < comparison->plugin_count; i++)
		bench_page_item(sink, "%s: %s (output: %s)", comparison->plugins[i].label,
				comparison->plugins[i].path,
				profilers_kind_name(comparison->plugins[i].kind));
	bench_page_list_end(sink);
	bench_page_section_end(sink);
}

static void write_short(struct sink *sink, const struct profilers_comparison *comparison)
{
	char text[PROFILERS_SHORT_SENTENCE];

	bench_page_section(sink, "short", "In short");
	for (size_t i = 1; i < comparison->plugin_count; i++) {
		profilers_short(text, comparison, i);
		bench_page_lead(sink, "%s: %s.", comparison->plugins[i].label,
				text[0] != '\0' ? text : "nothing is known");
	}
	bench_page_section_end(sink);
}

static void write_lines(struct sink *sink, const char *id, const char *title,
			const char lines[][PROFILERS_TEXT_BYTES], size_t count, size_t lost)
{
	if (count == 0)
		return;
	bench_page_section(sink, id, title);
	bench_page_list(sink);
	for (size_t i = 0; i < count; i++)
		bench_page_item(sink, "%s", lines[i]);
	if (lost > 0)
		bench_page_item(sink, "and %zu more, for which there was no room", lost);
	bench_page_list_end(sink);
	bench_page_section_end(sink);
}

/* A figure, and the tables that have its numbers. */
static const struct {
	const char *id;
	enum profilers_figure figure;
	enum profilers_table tables[4];
	size_t table_count;
	size_t folded; /* of these, from here on */
} parts[] = {
	{ "completeness",
	  PROFILERS_FIGURE_COMPLETE,
	  { PROFILERS_TABLE_COMPLETE, PROFILERS_TABLE_BY_FUNCTION, PROFILERS_TABLE_BY_SIZE,
	    PROFILERS_TABLE_BY_RANK },
	  4,
	  1 },
	{ "accuracy",
	  PROFILERS_FIGURE_ACCURACY,
	  { PROFILERS_TABLE_ACCURACY, PROFILERS_TABLE_ACCURACY_CELLS },
	  2,
	  1 },
	{ "overhead",
	  PROFILERS_FIGURE_OVERHEAD,
	  { PROFILERS_TABLE_OVERHEAD, PROFILERS_TABLE_OVERHEAD_BY_SIZE,
	    PROFILERS_TABLE_OVERHEAD_CELLS },
	  3,
	  1 },
	{ "training", PROFILERS_FIGURE_TRAINING, { PROFILERS_TABLE_TRAINING }, 1, 1 },
};

static bool has_jobs(const struct profilers_comparison *comparison, size_t part)
{
	return profilers_figure_is_there(comparison, parts[part].figure) ||
	       (part == 0 && comparison->job_count > 0);
}

static enum status write_part(struct sink *sink, const struct profilers_comparison *comparison,
			      size_t part)
{
	enum profilers_figure figure = parts[part].figure;
	enum status status = OK;

	if (!has_jobs(comparison, part))
		return OK;
	bench_page_section(sink, parts[part].id, profilers_figure_title(figure));
	if (profilers_figure_is_there(comparison, figure)) {
		status = profilers_figure_write(sink, comparison, figure);
		bench_page_paragraph(sink, "%s", profilers_figure_words(figure));
	}
	for (size_t i = 0; i < parts[part].table_count && status == OK; i++)
		status = write_table(sink, comparison, parts[part].tables[i],
				     i >= parts[part].folded);
	bench_page_section_end(sink);
	return status;
}

enum status profilers_html_write(struct sink *sink, const struct profilers_comparison *comparison)
{
	enum status status = OK;

	bench_page_begin(sink, "NCCL profilers compared", "ringside bench profilers");
	write_short(sink, comparison);
	write_head(sink, comparison);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && status == OK; i++)
		status = write_part(sink, comparison, i);
	write_lines(sink, "not-run", "Not run", comparison->not_run, comparison->not_run_count, 0);
	write_lines(sink, "to-know", "To know", comparison->notes, comparison->note_count,
		    comparison->notes_lost);
	bench_page_end(sink);
	return status != OK ? status : sink->status;
}
