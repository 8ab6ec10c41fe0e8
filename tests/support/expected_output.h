/*
 * Whole output for expected_file.h. The version of Ringside is written as VERSION. JSON is split into lines. Its
 * fractions and those of CSV are rounded to ten digits, because the last ones depend on the machine.
 */
#ifndef EXPECTED_OUTPUT_H
#define EXPECTED_OUTPUT_H

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/sink.h"
#include "tests/support/expected_file.h"

/* A number of JSON: "0.30000000000000004" becomes "0.3". Returns what follows it. */
static inline const char *expected_number(struct sink *to, const char *from)
{
	size_t length = strspn(from, "+-.0123456789eE");

	if (strcspn(from, ".eE") < length)
		sink_format(to, "%.10g", strtod(from, NULL));
	else
		sink_write(to, from, length);
	return from + length;
}

/* A line per key and per object, if it is JSON. Numbers of an array stay together. */
static inline void expected_split(struct sink *to, const char *from, bool is_json)
{
	bool is_string = false;

	while (*from != '\0') {
		if (!is_string && (isdigit((unsigned char)*from) || *from == '-')) {
			from = expected_number(to, from);
			continue;
		}
		sink_byte(to, *from);
		if (is_string && *from == '\\')
			sink_byte(to, *++from);
		else if (*from == '"')
			is_string = !is_string;
		else if (is_json && !is_string && strchr(",[{", *from) &&
			 (from[1] == '"' || from[1] == '{' || from[1] == '['))
			sink_byte(to, '\n');
		from++;
	}
}

static inline bool expected_is(struct sink *sink, const char *path, const char *own_version)
{
	const char *from = sink_string(sink), *version;
	struct sink text;
	bool is_same;

	sink_init_memory(&text);
	for (; (version = strstr(from, own_version)) != NULL;
	     from = version + strlen(own_version)) {
		sink_write(&text, from, (size_t)(version - from));
		sink_text(&text, "VERSION");
	}
	sink_text(&text, from);
	is_same = sink->status == OK && expected_file(sink_string(&text), path);
	sink_release(&text);
	sink_release(sink);
	return is_same;
}

static inline bool expected_is_rounded(struct sink *sink, const char *path, const char *own_version,
				       bool is_json)
{
	struct sink split;

	sink_init_memory(&split);
	expected_split(&split, sink_string(sink), is_json);
	split.status = sink->status;
	sink_release(sink);
	return expected_is(&split, path, own_version);
}

/* Is the content of the memory sink that of the file? The sink is released. */
#define expected_text(sink, path) expected_is(sink, path, RINGSIDE_VERSION)
#define expected_json(sink, path) expected_is_rounded(sink, path, RINGSIDE_VERSION, true)
#define expected_csv(sink, path) expected_is_rounded(sink, path, RINGSIDE_VERSION, false)

#endif
