/*
 * The frame of a page about a benchmark: one file that fetches nothing and runs nothing, with the colours of
 * our other pages, light and dark. What it is given as text is escaped; charts come from bench_svg.h, straight
 * into the sink, with .has_no_style: theirs is in the page's head.
 *
 *	bench_page_begin(sink, "AllReduce on 8 ranks", "ringside bench crossover");
 *	bench_page_section(sink, "time", "Time over size");
 *	bench_svg_lines(sink, ...);
 *	bench_page_section_end(sink);
 *	bench_page_end(sink);
 */
#ifndef BENCH_PAGE_H
#define BENCH_PAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/attributes.h"
#include "output/sink.h"

/* Doctype to the page's heading. `made_by` is the command that wrote it. */
void bench_page_begin(struct sink *sink, const char *title, const char *made_by);
void bench_page_end(struct sink *sink);

/* `id`: letters, digits, '-'; unique in the page. */
void bench_page_section(struct sink *sink, const char *id, const char *title);
void bench_page_section_end(struct sink *sink);

/* Escaped; bytes that are no UTF-8 become U+FFFD. */
void bench_page_text(struct sink *sink, const char *text);
void bench_page_paragraph(struct sink *sink, const char *format, ...) PRINTF_LIKE(2, 3);
/* The one sentence that matters, larger. */
void bench_page_lead(struct sink *sink, const char *format, ...) PRINTF_LIKE(2, 3);
/* A list of sentences: begin, items, end. */
void bench_page_list(struct sink *sink);
void bench_page_item(struct sink *sink, const char *format, ...) PRINTF_LIKE(2, 3);
void bench_page_list_end(struct sink *sink);

/* Around each <svg>: it scrolls sideways within itself where it would become too small to read. */
void bench_page_chart(struct sink *sink, const char *title);
void bench_page_chart_end(struct sink *sink);

/*
 * A table that scrolls sideways within itself.
 *
 *	bench_page_table(sink, "Medians");        caption, for those who do not see it
 *	bench_page_head(sink, "Size", false);     ... each column
 *	bench_page_row(sink);
 *	bench_page_cell(sink, PAGE_NUMBER, "%s", ...);
 *	bench_page_table_end(sink);
 */
enum bench_page_cell_kind {
	PAGE_WORDS = 0,
	PAGE_NUMBER = 1,
	PAGE_BEST = 2, /* a number that stands out, by weight and not by colour alone */
	PAGE_BAD = 3,
};
void bench_page_table(struct sink *sink, const char *caption);
void bench_page_head(struct sink *sink, const char *title, bool is_number);
void bench_page_row(struct sink *sink);
void bench_page_cell(struct sink *sink, enum bench_page_cell_kind kind, const char *format, ...)
	PRINTF_LIKE(3, 4);
void bench_page_table_end(struct sink *sink);

#endif
