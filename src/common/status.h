/* How functions report failure (they print nothing; commands do), and growing lists. */
#ifndef STATUS_H
#define STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum status {
	OK = 0,
	ERR_SYSTEM = -1,    /* a system call failed; errno says why */
	ERR_FORMAT = -2,    /* bytes that are not in the expected format */
	ERR_VERSION = -3,   /* written by a newer major version */
	ERR_TRUNCATED = -4, /* ends too early; what came before is valid */
	ERR_NO_SPACE = -5,  /* no room: memory, disk or table */
	ERR_RANGE = -6,	    /* a number out of range */
	ERR_UNKNOWN = -7,   /* unknown name */
	ERR_GONE = -8,	    /* no longer exists */
};

const char *status_text(enum status status);
/* The same; for ERR_SYSTEM what errno says. */
const char *status_reason(enum status status);

/* Why a file of ours was rejected, for the one line that the user sees. */
struct status_problem {
	const char *what;     /* a few words, static */
	uint16_t found_major; /* with ERR_VERSION */
	uint16_t found_minor;
};

static inline enum status status_refuse(struct status_problem *problem, enum status status,
					const char *what)
{
	problem->what = what;
	return status;
}

/*
 * Make room for one more element after `count` in a list that stores no capacity. `list` is the
 * address of the pointer to the elements. False: out of memory, and the list is unchanged.
 */
bool list_grow(void *list, size_t count, size_t element_bytes);

#endif
