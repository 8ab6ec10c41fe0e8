/*
 * SHA-256 (FIPS 180-4), for the page's Content-Security-Policy, which lists the scripts that may
 * run.
 */
#ifndef SHA256_H
#define SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32, SHA256_TEXT = 45 };

void sha256_digest(const void *bytes, size_t length, uint8_t digest[static SHA256_BYTES]);

/* The digest in base64, terminated, as a policy needs it. */
const char *sha256_base64(const void *bytes, size_t length, char to[static SHA256_TEXT]);

#endif
