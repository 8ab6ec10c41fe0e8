/* Between the files that read a run's JSON; others use bench_read.h. The first failure sticks. */
#ifndef BENCH_READ_FIELDS_H
#define BENCH_READ_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/bench_read.h"
#include "common/attributes.h"
#include "common/status.h"
#include "import/json_scan.h"

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

/* Bytes that are still to come. */
size_t bench_reader_left(const struct bench_reader *reader);

/* After a key: its value is an array. False: it is not. */
bool bench_reader_array(struct bench_reader *reader, const char *name);
/* The next item, or the value at the top, is in reader->token; false at the end of the array. */
bool bench_reader_item(struct bench_reader *reader);
/* The last string. */
void bench_reader_text(struct bench_reader *reader, const char *name, char *to, size_t size);

/* The next key of the object that is open; others are passed over. -1: it is over, or damaged. */
int bench_reader_key(struct bench_reader *reader, const struct json_scan_key *keys, int count,
		     uint64_t *seen);

/* ---- objects of plain values ----------------------------------------------------------------- */

enum bench_field_kind {
	FIELD_OWN, /* read by a function of its own */
	FIELD_BOOL,
	FIELD_INT32, /* within [least, most] */
	FIELD_UINT32,
	FIELD_UINT64,
	FIELD_SIZE,
	FIELD_WRONG, /* null: BENCH_UNCHECKED */
	FIELD_TEXT,
	FIELD_FUNCTION, /* names; null is 0 but for a function, a mode */
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

enum { BENCH_FIELDS_MAX = 32 };

/* Called behind the key; `seen` has a bit for each key that was read before. */
typedef void (*bench_own_fn)(struct bench_reader *reader, size_t key, uint64_t seen, void *object);

/* reader->token is the begin of an object with all these keys, each once. */
void bench_reader_object(struct bench_reader *reader, const char *what,
			 const struct bench_field *fields, size_t count, void *object,
			 bench_own_fn own);

#endif
