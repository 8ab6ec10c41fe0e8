/*
 * Comma-separated values as RFC 4180 has them: a cell with a comma, a quote or the end of a line in it
 * stands in quotes, a quote is doubled, lines end with CR LF.
 */
#ifndef CSV_H
#define CSV_H

#include <stdint.h>

#include "view/sink.h"

/* A cell. "" is a pair of quotes, so that it is not the same as nothing. */
void csv_text(struct sink *sink, const char *text);

void csv_line(struct sink *sink);

#endif
