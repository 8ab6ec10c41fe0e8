/* How findings are made. For the room's own use. */
#ifndef FINDINGS_MAKE_H
#define FINDINGS_MAKE_H

#include "common/attributes.h"
#include "common/status.h"
#include "timeline/findings.h"
#include "timeline/report.h"
#include "timeline/scan.h"

/* The report is complete but for its findings. */
enum status findings_make(struct findings *findings, const struct timeline_report *report,
			  const struct scan *scan);

/* A new finding with its title, to be filled further; a place to be forgotten when there are too many. */
struct finding *findings_add(struct findings *findings, enum findings_kind kind,
			     enum findings_severity severity, const char *title, ...)
	PRINTF_LIKE(4, 5);

/* Each part adds what it has. */
void findings_slow(struct findings *findings, const struct timeline_report *report);
void findings_stuck(struct findings *findings, const struct timeline_report *report,
		    const struct scan *scan);
void findings_record(struct findings *findings, const struct timeline_report *report);

/* "14:03:10 UTC", or "12.3 s after the start" where there is no wall time. */
struct findings_text {
	char text[64];
};
struct findings_text findings_time(const struct timeline_report *report, uint64_t ns);

#endif
