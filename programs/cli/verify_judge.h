/* What `verify` finds out about a process, and which of it is trouble. */
#ifndef VERIFY_JUDGE_H
#define VERIFY_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/attributes.h"
#include "programs/cli/cli_input.h"
#include "recording/recording.h"

enum verify_weight {
	VERIFY_FACT = 0,    /* good to know */
	VERIFY_REMARK = 1,  /* trouble for the strict */
	VERIFY_TROUBLE = 2, /* something is missing or damaged */
};

struct verify_note {
	enum verify_weight weight;
	char *text;
};

struct verify_process {
	const struct recording_process *process;
	struct recording_account account;
	enum status status; /* of reading its operations */
	struct verify_note *notes;
	size_t note_count;
};

struct verify {
	const struct cli_input *input;
	struct verify_process *processes;
	size_t count;
	char *first_trouble; /* NULL: none */
};

/* With is_strict, remarks are trouble. */
void verify_init(struct verify *verify, const struct cli_input *input, bool is_strict);
void verify_release(struct verify *verify);

/* An operation that is lost for this reason: "overwritten before ...". NULL past the table. */
const char *verify_lost_words(unsigned int reason);
const char *verify_odd_words(unsigned int reason);

#endif
