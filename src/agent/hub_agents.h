/*
 * The agents of a cluster: where they are, and what each last said about its jobs.
 *
 *	sources --refresh--> list of agents --poll: ringside-fetch--> summaries
 *	(lists, service discovery,                     or
 *	 Slurm, DNS)                        Prometheus --queries--> the same summaries
 *
 * Agents are not trusted: they may lie, be slow or send garbage. An answer has limits on size, time, jobs and names; it
 * can only be wrong about jobs. Polls are spread over the interval in up to HUB_POLLS_MAX batches, each by a child
 * process that asks all its agents at once, so that an agent that does not answer delays nobody. Such an agent is asked
 * less often, and what it said last is kept for HUB_AGENT_KEEP_NS, so that a job's nodes are known when they die.
 */
#ifndef HUB_AGENTS_H
#define HUB_AGENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/hub_child.h"
#include "agent/hub_options.h"
#include "common/status.h"
#include "fetch/fetch.h"

#define HUB_AGENT_KEEP_NS UINT64_C(600000000000)

enum {
	HUB_SUMMARY_JOBS = 64, /* of one agent; further ones are counted */
	HUB_SUMMARY_BYTES = 64 * 1024,
	HUB_POLLS_MAX = 8,
	HUB_POLL_AGENTS = 1024,	 /* in one batch */
	HUB_POLL_PARALLEL = 256, /* asked at the same time by one child */
	HUB_JOB_NAME = 128,
};

/* What an agent says about the part of a job that runs on its node. */
struct hub_row {
	char job[HUB_JOB_NAME]; /* "": it has no name */
	int64_t owner;		/* uid; -1 unknown */
	int64_t world_size;	/* 0 unknown */
	uint32_t ranks, processes, alive;
	uint64_t operations;
	uint64_t stuck_ns;
	uint64_t hang_after_ns; /* RINGSIDE_HANG_AFTER; 0 not set */
	uint64_t wait_ns;
	double wait_share; /* NaN unknown */
	uint64_t verdicts; /* bits: enum verdict_class */
	uint64_t notices;  /* bits: enum live_notice_kind */
};

struct hub_summary {
	char version[32];
	char host[64];
	struct hub_row *rows;
	size_t count;
	uint64_t left_out;
};

/* Reads the answer of /api/v1/summary. ERR_FORMAT with *why (static); ERR_NO_SPACE (out of memory). On failure there is
 * nothing to release. */
enum status hub_summary_read(struct hub_summary *summary, const char *bytes, size_t length,
			     const char **why);
void hub_summary_release(struct hub_summary *summary);

/* Adds the targets of a service discovery file: [{"targets": ["a:1"], "labels": {"__scheme__": "https"}}]. */
enum status hub_agents_read_sd(struct fetch_targets *targets, const char *bytes, size_t length,
			       char *why, size_t why_size);

/*
 * What Prometheus is asked, and what its answers mean: rows of the same summaries, by job and instance. An answer is
 * {"status": "success", "data": {"result": [{"metric": {...}, "value": [TIME, "NUMBER"]}]}}.
 */
enum hub_query {
	HUB_QUERY_AGENTS = 0,	 /* instances that are scraped */
	HUB_QUERY_PROCESSES = 1, /* by job, instance, world_size and state */
	HUB_QUERY_STUCK = 2,	 /* seconds */
	HUB_QUERY_VERDICTS = 3,	 /* by class */
	HUB_QUERY_NOTICES = 4,	 /* by kind */
	HUB_QUERY_WAIT = 5,	 /* seconds in total */
	HUB_QUERY_SHARE = 6,	 /* of the last minute */
	HUB_QUERY_OPERATIONS = 7,
	HUB_QUERY_HANG_AFTER = 8, /* seconds */
	HUB_QUERIES = 9,
};

struct hub_agents;
/* Takes an answer: adds rows to the agents' `coming` summaries. ERR_FORMAT if it is none. */
enum status hub_query_take(struct hub_agents *agents, enum hub_query query, const char *bytes,
			   size_t length, uint64_t now_ns);

struct hub_agent {
	struct fetch_target target; /* owned */
	bool is_listed;		    /* a source has it */
	bool is_asked;		    /* in a batch */
	bool is_silent;		    /* it did not answer the last time */
	uint32_t failures;	    /* since its last answer */
	uint64_t due_ns;
	uint64_t answered_ns; /* 0: never */
	char why[120];	      /* why it did not answer */
	struct hub_summary summary;
	struct hub_summary coming; /* from Prometheus, while its answers arrive */
	bool is_coming;
};

struct hub_source {
	struct hub_source_wanted wanted;
	struct fetch_targets found;
	struct hub_child child; /* of kinds that are asked through one */
	uint64_t due_ns;
	char problem[HUB_CHILD_WHY]; /* of the last refresh; "" none */
	bool has_found;		     /* at least once */
};

/* A batch of agents that are asked by one child. */
struct hub_poll {
	struct hub_child child;
	struct fetch_frames frames;
	struct hub_agent **asked; /* by id; NULL: has answered */
	size_t count;
};

struct hub_agents {
	const struct hub_options *options;
	const char *fetch; /* path of ringside-fetch */
	int epoll;
	struct hub_source sources[HUB_SOURCES_MAX];
	size_t source_count;
	struct hub_agent **list; /* by name */
	size_t count;
	struct hub_poll polls[HUB_POLLS_MAX];
	struct hub_poll prometheus; /* its `asked` is not used */
	size_t prometheus_answers;
	uint64_t prometheus_due_ns;
	unsigned int prometheus_failures;
	char prometheus_problem[HUB_CHILD_WHY];
	size_t told;	  /* agents, as last logged */
	uint64_t changes; /* counts: something was learned */
	/* Totals since the start. */
	uint64_t asked, answered, failed, received_bytes, children;
};

void hub_agents_init(struct hub_agents *agents, const struct hub_options *options,
		     const char *fetch, int epoll);
void hub_agents_release(struct hub_agents *agents);

/* Starts what is due and takes what has arrived; returns when the next thing is due. */
uint64_t hub_agents_run(struct hub_agents *agents, uint64_t now_ns);

/* How many do not answer. */
size_t hub_agents_silent(const struct hub_agents *agents);

const char *hub_source_name(enum hub_source_kind kind); /* "agents", "file-sd", ... */

#endif
