/*
 * From bytes to messages.
 *
 *	[1,3]<stdout>:[2026-01-02 10:00:00] node7:4711:4800 [3] transport/net.cc:12 NCCL WARN text
 *	prefix                              host  pid  tid  device  source      ^ level    message
 *
 * The word "NCCL" with a level behind it is looked for in every line, and what is before it is read backwards:
 * launchers, clocks and other programs put there what they like. A line may hold two messages when two processes
 * wrote at once; then the first is cut where the second's head begins.
 */
#include "nccllog/nccl_log.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/attributes.h"
#include "base/hash.h"
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

/* ---- heads ----------------------------------------------------------------------------------- */

struct head {
	struct log_text host;
	int64_t pid;
	uint64_t thread;
	int32_t device;
	const char *start; /* where the host's name begins */
};

static bool is_host_byte(char byte)
{
	return isalnum((unsigned char)byte) || byte == '.' || byte == '-' || byte == '_';
}

/* ":123" that ends at `end`; gives back where the colon is, NULL when there is none. */
static const char *number_back(const char *start, const char *end, int64_t *number)
{
	const char *at = end;
	struct log_text digits;

	while (at > start && at[-1] >= '0' && at[-1] <= '9')
		at--;
	digits = (struct log_text){ at, end };
	if (at == start || at[-1] != ':' || !log_number(&digits, number))
		return NULL;
	return at - 1;
}

/* Is "host:pid:tid" what ends here? */
static bool read_head_word(const char *start, const char *end, struct head *head)
{
	const char *second, *first;
	int64_t thread;

	second = number_back(start, end, &thread);
	first = second != NULL ? number_back(start, second, &head->pid) : NULL;
	if (first == NULL)
		return false;
	head->thread = (uint64_t)thread;
	head->start = first;
	while (head->start > start && is_host_byte(head->start[-1]) && first - head->start < 255)
		head->start--;
	head->host = (struct log_text){ head->start, first };
	return head->start < first;
}

/* Words between the head and "NCCL": "[3]", "12.345", "net.cc:12 (function)". */
enum { WORDS_BETWEEN = 8 };

static bool read_head(const char *start, const char *label, struct head *head,
		      struct log_text *between)
{
	const char *end = label;

	head->device = -1;
	for (int i = 0; i < WORDS_BETWEEN && end > start; i++) {
		const char *word;

		while (end > start && end[-1] == ' ')
			end--;
		if (read_head_word(start, end, head)) {
			*between = log_trim((struct log_text){ end, label });
			if (LOG_SKIP(between, "[") && log_int(between, &head->device))
				LOG_SKIP(between, "]");
			*between = log_trim(*between);
			return true;
		}
		for (word = end; word > start && word[-1] != ' '; word--)
			;
		end = word;
	}
	return false;
}

/* What launchers put before a line: "[1,3]<stdout>:", "[rank3]:", "3: ". */
static int64_t launcher_rank(const char *start, const char *end)
{
	struct log_text text = log_trim((struct log_text){ start, end });
	int64_t number;

	if (LOG_SKIP(&text, "[rank"))
		return log_number(&text, &number) && LOG_SKIP(&text, "]") ? number : -1;
	if (LOG_SKIP(&text, "[")) {
		if (!log_number(&text, &number) || !LOG_SKIP(&text, ","))
			return -1;
		return log_number(&text, &number) && LOG_SKIP(&text, "]<std") ? number : -1;
	}
	return log_number(&text, &number) && LOG_SKIP(&text, ":") ? number : -1;
}

static uint64_t process_key(struct log_text host, int64_t pid)
{
	return hash_word(hash_bytes(host.at, log_left(&host)), (uint64_t)pid);
}

/* Of a cut line the name may have more before it: a process that is known already counts. */
static void shorten_host(const struct nccl_log *log, struct head *head)
{
	struct log_text host = head->host;

	for (; host.at < host.end; host.at++)
		if (log_find_key(log, LOG_PROCESSES, process_key(host, head->pid)) != LOG_NONE) {
			head->host = host;
			head->start = host.at;
			return;
		}
}

static uint32_t find_process(struct nccl_log *log, const struct head *head, int64_t launcher)
{
	struct nccl_log_process *process;
	bool is_new;

	process = log_entry(log, LOG_PROCESSES, process_key(head->host, head->pid), &is_new);
	if (process == NULL)
		return UINT32_MAX;
	if (is_new)
		*process = (struct nccl_log_process){ .host = log_keep(log, head->host),
						      .pid = head->pid,
						      .launcher_rank = -1,
						      .cuda_device = -1,
						      .version = "",
						      .cuda_version = "",
						      .git = "",
						      .last_comm = LOG_NONE };
	if (process->launcher_rank < 0)
		process->launcher_rank = launcher;
	if (process->cuda_device < 0)
		process->cuda_device = head->device;
	return (uint32_t)(process - log->processes);
}

/* Lines without a head: one process per file stands for all of them. */
static uint32_t find_nobody(struct nccl_log *log, uint32_t file)
{
	struct nccl_log_work *work = log->work;
	struct head head = { .pid = -1 - (int64_t)file, .device = -1, .host = { "", "" } };

	if (work->nobody == UINT32_MAX) {
		work->nobody = find_process(log, &head, -1);
		if (work->nobody != UINT32_MAX)
			log->processes[work->nobody].pid = -1;
	}
	return work->nobody;
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

/* A head that was read before. Cut ones are not among them. */
static struct log_head *head_slot(struct nccl_log_work *work, const char *start, size_t length)
{
	return &work->heads[hash_bytes(start, length) % LOG_HEADS];
}

static bool is_head(const struct log_head *head, const char *start, size_t length)
{
	return head->length == length && memcmp(head->bytes, start, length) == 0;
}

/* Whose message it is. Gives back where its head begins. */
static const char *read_whose(struct log_line *line, const char *start, const char *label,
			      bool is_cut)
{
	struct nccl_log_work *work = line->log->work;
	size_t length = (size_t)(label - start);
	bool is_short = !is_cut && length > 0 && length <= sizeof(work->heads[0].bytes);
	struct log_head *known = is_short ? head_slot(work, start, length) : NULL;
	struct head head = { .pid = -1 };

	line->source = (struct log_text){ label, label };
	if (known != NULL && is_head(known, start, length)) {
		line->process = known->process;
		line->thread = known->thread;
		work->last_head = known;
		return start;
	}
	line->thread = 0;
	if (!read_head(start, label, &head, &line->source)) {
		line->process = find_nobody(line->log, line->place.file);
		return label;
	}
	if (is_cut)
		shorten_host(line->log, &head);
	line->process = find_process(line->log, &head, launcher_rank(start, head.start));
	line->thread = head.thread;
	/* A head with a source in it belongs to a warning: it does not come again. */
	if (known != NULL && log_left(&line->source) == 0) {
		memcpy(known->bytes, start, length);
		known->length = length;
		known->process = line->process;
		known->thread = line->thread;
		work->last_head = known;
	}
	return head.start;
}

static void take_messages(struct log_line *line, struct log_text rest, const char *label)
{
	const char *start = rest.at;
	struct log_text text = { label, rest.end };
	enum nccl_log_level next;

	if (find_label(start, &text, &line->level) == NULL)
		return;
	read_whose(line, start, label, false);
	for (;;) {
		struct log_line after = *line;
		struct log_text message = text;

		if (line->level == NCCL_LOG_LEVEL_VERSION)
			text.at += LABEL_BYTES;
		label = find_label(start, &text, &next);
		if (label != NULL) {
			message.end = read_whose(&after, message.at, label, true);
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
