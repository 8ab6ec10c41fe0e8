/*
 * A comparison as JSON: a head of plain values and five lists of rows. Tables map keys to fields, for reading and
 * writing. The input is untrusted; indexes into tables are checked at the end.
 */
#include "bench/profilers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/op.h"
#include "output/json.h"

enum { PROFILERS_FORMAT_VERSION = 1 };
#define PROFILERS_FORMAT "ringside-profilers"

/* ---- special values -------------------------------------------------------------------------- */

/* The type of a FIELD_OWN field, in its `least`. Names first. */
enum value_kind {
	VALUE_FUNCTION = 0, /* uint8_t; null: 0 */
	VALUE_MODE = 1,	    /* the same */
	VALUE_SOURCE = 2,
	VALUE_CLOCK = 3,
	VALUE_KIND = 4,
	VALUE_NAMES = 5,
	VALUE_PLUGIN = 5, /* uint8_t */
	VALUE_BYTES = 6,  /* null: UINT64_MAX */
	VALUE_DOUBLE = 7,
	VALUE_QUANTILES = 8,
	VALUE_RATIO =
		9, /* one number, or three with its interval: `most` is the offset of has_interval */
	VALUE_CALLS = 10, /* one object per function that was called */
};

static const struct {
	const char *what;
	const char *problem;
	int null; /* what null means; NOT_KNOWN: not allowed, NOT_NULL: a string is required */
} value_names[VALUE_NAMES] = {
#define NOT_KNOWN (-1)
#define NOT_NULL (-2)
	[VALUE_FUNCTION] = { "a function", "not an NCCL function", 0 },
	[VALUE_MODE] = { "a mode", "not a mode of the benchmark", 0 },
	[VALUE_SOURCE] = { "a source of times", "not a source of times", NOT_KNOWN },
	[VALUE_CLOCK] = { "a clock", "clock is not gpu or host", NOT_KNOWN },
	[VALUE_KIND] = { "kind", "unknown kind of profiler", NOT_NULL },
};

static const char *value_name(enum value_kind kind, uint8_t number)
{
	switch (kind) {
	case VALUE_FUNCTION:
		return number ? op_function_name(number) : NULL;
	case VALUE_MODE:
		return number ? bench_mode_name(number) : NULL;
	case VALUE_SOURCE:
		return op_time_source_name(number);
	case VALUE_CLOCK:
		return number == BENCH_GPU ? "gpu" : "host";
	default:
		return profilers_kind_name(number);
	}
}

static int value_find(enum value_kind kind, const char *name)
{
	int number, is_known = 0;

	switch (kind) {
	case VALUE_FUNCTION:
		number = op_name_find(OP_NAMES_FUNCTION, name, &is_known);
		return number > 0 && number < OP_FUNCTIONS ? number : NOT_KNOWN;
	case VALUE_MODE:
		number = (int)bench_mode_find(name);
		return number > 0 ? number : NOT_KNOWN;
	case VALUE_SOURCE:
		for (number = 0; number < OP_TIME_SHOWN_SOURCES; number++)
			if (strcmp(name, op_time_source_name((uint8_t)number)) == 0)
				return number;
		return NOT_KNOWN;
	case VALUE_CLOCK:
		return strcmp(name, "gpu") == 0	   ? BENCH_GPU
		       : strcmp(name, "host") == 0 ? BENCH_ISSUE
						   : NOT_KNOWN;
	default:
		number = (int)profilers_kind_find(name);
		return number < PROFILERS_KINDS ? number : NOT_KNOWN;
	}
}

static void read_name(struct bench_reader *reader, enum value_kind kind, uint8_t *to)
{
	int number = value_names[kind].null;
	char name[32];

	if (json_scan_next(&reader->scan) != JSON_SCAN_NULL || number == NOT_NULL) {
		bench_reader_text(reader, value_names[kind].what, name, sizeof(name));
		if (reader->status != OK)
			return;
		number = value_find(kind, name);
	}
	if (number < 0)
		bench_reader_fail(reader, "%s", value_names[kind].problem);
	else
		*to = (uint8_t)number;
}

static void read_plugin(struct bench_reader *reader, uint8_t *plugin)
{
	uint64_t number = 0;

	json_scan_next(&reader->scan);
	if (!json_scan_unsigned(&reader->scan, &number) || number >= PROFILERS_PLUGINS_MAX)
		bench_reader_fail(reader, "plugin is not a number below %d", PROFILERS_PLUGINS_MAX);
	*plugin = (uint8_t)number;
}

static void read_bytes(struct bench_reader *reader, uint64_t *bytes)
{
	if (json_scan_next(&reader->scan) == JSON_SCAN_NULL)
		*bytes = UINT64_MAX;
	else if (!json_scan_unsigned(&reader->scan, bytes))
		bench_reader_fail(reader, "bytes is neither a whole number nor null");
}

static void read_double(struct bench_reader *reader, const char *name, double *value)
{
	if (!json_scan_double(&reader->scan, value) || !isfinite(*value) || *value < 0)
		bench_reader_fail(reader, "%s is not a non-negative number", name);
}

/* An array of numbers; returns how many. Null is NAN. */
static size_t read_doubles(struct bench_reader *reader, const char *name, double *values,
			   size_t most)
{
	size_t count = 0;

	if (!bench_reader_array(reader, name))
		return 0;
	while (bench_reader_item(reader)) {
		if (count == most)
			bench_reader_fail(reader, "%s has too many numbers", name);
		else if (reader->token == JSON_SCAN_NULL)
			values[count++] = NAN;
		else
			read_double(reader, name, &values[count++]);
	}
	return count;
}

static void read_quantiles(struct bench_reader *reader, const char *name,
			   struct profilers_quantiles *quantiles)
{
	double values[5];

	if (read_doubles(reader, name, values, 5) == 5 && !isnan(values[2]))
		*quantiles = (struct profilers_quantiles){ values[0], values[1], values[2],
							   values[3], values[4] };
	else
		bench_reader_fail(reader, "%s does not have five numbers, or no median", name);
}

/* One number, or three with its interval. */
static void read_ratio(struct bench_reader *reader, const char *name, struct bench_ratio *ratio,
		       bool *has_interval)
{
	double values[3] = { 0 };
	size_t count = read_doubles(reader, name, values, 3);

	if ((count != 1 && count != 3) || isnan(values[0] + values[1] + values[2]))
		bench_reader_fail(reader, "%s does not have one or three numbers", name);
	*has_interval = count == 3;
	*ratio = (struct bench_ratio){ values[0], values[1], values[2] };
}

#define OWN(name, value, type, member)                                       \
	{                                                                    \
		FIELD_KEY(name), FIELD_OWN, FIELD_AT(type, member), value, 0 \
	}
#define RATIO(name, type, member)                                                \
	{                                                                        \
		FIELD_KEY(name), FIELD_OWN, FIELD_AT(type, member), VALUE_RATIO, \
			(int64_t)offsetof(struct type, has_interval)             \
	}
#define WHOLE(name, kind, type, member)                                     \
	{                                                                   \
		FIELD_KEY(name), kind, FIELD_AT(type, member), 0, INT32_MAX \
	}

struct function_calls {
	uint8_t function;
	uint64_t calls;
};

static const struct bench_field function_fields[] = {
	OWN("function", VALUE_FUNCTION, function_calls, function),
	WHOLE("calls", FIELD_UINT64, function_calls, calls),
};

static void read_value(struct bench_reader *reader, const struct bench_field *field, uint64_t seen,
		       void *object);

static void read_calls(struct bench_reader *reader, const char *name, uint64_t counts[OP_FUNCTIONS])
{
	if (!bench_reader_array(reader, name))
		return;
	while (bench_reader_item(reader)) {
		struct function_calls row = { 0 };

		bench_reader_object(reader, name, function_fields, ARRAY_LENGTH(function_fields),
				    &row, read_value);
		if (reader->status == OK)
			counts[row.function] = row.calls;
	}
}

static void read_value(struct bench_reader *reader, const struct bench_field *field, uint64_t seen,
		       void *object)
{
	const char *name = field->key.name;
	void *to = (char *)object + field->offset;

	(void)seen;
	switch ((enum value_kind)field->least) {
	case VALUE_PLUGIN:
		read_plugin(reader, to);
		break;
	case VALUE_BYTES:
		read_bytes(reader, to);
		break;
	case VALUE_DOUBLE:
		json_scan_next(&reader->scan);
		read_double(reader, name, to);
		break;
	case VALUE_QUANTILES:
		read_quantiles(reader, name, to);
		break;
	case VALUE_RATIO:
		read_ratio(reader, name, to, (bool *)((char *)object + field->most));
		break;
	case VALUE_CALLS:
		read_calls(reader, name, to);
		break;
	default:
		read_name(reader, (enum value_kind)field->least, to);
	}
}

static void put_quantiles(struct json *json, const struct profilers_quantiles *quantiles)
{
	json_array(json);
	json_double(json, quantiles->p05);
	json_double(json, quantiles->p25);
	json_double(json, quantiles->p50);
	json_double(json, quantiles->p75);
	json_double(json, quantiles->p95);
	json_end(json);
}

static void put_ratio(struct json *json, const struct bench_ratio *ratio, bool has_interval)
{
	json_array(json);
	json_double(json, ratio->ratio);
	if (has_interval) {
		json_double(json, ratio->low);
		json_double(json, ratio->high);
	}
	json_end(json);
}

static void put_calls(struct json *json, const uint64_t counts[OP_FUNCTIONS])
{
	json_array(json);
	for (uint8_t function = 0; function < OP_FUNCTIONS; function++) {
		if (counts[function] == 0)
			continue;
		json_object(json);
		json_put_string(json, "function", value_name(VALUE_FUNCTION, function));
		json_put_unsigned(json, "calls", counts[function]);
		json_end(json);
	}
	json_end(json);
}

static void put_value(struct json *json, const struct bench_field *field, const void *object)
{
	const void *from = (const char *)object + field->offset;

	json_key(json, field->key.name);
	switch ((enum value_kind)field->least) {
	case VALUE_PLUGIN:
		json_unsigned(json, *(const uint8_t *)from);
		break;
	case VALUE_BYTES:
		/* Unknown sizes, and classes without an upper end. */
		if (*(const uint64_t *)from == UINT64_MAX)
			json_null(json);
		else
			json_unsigned(json, *(const uint64_t *)from);
		break;
	case VALUE_DOUBLE:
		json_double(json, *(const double *)from);
		break;
	case VALUE_QUANTILES:
		put_quantiles(json, from);
		break;
	case VALUE_RATIO:
		put_ratio(json, from, *(const bool *)((const char *)object + field->most));
		break;
	case VALUE_CALLS:
		put_calls(json, from);
		break;
	default:
		json_string(json,
			    value_name((enum value_kind)field->least, *(const uint8_t *)from));
	}
}

/* ---- rows ------------------------------------------------------------------------------------- */

static const struct bench_field plugin_fields[] = {
	WHOLE("label", FIELD_PLAIN_TEXT, profilers_plugin, label),
	WHOLE("path", FIELD_PLAIN_TEXT, profilers_plugin, path),
	OWN("kind", VALUE_KIND, profilers_plugin, kind),
};

static const struct bench_field job_fields[] = {
	OWN("plugin", VALUE_PLUGIN, profilers_jobs, plugin),
	OWN("mode", VALUE_MODE, profilers_jobs, mode),
	WHOLE("read", FIELD_UINT32, profilers_jobs, read),
	WHOLE("silent", FIELD_UINT32, profilers_jobs, silent),
	WHOLE("unreadable", FIELD_UINT32, profilers_jobs, unreadable),
	WHOLE("failed", FIELD_UINT32, profilers_jobs, failed),
	WHOLE("tells_lost", FIELD_BOOL, profilers_jobs, tells_lost),
	WHOLE("lost", FIELD_UINT64, profilers_jobs, lost),
	WHOLE("problem", FIELD_PLAIN_TEXT, profilers_jobs, problem),
};

static const struct bench_field complete_fields[] = {
	OWN("plugin", VALUE_PLUGIN, profilers_complete, plugin),
	OWN("mode", VALUE_MODE, profilers_complete, mode),
	OWN("function", VALUE_FUNCTION, profilers_complete, function),
	WHOLE("align", FIELD_BOOL, profilers_complete, is_align),
	{ FIELD_KEY("rank"), FIELD_INT32, FIELD_AT(profilers_complete, rank), -1,
	  BENCH_RANKS_MAX - 1 },
	OWN("bytes", VALUE_BYTES, profilers_complete, bytes),
	OWN("bytes_to", VALUE_BYTES, profilers_complete, bytes_to),
	WHOLE("issued", FIELD_UINT64, profilers_complete, counts.issued),
	WHOLE("recorded", FIELD_UINT64, profilers_complete, counts.recorded),
	WHOLE("untimed", FIELD_UINT64, profilers_complete, counts.untimed),
	WHOLE("missing", FIELD_UINT64, profilers_complete, counts.missing),
	WHOLE("excess", FIELD_UINT64, profilers_complete, counts.excess),
};

static const struct bench_field accuracy_fields[] = {
	OWN("plugin", VALUE_PLUGIN, profilers_accuracy, plugin),
	OWN("mode", VALUE_MODE, profilers_accuracy, mode),
	OWN("function", VALUE_FUNCTION, profilers_accuracy, function),
	OWN("source", VALUE_SOURCE, profilers_accuracy, source),
	WHOLE("mean_only", FIELD_BOOL, profilers_accuracy, is_mean_only),
	OWN("bytes", VALUE_BYTES, profilers_accuracy, bytes),
	OWN("bytes_to", VALUE_BYTES, profilers_accuracy, bytes_to),
	WHOLE("calls", FIELD_UINT64, profilers_accuracy, calls),
	WHOLE("in_order", FIELD_UINT64, profilers_accuracy, in_order),
	WHOLE("by_time", FIELD_UINT64, profilers_accuracy, by_time),
	OWN("ratio", VALUE_QUANTILES, profilers_accuracy, ratio),
};

static const struct bench_field overhead_fields[] = {
	OWN("plugin", VALUE_PLUGIN, profilers_overhead, plugin),
	OWN("mode", VALUE_MODE, profilers_overhead, mode),
	OWN("function", VALUE_FUNCTION, profilers_overhead, function),
	OWN("clock", VALUE_CLOCK, profilers_overhead, clock),
	WHOLE("bytes", FIELD_UINT64, profilers_overhead, bytes),
	WHOLE("runs", FIELD_UINT32, profilers_overhead, runs),
	WHOLE("cells", FIELD_UINT32, profilers_overhead, cells),
	WHOLE("calls", FIELD_UINT64, profilers_overhead, calls),
	RATIO("ratio", profilers_overhead, ratio),
	OWN("with_ns", VALUE_QUANTILES, profilers_overhead, with_ns),
	OWN("without_ns", VALUE_QUANTILES, profilers_overhead, without_ns),
};

static const struct bench_field train_fields[] = {
	OWN("plugin", VALUE_PLUGIN, profilers_train, plugin),
	WHOLE("runs", FIELD_UINT32, profilers_train, runs),
	WHOLE("silent", FIELD_UINT32, profilers_train, silent),
	WHOLE("unreadable", FIELD_UINT32, profilers_train, unreadable),
	WHOLE("failed", FIELD_UINT32, profilers_train, failed),
	WHOLE("epochs", FIELD_UINT32, profilers_train, epochs),
	WHOLE("ranks", FIELD_INT32, profilers_train, ranks),
	WHOLE("counted", FIELD_BOOL, profilers_train, is_counted),
	WHOLE("judged", FIELD_BOOL, profilers_train, is_read),
	WHOLE("has_comm", FIELD_BOOL, profilers_train, has_comm),
	WHOLE("comm_by_time", FIELD_BOOL, profilers_train, is_comm_by_time),
	OWN("issued", VALUE_CALLS, profilers_train, issued),
	OWN("recorded", VALUE_CALLS, profilers_train, recorded),
	WHOLE("untimed", FIELD_UINT64, profilers_train, untimed),
	OWN("epoch_ns", VALUE_DOUBLE, profilers_train, epoch_ns),
	OWN("comm_ns", VALUE_DOUBLE, profilers_train, comm_ns),
	OWN("comm_share", VALUE_DOUBLE, profilers_train, comm_share),
	RATIO("slowdown", profilers_train, slowdown),
	WHOLE("problem", FIELD_PLAIN_TEXT, profilers_train, problem),
};

/* The lists of rows: where they are in a comparison, and their number. */
enum { ROW_KINDS = 5 };

static const struct row_kind {
	const char *key;
	const char *what;
	const struct bench_field *fields;
	size_t field_count;
	size_t row_size;
	size_t rows_at;
	size_t count_at;
} row_kinds[ROW_KINDS] = {
#define ROWS(key, name, fields, rows, count)                                  \
	{                                                                     \
		key, "a row of " name, fields, ARRAY_LENGTH(fields),          \
			sizeof(*((struct profilers_comparison *)NULL)->rows), \
			offsetof(struct profilers_comparison, rows),          \
			offsetof(struct profilers_comparison, count)          \
	}
	ROWS("jobs", "jobs", job_fields, jobs, job_count),
	ROWS("completeness", "completeness", complete_fields, complete, complete_count),
	ROWS("accuracy", "accuracy", accuracy_fields, accuracy, accuracy_count),
	ROWS("overhead", "overhead", overhead_fields, overhead, overhead_count),
	ROWS("training", "training", train_fields, training, training_count),
#undef ROWS
};

static void read_rows(struct bench_reader *reader, const struct row_kind *kind,
		      struct profilers_comparison *to)
{
	struct profilers_list list = { .size = kind->row_size };

	if (bench_reader_array(reader, kind->what)) {
		while (bench_reader_item(reader)) {
			void *row = profilers_list_add(&list, PROFILERS_ROWS_MAX);

			if (row == NULL)
				bench_reader_no_memory(reader);
			else
				bench_reader_object(reader, kind->what, kind->fields,
						    kind->field_count, row, read_value);
		}
	}
	memcpy((char *)to + kind->rows_at, &list.items, sizeof(list.items));
	memcpy((char *)to + kind->count_at, &list.count, sizeof(list.count));
}

static void put_row(struct json *json, const struct bench_field *fields, size_t count,
		    const void *row)
{
	json_object(json);
	bench_fields_put(json, fields, count, row, put_value);
	json_end(json);
}

static void put_rows(struct json *json, const struct row_kind *kind,
		     const struct profilers_comparison *from)
{
	const char *rows;
	size_t count;

	memcpy(&rows, (const char *)from + kind->rows_at, sizeof(rows));
	memcpy(&count, (const char *)from + kind->count_at, sizeof(count));
	json_put_array(json, kind->key);
	for (size_t i = 0; i < count; i++)
		put_row(json, kind->fields, kind->field_count, rows + i * kind->row_size);
	json_end(json);
}

/* ---- the document ------------------------------------------------------------------------------ */

static void read_lines(struct bench_reader *reader, const char *name,
		       char lines[][PROFILERS_TEXT_BYTES], size_t *count)
{
	if (!bench_reader_array(reader, name))
		return;
	while (bench_reader_item(reader)) {
		if (*count == PROFILERS_NOTES_MAX)
			bench_reader_fail(reader, "more than %d lines in %s", PROFILERS_NOTES_MAX,
					  name);
		else
			bench_reader_text(reader, name, lines[(*count)++], PROFILERS_TEXT_BYTES);
	}
}

static void read_plugins(struct bench_reader *reader, struct profilers_comparison *comparison)
{
	if (!bench_reader_array(reader, "plugins"))
		return;
	while (bench_reader_item(reader)) {
		if (comparison->plugin_count == PROFILERS_PLUGINS_MAX)
			bench_reader_fail(reader, "more than %d plugins", PROFILERS_PLUGINS_MAX);
		else
			bench_reader_object(
				reader, "a plugin", plugin_fields, ARRAY_LENGTH(plugin_fields),
				&comparison->plugins[comparison->plugin_count++], read_value);
	}
}

#define TOP(name) FIELD_AT(profilers_comparison, name)

enum top_key {
	TOP_FORMAT = 0,
	TOP_VERSION = 1,
	TOP_COMMAND = 2,
	TOP_NOTES = 14,
	TOP_NOT_RUN = 15,
	TOP_PLUGINS = 17,
	TOP_JOBS = 18, /* followed by the other rows, in their order */
	TOP_KEYS = TOP_JOBS + ROW_KINDS,
};

static const struct bench_field top_fields[TOP_KEYS] = {
	[TOP_FORMAT] = FIELD_OF_OWN("format"),
	[TOP_VERSION] = FIELD_OF_OWN("version"),
	[TOP_COMMAND] = { FIELD_KEY("command"), FIELD_PLAIN_TEXT, TOP(command), 0, 0 },
	{ FIELD_KEY("host"), FIELD_PLAIN_TEXT, TOP(host), 0, 0 },
	{ FIELD_KEY("gpu"), FIELD_PLAIN_TEXT, TOP(gpu), 0, 0 },
	{ FIELD_KEY("nccl_version"), FIELD_INT32, TOP(nccl_version), 0, INT32_MAX },
	{ FIELD_KEY("cuda_version"), FIELD_INT32, TOP(cuda_version), 0, INT32_MAX },
	{ FIELD_KEY("ranks"), FIELD_INT32, TOP(nranks), 0, BENCH_RANKS_MAX },
	{ FIELD_KEY("nodes"), FIELD_INT32, TOP(nodes), 0, BENCH_RANKS_MAX },
	{ FIELD_KEY("gpu_shared"), FIELD_BOOL, TOP(is_gpu_shared), 0, 0 },
	{ FIELD_KEY("mps"), FIELD_BOOL, TOP(is_mps), 0, 0 },
	{ FIELD_KEY("started_ns"), FIELD_UINT64, TOP(started_ns), 0, 0 },
	{ FIELD_KEY("runs"), FIELD_UINT32, TOP(runs), 0, 0 },
	{ FIELD_KEY("calls"), FIELD_UINT64, TOP(calls), 0, 0 },
	[TOP_NOTES] = FIELD_OF_OWN("notes"),
	[TOP_NOT_RUN] = FIELD_OF_OWN("not_run"),
	{ FIELD_KEY("notes_lost"), FIELD_SIZE, TOP(notes_lost), 0, 0 },
	[TOP_PLUGINS] = FIELD_OF_OWN("plugins"),
	[TOP_JOBS] = FIELD_OF_OWN("jobs"),
	FIELD_OF_OWN("completeness"),
	FIELD_OF_OWN("accuracy"),
	FIELD_OF_OWN("overhead"),
	FIELD_OF_OWN("training"),
};

static void read_format(struct bench_reader *reader)
{
	json_scan_next(&reader->scan);
	if (reader->scan.token == JSON_SCAN_STRING && json_scan_is(&reader->scan, PROFILERS_FORMAT))
		return;
	bench_reader_fail(reader, "not a JSON comparison of profilers");
	reader->status = ERR_UNKNOWN;
}

static void read_version(struct bench_reader *reader)
{
	uint64_t version;

	json_scan_next(&reader->scan);
	if (!json_scan_unsigned(&reader->scan, &version) || version == 0) {
		bench_reader_fail(reader, "version is missing");
	} else if (version > PROFILERS_FORMAT_VERSION) {
		bench_reader_fail(reader,
				  "version %llu is newer than this program, which supports "
				  "up to %d",
				  (unsigned long long)version, PROFILERS_FORMAT_VERSION);
		reader->status = ERR_VERSION;
	}
}

static void own_top(struct bench_reader *reader, const struct bench_field *field, uint64_t seen,
		    void *object)
{
	const size_t key = (size_t)(field - top_fields);
	struct profilers_comparison *to = object;

	if (key > TOP_FORMAT && !(seen & UINT64_C(1) << TOP_FORMAT)) {
		bench_reader_fail(reader, "not a JSON comparison of profilers");
		reader->status = ERR_UNKNOWN;
		return;
	}
	switch (key) {
	case TOP_FORMAT:
		read_format(reader);
		break;
	case TOP_VERSION:
		read_version(reader);
		break;
	case TOP_NOTES:
		read_lines(reader, "notes", to->notes, &to->note_count);
		break;
	case TOP_NOT_RUN:
		read_lines(reader, "not_run", to->not_run, &to->not_run_count);
		break;
	case TOP_PLUGINS:
		read_plugins(reader, to);
		break;
	default:
		read_rows(reader, &row_kinds[key - TOP_JOBS], to);
	}
}

/* Values that are later used as indexes or counts. */
static const char *comparison_check(const struct profilers_comparison *comparison)
{
	size_t plugins = comparison->plugin_count;

	if (plugins == 0 || comparison->plugins[0].kind != PROFILERS_NONE)
		return "the first plugin is not \"none\"";
	for (size_t i = 0; i < comparison->job_count; i++)
		if (comparison->jobs[i].plugin >= plugins)
			return "a row of jobs has an unknown plugin";
	for (size_t i = 0; i < comparison->complete_count; i++) {
		const struct profilers_complete *row = &comparison->complete[i];

		if (row->plugin >= plugins || row->counts.missing > row->counts.issued ||
		    row->counts.untimed > row->counts.recorded ||
		    row->counts.issued > UINT64_C(1) << 40 ||
		    row->counts.recorded > UINT64_C(1) << 40 ||
		    row->counts.excess > row->counts.recorded)
			return "a row of completeness has inconsistent numbers";
	}
	for (size_t i = 0; i < comparison->accuracy_count; i++)
		if (comparison->accuracy[i].plugin >= plugins ||
		    comparison->accuracy[i].in_order > comparison->accuracy[i].calls ||
		    comparison->accuracy[i].by_time > comparison->accuracy[i].calls)
			return "a row of accuracy has inconsistent numbers";
	for (size_t i = 0; i < comparison->overhead_count; i++)
		if (comparison->overhead[i].plugin >= plugins)
			return "a row of overhead has an unknown plugin";
	for (size_t i = 0; i < comparison->training_count; i++)
		if (comparison->training[i].plugin >= plugins)
			return "a row of training has an unknown plugin";
	return NULL;
}

enum status profilers_read(struct profilers_comparison *comparison, const char *text, size_t length,
			   struct bench_read_problem *problem)
{
	struct bench_reader reader;
	enum status status;

	profilers_comparison_init(comparison);
	bench_reader_start(&reader, NULL, text, length);
	reader.token = json_scan_next(&reader.scan);
	bench_reader_object(&reader, "the comparison", top_fields, TOP_KEYS, comparison, own_top);
	if (reader.status == OK && json_scan_next(&reader.scan) != JSON_SCAN_END)
		bench_reader_fail(&reader, "unexpected text after the end");
	if (reader.status == OK && comparison_check(comparison))
		bench_reader_fail(&reader, "%s", comparison_check(comparison));
	if (reader.status != OK) {
		profilers_comparison_release(comparison);
		if (problem)
			*problem = reader.problem;
	}
	status = reader.status;
	bench_reader_end(&reader);
	return status;
}

static void put_lines(struct json *json, const char *key, const char lines[][PROFILERS_TEXT_BYTES],
		      size_t count)
{
	json_put_array(json, key);
	for (size_t i = 0; i < count; i++)
		json_string(json, lines[i]);
	json_end(json);
}

static void put_head(struct json *json, const struct profilers_comparison *comparison)
{
	json_put_string(json, "format", PROFILERS_FORMAT);
	json_put_unsigned(json, "version", PROFILERS_FORMAT_VERSION);
	bench_fields_put(json, &top_fields[TOP_COMMAND], TOP_NOTES - TOP_COMMAND, comparison, NULL);
	put_lines(json, "notes", comparison->notes, comparison->note_count);
	put_lines(json, "not_run", comparison->not_run, comparison->not_run_count);
	bench_fields_put(json, &top_fields[TOP_NOT_RUN + 1], 1, comparison, NULL);
	json_put_array(json, "plugins");
	for (size_t i = 0; i < comparison->plugin_count; i++)
		put_row(json, plugin_fields, ARRAY_LENGTH(plugin_fields), &comparison->plugins[i]);
	json_end(json);
}

enum status profilers_json_write(struct sink *sink, const struct profilers_comparison *comparison)
{
	struct json json;

	json_init(&json, sink);
	json_object(&json);
	put_head(&json, comparison);
	for (size_t i = 0; i < ROW_KINDS; i++)
		put_rows(&json, &row_kinds[i], comparison);
	json_end(&json);
	json_line(&json);
	return json_status(&json);
}
