/* What the doctor found, with every field, as text for expected_file.h. */
#ifndef EXPECTED_VERDICTS_H
#define EXPECTED_VERDICTS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/verdict.h"
#include "tests/support/expected_file.h"
#include "tests/tap.h"

struct expected_text {
	char *text;
	size_t used, room;
};

__attribute__((format(printf, 2, 3))) static inline void expected_put(struct expected_text *to,
								      const char *format, ...)
{
	va_list arguments;

	if (to->used + 4096 > to->room) {
		to->room = to->room == 0 ? 65536 : to->room * 2;
		to->text = realloc(to->text, to->room);
		if (to->text == NULL)
			abort();
	}
	va_start(arguments, format);
	to->used += (size_t)vsnprintf(to->text + to->used, 4096, format, arguments);
	va_end(arguments);
}

static inline void expected_put_lines(struct expected_text *to, const char *name,
				      const struct verdict_lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		expected_put(to, "  %s: %s\n", name, lines->list[i]);
}

/* Every field that is known, and every line. */
static inline void expected_put_verdict(struct expected_text *to, const struct verdict *verdict)
{
	const struct {
		const char *name;
		long long value, unknown;
	} numbers[] = {
		{ "rank", verdict->rank, -1 },
		{ "pid", verdict->pid, -1 },
		{ "gpu", verdict->gpu, -1 },
		{ "peer", verdict->peer, -1 },
		{ "channel", verdict->channel, -1 },
		{ "comm-hash", (long long)verdict->comm_hash, 0 },
		{ "comm-rank", verdict->comm_rank, -1 },
		{ "number", (long long)verdict->number, 0 },
		{ "allowed", verdict->is_allowed, 0 },
		{ "victims", verdict->victims, 0 },
		{ "at-most", verdict->is_cost_bound, 0 },
		{ "at-least", verdict->is_cost_least, 0 },
		{ "unjudged", verdict->is_unjudged, 0 },
	};
	const struct {
		const char *name;
		double value;
		int decimals;
	} measures[] = {
		{ "job-start", (double)verdict->job_start_wall_ns / 1e9, 6 },
		{ "since", (double)verdict->since_wall_ns / 1e9, 6 },
		{ "for", (double)verdict->for_ns / 1e9, 6 },
		{ "dead", (double)verdict->dead_wall_ns / 1e9, 6 },
		{ "gpu-hours", verdict->gpu_hours, 6 },
		{ "money", verdict->money, 6 },
		{ "percent", verdict->percent, 2 },
		{ "cost-percent", verdict->cost_percent, 2 },
		{ "cost-least-percent", verdict->cost_least_percent, 2 },
	};
	const struct {
		const char *name, *value;
	} words[] = {
		{ "rule", verdict->rule },
		{ "job", verdict->job },
		{ "label", verdict->rank_label },
		{ "host", verdict->host },
		{ "peer-label", verdict->peer_label },
		{ "peer-host", verdict->peer_host },
		{ "channels", verdict->channels },
		{ "comm", verdict->comm },
		{ "function", verdict->function },
		{ "place", verdict->place },
		{ "page", verdict->page },
	};

	expected_put(to, "%s %s %.3f: %s\n ", verdict_severity_name(verdict->severity),
		     verdict_class_name(verdict->class), verdict->confidence, verdict->title);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (words[i].value[0] != '\0')
			expected_put(to, " %s=%s", words[i].name, words[i].value);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].value != numbers[i].unknown)
			expected_put(to, " %s=%lld", numbers[i].name, numbers[i].value);
	for (size_t i = 0; i < sizeof(measures) / sizeof(measures[0]); i++)
		if (measures[i].value < 0 || measures[i].value > 0)
			expected_put(to, " %s=%.*f", measures[i].name, measures[i].decimals,
				     measures[i].value);
	expected_put(to, "\n");
	expected_put_lines(to, "evidence", &verdict->evidence);
	expected_put_lines(to, "missing", &verdict->missing);
	expected_put_lines(to, "advice", &verdict->advice);
}

/* All of a list, below a heading. */
static inline void expected_put_verdicts(struct expected_text *to, const char *heading,
					 const struct verdicts *verdicts)
{
	expected_put(to, "=== %s%s\n", heading, verdicts->count == 0 ? ": nothing" : "");
	for (size_t i = 0; i < verdicts->count; i++)
		expected_put_verdict(to, &verdicts->list[i]);
}

/* Compares what was put with the file, and releases it. */
static inline void expected_compare(struct expected_text *got, const char *path)
{
	EXPECT_THAT(path, expected_file(got->text, path));
	free(got->text);
	*got = (struct expected_text){ .text = NULL };
}

#endif
