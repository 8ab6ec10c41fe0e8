/*
 * The rows of a comparison's JSON: tables say which key goes where; names, sizes that may be null and arrays have
 * functions of their own.
 */
#include "bench/profilers.h"
#include "bench/profilers_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_result.h"
#include "common/attributes.h"
#include "common/op.h"
#include "output/json.h"

enum { PROFILERS_FORMAT_VERSION = 1 };
#define PROFILERS_FORMAT "ringside-profilers"

/* Between the files that read a comparison's JSON; others use profilers.h. */

enum profilers_row {
	PROFILERS_ROW_JOB = 0,
	PROFILERS_ROW_COMPLETE = 1,
	PROFILERS_ROW_ACCURACY = 2,
	PROFILERS_ROW_OVERHEAD = 3,
	PROFILERS_ROW_TRAINING = 4,
	PROFILERS_ROW_KINDS = 5,
};

struct profilers_row_kind {
	const char *what;
	size_t size;
	const struct bench_field *fields;
	size_t field_count;
	bench_own_fn own;
};

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

static const struct profilers_row_kind profilers_row_kinds[PROFILERS_ROW_KINDS] = {
	[PROFILERS_ROW_JOB] = ROW(profilers_jobs, "jobs", job_fields, own_job),
	[PROFILERS_ROW_COMPLETE] =
		ROW(profilers_complete, "completeness", complete_fields, own_complete),
	[PROFILERS_ROW_ACCURACY] =
		ROW(profilers_accuracy, "accuracy", accuracy_fields, own_accuracy),
	[PROFILERS_ROW_OVERHEAD] =
		ROW(profilers_overhead, "overhead", overhead_fields, own_overhead),
	[PROFILERS_ROW_TRAINING] = ROW(profilers_train, "training", train_fields, own_train),
};

/*
 * A comparison is a head of plain values and five lists of rows, see profilers_json.c. At the end all numbers that
 * are places in a table are checked.
 */

#define TOP(name) AT(profilers_comparison, name)

static const struct bench_field plugin_fields[] = {
	{ FIELD_KEY("label"), FIELD_TEXT, AT(profilers_plugin, label), 0, 0 },
	{ FIELD_KEY("path"), FIELD_TEXT, AT(profilers_plugin, path), 0, 0 },
	{ FIELD_KEY("kind"), FIELD_OWN, 0, 0, 0, 0 },
};

static void own_plugin(struct bench_reader *reader, size_t key, uint64_t seen, void *object)
{
	struct profilers_plugin *plugin = object;
	char name[32];

	(void)key, (void)seen;
	json_scan_next(&reader->scan);
	bench_reader_text(reader, "kind", name, sizeof(name));
	if (reader->status != OK)
		return;
	plugin->kind = (uint8_t)profilers_kind_find(name);
	if (plugin->kind == PROFILERS_KINDS)
		bench_reader_fail(reader, "no kind of profiler that is known here");
}

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
				&comparison->plugins[comparison->plugin_count++], own_plugin);
	}
}

static struct profilers_list read_rows(struct bench_reader *reader,
				       const struct profilers_row_kind *kind)
{
	struct profilers_list list = { .size = kind->size };

	if (!bench_reader_array(reader, kind->what))
		return list;
	while (bench_reader_item(reader)) {
		void *row = profilers_list_add(&list, PROFILERS_ROWS_MAX);

		if (row == NULL)
			bench_reader_no_memory(reader);
		else
			bench_reader_object(reader, kind->what, kind->fields, kind->field_count,
					    row, kind->own);
	}
	return list;
}

static void take_rows(struct bench_reader *reader, size_t kind, struct profilers_comparison *to)
{
	struct profilers_list list = read_rows(reader, &profilers_row_kinds[kind]);

	switch (kind) {
	case PROFILERS_ROW_JOB:
		to->jobs = list.items;
		to->job_count = list.count;
		break;
	case PROFILERS_ROW_COMPLETE:
		to->complete = list.items;
		to->complete_count = list.count;
		break;
	case PROFILERS_ROW_ACCURACY:
		to->accuracy = list.items;
		to->accuracy_count = list.count;
		break;
	case PROFILERS_ROW_OVERHEAD:
		to->overhead = list.items;
		to->overhead_count = list.count;
		break;
	default:
		to->training = list.items;
		to->training_count = list.count;
	}
}

enum top_key {
	TOP_FORMAT = 0,
	TOP_VERSION = 1,
	TOP_NOTES = 14,
	TOP_NOT_RUN = 15,
	TOP_PLUGINS = 17,
	TOP_JOBS = 18, /* and the other rows, in their order */
	TOP_KEYS = TOP_JOBS + PROFILERS_ROW_KINDS,
};

static const struct bench_field top_fields[TOP_KEYS] = {
	[TOP_FORMAT] = { FIELD_KEY("format"), FIELD_OWN, 0, 0, 0, 0 },
	[TOP_VERSION] = { FIELD_KEY("version"), FIELD_OWN, 0, 0, 0, 0 },
	{ FIELD_KEY("command"), FIELD_TEXT, TOP(command), 0, 0 },
	{ FIELD_KEY("host"), FIELD_TEXT, TOP(host), 0, 0 },
	{ FIELD_KEY("gpu"), FIELD_TEXT, TOP(gpu), 0, 0 },
	{ FIELD_KEY("nccl_version"), FIELD_INT32, TOP(nccl_version), 0, INT32_MAX },
	{ FIELD_KEY("cuda_version"), FIELD_INT32, TOP(cuda_version), 0, INT32_MAX },
	{ FIELD_KEY("ranks"), FIELD_INT32, TOP(nranks), 0, BENCH_RANKS_MAX },
	{ FIELD_KEY("nodes"), FIELD_INT32, TOP(nodes), 0, BENCH_RANKS_MAX },
	{ FIELD_KEY("gpu_shared"), FIELD_BOOL, TOP(is_gpu_shared), 0, 0 },
	{ FIELD_KEY("mps"), FIELD_BOOL, TOP(is_mps), 0, 0 },
	{ FIELD_KEY("started_ns"), FIELD_UINT64, TOP(started_ns), 0, 0 },
	{ FIELD_KEY("runs"), FIELD_UINT32, TOP(runs), 0, 0 },
	{ FIELD_KEY("calls"), FIELD_UINT64, TOP(calls), 0, 0 },
	[TOP_NOTES] = { FIELD_KEY("notes"), FIELD_OWN, 0, 0, 0, 0 },
	[TOP_NOT_RUN] = { FIELD_KEY("not_run"), FIELD_OWN, 0, 0, 0, 0 },
	{ FIELD_KEY("notes_lost"), FIELD_SIZE, TOP(notes_lost), 0, 0 },
	[TOP_PLUGINS] = { FIELD_KEY("plugins"), FIELD_OWN, 0, 0, 0, 0 },
	[TOP_JOBS] = { FIELD_KEY("jobs"), FIELD_OWN, 0, 0, 0, 0 },
	{ FIELD_KEY("completeness"), FIELD_OWN, 0, 0, 0, 0 },
	{ FIELD_KEY("accuracy"), FIELD_OWN, 0, 0, 0, 0 },
	{ FIELD_KEY("overhead"), FIELD_OWN, 0, 0, 0, 0 },
	{ FIELD_KEY("training"), FIELD_OWN, 0, 0, 0, 0 },
};

static void read_format(struct bench_reader *reader)
{
	json_scan_next(&reader->scan);
	if (reader->scan.token == JSON_SCAN_STRING && json_scan_is(&reader->scan, PROFILERS_FORMAT))
		return;
	bench_reader_fail(reader, "not the JSON of a comparison of profilers");
	reader->status = ERR_UNKNOWN;
}

static void read_version(struct bench_reader *reader)
{
	uint64_t version;

	json_scan_next(&reader->scan);
	if (!json_scan_unsigned(&reader->scan, &version) || version == 0) {
		bench_reader_fail(reader, "no version");
	} else if (version > PROFILERS_FORMAT_VERSION) {
		bench_reader_fail(reader, "version %llu, and this program knows those up to %d",
				  (unsigned long long)version, PROFILERS_FORMAT_VERSION);
		reader->status = ERR_VERSION;
	}
}

static void own_top(struct bench_reader *reader, size_t key, uint64_t seen, void *object)
{
	struct profilers_comparison *to = object;

	if (key > TOP_FORMAT && !(seen & UINT64_C(1) << TOP_FORMAT)) {
		bench_reader_fail(reader, "not the JSON of a comparison of profilers");
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
		take_rows(reader, key - TOP_JOBS, to);
	}
}

/* Numbers that others will count with. */
static const char *comparison_check(const struct profilers_comparison *comparison)
{
	size_t plugins = comparison->plugin_count;

	if (plugins == 0 || comparison->plugins[0].kind != PROFILERS_NONE)
		return "the first plugin is not the one that is none";
	for (size_t i = 0; i < comparison->job_count; i++)
		if (comparison->jobs[i].plugin >= plugins)
			return "a row of jobs of a plugin that is not there";
	for (size_t i = 0; i < comparison->complete_count; i++) {
		const struct profilers_complete *row = &comparison->complete[i];

		if (row->plugin >= plugins || row->counts.missing > row->counts.issued ||
		    row->counts.untimed > row->counts.recorded ||
		    row->counts.issued > UINT64_C(1) << 40 ||
		    row->counts.recorded > UINT64_C(1) << 40 ||
		    row->counts.excess > row->counts.recorded)
			return "a row of completeness whose numbers do not fit";
	}
	for (size_t i = 0; i < comparison->accuracy_count; i++)
		if (comparison->accuracy[i].plugin >= plugins ||
		    comparison->accuracy[i].in_order > comparison->accuracy[i].calls ||
		    comparison->accuracy[i].by_time > comparison->accuracy[i].calls)
			return "a row of accuracy whose numbers do not fit";
	for (size_t i = 0; i < comparison->overhead_count; i++)
		if (comparison->overhead[i].plugin >= plugins)
			return "a row of overhead of a plugin that is not there";
	for (size_t i = 0; i < comparison->training_count; i++)
		if (comparison->training[i].plugin >= plugins)
			return "a row of training of a plugin that is not there";
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
		bench_reader_fail(&reader, "something behind its end");
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

static void put_function(struct json *json, uint8_t function)
{
	json_key(json, "function");
	json_string(json, function ? op_function_name(function) : NULL);
}

static void put_mode(struct json *json, uint8_t mode)
{
	json_key(json, "mode");
	json_string(json, mode ? bench_mode_name(mode) : NULL);
}

/* Sizes that are not known, and classes without an end: null. */
static void put_bytes(struct json *json, const char *key, uint64_t bytes)
{
	if (bytes == UINT64_MAX)
		json_put_null(json, key);
	else
		json_put_unsigned(json, key, bytes);
}

static void put_quantiles(struct json *json, const char *key,
			  const struct profilers_quantiles *quantiles)
{
	json_put_array(json, key);
	json_double(json, quantiles->p05);
	json_double(json, quantiles->p25);
	json_double(json, quantiles->p50);
	json_double(json, quantiles->p75);
	json_double(json, quantiles->p95);
	json_end(json);
}

static void put_ratio(struct json *json, const char *key, const struct bench_ratio *ratio,
		      bool has_interval)
{
	json_put_array(json, key);
	json_double(json, ratio->ratio);
	if (has_interval) {
		json_double(json, ratio->low);
		json_double(json, ratio->high);
	}
	json_end(json);
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
	json_put_string(json, "command", comparison->command);
	json_put_string(json, "host", comparison->host);
	json_put_string(json, "gpu", comparison->gpu);
	json_put_signed(json, "nccl_version", comparison->nccl_version);
	json_put_signed(json, "cuda_version", comparison->cuda_version);
	json_put_signed(json, "ranks", comparison->nranks);
	json_put_signed(json, "nodes", comparison->nodes);
	json_put_bool(json, "gpu_shared", comparison->is_gpu_shared);
	json_put_bool(json, "mps", comparison->is_mps);
	json_put_unsigned(json, "started_ns", comparison->started_ns);
	json_put_unsigned(json, "runs", comparison->runs);
	json_put_unsigned(json, "calls", comparison->calls);
	put_lines(json, "notes", comparison->notes, comparison->note_count);
	put_lines(json, "not_run", comparison->not_run, comparison->not_run_count);
	json_put_unsigned(json, "notes_lost", comparison->notes_lost);
	json_put_array(json, "plugins");
	for (size_t i = 0; i < comparison->plugin_count; i++) {
		json_object(json);
		json_put_string(json, "label", comparison->plugins[i].label);
		json_put_string(json, "path", comparison->plugins[i].path);
		json_put_string(json, "kind", profilers_kind_name(comparison->plugins[i].kind));
		json_end(json);
	}
	json_end(json);
}

static void put_job(struct json *json, const struct profilers_jobs *row)
{
	json_object(json);
	json_put_unsigned(json, "plugin", row->plugin);
	put_mode(json, row->mode);
	json_put_unsigned(json, "read", row->read);
	json_put_unsigned(json, "silent", row->silent);
	json_put_unsigned(json, "unreadable", row->unreadable);
	json_put_unsigned(json, "failed", row->failed);
	json_put_bool(json, "tells_lost", row->tells_lost);
	json_put_unsigned(json, "lost", row->lost);
	json_put_string(json, "problem", row->problem);
	json_end(json);
}

static void put_complete(struct json *json, const struct profilers_complete *row)
{
	json_object(json);
	json_put_unsigned(json, "plugin", row->plugin);
	put_mode(json, row->mode);
	put_function(json, row->function);
	json_put_bool(json, "align", row->is_align);
	json_put_signed(json, "rank", row->rank);
	put_bytes(json, "bytes", row->bytes);
	put_bytes(json, "bytes_to", row->bytes_to);
	json_put_unsigned(json, "issued", row->counts.issued);
	json_put_unsigned(json, "recorded", row->counts.recorded);
	json_put_unsigned(json, "untimed", row->counts.untimed);
	json_put_unsigned(json, "missing", row->counts.missing);
	json_put_unsigned(json, "excess", row->counts.excess);
	json_end(json);
}

static void put_accuracy(struct json *json, const struct profilers_accuracy *row)
{
	json_object(json);
	json_put_unsigned(json, "plugin", row->plugin);
	put_mode(json, row->mode);
	put_function(json, row->function);
	json_put_string(json, "source", op_time_source_name(row->source));
	json_put_bool(json, "mean_only", row->is_mean_only);
	put_bytes(json, "bytes", row->bytes);
	put_bytes(json, "bytes_to", row->bytes_to);
	json_put_unsigned(json, "calls", row->calls);
	json_put_unsigned(json, "in_order", row->in_order);
	json_put_unsigned(json, "by_time", row->by_time);
	put_quantiles(json, "ratio", &row->ratio);
	json_end(json);
}

static void put_overhead(struct json *json, const struct profilers_overhead *row)
{
	json_object(json);
	json_put_unsigned(json, "plugin", row->plugin);
	put_mode(json, row->mode);
	put_function(json, row->function);
	json_put_string(json, "clock", row->clock == BENCH_GPU ? "gpu" : "host");
	json_put_unsigned(json, "bytes", row->bytes);
	json_put_unsigned(json, "runs", row->runs);
	json_put_unsigned(json, "cells", row->cells);
	json_put_unsigned(json, "calls", row->calls);
	put_ratio(json, "ratio", &row->ratio, row->has_interval);
	put_quantiles(json, "with_ns", &row->with_ns);
	put_quantiles(json, "without_ns", &row->without_ns);
	json_end(json);
}

static void put_functions(struct json *json, const char *key, const uint64_t counts[OP_FUNCTIONS])
{
	json_put_array(json, key);
	for (uint8_t function = 0; function < OP_FUNCTIONS; function++) {
		if (counts[function] == 0)
			continue;
		json_object(json);
		put_function(json, function);
		json_put_unsigned(json, "calls", counts[function]);
		json_end(json);
	}
	json_end(json);
}

static void put_training(struct json *json, const struct profilers_train *row)
{
	json_object(json);
	json_put_unsigned(json, "plugin", row->plugin);
	json_put_unsigned(json, "runs", row->runs);
	json_put_unsigned(json, "silent", row->silent);
	json_put_unsigned(json, "unreadable", row->unreadable);
	json_put_unsigned(json, "failed", row->failed);
	json_put_unsigned(json, "epochs", row->epochs);
	json_put_signed(json, "ranks", row->ranks);
	json_put_bool(json, "counted", row->is_counted);
	json_put_bool(json, "judged", row->is_read);
	json_put_bool(json, "has_comm", row->has_comm);
	json_put_bool(json, "comm_by_time", row->is_comm_by_time);
	put_functions(json, "issued", row->issued);
	put_functions(json, "recorded", row->recorded);
	json_put_unsigned(json, "untimed", row->untimed);
	json_put_double(json, "epoch_ns", row->epoch_ns);
	json_put_double(json, "comm_ns", row->comm_ns);
	json_put_double(json, "comm_share", row->comm_share);
	put_ratio(json, "slowdown", &row->slowdown, row->has_interval);
	json_put_string(json, "problem", row->problem);
	json_end(json);
}

enum status profilers_json_write(struct sink *sink, const struct profilers_comparison *comparison)
{
	struct json json;

	json_init(&json, sink);
	json_object(&json);
	put_head(&json, comparison);
	json_put_array(&json, "jobs");
	for (size_t i = 0; i < comparison->job_count; i++)
		put_job(&json, &comparison->jobs[i]);
	json_end(&json);
	json_put_array(&json, "completeness");
	for (size_t i = 0; i < comparison->complete_count; i++)
		put_complete(&json, &comparison->complete[i]);
	json_end(&json);
	json_put_array(&json, "accuracy");
	for (size_t i = 0; i < comparison->accuracy_count; i++)
		put_accuracy(&json, &comparison->accuracy[i]);
	json_end(&json);
	json_put_array(&json, "overhead");
	for (size_t i = 0; i < comparison->overhead_count; i++)
		put_overhead(&json, &comparison->overhead[i]);
	json_end(&json);
	json_put_array(&json, "training");
	for (size_t i = 0; i < comparison->training_count; i++)
		put_training(&json, &comparison->training[i]);
	json_end(&json);
	json_end(&json);
	json_line(&json);
	return json_status(&json);
}
