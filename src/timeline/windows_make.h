/* How windows are filled. For the room's own use. */
#ifndef WINDOWS_MAKE_H
#define WINDOWS_MAKE_H

#include "common/status.h"
#include "timeline/align.h"
#include "timeline/meet.h"
#include "timeline/report.h"
#include "timeline/windows.h"
#include "timeline/windows_local.h"

/* report: job, ranks (common times), align, start_ns and end_ns are there. most: windows at most. */
enum status windows_make(struct windows *windows, const struct timeline_report *report,
			 const struct meet *meet, const struct windows_local *locals,
			 uint32_t most);

/* Fills windows->changes. */
enum status windows_find_changes(struct windows *windows, const struct timeline_report *report,
				 const struct meet *meet);

/* Common time of a meeting's end. */
static inline uint64_t windows_slot_ns(const struct timeline_report *report,
				       const struct meet_lane *lane, const struct meet_slot *slot)
{
	const struct job_comm *comm = &report->job.comms[lane->comm];

	return align_ns(&report->align, report->job.seats[comm->seats[slot->owner]].process,
			slot->end_ns);
}

#endif
