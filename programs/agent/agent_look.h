/*
 * When the agent looks at the machine's processes, and what it saw last. A look a second while there are
 * processes, also dead ones that are kept; one in ten seconds on an idle node, for what inotify does not see.
 * Where a look costs more than 5 ms of processor time they come less often, up to one in four seconds, so that
 * looking takes half a hundredth of a core, whoever asks how often.
 */
#ifndef AGENT_LOOK_H
#define AGENT_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/status.h"
#include "doctor/live.h"
#include "output/metrics.h"
#include "recording/watch.h"

struct agent_look {
	struct watch watch;
	struct live live;
	struct live_limits limits;
	uint64_t last_ns;	  /* monotonic, 0: never */
	uint64_t next_ns;	  /* monotonic: when the next is due */
	uint64_t busy_until_ns;	  /* something may be about to come: look every second until then */
	uint64_t number;	  /* grows with every look */
	uint64_t cost_ns;	  /* processor time of a look: of the last two the cheaper one */
	uint64_t last_cost_ns;	  /* of the last */
	uint64_t spent_ns;	  /* in looks */
	uint64_t failures;	  /* looks that failed */
	enum status status;	  /* of the last */
	uint64_t start_wall_ns;	  /* of the agent */
	const uint64_t *verdicts; /* [VERDICT_CLASSES] that appeared so far; borrowed, NULL none */
	const uint64_t *kernel;	  /* [METRICS_KERNEL_EVENTS] so far; borrowed, NULL none */
};

enum status agent_look_init(struct agent_look *look, const struct watch_settings *settings,
			    const struct live_limits *limits);
void agent_look_release(struct agent_look *look);

/* Look now. */
void agent_look_take(struct agent_look *look, uint64_t now_ns);

/* Somebody asks: look unless the last look is a second old at most, or as old as it may be where looks are
 * dear. True: it did. */
bool agent_look_fresh(struct agent_look *look, uint64_t now_ns);

/* watch_fd() has something to say. */
void agent_look_heed(struct agent_look *look, uint64_t now_ns);

/* The agent about itself, for metrics_write(). */
void agent_look_self(const struct agent_look *look, struct metrics_agent *agent);

#endif
