/*
 * Does a variable hold a secret? Recordings are passed on, so this errs on the side of leaving out
 * too much, judging by what the name suggests and what the value looks like. It cannot recognize
 * every secret. No allocation and no file access, because the plugin uses it, too.
 */
#ifndef SECRET_H
#define SECRET_H

#include <stdbool.h>
#include <stddef.h>

bool secret_is_name(const char *name);
bool secret_is_value(const char *value);

/* For a line "env.NAME=VALUE" without its line end; other lines are never secret. */
bool secret_is_line(const char *line, size_t length);

#endif
