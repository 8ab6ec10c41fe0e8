/*
 * What NCCL was told and what it found: rules over its log (nccllog/nccl_log.h) and over the environment
 * that recorders wrote down at start (info lines "env.NAME=VALUE"). Each rule has a name, a page
 * of that name below docs/setup, and cites the line it speaks of. docs/SETUP-RULES.md lists them.
 */
#ifndef SETUP_H
#define SETUP_H

#include <stddef.h>

#include "common/status.h"
#include "doctor/verdict.h"
#include "import/nccl_log.h"
#include "recording/recording.h"

/* log and recording may be NULL. Adds VERDICT_SETUP (and what an init that never ended says: which ranks
 * are missing). ERR_NO_SPACE. */
enum status setup_find(struct verdicts *verdicts, const struct nccl_log *log,
		       const struct recording *recording);

/* All rules, for documents and tests: name and one line; NULL past the last. */
struct setup_rule {
	const char *name;
	const char *about;
};
const struct setup_rule *setup_rule(size_t index);

#endif
