/*
 * The hub: one for a cluster. It finds the agents, adds up what they say about each job, has the doctor judge the jobs
 * in trouble, and shows the result.
 */
#ifndef HUB_H
#define HUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/cli.h"
#include "common/child.h"
#include "common/status.h"
#include "doctor/verdict.h"
#include "fetch/fetch.h"
#include "output/sink.h"
#include "serve/serve.h"

/* The command line. Its page is in cli/pages.h. */

enum { HUB_SOURCES_MAX = 16, HUB_AGENT_PORT = SERVE_AGENT_PORT };

/* Where addresses of agents come from. */
enum hub_source_kind {
	HUB_SOURCE_LIST = 0, /* a list, or @FILE */
	HUB_SOURCE_FILE_SD = 1,
	HUB_SOURCE_HTTP_SD = 2,
	HUB_SOURCE_SLURM = 3,
	HUB_SOURCE_DNS = 4,
	HUB_SOURCE_KINDS = 5,
};

struct hub_source_wanted {
	enum hub_source_kind kind;
	const char *value;
};

struct hub_options {
	struct serving_options serving;
	struct hub_source_wanted sources[HUB_SOURCES_MAX];
	size_t source_count;
	const char *prometheus; /* NULL: poll the agents */
	uint64_t interval_ns;	/* between two polls of an agent */
	uint64_t refresh_ns;	/* of the sources */
	uint64_t hang_ns;
	bool is_hang_fixed;  /* --hang was given: RINGSIDE_HANG_AFTER of jobs does not count */
	uint64_t check_ns;   /* judge a job without trouble this often; 0: never */
	bool is_check_fixed; /* else less often with many agents */
	uint64_t timeout_ns;
	const char *auth; /* for agents */
	const char *prometheus_auth;
	const char *ca_file;
	bool is_insecure;
	bool is_any_owner;   /* jobs of one name are one job, whoever runs them */
	const char *grafana; /* NULL none */
	double gpu_hour_price;
};

/* Returns -1 to continue, else the exit code: help or an error was printed. */
int hub_options_parse(struct hub_options *options, int argc, char **argv);

/* argv[0] is "hub". Runs until it is stopped; returns the exit code. */
int hub_main(int argc, char **argv);

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
	char job[HUB_JOB_NAME]; /* "": it has no name; without its owner */
	int64_t owner;		/* uid; -1 unknown */
	bool shows_owner;	/* the agent has another job of that name */
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
	struct child child; /* of kinds that are asked through one */
	uint64_t due_ns;
	char problem[CHILD_WHY]; /* of the last refresh; "" none */
	bool has_found;		 /* at least once */
};

/* A batch of agents that are asked by one child. */
struct hub_poll {
	struct child child;
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
	char prometheus_problem[CHILD_WHY];
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
	char base[HUB_JOB_NAME]; /* its name without its owner */
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
	bool shows_owner; /* an agent has another job of that name */
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
	char why[CHILD_WHY];
	struct verdicts
		found; /* warnings and errors, the most serious first; the first is published */
};

struct hub_judge {
	struct child child;
	char key[HUB_JOB_KEY];
};

struct hub_jobs {
	const struct hub_options *options;
	const char *doctor;    /* path of ringside */
	struct hub_job **list; /* by key */
	size_t count;
	size_t agents;	   /* at the last update, like the next */
	uint64_t left_out; /* jobs beyond the limit */
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
void hub_jobs_judged(struct hub_jobs *jobs, struct hub_job *job, const struct child *child,
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

/* What the hub shows: jobs as JSON for its page and scripts, metrics for Prometheus; and the alerts it takes. */

struct hub_state {
	const struct hub_options *options;
	struct hub_agents agents;
	struct hub_jobs jobs;
	struct serve_verdicts verdicts; /* reported */
	struct serve_hook hook;
	uint64_t alerts; /* taken from webhooks */
	uint64_t start_wall_ns;
};

/* All jobs and, of the job with this key (NULL none), its nodes. docs/JSON.md lists the fields. */
void hub_show_jobs(struct sink *sink, const struct hub_state *hub, const char *key, uint64_t now_ns,
		   uint64_t wall_ns);

/* Prometheus text format. docs/HUB.md lists the names. */
void hub_show_metrics(struct sink *sink, const struct hub_state *hub);

/*
 * A webhook of Alertmanager: each firing alert with a label nccl_job calls hub_jobs_alert(). ERR_FORMAT
 * if it is not one. *known and *unknown count the jobs.
 */
enum { HUB_ALERTS_BYTES = 256 * 1024, HUB_ALERTS_MAX = 256 };
enum status hub_alerts_take(struct hub_jobs *jobs, const char *bytes, size_t length,
			    uint64_t now_ns, unsigned int *known, unsigned int *unknown);

#endif
