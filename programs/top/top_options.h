/* The command line. */
#ifndef TOP_OPTIONS_H
#define TOP_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct top_options {
	uint64_t interval_ns;
	const char *directory; /* NULL: where regions are by default */
	bool is_once;
};

/* Gives back -1 to go on, else the exit code: help was shown, or a line was said. */
int top_options_parse(struct top_options *options, int argc, char **argv);

#endif
