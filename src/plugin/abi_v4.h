/*
 * NCCL's profiler interface, version 4: NCCL 2.27. The identity of the communicator moves to init;
 * kernel channels get GPU stamps.
 */
#ifndef ABI_V4_H
#define ABI_V4_H

#include "plugin/abi_common.h"

struct abi_descr_v4 {
	uint8_t type; /* one bit of enum abi_event */
	void *parent;
	int rank;
	union {
		struct {
			uint64_t sequence;
			const char *function;
			const void *send_buffer;
			const void *recv_buffer;
			size_t count;
			int root;
			const char *datatype;
			uint8_t channels;
			uint8_t warps;
			const char *algorithm;
			const char *protocol;
		} coll;
		struct {
			const char *function;
			const void *buffer;
			const char *datatype;
			size_t count;
			int peer;
			uint8_t channels;
		} p2p;
		struct abi_proxy_op proxy_op;
		struct abi_proxy_step proxy_step;
		struct abi_kernel_ch kernel_ch;
		struct abi_net_plugin net_plugin;
	};
};

ABI_SIZE(struct abi_descr_v4, 104);
ABI_AT(struct abi_descr_v4, parent, ABI_DESCR_PARENT);
ABI_AT(struct abi_descr_v4, rank, ABI_DESCR_RANK);
ABI_AT(struct abi_descr_v4, coll.sequence, 24);
ABI_AT(struct abi_descr_v4, coll.function, 32);
ABI_AT(struct abi_descr_v4, coll.send_buffer, 40);
ABI_AT(struct abi_descr_v4, coll.recv_buffer, 48);
ABI_AT(struct abi_descr_v4, coll.count, 56);
ABI_AT(struct abi_descr_v4, coll.root, 64);
ABI_AT(struct abi_descr_v4, coll.datatype, 72);
ABI_AT(struct abi_descr_v4, coll.channels, 80);
ABI_AT(struct abi_descr_v4, coll.warps, 81);
ABI_AT(struct abi_descr_v4, coll.algorithm, 88);
ABI_AT(struct abi_descr_v4, coll.protocol, 96);
ABI_AT(struct abi_descr_v4, p2p.function, 24);
ABI_AT(struct abi_descr_v4, p2p.buffer, 32);
ABI_AT(struct abi_descr_v4, p2p.datatype, 40);
ABI_AT(struct abi_descr_v4, p2p.count, 48);
ABI_AT(struct abi_descr_v4, p2p.peer, 56);
ABI_AT(struct abi_descr_v4, p2p.channels, 60);
ABI_PART(struct abi_descr_v4, proxy_op);
ABI_PART(struct abi_descr_v4, proxy_step);
ABI_PART(struct abi_descr_v4, kernel_ch);
ABI_PART(struct abi_descr_v4, net_plugin);

union abi_args_v4 {
	struct {
		size_t trans_bytes;
	} proxy_step;
	struct {
		int appended;
	} proxy_ctrl;
	struct {
		void *data;
	} net_plugin;
	struct {
		uint64_t gpu_ns;
	} kernel_ch;
};

ABI_SIZE(union abi_args_v4, 8);

ABI_PLUGIN(4, (void **context, int *mask, const char *comm_name, uint64_t comm_hash, int nnodes,
	       int nranks, int rank, abi_log_fn log));

#endif
