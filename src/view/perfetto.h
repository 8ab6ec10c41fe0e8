/* The viewer's stream as Perfetto's trace packets. See view/viewer.h. */
#ifndef PERFETTO_H
#define PERFETTO_H

#include "view/viewer.h"

struct perfetto;

/* NULL when there is no memory. */
struct perfetto *perfetto_new(void);
void perfetto_free(struct perfetto *perfetto);

void perfetto_about(struct viewer *viewer, const struct viewer_args *args);
void perfetto_process(struct viewer *viewer, const struct viewer_process *process);
void perfetto_track(struct viewer *viewer, const struct viewer_track *track);
void perfetto_slice(struct viewer *viewer, const struct viewer_slice *slice);
void perfetto_instant(struct viewer *viewer, const struct viewer_instant *instant);
void perfetto_value(struct viewer *viewer, const struct viewer_track *track, uint64_t at_ns,
		    double value);

#endif
