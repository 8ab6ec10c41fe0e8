/*
 * The state of the jobs on this node as JSON, for the live page and scripts. docs/JSON.md lists the
 * fields.
 */
#ifndef LIVE_JSON_H
#define LIVE_JSON_H

#include <stdint.h>

#include "doctor/live.h"
#include "output/sink.h"

/* Jobs, processes, communicators with their ranks, operations in flight, notices, from the last scan. */
void live_json_now(struct sink *sink, const struct live *live, const char *host);

/* Points of all histories newer than after_wall_ns (0: all). `members` is the key of the communicator whose
 * ranks' histories are included: NULL means all, "" or an unknown key means none. This keeps the answer
 * small. */
void live_json_history_of(struct sink *sink, const struct live *live, uint64_t after_wall_ns,
			  const char *members);

/* A few hundred bytes per job, for a hub that asks thousands of nodes: who is here, does it move, does it wait. Jobs
 * beyond the limit are counted. */
enum { LIVE_JSON_SUMMARY_JOBS = 64, LIVE_JSON_USERS = 64 };
void live_json_summary(struct sink *sink, const struct live *live, const char *host);

/* The key of a communicator (index into job.comms) in both answers: unique and stable from scan to scan. */
enum { LIVE_JSON_KEY = 17 };
const char *live_json_key(const struct live *live, uint32_t comm, char to[static LIVE_JSON_KEY]);

#endif
