/* The command line of `ringside bench profilers`. */
#ifndef PROFILERS_OPTIONS_H
#define PROFILERS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "programs/cli/profilers_session.h"

enum { PROFILERS_FILES_MAX = 8 };

struct profilers_options {
	struct profilers_request request;
	const char *from; /* show this comparison again; NULL: make one */
	int measuring;	  /* an option that says what or how to run; 0: none was said */
	const char *files[PROFILERS_FILES_MAX]; /* to write beside standard output */
	size_t file_count;
	const char *html; /* NULL: none */
	bool is_json;	  /* standard output */
};

/* False: return *exit_code; help was shown, or an error told. */
bool profilers_options_take(struct profilers_options *options, int argc, char **argv,
			    int *exit_code);

#endif
