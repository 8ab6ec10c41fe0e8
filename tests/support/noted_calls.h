/* Calls that the code under test makes, one line each, in their order. */
#ifndef NOTED_CALLS_H
#define NOTED_CALLS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"

static char calls[8000];

/* Returns 0, which is success for most functions that a test replaces. */
static inline int note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline int note(const char *format, ...)
{
	char text[600];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	text_append(calls, sizeof(calls), "%s\n", text);
	return 0;
}

/* Were these calls made since the last question? */
static inline bool is_called(const char *wanted)
{
	bool is_same = strcmp(calls, wanted) == 0;

	if (!is_same)
		printf("# got:\n%s# wanted:\n%s", calls, wanted);
	calls[0] = '\0';
	return is_same;
}

#endif
