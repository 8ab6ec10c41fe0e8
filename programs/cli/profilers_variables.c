/*
 * What each plugin has to be told so that it records all it can. Sources: Inspector's README and the defaults in
 * inspector.cc (NCCL 2.30), CoMMA's README and its src/config.rs; docs/PROFILERS.md explains the choices.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/text.h"
#include "programs/cli/profilers_variant.h"

/* %o the job's directory, %r that for regions, %s the setting's own name. */
static const struct {
	enum profilers_kind kind;
	const char *setting; /* NULL: all */
	const char *name;
	const char *value;
} told[] = {
	{ PROFILERS_RINGSIDE, NULL, "RINGSIDE_MODE", "%s" },
	{ PROFILERS_RINGSIDE, NULL, "RINGSIDE_DIR", "%o" },
	{ PROFILERS_RINGSIDE, NULL, "RINGSIDE_SHM", "%r" },
	/* As the others do by default: otherwise there are no GPU times to compare. */
	{ PROFILERS_RINGSIDE, NULL, "RINGSIDE_EVENTS", "kernel" },
	{ PROFILERS_INSPECTOR, NULL, "NCCL_INSPECTOR_ENABLE", "1" },
	{ PROFILERS_INSPECTOR, NULL, "NCCL_INSPECTOR_DUMP_DIR", "%o" },
	/* Its default writes nothing. */
	{ PROFILERS_INSPECTOR, "readme", "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS",
	  "500" },
	{ PROFILERS_INSPECTOR, "best", "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", "500" },
	/* By default it leaves out what is below 8 KiB, and what has no time of the GPU's clock. */
	{ PROFILERS_INSPECTOR, "best", "NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES", "0" },
	{ PROFILERS_INSPECTOR, "best", "NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING", "0" },
	/* A longer ring is overwritten later. */
	{ PROFILERS_INSPECTOR, "best", "NCCL_INSPECTOR_DUMP_COLL_RING_SIZE", "65536" },
	{ PROFILERS_INSPECTOR, "best", "NCCL_INSPECTOR_DUMP_P2P_RING_SIZE", "65536" },
	{ PROFILERS_COMMA, NULL, "NCCL_PROFILER_LATENCY_FILE", "%o/latency-%%p.txt" },
	/* Google's own service, which is not here. */
	{ PROFILERS_COMMA, NULL, "NCCL_PROFILER_USE_GPUVIZ", "false" },
	/* By default it leaves out small collectives, those of NVLS, and nine of ten receives. */
	{ PROFILERS_COMMA, "best", "NCCL_PROFILER_SKIP_SMALL_COLLECTIVE", "false" },
	{ PROFILERS_COMMA, "best", "NCCL_PROFILER_SKIP_NVLS", "false" },
	{ PROFILERS_COMMA, "best", "NCCL_PROFILER_P2P_RECV_SAMPLE_RATE", "1.0" },
};

static bool is_told(const struct profilers_variant *variant, size_t i)
{
	return told[i].kind == variant->kind &&
	       (told[i].setting == NULL || strcmp(told[i].setting, variant->setting) == 0);
}

static void expand(char *to, size_t size, const char *value, const struct profilers_place *place,
		   const char *setting)
{
	size_t used = 0;

	to[0] = '\0';
	for (; *value != '\0' && used + 1 < size; value++) {
		char letter = value[0] == '%' && value[1] != '\0' ? *++value : '\0';
		const char *part = letter == 'o'   ? place->output
				   : letter == 'r' ? place->regions
				   : letter == 's' ? setting
						   : NULL;

		if (part)
			text_copy(to + used, size - used, part);
		else
			text_format(to + used, size - used, "%c", *value);
		used += strlen(to + used);
	}
}

void profilers_variant_words(const struct profilers_variant *variant, char *words, size_t size)
{
	static const struct profilers_place place = { "DIR", "SHM" };
	char value[VARIANT_PATH_BYTES];
	size_t used = 0;

	words[0] = '\0';
	for (size_t i = 0; i < ARRAY_LENGTH(told); i++) {
		if (!is_told(variant, i))
			continue;
		expand(value, sizeof(value), told[i].value, &place, variant->setting);
		text_format(words + used, size - used, "%s%s=%s", used ? " " : "", told[i].name,
			    value);
		used += strlen(words + used);
	}
}

/* ---- the list -------------------------------------------------------------------------------- */

static const char *keep(struct profilers_variables *variables, const char *text)
{
	char *at = variables->text + variables->used;
	size_t bytes = strlen(text) + 1;

	if (bytes > sizeof(variables->text) - variables->used)
		return NULL;
	memcpy(at, text, bytes);
	variables->used += bytes;
	return at;
}

void profilers_variables_add(struct profilers_variables *variables, const char *name,
			     const char *value)
{
	struct bench_variable variable = { keep(variables, name), NULL };

	if (value)
		variable.value = keep(variables, value);
	if (variable.name == NULL || (value && variable.value == NULL) ||
	    variables->count + 1 >= VARIANT_VARIABLES) {
		variables->is_full = true;
		return;
	}
	variables->list[variables->count++] = variable;
	variables->list[variables->count] = (struct bench_variable){ NULL, NULL };
}

/* Variables of profilers; those of the benchmark itself stay. */
static bool is_profilers(const char *name)
{
	static const char *const prefixes[] = { "RINGSIDE_", "NCCL_INSPECTOR_", "NCCL_PROFILER_",
						"NCCL_TELEMETRY_", "NCCL_PROFILE_" };
	static const char *const ours[] = { "RINGSIDE_CUDA", "RINGSIDE_NCCL", "RINGSIDE_BENCH_" };

	for (size_t i = 0; i < ARRAY_LENGTH(ours); i++)
		if (strncmp(name, ours[i], strlen(ours[i])) == 0)
			return false;
	for (size_t i = 0; i < ARRAY_LENGTH(prefixes); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

void profilers_variant_variables(const struct profilers_variant *variant,
				 const struct profilers_place *place,
				 struct profilers_variables *variables)
{
	char name[256], value[VARIANT_PATH_BYTES];

	variables->count = variables->used = 0;
	variables->is_full = false;
	variables->list[0] = (struct bench_variable){ NULL, NULL };
	for (char **at = environ; *at; at++) {
		text_format(name, sizeof(name), "%.*s", (int)strcspn(*at, "="), *at);
		if (is_profilers(name))
			profilers_variables_add(variables, name, NULL);
	}
	profilers_variables_add(variables, "NCCL_PROFILER_PLUGIN",
				variant->path[0] ? variant->path : "none");
	for (size_t i = 0; i < ARRAY_LENGTH(told); i++) {
		if (!is_told(variant, i))
			continue;
		expand(value, sizeof(value), told[i].value, place, variant->setting);
		profilers_variables_add(variables, told[i].name, value);
	}
}
