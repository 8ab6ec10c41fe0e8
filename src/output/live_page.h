/*
 * The live page as files, as they lie in src/output/page: bytes put into the program by the assembler. Whoever
 * serves them needs nothing else: no file is opened, nothing is made at run time.
 *
 * They hold no inline script and no inline style and fetch only from where they came, so they work under
 * LIVE_PAGE_POLICY and should be served with it. They ask for /api/v1/now and /api/v1/history
 * (live_json.h).
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
	size_t length; /* 0: the charts' library was not there when this was built */
	char etag
		[LIVE_PAGE_ETAG]; /* with its quotes; another one whenever a part of the page changes */
};

/* Exact paths alone; NULL for everything else. Lives as long as the program. */
const struct live_page_file *live_page_file(const char *path);

#endif
