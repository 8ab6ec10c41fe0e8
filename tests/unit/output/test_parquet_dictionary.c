#include "output/parquet.h"

#include <stdio.h>
#include <string.h>

#include "tests/tap.h"

static void test_numbers(void)
{
	struct parquet_dictionary dictionary;
	uint64_t some[] = { 5, 5, UINT64_MAX, 0, 5 };
	uint16_t codes[5], code = 9;
	enum status status = OK;

	parquet_dictionary_init(&dictionary);
	EXPECT(parquet_dictionary_numbers(&dictionary, some, 5, codes) == OK);
	EXPECT_THAT("codes are numbered in order of first use",
		    codes[0] == 0 && codes[1] == 0 && codes[2] == 1 && codes[3] == 2 &&
			    codes[4] == 0);
	EXPECT_EQUAL(dictionary.count, 3);
	EXPECT_THAT("a value has one code",
		    parquet_dictionary_number(&dictionary, UINT64_MAX, &code) == OK && code == 1);
	parquet_dictionary_empty(&dictionary);
	EXPECT_THAT("codes start from 0 after a reset",
		    parquet_dictionary_number(&dictionary, 0, &code) == OK && code == 0);
	for (uint64_t i = 1; i < PARQUET_DICTIONARY_MAX && status == OK; i++)
		status = parquet_dictionary_number(&dictionary, i << 40, &code);
	EXPECT_EQUAL(dictionary.count, PARQUET_DICTIONARY_MAX);
	EXPECT_THAT("a full dictionary is ERR_RANGE",
		    parquet_dictionary_number(&dictionary, 7, &code) == ERR_RANGE);
	EXPECT_THAT("and keeps its values",
		    parquet_dictionary_number(&dictionary, UINT64_C(1) << 40, &code) == OK &&
			    code == 1);
	parquet_dictionary_release(&dictionary);
}

static void test_texts(void)
{
	struct parquet_dictionary dictionary;
	uint16_t code = 9, first = 9;
	const uint8_t *bytes;
	uint32_t length = 9;
	int is_right = 1;
	char text[32];

	parquet_dictionary_init(&dictionary);
	EXPECT(parquet_dictionary_text(&dictionary, "tp", &first) == OK);
	EXPECT(parquet_dictionary_text(&dictionary, "", &code) == OK && code == 1);
	EXPECT(parquet_dictionary_text(&dictionary, "tp", &code) == OK && code == first);
	bytes = parquet_dictionary_bytes(&dictionary, first, &length);
	EXPECT_THAT("texts are kept in the format of the file",
		    length == 2 && memcmp(bytes, "tp", 2) == 0 && dictionary.text_used == 10 &&
			    memcmp(dictionary.text_bytes, "\2\0\0\0tp\0\0\0\0", 10) == 0);
	for (unsigned int i = 0; i < 5000; i++) {
		snprintf(text, sizeof(text), "communicator %u", i);
		is_right &= parquet_dictionary_text(&dictionary, text, &code) == OK;
		is_right &= code == i + 2;
	}
	EXPECT_THAT("each of many texts has a code", is_right);
	parquet_dictionary_release(&dictionary);
}

int main(void)
{
	test_numbers();
	test_texts();
	return tap_done();
}
