/*
 * .incbin paths are relative to the root of the tree, where make runs. The compiler does not see these files, so
 * scripts/build.mk declares the dependencies of this object, including whether the chart library exists.
 */
#include "output/html_assets.h"

#include "common/attributes.h"

#define UPLOT "npm/node_modules/uplot/"

#if __has_include("npm/node_modules/uplot/dist/uPlot.iife.min.js") &&           \
		  __has_include("npm/node_modules/uplot/dist/uPlot.min.css") && \
				__has_include("npm/node_modules/uplot/LICENSE")
#define HAS_CHARTS 1
#else
#define HAS_CHARTS 0
#endif

/* Read-only data: a label, the bytes of the file, a label at their end. */
#define ASSET(label, content)                                                           \
	__asm__(".pushsection .rodata\n"                                                \
		".balign 16\n"                                                          \
		".globl html_asset_" #label "\n"                                        \
		".hidden html_asset_" #label "\n"                                       \
		"html_asset_" #label ":\n" content ".globl html_asset_" #label "_end\n" \
		".hidden html_asset_" #label "_end\n"                                   \
		"html_asset_" #label "_end:\n"                                          \
		".byte 0\n"                                                             \
		".popsection\n");                                                       \
	extern const char html_asset_##label[] HIDDEN;                                  \
	extern const char html_asset_##label##_end[] HIDDEN

#define OWN(path) ".incbin \"src/output/html/" path "\"\n"
#if HAS_CHARTS
#define FROM_UPLOT(path) ".incbin \"" UPLOT path "\"\n"
#else
#define FROM_UPLOT(path) ""
#endif

ASSET(page, OWN("report.html"));
ASSET(style, ".incbin \"src/output/palette.css\"\n"
	     ".incbin \"src/output/base.css\"\n" OWN("report.css"));
/* One script: each file uses what those before it define. */
ASSET(script, OWN("base.js") OWN("answer.js") OWN("plot.js") OWN("time.js") OWN("heat.js")
		      OWN("frame.js") OWN("sizes.js") OWN("durations.js") OWN("iterations.js")
			      OWN("tables.js") OWN("report.js"));
ASSET(charts_style, FROM_UPLOT("dist/uPlot.min.css"));
ASSET(charts_licence, FROM_UPLOT("LICENSE"));
ASSET(charts, FROM_UPLOT("dist/uPlot.iife.min.js"));

struct html_asset html_asset(enum html_asset_name name)
{
	static const struct {
		const char *from;
		const char *to;
	} assets[HTML_ASSETS] = {
		[HTML_ASSET_PAGE] = { html_asset_page, html_asset_page_end },
		[HTML_ASSET_STYLE] = { html_asset_style, html_asset_style_end },
		[HTML_ASSET_SCRIPT] = { html_asset_script, html_asset_script_end },
		[HTML_ASSET_CHARTS_STYLE] = { html_asset_charts_style,
					      html_asset_charts_style_end },
		[HTML_ASSET_CHARTS_LICENCE] = { html_asset_charts_licence,
						html_asset_charts_licence_end },
		[HTML_ASSET_CHARTS] = { html_asset_charts, html_asset_charts_end },
	};

	return (struct html_asset){ assets[name].from,
				    (size_t)(assets[name].to - assets[name].from) };
}

bool html_assets_have_charts(void)
{
	return HAS_CHARTS;
}
