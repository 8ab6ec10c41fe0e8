/*
 * nccl-tests' JSON (its option -J):
 *
 *	{"args":["./all_reduce_perf",...],"config":{"nthreads","ngpus","devices":[{"rank"},...]},
 *	 "results":[{"size","type","out_of_place":{"time","alg_bw","bus_bw","nwrong"},"in_place":{...}}]}
 *
 * Ours, and what `ringside bench --json` writes, which has the same keys and many more:
 *
 *	{"format":"ringside-expected","version":1,"ranks":8,"results":[{"function":"AllReduce",
 *	 "bytes":33554432,"time_ns":412950,"datatype":"float32","in_place":false}]}
 *
 * Of a benchmark, what is no measure for a job is left out: results that were wrong, an algorithm or
 * protocol that NCCL was made to take, pairs that had the machine to themselves, results without a time.
 */
#include <string.h>

#include "common/attributes.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "foreign/expected_parts.h"
#include "foreign/json_scan.h"

#define KEY JSON_SCAN_KEY_OF

struct document {
	struct expected *expected;
	struct json_scan scan;
	uint8_t function;
	int32_t nranks;
	uint64_t threads; /* 0 unknown */
	uint64_t gpus;
	uint64_t last_rank;
	size_t first_row; /* of this document in expected->rows */
	bool is_bench;	  /* written by `ringside bench` */
	enum status status;
};

/* Goes on with the next item of an array, which is an object; false at its end. */
static bool next_object(struct document *document)
{
	enum json_scan_token token;

	while ((token = json_scan_next(&document->scan)) > JSON_SCAN_END) {
		if (token == JSON_SCAN_OBJECT)
			return true;
		if (token == JSON_SCAN_ARRAY_END)
			return false;
		json_scan_skip(&document->scan);
	}
	return false;
}

static void read_string(struct document *document, char *to, size_t size)
{
	to[0] = '\0';
	json_scan_next(&document->scan);
	if (!json_scan_text(&document->scan, to, size))
		to[size - 1] = '\0';
	json_scan_skip(&document->scan);
}

static void read_unsigned(struct document *document, uint64_t *value)
{
	json_scan_next(&document->scan);
	json_scan_unsigned(&document->scan, value);
	json_scan_skip(&document->scan);
}

/* The first argument is the program. */
static void read_args(struct document *document)
{
	enum json_scan_token token;
	char name[256] = "";
	const char *slash;
	bool is_first = true;

	if (json_scan_next(&document->scan) != JSON_SCAN_ARRAY) {
		json_scan_skip(&document->scan);
		return;
	}
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

	if (json_scan_next(&document->scan) != JSON_SCAN_ARRAY) {
		json_scan_skip(&document->scan);
		return;
	}
	while (next_object(document)) {
		uint64_t rank = 0;

		hint = 0;
		while ((key = json_scan_next_key(&document->scan, keys, ARRAY_LENGTH(keys),
						 &hint)) >= JSON_SCAN_KEY_UNKNOWN) {
			if (key == 0)
				read_unsigned(document, &rank);
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

	if (json_scan_next(&document->scan) != JSON_SCAN_OBJECT) {
		json_scan_skip(&document->scan);
		return;
	}
	while ((key = json_scan_next_key(&document->scan, keys, ARRAY_LENGTH(keys), &hint)) >=
	       JSON_SCAN_KEY_UNKNOWN) {
		if (key == 0)
			read_unsigned(document, &document->threads);
		else if (key == 1)
			read_unsigned(document, &document->gpus);
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

	if (json_scan_next(&document->scan) != JSON_SCAN_OBJECT) {
		json_scan_skip(&document->scan);
		return;
	}
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
				is_wrong ? "a test with wrong results" : "a time that is none");
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
			read_unsigned(document, &row.bytes);
		else if (key == 1) {
			read_string(document, type, sizeof(type));
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
	if (json_scan_next(&document->scan) != JSON_SCAN_ARRAY) {
		json_scan_skip(&document->scan);
		return;
	}
	while (document->status == OK && next_object(document))
		read(document);
}

/* The test and its ranks may stand behind the results. Rows of nobody knows what go. */
static void settle(struct document *document)
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
					"it does not say which test it is: name the file after it, "
					"all_reduce_perf.json "
					"or so");
			expected->rows[i--] = expected->rows[--expected->count];
		}
}

/* A file that was cut has what came before. */
static enum status finish(struct document *document)
{
	if (document->scan.problem != NULL)
		expected_damage(document->expected, 0, document->scan.problem);
	settle(document);
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
	return finish(document);
}

/* ---- ours ------------------------------------------------------------------------------------ */

/* What only a benchmark tells of its result. */
struct own_facts {
	uint64_t wrong; /* elements */
	bool is_forced; /* NCCL did not choose */
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
		/* null: nobody looked */
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
	char name[32];
	int is_known;

	switch (key) {
	case OWN_FUNCTION:
		read_string(document, name, sizeof(name));
		row->function = op_name_find(OP_NAMES_FUNCTION, name, &is_known);
		break;
	case OWN_BYTES:
		read_unsigned(document, &row->bytes);
		break;
	case OWN_TIME:
		read_unsigned(document, &row->time_ns);
		break;
	case OWN_DATATYPE:
		read_string(document, name, sizeof(name));
		row->datatype = expected_datatype(name);
		break;
	case OWN_IN_PLACE:
		row->is_in_place = json_scan_next(&document->scan) == JSON_SCAN_TRUE;
		json_scan_skip(&document->scan);
		break;
	case OWN_RANKS:
		read_unsigned(document, &ranks);
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
			: facts->is_paired ? "pairs that had the machine to themselves"
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

/* What stands before the results. */
struct own_head {
	uint64_t version;
	uint64_t ranks;
};

static void read_bool(struct document *document, bool *value)
{
	if (json_scan_next(&document->scan) == JSON_SCAN_TRUE)
		*value = true;
	json_scan_skip(&document->scan);
}

/* An object whose brace was passed. Commands that judge a measurement have it whole in "run". */
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
			read_unsigned(document, &head->version);
		else if (key == 2)
			read_unsigned(document, &head->ranks);
		else if (key == 3)
			read_results(document, read_own_result);
		else if (key == 4)
			read_bool(document, &document->expected->is_gpu_shared);
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
	return finish(document);
}

/* ---- both ------------------------------------------------------------------------------------ */

enum status expected_add_tests_json(struct expected *expected, const char *text, size_t length,
				    uint8_t function)
{
	struct document document = { .expected = expected,
				     .function = function,
				     .first_row = expected->count };

	json_scan_init(&document.scan, text, length);
	return add_tests(&document);
}

enum status expected_add_own_json(struct expected *expected, const char *text, size_t length)
{
	struct document document = { .expected = expected, .first_row = expected->count };

	json_scan_init(&document.scan, text, length);
	return add_own(&document);
}
