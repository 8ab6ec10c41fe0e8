/* Words of hang verdicts. For the use of src/doctor/hang*.c. Texts are cut where they do not fit. */
#ifndef HANG_WORDS_H
#define HANG_WORDS_H

#include "doctor/hang_chain.h"

/* All append. "rank 5", "process node0:4711"; "rank 5 (node0, pid 4711, GPU 3)". */
void hang_say_rank(char *text, size_t size, const struct hang_scene *scene, uint32_t seat);
void hang_say_whole_rank(char *text, size_t size, const struct hang_scene *scene, uint32_t seat);

/* The first letter as a sentence begins. */
void hang_capital(char *text);

/* "AllReduce 812", "AllReduce 812 (a graph's replay)", "Recv 40 from rank 3": of this seat. */
void hang_say_operation(char *text, size_t size, const struct hang_scene *scene, uint32_t seat,
			const struct op_record *op);
/* The same of what this seat is in, with its communicator; of its last one where nobody knows. */
void hang_say_held(char *text, size_t size, const struct hang_scene *scene, uint32_t seat);
/* "AllReduce of 1024 float32", with its root where it has one. */
void hang_say_call(char *text, size_t size, const struct recording_process *process,
		   const struct hang_call *call);

/* "rank 1 waits for data from rank 3 on channel 0 for 21 s". */
void hang_say_wait(char *text, size_t size, const struct hang_scene *scene, uint32_t seat,
		   const struct flight_wait *wait);

/* A duration between two words; nothing at all where nobody knows for how long (a guess). */
void hang_say_for(char *text, size_t size, const struct hang_scene *scene, const char *before,
		  uint64_t ns, const char *after);
/* "2026-11-15 03:17:04 UTC"; "" for 0. */
void hang_say_wall(char *text, size_t size, uint64_t wall_ns);

/* "0-7,12". */
void hang_say_channels(char *text, size_t size, const uint64_t channels[4]);

/* "5, 6, 9-12 and 31 more": labels of ranks (indices into job.ranks, in any order; sorted here). */
void hang_say_ranks(char *text, size_t size, const struct job *job, uint32_t *ranks, size_t count);

#endif
