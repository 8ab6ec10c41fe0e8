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

	EXPECT(strcmp(sha256_base64("", 0, text), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=") ==
	       0);
	EXPECT(strcmp(sha256_base64("abc", 3, text),
		      "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=") == 0);
	return tap_done();
}
