/*
 * Jobs, ranks and communicators over all processes of a recording.
 *
 *	recording.processes[i]     one process; nearly always one rank
 *	      |  comms[]           the communicators as that process numbers them
 *	      v
 *	job.seats[]                one (process, communicator number): rank r of communicator c
 *	      |            \
 *	      v             v
 *	job.ranks[]        job.comms[]
 *
 * A communicator is matched across processes by its hash. If a process uses a hash again (the communicator
 * was recreated), `generation` counts up, in the order of the process's own numbers; a seat that is taken
 * already, or a different number of ranks, makes a separate communicator. A hash of 0 (NCCL before 2.27
 * does not report it) is never matched.
 *
 * Several jobs in one recording are kept separate, and so are the runs of a job: communicators match only
 * within a group.
 */
#ifndef JOB_H
#define JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/op.h"
#include "common/op_layout.h"
#include "common/status.h"
#include "recording/recording.h"

enum job_comm_kind {
	JOB_COMM_UNKNOWN = 0, /* NCCL did not report the number of ranks or nodes */
	JOB_COMM_SINGLE = 1,  /* one rank */
	JOB_COMM_NVLINK = 2,  /* one node */
	JOB_COMM_NET = 3,     /* one rank per node */
	JOB_COMM_MIXED = 4,
	JOB_COMM_KINDS = 5,
};

const char *job_comm_kind_name(enum job_comm_kind kind); /* "nvlink-only", "net-only", ... */
/* 0 or less: not reported by NCCL. */
enum job_comm_kind job_comm_kind_of(int32_t nranks, int32_t nnodes);
/* Between nodes, at least partly. */
bool job_comm_is_over_network(enum job_comm_kind kind);

/* Processes with the same job name, of one run. */
struct job_group {
	char name
		[128]; /* "": none was set; "train (run of 2026-11-16 08:00:00)" if a later run is here, too */
	uint32_t run;		  /* as recording_process.run */
	int64_t owner;		  /* as recording_process.owner, of its first process */
	bool is_earlier_run;	  /* as recording_process.is_earlier_run */
	uint64_t started_wall_ns; /* of its first process; 0 unknown */
	uint32_t first_rank;	  /* ranks[first_rank .. + rank_count - 1] */
	uint32_t rank_count;
	uint32_t
		known_ranks; /* without those that were not placed, which may be one of the others; none is: all */
	uint32_t process_count;
	uint32_t host_count;
	int64_t world_size;	/* from the launcher, else the largest communicator; 0 unknown */
	uint64_t hang_after_ns; /* RINGSIDE_HANG_AFTER, the largest of its processes; 0 not set */
};

struct job_rank {
	uint32_t process; /* index into recording.processes */
	uint32_t group;
	uint32_t host;	 /* index into job.hosts */
	int64_t rank;	 /* global; -1 unknown */
	bool is_derived; /* rank is that of the largest communicator, not the launcher's */
	/* A seat of a process of several ranks, and nothing shows which of them it is. rank is -1, the label
	 * is "6 of ep-0". */
	bool is_unplaced;
	bool is_counted; /* as a rank: not if it was not placed and others of its process were */
	bool is_partial; /* others of its process were not placed: some of their calls may be its */
	uint32_t attempt; /* from 0: earlier processes of the same job with this rank, by start */
	int32_t gpu;	  /* CUDA device number in its process, -1 unknown */
	char gpu_uuid[48];
	int64_t pid;
	enum recording_life life;
	char label
		[64]; /* "3"; "3 (start 2)" after a restart; "host:pid" when the rank is unknown */
};

struct job_seat {
	uint32_t process;
	uint32_t comm_id;  /* the process's own number of the communicator */
	uint32_t comm;	   /* index into job.comms */
	uint32_t rank;	   /* index into job.ranks */
	int32_t comm_rank; /* rank within the communicator, -1 unknown */
};

struct job_comm {
	uint64_t hash; /* 0 unknown */
	uint32_t group;
	uint32_t generation; /* from 0: the same hash was used before */
	char name[96];	     /* "" none */
	char label[128];     /* for display: the name, else the hash; unique within the recording */
	int32_t nranks;	     /* 0 unknown */
	int32_t nnodes;	     /* 0 unknown */
	enum job_comm_kind kind;
	uint32_t *seats;     /* indices into job.seats, by comm_rank */
	uint32_t seat_count; /* recorded ranks */
	uint32_t missing;    /* nranks - seat_count; 0 if nranks is unknown */
	uint64_t missed;     /* collectives that NCCL did not report, over all seats: see "Gaps"
				below */
};

struct job_host {
	char name[256];
	uint32_t known_ranks; /* as in job_group */
};

/* Names that NCCL used and our tables lack, merged over all processes. */
enum { JOB_NAMES_MAX = 127, JOB_NAME_OTHER = 255 };

struct job {
	const struct recording *recording; /* borrowed: must outlive the job */
	struct job_group *groups;
	size_t group_count;
	struct job_host *hosts; /* in the order of their first rank */
	size_t host_count;
	struct job_rank *ranks; /* by group, rank, attempt, process */
	size_t rank_count;
	size_t known_ranks;	/* as in job_group */
	struct job_comm *comms; /* by group, number of ranks downwards, label */
	size_t comm_count;
	struct job_seat *seats; /* by process, then as in process->comms */
	size_t seat_count;
	uint32_t *first_seat;	/* per process, plus one: seats[first_seat[p] + i] is
				   process->comms[i] */
	uint32_t *process_rank; /* per process: its first rank */
	char (*names)[32];	/* [n - OP_NAME_INTERNED]: those of all tables */
	uint32_t name_count;
	uint8_t (*name_map)[OP_NAMES_INTERNED_MAX]; /* per process */
	uint32_t conflicts; /* conflicts: two processes claimed to be the same rank of the same
			       communicator */
};

/* The same over all runs of a job. */
uint64_t job_hang_after_ns(const struct job *job, const char *name);

/* On ERR_NO_SPACE (out of memory) there is nothing to release. If NCCL did not report every call, the
 * numbers of operations in flight are aligned in the recording itself: see "Gaps" below. */
enum status job_make(struct job *job, const struct recording *recording);
void job_release(struct job *job);

/* The seat of a process's communicator; NULL if the process does not list it. */
const struct job_seat *job_seat(const struct job *job, size_t process, uint32_t comm_id);
/* Index into job.seats of a communicator's rank; UINT32_MAX: not recorded. */
uint32_t job_member(const struct job *job, const struct job_comm *comm, int32_t comm_rank);
/* Index into job_comm.seats of a rank (index into job.ranks); UINT32_MAX: it is not in the communicator. */
uint32_t job_place_in(const struct job *job, uint32_t comm, uint32_t rank);
bool job_is_member(const struct job *job, uint32_t comm, uint32_t rank);
/* How many of its ranks are on a host (index into job.hosts). */
uint32_t job_members_on(const struct job *job, uint32_t comm, uint32_t host);
/* All of its ranks: what they exchange over sockets does not leave it. */
bool job_is_on_one_host(const struct job *job, uint32_t comm);

/* A process's number for a name as the whole job numbers it; JOB_NAME_OTHER if there are too many. */
uint8_t job_name_number(const struct job *job, size_t process, uint8_t number);
/* The name of such a number, "?" if unknown. */
const char *job_name(const struct job *job, enum op_name_table table, uint8_t number);

/* These append. "rank 5", "process node0:4711": of a seat (index into job.seats). */
void job_say_rank(char *text, size_t size, const struct job *job, uint32_t seat);
/* "AllReduce #812", "AllReduce #812 (graph replay)": of this seat. */
void job_say_operation(char *text, size_t size, const struct job *job, uint32_t seat,
		       const struct op_record *op);

/*
 * Communicators for which NCCL did not report every collective of every rank: docs/ARCHITECTURE.md, "Gaps".
 * There "the n-th collective" is not the same one on all ranks. NCCL's own numbers are, per function. One
 * rank is the reference: collectives of the others get the match number of the same collective there, and 0
 * (unknown) if it was not recorded there.
 */

/* ---- operations in flight -------------------------------------------------------------------- */

/* Function and NCCL's number combined, the same for all ranks of a collective; 0: it has none. */
uint64_t job_gap_key(const struct job *job, uint32_t seat, const struct op_record *op);

/* ---- recorded operations --------------------------------------------------------------------- */

struct job_gap_entry {
	uint64_t key; /* function and NCCL's number */
	uint64_t match;
};

struct job_gap_comm {
	uint32_t reference; /* seat */
	struct job_gap_entry *list;
	size_t count;
};

struct job_gaps {
	const struct job *job;
	struct job_gap_comm *comms; /* per communicator of the job; NULL: there are no gaps */
	uint64_t *match, *signature;
	uint32_t room;
	enum status status;
};

/* Reads the references' operations, if there are gaps. ERR_NO_SPACE (out of memory); release in every case. */
enum status job_gaps_init(struct job_gaps *gaps, const struct job *job);
void job_gaps_release(struct job_gaps *gaps);

/* Words needed in a batch besides KIND, STATE, MATCH and SIGNATURE. */
uint32_t job_gaps_words(const struct job_gaps *gaps);

/* The same rows with aligned numbers, and without signatures where these are meaningless: `batch` itself,
 * or `copy`, which is valid until the next call. Sets status. */
const struct op_batch *job_gaps_batch(struct job_gaps *gaps, size_t process,
				      const struct op_batch *batch, struct op_batch *copy);

#endif
