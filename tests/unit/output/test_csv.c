#include "output/csv.h"

#include <string.h>

#include "tests/tap.h"

static int is_cell(const char *text, const char *wanted)
{
	struct sink sink;
	int is_same;

	sink_init_memory(&sink);
	csv_text(&sink, text);
	is_same = strcmp(sink_string(&sink), wanted) == 0;
	if (!is_same)
		printf("#   got %s, wanted %s\n", sink_string(&sink), wanted);
	sink_release(&sink);
	return is_same;
}

int main(void)
{
	struct sink sink;

	EXPECT_THAT("plain text stays plain", is_cell("AllReduce 1", "AllReduce 1"));
	EXPECT_THAT("an empty text is a pair of quotes", is_cell("", "\"\""));
	EXPECT_THAT("a comma needs quotes", is_cell("a,b", "\"a,b\""));
	EXPECT_THAT("a quote is doubled", is_cell("a \"b\" c", "\"a \"\"b\"\" c\""));
	EXPECT_THAT("quotes alone", is_cell("\"\"", "\"\"\"\"\"\""));
	EXPECT_THAT("a line break stays, in quotes", is_cell("a\nb\r", "\"a\nb\r\""));
	EXPECT_THAT("other scripts need no quotes",
		    is_cell("gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"));
	sink_init_memory(&sink);
	csv_line(&sink);
	EXPECT_THAT("a line ends with CR LF", strcmp(sink_string(&sink), "\r\n") == 0);
	sink_release(&sink);
	return tap_done();
}
