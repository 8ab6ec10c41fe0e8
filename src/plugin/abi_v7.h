/*
 * NCCL's profiler interface, version 7: NCCL 2.31 and later. Adds user tags, kernel variants and
 * kernel phases.
 *
 * An early version 7 has a descriptor of 128 bytes without user tags, and nothing tells the two
 * apart. NCCL clears descriptors before it fills them, so most tags read as 0 there. But the tag of
 * Coll lies beyond the end, and that of P2pApi on padding bytes: these two must not be read.
 */
#ifndef ABI_V7_H
#define ABI_V7_H

#include "plugin/abi_common.h"

struct abi_descr_v7 {
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
			const char *kernel_variant;
			bool is_symmetric;
			uint64_t user_tag;
		} coll;
		struct {
			const char *function;
			const void *buffer;
			const char *datatype;
			size_t count;
			int peer;
			uint8_t channels;
			void *parent_group;
			uint64_t user_tag;
		} p2p;
		struct abi_proxy_op proxy_op;
		struct abi_proxy_step proxy_step;
		struct abi_kernel_ch kernel_ch;
		struct abi_net_plugin net_plugin;
		struct abi_group_api group_api;
		struct {
			const char *function;
			size_t count;
			const char *datatype;
			int root;
			void *stream;
			bool is_captured;
			uint64_t user_tag;
		} coll_api;
		struct {
			const char *function;
			size_t count;
			const char *datatype;
			void *stream;
			bool is_captured;
			uint64_t user_tag;
		} p2p_api;
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
			uint64_t user_tag;
		} ce_coll;
		struct abi_ce_sync ce_sync;
		struct abi_ce_batch ce_batch;
		struct {
			uint8_t channel;
			uint8_t phase;
			const char *name;
			uint64_t gpu_ns;
		} kernel_phase;
	};
};

/* Only these bytes are there in every version 7. */
enum { ABI_DESCR_V7_SURE = 128 };

ABI_SIZE(struct abi_descr_v7, 136);
ABI_AT(struct abi_descr_v7, parent, ABI_DESCR_PARENT);
ABI_AT(struct abi_descr_v7, rank, ABI_DESCR_RANK);
ABI_AT(struct abi_descr_v7, coll.sequence, 24);
ABI_AT(struct abi_descr_v7, coll.function, 32);
ABI_AT(struct abi_descr_v7, coll.send_buffer, 40);
ABI_AT(struct abi_descr_v7, coll.recv_buffer, 48);
ABI_AT(struct abi_descr_v7, coll.count, 56);
ABI_AT(struct abi_descr_v7, coll.root, 64);
ABI_AT(struct abi_descr_v7, coll.datatype, 72);
ABI_AT(struct abi_descr_v7, coll.channels, 80);
ABI_AT(struct abi_descr_v7, coll.warps, 81);
ABI_AT(struct abi_descr_v7, coll.algorithm, 88);
ABI_AT(struct abi_descr_v7, coll.protocol, 96);
ABI_AT(struct abi_descr_v7, coll.parent_group, 104);
ABI_AT(struct abi_descr_v7, coll.kernel_variant, 112);
ABI_AT(struct abi_descr_v7, coll.is_symmetric, 120);
ABI_AT(struct abi_descr_v7, coll.user_tag, 128);
ABI_AT(struct abi_descr_v7, p2p.function, 24);
ABI_AT(struct abi_descr_v7, p2p.buffer, 32);
ABI_AT(struct abi_descr_v7, p2p.datatype, 40);
ABI_AT(struct abi_descr_v7, p2p.count, 48);
ABI_AT(struct abi_descr_v7, p2p.peer, 56);
ABI_AT(struct abi_descr_v7, p2p.channels, 60);
ABI_AT(struct abi_descr_v7, p2p.parent_group, 64);
ABI_AT(struct abi_descr_v7, p2p.user_tag, 72);
ABI_PART(struct abi_descr_v7, proxy_op);
ABI_PART(struct abi_descr_v7, proxy_step);
ABI_PART(struct abi_descr_v7, kernel_ch);
ABI_PART(struct abi_descr_v7, net_plugin);
ABI_PART(struct abi_descr_v7, group_api);
ABI_AT(struct abi_descr_v7, coll_api.function, 24);
ABI_AT(struct abi_descr_v7, coll_api.count, 32);
ABI_AT(struct abi_descr_v7, coll_api.datatype, 40);
ABI_AT(struct abi_descr_v7, coll_api.root, 48);
ABI_AT(struct abi_descr_v7, coll_api.stream, 56);
ABI_AT(struct abi_descr_v7, coll_api.is_captured, 64);
ABI_AT(struct abi_descr_v7, coll_api.user_tag, 72);
ABI_AT(struct abi_descr_v7, p2p_api.function, 24);
ABI_AT(struct abi_descr_v7, p2p_api.count, 32);
ABI_AT(struct abi_descr_v7, p2p_api.datatype, 40);
ABI_AT(struct abi_descr_v7, p2p_api.stream, 48);
ABI_AT(struct abi_descr_v7, p2p_api.is_captured, 56);
ABI_AT(struct abi_descr_v7, p2p_api.user_tag, 64);
ABI_PART(struct abi_descr_v7, kernel_launch);
ABI_AT(struct abi_descr_v7, ce_coll.sequence, 24);
ABI_AT(struct abi_descr_v7, ce_coll.function, 32);
ABI_AT(struct abi_descr_v7, ce_coll.send_buffer, 40);
ABI_AT(struct abi_descr_v7, ce_coll.recv_buffer, 48);
ABI_AT(struct abi_descr_v7, ce_coll.count, 56);
ABI_AT(struct abi_descr_v7, ce_coll.root, 64);
ABI_AT(struct abi_descr_v7, ce_coll.datatype, 72);
ABI_AT(struct abi_descr_v7, ce_coll.sync_strategy, 80);
ABI_AT(struct abi_descr_v7, ce_coll.has_intra_batch_sync, 88);
ABI_AT(struct abi_descr_v7, ce_coll.batch_size, 92);
ABI_AT(struct abi_descr_v7, ce_coll.batches, 96);
ABI_AT(struct abi_descr_v7, ce_coll.ce_sequence, 100);
ABI_AT(struct abi_descr_v7, ce_coll.stream, 104);
ABI_AT(struct abi_descr_v7, ce_coll.user_tag, 112);
ABI_PART(struct abi_descr_v7, ce_sync);
ABI_PART(struct abi_descr_v7, ce_batch);
ABI_AT(struct abi_descr_v7, kernel_phase.channel, 24);
ABI_AT(struct abi_descr_v7, kernel_phase.phase, 25);
ABI_AT(struct abi_descr_v7, kernel_phase.name, 32);
ABI_AT(struct abi_descr_v7, kernel_phase.gpu_ns, 40);

union abi_args_v7 {
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
	struct {
		uint64_t gpu_ns;
	} kernel_phase;
};

ABI_SIZE(union abi_args_v7, 8);

ABI_PLUGIN(7, (void **context, uint64_t comm_hash, int *mask, const char *comm_name, int nnodes,
	       int nranks, int rank, abi_log_fn log));

/* Forks of NCCL use this name for larger structs and find NULL past the end of ours. */
struct abi_plugin_v7_padded {
	struct abi_plugin_v7 plugin;
	void *nothing[10];
};

#endif
