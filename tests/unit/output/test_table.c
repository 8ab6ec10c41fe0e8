#include "output/table.h"

#include <string.h>

#include "tests/tap.h"

static const struct table_column columns[] = {
	{ "NAME", TABLE_LEFT, 4 },
	{ "COUNT", TABLE_RIGHT, 0 },
	{ "WHERE", TABLE_LEFT, 5 },
};

static int is_written(struct table *table, unsigned int width, const char *wanted)
{
	struct sink sink;
	int is_same;

	sink_init_memory(&sink);
	is_same = table_write(table, &sink, width) == OK && strcmp(sink_string(&sink), wanted) == 0;
	if (!is_same)
		printf("# got:\n%s# wanted:\n%s", sink_string(&sink), wanted);
	sink_release(&sink);
	return is_same;
}

static void add_row(struct table *table, const char *name, int count, const char *where)
{
	table_cell(table, name);
	table_cellf(table, "%d", count);
	table_cell(table, where);
}

static void test_layout(void)
{
	struct table *table = table_new(columns, 3);

	EXPECT_THAT("a table without rows writes nothing", is_written(table, 0, ""));
	add_row(table, "a", 1, "here");
	add_row(table, "longer", 1000000, "there or elsewhere");
	EXPECT_THAT("columns are aligned, without trailing spaces",
		    is_written(table, 0,
			       "NAME      COUNT  WHERE\n"
			       "a             1  here\n"
			       "longer  1000000  there or elsewhere\n"));
	EXPECT_THAT("the widest column is cut first", is_written(table, 26,
								 "NAME      COUNT  WHERE\n"
								 "a             1  here\n"
								 "longer  1000000  there or~\n"));
	EXPECT_THAT("columns keep their minimum width", is_written(table, 10,
								   "NAME    COUNT  WHERE\n"
								   "a           1  here\n"
								   "lon~  1000000  ther~\n"));
	table_free(table);
}

static void test_strange_cells(void)
{
	struct table *table = table_new(columns, 3);

	add_row(table, "\x1b[31m\n", 1, "\xc3\xa9t\xc3\xa9");
	add_row(table, "\xc3\xa9t\xc3\xa9s et hivers", 2, "x");
	EXPECT_THAT("control bytes become ?, characters count as one column",
		    is_written(table, 0,
			       "NAME            COUNT  WHERE\n"
			       "?[31m?              1  \xc3\xa9t\xc3\xa9\n"
			       "\xc3\xa9t\xc3\xa9s et hivers      2  x\n"));
	EXPECT_THAT("a cut never splits a character", is_written(table, 18,
								 "NAME  COUNT  WHERE\n"
								 "?[3~      1  \xc3\xa9t\xc3\xa9\n"
								 "\xc3\xa9t\xc3\xa9~      2  x\n"));
	table_free(table);
}

static void test_notes(void)
{
	struct table *table = table_new(columns, 3);

	add_row(table, "a", 1, "here");
	table_note(table, "one %s and a half", "two");
	add_row(table, "b", 2, "there");
	EXPECT_THAT("a note is below its row", is_written(table, 0,
							  "NAME  COUNT  WHERE\n"
							  "a         1  here\n"
							  "      one two and a half\n"
							  "b         2  there\n"));
	EXPECT_THAT("a note is wrapped", is_written(table, 18,
						    "NAME  COUNT  WHERE\n"
						    "a         1  here\n"
						    "      one two and\n"
						    "      a half\n"
						    "b         2  there\n"));
	table_free(table);
}

int main(void)
{
	test_layout();
	test_strange_cells();
	test_notes();
	EXPECT_THAT("a table without columns is rejected", table_new(columns, 0) == NULL);
	return tap_done();
}
