/*
 * The parts of the HTML report, embedded from the source tree by the assembler. The chart library comes from npm; without
 * it, its parts are empty.
 */
#ifndef HTML_ASSETS_H
#define HTML_ASSETS_H

#include <stdbool.h>
#include <stddef.h>

struct html_asset {
	const char *text; /* followed by a terminating zero */
	size_t length;
};

enum html_asset_name {
	HTML_ASSET_PAGE = 0,	     /* src/output/html/report.html */
	HTML_ASSET_STYLE = 1,	     /* report.css */
	HTML_ASSET_SCRIPT = 2,	     /* base.js to report.js */
	HTML_ASSET_CHARTS_STYLE = 3, /* uPlot.min.css */
	HTML_ASSET_CHARTS = 4,	     /* uPlot.iife.min.js */
	HTML_ASSET_CHARTS_LICENCE = 5,
	HTML_ASSETS = 6,
};

struct html_asset html_asset(enum html_asset_name name);
bool html_assets_have_charts(void);

#endif
