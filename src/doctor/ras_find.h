/*
 * What NCCL's RAS adds to verdicts (import/ras_status.h): which ranks do not answer, have an error, or have launched
 * fewer collectives.
 *
 * It only adds. RAS does not notice most hangs, so "OK" is no reason to doubt one. An answer is used only if it is about
 * this job: a communicator of the recording has the same hash, and its ranks the same process ids.
 */
#ifndef RAS_FIND_H
#define RAS_FIND_H

#include <stdbool.h>

#include "common/status.h"
#include "doctor/verdict.h"
#include "import/ras_status.h"
#include "recording/recording.h"

/* After the verdicts on hangs. `from` says where the answer is from. ERR_NO_SPACE. */
enum status ras_find(struct verdicts *verdicts, const struct recording *recording,
		     const struct ras_status *ras, const char *from);

/*
 * The same for the hangs of one job among several, and nothing else. *is_ours: the answer is about it. ERR_NO_SPACE.
 */
enum status ras_support(struct verdicts *verdicts, const struct recording *recording,
			const struct ras_status *ras, const char *job, bool *is_ours);

#endif
