/*
 * Profilers compared, as one page: the tables of profilers_text.h and four figures (completeness, accuracy,
 * overhead, training) as SVG. It stands alone: no scripts, nothing fetched, light and dark, and the command,
 * machine and versions on it.
 */
#ifndef PROFILERS_HTML_H
#define PROFILERS_HTML_H

#include "bench/profilers.h"
#include "common/status.h"
#include "output/sink.h"

/* The same bytes for the same comparison. Names stay text. ERR_NO_SPACE, or the sink's status. */
enum status profilers_html_write(struct sink *sink, const struct profilers_comparison *comparison);

#endif
