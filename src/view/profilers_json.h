/* Profilers compared, as JSON: all that the other views show. bench/profilers_read.h reads it back. */
#ifndef PROFILERS_JSON_H
#define PROFILERS_JSON_H

#include "bench/profilers.h"
#include "common/status.h"
#include "output/sink.h"

/* One object and a newline. The sink's status. */
enum status profilers_json_write(struct sink *sink, const struct profilers_comparison *comparison);

#endif
