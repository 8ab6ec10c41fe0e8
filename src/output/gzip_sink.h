/*
 * A gzip stream in front of another sink. Write to `plain`, and call gzip_sink_pass() regularly (it does nothing
 * until there is enough data) and once at the end with is_last.
 */
#ifndef GZIP_SINK_H
#define GZIP_SINK_H

#include <stdbool.h>

#include "output/sink.h"

struct gzip_sink {
	struct sink plain; /* memory */
	struct sink *to;   /* borrowed */
	void *stream;	   /* zlib's */
};

/* On ERR_NO_SPACE there is nothing to release. */
enum status gzip_sink_open(struct gzip_sink *gzip, struct sink *to);

/* Failures are kept in gzip->plain.status. */
void gzip_sink_pass(struct gzip_sink *gzip, bool is_last);

/* Frees its memory; data that was not passed is lost. May be called twice. */
void gzip_sink_close(struct gzip_sink *gzip);

#endif
