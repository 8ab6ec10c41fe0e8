/* Numbers, letters, colours and marks of charts: what knows nothing of their layout. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "output/sink.h"
#include "view/bench_svg_parts.h"

/* ---- letters and numbers --------------------------------------------------------------------- */

void svg_number(struct sink *sink, double value)
{
	long tenths = isfinite(value) && fabs(value) < 1e6 ? lround(value * 10) : 0;

	sink_format(sink, "%s%ld", tenths < 0 ? "-" : "", labs(tenths) / 10);
	if (tenths % 10 != 0)
		sink_format(sink, ".%ld", labs(tenths) % 10);
}

void svg_at(struct sink *sink, const char *name, double value)
{
	sink_format(sink, " %s=\"", name);
	svg_number(sink, value);
	sink_byte(sink, '"');
}

static void put_ascii(struct sink *sink, char byte)
{
	if (html_escape(byte) != NULL)
		sink_text(sink, html_escape(byte));
	else if ((unsigned char)byte < ' ' || byte == 0x7f)
		sink_text(sink, "\357\277\275");
	else
		sink_byte(sink, byte);
}

void svg_text(struct sink *sink, const char *text)
{
	size_t length = strlen(text), bytes;

	for (size_t at = 0; at < length; at += bytes) {
		const unsigned char *here = (const unsigned char *)text + at;

		bytes = *here < 0x80 ? 1 : utf8_bytes(here, length - at);
		/* U+FFFE and U+FFFF are no characters in XML. */
		if (bytes == 0 ||
		    (bytes == 3 && here[0] == 0xef && here[1] == 0xbf && here[2] > 0xbd)) {
			sink_text(sink, "\357\277\275");
			bytes = bytes == 0 ? 1 : bytes;
		} else if (bytes == 1) {
			put_ascii(sink, text[at]);
		} else {
			sink_write(sink, here, bytes);
		}
	}
}

/* ---- colours --------------------------------------------------------------------------------- */

/* Contrast of at least 3 to the page; lightness differs, for those who see no hue. */
static const char *const light_colours[SVG_COLOURS] = {
	"#0a5cab", "#b85c00", "#1b7f5c", "#8a4fae", "#b3231b", "#0b7c8a", "#6b6f00", "#566070",
};
static const char *const dark_colours[SVG_COLOURS] = {
	"#7db7f5", "#ffb066", "#6fd3a8", "#cf9df0", "#ff9189", "#66d0dd", "#d3d36a", "#a3adb9",
};

static void put_colours(struct sink *sink, const char *selector, const char *const *colours,
			bool is_dark)
{
	sink_format(sink, "%s{", selector);
	for (size_t i = 0; i < SVG_COLOURS; i++)
		sink_format(sink, "--s%zu:%s;", i, colours[i]);
	if (is_dark)
		sink_text(sink, "--ink:#e5e8ec;--dim:#a3adb9;--grid:#2e353d;--paper:#1a1e23}\n");
	else
		sink_text(sink, "--ink:#1a1f26;--dim:#566070;--grid:#dde1e6;--paper:#fff}\n");
}

/* One class for all charts: the same text again does no harm. */
void bench_svg_style(struct sink *sink)
{
	put_colours(sink, ".ringside-chart", light_colours, false);
	sink_text(sink, "@media (prefers-color-scheme:dark){");
	put_colours(sink,
		    ":root:not([data-theme=\"light\"]) .ringside-chart,"
		    "svg.ringside-chart:root",
		    dark_colours, true);
	sink_text(sink, "}\n");
	put_colours(sink, ":root[data-theme=\"dark\"] .ringside-chart", dark_colours, true);
	/* What a part of a chart has of its own comes behind, and wins. */
	for (size_t i = 0; i < SVG_COLOURS; i++)
		sink_format(sink,
			    ".ringside-chart .s%zu{fill:var(--s%zu);stroke:var(--s%zu)}"
			    ".ringside-chart .line.s%zu{fill:none}\n",
			    i, i, i, i);
	sink_text(sink,
		  ".ringside-chart text{fill:var(--ink);font:12px system-ui,sans-serif}\n"
		  ".ringside-chart .title{font-weight:600;font-size:14px}\n"
		  ".ringside-chart .dim{fill:var(--dim)}\n"
		  ".ringside-chart .grid{stroke:var(--grid);fill:none}\n"
		  ".ringside-chart .axis{stroke:var(--dim);fill:none}\n"
		  ".ringside-chart .expect{stroke:var(--ink);fill:none;stroke-dasharray:6 4}\n"
		  ".ringside-chart .paper{fill:var(--paper)}\n"
		  ".ringside-chart .error{stroke:var(--ink);fill:none}\n"
		  ".ringside-chart .hatch{stroke:var(--paper);fill:none;stroke-width:1.5}\n"
		  ".ringside-chart .line{fill:none;stroke-width:2}\n"
		  ".ringside-chart .computed{stroke-width:1.5;stroke-dasharray:2 3}\n"
		  ".ringside-chart .shape{fill-opacity:.25;stroke:none}\n"
		  ".ringside-chart .box{fill-opacity:.35;stroke-width:1.5}\n");
}

/* ---- marks ------------------------------------------------------------------------------------- */

void svg_mark(struct sink *sink, size_t series, double x, double y)
{
	static const char *const shapes[] = {
		"m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",	  /* circle */
		"m-3.5 -3.5h7v7h-7z",			  /* square */
		"m0 -4.5l4.5 8h-9z",			  /* triangle */
		"m0 -5l5 5l-5 5l-5 -5z",		  /* diamond */
		"m0 4.5l4.5 -8h-9z",			  /* triangle, upside down */
		"m-1.5 -4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z", /* cross */
	};

	sink_format(sink, "<path class=\"s%zu\" d=\"M", series % SVG_COLOURS);
	svg_number(sink, x);
	sink_byte(sink, ' ');
	svg_number(sink, y);
	sink_format(sink, "%s\">", shapes[series % (sizeof(shapes) / sizeof(shapes[0]))]);
}

void svg_bar(struct sink *sink, const char *id, size_t series, const struct svg_area *area)
{
	for (size_t layer = 0; layer < 2; layer++) {
		if (layer == 1 && series % SVG_PATTERNS == 0)
			break;
		sink_text(sink, "<rect");
		svg_at(sink, "x", area->x);
		svg_at(sink, "y", area->y);
		svg_at(sink, "width", fmax(area->width, 0.5));
		svg_at(sink, "height", fmax(area->height, 0.5));
		if (layer == 0) {
			sink_format(sink, " class=\"s%zu\"/>\n", series % SVG_COLOURS);
		} else {
			sink_text(sink, " fill=\"url(#");
			svg_id(sink, id);
			sink_format(sink, "-p%zu)\"/>\n", series % SVG_PATTERNS);
		}
	}
}

void svg_id(struct sink *sink, const char *id)
{
	for (id = id != NULL ? id : "chart"; *id != '\0'; id++)
		if ((*id >= 'a' && *id <= 'z') || (*id >= 'A' && *id <= 'Z') ||
		    (*id >= '0' && *id <= '9') || *id == '-')
			sink_byte(sink, *id);
}
