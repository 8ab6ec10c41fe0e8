/* A baseline as its file: docs/BASELINE.md has the keys. */
#ifndef BASELINE_JSON_H
#define BASELINE_JSON_H

#include "doctor/slow.h"
#include "view/json.h"

/* One object; baseline_read() reads what comes out, and gives back the same. */
void baseline_json(struct json *json, const struct baseline *baseline);

#endif
