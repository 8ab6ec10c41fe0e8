/* Where the trace file goes. In init only. */
#ifndef TRACE_PLACE_H
#define TRACE_PLACE_H

#include <stddef.h>

#include "base/status.h"
#include "capture/identity.h"
#include "capture/settings.h"

/* A path in RINGSIDE_DIR that nothing has yet; directories are made as far as that is possible.
 * ERR_FORMAT: the setting is no usable path. */
enum status trace_place_choose(char *path, size_t size, const struct settings *settings,
			       const struct identity *identity);

/* Make a path absolute where it fits: readers may stand elsewhere. */
void trace_place_absolute(char *path, size_t size);

#endif
