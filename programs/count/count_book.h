/*
 * The account of one process: calls of NCCL by function, in a mapped file. Inside somebody's program:
 * allocates nothing, keeps errno, prints one line when the file cannot be made, and lets every call
 * through whatever happens.
 */
#ifndef COUNT_BOOK_H
#define COUNT_BOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "programs/count/count_layout.h"

/* One call that is under way. */
struct count_call {
	struct count_entry *entry; /* NULL: not counted, NCCL itself calls or nobody asked */
	uint64_t began_ns;
};

/* The real function of this name: the next library's, that of the NCCL that is loaded, or that of the
 * caller's own libraries. NULL: there is none. Kept in *kept. */
void *count_next(void **kept, const char *name, const void *caller);

void count_begin(struct count_call *call, enum count_function function, bool is_known);
void count_end(struct count_call *call, size_t elements, int type, int result);

#endif
