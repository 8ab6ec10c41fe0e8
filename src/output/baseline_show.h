/* A baseline as its file, and for people. */
#ifndef BASELINE_SHOW_H
#define BASELINE_SHOW_H

#include "common/status.h"
#include "doctor/slow.h"
#include "output/json.h"
#include "output/sink.h"

/* width 0: as wide as it takes. ERR_NO_SPACE, or the sink's status. */
enum status baseline_text(struct sink *sink, const struct baseline *baseline, unsigned int width);

/* A baseline as its file: docs/BASELINE.md has the keys. */

/* One object; baseline_read() reads what comes out, and gives back the same. */
void baseline_json(struct json *json, const struct baseline *baseline);

#endif
