/*
 * Writes sample recordings for the tests of commands.
 *
 *	samples KIND DIRECTORY
 */
#include <stdio.h>

#include "tests/support/command_samples.h"

int main(int argc, char **argv)
{
	if (argc == 3 && command_samples(argv[1], argv[2]))
		return 0;
	fprintf(stderr, "usage: samples " COMMAND_SAMPLES " DIRECTORY\n");
	return 2;
}
