/* Expected bandwidth in all formats: the input as is, and as rows of a table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/op_layout.h"
#include "fuzz/fuzz_main.h"
#include "import/expected.h"

static const char head[] =
	"# Collective test starting: all_reduce_perf\n#  Rank 3 Group\n"
	"# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";

static void read_expected(const char *text, size_t length)
{
	static const uint64_t sizes[] = { 0, 1, 4096, 1 << 20, UINT64_MAX };
	struct expected_value value;
	struct expected expected;

	expected_init(&expected);
	expected_add_memory(&expected, text, length, OP_ALL_GATHER);
	expected_finish(&expected);
	for (size_t i = 0; i < expected.count; i++) {
		const struct expected_row *row = &expected.rows[i];

		if (row->function == 0 || row->function >= OP_FUNCTIONS || row->bytes == 0 ||
		    row->time_ns == 0 || row->nranks < 0 || !isfinite(row->busbw))
			abort();
		if (!expected_find(&expected, row->function, row->bytes, row->nranks, &value) ||
		    value.how != 0 || value.time_ns != (double)row->time_ns)
			abort();
		for (size_t j = 0; j < 5 && i < 8; j++)
			if (!expected_find(&expected, row->function, sizes[j], 7, &value) ||
			    !isfinite(value.time_ns) || value.time_ns < 0)
				abort();
	}
	expected_release(&expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(sizeof(head) + size);

	memcpy(text, head, sizeof(head) - 1);
	if (size > 0)
		memcpy(text + sizeof(head) - 1, data, size);
	read_expected(text, sizeof(head) - 1 + size);
	read_expected(text + sizeof(head) - 1, size);
	free(text);
	return 0;
}
