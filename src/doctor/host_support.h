/*
 * What hosts know (import/host_facts.h) beside the verdicts of a job: the Xid behind a hang, the port of a slow link,
 * the clock of a slow GPU, the OOM killer behind a dead process. Facts support verdicts and never make one: what
 * stands alone is a note. Only what happened while the job ran counts.
 */
#ifndef HOST_SUPPORT_H
#define HOST_SUPPORT_H

#include <stdbool.h>

#include "analysis/job.h"
#include "doctor/verdict.h"
#include "import/host_facts.h"

/*
 * Adds evidence to verdicts that name a host and, with has_notes, notes about the hosts of the job. `own`: facts of one host that were
 * read here, or NULL; those of others are in the notes of the job's recording. Lines that a verdict already has are
 * not added again.
 */
void host_support(struct verdicts *verdicts, const struct job *job, const struct host_facts *own,
		  bool has_notes);

#endif
