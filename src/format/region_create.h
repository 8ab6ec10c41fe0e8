/*
 * Creating a region in the job (only in init), and removing regions of dead processes. Creating
 * falls back in steps and reports which one was taken:
 *
 *	1. a file in request->dir, at the requested size
 *	2. the same, halved down to 1/16 if there is little free space: at most a sixteenth of the free
 *	   space is taken, to leave room for NCCL
 *	3. a memfd: readable through /proc/PID/fd while the process lives
 *	4. private memory: no other process can read it
 */
#ifndef REGION_CREATE_H
#define REGION_CREATE_H

#include <stdint.h>
#include <sys/types.h>

#include "common/op_layout.h"
#include "common/status.h"
#include "format/region_layout.h"

struct region_request {
	const char *dir; /* created if missing; must belong to this user */
	uint64_t pid;
	uint64_t start_ticks;
	uint64_t pid_namespace;
	uint64_t ring_bytes;   /* 0: no ring (mode profile) */
	uint64_t detail_bytes; /* 0: none (all modes but full) */
	gid_t group;	       /* (gid_t)-1: only this user */
	const char *why_not;   /* not NULL: do not try dir, for this reason */
};

struct region_writer {
	struct region_header *header; /* NULL: not created */
	uint64_t bytes;
	int fd; /* memfd: stays open; else -1 */
	enum region_kind kind;
	uint64_t lock_inode; /* of the file we hold a lock on; 0: none */
	char path[512];
	char reason[160]; /* why not the first step; "" if it was */
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

/*
 * Fails only if not even private memory is available. The magic is not set: fill in header and
 * info, then call region_publish(). All memory is zero and reserved.
 */
enum status region_create(struct region_writer *writer, const struct region_request *request);

/* Remove a region that is not needed after all. */
void region_discard(struct region_writer *writer);

void region_publish(struct region_writer *writer);

/* In a forked child: region and lock stay with the parent. Private zeros replace the mapping. */
void region_leave_to_parent(struct region_writer *writer);

/*
 * How much to keep; the oldest go first. Regions with an unknown owner have separate but equal
 * caps.
 */
struct region_limits {
	unsigned int count;
	uint64_t bytes;
	uint64_t age_s;		/* since it was first found dead */
	uint64_t unknown_age_s; /* unknown owner: younger ones stay, whatever the caps */
	unsigned int names;	/* examined in one sweep */
	uint64_t time_ns;	/* limit for one sweep */
};

/* The limits for the file system of `dir`. */
struct region_limits region_limits_of(int dir);

/*
 * Remove regions that dead processes of this user left in the directory, so that they do not fill
 * memory. Bounded: the rest is left for the next process. NULL: the default limits for `dir`.
 */
void region_sweep(int dir, uint64_t pid_namespace, const struct region_limits *limits);

#endif
