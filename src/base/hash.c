#include "base/hash.h"

#include <string.h>

/* Words are little-endian in the formats; both machines we build for are. */
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
