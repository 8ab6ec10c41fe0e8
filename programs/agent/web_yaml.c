#include "programs/agent/web_yaml.h"

#include <string.h>

void web_yaml_init(struct web_yaml *yaml, const char *text, size_t length)
{
	*yaml = (struct web_yaml){ .at = text, .end = text + length };
}

static bool fail(struct web_yaml *yaml, const char *problem)
{
	yaml->problem = problem;
	return false;
}

/* The rest of a line behind a value may be a comment. */
static bool is_over(const char *at, const char *end)
{
	bool has_blank = false;

	for (; at < end && *at == ' '; at++)
		has_blank = true;
	return at == end || (*at == '#' && has_blank);
}

/* A scalar in quotes: *at stands on the first of them and then behind the last. */
static bool quoted(struct web_yaml *yaml, const char **at, const char *end, char *to, size_t size)
{
	char quote = *(*at)++;
	size_t used = 0;

	for (; *at < end; ++*at) {
		char byte = **at;

		if (byte == quote && quote == '\'' && *at + 1 < end && (*at)[1] == '\'') {
			++*at;
		} else if (byte == quote) {
			++*at;
			to[used] = '\0';
			return true;
		} else if (byte == '\\' && quote == '"') {
			if (++*at == end || (**at != '"' && **at != '\\'))
				return fail(yaml, "of escapes only \\\" and \\\\ are known here");
			byte = **at;
		}
		if (used + 1 >= size)
			return fail(yaml, "a text is too long");
		to[used++] = byte;
	}
	return fail(yaml, "a quote is not closed on its line");
}

/* Until `stop` at its end or before a blank, or a comment, or the end of the line. */
static bool plain(struct web_yaml *yaml, const char **at, const char *end, char stop, char *to,
		  size_t size)
{
	size_t used = 0;

	if (*at < end && strchr("&*!|>%@`[]{},?-", **at) && !(stop == '\0' && **at == '-'))
		return fail(yaml, "lists, anchors, tags and texts over several lines are not "
				  "taken here; quote a text that begins so");
	for (; *at < end; ++*at) {
		bool is_last = *at + 1 == end || (*at)[1] == ' ';

		if (**at == stop && is_last)
			break;
		if (stop == '\0' && **at == ':' && is_last)
			return fail(yaml, "a text with ': ' in it must be quoted");
		if (**at == '#' && used > 0 && (*at)[-1] == ' ')
			break;
		if (used + 1 >= size)
			return fail(yaml, "a text is too long");
		to[used++] = **at;
	}
	while (used > 0 && to[used - 1] == ' ')
		used--;
	to[used] = '\0';
	return true;
}

static bool take_key(struct web_yaml *yaml, const char **at, const char *end)
{
	bool is_good = **at == '"' || **at == '\''
			       ? quoted(yaml, at, end, yaml->key, sizeof(yaml->key))
			       : plain(yaml, at, end, ':', yaml->key, sizeof(yaml->key));

	if (!is_good)
		return false;
	if (*at == end || **at != ':' || (*at + 1 < end && (*at)[1] != ' '))
		return fail(yaml, "here should stand 'key: value'");
	if (yaml->key[0] == '\0')
		return fail(yaml, "a key is empty");
	++*at;
	return true;
}

static bool take_value(struct web_yaml *yaml, const char *at, const char *end)
{
	yaml->value[0] = '\0';
	yaml->has_value = false;
	yaml->may_nest = false;
	if (is_over(at, end)) {
		yaml->may_nest = true;
		return true;
	}
	while (*at == ' ')
		at++;
	if (end - at >= 2 && memcmp(at, "{}", 2) == 0 && is_over(at + 2, end))
		return true;
	yaml->has_value = true;
	if (*at == '"' || *at == '\'') {
		if (!quoted(yaml, &at, end, yaml->value, sizeof(yaml->value)))
			return false;
		return is_over(at, end) || fail(yaml, "something follows a closed quote");
	}
	return plain(yaml, &at, end, '\0', yaml->value, sizeof(yaml->value));
}

/* Which map a pair with so many blanks before it belongs to. */
static bool take_indent(struct web_yaml *yaml, unsigned int indent)
{
	if (!yaml->has_begun) {
		yaml->has_begun = true;
		yaml->indents[0] = indent;
		return indent == 0 || fail(yaml, "the first key should begin its line");
	}
	if (indent > yaml->indents[yaml->depth]) {
		if (!yaml->may_nest)
			return fail(yaml, "the line is further in than its neighbours");
		if (yaml->depth + 1 == WEB_YAML_DEPTH)
			return fail(yaml, "maps are nested too deeply");
		yaml->indents[++yaml->depth] = indent;
		return true;
	}
	while (yaml->depth > 0 && indent < yaml->indents[yaml->depth])
		yaml->depth--;
	return indent == yaml->indents[yaml->depth] ||
	       fail(yaml, "the line stands as far in as no line above it");
}

/* Printable, or a byte of UTF-8. */
static bool is_text(struct web_yaml *yaml, const char *at, const char *end)
{
	for (; at < end; at++) {
		if (*at == '\t')
			return fail(yaml, "a tab; use blanks");
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			return fail(yaml, "a control character");
	}
	return true;
}

bool web_yaml_next(struct web_yaml *yaml)
{
	while (yaml->problem == NULL && yaml->at < yaml->end) {
		const char *start = yaml->at, *at;
		const char *end = memchr(start, '\n', (size_t)(yaml->end - start));

		yaml->line++;
		yaml->at = end ? end + 1 : yaml->end;
		if (end == NULL)
			end = yaml->end;
		if (end > start && end[-1] == '\r')
			end--;
		if (!is_text(yaml, start, end))
			return false;
		for (at = start; at < end && *at == ' ';)
			at++;
		if (at == end || *at == '#')
			continue;
		if (!yaml->has_begun && end - start >= 3 && memcmp(start, "---", 3) == 0 &&
		    is_over(start + 3, end))
			continue;
		return take_indent(yaml, (unsigned int)(at - start)) && take_key(yaml, &at, end) &&
		       take_value(yaml, at, end);
	}
	return false;
}
