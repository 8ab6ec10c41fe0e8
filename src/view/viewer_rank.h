/* The third walk's state: one process being written. Shared by viewer_write.c, viewer_detail.c and
 * viewer_note.c, and by nobody else. */
#ifndef VIEWER_RANK_H
#define VIEWER_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "view/viewer.h"
#include "view/viewer_bins.h"
#include "view/viewer_lanes.h"
#include "view/viewer_order.h"
#include "view/viewer_plan.h"

struct viewer_rank {
	struct viewer_plan *plan;
	struct viewer *viewer;
	struct viewer_source *source;
	struct viewer_lanes lanes;
	struct viewer_order order;
	struct viewer_bins bins;
	struct viewer_item *open; /* operations in flight: written last */
	size_t open_count;
	size_t open_room;
	uint64_t last_sequence;
	enum status status;
};

/* Tracks of a process stand in this order; each group of lanes has so many places. */
enum {
	VIEWER_ORDER_COUNTER = -2,
	VIEWER_ORDER_CALLS = -1,
	VIEWER_ORDER_COMM = 4096,
};

/* Common time to the timeline's; what was before its begin is at its begin. */
uint64_t viewer_rank_ns(const struct viewer_rank *rank, uint64_t common_ns);

/* How long an operation had been in flight when the recording ended: since its call. */
uint64_t viewer_rank_age_ns(const struct viewer_rank *rank, const struct op_record *op);

/* The group of a communicator's operations; NULL: no room. */
struct viewer_group *viewer_rank_comm(struct viewer_rank *rank, uint32_t comm_id);

/* A track for a slice, made known when it is new; 0: no room. */
uint32_t viewer_rank_track(struct viewer_rank *rank, struct viewer_group *group, uint64_t *start_ns,
			   uint64_t *end_ns);

/* Channels and transfers (mode full), in tracks below their communicators. */
enum status viewer_rank_details(struct viewer_rank *rank);

/* Moments: what was lost, what is missing, what hangs, how it ended. */
void viewer_rank_gap(struct viewer_rank *rank, const struct op_record *op,
		     const struct viewer_place *place);
void viewer_rank_notes(struct viewer_rank *rank);

#endif
