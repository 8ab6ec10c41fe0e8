/*
 * From NCCL's strings to numbers. Names are compared by content, never by pointer: two copies of
 * NCCL can live in one process, and one can be unloaded. The pointer only picks a guess.
 */
#include <string.h>

#include "base/hash.h"
#include "capture/recorder.h"
#include "op/op_names.h"
#include "op/op_signature.h"

enum { NAME_WORDS = sizeof(struct region_name) / sizeof(uint64_t) };

/* A name's first word is written last: 0 there means that it is not complete yet. */
static bool is_name(const struct region_name *name, const uint64_t words[NAME_WORDS])
{
	const uint64_t *there = (const uint64_t *)(const void *)name;

	/* Pairs with the release in put_name(). */
	if (load_acquire(&there[0]) != words[0])
		return false;
	for (int i = 1; i < NAME_WORDS; i++)
		if (load_relaxed(&there[i]) != words[i])
			return false;
	return true;
}

static void put_name(struct region_name *name, const uint64_t words[NAME_WORDS])
{
	uint64_t *there = (uint64_t *)(void *)name;

	for (int i = 1; i < NAME_WORDS; i++)
		store_relaxed(&there[i], words[i]);
	/* Pairs with the acquire in is_name(), and in the trace thread. */
	store_release(&there[0], words[0]);
}

/* A name that no table has gets a number of its own, once per process. */
static COLD uint8_t intern(const char *text)
{
	struct region_name *names = recorder.region.names;
	uint64_t used = load_relaxed(&recorder.region.header->names_used);
	uint64_t words[NAME_WORDS] = { 0 };

	memcpy(words, text, strnlen(text, sizeof(words) - 1));
	for (uint64_t i = 0; i < used && i < OP_NAMES_INTERNED_MAX; i++)
		if (is_name(&names[i], words))
			return (uint8_t)(OP_NAME_INTERNED + i);
	if (used >= OP_NAMES_INTERNED_MAX ||
	    !swap_if_acq_rel(&recorder.region.header->names_used, &used, used + 1))
		return 0; /* full, or another thread was faster: unknown this once */
	put_name(&names[used], words);
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

uint8_t hot_datatype(const char *text)
{
	uint8_t id = hot_name(OP_NAMES_DATATYPE, text);

	/* From 2.24 on NCCL's table of names lacks ncclUint8 and no other datatype. */
	if (UNLIKELY(id == OP_DATATYPE_UNKNOWN) && text != NULL && strcmp(text, "Unknown") == 0)
		return OP_UINT8;
	return id;
}

uint64_t hot_name_hash(unsigned int table, uint8_t id)
{
	/* Numbers of the tables are the same everywhere; interned ones differ from rank to rank. */
	if (LIKELY(id < OP_NAME_INTERNED))
		return op_signature_name((enum op_name_table)table, id);
	return hash_bytes(recorder.region.names[id - OP_NAME_INTERNED].text,
			  sizeof(recorder.region.names[0].text));
}
