/*
 * Who waits because of whom, as a graph. A node is the meeting of a communicator (all that are in its
 * collective), or one seat with a Send or a Recv. An edge leads from what waits to what has to end first; an
 * end is a cause that cannot be blamed on anybody else. For the use of src/doctor/hang*.c.
 *
 *	nodes 0 .. comm_count - 1                  meetings
 *	nodes comm_count .. + seat_count - 1       seats
 */
#ifndef HANG_CHAIN_H
#define HANG_CHAIN_H

#include "doctor/hang_scene.h"

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
	size_t edge_count, edge_room;
	struct hang_end *ends;
	size_t end_count, end_room;
	struct hang_split *splits;
	size_t split_count, split_room;
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

void hang_graph_init(struct hang_graph *graph, const struct hang_scene *scene);
void hang_graph_release(struct hang_graph *graph);

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
/* Ranks that made the same calls in another order over two communicators: edges. hang_order.c */
void hang_orders(struct hang_graph *graph);

/* The end that a rank is which is in nothing: dead, stopped, or it has not called. */
struct hang_end *hang_end_of_rank(struct hang_graph *graph, uint32_t node, uint32_t seat);

/* A communicator in whose collective somebody is: why it does not end. hang_collective.c */
void hang_collective(struct hang_graph *graph, uint32_t comm);
/* All arrived: links on which sends are not completed, how many; then GPUs, channels. hang_transfer.c */
uint32_t hang_links(struct hang_graph *graph, uint32_t comm);
void hang_transfer(struct hang_graph *graph, uint32_t comm);
/* In an AllReduce by tree: the host that gives nothing; false: it cannot be told. hang_tree.c */
bool hang_tree(struct hang_graph *graph, uint32_t comm);
/* A seat in a Send, a Recv, or several. hang_pair.c */
void hang_pair(struct hang_graph *graph, uint32_t seat);
/* Members that called different things: MISMATCH ends, whether the communicator hangs or not.
 * hang_mismatch.c */
void hang_mismatches(struct hang_graph *graph);
/* The first number at which two seats differ, from all that is recorded of them; false: they do not, or it
 * cannot be found. calls[] is what each called there. hang_calls.c */
bool hang_calls_differ(const struct hang_scene *scene, uint32_t one, uint32_t other,
		       struct hang_call calls[2]);

/* Room for one more in a list: `list` is a pointer to the pointer. False, and graph->status: no memory. */
bool hang_grow(struct hang_graph *graph, void *list, size_t count, size_t *room, size_t size);

/* Sort edges, both ways; put ends into groups, one per verdict. */
void hang_graph_seal(struct hang_graph *graph);

/* Marks all nodes that wait in the end for those in queue[0 .. count - 1], and those themselves. Returns
 * how many lie in the queue then. */
size_t hang_graph_reach(struct hang_graph *graph, size_t count, uint8_t mark);

/* Is there something at this node that stands still for long enough to be told? */
bool hang_node_hangs(const struct hang_scene *scene, uint32_t node);

/* A short circle among nodes without a mark, as indices of edges; 0: there is none. */
size_t hang_graph_circle(struct hang_graph *graph, uint32_t *edges, size_t room);

#endif
