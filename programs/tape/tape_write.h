/*
 * The tape recorder's file. Lines are written one by one, under one lock, in the order in which they
 * were numbered; docs/TAPES.md is their format. A diagnostic tool: it may wait, and it writes to the
 * disk from within NCCL's threads. Never part of the plugin that runs always.
 */
#ifndef TAPE_WRITE_H
#define TAPE_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/attributes.h"
#include "plugin/abi_common.h"

/* A line that is being put together. */
struct tape_text {
	char bytes[1024];
	size_t length;
};

void tape_text_put(struct tape_text *text, const char *format, ...) PRINTF_LIKE(2, 3);
/* A word: what would break a line or a word becomes %XX; NULL is (null), the empty one a dash. */
void tape_text_word(struct tape_text *text, const char *before, const char *word);
/* A pointer as printf writes it: (nil), or 0x... */
void tape_text_id(struct tape_text *text, const char *before, const void *id);

/* When the call came; taken first thing. */
uint64_t tape_time(void);

/* INIT: opens the file if need be, gives the context an id. False: nothing is recorded. */
bool tape_write_init(uint64_t time_ns, int version, const struct tape_text *fields, void **context,
		     abi_log_fn log);
/* START: gives the event an id. */
void tape_write_start(uint64_t time_ns, const struct tape_text *fields, void **handle);
/* Any other line, as it is. */
void tape_write_line(uint64_t time_ns, const struct tape_text *line);

/* Which events to ask for: RINGSIDE_TAPE_EVENTS, or all that are harmless in that version. */
int tape_events(int version);

#endif
