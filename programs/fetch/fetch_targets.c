#include "programs/fetch/fetch_targets.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/text.h"
#include "programs/fetch/fetch_frames.h"

enum { INDEX_SLOTS = 2 * FETCH_TARGETS_MAX };

/* What one list is added with. */
struct adding {
	struct fetch_targets *targets;
	unsigned int port;
	char *why;
	size_t why_size;
};

void fetch_targets_init(struct fetch_targets *targets)
{
	*targets = (struct fetch_targets){ .list = NULL };
}

void fetch_targets_release(struct fetch_targets *targets)
{
	for (size_t i = 0; i < targets->count; i++) {
		free(targets->list[i].name);
		free(targets->list[i].url);
		free(targets->list[i].socket);
	}
	free(targets->list);
	free(targets->index);
	fetch_targets_init(targets);
}

static enum status refuse(const struct adding *adding, const char *word, const char *problem)
{
	text_format(adding->why, adding->why_size, "'%.80s' %s", word, problem);
	return ERR_FORMAT;
}

/* ---- one target ------------------------------------------------------------------------------ */

/* Where a name is in the index, or where it would be; the index is never more than half full. */
static uint32_t *place_of(const struct fetch_targets *targets, const char *name)
{
	size_t at = hash_bytes(name, strlen(name)) % INDEX_SLOTS;

	while (targets->index[at] != 0 &&
	       strcmp(targets->list[targets->index[at] - 1].name, name) != 0)
		at = (at + 1) % INDEX_SLOTS;
	return &targets->index[at];
}

static enum status append(const struct adding *adding, const char *name, const char *url,
			  const char *socket)
{
	struct fetch_targets *targets = adding->targets;
	struct fetch_target target, *list;
	uint32_t *place;

	if (targets->index == NULL)
		targets->index = calloc(INDEX_SLOTS, sizeof(*targets->index));
	if (targets->index == NULL)
		return ERR_NO_SPACE;
	place = place_of(targets, name);
	if (*place != 0)
		return OK;
	if (targets->count == FETCH_TARGETS_MAX) {
		text_format(adding->why, adding->why_size, "these are more than %d agents",
			    FETCH_TARGETS_MAX);
		return ERR_NO_SPACE;
	}
	/* Room in powers of two: thousands of them. */
	if ((targets->count & (targets->count - 1)) == 0) {
		size_t room = targets->count == 0 ? 1 : targets->count * 2;

		list = realloc(targets->list, room * sizeof(*list));
		if (list == NULL)
			return ERR_NO_SPACE;
		targets->list = list;
	}
	target = (struct fetch_target){ strdup(name), strdup(url), socket ? strdup(socket) : NULL };
	if (target.name == NULL || target.url == NULL || (socket && target.socket == NULL)) {
		free(target.name);
		free(target.url);
		free(target.socket);
		return ERR_NO_SPACE;
	}
	targets->list[targets->count++] = target;
	*place = (uint32_t)targets->count;
	return OK;
}

static bool is_host(const char *word, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)word[i]) && strchr("._-", word[i]) == NULL)
			return false;
	return length > 0;
}

/* "[::1]" and its like: the bytes only, the system knows the rest. 0: it is none. */
static size_t address_length(const char *word)
{
	size_t length = word[0] == '[' ? strspn(word + 1, "0123456789abcdefABCDEF:.") : 0;

	if (length == 0 || word[1 + length] != ']' || memchr(word, ':', length) == NULL)
		return 0;
	return length + 2;
}

static enum status add_url(const struct adding *adding, const char *word)
{
	char url[FETCH_TARGET_TEXT];
	size_t length = strlen(word);

	if (!fetch_url_is_good(word))
		return refuse(adding, word, "is no address (a password goes into a file: --auth)");
	while (length > 0 && word[length - 1] == '/')
		length--;
	if (strpbrk(word, "?#"))
		return refuse(adding, word, "has a '?' or '#': give the agent's address alone");
	text_format(url, sizeof(url), "%.*s", (int)length, word);
	return append(adding, url, url, NULL);
}

static enum status add_one(const struct adding *adding, const char *word)
{
	size_t length = word[0] == '[' ? address_length(word) : strcspn(word, ":");
	char name[FETCH_TARGET_TEXT], url[FETCH_TARGET_TEXT + 8];
	int64_t port = adding->port;

	if (strncmp(word, "unix:/", 6) == 0)
		return append(adding, word, "http://localhost", word + 5);
	if (strstr(word, "://"))
		return add_url(adding, word);
	if (length == 0 || (word[0] != '[' && !is_host(word, length)))
		return refuse(adding, word, "is no host, host:port or URL");
	if (word[length] != '\0' &&
	    (word[length] != ':' || text_number(word + length + 1, 1, 65535, &port) != OK))
		return refuse(adding, word, "has no port between 1 and 65535 behind its ':'");
	text_format(name, sizeof(name), "%.*s:%d", (int)length, word, (int)port);
	text_format(url, sizeof(url), "http://%s", name);
	return append(adding, name, url, NULL);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* "001-064" or "7": its ends, and how many digits each number has at least. */
static bool parse_range(const char *text, int64_t *first, int64_t *last, int *digits)
{
	char low[16], high[16];
	size_t dash = strcspn(text, "-");
	bool has_end = text[dash] == '-';

	if (dash == 0 || dash >= sizeof(low) || strlen(text) >= sizeof(low) + sizeof(high))
		return false;
	text_format(low, sizeof(low), "%.*s", (int)dash, text);
	text_copy(high, sizeof(high), has_end ? text + dash + 1 : low);
	*digits = low[0] == '0' ? (int)dash : 1;
	return strspn(low, "0123456789") == strlen(low) &&
	       strspn(high, "0123456789") == strlen(high) &&
	       text_number(low, 0, 999999999, first) == OK &&
	       text_number(high, 0, 999999999, last) == OK && *first <= *last;
}

static enum status expand(const struct adding *adding, const char *word);

static enum status expand_range(const struct adding *adding, const char *word, const char *open,
				const char *close, const char *range)
{
	char made[FETCH_TARGET_TEXT];
	enum status status = OK;
	int64_t first, last;
	int digits;

	if (!parse_range(range, &first, &last, &digits))
		return refuse(adding, word, "has no range like [001-064] in its brackets");
	for (int64_t i = first; i <= last && status == OK; i++) {
		if (!text_format(made, sizeof(made), "%.*s%0*d%s", (int)(open - word), word, digits,
				 (int)i, close + 1))
			return refuse(adding, word, "is too long");
		status = expand(adding, made);
	}
	return status;
}

/* The first brackets, and with each of their numbers the next ones. */
static enum status expand(const struct adding *adding, const char *word)
{
	/* An address of IP version 6 has brackets of its own, in a URL as well. */
	const char *slashes = strstr(word, "://");
	const char *from = slashes ? slashes + 3 : word;
	const char *open = strchr(from + address_length(from), '[');
	const char *close = open ? strchr(open, ']') : NULL;
	enum status status = OK;

	if (open == NULL)
		return add_one(adding, word);
	if (close == NULL || close == open + 1)
		return refuse(adding, word, "has a '[' without a range and ']'");
	for (const char *at = open + 1; at < close && status == OK;) {
		size_t length = strcspn(at, ",]");
		char range[32];

		if (!text_format(range, sizeof(range), "%.*s", (int)length, at))
			range[0] = '\0';
		status = expand_range(adding, word, open, close, range);
		at += length + 1;
	}
	return status;
}

/* ---- the list -------------------------------------------------------------------------------- */

static bool is_between(char byte)
{
	return byte == ',' || isspace((unsigned char)byte);
}

/* A word ends at a comma or blank that is not in brackets. */
static size_t word_length(const char *text)
{
	bool is_inside = false;
	size_t length = 0;

	while (text[length] != '\0' && text[length] != '#' && text[length] != '\n' &&
	       (is_inside || !is_between(text[length]))) {
		if (text[length] == '[')
			is_inside = true;
		else if (text[length] == ']')
			is_inside = false;
		length++;
	}
	return length;
}

enum status fetch_targets_add(struct fetch_targets *targets, const char *text, unsigned int port,
			      char *why, size_t why_size)
{
	const struct adding adding = { targets, port, why, why_size };
	enum status status = OK;

	text_copy(why, why_size, "");
	while (*text != '\0' && status == OK) {
		char word[FETCH_TARGET_TEXT];
		size_t length;

		if (*text == '#')
			text += strcspn(text, "\n");
		while (is_between(*text))
			text++;
		length = word_length(text);
		if (length == 0)
			continue;
		if (!text_format(word, sizeof(word), "%.*s", (int)length, text))
			return refuse(&adding, word, "is too long");
		status = expand(&adding, word);
		text += length;
	}
	return status;
}
