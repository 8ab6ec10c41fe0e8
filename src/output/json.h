/*
 * Writes JSON into a sink: commas, nesting and escaping. Integers keep all 64 bits. Bytes that are not UTF-8 become
 * U+FFFD, so the output is valid JSON whatever names contain.
 *
 *	json_object(&json);
 *	json_key(&json, "bytes");
 *	json_unsigned(&json, bytes);
 *	json_end(&json);
 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "common/text.h"
#include "output/sink.h"

enum { JSON_DEPTH_MAX = 32 };

struct json {
	struct sink *sink; /* borrowed */
	unsigned int depth;
	uint32_t is_object; /* bit d: the scope at depth d is an object */
	uint32_t has_items;
	bool has_key; /* a key was written, its value is missing */
	bool is_wrong;
	/* For json_row() and json_row_names(). */
	unsigned int row_depth; /* depth of the open row; 0: none */
	bool is_names;
	unsigned int skipped_depth; /* open scopes in a value that is not written */
};

void json_init(struct json *json, struct sink *sink);

void json_object(struct json *json);
void json_array(struct json *json);
void json_end(struct json *json); /* of the innermost object or array */

void json_key(struct json *json, const char *key);

void json_string(struct json *json, const char *text); /* NULL: null */
void json_unsigned(struct json *json, uint64_t number);
void json_signed(struct json *json, int64_t number);
void json_double(struct json *json, double number); /* null if not finite */
void json_bool(struct json *json, bool is_true);
void json_null(struct json *json);
/* "0x" and 16 digits, as a string, so that no reader rounds it. */
void json_hex(struct json *json, uint64_t number);

/*
 * A row of a table is written like an object, with keys, but becomes an array of the values. json_row_names() makes
 * an array of the keys instead. Rows do not nest.
 */
void json_row(struct json *json);
void json_row_names(struct json *json);

/* Ends the line after a complete top-level value; another value may follow. */
void json_line(struct json *json);

/*
 * ERR_FORMAT if calls were not nested correctly (a value without key, an extra end, something left open), else the
 * sink's status.
 */
enum status json_status(const struct json *json);

/*
 * Length of the multi-byte UTF-8 sequence at `at`, which is terminated; 0 for one-byte characters and invalid
 * sequences.
 */
static inline size_t json_utf8_length(const unsigned char *at)
{
	return utf8_bytes(at, 4);
}

/* A key and its value in one call. */
void json_put_string(struct json *json, const char *key, const char *text);
void json_put_unsigned(struct json *json, const char *key, uint64_t number);
void json_put_signed(struct json *json, const char *key, int64_t number);
void json_put_double(struct json *json, const char *key, double number);
void json_put_bool(struct json *json, const char *key, bool is_true);
void json_put_null(struct json *json, const char *key);
void json_put_hex(struct json *json, const char *key, uint64_t number);
/* null if unknown: a number of -1, a natural number below 0, a time of 0, a text of "". */
void json_put_known(struct json *json, const char *key, bool is_known, uint64_t number);
void json_put_known_signed(struct json *json, const char *key, bool is_known, int64_t number);
void json_put_known_double(struct json *json, const char *key, bool is_known, double number);
void json_put_number_or_null(struct json *json, const char *key, int64_t number);
void json_put_natural_or_null(struct json *json, const char *key, int64_t number);
void json_put_time_or_null(struct json *json, const char *key, uint64_t ns);
void json_put_text_or_null(struct json *json, const char *key, const char *text);
void json_put_object(struct json *json, const char *key);
void json_put_array(struct json *json, const char *key);

/* A document that is one object on one line: begins and ends it. */
void json_begin(struct json *json, struct sink *sink);
void json_finish(struct json *json);

#endif
