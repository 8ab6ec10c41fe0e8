/* Escape of a byte in text and attributes of HTML and SVG. */
#ifndef HTML_ESCAPE_H
#define HTML_ESCAPE_H

#include <stddef.h>

/* NULL: none needed. */
static inline const char *html_escape(char byte)
{
	switch (byte) {
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '&':
		return "&amp;";
	case '"':
		return "&quot;";
	default:
		return NULL;
	}
}

#endif
