/*
 * The rows of a comparison's JSON: tables say which key goes where; names, sizes that may be null and arrays have
 * functions of their own.
 */
#include "bench/profilers_read_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_read_fields.h"
#include "common/attributes.h"
#include "common/op.h"

/* ---- values of their own kind ----------------------------------------------------------------- */

/* The next value is null, or a name that goes into `name`; false: neither, and it was told. */
static bool read_name(struct bench_reader *reader, const char *what, char *name, size_t size,
		      bool *is_null)
{
	enum json_scan_token token = json_scan_next(&reader->scan);

	*is_null = token == JSON_SCAN_NULL;
	if (*is_null)
		return true;
	bench_reader_text(reader, what, name, size);
	return reader->status == OK;
}

static void read_function(struct bench_reader *reader, uint8_t *function)
{
	int is_known = 0;
	bool is_null;
	char name[32];

	if (!read_name(reader, "a function", name, sizeof(name), &is_null))
		return;
	*function = is_null ? 0 : op_name_find(OP_NAMES_FUNCTION, name, &is_known);
	if (!is_null && (!is_known || *function == 0 || *function >= OP_FUNCTIONS))
		bench_reader_fail(reader, "no function of NCCL");
}

static void read_mode(struct bench_reader *reader, uint8_t *mode)
{
	bool is_null;
	char name[32];

	if (!read_name(reader, "a mode", name, sizeof(name), &is_null))
		return;
	*mode = is_null ? 0 : (uint8_t)bench_mode_find(name);
	if (!is_null && *mode == 0)
		bench_reader_fail(reader, "no mode of the benchmark");
}

static void read_source(struct bench_reader *reader, uint8_t *source)
{
	bool is_null;
	char name[32];

	if (!read_name(reader, "a source of times", name, sizeof(name), &is_null))
		return;
	for (uint8_t i = 0; i < OP_TIME_SOURCES && !is_null; i++)
		if (strcmp(name, op_time_source_name(i)) == 0) {
			*source = i;
			return;
		}
	bench_reader_fail(reader, "no source of times");
}

static void read_clock(struct bench_reader *reader, uint8_t *clock)
{
	bool is_null;
	char name[32];

	if (!read_name(reader, "a clock", name, sizeof(name), &is_null))
		return;
	if (is_null || (strcmp(name, "gpu") != 0 && strcmp(name, "host") != 0))
		bench_reader_fail(reader, "neither the clock gpu nor host");
	else
		*clock = strcmp(name, "gpu") == 0 ? BENCH_GPU : BENCH_ISSUE;
}

/* null is UINT64_MAX. */
static void read_bytes(struct bench_reader *reader, uint64_t *bytes)
{
	if (json_scan_next(&reader->scan) == JSON_SCAN_NULL)
		*bytes = UINT64_MAX;
	else if (!json_scan_unsigned(&reader->scan, bytes))
		bench_reader_fail(reader, "bytes are no whole number and not null");
}

static void read_double(struct bench_reader *reader, const char *name, double *value)
{
	if (!json_scan_double(&reader->scan, value) || !isfinite(*value) || *value < 0)
		bench_reader_fail(reader, "%s is no number from 0 on", name);
}

/* An array of numbers; how many there were. Null is NAN. */
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
		bench_reader_fail(reader, "%s has not five numbers, or no median", name);
}

/* One number, or three with its interval. */
static void read_ratio(struct bench_reader *reader, const char *name, struct bench_ratio *ratio,
		       bool *has_interval)
{
	double values[3] = { 0 };
	size_t count = read_doubles(reader, name, values, 3);

	if ((count != 1 && count != 3) || isnan(values[0] + values[1] + values[2]))
		bench_reader_fail(reader, "%s has neither one number nor three", name);
	*has_interval = count == 3;
	*ratio = (struct bench_ratio){ values[0], values[1], values[2] };
}

/* ---- rows ------------------------------------------------------------------------------------- */

#define AT(type, name) offsetof(struct type, name), sizeof(((struct type *)NULL)->name)
#define OWN(name)                                      \
	{                                              \
		FIELD_KEY(name), FIELD_OWN, 0, 0, 0, 0 \
	}
#define WHOLE(name, kind, type, member)                               \
	{                                                             \
		FIELD_KEY(name), kind, AT(type, member), 0, INT32_MAX \
	}

/* Numbers of plugins are bytes: read as a value of its own. */
static void read_plugin(struct bench_reader *reader, uint8_t *plugin)
{
	uint64_t number = 0;

	json_scan_next(&reader->scan);
	if (!json_scan_unsigned(&reader->scan, &number) || number >= PROFILERS_PLUGINS_MAX)
		bench_reader_fail(reader, "a plugin that is no number below %d",
				  PROFILERS_PLUGINS_MAX);
	*plugin = (uint8_t)number;
}

static const struct bench_field job_fields[] = {
	OWN("plugin"),
	OWN("mode"),
	WHOLE("read", FIELD_UINT32, profilers_jobs, read),
	WHOLE("silent", FIELD_UINT32, profilers_jobs, silent),
	WHOLE("unreadable", FIELD_UINT32, profilers_jobs, unreadable),
	WHOLE("failed", FIELD_UINT32, profilers_jobs, failed),
	WHOLE("tells_lost", FIELD_BOOL, profilers_jobs, tells_lost),
	WHOLE("lost", FIELD_UINT64, profilers_jobs, lost),
	{ FIELD_KEY("problem"), FIELD_TEXT, AT(profilers_jobs, problem), 0, 0 },
};

static void own_job(struct bench_reader *reader, size_t key, uint64_t seen, void *object)
{
	struct profilers_jobs *row = object;

	(void)seen;
	if (key == 0)
		read_plugin(reader, &row->plugin);
	else
		read_mode(reader, &row->mode);
}

enum complete_key { COMPLETE_FUNCTION = 2, COMPLETE_BYTES = 5, COMPLETE_BYTES_TO = 6 };

static const struct bench_field complete_fields[] = {
	OWN("plugin"),
	OWN("mode"),
	[COMPLETE_FUNCTION] = OWN("function"),
	WHOLE("align", FIELD_BOOL, profilers_complete, is_align),
	{ FIELD_KEY("rank"), FIELD_INT32, AT(profilers_complete, rank), -1, BENCH_RANKS_MAX - 1 },
	[COMPLETE_BYTES] = OWN("bytes"),
	[COMPLETE_BYTES_TO] = OWN("bytes_to"),
	WHOLE("issued", FIELD_UINT64, profilers_complete, counts.issued),
	WHOLE("recorded", FIELD_UINT64, profilers_complete, counts.recorded),
	WHOLE("untimed", FIELD_UINT64, profilers_complete, counts.untimed),
	WHOLE("missing", FIELD_UINT64, profilers_complete, counts.missing),
	WHOLE("excess", FIELD_UINT64, profilers_complete, counts.excess),
};

static void own_complete(struct bench_reader *reader, size_t key, uint64_t seen, void *object)
{
	struct profilers_complete *row = object;

	(void)seen;
	switch (key) {
	case 0:
		read_plugin(reader, &row->plugin);
		break;
	case COMPLETE_FUNCTION:
		read_function(reader, &row->function);
		break;
	case COMPLETE_BYTES:
		read_bytes(reader, &row->bytes);
		break;
	case COMPLETE_BYTES_TO:
		read_bytes(reader, &row->bytes_to);
		break;
	default:
		read_mode(reader, &row->mode);
	}
}

enum accuracy_key {
	ACCURACY_FUNCTION = 2,
	ACCURACY_SOURCE = 3,
	ACCURACY_BYTES = 5,
	ACCURACY_BYTES_TO = 6,
	ACCURACY_RATIO = 10,
};

static const struct bench_field accuracy_fields[] = {
	OWN("plugin"),
	OWN("mode"),
	[ACCURACY_FUNCTION] = OWN("function"),
	[ACCURACY_SOURCE] = OWN("source"),
	WHOLE("mean_only", FIELD_BOOL, profilers_accuracy, is_mean_only),
	[ACCURACY_BYTES] = OWN("bytes"),
	[ACCURACY_BYTES_TO] = OWN("bytes_to"),
	WHOLE("calls", FIELD_UINT64, profilers_accuracy, calls),
	WHOLE("in_order", FIELD_UINT64, profilers_accuracy, in_order),
	WHOLE("by_time", FIELD_UINT64, profilers_accuracy, by_time),
	[ACCURACY_RATIO] = OWN("ratio"),
};

static void own_accuracy(struct bench_reader *reader, size_t key, uint64_t seen, void *object)
{
	struct profilers_accuracy *row = object;

	(void)seen;
	switch (key) {
	case 0:
		read_plugin(reader, &row->plugin);
		break;
	case ACCURACY_FUNCTION:
		read_function(reader, &row->function);
		break;
	case ACCURACY_SOURCE:
		read_source(reader, &row->source);
		break;
	case ACCURACY_BYTES:
		read_bytes(reader, &row->bytes);
		break;
	case ACCURACY_BYTES_TO:
		read_bytes(reader, &row->bytes_to);
		break;
	case ACCURACY_RATIO:
		read_quantiles(reader, "ratio", &row->ratio);
		break;
	default:
		read_mode(reader, &row->mode);
	}
}

enum overhead_key {
	OVERHEAD_FUNCTION = 2,
	OVERHEAD_CLOCK = 3,
	OVERHEAD_RATIO = 8,
	OVERHEAD_WITH = 9,
	OVERHEAD_WITHOUT = 10,
};

static const struct bench_field overhead_fields[] = {
	OWN("plugin"),
	OWN("mode"),
	[OVERHEAD_FUNCTION] = OWN("function"),
	[OVERHEAD_CLOCK] = OWN("clock"),
	WHOLE("bytes", FIELD_UINT64, profilers_overhead, bytes),
	WHOLE("runs", FIELD_UINT32, profilers_overhead, runs),
	WHOLE("cells", FIELD_UINT32, profilers_overhead, cells),
	WHOLE("calls", FIELD_UINT64, profilers_overhead, calls),
	[OVERHEAD_RATIO] = OWN("ratio"),
	[OVERHEAD_WITH] = OWN("with_ns"),
	[OVERHEAD_WITHOUT] = OWN("without_ns"),
};

static void own_overhead(struct bench_reader *reader, size_t key, uint64_t seen, void *object)
{
	struct profilers_overhead *row = object;

	(void)seen;
	switch (key) {
	case 0:
		read_plugin(reader, &row->plugin);
		break;
	case OVERHEAD_FUNCTION:
		read_function(reader, &row->function);
		break;
	case OVERHEAD_CLOCK:
		read_clock(reader, &row->clock);
		break;
	case OVERHEAD_RATIO:
		read_ratio(reader, "ratio", &row->ratio, &row->has_interval);
		break;
	case OVERHEAD_WITH:
		read_quantiles(reader, "with_ns", &row->with_ns);
		break;
	case OVERHEAD_WITHOUT:
		read_quantiles(reader, "without_ns", &row->without_ns);
		break;
	default:
		read_mode(reader, &row->mode);
	}
}

enum function_key { FUNCTION_NAME = 0 };

struct function_calls {
	uint8_t function;
	uint64_t calls;
};

static const struct bench_field function_fields[] = {
	[FUNCTION_NAME] = OWN("function"),
	WHOLE("calls", FIELD_UINT64, function_calls, calls),
};

static void own_function(struct bench_reader *reader, size_t key, uint64_t seen, void *object)
{
	struct function_calls *row = object;

	(void)key, (void)seen;
	read_function(reader, &row->function);
}

static void read_functions(struct bench_reader *reader, const char *name,
			   uint64_t counts[OP_FUNCTIONS])
{
	if (!bench_reader_array(reader, name))
		return;
	while (bench_reader_item(reader)) {
		struct function_calls row = { 0 };

		bench_reader_object(reader, name, function_fields, ARRAY_LENGTH(function_fields),
				    &row, own_function);
		if (reader->status == OK)
			counts[row.function] = row.calls;
	}
}

enum train_key {
	TRAIN_ISSUED = 11,
	TRAIN_RECORDED = 12,
	TRAIN_EPOCH = 14,
	TRAIN_COMM = 15,
	TRAIN_SHARE = 16,
	TRAIN_SLOWDOWN = 17,
};

static const struct bench_field train_fields[] = {
	OWN("plugin"),
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
	[TRAIN_ISSUED] = OWN("issued"),
	[TRAIN_RECORDED] = OWN("recorded"),
	WHOLE("untimed", FIELD_UINT64, profilers_train, untimed),
	[TRAIN_EPOCH] = OWN("epoch_ns"),
	[TRAIN_COMM] = OWN("comm_ns"),
	[TRAIN_SHARE] = OWN("comm_share"),
	[TRAIN_SLOWDOWN] = OWN("slowdown"),
	{ FIELD_KEY("problem"), FIELD_TEXT, AT(profilers_train, problem), 0, 0 },
};

static void own_train(struct bench_reader *reader, size_t key, uint64_t seen, void *object)
{
	struct profilers_train *row = object;

	(void)seen;
	switch (key) {
	case 0:
		read_plugin(reader, &row->plugin);
		break;
	case TRAIN_ISSUED:
		read_functions(reader, "issued", row->issued);
		break;
	case TRAIN_RECORDED:
		read_functions(reader, "recorded", row->recorded);
		break;
	case TRAIN_EPOCH:
		json_scan_next(&reader->scan);
		read_double(reader, "epoch_ns", &row->epoch_ns);
		break;
	case TRAIN_COMM:
		json_scan_next(&reader->scan);
		read_double(reader, "comm_ns", &row->comm_ns);
		break;
	case TRAIN_SHARE:
		json_scan_next(&reader->scan);
		read_double(reader, "comm_share", &row->comm_share);
		break;
	default:
		read_ratio(reader, "slowdown", &row->slowdown, &row->has_interval);
	}
}

#define ROW(type, name, fields, own)                                                     \
	{                                                                                \
		"a row of " name, sizeof(struct type), fields, ARRAY_LENGTH(fields), own \
	}

const struct profilers_row_kind profilers_row_kinds[PROFILERS_ROW_KINDS] = {
	[PROFILERS_ROW_JOB] = ROW(profilers_jobs, "jobs", job_fields, own_job),
	[PROFILERS_ROW_COMPLETE] =
		ROW(profilers_complete, "completeness", complete_fields, own_complete),
	[PROFILERS_ROW_ACCURACY] =
		ROW(profilers_accuracy, "accuracy", accuracy_fields, own_accuracy),
	[PROFILERS_ROW_OVERHEAD] =
		ROW(profilers_overhead, "overhead", overhead_fields, own_overhead),
	[PROFILERS_ROW_TRAINING] = ROW(profilers_train, "training", train_fields, own_train),
};
