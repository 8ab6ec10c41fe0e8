/*
 * A comparison is a head of plain values and five lists of rows, see profilers_read_rows.c. At the end all numbers that
 * are places in a table are checked.
 */
#include "bench/profilers_read.h"

#include <stdlib.h>
#include <string.h>

#include "bench/bench_read_fields.h"
#include "bench/profilers_parts.h"
#include "bench/profilers_read_rows.h"
#include "common/attributes.h"

#define AT(type, name) offsetof(struct type, name), sizeof(((struct type *)NULL)->name)
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
static const char *check(const struct profilers_comparison *comparison)
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
	if (reader.status == OK && check(comparison))
		bench_reader_fail(&reader, "%s", check(comparison));
	if (reader.status != OK) {
		profilers_comparison_release(comparison);
		if (problem)
			*problem = reader.problem;
	}
	status = reader.status;
	bench_reader_end(&reader);
	return status;
}
