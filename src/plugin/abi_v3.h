/*
 * NCCL's profiler interface, version 3: NCCL 2.26. Adds kernel channels (without stamps) and net
 * plugin events.
 */
#ifndef ABI_V3_H
#define ABI_V3_H

#include "plugin/abi_v2.h"

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
		struct abi_p2p_v2 p2p;
		struct abi_proxy_op proxy_op;
		struct abi_proxy_step proxy_step;
		struct {
			uint8_t channel;
		} kernel_ch;
		struct abi_net_plugin net_plugin;
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
ABI_PART(struct abi_descr_v3, p2p);
ABI_PART(struct abi_descr_v3, proxy_op);
ABI_PART(struct abi_descr_v3, proxy_step);
ABI_AT(struct abi_descr_v3, kernel_ch.channel, 24);
ABI_PART(struct abi_descr_v3, net_plugin);

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
