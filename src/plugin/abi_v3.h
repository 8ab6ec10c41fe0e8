/*
 * NCCL's profiler interface, version 3: NCCL 2.26. Adds kernel channels (without stamps) and net
 * plugin events.
 */
#ifndef ABI_V3_H
#define ABI_V3_H

#include "plugin/abi_common.h"

struct abi_descr_v3 {
	uint8_t type; /* one bit of enum abi_event */
	void *parent;
	int rank;
	union {
		struct {
			const char *name;
			uint64_t comm_hash;
			uint64_t sequence;
			const char *function;
			const void *send_buffer;
			const void *recv_buffer;
			size_t count;
			int root;
			const char *datatype;
			uint8_t max_channels;
			uint8_t warps;
			const char *algorithm;
			const char *protocol;
		} coll;
		struct {
			const char *name;
			uint64_t comm_hash;
			const char *function;
			const void *buffer;
			const char *datatype;
			size_t count;
			int peer;
		} p2p;
		struct {
			int32_t pid;
			uint8_t channel;
			int peer;
			int steps;
			int chunk_bytes;
			int is_send;
		} proxy_op;
		struct {
			int step;
		} proxy_step;
		struct {
			uint8_t channel;
		} kernel_ch;
		struct {
			int64_t id;
			void *data;
		} net_plugin;
	};
};

ABI_SIZE(struct abi_descr_v3, 120);
ABI_AT(struct abi_descr_v3, parent, ABI_DESCR_PARENT);
ABI_AT(struct abi_descr_v3, rank, ABI_DESCR_RANK);
ABI_AT(struct abi_descr_v3, coll.name, 24);
ABI_AT(struct abi_descr_v3, coll.comm_hash, 32);
ABI_AT(struct abi_descr_v3, coll.sequence, 40);
ABI_AT(struct abi_descr_v3, coll.function, 48);
ABI_AT(struct abi_descr_v3, coll.send_buffer, 56);
ABI_AT(struct abi_descr_v3, coll.recv_buffer, 64);
ABI_AT(struct abi_descr_v3, coll.count, 72);
ABI_AT(struct abi_descr_v3, coll.root, 80);
ABI_AT(struct abi_descr_v3, coll.datatype, 88);
ABI_AT(struct abi_descr_v3, coll.max_channels, 96);
ABI_AT(struct abi_descr_v3, coll.warps, 97);
ABI_AT(struct abi_descr_v3, coll.algorithm, 104);
ABI_AT(struct abi_descr_v3, coll.protocol, 112);
ABI_AT(struct abi_descr_v3, p2p.name, 24);
ABI_AT(struct abi_descr_v3, p2p.comm_hash, 32);
ABI_AT(struct abi_descr_v3, p2p.function, 40);
ABI_AT(struct abi_descr_v3, p2p.buffer, 48);
ABI_AT(struct abi_descr_v3, p2p.datatype, 56);
ABI_AT(struct abi_descr_v3, p2p.count, 64);
ABI_AT(struct abi_descr_v3, p2p.peer, 72);
ABI_AT(struct abi_descr_v3, proxy_op.pid, 24);
ABI_AT(struct abi_descr_v3, proxy_op.channel, 28);
ABI_AT(struct abi_descr_v3, proxy_op.peer, 32);
ABI_AT(struct abi_descr_v3, proxy_op.steps, 36);
ABI_AT(struct abi_descr_v3, proxy_op.chunk_bytes, 40);
ABI_AT(struct abi_descr_v3, proxy_op.is_send, 44);
ABI_AT(struct abi_descr_v3, proxy_step.step, 24);
ABI_AT(struct abi_descr_v3, kernel_ch.channel, 24);
ABI_AT(struct abi_descr_v3, net_plugin.id, 24);
ABI_AT(struct abi_descr_v3, net_plugin.data, 32);

union abi_args_v3 {
	struct {
		size_t trans_bytes;
		int steps;
	} proxy_op;
	struct {
		int appended;
	} proxy_ctrl;
};

ABI_SIZE(union abi_args_v3, 16);

ABI_PLUGIN(3, (void **context, int *mask));

#endif
