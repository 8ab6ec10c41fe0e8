/* Two runs side by side, for programs: the shape of docs/DIFF.md. */
#ifndef DIFF_JSON_H
#define DIFF_JSON_H

#include "analysis/compare.h"
#include "view/diff_text.h"
#include "view/json.h"

/* One value, an object. Unknown is null and never 0. */
void diff_json(struct json *json, const struct diff_side *a, const struct diff_side *b,
	       const struct compare *compare);

#endif
