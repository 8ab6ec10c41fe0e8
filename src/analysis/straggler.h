/*
 * Stragglers: a rank that is late repeatedly, a link that holds its ring up, a network that is slow
 * everywhere. Derived from matches (match.h), so no rank's clock is compared with another's.
 * docs/STATISTICS.md explains how each is tested; without enough evidence none is named.
 */
#ifndef STRAGGLER_H
#define STRAGGLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/collect.h"
#include "analysis/job.h"
#include "analysis/match.h"
#include "common/status.h"

struct timeline_report;

enum straggler_class {
	STRAGGLER_NONE = 0,
	STRAGGLER_SLOW_RANK = 1, /* straggler: others wait for it */
	STRAGGLER_SLOW_HOST = 2, /* most ranks of one host are, about equally */
	STRAGGLER_SLOW_LINK = 3, /* one rank's sends stay on the wire, those of the others do not */
	STRAGGLER_NETWORK = 4,	 /* transfers between nodes became slower everywhere */
	STRAGGLER_HELD_UP = 5,	 /* ranks arrive late, but only because they wait in other
				    operations; the rank they wait for is unknown */
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
	uint32_t rank; /* index into job.ranks; UINT32_MAX: none (network) */
	uint32_t host; /* index into job.hosts; UINT32_MAX: none */
	uint32_t peer; /* slow link: index into job.ranks of the receiver; UINT32_MAX unknown */
	double peer_confidence; /* slow link: confidence in this receiver; 0: it is unknown */
	int32_t channel;	/* slow link: -1 unknown */
	uint32_t comm;		/* where it is most visible: index into job.comms */
	uint64_t matches;	/* number of matches it took part in, there */
	uint64_t last_in;	/* of these: it arrived last */
	double share_of_time;	/* share of the covered time that was affected, 0..1 */
	uint64_t late_ns; /* straggler: how much later than the others, per match while affected */
	uint64_t caused_ns; /* waiting of all others that would not have happened had it arrived
				with the next to last, beyond what others cause meanwhile; network, slow link: time lost compared
				with the others or before */
	double cost_share;  /* caused_ns relative to the time of all ranks of comm, 0..1; 0
				unknown */
	double slowdown;    /* slow link: wire time per transfer relative to the other senders;
				network: duration relative to before; straggler: 0 unless starved */
	double slow_share;  /* slow link: share of the operations in which its transfers stand
				out; 0 unknown */
	bool is_of_sends;   /* slow link: of Sends; else of collectives */
	bool is_either;	    /* slow link: there is one back as well, and either rank may be why */
	bool is_uplink; /* slow link: all of a host to others or from them; rank is one of its ranks,
				and the next likewise */
	bool is_rail;	/* slow link: those of this rank's GPU position on several hosts */
	bool is_bursty;	     /* slow link: intermittent, in slow_share of the operations */
	bool is_starved;     /* straggler: its process is late in everything it does for
				transfers, as if short of CPU; slowdown as of a slow link, and
				late_ns 0 unless it also arrives late */
	double own_slowdown; /* then: of what needs no network, relative to the other ranks */
	bool is_origin;	     /* straggler: by its time outside of all operations
				(straggler_origin.c); late_ns, matches and last_in are 0 */
	double own_excess;   /* then: share of time that it spends outside longer than its peers */
	bool is_stage;	     /* then: compared with other stages of a pipeline, which may differ
				by design */
	bool is_by_network;  /* by the network side; GPU times are missing */
	bool is_each;	     /* then: slow host, of which each rank stands out by itself */
	bool is_any;	     /* slow host: its ranks are late in different communicators; one of
				them or what they exchange inside the host may be the origin */
	bool is_behind;	     /* straggler: found only without another one that is later still, */
	uint32_t ahead_rank; /* which is this rank, */
	uint32_t ahead_host; /* or if that is UINT32_MAX, this host; caused_ns and cost_share are
				what it would cost without that one, last_in is 0 */
	bool has_small_rest; /* straggler: too few others to see whether one of them is late, too */
	double confidence;   /* 1 - probability of this by chance, corrected for the number of
				ranks and sections examined; 0..1 */
	double share_of_ns;  /* private to the search, like the next two: cost_share of 1 ns */
	double effect;	     /* slow link of collectives: straggler_effect() */
	bool is_dropped;
	bool has_wire;	/* network: time on the wire is known and confirms it */
	bool has_times; /* the next two, common time of align.h; false: not aligned */
	uint64_t first_ns;
	uint64_t last_ns;
};

/* Could the stragglers of a job be judged? By collectives of ranks that should arrive together: of all or
 * most ranks, and not of stages of a pipeline. */
struct straggler_judged {
	bool is_judged;
	uint64_t matches; /* of the communicator with the most; */
	uint32_t comm;	  /* this one, index into job.comms; UINT32_MAX: none has any */
};

struct stragglers {
	struct straggler *list; /* most waiting caused first */
	size_t count;
	size_t explained; /* ranks that were late because they wait for one of the list elsewhere */
	/* Examined: complete, or with most of their ranks. If there are too few, those of the communicator
	 * with the most. */
	uint64_t matches;
	bool has_enough;	/* false: too few matches to name a straggler */
	uint64_t late_matches;	/* of matches: those that show who is late, not only slow links */
	uint32_t least_matches; /* the number needed */
	struct straggler_judged *jobs; /* as job.groups */
};

void stragglers_release(struct stragglers *stragglers);

/* Everything: stragglers, most waiting first. The report has its job, times and changes already. */
enum status straggler_find(struct stragglers *stragglers, const struct timeline_report *report,
			   const struct matches *matches, const struct links *links);

/*
 * The peer to which a rank's transfers are slow, from the totals that its recorder keeps for each peer.
 * They count from the start of the process: recent slowness hardly shows in them.
 */

struct link_peer {
	uint32_t peers; /* number of peers it sent to over the network, in the same communicator;
			   0: nothing known */
	uint32_t peers_weighed; /* of these: with a relevant part of the bytes */
	int32_t peer;		/* rank within the communicator; -1: none stands out */
	double confidence;	/* 0..1; 1 if there is only one peer */
	double share;		/* share of the excess time on the wire, over all peers */
	double slowdown;	/* time on the wire, relative to the others' transfers; 0 unknown */
	uint64_t transfers;	/* to that peer */
	uint64_t bytes;
	double ns_per_mib;
	double middle_ns_per_mib; /* of all compared links; 0: there is no other */
};

/* The sender is job->seats[seat]. On ERR_NO_SPACE nothing is known. */
enum status link_peer_find(struct link_peer *found, const struct job *job, uint32_t seat);

/* Does a rank (index into job.ranks) send a relevant part of its bytes to this rank of the communicator? */
bool link_has_peer(const struct job *job, uint32_t comm, uint32_t rank, int32_t peer);

/* Index into job.ranks of a rank of a communicator; UINT32_MAX: not recorded. */
uint32_t link_peer_rank(const struct job *job, uint32_t comm, int32_t comm_rank);

#endif
