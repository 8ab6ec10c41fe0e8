/* One operation in a viewer's words: what its slice is called, and what is said when it is clicked. */
#ifndef VIEWER_OP_H
#define VIEWER_OP_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/job.h"
#include "common/op_layout.h"
#include "recording/recording.h"
#include "view/viewer.h"
#include "view/viewer_meet.h"
#include "view/viewer_place.h"

enum { VIEWER_NAME_TEXT = 128, VIEWER_FLAGS_TEXT = 320 };

/* Texts which the arguments point to. */
struct viewer_op_texts {
	char flags[VIEWER_FLAGS_TEXT];
	char waits_for[96];
};

struct viewer_op {
	const struct job *job;
	const struct recording_process *process;
	const struct job_seat *seat; /* NULL: the process does not list its communicator */
	const struct op_record *op;
	const struct viewer_place *place;
	const struct viewer_met *met;
	uint64_t in_flight_ns; /* in flight: for how long when the recording ended */
};

/* "AllReduce 64 MiB", "Send 4 MiB to 5", "AllReduce 64 MiB (in flight)". */
void viewer_op_name(const struct viewer_op *of, char name[static VIEWER_NAME_TEXT]);

/* All that is known of it and not nothing. Texts stay the caller's, as long as the arguments are
 * used. */
void viewer_op_args(const struct viewer_op *of, struct viewer_op_texts *texts,
		    struct viewer_args *args);

enum viewer_colour viewer_op_colour(const struct viewer_op *of);

/* Bytes x factor of its function, as nccl-tests counts busbw; 0 unknown. */
double viewer_op_bus_bytes(const struct viewer_op *of);

#endif
