/* Shared by viewer*.c. */
#ifndef VIEWER_INTERNAL_H
#define VIEWER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/job.h"
#include "common/op_layout.h"
#include "output/viewer.h"
#include "recording/recording.h"

/* Recorder's clock to common time; 0 stays 0. */
uint64_t viewer_common_ns(const struct viewer_times *times, uint64_t clock_ns);

/* A GPU timestamp on the recorder's clock; 0 if the offset is unknown. */
uint64_t viewer_gpu_ns(const struct viewer_times *times, uint32_t comm, uint64_t gpu_ns,
		       uint64_t near_ns);

/* Rejects damaged records: start before end, and both plausible. */
bool viewer_place_is_sane(const struct viewer_place *place);

/* The call itself, on the host: from issue to launch. */
struct viewer_place viewer_place_call(const struct viewer_times *times, const struct op_record *op);

/* Does the seat match the filter? NULL never does if there is a filter. */
bool viewer_plan_has_seat(const struct viewer_plan *plan, const struct job_seat *seat);
/* Was it in flight when the recording ended? */
bool viewer_plan_is_open(const struct viewer_source *source, const struct op_record *op,
			 enum recording_place found);
bool viewer_plan_is_inside(const struct viewer_plan *plan, const struct viewer_place *place);
/* Counts `more` walked operations; false: stop. */
bool viewer_plan_walked(struct viewer_plan *plan, uint64_t more);

#endif
