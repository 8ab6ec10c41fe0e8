/*
 * How a hang is found: evidence, a graph of what waits for what, words. Calls go one way only: a file calls those
 * before it in this header, and hang.c all of them.
 *
 *	evidence  hang_scene.c
 *	graph     hang_graph.c; filled by hang_calls.c, hang_transfer.c, hang_rank.c
 *	words     hang_say.c, hang_tell_launches.c, hang_advice.c, then by cause: hang_tell_calls.c,
 *	          hang_tell_transfer.c, hang_gone.c, hang_tell.c
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
#include "doctor/doctor.h"
#include "doctor/verdict.h"
#include "recording/recording.h"

#define HANG_NOBODY UINT32_MAX

/*
 * hang_scene.c: one moment of a job: which processes are alive, what each seat is in and since when, which
 * communicators are stuck.
 */

enum hang_life {
	HANG_RUNS = 0, /* or unknown */
	HANG_STOPPED = 1,
	HANG_DEAD = 2,
	HANG_ENDED = 3, /* cleanly */
};

struct hang_process {
	uint64_t now_ns;
	/* Its recording ends this much earlier than the others it belongs with: what was in flight at its
	 * end is older by that much. */
	uint64_t lag_ns;
	uint64_t end_wall_ns; /* 0 unknown */
	enum hang_life life;
	bool is_dead_for_sure; /* life DEAD, confirmed by the system */
	/* Killed in a hang that others are still in. If one of them has never called what they wait in, that is the
	 * cause, and this one counts as RUNS. */
	bool has_died_waiting;
	uint32_t component;    /* a process: the same for all that communicators connect */
	uint64_t dead_wall_ns; /* all of its component are dead: their last sign of life; else 0 */
	bool is_undated;       /* of a component in which nobody knows when the dumps were made */
	bool is_past;  /* no process of its component is alive, and only live ones are asked for */
	uint32_t gone; /* of a component: its first dead or stopped process; HANG_NOBODY none */
	/* Its GPU was last asked about CUDA events too long ago, and answers are awaited: the driver may not return.
	 * What they showed then may have changed. 0: no. */
	uint64_t gpu_silent_ns;
};

/*
 * What is known of a GPU and one operation, from kernel events, from transfers that only a kernel can fill or
 * consume, or from CUDA events around its launch and, in stream order, around others.
 */
enum hang_gpu {
	HANG_GPU_UNKNOWN = 0,
	HANG_GPU_NOT_REACHED = 1,
	HANG_GPU_REACHED = 2,
	HANG_GPU_OVER = 3,
};

/* How far a seat is in its front (its first open operation). */
enum hang_presence {
	HANG_IN_NOTHING = 0,
	HANG_ISSUED = 1,   /* called; its kernel was not enqueued */
	HANG_LAUNCHED = 2, /* enqueued; the GPU has not reached it */
	HANG_UNSURE = 3,   /* enqueued; nothing shows whether the kernel has started */
	HANG_INSIDE = 4,
};

/* Parallel to job.seats[i]. */
struct hang_seat {
	const struct recording_comm *comm;
	const struct recording_flight *front; /* NULL none */
	size_t first_flight;		      /* its flights: process->flights[first_flight ..] */
	size_t flight_count;
	enum hang_presence presence;
	bool is_pair;	   /* front is a Send, a Recv or similar: waits for a peer, not for all */
	bool is_over;	   /* the process is dead or has ended, or the communicator was finalized */
	bool is_blind;	   /* its last operation reports no end: it may still be in it */
	bool is_by_calls;  /* front's execution is not recorded: only calls show that it is open */
	uint64_t age_ns;   /* of front, since the call */
	uint64_t in_ns;	   /* of front, since it is known to run, or was called and not launched;
			      else 0 */
	uint64_t still_ns; /* time since anything was called, finished or transferred */
	struct flight_wait *waits; /* of front; only in stuck communicators */
	size_t wait_count;
};

/* How long a communicator has been stuck. */
enum hang_level {
	HANG_MOVES = 0,
	HANG_PAUSES = 1, /* a quarter of the limit: others may wait because of it, but it is not
			    reported */
	HANG_HANGS = 2,
};

/*
 * What calls alone show of a communicator whose execution is not recorded: inside a node, without kernel
 * events, an operation is called and launched, and nothing more is recorded of it.
 */
enum hang_unjudged {
	HANG_JUDGED = 0,
	HANG_ALL_CALLED = 1, /* all ranks made the same calls, none since: it ended, or it hangs */
	HANG_NOT_BUSY = 2,   /* some ranks are a call ahead, and pauses this long are common here */
	HANG_NONE_STARTED =
		3, /* all ranks called it, and no GPU has started it: all compute, or all are
		      stuck */
};

/* Parallel to job.comms[i]: the collective its ranks are in. */
struct hang_match {
	enum hang_level level;
	enum hang_unjudged unjudged; /* why a hang cannot be judged */
	bool is_resting;    /* ALL_CALLED: these were also the last calls of these ranks anywhere */
	bool is_overdue;    /* NONE_STARTED: for much longer than any pause before: it hangs */
	bool is_by_calls;   /* that its ranks are in something is inferred from their calls */
	bool is_collective; /* some ranks are in a collective: the following is valid */
	bool is_replay;
	uint64_t match;
	uint32_t first;	   /* the seat inside for longest; HANG_NOBODY none */
	uint32_t inside;   /* seats inside it, not only called */
	uint64_t in_ns;	   /* of the first */
	uint64_t still_ns; /* of all */
};

struct hang_scene {
	const struct job *job;
	uint64_t hang_ns;
	uint64_t pause_ns; /* a quarter of it */
	bool is_guess;	   /* only for dead jobs whose time of death is unknown */
	const struct hang_options *options;
	struct hang_process *processes;
	struct hang_seat *seats;
	struct hang_match *matches;
	uint32_t *shows;    /* per communicator: enum comm_flag of all its ranks combined. A rank
			       that has not reached its first operation has reported nothing yet,
			       but would. */
	uint64_t *least;    /* per communicator: the last collective that all ranks have reached;
			       UINT64_MAX unknown */
	uint8_t *kinds;	    /* enum flight_kind of all flights */
	uint8_t *gpus;	    /* enum hang_gpu of all flights */
	size_t *first_kind; /* per process: kinds[first_kind[p] + i] belongs to flights[i] */
};

/* Beside enum comm_flag in hang_scene.shows: CUDA events were recorded around launches. */
#define HANG_SHOWS_LAUNCHES (UINT32_C(1) << 16)

/* On ERR_NO_SPACE (out of memory) there is nothing to release. */
enum status hang_scene_make(struct hang_scene *scene, const struct job *job,
			    const struct hang_options *options, bool is_guess);
void hang_scene_release(struct hang_scene *scene);

/*
 * Snapshots of a job that were made at different times, and files of which the end is lost. They show the present
 * only if their process had stopped by then and so had everything else since; otherwise they are outdated: what
 * the process did later is unknown. is_outdated: per process. *torn: how many of *count have lost their end.
 */
enum status hang_find_outdated(const struct job *job, const struct hang_options *options,
			       bool *is_outdated, size_t *count, size_t *torn);
/* How many processes have a file that ends in the middle of a block? */
size_t hang_count_torn(const struct job *job);

const struct recording_process *hang_process(const struct hang_scene *scene, uint32_t seat);
const struct job_rank *hang_rank(const struct hang_scene *scene, uint32_t seat);
const struct job_comm *hang_comm(const struct hang_scene *scene, uint32_t seat);
/* Its operations, flight_count of its hang_seat; NULL: none. */
const struct recording_flight *hang_flights(const struct hang_scene *scene, uint32_t seat);
/* Its ranks need not be reported: see hang_process. All of them are of one component. */
bool hang_is_past(const struct hang_scene *scene, const struct job_comm *comm);

/* How long ago was this time of the recorder's clock? 0 if it is unknown. */
uint64_t hang_ago(const struct hang_scene *scene, uint32_t process, uint64_t ns);
/* The same time as wall time; 0 unknown. */
uint64_t hang_wall(const struct hang_scene *scene, uint32_t process, uint64_t ns);

/* Would this operation of a seat report its kernels? Not if they were not asked for, nor if none ever came. */
bool hang_sees_kernels(const struct hang_scene *scene, uint32_t seat, const struct op_record *op);

/* Is an operation possibly unfinished, and has no rank called anything, on any communicator, for long
 * enough to report it? */
bool hang_is_still(const struct hang_scene *scene, uint32_t comm);

/* What is known of the GPU of this seat's rank and this operation of the seat? */
enum hang_gpu hang_gpu(const struct hang_scene *scene, uint32_t seat,
		       const struct recording_flight *flight);

/* Is it a ring in which each rank sends its own data first? */
bool hang_is_ring(const struct op_record *op);

/* Did its GPU fill or consume a transfer of it, start its kernel or pass the CUDA event before it? */
bool hang_has_worked(const struct recording_flight *flight);

/* Does the rank of this seat show work on anything it called later, elsewhere? Then its GPU is past this. */
bool hang_has_passed(const struct hang_scene *scene, uint32_t seat,
		     const struct recording_flight *flight);

/* Has this rank called the collective of this match? Also true if unknown. */
bool hang_has_issued(const struct hang_scene *scene, uint32_t seat, const struct hang_match *match);
/* Is its front the collective of this match? */
bool hang_is_in_match(const struct hang_scene *scene, uint32_t seat,
		      const struct hang_match *match);

/* The kind of the i-th flight of a seat. */
enum flight_kind hang_flight_kind(const struct hang_scene *scene, uint32_t seat, size_t i);
/* Is it unfinished: it shows so itself, or calls of other ranks prove it? */
bool hang_is_open(const struct hang_scene *scene, uint32_t seat, size_t i);

/* The seat with the last activity of the process of a seat's rank; HANG_NOBODY none. */
uint32_t hang_last_active(const struct hang_scene *scene, uint32_t seat, uint64_t *ago_ns);

/*
 * hang_graph.c: what waits for what, as a graph. A node is the current collective of a communicator (all ranks in it), or
 * one seat with a Send or a Recv. An edge leads from what waits to what has to end first; an end is a cause
 * with no further cause.
 *
 *	nodes 0 .. comm_count - 1                  collectives
 *	nodes comm_count .. + seat_count - 1       seats
 */

enum hang_edge_kind {
	HANG_EDGE_NOT_CALLED = 0,  /* a rank has not called it: it is in something else */
	HANG_EDGE_NOT_STARTED = 1, /* its GPU has not started it: it is in something else */
	/* Kernels are not recorded: it called something else before, which is unfinished or (the second)
	 * may be. The second makes no cycles. */
	HANG_EDGE_CALLED_BEFORE = 2,
	HANG_EDGE_MAYBE = 3,
};

struct hang_edge {
	uint32_t from, to;
	uint32_t seat;	  /* of the missing rank, on the communicator of `from` */
	uint32_t held_by; /* its seat in `to` */
	uint8_t kind;
	/* CALLED_BEFORE, if known: the earlier call (of held_by) and the later one (of seat). */
	const struct recording_flight *before, *after;
};

/* What makes an end weaker or different, for the texts. */
enum hang_note {
	HANG_NOTE_NONE = 0,
	HANG_NOTE_BOTH_ENDS,	/* network: the receiver waits for it, too */
	HANG_NOTE_ONE_END,	/* network: the receiver reports nothing of it */
	HANG_NOTE_NOT_ARRIVED,	/* network: sent and completed, but it did not arrive */
	HANG_NOTE_NOT_HEARD,	/* network: the receiver is ready, but the sender is not notified */
	HANG_NOTE_ONE_OF_HOST,	/* GPU: one of a host's, unknown which */
	HANG_NOTE_TREE,		/* GPU: one of a host's, which sends nothing up a tree */
	HANG_NOTE_LEAST_FAR,	/* GPU: of a host's GPUs the one that is least far */
	HANG_NOTE_RING,		/* GPU: it has sent the least of all ranks of a ring */
	HANG_NOTE_HOPS,		/* GPU: so many hops before a ring leaves its host */
	HANG_NOTE_CHANNEL,	/* NVLink: by kernel channels alone */
	HANG_NOTE_PEER,		/* a Send or Recv has no counterpart */
	HANG_NOTE_CONNECTING,	/* called, no rank is inside: NCCL may wait for others to connect */
	HANG_NOTE_NOT_JUDGED,	/* its execution is not recorded: calls do not show whether it
				  hangs */
	HANG_NOTE_SEVERAL,	/* the same; several ranks have not called what the others have:
				  hosts run ahead */
	HANG_NOTE_TRANSFERS,	/* GPU not reached: inferred from its transfers, kernels are not
				  recorded */
	HANG_NOTE_LAUNCH,	/* GPU not reached: shown by CUDA events around the launch */
	HANG_NOTE_ALL_BUT_ONE,	/* GPU stuck: all other GPUs have finished it */
	HANG_NOTE_NONE_STARTED, /* launched on all ranks, and no GPU has started it */
	HANG_NOTE_ONLY_UNSEEN,	/* unseen: the only rank that is not visible */
	HANG_NOTE_NAMELESS,	/* NCCL does not identify communicators across processes */
};

/* A call, as it is compared. */
struct hang_call {
	uint64_t match;
	uint64_t signature;
	uint64_t count;
	int32_t root;
	uint8_t function;
	uint8_t datatype;
	bool is_known; /* otherwise only its signature is */
};

/* Ranks that made the same call. */
struct hang_side_of_split {
	struct hang_call call;
	uint32_t first; /* seat */
	uint32_t count;
};

enum { HANG_SIDES_MAX = 8 };

/* Where the ranks of a communicator made different calls. */
struct hang_split {
	uint32_t comm;
	uint64_t number;
	bool is_first;					 /* they are known to have agreed before */
	uint32_t asked;					 /* ranks whose call at this number is
							    known */
	struct hang_side_of_split sides[HANG_SIDES_MAX]; /* largest side first */
	uint32_t side_count;
	const char *rule; /* "function", "count", "datatype", "root", "order"; "" unknown */
};

struct hang_end {
	enum verdict_class class;
	enum hang_note note;
	uint32_t node;
	uint32_t comm;		/* index into job.comms */
	uint32_t seat;		/* the culprit; HANG_NOBODY not visible, or none */
	uint32_t peer;		/* the seat at the other end; HANG_NOBODY none or not visible */
	int32_t peer_comm_rank; /* -1 none */
	const struct recording_flight *flight; /* what other ranks are in: of `witness` */
	uint32_t witness;		       /* the seat that observes this */
	uint64_t channels[4];
	uint64_t since_ns; /* recorder's clock of the witness's process; 0: as its front */
	uint64_t steps_done, steps;
	double confidence;
	/* Kernels are not recorded, so whether its GPU has started this is unknown: it may wait elsewhere. */
	bool is_unsure;
	/* Its process is several ranks, one of which is stuck elsewhere, and nothing shows whether it is this one. */
	bool may_wait;
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
	struct hang_side *sides; /* private to hang_transfer.c, one per host; NULL until needed */
	struct hang_end nowhere; /* takes ends that do not fit into memory */
	uint32_t *first_out;	 /* per node plus one, once sealed: edges by `from` */
	uint32_t *first_in;	 /* per node plus one: in[] by `to` */
	uint32_t *in;		 /* indices into edges */
	uint32_t *queue;	 /* nodes, for walks */
	uint8_t *marks;		 /* per node */
	uint32_t *came_by;	 /* per node: the edge of a walk that led there; HANG_NOBODY
				    between walks */
	bool *is_told;		 /* per node: a verdict explains why it waits */
	enum status status;	 /* first failure */
};

void hang_graph_init(struct hang_graph *graph, const struct hang_scene *scene);
void hang_graph_release(struct hang_graph *graph);

/* Makes room for one more in a list; `list` points to the pointer. False and graph->status: out of memory. */
bool hang_grow(struct hang_graph *graph, void *list, size_t count, size_t size);

uint32_t hang_seat_node(const struct hang_scene *scene, uint32_t seat);
/* The node a seat's front belongs to. */
uint32_t hang_node_of_front(const struct hang_scene *scene, uint32_t seat);
/* Has something at this node been stuck for long enough to report it? */
bool hang_node_hangs(const struct hang_scene *scene, uint32_t node);

void hang_edge_add(struct hang_graph *graph, struct hang_edge edge);

/* The first end of a node, all fields unknown; never NULL: without memory it is discarded. */
struct hang_end *hang_end_add(struct hang_graph *graph, enum verdict_class class, uint32_t node,
			      uint32_t comm, uint32_t seat);
/* The end for a rank that is in nothing: dead, stopped, or it has not called. */
struct hang_end *hang_end_of_rank(struct hang_graph *graph, uint32_t node, uint32_t seat);

/*
 * `seat`'s rank has not reached `node`. Adds edges to everything else it is in; false if it is in nothing
 * that is stuck: then it is an end itself. For HANG_EDGE_NOT_STARTED only what its GPU is in.
 */
bool hang_held_elsewhere(struct hang_graph *graph, uint32_t node, uint32_t seat,
			 enum hang_edge_kind kind);

/*
 * `seat`'s rank has called its part of `node`, but nothing shows that its GPU has started it. Adds edges to
 * all earlier calls on other communicators that may be unfinished; false: there are none.
 */
bool hang_held_before(struct hang_graph *graph, uint32_t node, uint32_t seat,
		      const struct recording_flight *flight);

/* By launch if launches are recorded: operations launched together have no order. */
bool hang_is_called_before(const struct recording_flight *one,
			   const struct recording_flight *other);

/* Once all is added: sorts edges in both directions and puts ends into groups, one per verdict. */
void hang_graph_seal(struct hang_graph *graph);

/* Marks the nodes in queue[0 .. count - 1] and all nodes that wait for them, directly or not. Returns how
 * many are in the queue then. */
size_t hang_graph_reach(struct hang_graph *graph, size_t count, uint8_t mark);
/* A short cycle among unmarked nodes, as indices of edges; 0: there is none. */
size_t hang_graph_circle(struct hang_graph *graph, uint32_t *edges, size_t room);

/* hang_calls.c: what calls alone reveal: ranks that made different ones, or the same ones in a different order. */

/* Ranks that made different calls: MISMATCH ends, whether the communicator hangs or not. */
void hang_mismatches(struct hang_graph *graph);
/* Adds edges for ranks that made the same calls in a different order on two communicators. */
void hang_orders(struct hang_graph *graph);

/* hang_transfer.c: all ranks are in a collective: what the network, GPUs and channels show. */

/* Returns the number of links with unfinished sends. */
uint32_t hang_links(struct hang_graph *graph, uint32_t comm);
/* All ranks arrived: links, then GPUs, channels. */
void hang_transfer(struct hang_graph *graph, uint32_t comm);

/* hang_rank.c: which rank does not come, or has not started. */

/* A seat in one or more Sends or Recvs. */
void hang_pair(struct hang_graph *graph, uint32_t seat);
/* Why the current collective of a communicator does not end. */
void hang_collective(struct hang_graph *graph, uint32_t comm);

/* hang_say.c: what all verdicts are made of: names of ranks and operations, times, who waits. */

/* One verdict being written. */
struct hang_tale {
	struct verdicts *verdicts;
	struct hang_graph *graph;
	const struct hang_scene *scene;
	uint32_t *stamps;	  /* per rank: the number of the verdict that counted it as a
				     victim */
	uint32_t *culprit_stamps; /* the same for hang_culprits() */
	uint32_t *ranks;	  /* room for all ranks */
	bool *is_involved;	  /* per rank: cause or victim of a reported hang */
	bool *is_parted; /* per rank: its calls differ from those of others, and it has been
			    stuck since */
	uint32_t number; /* of the verdict, from 1 */
	uint32_t asked;	 /* number of calls of hang_culprits() */

	/* Of this one: */
	const struct hang_end *lead; /* the end of the group that others have waited in for
					longest */
	uint32_t first;		     /* the group's first end */
	size_t reached;		     /* nodes in graph->queue that wait for it, its own first */
	bool is_hang;		     /* something that waits for it has been stuck for long
					enough */
	uint32_t victims;
	struct verdict *verdict;
};

/* Texts are truncated if they do not fit. All append. */

/* "rank 5 (node0, pid 4711, GPU 3)"; shorter: job_say_rank(). */
void hang_say_whole_rank(char *text, size_t size, const struct hang_scene *scene, uint32_t seat);

/* "AllReduce #812", "AllReduce #812 (graph replay)", "Recv #40 from rank 3": of this seat. */
void hang_say_operation(char *text, size_t size, const struct hang_scene *scene, uint32_t seat,
			const struct op_record *op);
/* The same for what this seat is in, with its communicator; its last operation if unknown. */
void hang_say_held(char *text, size_t size, const struct hang_scene *scene, uint32_t seat);
/* "AllReduce of 1024 float32", with its root if it has one. */
void hang_say_call(char *text, size_t size, const struct recording_process *process,
		   const struct hang_call *call);

/* A duration between two texts; nothing at all if it is unknown (a guess). */
void hang_say_for(char *text, size_t size, const struct hang_scene *scene, const char *before,
		  uint64_t ns, const char *after);
/* "2026-11-15 03:17:04 UTC"; "" for 0. */
void hang_say_wall(char *text, size_t size, uint64_t wall_ns);

/* "5, 6, 9-12 and 31 more": labels of ranks (indices into job.ranks, in any order; sorted here). */
void hang_say_ranks(char *text, size_t size, const struct job *job, uint32_t *ranks, size_t count);

/* Distinct ranks of the group's ends, into tale->ranks. */
size_t hang_culprits(struct hang_tale *tale);

/* "; 7 ranks wait". */
void hang_say_victims(char *text, size_t size, uint32_t victims);
/* "rank 5 has", "ranks 5-8 have": the culprits and one of two verbs. */
void hang_say_culprits(struct hang_tale *tale, char *text, size_t size, const char *one,
		       const char *many);
/* "AllReduce #812 of dp": what the lead's witness is in. */
void hang_say_lead(const struct hang_tale *tale, char *text, size_t size);

/* What every verdict has: which rank, where, since when. `seat` may be HANG_NOBODY. */
void hang_tell_who(struct hang_tale *tale, uint32_t seat);
void hang_tell_where(struct hang_tale *tale, uint32_t comm, uint32_t witness,
		     const struct recording_flight *flight, uint64_t since_ns);
/* "7 of 8 ranks of dp have been in AllReduce #812 ...": what the cause holds up directly. */
void hang_tell_waiting(struct hang_tale *tale);
/* "8 ranks of world have been stuck in collective #812 or a later one ...", if these are different
 * operations. */
void hang_tell_stalled(struct hang_tale *tale, uint64_t number);
/* What else is stuck because of it, a few of them. */
void hang_tell_others(struct hang_tale *tale);
/* Lists the culprits if there are several. */
void hang_tell_culprits(struct hang_tale *tale);

/* hang_tell_launches.c: what CUDA events around launches show. */

/* Has this communicator no other sign of what GPUs do? */
bool hang_is_by_launches(const struct hang_scene *scene, uint32_t comm);
/* Ranks of the lead's communicator whose GPU is there, or of whose GPU this is unknown, into tale->ranks. */
size_t hang_ranks_with(struct hang_tale *tale, enum hang_gpu gpu);

/* Of the GPU of a rank that has not reached the lead's operation. */
void hang_tell_launches(struct hang_tale *tale);
/* All that is known is that no GPU is further than one collective, and all have finished an earlier one. */
void hang_tell_between(struct hang_tale *tale);
/* All GPUs have reached it, as far as is known, and none has finished it. */
void hang_tell_reached(struct hang_tale *tale);
/* A recorder that asks its GPU and gets no answer: what it knew then may have changed. */
void hang_doubt_silent_gpus(struct hang_tale *tale);

/* hang_advice.c: confidence, caveats and next steps. */

/* Of a group of ends. */
void hang_tell_doubts(struct hang_tale *tale);
void hang_tell_advice(struct hang_tale *tale);

/* Where all ranks are, host by host. */
void hang_advise_stacks(struct verdict *verdict);
/* How to see kernels next time. interface: NCCL's, 0 unknown. */
void hang_advise_kernels(struct hang_tale *tale, uint32_t interface);

/* hang_tell_calls.c: the calls of each side, or of each rank of a cycle. */

void hang_tell_split(struct hang_tale *tale);
/* A cycle of `count` edges. */
void hang_tell_circle(struct hang_tale *tale, const uint32_t *edges, size_t count);

/* hang_tell_transfer.c: both ends of a link, and GPUs. */

void hang_tell_link(struct hang_tale *tale);
void hang_tell_gpu_waiting(struct hang_tale *tale);
void hang_tell_gpu_stuck(struct hang_tale *tale);

/* hang_gone.c: what no verdict explains yet. */

/* Dead or stopped processes that no reported rank waits for. */
void hang_tell_gone(struct hang_tale *tale);
/* Hangs that ended because ranks aborted: from counters. */
void hang_tell_aborted(struct hang_tale *tale);

/* hang_tell.c: the verdict of a group of ends, by its class. */
void hang_tell_group(struct hang_tale *tale);

#endif
