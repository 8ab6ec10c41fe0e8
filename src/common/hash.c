/* The hash, over bytes and over blocks. */
#include "common/hash.h"

#include <string.h>

/* Words are little-endian in the formats, as on both architectures we build for. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the formats are little-endian");

uint64_t hash_bytes(const void *bytes, size_t length)
{
	const unsigned char *at = bytes;
	uint64_t hash = hash_word(0, length);
	uint64_t word;

	for (; length >= sizeof(word); at += sizeof(word), length -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = hash_word(hash, word);
	}
	if (length > 0) {
		word = 0;
		memcpy(&word, at, length);
		hash = hash_word(hash, word);
	}
	return hash;
}

/*
 * For a given lane it is injective in the word, and for a given word injective in the lane: a
 * change to a single word changes the lane, whatever follows.
 */
static inline uint64_t stir(uint64_t lane, const unsigned char *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	lane = (lane << 29 | lane >> 35) + word;
	return lane ^ lane >> 32;
}

/*
 * Eight independent lanes, for instruction parallelism; written out so that they stay in registers.
 */
uint64_t hash_block(const void *bytes, size_t length)
{
	const uint64_t step = 0x9e3779b97f4a7c15u;
	uint64_t a = step, b = 2 * step, c = 3 * step, d = 4 * step;
	uint64_t e = 5 * step, f = 6 * step, g = 7 * step, h = 8 * step;
	const unsigned char *at = bytes;
	size_t left = length;
	uint64_t hash;

	for (; left >= 64; left -= 64, at += 64) {
		a = stir(a, at);
		b = stir(b, at + 8);
		c = stir(c, at + 16);
		d = stir(d, at + 24);
		e = stir(e, at + 32);
		f = stir(f, at + 40);
		g = stir(g, at + 48);
		h = stir(h, at + 56);
	}
	hash = hash_word(hash_word(a, b), hash_word(c, d));
	hash = hash_word(hash, hash_word(hash_word(e, f), hash_word(g, h)));
	return hash_word(hash, hash_bytes(at, left) ^ length);
}
