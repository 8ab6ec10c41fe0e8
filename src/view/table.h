/*
 * Text tables: columns as wide as their widest cell, cut where the terminal is narrower. A row may
 * have notes: whole lines below it, wrapped to the width.
 *
 *	PID   JOB  OPERATIONS
 *	4711  a      1,234,567
 *	      kernel events are off: /dev/shm has 64 MiB
 */
#ifndef TABLE_H
#define TABLE_H

#include <stddef.h>

#include "common/attributes.h"
#include "common/status.h"
#include "view/sink.h"

enum table_align { TABLE_LEFT = 0, TABLE_RIGHT = 1 };

struct table_column {
	const char *title;
	enum table_align align;
	unsigned int least; /* 0: never cut; else the width down to which it may be cut */
};

struct table;

/* NULL when there is no memory. `columns` is borrowed until table_free(). */
struct table *table_new(const struct table_column *columns, size_t count);
void table_free(struct table *table);

/* Cells fill the rows from left to right; a row ends with its last column. Control bytes become
 * '?'. A failed allocation sticks and is what table_write() returns. */
void table_cell(struct table *table, const char *text);
void table_cellf(struct table *table, const char *format, ...) PRINTF_LIKE(2, 3);

/* A line below the row that was filled last. */
void table_note(struct table *table, const char *format, ...) PRINTF_LIKE(2, 3);

/* `width` 0: as wide as it takes. A table without rows writes nothing. */
enum status table_write(const struct table *table, struct sink *sink, unsigned int width);

/* `text` in lines of at most `width` columns (0: one line), the first one after `first`, the
 * others after `indent` blanks. A word longer than the width stays whole. */
void table_wrap(struct sink *sink, const char *text, const char *first, size_t indent,
		unsigned int width);

#endif
