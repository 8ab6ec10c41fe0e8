/*
 * NCCL's profiler interface, version 5: NCCL 2.28. Adds API and launch events; the type widens to
 * 64 bits.
 */
#ifndef ABI_V5_H
#define ABI_V5_H

#include "plugin/abi_common.h"

struct abi_coll_v5 {
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
	void *parent_group;
};

ABI_AT(struct abi_coll_v5, sequence, 0);
ABI_AT(struct abi_coll_v5, function, 8);
ABI_AT(struct abi_coll_v5, send_buffer, 16);
ABI_AT(struct abi_coll_v5, recv_buffer, 24);
ABI_AT(struct abi_coll_v5, count, 32);
ABI_AT(struct abi_coll_v5, root, 40);
ABI_AT(struct abi_coll_v5, datatype, 48);
ABI_AT(struct abi_coll_v5, channels, 56);
ABI_AT(struct abi_coll_v5, warps, 57);
ABI_AT(struct abi_coll_v5, algorithm, 64);
ABI_AT(struct abi_coll_v5, protocol, 72);
ABI_AT(struct abi_coll_v5, parent_group, 80);

struct abi_p2p_v5 {
	const char *function;
	const void *buffer;
	const char *datatype;
	size_t count;
	int peer;
	uint8_t channels;
	void *parent_group;
};

ABI_AT(struct abi_p2p_v5, function, 0);
ABI_AT(struct abi_p2p_v5, buffer, 8);
ABI_AT(struct abi_p2p_v5, datatype, 16);
ABI_AT(struct abi_p2p_v5, count, 24);
ABI_AT(struct abi_p2p_v5, peer, 32);
ABI_AT(struct abi_p2p_v5, channels, 36);
ABI_AT(struct abi_p2p_v5, parent_group, 40);

struct abi_coll_api_v5 {
	const char *function;
	size_t count;
	const char *datatype;
	int root;
	void *stream;
	bool is_captured;
};

ABI_AT(struct abi_coll_api_v5, function, 0);
ABI_AT(struct abi_coll_api_v5, count, 8);
ABI_AT(struct abi_coll_api_v5, datatype, 16);
ABI_AT(struct abi_coll_api_v5, root, 24);
ABI_AT(struct abi_coll_api_v5, stream, 32);
ABI_AT(struct abi_coll_api_v5, is_captured, 40);

struct abi_p2p_api_v5 {
	const char *function;
	size_t count;
	const char *datatype;
	void *stream;
	bool is_captured;
};

ABI_AT(struct abi_p2p_api_v5, function, 0);
ABI_AT(struct abi_p2p_api_v5, count, 8);
ABI_AT(struct abi_p2p_api_v5, datatype, 16);
ABI_AT(struct abi_p2p_api_v5, stream, 24);
ABI_AT(struct abi_p2p_api_v5, is_captured, 32);

struct abi_descr_v5 {
	uint64_t type; /* one bit of enum abi_event */
	void *parent;
	int rank;
	union {
		struct abi_coll_v5 coll;
		struct abi_p2p_v5 p2p;
		struct abi_proxy_op proxy_op;
		struct abi_proxy_step proxy_step;
		struct abi_kernel_ch kernel_ch;
		struct abi_net_plugin net_plugin;
		struct abi_group_api group_api;
		struct abi_coll_api_v5 coll_api;
		struct abi_p2p_api_v5 p2p_api;
		struct abi_kernel_launch kernel_launch;
	};
};

ABI_SIZE(struct abi_descr_v5, 112);
ABI_AT(struct abi_descr_v5, parent, ABI_DESCR_PARENT);
ABI_AT(struct abi_descr_v5, rank, ABI_DESCR_RANK);
ABI_PART(struct abi_descr_v5, coll);
ABI_PART(struct abi_descr_v5, p2p);
ABI_PART(struct abi_descr_v5, proxy_op);
ABI_PART(struct abi_descr_v5, proxy_step);
ABI_PART(struct abi_descr_v5, kernel_ch);
ABI_PART(struct abi_descr_v5, net_plugin);
ABI_PART(struct abi_descr_v5, group_api);
ABI_PART(struct abi_descr_v5, coll_api);
ABI_PART(struct abi_descr_v5, p2p_api);
ABI_PART(struct abi_descr_v5, kernel_launch);

union abi_args_v5 {
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

ABI_SIZE(union abi_args_v5, 8);

ABI_PLUGIN(5, (void **context, uint64_t comm_hash, int *mask, const char *comm_name, int nnodes,
	       int nranks, int rank, abi_log_fn log));

#endif
