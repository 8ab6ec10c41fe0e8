/* NCCL's profiler interface, version 1: NCCL 2.23. Functions and types are numbers here. */
#ifndef ABI_V1_H
#define ABI_V1_H

#include "plugin/abi_common.h"

struct abi_descr_v1 {
	uint8_t type; /* one bit of enum abi_event */
	void *parent;
	int rank;
	union {
		struct {
			const char *name;
			uint64_t comm_hash;
			uint64_t sequence;
			uint8_t function;
			const void *send_buffer;
			const void *recv_buffer;
			size_t count;
			int root;
			uint8_t datatype;
			uint32_t redop;
			size_t traffic_bytes;
			uint8_t max_channels;
			uint8_t warps;
			uint8_t algorithm;
			uint8_t protocol;
			int is_collnet;
			int is_nvls;
		} coll;
		struct {
			const char *name;
			uint64_t comm_hash;
			uint8_t function;
			const void *buffer;
			uint8_t datatype;
			size_t count;
			int peer;
		} p2p;
		struct abi_proxy_op proxy_op;
		struct abi_proxy_step proxy_step;
	};
};

ABI_SIZE(struct abi_descr_v1, 120);
ABI_AT(struct abi_descr_v1, parent, ABI_DESCR_PARENT);
ABI_AT(struct abi_descr_v1, rank, ABI_DESCR_RANK);
ABI_AT(struct abi_descr_v1, coll.name, 24);
ABI_AT(struct abi_descr_v1, coll.comm_hash, 32);
ABI_AT(struct abi_descr_v1, coll.sequence, 40);
ABI_AT(struct abi_descr_v1, coll.function, 48);
ABI_AT(struct abi_descr_v1, coll.send_buffer, 56);
ABI_AT(struct abi_descr_v1, coll.recv_buffer, 64);
ABI_AT(struct abi_descr_v1, coll.count, 72);
ABI_AT(struct abi_descr_v1, coll.root, 80);
ABI_AT(struct abi_descr_v1, coll.datatype, 84);
ABI_AT(struct abi_descr_v1, coll.redop, 88);
ABI_AT(struct abi_descr_v1, coll.traffic_bytes, 96);
ABI_AT(struct abi_descr_v1, coll.max_channels, 104);
ABI_AT(struct abi_descr_v1, coll.warps, 105);
ABI_AT(struct abi_descr_v1, coll.algorithm, 106);
ABI_AT(struct abi_descr_v1, coll.protocol, 107);
ABI_AT(struct abi_descr_v1, coll.is_collnet, 108);
ABI_AT(struct abi_descr_v1, coll.is_nvls, 112);
ABI_AT(struct abi_descr_v1, p2p.name, 24);
ABI_AT(struct abi_descr_v1, p2p.comm_hash, 32);
ABI_AT(struct abi_descr_v1, p2p.function, 40);
ABI_AT(struct abi_descr_v1, p2p.buffer, 48);
ABI_AT(struct abi_descr_v1, p2p.datatype, 56);
ABI_AT(struct abi_descr_v1, p2p.count, 64);
ABI_AT(struct abi_descr_v1, p2p.peer, 72);
ABI_PART(struct abi_descr_v1, proxy_op);
ABI_PART(struct abi_descr_v1, proxy_step);

union abi_args_v1 {
	struct {
		size_t trans_bytes;
		int steps;
	} proxy_op;
	struct {
		int appended;
	} proxy_ctrl;
};

ABI_SIZE(union abi_args_v1, 16);

ABI_PLUGIN(1, (void **context, int *mask));

#endif
