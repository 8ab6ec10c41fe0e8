/* The parts put together, and the words that they share. */
#include "timeline/findings_make.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/text.h"

struct findings_text findings_time(const struct timeline_report *report, uint64_t ns)
{
	uint64_t after_ns = ns > report->start_ns ? ns - report->start_ns : 0;
	struct findings_text to;
	char when[UNITS_TEXT];

	if (report->has_wall)
		text_format(to.text, sizeof(to.text), "%s UTC", units_clock(when, ns));
	else
		text_format(to.text, sizeof(to.text), "%s after the start",
			    units_duration(when, after_ns));
	return to;
}

struct finding *findings_add(struct findings *findings, enum findings_kind kind,
			     enum findings_severity severity, const char *title, ...)
{
	/* The last place is for those that are one too many. */
	struct finding *finding = &findings->list[findings->count];
	va_list list;

	*finding = (struct finding){ .kind = kind,
				     .severity = severity,
				     .rank = UINT32_MAX,
				     .host = UINT32_MAX,
				     .comm = UINT32_MAX,
				     .peer = UINT32_MAX };
	va_start(list, title);
	vsnprintf(finding->title, sizeof(finding->title), title, list);
	va_end(list);
	if (findings->count < FINDINGS_MAX)
		findings->count++;
	else
		findings->left_out++;
	return finding;
}

/* Stable: within a severity in the order in which they were added. */
static void most_serious_first(struct findings *findings)
{
	for (size_t i = 1; i < findings->count; i++)
		for (size_t j = i;
		     j > 0 && findings->list[j].severity > findings->list[j - 1].severity; j--) {
			struct finding swap = findings->list[j];

			findings->list[j] = findings->list[j - 1];
			findings->list[j - 1] = swap;
		}
}

enum status findings_make(struct findings *findings, const struct timeline_report *report,
			  const struct scan *scan)
{
	*findings = (struct findings){ .count = 0 };
	findings->list = calloc(FINDINGS_MAX + 1, sizeof(*findings->list));
	if (findings->list == NULL)
		return ERR_NO_SPACE;
	findings_stuck(findings, report, scan);
	findings_slow(findings, report);
	findings_record(findings, report);
	most_serious_first(findings);
	return OK;
}
