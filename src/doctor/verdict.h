/*
 * A problem: its cause, evidence, confidence, caveats and next steps. The analyses (doctor.h)
 * add to one list; the output (output/verdict_show.h, the agent) reads it.
 *
 * A verdict names one cause. Ranks that merely wait because of it are counted in `victims` and listed in
 * the evidence, never blamed. What could not be seen is in `missing` (caveats) and lowers `confidence`.
 * docs/DOCTOR.md explains the classes.
 */
#ifndef VERDICT_H
#define VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/attributes.h"
#include "common/text.h"

struct job;

enum verdict_class {
	/* Hangs. */
	VERDICT_NEVER_ISSUED = 0,    /* a rank has not called what the others are in */
	VERDICT_MISMATCH = 1,	     /* ranks called different operations: see `rule` */
	VERDICT_NOT_LAUNCHED = 2,    /* called, but its kernel was never enqueued */
	VERDICT_GPU_NOT_REACHED = 3, /* enqueued, but the kernel did not start */
	VERDICT_GPU_STUCK = 4,	   /* the kernel runs, but its side produces or consumes nothing */
	VERDICT_NETWORK_STUCK = 5, /* the network accepted the data and does not complete */
	VERDICT_DEADLOCK = 6,	   /* ranks wait for each other in a cycle, across communicators */
	VERDICT_PROCESS_DEAD = 7,
	VERDICT_PROCESS_STOPPED = 8, /* SIGSTOP, a debugger, a frozen container */
	VERDICT_AGENT_DEAD = 9,	     /* its ranks are not visible; others wait for some of them */
	VERDICT_UNSEEN = 10,	     /* all wait for a rank that is not recorded */
	VERDICT_STUCK = 11,	     /* stuck without a visible cause */
	/* Slowness. */
	VERDICT_SLOW_RANK = 12,	     /* straggler: compute, data, host */
	VERDICT_SLOW_HOST = 13,	     /* most ranks of one host are */
	VERDICT_SLOW_LINK = 14,	     /* transfers of one link are slow */
	VERDICT_SLOW_NETWORK = 15,   /* between nodes, everywhere */
	VERDICT_SLOW_NVLINK = 16,    /* within nodes, or within one */
	VERDICT_SLOW_COMM = 17,	     /* one communicator */
	VERDICT_SLOW_SIZE = 18,	     /* one size of message */
	VERDICT_SLOW_ALGORITHM = 19, /* one algorithm or protocol, or a different one than before */
	VERDICT_BELOW_EXPECTED = 20, /* below nccl-tests, a baseline or --peak; none of the above */
	/* Misconfiguration: `rule` says which (setup_rule()). */
	VERDICT_SETUP = 21,
	/* Limits all the others: lost operations, damaged files, missing ranks. */
	VERDICT_BLIND = 22,
	/* A hang, from one node: its ranks wait for ranks on other nodes. Names no culprit. */
	VERDICT_ELSEWHERE = 23,
	VERDICT_CLASSES = 24,
};

const char *verdict_class_name(enum verdict_class class); /* "never_issued", ... */
bool verdict_is_hang(enum verdict_class class);		  /* NEVER_ISSUED .. STUCK, ELSEWHERE */
bool verdict_is_slow(enum verdict_class class);		  /* SLOW_RANK .. BELOW_EXPECTED */

enum verdict_severity {
	VERDICT_NOTE = 0, /* worth knowing; exit code 0 */
	VERDICT_WARNING = 1,
	VERDICT_ERROR = 2, /* the job makes no progress */
};
const char *verdict_severity_name(enum verdict_severity severity);

/* Lines of text, each a sentence or a command. */
struct verdict_lines {
	char **list;
	size_t count;
};
enum {
	VERDICT_LINES_MAX = 32, /* of each kind; the last one says that more were left out */
	VERDICT_PLACE = 832,
};

struct verdict {
	enum verdict_class class;
	enum verdict_severity severity;
	double confidence; /* 0..1: see verdict_confidence_word() */

	/* Which rank and where. Strings are "" and numbers -1 if not applicable or unknown. */
	char job[128];
	int64_t rank;	     /* global */
	char rank_label[64]; /* as job_rank.label */
	char host[256];
	int64_t pid;
	int32_t gpu;
	int64_t peer; /* global rank at the other end of a link, or one that disagrees */
	char peer_label[64];
	char peer_host[256];
	int32_t channel;   /* if it is only one */
	char channels[64]; /* "3", "0-7,12" */
	char comm[128];	   /* job_comm.label */
	uint64_t comm_hash;
	int32_t comm_rank;
	char function[32];
	uint64_t number; /* match number of the operation; 0 none */
	char rule[48];	 /* setup: "p2p-disabled"; mismatch: "count", "datatype", "root",
			    "order", "function"; slow: the reference: "others", "past",
			    "baseline", "expected", "peak" */

	uint64_t job_start_wall_ns; /* of this run of its job on this node; 0 unknown */
	uint64_t since_wall_ns;	    /* 0 unknown */
	uint64_t for_ns;	    /* 0 unknown */
	bool is_allowed;	    /* its job allows such a wait: RINGSIDE_HANG_AFTER */
	uint64_t dead_wall_ns; /* the job is dead: its last sign of life; 0: it runs, or unknown */
	uint32_t victims;      /* ranks that wait because of it */
	double gpu_hours;      /* lost by it so far, as exact as cost_percent; 0 unknown */
	double money;	       /* the same in money; 0: no price was given */
	double percent;	       /* slower by this; of a straggler: share of run time that others
				   wait for it; 0 none */
	double cost_percent;   /* slowness: share of the job's time that it costs while it lasts;
				   0 unknown */
	bool is_cost_bound;    /* it costs at most that, or if the next is set, at least that */
	bool is_cost_least;
	double cost_least_percent; /* of a cost at most: it costs at least that; 0 unknown */

	char title[200]; /* a phrase without a full stop */
	/* Where the culprit is in its program, as a phrase after "is"; "" unknown. */
	char place[VERDICT_PLACE];
	struct verdict_lines evidence; /* from logs: "FILE:LINE: ..." */
	struct verdict_lines missing;  /* caveats: what could not be seen, and what that means */
	struct verdict_lines advice;   /* next steps: a sentence, or a command after "$ " */
	bool is_unjudged; /* BLIND: something could not be judged because of it; `rule` says
			     what: "hang", "speed", ... If false, the job may still be healthy. */
	char page[64]; /* "runbooks/HangNetwork.md" below docs/; "" none; see verdict_runbook() */
};

enum { VERDICTS_MAX = 256 };

struct verdicts {
	struct verdict *list;
	size_t count;
	size_t left_out; /* beyond VERDICTS_MAX, or out of memory */
};

void verdicts_init(struct verdicts *verdicts);
void verdicts_release(struct verdicts *verdicts);

/* A new one, all fields unknown, confidence 1; never NULL: beyond the limit it is discarded and counted.
 * Valid until the next call. */
struct verdict *verdicts_add(struct verdicts *verdicts, enum verdict_class class,
			     enum verdict_severity severity);

/* A copy with lines of its own, as verdicts_add(). If memory is short, it lacks some lines. */
struct verdict *verdicts_add_copy(struct verdicts *verdicts, const struct verdict *verdict);

/* The page of its class. */
void verdict_set_page(struct verdict *verdict);
/* Which rank and where, and the other end of a link; `rank` is an index into job.ranks. */
void verdict_set_rank(struct verdict *verdict, const struct job *job, uint32_t rank);
void verdict_set_peer(struct verdict *verdict, const struct job *job, uint32_t rank);

/* What does not fit ends in "...". Lines without memory are dropped; the last line says that more were left
 * out. */
void verdict_title(struct verdict *verdict, const char *format, ...) PRINTF_LIKE(2, 3);
void verdict_evidence(struct verdict *verdict, const char *format, ...) PRINTF_LIKE(2, 3);
void verdict_missing(struct verdict *verdict, const char *format, ...) PRINTF_LIKE(2, 3);
void verdict_advice(struct verdict *verdict, const char *format, ...) PRINTF_LIKE(2, 3);

/* Appends "0-7,12" for a bit set of channels. */
void verdict_say_channels(char *text, size_t size, const uint64_t channels[4]);

/* Most serious first: severity, hangs before slowness before set-up, cost or victims, confidence. */
void verdicts_sort(struct verdicts *verdicts);

/* "up to ", "at least " or "", before what it costs. */
const char *verdict_cost_word(const struct verdict *verdict);

/* "certain" from 0.95, "very likely" from 0.8, "likely" from 0.5, "possible" below. */
const char *verdict_confidence_word(double confidence);

/* "97%", and ">99%" for what would be rounded to 100%. */
struct units_text verdict_confidence_percent(double confidence);

/* Where its page can be read: an address if RINGSIDE_RUNBOOKS says where docs/ is served, else the command that
 * shows it, "ringside help hang-network", or its file, "docs/DOCTOR.md#not-judged". "" if it has none. */
enum { VERDICT_RUNBOOK = 512 };
const char *verdict_runbook(const struct verdict *verdict, char to[static VERDICT_RUNBOOK]);

/* GPU-hours that waiting ranks have lost by a hang so far; 0: no hang, or its length is unknown. */
double verdict_hours_hung(const struct verdict *verdict);

/* Is one of them at least a warning? */
bool verdicts_has_trouble(const struct verdicts *verdicts);

/* Does one of them say that something could not be judged? */
bool verdicts_has_unjudged(const struct verdicts *verdicts);

/* Identity from one scan to the next: the same cause has the same key. */
uint64_t verdict_key(const struct verdict *verdict);

#endif
