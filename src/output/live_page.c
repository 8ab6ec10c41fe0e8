/*
 * .incbin paths are relative to the root of the tree, where make runs. The compiler does not know these files, so
 * scripts/build.mk declares the dependency and passes their checksum for the etag.
 *
 * Only the assembler knows their lengths, so it also writes the table: one struct live_page_file per file.
 */
#include "output/live_page.h"

#include <string.h>

#include "common/attributes.h"

#if __has_include("npm/node_modules/uplot/dist/uPlot.iife.min.js") &&           \
		  __has_include("npm/node_modules/uplot/dist/uPlot.min.css") && \
				__has_include("npm/node_modules/uplot/LICENSE")
#define FROM_UPLOT(path) ".incbin \"npm/node_modules/uplot/" path "\"\n"
/* The license must be distributed with the library. */
#define LICENCE ".ascii \"/*\\n\"\n" FROM_UPLOT("LICENSE") ".ascii \"*/\\n\"\n"
#else
#define FROM_UPLOT(path) ""
#define LICENCE ""
#endif

#ifndef LIVE_PAGE_SUM
#define LIVE_PAGE_SUM "unknown"
#endif

_Static_assert(sizeof(struct live_page_file) == 56, "the table below has rows of 56 bytes");
_Static_assert(offsetof(struct live_page_file, length) == 24, "length moved");
_Static_assert(offsetof(struct live_page_file, etag) == 32, "etag moved");
_Static_assert(sizeof(LIVE_PAGE_SUM) + 2 <= LIVE_PAGE_ETAG, "an etag of the page is too long");

#define OWN(path) ".incbin \"src/output/page/" path "\"\n"

#define FILE_ROW(path, type, content)                \
	".pushsection .rodata\n"                     \
	"1:\t.asciz \"" path "\"\n"                  \
	"2:\t.asciz \"" type "\"\n"                  \
	"\t.balign 16\n"                             \
	"3:\n" content "4:\t.byte 0\n"               \
	".popsection\n"                              \
	".quad 1b, 2b, 3b, 4b - 3b\n"                \
	"5:\t.asciz \"\\\"" LIVE_PAGE_SUM "\\\"\"\n" \
	".zero 24 - (. - 5b)\n"

/* One script: each file uses definitions of the files before it. */
/* clang-format off */
#define SCRIPT                                                                           \
	OWN("live_base.js") OWN("live_store.js") OWN("live_notices.js")                  \
	OWN("live_verdicts.js") OWN("live_glance.js") OWN("live_chart.js") OWN("live_comms.js") \
	OWN("live_ranks.js") OWN("live_flights.js") OWN("live_keys.js") OWN("live_page.js")
/* clang-format on */

/* The hub's page shows verdicts in the same way. */
#define HUB_SCRIPT \
	OWN("live_base.js") OWN("live_notices.js") OWN("live_verdicts.js") OWN("hub_page.js")

__asm__(".pushsection .data.rel.ro, \"aw\"\n"
	".balign 8\n"
	".globl live_page_files\n"
	".hidden live_page_files\n"
	"live_page_files:\n"
	/* clang-format off */
	FILE_ROW("/", "text/html; charset=utf-8", OWN("index.html"))
	FILE_ROW("/page.css", "text/css; charset=utf-8", ".incbin \"src/output/palette.css\"\n"
		 ".incbin \"src/output/base.css\"\n" OWN("page.css"))
	FILE_ROW("/page.js", "text/javascript; charset=utf-8", SCRIPT)
	FILE_ROW("/icon.svg", "image/svg+xml", OWN("icon.svg"))
	FILE_ROW("/uplot.css", "text/css; charset=utf-8", FROM_UPLOT("dist/uPlot.min.css"))
	FILE_ROW("/uplot.js", "text/javascript; charset=utf-8",
		 LICENCE FROM_UPLOT("dist/uPlot.iife.min.js"))
	FILE_ROW("/", "text/html; charset=utf-8", OWN("hub.html"))
	FILE_ROW("/hub.js", "text/javascript; charset=utf-8", HUB_SCRIPT)
	/* clang-format on */
	".popsection\n");

enum { FILES = 6, HUB_FILES = 2 };
extern const struct live_page_file live_page_files[FILES + HUB_FILES] HIDDEN;

const struct live_page_file *live_page_file(const char *path)
{
	for (size_t i = 0; i < FILES; i++)
		if (strcmp(live_page_files[i].path, path) == 0)
			return &live_page_files[i];
	return NULL;
}

const struct live_page_file *live_page_hub_file(const char *path)
{
	for (size_t i = FILES; i < FILES + HUB_FILES; i++)
		if (strcmp(live_page_files[i].path, path) == 0)
			return &live_page_files[i];
	if (strcmp(path, "/page.css") == 0 || strcmp(path, "/icon.svg") == 0)
		return live_page_file(path);
	return NULL;
}
