/* How a byte is written between tags and in attributes, of HTML and of SVG. */
#ifndef HTML_ESCAPE_H
#define HTML_ESCAPE_H

#include <stddef.h>

/* NULL: as it is. */
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
