/*
 * A deliberately bad profiler: it writes a log like NCCL Inspector's, and
 *
 *	LOSSY_DROP=N	omits every Nth collective of a size; default 4, 0: none
 *	LOSSY_SILENT=1	writes nothing at all
 *	LOSSY_CRASH=N	ends the process with SIGSEGV at its Nth collective
 *	LOSSY_HANG=1	never returns from its first communicator
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/order.h"
#include "plugin/abi_v5.h"

static struct {
	FILE *log;
	char host[64];
	uint64_t comm_hash;
	int rank, nranks, nnodes;
	uint64_t collectives;
	/* By the logarithm of their size: in which order threads call them is not the same in every run. */
	uint64_t of_size[64];
} lossy;

/* A real fault: a thread that blocks signals would ignore a raised one. */
static volatile int *nowhere;

static uint64_t setting(const char *name, uint64_t standard)
{
	const char *value = getenv(name);

	return value ? strtoull(value, NULL, 10) : standard;
}

static int init(void **context, uint64_t comm_hash, int *mask, const char *comm_name, int nnodes,
		int nranks, int rank, abi_log_fn log)
{
	const char *directory = getenv("NCCL_INSPECTOR_DUMP_DIR");
	char path[4096];

	(void)comm_name, (void)log;
	while (setting("LOSSY_HANG", 0))
		pause();
	gethostname(lossy.host, sizeof(lossy.host) - 1);
	snprintf(path, sizeof(path), "%s/%s-pid%d.log", directory ? directory : ".", lossy.host,
		 (int)getpid());
	if (!setting("LOSSY_SILENT", 0))
		lossy.log = fopen(path, "a");
	lossy.comm_hash = comm_hash;
	lossy.rank = rank;
	lossy.nranks = nranks;
	lossy.nnodes = nnodes;
	*context = &lossy;
	/* NCCL shows replays of graphs only if kernels are requested. */
	*mask = ABI_COLL | ABI_KERNEL_CH;
	return NCCL_SUCCESS;
}

static size_t type_bytes(const char *datatype)
{
	return strstr(datatype, "64")	? 8
	       : strstr(datatype, "32") ? 4
	       : strstr(datatype, "16") ? 2
					: 1;
}

static void write_line(const struct abi_descr_v5 *descr)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	fprintf(lossy.log,
		"{\"header\":{\"id\":\"0x%" PRIx64 "\",\"rank\":%d,\"n_ranks\":%d,\"nnodes\":%d},"
		"\"metadata\":{\"inspector_output_format_version\":\"v4.0\",\"git_rev\":\"\","
		"\"rec_mechanism\":\"profiler_plugin\",\"dump_timestamp_us\":%" PRIu64
		",\"hostname\":\"%s\",\"pid\":%d},"
		"\"coll_perf\":{\"coll\":\"%s\",\"coll_sn\":%" PRIu64
		",\"coll_msg_size_bytes\":%zu,\"coll_exec_time_us\":25,"
		"\"coll_algobw_gbs\":1.0,\"coll_busbw_gbs\":1.0,\"coll_timing_source\":\"kernel_"
		"gpu\"}}\n",
		lossy.comm_hash, lossy.rank, lossy.nranks, lossy.nnodes,
		(uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000, lossy.host,
		(int)getpid(), descr->coll.function, descr->coll.sequence,
		descr->coll.count * type_bytes(descr->coll.datatype));
}

static int start_event(void *context, void **handle, struct abi_descr_v5 *descr)
{
	uint64_t drop = setting("LOSSY_DROP", 4), number, bytes;

	*handle = context;
	if (descr->type != ABI_COLL)
		return NCCL_SUCCESS;
	number = add_relaxed(&lossy.collectives, 1) + 1;
	if (number == setting("LOSSY_CRASH", 0))
		*nowhere = 1;
	bytes = descr->coll.count * type_bytes(descr->coll.datatype);
	number = add_relaxed(&lossy.of_size[bytes > 0 ? 63 - __builtin_clzll(bytes) : 0], 1) + 1;
	if (lossy.log && (drop == 0 || number % drop != 0))
		write_line(descr);
	return NCCL_SUCCESS;
}

static int stop_event(void *handle)
{
	(void)handle;
	return NCCL_SUCCESS;
}

static int record_event_state(void *handle, int state, union abi_args_v5 *args)
{
	(void)handle, (void)state, (void)args;
	return NCCL_SUCCESS;
}

static int finalize(void *context)
{
	(void)context;
	if (lossy.log)
		fflush(lossy.log);
	return NCCL_SUCCESS;
}

EXPORTED extern const struct abi_plugin_v5 ncclProfiler_v5;
const struct abi_plugin_v5 ncclProfiler_v5 = {
	.name = "lossy",
	.init = init,
	.start_event = start_event,
	.stop_event = stop_event,
	.record_event_state = record_event_state,
	.finalize = finalize,
};
