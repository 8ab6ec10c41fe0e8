/*
 * A 64-bit hash for everything: checksums of blocks, the rolling signature of a communicator, table
 * keys. Not cryptographic. The values are part of the file formats: never change them.
 */
#ifndef HASH_H
#define HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Mix a word into a running hash. */
static inline uint64_t hash_word(uint64_t hash, uint64_t word)
{
	__extension__ typedef unsigned __int128 wide;
	wide product = (wide)(hash ^ 0x9e3779b97f4a7c15u) * (word ^ 0xd6e8feb86659fd93u);

	return (uint64_t)product ^ (uint64_t)(product >> 64) ^ (word << 1 | word >> 63);
}

uint64_t hash_bytes(const void *bytes, size_t length);

/* Mix a string into a running hash. */
static inline uint64_t hash_text(uint64_t hash, const char *text)
{
	return hash_word(hash, hash_bytes(text, strlen(text)));
}

/* For long inputs: several times as fast, with a different result. */
uint64_t hash_block(const void *bytes, size_t length);

/*
 * SHA-256 (FIPS 180-4), for the page's Content-Security-Policy, which lists the scripts that may
 * run.
 */

enum { SHA256_BYTES = 32, SHA256_TEXT = 45 };

void sha256_digest(const void *bytes, size_t length, uint8_t digest[static SHA256_BYTES]);

/* The digest in base64, terminated, as a policy needs it. */
const char *sha256_base64(const void *bytes, size_t length, char to[static SHA256_TEXT]);

#endif
