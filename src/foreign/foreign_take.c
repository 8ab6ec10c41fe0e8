/* Values of JSON, with what is wrong about them in a few words. */
#include <string.h>

#include "common/attributes.h"
#include "common/text.h"
#include "foreign/foreign_parts.h"

/* The next token; false when it is null or the JSON is damaged. */
static bool next_value(struct foreign_reading *reading)
{
	if (UNLIKELY(json_scan_next(&reading->scan) == JSON_SCAN_ERROR)) {
		reading->problem = reading->scan.problem;
		return false;
	}
	return reading->scan.token != JSON_SCAN_NULL;
}

static bool complain(struct foreign_reading *reading, const char *problem)
{
	reading->problem = problem;
	return false;
}

#define TAKE_NOTHING(reading) ((reading)->problem == NULL)

bool foreign_take_any_unsigned(struct foreign_reading *reading, uint64_t *value)
{
	if (!next_value(reading))
		return TAKE_NOTHING(reading);
	if (!json_scan_unsigned(&reading->scan, value))
		return complain(reading, "a value is no number from 0 to 2^64 - 1");
	return true;
}

bool foreign_take_signed(struct foreign_reading *reading, int64_t *value)
{
	if (!next_value(reading))
		return TAKE_NOTHING(reading);
	if (!json_scan_signed(&reading->scan, value))
		return complain(reading, "a value is no whole number");
	return true;
}

bool foreign_take_int32(struct foreign_reading *reading, int32_t *value)
{
	uint64_t number;
	int64_t wide;

	if (LIKELY(json_scan_take(&reading->scan, &number)) && number <= INT32_MAX) {
		*value = (int32_t)number;
		return true;
	}
	/* Taken, and too large: the token still says so. */
	if (reading->scan.token == JSON_SCAN_KEY && !next_value(reading))
		return TAKE_NOTHING(reading);
	if (!json_scan_signed(&reading->scan, &wide) || wide < INT32_MIN || wide > INT32_MAX)
		return complain(reading, "a value is no number of 32 bits");
	*value = (int32_t)wide;
	return true;
}

bool foreign_take_bool(struct foreign_reading *reading, bool *value)
{
	if (!next_value(reading))
		return TAKE_NOTHING(reading);
	if (reading->scan.token != JSON_SCAN_TRUE && reading->scan.token != JSON_SCAN_FALSE)
		return complain(reading, "a value is neither true nor false");
	*value = reading->scan.token == JSON_SCAN_TRUE;
	return true;
}

bool foreign_take_any_us(struct foreign_reading *reading, uint64_t *ns)
{
	if (!next_value(reading))
		return TAKE_NOTHING(reading);
	if (!json_scan_thousandths(&reading->scan, ns))
		return complain(reading, "a value is no time in microseconds");
	return true;
}

bool foreign_take_text(struct foreign_reading *reading, char *to, size_t size)
{
	if (!next_value(reading))
		return TAKE_NOTHING(reading);
	if (reading->scan.token != JSON_SCAN_STRING)
		return complain(reading, "a value is no string");
	json_scan_text(&reading->scan, to, size);
	for (char *at = to; *at != '\0'; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			*at = '?';
	return true;
}

bool foreign_take_skip(struct foreign_reading *reading)
{
	if (json_scan_skip(&reading->scan))
		return true;
	return complain(reading, reading->scan.problem);
}

static bool take_begin(struct foreign_reading *reading, bool *is_there, uint8_t token,
		       const char *problem)
{
	*is_there = false;
	if (!next_value(reading))
		return TAKE_NOTHING(reading);
	if (reading->scan.token != token)
		return complain(reading, problem);
	*is_there = true;
	return true;
}

bool foreign_begin_line(struct foreign_reading *reading)
{
	reading->problem = NULL;
	reading->details.count = reading->details.total = 0;
	json_scan_init(&reading->scan, reading->line.text, reading->line.length);
	if (json_scan_next(&reading->scan) != JSON_SCAN_OBJECT)
		reading->problem = reading->scan.problem != NULL ? reading->scan.problem
								 : "it is no JSON object";
	return reading->problem == NULL;
}

bool foreign_take_object(struct foreign_reading *reading, bool *is_there)
{
	return take_begin(reading, is_there, JSON_SCAN_OBJECT, "a value is no object");
}

bool foreign_take_array(struct foreign_reading *reading, bool *is_there)
{
	return take_begin(reading, is_there, JSON_SCAN_ARRAY, "a value is no list");
}

bool foreign_take_choice(struct foreign_reading *reading, const char *const *quoted, uint8_t count,
			 uint8_t *choice)
{
	const struct json_scan *scan = &reading->scan;

	for (uint8_t i = 0; i < count; i++) {
		if (json_scan_take_text(&reading->scan, quoted[i], strlen(quoted[i]))) {
			*choice = i;
			return true;
		}
	}
	*choice = count;
	if (!next_value(reading))
		return TAKE_NOTHING(reading);
	if (scan->token != JSON_SCAN_STRING)
		return complain(reading, "a value is no string");
	/* The same behind a blank. */
	for (uint8_t i = 0; i < count; i++)
		if (!scan->has_escapes && scan->length + 2 == strlen(quoted[i]) &&
		    memcmp(scan->text, quoted[i] + 1, scan->length) == 0)
			*choice = i;
	return true;
}

/* Names of functions that only other tools use: Inspector the first, CoMMA the others. */
static uint8_t find_function(const char *name)
{
	static const struct {
		const char *name;
		uint8_t function;
	} others[] = {
		{ "All2All", OP_ALL_TO_ALL },
		{ "all_reduce", OP_ALL_REDUCE },
		{ "all_gather", OP_ALL_GATHER },
		{ "reduce_scatter", OP_REDUCE_SCATTER },
		{ "broadcast", OP_BROADCAST },
		{ "reduce", OP_REDUCE },
		{ "send", OP_SEND },
		{ "recv", OP_RECV },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(others); i++)
		if (strcmp(others[i].name, name) == 0)
			return others[i].function;
	return OP_FUNCTION_UNKNOWN;
}

/* NCCL's name, or another tool's; CoMMA writes those of algorithms and protocols small. */
static uint8_t find_number(enum op_name_table table, const char *name)
{
	char large[FOREIGN_NAME_BYTES];
	int is_known;
	uint8_t number = op_name_find(table, name, &is_known);

	if (is_known)
		return number;
	if (table == OP_NAMES_FUNCTION)
		return find_function(name);
	text_copy(large, sizeof(large), name);
	for (char *at = large; *at != '\0'; at++)
		if (*at >= 'a' && *at <= 'z')
			*at = (char)(*at - 'a' + 'A');
	return op_name_find(table, large, &is_known);
}

static uint8_t find_name(struct foreign_names *names, enum op_name_table table, const char *text,
			 size_t length)
{
	unsigned int at = names->next++ % FOREIGN_NAMES_KEPT;
	char name[FOREIGN_NAME_BYTES];

	memcpy(name, text, length);
	name[length] = '\0';
	text_format(names->kept[at].quoted, sizeof(names->kept[at].quoted), "\"%s\"", name);
	names->kept[at].length = (uint8_t)(length + 2);
	names->kept[at].number = find_number(table, name);
	return names->kept[at].number;
}

bool foreign_take_name(struct foreign_reading *reading, enum op_name_table table, uint8_t *number)
{
	struct foreign_names *names = &reading->names[table];
	struct json_scan *scan = &reading->scan;

	for (unsigned int i = 0; i < FOREIGN_NAMES_KEPT && names->kept[i].length > 0; i++) {
		if (json_scan_take_text(scan, names->kept[i].quoted, names->kept[i].length)) {
			*number = names->kept[i].number;
			return true;
		}
	}
	if (!next_value(reading))
		return TAKE_NOTHING(reading);
	if (scan->token != JSON_SCAN_STRING)
		return complain(reading, "a value is no string");
	*number = 0;
	if (!scan->has_escapes && scan->length > 0 && scan->length + 2 < FOREIGN_NAME_BYTES)
		*number = find_name(names, table, scan->text, scan->length);
	return true;
}
