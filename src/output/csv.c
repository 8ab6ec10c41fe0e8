/* Cells and lines of CSV. */
#include "output/csv.h"

#include <string.h>

void csv_text(struct sink *sink, const char *text)
{
	size_t length = strlen(text);

	if (length > 0 && strcspn(text, ",\"\r\n") == length) {
		sink_write(sink, text, length);
		return;
	}
	sink_byte(sink, '"');
	while (*text != '\0') {
		size_t part = strcspn(text, "\"");

		sink_write(sink, text, part);
		text += part;
		if (*text == '"') {
			sink_write(sink, "\"\"", 2);
			text++;
		}
	}
	sink_byte(sink, '"');
}

void csv_line(struct sink *sink)
{
	sink_write(sink, "\r\n", 2);
}
