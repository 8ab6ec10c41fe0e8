/* A baseline for people: what it is of, and its rows. */
#ifndef BASELINE_TEXT_H
#define BASELINE_TEXT_H

#include "common/status.h"
#include "doctor/slow.h"
#include "view/sink.h"

/* width 0: as wide as it takes. ERR_NO_SPACE, or the sink's status. */
enum status baseline_text(struct sink *sink, const struct baseline *baseline, unsigned int width);

#endif
