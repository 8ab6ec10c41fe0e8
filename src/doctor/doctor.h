/*
 * The doctor: what looks at a recording, a log or a host and adds to one list of verdicts (verdict.h). Hangs, slowness
 * and set-up make verdicts; what was not visible limits them; NCCL's RAS, the hosts and stacks support them.
 */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/job.h"
#include "analysis/tally.h"
#include "analysis/timeline_report.h"
#include "common/status.h"
#include "doctor/verdict.h"
#include "import/expected.h"
#include "import/host_facts.h"
#include "import/nccl_log.h"
#include "import/ras.h"
#include "import/stack_read.h"
#include "recording/recording.h"

/*
 * Finds hung ranks and the rank they wait for. It examines one moment of a job: what each visible rank of
 * each communicator has called, is in, and waits for. The source does not matter: regions of this host,
 * snapshots from agents, traces of a dead job, Prometheus.
 *
 *	rank in an operation --waits for--> a rank that has not called it
 *	                     --waits for--> the peer of a transfer (flight.h)
 *	                     --waits for--> the network
 *	rank that has not called something --because it is in another operation--> (as above)
 *
 * These are followed from rank to rank to an end with no further cause, or around a cycle. All that lead to
 * the same end are its victims. docs/DOCTOR.md has the rules.
 */

/* A source that should report ranks: an agent, a directory. */
struct hang_source {
	const char *name;    /* "node12:9749" */
	bool is_silent;	     /* it did not answer in time */
	const char *problem; /* "connection refused"; NULL none */
};

struct hang_options {
	/* Hung: in flight for at least this long without progress of its communicator. */
	uint64_t hang_ns; /* 0: 20 s */
	/* What long work outside NCCL looks like (a checkpoint) is a note until RINGSIDE_HANG_AFTER of its
	 * job has passed: verdict.is_allowed. */
	bool has_job_limits;
	/* The current time of each process's recorder clock; NULL: as hang_now_ns() returns. */
	const uint64_t *now_ns;
	/* For each seat of the job, how long nothing was called and nothing finished, from a caller that
	 * scans repeatedly; NULL: only what recorders wrote down counts. */
	const uint64_t *still_ns;
	/* Ignore processes if none of them is alive: for callers that watch running jobs. */
	bool only_living;
	/* Do not search recorded operations for the point where ranks diverged: for repeated scans. */
	bool is_quick;
	/* Also report where a hang cannot be judged, and dead or stopped processes before anything hangs
	 * because of them: for callers that would otherwise report "healthy". */
	bool has_unjudged;
	/* All snapshots were made at the same time, whatever the clocks of their hosts say. */
	bool is_one_moment;
	const struct hang_source *sources;
	size_t source_count;
};

/* The current time of a process's recorder clock: the clock itself if the process is alive on this host;
 * otherwise the last time in its recording. */
uint64_t hang_now_ns(const struct recording_process *process);

/* Adds to verdicts. Returns ERR_NO_SPACE if out of memory. */
enum status hang_find(struct verdicts *verdicts, const struct job *job,
		      const struct hang_options *options);

/*
 * Adds to the hangs from index `first` on where their ranks are in the program, where a process has a stack. hang_find()
 * does so for stacks that were there before; this is for those taken because of its verdicts. `now_ns`: as in the options.
 */
void hang_say_stacks(struct verdicts *verdicts, size_t first, const struct job *job,
		     const uint64_t *now_ns);

/*
 * The speed of a job on a good day: `ringside baseline save`, a small JSON file. docs/REPORT.md.
 *
 * A report that is compared, or made into a baseline, needs a table by BASELINE_BY
 * (timeline_options.custom_by).
 */

enum {
	BASELINE_BY = TALLY_BY_COMM | TALLY_BY_KIND | TALLY_BY_FUNCTION | TALLY_BY_SIZE |
		      TALLY_BY_ALGORITHM | TALLY_BY_PROTOCOL,
	BASELINE_ROWS_MAX = 65536,
	BASELINE_VERSION = 1,
};

/* One operation type: independent of the ranks, so that other jobs can be compared. */
struct baseline_row {
	char comm_name[96]; /* "" none: unnamed ones, by their shape */
	char kind[16];	    /* job_comm_kind_name() */
	char function[32];
	char size[16];	    /* op_size_text() */
	char algorithm[24]; /* "" unknown */
	char protocol[16];
	int32_t nranks;
	int32_t nnodes;
	uint64_t calls;
	uint64_t comms; /* number of communicators */
	bool is_joined; /* waiting is excluded from the next two */
	bool is_wire; /* no durations: log_mean is that of the time on the wire of a transfer, of the fastest sender */
	double busbw;	  /* bytes per second; 0 unknown */
	double mean_ns;	  /* of a transfer */
	double median_ns; /* of calls, waiting included, like p99_ns */
	double p99_ns;
	double p10_ns; /* 90% take longer: for Sends, those with little waiting */
	/* Transfers of its proxies: time on the wire, and until the GPU consumed them; 0 unknown. */
	double wire_ns;
	double consume_ns;
	double channels; /* of an operation, mean; 0 unknown */
	double log_mean; /* of durations in ns, of transfers if matched: mean and deviation of
			    logarithms, for intervals */
	double log_deviation;
	double samples;
};

struct baseline {
	struct baseline_row *rows; /* sorted by their strings */
	size_t count;
	size_t left_out; /* rows beyond BASELINE_ROWS_MAX */
	char job[128];	 /* "" none, or several */
	char durations
		[16]; /* "gpu": without network spans; "": an earlier version may have taken these for some */
	uint32_t jobs;
	uint32_t ranks;
	uint64_t saved_wall_ns; /* end of the recording it was made from; 0 unknown */
	double wait_share;	/* of communication time */
	/* Iterations of its first job; 0: none were found. */
	uint64_t iterations;
	uint32_t iteration_ops;
	double iteration_ns; /* medians */
	double iteration_busy_ns;
};

void baseline_release(struct baseline *baseline);

/* ERR_NO_SPACE (out of memory); ERR_RANGE: the report has no table by BASELINE_BY. */
enum status baseline_make(struct baseline *baseline, const struct timeline_report *report);

/* From a file's bytes. ERR_FORMAT, ERR_VERSION (a newer one): `why` says what and where. ERR_NO_SPACE. */
enum status baseline_read(struct baseline *baseline, const char *text, size_t length, char *why,
			  size_t why_size);

/*
 * What makes a job slow: compared with the other ranks, with the job's own past, with a baseline, with an
 * expected bandwidth or a peak. The values are those of the report (analysis/timeline_report.h); this file
 * interprets them.
 */

struct slow_options {
	const struct baseline *baseline; /* NULL none */
	const struct expected *expected; /* NULL none */
	double peak_nvlink;		 /* bus bandwidth in bytes per second; 0 not given */
	double peak_network;
	double threshold;      /* 0: 0.05; a smaller slowdown is not reported */
	double gpu_hour_price; /* 0: not given */
};

/*
 * Adds to verdicts; hangs among them explain ranks that look slow because they are stuck. The report has
 * windows and a table by BASELINE_BY; without that table only the other ranks and the past are compared. If
 * needed, operations of some processes are read once more. ERR_NO_SPACE (out of memory).
 */
enum status slow_find(struct verdicts *verdicts, const struct timeline_report *report,
		      const struct slow_options *options);

/* Do iterations show how fast a job is? Without them, what all its ranks compute longer does not. */
bool slow_sees_iterations(const struct timeline_report *report);

/*
 * Slowness from totals: the time of each rank of a communicator in collectives, and of each link on the
 * wire, over one time span. For sources without individual operations, such as Prometheus. The rules are
 * those of live values (docs/STATISTICS.md, "Live waiting"): waiting is a lower bound, because ranks that are late in
 * turns cancel out.
 */

/* One rank of one communicator: all its operations of one function and one size class, during the time
 * span. Only functions that synchronize their ranks show waiting; others are skipped. */
struct slow_member {
	const char *job;    /* "" none; strings are borrowed until slow_find_sums() returns */
	const char *comm;   /* label for display */
	uint64_t comm_hash; /* with job: identifies the communicator; 0: unknown, skipped */
	enum job_comm_kind kind;
	int32_t nranks; /* of the communicator; 0 unknown */
	int32_t comm_rank;
	int64_t rank; /* global; -1 unknown */
	const char *host;
	int64_t pid;	  /* -1 unknown */
	int32_t gpu;	  /* -1 unknown */
	uint8_t function; /* enum op_function */
	const char *size; /* size class as the source names it: compared, not parsed */
	double operations;
	double timed; /* of these: those that seconds and bus_bytes belong to; 0: all, or unknown */
	double seconds; /* in the timed ones, including waiting */
	double bus_bytes;
};

/* Sends over the network from one rank to another, during the time span. */
struct slow_edge {
	const char *job;
	const char *comm;
	uint64_t comm_hash;
	int32_t from; /* ranks of the communicator */
	int32_t to;   /* -1: all peers together */
	double transfers;
	double wire_seconds; /* time of transfers on the network */
	double bytes;
};

/* One time span. Lists in any order; duplicates are added up. */
struct slow_sums {
	const struct slow_member *members;
	size_t member_count;
	const struct slow_edge *edges;
	size_t edge_count;
	double seconds; /* length of the time span; 0: unknown, no share of time is reported */
};

struct slow_sums_options {
	const struct slow_sums *before; /* the same job earlier, "past"; NULL: none */
	double threshold;		/* 0: 0.1, as in the alerts */
	double gpu_hour_price;		/* 0: not given */
	uint64_t now_wall_ns;		/* end of the time span; 0 unknown */
};

/* Adds slow_rank, slow_host, slow_link, slow_network and slow_nvlink. ERR_NO_SPACE (out of memory). */
enum status slow_find_sums(struct verdicts *verdicts, const struct slow_sums *now,
			   const struct slow_sums_options *options);

/*
 * NCCL's settings and what it detected: rules over its log (import/nccl_log.h) and over the environment
 * that recorders stored at start (info lines "env.NAME=VALUE"). Each rule has a name, a page of that name
 * in docs/setup, and cites the line it is based on. docs/SETUP-RULES.md lists them.
 */

/* log and recording may be NULL. Adds VERDICT_SETUP (and, for an init that never completed, the missing
 * ranks). ERR_NO_SPACE. */
enum status setup_find(struct verdicts *verdicts, const struct nccl_log *log,
		       const struct recording *recording);

/* All rules, for documents and tests: name and one line; NULL after the last. */
struct setup_rule {
	const char *name;
	const char *about;
};
const struct setup_rule *setup_rule(size_t index);

/*
 * What was examined, beside the verdicts: number of ranks, hosts, how recent, and the state of each
 * communicator. For the summary of a healthy job and for the details below a verdict.
 */

/* Only live ranks are counted: not those whose process is gone or that have finalized it. */
struct scene_comm {
	uint32_t comm;	   /* index into job.comms */
	uint32_t open;	   /* visible live ranks */
	uint32_t inside;   /* of these: in an operation */
	uint64_t age_ns;   /* of the oldest operation a rank is in; 0 none */
	uint64_t still_ns; /* time since any rank called or finished anything; UINT64_MAX unknown */
	uint64_t most_issued;  /* the last collective called: by the rank that is furthest, */
	uint64_t least_issued; /* and by the one that is least far */
	uint64_t number;       /* of that oldest operation, its match number; 0 unknown */
	char function[32];     /* of that operation; "" no rank is in one */
};

struct scene {
	char job[128]; /* the only one's name; "" none or several */
	size_t jobs;   /* groups with a rank */
	size_t processes;
	size_t ranks; /* visible; a restarted rank counts once */
	size_t hosts;
	size_t communicators; /* live ones; all, if none is live */
	size_t alive;	      /* processes by life */
	size_t ended;
	size_t killed;
	size_t missing;	     /* ranks that the launcher or a communicator counts but that are not
				recorded */
	size_t standing;     /* communicators that a rank is in, without activity for hang_ns */
	uint64_t operations; /* called, as far as counts are known */
	uint64_t age_ns;     /* of the oldest operation a rank is in; 0 none */
	uint64_t last_ns;    /* since the last activity; UINT64_MAX unknown */
	struct scene_comm *comms; /* live ones: those that a rank is in first, the longest first */
	size_t comm_count;
};

/* now_ns: per process, its recorder's clock; NULL: as hang_now_ns() returns. On ERR_NO_SPACE (out of
 * memory) there is nothing to release. */
enum status scene_make(struct scene *scene, const struct job *job, const uint64_t *now_ns,
		       uint64_t hang_ns);
void scene_release(struct scene *scene);

/* Nothing of it is live, and it did not end by itself. */
bool scene_is_dead(const struct scene *scene);

/* The answer of the doctor: the first word of its text, "answer" in JSON, and its exit code. */
enum scene_answer {
	SCENE_NOTHING_WRONG = 0,
	SCENE_TROUBLE = 1, /* a warning or an error, or the job was killed */
	SCENE_STUCK = 2,   /* it hangs, and nothing shows why */
	SCENE_UNKNOWN = 3, /* could not tell: what was not visible may hide a problem */
};

/* scene NULL: only logs were read; also for the next one. */
enum scene_answer scene_answer(const struct scene *scene, const struct verdicts *verdicts);
const char *scene_answer_name(enum scene_answer answer); /* "nothing_wrong", ... */

/* Healthy: nothing is wrong, and everything was judged. */
bool scene_is_healthy(const struct scene *scene, const struct verdicts *verdicts);

/*
 * What agents left out of their snapshots (docs/FORMATS.md, agent.json), and which agents did not answer
 * when a bundle was made (docs/EXPORT.md, agents.json). The input is untrusted, and all of it is bounded.
 */

enum { AGENT_NOTES_GAPS_MAX = 1000, AGENT_NOTES_AGENTS_MAX = 16384 };

/* Something that an agent knows of and did not return. */
struct agent_gap {
	char host[128];
	char text[400];
	bool is_warning; /* processes or files are missing; else they are only incomplete */
};

/* An agent that a bundle was made from. */
struct agent_asked {
	char name[256];
	char problem[300]; /* "": it answered */
};

struct agent_notes {
	struct agent_gap *gaps;
	size_t gap_count;
	size_t gaps_left_out;
	struct agent_asked *agents;
	size_t agent_count;
};

/* All notes of a recording. A note that cannot be read is a gap. ERR_NO_SPACE; release in every case. */
enum status agent_notes_read(struct agent_notes *notes, const struct recording *recording);
void agent_notes_release(struct agent_notes *notes);

/*
 * What limits all other verdicts: agents that do not answer or leave something out, ranks that are not
 * recorded, lost operations, damaged files. None of it is the job's fault, so it never hides other
 * verdicts.
 */

struct blind_options {
	const struct agent_notes *notes; /* what agents left out; NULL none */
	const struct hang_source *sources;
	size_t source_count;
	const char *asked; /* what sources are: "agents" */
	/* Should this trouble be reported? NULL: all but truncated files and unrelated files of a
	 * directory. */
	bool (*is_trouble)(const struct recording_trouble *trouble, void *context);
	void *context;
	bool is_whole;	  /* the whole job was asked for: missing ranks are a warning */
	uint64_t wall_ns; /* current time: recordings that end just before it go on; 0 unknown */
	uint64_t hang_ns;
};

/* Adds VERDICT_BLIND. scene may be NULL. */
void blind_find(struct verdicts *verdicts, const struct recording *recording,
		const struct scene *scene, const struct blind_options *options);

/*
 * What NCCL's RAS adds to verdicts (import/ras.h): which ranks do not answer, have an error, or have launched
 * fewer collectives.
 *
 * It only adds. RAS does not notice most hangs, so "OK" is no reason to doubt one. An answer is used only if it is about
 * this job: a communicator of the recording has the same hash, and its ranks the same process ids.
 */

/* After the verdicts on hangs. `from` says where the answer is from. ERR_NO_SPACE. */
enum status ras_find(struct verdicts *verdicts, const struct recording *recording,
		     const struct ras_status *ras, const char *from);

/*
 * The same for the hangs of one job among several, and nothing else. *is_ours: the answer is about it. ERR_NO_SPACE.
 */
enum status ras_support(struct verdicts *verdicts, const struct recording *recording,
			const struct ras_status *ras, const char *job, bool *is_ours);

/*
 * What hosts know (import/host_facts.h) beside the verdicts of a job: the Xid behind a hang, the port of a slow link,
 * the clock of a slow GPU, the OOM killer behind a dead process. Facts support verdicts and never make one: what
 * stands alone is a note. Only what happened while the job ran counts.
 */

/*
 * Adds evidence to verdicts that name a host and, with has_notes, notes about the hosts of the job. `own`: facts of one host that were
 * read here, or NULL; those of others are in the notes of the job's recording. Lines that a verdict already has are
 * not added again.
 */
void host_support(struct verdicts *verdicts, const struct job *job, const struct host_facts *own,
		  bool has_notes);

/*
 * Where the processes of this host are in their program: Python frames from py-spy, native frames from eu-stack or gdb,
 * else what /proc says. docs/STACKS.md has the rules:
 *
 * - py-spy runs with --nonblocking and does not stop the process. eu-stack and gdb do, so they run only if `may_stop`,
 *   and are killed when the process has been stopped for STACKS_STOP_NS. Then the process is made to run again.
 * - Nothing is read from processes of other users, not even by root, nor from one that has or had other rights than
 *   ours (setuid), unless `any_user`.
 * - A process in uninterruptible sleep, stopped or traced is not stopped, nor one that we could not continue.
 * - RINGSIDE_STACKS=0, here or in the environment of the process, turns all of it off. Of another user's process whose
 *   environment cannot be read, nothing is read.
 */

/* The most that a process is stopped, less what it takes to notice and to end the tool. */
#define STACKS_STOP_NS UINT64_C(60000000)

struct stacks_options {
	bool may_stop;
	bool any_user;	    /* read processes of other users, too, as far as the system allows it */
	uint64_t budget_ns; /* no tool is started after this time; 0: no limit */
};

struct stacks_target {
	int64_t pid;
	uint64_t start_ticks; /* 0: not known: whoever has the pid now */
	struct stack stack;
	/* Why there is nothing, or less than there could be: "" none. */
	char why[160];
	/* Of /proc; private. */
	uint64_t first_ns;
	bool is_read;
	bool is_stopped_long;
};

/* Is it turned off here? */
bool stacks_are_off(void);

void stacks_target_init(struct stacks_target *target, int64_t pid, uint64_t start_ticks);
void stacks_target_release(struct stacks_target *target);

/* Reads all of them; takes about a second, and longer if tools do: at most 5 s for each tool, 5.5 s if it fails first. */
void stacks_take(struct stacks_target *targets, size_t count, const struct stacks_options *options);

/*
 * Takes the stacks of processes of a recording that run on this host and have none, at most STACKS_PROCESSES_MAX, and
 * puts them into `process->stack`. `wanted` may be NULL: all; else it decides for each. How many it found.
 */
enum { STACKS_PROCESSES_MAX = 64 };
size_t stacks_of_recording(struct recording *recording,
			   bool (*wanted)(const struct recording_process *process, void *context),
			   void *context, const struct stacks_options *options);

#endif
