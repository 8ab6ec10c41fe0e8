/* Packed data is unpacked here bit by bit, following the specification. */
#include "output/parquet.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "tests/tap.h"

enum { COUNT_MAX = 3000, BYTES_MAX = COUNT_MAX * 9 + 4096 };

static uint8_t bytes[BYTES_MAX];
static uint64_t random_state = 1;

static uint64_t random_word(void)
{
	return random_state = hash_word(random_state, 3);
}

static uint64_t read_varint(const uint8_t **at)
{
	uint64_t number = 0;
	unsigned int shift = 0;

	do
		number |= (uint64_t)(**at & 0x7f) << shift;
	while (shift += 7, *(*at)++ & 0x80);
	return number;
}

static int64_t read_zigzag(const uint8_t **at)
{
	uint64_t number = read_varint(at);

	return (int64_t)(number >> 1) ^ -(int64_t)(number & 1);
}

static uint64_t read_bits(const uint8_t *from, size_t bit, unsigned int width)
{
	uint64_t number = 0;

	for (unsigned int i = 0; i < width; i++, bit++)
		number |= (uint64_t)(from[bit / 8] >> bit % 8 & 1) << i;
	return number;
}

/* ---- codes ------------------------------------------------------------------------------------- */

/* Returns the number of codes, at most `most`. */
static size_t unpack_codes(const uint8_t *at, const uint8_t *end, unsigned int width,
			   uint16_t *codes, size_t most)
{
	size_t count = 0;

	while (at < end && count < most) {
		uint64_t head = read_varint(&at), value = 0;

		if (head & 1) {
			for (size_t i = 0; i < (head >> 1) * 8 && count < most; i++)
				codes[count++] = (uint16_t)read_bits(at, i * width, width);
			at += (head >> 1) * width;
			continue;
		}
		for (unsigned int i = 0; i < (width + 7) / 8; i++)
			value |= (uint64_t)*at++ << 8 * i;
		for (uint64_t i = 0; i < head >> 1 && count < most; i++)
			codes[count++] = (uint16_t)value;
	}
	return at == end ? count : 0;
}

/* Runs of all lengths and codes between them. */
static void make_codes(uint16_t *codes, size_t count, unsigned int width)
{
	uint64_t mask = (UINT64_C(1) << width) - 1;

	for (size_t at = 0; at < count;) {
		size_t run = random_word() % 3 ? 1 : random_word() % 300;
		uint16_t code = (uint16_t)(random_word() & mask);

		for (size_t i = 0; i < run && at < count; i++)
			codes[at++] = code;
	}
}

static void test_codes(void)
{
	uint16_t codes[COUNT_MAX], back[COUNT_MAX];
	int is_same = 1, is_small = 1;

	for (unsigned int width = 1; width <= 16; width++) {
		for (unsigned int round = 0; round < 60; round++) {
			size_t count = random_word() % COUNT_MAX, length;

			make_codes(codes, count, width);
			length = parquet_pack_codes(bytes, codes, count, width);
			is_small &= length <= PARQUET_CODES_BYTES(count);
			is_same &= unpack_codes(bytes, bytes + length, width, back, count) == count;
			is_same &= memcmp(codes, back, count * sizeof(*codes)) == 0;
		}
	}
	EXPECT_THAT("codes of every width survive packing", is_same);
	EXPECT_THAT("they take no more space than documented", is_small);
	memset(codes, 0, sizeof(codes));
	EXPECT_THAT("a run takes a few bytes", parquet_pack_codes(bytes, codes, COUNT_MAX, 7) == 3);
	EXPECT_EQUAL(parquet_pack_codes(bytes, codes, 0, 7), 0);
	EXPECT_EQUAL(parquet_pack_run(bytes, 100, 0x1ff, 9), 4);
	EXPECT_EQUAL(unpack_codes(bytes, bytes + 4, 9, back, COUNT_MAX), 100);
	EXPECT_EQUAL(back[99], 0x1ff);
}

/* ---- differences ------------------------------------------------------------------------------- */

static size_t pack_deltas(const uint64_t *values, size_t count, bool is_narrow)
{
	size_t length = parquet_pack_delta_head(bytes, count, count ? values[0] : 0, is_narrow);

	for (size_t at = 1; at < count; at += PARQUET_DELTA_BLOCK) {
		size_t part = count - at < PARQUET_DELTA_BLOCK ? count - at : PARQUET_DELTA_BLOCK;

		length += parquet_pack_delta_block(bytes + length, values + at, part, is_narrow);
	}
	return length;
}

/* False if the bytes violate the specification. */
static int unpack_deltas(const uint8_t *at, const uint8_t *end, uint64_t *values, size_t count,
			 bool is_narrow)
{
	uint64_t block = read_varint(&at), miniblocks = read_varint(&at);
	uint64_t total = read_varint(&at), each;
	uint64_t value = (uint64_t)read_zigzag(&at);
	size_t done = 0;

	if (total != count || block % 128 != 0 || block / miniblocks % 32 != 0)
		return 0;
	each = block / miniblocks;
	if (count > 0)
		values[done++] = value;
	while (done < count) {
		uint64_t least = (uint64_t)read_zigzag(&at);
		const uint8_t *widths = at;

		at += miniblocks;
		for (uint64_t i = 0; i < miniblocks && done < count; i++) {
			if (widths[i] > (is_narrow ? 32 : 64))
				return 0;
			for (uint64_t k = 0; k < each && done < count; k++) {
				value += least + read_bits(at, k * widths[i], widths[i]);
				values[done++] = value;
			}
			at += each * widths[i] / 8;
		}
	}
	return at == end;
}

/* Differences of so many bits, with a few wide ones. */
static void make_values(uint64_t *values, size_t count, unsigned int bits)
{
	uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
	uint64_t value = random_word();

	for (size_t i = 0; i < count; i++) {
		value += random_word() % 100 == 0 ? random_word() : random_word() & mask;
		values[i] = value;
	}
}

static void test_deltas(void)
{
	uint64_t values[COUNT_MAX], back[COUNT_MAX];
	int is_same = 1, is_narrow_same = 1, is_small = 1;

	for (unsigned int bits = 0; bits <= 64; bits++) {
		for (unsigned int round = 0; round < 12; round++) {
			size_t count = round < 3 ? round : random_word() % COUNT_MAX, length;

			make_values(values, count, bits);
			length = pack_deltas(values, count, false);
			is_small &= length <= PARQUET_DELTA_BYTES(count);
			is_same &= unpack_deltas(bytes, bytes + length, back, count, false) &&
				   memcmp(values, back, count * sizeof(*values)) == 0;
			length = pack_deltas(values, count, true);
			is_narrow_same &= unpack_deltas(bytes, bytes + length, back, count, true);
			for (size_t i = 0; i < count; i++)
				is_narrow_same &= (uint32_t)values[i] == (uint32_t)back[i];
		}
	}
	EXPECT_THAT("values of every width survive packing", is_same);
	EXPECT_THAT("so do 32-bit values, with 32-bit differences", is_narrow_same);
	EXPECT_THAT("they take no more space than documented", is_small);
	for (size_t i = 0; i < COUNT_MAX; i++)
		values[i] = i;
	EXPECT_THAT("consecutive numbers take little space",
		    pack_deltas(values, COUNT_MAX, false) < COUNT_MAX / 20);
}

/* ---- the rest ---------------------------------------------------------------------------------- */

static void test_range(void)
{
	uint64_t values[37], least, most;

	for (unsigned int i = 0; i < 37; i++)
		values[i] = 1000 + i * 7 % 37;
	values[36] = UINT64_MAX;
	parquet_find_range(values, 37, true, &least, &most);
	EXPECT_THAT("the largest unsigned number is the maximum",
		    most == UINT64_MAX && least == 1000);
	parquet_find_range(values, 37, false, &least, &most);
	EXPECT_THAT("but the minimum in signed order", least == UINT64_MAX && most == 1036);
	parquet_find_range(values, 1, true, &least, &most);
	EXPECT_THAT("a single value is both", least == 1000 && most == 1000);
	values[7] = values[36] = 1000;
	EXPECT_EQUAL(parquet_count(values, 37, 1000), 3);
	EXPECT_EQUAL(parquet_count(values, 37, 5), 0);
}

static void test_nulls(void)
{
	uint64_t values[200], kept[200], bits[8] = { 0 };
	uint16_t codes[200], kept_codes[200];
	int is_right = 1;
	size_t count, at = 0;

	for (unsigned int i = 0; i < 200; i++) {
		values[i] = i % 3 ? i : 77777;
		codes[i] = i % 3 ? (uint16_t)i : PARQUET_NULL_CODE;
	}
	parquet_set_bits(bits, 3, 100);
	is_right &= bits[0] == ~UINT64_C(7) && bits[1] == (UINT64_C(1) << 39) - 1 && bits[2] == 0;
	EXPECT_THAT("bits are set in any range", is_right);
	count = parquet_drop_null_values(kept, bits, 103, values, 200, 77777);
	EXPECT_EQUAL(count, 133);
	for (unsigned int i = 0; i < 200; i++) {
		unsigned int is_there = bits[(103 + i) / 64] >> (103 + i) % 64 & 1;

		is_right &= is_there == (i % 3 != 0) && (!is_there || kept[at++] == i);
	}
	EXPECT_THAT("non-null values are kept, bits mark their rows", is_right);
	memset(bits, 0, sizeof(bits));
	EXPECT_EQUAL(parquet_drop_null_codes(kept_codes, bits, codes, 200), 133);
	EXPECT_THAT("so do codes", kept_codes[132] == 199 && bits[0] << 1 >> 63 == 1);
}

static void test_plain(void)
{
	uint64_t values[] = { 0x0102030405060708, UINT64_MAX };

	EXPECT_EQUAL(parquet_pack_plain(bytes, values, 2, false), 16);
	EXPECT_THAT("plain numbers are little-endian", bytes[0] == 8 && bytes[7] == 1);
	EXPECT_EQUAL(parquet_pack_plain(bytes, values, 2, true), 8);
	EXPECT_THAT("narrow ones have four bytes", bytes[3] == 5 && bytes[4] == 0xff);
	EXPECT_EQUAL(parquet_bit_width(0), 0);
	EXPECT_EQUAL(parquet_bit_width(255), 8);
	EXPECT_EQUAL(parquet_bit_width(UINT64_MAX), 64);
}

int main(void)
{
	test_codes();
	test_deltas();
	test_range();
	test_nulls();
	test_plain();
	return tap_done();
}
