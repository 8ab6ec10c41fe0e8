#include "programs/cli/cli_errors.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/text.h"

enum { CLI_LINE_BYTES = 2048, CLI_WORD_MAX = 40 };

/* Paths and names of users end up in these lines; a terminal must not be driven by them. */
static void print_line(const char *prefix, const char *format, va_list values, const char *suffix)
{
	char line[CLI_LINE_BYTES];

	vsnprintf(line, sizeof(line), format, values);
	for (char *at = line; *at != '\0'; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			*at = '?';
	fprintf(stderr, "%s: %s%s\n", prefix, line, suffix);
}

int cli_error(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	print_line("ringside", format, values, "");
	va_end(values);
	return CLI_EXIT_TROUBLE;
}

int cli_usage(const struct cli_page *page, const char *format, ...)
{
	char prefix[64], suffix[96];
	va_list values;

	text_format(prefix, sizeof(prefix), "ringside %s", page->name);
	text_format(suffix, sizeof(suffix), " (see 'ringside %s --help')", page->name);
	va_start(values, format);
	print_line(prefix, format, values, suffix);
	va_end(values);
	return CLI_EXIT_USAGE;
}

int cli_one_value(const struct cli_page *page, const char *option, const char *value)
{
	if (strchr(value, ',') == NULL && strcmp(value, "all") != 0)
		return 0;
	return cli_usage(page, "--%s '%s': one at a time here, not several", option, value);
}

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* How many letters were typed wrong, left out, added or swapped with their neighbour. */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int rows[3][CLI_WORD_MAX + 1];
	size_t a_length = strlen(a), b_length = strlen(b);
	unsigned int *before = rows[0], *above = rows[1], *row = rows[2];

	if (a_length > CLI_WORD_MAX || b_length > CLI_WORD_MAX)
		return CLI_WORD_MAX;
	for (size_t j = 0; j <= b_length; j++)
		above[j] = before[j] = (unsigned int)j;
	for (size_t i = 1; i <= a_length; i++) {
		unsigned int *spare = before;

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= b_length; j++) {
			row[j] = least(above[j], row[j - 1]) + 1;
			row[j] = least(row[j], above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], before[j - 2] + 1);
		}
		before = above;
		above = row;
		row = spare;
	}
	return above[b_length];
}

const char *cli_nearest(const char *word, const char *const *list, size_t count)
{
	size_t length = strlen(word);
	/* Of "foo" most letters are other ones than of "job": that was no typing error. */
	unsigned int nearest = length > 6 ? 3 : length > 4 ? 2 : 1;
	const char *found = NULL;

	for (size_t i = 0; i < count; i++) {
		unsigned int far = distance(word, list[i]);

		/* A beginning is as good as one wrong letter. */
		if (length >= 2 && strncmp(word, list[i], length) == 0)
			far = least(far, 1);
		if (far < nearest || (far == nearest && found == NULL)) {
			nearest = far;
			found = list[i];
		}
	}
	return found;
}

unsigned int cli_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	int64_t number;

	if (columns && text_number(columns, 1, 10000, &number) == OK)
		return (unsigned int)number;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		return size.ws_col;
	return 0;
}

int cli_finish(struct sink *sink, int exit_code)
{
	if (sink_flush(sink) != OK) {
		exit_code = CLI_EXIT_TROUBLE;
		if (sink->error != EPIPE)
			cli_error("cannot write the output: %s", strerror(sink->error));
	}
	sink_release(sink);
	return exit_code;
}
