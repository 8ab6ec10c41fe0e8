/*
 * The host of src/sim with the plugin linked in: whole operations of any release of NCCL, and the
 * resulting records.
 */
#ifndef PLUGIN_HOST_H
#define PLUGIN_HOST_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/abi_v7.h"
#include "plugin/recorder.h"
#include "sim/host.h"
#include "tests/support/scratch.h"

extern const struct abi_plugin_v1 ncclProfiler_v1;
extern const struct abi_plugin_v2 ncclProfiler_v2;
extern const struct abi_plugin_v3 ncclProfiler_v3;
extern const struct abi_plugin_v4 ncclProfiler_v4;
extern const struct abi_plugin_v5 ncclProfiler_v5;
extern const struct abi_plugin_v6 ncclProfiler_v6;
extern const struct abi_plugin_v7_padded ncclProfiler_v7;

static const struct host_linked plugin_linked = {
	.v1 = &ncclProfiler_v1,
	.v2 = &ncclProfiler_v2,
	.v3 = &ncclProfiler_v3,
	.v4 = &ncclProfiler_v4,
	.v5 = &ncclProfiler_v5,
	.v6 = &ncclProfiler_v6,
	.v7 = &ncclProfiler_v7.plugin,
};

struct plugin_host {
	struct host *host;
	struct host_comm *comm;
	struct host_user user;
	uint32_t id; /* the recorder's number of the communicator */
};

/* A fresh directory for this test, for region and trace. */
static inline const char *plugin_host_setup(const char *mode)
{
	const char *dir = scratch_make();

	setenv("RINGSIDE_SHM", dir, 1);
	setenv("RINGSIDE_DIR", dir, 1);
	setenv("RINGSIDE_MODE", mode, 1);
	return dir;
}

static inline struct region_comm *plugin_host_comm(uint32_t id)
{
	for (uint32_t i = 0; i < recorder.region.comm_count; i++)
		if (recorder.region.comms[i].info.id == id)
			return &recorder.region.comms[i];
	return NULL;
}

static inline uint32_t plugin_host_id(const struct host_comm *comm)
{
	struct comm_state *state = hot_comm(host_comm_context(comm));

	return state != NULL ? state->shared->info.id : 0;
}

/* `watcher`: sim_cuda_watcher for a CUDA driver, or NULL. `flags`: enum host_comm_flag. */
static inline struct plugin_host plugin_host_watched(int release, int nnodes, unsigned int flags,
						     const struct host_watcher *watcher)
{
	struct host_config config = {
		.release = release, .linked = &plugin_linked, .seed = 7, .watcher = watcher
	};
	struct host_comm_config comm = {
		.hash = 0xabcdef, .nnodes = nnodes, .nranks = 4, .rank = 1, .flags = flags
	};
	struct plugin_host made = { 0 };

	if (host_new(&made.host, &config) != OK ||
	    host_comm_new(made.host, &made.comm, &comm) != OK)
		abort();
	made.id = plugin_host_id(made.comm);
	return made;
}

/* Kernel events are requested regardless of this host's /dev/shm. */
static inline struct plugin_host plugin_host_new(int release, bool has_kernel_events, int nnodes)
{
	struct plugin_host made = plugin_host_watched(release, nnodes, 0, NULL);

	if (has_kernel_events) {
		*host_mask(made.host) |= ABI_KERNEL_CH;
		hot_comm(host_comm_context(made.comm))->expects_kernels = true;
	} else
		*host_mask(made.host) &= ~ABI_KERNEL_CH;
	return made;
}

static inline void plugin_host_play(struct plugin_host *made, const struct host_op *op)
{
	if (host_play(&made->user, op) != OK)
		abort();
}

static inline void plugin_host_end(struct plugin_host *made)
{
	host_comm_destroy(made->comm);
	host_free(made->host);
}

/* The finished record of the communicator's n-th operation; all zeros if it is not in the ring. */
static inline const struct op_record *plugin_host_record(uint32_t id, uint64_t number)
{
	static const struct op_record nothing;

	for (uint32_t i = 0; i < recorder.region.ring_count; i++)
		if (recorder.region.ring[i].comm == id && recorder.region.ring[i].number == number)
			return &recorder.region.ring[i];
	return &nothing;
}

/*
 * How many finished records of it are in the ring, of one function or, with OP_FUNCTIONS, of all.
 */
static inline uint64_t plugin_host_records(uint32_t id, unsigned int function)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < recorder.region.ring_count; i++) {
		const struct op_record *op = &recorder.region.ring[i];

		count += op->sequence != 0 && op->comm == id &&
			 (function == OP_FUNCTIONS || op->function == function);
	}
	return count;
}

/* Total of what was lost, including details. */
static inline uint64_t plugin_host_lost(void)
{
	uint64_t lost = 0;

	for (int i = 0; i < LOST_REASONS; i++)
		lost += recorder.region.header->lost[i];
	return lost;
}

#endif
