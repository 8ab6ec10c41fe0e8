/* What the files share that read and write results of the benchmark. */
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

/* Texts that come from elsewhere (names of machines, commands): formats that must be UTF-8 get them so.
 * Copy of a field of `size` bytes; a '?' for each byte that is no UTF-8, so that it never gets longer. `to` has
 * room for as much. */
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

/* Reading JSON of the benchmark. The first failure sticks. */

struct bench_reader {
	struct json_scan scan;
	struct bench_run *run;
	int32_t *peers; /* room for as many as the run has ranks */
	bool is_ours;	/* its format is ours */
	size_t result;	/* which one is being read, from 1; 0 none */
	enum json_scan_token token;
	enum status status;
	struct bench_read_problem problem;
};

void bench_reader_start(struct bench_reader *reader, struct bench_run *run, const char *text,
			size_t length);
void bench_reader_end(struct bench_reader *reader);

/* Here, and why; ERR_FORMAT. */
void bench_reader_fail(struct bench_reader *reader, const char *format, ...) PRINTF_LIKE(2, 3);
void bench_reader_no_memory(struct bench_reader *reader);

/* After a key: its value is an array. False: it is not. */
bool bench_reader_array(struct bench_reader *reader, const char *name);
/* The next item, or the value at the top, is in reader->token; false at the end of the array. */
bool bench_reader_item(struct bench_reader *reader);
/* The last string. */
void bench_reader_text(struct bench_reader *reader, const char *name, char *to, size_t size);

/* ---- objects of plain values: one table to read and to write them ----------------------------- */

enum bench_field_kind {
	FIELD_OWN, /* read by a function of its own */
	FIELD_BOOL,
	FIELD_INT32, /* within [least, most] */
	FIELD_UINT32,
	FIELD_UINT64,
	FIELD_SIZE,
	FIELD_WRONG, /* null: BENCH_UNCHECKED */
	FIELD_TEXT,  /* written with a '?' for each byte that is no UTF-8, so that it is as long */
	FIELD_PLAIN_TEXT, /* as json_string() writes it */
	FIELD_FUNCTION,	  /* names; null is 0 but for a function, a mode */
	FIELD_DATATYPE,
	FIELD_ALGORITHM,
	FIELD_PROTOCOL,
	FIELD_REDOP,
	FIELD_MODE,
};

struct bench_field {
	struct json_scan_key key;
	enum bench_field_kind kind;
	size_t offset; /* in the struct that it is a field of */
	size_t size;
	int64_t least;
	int64_t most;
};

#define FIELD_KEY(name) JSON_SCAN_KEY_OF(name)

/* Called behind the key of a field of FIELD_OWN; `seen` has a bit for each key that was read before. */
typedef void (*bench_own_fn)(struct bench_reader *reader, const struct bench_field *field,
			     uint64_t seen, void *object);

/* reader->token is the begin of an object with all these keys, each once. */
void bench_reader_object(struct bench_reader *reader, const char *what,
			 const struct bench_field *fields, size_t count, void *object,
			 bench_own_fn own);

/* The same fields into an object that is open, in their order; `own` writes key and value of those of FIELD_OWN. */
typedef void (*bench_put_own_fn)(struct json *json, const struct bench_field *field,
				 const void *object);
void bench_fields_put(struct json *json, const struct bench_field *fields, size_t count,
		      const void *object, bench_put_own_fn own);

/* The name that a number has in a field of a kind of names; NULL: none was told. */
const char *bench_field_name(enum bench_field_kind kind, uint8_t number);

/* The arguments of a field that say where it is. */
#define FIELD_AT(type, member) offsetof(struct type, member), sizeof(((struct type *)NULL)->member)
/* One that only a function of its own can read. */
#define FIELD_OF_OWN(name)                             \
	{                                              \
		FIELD_KEY(name), FIELD_OWN, 0, 0, 0, 0 \
	}

#endif
