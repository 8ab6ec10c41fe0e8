/*
 * The file is cut into values while it is read: the brackets and quotes of each value are followed byte by byte, its
 * text is kept if it is short enough, and json_scan.h, which is strict, reads it from there. So memory is bounded by the
 * longest value that is kept, however long the file is.
 */
#include "import/kineto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "common/attributes.h"
#include "common/file.h"
#include "common/text.h"
#include "import/json_scan.h"

enum { CHUNK = 1 << 16, NO_BYTE = -1, DEPTH_MAX = JSON_SCAN_DEPTH_MAX };

struct reader {
	kineto_more *more;
	void *source;
	struct kineto_about *about;
	kineto_visit *visit;
	void *context;
	char *chunk;
	size_t at;
	size_t length;
	uint64_t passed; /* bytes before the chunk */
	/* The last value; `used` bytes of it. */
	char *text;
	size_t used;
	size_t room;
	bool is_long; /* it did not fit */
	enum status status;
};

static int fail(struct reader *reader, enum status status, const char *problem)
{
	if (reader->status == OK) {
		reader->status = status;
		reader->about->problem = problem;
		reader->about->offset = reader->passed + reader->at;
	}
	return NO_BYTE;
}

static COLD bool refill(struct reader *reader)
{
	long got;

	if (reader->status != OK)
		return false;
	reader->passed += reader->length;
	reader->at = reader->length = 0;
	got = reader->more(reader->source, reader->chunk, CHUNK);
	if (got < 0)
		reader->status = ERR_SYSTEM;
	else
		reader->length = (size_t)got;
	return got > 0;
}

/* The next byte, which stays; NO_BYTE at the end or after a failure. */
static inline int peek(struct reader *reader)
{
	if (reader->at == reader->length && !refill(reader))
		return NO_BYTE;
	return (unsigned char)reader->chunk[reader->at];
}

static int peek_after_blanks(struct reader *reader)
{
	int byte = peek(reader);

	while (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r') {
		reader->at++;
		byte = peek(reader);
	}
	return byte;
}

static void keep(struct reader *reader, const char *from, size_t length)
{
	if (reader->is_long || length == 0)
		return;
	if (reader->used + length > KINETO_EVENT_MAX) {
		reader->is_long = true;
		return;
	}
	if (reader->used + length > reader->room) {
		size_t room = reader->room ? reader->room * 2 : 4096;
		char *text;

		while (room < reader->used + length)
			room *= 2;
		text = realloc(reader->text, room);
		if (text == NULL) {
			reader->status = ERR_NO_SPACE;
			return;
		}
		reader->text = text;
		reader->room = room;
	}
	memcpy(reader->text + reader->used, from, length);
	reader->used += length;
}

/* Where a value is: inside how many brackets, in a string, after a backslash. */
struct cut {
	unsigned int depth;
	bool is_string;
	bool is_escape;
};

/* Follows a value through a part of the file. Returns how much of it belongs to the value; *is_over: it ends there. */
static size_t cut_value(struct cut *cut, const char *from, size_t length, bool *is_over)
{
	size_t at = 0;

	*is_over = false;
	for (; at < length; at++) {
		char byte = from[at];

		if (cut->is_string) {
			if (cut->is_escape)
				cut->is_escape = false;
			else if (byte == '\\')
				cut->is_escape = true;
			else if (byte == '"')
				cut->is_string = false;
			if (cut->is_string || cut->depth > 0)
				continue;
			*is_over = true;
			return at + 1;
		}
		switch (byte) {
		case '"':
			cut->is_string = true;
			break;
		case '{':
		case '[':
			cut->depth++;
			break;
		case '}':
		case ']':
			*is_over = cut->depth <= 1;
			/* The bracket that closes what a bare value is in is not part of it. */
			if (cut->depth == 0)
				return at;
			cut->depth--;
			if (*is_over)
				return at + 1;
			break;
		case ',':
		case ':':
		case ' ':
		case '\t':
		case '\n':
		case '\r':
			if (cut->depth > 0)
				break;
			*is_over = true;
			return at;
		default:
			break;
		}
		if (cut->depth > DEPTH_MAX)
			break;
	}
	return at;
}

/* The next value, whole; false: there is none. */
static bool read_value(struct reader *reader)
{
	struct cut cut = { .depth = 0 };
	bool is_over = false;

	reader->used = 0;
	reader->is_long = false;
	if (peek_after_blanks(reader) == NO_BYTE) {
		fail(reader, ERR_TRUNCATED, "the file ends too early");
		return false;
	}
	while (!is_over && reader->status == OK) {
		size_t length;

		if (peek(reader) == NO_BYTE) {
			fail(reader, ERR_TRUNCATED, "the file ends too early");
			break;
		}
		length = cut_value(&cut, reader->chunk + reader->at, reader->length - reader->at,
				   &is_over);
		keep(reader, reader->chunk + reader->at, length);
		reader->at += length;
		if (cut.depth > DEPTH_MAX)
			fail(reader, ERR_FORMAT, "too many brackets");
	}
	if (reader->status == OK && reader->used == 0 && !reader->is_long)
		fail(reader, ERR_FORMAT, "a value is missing");
	return reader->status == OK;
}

/* ---- events ---------------------------------------------------------------------------------- */

static enum kineto_kind kind_of(const char *category)
{
	static const struct {
		const char *name;
		enum kineto_kind kind;
	} kinds[] = {
		{ "cpu_op", KINETO_CPU_OP },
		{ "user_annotation", KINETO_ANNOTATION },
		{ "cuda_runtime", KINETO_RUNTIME },
		{ "cuda_driver", KINETO_RUNTIME },
		{ "kernel", KINETO_KERNEL },
		{ "Kernel", KINETO_KERNEL }, /* PyTorch 1 */
		{ "gpu_memcpy", KINETO_MEMCPY },
		{ "Memcpy", KINETO_MEMCPY },
		{ "gpu_memset", KINETO_MEMSET },
		{ "Memset", KINETO_MEMSET },
		{ "gpu_user_annotation", KINETO_GPU_ANNOTATION },
		{ "cuda_sync", KINETO_SYNC },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
		if (strcmp(kinds[i].name, category) == 0)
			return kinds[i].kind;
	return KINETO_OTHER;
}

static enum kineto_phase phase_of(const char *text)
{
	if (text[0] == '\0' || text[1] != '\0')
		return KINETO_UNKNOWN;
	switch (text[0]) {
	case 'X':
		return KINETO_SLICE;
	case 'i':
	case 'I':
		return KINETO_INSTANT;
	case 'M':
		return KINETO_METADATA;
	default:
		return KINETO_UNKNOWN;
	}
}

/* The value of the last key, if it is a whole number. */
static bool read_number(struct json_scan *scan, int64_t *number)
{
	enum json_scan_token token = json_scan_next(scan);

	if (token == JSON_SCAN_NUMBER)
		return json_scan_signed(scan, number);
	if (token == JSON_SCAN_OBJECT || token == JSON_SCAN_ARRAY)
		json_scan_skip(scan);
	return false;
}

static bool read_microseconds(struct json_scan *scan, uint64_t *ns)
{
	enum json_scan_token token = json_scan_next(scan);

	if (token == JSON_SCAN_NUMBER)
		return json_scan_thousandths(scan, ns) && *ns < INT64_MAX;
	if (token == JSON_SCAN_OBJECT || token == JSON_SCAN_ARRAY)
		json_scan_skip(scan);
	return false;
}

static void read_args(struct json_scan *scan, struct kineto_event *event)
{
	char name[KINETO_GROUP_NAME] = "";
	const char *start;

	if (json_scan_next(scan) != JSON_SCAN_OBJECT) {
		if (scan->token == JSON_SCAN_ARRAY)
			json_scan_skip(scan);
		return;
	}
	start = scan->at - 1;
	while (json_scan_next(scan) == JSON_SCAN_KEY) {
		if (json_scan_is(scan, "correlation"))
			json_scan_read_unsigned(scan, &event->correlation);
		else if (json_scan_is(scan, "name"))
			json_scan_read_text(scan, event->label, sizeof(event->label));
		else if (json_scan_is(scan, "Process Group Description"))
			json_scan_read_text(scan, event->group, sizeof(event->group));
		else if (json_scan_is(scan, "Process Group Name"))
			json_scan_read_text(scan, name, sizeof(name));
		else
			json_scan_skip(scan);
	}
	/* PyTorch's word for a group without a description. */
	if (event->group[0] == '\0' || strcmp(event->group, "undefined") == 0)
		text_copy(event->group, sizeof(event->group), name);
	event->args = start;
	event->args_length = (size_t)(scan->at - start);
}

/* False: not usable. */
static bool read_event(const char *text, size_t length, struct kineto_event *event)
{
	bool has_start = false, has_duration = false, has_pid = false, has_tid = false;
	struct json_scan scan;
	char phase[8] = "";

	json_scan_init(&scan, text, length);
	if (json_scan_next(&scan) != JSON_SCAN_OBJECT)
		return false;
	while (json_scan_next(&scan) == JSON_SCAN_KEY) {
		if (json_scan_is(&scan, "ph"))
			json_scan_read_text(&scan, phase, sizeof(phase));
		else if (json_scan_is(&scan, "cat"))
			json_scan_read_text(&scan, event->category, sizeof(event->category));
		else if (json_scan_is(&scan, "name"))
			json_scan_read_text(&scan, event->name, sizeof(event->name));
		else if (json_scan_is(&scan, "pid"))
			has_pid = read_number(&scan, &event->pid);
		else if (json_scan_is(&scan, "tid"))
			has_tid = read_number(&scan, &event->tid);
		else if (json_scan_is(&scan, "ts"))
			has_start = read_microseconds(&scan, &event->start_ns);
		else if (json_scan_is(&scan, "dur"))
			has_duration = read_microseconds(&scan, &event->duration_ns);
		else if (json_scan_is(&scan, "args"))
			read_args(&scan, event);
		else
			json_scan_skip(&scan);
	}
	if (scan.token != JSON_SCAN_OBJECT_END || json_scan_next(&scan) != JSON_SCAN_END)
		return false;
	event->phase = phase_of(phase);
	event->kind = kind_of(event->category);
	event->has_place = has_pid && has_tid;
	event->is_nccl = event->kind == KINETO_KERNEL && strncmp(event->name, "nccl", 4) == 0;
	if (event->phase == KINETO_SLICE)
		return has_start && has_duration &&
		       event->start_ns + event->duration_ns < INT64_MAX;
	return event->phase != KINETO_INSTANT || has_start;
}

static bool take_event(struct reader *reader)
{
	struct kineto_event event = { .phase = KINETO_UNKNOWN };

	reader->about->events++;
	if (reader->is_long) {
		reader->about->too_long++;
		return true;
	}
	if (!read_event(reader->text, reader->used, &event)) {
		reader->about->unusable++;
		return true;
	}
	if (reader->visit(&event, reader->context))
		return true;
	reader->status = ERR_GONE;
	return false;
}

/* Behind the bracket of an array of events. */
static bool read_events(struct reader *reader)
{
	if (peek_after_blanks(reader) == ']') {
		reader->at++;
		return true;
	}
	while (read_value(reader) && take_event(reader)) {
		int byte = peek_after_blanks(reader);

		if (byte != ',' && byte != ']') {
			fail(reader, byte == NO_BYTE ? ERR_TRUNCATED : ERR_FORMAT,
			     byte == NO_BYTE ? "the file ends too early"
					     : "no comma between two events");
			return false;
		}
		reader->at++;
		if (byte == ']')
			return true;
	}
	return false;
}

/* ---- the rest of the file -------------------------------------------------------------------- */

static void read_distributed(struct json_scan *scan, struct kineto_about *about)
{
	if (json_scan_next(scan) != JSON_SCAN_OBJECT)
		return;
	while (json_scan_next(scan) == JSON_SCAN_KEY) {
		int64_t number;

		if (json_scan_is(scan, "rank")) {
			if (read_number(scan, &number) && number >= 0)
				about->rank = number;
		} else if (json_scan_is(scan, "world_size")) {
			if (read_number(scan, &number) && number > 0)
				about->world_size = number;
		} else {
			json_scan_skip(scan);
		}
	}
}

static void take_value(struct reader *reader, const char *key)
{
	struct json_scan scan;

	if (reader->is_long)
		return;
	json_scan_init(&scan, reader->text, reader->used);
	if (strcmp(key, "distributedInfo") == 0) {
		read_distributed(&scan, reader->about);
	} else if (strcmp(key, "baseTimeNanoseconds") == 0 &&
		   json_scan_next(&scan) == JSON_SCAN_NUMBER) {
		/* A base that does not leave room for the events is none. */
		if (json_scan_unsigned(&scan, &reader->about->base_ns) &&
		    reader->about->base_ns < INT64_MAX)
			reader->about->has_base = true;
		else
			fail(reader, ERR_FORMAT, "baseTimeNanoseconds is not a time");
	}
}

/* A key of the outermost object, and the colon behind it. */
static bool read_key(struct reader *reader, char *key, size_t size)
{
	struct json_scan scan;

	if (!read_value(reader))
		return false;
	json_scan_init(&scan, reader->text, reader->is_long ? 0 : reader->used);
	if (json_scan_next(&scan) != JSON_SCAN_STRING) {
		fail(reader, ERR_FORMAT, "a key is missing");
		return false;
	}
	json_scan_text(&scan, key, size);
	if (peek_after_blanks(reader) != ':') {
		fail(reader, ERR_FORMAT, "no colon after a key");
		return false;
	}
	reader->at++;
	return true;
}

/* Behind the bracket of the outermost object. */
static void read_object(struct reader *reader)
{
	bool has_events = false;
	char key[64];

	if (peek_after_blanks(reader) == '}') {
		fail(reader, ERR_FORMAT, "no traceEvents");
		return;
	}
	while (read_key(reader, key, sizeof(key))) {
		int byte = peek_after_blanks(reader);

		if (strcmp(key, "traceEvents") == 0 && byte == '[') {
			has_events = true;
			reader->at++;
			if (!read_events(reader))
				return;
		} else if (read_value(reader)) {
			take_value(reader, key);
		}
		if (reader->status != OK)
			return;
		byte = peek_after_blanks(reader);
		if (byte == NO_BYTE)
			fail(reader, ERR_TRUNCATED, "the file ends too early");
		else if (byte != ',' && byte != '}')
			fail(reader, ERR_FORMAT, "no comma between two values");
		if (reader->status != OK)
			return;
		reader->at++;
		if (byte == '}')
			break;
	}
	if (reader->status == OK && !has_events)
		fail(reader, ERR_FORMAT, "no traceEvents");
}

enum status kineto_parse(kineto_more *more, void *source, struct kineto_about *about,
			 kineto_visit *visit, void *context)
{
	struct reader reader = {
		.more = more,
		.source = source,
		.about = about,
		.visit = visit,
		.context = context,
		.chunk = malloc(CHUNK),
	};
	int byte;

	*about = (struct kineto_about){ .rank = -1, .world_size = -1 };
	if (reader.chunk == NULL)
		return ERR_NO_SPACE;
	byte = peek_after_blanks(&reader);
	reader.at += byte != NO_BYTE;
	if (byte == '{')
		read_object(&reader);
	else if (byte == '[')
		read_events(&reader);
	else if (byte == NO_BYTE)
		fail(&reader, ERR_TRUNCATED, "the file is empty");
	else
		fail(&reader, ERR_FORMAT, "not a JSON trace");
	if (reader.status == OK && peek_after_blanks(&reader) != NO_BYTE)
		fail(&reader, ERR_FORMAT, "something follows the trace");
	free(reader.text);
	free(reader.chunk);
	return reader.status;
}

static long more_of_file(void *source, char *to, size_t room)
{
	gzFile file = source;
	int got = gzread(file, to, (unsigned int)room), error;

	if (got >= 0)
		return got;
	gzerror(file, &error);
	if (error != Z_ERRNO)
		errno = EBADMSG;
	return -1;
}

enum status kineto_read(const char *path, struct kineto_about *about, kineto_visit *visit,
			void *context)
{
	int fd = file_open(AT_FDCWD, path, true), error;
	enum status status;
	gzFile file;

	*about = (struct kineto_about){ .rank = -1, .world_size = -1 };
	if (fd == -1)
		return ERR_SYSTEM;
	file = gzdopen(fd, "rb");
	if (file == NULL) {
		close(fd);
		return ERR_NO_SPACE;
	}
	gzbuffer(file, CHUNK);
	status = kineto_parse(more_of_file, file, about, visit, context);
	/* A compressed file that was cut ends here, with what could be unpacked. */
	gzerror(file, &error);
	if (status == OK && error == Z_BUF_ERROR) {
		about->problem = "the compressed file ends too early";
		status = ERR_TRUNCATED;
	}
	error = errno;
	gzclose(file);
	errno = error;
	return status;
}
