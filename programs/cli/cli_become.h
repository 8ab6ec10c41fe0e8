/* Commands that are programs of their own: they need libraries that the tool does without. */
#ifndef CLI_BECOME_H
#define CLI_BECOME_H

#include <stdbool.h>
#include <stddef.h>

/* The program of this name that lies beside this one, or where packages put such. False: there is none, and
 * *path is the directory of this one. */
bool cli_become_find(const char *program, char *path, size_t size);

/* Becomes the program of this name that lies beside this one, or where packages put such; argv[0]
 * is replaced. Comes back only when that fails, after one line, with the exit code; `lacks` is why
 * it may not be there. */
int cli_become(const char *program, const char *lacks, char **argv);

#endif
