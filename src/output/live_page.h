/*
 * The files of the live page in src/output/page, embedded into the program by the assembler: serving them opens no
 * file and generates nothing at run time.
 *
 * They contain no inline script or style and fetch only from their own origin, so they work under
 * LIVE_PAGE_POLICY and should be served with it. They request /api/v1/now and /api/v1/history (live_json.h).
 */
#ifndef LIVE_PAGE_H
#define LIVE_PAGE_H

#include <stddef.h>

/* For Content-Security-Policy. */
#define LIVE_PAGE_POLICY                                                                    \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "         \
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " \
	"require-trusted-types-for 'script'; trusted-types 'none'"

enum { LIVE_PAGE_ETAG = 20 };

struct live_page_file {
	const char *path; /* "/", "/page.css", ... */
	const char *type; /* for Content-Type */
	const unsigned char *bytes;
	size_t length;		   /* 0: built without the chart library */
	char etag[LIVE_PAGE_ETAG]; /* with quotes; changes whenever a part of the page does */
};

/* Exact paths only; NULL for everything else. Static lifetime. */
const struct live_page_file *live_page_file(const char *path);

/* The same for the page of a hub, which requests /api/v1/jobs. */
const struct live_page_file *live_page_hub_file(const char *path);

#endif
