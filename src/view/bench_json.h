/*
 * A whole run as one JSON document, {"format":"ringside-bench","version":1,...}: every call of every rank,
 * figures beside them. bench_read() makes the run again from it; src/import/expected.h takes it as
 * expected bandwidth. docs/BENCH-FORMAT.md describes it.
 */
#ifndef BENCH_JSON_H
#define BENCH_JSON_H

#include "bench/bench_result.h"
#include "common/status.h"
#include "output/json.h"
#include "output/sink.h"

/* The document and a newline. ERR_NO_SPACE, ERR_RANGE (a run that does not hold together: a cell of other
 * ranks than the run), or the sink's status. */
enum status bench_json_write(struct sink *sink, const struct bench_run *run);

/* The same as a value inside of another document: after json_key(), or as an item of an array. */
enum status bench_json_put(struct json *json, const struct bench_run *run);

#endif
