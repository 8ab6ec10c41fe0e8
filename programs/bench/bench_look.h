/* What this machine has, asked in a child of its own: a process that opened CUDA must not fork. */
#ifndef BENCH_LOOK_H
#define BENCH_LOOK_H

#include <stdbool.h>
#include <stddef.h>

/* How many GPUs there are; -1: *problem says in one line what is missing. With `with_nccl`, NCCL must be
 * there, too: the library `nccl`, or where it is NULL the one that would be found. */
int bench_look(bool with_nccl, const char *nccl, char *problem, size_t problem_size);

#endif
