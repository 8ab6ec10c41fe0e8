/*
 * Telling of who is stuck: each verdict of the doctor once when it appears and once when it is taken back, in the
 * log and to the hook; and once more when a warning becomes an error. One that comes back within AGENT_VERDICT_QUIET_NS was never gone. Telling is all: nothing
 * here touches a job.
 */
#ifndef AGENT_VERDICTS_H
#define AGENT_VERDICTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent_hook.h"
#include "doctor/live.h"
#include "doctor/verdict.h"
#include "recording/watch.h"

/*
 * Telling of what hangs, lags or was lost: each notice once when it appears, once when it is over. One that
 * comes back within AGENT_NOTICE_QUIET_NS was never gone. What is a verdict, too, is told as that.
 */

struct agent_notice {
	char key[320]; /* kind, job, communicator, rank */
	char title[sizeof(((struct live_notice *)0)->title)];
	uint64_t first_ns; /* monotonic */
	uint64_t last_ns;  /* when it was last there */
};

struct agent_notices {
	struct agent_notice told[LIVE_NOTICES_MAX];
	size_t count;
};

/* After a look. */
void agent_notices_tell(struct agent_notices *notices, const struct live *live, uint64_t now_ns);

enum {
	AGENT_VERDICTS_MAX = 128, /* that are told of at a time; more are counted */
	AGENT_VERDICTS_OF_USER =
		64, /* of these: one user's jobs must not keep those of others from being told */
};

struct agent_verdict {
	uint64_t key;
	uint64_t first_ns; /* monotonic */
	uint64_t last_ns;  /* when it was last there */
	uint64_t first_wall_ns;
	unsigned int tell_from;	 /* severity from which on it is told again */
	uint64_t user;		 /* whose job it is, plus one; 0 unknown */
	bool is_handed_on;	 /* the hook knows of it */
	bool is_due;		 /* the hook is to be told when it has a turn */
	bool is_late;		 /* it had none, and that was counted */
	struct verdicts as_told; /* one: as it was when it was last told */
};

struct agent_verdicts {
	struct agent_verdict told[AGENT_VERDICTS_MAX];
	size_t count;
	bool is_full;			  /* said already */
	uint64_t totals[VERDICT_CLASSES]; /* that appeared since the agent started */
};

void agent_verdicts_release(struct agent_verdicts *verdicts);

/* Where a look's verdicts go. */
struct agent_verdicts_to {
	struct agent_hook *hook;   /* NULL: to the log alone */
	const char *host;	   /* this machine's name */
	const struct watch *watch; /* whose jobs they are; NULL: nobody knows */
};

/* After a look. What the hook has no turn for is tried again at each look, as long as it lasts. */
void agent_verdicts_tell(struct agent_verdicts *verdicts, const struct live *live,
			 const struct agent_verdicts_to *to, uint64_t now_ns);

#endif
