/*
 * What was looked at, beside the verdicts: how many ranks, where, how current, and where each communicator
 * stands. For the sentence that a healthy job gets, and for the details below a verdict.
 */
#ifndef SCENE_H
#define SCENE_H

#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "doctor/verdict.h"
#include "timeline/job.h"

/* Only what goes on is counted: a member whose process is gone or that has finalized it is in none of these. */
struct scene_comm {
	uint32_t comm;	 /* index into job.comms */
	uint32_t open;	 /* members seen that go on */
	uint32_t inside; /* of these: in an operation */
	uint64_t age_ns; /* of the oldest operation that a member is in; 0 nobody is */
	uint64_t
		still_ns; /* for so long no member issued or finished anything; UINT64_MAX unknown */
	uint64_t most_issued;  /* the last collective issued: by the member that is furthest, */
	uint64_t least_issued; /* and by the one that is least far */
	uint64_t number;       /* of that oldest operation, as ranks are joined; 0 unknown */
	char function[32];     /* of that; "" nobody is in one */
};

struct scene {
	char job[128]; /* the only one's name; "" none or several */
	size_t jobs;   /* groups with a rank */
	size_t processes;
	size_t ranks; /* seen; a rank that was started again is one */
	size_t hosts;
	size_t communicators; /* that go on; all, where nothing goes on */
	size_t alive;	      /* processes by life */
	size_t ended;
	size_t killed;
	size_t missing;	 /* ranks that the launcher or a communicator counts, and nobody recorded */
	size_t standing; /* communicators that somebody is in, without a sign for hang_ns */
	uint64_t operations;	  /* issued, as far as counts are known */
	uint64_t age_ns;	  /* of the oldest operation that somebody is in; 0 nobody is */
	uint64_t last_ns;	  /* since the last sign of an operation; UINT64_MAX unknown */
	struct scene_comm *comms; /* that go on: those somebody is in first, the longest first */
	size_t comm_count;
};

/* now_ns: per process, its recorder's clock; NULL: as hang_now_ns() says. ERR_NO_SPACE (memory): nothing to
 * release. */
enum status scene_make(struct scene *scene, const struct job *job, const uint64_t *now_ns,
		       uint64_t hang_ns);
void scene_release(struct scene *scene);

/* Nothing of it goes on, and it did not end by itself. */
bool scene_is_dead(const struct scene *scene);

/* Is something wrong: told as a warning at least, or killed? The exit code of the doctor. scene NULL: only logs were
 * read; so for the next one. */
bool scene_has_trouble(const struct scene *scene, const struct verdicts *verdicts);

/* The answer in one word: everything was judged, nothing is told that is worse than a note, and it was not killed. */
bool scene_is_healthy(const struct scene *scene, const struct verdicts *verdicts);

#endif
