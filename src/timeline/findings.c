#include "timeline/findings.h"

#include <stdlib.h>

const char *findings_severity_name(enum findings_severity severity)
{
	static const char *const names[] = { "note", "warning", "error" };

	return (unsigned int)severity <= FINDINGS_ERROR ? names[severity] : "note";
}

const char *findings_kind_name(enum findings_kind kind)
{
	static const char *const names[FINDINGS_KINDS] = {
		[FINDINGS_NOTHING_RECORDED] = "nothing_recorded",
		[FINDINGS_HUNG] = "hung",
		[FINDINGS_MISMATCH] = "mismatch",
		[FINDINGS_SLOW_RANK] = "slow_rank",
		[FINDINGS_SLOW_HOST] = "slow_host",
		[FINDINGS_SLOW_LINK] = "slow_link",
		[FINDINGS_NETWORK] = "network",
		[FINDINGS_CHANGE] = "change",
		[FINDINGS_KILLED] = "killed",
		[FINDINGS_LOST] = "lost",
		[FINDINGS_INCOMPLETE] = "incomplete",
		[FINDINGS_RANKS_MISSING] = "ranks_missing",
		[FINDINGS_UNTRUSTED] = "untrusted_stamps",
		[FINDINGS_UNTIMED] = "untimed",
		[FINDINGS_MIXED_SOURCES] = "mixed_sources",
		[FINDINGS_SMALL_MESSAGES] = "small_messages",
		[FINDINGS_WAITING] = "waiting",
		[FINDINGS_UNALIGNED] = "unaligned",
		[FINDINGS_SEVERAL_JOBS] = "several_jobs",
		[FINDINGS_SAMPLED] = "sampled",
		[FINDINGS_CONFLICT] = "conflict",
	};

	return (unsigned int)kind < FINDINGS_KINDS ? names[kind] : "unknown";
}

void findings_release(struct findings *findings)
{
	free(findings->list);
	*findings = (struct findings){ .list = NULL };
}
