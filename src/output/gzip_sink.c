/* gzip by zlib. */
#include "output/gzip_sink.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

enum {
	PASS_BYTES = 256 * 1024, /* collected before compressing: zlib is faster on larger input */
	OUT_BYTES = 64 * 1024,
	GZIP_WINDOW = 15 + 16, /* the largest window, with gzip's header */
	LEVEL = 3,	       /* higher levels take long and gain little for traces */
	MEMORY_LEVEL = 8,
};

enum status gzip_sink_open(struct gzip_sink *gzip, struct sink *to)
{
	z_stream *stream = calloc(1, sizeof(*stream));

	if (stream == NULL)
		return ERR_NO_SPACE;
	if (deflateInit2(stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK) {
		free(stream);
		return ERR_NO_SPACE;
	}
	gzip->stream = stream;
	gzip->to = to;
	sink_init_memory(&gzip->plain);
	return OK;
}

/* Until all input is consumed; with Z_FINISH also until all output is written. */
static void deflate_all(struct gzip_sink *gzip, int flush)
{
	z_stream *stream = gzip->stream;
	unsigned char out[OUT_BYTES];
	int result;

	do {
		stream->next_out = out;
		stream->avail_out = sizeof(out);
		result = deflate(stream, flush);
		sink_write(gzip->to, out, sizeof(out) - stream->avail_out);
		if (result == Z_STREAM_ERROR)
			sink_fail(&gzip->plain, ERR_FORMAT, EINVAL);
	} while (gzip->plain.status == OK &&
		 (stream->avail_out == 0 || (flush == Z_FINISH && result != Z_STREAM_END)));
	if (gzip->to->status != OK)
		sink_fail(&gzip->plain, gzip->to->status, gzip->to->error);
}

void gzip_sink_pass(struct gzip_sink *gzip, bool is_last)
{
	struct sink *plain = &gzip->plain;
	z_stream *stream = gzip->stream;
	size_t at = 0;

	if (plain->status != OK || (!is_last && plain->used < PASS_BYTES))
		return;
	while (at < plain->used && plain->status == OK) {
		size_t part = plain->used - at;

		/* zlib has 32-bit lengths. */
		if (part > UINT32_MAX / 2)
			part = UINT32_MAX / 2;
		stream->next_in = (unsigned char *)plain->bytes + at;
		stream->avail_in = (unsigned int)part;
		deflate_all(gzip, Z_NO_FLUSH);
		at += part;
	}
	plain->used = 0;
	stream->next_in = NULL;
	stream->avail_in = 0;
	if (is_last && plain->status == OK)
		deflate_all(gzip, Z_FINISH);
}

void gzip_sink_close(struct gzip_sink *gzip)
{
	if (gzip->stream == NULL)
		return;
	deflateEnd(gzip->stream);
	free(gzip->stream);
	gzip->stream = NULL;
	sink_release(&gzip->plain);
}
