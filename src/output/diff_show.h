/* Two runs side by side, as text, HTML and JSON. docs/REPORT.md explains the columns. */
#ifndef DIFF_SHOW_H
#define DIFF_SHOW_H

#include "analysis/compare.h"
#include "analysis/timeline_report.h"
#include "common/status.h"
#include "doctor/doctor.h"
#include "output/json.h"
#include "output/report.h"
#include "output/sink.h"

/* `report` is NULL for a file of expected bandwidths. */
struct diff_side {
	const char *path;
	const struct timeline_report *report;
};

/* Returns ERR_NO_SPACE or the sink's status. */
enum status diff_text(struct sink *sink, const struct diff_side *a, const struct diff_side *b,
		      const struct compare *compare, const struct report_text_options *options);

/* A self-contained page without scripts. Returns ERR_NO_SPACE or the sink's status. */
enum status diff_html(struct sink *sink, const struct diff_side *a, const struct diff_side *b,
		      const struct compare *compare, bool has_all);

/* One object, see docs/REPORT.md. An unknown value is null, never 0. */
void diff_json(struct json *json, const struct diff_side *a, const struct diff_side *b,
	       const struct compare *compare);

/* A baseline as text and as JSON, which is the format of its file. */

/* width 0: no limit. Returns ERR_NO_SPACE or the sink's status. */
enum status baseline_text(struct sink *sink, const struct baseline *baseline, unsigned int width);

/* One object, see docs/REPORT.md; baseline_read() reads it back. */
void baseline_json(struct json *json, const struct baseline *baseline);

#endif
