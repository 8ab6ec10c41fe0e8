/* Shared by the files that read and write benchmark results. */
#ifndef BENCH_RESULT_INTERNAL_H
#define BENCH_RESULT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bench/bench_result.h"
#include "common/attributes.h"
#include "common/status.h"
#include "common/text.h"
#include "import/json_scan.h"
#include "output/json.h"

/*
 * Cleans text from elsewhere (host names, commands) for formats that require UTF-8. Copies a field of `size` bytes
 * with '?' for each invalid byte, so that it never gets longer. `to` has the same size.
 */
static inline char *bench_text_clean(char *to, const char *field, size_t size)
{
	size_t length = strnlen(field, size - 1), bytes;

	memcpy(to, field, length);
	to[length] = '\0';
	for (size_t at = 0; at < length; at += bytes) {
		bytes = (unsigned char)to[at] < 0x80
				? 1
				: utf8_bytes((const unsigned char *)to + at, length - at);
		if (bytes == 0) {
			to[at] = '?';
			bytes = 1;
		}
	}
	return to;
}

/* Reads the benchmark's JSON. The first failure is kept. */

struct bench_reader {
	struct json_scan scan;
	struct bench_run *run;
	int32_t *peers; /* room for one per rank of the run */
	bool is_ours;	/* the format has been recognized */
	size_t result;	/* number of the result being read, from 1; 0: none */
	enum json_scan_token token;
	enum status status;
	struct bench_read_problem problem;
};

void bench_reader_start(struct bench_reader *reader, struct bench_run *run, const char *text,
			size_t length);
void bench_reader_end(struct bench_reader *reader);

/* Records a failure at the current position; ERR_FORMAT. */
void bench_reader_fail(struct bench_reader *reader, const char *format, ...) PRINTF_LIKE(2, 3);
void bench_reader_no_memory(struct bench_reader *reader);

/* After a key: expects an array. False: it is not one. */
bool bench_reader_array(struct bench_reader *reader, const char *name);
/* Puts the next element, or the value at the top, into reader->token; false at the end of the array. */
bool bench_reader_item(struct bench_reader *reader);
/* Copies the last string. */
void bench_reader_text(struct bench_reader *reader, const char *name, char *to, size_t size);

/* ---- objects of plain values: one table to read and to write them ----------------------------- */

enum bench_field_kind {
	FIELD_OWN, /* read by its own function */
	FIELD_BOOL,
	FIELD_INT32, /* within [least, most] */
	FIELD_UINT32,
	FIELD_UINT64,
	FIELD_SIZE,
	FIELD_WRONG, /* null: BENCH_UNCHECKED */
	FIELD_TEXT,  /* written with '?' for each invalid UTF-8 byte, so that the length stays */
	FIELD_PLAIN_TEXT, /* as json_string() writes it */
	FIELD_FUNCTION,	  /* names; null is 0, except for a function or mode */
	FIELD_DATATYPE,
	FIELD_ALGORITHM,
	FIELD_PROTOCOL,
	FIELD_REDOP,
	FIELD_MODE,
};

struct bench_field {
	struct json_scan_key key;
	enum bench_field_kind kind;
	size_t offset; /* in its struct */
	size_t size;
	int64_t least;
	int64_t most;
};

#define FIELD_KEY(name) JSON_SCAN_KEY_OF(name)

/* Called after the key of a FIELD_OWN field; `seen` has a bit for each key read before. */
typedef void (*bench_own_fn)(struct bench_reader *reader, const struct bench_field *field,
			     uint64_t seen, void *object);

/* reader->token is the start of an object that must have each of these keys once. */
void bench_reader_object(struct bench_reader *reader, const char *what,
			 const struct bench_field *fields, size_t count, void *object,
			 bench_own_fn own);

/* Writes the same fields in order into an open object; `own` writes key and value of FIELD_OWN fields. */
typedef void (*bench_put_own_fn)(struct json *json, const struct bench_field *field,
				 const void *object);
void bench_fields_put(struct json *json, const struct bench_field *fields, size_t count,
		      const void *object, bench_put_own_fn own);

/* The name of a number in a field of a name kind; NULL: unknown. */
const char *bench_field_name(enum bench_field_kind kind, uint8_t number);

/* Location of a field: offset and size. */
#define FIELD_AT(type, member) offsetof(struct type, member), sizeof(((struct type *)NULL)->member)
/* A field that needs its own function. */
#define FIELD_OF_OWN(name)                             \
	{                                              \
		FIELD_KEY(name), FIELD_OWN, 0, 0, 0, 0 \
	}

#endif
