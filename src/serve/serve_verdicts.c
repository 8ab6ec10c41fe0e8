/* Reports each verdict once when it appears and once when it clears: in the log and to the hook. */
#include "serve/serve.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"
#include "output/json.h"
#include "output/verdict_show.h"

#define SERVE_VERDICT_QUIET_NS UINT64_C(10000000000)

enum { LINE = 300, STEP = 1000 }; /* maximum length of a part of a log line; of a command */

void serve_verdicts_release(struct serve_verdicts *verdicts)
{
	for (size_t i = 0; i < verdicts->count; i++)
		verdicts_release(&verdicts->reported[i].as_reported);
	verdicts->count = 0;
}

/* ---- the hook ----------------------------------------------------------------------------- */

static void add_number(struct serve_hook_event *event, const char *name, int64_t number)
{
	if (number >= 0)
		serve_hook_variable(event, name, "%" PRId64, number);
	else
		serve_hook_variable(event, name, "%s", "");
}

static void add_time(struct serve_hook_event *event, const char *name, uint64_t wall_ns)
{
	add_number(event, name, wall_ns > 0 ? (int64_t)(wall_ns / SECOND_NS) : -1);
}

static void add_variables(struct serve_hook_event *event, const struct verdict *verdict)
{
	serve_hook_variable(event, "CLASS", "%s", verdict_class_name(verdict->class));
	serve_hook_variable(event, "SEVERITY", "%s", verdict_severity_name(verdict->severity));
	serve_hook_variable(event, "TITLE", "%s", verdict->title);
	serve_hook_variable(event, "CONFIDENCE", "%s",
			    verdict_confidence_word(verdict->confidence));
	serve_hook_variable(event, "KEY", "0x%016" PRIx64, verdict_key(verdict));
	serve_hook_variable(event, "JOB", "%s", verdict->job);
	add_time(event, "JOB_START", verdict->job_start_wall_ns);
	add_number(event, "RANK", verdict->rank);
	serve_hook_variable(event, "HOST", "%s", verdict->host);
	add_number(event, "PID", verdict->pid);
	add_number(event, "GPU", verdict->gpu);
	add_number(event, "PEER", verdict->peer);
	serve_hook_variable(event, "PEER_HOST", "%s", verdict->peer_host);
	serve_hook_variable(event, "CHANNELS", "%s", verdict->channels);
	serve_hook_variable(event, "COMM", "%s", verdict->comm);
	add_number(event, "COMM_RANK", verdict->comm_rank);
	serve_hook_variable(event, "FUNCTION", "%s", verdict->function);
	serve_hook_variable(event, "PLACE", "%s", verdict->place);
	add_time(event, "SINCE", verdict->since_wall_ns);
}

static void add_input(struct serve_hook_event *event, const char *what,
		      const struct serve_verdict *at, const char *host, uint64_t wall_ns)
{
	struct sink sink;
	struct json json;

	sink_init_memory(&sink);
	json_init(&json, &sink);
	json_object(&json);
	json_put_string(&json, "format", "ringside-event");
	json_put_unsigned(&json, "version", 1);
	json_put_string(&json, "event", what);
	json_put_string(&json, "agent_host", host);
	json_put_unsigned(&json, "time_ms", wall_ns / 1000000);
	json_put_unsigned(&json, "first_ms", at->first_wall_ns / 1000000);
	json_put_known_signed(&json, "job_start_ms", at->as_reported.list[0].job_start_wall_ns > 0,
			      (int64_t)(at->as_reported.list[0].job_start_wall_ns / 1000000));
	json_put_unsigned(&json, "told_ns", at->last_ns - at->first_ns);
	json_key(&json, "verdict");
	verdict_json_one(&json, &at->as_reported.list[0]);
	json_end(&json);
	json_line(&json);
	if (json_status(&json) == OK) {
		event->input = sink.bytes;
		event->input_length = sink.used;
		sink.bytes = NULL;
		sink.used = sink.room = 0;
	} else {
		event->is_lost = true;
	}
	sink_release(&sink);
}

/* A verdict that the hook was called for is also passed on when it clears, or an alert would stay open for ever. */
static bool verdict_call_hook(struct serve_hook *hook, const struct serve_verdict *at, bool is_new,
			      const char *host, uint64_t wall_ns, uint64_t now_ns)
{
	const char *what = is_new ? "appeared" : "cleared";
	struct serve_hook_event event = { .user = at->user };
	const struct verdict *verdict = &at->as_reported.list[0];

	text_format(event.about, sizeof(event.about), "%s: %s", what,
		    verdict_class_name(verdict->class));
	serve_hook_variable(&event, "EVENT", "%s", what);
	add_variables(&event, verdict);
	add_input(&event, what, at, host, wall_ns);
	return serve_hook_give(hook, &event, is_new, now_ns);
}

/* Over the rate limit: a later scan tries again. A hang that another node explains is reported by that node. */
static void call_hook_when_due(struct serve_verdict *at, const struct serve_verdicts_to *to,
			       uint64_t wall_ns, uint64_t now_ns)
{
	if (!at->is_due || to->hook == NULL || to->hook->command == NULL ||
	    at->as_reported.count == 0 || at->as_reported.list[0].class == VERDICT_ELSEWHERE)
		return;
	if (serve_hook_has_turn(to->hook, at->user, now_ns)) {
		at->is_due = !verdict_call_hook(to->hook, at, true, to->host, wall_ns, now_ns);
		at->is_hook_called |= !at->is_due;
	} else if (!at->is_late) {
		at->is_late = true;
		to->hook->left_out++;
	}
}

/* Processes in containers have two numbers; verdicts have the one that is valid on this host, if known. */
static bool is_process(const struct verdict *verdict, const struct recording_process *process)
{
	return verdict->pid >= 0 && verdict->pid == recording_pid(process) &&
	       strcmp(verdict->host, process->host) == 0;
}

/* The user of the culprit process, else of a process of its job. */
static uint64_t user_of(const struct verdict *verdict, const struct watch *watch)
{
	uint64_t user = watch ? 0 : hash_bytes(verdict->job, strlen(verdict->job));

	for (size_t i = 0; watch && i < watch->recording.count; i++) {
		const struct recording_process *process = watch->recording.processes[i];
		bool is_its_job = strcmp(verdict->job, process->job) == 0;
		bool is_meant = is_its_job && is_process(verdict, process);

		if (is_meant || (user == 0 && is_its_job))
			user = (uint64_t)watch->processes[i].file.owner + 1;
		if (is_meant)
			break;
	}
	return user;
}

/* ---- the log ---------------------------------------------------------------------------------- */

static const char *since_text(char text[static 40], uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / SECOND_NS);
	struct tm parts;

	text[0] = '\0';
	if (wall_ns > 0 && gmtime_r(&seconds, &parts))
		strftime(text, 40, "since %Y-%m-%dT%H:%M:%SZ, ", &parts);
	return text;
}

/* The first line without its full stop: more text follows on the same line. */
static const char *first_of(const struct verdict_lines *lines, char text[static LINE])
{
	size_t length;

	text_copy(text, LINE, lines->count > 0 ? lines->list[0] : "");
	length = strlen(text);
	if (length > 0 && text[length - 1] == '.')
		text[length - 1] = '\0';
	return text;
}

/* Prefers a command over text. */
static const char *next_step(const struct verdict *verdict, char text[static STEP])
{
	for (size_t i = 0; i < verdict->advice.count; i++)
		if (strncmp(verdict->advice.list[i], "$ ", 2) == 0) {
			text_copy(text, STEP, verdict->advice.list[i] + 2);
			return text;
		}
	return first_of(&verdict->advice, text);
}

/* Title, start, confidence, place in the program, first line of evidence, caveat and next step in one line. */
static void log_new(const struct verdict *verdict)
{
	char seen[LINE], missing[LINE], next[STEP], since[40], job[160] = "";

	if (verdict->job[0] != '\0')
		text_format(job, sizeof(job), "job %s, ", verdict->job);
	first_of(&verdict->evidence, seen);
	first_of(&verdict->missing, missing);
	next_step(verdict, next);
	serve_log(verdict->severity == VERDICT_ERROR ? SERVE_ERROR : SERVE_WARNING,
		  "%s: %s; %s%sconfidence %s%s%s%s%s%s%s%s%s", verdict_class_name(verdict->class),
		  verdict->title, job, since_text(since, verdict->since_wall_ns),
		  verdict_confidence_percent(verdict->confidence).text,
		  verdict->place[0] ? "; place: " : "", verdict->place,
		  seen[0] ? "; evidence: " : "", seen, missing[0] ? "; caveat: " : "", missing,
		  next[0] ? "; next step: " : "", next);
}

static void log_cleared(const struct serve_verdict *at)
{
	const struct verdict *verdict = &at->as_reported.list[0];

	if (at->as_reported.count > 0)
		serve_log(SERVE_NOTICE, "cleared after %" PRIu64 " s: %s: %s",
			  (at->last_ns - at->first_ns) / SECOND_NS,
			  verdict_class_name(verdict->class), verdict->title);
}

/* ---- scan by scan ------------------------------------------------------------------------ */

static struct serve_verdict *verdict_find(struct serve_verdicts *verdicts, uint64_t key)
{
	for (size_t i = 0; i < verdicts->count; i++)
		if (verdicts->reported[i].key == key)
			return &verdicts->reported[i];
	return NULL;
}

static bool is_room(struct serve_verdicts *verdicts, uint64_t user)
{
	size_t of_user = 0;

	for (size_t i = 0; i < verdicts->count; i++)
		of_user += verdicts->reported[i].user == user;
	if (verdicts->count < SERVE_VERDICTS_MAX && of_user < SERVE_VERDICTS_OF_USER)
		return true;
	if (!verdicts->is_full)
		serve_log(SERVE_WARNING, "more than %d verdicts%s: further ones are not logged",
			  of_user < SERVE_VERDICTS_OF_USER ? SERVE_VERDICTS_MAX
							   : SERVE_VERDICTS_OF_USER,
			  of_user < SERVE_VERDICTS_OF_USER ? "" : " about the jobs of one user");
	verdicts->is_full = true;
	return false;
}

static void verdict_clear(struct serve_verdict *at, const struct serve_verdicts_to *to,
			  uint64_t wall_ns, uint64_t now_ns)
{
	log_cleared(at);
	if (at->is_hook_called)
		verdict_call_hook(to->hook, at, false, to->host, wall_ns, now_ns);
	verdicts_release(&at->as_reported);
}

static void verdict_seen(struct serve_verdicts *verdicts, const struct verdict *verdict,
			 const struct serve_verdicts_to *to, uint64_t wall_ns, uint64_t now_ns)
{
	uint64_t key = verdict_key(verdict);
	struct serve_verdict *at = verdict_find(verdicts, key);

	/* The same rank in a new run of the job. A run from before the clock was set back seems to start in the future. */
	if (at != NULL && verdict->job_start_wall_ns > at->first_wall_ns &&
	    verdict->job_start_wall_ns != at->job_start_wall_ns) {
		verdict_clear(at, to, wall_ns, now_ns);
		*at = verdicts->reported[--verdicts->count];
		at = NULL;
	}

	if (at == NULL) {
		uint64_t user = user_of(verdict, to->watch);

		if (!is_room(verdicts, user))
			return;
		at = &verdicts->reported[verdicts->count++];
		*at = (struct serve_verdict){
			.key = key,
			.first_ns = now_ns,
			.first_wall_ns = wall_ns,
			.job_start_wall_ns = verdict->job_start_wall_ns,
			.user = user,
		};
		verdicts->totals[verdict->class]++;
	}
	at->last_ns = now_ns;
	/* Also when a warning has become an error. */
	if (verdict->severity >= at->report_from &&
	    !(to->is_pending && to->is_pending(to->context, verdict, now_ns))) {
		at->report_from = verdict->severity + 1u;
		verdicts_release(&at->as_reported);
		verdicts_init(&at->as_reported);
		verdicts_add_copy(&at->as_reported, verdict);
		log_new(verdict);
		at->is_due = true;
		at->is_late = false;
	}
	call_hook_when_due(at, to, wall_ns, now_ns);
}

void serve_verdicts_pass(struct serve_verdicts *verdicts, const struct verdicts *active,
			 uint64_t wall_ns, const struct serve_verdicts_to *to, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < active->count; i++)
		verdict_seen(verdicts, &active->list[i], to, wall_ns, now_ns);
	for (size_t i = 0; i < verdicts->count; i++) {
		struct serve_verdict *at = &verdicts->reported[i];

		if (now_ns - at->last_ns < SERVE_VERDICT_QUIET_NS) {
			verdicts->reported[kept++] = *at;
			continue;
		}
		verdict_clear(at, to, wall_ns, now_ns);
	}
	verdicts->is_full = verdicts->is_full && kept >= SERVE_VERDICTS_OF_USER;
	verdicts->count = kept;
}

void serve_verdicts_report(struct serve_verdicts *verdicts, const struct live *live,
			   const struct serve_verdicts_to *to, uint64_t now_ns)
{
	serve_verdicts_pass(verdicts, &live->verdicts, live->wall_ns, to, now_ns);
}
