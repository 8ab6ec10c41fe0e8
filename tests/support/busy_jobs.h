/*
 * Two jobs with noise, made by hand, in which much is wrong at once.
 *
 * "alpha": 8 ranks, two on each of the hosts a0 to a3. Every round of 50 ms has an AllReduce of 32 MiB in "world", an
 * AllGather in the pair of each host ("tp-0" to "tp-3"), and every fourth a ReduceScatter in world, which is replayed. In
 * world everybody sends to the next rank over the network; rank 3's transfers are six times as long on the wire. From 5/8 of
 * the rounds on collectives of world take twice as long.
 * "beta": 6 ranks on b0 to b2, two each, of which every second round was timed. Rank 4 comes 20 ms late in the second half. In
 * "mix" every rank sends to all others in turn. Rank 5 was killed.
 */
#ifndef BUSY_JOBS_H
#define BUSY_JOBS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/match.h"
#include "common/hash.h"
#include "tests/support/hand_made.h"

enum { BUSY_ALPHA = 8, BUSY_BETA = 6 };
#define BUSY_ROUND_NS UINT64_C(50000000)
#define BUSY_WALL_NS UINT64_C(1767276190000000000)

struct busy_jobs {
	struct hand_made hand;
	struct region_link links[BUSY_ALPHA];
};

/* A number from 0 to most. */
static inline uint64_t busy_noise(int rank, uint64_t round, uint64_t kind, uint64_t most)
{
	return hash_word(hash_word((uint64_t)rank + 1, round), kind) % (most + 1);
}

/* What goes over the network: transfers, and how long each is on the wire. */
static inline void busy_transfers(struct op_record *op, bool is_send, bool is_receive, int rank,
				  uint64_t wire_ns)
{
	op->send_steps = is_send ? 16 : 0;
	op->recv_steps = is_receive ? 16 : 0;
	op->proxies_started = op->proxies_stopped = (uint16_t)(is_send + is_receive);
	op->wait_ns[OP_WAIT_SEND_GPU] =
		op->send_steps * (4000 + busy_noise(rank, op->number, 1, 900));
	op->wait_ns[OP_WAIT_SEND_NET] = op->send_steps * wire_ns;
	op->wait_ns[OP_WAIT_RECV_NET] =
		op->recv_steps * (9000 + busy_noise(rank, op->number, 2, 900));
	op->wait_ns[OP_WAIT_RECV_FLUSH] =
		op->recv_steps * (800 + busy_noise(rank, op->number, 3, 90));
	op->wait_ns[OP_WAIT_RECV_GPU] =
		op->recv_steps * (2000 + busy_noise(rank, op->number, 4, 300));
	op->send_bytes = is_send ? op->bytes : 0;
	op->recv_bytes = is_receive ? op->bytes : 0;
}

static inline struct recording_process *busy_process(struct busy_jobs *jobs, const char *job,
						     int rank, char host)
{
	char name[16];
	struct recording_process *process;

	snprintf(name, sizeof(name), "%c%d", host, rank / 2);
	process = hand_process(&jobs->hand, job, rank, name);
	process->local_rank = rank % 2;
	process->anchors = calloc(1, sizeof(*process->anchors));
	if (process->anchors == NULL)
		abort();
	process->anchors[0] = (struct clock_anchor){ .clock_ns = 1, .wall_ns = BUSY_WALL_NS + 1 };
	process->anchor_count = 1;
	return process;
}

/* The GPU's clock is 3 s ahead of the recorder's. */
static inline struct op_record *busy_op(struct recording_process *process, uint32_t comm,
					uint8_t function, uint64_t match, uint64_t bytes,
					uint64_t duration_ns, uint64_t end_ns)
{
	struct op_record *op = hand_op(process, comm, function, match, bytes, duration_ns, end_ns);

	process->comms[comm - 1].counts.collectives += function != OP_SEND && function != OP_RECV;
	op->gpu_stop_ns = end_ns + 3000000000;
	op->gpu_start_ns = op->gpu_stop_ns - duration_ns;
	return op;
}

static inline void busy_alpha(struct busy_jobs *jobs, int rank, uint64_t rounds)
{
	struct recording_process *process = busy_process(jobs, "alpha", rank, 'a');
	char pair[16];

	snprintf(pair, sizeof(pair), "tp-%d", rank / 2);
	process->world_size = BUSY_ALPHA;
	hand_comm(process, 0xa0, "world", rank, BUSY_ALPHA, BUSY_ALPHA / 2);
	hand_comm(process, 0xa1 + (uint64_t)rank / 2, pair, rank % 2, 2, 1);
	process->comms[0].info.gpu = process->comms[1].info.gpu = rank % 2;
	for (uint64_t i = 1; i <= rounds; i++) {
		uint64_t at_ns = i * BUSY_ROUND_NS, times = i * 8 > rounds * 5 ? 2 : 1;
		uint64_t wire_ns =
			(20000 + busy_noise(rank, i, 5, 4000)) * times * (rank == 3 ? 6 : 1);
		struct op_record *op;

		op = busy_op(process, 1, OP_ALL_REDUCE, i, 32 << 20,
			     5000000 * times + busy_noise(rank, i, 6, 400000), at_ns);
		busy_transfers(op, true, true, rank, wire_ns);
		op->channels = 4;
		op = busy_op(process, 2, OP_ALL_GATHER, i, 1 << (14 + i % 3),
			     300000 + busy_noise(rank, i, 7, 60000), at_ns + 9000000);
		op->algorithm = OP_TREE;
		op->protocol = OP_LL;
		if (i % 4 != 0)
			continue;
		op = busy_op(process, 1, OP_REDUCE_SCATTER, i, 1 << 20,
			     1000000 * times + busy_noise(rank, i, 8, 90000), at_ns + 15000000);
		busy_transfers(op, true, true, rank, wire_ns);
		op->flags |= OP_FLAG_REPLAY;
		process->comms[0].counts.collectives--;
		process->comms[0].counts.replays++;
	}
	jobs->links[rank] =
		(struct region_link){ .key = REGION_LINK_KEY(1, false, (rank + 1) % BUSY_ALPHA),
				      .proxies = rounds,
				      .steps = 16 * rounds,
				      .bytes = rounds << 25,
				      .wait_ns = { 5000 * 16 * rounds, 0,
						   (rank == 3 ? 150000 : 25000) * 16 * rounds },
				      .wire_ns = (rank == 3 ? 6000000 : 1000000) * rounds };
	process->links = &jobs->links[rank];
	process->link_count = 1;
}

static inline void busy_beta(struct busy_jobs *jobs, int rank, uint64_t rounds)
{
	struct recording_process *process = busy_process(jobs, "beta", rank, 'b');

	process->world_size = BUSY_BETA;
	hand_comm(process, 0xb0, "world", rank, BUSY_BETA, BUSY_BETA / 2);
	hand_comm(process, 0xb1, "mix", rank, BUSY_BETA, BUSY_BETA / 2);
	for (uint64_t i = 1; i <= rounds; i++) {
		uint64_t at_ns = i * BUSY_ROUND_NS;
		uint64_t waits_ns = rank != 4 && i * 2 > rounds ? 20000000 : 0;
		int apart = 1 + (int)(i % (BUSY_BETA - 1));
		struct op_record *op;

		op = busy_op(process, 1, OP_ALL_REDUCE, i, 8 << 20,
			     3000000 + waits_ns + busy_noise(rank, i, 1, 500000), at_ns);
		if (i % 2 != 0) {
			op->time_source = OP_TIME_NONE;
			op->gpu_start_ns = op->gpu_stop_ns = 0;
			process->comms[0].counts.timed--;
		}
		op = busy_op(process, 2, OP_SEND, 0, 2 << 20,
			     700000 + busy_noise(rank, i, 2, 200000), at_ns + 20000000);
		op->peer = (rank + apart) % BUSY_BETA;
		busy_transfers(op, true, false, rank, 15000 + busy_noise(rank, i, 3, 3000));
		op = busy_op(process, 2, OP_RECV, 0, 2 << 20,
			     700000 + busy_noise(rank, i, 4, 200000), at_ns + 21000000);
		op->peer = (rank + BUSY_BETA - apart) % BUSY_BETA;
		busy_transfers(op, false, true, rank, 0);
	}
	process->life = rank == 5 ? RECORDING_KILLED : RECORDING_ENDED;
}

/* At least 256 rounds, for stragglers to be judged in both. */
static inline void busy_jobs_make(struct busy_jobs *jobs, uint64_t rounds)
{
	memset(jobs, 0, sizeof(*jobs));
	for (int rank = 0; rank < BUSY_ALPHA; rank++)
		busy_alpha(jobs, rank, rounds);
	for (int rank = 0; rank < BUSY_BETA; rank++)
		busy_beta(jobs, rank, rounds);
}

static inline void busy_jobs_release(struct busy_jobs *jobs)
{
	for (size_t i = 0; i < jobs->hand.recording.count; i++)
		jobs->hand.list[i]->links = NULL;
	hand_release(&jobs->hand);
}

#endif
