/* Looking an operation up by its number, to show what was around it. */
#ifndef VIEWER_FIND_H
#define VIEWER_FIND_H

#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "view/viewer_plan.h"

enum { VIEWER_FIND_COMMS = 4 };

struct viewer_find {
	const char *comm; /* its name, or its hash; NULL: any */
	int64_t rank;	  /* -1: any */
	uint64_t number;
	/* Found: */
	uint64_t count;	   /* operations: the same on several ranks count each */
	uint64_t start_ns; /* common time: the first begin and the last end of them */
	uint64_t end_ns;
	uint32_t comms[VIEWER_FIND_COMMS]; /* indices into job.comms: the first few they are on */
	size_t comm_count;		   /* all of them */
};

/* After viewer_plan_survey(). What a walk of the recording said. */
enum status viewer_find(struct viewer_plan *plan, struct viewer_find *find);

#endif
