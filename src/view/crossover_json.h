/*
 * The same as crossover_text.h, for programs: {"format":"ringside-crossover","version":1,...} with the whole
 * measurement inside, from which `ringside bench crossover --from` shows it again. docs/CROSSOVER.md has the keys.
 */
#ifndef CROSSOVER_JSON_H
#define CROSSOVER_JSON_H

#include "common/status.h"
#include "output/sink.h"
#include "view/crossover_text.h"

/* The document and a newline. ERR_NO_SPACE, or the sink's status. */
enum status crossover_json(struct sink *sink, const struct crossover_view *view);

#endif
