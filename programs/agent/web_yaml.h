/*
 * The part of YAML that a web configuration needs: lines of "key: value" in nested maps. Line by line, from
 * (pointer, length), whatever the bytes are.
 */
#ifndef WEB_YAML_H
#define WEB_YAML_H

#include <stdbool.h>
#include <stddef.h>

enum { WEB_YAML_KEY = 128, WEB_YAML_VALUE = 1024, WEB_YAML_DEPTH = 4 };

struct web_yaml {
	const char *at;
	const char *end;
	unsigned int line;		      /* of the pair, from 1 */
	const char *problem;		      /* static; NULL: none */
	unsigned int indents[WEB_YAML_DEPTH]; /* of the maps that are open */
	unsigned int depth;		      /* of the pair: 0 for the outermost map */
	bool may_nest;			      /* the last pair had no value */
	bool has_begun;
	char key[WEB_YAML_KEY];
	char value[WEB_YAML_VALUE];
	bool has_value; /* false: a map may follow, or nothing does; "{}" is the same */
};

void web_yaml_init(struct web_yaml *yaml, const char *text, size_t length);

/* The next pair; false at the end and when problem says what is wrong at line. */
bool web_yaml_next(struct web_yaml *yaml);

#endif
