/* Bounded strings: always terminated, never past the end, and they say when something was cut. */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"

/* Copy; false when it did not fit and was cut. NULL counts as "". */
bool text_copy(char *to, size_t size, const char *from);

/* printf into a buffer; false when it did not fit and was cut. */
bool text_format(char *to, size_t size, const char *format, ...) PRINTF_LIKE(3, 4);

/* The same behind what is there; false when it did not fit and was cut. */
bool text_append(char *to, size_t size, const char *format, ...) PRINTF_LIKE(3, 4);

/* Copy what a fixed-size field holds, which may lack its terminator; control bytes become '?'. */
void text_from_field(char *to, size_t size, const char *field, size_t field_size);

/* "64MiB", "1GiB", "4096", "10kB": bytes. ERR_FORMAT when it is no size, ERR_RANGE past 64 bits. */
enum status text_size(const char *text, uint64_t *bytes);

/* A whole decimal number within [least, most]. */
enum status text_number(const char *text, int64_t least, int64_t most, int64_t *number);

/* Expand %h host, %p pid, %r rank, %j job, %% percent. ERR_FORMAT for any other letter,
 * ERR_NO_SPACE when it does not fit. A '/' inside a value becomes '_'. */
struct text_names {
	const char *host;
	const char *job;
	const char *rank;
	int64_t pid;
};
enum status text_expand(char *to, size_t size, const char *pattern, const struct text_names *names);

/* More than the ending alone: ".json" is a name that has no ending. */
bool text_ends_with(const char *text, const char *ending);

/* The words that go with a number: text_which(ranks, "rank waits", "ranks wait"). */
static inline const char *text_which(uint64_t count, const char *one, const char *many)
{
	return count == 1 ? one : many;
}

#endif
