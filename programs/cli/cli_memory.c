#include "programs/cli/cli_memory.h"

#include <stdlib.h>

#include "programs/cli/cli_errors.h"

void cli_no_memory(void)
{
	cli_error("out of memory");
	exit(CLI_EXIT_TROUBLE);
}

void *cli_realloc(void *before, size_t bytes)
{
	void *memory = realloc(before, bytes);

	if (memory == NULL)
		cli_no_memory();
	return memory;
}
