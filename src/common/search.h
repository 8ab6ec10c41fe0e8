/* Binary search in sorted lists. bsearch(3) finds any of equal elements and nothing between them. */
#ifndef SEARCH_H
#define SEARCH_H

#include <stddef.h>

/*
 * The first of the indexes 0 to `count` - 1 for which a condition on it holds; `count` if there is
 * none. `index` is the name that the condition uses. In the order of the list the condition must
 * first be false, then true:
 *
 *	size_t at = SEARCH_FIRST(i, calls->count, calls->list[i].start_ns >= ns);
 */
#define SEARCH_FIRST(index, count, condition)                                          \
	__extension__({                                                                \
		size_t index##_from = 0, index##_to = (count);                         \
                                                                                       \
		while (index##_from < index##_to) {                                    \
			size_t index = index##_from + (index##_to - index##_from) / 2; \
                                                                                       \
			if (condition)                                                 \
				index##_to = index;                                    \
			else                                                           \
				index##_from = index + 1;                              \
		}                                                                      \
		index##_from;                                                          \
	})

#endif
