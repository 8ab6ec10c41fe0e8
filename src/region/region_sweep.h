/* Removing what dead processes of this user left in the directory of regions, so that it does not fill memory. */
#ifndef REGION_SWEEP_H
#define REGION_SWEEP_H

#include <stdint.h>

enum region_owner {
	REGION_OWNER_GONE = 0,	  /* surely */
	REGION_OWNER_HERE = 1,	  /* alive, or it may be within the next moments */
	REGION_OWNER_UNKNOWN = 2, /* holds no lock, and its pid namespace is not ours */
};

/* What is retained; the oldest go first. Regions whose owner is unknown have the same caps, apart. */
struct region_limits {
	unsigned int count;
	uint64_t bytes;
	uint64_t age_s;		/* since it was first found dead */
	uint64_t unknown_age_s; /* unknown owner: younger ones stay, whatever the caps say */
	unsigned int names;	/* looked at in one sweep */
	uint64_t time_ns;	/* that one sweep may take */
};

/* For the file system that `dir` lies on. */
struct region_limits region_limits_of(int dir);

/* Bounded: what one sweep does not get to is left for the next process. NULL: the limits of `dir`. */
void region_sweep(int dir, uint64_t pid_namespace, const struct region_limits *limits);

#endif
