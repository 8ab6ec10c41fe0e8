/*
 * How much an operation has to carry and how far: hops and bytes of ring, tree, double tree and
 * direct transfers, without any speed. docs/MODEL.md derives every line of it.
 *
 * n ranks on N nodes, g = n / N of them (rounded up) on one, S bytes of the message as nccl-tests
 * counts them, k = min(g, NICs of a node), c bytes of a chunk. Hops are those of the critical path.
 * "Inside" bytes pass the busiest GPU in one direction, "between" bytes the busiest NIC.
 *
 *			hops inside / between		bytes inside / between
 *	ring
 *	 AllReduce	2(n-1) in all / up to 2N	2(n-1)/n S / the same over k
 *	 AllGather	n-1 in all / up to N		(n-1)/n S / the same over k
 *	 ReduceScatter	as AllGather
 *	 Broadcast	n-N / N-1			S / S over k; fills a pipeline
 *	 Reduce		as Broadcast
 *	tree
 *	 AllReduce	2(g-1) / 2 ceil(log2 N)		2S / min(3, N-1) S over k; fills
 *	 Broadcast	g-1 / ceil(log2 N)		S / min(2, N/2) S over k; fills
 *	 Reduce		as Broadcast
 *	double tree: hops as tree
 *	 AllReduce					2S / min(2, N/2) S over k; fills
 *	 Broadcast					S / S over k; fills
 *	 Reduce		as Broadcast
 *	direct, W transfers at once
 *	 SendRecv	1 of the slower kind		S
 *	 AlltoAll	(g-1)/W / (n-g)/W, rounded up	(g-1)/n S / g(n-g)/n S over k
 *	 Gather		as AlltoAll			(g-1)/n S / (n-g)/n S of one NIC
 *	 Scatter	as Gather
 *
 * Bytes of trees count 1 / COST_TREE_SHARE: ranks that take from two and give to two do not keep
 * their links as busy. Filling a pipeline takes c for every hop but one. On one node trees are
 * chains; a chain of two carries S and not 2S.
 */
#ifndef COST_WORK_H
#define COST_WORK_H

#include <stdbool.h>
#include <stdint.h>

enum cost_link { COST_INSIDE = 0, COST_BETWEEN = 1, COST_LINKS = 2 };

enum cost_algorithm {
	COST_ANY = 0,
	COST_RING = 1,
	COST_TREE = 2,	      /* one binary tree over nodes: a textbook's; NCCL has two */
	COST_DOUBLE_TREE = 3, /* NCCL's "Tree" */
	COST_DIRECT = 4,      /* every message straight to whom it is for */
	COST_ALGORITHMS = 5,
};

enum {
	COST_DIRECT_WIDTH = 8,	     /* W: NCCL puts so many transfers into one batch */
	COST_CHUNK_LEAST = 32 << 10, /* c: one channel; small messages use few */
	COST_CHUNK_MOST = 4 << 20,   /* 8 channels of 512 KiB */
	COST_CHUNKS_PER_HOP = 8,     /* as many as the size allows between these two */
};

/* Share of a link's bandwidth that trees get; NCCL's own tuner supposes as much. */
#define COST_TREE_SHARE 0.92

/* Where an operation runs. */
struct cost_shape {
	int32_t ranks;
	int32_t nodes; /* as NCCL sees them: ranks that share a GPU count as one node each */
	int32_t rails; /* NICs of a node; 0: one for each rank */
};

struct cost_work {
	double hops[COST_LINKS];
	double bytes[COST_LINKS]; /* carried at the same time: the slower one of the two decides */
	double fill[COST_LINKS];  /* bytes that wait for each other: they add up */
	double steps;		  /* of the algorithm, for people: 2(n-1) of a ring AllReduce */
	double step_bytes;	  /* that one of them carries over one link */
};

const char *cost_algorithm_name(enum cost_algorithm algorithm); /* "ring", "double-tree" */
const char *cost_link_name(enum cost_link link);		/* "inside", "between" */
enum cost_algorithm cost_algorithm_find(const char *name);	/* COST_ANY: no such name */

/* What of op_algorithm this models: Ring, Tree (the double one); COST_ANY for those that it does
 * not. */
enum cost_algorithm cost_algorithm_of(uint8_t op_algorithm);
/* Does NCCL do this function so? Tree and double tree are also there to compare with. */
bool cost_is_in_nccl(uint8_t function, enum cost_algorithm algorithm);

/* False: this function cannot be done so, or the shape makes no sense (no ranks, more nodes than
 * ranks). One rank has no work: all 0. */
bool cost_work_of(uint8_t function, enum cost_algorithm algorithm, const struct cost_shape *shape,
		  uint64_t bytes, struct cost_work *work);

/* SendRecv between pairs that are told apart: `leaving` ranks of the busiest node talk to another
 * node at the same time; 0: every pair is inside a node. */
bool cost_work_of_pairs(const struct cost_shape *shape, int32_t leaving, uint64_t bytes,
			struct cost_work *work);

#endif
