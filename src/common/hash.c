/* The hash, over bytes and over blocks. */
#include "common/hash.h"

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

/* SHA-256 (FIPS 180-4), written from the standard. */

enum { BLOCK = 64, ROUNDS = 64 };

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t sha256_constants[ROUNDS] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t sha256_rotate(uint32_t word, unsigned int bits)
{
	return word >> bits | word << (32 - bits);
}

static void sha256_expand(uint32_t words[ROUNDS], const uint8_t *block)
{
	for (unsigned int i = 0; i < 16; i++)
		words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
			   (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (unsigned int i = 16; i < ROUNDS; i++) {
		uint32_t early = words[i - 15], late = words[i - 2];

		words[i] = words[i - 16] + words[i - 7] +
			   (sha256_rotate(early, 7) ^ sha256_rotate(early, 18) ^ early >> 3) +
			   (sha256_rotate(late, 17) ^ sha256_rotate(late, 19) ^ late >> 10);
	}
}

/* v[0..7] are a..h of the standard. */
static void add_block(uint32_t state[8], const uint8_t *block)
{
	uint32_t words[ROUNDS], v[8];

	sha256_expand(words, block);
	memcpy(v, state, sizeof(v));
	for (unsigned int i = 0; i < ROUNDS; i++) {
		uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
		uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
		uint32_t one = v[7] +
			       (sha256_rotate(v[4], 6) ^ sha256_rotate(v[4], 11) ^
				sha256_rotate(v[4], 25)) +
			       choice + sha256_constants[i] + words[i];
		uint32_t two = (sha256_rotate(v[0], 2) ^ sha256_rotate(v[0], 13) ^
				sha256_rotate(v[0], 22)) +
			       majority;

		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += one;
		v[0] = one + two;
	}
	for (unsigned int i = 0; i < 8; i++)
		state[i] += v[i];
}

/* Padding: a one bit, zeros, and the length in bits, to the end of a block. */
static void add_end(uint32_t state[8], const uint8_t *rest, size_t length)
{
	uint8_t blocks[2 * BLOCK] = { 0 };
	size_t left = length % BLOCK;
	size_t used = left + 9 <= BLOCK ? BLOCK : 2 * BLOCK;

	if (left > 0)
		memcpy(blocks, rest, left);
	blocks[left] = 0x80;
	for (unsigned int i = 0; i < 8; i++)
		blocks[used - 1 - i] = (uint8_t)((uint64_t)length * 8 >> 8 * i);
	for (size_t at = 0; at < used; at += BLOCK)
		add_block(state, blocks + at);
}

void sha256_digest(const void *bytes, size_t length, uint8_t digest[static SHA256_BYTES])
{
	uint32_t state[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
			      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
	const uint8_t *at = bytes;

	for (size_t left = length; left >= BLOCK; left -= BLOCK, at += BLOCK)
		add_block(state, at);
	add_end(state, at, length);
	for (unsigned int i = 0; i < SHA256_BYTES; i++)
		digest[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}

const char *sha256_base64(const void *bytes, size_t length, char to[static SHA256_TEXT])
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint8_t digest[SHA256_BYTES];
	size_t used = 0;

	sha256_digest(bytes, length, digest);
	for (unsigned int i = 0; i < SHA256_BYTES; i += 3) {
		uint32_t group = (uint32_t)digest[i] << 16 | (uint32_t)digest[i + 1] << 8;

		/* The last group has two bytes: its fourth character is '='. */
		if (i + 2 < SHA256_BYTES)
			group |= digest[i + 2];
		for (unsigned int j = 0; j < 4; j++)
			to[used++] = letters[group >> (18 - 6 * j) & 63];
	}
	to[used - 1] = '=';
	to[used] = '\0';
	return to;
}
