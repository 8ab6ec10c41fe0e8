/*
 * One moment of a job: who lives, what each seat is in and since when, which communicators stand still.
 */
#ifndef HANG_INTERNAL_H
#define HANG_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/flight.h"
#include "analysis/job.h"
#include "common/op_layout.h"
#include "common/status.h"
#include "doctor/hang.h"
#include "doctor/verdict.h"
#include "recording/recording.h"

#define HANG_NOBODY UINT32_MAX

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

/* Would this operation of a seat show its kernels? Not where they were not asked for, nor where none ever came. */
bool hang_sees_kernels(const struct hang_scene *scene, uint32_t seat, const struct op_record *op);

/* Is something there that is not known to be over, and has no member called anything, on any communicator, for
 * long enough to be told? */
bool hang_is_still(const struct hang_scene *scene, uint32_t comm);

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

/*
 * Who waits because of whom, as a graph. A node is the meeting of a communicator (all that are in its
 * collective), or one seat with a Send or a Recv. An edge leads from what waits to what has to end first; an
 * end is a cause that cannot be blamed on anybody else.
 *
 *	nodes 0 .. comm_count - 1                  meetings
 *	nodes comm_count .. + seat_count - 1       seats
 */

enum hang_edge_kind {
	HANG_EDGE_NOT_CALLED = 0,  /* a rank has not called it: it is in something else */
	HANG_EDGE_NOT_STARTED = 1, /* its GPU has not come to it: it is in something else */
	/* Kernels are not shown: it called something else before, which is not over; or of which nobody knows. The
	 * second makes no circles. */
	HANG_EDGE_CALLED_BEFORE = 2,
	HANG_EDGE_MAYBE = 3,
};

struct hang_edge {
	uint32_t from, to;
	uint32_t seat;	  /* of the rank that does not come, on the communicator of `from` */
	uint32_t held_by; /* its seat in `to` */
	uint8_t kind;
	/* CALLED_BEFORE, where it is known: what was called first (of held_by), and what after that (of seat). */
	const struct recording_flight *before, *after;
};

/* What makes an end weaker or different, for the words. */
enum hang_note {
	HANG_NOTE_NONE = 0,
	HANG_NOTE_BOTH_ENDS,   /* network: the receiver waits for it, too */
	HANG_NOTE_ONE_END,     /* network: the receiver's side shows nothing of it */
	HANG_NOTE_NOT_ARRIVED, /* network: sent and completed, and it did not arrive */
	HANG_NOTE_NOT_HEARD, /* network: the receiver is ready, and the sender does not hear of it */
	HANG_NOTE_ONE_OF_HOST, /* GPU: one of those of a host, nobody can tell which */
	HANG_NOTE_TREE,	       /* GPU: one of those of a host, which sends nothing up a tree */
	HANG_NOTE_LEAST_FAR,   /* GPU: of those of a host this one has got least far */
	HANG_NOTE_CHANNEL,     /* NVLink: by kernel channels alone */
	HANG_NOTE_PEER,	       /* a Send or Recv has no counterpart */
	HANG_NOTE_CONNECTING,  /* called, nobody is inside: NCCL may wait for others to connect */
	HANG_NOTE_NOT_JUDGED,  /* its execution is not shown: calls do not say whether it hangs */
	HANG_NOTE_SEVERAL,   /* so; several have not called what the others have: hosts run ahead */
	HANG_NOTE_TRANSFERS, /* GPU not reached: by its transfers, kernels are not shown */
	HANG_NOTE_NAMELESS,  /* NCCL does not tell which communicators belong together */
};

/* A call as it is compared. */
struct hang_call {
	uint64_t match;
	uint64_t signature;
	uint64_t count;
	int32_t root;
	uint8_t function;
	uint8_t datatype;
	bool is_known; /* else only its signature is */
};

/* Members that called the same. */
struct hang_side_of_split {
	struct hang_call call;
	uint32_t first; /* seat */
	uint32_t count;
};

enum { HANG_SIDES_MAX = 8 };

/* Where the members of a communicator called different things. */
struct hang_split {
	uint32_t comm;
	uint64_t number;
	bool is_first;					 /* it is known that they agreed before */
	uint32_t asked;					 /* members that are known at this number */
	struct hang_side_of_split sides[HANG_SIDES_MAX]; /* most members first */
	uint32_t side_count;
	const char *rule; /* "function", "count", "datatype", "root", "order"; "" unknown */
};

struct hang_end {
	enum verdict_class class;
	enum hang_note note;
	uint32_t node;
	uint32_t comm;		/* index into job.comms */
	uint32_t seat;		/* the culprit; HANG_NOBODY not seen, or nobody */
	uint32_t peer;		/* the seat at the other end; HANG_NOBODY none or not seen */
	int32_t peer_comm_rank; /* -1 none */
	const struct recording_flight *flight; /* what others are in: of `witness` */
	uint32_t witness;		       /* the seat whose view this is */
	uint64_t channels[4];
	uint64_t since_ns; /* recorder's clock of the witness's process; 0: as its front */
	uint64_t steps_done, steps;
	double confidence;
	/* Kernels are not shown, and that its GPU has come to this at all is not known: it may wait elsewhere. */
	bool is_unsure;
	uint32_t split; /* MISMATCH: index into splits */
	uint32_t group; /* index of the first end of its group */
	uint32_t next;	/* the next end of its group; HANG_NOBODY none */
};

struct hang_graph {
	const struct hang_scene *scene;
	size_t node_count;
	struct hang_edge *edges;
	size_t edge_count;
	struct hang_end *ends;
	size_t end_count;
	struct hang_split *splits;
	size_t split_count;
	bool *is_split;		 /* per communicator */
	struct hang_side *sides; /* hang_transfer.c's own, one per host; NULL until needed */
	struct hang_end nowhere; /* takes what finds no memory */
	uint32_t *first_out;	 /* per node and one more, once sealed: edges by `from` */
	uint32_t *first_in;	 /* per node and one more: in[] by `to` */
	uint32_t *in;		 /* indices into edges */
	uint32_t *queue;	 /* nodes, for walks */
	uint8_t *marks;		 /* per node */
	uint32_t *
		came_by; /* per node: the edge of a walk that led there; HANG_NOBODY between walks */
	bool *is_told;	 /* per node: a verdict says why it waits */
	enum status status; /* first failure */
};

uint32_t hang_seat_node(const struct hang_scene *scene, uint32_t seat);

void hang_edge_add(struct hang_graph *graph, struct hang_edge edge);

/* The first end of a node, all unknown; never NULL: without memory it goes nowhere. */
struct hang_end *hang_end_add(struct hang_graph *graph, enum verdict_class class, uint32_t node,
			      uint32_t comm, uint32_t seat);

/*
 * `seat`'s rank has not come to `node`. Edges to all that it is in otherwise; false when it is in nothing
 * that stands still: then it is an end itself. For HANG_EDGE_NOT_STARTED only what its GPU is inside of.
 */
bool hang_held_elsewhere(struct hang_graph *graph, uint32_t node, uint32_t seat,
			 enum hang_edge_kind kind);

/*
 * `seat`'s rank has called its part of `node`, and nothing shows that its GPU has come to it. Edges to all that it called
 * before on other communicators and that is not over as far as anybody can tell; false: there is nothing.
 */
bool hang_held_before(struct hang_graph *graph, uint32_t node, uint32_t seat,
		      const struct recording_flight *flight);

/* By launches where these are shown: what is launched together is not before or after. */
bool hang_is_called_before(const struct recording_flight *one,
			   const struct recording_flight *other);
/* The node that a seat's front is a part of. */
uint32_t hang_node_of_front(const struct hang_scene *scene, uint32_t seat);
/* Ranks that made the same calls in another order over two communicators: edges. hang_calls.c */
void hang_orders(struct hang_graph *graph);

/* The end that a rank is which is in nothing: dead, stopped, or it has not called. */
struct hang_end *hang_end_of_rank(struct hang_graph *graph, uint32_t node, uint32_t seat);

/* A communicator in whose collective somebody is: why it does not end. hang_rank.c */
void hang_collective(struct hang_graph *graph, uint32_t comm);
/* All arrived: links on which sends are not completed, how many; then GPUs, channels. hang_transfer.c */
uint32_t hang_links(struct hang_graph *graph, uint32_t comm);
void hang_transfer(struct hang_graph *graph, uint32_t comm);
/* A seat in a Send, a Recv, or several. hang_rank.c */
void hang_pair(struct hang_graph *graph, uint32_t seat);
/* Members that called different things: MISMATCH ends, whether the communicator hangs or not.
 * hang_calls.c */
void hang_mismatches(struct hang_graph *graph);

/* Room for one more in a list: `list` is a pointer to the pointer. False, and graph->status: no memory. */
bool hang_grow(struct hang_graph *graph, void *list, size_t count, size_t size);

/* Is there something at this node that stands still for long enough to be told? */
bool hang_node_hangs(const struct hang_scene *scene, uint32_t node);

/* From ends and circles to verdicts. */

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
/* A circle of `count` edges. hang_calls.c */
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

/* By class. hang_rank.c, hang_transfer.c, hang_tell.c */
void hang_tell_never_issued(struct hang_tale *tale);
void hang_tell_process(struct hang_tale *tale);
void hang_tell_gpu_waiting(struct hang_tale *tale);
void hang_tell_gpu_stuck(struct hang_tale *tale);
/* The network: both ends. hang_transfer.c */
void hang_tell_link(struct hang_tale *tale);
/* Who called what. hang_calls.c */
void hang_tell_split(struct hang_tale *tale);

/* Processes that are dead or stopped, and nobody was told to wait for them yet. hang_rank.c */
void hang_tell_gone(struct hang_tale *tale);

/* Hangs that ended because somebody gave up: from counters. hang_tell.c */
void hang_tell_aborted(struct hang_tale *tale);

/* What makes it weaker, and what to do. hang_tell.c */
void hang_tell_doubts(struct hang_tale *tale);
void hang_tell_advice(struct hang_tale *tale);

/* Distinct ranks of the group's ends, into tale->ranks. */
size_t hang_culprits(struct hang_tale *tale);

/* Words of hang verdicts. Texts are cut where they do not fit. */

/* All append. "rank 5 (node0, pid 4711, GPU 3)"; shorter: job_say_rank(). */
void hang_say_whole_rank(char *text, size_t size, const struct hang_scene *scene, uint32_t seat);

/* "AllReduce 812", "AllReduce 812 (a graph's replay)", "Recv 40 from rank 3": of this seat. */
void hang_say_operation(char *text, size_t size, const struct hang_scene *scene, uint32_t seat,
			const struct op_record *op);
/* The same of what this seat is in, with its communicator; of its last one where nobody knows. */
void hang_say_held(char *text, size_t size, const struct hang_scene *scene, uint32_t seat);
/* "AllReduce of 1024 float32", with its root where it has one. */
void hang_say_call(char *text, size_t size, const struct recording_process *process,
		   const struct hang_call *call);

/* A duration between two words; nothing at all where nobody knows for how long (a guess). */
void hang_say_for(char *text, size_t size, const struct hang_scene *scene, const char *before,
		  uint64_t ns, const char *after);
/* "2026-11-15 03:17:04 UTC"; "" for 0. */
void hang_say_wall(char *text, size_t size, uint64_t wall_ns);

/* "5, 6, 9-12 and 31 more": labels of ranks (indices into job.ranks, in any order; sorted here). */
void hang_say_ranks(char *text, size_t size, const struct job *job, uint32_t *ranks, size_t count);

#endif
