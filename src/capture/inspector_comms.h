/*
 * Communicators as the reader of the ring needs them: records come behind their communicator's end, and its
 * slot in the region may have another owner by then. So each is copied, and its slot is not used again
 * before all of its records were read (as long as that can be waited for).
 */
#ifndef INSPECTOR_COMMS_H
#define INSPECTOR_COMMS_H

#include <stdbool.h>
#include <stdint.h>

#include "op/comm_layout.h"

struct inspector_comm {
	struct comm_info info; /* id 0: none */
	uint64_t p2p;	       /* Sends and Recvs so far */
	bool is_ending;	       /* all of its records are in the ring */
};

struct inspector_comms {
	struct inspector_comm *slots; /* as many as the region has */
	uint32_t *done;		      /* per slot: id of which nothing more comes */
	uint32_t count;
	uint32_t last; /* slot found last */
};

/* False: no memory. */
bool inspector_comms_init(struct inspector_comms *comms, uint32_t count);

/* Copy what is new; note which have ended. True when one ended that had not before. */
bool inspector_comms_refresh(struct inspector_comms *comms);

/* The ring was read up to where it was at the refresh, or further: what had ended then is done. */
void inspector_comms_settle(struct inspector_comms *comms);

/* NULL: its slot went to another one before its records were read. */
struct inspector_comm *inspector_comms_find(struct inspector_comms *comms, uint32_t id);

/* Is nothing more to come of it? For other threads. */
bool inspector_comms_is_done(const struct inspector_comms *comms, uint32_t slot, uint32_t id);

#endif
