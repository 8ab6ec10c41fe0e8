/*
 * NCCL's settings and what it detected: rules over its log (import/nccl_log.h) and over the environment
 * that recorders stored at start (info lines "env.NAME=VALUE"). Each rule has a name, a page of that name
 * in docs/setup, and cites the line it is based on. docs/SETUP-RULES.md lists them.
 */
#ifndef SETUP_H
#define SETUP_H

#include <stddef.h>

#include "common/status.h"
#include "doctor/verdict.h"
#include "import/nccl_log.h"
#include "recording/recording.h"

/* log and recording may be NULL. Adds VERDICT_SETUP (and, for an init that never completed, the missing
 * ranks). ERR_NO_SPACE. */
enum status setup_find(struct verdicts *verdicts, const struct nccl_log *log,
		       const struct recording *recording);

/* All rules, for documents and tests: name and one line; NULL after the last. */
struct setup_rule {
	const char *name;
	const char *about;
};
const struct setup_rule *setup_rule(size_t index);

#endif
