/*
 * Reading a baseline file. Strict: a key that is known has the type and the range it should have, or the
 * file is refused with what and where. Keys that are not known are passed over, so that a later
 * version may add some.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/text.h"
#include "doctor/baseline.h"
#include "foreign/json_scan.h"

struct reading {
	struct json_scan scan;
	const char *text;
	struct baseline *baseline;
	size_t room;
	bool has_format;
	bool has_version;
	bool has_rows;
	enum status status;
	char *why;
	size_t why_size;
};

static size_t line_of(const struct reading *reading)
{
	size_t line = 1, end = json_scan_offset(&reading->scan);

	for (size_t i = 0; i < end; i++)
		line += reading->text[i] == '\n';
	return line;
}

/* The first failure is the one that is told. */
static bool refuse(struct reading *reading, enum status status, const char *what, const char *key)
{
	if (reading->status != OK)
		return false;
	reading->status = status;
	text_format(reading->why, reading->why_size, "line %zu, byte %zu: %s%s%s%s",
		    line_of(reading), json_scan_offset(&reading->scan), key, *key ? ": " : "", what,
		    status == ERR_VERSION ? "" : "; save it anew with 'ringside baseline save'");
	return false;
}

static bool refuse_scan(struct reading *reading)
{
	return refuse(reading, ERR_FORMAT,
		      reading->scan.problem ? reading->scan.problem : "this is no JSON object", "");
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool take_text(struct reading *reading, const char *key, char *to, size_t size)
{
	if (json_scan_next(&reading->scan) != JSON_SCAN_STRING)
		return reading->scan.problem ? refuse_scan(reading)
					     : refuse(reading, ERR_FORMAT, "is no text", key);
	if (!json_scan_text(&reading->scan, to, size))
		return refuse(reading, ERR_FORMAT, "is too long", key);
	for (char *at = to; *at != '\0'; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			return refuse(reading, ERR_FORMAT, "has control characters", key);
	return true;
}

static bool take_count(struct reading *reading, const char *key, uint64_t most, uint64_t *to)
{
	uint64_t value;

	if (json_scan_next(&reading->scan) != JSON_SCAN_NUMBER ||
	    !json_scan_unsigned(&reading->scan, &value))
		return reading->scan.problem
			       ? refuse_scan(reading)
			       : refuse(reading, ERR_FORMAT, "is no whole number from 0 on", key);
	if (value > most)
		return refuse(reading, ERR_FORMAT, "is too large", key);
	*to = value;
	return true;
}

static bool take_figure(struct reading *reading, const char *key, double most, double *to)
{
	double value;

	if (json_scan_next(&reading->scan) != JSON_SCAN_NUMBER ||
	    !json_scan_double(&reading->scan, &value))
		return reading->scan.problem ? refuse_scan(reading)
					     : refuse(reading, ERR_FORMAT, "is no number", key);
	if (!(value >= 0) || value > most)
		return refuse(reading, ERR_FORMAT, "is out of range", key);
	*to = value;
	return true;
}

static bool take_bool(struct reading *reading, const char *key, bool *to)
{
	enum json_scan_token token = json_scan_next(&reading->scan);

	if (token != JSON_SCAN_TRUE && token != JSON_SCAN_FALSE)
		return reading->scan.problem
			       ? refuse_scan(reading)
			       : refuse(reading, ERR_FORMAT, "is neither true nor false", key);
	*to = token == JSON_SCAN_TRUE;
	return true;
}

/* ---- a table of fields ----------------------------------------------------------------------- */

enum field_type { FIELD_TEXT, FIELD_COUNT, FIELD_COUNT32, FIELD_FIGURE, FIELD_BOOL };

struct field {
	const char *key;
	enum field_type type;
	size_t offset;
	size_t size; /* of a text */
	double most; /* of a number */
	bool is_needed;
};

enum { FIELDS_MAX = 32 };
static const double time_most = 1e18, rate_most = 1e18, log_most = 100, calls_most = 1e18;

static bool take_field(struct reading *reading, const struct field *field, void *object)
{
	void *to = (char *)object + field->offset;
	uint64_t count = 0;
	double figure = 0;

	switch (field->type) {
	case FIELD_TEXT:
		return take_text(reading, field->key, to, field->size);
	case FIELD_COUNT:
		return take_count(reading, field->key, (uint64_t)field->most, to);
	case FIELD_COUNT32:
		if (!take_count(reading, field->key, (uint64_t)field->most, &count))
			return false;
		memcpy(to, &(uint32_t){ (uint32_t)count }, sizeof(uint32_t));
		return true;
	case FIELD_FIGURE:
		if (!take_figure(reading, field->key, field->most, &figure))
			return false;
		memcpy(to, &figure, sizeof(figure));
		return true;
	case FIELD_BOOL:
		return take_bool(reading, field->key, to);
	}
	return false;
}

static const struct field *find_field(const struct json_scan *scan, const struct field *fields,
				      size_t count, size_t *place)
{
	for (size_t i = 0; i < count; i++)
		if (json_scan_is(scan, fields[i].key)) {
			*place = i;
			return &fields[i];
		}
	return NULL;
}

/* The rest of an object whose '{' was read. */
static bool take_object(struct reading *reading, const struct field *fields, size_t count,
			void *object)
{
	bool has[FIELDS_MAX] = { false };
	enum json_scan_token token;
	size_t place = 0;

	while ((token = json_scan_next(&reading->scan)) == JSON_SCAN_KEY) {
		const struct field *field = find_field(&reading->scan, fields, count, &place);

		if (field == NULL) {
			if (!json_scan_skip(&reading->scan))
				return refuse_scan(reading);
			continue;
		}
		if (has[place])
			return refuse(reading, ERR_FORMAT, "is there twice", field->key);
		has[place] = true;
		if (!take_field(reading, field, object))
			return false;
	}
	if (token != JSON_SCAN_OBJECT_END)
		return refuse_scan(reading);
	for (size_t i = 0; i < count; i++)
		if (fields[i].is_needed && !has[i])
			return refuse(reading, ERR_FORMAT, "is missing", fields[i].key);
	return true;
}

/* ---- rows ------------------------------------------------------------------------------------ */

#define ROW(member) offsetof(struct baseline_row, member)
#define ROW_TEXT(member) ROW(member), sizeof(((struct baseline_row *)NULL)->member)

static const struct field row_fields[] = {
	{ "comm_name", FIELD_TEXT, ROW_TEXT(comm_name), 0, true },
	{ "kind", FIELD_TEXT, ROW_TEXT(kind), 0, true },
	{ "function", FIELD_TEXT, ROW_TEXT(function), 0, true },
	{ "size", FIELD_TEXT, ROW_TEXT(size), 0, true },
	{ "algorithm", FIELD_TEXT, ROW_TEXT(algorithm), 0, true },
	{ "protocol", FIELD_TEXT, ROW_TEXT(protocol), 0, true },
	{ "nranks", FIELD_COUNT32, ROW(nranks), 0, INT32_MAX, true },
	{ "nnodes", FIELD_COUNT32, ROW(nnodes), 0, INT32_MAX, true },
	{ "calls", FIELD_COUNT, ROW(calls), 0, calls_most, true },
	{ "communicators", FIELD_COUNT, ROW(comms), 0, calls_most, false },
	{ "is_joined", FIELD_BOOL, ROW(is_joined), 0, 0, true },
	{ "busbw_bytes_per_second", FIELD_FIGURE, ROW(busbw), 0, rate_most, true },
	{ "mean_ns", FIELD_FIGURE, ROW(mean_ns), 0, time_most, true },
	{ "median_ns", FIELD_FIGURE, ROW(median_ns), 0, time_most, true },
	{ "p10_ns", FIELD_FIGURE, ROW(p10_ns), 0, time_most, true },
	{ "p99_ns", FIELD_FIGURE, ROW(p99_ns), 0, time_most, true },
	{ "wire_ns", FIELD_FIGURE, ROW(wire_ns), 0, time_most, false },
	{ "consume_ns", FIELD_FIGURE, ROW(consume_ns), 0, time_most, false },
	{ "log_mean", FIELD_FIGURE, ROW(log_mean), 0, log_most, true },
	{ "log_deviation", FIELD_FIGURE, ROW(log_deviation), 0, log_most, true },
	{ "samples", FIELD_FIGURE, ROW(samples), 0, calls_most, true },
};
_Static_assert(ARRAY_LENGTH(row_fields) <= FIELDS_MAX, "more fields than take_object() knows");

static struct baseline_row *new_row(struct reading *reading)
{
	struct baseline *baseline = reading->baseline;

	if (baseline->count == BASELINE_ROWS_MAX) {
		refuse(reading, ERR_FORMAT, "more rows than a baseline may have", "rows");
		return NULL;
	}
	if (baseline->count == reading->room) {
		size_t room = reading->room ? reading->room * 2 : 64;
		struct baseline_row *rows = realloc(baseline->rows, room * sizeof(*rows));

		if (rows == NULL) {
			reading->status = ERR_NO_SPACE;
			return NULL;
		}
		baseline->rows = rows;
		reading->room = room;
	}
	baseline->rows[baseline->count] = (struct baseline_row){ .comms = 1 };
	return &baseline->rows[baseline->count];
}

static bool take_rows(struct reading *reading)
{
	enum json_scan_token token = json_scan_next(&reading->scan);

	if (token != JSON_SCAN_ARRAY)
		return reading->scan.problem ? refuse_scan(reading)
					     : refuse(reading, ERR_FORMAT, "is no list", "rows");
	while ((token = json_scan_next(&reading->scan)) == JSON_SCAN_OBJECT) {
		struct baseline_row *row = new_row(reading);

		if (row == NULL || !take_object(reading, row_fields, ARRAY_LENGTH(row_fields), row))
			return false;
		reading->baseline->count++;
	}
	if (token != JSON_SCAN_ARRAY_END)
		return reading->scan.problem
			       ? refuse_scan(reading)
			       : refuse(reading, ERR_FORMAT, "has what is no object", "rows");
	reading->has_rows = true;
	return true;
}

/* ---- the file -------------------------------------------------------------------------------- */

#define HEAD(member) offsetof(struct baseline, member)

static const struct field head_fields[] = {
	{ "job", FIELD_TEXT, HEAD(job), sizeof(((struct baseline *)NULL)->job), 0, false },
	{ "jobs", FIELD_COUNT32, HEAD(jobs), 0, UINT32_MAX, false },
	{ "ranks", FIELD_COUNT32, HEAD(ranks), 0, UINT32_MAX, false },
	{ "recorded_until_wall_ns", FIELD_COUNT, HEAD(saved_wall_ns), 0, 18e18, false },
	{ "wait_share", FIELD_FIGURE, HEAD(wait_share), 0, 1, false },
	{ "iterations", FIELD_COUNT, HEAD(iterations), 0, calls_most, false },
	{ "iteration_operations", FIELD_COUNT32, HEAD(iteration_ops), 0, UINT32_MAX, false },
	{ "iteration_median_ns", FIELD_FIGURE, HEAD(iteration_ns), 0, time_most, false },
	{ "iteration_busy_median_ns", FIELD_FIGURE, HEAD(iteration_busy_ns), 0, time_most, false },
};

static bool take_format(struct reading *reading)
{
	char format[32];

	if (!take_text(reading, "format", format, sizeof(format)))
		return false;
	if (strcmp(format, "ringside-baseline") != 0)
		return refuse(reading, ERR_FORMAT, "is not \"ringside-baseline\"", "format");
	reading->has_format = true;
	return true;
}

static bool take_version(struct reading *reading)
{
	uint64_t version;

	if (!take_count(reading, "version", UINT64_MAX, &version))
		return false;
	if (version == 0)
		return refuse(reading, ERR_FORMAT, "0 is none", "version");
	if (version > BASELINE_VERSION)
		return refuse(reading, ERR_VERSION, "written by a newer ringside: use that one",
			      "version");
	reading->has_version = true;
	return true;
}

static bool take_key(struct reading *reading)
{
	size_t place;
	const struct field *field =
		find_field(&reading->scan, head_fields, ARRAY_LENGTH(head_fields), &place);

	if (json_scan_is(&reading->scan, "format"))
		return take_format(reading);
	if (!reading->has_format)
		return refuse(reading, ERR_FORMAT, "it does not begin with \"format\"",
			      "no baseline");
	if (json_scan_is(&reading->scan, "version"))
		return take_version(reading);
	if (!reading->has_version)
		return refuse(reading, ERR_FORMAT, "is not the second key", "version");
	if (json_scan_is(&reading->scan, "rows"))
		return reading->has_rows ? refuse(reading, ERR_FORMAT, "is there twice", "rows")
					 : take_rows(reading);
	if (field != NULL)
		return take_field(reading, field, reading->baseline);
	return json_scan_skip(&reading->scan) || refuse_scan(reading);
}

static bool take_file(struct reading *reading)
{
	enum json_scan_token token = json_scan_next(&reading->scan);

	if (token != JSON_SCAN_OBJECT)
		return refuse_scan(reading);
	while ((token = json_scan_next(&reading->scan)) == JSON_SCAN_KEY)
		if (!take_key(reading))
			return false;
	if (token != JSON_SCAN_OBJECT_END || json_scan_next(&reading->scan) != JSON_SCAN_END)
		return refuse_scan(reading);
	return reading->has_rows || refuse(reading, ERR_FORMAT, "is missing", "rows");
}

enum status baseline_read(struct baseline *baseline, const char *text, size_t length, char *why,
			  size_t why_size)
{
	struct reading reading = {
		.text = text, .baseline = baseline, .why = why, .why_size = why_size
	};

	*baseline = (struct baseline){ .rows = NULL };
	why[0] = '\0';
	json_scan_init(&reading.scan, text, length);
	if (!take_file(&reading)) {
		baseline_release(baseline);
		return reading.status;
	}
	return OK;
}
