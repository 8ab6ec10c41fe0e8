/*
 * One NCCL kernel on a stream: the calls of one group on one communicator. It runs repeatedly if it was captured
 * into a graph.
 */
#include "tests/fake_gpu/fake_kernel_run.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/op.h"
#include "common/order.h"
#include "tests/fake_gpu/fake_number.h"
#include "tests/fake_gpu/fake_show.h"
#include "tests/fake_gpu/fake_stream.h"

struct kernel {
	struct ncclComm *comm;
	struct fake_shown *shown;
	bool is_captured;
	size_t count;
	struct fake_call calls[];
};

/* FAKE_NCCL_WRONG=AllReduce:rank */
static void result_spoil(const struct fake_call *call)
{
	const char *text = getenv("FAKE_NCCL_WRONG"), *name = op_function_name(call->function);
	size_t length = strlen(name), width = fake_type_bytes(call->type);

	if (text == NULL || strncmp(text, name, length) != 0 || text[length] != ':' ||
	    strtol(text + length + 1, NULL, 10) != call->comm->rank || call->recv == NULL ||
	    call->count == 0)
		return;
	((unsigned char *)call->recv)[call->count / 2 * width] ^= 0xff;
}

static void hang(const struct ncclComm *comm)
{
	while (!load_relaxed(&comm->is_aborted))
		(void)nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
}

static int kernel_move(const struct kernel *kernel, uint64_t *ready_ns, uint64_t *duration_ns)
{
	bool has_pairs = false;

	for (size_t i = 0; i < kernel->count; i++) {
		const struct fake_call *call = &kernel->calls[i];

		if (call->hangs)
			hang(kernel->comm);
		if (fake_is_pairs(call->function)) {
			has_pairs = true;
			continue;
		}
		if (fake_collective_run(call, ready_ns) != 0)
			return -1;
		*duration_ns += call->choice.duration_ns;
	}
	if (has_pairs) {
		*duration_ns += fake_pairs_duration(kernel->calls, kernel->count);
		if (fake_pairs_run(kernel->calls, kernel->count, ready_ns) != 0)
			return -1;
	}
	for (size_t i = 0; i < kernel->count; i++)
		result_spoil(&kernel->calls[i]);
	return 0;
}

static int kernel_run(void *arg, struct CUstream_st *stream)
{
	struct kernel *kernel = arg;
	uint64_t begin_ns = fake_stream_time(stream), ready_ns = fake_clock(), duration_ns = 0;

	if (load_relaxed(&kernel->comm->is_aborted))
		return 0;
	if (kernel->is_captured)
		fake_shown_replay(kernel->shown);
	if (kernel_move(kernel, &ready_ns, &duration_ns) != 0)
		return 0; /* aborted: the stream continues, as with NCCL */
	fake_stream_pass(stream, ready_ns, duration_ns);
	fake_shown_end(kernel->shown, fake_stream_time(stream) - begin_ns);
	return 0;
}

static void kernel_release(void *arg)
{
	struct kernel *kernel = arg;

	/* If the communicator has ended, so has everything shown of it. */
	if (!load_relaxed(&kernel->comm->is_aborted))
		fake_shown_drop(kernel->shown);
	fake_comm_drop(kernel->comm);
	free(kernel);
}

static struct kernel *kernel_new(const struct fake_call *calls, size_t count)
{
	struct kernel *kernel = malloc(sizeof(*kernel) + count * sizeof(kernel->calls[0]));
	struct ncclComm *comm = calls[0].comm;

	if (kernel == NULL)
		return NULL;
	*kernel = (struct kernel){
		.comm = comm,
		.is_captured = fake_stream_is_capturing(calls[0].stream),
		.count = count,
	};
	memcpy(kernel->calls, calls, count * sizeof(kernel->calls[0]));
	add_relaxed(&comm->references, 1);
	kernel->shown = fake_shown_new(comm->show, count, kernel->is_captured);
	return kernel;
}

struct launch {
	struct kernel *kernel;
	int result;
};

static void kernel_launch(void *arg)
{
	struct launch *launch = arg;
	struct kernel *kernel = launch->kernel;
	struct fake_work work = { .run = kernel_run, .release = kernel_release, .arg = kernel };

	launch->result = fake_stream_launch(kernel->calls[0].stream, &work);
}

/* By default, as in NCCL. */
static bool is_mixing(const struct kernel *kernel)
{
	const char *setting = getenv("NCCL_GRAPH_MIXING_SUPPORT");

	return kernel->is_captured && (setting == NULL || strcmp(setting, "0") != 0);
}

nccl_result fake_kernel_launch(const struct fake_call *calls, size_t count)
{
	struct ncclComm *comm = calls[0].comm;
	struct launch launch = { .result = 0 };
	bool is_ordered;

	for (size_t i = 1; i < count; i++) {
		if (calls[i].stream != calls[0].stream)
			return fake_nccl_fail(FAKE_NCCL_INVALID_USAGE,
					      "one communicator on two streams in a group");
	}
	launch.kernel = kernel_new(calls, count);
	if (launch.kernel == NULL)
		return fake_nccl_fail(FAKE_NCCL_SYSTEM_ERROR, "out of memory");
	is_ordered = is_mixing(launch.kernel);
	if (is_ordered)
		fake_capture_order_before(calls[0].stream, &comm->order);
	fake_shown_play(launch.kernel->shown, calls, count, kernel_launch, &launch);
	if (launch.result != 0) {
		/* What was shown of it never ends, but goes with the communicator. */
		launch.kernel->shown = NULL;
		kernel_release(launch.kernel);
		return fake_nccl_fail(FAKE_NCCL_CUDA_ERROR, "the stream rejected the kernel");
	}
	if (is_ordered)
		fake_capture_order_after(calls[0].stream, &comm->order);
	return 0;
}
