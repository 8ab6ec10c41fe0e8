/* programs/bench/densenet.py, inside the tool: it is written where a training job is to run. */
#ifndef DENSENET_SCRIPT_H
#define DENSENET_SCRIPT_H

#include <stddef.h>

/* Its bytes, static. */
const char *densenet_script(size_t *length);

#endif
