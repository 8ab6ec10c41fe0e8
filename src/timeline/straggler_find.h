/* How stragglers are found. For the room's own use. */
#ifndef STRAGGLER_FIND_H
#define STRAGGLER_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "timeline/align.h"
#include "timeline/link_witness.h"
#include "timeline/links.h"
#include "timeline/meet.h"
#include "timeline/straggler.h"
#include "timeline/windows.h"

enum {
	STRAGGLER_BLOCKS = 32,	    /* stretches of time at most */
	STRAGGLER_BLOCKS_LEAST = 4, /* for a conclusion */
	STRAGGLER_MEETINGS_LEAST = STRAGGLER_BLOCKS_LEAST * MEET_CHUNK,
};

/* One lane, cut into blocks of consecutive meetings. [seat * blocks + block]. */
struct straggler_table {
	const struct meet_lane *lane;
	uint32_t seats;
	uint32_t blocks;
	uint64_t meetings;   /* also when they are too few for blocks */
	uint32_t wire_class; /* size class that wire_ns is about */
	double *late_ns;    /* mean duration of all minus the seat's, per meeting; NAN: not there */
	double *wire_ns;    /* time on the wire per transfer; NAN: no transfers */
	double *wire_sum;   /* time on the wire, summed */
	double *mean_ns;    /* [block]: mean duration */
	double *least_ns;   /* [block]: mean shortest duration */
	double *count;	    /* [block]: meetings */
	uint64_t *start_ns; /* [block], common time; 0 unknown */
	uint64_t *end_ns;
	uint64_t *first_number; /* [block]: meet_brief.number with which it begins */
	uint64_t *last_in;	/* [seat]: meetings in which it came last */
	uint64_t *caused_ns;	/* [seat]: see struct straggler */
	uint64_t *took_part;	/* [seat] */
};

/* Fewer than STRAGGLER_BLOCKS_LEAST blocks: tables are empty (blocks 0). */
enum status straggler_table_make(struct straggler_table *table, const struct meet *meet,
				 const struct meet_lane *lane, const struct align *align);
void straggler_table_release(struct straggler_table *table);

/* A stretch of blocks in which a seat stands out. */
struct straggler_stretch {
	bool is_found;
	uint32_t from; /* blocks from .. to - 1 */
	uint32_t to;
	double typical; /* half of its blocks are at least so much above */
	double chance;	/* corrected for the stretches looked at */
};

/* The stretch of values (NAN: none) that lies above `least` and is above 0 least by chance: the whole, halves,
 * ... eighths. noise: what values spread by from block to block where nothing is wrong; 0 unknown. */
struct straggler_stretch straggler_stretch(const double *values, uint32_t blocks, double least,
					   double noise);

struct timeline_report;

struct straggler_search {
	const struct job *job;
	const struct meet *meet;
	const struct links *links;
	const struct align *align;
	const struct windows *windows;
	const struct timeline_comm *comms; /* as job.comms */
	struct straggler *found;
	size_t count;
	size_t room;
	bool *is_chain; /* per communicator: its Sends and Recvs make a chain (a pipeline) */
	uint32_t looks; /* second looks at links, which are bounded */
	struct link_sample sample;
	uint64_t
		since_ns; /* only what ended then is looked at, wall time; 0, like the next: no limit */
	uint64_t until_ns;
	double *wire_rise; /* per change of windows: time on the wire after over before; 0 unknown */
	enum status status;
};

void straggler_add(struct straggler_search *search, const struct straggler *straggler);

/* A link that stands out, or what a second look at it makes of it. */
void straggler_add_link(struct straggler_search *search, struct straggler *link,
			const struct link_question *question);
/* Index into job_comm.seats of a rank (index into job.ranks); UINT32_MAX: it has none there. */
uint32_t straggler_seat_of(const struct job *job, uint32_t comm, uint32_t rank);

/* Each adds what it finds in a lane. */
void straggler_late(struct straggler_search *search, const struct straggler_table *table);
void straggler_wire(struct straggler_search *search, const struct straggler_table *table);
/* From Sends by receiver. */
void straggler_links(struct straggler_search *search);

/* Keeps from a lane how time on the wire changed when transfers between nodes did. */
void straggler_network_wire(struct straggler_search *search, const struct straggler_table *table);
/* From the changes: the network, when it is slower for all. */
void straggler_network(struct straggler_search *search);

/* Nothing but who: a seat of the table's communicator, and in how much it took part. */
struct straggler straggler_begin(const struct straggler_search *search,
				 const struct straggler_table *table, uint32_t seat,
				 enum straggler_class class);

/* When it was: pattern, first_ns, last_ns, share_of_time from the blocks where is_on. */
void straggler_times(struct straggler *straggler, const struct straggler_table *table,
		     const bool *is_on);

/* What is summed over a communicator's timed collectives is multiplied by this for all of them. */
double straggler_scale(const struct straggler_search *search, uint32_t comm);

/* What caused_ns is against the time of all seats, from the lane's first to its last block. */
double straggler_cost_share(const struct straggler_table *table, double caused_ns);

/* Everything: who is to blame, most waiting first. The report has its job, times and changes already. */
enum status straggler_find(struct stragglers *stragglers, const struct timeline_report *report,
			   const struct meet *meet, const struct links *links);

#endif
