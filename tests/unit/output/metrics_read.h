/* Writes metrics of looks made by hand as text, and reads values back. */
#ifndef METRICS_READ_H
#define METRICS_READ_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/metrics_play.h"
#include "tests/tap.h"

/* The member that most tests have. */
#define DP "nccl_job=\"j\",comm=\"00000000000000ab\",rank=\"3\""

#define LIST(...)                 \
	(const char *[])          \
	{                         \
		__VA_ARGS__, NULL \
	}

static inline char *written(const struct live *live, const struct metrics_agent *agent, long only)
{
	struct sink sink;
	char *text;

	sink_init_memory(&sink);
	metrics_write(&sink, METRICS_TEXT, live, agent, only);
	if (sink.status != OK)
		abort();
	text = strdup(sink_string(&sink));
	sink_release(&sink);
	return text;
}

static inline char *metrics_of(struct play *play)
{
	struct metrics_agent agent = play_agent();

	return written(play_look(play), &agent, -1);
}

/* The line of a series; NULL when it is not there. `text` begins with a line. */
static inline const char *line_of(const char *text, const char *series)
{
	size_t length = strlen(series);

	for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1)
		if (strncmp(line, series, length) == 0 && line[length] == ' ')
			return line;
	return NULL;
}

/* The value of a series, as text; NULL when it is not there. */
static inline const char *value_of(const char *text, const char *series)
{
	static char value[64];
	const char *line = line_of(text, series);

	if (line == NULL)
		return NULL;
	line += strlen(series) + 1;
	snprintf(value, sizeof(value), "%.*s", (int)strcspn(line, "\n"), line);
	return value;
}

static inline void says(const char *sentence, const char *text, const char *series,
			const char *wanted)
{
	const char *value = value_of(text, series);

	if (!EXPECT_THAT(sentence, value ? wanted && strcmp(value, wanted) == 0 : !wanted))
		printf("#   %s is %s, wanted %s\n", series, value ? value : "not there",
		       wanted ? wanted : "nothing");
}

/* Whether a line of a family has all these texts in it. */
static inline bool is_line_of(const char *line, size_t length, const char *family,
			      const char *const *texts)
{
	size_t name = strlen(family);

	if (strncmp(line, family, name) != 0 || (line[name] != '{' && line[name] != ' '))
		return false;
	for (; *texts != NULL; texts++)
		if (memmem(line, length, *texts, strlen(*texts)) == NULL)
			return false;
	return true;
}

/* Series of a family ("" for all) with these texts in them; their sum, too. */
static inline size_t count_series(const char *text, const char *family, const char *const *texts,
				  double *sum)
{
	size_t count = 0, length;

	*sum = 0;
	for (const char *line = text; *line != '\0'; line += length + 1) {
		length = strcspn(line, "\n");
		if (*line == '#' || (family[0] != '\0' && !is_line_of(line, length, family, texts)))
			continue;
		count++;
		while (line[length] != ' ')
			length--;
		*sum += strtod(line + length, NULL);
		length += strcspn(line + length, "\n");
	}
	return count;
}

static inline double sum_of(const char *text, const char *family, const char *const *texts)
{
	double sum;

	count_series(text, family, texts, &sum);
	return sum;
}

static inline size_t series_of(const char *text, const char *family, const char *const *texts)
{
	double sum;

	return count_series(text, family, texts, &sum);
}

#endif
