#include "programs/agent/agent_notices.h"

#include <inttypes.h>
#include <string.h>

#include "common/text.h"
#include "programs/agent/agent_log.h"
#include "programs/agent/agent_verdicts.h"

/* Titles count and so change from look to look: what a notice is about does not. */
static void make_key(const struct live *live, const struct live_notice *notice, char *key,
		     size_t size)
{
	const struct job *job = &live->job;
	const struct job_comm *comm =
		notice->comm < job->comm_count ? &job->comms[notice->comm] : NULL;
	const struct job_seat *seat =
		notice->seat < job->seat_count ? &job->seats[notice->seat] : NULL;
	const char *group =
		comm && comm->group < job->group_count ? job->groups[comm->group].name : "";

	text_format(key, size, "%d %s %s %s", (int)notice->kind, group, comm ? comm->label : "",
		    seat && seat->rank < job->rank_count ? job->ranks[seat->rank].label : "");
}

static enum agent_level level_of(enum live_notice_kind kind)
{
	return kind == LIVE_HANG || kind == LIVE_MISSING || kind == LIVE_MISMATCH ||
			       kind == LIVE_DEAD
		       ? AGENT_ERROR
		       : AGENT_WARNING;
}

static void see(struct agent_notices *notices, const struct live *live,
		const struct live_notice *notice, uint64_t now_ns)
{
	struct agent_notice *at;
	char key[sizeof(at->key)];

	make_key(live, notice, key, sizeof(key));
	for (at = notices->told; at < notices->told + notices->count; at++)
		if (strcmp(at->key, key) == 0)
			break;
	if (at == notices->told + LIVE_NOTICES_MAX)
		return;
	if (at == notices->told + notices->count) {
		notices->count++;
		*at = (struct agent_notice){ .first_ns = now_ns };
		text_copy(at->key, sizeof(at->key), key);
		agent_log(level_of(notice->kind), "%s: %s%s%s%s%s", live_notice_name(notice->kind),
			  notice->title, notice->text[0] ? "; " : "", notice->text,
			  notice->hint[0] ? "; try: " : "", notice->hint);
	}
	text_copy(at->title, sizeof(at->title), notice->title);
	at->last_ns = now_ns;
}

void agent_notices_tell(struct agent_notices *notices, const struct live *live, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < live->notice_count; i++)
		if (!agent_verdicts_covers(live, &live->notices[i]))
			see(notices, live, &live->notices[i], now_ns);
	for (size_t i = 0; i < notices->count; i++) {
		struct agent_notice *at = &notices->told[i];

		if (now_ns - at->last_ns < AGENT_NOTICE_QUIET_NS)
			notices->told[kept++] = *at;
		else
			agent_log(AGENT_NOTICE, "over after %" PRIu64 " s: %s",
				  (at->last_ns - at->first_ns) / 1000000000, at->title);
	}
	notices->count = kept;
}
