/*
 * How ranks speak to each other beside NCCL: a star around rank 0 over TCP. For the unique id, for
 * keeping ranks together, for results; never inside a timed region. All ranks make the same calls in the
 * same order, as with MPI. A rank that fails says why, and every other rank's next call fails with
 * that reason; one that dies is noticed by its closed connection.
 *
 * All give back 0, or -1 with hub_problem() saying in one line what happened, on which rank. All ranks know
 * it then; hub_is_teller() is true on the one that tells the user.
 */
#ifndef BENCH_HUB_H
#define BENCH_HUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "programs/bench/bench_place.h"

struct bench_hub;

enum { HUB_PROBLEM_BYTES = 512, HUB_MESSAGE_MAX = 1 << 30 };

/* Meet all ranks. `patience_s`: how long to wait for the last one (names who is missing). With one
 * rank there is no network. After -1, too, there is a hub to ask why and to close; NULL: no memory for one. */
int hub_open(struct bench_hub **hub, const struct bench_place *place, int patience_s);
void hub_close(struct bench_hub *hub);

/* From now on a call that waits longer for the others fails and names who did not answer; 0, as it is
 * at first: they may take as long as they like. */
void hub_set_patience(struct bench_hub *hub, int seconds);

/* All wait for all. Where all are on one machine with processors to spare, they come out of it within a few
 * microseconds of each other. */
int hub_meet(struct bench_hub *hub);
/* Rank 0's bytes to everybody. */
int hub_share(struct bench_hub *hub, void *bytes, size_t length);
/* Rank 0 gets `length` bytes of every rank, in order, its own first: into[rank * length]. Others: into may be NULL. */
int hub_gather(struct bench_hub *hub, const void *bytes, size_t length, void *into);
/* Without waiting: did another rank fail or die? For those who wait for a GPU: -1 and the reason in
 * hub_problem(), else 0. Costs a system call. */
int hub_look(struct bench_hub *hub);
/* Tell everybody that this rank cannot go on; the first reason wins. Also from another thread, while this
 * rank's own is in one of the calls above: that call ends when it next has something to look at. */
void hub_fail(struct bench_hub *hub, const char *reason);
const char *hub_problem(const struct bench_hub *hub);
/* After a call failed: ends this rank's side of all connections and waits until the others have ended theirs, as
 * all do whose call fails. Gives back how many did not within `wait_ms`, their numbers in `ranks`: they are
 * stopped, or their machine is. Rank 0 asks for all, others for rank 0. Nothing can be sent afterwards. */
size_t hub_silent(struct bench_hub *hub, int wait_ms, int *ranks, size_t most);
/* Rank 0; when rank 0 is gone, rank 1. Each rank that has no hub. */
bool hub_is_teller(const struct bench_hub *hub);

#endif
