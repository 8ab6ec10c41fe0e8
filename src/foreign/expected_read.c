/* Which way of writing measured bandwidth down is it? One file for each; what they share is here. */
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/op.h"
#include "foreign/expected_parts.h"
#include "foreign/foreign.h"
#include "foreign/foreign_lines.h"

enum { TEXT_BYTES_FIRST = 1 << 20, TEXT_BYTES_MAX = 256 << 20 };

void expected_damage(struct expected *expected, uint64_t line, const char *problem)
{
	if (expected->damaged++ > 0)
		return;
	expected->damaged_line = line;
	expected->problem = problem;
}

enum status expected_add_row(struct expected *expected, struct expected_row row)
{
	struct expected_row *more;

	if (expected->count == EXPECTED_ROWS_MAX)
		return ERR_RANGE;
	if ((expected->count & (expected->count - 1)) == 0) {
		more = reallocarray(expected->rows, expected->count == 0 ? 1 : expected->count * 2,
				    sizeof(*more));
		if (more == NULL)
			return ERR_NO_SPACE;
		expected->rows = more;
	}
	row.algbw = (double)row.bytes / (double)row.time_ns;
	row.busbw = row.algbw * op_bus_factor(row.function, row.nranks);
	expected->rows[expected->count++] = row;
	return OK;
}

uint8_t expected_datatype(const char *name)
{
	static const char *const other[][2] = { { "half", "float16" },
						{ "float", "float32" },
						{ "double", "float64" },
						{ "f8e4m3", "float8e4m3" },
						{ "f8e5m2", "float8e5m2" } };
	int is_known;

	for (size_t i = 0; i < ARRAY_LENGTH(other); i++)
		if (strcmp(other[i][0], name) == 0)
			name = other[i][1];
	return op_name_find(OP_NAMES_DATATYPE, name, &is_known);
}

enum status expected_add_memory(struct expected *expected, const char *text, size_t length,
				uint8_t function)
{
	size_t probed = length < FOREIGN_PROBE_BYTES ? length : FOREIGN_PROBE_BYTES;
	size_t before = expected->count;
	enum status status;

	switch (foreign_probe(text, probed)) {
	case FOREIGN_NCCL_TESTS:
		status = expected_add_table(expected, text, length, function);
		break;
	case FOREIGN_NCCL_TESTS_JSON:
		status = expected_add_tests_json(expected, text, length, function);
		break;
	case FOREIGN_EXPECTED:
		status = expected_add_own_json(expected, text, length);
		break;
	default:
		return ERR_UNKNOWN;
	}
	return status == OK && expected->count == before ? ERR_FORMAT : status;
}

enum status expected_add_fd(struct expected *expected, int fd, uint8_t function)
{
	enum status status = OK;
	char *text = NULL;
	size_t got = 0;

	for (size_t size = TEXT_BYTES_FIRST; status == OK; size *= 4) {
		free(text);
		text = malloc(size);
		status = text != NULL ? foreign_lines_peek(fd, text, size, &got) : ERR_NO_SPACE;
		if (got < size || size >= TEXT_BYTES_MAX)
			break;
	}
	if (status == OK)
		status = expected_add_memory(expected, text, got, function);
	free(text);
	return status;
}
