/*
 * The state of the jobs on this node as JSON: what the live page and scripts read. docs/LIVE-PAGE.md lists
 * the fields.
 */
#ifndef LIVE_JSON_H
#define LIVE_JSON_H

#include <stdint.h>

#include "doctor/live.h"
#include "output/sink.h"

/* Jobs, processes, communicators with their seats, flights, notices: the last look. */
void live_json_now(struct sink *sink, const struct live *live, const char *host);

/* Points of all histories newer than after_wall_ns (0: all that there are), with members of one communicator
 * alone: `members` is its key, NULL means of all, "" of none. What nobody has means of none. This keeps the
 * answer small where there are many. */
void live_json_history_of(struct sink *sink, const struct live *live, uint64_t after_wall_ns,
			  const char *members);

/* How a communicator (index into job.comms) is named in both: the same text from look to look, another one
 * for every communicator. */
enum { LIVE_JSON_KEY = 17 };
const char *live_json_key(const struct live *live, uint32_t comm, char to[static LIVE_JSON_KEY]);

#endif
