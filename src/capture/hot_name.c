/*
 * From NCCL's strings to numbers. Names are compared by content, never by pointer: two copies of
 * NCCL can live in one process, and one can be unloaded. The pointer only picks a guess.
 */
#include <string.h>

#include "base/hash.h"
#include "capture/recorder.h"
#include "op/op_names.h"

/* A name that no table has gets a number of its own, once per process. */
static COLD uint8_t intern(const char *text)
{
	struct region_name *names = recorder.region.names;
	uint64_t used = load_acquire(&recorder.region.header->names_used);
	char kept[sizeof(names->text)] = "";

	memcpy(kept, text, strnlen(text, sizeof(kept) - 1));
	for (uint64_t i = 0; i < used && i < OP_NAMES_INTERNED_MAX; i++)
		if (memcmp(names[i].text, kept, sizeof(kept)) == 0)
			return (uint8_t)(OP_NAME_INTERNED + i);
	if (used >= OP_NAMES_INTERNED_MAX ||
	    !swap_if_acq_rel(&recorder.region.header->names_used, &used, used + 1))
		return 0; /* full, or another thread was faster: unknown this once */
	memcpy(names[used].text, kept, sizeof(kept));
	return (uint8_t)(OP_NAME_INTERNED + used);
}

static COLD uint8_t find_and_remember(unsigned int table, const char *text, uint8_t *guess)
{
	int is_known;
	uint8_t id = op_name_find((enum op_name_table)table, text, &is_known);

	if (!is_known)
		return intern(text);
	store_relaxed(guess, id);
	return id;
}

uint8_t hot_name(unsigned int table, const char *text)
{
	uintptr_t at = (uintptr_t)text;
	uint8_t *guess = &recorder.guesses[table][(at >> 2 ^ at >> 8) % NAME_GUESSES];
	uint8_t id = load_relaxed(guess);

	if (text == NULL)
		return 0;
	if (LIKELY(strcmp(op_name_of_nccl((enum op_name_table)table, id), text) == 0))
		return id;
	return find_and_remember(table, text, guess);
}

uint64_t hot_name_hash(unsigned int table, uint8_t id)
{
	/* Numbers of the tables are the same everywhere; interned ones differ from rank to rank. */
	if (LIKELY(id < OP_NAME_INTERNED))
		return (uint64_t)table << 8 | id;
	return hash_bytes(recorder.region.names[id - OP_NAME_INTERNED].text,
			  sizeof(recorder.region.names[0].text));
}
