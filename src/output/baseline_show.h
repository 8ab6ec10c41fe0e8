/* A baseline as text and as JSON, which is the format of its file. */
#ifndef BASELINE_SHOW_H
#define BASELINE_SHOW_H

#include "common/status.h"
#include "doctor/slow.h"
#include "output/json.h"
#include "output/sink.h"

/* width 0: no limit. Returns ERR_NO_SPACE or the sink's status. */
enum status baseline_text(struct sink *sink, const struct baseline *baseline, unsigned int width);

/* One object, see docs/REPORT.md; baseline_read() reads it back. */
void baseline_json(struct json *json, const struct baseline *baseline);

#endif
