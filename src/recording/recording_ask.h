/*
 * Asking a running process to time every operation for a while. The request is the one word of a region that
 * others than its process write; its recorder looks at it now and then and answers in the word beside it. Whoever
 * may write the file may ask: the process's user, and root.
 */
#ifndef RECORDING_ASK_H
#define RECORDING_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "recording/recording.h"

enum recording_answer {
	RECORDING_GRANTED = 0,
	RECORDING_PENDING = 1, /* the process has called no collective since */
	RECORDING_ALREADY = 2, /* every operation is timed anyway: nothing was asked */
	RECORDING_REFUSED = 3, /* it may not sample, or must not any more */
	RECORDING_FAILED = 4,  /* it could not be asked */
	RECORDING_ANSWERS = 5,
};
const char *recording_answer_name(enum recording_answer answer); /* "granted", "pending", ... */

enum { RECORDING_REASON = 320 };

struct recording_ask {
	uint64_t request; /* as it was written; 0: nothing was */
	enum recording_answer answer;
	char reason[RECORDING_REASON]; /* "" when granted */
};

/* How kernel events are requested in a process ("on", "sampled", "off"), and why. */
void recording_kernel_events(const struct recording_process *process, char is_on[static 8],
			     char reason[static RECORDING_REASON]);

/* The process must have an open region. */
void recording_ask_kernel(struct recording_ask *ask, const struct recording_process *process,
			  uint32_t seconds);

/* Look for an answer; false as long as it is pending. */
bool recording_ask_answered(struct recording_ask *ask, const struct recording_process *process);

#endif
