/* The parts of a tally's key in words: the same in text, JSON, CSV and diff. */
#ifndef REPORT_KEY_H
#define REPORT_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/tally.h"
#include "analysis/timeline_report.h"
#include "view/json.h"

enum { REPORT_KEY_TEXT = 160 };

/* One part, `bit` from 0 to TALLY_BYS - 1: "world", "AllReduce", "1 MiB - 2 MiB", "3", "node0001".
 * "-" where it is not known. */
const char *report_key_text(const struct timeline_report *report, const struct tally_key *key,
			    unsigned int bit, char to[static REPORT_KEY_TEXT]);

bool report_key_is_known(const struct tally_key *key, unsigned int bit);

/* The title of its column: "COMMUNICATOR", "OPERATION", ... */
const char *report_key_title(unsigned int bit);

/* All parts of `by` into the object that is open, see docs/REPORT.md. */
void report_key_json(struct json *json, const struct timeline_report *report,
		     const struct tally_key *key, uint32_t by);

/* "-", "0 B", "1 MiB - 2 MiB" (up to, not including, the second). */
const char *report_size_text(unsigned int size_class, char to[static REPORT_KEY_TEXT]);

#endif
