/* Texts for status values, and growing a list. */
#include "common/status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *status_text(enum status status)
{
	static const char *const texts[] = {
		[-OK] = "ok",
		[-ERR_SYSTEM] = "system call failed",
		[-ERR_FORMAT] = "not in the expected format",
		[-ERR_VERSION] = "written by a newer version of Ringside",
		[-ERR_TRUNCATED] = "ends too early",
		[-ERR_NO_SPACE] = "no room",
		[-ERR_RANGE] = "number out of range",
		[-ERR_UNKNOWN] = "unknown name",
		[-ERR_GONE] = "no longer there",
	};

	if (status <= OK && status >= ERR_GONE)
		return texts[-status];
	return "unknown status";
}

const char *status_reason(enum status status)
{
	return status == ERR_SYSTEM ? strerror(errno) : status_text(status);
}

/* Capacity is always a power of two, so the count alone shows when to grow. */
bool list_grow(void *list, size_t count, size_t element_bytes)
{
	void **at = list;
	void *more;

	if (count != 0 && (count & (count - 1)) != 0)
		return true;
	more = reallocarray(*at, count == 0 ? 1 : count * 2, element_bytes);
	if (more == NULL)
		return false;
	*at = more;
	return true;
}
