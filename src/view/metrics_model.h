/*
 * What is shown: which series there are, and who is in them.
 *
 *	job.seats[]  --+--> members   (nccl_job, comm, rank): the most used communicators of each GPU
 *	processes[]  --+--> others    (nccl_job, "other", rank): the rest of a process
 *	             --+--> processes (nccl_job, global_rank, pid)
 *
 * Labels decide who is one: what would have the same labels is one member, with its parts added up. Of
 * parts whose process is over and parts whose process lives, those that live are taken: a restarted
 * rank begins anew, as a counter that is reset.
 */
#ifndef METRICS_MODEL_H
#define METRICS_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "doctor/live.h"
#include "view/metrics_out.h"

#define METRICS_NOBODY UINT32_MAX
enum { METRICS_NAME_OTHER = 255 };

enum metrics_member_kind {
	METRICS_HASHED = 0,  /* a communicator by its hash */
	METRICS_UNKNOWN = 1, /* a communicator whose hash is not known */
	METRICS_OTHER = 2,   /* the rest of a process */
	METRICS_PROCESS = 3, /* the process itself */
};

struct metrics_member {
	enum metrics_member_kind kind;
	bool is_folded;	  /* its seats are shown with METRICS_OTHER of their process */
	bool is_used;	  /* something is in it: others without anything are not shown */
	bool is_ended;	  /* the process of the seat that tells ended cleanly */
	uint32_t process; /* that shows it: in a textfile, in whose file it is */
	uint32_t seat;	  /* the one that tells about it, METRICS_NOBODY: none */
	uint32_t gpu;	  /* index into job.ranks: whose budget it takes */
	uint32_t oldest;  /* the seat with the oldest operation, METRICS_NOBODY: none */
	uint64_t issued;  /* these four are sums */
	uint64_t finished;
	uint64_t wait_ns;
	bool knows_wait; /* it was compared with others */
	uint64_t untrusted;
	uint64_t in_flight; /* a sum for others, else the largest */
	uint64_t oldest_age_ns;
	uint64_t still_ns;    /* of the seat that tells */
	uint64_t collectives; /* these four are the largest of those that live */
	uint64_t replays;
	uint64_t number_issued;
	uint64_t number_done;
	uint64_t signature; /* of the seat that tells */
	struct metrics_labels labels;
};

struct metrics_model {
	const struct live *live;
	const struct job *job;
	const struct recording *recording;
	struct metrics_member *members; /* by kind, then labels */
	size_t member_count;
	uint32_t *seat_member; /* per seat: where it is shown, METRICS_NOBODY: it gave way */
	uint32_t *
		next_process; /* per process: the next one of its METRICS_PROCESS, METRICS_NOBODY: none */
	uint32_t *other_member; /* per process: the METRICS_OTHER of it, or METRICS_NOBODY */
	uint8_t name_map[OP_NAME_TABLES]
			[256]; /* a job's number of a name: the one it is shown as */
	uint64_t merged;       /* seats and processes beyond the first of a member */
	uint64_t folded_comms;
};

/* ERR_NO_SPACE (memory). Release in every case. Labels of members go to `out`. */
enum status metrics_model_make(struct metrics_model *model, const struct live *live,
			       struct metrics_out *out);
void metrics_model_release(struct metrics_model *model);

/* Does the process live, or can nobody say? */
bool metrics_is_living(const struct recording_process *process);

/* The number under which a process's name is shown, and its text ("other" for METRICS_NAME_OTHER). */
uint8_t metrics_name_number(const struct metrics_model *model, size_t process,
			    enum op_name_table table, uint8_t number);
const char *metrics_name_text(const struct metrics_model *model, enum op_name_table table,
			      uint8_t number);

/* The text of label comm for a seat. */
enum { METRICS_COMM_TEXT = 160 };
void metrics_comm_text(const struct metrics_model *model, uint32_t seat,
		       char to[static METRICS_COMM_TEXT]);

/* The global rank of a process, -1 unknown. */
int64_t metrics_global_rank(const struct metrics_model *model, size_t process);

/*
 * Of each group the `limit` with the most use stay, the lower index where use is equal. Sorts the
 * candidates; those that do not stay come first, and it is said how many.
 */
struct metrics_candidate {
	uint64_t group;
	uint64_t use;
	uint32_t index;
	bool is_beyond;
};
size_t metrics_choose(struct metrics_candidate *candidates, size_t count, size_t limit);

#endif
