/*
 * Calls of NCCL in which ranks wait for each other on the host: making a communicator, and the first call on it,
 * which makes connections. Where a rank dies or fails meanwhile the others would wait for ever: a thread looks at
 * the hub as long as such a call lasts, and ends the process, with the reason, where NCCL does not come back.
 */
#ifndef BENCH_WATCH_H
#define BENCH_WATCH_H

#include <stdint.h>

#include "programs/bench/bench_hub.h"
#include "programs/bench/watch_thread.h"

struct bench_job;

struct bench_watch {
	struct bench_job *job; /* borrowed */
	const char *what;      /* borrowed: the call */
	uint64_t began_ns;
	struct watch_thread thread;
};

/* Between these two the caller makes the call and nothing else; above all it leaves the hub alone. */
void bench_watch_begin(struct bench_watch *watch, struct bench_job *job, const char *what);
void bench_watch_end(struct bench_watch *watch);

/* A call on the job or the hub failed: tell why, once for all ranks, and who gave no sign of life. The hub is
 * only good for being closed after that. */
void bench_watch_tell(const struct bench_place *place, struct bench_hub *hub);

#endif
