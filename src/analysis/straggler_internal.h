/*
 * How stragglers are found. Calls go one way only: a file calls those before it in this header, and straggler.c all of
 * them.
 *
 *	evidence  straggler_field.c, straggler_table.c
 *	findings  straggler_late.c, straggler_rest.c, straggler_link.c, straggler_network.c, straggler_origin.c
 *	causes    straggler_merge.c
 */
#ifndef STRAGGLER_INTERNAL_H
#define STRAGGLER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/align.h"
#include "analysis/collect.h"
#include "analysis/job.h"
#include "analysis/match.h"
#include "analysis/straggler.h"
#include "analysis/timeline_report.h"
#include "common/status.h"

enum {
	STRAGGLER_BLOCKS = 32,	    /* maximum number of blocks */
	STRAGGLER_BLOCKS_LEAST = 4, /* for a conclusion */
	STRAGGLER_MEETINGS_LEAST = STRAGGLER_BLOCKS_LEAST * MATCH_CHUNK,
};

/* straggler_field.c: which section of a row of blocks stands out, beyond chance and beyond how much others differ. */

/* A section of blocks in which a seat stands out. */
struct straggler_stretch {
	bool is_found;
	uint32_t from; /* blocks from .. to - 1 */
	uint32_t to;
	double typical; /* half of its blocks are at least this much above */
	double chance;	/* corrected for the number of sections examined */
	double doubt;	/* chance by how much others differ over that section; 0 unknown */
};

/* The section of values (NAN: none) above `least` that is least likely above 0 by chance, of at least three
 * consecutive blocks. */
struct straggler_stretch straggler_stretch(const double *values, uint32_t blocks, double least);

/* Ranks or hosts that are compared with each other, block by block. */
struct straggler_field {
	const double *values; /* [seat * blocks + block]; NAN: none */
	uint32_t seats;
	uint32_t blocks;
	double *sorted; /* all of them */
	size_t count;
	double *levels;			/* scratch: as many as seats */
	bool is_against_past;		/* values are: the others fall where one rises */
	bool is_uneven;			/* seats may differ for a while without a problem */
	bool is_one_sided;		/* a seat may be far below the others without a problem */
	struct straggler_stretch *best; /* [seat], if it is beyond chance by its blocks */
};

/* values are the caller's, and stay. */
enum status straggler_field_make(struct straggler_field *field, const double *values,
				 uint32_t seats, uint32_t blocks, double least);
void straggler_field_release(struct straggler_field *field);
/* As above, of one seat, if it is beyond chance, corrected for the number of seats. */
struct straggler_stretch straggler_field_stretch(const struct straggler_field *field,
						 uint32_t seat);

/* Is the problem there, in a block with this value? Half of it is enough. */
bool straggler_is_on(double value, const struct straggler_stretch *stretch);

/* straggler_table.c: a lane cut into blocks, and what is found in it. */

/* One lane, cut into blocks of consecutive matches. [seat * blocks + block]. */
struct straggler_table {
	const struct match_lane *lane;
	uint32_t seats;
	uint32_t blocks;
	uint64_t matches;    /* also if they are too few for blocks */
	uint32_t wire_class; /* size class that wire_ns is about */
	uint32_t *block_of;  /* [match_lane.chunks]; UINT32_MAX: not used */
	bool is_late_by_network;
	double *late_ns;   /* mean duration of all minus the seat's, per match; NAN: none */
	double *wire_ns;   /* time on the wire per transfer; NAN: no transfers */
	double *wire_sum;  /* total time on the wire */
	double *caused_ns; /* waiting of all others for the seat, beyond that for the next to last */
	double *mean_ns;   /* [block]: mean duration; of spans an upper bound, like the next */
	double *least_ns;  /* [block]: mean shortest duration */
	double *count;	   /* [block]: matches */
	uint64_t *start_ns; /* [block], common time; 0 unknown */
	uint64_t *end_ns;
	uint64_t *first_number; /* [block]: match_brief.number with which it begins */
	uint64_t *last_in;	/* [seat]: matches in which it was last */
	uint64_t *took_part;	/* [seat] */
};

/* Fewer than STRAGGLER_BLOCKS_LEAST blocks: tables are empty (blocks 0). */
enum status straggler_table_make(struct straggler_table *table, const struct matches *matches,
				 const struct match_lane *lane, const struct align *align);
void straggler_table_release(struct straggler_table *table);

/* Totals of one rank's operations, for the closer examination of a link. */
struct link_sums {
	uint32_t seat; /* index into job_comm.seats */
	double flush_ns;
	double consume_ns;
	double receives;
	double wire_ns; /* of its sends, */
	double send_ns; /* of these in any state: waiting for GPU or receiver, or on the wire */
	bool is_timed;	/* there are GPU times */
	uint64_t operations; /* those that send */
	uint64_t slow;
	uint64_t slow_again; /* of slow: the previous one was, too */
	uint64_t waiting;
	bool is_last_slow;
};

enum { LINK_SEATS_MAX = 64 };

/* Ranks that the two are compared with. Kept from one query to the next: several about Sends need the same.
 * All 0 at first. */
struct link_sample {
	bool is_of_sends;
	uint32_t comm;
	uint8_t size_class;
	double limit_ns;
	uint32_t count;
	struct link_sums list[LINK_SEATS_MAX];
};

struct straggler_search {
	const struct job *job;
	const struct matches *matches;
	const struct links *links;
	const struct align *align;
	const struct windows *windows;
	const struct timeline_comm *comms; /* as job.comms */
	struct straggler *found;
	size_t count;
	bool *is_chain;	    /* per communicator: its Sends and Recvs make a chain (a pipeline) */
	bool *is_exchange;  /* per communicator: all send to all, and to themselves (experts) */
	bool *is_staggered; /* per communicator: two of its ranks are in one chain */
	uint32_t looks;	    /* closer examinations of links, which are limited */
	struct link_sample sample;
	uint64_t since_ns; /* only what ended then is examined, wall time; 0, like the next: no
			      limit */
	uint64_t until_ns;
	uint64_t iteration_ns; /* of the job; 0 unknown */
	double *wire_rise; /* per change of windows: time on the wire after relative to before; 0
			      unknown */
	enum status status;
};

void straggler_add(struct straggler_search *search, const struct straggler *straggler);
/* Removes what has is_dropped; the others keep their order. Returns how many were removed. */
size_t straggler_drop_marked(struct straggler_search *search);
/* It was found to be late on this communicator. */
bool straggler_is_late(const struct straggler_search *search, uint32_t rank, uint32_t comm);
/* Totals of a communicator's timed collectives are multiplied by this for all of them. */
double straggler_scale(const struct straggler_search *search, uint32_t comm);
/* Do ranks of a job send each other data by Send and Recv? Then being late for a collective says little. */
bool straggler_has_sends(const struct straggler_search *search, uint32_t group);
/* Only the identity: a seat of the table's communicator, and how much it took part. */
struct straggler straggler_begin(const struct straggler_search *search,
				 const struct straggler_table *table, uint32_t seat,
				 enum straggler_class class);

/*
 * How much of the collectives' time is lost while it lasts, compared with the rest of the time; NAN: it lasts all the
 * time, or nearly so. Less than STRAGGLER_EFFECT_LEAST: they are not held up by it.
 */
#define STRAGGLER_EFFECT_LEAST 0.1
double straggler_effect(const struct straggler_table *table, const double *values,
			const struct straggler_stretch *stretch, bool is_with_waiting);

/* The time: pattern, first_ns, last_ns, share_of_time from the values of the blocks (NAN: unknown). */
void straggler_times(struct straggler *straggler, const struct straggler_table *table,
		     const double *values, const struct straggler_stretch *stretch);

/* caused_ns relative to the time of all seats, from the lane's first to its last block. */
double straggler_cost_share(const struct straggler_table *table, double caused_ns);

/* straggler_late.c: ranks and hosts that are late in a lane. */

void straggler_late(struct straggler_search *search, const struct straggler_table *table);
/* Where ranks of other hosts are the last ones, nobody would wait less without this one. */
double straggler_share_that_counts(const struct straggler *host);

/* straggler_rest.c: those that are late without the ones that were found so far: found[first...]. */

void straggler_late_rest(struct straggler_search *search, const struct straggler_table *table,
			 size_t first);

/* straggler_link.c: links that stand out. */

/*
 * A closer examination of a link that stands out: is it the link, or one of the two processes at its ends?
 *
 * The sender's proxy thread measures how long a send is "on the wire", from posting it to the network to
 * the poll that finds it completed. Four things besides a slow link make that long: the thread is short of
 * CPU and polls late; the receiver's thread is, and reads late; the receiver has not arrived yet and
 * what was sent early waits for it; or the sender's GPU arrives last, finds all its buffers full, and sends them
 * at once, one behind the other.
 */
void straggler_wire(struct straggler_search *search, const struct straggler_table *table);
/* The same of Sends by receiver. */
void straggler_links(struct straggler_search *search);

/*
 * Without GPU times, durations begin when a collective is posted and do not show who is late. If every transfer is one
 * over the network, data that waits for its GPU does: late_ns and caused_ns of the table are replaced.
 */
void straggler_late_by_network(struct straggler_search *search, struct straggler_table *table);

/* straggler_network.c: transfers between nodes that became slower everywhere. */

/* Stores how time on the wire changed in a lane when transfers between nodes did. */
void straggler_network_wire(struct straggler_search *search, const struct straggler_table *table);
/* From the changes: the network, if it is slower everywhere. */
void straggler_network(struct straggler_search *search);

/* straggler_origin.c: where lateness comes from, in jobs that exchange data by Send and Recv. */

/*
 * Adds the origins of lateness in such a job: ranks and hosts that spend more time outside of all operations
 * than their peers. False: not judged (too few GPU times, or too short). ranks: as job.ranks.
 */
bool straggler_origins(struct straggler_search *search, uint32_t group,
		       const struct timeline_rank *ranks);

/* straggler_merge.c: one finding per cause. */

/* What is late on one communicator because it waits for a rank on another. Returns how many were removed. */
size_t straggler_drop_explained(struct straggler_search *search);
/* What the origins of lateness in a job explain, or if there is none, what is held up. Returns how
 * many were removed. */
size_t straggler_replace_by_origins(struct straggler_search *search, uint32_t group);
/* Origins (found[first...]) that spend more time outside only than ranks whose transfers are slow. */
void straggler_drop_beside_slow(struct straggler_search *search, size_t first);
/* Slow links with an end, a host or a rail in common. */
void straggler_merge_links(struct straggler_search *search);
/* In the end: one finding per rank, host or link, if it matters. */
void straggler_merge(struct straggler_search *search);

#endif
