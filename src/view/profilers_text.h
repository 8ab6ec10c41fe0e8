/* Profilers compared, as tables for people: completeness, accuracy, overhead, training. */
#ifndef PROFILERS_TEXT_H
#define PROFILERS_TEXT_H

#include "bench/profilers.h"
#include "common/status.h"
#include "output/sink.h"

/* `width` 0: as wide as it takes. ERR_NO_SPACE, or the sink's status. */
enum status profilers_text_write(struct sink *sink, const struct profilers_comparison *comparison,
				 unsigned int width);

#endif
