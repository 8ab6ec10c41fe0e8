/*
 * Reading a tape. A line is "time thread WHAT ..." and then words: key=value in any order, and words
 * without '=' whose meaning is their place (function, algorithm, protocol; the step's number).
 * Unknown keys are skipped, so that older readers take newer tapes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/text.h"
#include "programs/sim/tape.h"

struct parse {
	struct tape *tape;
	struct tape_error *error;
	size_t line; /* being read, from 1 */
	size_t room; /* for lines */
	int version;
	uint64_t *threads; /* recorded ids, by number */
	size_t thread_room;
};

static enum status fail(struct parse *parse, const char *what, const char *word)
{
	parse->error->line = parse->line;
	text_format(parse->error->text, sizeof(parse->error->text), "%s%s%.60s%s", what,
		    word ? " \"" : "", word ? word : "", word ? "\"" : "");
	return ERR_FORMAT;
}

/* ---- words ----------------------------------------------------------------------------------- */

/* The next word, ended in place; NULL at the end of the line. */
static char *word_next(char **rest)
{
	char *word = *rest + strspn(*rest, " \t\r");

	if (*word == '\0')
		return NULL;
	*rest = word + strcspn(word, " \t\r");
	if (**rest != '\0')
		*(*rest)++ = '\0';
	return word;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Undo %XX in place; "(null)" is no word, "-" an empty one. */
static const char *word_decode(char *word)
{
	char *to = word;

	if (strcmp(word, "(null)") == 0)
		return NULL;
	if (strcmp(word, "-") == 0)
		return "";
	for (const char *from = word; *from; from++, to++) {
		int high = from[0] == '%' ? hex_digit(from[1]) : -1;
		int low = high >= 0 ? hex_digit(from[2]) : -1;

		*to = *from;
		if (low >= 0) {
			*to = (char)(high << 4 | low);
			from += 2;
		}
	}
	*to = '\0';
	return word;
}

/* Decimal with sign, 0x..., or (nil); base 0: as it is written. */
static bool number_read(const char *word, int base, uint64_t *number)
{
	char *end = NULL;

	if (base == 0)
		base = strncmp(word, "0x", 2) == 0 ? 16 : 10;
	if (strcmp(word, "(nil)") == 0) {
		*number = 0;
		return true;
	}
	errno = 0;
	if (word[0] == '-')
		*number = (uint64_t)strtoll(word, &end, base);
	else
		*number = strtoull(word, &end, base);
	return end != word && *end == '\0' && errno == 0;
}

/* ---- keys ------------------------------------------------------------------------------------ */

enum key_kind { KEY_NUMBER, KEY_HEX, KEY_WORD };

#define KEY(text, kind, field)                                \
	{                                                     \
		text, kind, offsetof(struct tape_line, field) \
	}
static const struct {
	const char *key;
	enum key_kind kind;
	size_t offset;
} keys[] = {
	KEY("ctx", KEY_NUMBER, context),
	KEY("id", KEY_HEX, hash), /* INIT; NetPlugin has its own */
	KEY("name", KEY_WORD, name),
	KEY("nnodes", KEY_NUMBER, nnodes),
	KEY("nranks", KEY_NUMBER, nranks),
	KEY("rank", KEY_NUMBER, rank),
	KEY("type", KEY_NUMBER, type),
	KEY("parent", KEY_NUMBER, parent),
	KEY("arg", KEY_NUMBER, arg),
	KEY("steps", KEY_NUMBER, steps),
	KEY("captured", KEY_NUMBER, is_captured),
	KEY("depth", KEY_NUMBER, depth),
	KEY("seq", KEY_NUMBER, sequence),
	KEY("count", KEY_NUMBER, count),
	KEY("dt", KEY_WORD, datatype),
	KEY("root", KEY_NUMBER, root),
	KEY("nch", KEY_NUMBER, channels),
	KEY("nw", KEY_NUMBER, warps),
	KEY("pg", KEY_NUMBER, group),
	KEY("sb", KEY_NUMBER, send_buffer),
	KEY("rb", KEY_NUMBER, recv_buffer),
	KEY("stream", KEY_NUMBER, stream),
	KEY("tag", KEY_NUMBER, tag),
	KEY("traffic", KEY_NUMBER, traffic),
	KEY("hash", KEY_HEX, hash),
	KEY("peer", KEY_NUMBER, peer),
	KEY("ch", KEY_NUMBER, channel),
	KEY("pid", KEY_NUMBER, pid),
	KEY("nsteps", KEY_NUMBER, steps),
	KEY("chunk", KEY_NUMBER, chunk),
	KEY("send", KEY_NUMBER, is_send),
	KEY("pt", KEY_NUMBER, gpu_ns),
	KEY("sym", KEY_NUMBER, is_symmetric),
	KEY("variant", KEY_WORD, variant),
	KEY("collnet", KEY_NUMBER, is_collnet),
	KEY("nvls", KEY_NUMBER, is_nvls),
	KEY("redop", KEY_NUMBER, redop),
	KEY("complete", KEY_NUMBER, is_complete),
	KEY("ops", KEY_NUMBER, ops),
	KEY("bytes", KEY_NUMBER, bytes),
	KEY("intra", KEY_NUMBER, intra),
	KEY("batch", KEY_NUMBER, batch),
	KEY("batches", KEY_NUMBER, batches),
	KEY("ceseq", KEY_NUMBER, ce_sequence),
	KEY("sync", KEY_WORD, sync),
	KEY("phase", KEY_NUMBER, phase),
};

static enum status key_read(struct parse *parse, struct tape_line *line, const char *key,
			    char *value)
{
	uint64_t number;

	if (strcmp(key, "null") == 0) {
		line->has_args = false;
		return OK;
	}
	if (line->type == ABI_NET_PLUGIN && strcmp(key, "id") == 0)
		return number_read(value, 10, &line->net_id) ? OK
							     : fail(parse, "no number:", value);
	for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
		void *field = (char *)line + keys[i].offset;

		if (strcmp(keys[i].key, key) != 0)
			continue;
		if (keys[i].kind == KEY_WORD) {
			*(const char **)field = word_decode(value);
			return OK;
		}
		if (!number_read(value, keys[i].kind == KEY_HEX ? 16 : 0, &number))
			return fail(parse, "no number:", value);
		*(uint64_t *)field = number;
		return OK;
	}
	return OK;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static const char *const event_names[HOST_EVENTS] = {
	"Group",    "Coll",	 "P2p",	     "ProxyOp",	    "ProxyStep", "ProxyCtrl",
	"KernelCh", "NetPlugin", "GroupApi", "CollApi",	    "P2pApi",	 "KernelLaunch",
	"CeColl",   "CeSync",	 "CeBatch",  "KernelPhase",
};

/* A word without '=': the event's name, which only repeats the type, then words by their place. */
static enum status place_read(struct parse *parse, struct tape_line *line, char *word,
			      unsigned int place)
{
	const char **const places[] = { &line->function, &line->algorithm, &line->protocol };
	uint64_t number;

	if (place == 0) {
		for (unsigned int bit = 0; bit < HOST_EVENTS; bit++)
			if (line->type == 1u << bit && strcmp(word, event_names[bit]) == 0)
				return OK;
		return strcmp(word, "Unknown") == 0
			       ? OK
			       : fail(parse, "the type and the event's name disagree:", word);
	}
	if (line->type == ABI_PROXY_STEP && place == 1) {
		if (!number_read(word, 10, &number))
			return fail(parse, "no number of a step:", word);
		line->step = (int64_t)number;
		return OK;
	}
	if (place > ARRAY_LENGTH(places))
		return fail(parse, "a word too many:", word);
	*places[place - 1] = word_decode(word);
	return OK;
}

static enum status words_read(struct parse *parse, struct tape_line *line, char *rest)
{
	unsigned int place = 0;
	enum status status = OK;
	char *word, *value;

	while (status == OK && (word = word_next(&rest)) != NULL) {
		value = strchr(word, '=');
		if (value) {
			*value = '\0';
			status = key_read(parse, line, word, value + 1);
		} else {
			status = place_read(parse, line, word, place++);
		}
	}
	return status;
}

/* Recorded thread ids become numbers from 0. */
static enum status thread_find(struct parse *parse, uint64_t id, uint32_t *number)
{
	struct tape *tape = parse->tape;
	uint64_t *grown;

	for (*number = 0; *number < tape->threads; ++*number)
		if (parse->threads[*number] == id)
			return OK;
	if (tape->threads == parse->thread_room) {
		parse->thread_room = parse->thread_room ? 2 * parse->thread_room : 16;
		grown = realloc(parse->threads, parse->thread_room * sizeof(*grown));
		if (grown == NULL)
			return ERR_NO_SPACE;
		parse->threads = grown;
	}
	parse->threads[tape->threads++] = id;
	return OK;
}

static enum status head_read(struct parse *parse, struct tape_line *line, char **rest)
{
	static const char *const whats[] = { "INIT", "START", "STATE", "STOP", "FINI" };
	char *time = word_next(rest), *thread = word_next(rest), *what = word_next(rest);
	uint64_t id;

	if (what == NULL)
		return fail(parse, "expected: time, thread id and what was called", NULL);
	if (!number_read(time, 10, &line->time_ns))
		return fail(parse, "no time:", time);
	if (!number_read(thread, 10, &id))
		return fail(parse, "no thread id:", thread);
	for (line->what = 0; line->what < ARRAY_LENGTH(whats); line->what++)
		if (strcmp(what, whats[line->what]) == 0)
			return thread_find(parse, id, &line->thread);
	return fail(parse, "not INIT, START, STATE, STOP or FINI:", what);
}

static enum status line_read(struct parse *parse, struct tape_line *line, char *rest)
{
	uint64_t state = 0;
	enum status status = head_read(parse, line, &rest);
	char *word;

	if (status != OK)
		return status;
	line->version = (uint8_t)parse->version;
	line->has_args = line->what == TAPE_STATE;
	if (line->what == TAPE_START || line->what == TAPE_STATE || line->what == TAPE_STOP) {
		word = word_next(&rest);
		if (word == NULL || !number_read(word, 0, &line->handle))
			return fail(parse, "no handle", word);
	}
	if (line->what == TAPE_STATE) {
		word = word_next(&rest);
		if (word == NULL || !number_read(word, 10, &state) || state >= HOST_STATES)
			return fail(parse, "no state", word);
		line->state = (int64_t)state;
	}
	status = words_read(parse, line, rest);
	if (status == OK && line->what == TAPE_START &&
	    (line->type == 0 || (line->type & (line->type - 1)) != 0))
		return fail(parse, "a start without type=", NULL);
	return status;
}

/* "# interface v6": what the following lines are. Other comments say nothing. */
static enum status comment_read(struct parse *parse, const char *text)
{
	int version;

	if (sscanf(text, "# interface v%d", &version) != 1)
		return OK;
	if (version < 1 || version > 7)
		return fail(parse, "an interface version that is not known:", text);
	parse->version = version;
	return OK;
}

static enum status line_add(struct parse *parse, char *text)
{
	struct tape *tape = parse->tape;
	struct tape_line *grown;
	enum status status;

	if (text[0] == '#')
		return comment_read(parse, text);
	if (text[strspn(text, " \t\r")] == '\0')
		return OK;
	if (tape->count == parse->room) {
		parse->room = parse->room ? 2 * parse->room : 1024;
		grown = realloc(tape->lines, parse->room * sizeof(*grown));
		if (grown == NULL)
			return ERR_NO_SPACE;
		tape->lines = grown;
	}
	tape->lines[tape->count] = (struct tape_line){ 0 };
	status = line_read(parse, &tape->lines[tape->count], text);
	if (status == OK)
		tape->count++;
	return status;
}

static enum status text_read(struct parse *parse, char *text, const char *end)
{
	enum status status = OK;

	while (status == OK && text < end) {
		char *newline = memchr(text, '\n', (size_t)(end - text));

		parse->line++;
		if (newline == NULL)
			break; /* cut off: the process was killed while it wrote */
		*newline = '\0';
		if (strlen(text) != (size_t)(newline - text))
			return fail(parse, "a byte 0: this is no text", NULL);
		status = line_add(parse, text);
		text = newline + 1;
	}
	return status;
}

enum status tape_parse(struct tape *tape, const char *text, size_t length, int version,
		       struct tape_error *error)
{
	struct tape made = { 0 };
	struct parse parse = { .tape = &made, .error = error, .version = version };
	enum status status = ERR_NO_SPACE;

	*error = (struct tape_error){ 0 };
	made.text = malloc(length + 1);
	if (made.text) {
		memcpy(made.text, text, length);
		made.text[length] = '\0';
		status = text_read(&parse, made.text, made.text + length);
	}
	if (status == ERR_NO_SPACE)
		text_copy(error->text, sizeof(error->text), "out of memory");
	free(parse.threads);
	if (status == OK)
		*tape = made;
	else
		tape_release(&made);
	return status;
}

enum status tape_read(struct tape *tape, const char *path, int version, struct tape_error *error)
{
	enum status status = ERR_SYSTEM;
	char *text = NULL;
	long length = -1;
	FILE *file = fopen(path, "re");

	*error = (struct tape_error){ 0 };
	if (file && fseek(file, 0, SEEK_END) == 0)
		length = ftell(file);
	if (length >= 0 && fseek(file, 0, SEEK_SET) == 0)
		text = malloc((size_t)length + 1);
	if (text && fread(text, 1, (size_t)length, file) == (size_t)length)
		status = tape_parse(tape, text, (size_t)length, version, error);
	else
		text_format(error->text, sizeof(error->text), "cannot read it: %s",
			    strerror(errno));
	free(text);
	if (file)
		fclose(file);
	return status;
}

void tape_release(struct tape *tape)
{
	free(tape->lines);
	free(tape->text);
	*tape = (struct tape){ 0 };
}
