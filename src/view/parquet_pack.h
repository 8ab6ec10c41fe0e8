/*
 * Parquet's encodings of numbers, into memory that the caller has: every function says how much it
 * takes at most. https://parquet.apache.org/docs/file-format/data-pages/encodings/
 */
#ifndef PARQUET_PACK_H
#define PARQUET_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A number that stands for null among codes. */
enum { PARQUET_NULL_CODE = 0xffff };

enum { PARQUET_VARINT_MAX = 10 };
size_t parquet_pack_varint(uint8_t *to, uint64_t number);

static inline uint64_t parquet_zigzag(int64_t number)
{
	return (uint64_t)number << 1 ^ (uint64_t)(number >> 63);
}

/* Bits that the numbers up to `most` need. */
unsigned int parquet_bit_width(uint64_t most);

/* RLE and bit packing, mixed: codes below 2^width, width up to 16. */
#define PARQUET_CODES_BYTES(count) ((count)*2 + (count) / 4 + 64)
size_t parquet_pack_codes(uint8_t *to, const uint16_t *codes, size_t count, unsigned int width);

/* The same for `count` times one code. */
size_t parquet_pack_run(uint8_t *to, uint64_t count, uint16_t code, unsigned int width);

/*
 * DELTA_BINARY_PACKED: a head, and then blocks of PARQUET_DELTA_BLOCK values, each told by its
 * distance to the one before, so values[-1] is read; the last block may have less. is_narrow: for a
 * column of 32 bits, of which the upper half is not looked at.
 */
enum { PARQUET_DELTA_BLOCK = 128, PARQUET_DELTA_HEAD = 24 };
#define PARQUET_DELTA_BYTES(count) (((count) + 127) / 128 * (128 * 8 + 4 + 10) + 64)
size_t parquet_pack_delta_head(uint8_t *to, size_t count, uint64_t first, bool is_narrow);
size_t parquet_pack_delta_block(uint8_t *to, const uint64_t *values, size_t count, bool is_narrow);

/* PLAIN: 8 or 4 bytes each, least first. */
size_t parquet_pack_plain(uint8_t *to, const uint64_t *values, size_t count, bool is_narrow);

/* The least and the most of one value or more, in the order of unsigned or of signed numbers. */
void parquet_find_range(const uint64_t *values, size_t count, bool is_unsigned, uint64_t *least,
			uint64_t *most);

/* How many of the values are this one. */
size_t parquet_count(const uint64_t *values, size_t count, uint64_t wanted);

/*
 * Those that are not null, moved to the front of `to`; how many there are. Bits from `bit` on, least
 * first, tell which rows they are; bits not written yet must be 0. `to` may be `values`, but not
 * `codes`.
 */
size_t parquet_drop_null_values(uint64_t *to, uint64_t *bits, size_t bit, const uint64_t *values,
				size_t count, uint64_t null);
size_t parquet_drop_null_codes(uint16_t *to, uint64_t *bits, const uint16_t *codes, size_t count);

/* Ones from bit `from` on. */
void parquet_set_bits(uint64_t *bits, size_t from, size_t count);

#endif
