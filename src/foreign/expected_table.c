/*
 * nccl-tests on stdout: a comment with the name of the test, comments with the ranks, a comment that
 * names the columns, rows. Columns changed over its releases, so it is their names that count:
 *
 *	# Collective test starting: all_reduce_perf
 *	#  Rank  0 Group  0 Pid   1234 on node01 device  0 [0000:1b:00] ...
 *	#       size         count      type   redop    root     time   algbw   busbw  #wrong     time ...
 *	    33554432       8388608     float     sum      -1   412.95   81.26  142.20       0   410.11 ...
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/op_layout.h"
#include "foreign/expected_parts.h"

enum { WORD_BYTES = 64, WORDS_MAX = 32 };

enum column { COLUMN_OTHER, COLUMN_SIZE, COLUMN_TYPE, COLUMN_TIME, COLUMN_WRONG };

struct words {
	char list[WORDS_MAX][WORD_BYTES];
	size_t count;
};

struct table {
	struct expected *expected;
	uint8_t function;
	int32_t nranks;
	uint8_t columns[WORDS_MAX]; /* enum column */
	size_t column_count;	    /* 0: no table has begun */
	const char *unfit;	    /* `ringside bench` says why these rows are no measure; NULL */
	uint64_t line;
};

static void split(const char *text, size_t length, struct words *words)
{
	size_t at = 0, from;

	words->count = 0;
	while (words->count < WORDS_MAX) {
		while (at < length && (text[at] == ' ' || text[at] == '\t' || text[at] == '\r'))
			at++;
		from = at;
		while (at < length && text[at] != ' ' && text[at] != '\t' && text[at] != '\r')
			at++;
		if (from == at)
			return;
		snprintf(words->list[words->count++], WORD_BYTES, "%.*s",
			 (int)(at - from < WORD_BYTES ? at - from : WORD_BYTES), text + from);
	}
}

static uint8_t column_of(const char *name)
{
	if (strcmp(name, "size") == 0)
		return COLUMN_SIZE;
	if (strcmp(name, "type") == 0)
		return COLUMN_TYPE;
	if (strcmp(name, "time") == 0 || strcmp(name, "cputime") == 0)
		return COLUMN_TIME;
	if (strcmp(name, "#wrong") == 0)
		return COLUMN_WRONG;
	return COLUMN_OTHER;
}

static bool word_is(const struct words *words, size_t at, const char *text)
{
	return at < words->count && strcmp(words->list[at], text) == 0;
}

static bool number_of(const char *word, double *number)
{
	char *end;

	*number = strtod(word, &end);
	return end != word && *end == '\0' && isfinite(*number) && *number >= 0;
}

static void take_comment(struct table *table, const struct words *words)
{
	double rank;

	if (word_is(words, 1, "nThread"))
		table->nranks = 0;
	if (word_is(words, 1, "Collective") && word_is(words, 3, "starting:") && words->count > 4) {
		table->function = expected_function(words->list[4], strlen(words->list[4]));
		table->unfit = NULL;
	}
	if (word_is(words, 1, "NCCL") && word_is(words, 2, "was") && word_is(words, 3, "made"))
		table->unfit = "an algorithm or protocol that NCCL did not choose";
	if (word_is(words, 1, "Pairs:"))
		table->unfit = "pairs that had the machine to themselves";
	if (word_is(words, 1, "Rank") && words->count > 2 && number_of(words->list[2], &rank) &&
	    rank < EXPECTED_RANKS_MAX && rank + 1 > table->nranks)
		table->nranks = (int32_t)rank + 1;
	if (word_is(words, 1, "size") && word_is(words, 2, "count")) {
		table->column_count = words->count - 1;
		for (size_t i = 1; i < words->count; i++)
			table->columns[i - 1] = column_of(words->list[i]);
	}
}

/* One measurement of a row: from a column "time" to the next one. */
static enum status take_measure(struct table *table, const struct words *words, size_t shift,
				size_t at, struct expected_row row)
{
	double time_us, wrong;

	/* Not measured in this place. */
	if (at - shift < words->count && strcmp(words->list[at - shift], "N/A") == 0)
		return OK;
	if (at - shift >= words->count || !number_of(words->list[at - shift], &time_us) ||
	    time_us <= 0 || time_us > 1e12) {
		expected_damage(table->expected, table->line, "a time that is none");
		return OK;
	}
	for (size_t i = at + 1; i < table->column_count && table->columns[i] != COLUMN_TIME; i++)
		if (table->columns[i] == COLUMN_WRONG && i - shift < words->count &&
		    number_of(words->list[i - shift], &wrong) && wrong > 0) {
			expected_damage(table->expected, table->line, "a test with wrong results");
			return OK;
		}
	row.time_ns = (uint64_t)(time_us * 1000 + 0.5);
	return row.time_ns > 0 ? expected_add_row(table->expected, row) : OK;
}

static enum status take_row(struct table *table, const struct words *words)
{
	struct expected_row row = { .function = table->function, .nranks = table->nranks };
	size_t first = 0, second = 0, shift = 0;
	enum status status = OK;
	char *end;

	for (size_t i = 0; i < table->column_count; i++) {
		if (table->columns[i] == COLUMN_TIME)
			*(first == 0 ? &first : &second) = i;
		if (i >= words->count)
			continue;
		if (table->columns[i] == COLUMN_SIZE) {
			errno = 0;
			row.bytes = strtoull(words->list[i], &end, 10);
			if (*end != '\0' || errno != 0 || words->list[i][0] == '-')
				return OK; /* some other line in between */
		}
		if (table->columns[i] == COLUMN_TYPE)
			row.datatype = expected_datatype(words->list[i]);
	}
	if (row.function == OP_FUNCTION_UNKNOWN)
		expected_damage(table->expected, table->line,
				"it does not say which test it is: name the file after it, "
				"all_reduce_perf.txt "
				"or so, or use nccl-tests 2.17.3 or later");
	if (row.function == OP_FUNCTION_UNKNOWN || row.bytes == 0 || first == 0)
		return OK;
	if (table->unfit != NULL) {
		expected_damage(table->expected, table->line, table->unfit);
		return OK;
	}
	/* Without out-of-place results their columns are blank. */
	if (second > 0 && words->count <= table->column_count - (second - first))
		shift = second - first;
	else
		status = take_measure(table, words, 0, first, row);
	row.is_in_place = true;
	if (second > 0 && status == OK)
		status = take_measure(table, words, shift, second, row);
	return status;
}

/* mpirun --tag-output puts "[1,0]<stdout>:" before a line. */
static size_t tag_length(const char *text, size_t length)
{
	const char *end = length > 0 && text[0] == '[' ? memmem(text, length, ">:", 2) : NULL;

	return end != NULL ? (size_t)(end - text) + 2 : 0;
}

enum status expected_add_table(struct expected *expected, const char *text, size_t length,
			       uint8_t function)
{
	struct table table = { .expected = expected, .function = function };
	struct words *words = malloc(sizeof(*words));
	enum status status = words != NULL ? OK : ERR_NO_SPACE;
	size_t at = 0;

	while (at < length && status == OK) {
		const char *newline = memchr(text + at, '\n', length - at);
		size_t end = newline != NULL ? (size_t)(newline - text) : length;
		size_t from = at + tag_length(text + at, end - at);

		table.line++;
		split(text + from, end - from, words);
		/* "#wrong" may stand before a blank; "#" alone begins a comment. */
		if (word_is(words, 0, "#"))
			take_comment(&table, words);
		else if (table.column_count > 0 && words->count > 0 && words->list[0][0] >= '0' &&
			 words->list[0][0] <= '9')
			status = take_row(&table, words);
		at = end + 1;
	}
	free(words);
	return status;
}
