#include "output/protobuf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/tap.h"

static int is_bytes(struct sink *sink, const char *wanted, size_t length)
{
	int is_same = sink->used == length && memcmp(sink->bytes, wanted, length) == 0;

	if (!is_same) {
		printf("# got:");
		for (size_t i = 0; i < sink->used; i++)
			printf(" %02x", (unsigned char)sink->bytes[i]);
		printf("\n");
	}
	sink->used = 0;
	return is_same;
}
#define IS_BYTES(sink, wanted) is_bytes((sink), (wanted), sizeof(wanted) - 1)

static void test_kinds(void)
{
	struct sink sink, inner;

	sink_init_memory(&sink);
	sink_init_memory(&inner);
	protobuf_unsigned(&sink, 1, 150);
	EXPECT_THAT("a number in groups of seven bits", IS_BYTES(&sink, "\x08\x96\x01"));
	protobuf_unsigned(&sink, 60, 0);
	EXPECT_THAT("a field number above 15 takes two bytes", IS_BYTES(&sink, "\xe0\x03\x00"));
	protobuf_unsigned(&sink, 1, UINT64_MAX);
	EXPECT_THAT("the largest number takes ten bytes",
		    IS_BYTES(&sink, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
	protobuf_signed(&sink, 2, -2);
	EXPECT_THAT("a negative one",
		    IS_BYTES(&sink, "\x10\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
	protobuf_fixed64(&sink, 47, 0x0102030405060708);
	EXPECT_THAT("fixed64, little-endian",
		    IS_BYTES(&sink, "\xf9\x02\x08\x07\x06\x05\x04\x03\x02\x01"));
	protobuf_double(&sink, 5, 1.0);
	EXPECT_THAT("a double is written as its bits",
		    IS_BYTES(&sink, "\x29\x00\x00\x00\x00\x00\x00\xf0\x3f"));
	protobuf_text(&sink, 2, "");
	EXPECT_THAT("an empty text", IS_BYTES(&sink, "\x12\x00"));
	protobuf_unsigned(&inner, 1, 1);
	protobuf_message(&sink, 3, &inner);
	EXPECT_THAT("a message has its length before it", IS_BYTES(&sink, "\x1a\x02\x08\x01"));
	EXPECT_THAT("and its sink can be reused", inner.used == 0);
	inner.status = ERR_NO_SPACE;
	protobuf_message(&sink, 3, &inner);
	EXPECT_THAT("a failure of the inner message is passed on", sink.status == ERR_NO_SPACE);
	sink_release(&sink);
	sink_release(&inner);
}

static void test_text(void)
{
	struct sink sink;

	sink_init_memory(&sink);
	protobuf_text(&sink, 1, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	EXPECT_THAT("characters of two, three and four bytes stay",
		    IS_BYTES(&sink, "\x0a\x09\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));
	protobuf_text(&sink, 1, "a\xff\xc3");
	EXPECT_THAT("bytes that are not UTF-8 become ?", IS_BYTES(&sink, "\x0a\x03"
									 "a??"));
	protobuf_text(&sink, 1, "\xc0\x80\xed\xa0\x80\xf5\x80\x80\x80");
	EXPECT_THAT("so do overlong forms, surrogates and values past the last code point",
		    IS_BYTES(&sink, "\x0a\x09?????????"));
	sink_release(&sink);
}

static void test_fields(void)
{
	static const struct {
		uint64_t value;
		const char *bytes;
	} numbers[] = {
		{ 0, "\x08\x00" },
		{ 127, "\x08\x7f" },
		{ 128, "\x08\x80\x01" },
		{ 300, "\x08\xac\x02" },
		{ UINT64_MAX, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" },
	};
	static const struct {
		const char *text, *bytes;
	} texts[] = {
		{ "", "" },	 { "a\xc3\xa9z", "a\xc3\xa9z" }, { "a\xff\xfez", "a??z" },
		{ "\xc3", "?" }, { "ab\xe8\xa8", "ab??" },	 { "\xe8\xa8\x93", "\xe8\xa8\x93" },
	};
	struct sink sink, message;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		sink_init_memory(&sink);
		protobuf_unsigned(&sink, 1, numbers[i].value);
		EXPECT(sink.used == (i == 0 ? 2 : strlen(numbers[i].bytes)) &&
		       memcmp(sink.bytes, numbers[i].bytes, sink.used) == 0);
		sink_release(&sink);
	}
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		sink_init_memory(&sink);
		protobuf_text(&sink, 2, texts[i].text);
		EXPECT_THAT(texts[i].bytes,
			    sink.used == 2 + strlen(texts[i].bytes) && sink.bytes[0] == 0x12 &&
				    (size_t)sink.bytes[1] == sink.used - 2 &&
				    memcmp(sink.bytes + 2, texts[i].bytes, sink.used - 2) == 0);
		sink_release(&sink);
	}
	sink_init_memory(&sink);
	sink_init_memory(&message);
	protobuf_fixed64(&message, 3, UINT64_C(0x0102030405060708));
	protobuf_double(&message, 4, 1);
	protobuf_signed(&message, 5, -1);
	protobuf_message(&sink, 17, &message);
	EXPECT(sink.used == 3 + 9 + 9 + 11 && message.used == 0 &&
	       memcmp(sink.bytes,
		      "\x8a\x01\x1d\x19\x08\x07\x06\x05\x04\x03\x02\x01\x21\0\0\0\0\0\0\xf0\x3f"
		      "\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		      sink.used) == 0);
	message.status = ERR_NO_SPACE;
	message.error = ENOMEM;
	protobuf_message(&sink, 1, &message);
	EXPECT_THAT("a message that failed fails what it is part of",
		    sink.status == ERR_NO_SPACE && sink.error == ENOMEM);
	sink_release(&sink);
	sink_release(&message);
}

int main(void)
{
	test_kinds();
	test_text();
	test_fields();
	return tap_done();
}
