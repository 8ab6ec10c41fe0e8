/* Sizes of messages in words: lists, and ranges by a factor or by steps. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "programs/bench/bench_plan.h"

enum { SIZES_ITEM_BYTES = 128 };
/* More than any GPU has. */
#define SIZES_MOST (UINT64_C(1) << 42)

struct sizes {
	uint64_t of[PLAN_SIZES];
	size_t count;
	char *problem;
	size_t problem_size;
};

static int size_of(struct sizes *sizes, const char *word, uint64_t *bytes)
{
	if (text_size(word, bytes) != OK) {
		snprintf(sizes->problem, sizes->problem_size,
			 "'%s' is no size; sizes are like 4096, 32K, 1M, 1G, in lists (1K,32K) or "
			 "ranges (1K..1G, 1K..1G*4, 1M..8M+1M)",
			 word);
		return -1;
	}
	if (*bytes == 0 || *bytes > SIZES_MOST) {
		snprintf(sizes->problem, sizes->problem_size, "size '%s' is not from 1 to 4T bytes",
			 word);
		return -1;
	}
	return 0;
}

static int add_size(struct sizes *sizes, uint64_t bytes)
{
	for (size_t i = 0; i < sizes->count; i++)
		if (sizes->of[i] == bytes)
			return 0;
	if (sizes->count == PLAN_SIZES) {
		snprintf(sizes->problem, sizes->problem_size,
			 "more than %d sizes; take a larger factor or step", PLAN_SIZES);
		return -1;
	}
	sizes->of[sizes->count++] = bytes;
	return 0;
}

/* Behind the last size of a range: "*4", "+1M" or nothing, which is "*2". */
static int take_step(struct sizes *sizes, const char *text, int64_t *factor, uint64_t *step)
{
	*factor = 1;
	*step = 0;
	if (*text == '\0')
		*factor = 2;
	else if (*text == '+')
		return size_of(sizes, text + 1, step);
	else if (text_number(text + 1, 2, 1 << 20, factor) != OK) {
		snprintf(sizes->problem, sizes->problem_size,
			 "'%s' is no factor from 2 on, as in 1K..1G*4", text + 1);
		return -1;
	}
	return 0;
}

static int add_range(struct sizes *sizes, char *first, char *last)
{
	char *mark = last + strcspn(last, "*+");
	char step_text[SIZES_ITEM_BYTES];
	uint64_t from, to, step;
	int64_t factor;

	text_copy(step_text, sizeof(step_text), mark);
	*mark = '\0';
	if (size_of(sizes, first, &from) != 0 || size_of(sizes, last, &to) != 0 ||
	    take_step(sizes, step_text, &factor, &step) != 0)
		return -1;
	if (from > to) {
		snprintf(sizes->problem, sizes->problem_size, "range %s..%s ends before it begins",
			 first, last);
		return -1;
	}
	for (uint64_t bytes = from; bytes <= to; bytes = bytes * (uint64_t)factor + step)
		if (add_size(sizes, bytes) != 0)
			return -1;
	return 0;
}

static int add_item(struct sizes *sizes, const char *text, size_t length)
{
	char item[SIZES_ITEM_BYTES];
	uint64_t bytes;
	char *dots;

	if (length >= sizeof(item)) {
		snprintf(sizes->problem, sizes->problem_size, "'%.40s...' is too long for a size",
			 text);
		return -1;
	}
	memcpy(item, text, length);
	item[length] = '\0';
	dots = strstr(item, "..");
	if (dots != NULL) {
		*dots = '\0';
		return add_range(sizes, item, dots + 2);
	}
	if (size_of(sizes, item, &bytes) != 0)
		return -1;
	return add_size(sizes, bytes);
}

int plan_sizes(struct bench_plan *plan, const char *text, char *problem, size_t size)
{
	struct sizes sizes = { .problem = problem, .problem_size = size };

	for (const char *at = text;; at++) {
		size_t length = strcspn(at, ",");

		if (add_item(&sizes, at, length) != 0)
			return -1;
		at += length;
		if (*at == '\0')
			break;
	}
	memcpy(plan->sizes, sizes.of, sizes.count * sizeof(sizes.of[0]));
	plan->size_count = sizes.count;
	return 0;
}
