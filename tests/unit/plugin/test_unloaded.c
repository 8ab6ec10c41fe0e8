/*
 * A first NCCL is unloaded while its communicator is open, and a second one goes on: whatever the first passed to a callback (the
 * places for context, mask and handle, descriptors, texts) is gone once the callback has returned, so nobody may read or write it later.
 */
#include <sys/mman.h>

#include "tests/unit/plugin/callback_play.h"
#include "tests/tap.h"

static struct nccl_memory {
	void *context, *handle;
	int mask;
	struct abi_descr_v5 descr;
	union abi_args_v5 args;
	char comm[32], function[32], datatype[32], algorithm[32], protocol[32];
} * nccl;

static void open_memory(void)
{
	mprotect(nccl, sizeof(*nccl), PROT_READ | PROT_WRITE);
}

static void close_memory(void)
{
	mprotect(nccl, sizeof(*nccl), PROT_NONE);
}

static void *start(void *context, uint64_t type, void *parent)
{
	void *handle;

	open_memory();
	nccl->descr.type = type;
	nccl->descr.parent = parent;
	ncclProfiler_v5.start_event(context, &nccl->handle, &nccl->descr);
	handle = nccl->handle;
	memset(&nccl->descr, 0, sizeof(nccl->descr));
	close_memory();
	return handle;
}

static void all_reduce(void *context)
{
	void *group = start(context, ABI_GROUP_API, NULL), *api, *task, *kernel;

	open_memory();
	nccl->descr.coll_api.function = nccl->function;
	nccl->descr.coll_api.count = 8;
	nccl->descr.coll_api.datatype = nccl->datatype;
	api = start(context, ABI_COLL_API, group);
	ncclProfiler_v5.stop_event(api);
	open_memory();
	nccl->descr.coll.function = nccl->function;
	nccl->descr.coll.count = 8;
	nccl->descr.coll.datatype = nccl->datatype;
	nccl->descr.coll.algorithm = nccl->algorithm;
	nccl->descr.coll.protocol = nccl->protocol;
	nccl->descr.coll.channels = 1;
	task = start(context, ABI_COLL, api);
	ncclProfiler_v5.stop_event(task);
	ncclProfiler_v5.stop_event(group);
	open_memory();
	nccl->descr.kernel_ch.gpu_ns = play_gpu_now();
	kernel = start(context, ABI_KERNEL_CH, task);
	open_memory();
	nccl->args.kernel_ch.gpu_ns = play_gpu_now();
	ncclProfiler_v5.record_event_state(kernel, ABI_KERNEL_CH_STOP, &nccl->args);
	close_memory();
	ncclProfiler_v5.stop_event(kernel);
}

static void *begin(void)
{
	void *context;

	nccl = mmap(NULL, sizeof(*nccl), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (nccl == MAP_FAILED)
		abort();
	*nccl = (struct nccl_memory){ .comm = "first",
				      .function = "AllReduce",
				      .datatype = "ncclFloat32",
				      .algorithm = "RING",
				      .protocol = "SIMPLE" };
	ncclProfiler_v5.init(&nccl->context, 1, &nccl->mask, nccl->comm, 1, 2, 0, NULL);
	context = nccl->context;
	close_memory();
	return context;
}

int main(void)
{
	void *first = begin(), *second;

	for (int i = 0; i < 100; i++)
		all_reduce(first);
	munmap(nccl, sizeof(*nccl));
	second = play_init(2, 1, 2, 0);
	for (int i = 0; i < 300; i++)
		play_issue(second, "AllReduce", 16, "ncclFloat32", 1);
	ncclProfiler_v5.stop_event(play_p2p_api(
		second, play_start(second, (struct abi_descr_v5){ .type = ABI_GROUP_API }), "Send",
		4));
	EXPECT_THAT("a communicator whose NCCL is gone harms nobody", play_record(1)->count == 16);
	/* Its NCCL may still call, from a thread that was late. */
	ncclProfiler_v5.finalize(first);
	ncclProfiler_v5.finalize(second);
	return tap_done();
}
