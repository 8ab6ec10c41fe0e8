/*
 * A gzip stream in front of another sink. Write to `plain`; gzip_sink_pass() compresses what has
 * gathered there, so call it now and then (it does nothing before there is enough) and once at the
 * end with is_last.
 */
#ifndef GZIP_SINK_H
#define GZIP_SINK_H

#include <stdbool.h>

#include "common/status.h"
#include "view/sink.h"

struct gzip_sink {
	struct sink plain; /* memory */
	struct sink *to;   /* borrowed */
	void *stream;	   /* zlib's */
};

/* ERR_NO_SPACE (memory); *gzip needs no release then. */
enum status gzip_sink_open(struct gzip_sink *gzip, struct sink *to);

/* A failure sticks in gzip->plain.status as with any sink. */
void gzip_sink_pass(struct gzip_sink *gzip, bool is_last);

/* Frees what it took; what was not passed is lost. Fine twice. */
void gzip_sink_close(struct gzip_sink *gzip);

#endif
