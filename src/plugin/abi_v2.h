/* NCCL's profiler interface, version 2: NCCL 2.24 and 2.25. Functions and types become strings. */
#ifndef ABI_V2_H
#define ABI_V2_H

#include "plugin/abi_common.h"

struct abi_p2p_v2 {
	const char *name;
	uint64_t comm_hash;
	const char *function;
	const void *buffer;
	const char *datatype;
	size_t count;
	int peer;
};

ABI_AT(struct abi_p2p_v2, name, 0);
ABI_AT(struct abi_p2p_v2, comm_hash, 8);
ABI_AT(struct abi_p2p_v2, function, 16);
ABI_AT(struct abi_p2p_v2, buffer, 24);
ABI_AT(struct abi_p2p_v2, datatype, 32);
ABI_AT(struct abi_p2p_v2, count, 40);
ABI_AT(struct abi_p2p_v2, peer, 48);

struct abi_descr_v2 {
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
			size_t traffic_bytes;
			uint8_t max_channels;
			uint8_t warps;
			const char *algorithm;
			const char *protocol;
		} coll;
		struct abi_p2p_v2 p2p;
		struct abi_proxy_op proxy_op;
		struct abi_proxy_step proxy_step;
	};
};

ABI_SIZE(struct abi_descr_v2, 128);
ABI_AT(struct abi_descr_v2, parent, ABI_DESCR_PARENT);
ABI_AT(struct abi_descr_v2, rank, ABI_DESCR_RANK);
ABI_AT(struct abi_descr_v2, coll.name, 24);
ABI_AT(struct abi_descr_v2, coll.comm_hash, 32);
ABI_AT(struct abi_descr_v2, coll.sequence, 40);
ABI_AT(struct abi_descr_v2, coll.function, 48);
ABI_AT(struct abi_descr_v2, coll.send_buffer, 56);
ABI_AT(struct abi_descr_v2, coll.recv_buffer, 64);
ABI_AT(struct abi_descr_v2, coll.count, 72);
ABI_AT(struct abi_descr_v2, coll.root, 80);
ABI_AT(struct abi_descr_v2, coll.datatype, 88);
ABI_AT(struct abi_descr_v2, coll.traffic_bytes, 96);
ABI_AT(struct abi_descr_v2, coll.max_channels, 104);
ABI_AT(struct abi_descr_v2, coll.warps, 105);
ABI_AT(struct abi_descr_v2, coll.algorithm, 112);
ABI_AT(struct abi_descr_v2, coll.protocol, 120);
ABI_PART(struct abi_descr_v2, p2p);
ABI_PART(struct abi_descr_v2, proxy_op);
ABI_PART(struct abi_descr_v2, proxy_step);

union abi_args_v2 {
	struct {
		size_t trans_bytes;
		int steps;
	} proxy_op;
	struct {
		int appended;
	} proxy_ctrl;
};

ABI_SIZE(union abi_args_v2, 16);

ABI_PLUGIN(2, (void **context, int *mask));

#endif
