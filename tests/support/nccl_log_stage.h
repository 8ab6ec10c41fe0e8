/*
 * A made-up NCCL log: nodes with eight GPUs and eight InfiniBand cards, NVLink and GPUDirect RDMA,
 * as written by NCCL 2.28. Nothing is wrong with it; tests remove, change or add lines.
 */
#ifndef NCCL_LOG_STAGE_H
#define NCCL_LOG_STAGE_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct log_stage {
	char *text;
	size_t used;
	size_t room;
	/* What to simulate. */
	int nodes, gpus;
	const char *version;
	int silent_rank;     /* its log is missing; -1: none */
	int unfinished_rank; /* from it on no rank completes its init; -1: none */
};

__attribute__((format(printf, 2, 3))) static inline void log_put(struct log_stage *stage,
								 const char *format, ...)
{
	va_list arguments;

	if (stage->used + 4096 > stage->room) {
		stage->room = stage->room == 0 ? 65536 : stage->room * 2;
		stage->text = realloc(stage->text, stage->room);
		if (stage->text == NULL)
			abort();
	}
	va_start(arguments, format);
	stage->used += (size_t)vsnprintf(stage->text + stage->used, stage->room - stage->used,
					 format, arguments);
	va_end(arguments);
}

static inline void log_stage_links(struct log_stage *stage, const char *head, int rank)
{
	int nranks = stage->nodes * stage->gpus, next = (rank + 1) % nranks;
	int before = (rank + nranks - 1) % nranks, local = rank % stage->gpus;

	for (int channel = 0; channel < 16; channel++) {
		if (next / stage->gpus == rank / stage->gpus)
			log_put(stage, "%s Channel %02d/0 : %d[%d] -> %d[%d] via P2P/CUMEM/read\n",
				head, channel, rank, local, next, next % stage->gpus);
		if (stage->nodes == 1)
			continue;
		/* Each channel leaves the node at another GPU, through the nearest card. */
		if (channel % stage->gpus == local) {
			int there = (rank + stage->gpus) % nranks;

			log_put(stage,
				"%s Channel %02d/0 : %d[%d] -> %d[%d] [receive] via "
				"NET/IB/%d/GDRDMA\n",
				head, channel, there, local, rank, local, local);
			log_put(stage,
				"%s Channel %02d/0 : %d[%d] -> %d[%d] [send] via "
				"NET/IB/%d/GDRDMA\n",
				head, channel, rank, local, there, local, local);
		}
	}
	(void)before;
}

static inline void log_stage_rank(struct log_stage *stage, int rank)
{
	int nranks = stage->nodes * stage->gpus, local = rank % stage->gpus;
	char head[128];

	snprintf(head, sizeof(head), "node%d:%d:%d [%d] NCCL INFO", rank / stage->gpus, 1000 + rank,
		 1000 + rank, local);
	log_put(stage, "%s Bootstrap: Using eth0:10.0.0.%d<0>\n", head, rank / stage->gpus + 1);
	log_put(stage, "%s cudaDriverVersion 12080\n", head);
	log_put(stage, "%s NCCL version %s+cuda12.8\n", head, stage->version);
	log_put(stage,
		"%s NET/Plugin: Could not find: libnccl-net.so. Using internal net plugin.\n",
		head);
	log_put(stage, "%s NCCL_SOCKET_IFNAME set by environment to eth0\n", head);
	log_put(stage, "%s NET/IB : Using", head);
	for (int i = 0; i < stage->gpus; i++)
		log_put(stage, " [%d]mlx5_%d:1/IB", i, i);
	log_put(stage, " [RO]; OOB eth0:10.0.0.%d<0>\n", rank / stage->gpus + 1);
	log_put(stage, "%s Initialized NET plugin IB\n", head);
	log_put(stage, "%s Using network IB\n", head);
	log_put(stage, "%s DMA-BUF is available on GPU device %d\n", head, local);
	log_put(stage,
		"%s ncclCommInitRank comm 0x55be%04x rank %d nranks %d cudaDev %d nvmlDev %d busId "
		"%x000 commId 0x8cda0130ee5eb8c7 - Init START\n",
		head, rank, rank, nranks, local, local, local + 1);
	for (int i = 0; i < stage->gpus; i++)
		log_put(stage, "%s NET/IB : GPU Direct RDMA Enabled for HCA %d 'mlx5_%d'\n", head,
			i, i);
	log_put(stage, "%s NVLS multicast support is available on dev %d (NVLS_NCHANNELS 24)\n",
		head, local);
	log_put(stage,
		"%s comm 0x55be%04x rank %d nRanks %d nNodes %d localRanks %d localRank %d MNNVL "
		"0\n",
		head, rank, rank, nranks, stage->nodes, stage->gpus, local);
	log_put(stage, "%s Trees [0] -1/-1/-1->%d->-1 [1] -1/-1/-1->%d->-1\n", head, rank, rank);
	log_put(stage, "%s P2P Chunksize set to 131072\n", head);
	log_stage_links(stage, head, rank);
	log_put(stage, "%s Connected all rings, use ring PXN 0 GDR 1\n", head);
	log_put(stage, "%s Connected all trees\n", head);
	log_put(stage,
		"%s 16 coll channels, 16 collnet channels, 16 nvls channels, 16 p2p channels, 2 "
		"p2p "
		"channels per peer\n",
		head);
	if (stage->unfinished_rank >= 0)
		return;
	log_put(stage,
		"%s ncclCommInitRank comm 0x55be%04x rank %d nranks %d cudaDev %d nvmlDev %d busId "
		"%x000 commId 0x8cda0130ee5eb8c7 - Init COMPLETE\n",
		head, rank, rank, nranks, local, local, local + 1);
	log_put(stage,
		"%s Init timings - ncclCommInitRank: rank %d nranks %d total 1.20 (kernels 0.30, "
		"alloc "
		"0.10, bootstrap 0.20, allgathers 0.10, topo 0.20, graphs 0.10, connections 0.20, "
		"rest "
		"0.00)\n",
		head, rank, nranks);
}

static inline struct log_stage log_stage_new(int nodes, int gpus)
{
	return (struct log_stage){ .nodes = nodes,
				   .gpus = gpus,
				   .version = "2.28.9",
				   .silent_rank = -1,
				   .unfinished_rank = -1 };
}

static inline void log_stage_play(struct log_stage *stage)
{
	for (int rank = 0; rank < stage->nodes * stage->gpus; rank++)
		if (rank != stage->silent_rank)
			log_stage_rank(stage, rank);
}

/* Replace every `from` by `to`. */
static inline void log_stage_replace(struct log_stage *stage, const char *from, const char *to)
{
	struct log_stage out = { .room = 0 };
	char *at = stage->text, *found;

	while ((found = strstr(at, from)) != NULL) {
		*found = '\0';
		while (strlen(at) > 2000) {
			log_put(&out, "%.2000s", at);
			at += 2000;
		}
		log_put(&out, "%s%s", at, to);
		at = found + strlen(from);
	}
	while (strlen(at) > 2000) {
		log_put(&out, "%.2000s", at);
		at += 2000;
	}
	log_put(&out, "%s", at);
	free(stage->text);
	stage->text = out.text;
	stage->used = out.used;
	stage->room = out.room;
}

static inline void log_stage_release(struct log_stage *stage)
{
	free(stage->text);
	stage->text = NULL;
}

#endif
