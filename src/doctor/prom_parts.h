/*
 * Between the files that make a job of Prometheus' answers; callers use prom.h.
 *
 *	answer --prom_scan--> samples --prom_take--> tables: texts, communicators, members, processes, rows
 *	                                       tables --prom_finish--> recording, sources, sums
 */
#ifndef PROM_PARTS_H
#define PROM_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "doctor/prom.h"

/* What is asked; the first PROM_NEEDED must be answered. */
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
	PROM_ASKS = 21,
};

/* Labels that mean something here, as Prometheus orders them. */
enum prom_label {
	PROM_LABEL_NAME,
	PROM_LABEL_CHANNELS,
	PROM_LABEL_COMM,
	PROM_LABEL_COMM_NAME,
	PROM_LABEL_COUNT,
	PROM_LABEL_DATATYPE,
	PROM_LABEL_FINALIZED,
	PROM_LABEL_FUNCTION,
	PROM_LABEL_GLOBAL_RANK,
	PROM_LABEL_GPU,
	PROM_LABEL_GPU_UUID,
	PROM_LABEL_HOST,
	PROM_LABEL_INSTANCE,
	PROM_LABEL_INTERFACE,
	PROM_LABEL_KERNELS_STARTED,
	PROM_LABEL_KERNELS_STOPPED,
	PROM_LABEL_LOCAL_RANK,
	PROM_LABEL_MATCH,
	PROM_LABEL_MODE,
	PROM_LABEL_NCCL_JOB,
	PROM_LABEL_NNODES,
	PROM_LABEL_NODE,
	PROM_LABEL_NRANKS,
	PROM_LABEL_NUMBER,
	PROM_LABEL_PEER,
	PROM_LABEL_PID,
	PROM_LABEL_RANK,
	PROM_LABEL_REPLAY,
	PROM_LABEL_ROOT,
	PROM_LABEL_SIGNATURE,
	PROM_LABEL_SIZE,
	PROM_LABEL_STATE,
	PROM_LABEL_WAITS_FOR,
	PROM_LABEL_WORLD_SIZE,
	PROM_LABELS,
};

/* ---- one answer (prom_scan.c) ---------------------------------------------------------------- */

struct prom_slice {
	const char *text; /* not terminated; NULL: there is no such label */
	size_t length;
};

struct prom_sample {
	struct prom_slice labels[PROM_LABELS];
	double value;
	uint64_t whole; /* the value where it is a whole number, exact */
	bool is_whole;
	double at; /* when Prometheus worked it out: seconds since 1970 */
};

/* One sample. False ends it. */
typedef bool prom_visit(struct prom *prom, enum prom_ask ask, const struct prom_sample *sample);

struct prom_answer {
	size_t samples;
	size_t odd;	   /* series that are not as they should be: not given */
	char warning[160]; /* the first; "" none */
};

/* Check the whole answer, then visit each sample. ERR_FORMAT: `why` says what, nothing was visited. */
enum status prom_scan(struct prom *prom, enum prom_ask ask, const char *text, size_t length,
		      prom_visit *visit, struct prom_answer *answer, char *why, size_t why_size);

/* ---- tables (prom_table.c) ------------------------------------------------------------------- */

/* From a hash to indices of a table; who looks compares the entries. */
struct prom_slot {
	uint64_t hash;
	uint32_t item; /* plus 1; 0 free */
};
struct prom_index {
	struct prom_slot *slots;
	size_t room; /* a power of two, 0 at first */
	size_t count;
};

/* Room for one more; false: no memory. */
bool prom_index_grow(struct prom_index *index);
/* The next slot with this hash, or the free one at the end; *at is `hash` at first. */
struct prom_slot *prom_index_next(const struct prom_index *index, uint64_t hash, uint64_t *at);

/* A table that grows: room for one more at [count], cleared; false: no memory. */
bool prom_grow(void *list, size_t count, size_t element_bytes);

struct prom_texts {
	char **list; /* [0] is "" */
	size_t count;
	struct prom_index index;
	char *block; /* texts stand in blocks, which stay where they are */
	size_t block_used;
	char **blocks;
	size_t block_count;
};

/* The number of a text, without control bytes and at most 255 bytes long; 0 for "" and without memory,
 * which prom->status says. */
uint32_t prom_text(struct prom *prom, struct prom_slice slice);

struct prom_comm {
	uint32_t job; /* texts */
	uint32_t comm;
	uint64_t hash;	/* NCCL's; 0: the label is none */
	uint32_t flags; /* enum comm_flag that one of its members shows */
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

/* What a member called: labels of an info. */
struct prom_call {
	uint32_t function; /* texts */
	uint32_t datatype;
	uint64_t count;
	int32_t root;
	int32_t peer;
	uint64_t number;
	uint64_t match;
	uint64_t signature;
	uint32_t state;		  /* texts, these three */
	uint32_t kernels_started; /* channels */
	uint32_t kernels_stopped;
	bool has_kernels;
	bool is_replay;
};

struct prom_wait {
	uint32_t next; /* of the same member, plus 1; 0 none */
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
	uint32_t name; /* texts */
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
	uint32_t job; /* texts */
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
	uint64_t scrape_ns; /* 0: only a communicator tells of it */
};

/* An agent that does not answer, and a rank that it had. */
struct prom_down {
	uint32_t instance;
	uint32_t node;
};
struct prom_unseen {
	uint32_t instance;
	uint32_t job;
	int64_t rank;
};

/* Since when a job is seen, within the stretch that is asked about. */
struct prom_since {
	uint32_t job;
	uint64_t first_ns;
};

/* Sums of one member by function and size, or with one peer. */
struct prom_row {
	uint32_t member;
	uint32_t function; /* texts; 0: an edge */
	uint32_t size;
	int32_t peer;
	double values[3];
};
struct prom_rows {
	struct prom_row *list;
	size_t count;
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
	enum status status; /* ERR_NO_SPACE: the first failure, for good */

	struct prom_texts texts;
	struct prom_comm *comms;
	size_t comm_count;
	struct prom_index comm_index;
	struct prom_member *members;
	size_t member_count;
	struct prom_index member_index;
	struct prom_process *processes;
	size_t process_count;
	struct prom_index process_index;
	struct prom_call *calls;
	size_t call_count;
	struct prom_wait *waits;
	size_t wait_count;
	struct prom_down *downs;
	size_t down_count;
	struct prom_unseen *unseen;
	size_t unseen_count;
	struct prom_since *since;
	size_t since_count;
	struct prom_rows sums[PROM_ROWS_STRETCHES];
	struct prom_rows edges[PROM_ROWS_STRETCHES];
	uint64_t wall_ns;
	uint64_t scrape_age_ns;
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

/* Made when they are new; UINT32_MAX: no memory, or no such member can be named. */
uint32_t prom_member_of(struct prom *prom, const struct prom_sample *sample);
uint32_t prom_process_of(struct prom *prom, uint32_t job, uint32_t host, int64_t pid);
/* Row of (member, function, size) or (member, peer); NULL: no memory. */
struct prom_row *prom_row_of(struct prom *prom, struct prom_rows *rows, struct prom_row key);

/* A label as a number within bounds; `otherwise` where it is none. */
int64_t prom_label_number(const struct prom_sample *sample, enum prom_label label, int64_t least,
			  int64_t most, int64_t otherwise);
uint64_t prom_label_unsigned(const struct prom_sample *sample, enum prom_label label);
bool prom_label_is(const struct prom_sample *sample, enum prom_label label, const char *text);

/* ---- the rest -------------------------------------------------------------------------------- */

/* prom_query.c: false: no memory. */
bool prom_make_queries(struct prom *prom);
/* prom_take.c */
bool prom_take_sample(struct prom *prom, enum prom_ask ask, const struct prom_sample *sample);
/* prom_flight.c: what a member is in and was in, behind the process's last flight. */
enum status prom_add_flights(const struct prom *prom, const struct prom_member *member,
			     struct recording_process *process, struct recording_comm *comm);
/* prom_sums.c: sources and sums. */
enum status prom_make_sources(struct prom *prom);
enum status prom_make_sums(struct prom *prom);

#endif
