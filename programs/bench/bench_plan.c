#include "programs/bench/bench_plan.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/attributes.h"
#include "common/op_layout.h"
#include "programs/bench/bench_layout.h"

enum { PLAN_WORD_BYTES = 64 };

/* The first spelling of a number is the one that errors list. Words are compared in lower case and without
 * what stands between letters: all_reduce_perf, AllReduce and all-reduce are one. */
struct plan_word {
	const char *name;
	uint8_t number;
};

static const struct plan_word functions[] = {
	{ "allreduce", OP_ALL_REDUCE },
	{ "allgather", OP_ALL_GATHER },
	{ "reducescatter", OP_REDUCE_SCATTER },
	{ "broadcast", OP_BROADCAST },
	{ "bcast", OP_BROADCAST },
	{ "reduce", OP_REDUCE },
	{ "alltoall", OP_ALL_TO_ALL },
	{ "sendrecv", OP_SEND_RECV },
	{ "gather", OP_GATHER },
	{ "scatter", OP_SCATTER },
};

static const struct plan_word datatypes[] = {
	{ "float32", OP_FLOAT32 },
	{ "float", OP_FLOAT32 },
	{ "fp32", OP_FLOAT32 },
	{ "f32", OP_FLOAT32 },
	{ "float16", OP_FLOAT16 },
	{ "half", OP_FLOAT16 },
	{ "fp16", OP_FLOAT16 },
	{ "f16", OP_FLOAT16 },
	{ "bfloat16", OP_BFLOAT16 },
	{ "bf16", OP_BFLOAT16 },
	{ "float64", OP_FLOAT64 },
	{ "double", OP_FLOAT64 },
	{ "fp64", OP_FLOAT64 },
	{ "f64", OP_FLOAT64 },
	{ "int8", OP_INT8 },
	{ "char", OP_INT8 },
	{ "uint8", OP_UINT8 },
	{ "int32", OP_INT32 },
	{ "int", OP_INT32 },
	{ "uint32", OP_UINT32 },
	{ "int64", OP_INT64 },
	{ "uint64", OP_UINT64 },
	{ "float8e4m3", OP_FLOAT8_E4M3 },
	{ "fp8e4m3", OP_FLOAT8_E4M3 },
	{ "f8e4m3", OP_FLOAT8_E4M3 },
	{ "float8e5m2", OP_FLOAT8_E5M2 },
	{ "fp8e5m2", OP_FLOAT8_E5M2 },
	{ "f8e5m2", OP_FLOAT8_E5M2 },
};

static const struct plan_word redops[] = {
	{ "sum", BENCH_SUM }, { "prod", BENCH_PROD }, { "max", BENCH_MAX },
	{ "min", BENCH_MIN }, { "avg", BENCH_AVG },
};

static const struct plan_word modes[] = {
	{ "blocking", BENCH_BLOCKING }, { "back-to-back", BENCH_BACK_TO_BACK },
	{ "b2b", BENCH_BACK_TO_BACK },	{ "graph", BENCH_GRAPH },
	{ "cudagraph", BENCH_GRAPH },	{ "loop", BENCH_LOOP },
};

/* ---- words ------------------------------------------------------------------------------------ */

struct plan_list {
	const char *what; /* "function" */
	const struct plan_word *words;
	size_t word_count;
	uint8_t *numbers;
	size_t room;
	size_t *count;
};

static void simplify(char *to, size_t size, const char *from, size_t length)
{
	size_t at = 0;

	for (size_t i = 0; i < length && at + 1 < size; i++)
		if (isalnum((unsigned char)from[i]))
			to[at++] = (char)tolower((unsigned char)from[i]);
	to[at] = '\0';
	if (at > 4 && strcmp(to + at - 4, "perf") == 0)
		to[at - 4] = '\0';
	if (at > 4 && strncmp(to, "nccl", 4) == 0)
		memmove(to, to + 4, strlen(to + 4) + 1);
}

static void list_allowed(const struct plan_list *list, char *text, size_t size)
{
	size_t at = 0;

	for (size_t i = 0; i < list->word_count && at < size; i++) {
		if (i > 0 && list->words[i].number == list->words[i - 1].number)
			continue;
		snprintf(text + at, size - at, "%s%s", at ? ", " : "", list->words[i].name);
		at += strlen(text + at);
	}
}

static int refuse(const struct plan_list *list, const char *word, size_t length, char *problem,
		  size_t size)
{
	char allowed[256] = "";

	list_allowed(list, allowed, sizeof(allowed));
	if (length == 0)
		snprintf(problem, size, "an empty %s; allowed are %s and all", list->what, allowed);
	else
		snprintf(problem, size, "unknown %s '%.*s'; allowed are %s and all", list->what,
			 length < 40 ? (int)length : 40, word, allowed);
	return -1;
}

/* Twice the same is once: "half,float16" is one type. */
static bool add(struct plan_list *list, uint8_t number)
{
	for (size_t i = 0; i < *list->count; i++)
		if (list->numbers[i] == number)
			return true;
	if (*list->count == list->room)
		return false;
	list->numbers[(*list->count)++] = number;
	return true;
}

static bool add_all(struct plan_list *list)
{
	for (size_t i = 0; i < list->word_count; i++)
		if (!add(list, list->words[i].number))
			return false;
	return true;
}

static bool add_word(struct plan_list *list, const char *word)
{
	char known[PLAN_WORD_BYTES];

	if (strcmp(word, "all") == 0)
		return add_all(list);
	for (size_t i = 0; i < list->word_count; i++) {
		simplify(known, sizeof(known), list->words[i].name, strlen(list->words[i].name));
		if (strcmp(known, word) == 0)
			return add(list, list->words[i].number);
	}
	return false;
}

/* What the list had is replaced, and only by a text that is right as a whole. */
static int parse_words(struct plan_list *list, const char *text, char *problem, size_t size)
{
	uint8_t found[PLAN_TYPES];
	size_t count = 0;
	struct plan_list copy = *list;
	char word[PLAN_WORD_BYTES];

	copy.numbers = found;
	copy.count = &count;
	for (const char *at = text;; at++) {
		size_t length = strcspn(at, ",");

		simplify(word, sizeof(word), at, length);
		if (length >= PLAN_WORD_BYTES || !add_word(&copy, word))
			return refuse(list, at, length, problem, size);
		at += length;
		if (*at == '\0')
			break;
	}
	memcpy(list->numbers, found, count * sizeof(*found));
	*list->count = count;
	return 0;
}

int plan_functions(struct bench_plan *plan, const char *text, char *problem, size_t size)
{
	struct plan_list list = { "function",	   functions,	   ARRAY_LENGTH(functions),
				  plan->functions, PLAN_FUNCTIONS, &plan->function_count };

	return parse_words(&list, text, problem, size);
}

int plan_datatypes(struct bench_plan *plan, const char *text, char *problem, size_t size)
{
	struct plan_list list = { "type",	   datatypes,  ARRAY_LENGTH(datatypes),
				  plan->datatypes, PLAN_TYPES, &plan->datatype_count };

	return parse_words(&list, text, problem, size);
}

int plan_redops(struct bench_plan *plan, const char *text, char *problem, size_t size)
{
	struct plan_list list = { "reduction",	redops,	      ARRAY_LENGTH(redops),
				  plan->redops, BENCH_REDOPS, &plan->redop_count };

	return parse_words(&list, text, problem, size);
}

int plan_modes(struct bench_plan *plan, const char *text, char *problem, size_t size)
{
	struct plan_list list = { "mode",      modes,	   ARRAY_LENGTH(modes),
				  plan->modes, PLAN_MODES, &plan->mode_count };

	return parse_words(&list, text, problem, size);
}

void plan_init(struct bench_plan *plan)
{
	char problem[128];

	memset(plan, 0, sizeof(*plan));
	plan_functions(plan, "allreduce", problem, sizeof(problem));
	plan_datatypes(plan, "float32", problem, sizeof(problem));
	plan_redops(plan, "sum", problem, sizeof(problem));
	plan_modes(plan, "blocking", problem, sizeof(problem));
	plan_sizes(plan, "1K..128M*4", problem, sizeof(problem));
	plan->places = PLAN_BOTH_PLACES;
	plan->calls = 20;
	plan->least_calls = 5;
	plan->warmups = 5;
	plan->graph_calls = 10;
	plan->align = PLAN_ALIGN_HUB;
	plan->is_checked = true;
	plan->over = BENCH_OVER_MEAN;
}

size_t plan_cells(const struct bench_plan *plan)
{
	size_t places = plan->places == PLAN_BOTH_PLACES ? 2 : 1, cells = 0;

	for (size_t i = 0; i < plan->function_count; i++)
		cells += plan->datatype_count * plan->mode_count * plan->size_count *
			 (layout_is_reduction(plan->functions[i]) ? plan->redop_count : 1) *
			 (layout_has_in_place(plan->functions[i]) ? places : 1);
	return cells > 0 ? cells : 1;
}
