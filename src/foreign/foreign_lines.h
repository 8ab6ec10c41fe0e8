/*
 * The lines of a file, plain or gzip, whichever it is: a few at a time, never the whole file. It is
 * read, not mapped, because somebody may cut it meanwhile.
 */
#ifndef FOREIGN_LINES_H
#define FOREIGN_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

/* No line that anybody writes is longer; one that is gets passed over and counted. */
enum { FOREIGN_LINE_MAX = 16 << 20 };

struct foreign_line {
	const char *text; /* without its newline; valid until the next call */
	size_t length;
	uint64_t number;  /* from 1 */
	uint64_t offset;  /* of its first byte, in the text: behind gzip */
	bool is_ended;	  /* by a newline; else the text ends here */
	bool is_too_long; /* longer than FOREIGN_LINE_MAX: `text` is "" */
};

struct foreign_lines {
	int fd;
	uint64_t read_at; /* in the file */
	uint64_t limit;	  /* bytes of the file to read, UINT64_MAX: all */
	bool is_gzip;
	bool is_over; /* nothing more comes from the file */
	void *inflate;
	unsigned char *packed;
	char *buffer;
	size_t room;
	size_t from; /* of what is in the buffer and not yet given */
	size_t to;
	size_t seen;	 /* up to here there is no newline */
	uint64_t offset; /* of buffer[from] in the text */
	uint64_t number;
	enum status status; /* why it ended early: ERR_SYSTEM, ERR_FORMAT or ERR_TRUNCATED (gzip) */
};

/* The descriptor stays the caller's, and its position alone. The caller owns *lines; release it in
 * every case. ERR_NO_SPACE, ERR_SYSTEM. */
enum status foreign_lines_init(struct foreign_lines *lines, int fd, uint64_t limit);
void foreign_lines_release(struct foreign_lines *lines);

/*
 * OK and a line, or ERR_GONE at the end. ERR_NO_SPACE is memory. When the file is damaged or cannot
 * be read further, what came before is given and then lines->status says why: at byte
 * lines->read_at of the file.
 */
enum status foreign_lines_next(struct foreign_lines *lines, struct foreign_line *line);

/* The first bytes of the text, for looking at: up to `size`, fewer only when it is shorter. */
enum status foreign_lines_peek(int fd, char *to, size_t size, size_t *got);

#endif
