/*
 * From Prometheus' answers to a job; callers use prom.h.
 *
 *	answer --prom_scan--> samples --prom_take--> tables: strings, communicators, ranks, processes, rows
 *	                                       tables --prom_finish--> recording, sources, totals
 */
#ifndef PROM_INTERNAL_H
#define PROM_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "doctor/doctor.h"

struct prom;

/* Of a signature, as many bits as a double holds. */
#define SIGNATURE_BITS ((UINT64_C(1) << 52) - 1)

/* The queries; the first PROM_NEEDED must be answered. */
enum prom_ask {
	PROM_PROCESSES = 0,
	PROM_MEMBERS = 1,
	PROM_NUMBERS = 2,
	PROM_OLDEST = 3,
	PROM_WAITS = 4,
	PROM_LAST = 5,
	PROM_DOWN = 6,
	PROM_UNSEEN = 7,
	PROM_SINCE = 8,
	PROM_SUMS_NOW = 9, /* three: operations, seconds, bus bytes */
	PROM_SUMS_BEFORE = 12,
	PROM_EDGES_NOW = 15, /* three: transfers, seconds on the wire, bytes */
	PROM_EDGES_BEFORE = 18,
	PROM_TIMED_NOW = 21, /* operations that seconds and bus bytes belong to */
	PROM_TIMED_BEFORE = 22,
	PROM_LIMITS = 23, /* RINGSIDE_HANG_AFTER of jobs */
	PROM_ASKS = 24,
};

/* ---- one answer (prom.c) ---------------------------------------------------------------- */

struct prom_slice {
	const char *text; /* not terminated; NULL: no such label */
	size_t length;
};

/* ---- tables (prom.c) ------------------------------------------------------------------- */

/* From the hash of a key to its entry in a list; the caller compares the keys. */
struct prom_slot {
	uint64_t hash;
	uint32_t item; /* plus 1; 0 free */
};
struct prom_index {
	struct prom_slot *slots;
	size_t room;  /* a power of two, 0 at first */
	size_t count; /* entries of the list, too */
};

struct prom_texts {
	char **list; /* [0] is "" */
	size_t count;
	struct prom_index index;
};

/* The number of a string, without control bytes and at most 255 bytes long; 0 for "" and if out of memory
 * (see prom->status). */
uint32_t prom_text(struct prom *prom, struct prom_slice slice);

/* Entries of tables begin with their key, without gaps: the members before the first empty line. */
struct prom_comm {
	uint32_t job; /* strings */
	uint32_t comm;

	uint64_t hash;	/* NCCL's; 0: the label is invalid */
	uint32_t flags; /* enum comm_flag that one of its ranks reports */
};

enum prom_number {
	PROM_COLLECTIVES = 0,
	PROM_REPLAYS = 1,
	PROM_ISSUED = 2,
	PROM_DONE = 3,
	PROM_SIGNATURE = 4,
	PROM_AGE = 5,	   /* ns */
	PROM_ACTIVITY = 6, /* ns */
	PROM_NUMBER_COUNT = 7,
};

/* What a rank called: labels of an info. */
struct prom_call {
	uint32_t function; /* strings */
	uint32_t datatype;
	uint64_t count;
	int32_t root;
	int32_t peer;
	uint64_t number;
	uint64_t match;
	uint64_t signature;
	uint32_t state;		  /* strings, these three */
	uint32_t kernels_started; /* channels */
	uint32_t kernels_stopped;
	bool has_kernels;
	bool is_replay;
};

struct prom_wait {
	uint32_t next; /* of the same rank, plus 1; 0 none */
	uint32_t waits_for;
	uint32_t channels;
	int32_t peer;
	uint64_t for_ns;
};

struct prom_member {
	uint32_t comm; /* into prom->comms */
	int32_t rank;

	bool has_info;
	bool is_finalized;
	uint32_t name; /* strings */
	uint32_t host;
	int64_t pid;
	int64_t global_rank;
	int32_t nranks;
	int32_t nnodes;
	int32_t gpu;
	uint32_t has_numbers; /* bit: enum prom_number */
	uint64_t numbers[PROM_NUMBER_COUNT];
	uint32_t oldest;  /* into prom->calls, plus 1; 0 none */
	uint32_t last;	  /* the same */
	uint32_t waits;	  /* into prom->waits, plus 1; 0 none */
	uint32_t process; /* into prom->processes */
};

struct prom_process {
	uint32_t job; /* strings */
	uint32_t host;
	int64_t pid;

	int64_t rank;
	int64_t local_rank;
	int64_t world_size;
	int32_t gpu;
	uint32_t gpu_uuid;
	uint32_t mode;
	uint32_t interface;
	uint32_t state;
	uint64_t scrape_ns; /* 0: known only from a communicator */
};

/* A sample that belongs to no rank of a communicator; what its query does not ask for is unknown. */
struct prom_fact {
	uint32_t instance; /* strings */
	uint32_t job;
	int64_t rank;	  /* global; -1 unknown */
	uint64_t wall_ns; /* the value as a time since 1970 */
	uint64_t whole;	  /* the value */
};
struct prom_facts {
	struct prom_fact *list;
	size_t count;
};

/* Totals of one rank by function and size, or with one peer. */
struct prom_row {
	uint32_t member;
	uint32_t function; /* strings; 0: a link */
	uint32_t size;
	int32_t peer;

	double values[4]; /* as queried; the fourth is of operations: the timed ones */
};
struct prom_rows {
	struct prom_row *list;
	struct prom_index index;
};
enum { PROM_ROWS_NOW = 0, PROM_ROWS_BEFORE = 1, PROM_ROWS_STRETCHES = 2 };

struct prom {
	char job[128];
	uint64_t hang_ns;
	unsigned int window_s;
	unsigned int past_s;
	bool has_past; /* past_s was given: no other is tried */
	char *queries[PROM_ASKS];
	char *paths[PROM_ASKS];
	bool is_taken[PROM_ASKS];
	enum status status; /* ERR_NO_SPACE: the first failure, permanent */

	struct prom_texts texts;
	struct prom_comm *comms;
	struct prom_index comm_index;
	struct prom_member *members;
	struct prom_index member_index;
	struct prom_process *processes;
	struct prom_index process_index;
	struct prom_call *calls;
	size_t call_count;
	struct prom_wait *waits;
	size_t wait_count;
	struct prom_facts downs;  /* agents that do not answer */
	struct prom_facts unseen; /* ranks that they had */
	struct prom_facts since;  /* when a job started, within the queried time span */
	struct prom_facts limits; /* RINGSIDE_HANG_AFTER of a job */
	struct prom_rows sums[PROM_ROWS_STRETCHES];
	struct prom_rows edges[PROM_ROWS_STRETCHES];
	uint64_t wall_ns;
	size_t odd;
	char warning[200];

	/* Made by prom_finish(). */
	struct hang_source *sources;
	size_t source_count;
	struct slow_member *slow_members[PROM_ROWS_STRETCHES];
	struct slow_edge *slow_edges[PROM_ROWS_STRETCHES];
	struct slow_sums slow[PROM_ROWS_STRETCHES];
};

static inline const char *prom_text_of(const struct prom *prom, uint32_t text)
{
	return prom->texts.list[text];
}

uint32_t prom_process_of(struct prom *prom, uint32_t job, uint32_t host, int64_t pid);

#endif
