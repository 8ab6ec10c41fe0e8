/* Helper programs and children of the launcher, with a limit on how long they may take. */
#ifndef BENCH_SPAWN_H
#define BENCH_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Wait for a child; one that takes longer is killed. Gives back waitpid()'s status; -1: it was killed for
 * taking too long, or is none of ours. */
int bench_wait_child(pid_t child, int limit_s);

/* Run a program, its standard input from `input` (NULL: nothing), its output to the file `log` (NULL:
 * nowhere). Its exit code; -1: not started, or ended by a signal or by us. */
int bench_spawn(const char *const *words, const char *input, const char *log, int limit_s);

/* Look a program up in PATH and where NVIDIA's tools are. False: not there. */
bool bench_find_program(const char *name, char *path, size_t size);

#endif
