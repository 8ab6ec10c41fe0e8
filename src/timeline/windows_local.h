/*
 * One process's operations over its own time, in a bounded number of stretches: when they run out,
 * stretches become twice as long. Laid over the common windows when clocks are aligned.
 */
#ifndef WINDOWS_LOCAL_H
#define WINDOWS_LOCAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

enum { WINDOWS_LOCAL_SERIES = 24, WINDOWS_LOCAL_FIRST_NS = 1 << 17 };

struct windows_stretch {
	float calls;
	float bytes;
	float time_ns;
	float bus_bytes;
};

struct windows_local {
	uint64_t origin_ns; /* recorder's clock where stretch 0 begins; 0: nothing yet */
	uint64_t width_ns;
	uint32_t room; /* stretches at most */
	uint32_t used; /* the last one with something in it, + 1 */
	uint32_t series_count;
	uint16_t series_id[WINDOWS_LOCAL_SERIES]; /* the caller's */
	struct windows_stretch *stretches[WINDOWS_LOCAL_SERIES];
	uint32_t current;
	uint64_t current_end_ns; /* 0: nothing yet */
	uint64_t left_out;	 /* series that found no room */
	enum status status;
};

void windows_local_init(struct windows_local *local, uint32_t room);
void windows_local_release(struct windows_local *local);

/* The index of a series; UINT32_MAX: too many, or no memory. */
uint32_t windows_local_series(struct windows_local *local, uint16_t id);

/*
 * The stretch in which end_ns lies becomes the current one. Only forward: records come in the order in which
 * they were finished, and what is a little late counts for the current stretch.
 */
void windows_local_move(struct windows_local *local, uint64_t end_ns);

/* To the current stretch of a series. */
void windows_local_add(struct windows_local *local, uint32_t series,
		       const struct windows_stretch *what);

/* Give back what is not needed. */
void windows_local_finish(struct windows_local *local);

#endif
