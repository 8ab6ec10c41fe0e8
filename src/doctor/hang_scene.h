/*
 * One moment of a job: who lives, what each seat is in and since when, which communicators stand still.
 * For the use of src/doctor/hang*.c.
 */
#ifndef HANG_SCENE_H
#define HANG_SCENE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "doctor/hang.h"
#include "timeline/flight.h"
#include "timeline/job.h"

#define HANG_SECOND_NS UINT64_C(1000000000)
#define HANG_NOBODY UINT32_MAX
#define HANG_GUESS_NS UINT64_C(1)

enum hang_life {
	HANG_RUNS = 0, /* or nobody knows better */
	HANG_STOPPED = 1,
	HANG_DEAD = 2,
	HANG_ENDED = 3, /* cleanly */
};

struct hang_process {
	uint64_t now_ns;
	/* By so much its recording ends before that of the others it belongs with: what was in flight at
	 * its end is older by that much. */
	uint64_t lag_ns;
	uint64_t end_wall_ns; /* 0 unknown */
	enum hang_life life;
	bool is_dead_for_sure; /* life DEAD, and the system says so */
	uint32_t component;    /* a process: the same for all that are joined by communicators */
	bool is_past;  /* nobody of its component lives, and only the living are asked for */
	uint32_t gone; /* of a component: its first process that is dead or stopped; HANG_NOBODY */
};

/* How far into its front (its first open operation) a seat is. */
enum hang_presence {
	HANG_IN_NOTHING = 0,
	HANG_ISSUED = 1,   /* called; its kernel was not enqueued */
	HANG_LAUNCHED = 2, /* enqueued; the kernel has not started */
	HANG_UNSURE = 3,   /* enqueued; this communicator does not show kernels */
	HANG_INSIDE = 4,
};

/* Beside job.seats[i]. */
struct hang_seat {
	const struct recording_comm *comm;
	const struct recording_flight *front; /* NULL none */
	size_t first_flight;		      /* its flights: process->flights[first_flight ..] */
	size_t flight_count;
	enum hang_presence presence;
	bool is_pair;	  /* front is a Send, a Recv or such: waits for a peer, not for all */
	bool is_over;	  /* the process is dead or has ended, or the communicator was finalized */
	bool is_blind;	  /* its last operation shows nothing of its end: it may be in that */
	bool is_by_calls; /* nothing of front's execution is shown: only calls say that it is open */
	uint64_t age_ns;  /* of front, since the call */
	uint64_t
		in_ns; /* of front, since it is known to run, or was called and not launched; else 0 */
	uint64_t still_ns;	   /* for so long nothing was issued, finished or transferred */
	struct flight_wait *waits; /* of front; only in communicators that stand still */
	size_t wait_count;
};

/* How long a communicator stands still. */
enum hang_level {
	HANG_MOVES = 0,
	HANG_PAUSES =
		1, /* a quarter of the limit: others may wait because of it, nobody is told of it */
	HANG_HANGS = 2,
};

/*
 * What calls alone can say of a communicator that shows nothing of its execution: inside a node, without kernel
 * events, an operation is called, launched, and never seen again.
 */
enum hang_unjudged {
	HANG_JUDGED = 0,
	HANG_ALL_CALLED =
		1, /* all made the same calls, none was made since: it ended, or it hangs */
	HANG_NOT_BUSY =
		2, /* some are a call ahead, and pauses as long as this one are usual here */
	HANG_NONE_STARTED =
		3, /* all called it, and no GPU has come to it: all compute, or all are stuck */
};

/* Beside job.comms[i]: the collective that its members are in. */
struct hang_meeting {
	enum hang_level level;
	enum hang_unjudged unjudged; /* whether it hangs cannot be told, and why */
	bool is_resting;    /* ALL_CALLED: and these were the last calls of these ranks anywhere */
	bool is_by_calls;   /* that its members are in something is known from their calls alone */
	bool is_collective; /* some are in a collective: what follows holds */
	bool is_replay;
	uint64_t match;
	uint32_t first;	   /* seat that is inside for longest; HANG_NOBODY none */
	uint32_t inside;   /* seats in it, not only called */
	uint64_t in_ns;	   /* of the first */
	uint64_t still_ns; /* of all */
};

struct hang_scene {
	const struct job *job;
	uint64_t hang_ns;
	uint64_t pause_ns; /* a quarter of it */
	bool is_guess; /* of jobs alone that are dead, and of which nobody knows when they died */
	const struct hang_options *options;
	struct hang_process *processes;
	struct hang_seat *seats;
	struct hang_meeting *meetings;
	uint32_t *
		shows; /* per communicator: enum comm_flag of all its members together. One that has not
			    come to its first operation has seen nothing yet, and would. */
	uint64_t *
		least; /* per communicator: the last collective that all have reached; UINT64_MAX unknown */
	uint8_t *kinds;	    /* enum flight_kind of all flights */
	size_t *first_kind; /* per process: kinds[first_kind[p] + i] is flights[i]'s */
};

/* ERR_NO_SPACE (memory): then there is nothing to release. */
enum status hang_scene_make(struct hang_scene *scene, const struct job *job,
			    const struct hang_options *options, bool is_guess);
void hang_scene_release(struct hang_scene *scene);

/* Lives, ends, components: the first part of it. */
enum status hang_lives(struct hang_scene *scene);

const struct recording_process *hang_process(const struct hang_scene *scene, uint32_t seat);
const struct job_rank *hang_rank(const struct hang_scene *scene, uint32_t seat);
const struct job_comm *hang_comm(const struct hang_scene *scene, uint32_t seat);
/* Its operations, flight_count of its hang_seat; NULL: none. */
const struct recording_flight *hang_flights(const struct hang_scene *scene, uint32_t seat);
/* Nobody asks for what became of its members: see hang_process. All of them are of one component. */
bool hang_is_past(const struct hang_scene *scene, const struct job_comm *comm);

/* How long ago was this moment of the recorder's clock? 0 for a moment that is not known. */
uint64_t hang_ago(const struct hang_scene *scene, uint32_t process, uint64_t ns);
/* The same moment as wall time; 0 unknown. */
uint64_t hang_wall(const struct hang_scene *scene, uint32_t process, uint64_t ns);

/* The seat of a member; HANG_NOBODY: it cannot be seen. */
uint32_t hang_member(const struct job_comm *comm, const struct job *job, int32_t comm_rank);

/* Would this operation of a seat show its kernels? Not where they were not asked for, nor where none ever came. */
bool hang_sees_kernels(const struct hang_scene *scene, uint32_t seat, const struct op_record *op);

/* Is something there that is not known to be over, and has no member called anything, on any communicator, for
 * long enough to be told? */
bool hang_is_still(const struct hang_scene *scene, uint32_t comm);

/* Has its kernel not started? By its transfers alone; false: it has, or they do not tell. */
bool hang_gives_nothing(const struct recording_flight *flight);

/* Did its GPU fill or take a transfer of it, or start its kernel? */
bool hang_has_worked(const struct recording_flight *flight);

/* Does the rank of this seat show work on anything that it called later, elsewhere? Then its GPU has passed this. */
bool hang_has_passed(const struct hang_scene *scene, uint32_t seat,
		     const struct recording_flight *flight);

/* Has this member issued what the meeting is about? True also when nobody can tell. */
bool hang_has_issued(const struct hang_scene *scene, uint32_t seat,
		     const struct hang_meeting *meeting);
/* Is its front the collective of this meeting? */
bool hang_is_in_meeting(const struct hang_scene *scene, uint32_t seat,
			const struct hang_meeting *meeting);

/* The kind of the i-th flight of a seat. */
enum flight_kind hang_flight_kind(const struct hang_scene *scene, uint32_t seat, size_t i);
/* Is that one not over: it shows, or calls of others prove it? */
bool hang_is_open(const struct hang_scene *scene, uint32_t seat, size_t i);

/* The last thing that the process of a seat's rank did anywhere: a seat of it; HANG_NOBODY nothing. */
uint32_t hang_last_active(const struct hang_scene *scene, uint32_t seat, uint64_t *ago_ns);

#endif
