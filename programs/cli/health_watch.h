/*
 * A prolog that hangs is worse than a sick node: a thread of every rank that ends the process when the
 * hard limit has passed, and says what the rank was doing then. Ranks that are inside a step tell rank 0;
 * it names those it heard of, or those that gave no sign of life.
 */
#ifndef HEALTH_WATCH_H
#define HEALTH_WATCH_H

#include <stdbool.h>

#include "common/attributes.h"
#include "programs/bench/bench_hub.h"
#include "programs/bench/bench_place.h"
#include "programs/bench/watch_thread.h"

struct health_watch {
	const struct bench_place *place; /* borrowed */
	struct bench_hub *hub;		 /* borrowed; NULL: not met yet */
	double limit_s;
	struct watch_thread thread; /* its lock is that of the hub above, and of what follows */
	bool is_waiting;	    /* for other ranks, with nothing of its own under way */
	char step[160];
};

/* From now on the process lives for `limit_s` seconds at most. 0, or -1: no thread could be made. */
int health_watch_start(struct health_watch *watch, const struct bench_place *place, double limit_s);
/* The hub, once it is there; NULL before it is closed. */
void health_watch_hub(struct health_watch *watch, struct bench_hub *hub);
/* What this rank does next: "AllReduce of 64 MiB". */
void health_watch_step(struct health_watch *watch, const char *format, ...) PRINTF_LIKE(2, 3);
/* Its part of the step is done: it waits for the others. */
void health_watch_wait(struct health_watch *watch);
void health_watch_stop(struct health_watch *watch);

#endif
