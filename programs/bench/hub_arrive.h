/* How ranks find each other, for bench_hub.c: rank 0 listens and lets ranks in, the others look for it. */
#ifndef HUB_ARRIVE_H
#define HUB_ARRIVE_H

#include "programs/bench/bench_place.h"
#include "programs/bench/hub_wire.h"

/* Where the hub's first steps go wrong: hub->problem says it. */

/* Rank 0: hub->peers are all there afterwards. 0 or -1. */
int hub_let_in(struct bench_hub *hub, const struct bench_place *place, int patience_s);
/* Another rank: hub->peers[0] is. 0 or -1. */
int hub_look_for(struct bench_hub *hub, const struct bench_place *place, int patience_s);

/* What this rank says of itself. */
struct hub_hello hub_hello_of(const struct bench_hub *hub, uint64_t token);
/* TCP_NODELAY, keepalive. */
void hub_set_options(int fd);
/* Do all ranks live on this machine, so that its loopback is enough? */
bool hub_is_local(const struct bench_place *place);

#endif
