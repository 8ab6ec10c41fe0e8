/* Seats as parts of what is shown. For the use of metrics_model.c. */
#ifndef METRICS_MEMBER_H
#define METRICS_MEMBER_H

#include "view/metrics_model.h"

const struct comm_info *metrics_seat_info(const struct metrics_model *model, uint32_t seat);

/* Is its communicator over, or its process? */
bool metrics_seat_is_over(const struct metrics_model *model, uint32_t seat);

/* Add what a seat has to a member. */
void metrics_member_add(const struct metrics_model *model, struct metrics_member *member,
			uint32_t seat);

#endif
