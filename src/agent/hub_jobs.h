/*
 * The jobs of a cluster: what all agents say about each, whether it is in trouble, and the doctor's verdict on it.
 *
 *	summaries --> jobs --trouble--> queue --> `ringside doctor --json --agents ... --job NAME` --> verdict
 *	                 ^                              |
 *	                 +---- judged again, at growing intervals, until it is over
 *
 * A summary only decides when to judge. The verdict comes from the snapshots of all nodes of the job, by the same
 * engine as `ringside doctor --agents`, in a child process: a crafted snapshot can at worst end that child
 * (docs/decisions/0031).
 */
#ifndef HUB_JOBS_H
#define HUB_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/hub_agents.h"
#include "agent/hub_child.h"
#include "agent/hub_options.h"
#include "common/status.h"
#include "doctor/verdict.h"

enum {
	HUB_JOBS_MAX = 4096,   /* further jobs are counted */
	HUB_JUDGES = 2,	       /* at the same time */
	HUB_VERDICTS_KEPT = 8, /* of one job */
	HUB_JOB_KEY = HUB_JOB_NAME + 96,
};

#define HUB_JUDGE_FIRST_NS UINT64_C(5000000000) /* pause before a job is judged again: doubles */
#define HUB_JUDGE_MOST_NS UINT64_C(600000000000)
#define HUB_JOB_KEEP_NS UINT64_C(60000000000) /* after no agent knows it any more */
#define HUB_RATE_NS UINT64_C(30000000000)     /* operations are counted over this long */
#define HUB_JUDGE_MEMORY ((uint64_t)4 << 30)

/* Signs that a job should be judged, the most serious first. */
enum hub_trouble {
	HUB_TROUBLE_NONE = 0,
	HUB_TROUBLE_ALERT = 1, /* Alertmanager says so */
	HUB_TROUBLE_SLOW = 2,
	HUB_TROUBLE_STUCK = 3,
};
const char *hub_trouble_name(enum hub_trouble trouble); /* "none", "alert", "slow", "stuck" */

enum hub_judgement {
	HUB_NOT_JUDGED = 0,
	HUB_HEALTHY = 1,
	HUB_FOUND = 2,	    /* it has a verdict */
	HUB_COULD_NOT = 3,  /* the doctor could not tell */
	HUB_JUDGE_FAIL = 4, /* the doctor failed */
	HUB_JUDGEMENTS = 5,
};
const char *hub_judgement_name(enum hub_judgement judgement); /* "not_judged", "healthy", ... */

/* How fast a job goes, by the number of its operations. */
struct hub_rate {
	uint64_t operations; /* at the start of the window */
	uint64_t since_ns;   /* of the window; 0 none */
	double lowest;	     /* of earlier windows but the last, per second */
	double last;	     /* of the last window */
	unsigned int windows;
	bool is_low; /* less than two thirds of that */
};

struct hub_job {
	char key[HUB_JOB_KEY]; /* unique: its name, or for a job without one the agent's, after a blank */
	char name[HUB_JOB_NAME];
	int64_t owner; /* uid; -1 unknown. Other users' jobs of this name are jobs of their own */

	/* From the summaries, of agents that answer. */
	uint32_t nodes;	 /* all that have it */
	uint32_t silent; /* of these: do not answer */
	uint32_t ranks, processes, alive;
	int64_t world_size; /* 0 unknown */
	uint64_t operations, stuck_ns, wait_ns;
	uint64_t hang_after_ns; /* RINGSIDE_HANG_AFTER, the largest; 0 not set */
	double wait_share;	/* NaN unknown */
	uint32_t wait_known;	/* processes that know it */
	uint64_t verdicts, notices;
	struct hub_rate rate;
	uint64_t seen_ns; /* when an agent last had it */
	bool is_crowded;  /* only agents that claim many jobs have it */
	bool is_seen;

	enum hub_trouble trouble;
	uint64_t trouble_ns;	  /* monotonic: since when */
	uint64_t trouble_last_ns; /* when it was last seen */
	uint64_t alert_ns;	  /* until then an alert counts; 0 none */

	enum hub_judgement judgement;
	enum hub_trouble judged_for;
	bool is_judging;
	uint64_t judge_ns; /* when it is judged next; UINT64_MAX: not before there is trouble */
	uint64_t pause_ns; /* before that */
	uint64_t judged_ns, judged_wall_ns, took_ns;
	unsigned int judged;	 /* how often */
	uint32_t judged_without; /* nodes that were silent at the last judgement */
	char why[HUB_CHILD_WHY];
	struct verdicts
		found; /* warnings and errors, the most serious first; the first is published */
};

struct hub_judge {
	struct hub_child child;
	char key[HUB_JOB_KEY];
};

struct hub_jobs {
	const struct hub_options *options;
	const char *doctor;    /* path of ringside */
	struct hub_job **list; /* by key */
	size_t count;
	uint64_t left_out; /* jobs beyond the limit, at the last update */
	uint64_t changes;  /* hub_agents.changes of the last update */
	uint64_t updated_ns;
	struct hub_judge judges[HUB_JUDGES];
	/* Totals since the start. */
	uint64_t judgements[HUB_JUDGEMENTS];
	uint64_t judge_ns;
};

void hub_jobs_init(struct hub_jobs *jobs, const struct hub_options *options, const char *doctor);
void hub_jobs_release(struct hub_jobs *jobs);

/* Adds up the summaries and decides which jobs are in trouble. */
void hub_jobs_update(struct hub_jobs *jobs, const struct hub_agents *agents, uint64_t now_ns);

/*
 * The job that should be judged now: the most serious trouble, the most nodes, the longest wait first. NULL none. Jobs
 * that only agents with many jobs have come last, and only if `has_crowded`: an agent that makes up jobs must not keep the
 * doctor from those of others.
 */
struct hub_job *hub_jobs_due(const struct hub_jobs *jobs, uint64_t now_ns, bool has_crowded);

/* The answer of the doctor: its output and exit code. */
void hub_jobs_judged(struct hub_jobs *jobs, struct hub_job *job, const struct hub_child *child,
		     uint64_t now_ns, uint64_t wall_ns);

/* An alert about this job: judge it soon. False: there is no such job. */
bool hub_jobs_alert(struct hub_jobs *jobs, const char *name, uint64_t now_ns);

/* Updates, judges; returns when the next thing is due. */
uint64_t hub_jobs_run(struct hub_jobs *jobs, struct hub_agents *agents, uint64_t now_ns);

/* Has an agent's row this job? */
bool hub_job_is_row(const struct hub_job *job, const struct hub_agent *agent,
		    const struct hub_row *row);
struct hub_job *hub_jobs_find(const struct hub_jobs *jobs, const char *key);

/* "stuck", "slow", "ended", "silent", "running". */
const char *hub_job_state(const struct hub_job *job);
/* Lost by waiting so far and by the present hang, at least. */
double hub_job_gpu_hours(const struct hub_job *job, const struct hub_options *options);

/* Reads what `ringside doctor --json` wrote; on failure there is nothing to release. */
enum status hub_verdicts_read(struct verdicts *verdicts, const char *bytes, size_t length);

#endif
