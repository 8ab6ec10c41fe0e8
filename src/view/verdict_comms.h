/* Where each communicator stands, as a table below the verdicts. */
#ifndef VERDICT_COMMS_H
#define VERDICT_COMMS_H

#include "view/verdict_text.h"

/* look->scene is there. ERR_NO_SPACE (memory), or the sink's status. */
enum status verdict_comms_text(struct sink *sink, const struct verdict_look *look,
			       const struct verdict_text_options *options);

#endif
