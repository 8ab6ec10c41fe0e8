/*
 * Texts for columns of a screen: how wide they are, and numbers in few characters.
 *
 * Names come from jobs: any bytes. What is no UTF-8, has no width or would turn the writing around
 * is shown as '?'; where the locale is not UTF-8 everything beyond ASCII is. wcwidth() decides, so
 * the caller sets LC_CTYPE.
 */
#ifndef TOP_TEXT_H
#define TOP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

enum { TOP_TEXT_NUMBER = 24 };

/* One character of a text: its bytes, and as it is to be shown; width 0 is a mark on the one
 * before. 0 at the end of the text. */
size_t top_text_next(const char *at, bool is_utf8, wchar_t *character, unsigned int *width);

unsigned int top_text_width(const char *text, bool is_utf8);

/* Bytes of the beginning of `text` that fit into `width` columns, ended at a blank where there is
 * one; the blanks after it are in *skip. For wrapping: at least one character. */
size_t top_text_line(const char *text, unsigned int width, bool is_utf8, size_t *skip);

/* All give back what they wrote, "-" where there is nothing to tell (NaN, 0 for an age). */
const char *top_text_rate(char to[static TOP_TEXT_NUMBER], double per_s); /* "12.3k" */
const char *top_text_bandwidth(char to[static TOP_TEXT_NUMBER],
			       double bytes_per_s);			   /* "182 GB/s" */
const char *top_text_share(char to[static TOP_TEXT_NUMBER], double share); /* "12%" */
const char *top_text_age(char to[static TOP_TEXT_NUMBER], uint64_t ns);	   /* "3m12s" */

#endif
