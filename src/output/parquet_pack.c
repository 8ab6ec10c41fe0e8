/*
 * Numbers are packed 32 at a time by code generated for each width, so that all shifts are constants: 4x faster
 * than a loop over bits.
 */
#include "output/parquet.h"
#include "output/parquet_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

enum { MINIBLOCKS = 4, MINIBLOCK = PARQUET_DELTA_BLOCK / MINIBLOCKS };
/* Shorter runs are smaller packed than as RLE. */
enum { RUN_LEAST = 64 };

/* Portable vectors of two numbers. */
typedef uint64_t lanes __attribute__((vector_size(16)));
typedef int64_t signed_lanes __attribute__((vector_size(16)));
typedef uint64_t loose_lanes __attribute__((vector_size(16), aligned(8), may_alias));

/* Minimum per lane. A comparison gives a lane of all ones or zeros. */
#define PICK(mask, a, b) (((a) & (mask)) | ((b) & ~(mask)))
#define LEAST(a, b) PICK((b) < (a), b, a)
#define MOST(a, b) PICK((b) > (a), b, a)

static inline const loose_lanes *lanes_at(const uint64_t *values)
{
	return (const loose_lanes *)(const void *)values;
}

size_t parquet_pack_varint(uint8_t *to, uint64_t number)
{
	size_t length = 0;

	while (number >= 0x80) {
		to[length++] = (uint8_t)(number | 0x80);
		number >>= 7;
	}
	to[length++] = (uint8_t)number;
	return length;
}

unsigned int parquet_bit_width(uint64_t most)
{
	return most ? 64u - (unsigned int)__builtin_clzll(most) : 0;
}

/* ---- codes ----------------------------------------------------------------------------------- */

size_t parquet_pack_run(uint8_t *to, uint64_t count, uint16_t code, unsigned int width)
{
	size_t length = parquet_pack_varint(to, count << 1);

	for (unsigned int bits = 0; bits < width; bits += 8)
		to[length++] = (uint8_t)(code >> bits);
	return length;
}

/* Eight codes take `width` bytes; bytes beyond are written too, and overwritten by the next ones. */
static void pack_eight(uint8_t *to, const uint16_t *codes, unsigned int width)
{
	uint64_t low = 0, high = 0;

	for (unsigned int i = 0; i < 4; i++) {
		low |= (uint64_t)codes[i] << (i * width);
		high |= (uint64_t)codes[i + 4] << (i * width);
	}
	if (width <= 8) {
		low |= high << (4 * width);
		memcpy(to, &low, 8);
		return;
	}
	/* Four codes of an odd width end inside a byte. */
	memcpy(to, &low, 8);
	if (4 * width < 64)
		low |= high << (4 * width);
	memcpy(to, &low, 8);
	high >>= 64 - 4 * width;
	memcpy(to + 8, &high, 8);
}

/* The codes between two runs: whole groups of eight, the last one padded with 0. */
static size_t pack_literals(uint8_t *to, const uint16_t *codes, size_t count, unsigned int width)
{
	uint16_t last[8] = { 0 };
	size_t groups = (count + 7) / 8, length;

	if (count == 0)
		return 0;
	length = parquet_pack_varint(to, groups << 1 | 1);
	for (size_t i = 0; i < count / 8; i++, length += width)
		pack_eight(to + length, codes + 8 * i, width);
	if (count % 8 == 0)
		return length;
	memcpy(last, codes + count / 8 * 8, count % 8 * sizeof(*codes));
	pack_eight(to + length, last, width);
	return length + width;
}

static bool begins_run(const uint16_t *codes)
{
	return codes[0] == codes[RUN_LEAST - 1] && codes[0] == codes[RUN_LEAST / 2] &&
	       memcmp(codes, codes + 1, (RUN_LEAST - 1) * sizeof(*codes)) == 0;
}

size_t parquet_pack_codes(uint8_t *to, const uint16_t *codes, size_t count, unsigned int width)
{
	size_t length = 0, from = 0, at = 0;

	while (at + RUN_LEAST <= count) {
		size_t end = at + RUN_LEAST;

		if (!begins_run(codes + at)) {
			at += 8;
			continue;
		}
		while (end + RUN_LEAST <= count &&
		       memcmp(codes + at, codes + end, RUN_LEAST * sizeof(*codes)) == 0)
			end += RUN_LEAST;
		while (end < count && codes[end] == codes[at])
			end++;
		length += pack_literals(to + length, codes + from, at - from, width);
		length += parquet_pack_run(to + length, end - at, codes[at], width);
		from = at = end;
	}
	return length + pack_literals(to + length, codes + from, count - from, width);
}

/* ---- deltas ---------------------------------------------------------------------------------- */

/* Adds the i-th number; with a constant width most of this is folded at compile time. */
#define PUT(i)                                                                  \
	do {                                                                    \
		const unsigned int bit = (i)*width % 64;                        \
		const uint64_t value = deltas[i] - least;                       \
                                                                                \
		word |= value << bit;                                           \
		if (bit + width >= 64) {                                        \
			memcpy(to, &word, 8);                                   \
			to += 8;                                                \
			word = bit + width > 64 ? value >> (64 - bit) % 64 : 0; \
		}                                                               \
	} while (0)
#define PUT_4(i)    \
	PUT(i);     \
	PUT(i + 1); \
	PUT(i + 2); \
	PUT(i + 3)
#define PUT_16(i)     \
	PUT_4(i);     \
	PUT_4(i + 4); \
	PUT_4(i + 8); \
	PUT_4(i + 12)

/* 32 numbers take a multiple of 4 bytes, so half a word can remain. */
static inline __attribute__((always_inline)) void pack_32(uint8_t *to, const uint64_t *deltas,
							  uint64_t least, const unsigned int width)
{
	uint64_t word = 0;

	PUT_16(0);
	PUT_16(16);
	if (width % 2)
		memcpy(to, &word, 4);
}

#define WIDTH(n)                                 \
	case (n):                                \
		pack_32(to, deltas, least, (n)); \
		break
#define WIDTHS_4(n)   \
	WIDTH(n);     \
	WIDTH(n + 1); \
	WIDTH(n + 2); \
	WIDTH(n + 3)
#define WIDTHS_16(n)     \
	WIDTHS_4(n);     \
	WIDTHS_4(n + 4); \
	WIDTHS_4(n + 8); \
	WIDTHS_4(n + 12)

/* Subtracts the minimum from 32 differences. */
static void pack_miniblock(uint8_t *to, const uint64_t *deltas, uint64_t least, unsigned int width)
{
	switch (width) {
		WIDTHS_16(1);
		WIDTHS_16(17);
		WIDTHS_16(33);
		WIDTHS_16(49);
	default:
		break;
	}
}

/* 32 differences to the previous number, with minimum and maximum. 32-bit differences wrap around. */
static inline __attribute__((always_inline)) void make_deltas(uint64_t *deltas,
							      const uint64_t *values,
							      const bool is_narrow, int64_t *least,
							      int64_t *most)
{
	signed_lanes low[2] = { { INT64_MAX, INT64_MAX }, { INT64_MAX, INT64_MAX } };
	signed_lanes high[2] = { { INT64_MIN, INT64_MIN }, { INT64_MIN, INT64_MIN } };

	for (unsigned int i = 0; i < MINIBLOCK; i += 4) {
		for (unsigned int k = 0; k < 2; k++) {
			const uint64_t *at = values + i + 2 * k;
			signed_lanes delta = (signed_lanes)(*lanes_at(at) - *lanes_at(at - 1));

			if (is_narrow)
				delta = delta << 32 >> 32;
			memcpy(deltas + i + 2 * k, &delta, sizeof(delta));
			low[k] = LEAST(low[k], delta);
			high[k] = MOST(high[k], delta);
		}
	}
	low[0] = LEAST(low[0], low[1]);
	high[0] = MOST(high[0], high[1]);
	*least = low[0][0] < low[0][1] ? low[0][0] : low[0][1];
	*most = high[0][0] > high[0][1] ? high[0][0] : high[0][1];
}

static size_t pack_block(uint8_t *to, const uint64_t *values, unsigned int miniblocks,
			 bool is_narrow)
{
	uint64_t deltas[PARQUET_DELTA_BLOCK];
	int64_t least[MINIBLOCKS], most[MINIBLOCKS], all = INT64_MAX;
	uint8_t *widths;
	size_t length;

	for (unsigned int i = 0; i < miniblocks; i++) {
		const unsigned int at = i * MINIBLOCK;

		if (is_narrow)
			make_deltas(deltas + at, values + at, true, &least[i], &most[i]);
		else
			make_deltas(deltas + at, values + at, false, &least[i], &most[i]);
		all = least[i] < all ? least[i] : all;
	}
	length = parquet_pack_varint(to, parquet_zigzag(all));
	widths = to + length;
	memset(widths, 0, MINIBLOCKS);
	length += MINIBLOCKS;
	for (unsigned int i = 0; i < miniblocks; i++) {
		widths[i] = (uint8_t)parquet_bit_width((uint64_t)most[i] - (uint64_t)all);
		pack_miniblock(to + length, deltas + i * MINIBLOCK, (uint64_t)all, widths[i]);
		length += widths[i] * (MINIBLOCK / 8u);
	}
	return length;
}

size_t parquet_pack_delta_block(uint8_t *to, const uint64_t *values, size_t count, bool is_narrow)
{
	uint64_t filled[1 + PARQUET_DELTA_BLOCK];
	unsigned int miniblocks = (unsigned int)((count + MINIBLOCK - 1) / MINIBLOCK);

	if (count == PARQUET_DELTA_BLOCK)
		return pack_block(to, values, MINIBLOCKS, is_narrow);
	/* Padding that readers skip: repeats the last value. */
	memcpy(filled, values - 1, (1 + count) * sizeof(*filled));
	for (size_t i = count; i < (size_t)miniblocks * MINIBLOCK; i++)
		filled[1 + i] = filled[count];
	return pack_block(to, filled + 1, miniblocks, is_narrow);
}

size_t parquet_pack_delta_head(uint8_t *to, size_t count, uint64_t first, bool is_narrow)
{
	int64_t value = is_narrow ? (int32_t)(uint32_t)first : (int64_t)first;
	size_t length = parquet_pack_varint(to, PARQUET_DELTA_BLOCK);

	length += parquet_pack_varint(to + length, MINIBLOCKS);
	length += parquet_pack_varint(to + length, count);
	return length + parquet_pack_varint(to + length, parquet_zigzag(value));
}

/* ---- plain ----------------------------------------------------------------------------------- */

size_t parquet_pack_plain(uint8_t *to, const uint64_t *values, size_t count, bool is_narrow)
{
	if (!is_narrow) {
		if (count > 0)
			memcpy(to, values, count * 8);
		return count * 8;
	}
	for (size_t i = 0; i < count; i++) {
		uint32_t value = (uint32_t)values[i];

		memcpy(to + 4 * i, &value, 4);
	}
	return count * 4;
}

/* ---- what a page has ------------------------------------------------------------------------- */

void parquet_find_range(const uint64_t *values, size_t count, bool is_unsigned, uint64_t *least,
			uint64_t *most)
{
	/* With the sign bit flipped, unsigned numbers sort like signed ones. */
	const uint64_t turn = is_unsigned ? UINT64_C(1) << 63 : 0;
	const lanes turns = { turn, turn };
	int64_t low = (int64_t)(values[0] ^ turn), high = low;
	signed_lanes lows[2] = { { low, low }, { low, low } };
	signed_lanes highs[2] = { { high, high }, { high, high } };
	size_t i = 0;

	for (; i + 4 <= count; i += 4) {
		for (unsigned int k = 0; k < 2; k++) {
			signed_lanes value = (signed_lanes)(*lanes_at(values + i + 2 * k) ^ turns);

			lows[k] = LEAST(lows[k], value);
			highs[k] = MOST(highs[k], value);
		}
	}
	lows[0] = LEAST(lows[0], lows[1]);
	highs[0] = MOST(highs[0], highs[1]);
	low = lows[0][0] < lows[0][1] ? lows[0][0] : lows[0][1];
	high = highs[0][0] > highs[0][1] ? highs[0][0] : highs[0][1];
	for (; i < count; i++) {
		int64_t value = (int64_t)(values[i] ^ turn);

		low = value < low ? value : low;
		high = value > high ? value : high;
	}
	*least = (uint64_t)low ^ turn;
	*most = (uint64_t)high ^ turn;
}

size_t parquet_count(const uint64_t *values, size_t count, uint64_t wanted)
{
	const lanes wanted_lanes = { wanted, wanted };
	lanes found[2] = { { 0, 0 }, { 0, 0 } };
	size_t i = 0, sum;

	for (; i + 4 <= count; i += 4)
		for (unsigned int k = 0; k < 2; k++)
			found[k] -= (lanes)(*lanes_at(values + i + 2 * k) == wanted_lanes);
	found[0] += found[1];
	sum = found[0][0] + found[0][1];
	for (; i < count; i++)
		sum += values[i] == wanted;
	return sum;
}

/* ---- null ------------------------------------------------------------------------------------ */

size_t parquet_drop_null_values(uint64_t *to, uint64_t *bits, size_t bit, const uint64_t *values,
				size_t count, uint64_t null)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++, bit++) {
		uint64_t is_there = values[i] != null;

		bits[bit / 64] |= is_there << bit % 64;
		to[kept] = values[i];
		kept += is_there;
	}
	return kept;
}

/* The bits of the non-null ones of 64 codes. */
static uint64_t find_codes(const uint16_t *codes)
{
	uint64_t bits = 0;

	for (unsigned int i = 0; i < 64; i += 4) {
		uint64_t four, found;

		memcpy(&four, codes + i, sizeof(four));
		/* The first bit of each code that is not all ones, shifted to the end. */
		found = ~four;
		found = (((found & UINT64_C(0x7fff7fff7fff7fff)) + UINT64_C(0x7fff7fff7fff7fff)) |
			 found) &
			UINT64_C(0x8000800080008000);
		found = found >> 15 | found >> 30 | found >> 45 | found >> 60;
		bits |= (found & 0xf) << i;
	}
	return bits;
}

size_t parquet_drop_null_codes(uint16_t *to, uint64_t *bits, const uint16_t *codes, size_t count)
{
	size_t kept = 0, i = 0;

	for (; i + 64 <= count; i += 64) {
		uint64_t found = bits[i / 64] = find_codes(codes + i);

		if (found == UINT64_MAX) {
			memcpy(to + kept, codes + i, 64 * sizeof(*codes));
			kept += 64;
			continue;
		}
		for (; found != 0; found &= found - 1)
			to[kept++] = codes[i + (unsigned int)__builtin_ctzll(found)];
	}
	for (; i < count; i++) {
		uint64_t is_there = codes[i] != PARQUET_NULL_CODE;

		bits[i / 64] |= is_there << i % 64;
		to[kept] = codes[i];
		kept += is_there;
	}
	return kept;
}

void parquet_set_bits(uint64_t *bits, size_t from, size_t count)
{
	for (; count > 0 && from % 64 != 0; from++, count--)
		bits[from / 64] |= UINT64_C(1) << from % 64;
	memset(bits + from / 64, 0xff, count / 64 * 8);
	if (count % 64 != 0)
		bits[(from + count) / 64] |= (UINT64_C(1) << count % 64) - 1;
}

enum { SLOT_BITS = 15, SLOTS = 1 << SLOT_BITS };
_Static_assert(SLOTS == 2 * PARQUET_DICTIONARY_MAX, "a search ends at an empty slot");

void parquet_dictionary_init(struct parquet_dictionary *dictionary)
{
	*dictionary = (struct parquet_dictionary){ 0 };
}

void parquet_dictionary_release(struct parquet_dictionary *dictionary)
{
	free(dictionary->keys);
	free(dictionary->slots);
	free(dictionary->text_at);
	free(dictionary->text_bytes);
	parquet_dictionary_init(dictionary);
}

void parquet_dictionary_empty(struct parquet_dictionary *dictionary)
{
	if (dictionary->count > 0)
		memset(dictionary->slots, 0, SLOTS * sizeof(*dictionary->slots));
	dictionary->count = 0;
	dictionary->text_used = 0;
}

static enum status dictionary_reserve(struct parquet_dictionary *dictionary)
{
	if (dictionary->slots != NULL)
		return OK;
	dictionary->keys = malloc(PARQUET_DICTIONARY_MAX * sizeof(*dictionary->keys));
	dictionary->slots = calloc(SLOTS, sizeof(*dictionary->slots));
	if (dictionary->keys != NULL && dictionary->slots != NULL)
		return OK;
	parquet_dictionary_release(dictionary);
	return ERR_NO_SPACE;
}

static uint32_t first_slot(uint64_t key)
{
	return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - SLOT_BITS));
}

static enum status dictionary_add(struct parquet_dictionary *dictionary, uint32_t slot,
				  uint64_t key, uint16_t *code)
{
	if (dictionary->count == PARQUET_DICTIONARY_MAX)
		return ERR_RANGE;
	dictionary->keys[dictionary->count] = key;
	*code = (uint16_t)dictionary->count;
	dictionary->slots[slot] = ++dictionary->count;
	return OK;
}

enum status parquet_dictionary_number(struct parquet_dictionary *dictionary, uint64_t number,
				      uint16_t *code)
{
	uint32_t slot = first_slot(number), found;
	enum status status = dictionary_reserve(dictionary);

	if (status != OK)
		return status;
	while ((found = dictionary->slots[slot]) != 0) {
		if (dictionary->keys[found - 1] == number) {
			*code = (uint16_t)(found - 1);
			return OK;
		}
		slot = (slot + 1) & (SLOTS - 1);
	}
	return dictionary_add(dictionary, slot, number, code);
}

enum status parquet_dictionary_numbers(struct parquet_dictionary *dictionary,
				       const uint64_t *numbers, size_t count, uint16_t *codes)
{
	enum status status = OK;
	uint16_t code = 0;

	for (size_t i = 0; i < count && status == OK; i++) {
		if (i == 0 || numbers[i] != numbers[i - 1])
			status = parquet_dictionary_number(dictionary, numbers[i], &code);
		codes[i] = code;
	}
	return status;
}

const uint8_t *parquet_dictionary_bytes(const struct parquet_dictionary *dictionary, uint32_t code,
					uint32_t *length)
{
	const uint8_t *at = dictionary->text_bytes + dictionary->text_at[code];

	memcpy(length, at, 4);
	return at + 4;
}

static enum status keep_text(struct parquet_dictionary *dictionary, const char *text,
			     uint32_t length)
{
	size_t needed = dictionary->text_used + 4 + length, room = dictionary->text_room;
	uint8_t *bytes;

	if (dictionary->text_at == NULL)
		dictionary->text_at = malloc(PARQUET_DICTIONARY_MAX * sizeof(uint32_t));
	if (dictionary->text_at == NULL)
		return ERR_NO_SPACE;
	while (room < needed)
		room = room ? 2 * room : 1024;
	if (room != dictionary->text_room) {
		bytes = realloc(dictionary->text_bytes, room);
		if (bytes == NULL)
			return ERR_NO_SPACE;
		dictionary->text_bytes = bytes;
		dictionary->text_room = room;
	}
	dictionary->text_at[dictionary->count] = (uint32_t)dictionary->text_used;
	memcpy(dictionary->text_bytes + dictionary->text_used, &length, 4);
	memcpy(dictionary->text_bytes + dictionary->text_used + 4, text, length);
	return OK;
}

enum status parquet_dictionary_text(struct parquet_dictionary *dictionary, const char *text,
				    uint16_t *code)
{
	uint32_t length = (uint32_t)strlen(text), kept_length;
	uint64_t key = hash_bytes(text, length);
	uint32_t slot = first_slot(key), found;
	enum status status = dictionary_reserve(dictionary);

	while (status == OK && (found = dictionary->slots[slot]) != 0) {
		const uint8_t *kept = parquet_dictionary_bytes(dictionary, found - 1, &kept_length);

		if (dictionary->keys[found - 1] == key && kept_length == length &&
		    memcmp(kept, text, length) == 0) {
			*code = (uint16_t)(found - 1);
			return OK;
		}
		slot = (slot + 1) & (SLOTS - 1);
	}
	if (status == OK && dictionary->count < PARQUET_DICTIONARY_MAX)
		status = keep_text(dictionary, text, length);
	if (status == OK)
		status = dictionary_add(dictionary, slot, key, code);
	if (status == OK)
		dictionary->text_used += 4 + length;
	return status;
}
