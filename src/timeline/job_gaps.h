/*
 * Communicators on which NCCL did not show every collective of every rank: docs/OPERATIONS.md, "Gaps". There
 * "the n-th collective" is not the same one on all ranks. NCCL's own numbers are, per function. One rank is the
 * reference: collectives of the others get the match number that the same collective has there, and 0,
 * unknown, where it was not recorded there.
 */
#ifndef JOB_GAPS_H
#define JOB_GAPS_H

#include "common/op.h"
#include "timeline/job.h"

/* ---- what is in flight ------------------------------------------------------------------------ */

/* Function and NCCL's number in one, the same for all ranks of a collective; 0: it has none. */
uint64_t job_gap_key(const struct job *job, uint32_t seat, const struct op_record *op);

/* Part of job_make(): counts what was missed, and aligns flights and counts of the recording, in place. */
void job_align_flights(struct job *job);

/* ---- what is recorded --------------------------------------------------------------------------- */

struct job_gap_entry {
	uint64_t key; /* function and NCCL's number */
	uint64_t match;
};

struct job_gap_comm {
	uint32_t reference; /* seat */
	struct job_gap_entry *list;
	size_t count, room;
};

struct job_gaps {
	const struct job *job;
	struct job_gap_comm *comms; /* per communicator of the job; NULL: there are no gaps */
	uint64_t *match, *signature;
	uint32_t room;
	enum status status;
};

/* Walks the references' operations, if there are gaps. ERR_NO_SPACE (memory); release in every case. */
enum status job_gaps_init(struct job_gaps *gaps, const struct job *job);
void job_gaps_release(struct job_gaps *gaps);

/* What a batch needs besides KIND, STATE, MATCH and SIGNATURE. */
uint32_t job_gaps_words(const struct job_gaps *gaps);

/* The same rows with aligned numbers, and without signatures where these say nothing: `batch` itself, or `copy`,
 * which is good until the next call. Sets status. */
const struct op_batch *job_gaps_batch(struct job_gaps *gaps, size_t process,
				      const struct op_batch *batch, struct op_batch *copy);

#endif
