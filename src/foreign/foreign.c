#include "foreign/foreign.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "foreign/foreign_parts.h"

const char *foreign_format_name(enum foreign_format format)
{
	switch (format) {
	case FOREIGN_INSPECTOR:
		return "NCCL Inspector's log";
	case FOREIGN_COMMA:
		return "CoMMA's latency file";
	case FOREIGN_COMMA_SUMMARY:
		return "CoMMA's summary";
	case FOREIGN_NCCL_TESTS:
		return "nccl-tests' output";
	case FOREIGN_NCCL_TESTS_JSON:
		return "nccl-tests' JSON";
	case FOREIGN_EXPECTED:
		return "a table of expected bandwidth";
	case FOREIGN_NONE:
		break;
	}
	return "something unknown";
}

bool foreign_has_operations(enum foreign_format format)
{
	return format == FOREIGN_INSPECTOR || format == FOREIGN_COMMA;
}

/* ---- which is it? ---------------------------------------------------------------------------- */

#define KEY JSON_SCAN_KEY_OF

enum probe_key {
	PROBE_HEADER,
	PROBE_METADATA,
	PROBE_COLL,
	PROBE_P2P,
	PROBE_STATS,
	PROBE_PROXY,
	PROBE_PH,
	PROBE_CAT,
	PROBE_FORMAT,
	PROBE_KEYS,
};

/* A whole object on a line: which one could only be one of ours? */
static enum foreign_format probe_object(const char *text, size_t length)
{
	static const struct json_scan_key keys[PROBE_KEYS] = {
		[PROBE_HEADER] = KEY("header"),
		[PROBE_METADATA] = KEY("metadata"),
		[PROBE_COLL] = KEY("coll_perf"),
		[PROBE_P2P] = KEY("p2p_perf"),
		[PROBE_STATS] = KEY("dump_stats"),
		[PROBE_PROXY] = KEY("proxy_trace"),
		[PROBE_PH] = KEY("ph"),
		[PROBE_CAT] = KEY("cat"),
		[PROBE_FORMAT] = KEY("format"),
	};
	unsigned int has = 0;
	bool is_comma = false;
	struct json_scan scan;
	int key, hint = 0;

	json_scan_init(&scan, text, length);
	if (json_scan_next(&scan) != JSON_SCAN_OBJECT)
		return FOREIGN_NONE;
	while ((key = json_scan_next_key(&scan, keys, PROBE_KEYS, &hint)) >=
	       JSON_SCAN_KEY_UNKNOWN) {
		if (key >= 0)
			has |= 1u << key;
		if (key != PROBE_CAT && key != PROBE_FORMAT) {
			if (!json_scan_skip(&scan))
				return FOREIGN_NONE;
			continue;
		}
		json_scan_next(&scan);
		is_comma |= json_scan_is(&scan, "COLL") || json_scan_is(&scan, "P2P") ||
			    json_scan_is(&scan, "PROXY") || json_scan_is(&scan, "GROUP");
		if (key == PROBE_FORMAT && (json_scan_is(&scan, "ringside-expected") ||
					    json_scan_is(&scan, "ringside-bench") ||
					    json_scan_is(&scan, "ringside-health") ||
					    json_scan_is(&scan, "ringside-crossover")))
			return FOREIGN_EXPECTED;
	}
	if (scan.problem != NULL)
		return FOREIGN_NONE;
	if (has & (1u << PROBE_COLL | 1u << PROBE_P2P | 1u << PROBE_STATS | 1u << PROBE_PROXY))
		return FOREIGN_INSPECTOR;
	return (has & 1u << PROBE_PH) != 0 && is_comma ? FOREIGN_COMMA : FOREIGN_NONE;
}

static bool has(const char *text, size_t length, const char *what)
{
	return memmem(text, length, what, strlen(what)) != NULL;
}

/* What is written over several lines: by words that nothing else has. */
static enum foreign_format probe_text(const char *text, size_t length)
{
	size_t at = 0;

	while (at < length &&
	       (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t'))
		at++;
	if (at < length && text[at] == '{') {
		if (has(text, length, "\"ringside-expected\"") ||
		    has(text, length, "\"ringside-bench\"") ||
		    has(text, length, "\"ringside-health\"") ||
		    has(text, length, "\"ringside-crossover\""))
			return FOREIGN_EXPECTED;
		if (has(text, length, "\"message_sizes\"") ||
		    has(text, length, "\"latency_distribution\"") ||
		    has(text, length, "\"collective_counts\""))
			return FOREIGN_COMMA_SUMMARY;
		if (has(text, length, "\"start_time\"") && has(text, length, "\"args\"") &&
		    has(text, length, "\"version\""))
			return FOREIGN_NCCL_TESTS_JSON;
	}
	if (has(text, length, "# nThread ") || has(text, length, "# Collective test starting:") ||
	    (has(text, length, "algbw") && has(text, length, "busbw") &&
	     has(text, length, "#wrong")))
		return FOREIGN_NCCL_TESTS;
	return FOREIGN_NONE;
}

enum foreign_format foreign_probe(const char *text, size_t length)
{
	enum foreign_format format = FOREIGN_NONE;
	size_t at = 0;

	/* A few lines may be damaged, or not JSON at all; the last may be cut. */
	for (int lines = 0; lines < 64 && at < length && format == FOREIGN_NONE; lines++) {
		const char *newline = memchr(text + at, '\n', length - at);
		size_t end = newline != NULL ? (size_t)(newline - text) : length;

		format = probe_object(text + at, end - at);
		at = end + 1;
	}
	return format != FOREIGN_NONE ? format : probe_text(text, length);
}

enum foreign_format foreign_probe_fd(int fd)
{
	enum foreign_format format = FOREIGN_NONE;
	char *text = malloc(FOREIGN_PROBE_BYTES);
	size_t got;

	if (text != NULL && foreign_lines_peek(fd, text, FOREIGN_PROBE_BYTES, &got) == OK)
		format = foreign_probe(text, got);
	free(text);
	return format;
}

/* ---- reading --------------------------------------------------------------------------------- */

void foreign_damage_note(struct foreign_reading *reading, const struct foreign_damage *damage)
{
	reading->log->damaged++;
	if (damage->is_cut)
		reading->log->is_cut = true;
	if (reading->request->visit_damage != NULL)
		reading->request->visit_damage(damage, reading->request->context);
}

void foreign_damage_line(struct foreign_reading *reading)
{
	const struct foreign_line *line = &reading->line;

	/* Out of memory is no damage: it ends the reading. */
	if (reading->status != OK)
		return;
	foreign_damage_note(
		reading, &(struct foreign_damage){
				 .line = line->number,
				 .offset = line->offset,
				 .bytes = line->length + line->is_ended,
				 .is_cut = !line->is_ended,
				 .what = line->is_ended ? reading->problem : "the last line is cut",
			 });
}

/* Why there are no more lines, when it is not the end of the file. */
static enum status note_early_end(struct foreign_reading *reading,
				  const struct foreign_lines *lines)
{
	struct foreign_damage damage = { .offset = lines->read_at };

	switch (lines->status) {
	case OK:
		return OK;
	case ERR_TRUNCATED:
		damage.is_cut = true;
		damage.what = "its gzip ends too early";
		break;
	case ERR_FORMAT:
		damage.what = "its gzip is damaged, the rest cannot be read";
		break;
	default:
		return lines->status;
	}
	foreign_damage_note(reading, &damage);
	return OK;
}

static enum status read_lines(struct foreign_reading *reading, struct foreign_lines *lines)
{
	if (reading->log->format == FOREIGN_INSPECTOR)
		foreign_read_inspector(reading, lines);
	else
		foreign_read_comma(reading, lines);
	if (reading->status == OK && !reading->is_over)
		reading->status = note_early_end(reading, lines);
	reading->log->bytes = lines->read_at;
	return reading->status;
}

enum status foreign_read(struct foreign_log *log, int fd, const struct foreign_request *request)
{
	struct foreign_reading *reading = calloc(1, sizeof(*reading));
	uint64_t limit = request->limit_bytes != 0 ? request->limit_bytes : UINT64_MAX;
	struct foreign_lines lines;
	enum status status;

	if (reading == NULL)
		return ERR_NO_SPACE;
	log->format = foreign_probe_fd(fd);
	if (!foreign_has_operations(log->format)) {
		free(reading);
		return ERR_UNKNOWN;
	}
	reading->log = log;
	reading->request = request;
	reading->details.is_wanted = request->visit_detail != NULL;
	status = foreign_lines_init(&lines, fd, limit);
	if (status == OK)
		status = read_lines(reading, &lines);
	foreign_lines_release(&lines);
	free(reading->details.list);
	free(reading);
	free(log->comm_index);
	log->comm_index = NULL;
	log->comm_index_size = 0;
	return status;
}
