/* NCCL's profiler interface, version 6: NCCL 2.29 and 2.30. Adds copy-engine collectives. */
#ifndef ABI_V6_H
#define ABI_V6_H

#include "plugin/abi_common.h"

struct abi_descr_v6 {
	uint64_t type; /* one bit of enum abi_event */
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
			void *parent_group;
		} coll;
		struct {
			const char *function;
			const void *buffer;
			const char *datatype;
			size_t count;
			int peer;
			uint8_t channels;
			void *parent_group;
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
			uint64_t gpu_ns;
		} kernel_ch;
		struct {
			int64_t id;
			void *data;
		} net_plugin;
		struct {
			bool is_captured;
			int depth;
		} group_api;
		struct {
			const char *function;
			size_t count;
			const char *datatype;
			int root;
			void *stream;
			bool is_captured;
		} coll_api;
		struct {
			const char *function;
			size_t count;
			const char *datatype;
			void *stream;
			bool is_captured;
		} p2p_api;
		struct {
			void *stream;
		} kernel_launch;
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
		struct {
			bool is_complete;
			int nranks;
		} ce_sync;
		struct {
			int ops;
			size_t total_bytes;
			bool use_intra_sync;
		} ce_batch;
	};
};

ABI_SIZE(struct abi_descr_v6, 112);
ABI_AT(struct abi_descr_v6, parent, ABI_DESCR_PARENT);
ABI_AT(struct abi_descr_v6, rank, ABI_DESCR_RANK);
ABI_AT(struct abi_descr_v6, coll.sequence, 24);
ABI_AT(struct abi_descr_v6, coll.function, 32);
ABI_AT(struct abi_descr_v6, coll.send_buffer, 40);
ABI_AT(struct abi_descr_v6, coll.recv_buffer, 48);
ABI_AT(struct abi_descr_v6, coll.count, 56);
ABI_AT(struct abi_descr_v6, coll.root, 64);
ABI_AT(struct abi_descr_v6, coll.datatype, 72);
ABI_AT(struct abi_descr_v6, coll.channels, 80);
ABI_AT(struct abi_descr_v6, coll.warps, 81);
ABI_AT(struct abi_descr_v6, coll.algorithm, 88);
ABI_AT(struct abi_descr_v6, coll.protocol, 96);
ABI_AT(struct abi_descr_v6, coll.parent_group, 104);
ABI_AT(struct abi_descr_v6, p2p.function, 24);
ABI_AT(struct abi_descr_v6, p2p.buffer, 32);
ABI_AT(struct abi_descr_v6, p2p.datatype, 40);
ABI_AT(struct abi_descr_v6, p2p.count, 48);
ABI_AT(struct abi_descr_v6, p2p.peer, 56);
ABI_AT(struct abi_descr_v6, p2p.channels, 60);
ABI_AT(struct abi_descr_v6, p2p.parent_group, 64);
ABI_AT(struct abi_descr_v6, proxy_op.pid, 24);
ABI_AT(struct abi_descr_v6, proxy_op.channel, 28);
ABI_AT(struct abi_descr_v6, proxy_op.peer, 32);
ABI_AT(struct abi_descr_v6, proxy_op.steps, 36);
ABI_AT(struct abi_descr_v6, proxy_op.chunk_bytes, 40);
ABI_AT(struct abi_descr_v6, proxy_op.is_send, 44);
ABI_AT(struct abi_descr_v6, proxy_step.step, 24);
ABI_AT(struct abi_descr_v6, kernel_ch.channel, 24);
ABI_AT(struct abi_descr_v6, kernel_ch.gpu_ns, 32);
ABI_AT(struct abi_descr_v6, net_plugin.id, 24);
ABI_AT(struct abi_descr_v6, net_plugin.data, 32);
ABI_AT(struct abi_descr_v6, group_api.is_captured, 24);
ABI_AT(struct abi_descr_v6, group_api.depth, 28);
ABI_AT(struct abi_descr_v6, coll_api.function, 24);
ABI_AT(struct abi_descr_v6, coll_api.count, 32);
ABI_AT(struct abi_descr_v6, coll_api.datatype, 40);
ABI_AT(struct abi_descr_v6, coll_api.root, 48);
ABI_AT(struct abi_descr_v6, coll_api.stream, 56);
ABI_AT(struct abi_descr_v6, coll_api.is_captured, 64);
ABI_AT(struct abi_descr_v6, p2p_api.function, 24);
ABI_AT(struct abi_descr_v6, p2p_api.count, 32);
ABI_AT(struct abi_descr_v6, p2p_api.datatype, 40);
ABI_AT(struct abi_descr_v6, p2p_api.stream, 48);
ABI_AT(struct abi_descr_v6, p2p_api.is_captured, 56);
ABI_AT(struct abi_descr_v6, kernel_launch.stream, 24);
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
ABI_AT(struct abi_descr_v6, ce_sync.is_complete, 24);
ABI_AT(struct abi_descr_v6, ce_sync.nranks, 28);
ABI_AT(struct abi_descr_v6, ce_batch.ops, 24);
ABI_AT(struct abi_descr_v6, ce_batch.total_bytes, 32);
ABI_AT(struct abi_descr_v6, ce_batch.use_intra_sync, 40);

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
