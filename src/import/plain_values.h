/*
 * A pickle or a JSON text as a tree of plain values: none, truth, number, text, list, map. Nothing
 * in a pickle is executed: whatever names a class or calls something is refused, so a hostile file
 * costs at most memory in proportion to its size.
 *
 *	plain_values_init(&values);
 *	root = plain_values_pickle(&values, bytes, length);     or plain_values_json()
 *	entry = plain_get(root, "entries");
 *	plain_values_release(&values);
 *
 * Texts point into the bytes, which must stay while the values are used, and are not terminated.
 * A pickle may name a value in several places, even inside itself: who walks a tree limits depth and
 * work.
 */
#ifndef PLAIN_VALUES_H
#define PLAIN_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum plain_kind {
	PLAIN_NONE = 0,
	PLAIN_TRUTH = 1,
	PLAIN_INTEGER = 2,
	PLAIN_REAL = 3,
	PLAIN_TEXT = 4,
	PLAIN_LIST = 5, /* a tuple, too */
	PLAIN_MAP = 6,
};

struct plain_value {
	uint8_t kind;	/* enum plain_kind */
	uint32_t count; /* of a text: bytes; of a list: items; of a map: keys and values */
	uint32_t room;	/* private */
	union {
		bool truth;
		int64_t integer;
		double real;
		const char *text;
		struct plain_value **items; /* of a map: key, value, key, value */
	};
};

struct plain_values {
	const char *problem; /* static; NULL: none */
	size_t problem_at;   /* byte */
	/* Private. */
	struct plain_block *blocks;
	struct plain_value **stack;
	size_t depth;
	size_t stack_room;
	size_t *marks;
	size_t mark_count;
	struct plain_value **memo;
	size_t memo_count;
	size_t memo_room;
	size_t value_count;
	size_t memory; /* bytes of all blocks */
};

void plain_values_init(struct plain_values *values);
void plain_values_release(struct plain_values *values);

/*
 * The value, owned by `values`; NULL: see values->problem. Protocols 2 to 5 of pickle, whatever
 * they can write without classes.
 */
const struct plain_value *plain_values_pickle(struct plain_values *values, const void *bytes,
					      size_t length);
const struct plain_value *plain_values_json(struct plain_values *values, const char *text,
					    size_t length);

/* The value of a key, NULL if it is no map or has no such key. NULL is allowed as a map. */
const struct plain_value *plain_get(const struct plain_value *map, const char *key);

/* NULL, or a value of another kind: false, and *to is left alone. An integral real is an integer. */
bool plain_integer(const struct plain_value *value, int64_t *to);
bool plain_real(const struct plain_value *value, double *to);
bool plain_truth(const struct plain_value *value, bool *to);
/* Terminated, without control characters, cut to `size`. */
bool plain_text(const struct plain_value *value, char *to, size_t size);
bool plain_is(const struct plain_value *value, const char *text);
/* How many items; 0 for anything but a list. */
uint32_t plain_count(const struct plain_value *list);

#endif
