/* Limits and failures of the writer. tests/export/parquet.t reads its files. */
#include "output/parquet.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "tests/tap.h"

static const struct parquet_column columns[] = {
	{ "number", PARQUET_UINT64, PARQUET_DELTA, false, 0 },
	{ "name", PARQUET_STRING, 0, true, 0 },
};

static void put(struct parquet *parquet, uint64_t first, size_t rows)
{
	static const uint16_t entries[PARQUET_ROWS_AT_ONCE];
	uint64_t values[PARQUET_ROWS_AT_ONCE];
	uint16_t code = parquet_code_text(parquet, 1, "tp");

	for (size_t i = 0; i < rows; i++)
		values[i] = hash_word(1, first + i);
	parquet_put_values(parquet, 0, values, rows);
	parquet_put_codes(parquet, 1, entries, &code, rows);
	parquet_end_rows(parquet, rows);
}

static int has(const struct sink *sink, const char *text)
{
	return memmem(sink->bytes, sink->used, text, strlen(text)) != NULL;
}

static void test_file(void)
{
	struct sink sink;
	struct parquet *parquet;
	uint32_t footer;

	sink_init_memory(&sink);
	parquet = parquet_new(&sink, columns, 2);
	if (!EXPECT(parquet != NULL))
		return;
	put(parquet, 0, 10);
	parquet_pair(parquet, "ringside.lost", "17");
	EXPECT(parquet_finish(parquet) == OK);
	parquet_free(parquet);
	EXPECT_THAT("the file starts and ends with PAR1",
		    memcmp(sink.bytes, "PAR1", 4) == 0 &&
			    memcmp(sink.bytes + sink.used - 4, "PAR1", 4) == 0);
	memcpy(&footer, sink.bytes + sink.used - 8, 4);
	EXPECT_THAT("the footer's length is within the file", footer + 12 < sink.used);
	EXPECT_THAT("the footer names the writer", has(&sink, "ringside version "));
	EXPECT_THAT("key and value are in the footer",
		    has(&sink, "ringside.lost") && has(&sink, "17"));
	sink_release(&sink);
}

static void test_groups(void)
{
	struct parquet *parquet;
	uint64_t rows = 0;
	struct sink sink;

	sink_init_fd(&sink, open("/dev/null", O_WRONLY | O_CLOEXEC));
	parquet = parquet_new(&sink, columns, 2);
	if (!EXPECT(parquet != NULL))
		return;
	while (!parquet_is_group_full(parquet) && rows < 2 * PARQUET_GROUP_ROWS) {
		put(parquet, rows, PARQUET_ROWS_AT_ONCE);
		rows += PARQUET_ROWS_AT_ONCE;
	}
	EXPECT_EQUAL(rows, PARQUET_GROUP_ROWS);
	parquet_end_group(parquet);
	EXPECT_THAT("after its end a row group is empty", !parquet_is_group_full(parquet));
	parquet_end_group(parquet);
	EXPECT_THAT("empty row groups are not written", parquet_finish(parquet) == OK);
	parquet_free(parquet);
	close(sink.fd);
	sink_release(&sink);
}

static void test_failures(void)
{
	struct parquet *parquet;
	struct sink sink;

	sink_init_fd(&sink, open("/dev/full", O_WRONLY | O_CLOEXEC));
	parquet = parquet_new(&sink, columns, 2);
	if (!EXPECT(parquet != NULL))
		return;
	for (unsigned int i = 0; i < 40; i++)
		put(parquet, i, PARQUET_ROWS_AT_ONCE);
	parquet_end_group(parquet);
	EXPECT_THAT("a full disk is an error", parquet_status(parquet) == ERR_SYSTEM);
	EXPECT_THAT("and parquet_finish() returns it",
		    parquet_finish(parquet) == ERR_SYSTEM && sink.error == ENOSPC);
	parquet_free(parquet);
	parquet_free(NULL);
	close(sink.fd);
	sink_release(&sink);
}

int main(void)
{
	test_file();
	test_groups();
	test_failures();
	return tap_done();
}
