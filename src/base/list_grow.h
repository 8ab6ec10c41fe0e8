/* Lists that grow one by one, and keep no room but what their count says. */
#ifndef LIST_GROW_H
#define LIST_GROW_H

#include <stdbool.h>
#include <stddef.h>

/* Room for one more behind `count` elements; `list` is the address of the pointer to them. False: no memory, and the
 * list is as before. */
bool list_grow(void *list, size_t count, size_t element_bytes);

#endif
