#include "view/perfetto_names.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

struct perfetto_name {
	char *text;
	uint64_t number; /* all kinds share the numbers, which need not be without gaps */
	uint32_t kind;
};

enum { FIRST_SLOTS = 256 };

void perfetto_names_init(struct perfetto_names *names)
{
	*names = (struct perfetto_names){ .slots = NULL };
}

void perfetto_names_release(struct perfetto_names *names)
{
	for (size_t i = 0; i < names->slot_count; i++)
		free(names->slots[i].text);
	free(names->slots);
	perfetto_names_init(names);
}

/* The slot which has it, or the free one where it would be. The table is never full. */
static struct perfetto_name *slot_of(const struct perfetto_names *names, uint32_t kind,
				     const char *text)
{
	size_t mask = names->slot_count - 1;
	size_t at = (size_t)hash_word(hash_bytes(text, strlen(text)), kind) & mask;

	while (names->slots[at].text &&
	       (names->slots[at].kind != kind || strcmp(names->slots[at].text, text) != 0))
		at = (at + 1) & mask;
	return &names->slots[at];
}

static bool grow(struct perfetto_names *names)
{
	struct perfetto_names larger = *names;

	larger.slot_count = names->slot_count ? names->slot_count * 2 : FIRST_SLOTS;
	larger.slots = calloc(larger.slot_count, sizeof(*larger.slots));
	if (larger.slots == NULL) {
		names->status = ERR_NO_SPACE;
		return false;
	}
	for (size_t i = 0; i < names->slot_count; i++)
		if (names->slots[i].text)
			*slot_of(&larger, names->slots[i].kind, names->slots[i].text) =
				names->slots[i];
	free(names->slots);
	*names = larger;
	return true;
}

uint64_t perfetto_names_find(struct perfetto_names *names, enum perfetto_name_kind kind,
			     const char *text, bool *is_new)
{
	struct perfetto_name *slot;

	*is_new = false;
	if (names->slot_count > 0) {
		slot = slot_of(names, kind, text);
		if (slot->text)
			return slot->number;
	}
	if (names->count == PERFETTO_NAMES_MAX || strlen(text) > PERFETTO_NAME_BYTES)
		return 0;
	if (names->count * 2 >= names->slot_count && !grow(names))
		return 0;
	slot = slot_of(names, kind, text);
	slot->text = strdup(text);
	if (slot->text == NULL) {
		names->status = ERR_NO_SPACE;
		return 0;
	}
	slot->kind = kind;
	slot->number = ++names->count;
	*is_new = true;
	return slot->number;
}
