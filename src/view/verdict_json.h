/* Verdicts for programs: docs/DOCTOR.md has every key. */
#ifndef VERDICT_JSON_H
#define VERDICT_JSON_H

#include "doctor/verdict.h"
#include "view/json.h"
#include "view/verdict_text.h"

/* One verdict as an object: for lists of other documents, too. */
void verdict_json_one(struct json *json, const struct verdict *verdict);

/* The document without its end: who has more to say adds members, and ends the object. */
void verdict_json_open(struct json *json, const struct verdicts *verdicts,
		       const struct verdict_look *look);

/* The whole document: an object. */
void verdict_json(struct json *json, const struct verdicts *verdicts,
		  const struct verdict_look *look);

#endif
