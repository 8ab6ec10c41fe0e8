/* Reading what libringside-count.so counted in one process. */
#ifndef COUNT_READ_H
#define COUNT_READ_H

#include <stddef.h>

#include "common/status.h"
#include "programs/count/count_layout.h"

/* Checks the bytes of a .count file and copies it; texts are terminated. ERR_FORMAT: it is none, or of another
 * version; ERR_TRUNCATED: it is too short. */
enum status count_read(struct count_file *file, const void *bytes, size_t length);

/* enum op_function of an enum count_function; OP_FUNCTION_UNKNOWN for groups. */
unsigned int count_op_function(unsigned int function);

struct count_sum {
	struct count_entry entries[COUNT_FUNCTIONS];
	size_t processes;
	size_t unreadable; /* files that are none */
};

/* Adds up all .count files of a directory. ERR_SYSTEM: it cannot be listed. */
enum status count_sum_directory(struct count_sum *sum, const char *directory);

#endif
