#include "view/thrift.h"

#include <string.h>

#include "view/parquet_pack.h"

void thrift_init(struct thrift *thrift, struct sink *sink)
{
	*thrift = (struct thrift){ .sink = sink };
}

static void put_varint(struct thrift *thrift, uint64_t number)
{
	uint8_t bytes[PARQUET_VARINT_MAX];

	sink_write(thrift->sink, bytes, parquet_pack_varint(bytes, number));
}

void thrift_head(struct thrift *thrift, int id, enum thrift_type type)
{
	int *last = &thrift->last[thrift->depth];
	int step = id - *last;

	if (step > 0 && step <= 15) {
		sink_byte(thrift->sink, (char)(step << 4 | (int)type));
	} else {
		sink_byte(thrift->sink, (char)type);
		put_varint(thrift, parquet_zigzag(id));
	}
	*last = id;
}

void thrift_struct(struct thrift *thrift, int id)
{
	if (id != 0)
		thrift_head(thrift, id, THRIFT_STRUCT);
	if (thrift->depth + 1 < THRIFT_DEPTH_MAX)
		thrift->last[++thrift->depth] = 0;
}

void thrift_end(struct thrift *thrift)
{
	sink_byte(thrift->sink, 0);
	if (thrift->depth > 0)
		thrift->depth--;
}

void thrift_bool(struct thrift *thrift, int id, bool is_true)
{
	thrift_head(thrift, id, is_true ? THRIFT_TRUE : THRIFT_FALSE);
}

void thrift_i8(struct thrift *thrift, int id, int8_t number)
{
	thrift_head(thrift, id, THRIFT_I8);
	sink_byte(thrift->sink, (char)number);
}

void thrift_i32(struct thrift *thrift, int id, int32_t number)
{
	thrift_head(thrift, id, THRIFT_I32);
	put_varint(thrift, parquet_zigzag(number));
}

void thrift_i64(struct thrift *thrift, int id, int64_t number)
{
	thrift_head(thrift, id, THRIFT_I64);
	put_varint(thrift, parquet_zigzag(number));
}

void thrift_binary(struct thrift *thrift, int id, const void *bytes, size_t length)
{
	thrift_head(thrift, id, THRIFT_BINARY);
	put_varint(thrift, length);
	sink_write(thrift->sink, bytes, length);
}

void thrift_text(struct thrift *thrift, int id, const char *text)
{
	thrift_binary(thrift, id, text, strlen(text));
}

void thrift_list(struct thrift *thrift, int id, enum thrift_type type, size_t count)
{
	thrift_head(thrift, id, THRIFT_LIST);
	if (count < 15) {
		sink_byte(thrift->sink, (char)(count << 4 | type));
	} else {
		sink_byte(thrift->sink, (char)(0xf0 | type));
		put_varint(thrift, count);
	}
}

void thrift_element_i32(struct thrift *thrift, int32_t number)
{
	put_varint(thrift, parquet_zigzag(number));
}

void thrift_element_text(struct thrift *thrift, const char *text)
{
	put_varint(thrift, strlen(text));
	sink_write(thrift->sink, text, strlen(text));
}
