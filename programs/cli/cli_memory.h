/* Memory for commands: they end, with a line, when there is none. */
#ifndef CLI_MEMORY_H
#define CLI_MEMORY_H

#include <stddef.h>

void *cli_realloc(void *before, size_t bytes);

/* Ends the program: for what failed because there was no memory. */
void cli_no_memory(void) __attribute__((noreturn));

#endif
