#include "agent/agent.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"
#include "output/json.h"
#include "output/verdict_show.h"

#define AGENT_NOTICE_QUIET_NS UINT64_C(10000000000)

#define AGENT_VERDICT_QUIET_NS UINT64_C(10000000000)

enum { LINE = 300, STEP = 1000 }; /* maximum length of a part of a log line; of a command */

void agent_verdicts_release(struct agent_verdicts *verdicts)
{
	for (size_t i = 0; i < verdicts->count; i++)
		verdicts_release(&verdicts->reported[i].as_reported);
	verdicts->count = 0;
}

/* ---- the hook ----------------------------------------------------------------------------- */

static void add_number(struct agent_hook_event *event, const char *name, int64_t number)
{
	if (number >= 0)
		agent_hook_variable(event, name, "%" PRId64, number);
	else
		agent_hook_variable(event, name, "%s", "");
}

static void add_time(struct agent_hook_event *event, const char *name, uint64_t wall_ns)
{
	add_number(event, name, wall_ns > 0 ? (int64_t)(wall_ns / SECOND_NS) : -1);
}

static void add_variables(struct agent_hook_event *event, const struct verdict *verdict)
{
	agent_hook_variable(event, "CLASS", "%s", verdict_class_name(verdict->class));
	agent_hook_variable(event, "SEVERITY", "%s", verdict_severity_name(verdict->severity));
	agent_hook_variable(event, "TITLE", "%s", verdict->title);
	agent_hook_variable(event, "CONFIDENCE", "%s",
			    verdict_confidence_word(verdict->confidence));
	agent_hook_variable(event, "KEY", "0x%016" PRIx64, verdict_key(verdict));
	agent_hook_variable(event, "JOB", "%s", verdict->job);
	add_time(event, "JOB_START", verdict->job_start_wall_ns);
	add_number(event, "RANK", verdict->rank);
	agent_hook_variable(event, "HOST", "%s", verdict->host);
	add_number(event, "PID", verdict->pid);
	add_number(event, "GPU", verdict->gpu);
	add_number(event, "PEER", verdict->peer);
	agent_hook_variable(event, "PEER_HOST", "%s", verdict->peer_host);
	agent_hook_variable(event, "CHANNELS", "%s", verdict->channels);
	agent_hook_variable(event, "COMM", "%s", verdict->comm);
	add_number(event, "COMM_RANK", verdict->comm_rank);
	agent_hook_variable(event, "FUNCTION", "%s", verdict->function);
	agent_hook_variable(event, "PLACE", "%s", verdict->place);
	add_time(event, "SINCE", verdict->since_wall_ns);
}

static void add_input(struct agent_hook_event *event, const char *what,
		      const struct agent_verdict *at, const char *host, uint64_t wall_ns)
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
static bool verdict_call_hook(struct agent_hook *hook, const struct agent_verdict *at, bool is_new,
			      const char *host, uint64_t wall_ns, uint64_t now_ns)
{
	const char *what = is_new ? "appeared" : "cleared";
	struct agent_hook_event event = { .user = at->user };
	const struct verdict *verdict = &at->as_reported.list[0];

	text_format(event.about, sizeof(event.about), "%s: %s", what,
		    verdict_class_name(verdict->class));
	agent_hook_variable(&event, "EVENT", "%s", what);
	add_variables(&event, verdict);
	add_input(&event, what, at, host, wall_ns);
	return agent_hook_give(hook, &event, is_new, now_ns);
}

/* Over the rate limit: a later scan tries again. A hang that another node explains is reported by that node. */
static void call_hook_when_due(struct agent_verdict *at, const struct agent_verdicts_to *to,
			       uint64_t wall_ns, uint64_t now_ns)
{
	if (!at->is_due || to->hook == NULL || to->hook->command == NULL ||
	    at->as_reported.count == 0 || at->as_reported.list[0].class == VERDICT_ELSEWHERE)
		return;
	if (agent_hook_has_turn(to->hook, at->user, now_ns)) {
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
	agent_log(verdict->severity == VERDICT_ERROR ? AGENT_ERROR : AGENT_WARNING,
		  "%s: %s; %s%sconfidence %s%s%s%s%s%s%s%s%s", verdict_class_name(verdict->class),
		  verdict->title, job, since_text(since, verdict->since_wall_ns),
		  verdict_confidence_percent(verdict->confidence).text,
		  verdict->place[0] ? "; place: " : "", verdict->place,
		  seen[0] ? "; evidence: " : "", seen, missing[0] ? "; caveat: " : "", missing,
		  next[0] ? "; next step: " : "", next);
}

static void log_cleared(const struct agent_verdict *at)
{
	const struct verdict *verdict = &at->as_reported.list[0];

	if (at->as_reported.count > 0)
		agent_log(AGENT_NOTICE, "cleared after %" PRIu64 " s: %s: %s",
			  (at->last_ns - at->first_ns) / SECOND_NS,
			  verdict_class_name(verdict->class), verdict->title);
}

/* ---- scan by scan ------------------------------------------------------------------------ */

static struct agent_verdict *verdict_find(struct agent_verdicts *verdicts, uint64_t key)
{
	for (size_t i = 0; i < verdicts->count; i++)
		if (verdicts->reported[i].key == key)
			return &verdicts->reported[i];
	return NULL;
}

static bool is_room(struct agent_verdicts *verdicts, uint64_t user)
{
	size_t of_user = 0;

	for (size_t i = 0; i < verdicts->count; i++)
		of_user += verdicts->reported[i].user == user;
	if (verdicts->count < AGENT_VERDICTS_MAX && of_user < AGENT_VERDICTS_OF_USER)
		return true;
	if (!verdicts->is_full)
		agent_log(AGENT_WARNING, "more than %d verdicts%s: further ones are not logged",
			  of_user < AGENT_VERDICTS_OF_USER ? AGENT_VERDICTS_MAX
							   : AGENT_VERDICTS_OF_USER,
			  of_user < AGENT_VERDICTS_OF_USER ? "" : " about the jobs of one user");
	verdicts->is_full = true;
	return false;
}

static void verdict_clear(struct agent_verdict *at, const struct agent_verdicts_to *to,
			  uint64_t wall_ns, uint64_t now_ns)
{
	log_cleared(at);
	if (at->is_hook_called)
		verdict_call_hook(to->hook, at, false, to->host, wall_ns, now_ns);
	verdicts_release(&at->as_reported);
}

static void verdict_seen(struct agent_verdicts *verdicts, const struct verdict *verdict,
			 const struct agent_verdicts_to *to, uint64_t wall_ns, uint64_t now_ns)
{
	uint64_t key = verdict_key(verdict);
	struct agent_verdict *at = verdict_find(verdicts, key);

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
		*at = (struct agent_verdict){
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
	    !agent_probe_is_pending(to->probe, verdict, now_ns)) {
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

void agent_verdicts_pass(struct agent_verdicts *verdicts, const struct verdicts *active,
			 uint64_t wall_ns, const struct agent_verdicts_to *to, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < active->count; i++)
		verdict_seen(verdicts, &active->list[i], to, wall_ns, now_ns);
	for (size_t i = 0; i < verdicts->count; i++) {
		struct agent_verdict *at = &verdicts->reported[i];

		if (now_ns - at->last_ns < AGENT_VERDICT_QUIET_NS) {
			verdicts->reported[kept++] = *at;
			continue;
		}
		verdict_clear(at, to, wall_ns, now_ns);
	}
	verdicts->is_full = verdicts->is_full && kept >= AGENT_VERDICTS_OF_USER;
	verdicts->count = kept;
}

void agent_verdicts_report(struct agent_verdicts *verdicts, const struct live *live,
			   const struct agent_verdicts_to *to, uint64_t now_ns)
{
	agent_verdicts_pass(verdicts, &live->verdicts, live->wall_ns, to, now_ns);
}

/* Whether a verdict reports the same problem as a notice of this kind. Labels of ranks are unique within a job
 * only. */
static bool is_reported(const struct live *live, enum live_notice_kind kind, const char *job,
			const char *comm, const char *rank)
{
	for (size_t i = 0; i < live->verdicts.count; i++) {
		const struct verdict *verdict = &live->verdicts.list[i];
		bool is_rank = rank[0] != '\0' && strcmp(verdict->rank_label, rank) == 0;

		if (strcmp(verdict->job, job) != 0)
			continue;
		if (kind == LIVE_BEHIND && verdict_is_hang(verdict->class) && comm[0] != '\0' &&
		    strcmp(verdict->comm, comm) == 0)
			return true;
		if (kind == LIVE_DEAD && verdict->class == VERDICT_PROCESS_DEAD && is_rank)
			return true;
		if (kind == LIVE_STRAGGLER && verdict_is_slow(verdict->class) && is_rank)
			return true;
	}
	return false;
}

static const char *notice_job(const struct live *live, const struct live_notice *notice)
{
	const struct job *job = &live->job;
	uint32_t group = UINT32_MAX;

	if (notice->comm < job->comm_count)
		group = job->comms[notice->comm].group;
	else if (notice->seat < job->seat_count)
		group = job->ranks[job->seats[notice->seat].rank].group;
	return group < job->group_count ? job->groups[group].name : "";
}

static const char *notice_comm(const struct live *live, const struct live_notice *notice)
{
	const struct job *job = &live->job;

	return notice->comm < job->comm_count ? job->comms[notice->comm].label : "";
}

static const char *notice_rank(const struct live *live, const struct live_notice *notice)
{
	const struct job *job = &live->job;
	const struct job_seat *seat =
		notice->seat < job->seat_count ? &job->seats[notice->seat] : NULL;

	return seat && seat->rank < job->rank_count ? job->ranks[seat->rank].label : "";
}

/* Notices of hangs, mismatches and slowness always come from a verdict. A late rank and a death may be noticed
 * before there is one. */
static bool agent_verdicts_covers(const struct live *live, const struct live_notice *notice)
{
	return notice->kind == LIVE_HANG || notice->kind == LIVE_MISSING ||
	       notice->kind == LIVE_MISMATCH || notice->kind == LIVE_SLOW ||
	       is_reported(live, notice->kind, notice_job(live, notice), notice_comm(live, notice),
			   notice_rank(live, notice));
}

/* Titles contain counts that change from scan to scan, so they cannot identify a notice. */
static void notice_key(const struct live *live, const struct live_notice *notice, char *key,
		       size_t size)
{
	text_format(key, size, "%d %s %s %s", (int)notice->kind, notice_job(live, notice),
		    notice_comm(live, notice), notice_rank(live, notice));
}

static enum agent_level level_of(enum live_notice_kind kind)
{
	return kind == LIVE_HANG || kind == LIVE_MISSING || kind == LIVE_MISMATCH ||
			       kind == LIVE_DEAD
		       ? AGENT_ERROR
		       : AGENT_WARNING;
}

static void notice_seen(struct agent_notices *notices, const struct live *live,
			const struct live_notice *notice, uint64_t now_ns)
{
	struct agent_notice *at;
	char key[sizeof(at->key)];

	notice_key(live, notice, key, sizeof(key));
	for (at = notices->reported; at < notices->reported + notices->count; at++)
		if (strcmp(at->key, key) == 0)
			break;
	if (at == notices->reported + LIVE_NOTICES_MAX)
		return;
	if (at == notices->reported + notices->count) {
		notices->count++;
		*at = (struct agent_notice){ .kind = notice->kind, .first_ns = now_ns };
		text_copy(at->key, sizeof(at->key), key);
		text_copy(at->job, sizeof(at->job), notice_job(live, notice));
		text_copy(at->comm, sizeof(at->comm), notice_comm(live, notice));
		text_copy(at->rank, sizeof(at->rank), notice_rank(live, notice));
		agent_log(level_of(notice->kind), "%s: %s%s%s%s%s", live_notice_name(notice->kind),
			  notice->title, notice->text[0] ? "; " : "", notice->text,
			  notice->hint[0] ? "; next step: " : "", notice->hint);
	}
	text_copy(at->title, sizeof(at->title), notice->title);
	at->last_ns = now_ns;
	at->is_replaced = false;
}

/* A notice that became a verdict has not cleared: the verdict has its own line. A death never clears. */
static void notice_clear(const struct agent_notice *at)
{
	if (!at->is_replaced && at->kind != LIVE_DEAD)
		agent_log(AGENT_NOTICE, "cleared after %" PRIu64 " s: %s",
			  (at->last_ns - at->first_ns) / SECOND_NS, at->title);
}

void agent_notices_report(struct agent_notices *notices, const struct live *live, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < live->notice_count; i++)
		if (!agent_verdicts_covers(live, &live->notices[i]))
			notice_seen(notices, live, &live->notices[i], now_ns);
	for (size_t i = 0; i < notices->count; i++) {
		struct agent_notice *at = &notices->reported[i];

		at->is_replaced |= is_reported(live, at->kind, at->job, at->comm, at->rank);
		if (now_ns - at->last_ns < AGENT_NOTICE_QUIET_NS)
			notices->reported[kept++] = *at;
		else
			notice_clear(at);
	}
	notices->count = kept;
}
