/* Which operations are in flight: oldest first, what ranks do together side by side. */
#ifndef PS_LIST_H
#define PS_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/flight.h"
#include "recording/recording.h"

/*
 * Where NCCL shows no ends, an operation that hangs looks like one that is over. What tells them apart is
 * whether the process goes on: one that has called nothing for this long, the doctor's first suspicion, is
 * listed with its last calls.
 */
#define PS_QUIET_NS UINT64_C(5000000000)

struct ps_entry {
	const struct recording_process *process;
	const struct recording_flight *flight;
	enum flight_kind kind;
	bool is_last_call; /* unseen; the process has called nothing for PS_QUIET_NS since */
	uint32_t absent;   /* of the processes here in its communicator: have not called it */
	uint64_t now_ns;   /* recorder's clock */
	bool is_live;	   /* now is now; else the last moment of which the recording knows */
	uint64_t age_ns;
	uint64_t group_age_ns; /* the oldest of the same number on the same communicator */
	uint64_t hash;	       /* of the communicator, 0 unknown */
	int32_t rank;	       /* in it, -1 unknown */
};

/* A process whose proxy thread moves data for others (PXN). */
struct ps_carrier {
	const struct recording_process *process;
	uint64_t now_ns;
};

struct ps_list {
	struct ps_entry *entries;
	size_t count;
	struct ps_carrier *carriers;
	size_t carrier_count;
	size_t unseen;	  /* operations whose end does not show, listed or not */
	size_t unlisted;  /* of these, not listed */
	size_t processes; /* that were looked at */
	size_t dead;	  /* that were not, because they are dead */
};

void ps_list_make(struct ps_list *list, const struct recording *recording, bool has_unseen,
		  bool has_dead);
void ps_list_release(struct ps_list *list);

#endif
