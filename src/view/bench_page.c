/*
 * .incbin looks from the root of the tree, where make runs; scripts/build.mk says that this object depends on
 * the two style sheets. The policy lets nothing through but this one style, by its hash: nothing that a name holds
 * can run, or be fetched, even if it got onto the page as more than text.
 */
#include "view/bench_page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/sha256.h"
#include "output/json.h"
#include "output/sink.h"
#include "view/bench_svg.h"

enum { PAGE_SENTENCE = 1024 };

__asm__(".pushsection .rodata\n"
	".globl bench_page_style\n"
	".hidden bench_page_style\n"
	"bench_page_style:\n"
	".incbin \"src/output/palette.css\"\n"
	".incbin \"src/view/bench_page.css\"\n"
	".byte 0\n"
	".popsection\n");
extern const char bench_page_style[] HIDDEN;

/* ---- text ------------------------------------------------------------------------------------ */

void bench_page_text(struct sink *sink, const char *text)
{
	while (*text != '\0') {
		size_t sequence = json_utf8_length((const unsigned char *)text);

		if (sequence > 0)
			sink_write(sink, text, sequence);
		else if ((unsigned char)*text >= 0x80 || (unsigned char)*text < ' ')
			sink_text(sink, "&#xfffd;");
		else if (html_escape(*text) != NULL)
			sink_text(sink, html_escape(*text));
		else
			sink_byte(sink, *text);
		text += sequence > 0 ? sequence : 1;
	}
}

/* Texts of any length: those that do not fit are made in memory of their own, or cut when there is none. */
static void write_formatted(struct sink *sink, const char *format, va_list list)
{
	char small[PAGE_SENTENCE], *text = small;
	va_list again;
	int length;

	va_copy(again, list);
	length = vsnprintf(small, sizeof(small), format, list);
	if (length >= (int)sizeof(small)) {
		text = malloc((size_t)length + 1);
		if (text != NULL)
			vsnprintf(text, (size_t)length + 1, format, again);
		else
			text = small;
	}
	va_end(again);
	bench_page_text(sink, text);
	if (text != small)
		free(text);
}

#define WRITE_FORMATTED(sink, format)                          \
	do {                                                   \
		va_list formatted_list;                        \
		va_start(formatted_list, format);              \
		write_formatted(sink, format, formatted_list); \
		va_end(formatted_list);                        \
	} while (0)

void bench_page_paragraph(struct sink *sink, const char *format, ...)
{
	sink_text(sink, "<p>");
	WRITE_FORMATTED(sink, format);
	sink_text(sink, "</p>\n");
}

void bench_page_lead(struct sink *sink, const char *format, ...)
{
	sink_text(sink, "<p class=\"lead\">");
	WRITE_FORMATTED(sink, format);
	sink_text(sink, "</p>\n");
}

void bench_page_list(struct sink *sink)
{
	sink_text(sink, "<ul>\n");
}

void bench_page_item(struct sink *sink, const char *format, ...)
{
	sink_text(sink, "<li>");
	WRITE_FORMATTED(sink, format);
	sink_text(sink, "</li>\n");
}

void bench_page_list_end(struct sink *sink)
{
	sink_text(sink, "</ul>\n");
}

/* ---- the page -------------------------------------------------------------------------------- */

/* Ours, and that of the charts: one element, named in the policy by its hash. */
static void write_style(struct sink *sink, const char *style)
{
	char digest[SHA256_TEXT];

	sink_format(sink,
		    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		    "style-src 'sha256-%s'; base-uri 'none'; form-action 'none'\">\n<style>",
		    sha256_base64(style, strlen(style), digest));
	sink_text(sink, style);
	sink_text(sink, "</style>\n");
}

void bench_page_begin(struct sink *sink, const char *title, const char *made_by)
{
	struct sink style;

	sink_init_memory(&style);
	sink_text(&style, bench_page_style);
	bench_svg_style(&style);
	/* Without its style a page is still one; the sink knows that it is not whole. */
	if (style.status != OK && sink->status == OK)
		sink->status = style.status;
	sink_text(sink, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
	write_style(sink, sink_string(&style));
	sink_release(&style);
	sink_text(sink, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
			"<meta name=\"color-scheme\" content=\"light dark\">\n"
			"<meta name=\"referrer\" content=\"no-referrer\">\n"
			"<meta name=\"generator\" content=\"Ringside\">\n<title>");
	bench_page_text(sink, title);
	sink_text(sink, "</title>\n</head>\n<body>\n<main>\n<h1>");
	bench_page_text(sink, title);
	sink_text(sink, "</h1>\n<p>Made by <code>");
	bench_page_text(sink, made_by);
	sink_text(sink, "</code></p>\n");
}

void bench_page_end(struct sink *sink)
{
	sink_text(sink, "</main>\n<footer>Ringside. This page is one file: it fetches nothing and "
			"runs nothing.</footer>\n</body>\n</html>\n");
}

void bench_page_section(struct sink *sink, const char *id, const char *title)
{
	sink_format(sink, "<section id=\"%s\">\n<h2>", id);
	bench_page_text(sink, title);
	sink_text(sink, "</h2>\n");
}

void bench_page_section_end(struct sink *sink)
{
	sink_text(sink, "</section>\n");
}

/* ---- charts and tables ---------------------------------------------------------------------------------- */

/* A part that scrolls must be reached by keyboard, too, and has a name then. */
static void scroll_begin(struct sink *sink, const char *name)
{
	sink_text(sink, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
	bench_page_text(sink, name);
}

void bench_page_chart(struct sink *sink, const char *title)
{
	scroll_begin(sink, title);
	sink_text(sink, "\">\n");
}

void bench_page_chart_end(struct sink *sink)
{
	sink_text(sink, "</div>\n");
}

void bench_page_table(struct sink *sink, const char *caption)
{
	scroll_begin(sink, caption);
	sink_text(sink, "\">\n<table>\n<caption>");
	bench_page_text(sink, caption);
	sink_text(sink, "</caption>\n<tr>");
}

void bench_page_head(struct sink *sink, const char *title, bool is_number)
{
	sink_format(sink, "<th scope=\"col\"%s>", is_number ? " class=\"number\"" : "");
	bench_page_text(sink, title);
	sink_text(sink, "</th>");
}

void bench_page_row(struct sink *sink)
{
	sink_text(sink, "</tr>\n<tr>");
}

void bench_page_cell(struct sink *sink, enum bench_page_cell_kind kind, const char *format, ...)
{
	static const char *const classes[] = {
		[PAGE_WORDS] = "",
		[PAGE_NUMBER] = " class=\"number\"",
		[PAGE_BEST] = " class=\"best\"",
		[PAGE_BAD] = " class=\"bad\"",
	};

	sink_format(sink, "<td%s>", classes[kind]);
	WRITE_FORMATTED(sink, format);
	sink_text(sink, "</td>");
}

void bench_page_table_end(struct sink *sink)
{
	sink_text(sink, "</tr>\n</table>\n</div>\n");
}
