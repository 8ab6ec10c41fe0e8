/*
 * One of the things that `ringside bench profilers` compares: no plugin, or a plugin with its settings. Which
 * variables make it record all it can, and where its files then are.
 */
#ifndef PROFILERS_VARIANT_H
#define PROFILERS_VARIANT_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/profilers.h"
#include "programs/bench/bench_launch.h"

enum { VARIANT_VARIABLES = 256, VARIANT_PATH_BYTES = 4096, VARIANT_TEXT_BYTES = 32 << 10 };

struct profilers_variant {
	char label[64];
	char path[VARIANT_PATH_BYTES]; /* absolute; "": no plugin */
	enum profilers_kind kind;
	const char
		*setting; /* static: "trace"; "best", "readme", "default"; "": there is but one */
	size_t number;	  /* of profilers_plugin(), 0: no plugin */
};

/* Where one job's plugin may leave files. */
struct profilers_place {
	char output
		[VARIANT_PATH_BYTES]; /* what the plugin writes; also the job's working directory */
	char regions[VARIANT_PATH_BYTES]; /* in memory: what the Ringside plugin shares */
};

/* "FILE", "FILE=KIND", "FILE=KIND:SETTING", "ringside", "ringside:SETTING". The kind is guessed from the file's
 * content where it is not given. 0, or -1 and *problem. */
int profilers_variant_take(struct profilers_variant *variant, const char *text, char *problem,
			   size_t problem_size);
/* Its label becomes the file's name: where there are several of a kind. */
void profilers_variant_name_by_file(struct profilers_variant *variant);
/* The one without a plugin. */
void profilers_variant_none(struct profilers_variant *variant);

/* The variables of a job, with what they point to. */
struct profilers_variables {
	struct bench_variable list[VARIANT_VARIABLES]; /* ends with a NULL name */
	size_t count;
	char text[VARIANT_TEXT_BYTES];
	size_t used;
	bool is_full; /* something did not fit */
};

/* One more; both are copied, value NULL unsets it. */
void profilers_variables_add(struct profilers_variables *variables, const char *name,
			     const char *value);

/* Takes away what a profiler was told in this process's own environment, then sets what this one needs. */
void profilers_variant_variables(const struct profilers_variant *variant,
				 const struct profilers_place *place,
				 struct profilers_variables *variables);

/* "NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR=DIR ...": for readers; "" for none. */
void profilers_variant_words(const struct profilers_variant *variant, char *words, size_t size);

#endif
