/* Small drawings of characters: the last minute as a line of blocks, a share as a bar. */
#ifndef TOP_BARS_H
#define TOP_BARS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "doctor/live.h"

enum {
	TOP_BARS_COLUMNS = 60, /* the most that are drawn */
	TOP_BARS_TEXT = TOP_BARS_COLUMNS * 3 + 1,
};
#define TOP_BARS_WINDOW_NS UINT64_C(60000000000)

/* Bandwidth of the last minute before now, oldest left; the highest of it is the full height. A
 * blank is where nothing finished, or nobody looked. */
const char *top_bars_minute(char to[static TOP_BARS_TEXT], const struct live_history *history,
			    uint64_t now_wall_ns, unsigned int columns, bool is_utf8);

/* A share from 0 to 1, blanks included; NaN is all blanks. */
const char *top_bars_share(char to[static TOP_BARS_TEXT], double share, unsigned int columns,
			   bool is_utf8);

#endif
