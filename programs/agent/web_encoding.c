#include "programs/agent/web_encoding.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

/* "gzip" or "gzip;q=0.5", not "gzip;q=0" or "gzip;q=0.000". */
static bool is_wanted(const char *parameters, size_t length)
{
	const char *q = memchr(parameters, '=', length);

	if (q == NULL)
		return true;
	for (q++; q < parameters + length; q++)
		if (*q >= '1' && *q <= '9')
			return true;
	return false;
}

bool web_encoding_takes_gzip(const char *header)
{
	while (header && *header != '\0') {
		size_t length, name;

		header += strspn(header, " \t,");
		length = strcspn(header, ",");
		name = strcspn(header, " \t,;");
		if (name == 4 && strncasecmp(header, "gzip", 4) == 0)
			return is_wanted(header + name, length - name);
		header += length;
	}
	return false;
}

void *web_encoding_gzip(const void *bytes, size_t length, size_t *packed)
{
	z_stream stream = { .next_in = (void *)(uintptr_t)bytes };
	void *to, *fitting;
	size_t room;

	/* Level 1: four times smaller for a quarter of what the default level costs. */
	if (length > UINT32_MAX / 2 ||
	    deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return NULL;
	room = deflateBound(&stream, length);
	to = malloc(room);
	stream.avail_in = (unsigned int)length;
	stream.next_out = to;
	stream.avail_out = (unsigned int)room;
	if (to == NULL || deflate(&stream, Z_FINISH) != Z_STREAM_END) {
		deflateEnd(&stream);
		free(to);
		return NULL;
	}
	*packed = stream.total_out;
	deflateEnd(&stream);
	fitting = realloc(to, *packed);
	return fitting ? fitting : to;
}
