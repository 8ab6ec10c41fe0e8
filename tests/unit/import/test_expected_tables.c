/* Everything that is read from tables of bandwidth, as text: the cases of bandwidth_tables.txt. */
#include "common/op.h"
#include "import/expected.h"
#include "tests/support/shown_text.h"
#include "tests/tap.h"

static void take_case(const char *text, size_t length)
{
	struct expected expected;
	/* In memory that ends where the text ends: nothing behind it is read. */
	char *copy = malloc(length + 1);
	enum status status;

	memcpy(copy + 1, text, length);
	expected_init(&expected);
	status = expected_add_memory(&expected, copy + 1, length, 0);
	expected_finish(&expected);
	show("%s, %zu rows, %zu damaged, first in line %" PRIu64 ": %s%s\n", status_text(status),
	     expected.count, expected.damaged, expected.damaged_line,
	     expected.problem != NULL ? expected.problem : "none",
	     expected.is_gpu_shared ? ", GPUs shared" : "");
	for (size_t i = 0; i < expected.count; i++) {
		const struct expected_row *row = &expected.rows[i];

		show("%s of %" PRIu64 " bytes, datatype %u, %d ranks%s: %" PRIu64
		     " ns, algbw %.6f, busbw %.6f\n",
		     op_name(OP_NAMES_FUNCTION, row->function), row->bytes, row->datatype,
		     row->nranks, row->is_in_place ? " in place" : "", row->time_ns, row->algbw,
		     row->busbw);
	}
	show("\n");
	expected_release(&expected);
	free(copy);
}

int main(void)
{
	char *text = shown_file("tests/unit/import/bandwidth_tables.txt");

	shown_cases(text, take_case);
	free(text);
	EXPECT_THAT("each table is read as expected",
		    shown_is_expected("tests/unit/import/expected/bandwidth_tables.txt"));
	return tap_done();
}
