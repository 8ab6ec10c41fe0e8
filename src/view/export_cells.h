/* The values of a group's columns, from the word they come from: see export_rows.h. */
#ifndef EXPORT_CELLS_H
#define EXPORT_CELLS_H

#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "recording/recording.h"
#include "view/export_columns.h"
#include "view/export_rows.h"

/* Text that cells point to, kept until it is freed as a whole. */
struct export_string {
	struct export_string *next;
	char bytes[];
};

void export_string_free(struct export_string **strings);

/* `text` as UTF-8: itself where it is that already, else a copy with U+FFFD for each byte that is
 * none. NULL when there is no memory. */
const char *export_string_clean(struct export_string **strings, const char *text);

/* One cell for each column of the group, in the table's order. ERR_NO_SPACE (memory). */
enum status export_cells_fill(struct export_cell *cells, enum export_group group, uint64_t word,
			      const struct recording_process *process,
			      struct export_string **strings);

#endif
