/* The "key=value" lines with which a recording says who it is: region and trace file share them. */
#ifndef INFO_TEXT_H
#define INFO_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The value of the first line with this key, terminated, control bytes as '?', cut to `size`.
 * False, and value "", when there is none. The text needs no terminator and is not trusted.
 */
bool info_get(const char *text, size_t text_bytes, const char *key, char *value, size_t size);

/* The same as a whole number; `otherwise` when there is none or it is no number. */
int64_t info_get_number(const char *text, size_t text_bytes, const char *key, int64_t otherwise);

/*
 * Walk all lines: start with *at = 0, call until false. Lines without '=' and empty keys are
 * passed over. Keys and values as above. For labels look for keys that begin with "label.".
 */
bool info_next(const char *text, size_t text_bytes, size_t *at, char *key, size_t key_size,
	       char *value, size_t value_size);

#endif
