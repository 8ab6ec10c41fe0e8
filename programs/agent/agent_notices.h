/*
 * Telling of what hangs, lags or was lost: each notice once when it appears, once when it is over. One that
 * comes back within AGENT_NOTICE_QUIET_NS was never gone. What is a verdict, too, is told as that
 * (agent_verdicts.h).
 */
#ifndef AGENT_NOTICES_H
#define AGENT_NOTICES_H

#include <stddef.h>
#include <stdint.h>

#include "doctor/live.h"

#define AGENT_NOTICE_QUIET_NS UINT64_C(10000000000)

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

#endif
