/*
 * The same as crossover_text.h as a page: one file that fetches nothing and runs nothing, charts as SVG, light
 * and dark. Whatever text it shows is escaped.
 */
#ifndef CROSSOVER_HTML_H
#define CROSSOVER_HTML_H

#include "common/status.h"
#include "output/sink.h"
#include "view/crossover_text.h"

/* ERR_NO_SPACE, or the sink's status. */
enum status crossover_html(struct sink *sink, const struct crossover_view *view);

#endif
