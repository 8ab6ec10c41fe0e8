/* A run that was measured before, from what --json wrote then. */
#ifndef BENCH_RECALL_H
#define BENCH_RECALL_H

#include "bench/bench_result.h"

/* "-" is standard input. 0: the caller releases *run. Else CLI_EXIT_TROUBLE after one line, and *run is
 * empty. */
int bench_recall(struct bench_run *run, const char *path);

#endif
