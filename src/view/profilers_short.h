/* What came out for a plugin, in one sentence: what stands first in the text and on the page. */
#ifndef PROFILERS_SHORT_H
#define PROFILERS_SHORT_H

#include <stddef.h>

#include "bench/profilers.h"

enum { PROFILERS_SHORT_SENTENCE = 768 };

/*
 * "ringside: calls recorded: 100 % (blocking), 100 % (graph); GPU time of a call 1.005 times that without
 * (0.981 to 1.030: no difference shown), graph alone 1.030 (1.002 to 1.058: slower); host time in the call ...". Parts
 * that are not known are not there; "" where none is.
 */
const char *profilers_short(char to[static PROFILERS_SHORT_SENTENCE],
			    const struct profilers_comparison *comparison, size_t plugin);

#endif
