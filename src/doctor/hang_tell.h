/* From ends and circles to verdicts. For the use of src/doctor/hang*.c. */
#ifndef HANG_TELL_H
#define HANG_TELL_H

#include "doctor/hang_chain.h"
#include "doctor/verdict.h"

/* One verdict being written. */
struct hang_tale {
	struct verdicts *verdicts;
	struct hang_graph *graph;
	const struct hang_scene *scene;
	uint32_t *stamps;	  /* per rank: the number of the tale that counted it as a victim */
	uint32_t *culprit_stamps; /* the same for hang_culprits() */
	uint32_t *ranks;	  /* room for all ranks */
	bool *is_involved;	  /* per rank: the cause or a victim of a hang that was told */
	bool *is_parted; /* per rank: its calls differ from those of others, and it stands still since */
	uint32_t number; /* of the tale, from 1 */
	uint32_t asked;	 /* how often hang_culprits() was asked */

	/* Of this one: */
	const struct hang_end *lead; /* the end of the group that others wait in for longest */
	uint32_t first;		     /* the group's first end */
	size_t reached;		     /* nodes in graph->queue that wait for it, its own first */
	bool is_hang;		     /* something that waits for it stands still for long enough */
	uint32_t victims;
	struct verdict *verdict;
};

/* A group of ends: its verdict. hang_tell.c */
void hang_tell_group(struct hang_tale *tale);
/* A circle of `count` edges. hang_tell_circle.c */
void hang_tell_circle(struct hang_tale *tale, const uint32_t *edges, size_t count);

/* What is in a verdict whatever its class: whom, where, since when. `seat` HANG_NOBODY: nobody. */
void hang_tell_who(struct hang_tale *tale, uint32_t seat);
void hang_tell_where(struct hang_tale *tale, uint32_t comm, uint32_t witness,
		     const struct recording_flight *flight, uint64_t since_ns);
/* "7 of 8 ranks of dp are in AllReduce 812 ...": what the cause holds up directly. */
void hang_tell_waiting(struct hang_tale *tale);

/* "8 ranks of world stand still in collective 812 or the next ...", where these are different things. */
void hang_tell_stalled(struct hang_tale *tale, uint64_t number);

/* "; 7 ranks wait". */
void hang_say_victims(char *text, size_t size, uint32_t victims);
/* "rank 5 has", "ranks 5-8 have": the culprits and one of two words. */
void hang_say_culprits(struct hang_tale *tale, char *text, size_t size, const char *one,
		       const char *many);
/* "AllReduce 812 of dp": what the lead's witness is in. */
void hang_say_lead(const struct hang_tale *tale, char *text, size_t size);
/* All of them, when there are several. */
void hang_tell_culprits(struct hang_tale *tale);

/* By class. hang_tell_rank.c, hang_tell_gpu.c, hang_tell_dark.c */
void hang_tell_never_issued(struct hang_tale *tale);
void hang_tell_process(struct hang_tale *tale);
void hang_tell_gpu_waiting(struct hang_tale *tale);
void hang_tell_gpu_stuck(struct hang_tale *tale);
void hang_tell_unseen(struct hang_tale *tale);
void hang_tell_stuck(struct hang_tale *tale);
void hang_tell_unjudged(struct hang_tale *tale);
/* The network: both ends. hang_tell_link.c */
void hang_tell_link(struct hang_tale *tale);
/* Who called what. hang_tell_split.c */
void hang_tell_split(struct hang_tale *tale);

/* Processes that are dead or stopped, and nobody was told to wait for them yet. hang_tell_rank.c */
void hang_tell_gone(struct hang_tale *tale);

/* Hangs that ended because somebody gave up: from counters. hang_abort.c */
void hang_tell_aborted(struct hang_tale *tale);

/* What makes it weaker, and what to do. hang_doubt.c, hang_advice.c */
void hang_tell_doubts(struct hang_tale *tale);
void hang_tell_advice(struct hang_tale *tale);

/* Distinct ranks of the group's ends, into tale->ranks. */
size_t hang_culprits(struct hang_tale *tale);

#endif
