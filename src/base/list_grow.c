#include "base/list_grow.h"

#include <stdlib.h>

/* Room grows at powers of two, so the count alone says when. */
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
