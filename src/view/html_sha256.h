/* SHA-256 (FIPS 180-4), for the page's Content-Security-Policy: it names the scripts that may run. */
#ifndef HTML_SHA256_H
#define HTML_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { HTML_SHA256_BYTES = 32, HTML_SHA256_TEXT = 45 };

void html_sha256(const void *bytes, size_t length, uint8_t digest[static HTML_SHA256_BYTES]);

/* The digest in base64, terminated, as a policy wants it. */
const char *html_sha256_text(const void *bytes, size_t length, char to[static HTML_SHA256_TEXT]);

#endif
