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
	if (point >= length || length != strspn(*wanted, digits) || point != strcspn(*wanted, "."))
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

/* Is this the text of the file? If not, the first line that differs is printed. */
static inline bool expected_file(const char *got, const char *path)
{
	static char wanted[1 << 20];
	const char *rewrite = getenv("REWRITE"), *difference;
	bool is_rewrite = rewrite != NULL && rewrite[0] == '1';
	FILE *file = fopen(path, is_rewrite ? "we" : "re");
	size_t length = 0;

	if (file != NULL && is_rewrite && fputs(got, file) == EOF)
		abort();
	if (file != NULL && !is_rewrite)
		length = fread(wanted, 1, sizeof(wanted) - 1, file);
	if (file != NULL)
		fclose(file);
	wanted[length] = '\0';
	difference = is_rewrite ? NULL : expected_difference(got, wanted);
	if (file != NULL && difference == NULL)
		return true;
	expected_explain(path, got, wanted, difference != NULL ? difference : got);
	return false;
}

#endif
