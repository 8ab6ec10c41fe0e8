/*
 * NCCL's RAS: the client side of its protocol is a state machine over received bytes; answers are read by a tolerant JSON
 * reader for the keys it knows, and line by line from the text.
 */
#include "import/ras.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/attributes.h"
#include "common/text.h"

/* ---- the protocol ----------------------------------------------------------------------------- */

static void ask(struct ras_talk *talk, const char *request)
{
	size_t used = strlen(talk->request);

	/* At most four short requests, however early the answers come. */
	snprintf(talk->request + used, sizeof(talk->request) - used, "%s\n", request);
}

void ras_talk_init(struct ras_talk *talk, enum ras_request request, unsigned int timeout_s)
{
	*talk = (struct ras_talk){ .request_kind = request,
				   .is_json = request == RAS_JSON,
				   .timeout_s = timeout_s };
	ask(talk, "client protocol 2");
}

void ras_talk_release(struct ras_talk *talk)
{
	free(talk->answer);
	talk->answer = NULL;
	talk->answer_length = talk->answer_room = 0;
}

static enum status fail(struct ras_talk *talk, const char *what)
{
	talk->state = RAS_FAILED;
	text_format(talk->why, sizeof(talk->why), "%s: %.80s", what, talk->line);
	return ERR_FORMAT;
}

/* ---- lines before the answer ------------------------------------------------------------------ */

static enum status greeted(struct ras_talk *talk)
{
	static const char begins[] = "SERVER PROTOCOL ";
	char request[32];

	if (strncasecmp(talk->line, begins, sizeof(begins) - 1) != 0)
		return fail(talk, "not NCCL's RAS; the peer says");
	talk->protocol = (int)strtol(talk->line + sizeof(begins) - 1, NULL, 10);
	talk->state = RAS_SETS_TIME;
	text_format(request, sizeof(request), "timeout %u", talk->timeout_s);
	ask(talk, request);
	return OK;
}

static enum status take_line(struct ras_talk *talk)
{
	bool is_fine = strcasecmp(talk->line, "OK") == 0;

	switch (talk->state) {
	case RAS_GREETS:
		return greeted(talk);
	case RAS_SETS_TIME:
		if (!is_fine)
			return fail(talk, "it rejects the timeout");
		talk->state = talk->is_json ? RAS_SETS_FORMAT : RAS_ANSWERS;
		ask(talk, talk->is_json				  ? "set format json"
			  : talk->request_kind == RAS_DIAGNOSTICS ? "diagnostics"
								  : "verbose status");
		return OK;
	case RAS_SETS_FORMAT:
		/* Releases before 2.28.7 do not know this command. */
		talk->is_json = is_fine;
		talk->state = RAS_ANSWERS;
		ask(talk, "verbose status");
		return OK;
	default:
		return fail(talk, "its answer is too long");
	}
}

static enum status take_byte_of_line(struct ras_talk *talk, char byte)
{
	enum status status;

	if (byte == '\n') {
		talk->line[talk->line_used] = '\0';
		talk->line_used = 0;
		status = take_line(talk);
		talk->line[0] = '\0';
		return status;
	}
	if (talk->line_used == sizeof(talk->line) - 1) {
		talk->line[talk->line_used] = '\0';
		return fail(talk, "not NCCL's RAS; the peer sends an endless line");
	}
	if (byte != '\r')
		talk->line[talk->line_used++] =
			(unsigned char)byte < 0x20 || (unsigned char)byte >= 0x7f ? '?' : byte;
	return OK;
}

/* ---- the answer ------------------------------------------------------------------------------- */

static enum status make_room(struct ras_talk *talk, size_t length)
{
	size_t wanted = talk->answer_length + length + 1;
	size_t room = talk->answer_room ? talk->answer_room : 4096;
	char *more;

	if (wanted <= talk->answer_room)
		return OK;
	while (room < wanted)
		room *= 2;
	more = realloc(talk->answer, room);
	if (more == NULL)
		return ERR_NO_SPACE;
	talk->answer = more;
	talk->answer_room = room;
	return OK;
}

static enum status take_answer(struct ras_talk *talk, const char *bytes, size_t length)
{
	size_t left = RAS_ANSWER_MAX - talk->answer_length;
	enum status status;

	talk->is_cut = talk->is_cut || length > left;
	if (length > left)
		length = left;
	status = make_room(talk, length);
	if (status != OK)
		return status;
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)bytes[i];
		bool is_control = (byte < 0x20 && byte != '\n' && byte != '\t') || byte >= 0x7f;

		if (byte != '\r')
			talk->answer[talk->answer_length++] = is_control ? '?' : (char)byte;
	}
	talk->answer[talk->answer_length] = '\0';
	/* After an error the connection stays open for another command. */
	if ((strncmp(talk->answer, "ERROR: ", 7) == 0 || strncmp(talk->answer, "BUSY: ", 6) == 0) &&
	    strchr(talk->answer, '\n') != NULL) {
		text_format(talk->line, sizeof(talk->line), "%.*s",
			    (int)strcspn(talk->answer, "\n"), talk->answer);
		return fail(talk, "it rejects the request");
	}
	return talk->is_cut ? ERR_RANGE : OK;
}

enum status ras_talk_take(struct ras_talk *talk, const char *bytes, size_t length)
{
	enum status status = OK;
	size_t at = 0;

	while (at < length && talk->state < RAS_ANSWERS && status == OK)
		status = take_byte_of_line(talk, bytes[at++]);
	if (status != OK || talk->state == RAS_FAILED)
		return status != OK ? status : ERR_FORMAT;
	return at < length ? take_answer(talk, bytes + at, length - at) : OK;
}

enum status ras_talk_end(struct ras_talk *talk)
{
	if (talk->state == RAS_FAILED)
		return ERR_FORMAT;
	if (talk->state != RAS_ANSWERS || talk->answer_length == 0) {
		talk->state = RAS_FAILED;
		text_format(talk->why, sizeof(talk->why),
			    "the connection was closed without an answer");
		return ERR_FORMAT;
	}
	return OK;
}

/* ---- what an answer says ---------------------------------------------------------------------- */

void ras_status_init(struct ras_status *status)
{
	*status = (struct ras_status){ .is_json = false };
}

void ras_status_release(struct ras_status *status)
{
	free(status->comms);
	free(status->ranks);
	*status = (struct ras_status){ .is_json = false };
}

const char *ras_error_text(int32_t error)
{
	static const char *const texts[] = {
		[1] = "CUDA error",	  [2] = "system error",	 [3] = "internal error",
		[4] = "invalid argument", [5] = "invalid usage", [6] = "remote process error",
	};

	return error > 0 && (size_t)error < ARRAY_LENGTH(texts) ? texts[error] : "an error";
}

/* ---- lists ------------------------------------------------------------------------------------- */

static void raise_highest(struct ras_comm *comm, int function, int64_t count)
{
	if (function >= 0 && count > comm->highest[function])
		comm->highest[function] = count;
}

static enum status add_comm(struct ras_status *status, uint64_t hash)
{
	struct ras_comm comm = { .hash = hash, .size = -1 };

	for (size_t i = 0; i < RAS_FUNCTIONS_MAX; i++)
		comm.highest[i] = -1;
	if (status->comm_count == RAS_COMMS_MAX) {
		status->is_cut = true;
		return ERR_RANGE;
	}
	if (!list_grow(&status->comms, status->comm_count, sizeof(*status->comms)))
		return ERR_NO_SPACE;
	status->comms[status->comm_count++] = comm;
	return OK;
}

static struct ras_rank blank_rank(const struct ras_status *status)
{
	struct ras_rank rank = { .comm = (uint32_t)(status->comm_count - 1),
				 .rank = -1,
				 .pid = -1 };

	for (size_t i = 0; i < RAS_FUNCTIONS_MAX; i++)
		rank.counts[i] = -1;
	return rank;
}

static enum status add_rank(struct ras_status *status, const struct ras_rank *rank)
{
	if (status->rank_count == RAS_RANKS_MAX) {
		status->is_cut = true;
		return OK;
	}
	if (!list_grow(&status->ranks, status->rank_count, sizeof(*status->ranks)))
		return ERR_NO_SPACE;
	status->ranks[status->rank_count++] = *rank;
	for (int i = 0; i < RAS_FUNCTIONS_MAX; i++)
		raise_highest(&status->comms[rank->comm], i, rank->counts[i]);
	return OK;
}

/* -1: no room for its name. */
static int function_index(struct ras_status *status, const char *name)
{
	for (size_t i = 0; i < status->function_count; i++)
		if (strcmp(status->functions[i], name) == 0)
			return (int)i;
	if (status->function_count == RAS_FUNCTIONS_MAX || name[0] == '\0')
		return -1;
	text_copy(status->functions[status->function_count], sizeof(status->functions[0]), name);
	return (int)status->function_count++;
}

/* ---- JSON -------------------------------------------------------------------------------------- */

enum { DEPTH_MAX = 16, WORD_MAX = 64 };

struct cursor {
	const char *at, *end;
	bool is_bad; /* unexpected, or the text ended */
	enum status status;
};

static char look(struct cursor *cursor)
{
	while (cursor->at < cursor->end &&
	       (*cursor->at == ' ' || *cursor->at == '\n' || *cursor->at == '\t' ||
		*cursor->at == '\r' || *cursor->at == ',' || *cursor->at == ':'))
		cursor->at++;
	if (cursor->at == cursor->end)
		cursor->is_bad = true;
	return cursor->is_bad ? '\0' : *cursor->at;
}

static bool take(struct cursor *cursor, char byte)
{
	if (look(cursor) != byte)
		return false;
	cursor->at++;
	return true;
}

/* What does not fit is cut, control bytes and escapes become '?'. */
static void read_string(struct cursor *cursor, char to[static WORD_MAX])
{
	size_t used = 0;

	if (!take(cursor, '"'))
		cursor->is_bad = true;
	while (!cursor->is_bad && cursor->at < cursor->end && *cursor->at != '"') {
		unsigned char byte = (unsigned char)*cursor->at++;

		if (byte == '\\' && cursor->at < cursor->end)
			cursor->at++;
		if (used < WORD_MAX - 1)
			to[used++] = byte < 0x20 || byte >= 0x7f || byte == '\\' ? '?' : (char)byte;
	}
	to[used] = '\0';
	if (cursor->at == cursor->end)
		cursor->is_bad = true;
	else
		cursor->at++;
}

/* A number, or a word: true, false, null. */
static void read_word(struct cursor *cursor, char to[static WORD_MAX])
{
	size_t used = 0;

	look(cursor);
	while (cursor->at < cursor->end && *cursor->at != '\0' &&
	       strchr("+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
		      *cursor->at) != NULL) {
		if (used < WORD_MAX - 1)
			to[used++] = *cursor->at;
		cursor->at++;
	}
	to[used] = '\0';
	if (used == 0)
		cursor->is_bad = true;
}

static int64_t read_number(struct cursor *cursor, int64_t least, int64_t most, int64_t otherwise)
{
	char word[WORD_MAX];
	int64_t number;

	read_word(cursor, word);
	return text_number(word, least, most, &number) == OK ? number : otherwise;
}

static bool read_truth(struct cursor *cursor)
{
	char word[WORD_MAX];

	read_word(cursor, word);
	return strcmp(word, "true") == 0;
}

static void skip_value(struct cursor *cursor)
{
	char word[WORD_MAX];
	int depth = 0;

	do {
		switch (look(cursor)) {
		case '{':
		case '[':
			cursor->at++;
			cursor->is_bad |= ++depth > DEPTH_MAX;
			break;
		case '}':
		case ']':
			cursor->at++;
			cursor->is_bad |= --depth < 0;
			break;
		case '"':
			read_string(cursor, word);
			break;
		default:
			read_word(cursor, word);
			break;
		}
	} while (depth > 0 && !cursor->is_bad);
}

/* The next key of the object; false: it ended. */
static bool next_key(struct cursor *cursor, char key[static WORD_MAX])
{
	if (cursor->status != OK || cursor->is_bad || take(cursor, '}'))
		return false;
	read_string(cursor, key);
	return !cursor->is_bad;
}

/* Is there another element in the array? */
static bool next_item(struct cursor *cursor)
{
	return cursor->status == OK && !take(cursor, ']') && !cursor->is_bad;
}

static bool begin(struct cursor *cursor, char byte)
{
	if (take(cursor, byte))
		return true;
	cursor->is_bad = true;
	return false;
}

static void read_rank_state(struct cursor *cursor, struct ras_rank *rank)
{
	char key[WORD_MAX];
	int32_t code;

	if (!begin(cursor, '{'))
		return;
	while (next_key(cursor, key)) {
		if (strcmp(key, "async_error") == 0 || strcmp(key, "init_state") == 0) {
			code = (int32_t)read_number(cursor, 0, 1000, 0);
			/* 7: in progress */
			if (code != 0 && code != 7)
				rank->error = code;
		} else if (strcmp(key, "abort_flag") == 0) {
			rank->is_aborted = read_truth(cursor);
		} else if (strcmp(key, "unresponsive") == 0) {
			rank->is_missing = read_truth(cursor);
		} else if (strcmp(key, "considered_dead") == 0) {
			rank->is_gone = read_truth(cursor);
		} else {
			skip_value(cursor);
		}
	}
}

static void read_counts(struct cursor *cursor, struct ras_status *status, struct ras_rank *rank)
{
	char key[WORD_MAX];

	if (!begin(cursor, '{'))
		return;
	while (next_key(cursor, key)) {
		int64_t count = read_number(cursor, 0, INT64_MAX, -1);
		int index = function_index(status, key);

		if (index >= 0)
			rank->counts[index] = count;
	}
}

static void read_rank(struct cursor *cursor, struct ras_status *status)
{
	struct ras_rank rank = blank_rank(status);
	char key[WORD_MAX], host[WORD_MAX];

	if (!begin(cursor, '{'))
		return;
	while (next_key(cursor, key)) {
		if (strcmp(key, "rank") == 0) {
			rank.rank = (int32_t)read_number(cursor, 0, INT32_MAX, -1);
		} else if (strcmp(key, "pid") == 0) {
			rank.pid = read_number(cursor, 1, INT32_MAX, -1);
		} else if (strcmp(key, "host") == 0 && look(cursor) == '"') {
			read_string(cursor, host);
			text_copy(rank.host, sizeof(rank.host), host);
		} else if (strcmp(key, "status") == 0) {
			read_rank_state(cursor, &rank);
		} else if (strcmp(key, "collective_counts") == 0) {
			read_counts(cursor, status, &rank);
		} else {
			skip_value(cursor);
		}
	}
	if (!cursor->is_bad && rank.rank >= 0)
		cursor->status = add_rank(status, &rank);
}

static void read_comm(struct cursor *cursor, struct ras_status *status)
{
	char key[WORD_MAX], word[WORD_MAX];

	if (!begin(cursor, '{'))
		return;
	cursor->status = add_comm(status, 0);
	while (next_key(cursor, key)) {
		struct ras_comm *comm = &status->comms[status->comm_count - 1];

		if (strcmp(key, "hash") == 0 && look(cursor) == '"') {
			read_string(cursor, word);
			comm->hash = strtoull(word, NULL, 16);
		} else if (strcmp(key, "size") == 0) {
			comm->size = (int32_t)read_number(cursor, 1, INT32_MAX, -1);
		} else if ((strcmp(key, "ranks") == 0 || strcmp(key, "missing_ranks") == 0) &&
			   look(cursor) == '[') {
			cursor->at++;
			while (next_item(cursor))
				read_rank(cursor, status);
		} else {
			skip_value(cursor);
		}
	}
}

static enum status read_json(struct ras_status *status, const char *text, size_t length)
{
	struct cursor cursor = { .at = text, .end = text + length };
	bool has_comms = false;
	char key[WORD_MAX], word[WORD_MAX];

	status->is_json = true;
	if (!begin(&cursor, '{'))
		return ERR_FORMAT;
	while (next_key(&cursor, key)) {
		if (strcmp(key, "nccl_version") == 0 && look(&cursor) == '"') {
			read_string(&cursor, word);
			text_copy(status->version, sizeof(status->version), word);
		} else if (strcmp(key, "communicators") == 0 && look(&cursor) == '[') {
			has_comms = true;
			cursor.at++;
			while (next_item(&cursor))
				read_comm(&cursor, status);
		} else {
			skip_value(&cursor);
		}
	}
	if (cursor.status == ERR_RANGE)
		return OK; /* the rest is left out, and is_cut says so */
	if (cursor.status != OK)
		return cursor.status;
	return cursor.is_bad || !has_comms ? ERR_FORMAT : OK;
}

/* ---- text -------------------------------------------------------------------------------------- */

enum section { SECTION_NONE, SECTION_MISSING, SECTION_ERROR, SECTION_COUNTS };

enum { DEAD_MAX = 64 };

struct lines {
	struct ras_status *status;
	enum section section;
	int function;  /* whose counts differ */
	int64_t count; /* of the ranks that follow; -1: they have their own */
	int32_t error; /* of the ranks that follow */
	bool is_dead;  /* the processes that follow are dead, not just silent */
	int64_t dead[DEAD_MAX];
	size_t dead_count;
	bool has_comms, has_warnings; /* headings: the answer is whole */
};

static const char *after(const char *line, const char *literal)
{
	const char *at = strstr(line, literal);

	return at != NULL ? at + strlen(literal) : NULL;
}

static int64_t number_after(const char *line, const char *literal)
{
	const char *at = after(line, literal);
	char *end;
	long long number = at != NULL ? strtoll(at, &end, 10) : -1;

	return at != NULL && end != at && number >= 0 ? number : -1;
}

static int32_t error_named(const char *line)
{
	static const struct {
		const char *text;
		int32_t error;
	} names[] = {
		{ "Unhandled CUDA error", 1 }, { "System error", 2 },
		{ "Internal error", 3 },       { "Invalid argument", 4 },
		{ "Invalid usage", 5 },	       { "Remote process error", 6 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		if (strstr(line, names[i].text) != NULL)
			return names[i].error;
	return INT32_MAX;
}

static bool is_dead(const struct lines *lines, int64_t pid)
{
	for (size_t i = 0; i < lines->dead_count; i++)
		if (lines->dead[i] == pid)
			return true;
	return false;
}

/* "  Rank 1 has launched up to operation 10 -- GPU 0 managed by process 3633 on node 127.0.0.1" */
static enum status take_rank_line(struct lines *lines, const char *line)
{
	int64_t number = number_after(line, "  Rank "), count, pid;
	const char *host = after(line, "on node ");
	struct ras_rank rank;

	if (number < 0 || number > INT32_MAX || lines->status->comm_count == 0)
		return OK;
	rank = blank_rank(lines->status);
	rank.rank = (int32_t)number;
	pid = number_after(line, "process ");
	rank.pid = pid > 0 && pid <= INT32_MAX ? pid : -1;
	if (host != NULL)
		text_format(rank.host, sizeof(rank.host), "%.*s", (int)strcspn(host, " "), host);
	if (lines->section == SECTION_MISSING) {
		rank.is_missing = true;
		rank.is_gone = is_dead(lines, rank.pid);
	} else if (lines->section == SECTION_ERROR) {
		rank.error = strstr(line, " reported ") != NULL ? error_named(line) : lines->error;
	} else if (lines->section == SECTION_COUNTS && lines->function >= 0) {
		count = number_after(line, "up to operation ");
		if (strstr(line, "not launched any") != NULL)
			count = 0;
		rank.counts[lines->function] = count >= 0 ? count : lines->count;
	}
	return add_rank(lines->status, &rank);
}

/* "#0-0 (1302323d034ea535) MISMATCH": a communicator has one such line for each of its problems. */
static enum status take_comm_line(struct lines *lines, const char *line)
{
	const char *at = strchr(line, '(');
	char *end;
	uint64_t hash = at != NULL ? strtoull(at + 1, &end, 16) : 0;
	enum status code;

	if (at == NULL || *end != ')')
		return OK;
	lines->section = strstr(end, "INCOMPLETE") != NULL ? SECTION_MISSING
			 : strstr(end, "ERROR") != NULL	   ? SECTION_ERROR
							   : SECTION_COUNTS;
	lines->function = -1;
	lines->count = -1;
	lines->error = INT32_MAX;
	code = add_comm(lines->status, hash);
	if (code == ERR_RANGE)
		lines->section = SECTION_NONE; /* its ranks would be another one's */
	return code == ERR_RANGE ? OK : code;
}

static void take_sentence(struct lines *lines, const char *line)
{
	const char *at = after(line, "have different ");
	char name[24];

	if (at != NULL && strstr(at, " operation counts") != NULL) {
		text_format(name, sizeof(name), "%.*s", (int)strcspn(at, " "), at);
		lines->function = function_index(lines->status, name);
	} else if (strstr(line, "ranks have launched up to operation ") != NULL) {
		lines->count = number_after(line, "up to operation ");
		if (lines->section == SECTION_COUNTS)
			raise_highest(&lines->status->comms[lines->status->comm_count - 1],
				      lines->function, lines->count);
	} else if (strstr(line, "ranks have not launched any") != NULL) {
		lines->count = 0;
	} else if (strstr(line, "ranks reported ") != NULL) {
		lines->error = error_named(line);
	}
}

/* "  Process 1911 on node 127.0.0.1 managing GPU 0": its ranks are listed with their communicators. */
static void take_process_line(struct lines *lines, const char *line)
{
	int64_t pid = number_after(line, "  Process ");

	if (lines->is_dead && pid > 0 && lines->dead_count < DEAD_MAX)
		lines->dead[lines->dead_count++] = pid;
}

static enum status take_text_line(struct lines *lines, const char *line)
{
	const char *version = after(line, "NCCL version ");

	if (version != NULL && lines->status->version[0] == '\0')
		text_format(lines->status->version, sizeof(lines->status->version), "%.*s",
			    (int)strcspn(version, " "), version);
	lines->has_comms |= strncmp(line, "Communicators", 13) == 0;
	lines->has_warnings |= strncmp(line, "Warnings", 8) == 0;
	if (strcmp(line, "DEAD") == 0 || strcmp(line, "INCOMPLETE") == 0)
		lines->is_dead = line[0] == 'D';
	if (line[0] == '#')
		return take_comm_line(lines, line);
	if (strncmp(line, "  Rank ", 7) == 0 && lines->section != SECTION_NONE)
		return take_rank_line(lines, line);
	if (strncmp(line, "  Process ", 10) == 0)
		take_process_line(lines, line);
	else if (line[0] == ' ')
		take_sentence(lines, line);
	return OK;
}

static enum status read_text(struct ras_status *status, const char *text, size_t length)
{
	struct lines lines = { .status = status, .function = -1, .count = -1 };
	enum status code = OK;
	char line[512];

	for (const char *at = text, *end = text + length; at < end && code == OK;) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t whole = (size_t)((stop != NULL ? stop : end) - at), used = 0;

		for (; used < whole && used < sizeof(line) - 1; used++)
			line[used] =
				(unsigned char)at[used] < 0x20 || (unsigned char)at[used] >= 0x7f
					? '?'
					: at[used];
		line[used] = '\0';
		code = take_text_line(&lines, line);
		at += whole + 1;
	}
	if (code != OK)
		return code;
	return status->version[0] != '\0' && lines.has_comms && lines.has_warnings ? OK
										   : ERR_FORMAT;
}

enum status ras_status_read(struct ras_status *status, const char *text, size_t length)
{
	size_t blank = 0;

	while (blank < length && (text[blank] == ' ' || text[blank] == '\n'))
		blank++;
	if (blank < length && text[blank] == '{')
		return read_json(status, text + blank, length - blank);
	return read_text(status, text, length);
}
