/* The viewer's stream as Chrome's Trace Event Format: JSON, an event a line. See view/viewer.h. */
#ifndef CHROME_H
#define CHROME_H

#include "view/viewer.h"

void chrome_about(struct viewer *viewer, const struct viewer_args *args);
void chrome_process(struct viewer *viewer, const struct viewer_process *process);
void chrome_track(struct viewer *viewer, const struct viewer_track *track);
void chrome_slice(struct viewer *viewer, const struct viewer_slice *slice);
void chrome_instant(struct viewer *viewer, const struct viewer_instant *instant);
void chrome_value(struct viewer *viewer, const struct viewer_track *track, uint64_t at_ns,
		  double value);
void chrome_end(struct viewer *viewer);

#endif
