/*
 * Where in a JSON document the measurement is: the whole of it ("ringside-bench"), or the value of its key
 * "run" ("ringside-crossover", "ringside-health"). bench_read() takes what is found.
 */
#ifndef RUN_INSIDE_H
#define RUN_INSIDE_H

#include <stddef.h>

#include "common/status.h"

/* *at and *size are a part of `text`. ERR_UNKNOWN: no document of ours; ERR_FORMAT: one that is damaged, or has no
 * measurement. */
enum status run_inside(const char *text, size_t length, const char **at, size_t *size);

#endif
