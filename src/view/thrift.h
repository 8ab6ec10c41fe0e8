/*
 * Thrift's compact protocol, as much of it as Parquet's headers need. Into a sink in memory; fields
 * must come in the order of their ids.
 *
 *	thrift_struct(&thrift, 0);
 *	thrift_i32(&thrift, 1, version);
 *	thrift_list(&thrift, 2, THRIFT_STRUCT, columns);
 *		thrift_element(&thrift); ... thrift_end(&thrift);      each
 *	thrift_end(&thrift);
 */
#ifndef THRIFT_H
#define THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "view/sink.h"

enum thrift_type {
	THRIFT_TRUE = 1,
	THRIFT_FALSE = 2,
	THRIFT_I8 = 3,
	THRIFT_I32 = 5,
	THRIFT_I64 = 6,
	THRIFT_BINARY = 8,
	THRIFT_LIST = 9,
	THRIFT_STRUCT = 12,
};

enum { THRIFT_DEPTH_MAX = 8 };

struct thrift {
	struct sink *sink;
	unsigned int depth;
	int last[THRIFT_DEPTH_MAX]; /* id of the field before, per open struct */
};

void thrift_init(struct thrift *thrift, struct sink *sink);

/* A struct as a field; id 0: the outermost one, or an element of a list. */
void thrift_struct(struct thrift *thrift, int id);
void thrift_end(struct thrift *thrift);

void thrift_bool(struct thrift *thrift, int id, bool is_true);
void thrift_i8(struct thrift *thrift, int id, int8_t number);
void thrift_i32(struct thrift *thrift, int id, int32_t number);
void thrift_i64(struct thrift *thrift, int id, int64_t number);
void thrift_binary(struct thrift *thrift, int id, const void *bytes, size_t length);
void thrift_text(struct thrift *thrift, int id, const char *text);

/* A list as a field; its elements follow. */
void thrift_list(struct thrift *thrift, int id, enum thrift_type type, size_t count);
void thrift_element_i32(struct thrift *thrift, int32_t number);
void thrift_element_text(struct thrift *thrift, const char *text);

/* A field that was written before by other means follows: its header alone. */
void thrift_head(struct thrift *thrift, int id, enum thrift_type type);

#endif
