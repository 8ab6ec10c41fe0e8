#include "programs/cli/crossover_variants.h"

#include <string.h>
#include <strings.h>

#include "common/attributes.h"
#include "common/op_layout.h"
#include "common/text.h"

struct word {
	const char *name;
	uint8_t number;
};

/* The first spelling of each is the one that is set. */
static const struct word algorithm_words[] = {
	{ "Ring", OP_RING },
	{ "Tree", OP_TREE },
	{ "NVLS", OP_NVLS },
	{ "NVLSTree", OP_NVLS_TREE },
	{ "NVLS_TREE", OP_NVLS_TREE },
	{ "CollNetDirect", OP_COLLNET_DIRECT },
	{ "COLLNET_DIRECT", OP_COLLNET_DIRECT },
	{ "CollNetChain", OP_COLLNET_CHAIN },
	{ "COLLNET_CHAIN", OP_COLLNET_CHAIN },
	{ "collnet", OP_COLLNET_DIRECT },
	{ "collnet", OP_COLLNET_CHAIN },
	{ "PAT", OP_PAT },
};

static const struct word protocol_words[] = {
	{ "LL", OP_LL },
	{ "LL128", OP_LL128 },
	{ "Simple", OP_SIMPLE },
};

struct words {
	const struct word *list;
	size_t count;
	const char *known; /* for messages */
};

static const struct words algorithms = { algorithm_words, ARRAY_LENGTH(algorithm_words),
					 "ring, tree, nvls, nvlstree, collnet, pat or all" };
static const struct words protocols = { protocol_words, ARRAY_LENGTH(protocol_words),
					"ll, ll128, simple or all" };

static const char *setting(const struct words *words, uint8_t number)
{
	for (size_t i = 0; i < words->count; i++)
		if (words->list[i].number == number)
			return words->list[i].name;
	return NULL;
}

const char *crossover_algorithm_setting(uint8_t algorithm)
{
	return setting(&algorithms, algorithm);
}

const char *crossover_protocol_setting(uint8_t protocol)
{
	return setting(&protocols, protocol);
}

void crossover_variants_init(struct crossover_variants *variants)
{
	*variants = (struct crossover_variants){
		.algorithms = { OP_RING, OP_TREE },
		.algorithm_count = 2,
		.protocols = { OP_LL, OP_LL128, OP_SIMPLE },
		.protocol_count = 3,
	};
}

/* Once each: a word that comes again adds nothing. */
static void add(uint8_t *list, size_t room, size_t *count, uint8_t number)
{
	if (*count < room && memchr(list, number, *count) == NULL)
		list[(*count)++] = number;
}

static bool is_word(const char *word, const char *text, size_t length)
{
	return strlen(word) == length && strncasecmp(word, text, length) == 0;
}

/* All that the word means; false: nothing. */
static bool add_word(const struct words *words, const char *text, size_t length, uint8_t *list,
		     size_t room, size_t *count)
{
	bool is_all = is_word("all", text, length), is_found = false;

	for (size_t i = 0; i < words->count; i++) {
		if (!is_all && !is_word(words->list[i].name, text, length))
			continue;
		add(list, room, count, words->list[i].number);
		is_found = true;
	}
	return is_found;
}

/* Of a list with commas between its words; *count is written on success only. */
static int take(const struct words *words, const char *text, uint8_t *list, size_t room,
		size_t *count, char *problem, size_t size)
{
	size_t found = 0;

	for (const char *at = text;; at++) {
		size_t length = strcspn(at, ",");

		if (!add_word(words, at, length, list, room, &found)) {
			text_format(problem, size, "'%.*s' is none of %s", (int)length, at,
				    words->known);
			return -1;
		}
		at += length;
		if (*at == '\0')
			break;
	}
	*count = found;
	return 0;
}

int crossover_algorithms(struct crossover_variants *variants, const char *text, char *problem,
			 size_t size)
{
	return take(&algorithms, text, variants->algorithms, ARRAY_LENGTH(variants->algorithms),
		    &variants->algorithm_count, problem, size);
}

int crossover_protocols(struct crossover_variants *variants, const char *text, char *problem,
			size_t size)
{
	return take(&protocols, text, variants->protocols, ARRAY_LENGTH(variants->protocols),
		    &variants->protocol_count, problem, size);
}

/* Only rings and trees have the protocols for small messages. */
static bool is_pair(uint8_t algorithm, uint8_t protocol)
{
	return protocol == OP_SIMPLE || algorithm == OP_RING || algorithm == OP_TREE;
}

bool crossover_is_known(uint8_t function, const struct crossover_variant *variant)
{
	bool is_half = function == OP_ALL_GATHER || function == OP_REDUCE_SCATTER;

	switch (variant->algorithm) {
	case OP_ALGORITHM_UNKNOWN:
		return true;
	case OP_RING:
		return is_half || function == OP_ALL_REDUCE || function == OP_BROADCAST ||
		       function == OP_REDUCE;
	case OP_NVLS:
	case OP_COLLNET_DIRECT:
		return is_half || function == OP_ALL_REDUCE;
	case OP_PAT:
		return is_half;
	default:
		return function == OP_ALL_REDUCE;
	}
}

void crossover_variants_list(struct crossover_variants *variants)
{
	variants->count = 0;
	variants->list[variants->count++] = (struct crossover_variant){ 0 };
	for (size_t a = 0; a < variants->algorithm_count; a++)
		for (size_t p = 0; p < variants->protocol_count; p++)
			if (is_pair(variants->algorithms[a], variants->protocols[p]) &&
			    variants->count < ARRAY_LENGTH(variants->list))
				variants->list[variants->count++] = (struct crossover_variant){
					.algorithm = variants->algorithms[a],
					.protocol = variants->protocols[p],
				};
}
