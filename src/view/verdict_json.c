#include "view/verdict_json.h"

#include "common/text.h"

/* ---- one verdict ----------------------------------------------------------------------------- */

static void put_text(struct json *json, const char *key, const char *text)
{
	json_put_string(json, key, text[0] ? text : NULL);
}

static void put_number(struct json *json, const char *key, int64_t number)
{
	if (number < 0)
		json_put_null(json, key);
	else
		json_put_signed(json, key, number);
}

static void put_figure(struct json *json, const char *key, double figure)
{
	if (figure > 0)
		json_put_double(json, key, figure);
	else
		json_put_null(json, key);
}

static void put_lines(struct json *json, const char *key, const struct verdict_lines *lines)
{
	json_put_array(json, key);
	for (size_t i = 0; i < lines->count; i++)
		json_string(json, lines->list[i]);
	json_end(json);
}

static void put_moment(struct json *json, const char *key, const char *key_ns, uint64_t wall_ns)
{
	char text[UNITS_TEXT];

	json_put_string(json, key, wall_ns > 0 ? units_wall_time(text, wall_ns) : NULL);
	if (wall_ns > 0)
		json_put_unsigned(json, key_ns, wall_ns);
	else
		json_put_null(json, key_ns);
}

static void put_who(struct json *json, const struct verdict *verdict)
{
	put_text(json, "job", verdict->job);
	put_number(json, "rank", verdict->rank);
	put_text(json, "rank_label", verdict->rank_label);
	put_text(json, "host", verdict->host);
	put_number(json, "pid", verdict->pid);
	put_number(json, "gpu", verdict->gpu);
	put_number(json, "peer", verdict->peer);
	put_text(json, "peer_label", verdict->peer_label);
	put_text(json, "peer_host", verdict->peer_host);
	put_number(json, "channel", verdict->channel);
	put_text(json, "channels", verdict->channels);
	put_text(json, "communicator", verdict->comm);
	if (verdict->comm_hash != 0)
		json_put_hex(json, "communicator_hash", verdict->comm_hash);
	else
		json_put_null(json, "communicator_hash");
	put_number(json, "communicator_rank", verdict->comm_rank);
	if (verdict->function[0] == '\0' && verdict->number == 0) {
		json_put_null(json, "operation");
		return;
	}
	json_put_object(json, "operation");
	put_text(json, "function", verdict->function);
	if (verdict->number > 0)
		json_put_unsigned(json, "number", verdict->number);
	else
		json_put_null(json, "number");
	json_end(json);
}

void verdict_json_one(struct json *json, const struct verdict *verdict)
{
	json_object(json);
	json_put_string(json, "class", verdict_class_name(verdict->class));
	json_put_string(json, "severity", verdict_severity_name(verdict->severity));
	json_put_string(json, "title", verdict->title);
	json_put_double(json, "confidence", verdict->confidence);
	json_put_string(json, "confidence_word", verdict_confidence_word(verdict->confidence));
	json_put_hex(json, "key", verdict_key(verdict));
	put_who(json, verdict);
	put_moment(json, "since", "since_ns", verdict->since_wall_ns);
	put_figure(json, "seconds", (double)verdict->for_ns / 1e9);
	json_put_unsigned(json, "victims", verdict->victims);
	put_figure(json, "gpu_hours", verdict->gpu_hours);
	put_figure(json, "money", verdict->money);
	put_figure(json, "percent", verdict->percent);
	put_text(json, "rule", verdict->rule);
	put_lines(json, "evidence", &verdict->evidence);
	put_lines(json, "missing", &verdict->missing);
	put_lines(json, "advice", &verdict->advice);
	put_text(json, "page", verdict->page);
	json_end(json);
}

/* ---- the document ---------------------------------------------------------------------------- */

/* Nothing is recorded: nobody counted. */
static void put_scene(struct json *json, const struct scene *scene)
{
	put_text(json, "job", scene ? scene->job : "");
	put_number(json, "jobs", scene ? (int64_t)scene->jobs : -1);
	put_number(json, "processes", scene ? (int64_t)scene->processes : -1);
	put_number(json, "processes_alive", scene ? (int64_t)scene->alive : -1);
	put_number(json, "processes_ended", scene ? (int64_t)scene->ended : -1);
	put_number(json, "processes_killed", scene ? (int64_t)scene->killed : -1);
	put_number(json, "ranks", scene ? (int64_t)scene->ranks : -1);
	put_number(json, "ranks_missing", scene ? (int64_t)scene->missing : -1);
	put_number(json, "hosts", scene ? (int64_t)scene->hosts : -1);
	put_number(json, "communicators", scene ? (int64_t)scene->communicators : -1);
	put_number(json, "communicators_standing", scene ? (int64_t)scene->standing : -1);
	put_number(json, "operations", scene ? (int64_t)scene->operations : -1);
	if (scene == NULL || scene->last_ns == UINT64_MAX)
		json_put_null(json, "last_operation_seconds");
	else
		json_put_double(json, "last_operation_seconds", (double)scene->last_ns / 1e9);
}

static void put_look(struct json *json, const struct verdict_look *look)
{
	json_put_object(json, "looked_at");
	json_put_string(json, "source", look->source);
	json_put_unsigned(json, "sources", look->sources);
	json_put_unsigned(json, "sources_silent", look->silent);
	json_put_double(json, "hang_seconds", (double)look->hang_ns / 1e9);
	json_put_unsigned(json, "log_files", look->log_files);
	json_put_unsigned(json, "log_lines", look->log_lines);
	put_scene(json, look->scene);
	json_end(json);
}

/* What could not be judged, and why: the verdicts of class blind that say so, in short. */
static void put_unjudged(struct json *json, const struct verdicts *verdicts)
{
	json_put_array(json, "not_judged");
	for (size_t i = 0; i < verdicts->count; i++) {
		const struct verdict *verdict = &verdicts->list[i];

		if (!verdict->is_unjudged)
			continue;
		json_object(json);
		put_text(json, "aspect", verdict->rule);
		put_text(json, "job", verdict->job);
		put_text(json, "communicator", verdict->comm);
		json_put_string(json, "reason", verdict->title);
		put_lines(json, "advice", &verdict->advice);
		json_end(json);
	}
	json_end(json);
}

void verdict_json_open(struct json *json, const struct verdicts *verdicts,
		       const struct verdict_look *look)
{
	json_object(json);
	json_put_string(json, "format", "ringside-doctor");
	json_put_unsigned(json, "version", 1);
	put_moment(json, "time", "time_ns", look->wall_ns);
	json_put_bool(json, "is_healthy", scene_is_healthy(look->scene, verdicts));
	put_look(json, look);
	json_put_array(json, "verdicts");
	for (size_t i = 0; i < verdicts->count; i++)
		verdict_json_one(json, &verdicts->list[i]);
	json_end(json);
	json_put_unsigned(json, "verdicts_left_out", verdicts->left_out);
	put_unjudged(json, verdicts);
}

void verdict_json(struct json *json, const struct verdicts *verdicts,
		  const struct verdict_look *look)
{
	verdict_json_open(json, verdicts, look);
	json_end(json);
}
