/* `ringside export --format inspector`: NCCL Inspector's own JSON lines, v4.0. */
#ifndef EXPORT_INSPECTOR_H
#define EXPORT_INSPECTOR_H

#include "view/export_format.h"

/* Operations without a duration, or that Inspector has no words for, have no line. */
extern const struct export_format export_inspector;

#endif
