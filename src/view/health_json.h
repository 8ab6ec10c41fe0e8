/*
 * The same as health_text.h, for programs: {"format":"ringside-health","version":1,...} with the whole
 * measurement inside. docs/BENCH-HEALTH.md has the keys.
 */
#ifndef HEALTH_JSON_H
#define HEALTH_JSON_H

#include "bench/bench_result.h"
#include "bench/link_health.h"
#include "common/status.h"
#include "output/sink.h"

/* The document and a newline. ERR_NO_SPACE, or the sink's status. */
enum status health_json(struct sink *sink, const struct health *health,
			const struct bench_run *run);

#endif
