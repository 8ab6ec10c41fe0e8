/*
 * From bytes to messages.
 *
 *	[1,3]<stdout>:[2026-01-02 10:00:00] node7:4711:4800 [3] transport/net.cc:12 NCCL WARN text
 *	prefix                              host  pid  tid  device  source      ^ level    message
 *
 * The word "NCCL" with a level behind it is looked for in every line; nccl_log_head.c reads what is before it.
 * A line may hold two messages when two processes wrote at once; then the first is cut where the second's head
 * begins.
 */
#include "nccllog/nccl_log.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/attributes.h"
#include "nccllog/nccl_log_parts.h"

enum {
	LINE_MOST = 8192,     /* NCCL's own have at most 1024 bytes */
	READ_BYTES = 1 << 18, /* for descriptors */
	LABEL_BYTES = 5,      /* "NCCL " */
};

void nccl_log_init(struct nccl_log *log)
{
	*log = (struct nccl_log){ .work = calloc(1, sizeof(struct nccl_log_work)) };
	if (log->work != NULL)
		log_rules_init(log->work);
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool read_level(struct log_text *text, enum nccl_log_level *level)
{
	static const struct {
		const char *word;
		enum nccl_log_level level;
	} levels[] = {
		{ "INFO ", NCCL_LOG_LEVEL_INFO },   { "WARN ", NCCL_LOG_LEVEL_WARN },
		{ "TRACE ", NCCL_LOG_LEVEL_TRACE }, { "CALL ", NCCL_LOG_LEVEL_CALL },
		{ "ABORT ", NCCL_LOG_LEVEL_ABORT },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(levels); i++)
		if (log_skip_bytes(text, levels[i].word, strlen(levels[i].word))) {
			*level = levels[i].level;
			return true;
		}
	return false;
}

/* memmem is slow for words as short as this. */
static const char *find_word(const char *at, const char *end)
{
	while (end - at > LABEL_BYTES &&
	       (at = memchr(at, 'N', (size_t)(end - at - LABEL_BYTES))) != NULL) {
		if (memcmp(at, "NCCL ", LABEL_BYTES) == 0)
			return at;
		at++;
	}
	return NULL;
}

/* What is before it is a head, the end of one, or nothing: other programs speak of "NCCL INFO", too. */
static bool may_be_label(const char *start, const char *label)
{
	if (label == start)
		return true;
	if (label[-1] != ' ' || label - start < 2)
		return label[-1] == ':' || label[-1] == '>';
	return label[-2] == ']' || label[-2] == ')' || label[-2] == ':' ||
	       isdigit((unsigned char)label[-2]);
}

/* The next "NCCL LEVEL " of this line: where "NCCL" stands; *text is behind the level afterwards. */
static const char *find_label(const char *start, struct log_text *text, enum nccl_log_level *level)
{
	const char *label;

	while ((label = find_word(text->at, text->end)) != NULL) {
		text->at = label + LABEL_BYTES;
		if (!may_be_label(start, label))
			continue;
		if (read_level(text, level))
			return label;
		/* Level VERSION has no head and no word for its level. */
		if (log_left(text) > 9 && memcmp(text->at, "version ", 8) == 0 &&
		    isdigit((unsigned char)text->at[8])) {
			text->at = label;
			*level = NCCL_LOG_LEVEL_VERSION;
			return label;
		}
	}
	return NULL;
}

static void count_line(struct log_line *line)
{
	struct nccl_log_process *process = &line->log->processes[line->process];

	line->log->nccl_lines++;
	line->log->files[line->place.file].nccl_lines++;
	if (process->lines++ == 0)
		process->first = line->place;
	process->last = line->place;
	process->levels[line->level]++;
}

static void take_message(struct log_line *line, struct log_text message)
{
	if (line->process == UINT32_MAX) {
		/* No place for its process: still counted. */
		line->log->nccl_lines++;
		line->log->files[line->place.file].nccl_lines++;
		line->log->kinds[NCCL_LOG_KIND_OTHER]++;
		line->log->others_left_out++;
		return;
	}
	line->message = message;
	while (line->message.at < line->message.end && (line->message.end[-1] == '\r'))
		line->message.end--;
	count_line(line);
	log_take(line);
}

static void take_messages(struct log_line *line, struct log_text rest, const char *label)
{
	const char *start = rest.at;
	struct log_text text = { label, rest.end };
	enum nccl_log_level next;

	if (find_label(start, &text, &line->level) == NULL)
		return;
	log_read_whose(line, start, label, false);
	for (;;) {
		struct log_line after = *line;
		struct log_text message = text;

		if (line->level == NCCL_LOG_LEVEL_VERSION)
			text.at += LABEL_BYTES;
		label = find_label(start, &text, &next);
		if (label != NULL) {
			message.end = log_read_whose(&after, message.at, label, true);
			line->log->cut_lines++;
		}
		take_message(line, message);
		if (label == NULL)
			break;
		after.level = next;
		*line = after;
	}
}

/* Colours: ESC [ ... letter. */
static struct log_text without_colours(struct log_text text, char *to)
{
	char *out = to;

	while (text.at < text.end) {
		if (*text.at != '\x1b') {
			*out++ = *text.at++;
			continue;
		}
		text.at++;
		if (text.at < text.end && *text.at == '[') {
			text.at++;
			while (text.at < text.end && (*text.at < '@' || *text.at > '~'))
				text.at++;
			text.at += text.at < text.end;
		}
	}
	return (struct log_text){ to, out };
}

/* Where "NCCL" stands; mostly where it stood in the line before. */
static const char *find_first_label(const struct nccl_log_work *work, struct log_text text)
{
	const struct log_head *head = work->last_head;
	enum nccl_log_level level;

	if (head != NULL && log_left(&text) > head->length + LABEL_BYTES &&
	    memcmp(text.at, head->bytes, head->length) == 0) {
		struct log_text rest = { text.at + head->length, text.end };

		if (LOG_SKIP(&rest, "NCCL ") && read_level(&rest, &level))
			return text.at + head->length;
	}
	return find_label(text.at, &text, &level);
}

static void take_line(struct nccl_log *log, uint32_t file, struct log_text text)
{
	struct log_line line = { .log = log, .place = { .file = file } };
	char plain[LINE_MOST];
	const char *label;

	log->lines++;
	line.place.line = ++log->files[file].lines;
	if (log_left(&text) > LINE_MOST) {
		log->long_lines++;
		text.end = text.at + LINE_MOST;
	}
	if (memchr(text.at, '\x1b', log_left(&text)) != NULL)
		text = without_colours(text, plain);
	label = find_first_label(log->work, text);
	if (label != NULL)
		take_messages(&line, text, label);
	else
		log_take_report(log, text, line.place);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static enum status begin_file(struct nccl_log *log, const char *name, uint32_t *index)
{
	struct nccl_log_file *file;

	if (log->work == NULL)
		return ERR_NO_SPACE;
	file = log_add(log, LOG_FILES);
	if (file == NULL)
		return ERR_NO_SPACE;
	file->name = log_keep(log, (struct log_text){ name, name + strlen(name) });
	*index = (uint32_t)(file - log->files);
	memset(log->work->heads, 0, sizeof(log->work->heads));
	log->work->last_head = NULL;
	log->work->nobody = UINT32_MAX;
	log->work->column_count = 0;
	return log->work->status;
}

/* All whole lines; gives back how many bytes they were. */
static size_t take_lines(struct nccl_log *log, uint32_t file, const char *bytes, size_t length)
{
	const char *at = bytes, *end = bytes + length, *stop;

	while (at < end && (stop = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		take_line(log, file, (struct log_text){ at, stop });
		at = stop + 1;
	}
	return (size_t)(at - bytes);
}

enum status nccl_log_add_memory(struct nccl_log *log, const char *name, const void *bytes,
				size_t length)
{
	enum status status;
	uint32_t file;
	size_t taken;

	status = begin_file(log, name, &file);
	if (status != OK)
		return status;
	log->files[file].bytes = length;
	if (length == 0)
		return OK;
	taken = take_lines(log, file, bytes, length);
	if (taken < length)
		take_line(log, file,
			  (struct log_text){ (const char *)bytes + taken,
					     (const char *)bytes + length });
	return log->work->status;
}

/* A line that fills the buffer is looked at once and passed over until its end. */
static enum status take_all(struct nccl_log *log, uint32_t file, int fd, char *buffer)
{
	bool is_passing = false;
	size_t used = 0;

	for (;;) {
		ssize_t got = read(fd, buffer + used, READ_BYTES - used);
		const char *stop = NULL;
		size_t taken = 0;

		if (got == -1 && errno == EINTR)
			continue;
		if (got == -1)
			return ERR_SYSTEM;
		if (got == 0)
			break;
		log->files[file].bytes += (uint64_t)got;
		used += (size_t)got;
		if (is_passing) {
			stop = memchr(buffer, '\n', used);
			taken = stop != NULL ? (size_t)(stop - buffer) + 1 : used;
			is_passing = stop == NULL;
		}
		taken += take_lines(log, file, buffer + taken, used - taken);
		if (taken == 0 && used == READ_BYTES) {
			take_line(log, file, (struct log_text){ buffer, buffer + used });
			taken = used;
			is_passing = true;
		}
		memmove(buffer, buffer + taken, used - taken);
		used -= taken;
	}
	if (used > 0)
		take_line(log, file, (struct log_text){ buffer, buffer + used });
	return log->work->status;
}

enum status nccl_log_add_fd(struct nccl_log *log, const char *name, int fd)
{
	char *buffer = malloc(READ_BYTES);
	enum status status;
	uint32_t file;

	status = buffer != NULL ? begin_file(log, name, &file) : ERR_NO_SPACE;
	if (status == OK)
		status = take_all(log, file, fd, buffer);
	free(buffer);
	return status;
}

const struct nccl_log_variable *nccl_log_variable(const struct nccl_log *log, uint32_t process,
						  const char *name)
{
	for (size_t i = 0; i < log->variable_count; i++)
		if (log->variables[i].process == process &&
		    strcmp(log->variables[i].name, name) == 0)
			return &log->variables[i];
	return NULL;
}
