/*
 * The job's side of a region, in init only: making it, and removing what dead processes left. Making it falls back in steps and says which one it took:
 *
 *	1. a file in request->dir, at the wanted size
 *	2. the same, smaller by halves, down to 1/16, when too little room is free there: at most
 *	   a sixteenth of what is free is taken, so that NCCL's own needs are met
 *	3. a memfd: readable through /proc/PID/fd while the process lives
 *	4. private memory: nobody else can read it
 */
#ifndef REGION_CREATE_H
#define REGION_CREATE_H

#include <stdint.h>
#include <sys/types.h>

#include "common/op_layout.h"
#include "common/status.h"
#include "format/region_layout.h"

struct region_request {
	const char *dir; /* made when missing; must be this user's own */
	uint64_t pid;
	uint64_t start_ticks;
	uint64_t pid_namespace;
	uint64_t ring_bytes;   /* 0: no ring (mode profile) */
	uint64_t detail_bytes; /* 0: none (all modes but full) */
	gid_t group;	       /* (gid_t)-1: for this user alone */
	const char *why_not;   /* not NULL: dir is not even tried, for this reason */
};

struct region_writer {
	struct region_header *header; /* NULL: not made */
	uint64_t bytes;
	int fd; /* memfd: stays open; else -1 */
	enum region_kind kind;
	uint64_t lock_inode; /* of the file whose lock we hold; 0 none */
	char path[512];
	char reason[160]; /* why not the first step; "" when it was */
	char *info;
	struct region_name *names;
	struct region_comm *comms;
	struct region_live *live;
	struct region_proxy *proxies;
	struct region_peer *peers;
	struct region_total *totals;
	struct region_link *links;
	struct op_record *ring;
	struct op_detail *details;
	uint32_t comm_count, live_count, proxy_count, peer_count, total_count, link_count;
	uint32_t ring_count, detail_count; /* powers of two, or 0 */
};

/* Fails only when not even private memory is to be had. The magic is not set: fill header and info,
 * then region_publish(). All memory is zero and reserved. */
enum status region_create(struct region_writer *writer, const struct region_request *request);

/* There is no use for it after all. */
void region_discard(struct region_writer *writer);

void region_publish(struct region_writer *writer);

/* In a child of fork: the region and the lock on it are the parent's alone. Private zeroes take its place. */
void region_leave_to_parent(struct region_writer *writer);

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

/* Remove what dead processes of this user left in the directory of regions, so that it does not fill memory.
 * Bounded: what one sweep does not get to is left for the next process. NULL: the limits of `dir`. */
void region_sweep(int dir, uint64_t pid_namespace, const struct region_limits *limits);

#endif
