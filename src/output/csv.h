/*
 * CSV as in RFC 4180: cells with a comma, quote or line break are quoted, quotes are doubled, lines end with CR LF.
 */
#ifndef CSV_H
#define CSV_H

#include "output/sink.h"

/* A cell. "" is written as a pair of quotes, to differ from an unknown value. */
void csv_text(struct sink *sink, const char *text);

void csv_line(struct sink *sink);

#endif
