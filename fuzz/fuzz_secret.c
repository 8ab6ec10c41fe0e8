/*
 * Text cleaning and the search for secrets: any bytes. A secret stays one among other words, cleaning twice is cleaning
 * once, and a clean text has nothing unseen.
 */
#include <stdlib.h>
#include <string.h>

#include "common/secret.h"
#include "common/text.h"
#include "fuzz/fuzz_main.h"

static void check_clean(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *again;
	size_t length;

	if (text == NULL)
		return;
	memcpy(text, data, size);
	length = text_clean_bytes(text, size);
	if (length > size)
		abort();
	again = malloc(length + 1);
	if (again == NULL)
		abort();
	memcpy(again, text, length);
	if (text_clean_bytes(again, length) != length || memcmp(again, text, length) != 0)
		abort();
	for (size_t at = 0; at < length;) {
		size_t bytes = (unsigned char)text[at] < 0x80
				       ? 1
				       : utf8_bytes((unsigned char *)text + at, length - at);

		if (bytes == 0 || text_is_unseen(text_decode((unsigned char *)text + at, bytes)))
			abort();
		at += bytes;
	}
	free(again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char before[] = "run, ", after[] = " fast";
	char *text = malloc(size + sizeof(before) + sizeof(after));
	size_t length = strnlen((const char *)data, size);

	check_clean(data, size);
	if (text == NULL)
		return 0;
	memcpy(text, data, length);
	text[length] = '\0';
	secret_is_line(text, length);
	secret_is_name(text);
	if (secret_is_value(text)) {
		memcpy(text, before, sizeof(before) - 1);
		memcpy(text + sizeof(before) - 1, data, length);
		memcpy(text + sizeof(before) - 1 + length, after, sizeof(after));
		if (!secret_is_value(text))
			abort();
	}
	free(text);
	return 0;
}
