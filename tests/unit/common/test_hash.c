/* The hash is part of the file formats: its values were computed independently and never change. */
#include "common/hash.h"

#include <string.h>

#include "tests/tap.h"

static void words_have_their_values(void)
{
	EXPECT(hash_word(0, 0) == UINT64_C(0xc9d874ca57d9e055));
	EXPECT(hash_word(1, 2) == UINT64_C(0xbd6066e6b2aeea08));
	EXPECT(hash_word(UINT64_MAX, UINT64_MAX) == UINT64_C(0x3264bccd986ee2f6));
}

static void bytes_have_their_values(void)
{
	unsigned char all[256];

	for (unsigned int i = 0; i < sizeof(all); i++)
		all[i] = (unsigned char)i;
	EXPECT(hash_bytes("", 0) == UINT64_C(0xc9d874ca57d9e055));
	EXPECT(hash_bytes("a", 1) == UINT64_C(0x502e3088b2b137f2));
	EXPECT(hash_bytes("ringside", 8) == UINT64_C(0x58dc193b95459ec3));
	EXPECT(hash_bytes("ringside!", 9) == UINT64_C(0x916a38f42addfe65));
	EXPECT(hash_bytes(all, sizeof(all)) == UINT64_C(0xf8d6c0b685536db6));
}

static void alignment_does_not_matter(void)
{
	char bytes[64];

	for (int shift = 0; shift < 8; shift++) {
		memcpy(bytes + shift, "an odd number of bytes.", 23);
		EXPECT(hash_bytes(bytes + shift, 23) == hash_bytes("an odd number of bytes.", 23));
	}
}

static void length_counts(void)
{
	EXPECT(hash_bytes("\0", 1) != hash_bytes("", 0));
	EXPECT(hash_bytes("a\0", 2) != hash_bytes("a", 1));
	EXPECT(hash_bytes("\0\0\0\0\0\0\0\0", 8) != hash_bytes("\0\0\0\0\0\0\0", 7));
}

/* A checksum must detect every single-bit error. */
static void every_bit_counts(void)
{
	unsigned char block[96] = { 0 };
	uint64_t sum = hash_bytes(block, sizeof(block));
	unsigned int unseen = 0;

	for (unsigned int bit = 0; bit < sizeof(block) * 8; bit++) {
		block[bit / 8] ^= (unsigned char)(1u << bit % 8);
		unseen += hash_bytes(block, sizeof(block)) == sum;
		block[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	EXPECT_EQUAL(unseen, 0);
}

static void blocks_have_their_values(void)
{
	unsigned char some[1000];

	for (unsigned int i = 0; i < sizeof(some); i++)
		some[i] = (unsigned char)i;
	EXPECT(hash_block("", 0) == UINT64_C(0x36df5e41a9493b84));
	EXPECT(hash_block("ringside", 8) == UINT64_C(0xb9bceb0cc191d5fc));
	EXPECT(hash_block(some, 256) == UINT64_C(0x2c52fa0c4d63e6f6));
	for (unsigned int i = 0; i < sizeof(some); i++)
		some[i] = (unsigned char)(i * 7);
	EXPECT(hash_block(some, sizeof(some)) == UINT64_C(0xc32777ae7f6fa11f));
}

/* Bits, lengths, and moved content. */
static void blocks_see_every_change(void)
{
	unsigned char block[300] = { 0 };
	uint64_t sum = hash_block(block, sizeof(block)), longer = hash_block(block, 299);
	unsigned int unseen = longer == sum;

	for (unsigned int bit = 0; bit < sizeof(block) * 8; bit++) {
		uint64_t changed;

		block[bit / 8] ^= (unsigned char)(1u << bit % 8);
		changed = hash_block(block, sizeof(block));
		unseen += changed == sum;
		if (bit / 8 + 8 < sizeof(block)) {
			block[bit / 8 + 8] ^= (unsigned char)(1u << bit % 8);
			block[bit / 8] ^= (unsigned char)(1u << bit % 8);
			unseen += hash_block(block, sizeof(block)) == changed;
			block[bit / 8 + 8] ^= (unsigned char)(1u << bit % 8);
			block[bit / 8] ^= (unsigned char)(1u << bit % 8);
		}
		block[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	EXPECT_EQUAL(unseen, 0);
}

int main(void)
{
	words_have_their_values();
	bytes_have_their_values();
	alignment_does_not_matter();
	length_counts();
	every_bit_counts();
	blocks_have_their_values();
	blocks_see_every_change();
	return tap_done();
}
