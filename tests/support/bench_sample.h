/* A made-up result of a benchmark: every mode, pairs, wrong results, no calls. */
#ifndef BENCH_SAMPLE_H
#define BENCH_SAMPLE_H

#include <stdio.h>
#include <stdlib.h>

#include "bench/bench_result.h"
#include "common/op_layout.h"
#include "common/text.h"

enum { SAMPLE_RANKS = 2, SAMPLE_CALLS = 4 };

static inline void sample_ranks(struct bench_run *run, int32_t nranks)
{
	if (bench_run_set_ranks(run, nranks) != OK)
		abort();
	for (int32_t i = 0; i < nranks; i++) {
		struct bench_rank *rank = &run->ranks[i];

		text_format(rank->host, sizeof(rank->host), "node%02d", (int)i / 8 + 1);
		rank->node = i / 8;
		rank->device = i % 8;
		rank->pid = 4711 + i;
		text_copy(rank->gpu_name, sizeof(rank->gpu_name), "NVIDIA H200");
		text_format(rank->gpu_uuid, sizeof(rank->gpu_uuid),
			    "GPU-00000000-0000-0000-0000-%012d", (int)i);
		text_format(rank->pci, sizeof(rank->pci), "0000:%02x:00", 0x1b + (int)i);
		rank->memory_bytes = UINT64_C(150754820096);
	}
	run->nodes = (nranks + 7) / 8;
}

static inline void sample_start(struct bench_run *run, int32_t nranks)
{
	bench_run_init(run);
	sample_ranks(run, nranks);
	run->nccl_version = 22809;
	run->cuda_version = 13000;
	run->started_ns = UINT64_C(1800000000123456789);
	text_copy(run->launcher, sizeof(run->launcher), "self");
	text_copy(run->command, sizeof(run->command), "ringside bench --ranks 2");
	text_copy(run->nccl_path, sizeof(run->nccl_path), "/usr/lib/libnccl.so.2");
}

/* Calls of time_ns, each a percent longer than the one before, rank 1 two nanoseconds longer. */
static inline void sample_calls(struct bench_cell *cell, uint64_t time_ns)
{
	for (int32_t rank = 0; cell->calls_of != NULL && rank < cell->nranks; rank++)
		for (uint32_t i = 0; i < cell->calls; i++) {
			struct bench_call *call = &cell->calls_of[(size_t)rank * cell->calls + i];

			call->begin_ns = UINT64_C(1800000001000000001) + i * 3 * time_ns;
			call->gpu_ns = time_ns + time_ns / 100 * i + 2 * (uint64_t)rank;
			call->issue_ns = 4000 + i;
			call->done_ns = cell->mode == BENCH_BLOCKING ? call->gpu_ns + 9000 : 0;
		}
}

static inline struct bench_cell *sample_add(struct bench_run *run, uint8_t function, uint8_t mode,
					    uint64_t bytes, bool is_in_place, uint64_t time_ns)
{
	struct bench_cell like = {
		.function = function,
		.datatype = OP_FLOAT32,
		.redop = function == OP_ALL_REDUCE ? BENCH_SUM : BENCH_NO_REDOP,
		.mode = mode,
		.is_in_place = is_in_place,
		.root = function == OP_BROADCAST ? 0 : -1,
		.nranks = run->nranks,
		.count = bytes / 4,
		.bytes = bytes,
		.calls = SAMPLE_CALLS,
		.warmups = 5,
		.checks = 1,
		.captured = mode == BENCH_GRAPH ? 2 : 0,
		.loop_ns = mode == BENCH_LOOP ? time_ns : 0,
	};
	struct bench_cell *cell = bench_run_add_cell(run, &like);

	if (cell == NULL)
		abort();
	sample_calls(cell, time_ns);
	return cell;
}

/* The result of a plain command. */
static inline void sample_plain(struct bench_run *run)
{
	sample_start(run, SAMPLE_RANKS);
	for (int in_place = 0; in_place < 2; in_place++)
		for (uint64_t bytes = 1024; bytes <= 1 << 20; bytes *= 32)
			sample_add(run, OP_ALL_REDUCE, BENCH_BLOCKING, bytes, in_place == 1,
				   bytes / 16 + 20000 - 1000 * (unsigned int)in_place);
}

/* Everything that can occur. */
static inline void sample_everything(struct bench_run *run)
{
	static const int32_t peers[] = { 1, 0 };
	struct bench_cell pairs, *cell;

	sample_plain(run);
	run->is_gpu_shared = true;
	run->is_mps = true;
	text_copy(run->plugin, sizeof(run->plugin), "libnccl-profiler-\"\303\274\".so");
	bench_run_note(run, "2 ranks share one GPU\tand talk through sockets");
	bench_run_note(run, "another note: \342\202\254");
	run->notes_lost = 3;
	sample_add(run, OP_ALL_REDUCE, BENCH_BACK_TO_BACK, 4096, false, 7000)->aligns = 4;
	sample_add(run, OP_BROADCAST, BENCH_GRAPH, 4096, false, 6000)->wrong = 17;
	cell = sample_add(run, OP_ALL_GATHER, BENCH_LOOP, 1 << 20, true, 99999);
	cell->wrong = BENCH_UNCHECKED;
	cell->algorithm = OP_RING;
	cell->protocol = OP_LL128;
	cell = sample_add(run, OP_ALL_TO_ALL, BENCH_BLOCKING, 1 << 20, false, 50000);
	cell->is_grouped_sends = true;
	cell->chosen_algorithm = OP_TREE;
	cell->chosen_protocol = OP_SIMPLE;
	pairs = *sample_add(run, OP_SEND_RECV, BENCH_BLOCKING, 8192, false, 0);
	pairs.peers = (int32_t *)(uintptr_t)peers;
	pairs.wrong = UINT64_MAX - 1;
	cell = bench_run_add_cell(run, &pairs);
	if (cell == NULL)
		abort();
	sample_calls(cell, 12000);
	cell->calls_of[3].begin_ns = INT64_MAX;
	/* This one has no result. */
	pairs.calls = 0;
	pairs.peers = NULL;
	pairs.bytes = UINT64_MAX - 7;
	if (bench_run_add_cell(run, &pairs) == NULL)
		abort();
}

#endif
