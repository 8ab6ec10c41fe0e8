/* Whole operations of the releases that show launches, timed with the simulated GPU's CUDA events. */
#include <time.h>

#include "common/attributes.h"
#include "sim/host.h"
#include "sim/sim_cuda.h"
#include "tests/support/plugin_host.h"
#include "tests/tap.h"

enum { OPERATIONS = 20, DURATION_NS = 300000, PATIENCE_MS = 20000 };

/* The recorder's thread polls. */
static bool are_taken(uint64_t launches)
{
	const struct timespec pause = { .tv_nsec = 1000 * 1000 };

	for (int i = 0; i < PATIENCE_MS; i++) {
		const struct region_header *header = recorder.region.header;

		if (load_relaxed(&header->times_taken) + load_relaxed(&header->times_dropped) >=
		    launches)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

static bool is_timed(const struct op_record *op)
{
	return op->flags & OP_FLAG_CUDA_EVENT && op->time_source == OP_TIME_KERNEL_GPU &&
	       op->state == OP_DONE && op->kernels_started == 0 &&
	       op->gpu_stop_ns - op->gpu_start_ns > DURATION_NS - 1000 &&
	       op->gpu_stop_ns - op->gpu_start_ns < DURATION_NS + 1000;
}

static void operations_have_their_time(int release, int nnodes, unsigned int flags)
{
	struct plugin_host made = plugin_host_watched(release, nnodes, flags, &sim_cuda_watcher);
	struct host_op op = host_op_make(made.comm, OP_ALL_REDUCE, 1 << 20, OP_FLOAT32);
	uint64_t before =
		recorder.region.header->times_taken + recorder.region.header->times_dropped;
	size_t timed = 0, untimed = 0;
	char sentence[96];

	op.duration_ns = DURATION_NS;
	op.has_network = nnodes > 1;
	for (int i = 0; i < OPERATIONS; i++) {
		plugin_host_play(&made, &op);
		/* NCCL takes no call while another thread launches the one before. */
		if (flags & HOST_COMM_NONBLOCKING || i == OPERATIONS - 1)
			host_comm_settle(made.comm);
	}
	EXPECT(are_taken(before + OPERATIONS));
	plugin_host_end(&made);
	for (uint64_t number = 1; number <= OPERATIONS; number++) {
		const struct op_record *record = plugin_host_record(made.id, number);

		timed += is_timed(record);
		untimed += (record->flags & OP_FLAG_NOT_SAMPLED) != 0;
	}
	snprintf(sentence, sizeof(sentence), "release %d, %d nodes, flags %u", release, nnodes,
		 flags);
	/* On a busy machine some were held up between the two events, which says nothing about the GPU. */
	EXPECT_THAT(sentence, timed + untimed == OPERATIONS && timed > OPERATIONS / 2);
}

static void a_stuck_kernel_is_seen(void)
{
	struct plugin_host made = plugin_host_watched(HOST_NCCL_2_30, 1, 0, &sim_cuda_watcher);
	struct host_op op = host_op_make(made.comm, OP_ALL_REDUCE, 1 << 20, OP_FLOAT32);
	uint64_t dropped = recorder.region.header->times_dropped;

	op.stuck = HOST_STUCK_KERNEL_END;
	plugin_host_play(&made, &op);
	host_comm_abort(made.comm);
	host_free(made.host);
	EXPECT_THAT("a launch that never ends has no time",
		    recorder.region.header->times_dropped == dropped + 1 &&
			    plugin_host_record(made.id, 1)->time_source == OP_TIME_NONE);
}

int main(void)
{
	static const int releases[] = { HOST_NCCL_2_28, HOST_NCCL_2_30, HOST_NCCL_2_31 };

	plugin_host_setup("flight");
	setenv("RINGSIDE_TIMES", "all", 1);
	for (size_t i = 0; i < ARRAY_LENGTH(releases); i++) {
		operations_have_their_time(releases[i], 1, 0);
		operations_have_their_time(releases[i], 2, 0);
		operations_have_their_time(releases[i], 1, HOST_COMM_NONBLOCKING);
	}
	EXPECT_EQUAL(recorder.region.header->sampling, SAMPLING_ACTIVE);
	a_stuck_kernel_is_seen();
	return tap_done();
}
