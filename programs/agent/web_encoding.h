/* May the answer be compressed? */
#ifndef WEB_ENCODING_H
#define WEB_ENCODING_H

#include <stdbool.h>
#include <stddef.h>

/* What an Accept-Encoding header says of gzip; NULL: nothing was said, so no. */
bool web_encoding_takes_gzip(const char *header);

/* One gzip member, fast rather than small. NULL: no memory. The caller frees it. */
void *web_encoding_gzip(const void *bytes, size_t length, size_t *packed);

#endif
