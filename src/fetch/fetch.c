/* Frames, requests, lists of targets and options: both sides of the protocol, without network. */
#include "fetch/fetch.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/text.h"

void fetch_frames_init(struct fetch_frames *frames, size_t limit)
{
	*frames = (struct fetch_frames){ .limit = limit };
}

void fetch_frames_release(struct fetch_frames *frames)
{
	free(frames->bytes);
	*frames = (struct fetch_frames){ .is_broken = true };
}

/* Frames that were taken make room for new ones. */
static void move_down(struct fetch_frames *frames)
{
	if (frames->at == 0)
		return;
	frames->used -= frames->at;
	memmove(frames->bytes, frames->bytes + frames->at, frames->used);
	frames->at = 0;
}

enum status fetch_frames_add(struct fetch_frames *frames, const void *bytes, size_t length)
{
	size_t needed;

	if (frames->is_broken)
		return ERR_FORMAT;
	move_down(frames);
	needed = frames->used + length;
	if (needed > frames->room) {
		size_t room = needed < frames->room * 2 ? frames->room * 2 : needed;
		char *grown = realloc(frames->bytes, room);

		if (grown == NULL)
			return ERR_NO_SPACE;
		frames->bytes = grown;
		frames->room = room;
	}
	if (length > 0)
		memcpy(frames->bytes + frames->used, bytes, length);
	frames->used += length;
	return OK;
}

/* Digits and the expected character after them; NULL: no match. */
static const char *frame_take_number(const char *at, const char *end, char after, uint64_t most,
				     uint64_t *number)
{
	const char *first = at;

	*number = 0;
	while (at < end && *at >= '0' && *at <= '9') {
		*number = *number * 10 + (uint64_t)(*at - '0');
		if (*number > most)
			return NULL;
		at++;
	}
	if (at == first || at == end || *at != after)
		return NULL;
	return at + 1;
}

enum status fetch_frames_next(struct fetch_frames *frames, struct fetch_frame *frame)
{
	size_t left = frames->used - frames->at;
	const char *at = frames->bytes + frames->at;
	const char *end = left == 0 ? NULL : memchr(at, '\n', left);
	uint64_t id = 0, status = 0, length = 0;

	if (frames->is_broken)
		return ERR_FORMAT;
	if (end == NULL && left < FETCH_HEADER_MAX)
		return ERR_GONE;
	frames->is_broken = true;
	if (end == NULL || end - at >= FETCH_HEADER_MAX)
		return ERR_FORMAT;
	end++;
	at = frame_take_number(at, end, ' ', FETCH_REQUESTS_MAX - 1, &id);
	at = at ? frame_take_number(at, end, ' ', 999, &status) : NULL;
	at = at ? frame_take_number(at, end, '\n', frames->limit, &length) : NULL;
	if (at != end)
		return ERR_FORMAT;
	frames->is_broken = false;
	if ((size_t)(frames->bytes + frames->used - at) < length)
		return ERR_GONE;
	*frame = (struct fetch_frame){ (uint32_t)id, (int)status, at, (size_t)length };
	frames->at = (size_t)(at - frames->bytes) + (size_t)length;
	return OK;
}

size_t fetch_frame_header(char header[static FETCH_HEADER_MAX], uint32_t id, int status,
			  size_t length)
{
	text_format(header, FETCH_HEADER_MAX, "%u %d %zu\n", id, status, length);
	return strlen(header);
}

/* ---- requests -------------------------------------------------------------------------------- */

bool fetch_url_is_good(const char *url)
{
	const char *host;

	if (strncmp(url, "http://", 7) == 0)
		host = url + 7;
	else if (strncmp(url, "https://", 8) == 0)
		host = url + 8;
	else
		return false;
	/* A password before an '@' would be visible to all users in the process list. */
	if (strcspn(host, "/?#") == 0 || memchr(host, '@', strcspn(host, "/?#")))
		return false;
	for (; *url != '\0'; url++)
		if ((unsigned char)*url <= ' ' || *url == 0x7f)
			return false;
	return true;
}

bool fetch_url_append(char *url, size_t size, const char *text)
{
	size_t start = strlen(url);
	bool fits = true;

	for (; *text != '\0' && fits; text++) {
		bool is_plain = isalnum((unsigned char)*text) || strchr("-._~", *text);

		fits = text_append(url, size, is_plain ? "%c" : "%%%02X", (unsigned char)*text);
	}
	if (!fits)
		url[start] = '\0';
	return fits;
}

enum status fetch_request_parse(struct fetch_request *request, char *line)
{
	char *url = strchr(line, ' '), *socket;
	int64_t id;

	if (url == NULL)
		return ERR_FORMAT;
	*url++ = '\0';
	socket = strchr(url, ' ');
	if (socket)
		*socket++ = '\0';
	if (text_number(line, 0, FETCH_REQUESTS_MAX - 1, &id) != OK || !fetch_url_is_good(url) ||
	    (socket && socket[0] != '/'))
		return ERR_FORMAT;
	*request = (struct fetch_request){ (uint32_t)id, url, socket };
	return OK;
}

struct fetch_out_part {
	struct fetch_out_part *next;
	char header[FETCH_HEADER_MAX];
	char *bytes;
	size_t header_length;
	size_t length;
	size_t at; /* of header and bytes together: what was written */
};

void fetch_out_init(struct fetch_out *out, int fd)
{
	*out = (struct fetch_out){ .fd = fd };
}

enum status fetch_out_add(struct fetch_out *out, uint32_t id, int status, char *bytes,
			  size_t length)
{
	struct fetch_out_part *part = calloc(1, sizeof(*part));

	if (part == NULL) {
		free(bytes);
		return ERR_NO_SPACE;
	}
	part->bytes = bytes;
	part->length = length;
	part->header_length = fetch_frame_header(part->header, id, status, length);
	if (out->last)
		out->last->next = part;
	else
		out->first = part;
	out->last = part;
	out->waiting += part->header_length + length;
	return OK;
}

static ssize_t write_some(int fd, const struct fetch_out_part *part)
{
	if (part->at < part->header_length)
		return write(fd, part->header + part->at, part->header_length - part->at);
	return write(fd, part->bytes + part->at - part->header_length,
		     part->header_length + part->length - part->at);
}

static void drop_first(struct fetch_out *out)
{
	struct fetch_out_part *part = out->first;

	out->first = part->next;
	if (out->first == NULL)
		out->last = NULL;
	free(part->bytes);
	free(part);
}

enum status fetch_out_write(struct fetch_out *out)
{
	while (out->first) {
		struct fetch_out_part *part = out->first;
		ssize_t written;

		if (part->at == part->header_length + part->length) {
			drop_first(out);
			continue;
		}
		written = write_some(out->fd, part);
		if (written == -1 && errno == EINTR)
			continue;
		if (written == -1)
			return errno == EAGAIN ? OK : ERR_SYSTEM;
		part->at += (size_t)written;
		out->waiting -= (size_t)written;
	}
	return OK;
}

enum { INDEX_SLOTS = 2 * FETCH_TARGETS_MAX };

/* State while a list is added. */
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

static enum status target_refuse(const struct adding *adding, const char *word, const char *problem)
{
	text_format(adding->why, adding->why_size, "'%.80s' %s", word, problem);
	return ERR_FORMAT;
}

/* ---- one target ------------------------------------------------------------------------------ */

/* The place of a name in the index, or its free place; the index is never more than half full. */
static uint32_t *place_of(const struct fetch_targets *targets, const char *name)
{
	size_t at = hash_bytes(name, strlen(name)) % INDEX_SLOTS;

	while (targets->index[at] != 0 &&
	       strcmp(targets->list[targets->index[at] - 1].name, name) != 0)
		at = (at + 1) % INDEX_SLOTS;
	return &targets->index[at];
}

static enum status target_append(const struct adding *adding, const char *name, const char *url,
				 const char *socket)
{
	struct fetch_targets *targets = adding->targets;
	struct fetch_target target;
	uint32_t *place;

	if (targets->index == NULL)
		targets->index = calloc(INDEX_SLOTS, sizeof(*targets->index));
	if (targets->index == NULL)
		return ERR_NO_SPACE;
	place = place_of(targets, name);
	if (*place != 0)
		return OK;
	if (targets->count == FETCH_TARGETS_MAX) {
		text_format(adding->why, adding->why_size, "more than %d agents",
			    FETCH_TARGETS_MAX);
		return ERR_NO_SPACE;
	}
	if (!list_grow(&targets->list, targets->count, sizeof(*targets->list)))
		return ERR_NO_SPACE;
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

/* "[::1]" and similar: only the characters are checked, the system does the rest. 0: it is none. */
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
		return target_refuse(adding, word,
				     "is not an address (put a password into a file: --auth)");
	while (length > 0 && word[length - 1] == '/')
		length--;
	if (strpbrk(word, "?#"))
		return target_refuse(adding, word,
				     "contains '?' or '#': give the agent's address only");
	text_format(url, sizeof(url), "%.*s", (int)length, word);
	return target_append(adding, url, url, NULL);
}

static enum status add_one(const struct adding *adding, const char *word)
{
	size_t length = word[0] == '[' ? address_length(word) : strcspn(word, ":");
	char name[FETCH_TARGET_TEXT], url[FETCH_TARGET_TEXT + 8];
	int64_t port = adding->port;

	if (strncmp(word, "unix:/", 6) == 0)
		return target_append(adding, word, "http://localhost", word + 5);
	if (strstr(word, "://"))
		return add_url(adding, word);
	if (length == 0 || (word[0] != '[' && !is_host(word, length)))
		return target_refuse(adding, word, "is not a host, host:port or URL");
	if (word[length] != '\0' &&
	    (word[length] != ':' || text_number(word + length + 1, 1, 65535, &port) != OK))
		return target_refuse(adding, word, "has no port between 1 and 65535 after its ':'");
	if (!text_format(name, sizeof(name), "%.*s:%d", (int)length, word, (int)port))
		return target_refuse(adding, word, "is too long");
	text_format(url, sizeof(url), "http://%s", name);
	return target_append(adding, name, url, NULL);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* "001-064" or "7": its ends, and the minimum number of digits. */
static bool parse_range(const char *text, int64_t *first, int64_t *last, int *digits)
{
	char low[16], high[16];
	size_t dash = strcspn(text, "-");
	bool has_end = text[dash] == '-';

	if (dash == 0 || !text_format(low, sizeof(low), "%.*s", (int)dash, text) ||
	    !text_copy(high, sizeof(high), has_end ? text + dash + 1 : low))
		return false;
	*digits = low[0] == '0' ? (int)dash : 1;
	return strspn(low, "0123456789") == strlen(low) &&
	       strspn(high, "0123456789") == strlen(high) &&
	       text_number(low, 0, 999999999, first) == OK &&
	       text_number(high, 0, 999999999, last) == OK && *first <= *last;
}

static enum status target_expand(const struct adding *adding, const char *word);

static enum status expand_range(const struct adding *adding, const char *word, const char *open,
				const char *close, const char *range)
{
	char made[FETCH_TARGET_TEXT];
	enum status status = OK;
	int64_t first, last;
	int digits;

	if (!parse_range(range, &first, &last, &digits))
		return target_refuse(adding, word, "has no range like [001-064] in its brackets");
	for (int64_t i = first; i <= last && status == OK; i++) {
		if (!text_format(made, sizeof(made), "%.*s%0*d%s", (int)(open - word), word, digits,
				 (int)i, close + 1))
			return target_refuse(adding, word, "is too long");
		status = target_expand(adding, made);
	}
	return status;
}

/* The first brackets, and for each of their numbers the next ones. */
static enum status target_expand(const struct adding *adding, const char *word)
{
	/* An IPv6 address has brackets of its own, in a URL as well. */
	const char *slashes = strstr(word, "://");
	const char *from = slashes ? slashes + 3 : word;
	const char *open = strchr(from + address_length(from), '[');
	const char *close = open ? strchr(open, ']') : NULL;
	enum status status = OK;

	if (open == NULL)
		return add_one(adding, word);
	if (close == NULL || close == open + 1)
		return target_refuse(adding, word, "has a '[' without a range and ']'");
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
			return target_refuse(&adding, word, "is too long");
		status = target_expand(&adding, word);
		text += length;
	}
	return status;
}

enum { EXIT_USAGE = 2 };

static const char help[] =
	"usage: ringside-fetch [OPTION...] <REQUESTS >FRAMES\n\n"
	"Fetches the URLs listed on standard input, many at a time, and writes the\n"
	"answers as they arrive. Run by 'ringside doctor'; docs/ARCHITECTURE.md has the format.\n\n"
	"options:\n"
	"  --parallel N         concurrent requests (default 32)\n"
	"  --timeout MS         time limit of one request (default 5000)\n"
	"  --connect MS         time limit for connecting (default: the same)\n"
	"  --limit BYTES        maximum size of one answer (default 64MiB)\n"
	"  --total BYTES        maximum size of all answers (default 4GiB)\n"
	"  --auth FILE          a line \"basic NAME:PASSWORD\" or \"bearer TOKEN\"\n"
	"  --cacert FILE        trusted CA certificates, instead of the system's\n"
	"  --insecure           accept any certificate\n"
	"  --help               show this help\n";

static int usage(const char *what, const char *word)
{
	fprintf(stderr, "ringside-fetch: %s '%s' (see 'ringside-fetch --help')\n", what, word);
	return EXIT_USAGE;
}

static int option_take_number(uint64_t *to, const char *text, int64_t least, int64_t most)
{
	int64_t number;

	if (text_number(text, least, most, &number) != OK)
		return usage("invalid number:", text);
	*to = (uint64_t)number;
	return -1;
}

static int take_size(uint64_t *to, const char *text)
{
	if (text_size(text, to) != OK || *to == 0 || *to > (uint64_t)1 << 40)
		return usage("invalid size:", text);
	return -1;
}

/* Blanks at the end of a line are ignored. */
static size_t line_length(const char *text)
{
	size_t length = strcspn(text, "\r\n");

	while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
		length--;
	return length;
}

bool fetch_options_secret(struct fetch_options *options, const char *text)
{
	size_t length = line_length(text);

	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return false;
	if (length > 6 && strncmp(text, "basic ", 6) == 0 && memchr(text + 6, ':', length - 6))
		return text_format(options->user, sizeof(options->user), "%.*s", (int)length - 6,
				   text + 6);
	if (length > 7 && strncmp(text, "bearer ", 7) == 0)
		return text_format(options->bearer, sizeof(options->bearer), "%.*s",
				   (int)length - 7, text + 7);
	return false;
}

/* A pipe has no permissions; a file that everybody can read is not secret. */
static bool is_open_to_all(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_IROTH);
}

static int take_auth(struct fetch_options *options, const char *path)
{
	char text[sizeof(options->bearer) + 16];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd == -1 ? -1 : read(fd, text, sizeof(text) - 1);

	if (length == -1) {
		fprintf(stderr, "ringside-fetch: %s: %s\n", path, strerror(errno));
	} else if (is_open_to_all(fd)) {
		fprintf(stderr,
			"ringside-fetch: %s: readable by everybody, so it is not secret: chmod 600 "
			"it\n",
			path);
		length = -1;
	}
	if (fd != -1)
		close(fd);
	if (length == -1)
		return EXIT_USAGE;
	text[length] = '\0';
	if (!fetch_options_secret(options, text))
		return usage("no line \"basic NAME:PASSWORD\" or \"bearer TOKEN\" in", path);
	return -1;
}

static int take(struct fetch_options *options, int found, const char *value)
{
	uint64_t parallel = options->parallel;
	int code;

	switch (found) {
	case 'p':
		code = option_take_number(&parallel, value, 1, 1024);
		options->parallel = (unsigned int)parallel;
		return code;
	case 't':
		return option_take_number(&options->timeout_ms, value, 1, 3600000);
	case 'c':
		return option_take_number(&options->connect_ms, value, 1, 3600000);
	case 'l':
		return take_size(&options->limit_bytes, value);
	case 'T':
		return take_size(&options->total_bytes, value);
	case 'a':
		return take_auth(options, value);
	case 'C':
		options->ca_file = value;
		return -1;
	case 'i':
		options->is_insecure = true;
		return -1;
	case 'h':
		fputs(help, stdout);
		return 0;
	default:
		return EXIT_USAGE;
	}
}

int fetch_options_parse(struct fetch_options *options, int argc, char **argv)
{
	static const struct option names[] = {
		{ "parallel", required_argument, NULL, 'p' },
		{ "timeout", required_argument, NULL, 't' },
		{ "connect", required_argument, NULL, 'c' },
		{ "limit", required_argument, NULL, 'l' },
		{ "total", required_argument, NULL, 'T' },
		{ "auth", required_argument, NULL, 'a' },
		{ "cacert", required_argument, NULL, 'C' },
		{ "insecure", no_argument, NULL, 'i' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int found, code;

	*options = (struct fetch_options){
		.parallel = 32,
		.timeout_ms = 5000,
		.limit_bytes = (uint64_t)64 << 20,
		.total_bytes = (uint64_t)4 << 30,
	};
	while ((found = getopt_long(argc, argv, "", names, NULL)) != -1) {
		code = take(options, found, optarg);
		if (code != -1)
			return code;
	}
	if (optind < argc)
		return usage("unexpected argument:", argv[optind]);
	if (options->connect_ms == 0)
		options->connect_ms = options->timeout_ms;
	return -1;
}
