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

/* Both; a name such as GIT_COMMIT says that a long hexadecimal number is a hash. */
bool secret_is_pair(const char *name, const char *value);

/*
 * For a line "KEY=VALUE" of an info text, without its line end: variables (env.NAME), labels (label.NAME),
 * paths and messages. Other lines are never secret.
 */
bool secret_is_line(const char *line, size_t length);

#endif
