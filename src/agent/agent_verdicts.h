/*
 * Reports each verdict of the doctor once when it appears, once when it clears, and again when a warning becomes an
 * error: in the log and to the hook. A verdict that returns within AGENT_VERDICT_QUIET_NS has not cleared. Nothing here
 * affects a job.
 */
#ifndef AGENT_VERDICTS_H
#define AGENT_VERDICTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent_hook.h"
#include "agent/agent_probe.h"
#include "doctor/live.h"
#include "doctor/verdict.h"
#include "recording/watch.h"

/*
 * Logs each notice once when it appears and once when it clears. A notice that returns within
 * AGENT_NOTICE_QUIET_NS has not cleared. A notice that is or becomes a verdict is only reported as a verdict.
 */

struct agent_notice {
	char key[320]; /* kind, job, communicator, rank */
	char job[128];
	char comm[128];
	char rank[64];
	char title[sizeof(((struct live_notice *)0)->title)];
	enum live_notice_kind kind;
	bool is_replaced;  /* a verdict reports it now */
	uint64_t first_ns; /* monotonic */
	uint64_t last_ns;  /* when it was last active */
};

struct agent_notices {
	struct agent_notice reported[LIVE_NOTICES_MAX];
	size_t count;
};

/* Call after each scan. */
void agent_notices_report(struct agent_notices *notices, const struct live *live, uint64_t now_ns);

enum {
	AGENT_VERDICTS_MAX = 128,    /* reported at a time; more are only counted */
	AGENT_VERDICTS_OF_USER = 64, /* of these per user, so that one user cannot use up all */
};

struct agent_verdict {
	uint64_t key;
	uint64_t first_ns; /* monotonic */
	uint64_t last_ns;  /* when it was last active */
	uint64_t first_wall_ns;
	unsigned int report_from;    /* reported again from this severity on */
	uint64_t user;		     /* user ID of the job plus one; 0 unknown */
	bool is_hook_called;	     /* the hook was called for it */
	bool is_due;		     /* the hook is to be called when the rate limit allows */
	bool is_late;		     /* delayed by the rate limit, and counted */
	struct verdicts as_reported; /* one: as last reported */
};

struct agent_verdicts {
	struct agent_verdict reported[AGENT_VERDICTS_MAX];
	size_t count;
	bool is_full;			  /* already logged */
	uint64_t totals[VERDICT_CLASSES]; /* since the agent started */
};

void agent_verdicts_release(struct agent_verdicts *verdicts);

/* Where verdicts are reported. */
struct agent_verdicts_to {
	struct agent_hook *hook;	 /* NULL: log only */
	const char *host;		 /* name of this host */
	const struct watch *watch;	 /* to find the user of a job; NULL: each job has its own */
	const struct agent_probe *probe; /* hangs wait for its answers; NULL: none */
};

/* Call after each scan. Hook calls over the rate limit are retried at each scan while the verdict lasts. */
void agent_verdicts_report(struct agent_verdicts *verdicts, const struct live *live,
			   const struct agent_verdicts_to *to, uint64_t now_ns);

/* The same for verdicts from elsewhere: all that are active now. */
void agent_verdicts_pass(struct agent_verdicts *verdicts, const struct verdicts *active,
			 uint64_t wall_ns, const struct agent_verdicts_to *to, uint64_t now_ns);

#endif
