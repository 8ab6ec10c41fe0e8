/*
 * Four ranks on four hosts that send around a ring, made by hand: many AllReduces, in which each rank takes as long as
 * a test says.
 */
#ifndef HAND_RING_H
#define HAND_RING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/match.h"
#include "analysis/timeline_report.h"
#include "tests/support/hand_made.h"

enum {
	RANKS = 4,
	MEETINGS = 1024,
	STEPS = 48,
	CONNECTIONS = 2,
	WINDOW = 8,
	SENDER = 1,
	RECEIVER = 2
};
#define MS UINT64_C(1000000)
#define US UINT64_C(1000)

struct hand_ring {
	struct hand_made hand;
	struct timeline_report report;
	struct region_link links[RANKS];
};

/* What a rank does in a collective: per transfer on the wire, in the flush, until its GPU consumes; and how long it is
 * in the collective. */
struct part {
	uint64_t wire_ns;
	uint64_t flush_ns;
	uint64_t consume_ns;
	uint64_t duration_ns;
	bool is_replay;
	bool is_untimed;      /* no GPU times */
	uint64_t send_gpu_ns; /* per transfer, until its GPU fills it */
	uint64_t bytes;
};

/* What a test plays. */
typedef struct part (*part_of)(int rank, int meeting);

static inline struct part calm(void)
{
	return (struct part){ 200 * US, 20 * US, 100 * US, 10 * MS, false, false, 0, 32 << 20 };
}

static inline void hand_ring_op(struct recording_process *process, const struct part *part,
				int meeting)
{
	struct op_record *op =
		hand_op(process, 1, OP_ALL_REDUCE, (uint64_t)meeting + MATCH_CHUNK, part->bytes,
			part->duration_ns, (uint64_t)(meeting + 1) * 100 * MS);

	op->flags |= part->is_replay ? OP_FLAG_REPLAY : 0;
	if (part->is_untimed) {
		op->time_source = OP_TIME_PROXY;
		op->gpu_start_ns = op->gpu_stop_ns = 0;
	}
	op->send_steps = op->recv_steps = STEPS;
	op->proxies_started = op->proxies_stopped = 2 * CONNECTIONS;
	op->wait_ns[OP_WAIT_SEND_GPU] = part->send_gpu_ns * STEPS;
	op->wait_ns[OP_WAIT_SEND_NET] = part->wire_ns * STEPS;
	op->wait_ns[OP_WAIT_RECV_FLUSH] = part->flush_ns * STEPS;
	op->wait_ns[OP_WAIT_RECV_GPU] = part->consume_ns * STEPS;
}

static inline void hand_ring_play(struct hand_ring *ring, part_of of)
{
	struct timeline_options options = { 0 };
	struct filter filter = { 0 };

	for (int rank = 0; rank < RANKS; rank++) {
		char host[16];
		struct recording_process *process;

		snprintf(host, sizeof(host), "h%d", rank);
		process = hand_process(&ring->hand, "j", rank, host);
		hand_comm(process, 0x77, "world", rank, RANKS, RANKS);
		for (int meeting = 0; meeting < MEETINGS; meeting++) {
			struct part part = of(rank, meeting);

			hand_ring_op(process, &part, meeting);
		}
		/* Everybody sends to the next one. */
		ring->links[rank] = (struct region_link){
			.key = UINT64_C(1) << 34 | (uint32_t)((rank + 1) % RANKS + 1),
			.steps = MEETINGS * STEPS,
			.bytes = (uint64_t)MEETINGS * (32 << 20),
			.wait_ns = { 0, 0, of(rank, 0).wire_ns * MEETINGS * STEPS }
		};
		process->links = &ring->links[rank];
		process->link_count = 1;
	}
	if (timeline_report_make(&ring->report, &ring->hand.recording, &filter, &options) != OK) {
		printf("Bail out! no report\n");
		exit(1);
	}
}

static inline void hand_ring_over(struct hand_ring *ring)
{
	for (size_t i = 0; i < ring->hand.recording.count; i++)
		ring->hand.list[i]->links = NULL;
	timeline_report_release(&ring->report);
	hand_release(&ring->hand);
}

#endif
