/*
 * Names that a Perfetto trace says once and then by number. Bounded: names that find no room are
 * said in full each time.
 */
#ifndef PERFETTO_NAMES_H
#define PERFETTO_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

/* Each kind of name is numbered on its own; the values are InternedData's fields. */
enum perfetto_name_kind {
	PERFETTO_CATEGORY = 1,
	PERFETTO_EVENT_NAME = 2,
	PERFETTO_ARG_NAME = 3,
	PERFETTO_ARG_TEXT = 29,
};

enum { PERFETTO_NAMES_MAX = 32768, PERFETTO_NAME_BYTES = 256 };

struct perfetto_names {
	struct perfetto_name *slots; /* hash table; a slot without text is free */
	size_t slot_count;
	size_t count;
	enum status status;
};

void perfetto_names_init(struct perfetto_names *names);
void perfetto_names_release(struct perfetto_names *names);

/* The number of a name, from 1, 0 when it found no room (or memory: names->status). *is_new: it was
 * not known before. */
uint64_t perfetto_names_find(struct perfetto_names *names, enum perfetto_name_kind kind,
			     const char *text, bool *is_new);

#endif
