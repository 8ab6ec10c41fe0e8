/*
 * What ranks sent to each other over the network, and how fast: the bytes of a link divided by the time during which at least one of
 * its transfers was on the wire. It needs no duration of any call. Sums since the recording began, so that a part of its time has none.
 */
#ifndef WIRES_H
#define WIRES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/filter.h"
#include "analysis/job.h"

struct wire_row {
	uint32_t from; /* index into job.seats */
	uint32_t to;   /* the same; UINT32_MAX: not recorded */
	int32_t peer;  /* its rank in the communicator */
	uint64_t bytes;
	uint64_t transfers;
	uint64_t wire_ns; /* 0: unknown */
	bool is_main;	  /* carries enough of the bytes to be compared with others */
};

struct wires {
	struct wire_row *list; /* most bytes first */
	size_t count;
	size_t known;		    /* is_main, with a time on the wire; of these: */
	double median, least, most; /* bytes per second */
	size_t slowest;		    /* index into list */
};

/* Bytes per second on the wire; 0: unknown. */
double wire_rate(const struct wire_row *row);

/* Only of ranks and communicators that pass the filter, and none if it has anything else. ERR_NO_SPACE. */
enum status wires_make(struct wires *wires, const struct job *job, const struct filter *filter);
void wires_release(struct wires *wires);

#endif
