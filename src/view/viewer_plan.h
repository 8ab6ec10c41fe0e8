/*
 * A recording laid out for a trace viewer: what is shown, when it was, who met whom. Operations are
 * walked three times, none is kept:
 *
 *	viewer_plan_survey()   from when to when, where the GPUs' clocks stand
 *	                       (then the caller sets from_ns, to_ns)
 *	viewer_plan_join()     what is inside, who waited for whom
 *	viewer_plan_write()    the timeline, a process at a time
 *
 *	viewer_plan_init(&plan, &job, &align, &filter);
 *	viewer_plan_survey(&plan);
 *	viewer_plan_join(&plan);
 *	viewer_plan_write(&plan, &viewer);
 *	viewer_plan_release(&plan);
 */
#ifndef VIEWER_PLAN_H
#define VIEWER_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/align.h"
#include "analysis/filter.h"
#include "analysis/job.h"
#include "common/status.h"
#include "recording/recording.h"
#include "view/viewer.h"
#include "view/viewer_meet.h"
#include "view/viewer_place.h"

/* What is known of one process. */
struct viewer_source {
	struct viewer_times times;
	struct viewer_clock_fit *gpus;
	int32_t *gpu_numbers;
	uint64_t *last_done; /* per communicator, as process->comms: highest number that is done */
	uint64_t *last_done_ns; /* and when one ended last, recorder's clock */
	uint64_t first_ns;	/* common time of the first and the last sign of it; 0 unknown */
	uint64_t last_ns;
	uint32_t number; /* the viewer's */
	bool is_shown;	 /* some of its ranks and communicators pass the filter */
};

/* What became of the operations, in the end. */
struct viewer_tally {
	uint64_t read;	/* operations walked */
	uint64_t shown; /* each is one slice (or moment) of category "operation" */
	uint64_t timed; /* of shown, by how they were placed */
	uint64_t seen;
	uint64_t called;
	uint64_t in_flight;
	uint64_t nowhere;     /* no time is recorded: a moment at the begin */
	uint64_t crowded;     /* found no track: a moment instead of a slice */
	uint64_t waiting;     /* slices of waiting */
	uint64_t details;     /* slices of channels and transfers */
	uint64_t details_out; /* details that found no track, or have no time */
	uint64_t missing;     /* sequences that nobody has any more */
	uint64_t refused;     /* records and blocks that cannot be read */
};

struct viewer_plan {
	const struct recording *recording; /* these four are borrowed */
	const struct job *job;
	const struct align *align;
	const struct filter *filter; /* ranks and communicators of it */
	bool has_details;	     /* show channels and transfers, too */
	bool has_calls;		     /* show calls on the host, too */
	timeline_progress *progress; /* NULL none */
	void *progress_context;

	struct viewer_source *sources; /* as recording->processes */
	uint64_t first_ns;	       /* common time: of everything that passes the filter */
	uint64_t last_ns;
	uint64_t from_ns; /* what is shown: operations that were under way in [from, to) */
	uint64_t to_ns;
	uint64_t origin_ns;	   /* time 0 of the timeline: nothing that is shown began before */
	uint64_t end_ns;	   /* the last end that is shown */
	uint64_t expected;	   /* operations that will be shown */
	uint64_t expected_details; /* details there are, shown or not */
	struct viewer_meet meet;
	struct viewer_tally tally;
	enum status status; /* of the first failure within a walk */
	uint64_t walked;
	uint64_t to_walk;
};

/* ERR_NO_SPACE (memory); nothing to release then. */
enum status viewer_plan_init(struct viewer_plan *plan, const struct job *job,
			     const struct align *align, const struct filter *filter);
void viewer_plan_release(struct viewer_plan *plan);

/* ERR_NO_SPACE, ERR_GONE when progress said false, or what a walk of the recording said. */
enum status viewer_plan_survey(struct viewer_plan *plan);
enum status viewer_plan_join(struct viewer_plan *plan);
/* Processes, tracks, slices, counters; not viewer_about(), not viewer_end(). */
enum status viewer_plan_write(struct viewer_plan *plan, struct viewer *viewer);

/* For the walks: does the communicator's seat pass the filter? NULL never does when there is one. */
bool viewer_plan_has_seat(const struct viewer_plan *plan, const struct job_seat *seat);
/* Had it not ended when the recording did? */
bool viewer_plan_is_open(const struct viewer_source *source, const struct op_record *op,
			 enum recording_place found);
bool viewer_plan_is_inside(const struct viewer_plan *plan, const struct viewer_place *place);
/* Count `more` operations walked; false: stop. */
bool viewer_plan_walked(struct viewer_plan *plan, uint64_t more);

#endif
