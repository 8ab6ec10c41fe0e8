/*
 * Text compared with a file that was reviewed, tests/unit/ROOM/expected/NAME. After a change of output REWRITE=1
 * build/tests/unit/ROOM writes the files anew; read the difference before you commit it.
 */
#ifndef EXPECTED_FILE_H
#define EXPECTED_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The numbers that both are in the middle of: with a point, they may differ by one in the last digit, because machines
 * round differently. Moves both behind them. */
static inline bool expected_is_near(const char *begin, const char **got, const char **wanted)
{
	static const char digits[] = "0123456789.";
	size_t before = 0, length, point;
	double one, other, last = 1;

	while (*got - before > begin && strchr(digits, (*got)[-(long)before - 1]) != NULL)
		before++;
	*got -= before;
	*wanted -= before;
	length = strspn(*got, digits);
	point = strcspn(*got, ".");
	/* A difference behind a number, or behind a full stop, is none of it. */
	if (length <= before || point >= length || length != strspn(*wanted, digits) ||
	    point != strcspn(*wanted, "."))
		return false;
	for (size_t i = point + 1; i < length; i++)
		last /= 10;
	one = strtod(*got, NULL);
	other = strtod(*wanted, NULL);
	*got += length;
	*wanted += length;
	return one - other < 1.5 * last && other - one < 1.5 * last;
}

/* Where they differ; NULL if they do not. */
static inline const char *expected_difference(const char *got, const char *wanted)
{
	const char *begin = got, *at, *other;

	for (;; got++, wanted++) {
		while (*got != '\0' && *got == *wanted) {
			got++;
			wanted++;
		}
		if (*got == *wanted)
			return NULL;
		at = got;
		other = wanted;
		if (!expected_is_near(begin, &at, &other))
			return got;
		got = at - 1;
		wanted = other - 1;
	}
}

/* The line of the first difference, and the heading above it. */
static inline void expected_explain(const char *path, const char *text, const char *wanted,
				    const char *difference)
{
	const char *heading = text, *line = text;
	size_t number = 1;

	for (const char *at = text; at < difference; at++)
		if (*at == '\n') {
			line = at + 1;
			number++;
			if (strncmp(line, "=== ", 4) == 0)
				heading = line;
			wanted += strcspn(wanted, "\n");
			wanted += *wanted == '\n';
		}
	printf("# %s:%zu: %.*s\n", path, number, (int)strcspn(heading, "\n"), heading);
	printf("#   got    %.*s\n", (int)strcspn(line, "\n"), line);
	printf("#   wanted %.*s\n", (int)strcspn(wanted, "\n"), wanted);
}

/* NULL: it cannot be opened. */
static inline char *expected_read(const char *path)
{
	FILE *file = fopen(path, "re");
	size_t room = 1 << 16, length = 0, got;
	char *text = malloc(room);

	if (file == NULL) {
		free(text);
		return NULL;
	}
	while (text != NULL && (got = fread(text + length, 1, room - length - 1, file)) > 0) {
		length += got;
		if (length + 1 == room)
			text = realloc(text, room *= 2);
	}
	if (text == NULL)
		abort();
	fclose(file);
	text[length] = '\0';
	return text;
}

/* Is this the text of the file? If not, the first line that differs is printed. */
static inline bool expected_file(const char *got, const char *path)
{
	const char *rewrite = getenv("REWRITE"), *difference;
	char *wanted;
	FILE *file;

	if (rewrite != NULL && rewrite[0] == '1') {
		file = fopen(path, "we");
		if (file == NULL || fputs(got, file) == EOF || fclose(file) != 0)
			abort();
		return true;
	}
	wanted = expected_read(path);
	if (wanted == NULL) {
		printf("# %s cannot be opened\n", path);
		return false;
	}
	difference = expected_difference(got, wanted);
	if (difference != NULL)
		expected_explain(path, got, wanted, difference);
	free(wanted);
	return difference == NULL;
}

#endif
