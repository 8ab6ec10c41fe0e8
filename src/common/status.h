/* How functions say that they failed (they print nothing; commands do) and why; lists that grow. */
#ifndef STATUS_H
#define STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum status {
	OK = 0,
	ERR_SYSTEM = -1,    /* a system call failed; errno says why */
	ERR_FORMAT = -2,    /* bytes that are not what they claim to be */
	ERR_VERSION = -3,   /* written by a newer major version */
	ERR_TRUNCATED = -4, /* ends too early; what came before is good */
	ERR_NO_SPACE = -5,  /* no room: memory, disk or table */
	ERR_RANGE = -6,	    /* a number outside what is allowed */
	ERR_UNKNOWN = -7,   /* a name nobody knows */
	ERR_GONE = -8,	    /* was there and no longer is */
};

const char *status_text(enum status status);

/* Why a file of ours was refused, for the one line that the user sees. */
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

/* Room for one more behind `count` elements of a list that keeps no room but what its count says; `list` is the
 * address of the pointer to them. False: no memory, and the list is as before. */
bool list_grow(void *list, size_t count, size_t element_bytes);

#endif
