#include "doctor/agent_notes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "foreign/json_scan.h"

enum { WORDS = 200 };

/* ---- lists ----------------------------------------------------------------------------------- */

/* A zeroed place at the end of a list that grows by doubling; NULL: no memory. */
static void *add_place(void **list, size_t *count, size_t bytes)
{
	bool is_full = (*count & (*count - 1)) == 0;
	char *more = *list;

	if (is_full)
		more = realloc(*list, (*count > 0 ? *count * 2 : 1) * bytes);
	if (more == NULL)
		return NULL;
	*list = more;
	return memset(more + (*count)++ * bytes, 0, bytes);
}

static enum status add_gap(struct agent_notes *notes, const char *host, bool is_warning,
			   const char *text)
{
	struct agent_gap *gap;

	if (notes->gap_count >= AGENT_NOTES_GAPS_MAX) {
		notes->gaps_left_out++;
		return OK;
	}
	gap = add_place((void **)&notes->gaps, &notes->gap_count, sizeof(*gap));
	if (gap == NULL)
		return ERR_NO_SPACE;
	text_from_field(gap->host, sizeof(gap->host), host, sizeof(gap->host));
	text_from_field(gap->text, sizeof(gap->text), text, sizeof(gap->text));
	gap->is_warning = is_warning;
	return OK;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Of another kind: as if it were not there. Errors of the text stay in the scan. */
static void take_number(struct json_scan *scan, uint64_t *to)
{
	enum json_scan_token token = json_scan_next(scan);

	if (token == JSON_SCAN_OBJECT || token == JSON_SCAN_ARRAY)
		json_scan_skip(scan);
	else
		json_scan_unsigned(scan, to);
}

static void take_truth(struct json_scan *scan, bool *to)
{
	enum json_scan_token token = json_scan_next(scan);

	*to = token == JSON_SCAN_TRUE;
	if (token == JSON_SCAN_OBJECT || token == JSON_SCAN_ARRAY)
		json_scan_skip(scan);
}

static void take_text(struct json_scan *scan, char *to, size_t size)
{
	enum json_scan_token token = json_scan_next(scan);

	if (token == JSON_SCAN_OBJECT || token == JSON_SCAN_ARRAY)
		json_scan_skip(scan);
	else if (token == JSON_SCAN_STRING)
		json_scan_text(scan, to, size);
}

/* Each object of an array; what else is in there is passed over. False: it is over. */
static bool next_object(struct json_scan *scan)
{
	enum json_scan_token token;

	while ((token = json_scan_next(scan)) > JSON_SCAN_END && token != JSON_SCAN_ARRAY_END) {
		if (token == JSON_SCAN_OBJECT)
			return true;
		if (token == JSON_SCAN_ARRAY)
			json_scan_skip(scan);
	}
	return false;
}

static bool begins_array(struct json_scan *scan)
{
	enum json_scan_token token = json_scan_next(scan);

	if (token == JSON_SCAN_OBJECT)
		json_scan_skip(scan);
	return token == JSON_SCAN_ARRAY;
}

/* ---- agent.json ------------------------------------------------------------------------------ */

enum agent_key {
	KEY_HOST,
	KEY_IS_FAILING,
	KEY_PROCESSES,
	KEY_LEFT_OUT,
	KEY_IS_TIME_UP,
	KEY_REFUSED,
	KEY_REFUSED_COUNT,
	KEY_UNREADABLE,
	KEY_NOT_FOLLOWED,
	KEYS,
};

static const struct json_scan_key keys[KEYS] = {
	[KEY_HOST] = JSON_SCAN_KEY_OF("host"),
	[KEY_IS_FAILING] = JSON_SCAN_KEY_OF("is_failing"),
	[KEY_PROCESSES] = JSON_SCAN_KEY_OF("processes"),
	[KEY_LEFT_OUT] = JSON_SCAN_KEY_OF("processes_left_out"),
	[KEY_IS_TIME_UP] = JSON_SCAN_KEY_OF("is_time_up"),
	[KEY_REFUSED] = JSON_SCAN_KEY_OF("refused_files"),
	[KEY_REFUSED_COUNT] = JSON_SCAN_KEY_OF("refused_files_count"),
	[KEY_UNREADABLE] = JSON_SCAN_KEY_OF("unreadable_files"),
	[KEY_NOT_FOLLOWED] = JSON_SCAN_KEY_OF("processes_not_followed"),
};

struct agent {
	char host[128];
	bool is_failing;
	bool is_time_up;
	uint64_t left_out, refused, unreadable, not_followed;
	char why_left_out[WORDS]; /* of the first */
	char refused_path[WORDS];
	char why_refused[WORDS];
};

/* The first text of each of two keys, in the objects of an array. */
static void take_reasons(struct json_scan *scan, const struct json_scan_key wanted[2], char *first,
			 char *second)
{
	char unused[8];

	if (!begins_array(scan))
		return;
	while (next_object(scan)) {
		bool is_known = first[0] != '\0';
		int key, hint = 0;

		while ((key = json_scan_next_key(scan, wanted, 2, &hint)) >=
		       JSON_SCAN_KEY_UNKNOWN) {
			if (key == JSON_SCAN_KEY_UNKNOWN)
				json_scan_skip(scan);
			else if (is_known)
				take_text(scan, unused, sizeof(unused));
			else
				take_text(scan, key == 0 ? first : second, WORDS);
		}
	}
}

static void take_value(struct json_scan *scan, int key, struct agent *agent)
{
	static const struct json_scan_key of_process[2] = { JSON_SCAN_KEY_OF("left_out"),
							    JSON_SCAN_KEY_OF("-") };
	static const struct json_scan_key of_refused[2] = { JSON_SCAN_KEY_OF("path"),
							    JSON_SCAN_KEY_OF("why") };
	char unused[WORDS] = "";

	switch (key) {
	case KEY_HOST:
		take_text(scan, agent->host, sizeof(agent->host));
		return;
	case KEY_IS_FAILING:
		take_truth(scan, &agent->is_failing);
		return;
	case KEY_IS_TIME_UP:
		take_truth(scan, &agent->is_time_up);
		return;
	case KEY_PROCESSES:
		take_reasons(scan, of_process, agent->why_left_out, unused);
		return;
	case KEY_REFUSED:
		take_reasons(scan, of_refused, agent->refused_path, agent->why_refused);
		return;
	case KEY_LEFT_OUT:
		take_number(scan, &agent->left_out);
		return;
	case KEY_REFUSED_COUNT:
		take_number(scan, &agent->refused);
		return;
	case KEY_UNREADABLE:
		take_number(scan, &agent->unreadable);
		return;
	case KEY_NOT_FOLLOWED:
		take_number(scan, &agent->not_followed);
		return;
	default:
		json_scan_skip(scan);
	}
}

static enum status tell_processes(struct agent_notes *notes, const struct agent *agent)
{
	enum status status = OK;
	char text[400];

	if (agent->left_out > 0) {
		text_format(text, sizeof(text), "%" PRIu64 " %s not in its answer%s%s",
			    agent->left_out,
			    text_which(agent->left_out, "process is", "processes are"),
			    agent->why_left_out[0] ? ": " : "", agent->why_left_out);
		status = add_gap(notes, agent->host, true, text);
	}
	if (agent->not_followed > 0 && status == OK) {
		text_format(text, sizeof(text),
			    "%" PRIu64 " %s beyond its limits, and not followed",
			    agent->not_followed,
			    text_which(agent->not_followed, "process is", "processes are"));
		status = add_gap(notes, agent->host, true, text);
	}
	return status;
}

static enum status tell_files(struct agent_notes *notes, const struct agent *agent)
{
	enum status status = OK;
	char text[400];

	if (agent->refused > 0) {
		text_format(text, sizeof(text), "%" PRIu64 " %s not be followed%s%.150s%s%.150s",
			    agent->refused, text_which(agent->refused, "file can", "files can"),
			    agent->refused_path[0] ? ": " : "", agent->refused_path,
			    agent->why_refused[0] ? ": " : "", agent->why_refused);
		status = add_gap(notes, agent->host, true, text);
	}
	if (agent->unreadable > 0 && status == OK) {
		text_format(text, sizeof(text), "%" PRIu64 " %s that it may not read",
			    agent->unreadable,
			    text_which(agent->unreadable, "file is there", "files are there"));
		/* Other users' files: of a machine that jobs share there are always some. */
		status = add_gap(notes, agent->host, false, text);
	}
	return status;
}

static enum status tell_agent(struct agent_notes *notes, const struct agent *agent)
{
	enum status status = tell_processes(notes, agent);

	if (status == OK)
		status = tell_files(notes, agent);
	if (agent->is_failing && status == OK)
		status = add_gap(notes, agent->host, true,
				 "its last look failed: what it says may be old");
	if (agent->is_time_up && status == OK)
		status = add_gap(notes, agent->host, false,
				 "its time was up: the last processes are as its last look saw "
				 "them, without finished operations");
	return status;
}

/* The name for people when it says none: where the note was found. */
static void name_agent(struct agent *agent, const char *path)
{
	const char *slash = strrchr(path, '/');

	text_format(agent->host, sizeof(agent->host), "%.*s",
		    slash ? (int)(slash - path) : (int)strlen(path), path);
}

/* ---- agents.json ----------------------------------------------------------------------------- */

static enum status take_agents(struct json_scan *scan, struct agent_notes *notes)
{
	static const struct json_scan_key wanted[2] = { JSON_SCAN_KEY_OF("name"),
							JSON_SCAN_KEY_OF("problem") };
	struct agent_asked *agent;

	if (!begins_array(scan))
		return OK;
	while (next_object(scan)) {
		char name[sizeof(agent->name)] = "", problem[sizeof(agent->problem)] = "";
		int key, hint = 0;

		while ((key = json_scan_next_key(scan, wanted, 2, &hint)) >=
		       JSON_SCAN_KEY_UNKNOWN) {
			if (key == JSON_SCAN_KEY_UNKNOWN)
				json_scan_skip(scan);
			else
				take_text(scan, key == 0 ? name : problem,
					  key == 0 ? sizeof(name) : sizeof(problem));
		}
		if (notes->agent_count >= AGENT_NOTES_AGENTS_MAX)
			continue;
		agent = add_place((void **)&notes->agents, &notes->agent_count, sizeof(*agent));
		if (agent == NULL)
			return ERR_NO_SPACE;
		text_from_field(agent->name, sizeof(agent->name), name, sizeof(name));
		text_from_field(agent->problem, sizeof(agent->problem), problem, sizeof(problem));
	}
	return OK;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static enum status read_note(struct agent_notes *notes, const struct recording_note *note)
{
	static const struct json_scan_key agents = JSON_SCAN_KEY_OF("agents");
	const char *slash = strrchr(note->path, '/');
	bool is_bundle = strcmp(slash ? slash + 1 : note->path, "agents.json") == 0;
	struct agent agent = { .is_failing = false };
	enum status status = OK;
	struct json_scan scan;
	char text[400];
	int key, hint = 0;

	name_agent(&agent, note->path);
	json_scan_init(&scan, note->text, note->length);
	if (json_scan_next(&scan) != JSON_SCAN_OBJECT)
		return add_gap(notes, agent.host, true, "its note about what it left out is none");
	while (status == OK &&
	       (key = json_scan_next_key(&scan, is_bundle ? &agents : keys, is_bundle ? 1 : KEYS,
					 &hint)) >= JSON_SCAN_KEY_UNKNOWN) {
		if (is_bundle && key == 0)
			status = take_agents(&scan, notes);
		else
			take_value(&scan, is_bundle ? KEYS : key, &agent);
	}
	if (status == OK && scan.problem != NULL) {
		text_format(text, sizeof(text), "its note about what it left out is damaged: %s",
			    scan.problem);
		status = add_gap(notes, agent.host, true, text);
	}
	if (agent.host[0] == '\0')
		name_agent(&agent, note->path);
	return status == OK ? tell_agent(notes, &agent) : status;
}

enum status agent_notes_read(struct agent_notes *notes, const struct recording *recording)
{
	enum status status = OK;

	*notes = (struct agent_notes){ .gaps = NULL };
	for (size_t i = 0; i < recording->note_count && status == OK; i++)
		status = read_note(notes, &recording->notes[i]);
	return status;
}

void agent_notes_release(struct agent_notes *notes)
{
	free(notes->gaps);
	free(notes->agents);
	*notes = (struct agent_notes){ .gaps = NULL };
}
