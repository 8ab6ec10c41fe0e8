/* Running a program and keeping what it says, for a limited time and up to a limited size. */
#ifndef CLI_CAPTURE_H
#define CLI_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

struct cli_capture {
	char *bytes; /* standard output, terminated; the caller's to free(). NULL: it did not run */
	size_t length;
	bool is_cut;   /* there was more */
	int exit_code; /* -1: it was ended by a signal, or by us */
	char why[300]; /* when it did not run or did not end well: in words */
};

/*
 * words[0] is looked up in PATH. It reads nothing (/dev/null); `fd` is its descriptor 3 when that is not -1, and it
 * has no other. The first line on standard error goes to why. OK: it ran and ended by itself, whatever its code.
 * ERR_SYSTEM: it could not be started, or took longer and was killed; one that cannot be is left behind after a
 * second. Prints nothing.
 */
enum status cli_capture(struct cli_capture *capture, const char *const *words, int fd,
			unsigned int timeout_s, size_t most_bytes);

#endif
