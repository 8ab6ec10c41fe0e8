#include "common/hash.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

static bool is_digest(const char *bytes, size_t length, const char *wanted)
{
	uint8_t digest[SHA256_BYTES];
	char text[2 * SHA256_BYTES + 1];

	sha256_digest(bytes, length, digest);
	for (unsigned int i = 0; i < SHA256_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
	if (strcmp(text, wanted) != 0)
		printf("# got %s, wanted %s\n", text, wanted);
	return strcmp(text, wanted) == 0;
}

/* Where the length fits into the last block, and where it does not. */
static void ends_of_blocks(void)
{
	static const struct {
		size_t length;
		const char *digest;
	} cases[] = {
		{ 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318" },
		{ 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a" },
		{ 63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34" },
		{ 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb" },
		{ 65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0" },
		{ 119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb" },
		{ 120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c" },
	};
	char bytes[128];

	memset(bytes, 'a', sizeof(bytes));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		EXPECT(is_digest(bytes, cases[i].length, cases[i].digest));
}

/* The standard's own examples: empty, one block, a length that needs its own block, many blocks. */
int main(void)
{
	static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
	enum { MILLION = 1000000 };
	char text[SHA256_TEXT];
	char *many = malloc(MILLION);

	EXPECT(is_digest("", 0,
			 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
	EXPECT(is_digest("abc", 3,
			 "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
	EXPECT(is_digest(two, strlen(two),
			 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"));
	if (EXPECT(many != NULL)) {
		memset(many, 'a', MILLION);
		EXPECT(is_digest(
			many, MILLION,
			"cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"));
	}
	free(many);
	ends_of_blocks();

	EXPECT(strcmp(sha256_base64("", 0, text), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=") ==
	       0);
	EXPECT(strcmp(sha256_base64("abc", 3, text),
		      "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=") == 0);
	return tap_done();
}
