/*
 * Calls a profiler plugin as NCCL does, through the host of src/sim/host.h: one host per process, one of its
 * communicators for each of ours.
 */
#ifndef FAKE_SHOW_H
#define FAKE_SHOW_H

#include <stdbool.h>

#include "tests/fake_gpu/fake_call.h"

struct fake_show;
struct fake_shown;

/* Loads the plugin named in NCCL_PROFILER_PLUGIN with the process's first communicator. */
int fake_show_open(struct fake_show **show, uint64_t hash, int nranks, int nodes, int rank);
void fake_show_close(struct fake_show *show, bool is_abort);

/* Allocates calls that become one kernel; NULL: no plugin, or out of memory. Owned by `show`. */
struct fake_shown *fake_shown_new(struct fake_show *show, size_t calls, bool is_captured);
/*
 * The calls themselves, on the caller's thread: API events, launch. Calls launch() once, between start and stop of
 * KernelLaunch if the plugin wants these; of several launches in a group, in the first.
 */
void fake_shown_play(struct fake_shown *shown, const struct fake_call *calls, size_t count,
		     void (*launch)(void *arg), void *arg);
/* A captured kernel runs again: on the stream's thread. */
void fake_shown_replay(struct fake_shown *shown);
/* The kernel ran this long: on the stream's thread. */
void fake_shown_end(struct fake_shown *shown, uint64_t duration_ns);
/* It will not run again. */
void fake_shown_drop(struct fake_shown *shown);

#endif
