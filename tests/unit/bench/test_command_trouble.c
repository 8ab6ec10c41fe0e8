/* `ringside bench` on the fake GPU: what is refused, and what fails. */
#include "tests/unit/bench/command_main.h"

#include "common/attributes.h"
#include "tests/tap.h"

#define main test_command_trouble_main

/* ---- what is refused --------------------------------------------------------------------------------- */

static const struct stage_case refused[] = {
	{ "an unknown function", NULL, "bench allreduces" },
	{ "a command that is nearly one", NULL, "bench helth" },
	{ "an unknown size", NULL, "bench -s 1Q" },
	{ "an unknown type", NULL, "bench -t quad" },
	{ "an unknown reduction", NULL, "bench -r median" },
	{ "an unknown mode", NULL, "bench --modes slow" },
	{ "no time", NULL, "bench --seconds 0.0009" },
	{ "too much time", NULL, "bench --seconds-per-cell 86400.1" },
	{ "time that is no number", NULL, "bench --seconds 3x" },
	{ "both times", NULL, "bench --seconds 0.001 --seconds-per-cell 86400" },
	{ "an unknown alignment", NULL, "bench --align mpi" },
	{ "an unknown combination of ranks", NULL, "bench --over median" },
	{ "a root that is no rank", NULL, "bench --ranks 2 --root 2" },
	{ "an option of nccl-tests", NULL, "bench -b 8" },
	{ "standard output as a file", NULL, "bench -o -" },
	{ "no call", NULL, "bench -n 0" },
	{ "no rank", NULL, "bench --ranks 0" },
	{ "too many ranks", NULL, "bench --ranks 1025" },
	{ "an unknown way to meet", "RANK=0 WORLD_SIZE=2", "bench --meet here:there" },
	{ "no place to meet", "PMI_RANK=0 PMI_SIZE=2", "bench" },
	{ "a rank that is none", "RANK=3 WORLD_SIZE=3", "bench" },
	{ "a file that cannot be written", NULL, "bench --ranks 1 -o @/no/where.json" },
	{ "measuring options with --from", NULL,
	  "bench --from tests/bench/data/h200-shared.json -s 1K" },
	{ "nothing measured", NULL, "bench --ranks 1 -s 3 -n 1" },
	{ "one GPU, one rank", NULL, "bench -s 4 -n 1" },
	{ "a rank of a job that has one", "RANK=0 WORLD_SIZE=1 LOCAL_RANK=0", "bench -s 4 -n 1" },
	{ "other ranks than the launcher's", "RANK=0 WORLD_SIZE=2 MASTER_ADDR=localhost",
	  "bench --ranks 3" },
	{ "too many files", NULL,
	  "bench -o 1 -o 2 -o 3 -o 4 -o 5 -o 6 -o 7 -o 8 -o 9 -o 10 -o 11 -o 12 -o 13 -o 14 -o 15 "
	  "-o 16 -o 17" },
};

/* ---- what fails -------------------------------------------------------------------------------------- */

#define ONE "bench --ranks 1 -s 4K -n 3"

static const struct stage_case failing[] = {
	{ "no CUDA", "RINGSIDE_CUDA=@/none", ONE },
	{ "no NCCL", "RINGSIDE_NCCL=@/none", ONE },
	{ "no GPU", "FAKE_GPUS=0", ONE },
	{ "too little memory", "FAKE_GPU_MEMORY=1K", ONE },
	{ "the context", "FAKE_CUDA_FAIL=cuDevicePrimaryCtxRetain:1", ONE },
	{ "making it current", "FAKE_CUDA_FAIL=cuCtxSetCurrent:1", ONE },
	{ "the stream", "FAKE_CUDA_FAIL=cuStreamCreate:1", ONE },
	{ "the first event", "FAKE_CUDA_FAIL=cuEventCreate:1", ONE },
	{ "a later event", "FAKE_CUDA_FAIL=cuEventCreate:3", ONE " --modes back-to-back" },
	{ "the kernels", "FAKE_CUDA_FAIL=cuModuleLoadData:0", ONE },
	{ "counting GPUs", "FAKE_CUDA_FAIL=cuDeviceGetCount:1", ONE },
	{ "the name of the GPU", "FAKE_CUDA_FAIL=cuDeviceGetName:1", ONE },
	{ "its id", "FAKE_CUDA_FAIL=cuDeviceGetUuid:1", ONE },
	{ "its address", "FAKE_CUDA_FAIL=cuDeviceGetPCIBusId:1", ONE },
	{ "its memory", "FAKE_CUDA_FAIL=cuDeviceTotalMem_v2:1", ONE },
	{ "its generation", "FAKE_CUDA_FAIL=cuDeviceGetAttribute:1", ONE },
	{ "free memory", "FAKE_CUDA_FAIL=cuMemGetInfo_v2:1", ONE },
	{ "the first buffer", "FAKE_CUDA_FAIL=cuMemAlloc_v2:1", ONE },
	{ "the last buffer", "FAKE_CUDA_FAIL=cuMemAlloc_v2:3", ONE },
	{ "copying a table", "FAKE_CUDA_FAIL=cuMemcpyHtoD_v2:1", ONE },
	{ "clearing memory", "FAKE_CUDA_FAIL=cuMemsetD8Async:1", ONE },
	{ "a kernel", "FAKE_CUDA_FAIL=cuLaunchKernel:1", ONE },
	{ "an event", "FAKE_CUDA_FAIL=cuEventRecord:1", ONE },
	{ "a kernel that reads an invalid address", "FAKE_CUDA_FAIL=cuStreamQuery:9:700", ONE },
	{ "reading the counter of wrong results", "FAKE_CUDA_FAIL=cuMemcpyDtoH_v2:2", ONE },
	{ "graphs without times", "FAKE_CUDA_FAIL=cuStreamBeginCapture_v2:1",
	  ONE " --modes graph" },
	{ "beginning a capture", "FAKE_CUDA_FAIL=cuStreamBeginCapture_v2:2", ONE " --modes graph" },
	{ "ending a capture", "FAKE_CUDA_FAIL=cuStreamEndCapture:2", ONE " --modes graph" },
	{ "making a graph", "FAKE_CUDA_FAIL=cuGraphInstantiateWithFlags:2", ONE " --modes graph" },
	{ "launching a graph", "FAKE_CUDA_FAIL=cuGraphLaunch:2", ONE " --modes graph" },
	{ "the communicator", "FAKE_NCCL_FAIL=ncclCommInitRank:1:2", ONE },
	{ "its id", "FAKE_NCCL_FAIL=ncclGetUniqueId:1:2", ONE },
	{ "a call", "FAKE_NCCL_FAIL=ncclAllReduce:4:3", ONE },
	{ "an algorithm that is not there", "NCCL_ALGO=NVLS", ONE },
	{ "a rank that dies", "FAKE_NCCL_DIE=1:4", "bench --ranks 2 -s 4K -n 3" },
	{ "a rank that dies while a graph is captured", "FAKE_NCCL_DIE=1:5",
	  "bench --ranks 2 -s 4K --modes graph" },
	{ "a wrong Scatter", "FAKE_NCCL_WRONG=Scatter:2",
	  "bench --ranks 3 -s 4K -n 1 scatter gather >/dev/null" },
};

int main(void)
{
	struct stage stage;

	stage_open(&stage);
	stage_run(&stage, bench_main, refused, ARRAY_LENGTH(refused));
	EXPECT_THAT("complaints as in command_refused.txt",
		    stage_is_expected(&stage, "tests/unit/bench/expected/command_refused.txt"));
	stage_run(&stage, bench_main, failing, ARRAY_LENGTH(failing));
	EXPECT_THAT("failures as in command_failing.txt",
		    stage_is_expected(&stage, "tests/unit/bench/expected/command_failing.txt"));
	sink_release(&stage.text);
	return tap_done();
}
