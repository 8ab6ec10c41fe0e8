#include "bench/bench_read_fields.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/op.h"
#include "common/text.h"

void bench_reader_start(struct bench_reader *reader, struct bench_run *run, const char *text,
			size_t length)
{
	*reader = (struct bench_reader){ .run = run };
	json_scan_init(&reader->scan, text, length);
}

void bench_reader_end(struct bench_reader *reader)
{
	free(reader->peers);
	reader->peers = NULL;
}

/* ---- trouble --------------------------------------------------------------------------------- */

static void note_place(struct bench_reader *reader)
{
	const char *at = reader->scan.start, *end;

	reader->problem.offset = json_scan_offset(&reader->scan);
	reader->problem.line = 1;
	end = at + reader->problem.offset;
	while (at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		reader->problem.line++;
		at++;
	}
}

void bench_reader_fail(struct bench_reader *reader, const char *format, ...)
{
	char why[BENCH_READ_TEXT - 32];
	va_list arguments;

	if (reader->status != OK)
		return;
	va_start(arguments, format);
	vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	reader->status = ERR_FORMAT;
	note_place(reader);
	if (reader->result > 0)
		text_format(reader->problem.text, sizeof(reader->problem.text), "result %zu: %s",
			    reader->result, why);
	else
		text_copy(reader->problem.text, sizeof(reader->problem.text), why);
}

void bench_reader_no_memory(struct bench_reader *reader)
{
	bench_reader_fail(reader, "no memory for what it holds");
	reader->status = ERR_NO_SPACE;
}

/* The scanner knows better why there is nothing to read. */
static void fail_scan(struct bench_reader *reader, const char *otherwise)
{
	bench_reader_fail(reader, "%s",
			  reader->scan.problem != NULL ? reader->scan.problem : otherwise);
}

size_t bench_reader_left(const struct bench_reader *reader)
{
	return (size_t)(reader->scan.end - reader->scan.at);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

bool bench_reader_array(struct bench_reader *reader, const char *name)
{
	if (reader->status != OK)
		return false;
	if (json_scan_next(&reader->scan) == JSON_SCAN_ARRAY)
		return true;
	if (reader->scan.problem != NULL)
		fail_scan(reader, "");
	else
		bench_reader_fail(reader, "%s is no array", name);
	return false;
}

bool bench_reader_item(struct bench_reader *reader)
{
	if (reader->status != OK)
		return false;
	reader->token = json_scan_next(&reader->scan);
	if (reader->token == JSON_SCAN_ARRAY_END)
		return false;
	if (reader->token > JSON_SCAN_END)
		return true;
	fail_scan(reader, "it ends too early");
	return false;
}

void bench_reader_text(struct bench_reader *reader, const char *name, char *to, size_t size)
{
	if (reader->status != OK)
		return;
	if (reader->scan.token != JSON_SCAN_STRING)
		bench_reader_fail(reader, "%s is no text", name);
	else if (!json_scan_text(&reader->scan, to, size))
		bench_reader_fail(reader, "%s is longer than %zu bytes", name, size - 1);
}

int bench_reader_key(struct bench_reader *reader, const struct json_scan_key *keys, int count,
		     uint64_t *seen)
{
	int key, hint = 0;

	while (reader->status == OK) {
		/* Keys come in their order, but for those that are new. */
		while (hint < count && *seen >> hint & 1)
			hint++;
		key = json_scan_next_key(&reader->scan, keys, count, &hint);
		if (key == JSON_SCAN_KEY_ERROR)
			fail_scan(reader, "no key");
		else if (key == JSON_SCAN_KEY_NONE)
			return -1;
		else if (key == JSON_SCAN_KEY_UNKNOWN && !json_scan_skip(&reader->scan))
			fail_scan(reader, "a value that is none");
		else if (key >= 0 && *seen >> key & 1)
			bench_reader_fail(reader, "%s is there twice", keys[key].name);
		else if (key >= 0) {
			*seen |= UINT64_C(1) << key;
			return key;
		}
	}
	return -1;
}

/* ---- plain values ---------------------------------------------------------------------------- */

static bool read_number(const struct bench_reader *reader, const struct bench_field *field,
			char *to)
{
	const struct json_scan *scan = &reader->scan;
	uint64_t number = 0;
	int64_t signed_number = 0;

	if (field->kind == FIELD_INT32) {
		if (!json_scan_signed(scan, &signed_number) || signed_number < field->least ||
		    signed_number > field->most)
			return false;
		memcpy(to, &(int32_t){ (int32_t)signed_number }, sizeof(int32_t));
		return true;
	}
	if (field->kind == FIELD_WRONG && scan->token == JSON_SCAN_NULL)
		number = BENCH_UNCHECKED;
	else if (!json_scan_unsigned(scan, &number))
		return false;
	if (field->kind == FIELD_UINT32) {
		if (number > UINT32_MAX)
			return false;
		memcpy(to, &(uint32_t){ (uint32_t)number }, sizeof(uint32_t));
	} else if (field->kind == FIELD_SIZE) {
		memcpy(to, &(size_t){ (size_t)number }, sizeof(size_t));
	} else {
		memcpy(to, &number, sizeof(number));
	}
	return true;
}

static bool find_name(const char *name, enum bench_field_kind kind, uint8_t *number)
{
	static const enum op_name_table tables[] = {
		[FIELD_FUNCTION] = OP_NAMES_FUNCTION,
		[FIELD_DATATYPE] = OP_NAMES_DATATYPE,
		[FIELD_ALGORITHM] = OP_NAMES_ALGORITHM,
		[FIELD_PROTOCOL] = OP_NAMES_PROTOCOL,
	};
	int is_known = 0;

	if (kind == FIELD_REDOP) {
		*number = (uint8_t)bench_redop_find(name);
		return *number != 0 || strcmp(name, bench_redop_name(BENCH_NO_REDOP)) == 0;
	}
	if (kind == FIELD_MODE)
		*number = (uint8_t)bench_mode_find(name);
	else
		*number = op_name_find(tables[kind], name, &is_known);
	return *number != 0;
}

static bool read_name(const struct bench_reader *reader, const struct bench_field *field, char *to)
{
	bool may_be_null = field->kind == FIELD_DATATYPE || field->kind == FIELD_ALGORITHM ||
			   field->kind == FIELD_PROTOCOL;
	uint8_t number = 0;
	char name[32];

	if (reader->scan.token == JSON_SCAN_NULL && may_be_null)
		return true; /* 0 it is */
	if (reader->scan.token != JSON_SCAN_STRING ||
	    !json_scan_text(&reader->scan, name, sizeof(name)) ||
	    !find_name(name, field->kind, &number))
		return false;
	memcpy(to, &number, 1);
	return true;
}

static bool read_bool(const struct bench_reader *reader, char *to)
{
	bool is_true = reader->scan.token == JSON_SCAN_TRUE;

	if (!is_true && reader->scan.token != JSON_SCAN_FALSE)
		return false;
	memcpy(to, &is_true, sizeof(is_true));
	return true;
}

static const char *what_it_is_not(enum bench_field_kind kind)
{
	switch (kind) {
	case FIELD_BOOL:
		return "neither true nor false";
	case FIELD_INT32:
	case FIELD_UINT32:
	case FIELD_UINT64:
	case FIELD_SIZE:
	case FIELD_WRONG:
		return "no whole number of the range that it may have";
	default:
		return "no name that is known here";
	}
}

static void read_field(struct bench_reader *reader, const struct bench_field *field, char *to)
{
	bool is_good;

	if (json_scan_next(&reader->scan) == JSON_SCAN_ERROR) {
		fail_scan(reader, "a value that is none");
		return;
	}
	if (field->kind == FIELD_TEXT) {
		bench_reader_text(reader, field->key.name, to, field->size);
		return;
	}
	if (field->kind == FIELD_BOOL)
		is_good = read_bool(reader, to);
	else if (field->kind >= FIELD_FUNCTION)
		is_good = read_name(reader, field, to);
	else
		is_good = read_number(reader, field, to);
	if (!is_good)
		bench_reader_fail(reader, "%s is %s", field->key.name, what_it_is_not(field->kind));
}

void bench_reader_object(struct bench_reader *reader, const char *what,
			 const struct bench_field *fields, size_t count, void *object,
			 bench_own_fn own)
{
	struct json_scan_key keys[BENCH_FIELDS_MAX];
	uint64_t seen = 0;
	int key;

	if (reader->status == OK && reader->token != JSON_SCAN_OBJECT)
		bench_reader_fail(reader, "%s is no object", what);
	for (size_t i = 0; i < count; i++)
		keys[i] = fields[i].key;
	while ((key = bench_reader_key(reader, keys, (int)count, &seen)) >= 0) {
		const struct bench_field *field = &fields[key];

		if (field->kind == FIELD_OWN)
			own(reader, (size_t)key, seen, object);
		else
			read_field(reader, field, (char *)object + field->offset);
	}
	for (size_t i = 0; i < count && reader->status == OK; i++)
		if (!(seen >> i & 1))
			bench_reader_fail(reader, "%s without %s", what, fields[i].key.name);
}
