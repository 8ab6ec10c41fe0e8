/*
 * Reads measured bandwidths. nccl-tests prints to stdout a comment with the name of the test,
 * comments with the ranks, a comment with the column names, and rows. Columns changed over its
 * releases, so they are identified by name:
 *
 *	# Collective test starting: all_reduce_perf
 *	#  Rank  0 Group  0 Pid   1234 on node01 device  0 [0000:1b:00] ...
 *	#       size         count      type   redop    root     time   algbw   busbw  #wrong     time ...
 *	    33554432       8388608     float     sum      -1   412.95   81.26  142.20       0   410.11 ...
 */
#include "import/expected.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "import/foreign.h"
#include "import/json_scan.h"

enum { EXPECTED_ROWS_MAX = 1 << 20 };

/* No rank of any job has a higher number. */
enum { EXPECTED_RANKS_MAX = 1 << 24 };

/* A row that cannot be used: counted, and the first one is kept. `line` 0: unknown. */
static void expected_damage(struct expected *expected, uint64_t line, const char *problem)
{
	if (expected->damaged++ > 0)
		return;
	expected->damaged_line = line;
	expected->problem = problem;
}

/* Computes its bandwidths. */
static enum status expected_add_row(struct expected *expected, struct expected_row row)
{
	if (expected->count == EXPECTED_ROWS_MAX)
		return ERR_RANGE;
	if (!list_grow(&expected->rows, expected->count, sizeof(*expected->rows)))
		return ERR_NO_SPACE;
	row.algbw = (double)row.bytes / (double)row.time_ns;
	row.busbw = row.algbw * op_bus_factor(row.function, row.nranks);
	expected->rows[expected->count++] = row;
	return OK;
}

/* nccl-tests' "float" is NCCL's "float32". */
static uint8_t expected_datatype(const char *name)
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
	const char *unfit; /* why `ringside bench` excludes these rows; NULL: it does not */
	uint64_t line;
};

static void split_words(const char *text, size_t length, struct words *words)
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
		table->unfit = "pairs measured alone";
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

	/* Not measured in this variant. */
	if (at - shift < words->count && strcmp(words->list[at - shift], "N/A") == 0)
		return OK;
	if (at - shift >= words->count || !number_of(words->list[at - shift], &time_us) ||
	    time_us <= 0 || time_us > 1e12) {
		expected_damage(table->expected, table->line, "invalid time");
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
				return OK; /* an unrelated line in between */
		}
		if (table->columns[i] == COLUMN_TYPE)
			row.datatype = expected_datatype(words->list[i]);
	}
	if (row.function == OP_FUNCTION_UNKNOWN)
		expected_damage(table->expected, table->line,
				"unknown test: name the file after it, for example "
				"all_reduce_perf.txt "
				"(or use nccl-tests 2.17.3 or later)");
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

/* Reads the table format. */
static enum status expected_add_table(struct expected *expected, const char *text, size_t length,
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
		split_words(text + from, end - from, words);
		/* "#wrong" may follow a blank; "#" alone begins a comment. */
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

/*
 * nccl-tests' JSON (its option -J):
 *
 *	{"args":["./all_reduce_perf",...],"config":{"nthreads","ngpus","devices":[{"rank"},...]},
 *	 "results":[{"size","type","out_of_place":{"time","alg_bw","bus_bw","nwrong"},"in_place":{...}}]}
 *
 * Ours, and the output of `ringside bench --json`, which has the same keys and many more:
 *
 *	{"format":"ringside-expected","version":1,"ranks":8,"results":[{"function":"AllReduce",
 *	 "bytes":33554432,"time_ns":412950,"datatype":"float32","in_place":false}]}
 *
 * Results of a benchmark that do not apply to a job are left out: wrong results, a forced algorithm
 * or protocol, pairs that had the machine to themselves, results without a time.
 */

#define KEY JSON_SCAN_KEY_OF

struct document {
	struct expected *expected;
	struct json_scan scan;
	uint8_t function;
	int32_t nranks;
	uint64_t threads; /* 0: unknown */
	uint64_t gpus;
	uint64_t last_rank;
	size_t first_row; /* of this document in expected->rows */
	bool is_bench;	  /* written by `ringside bench` */
	enum status status;
};

/* The first argument is the program. */
static void read_args(struct document *document)
{
	enum json_scan_token token;
	char name[256] = "";
	const char *slash;
	bool is_first = true;

	if (!json_scan_enter(&document->scan, JSON_SCAN_ARRAY))
		return;
	while ((token = json_scan_next(&document->scan)) > JSON_SCAN_END &&
	       token != JSON_SCAN_ARRAY_END) {
		if (is_first)
			json_scan_text(&document->scan, name, sizeof(name));
		json_scan_skip(&document->scan);
		is_first = false;
	}
	slash = strrchr(name, '/');
	slash = slash != NULL ? slash + 1 : name;
	if (document->function == OP_FUNCTION_UNKNOWN)
		document->function = expected_function(slash, strlen(slash));
}

/* One entry per process, with the first of its ranks. */
static void read_devices(struct document *document)
{
	static const struct json_scan_key keys[] = { KEY("rank") };
	int key, hint;

	if (!json_scan_enter(&document->scan, JSON_SCAN_ARRAY))
		return;
	while (json_scan_next_object(&document->scan)) {
		uint64_t rank = 0;

		hint = 0;
		while ((key = json_scan_next_key(&document->scan, keys, ARRAY_LENGTH(keys),
						 &hint)) >= JSON_SCAN_KEY_UNKNOWN) {
			if (key == 0)
				json_scan_read_unsigned(&document->scan, &rank);
			else
				json_scan_skip(&document->scan);
		}
		if (rank > document->last_rank)
			document->last_rank = rank;
	}
}

static void read_config(struct document *document)
{
	static const struct json_scan_key keys[] = { KEY("nthreads"), KEY("ngpus"),
						     KEY("devices") };
	uint64_t ranks;
	int key, hint = 0;

	if (!json_scan_enter(&document->scan, JSON_SCAN_OBJECT))
		return;
	while ((key = json_scan_next_key(&document->scan, keys, ARRAY_LENGTH(keys), &hint)) >=
	       JSON_SCAN_KEY_UNKNOWN) {
		if (key == 0)
			json_scan_read_unsigned(&document->scan, &document->threads);
		else if (key == 1)
			json_scan_read_unsigned(&document->scan, &document->gpus);
		else if (key == 2)
			read_devices(document);
		else
			json_scan_skip(&document->scan);
	}
	if (document->threads > EXPECTED_RANKS_MAX || document->gpus > EXPECTED_RANKS_MAX ||
	    document->last_rank > EXPECTED_RANKS_MAX)
		return;
	ranks = document->last_rank + document->threads * document->gpus;
	document->nranks = ranks <= EXPECTED_RANKS_MAX ? (int32_t)ranks : 0;
}

static void read_measure(struct document *document, double *time_us, bool *is_wrong)
{
	static const struct json_scan_key keys[] = { KEY("time"), KEY("cpu_time"), KEY("nwrong") };
	int key, hint = 0;
	double wrong = 0;

	if (!json_scan_enter(&document->scan, JSON_SCAN_OBJECT))
		return;
	while ((key = json_scan_next_key(&document->scan, keys, ARRAY_LENGTH(keys), &hint)) >=
	       JSON_SCAN_KEY_UNKNOWN) {
		json_scan_next(&document->scan);
		if (key == 2 && json_scan_double(&document->scan, &wrong))
			*is_wrong = wrong > 0;
		else if (key >= 0)
			json_scan_double(&document->scan, time_us);
		json_scan_skip(&document->scan);
	}
}

static void add_measure(struct document *document, struct expected_row row, double time_us,
			bool is_wrong)
{
	if (document->status != OK || time_us == 0)
		return;
	if (is_wrong || !(time_us > 0) || time_us > 1e12 || row.bytes == 0) {
		expected_damage(document->expected, 0,
				is_wrong ? "a test with wrong results" : "invalid time");
		return;
	}
	row.time_ns = (uint64_t)(time_us * 1000 + 0.5);
	if (row.time_ns > 0)
		document->status = expected_add_row(document->expected, row);
}

static void read_result(struct document *document)
{
	static const struct json_scan_key keys[] = { KEY("size"), KEY("type"), KEY("out_of_place"),
						     KEY("in_place") };
	struct expected_row row = { 0 };
	double out_us = 0, in_us = 0;
	bool is_out_wrong = false, is_in_wrong = false;
	char type[32];
	int key, hint = 0;

	while ((key = json_scan_next_key(&document->scan, keys, ARRAY_LENGTH(keys), &hint)) >=
	       JSON_SCAN_KEY_UNKNOWN) {
		if (key == 0)
			json_scan_read_unsigned(&document->scan, &row.bytes);
		else if (key == 1) {
			type[0] = '\0';
			json_scan_read_text(&document->scan, type, sizeof(type));
			row.datatype = expected_datatype(type);
		} else if (key == 2)
			read_measure(document, &out_us, &is_out_wrong);
		else if (key == 3)
			read_measure(document, &in_us, &is_in_wrong);
		else
			json_scan_skip(&document->scan);
	}
	add_measure(document, row, out_us, is_out_wrong);
	row.is_in_place = true;
	add_measure(document, row, in_us, is_in_wrong);
}

static void read_results(struct document *document, void (*read)(struct document *))
{
	if (!json_scan_enter(&document->scan, JSON_SCAN_ARRAY))
		return;
	while (document->status == OK && json_scan_next_object(&document->scan))
		read(document);
}

/* The test and its ranks may come after the results. Rows of unknown tests are dropped. */
static void document_settle(struct document *document)
{
	struct expected *expected = document->expected;

	for (size_t i = document->first_row; i < expected->count; i++) {
		struct expected_row *row = &expected->rows[i];

		if (row->function == OP_FUNCTION_UNKNOWN)
			row->function = document->function;
		if (row->nranks == 0)
			row->nranks = document->nranks;
		row->busbw = row->algbw * op_bus_factor(row->function, row->nranks);
	}
	if (document->function != OP_FUNCTION_UNKNOWN)
		return;
	for (size_t i = document->first_row; i < expected->count; i++)
		if (expected->rows[i].function == OP_FUNCTION_UNKNOWN) {
			expected_damage(expected, 0,
					"unknown test: name the file after it, for example "
					"all_reduce_perf.json");
			expected->rows[i--] = expected->rows[--expected->count];
		}
}

/* A truncated file still has what came before. */
static enum status document_finish(struct document *document)
{
	if (document->scan.problem != NULL)
		expected_damage(document->expected, 0, document->scan.problem);
	document_settle(document);
	return document->status;
}

static enum status add_tests(struct document *document)
{
	static const struct json_scan_key keys[] = { KEY("args"), KEY("config"), KEY("results") };
	int key, hint = 0;

	json_scan_next(&document->scan);
	while ((key = json_scan_next_key(&document->scan, keys, ARRAY_LENGTH(keys), &hint)) >=
	       JSON_SCAN_KEY_UNKNOWN) {
		if (key == 0)
			read_args(document);
		else if (key == 1)
			read_config(document);
		else if (key == 2)
			read_results(document, read_result);
		else
			json_scan_skip(&document->scan);
	}
	return document_finish(document);
}

/* ---- our own JSON ---------------------------------------------------------------------------- */

/* What only a benchmark says about its result. */
struct own_facts {
	uint64_t wrong; /* elements */
	bool is_forced; /* not NCCL's own choice */
	bool is_paired;
};

enum own_key {
	OWN_FUNCTION,
	OWN_BYTES,
	OWN_TIME,
	OWN_DATATYPE,
	OWN_IN_PLACE,
	OWN_RANKS,
	OWN_ALGORITHM,
	OWN_PROTOCOL,
	OWN_WRONG,
	OWN_PEERS,
	OWN_KEYS,
};

/* False: none of these. */
static bool read_own_fact(struct document *document, int key, struct own_facts *facts)
{
	enum json_scan_token token;

	switch (key) {
	case OWN_ALGORITHM:
	case OWN_PROTOCOL:
		facts->is_forced |= json_scan_next(&document->scan) != JSON_SCAN_NULL;
		break;
	case OWN_WRONG:
		/* null: not checked */
		json_scan_next(&document->scan);
		json_scan_unsigned(&document->scan, &facts->wrong);
		break;
	case OWN_PEERS:
		token = json_scan_next(&document->scan);
		if (token != JSON_SCAN_ARRAY)
			break;
		facts->is_paired = json_scan_next(&document->scan) != JSON_SCAN_ARRAY_END;
		if (!facts->is_paired)
			return true;
		/* The rest of the array. */
		while (token > JSON_SCAN_END && token != JSON_SCAN_ARRAY_END) {
			json_scan_skip(&document->scan);
			token = json_scan_next(&document->scan);
		}
		return true;
	default:
		return false;
	}
	json_scan_skip(&document->scan);
	return true;
}

static void read_own_field(struct document *document, int key, struct expected_row *row)
{
	uint64_t ranks = 0;
	char name[32] = "";
	int is_known;

	switch (key) {
	case OWN_FUNCTION:
		json_scan_read_text(&document->scan, name, sizeof(name));
		row->function = op_name_find(OP_NAMES_FUNCTION, name, &is_known);
		break;
	case OWN_BYTES:
		json_scan_read_unsigned(&document->scan, &row->bytes);
		break;
	case OWN_TIME:
		json_scan_read_unsigned(&document->scan, &row->time_ns);
		break;
	case OWN_DATATYPE:
		json_scan_read_text(&document->scan, name, sizeof(name));
		row->datatype = expected_datatype(name);
		break;
	case OWN_IN_PLACE:
		row->is_in_place = json_scan_read_truth(&document->scan);
		break;
	case OWN_RANKS:
		json_scan_read_unsigned(&document->scan, &ranks);
		row->nranks = ranks <= EXPECTED_RANKS_MAX ? (int32_t)ranks : 0;
		break;
	default:
		json_scan_skip(&document->scan);
	}
}

static void add_own_result(struct document *document, struct expected_row row,
			   const struct own_facts *facts)
{
	const char *unfit = NULL;

	if (document->is_bench)
		unfit = facts->wrong > 0   ? "a test with wrong results"
			: facts->is_forced ? "an algorithm or protocol that NCCL did not choose"
			: facts->is_paired ? "pairs measured alone"
			: row.time_ns == 0 ? "a result without a time"
					   : NULL;
	if (unfit != NULL)
		expected_damage(document->expected, 0, unfit);
	else if (row.bytes == 0 || row.time_ns == 0 || row.function == OP_FUNCTION_UNKNOWN)
		expected_damage(document->expected, 0,
				"a result without function, bytes or time_ns");
	else if (document->scan.problem == NULL)
		document->status = expected_add_row(document->expected, row);
}

static void read_own_result(struct document *document)
{
	static const struct json_scan_key keys[OWN_KEYS] = {
		[OWN_FUNCTION] = KEY("function"),   [OWN_BYTES] = KEY("bytes"),
		[OWN_TIME] = KEY("time_ns"),	    [OWN_DATATYPE] = KEY("datatype"),
		[OWN_IN_PLACE] = KEY("in_place"),   [OWN_RANKS] = KEY("ranks"),
		[OWN_ALGORITHM] = KEY("algorithm"), [OWN_PROTOCOL] = KEY("protocol"),
		[OWN_WRONG] = KEY("wrong"),	    [OWN_PEERS] = KEY("peers"),
	};
	struct expected_row row = { 0 };
	struct own_facts facts = { 0 };
	int key, hint = 0;

	while ((key = json_scan_next_key(&document->scan, keys, OWN_KEYS, &hint)) >=
	       JSON_SCAN_KEY_UNKNOWN)
		if (!document->is_bench || !read_own_fact(document, key, &facts))
			read_own_field(document, key, &row);
	add_own_result(document, row, &facts);
}

/* What comes before the results. */
struct own_head {
	uint64_t version;
	uint64_t ranks;
};

/*
 * An object after its opening brace. Commands that evaluate a measurement have all of it in "run".
 */
static void read_own(struct document *document, struct own_head *head, bool is_inside)
{
	static const struct json_scan_key keys[] = { KEY("format"),	KEY("version"),
						     KEY("ranks"),	KEY("results"),
						     KEY("gpu_shared"), KEY("run") };
	int key, hint = 0;

	while ((key = json_scan_next_key(&document->scan, keys, ARRAY_LENGTH(keys), &hint)) >=
	       JSON_SCAN_KEY_UNKNOWN) {
		if (key == 0) {
			json_scan_next(&document->scan);
			document->is_bench = json_scan_is(&document->scan, "ringside-bench");
			json_scan_skip(&document->scan);
		} else if (key == 1)
			json_scan_read_unsigned(&document->scan, &head->version);
		else if (key == 2)
			json_scan_read_unsigned(&document->scan, &head->ranks);
		else if (key == 3)
			read_results(document, read_own_result);
		else if (key == 4)
			document->expected->is_gpu_shared |= json_scan_read_truth(&document->scan);
		else if (key == 5 && !is_inside &&
			 json_scan_next(&document->scan) == JSON_SCAN_OBJECT)
			read_own(document, head, true);
		else
			json_scan_skip(&document->scan);
	}
}

static enum status add_own(struct document *document)
{
	struct own_head head = { .version = 1 };

	json_scan_next(&document->scan);
	read_own(document, &head, false);
	document->nranks = head.ranks <= EXPECTED_RANKS_MAX ? (int32_t)head.ranks : 0;
	if (head.version > 1) {
		document->expected->count = document->first_row;
		return ERR_VERSION;
	}
	return document_finish(document);
}

/* ---- both kinds of JSON ---------------------------------------------------------------------- */

static enum status expected_add_tests_json(struct expected *expected, const char *text,
					   size_t length, uint8_t function)
{
	struct document document = { .expected = expected,
				     .function = function,
				     .first_row = expected->count };

	json_scan_init(&document.scan, text, length);
	return add_tests(&document);
}

static enum status expected_add_own_json(struct expected *expected, const char *text, size_t length)
{
	struct document document = { .expected = expected, .first_row = expected->count };

	json_scan_init(&document.scan, text, length);
	return add_own(&document);
}

/* ---- detecting the format of measured bandwidths ---------------------------------------------- */

enum { TEXT_BYTES_FIRST = 1 << 20, TEXT_BYTES_MAX = 256 << 20 };

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

void expected_init(struct expected *expected)
{
	*expected = (struct expected){ 0 };
}

void expected_release(struct expected *expected)
{
	free(expected->rows);
	*expected = (struct expected){ 0 };
}

uint8_t expected_function(const char *name, size_t length)
{
	static const struct {
		const char *name;
		uint8_t function;
	} names[] = {
		{ "all_reduce", OP_ALL_REDUCE },
		{ "all_gather", OP_ALL_GATHER },
		{ "reduce_scatter", OP_REDUCE_SCATTER },
		{ "broadcast", OP_BROADCAST },
		{ "reduce", OP_REDUCE },
		{ "alltoall", OP_ALL_TO_ALL },
		{ "gather", OP_GATHER },
		{ "scatter", OP_SCATTER },
		{ "sendrecv", OP_SEND_RECV },
	};
	static const char suffix[] = "_perf";
	const size_t suffix_length = sizeof(suffix) - 1;

	if (length > suffix_length &&
	    memcmp(name + length - suffix_length, suffix, suffix_length) == 0)
		length -= suffix_length;
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		if (strlen(names[i].name) == length && memcmp(names[i].name, name, length) == 0)
			return names[i].function;
	return OP_FUNCTION_UNKNOWN;
}

/* ---- sorting --------------------------------------------------------------------------------- */

static int compare_rows(const void *one, const void *other)
{
	const struct expected_row *a = one, *b = other;

	return ORDER(a->function, b->function) ?:
	       ORDER(a->nranks, b->nranks) ?:
	       ORDER(a->bytes, b->bytes) ?:
	       ORDER(a->time_ns, b->time_ns);
}

static bool is_same_point(const struct expected_row *a, const struct expected_row *b)
{
	return a->function == b->function && a->nranks == b->nranks && a->bytes == b->bytes;
}

void expected_finish(struct expected *expected)
{
	size_t kept = 0;

	if (expected->count > 1)
		qsort(expected->rows, expected->count, sizeof(*expected->rows), compare_rows);
	/* Of equal points the fastest comes first. */
	for (size_t i = 0; i < expected->count; i++)
		if (kept == 0 || !is_same_point(&expected->rows[kept - 1], &expected->rows[i]))
			expected->rows[kept++] = expected->rows[i];
	expected->count = kept;
}

/* ---- lookup ---------------------------------------------------------------------------------- */

/* The rows of one function and one number of ranks. */
struct curve {
	const struct expected_row *rows;
	size_t count;
};

/* Distance between two numbers of ranks: twice as many is as far as half as many. */
static double rank_distance(int32_t a, int32_t b)
{
	if (a <= 0 || b <= 0)
		return a == b ? 0 : 1e9;
	return fabs(log2((double)a / b));
}

static struct curve nearest_curve(const struct expected *expected, uint8_t function, int32_t nranks)
{
	struct curve best = { NULL, 0 };
	double best_distance = 0;

	for (size_t from = 0, to; from < expected->count; from = to) {
		const struct expected_row *first = &expected->rows[from];
		double distance = rank_distance(first->nranks, nranks);

		for (to = from + 1; to < expected->count &&
				    expected->rows[to].function == first->function &&
				    expected->rows[to].nranks == first->nranks;)
			to++;
		if (first->function != function || (best.rows != NULL && distance >= best_distance))
			continue;
		best = (struct curve){ first, to - from };
		best_distance = distance;
	}
	return best;
}

static double interpolate(const struct expected_row *low, const struct expected_row *high,
			  uint64_t bytes)
{
	double part = (log((double)bytes) - log((double)low->bytes)) /
		      (log((double)high->bytes) - log((double)low->bytes));

	return exp(log((double)low->time_ns) * (1 - part) + log((double)high->time_ns) * part);
}

static double time_on(const struct curve *curve, uint64_t bytes, unsigned int *how)
{
	const struct expected_row *last = &curve->rows[curve->count - 1];
	size_t above = 0;

	while (above < curve->count && curve->rows[above].bytes < bytes)
		above++;
	if (above == curve->count) {
		*how |= EXPECTED_ABOVE;
		return (double)last->time_ns * ((double)bytes / (double)last->bytes);
	}
	if (curve->rows[above].bytes == bytes)
		return (double)curve->rows[above].time_ns;
	if (above == 0) {
		*how |= EXPECTED_BELOW;
		return (double)curve->rows[0].time_ns;
	}
	*how |= EXPECTED_BETWEEN;
	return interpolate(&curve->rows[above - 1], &curve->rows[above], bytes);
}

bool expected_find(const struct expected *expected, uint8_t function, uint64_t bytes,
		   int32_t nranks, struct expected_value *value)
{
	struct curve curve = nearest_curve(expected, function, nranks);
	double factor = op_bus_factor(function, nranks), measured_factor;
	unsigned int how = 0;

	/* nccl-tests' sendrecv does both at once. */
	if (curve.rows == NULL && (function == OP_SEND || function == OP_RECV))
		curve = nearest_curve(expected, OP_SEND_RECV, nranks);
	if (curve.rows == NULL)
		return false;
	measured_factor = op_bus_factor(function, curve.rows->nranks);
	value->nranks = curve.rows->nranks;
	value->time_ns = time_on(&curve, bytes, &how);
	value->algbw = (double)bytes / value->time_ns;
	value->busbw = value->algbw * measured_factor;
	if (curve.rows->nranks != nranks) {
		/* The bandwidth of the links stays the same. */
		how |= EXPECTED_OTHER_RANKS;
		if (factor > 0 && measured_factor > 0) {
			value->algbw *= measured_factor / factor;
			value->time_ns *= factor / measured_factor;
		}
	}
	value->how = how;
	return true;
}
