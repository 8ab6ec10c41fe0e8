/* Where is the plugin? */
#ifndef CLI_PLUGIN_H
#define CLI_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>

#define CLI_PLUGIN_FILE "libnccl-profiler-ringside.so"

/* Beside this program, or where `make install` and packages put it relative to it. False when it
 * is in none of these; `looked` then lists them. Both are absolute paths. */
bool cli_plugin_find(char *path, size_t size, char *looked, size_t looked_size);

/* Would the loader find this very file by its name alone, without any help? */
bool cli_plugin_is_on_path(const char *path);

/* Is there another file of that name in LD_LIBRARY_PATH, which the loader would take instead? */
bool cli_plugin_is_hidden(const char *path);

#endif
