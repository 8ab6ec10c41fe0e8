/*
 * Logs each notice once when it appears and once when it clears.
 */
#include "agent/agent.h"

#include <inttypes.h>
#include <string.h>

#include "common/clock.h"
#include "common/text.h"

#define AGENT_NOTICE_QUIET_NS UINT64_C(10000000000)

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

static enum serve_level level_of(enum live_notice_kind kind)
{
	return kind == LIVE_HANG || kind == LIVE_MISSING || kind == LIVE_MISMATCH ||
			       kind == LIVE_DEAD
		       ? SERVE_ERROR
		       : SERVE_WARNING;
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
		serve_log(level_of(notice->kind), "%s: %s%s%s%s%s", live_notice_name(notice->kind),
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
		serve_log(SERVE_NOTICE, "cleared after %" PRIu64 " s: %s",
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
