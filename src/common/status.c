/* Texts for status values, and growing a list. */
#include "common/status.h"

#include <stdlib.h>

const char *status_text(enum status status)
{
	switch (status) {
	case OK:
		return "ok";
	case ERR_SYSTEM:
		return "system call failed";
	case ERR_FORMAT:
		return "not in the expected format";
	case ERR_VERSION:
		return "written by a newer version of Ringside";
	case ERR_TRUNCATED:
		return "ends too early";
	case ERR_NO_SPACE:
		return "no room";
	case ERR_RANGE:
		return "number out of range";
	case ERR_UNKNOWN:
		return "unknown name";
	case ERR_GONE:
		return "no longer there";
	}
	return "unknown status";
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
