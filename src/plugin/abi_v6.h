/* NCCL's profiler interface, version 6: NCCL 2.29 and 2.30. Adds copy-engine collectives. */
#ifndef ABI_V6_H
#define ABI_V6_H

#include "plugin/abi_v5.h"

struct abi_descr_v6 {
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
		struct {
			uint64_t sequence;
			const char *function;
			const void *send_buffer;
			const void *recv_buffer;
			size_t count;
			int root;
			const char *datatype;
			const char *sync_strategy;
			bool has_intra_batch_sync;
			uint32_t batch_size;
			uint32_t batches;
			uint32_t ce_sequence;
			void *stream;
		} ce_coll;
		struct abi_ce_sync ce_sync;
		struct abi_ce_batch ce_batch;
	};
};

ABI_SIZE(struct abi_descr_v6, 112);
ABI_AT(struct abi_descr_v6, parent, ABI_DESCR_PARENT);
ABI_AT(struct abi_descr_v6, rank, ABI_DESCR_RANK);
ABI_PART(struct abi_descr_v6, coll);
ABI_PART(struct abi_descr_v6, p2p);
ABI_PART(struct abi_descr_v6, proxy_op);
ABI_PART(struct abi_descr_v6, proxy_step);
ABI_PART(struct abi_descr_v6, kernel_ch);
ABI_PART(struct abi_descr_v6, net_plugin);
ABI_PART(struct abi_descr_v6, group_api);
ABI_PART(struct abi_descr_v6, coll_api);
ABI_PART(struct abi_descr_v6, p2p_api);
ABI_PART(struct abi_descr_v6, kernel_launch);
ABI_AT(struct abi_descr_v6, ce_coll.sequence, 24);
ABI_AT(struct abi_descr_v6, ce_coll.function, 32);
ABI_AT(struct abi_descr_v6, ce_coll.send_buffer, 40);
ABI_AT(struct abi_descr_v6, ce_coll.recv_buffer, 48);
ABI_AT(struct abi_descr_v6, ce_coll.count, 56);
ABI_AT(struct abi_descr_v6, ce_coll.root, 64);
ABI_AT(struct abi_descr_v6, ce_coll.datatype, 72);
ABI_AT(struct abi_descr_v6, ce_coll.sync_strategy, 80);
ABI_AT(struct abi_descr_v6, ce_coll.has_intra_batch_sync, 88);
ABI_AT(struct abi_descr_v6, ce_coll.batch_size, 92);
ABI_AT(struct abi_descr_v6, ce_coll.batches, 96);
ABI_AT(struct abi_descr_v6, ce_coll.ce_sequence, 100);
ABI_AT(struct abi_descr_v6, ce_coll.stream, 104);
ABI_PART(struct abi_descr_v6, ce_sync);
ABI_PART(struct abi_descr_v6, ce_batch);

union abi_args_v6 {
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

ABI_SIZE(union abi_args_v6, 8);

ABI_PLUGIN(6, (void **context, uint64_t comm_hash, int *mask, const char *comm_name, int nnodes,
	       int nranks, int rank, abi_log_fn log));

#endif
