/* A run that was measured before, from what --json wrote then. */
#ifndef BENCH_RECALL_H
#define BENCH_RECALL_H

#include "bench/bench_result.h"
#include "cmds/cli.h"

/* "-" is standard input. 0: the caller releases *run. Else CLI_EXIT_TROUBLE after one line, and *run is
 * empty. */
int bench_recall(struct bench_run *run, const char *path);

/* With --from nothing is measured, and nothing that was said is silently left out. `measuring` is an option that
 * says what or how to measure (its id, or CLI_OPERAND), 0 where none was said. 0, or CLI_EXIT_USAGE after one line. */
int bench_recall_check(const struct cli_page *page, const char *from, int measuring);

#endif
