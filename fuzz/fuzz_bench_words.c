/*
 * Any input from a user or a launcher to the benchmark: sizes and functions, variables of
 * launchers, the file in which rank 0 publishes its address. The first byte selects which.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/bench_launch.h"
#include "bench/bench_plan.h"
#include "fuzz/fuzz_main.h"

static void must(bool is_so)
{
	if (!is_so)
		abort();
}

static bool is_line(const char *text, size_t size)
{
	return strnlen(text, size) < size;
}

static void try_plan(const char *text)
{
	static struct bench_plan plan;
	char problem[128];

	plan_init(&plan);
	if (plan_sizes(&plan, text, problem, sizeof(problem)) != 0)
		must(is_line(problem, sizeof(problem)));
	must(plan.size_count >= 1 && plan.size_count <= PLAN_SIZES);
	for (size_t i = 0; i < plan.size_count; i++)
		must(plan.sizes[i] > 0);
	if (plan_functions(&plan, text, problem, sizeof(problem)) != 0)
		must(is_line(problem, sizeof(problem)));
	must(plan.function_count >= 1 && plan.function_count <= PLAN_FUNCTIONS);
	if (plan_datatypes(&plan, text, problem, sizeof(problem)) != 0)
		must(is_line(problem, sizeof(problem)));
	must(plan.datatype_count >= 1 && plan.datatype_count <= PLAN_TYPES);
	if (plan_modes(&plan, text, problem, sizeof(problem)) != 0)
		must(is_line(problem, sizeof(problem)));
	must(plan.mode_count >= 1 && plan.mode_count <= PLAN_MODES);
}

/* Lines NAME=VALUE, each terminated by '\0'; `text` has two at its end. */
static const char *from_text(void *context, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = context; *at != '\0'; at += strlen(at) + 1)
		if (strncmp(at, name, length) == 0 && at[length] == '=')
			return at + length + 1;
	return NULL;
}

static void try_place(char *text, const char *matches)
{
	static struct bench_place place;
	char problem[128] = "";
	int found;

	for (char *at = text; *at != '\0'; at++)
		if (*at == '\n')
			*at = '\0';
	found = bench_place_find(&place, from_text, text, matches, problem, sizeof(problem));
	must(is_line(problem, sizeof(problem)) && (found != -1 || problem[0] != '\0'));
	if (found != 1)
		return;
	must(place.rank >= 0 && place.rank < place.nranks);
	must(place.local_ranks <= place.nranks && place.local_rank < place.nranks);
	must(is_line(place.address, sizeof(place.address)) &&
	     is_line(place.file, sizeof(place.file)));
	must(place.nranks == 1 || place.address[0] != '\0' || place.file[0] != '\0');
	must(place.address[0] == '\0' || place.file[0] != '\0' ||
	     (place.port > 0 && place.port + place.ports <= 65536));
}

static void try_card(const char *text, size_t size)
{
	static struct hub_card card;

	if (hub_card_parse(&card, text, size) != OK)
		return;
	must(card.count >= 1 && card.count <= HUB_CARD_ADDRESSES);
	must(card.port >= 1 && card.port <= 65535);
	for (size_t i = 0; i < card.count; i++)
		must(card.hosts[i][0] != '\0' && is_line(card.hosts[i], HUB_CARD_HOST));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size < 1 || (text = calloc(1, size + 2)) == NULL)
		return 0;
	memcpy(text, data + 1, size - 1);
	switch (data[0] % 4) {
	case 0:
		try_plan(text);
		break;
	case 1:
		try_place(text, NULL);
		break;
	case 2:
		try_place(text, "meet:5000");
		break;
	case 3:
		try_card(text, size - 1);
		break;
	}
	free(text);
	return 0;
}
