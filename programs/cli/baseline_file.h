/* Reading a baseline from a file: for baseline and doctor. */
#ifndef BASELINE_FILE_H
#define BASELINE_FILE_H

#include "doctor/slow.h"

/* 0, or CLI_EXIT_TROUBLE after the reason was told; then there is nothing to release. "-": standard input. */
int baseline_file_read(struct baseline *baseline, const char *path);

#endif
