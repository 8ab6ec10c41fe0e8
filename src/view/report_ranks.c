/* The table of ranks: who waits least is who the others wait for. */
#include <stdlib.h>

#include "common/text.h"
#include "view/report_text.h"
#include "view/report_words.h"

enum { RANKS_ALL = 20, RANKS_EACH = 8, HOST_LEAST = 8 };

static double wait_share(const struct tally_row *row)
{
	return row->joined_ns ? tally_wait_share(row) : -1;
}

/* By the share of waiting; those of which it is not known come last; equal ones by rank. */
static int by_waiting(const void *left, const void *right)
{
	const struct tally_row *a = *(const struct tally_row *const *)left;
	const struct tally_row *b = *(const struct tally_row *const *)right;
	bool is_known_a = a->joined_ns > 0, is_known_b = b->joined_ns > 0;

	if (is_known_a != is_known_b)
		return is_known_a ? -1 : 1;
	if (wait_share(a) != wait_share(b))
		return wait_share(a) < wait_share(b) ? -1 : 1;
	return a->key.rank < b->key.rank ? -1 : a->key.rank > b->key.rank;
}

static void add_columns(struct report_grid *grid, const struct timeline_report *report)
{
	report_grid_column(grid, "RANK", TABLE_RIGHT, 0, 0);
	if (report->job.group_count > 1)
		report_grid_column(grid, "JOB", TABLE_LEFT, HOST_LEAST, 7);
	report_grid_column(grid, "HOST", TABLE_LEFT, HOST_LEAST, 5);
	report_grid_column(grid, "GPU", TABLE_RIGHT, 0, 9);
	report_grid_column(grid, "STATE", TABLE_LEFT, 0, 8);
	report_grid_column(grid, "BUSY", TABLE_RIGHT, 0, 4);
	report_figures_columns(grid, report_has_mixed_sources(&report->total));
}

static void add_rank(struct report_grid *grid, const struct timeline_report *report,
		     const struct tally_row *row)
{
	const struct job_rank *rank = &report->job.ranks[row->key.rank];
	const struct timeline_rank *figures = &report->ranks[row->key.rank];
	char share[REPORT_SHARE];

	report_grid_cell(grid, rank->label);
	if (report->job.group_count > 1)
		report_grid_cell(grid, report->job.groups[rank->group].name[0]
					       ? report->job.groups[rank->group].name
					       : "-");
	report_grid_cell(grid, report->job.hosts[rank->host].name[0]
				       ? report->job.hosts[rank->host].name
				       : "-");
	if (rank->gpu >= 0)
		report_grid_cellf(grid, "%d", rank->gpu);
	else
		report_grid_cell(grid, "-");
	report_grid_cell(grid, recording_life_name(rank->life));
	if (figures->is_busy_known)
		report_grid_cellf(grid, "%s%s", report_estimate_mark(row),
				  report_share(share, figures->busy_share, 1));
	else
		report_grid_cell(grid, "-");
	report_figures_cells(grid, report, row, report_has_mixed_sources(&report->total));
}

/* The first `head` rows and the last `tail` of the first `known` ones. */
static enum status write_ranks(struct sink *sink, const struct timeline_report *report,
			       const struct tally_row **rows, size_t head, size_t tail,
			       size_t known, unsigned int width,
			       struct report_grid_left_out *left_out)
{
	struct report_grid grid;
	enum status status;

	report_grid_init(&grid);
	add_columns(&grid, report);
	for (size_t i = 0; i < head; i++)
		add_rank(&grid, report, rows[i]);
	if (tail > 0)
		report_grid_note(&grid, "... %zu %s between them (--all shows all) ...",
				 known - head - tail,
				 text_which(known - head - tail, "rank", "ranks"));
	for (size_t i = known - tail; i < known; i++)
		add_rank(&grid, report, rows[i]);
	status = report_grid_write(&grid, sink, width, left_out);
	report_grid_release(&grid);
	return status;
}

enum status report_text_ranks(struct sink *sink, const struct timeline_report *report,
			      const struct report_text_options *options,
			      struct report_grid_left_out *left_out)
{
	size_t count = report->by_rank.count, known = 0;
	const struct tally_row **rows = calloc(count + 1, sizeof(*rows));
	char text[UNITS_TEXT];
	enum status status;

	if (rows == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < count; i++) {
		rows[i] = &report->by_rank.rows[i];
		known += rows[i]->joined_ns > 0;
	}
	if (options->has_all || count <= RANKS_ALL) {
		status = write_ranks(sink, report, rows, count, 0, count, options->width, left_out);
	} else if (known >= 2 * (size_t)RANKS_EACH) {
		qsort(rows, count, sizeof(*rows), by_waiting);
		sink_format(sink, "The %d that waited least (others waited for them) and most.\n",
			    RANKS_EACH);
		status = write_ranks(sink, report, rows, RANKS_EACH, RANKS_EACH, known,
				     options->width, left_out);
	} else {
		status = write_ranks(sink, report, rows, RANKS_ALL, 0, RANKS_ALL, options->width,
				     left_out);
		sink_format(sink, "(%s ranks in all: --all shows them)\n",
			    units_count(text, count));
	}
	free(rows);
	return status;
}
