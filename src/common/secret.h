/*
 * Does a variable hold a secret? What is recorded is read by others, so this would rather leave out too much: by
 * what its name speaks of, and by what its value looks like. It cannot know every secret. No allocation, no file:
 * the plugin asks it, too.
 */
#ifndef SECRET_H
#define SECRET_H

#include <stdbool.h>
#include <stddef.h>

bool secret_is_name(const char *name);
bool secret_is_value(const char *value);

/* Of a line "env.NAME=VALUE", without its end; other lines are never secret. */
bool secret_is_line(const char *line, size_t length);

#endif
