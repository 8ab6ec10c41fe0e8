/* Where an operation stands on the common time of all ranks. */
#ifndef VIEWER_PLACE_H
#define VIEWER_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/align.h"
#include "common/op_layout.h"
#include "recording/recording.h"
#include "view/viewer_clock.h"

enum viewer_place_kind {
	VIEWER_NOWHERE = 0, /* its record has no time at all */
	VIEWER_TIMED = 1,   /* by its duration */
	VIEWER_SEEN = 2,    /* from the first to the last sign of it: no duration is known */
	VIEWER_CALLED = 3,  /* of the call alone: NCCL shows nothing of its execution */
	VIEWER_IN_FLIGHT = 4,
};

const char *viewer_place_name(enum viewer_place_kind kind); /* "timed", ... */

struct viewer_place {
	enum viewer_place_kind kind;
	uint64_t start_ns; /* common time */
	uint64_t end_ns;   /* VIEWER_OPEN while in flight */
};

/* How times of one process are read. */
struct viewer_times {
	const struct recording_process *process;
	const struct align *align;
	size_t index; /* of the process */
	/* By the device number of communicators, which the last one is for when there are more. */
	struct viewer_clock_fit *gpus;
	const int32_t *gpu_numbers;
	size_t gpu_count;
	const uint64_t *last_done_ns; /* per communicator, as process->comms: when one ended last */
};

/* Recorder's clock to common time; 0 stays 0. */
uint64_t viewer_common_ns(const struct viewer_times *times, uint64_t clock_ns);

/* The GPU's stamp on the recorder's clock; 0 when the offset is not known. */
uint64_t viewer_gpu_ns(const struct viewer_times *times, uint32_t comm, uint64_t gpu_ns,
		       uint64_t near_ns);

/* A damaged record may say anything: does its begin come before its end, and both within reason? */
bool viewer_place_is_sane(const struct viewer_place *place);

/* is_open: it had not ended when the recording did. */
struct viewer_place viewer_place(const struct viewer_times *times, const struct op_record *op,
				 bool is_open);

/* The call itself, on the host: from issue to launch. */
struct viewer_place viewer_place_call(const struct viewer_times *times, const struct op_record *op);

/* The first time its record has, on the recorder's clock; 0 none. */
uint64_t viewer_first_sign_ns(const struct op_record *op);

#endif
