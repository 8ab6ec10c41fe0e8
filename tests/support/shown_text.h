/* What a test has read, as text, to be compared with an expected file: cases one after the other, each under a heading. */
#ifndef SHOWN_TEXT_H
#define SHOWN_TEXT_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/expected_file.h"

static char shown[1 << 19];
static size_t shown_used;

static inline void show(const char *format, ...) __attribute__((format(printf, 1, 2)));

static inline void show(const char *format, ...)
{
	va_list list;
	int length;

	va_start(list, format);
	length = vsnprintf(shown + shown_used, sizeof(shown) - shown_used, format, list);
	va_end(list);
	if (length < 0 || (size_t)length >= sizeof(shown) - shown_used)
		abort();
	shown_used += (size_t)length;
}

/* " name=3": left out where nothing is known, so that the rest can be read. */
static inline void show_known(const char *name, int64_t number, int64_t unknown)
{
	if (number != unknown)
		show(" %s=%" PRId64, name, number);
}

static inline void show_text(const char *name, const char *text)
{
	if (text[0] != '\0')
		show(" %s='%s'", name, text);
}

/* The file has these cases; the next ones are shown from the start. */
static inline bool shown_is_expected(const char *path)
{
	bool is_expected = expected_file(shown, path);

	shown_used = 0;
	shown[0] = '\0';
	return is_expected;
}

/* A whole file as text; the caller frees it. */
static inline char *shown_file(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = calloc(1, 1 << 18);

	if (file == NULL || text == NULL || fread(text, 1, (1 << 18) - 1, file) == 0) {
		printf("Bail out! %s\n", path);
		exit(1);
	}
	fclose(file);
	return text;
}

/* Calls for each "=== heading" of the text with what follows it. */
static inline void shown_cases(const char *text, void (*take)(const char *lines, size_t length))
{
	while (text != NULL && *text != '\0') {
		const char *lines = strchr(text, '\n') + 1, *next = strstr(lines, "\n=== ");

		show("%.*s", (int)(lines - text), text);
		text = next != NULL ? next + 1 : NULL;
		take(lines, text != NULL ? (size_t)(text - lines) : strlen(lines));
	}
}

#endif
