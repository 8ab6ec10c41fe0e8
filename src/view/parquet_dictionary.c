#include "view/parquet_dictionary.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

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

static enum status reserve(struct parquet_dictionary *dictionary)
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

static enum status add(struct parquet_dictionary *dictionary, uint32_t slot, uint64_t key,
		       uint16_t *code)
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
	enum status status = reserve(dictionary);

	if (status != OK)
		return status;
	while ((found = dictionary->slots[slot]) != 0) {
		if (dictionary->keys[found - 1] == number) {
			*code = (uint16_t)(found - 1);
			return OK;
		}
		slot = (slot + 1) & (SLOTS - 1);
	}
	return add(dictionary, slot, number, code);
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
	enum status status = reserve(dictionary);

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
		status = add(dictionary, slot, key, code);
	if (status == OK)
		dictionary->text_used += 4 + length;
	return status;
}
