/* The transfers, by libcurl. */
#ifndef FETCH_LOOP_H
#define FETCH_LOOP_H

#include <stddef.h>

#include "programs/fetch/fetch_frames.h"
#include "programs/fetch/fetch_options.h"

/* Every request gets its frame on `fd`. Gives back the exit code, after an error was told. */
int fetch_loop(const struct fetch_options *options, const struct fetch_request *requests,
	       size_t count, int fd);

#endif
