#include "output/table.h"

#include <string.h>

#include "tests/tap.h"

static int is_text(struct sink *sink, const char *wanted)
{
	int is_same = strcmp(sink_string(sink), wanted) == 0;

	if (!is_same)
		printf("# got:\n%s# wanted:\n%s", sink_string(sink), wanted);
	sink_release(sink);
	return is_same;
}

static int is_written(const struct report_grid *grid, unsigned int width, const char *wanted)
{
	struct sink sink;

	sink_init_memory(&sink);
	EXPECT(report_grid_write(grid, &sink, width, NULL) == OK);
	return is_text(&sink, wanted);
}

static void fill(struct report_grid *grid)
{
	report_grid_init(grid);
	report_grid_column(grid, "NAME", TABLE_LEFT, 4, 0);
	report_grid_column(grid, "LEAST", TABLE_RIGHT, 0, 3);
	report_grid_column(grid, "NOTHING", TABLE_RIGHT, 0, 1);
	report_grid_column(grid, "MOST", TABLE_RIGHT, 0, 2);
	report_grid_cell(grid, "a name");
	report_grid_cellf(grid, "%d", 1);
	report_grid_cell(grid, "-");
	report_grid_cell(grid, "1000");
	report_grid_note(grid, "a note of %d words", 4);
	report_grid_cell(grid, "b");
	report_grid_cell(grid, "-");
	report_grid_cell(grid, "-");
	report_grid_cell(grid, "2");
}

static void test_columns(void)
{
	struct report_grid_left_out left_out = { .count = 0 };
	struct report_grid grid;
	struct sink sink;

	fill(&grid);
	EXPECT_THAT("a column without values is omitted silently",
		    is_written(&grid, 0,
			       "NAME    LEAST  MOST\n"
			       "a name      1  1000\n"
			       "      a note of 4 words\n"
			       "b           -     2\n"));
	EXPECT_THAT("names are cut before columns are omitted", is_written(&grid, 17,
									   "NAME  LEAST  MOST\n"
									   "a n~      1  1000\n"
									   "      a note of 4\n"
									   "      words\n"
									   "b         -     2\n"));
	EXPECT_THAT("the least important column is omitted first, and named",
		    is_written(&grid, 16,
			       "NAME    MOST\n"
			       "a name  1000\n"
			       "      a note of\n"
			       "      4 words\n"
			       "b          2\n"
			       "(terminal too\n"
			       " narrow for\n"
			       " LEAST)\n"));
	EXPECT_THAT("columns of rank 0 always stay", is_written(&grid, 3,
								"NAME\n"
								"a n~\n"
								"      a\n"
								"      note\n"
								"      of\n"
								"      4\n"
								"      words\n"
								"b\n"
								"(terminal\n"
								" too\n"
								" narrow\n"
								" for\n"
								" LEAST,\n"
								" MOST)\n"));
	sink_init_memory(&sink);
	EXPECT(report_grid_write(&grid, &sink, 12, &left_out) == OK);
	EXPECT(report_grid_write(&grid, &sink, 12, &left_out) == OK);
	EXPECT_EQUAL(left_out.count, 1);
	EXPECT_THAT("omitted columns that are collected are not named below the table",
		    strstr(sink_string(&sink), "narrow") == NULL);
	sink_release(&sink);
	sink_init_memory(&sink);
	report_grid_say_left_out(&left_out, &sink, 0);
	EXPECT_THAT("but at the end, once", is_text(&sink, "(terminal too narrow for LEAST)\n"));
	report_grid_release(&grid);
}

static void test_bounds(void)
{
	struct report_grid grid;

	report_grid_init(&grid);
	EXPECT_THAT("an empty grid writes nothing", is_written(&grid, 10, ""));
	for (int i = 0; i < REPORT_GRID_COLUMNS + 5; i++)
		report_grid_column(&grid, "C", TABLE_LEFT, 0, 0);
	EXPECT_EQUAL(grid.table.count, REPORT_GRID_COLUMNS);
	for (int i = 0; i < 100 * REPORT_GRID_COLUMNS; i++)
		report_grid_cell(&grid, "x");
	EXPECT(!grid.table.is_broken);
	report_grid_release(&grid);
}

int main(void)
{
	test_columns();
	test_bounds();
	return tap_done();
}
