/*
 * How long transfers take without waiting, over the course of a recording: what two runs are compared by.
 *
 * The shortest duration of a shared collective is its transfer, see match.h. Calls that are close in time
 * are alike, so they are not independent samples: a recording is divided into PACE_BLOCKS parts of equally
 * many collectives, and the spread between the parts says how well the mean is known. Communicators of one
 * row share their parts: what slows all of them at the same time is one sample.
 */
#ifndef PACE_H
#define PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/collect.h"
#include "analysis/job.h"
#include "analysis/match.h"
#include "analysis/stats.h"
#include "analysis/tally.h"
#include "common/status.h"

enum { PACE_BLOCKS = 32, PACE_BLOCKS_LEAST = 5 };

/* Logarithms of times in ns, by part of the recording. */
struct pace_series {
	double count[PACE_BLOCKS];
	double log_sum[PACE_BLOCKS];
};

/* One kind of collective of one communicator. */
struct pace_cell {
	struct tally_key key; /* no rank, host or group */
	uint64_t moves;	      /* collectives of at least two ranks */
	double least_ns;      /* sum of their shortest durations */
	double bytes;	      /* of their messages, those of known size */
	uint64_t sized;	      /* number of these */
	struct pace_series series;
};

/* The time on the wire per transfer: of a rank's part in the rings of the largest messages, or of its Sends
 * to one receiver. */
struct pace_sender {
	uint32_t comm; /* index into job.comms */
	uint32_t seat; /* index into job.seats */
	int32_t to;    /* receiver's rank in the communicator; -1: to its neighbours in rings */
	uint8_t size_class; /* 0: Sends of any size */
	double transfers;
	double wire_ns; /* total */
	struct pace_series series;
};

struct paces {
	struct pace_cell
		*cells; /* by communicator, function, size class, algorithm, protocol, ... */
	size_t cell_count;
	struct pace_sender *senders; /* by communicator, seat, receiver */
	size_t sender_count;
	/* Of all matched collectives, by part of the recording: waiting of all their ranks, and how many
	 * ranks' calls that is. */
	double wait_ns[PACE_BLOCKS];
	double wait_calls[PACE_BLOCKS];
};

/* After match_finish(). ERR_NO_SPACE: nothing to release. */
enum status paces_make(struct paces *paces, const struct matches *matches,
		       const struct links *links);
void paces_release(struct paces *paces);

void pace_add(struct pace_series *to, const struct pace_series *from);
/* The mean logarithm, and its error; count: independent parts. Fewer than PACE_BLOCKS_LEAST: unknown. */
struct stats_sample pace_mean(const struct pace_series *series);
/* The same without the parts in which something else happened: what is typical of the recording. */
struct stats_sample pace_typical(const struct pace_series *series);

/* All sources of time of one kind of collective together, as tables by BASELINE_BY have them; false: none. */
bool pace_find(const struct paces *paces, const struct tally_key *key, struct pace_series *series);

#endif
