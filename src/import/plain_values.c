/*
 * A stack machine for both formats: values are pushed, a mark remembers where a list or a map
 * begins, and its end takes everything above the mark.
 *
 * Memory: values, item arrays and unescaped texts come from blocks that are released together. An
 * item array that must grow again is copied to twice its size, so memory is bounded by a multiple of
 * the input.
 */
#include "import/plain_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/status.h"
#include "common/text.h"
#include "import/json_scan.h"

enum {
	BLOCK_BYTES = 1 << 16,
	/* Texts and lists of a file that fits into memory have far fewer. */
	ITEMS_MAX = 1 << 28,
};

/* A file of some hundred megabytes in which every byte is a value would need twenty times that. */
static const size_t memory_max = (size_t)1 << 31;

struct plain_block {
	struct plain_block *next;
	size_t size;
	size_t used;
	max_align_t bytes[];
};

void plain_values_init(struct plain_values *values)
{
	*values = (struct plain_values){ 0 };
}

void plain_values_release(struct plain_values *values)
{
	while (values->blocks != NULL) {
		struct plain_block *next = values->blocks->next;

		free(values->blocks);
		values->blocks = next;
	}
	free(values->stack);
	free(values->marks);
	free(values->memo);
	plain_values_init(values);
}

static void *refuse(struct plain_values *values, const char *problem)
{
	if (values->problem == NULL)
		values->problem = problem;
	return NULL;
}

static void *allocate(struct plain_values *values, size_t bytes)
{
	struct plain_block *block = values->blocks;
	size_t size = bytes > BLOCK_BYTES / 4 ? bytes : BLOCK_BYTES;
	void *memory;

	bytes = (bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
	if (block == NULL || block->size - block->used < bytes) {
		size = size < bytes ? bytes : size;
		if (size > memory_max - values->memory)
			return refuse(values, "its values need more than 2 GiB of memory");
		values->memory += size;
		block = malloc(sizeof(*block) + size);
		if (block == NULL)
			return refuse(values, "not enough memory");
		*block = (struct plain_block){ .next = values->blocks, .size = size };
		values->blocks = block;
	}
	memory = (unsigned char *)block->bytes + block->used;
	block->used += bytes;
	return memory;
}

static struct plain_value *make(struct plain_values *values, enum plain_kind kind)
{
	struct plain_value *value = allocate(values, sizeof(*value));

	if (value == NULL)
		return NULL;
	*value = (struct plain_value){ .kind = (uint8_t)kind };
	values->value_count++;
	return value;
}

/* ---- the stack ------------------------------------------------------------------------------- */

static bool grow(struct plain_values *values, struct plain_value ***list, size_t *room)
{
	size_t more_room = *room == 0 ? 1024 : *room * 2;
	struct plain_value **more = reallocarray(*list, more_room, sizeof(*more));

	if (more == NULL)
		return refuse(values, "not enough memory") != NULL;
	*list = more;
	*room = more_room;
	return true;
}

static inline bool push(struct plain_values *values, struct plain_value *value)
{
	if (value == NULL || (values->depth == values->stack_room &&
			      !grow(values, &values->stack, &values->stack_room)))
		return false;
	values->stack[values->depth++] = value;
	return true;
}

/* Everything below the last mark is out of reach. */
static size_t floor_of(const struct plain_values *values)
{
	return values->mark_count > 0 ? values->marks[values->mark_count - 1] : 0;
}

static struct plain_value *pop(struct plain_values *values)
{
	if (values->depth <= floor_of(values))
		return refuse(values, "a value is missing");
	return values->stack[--values->depth];
}

static struct plain_value *top(struct plain_values *values)
{
	if (values->depth <= floor_of(values))
		return refuse(values, "a value is missing");
	return values->stack[values->depth - 1];
}

static bool push_mark(struct plain_values *values)
{
	if (!list_grow(&values->marks, values->mark_count, sizeof(*values->marks)))
		return refuse(values, "not enough memory") != NULL;
	values->marks[values->mark_count++] = values->depth;
	return true;
}

/* Remove the mark; *from is the first value above it. */
static bool pop_mark(struct plain_values *values, size_t *from)
{
	if (values->mark_count == 0)
		return refuse(values, "an end without a beginning") != NULL;
	*from = values->marks[--values->mark_count];
	return true;
}

/* Move the values from `from` on into the container. */
static bool add_items(struct plain_values *values, struct plain_value *to, size_t from)
{
	size_t count = values->depth - from, room = to->room;

	if (count + to->count > ITEMS_MAX)
		return refuse(values, "too many items") != NULL;
	if (to->count + count > room) {
		struct plain_value **items;

		/* Most are filled at once. */
		room = to->count == 0 ? count : (to->count + count) * 2;
		items = allocate(values, room * sizeof(struct plain_value *));
		if (items == NULL)
			return false;
		if (to->count > 0)
			memcpy(items, to->items, to->count * sizeof(struct plain_value *));
		to->items = items;
		to->room = (uint32_t)room;
	}
	if (count > 0)
		memcpy(to->items + to->count, values->stack + from,
		       count * sizeof(struct plain_value *));
	to->count += (uint32_t)count;
	values->depth = from;
	return true;
}

static bool push_container(struct plain_values *values, enum plain_kind kind, size_t from)
{
	struct plain_value *container = make(values, kind);

	if (kind == PLAIN_MAP && (values->depth - from) % 2 != 0)
		return refuse(values, "a key without a value") != NULL;
	return container != NULL && add_items(values, container, from) && push(values, container);
}

/* ---- simple values --------------------------------------------------------------------------- */

static bool push_truth(struct plain_values *values, bool truth)
{
	struct plain_value *value = make(values, PLAIN_TRUTH);

	if (value != NULL)
		value->truth = truth;
	return push(values, value);
}

static bool push_integer(struct plain_values *values, int64_t integer)
{
	struct plain_value *value = make(values, PLAIN_INTEGER);

	if (value != NULL)
		value->integer = integer;
	return push(values, value);
}

static bool push_real(struct plain_values *values, double real)
{
	struct plain_value *value = make(values, PLAIN_REAL);

	if (value != NULL)
		value->real = real;
	return push(values, value);
}

static bool push_text(struct plain_values *values, const char *text, size_t length)
{
	struct plain_value *value = make(values, PLAIN_TEXT);

	if (length > ITEMS_MAX)
		return refuse(values, "a text is too long") != NULL;
	if (value != NULL) {
		value->text = text;
		value->count = (uint32_t)length;
	}
	return push(values, value);
}

/* ---- pickle ---------------------------------------------------------------------------------- */

enum pickle_opcode {
	PICKLE_MARK = '(',
	PICKLE_STOP = '.',
	PICKLE_POP = '0',
	PICKLE_POP_MARK = '1',
	PICKLE_NONE = 'N',
	PICKLE_INT4 = 'J',
	PICKLE_INT1 = 'K',
	PICKLE_INT2 = 'M',
	PICKLE_LONG1 = 0x8a,
	PICKLE_LONG4 = 0x8b,
	PICKLE_REAL = 'G',
	PICKLE_TRUE = 0x88,
	PICKLE_FALSE = 0x89,
	PICKLE_STRING1 = 'U',
	PICKLE_STRING4 = 'T',
	PICKLE_TEXT1 = 0x8c,
	PICKLE_TEXT4 = 'X',
	PICKLE_TEXT8 = 0x8d,
	PICKLE_BYTES1 = 'C',
	PICKLE_BYTES4 = 'B',
	PICKLE_BYTES8 = 0x8e,
	PICKLE_EMPTY_LIST = ']',
	PICKLE_LIST = 'l',
	PICKLE_APPEND = 'a',
	PICKLE_APPENDS = 'e',
	PICKLE_EMPTY_TUPLE = ')',
	PICKLE_TUPLE = 't',
	PICKLE_TUPLE1 = 0x85,
	PICKLE_TUPLE2 = 0x86,
	PICKLE_TUPLE3 = 0x87,
	PICKLE_EMPTY_MAP = '}',
	PICKLE_MAP = 'd',
	PICKLE_SET_ITEM = 's',
	PICKLE_SET_ITEMS = 'u',
	PICKLE_PUT1 = 'q',
	PICKLE_PUT4 = 'r',
	PICKLE_GET1 = 'h',
	PICKLE_GET4 = 'j',
	PICKLE_MEMOIZE = 0x94,
	PICKLE_PROTOCOL = 0x80,
	PICKLE_FRAME = 0x95,
};

struct pickle {
	struct plain_values *values;
	const unsigned char *bytes;
	size_t length;
	size_t at;
};

/* Little-endian, like everything that this runs on. Of fixed widths: a copy of variable width is slow. */
static inline bool read_number(struct pickle *pickle, unsigned int width, uint64_t *number)
{
	const unsigned char *from = pickle->bytes + pickle->at;
	uint16_t two;
	uint32_t four;

	if (pickle->length - pickle->at < width)
		return refuse(pickle->values, "the file ends too early") != NULL;
	pickle->at += width;
	switch (width) {
	case 1:
		*number = *from;
		return true;
	case 2:
		memcpy(&two, from, sizeof(two));
		*number = two;
		return true;
	case 4:
		memcpy(&four, from, sizeof(four));
		*number = four;
		return true;
	default:
		memcpy(number, from, sizeof(*number));
		return true;
	}
}

static bool read_text(struct pickle *pickle, unsigned int width)
{
	uint64_t length;
	const char *text;

	if (!read_number(pickle, width, &length))
		return false;
	if (length > pickle->length - pickle->at)
		return refuse(pickle->values, "the file ends too early") != NULL;
	text = (const char *)pickle->bytes + pickle->at;
	pickle->at += length;
	return push_text(pickle->values, text, length);
}

/* A number of up to 8 bytes with a sign; longer ones are reals, which nothing here needs exactly. */
static bool read_long(struct pickle *pickle, unsigned int width)
{
	const unsigned char *bytes;
	uint64_t length, number = 0;
	double real = 0;

	if (!read_number(pickle, width, &length))
		return false;
	if (length > pickle->length - pickle->at)
		return refuse(pickle->values, "the file ends too early") != NULL;
	bytes = pickle->bytes + pickle->at;
	pickle->at += length;
	if (length <= 8) {
		for (uint64_t i = 0; i < length; i++)
			number |= (uint64_t)bytes[i] << i * 8;
		if (length > 0 && length < 8 && bytes[length - 1] & 0x80)
			number |= ~UINT64_C(0) << length * 8;
		return push_integer(pickle->values, (int64_t)number);
	}
	for (uint64_t i = length; i-- > 0 && isfinite(real);)
		real = real * 256 + (i == length - 1 ? (signed char)bytes[i] : bytes[i]);
	return push_real(pickle->values, real);
}

static bool read_real(struct pickle *pickle)
{
	uint64_t word = 0;
	double real;

	if (pickle->length - pickle->at < 8)
		return refuse(pickle->values, "the file ends too early") != NULL;
	for (unsigned int i = 0; i < 8; i++)
		word = word << 8 | pickle->bytes[pickle->at + i];
	pickle->at += 8;
	memcpy(&real, &word, sizeof(real));
	return push_real(pickle->values, real);
}

static bool remember(struct pickle *pickle, uint64_t place)
{
	struct plain_values *values = pickle->values;
	struct plain_value *value = top(values);

	if (value == NULL)
		return false;
	/* Writers count from 0 or 1; a larger place would only cost memory. */
	if (place > values->value_count + 1)
		return refuse(values, "a memo place beyond all values") != NULL;
	while (values->memo_count <= place) {
		if (values->memo_count == values->memo_room &&
		    !grow(values, &values->memo, &values->memo_room))
			return false;
		values->memo[values->memo_count++] = NULL;
	}
	values->memo[place] = value;
	return true;
}

static bool recall(struct pickle *pickle, uint64_t place)
{
	struct plain_values *values = pickle->values;

	if (place >= values->memo_count || values->memo[place] == NULL)
		return refuse(values, "a memo place without a value") != NULL;
	return push(values, values->memo[place]);
}

/* Add what is above `from` to the container right below it. */
static bool extend(struct pickle *pickle, size_t from, enum plain_kind kind)
{
	struct plain_values *values = pickle->values;

	if (from == 0 || from - 1 < floor_of(values) || from > values->depth ||
	    values->stack[from - 1]->kind != kind)
		return refuse(values, "items for something that has none") != NULL;
	if (kind == PLAIN_MAP && (values->depth - from) % 2 != 0)
		return refuse(values, "a key without a value") != NULL;
	return add_items(values, values->stack[from - 1], from);
}

static bool extend_from_mark(struct pickle *pickle, enum plain_kind kind)
{
	size_t from;

	return pop_mark(pickle->values, &from) && extend(pickle, from, kind);
}

static bool collect_from_mark(struct pickle *pickle, enum plain_kind kind)
{
	size_t from;

	return pop_mark(pickle->values, &from) && push_container(pickle->values, kind, from);
}

static bool collect(struct pickle *pickle, size_t count)
{
	struct plain_values *values = pickle->values;

	if (values->depth < floor_of(values) + count)
		return refuse(values, "a value is missing") != NULL;
	return push_container(values, PLAIN_LIST, values->depth - count);
}

static bool drop_to_mark(struct pickle *pickle)
{
	size_t from;

	if (!pop_mark(pickle->values, &from))
		return false;
	pickle->values->depth = from;
	return true;
}

/* The operand of these is a number of this many bytes. */
static inline bool run_number(struct pickle *pickle, unsigned char opcode, unsigned int width)
{
	uint64_t number;

	if (!read_number(pickle, width, &number))
		return false;
	switch (opcode) {
	case PICKLE_INT4:
		return push_integer(pickle->values, (int32_t)(uint32_t)number);
	case PICKLE_PUT1:
	case PICKLE_PUT4:
		return remember(pickle, number);
	case PICKLE_GET1:
	case PICKLE_GET4:
		return recall(pickle, number);
	case PICKLE_PROTOCOL:
		return number <= 5 || refuse(pickle->values, "unknown pickle protocol") != NULL;
	case PICKLE_FRAME:
		return true;
	default:
		return push_integer(pickle->values, (int64_t)number);
	}
}

static bool run_container(struct pickle *pickle, unsigned char opcode)
{
	struct plain_values *values = pickle->values;

	switch (opcode) {
	case PICKLE_EMPTY_LIST:
	case PICKLE_EMPTY_TUPLE:
		return push(values, make(values, PLAIN_LIST));
	case PICKLE_EMPTY_MAP:
		return push(values, make(values, PLAIN_MAP));
	case PICKLE_LIST:
	case PICKLE_TUPLE:
		return collect_from_mark(pickle, PLAIN_LIST);
	case PICKLE_MAP:
		return collect_from_mark(pickle, PLAIN_MAP);
	case PICKLE_TUPLE1:
	case PICKLE_TUPLE2:
	case PICKLE_TUPLE3:
		return collect(pickle, (size_t)opcode - PICKLE_TUPLE1 + 1);
	case PICKLE_APPEND:
		return values->depth > 0 && extend(pickle, values->depth - 1, PLAIN_LIST);
	case PICKLE_APPENDS:
		return extend_from_mark(pickle, PLAIN_LIST);
	case PICKLE_SET_ITEM:
		return values->depth > 1 && extend(pickle, values->depth - 2, PLAIN_MAP);
	case PICKLE_SET_ITEMS:
		return extend_from_mark(pickle, PLAIN_MAP);
	default:
		return refuse(values, "it names a class or is damaged; only plain values are "
				      "read") != NULL;
	}
}

static bool run(struct pickle *pickle, unsigned char opcode)
{
	struct plain_values *values = pickle->values;

	switch (opcode) {
	case PICKLE_MARK:
		return push_mark(values);
	case PICKLE_POP:
		return pop(values) != NULL;
	case PICKLE_POP_MARK:
		return drop_to_mark(pickle);
	case PICKLE_NONE:
		return push(values, make(values, PLAIN_NONE));
	case PICKLE_TRUE:
	case PICKLE_FALSE:
		return push_truth(values, opcode == PICKLE_TRUE);
	case PICKLE_INT1:
	case PICKLE_PUT1:
	case PICKLE_GET1:
	case PICKLE_PROTOCOL:
		return run_number(pickle, opcode, 1);
	case PICKLE_INT2:
		return run_number(pickle, opcode, 2);
	case PICKLE_INT4:
	case PICKLE_PUT4:
	case PICKLE_GET4:
		return run_number(pickle, opcode, 4);
	case PICKLE_FRAME:
		return run_number(pickle, opcode, 8);
	case PICKLE_LONG1:
		return read_long(pickle, 1);
	case PICKLE_LONG4:
		return read_long(pickle, 4);
	case PICKLE_REAL:
		return read_real(pickle);
	case PICKLE_STRING1:
	case PICKLE_TEXT1:
	case PICKLE_BYTES1:
		return read_text(pickle, 1);
	case PICKLE_STRING4:
	case PICKLE_TEXT4:
	case PICKLE_BYTES4:
		return read_text(pickle, 4);
	case PICKLE_TEXT8:
	case PICKLE_BYTES8:
		return read_text(pickle, 8);
	case PICKLE_MEMOIZE:
		return remember(pickle, values->memo_count);
	default:
		return run_container(pickle, opcode);
	}
}

const struct plain_value *plain_values_pickle(struct plain_values *values, const void *bytes,
					      size_t length)
{
	struct pickle pickle = { .values = values, .bytes = bytes, .length = length };

	while (pickle.at < length) {
		unsigned char opcode = pickle.bytes[pickle.at];

		values->problem_at = pickle.at++;
		if (opcode == PICKLE_STOP)
			return values->mark_count == 0 && values->depth == 1
				       ? values->stack[0]
				       : refuse(values, "it ends inside a value");
		if (!run(&pickle, opcode))
			return refuse(values, "a value is missing");
	}
	values->problem_at = length;
	return refuse(values, "the file ends too early");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static bool take_text(struct plain_values *values, const struct json_scan *scan)
{
	char *copy;

	if (!scan->has_escapes)
		return push_text(values, scan->text, scan->length);
	copy = allocate(values, scan->length + 1);
	if (copy == NULL)
		return false;
	/* Unescaped it is never longer. */
	json_scan_text(scan, copy, scan->length + 1);
	return push_text(values, copy, strlen(copy));
}

static bool take_number(struct plain_values *values, const struct json_scan *scan)
{
	int64_t integer;
	double real = 0;

	if (json_scan_signed(scan, &integer))
		return push_integer(values, integer);
	json_scan_double(scan, &real);
	return push_real(values, real);
}

static bool take_end(struct plain_values *values, enum plain_kind kind)
{
	size_t from;

	return pop_mark(values, &from) && push_container(values, kind, from);
}

static bool take_token(struct plain_values *values, const struct json_scan *scan,
		       enum json_scan_token token)
{
	switch (token) {
	case JSON_SCAN_OBJECT:
	case JSON_SCAN_ARRAY:
		return push_mark(values);
	case JSON_SCAN_OBJECT_END:
		return take_end(values, PLAIN_MAP);
	case JSON_SCAN_ARRAY_END:
		return take_end(values, PLAIN_LIST);
	case JSON_SCAN_KEY:
	case JSON_SCAN_STRING:
		return take_text(values, scan);
	case JSON_SCAN_NUMBER:
		return take_number(values, scan);
	case JSON_SCAN_TRUE:
	case JSON_SCAN_FALSE:
		return push_truth(values, token == JSON_SCAN_TRUE);
	default:
		return push(values, make(values, PLAIN_NONE));
	}
}

const struct plain_value *plain_values_json(struct plain_values *values, const char *text,
					    size_t length)
{
	enum json_scan_token token;
	struct json_scan scan;

	json_scan_init(&scan, text, length);
	while ((token = json_scan_next(&scan)) > JSON_SCAN_END)
		if (!take_token(values, &scan, token))
			break;
	values->problem_at = json_scan_offset(&scan);
	if (token == JSON_SCAN_ERROR)
		return refuse(values, scan.problem);
	if (values->problem != NULL)
		return NULL;
	return values->depth == 1 ? values->stack[0] : refuse(values, "a value is missing");
}

/* ---- access ---------------------------------------------------------------------------------- */

bool plain_is(const struct plain_value *value, const char *text)
{
	size_t length = strlen(text);

	return value != NULL && value->kind == PLAIN_TEXT && value->count == length &&
	       memcmp(value->text, text, length) == 0;
}

const struct plain_value *plain_get(const struct plain_value *map, const char *key)
{
	for (uint32_t i = 0; map != NULL && map->kind == PLAIN_MAP && i + 1 < map->count; i += 2)
		if (plain_is(map->items[i], key))
			return map->items[i + 1];
	return NULL;
}

bool plain_integer(const struct plain_value *value, int64_t *to)
{
	if (value == NULL)
		return false;
	if (value->kind == PLAIN_INTEGER) {
		*to = value->integer;
		return true;
	}
	if (value->kind != PLAIN_REAL || !(fabs(value->real) < 9.2e18) ||
	    value->real != floor(value->real))
		return false;
	*to = (int64_t)value->real;
	return true;
}

bool plain_real(const struct plain_value *value, double *to)
{
	if (value == NULL || (value->kind != PLAIN_REAL && value->kind != PLAIN_INTEGER))
		return false;
	*to = value->kind == PLAIN_REAL ? value->real : (double)value->integer;
	return isfinite(*to);
}

bool plain_truth(const struct plain_value *value, bool *to)
{
	if (value == NULL || value->kind != PLAIN_TRUTH)
		return false;
	*to = value->truth;
	return true;
}

bool plain_text(const struct plain_value *value, char *to, size_t size)
{
	size_t length;

	if (value == NULL || value->kind != PLAIN_TEXT || size == 0)
		return false;
	length = value->count < size - 1 ? value->count : size - 1;
	/* Never inside a character. */
	while (length > 0 && length < value->count &&
	       ((unsigned char)value->text[length] & 0xc0) == 0x80)
		length--;
	memcpy(to, value->text, length);
	to[text_clean_bytes(to, length)] = '\0';
	return true;
}

uint32_t plain_count(const struct plain_value *list)
{
	return list != NULL && list->kind == PLAIN_LIST ? list->count : 0;
}
