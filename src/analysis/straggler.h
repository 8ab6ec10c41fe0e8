/*
 * Who is waited for: a rank that comes late again and again, a link that holds its ring up, a network
 * that is slow for all. Decided from the meetings (meet.h), so no clock of one rank is compared with
 * another's. docs/STATISTICS.md says how each is tested; where the evidence does not suffice nobody is
 * named.
 */
#ifndef STRAGGLER_H
#define STRAGGLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/collect.h"
#include "analysis/job.h"
#include "analysis/meet.h"
#include "common/status.h"

struct timeline_report;

enum straggler_class {
	STRAGGLER_NONE = 0,
	STRAGGLER_SLOW_RANK = 1, /* arrives late: others wait for it */
	STRAGGLER_SLOW_HOST = 2, /* most ranks of one host do, about equally */
	STRAGGLER_SLOW_LINK = 3, /* one rank's sends stay on the wire, those of the others do not */
	STRAGGLER_NETWORK = 4,	 /* transfers between nodes became slower for everybody */
};

const char *straggler_class_name(enum straggler_class class); /* "slow_rank", ... */

enum straggler_pattern {
	STRAGGLER_ALWAYS = 0,
	STRAGGLER_SINCE = 1,  /* from first_ns to the end */
	STRAGGLER_UNTIL = 2,  /* from the beginning to last_ns */
	STRAGGLER_BURSTS = 3, /* between first_ns and last_ns, once or several times */
};

const char *straggler_pattern_name(enum straggler_pattern pattern);

struct straggler {
	enum straggler_class class;
	enum straggler_pattern pattern;
	uint32_t rank; /* index into job.ranks; UINT32_MAX: nobody (network) */
	uint32_t host; /* index into job.hosts; UINT32_MAX: nobody */
	uint32_t peer; /* slow link: index into job.ranks of the receiver; UINT32_MAX unknown */
	double peer_confidence; /* slow link: that it is this receiver; 0: it is unknown */
	int32_t channel;	/* slow link: -1 unknown */
	uint32_t comm;		/* where it shows most: index into job.comms */
	uint64_t meetings;	/* that it took part in, there */
	uint64_t last_in;	/* of these: it arrived last */
	double share_of_time;	/* of the time covered: how much of it was affected, 0..1 */
	uint64_t
		late_ns; /* slow rank: how much later than the others, per meeting while affected */
	uint64_t
		caused_ns; /* waiting of all others that would not have been, had it come with the next
				 to last; network, slow link: time lost against the others or before */
	double cost_share; /* caused_ns against the time of all members of comm, 0..1; 0 unknown */
	double slowdown;   /* slow link: wire time per transfer against the other senders; network:
				 duration against before; slow rank: 0 unless starved */
	double slow_share; /* slow link: of the operations there, in so many its transfers stand
				 out; 0 unknown */
	bool is_of_sends;  /* slow link: of Sends; else of collectives */
	bool is_bursty;	   /* slow link: it comes and goes, in slow_share of the operations */
	bool is_starved;   /* slow rank: its process is late in all that it does for transfers, as
				 without a processor; slowdown as of a slow link, and late_ns 0
				 unless it also arrives late */
	double own_slowdown; /* then: of what needs no network, against the other ranks */
	double confidence;   /* 1 - probability that chance alone gives this, corrected for how many
				 ranks and stretches were looked at; 0..1 */
	double share_of_ns;  /* for the search's own use, like the next: cost_share of 1 ns */
	bool is_minor;
	bool has_wire;	/* network: time on the wire is known, and says so, too */
	bool has_times; /* the next two, common time of align.h; false: not aligned */
	uint64_t first_ns;
	uint64_t last_ns;
};

/* Could it be told who of a job comes late? By the collectives of ranks that should come together: of all members
 * or most of them, and not of stages of a pipeline. */
struct straggler_judged {
	bool is_judged;
	uint64_t meetings; /* of the communicator that has most; */
	uint32_t comm;	   /* this one, index into job.comms; UINT32_MAX: none has any */
};

struct stragglers {
	struct straggler *list; /* most waiting caused first */
	size_t count;
	size_t explained; /* ranks that came late because they wait for one of the list elsewhere */
	/* Looked at: complete, or with most of their ranks. Where there are too few, those of the
	 * communicator that has most. */
	uint64_t meetings;
	bool has_enough;	       /* false: too few meetings to name anybody */
	uint32_t least_meetings;       /* so many are needed */
	struct straggler_judged *jobs; /* as job.groups */
};

void stragglers_release(struct stragglers *stragglers);

/* Everything: who is to blame, most waiting first. The report has its job, times and changes already. */
enum status straggler_find(struct stragglers *stragglers, const struct timeline_report *report,
			   const struct meet *meet, const struct links *links);

/*
 * To whom a rank's transfers are slow, from the sums that its recorder keeps for each peer. They go back to
 * the start of the process: what became slow lately hardly shows in them.
 */

struct link_peer {
	uint32_t
		peers; /* to which it sent over the network, in the same communicator; 0: nothing known */
	uint32_t peers_weighed; /* of these: with a part of the bytes that matters */
	int32_t peer;		/* rank within the communicator; -1: none stands out */
	double confidence;	/* 0..1; 1 where there is one peer only */
	double share;		/* of the time on the wire that is too much, to all peers */
	double slowdown; /* time on the wire, against what the others' transfers take; 0 unknown */
	uint64_t transfers; /* to that peer */
	uint64_t bytes;
	double ns_per_mib;
	double middle_ns_per_mib; /* of all links that are compared; 0: there is no other */
};

/* The sender is job->seats[seat]. ERR_NO_SPACE: nothing is known then. */
enum status link_peer_find(struct link_peer *found, const struct job *job, uint32_t seat);

/* Index into job.ranks of a rank of a communicator; UINT32_MAX: there is no recording of it. */
uint32_t link_peer_rank(const struct job *job, uint32_t comm, int32_t comm_rank);

#endif
