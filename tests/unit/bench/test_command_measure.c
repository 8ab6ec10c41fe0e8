/* `ringside bench` on the fake GPU: what is measured, what is printed, what is refused. */
#include "tests/unit/bench/command_stage.h"

#include "common/attributes.h"
#include "tests/tap.h"

#undef main
#define main bench_main
#include "bench/bench_main.c"
#undef main
#define main test_command_measure_main

/* ---- what was measured, cell by cell ------------------------------------------------------------- */

/* Host times differ each time: they are only set, or 0, and in order. */
static void show_calls(struct sink *sink, const struct bench_cell *cell, int32_t rank)
{
	uint64_t before = 0;
	bool is_ordered = true, is_issued = true, is_done = true, is_never_done = true;

	sink_format(sink, "  rank %d:", (int)rank);
	for (uint32_t i = 0; i < cell->calls; i++) {
		const struct bench_call *call = bench_cell_call(cell, rank, i);

		is_ordered &= call->begin_ns >= before;
		is_issued &= call->issue_ns > 0;
		is_done &= call->done_ns > 0;
		is_never_done &= call->done_ns == 0;
		before = call->begin_ns;
		if (cell->mode != BENCH_LOOP)
			sink_format(sink, " %llu", (unsigned long long)call->gpu_ns);
	}
	sink_format(sink, "%s%s%s\n", is_ordered ? "" : ", out of order",
		    is_issued ? "" : ", not issued",
		    is_done	    ? ", with the end"
		    : is_never_done ? ""
				    : ", partly with the end");
}

static void show_cell(struct sink *sink, const struct bench_cell *cell)
{
	char words[BENCH_CELL_TEXT];

	sink_format(sink,
		    "%s, %s: %llu elements, %llu bytes, root %d; %u calls, %u warm-up, %u checks, "
		    "%u aligned, %u captured, %s%s",
		    bench_cell_words(words, cell), bench_mode_name(cell->mode),
		    (unsigned long long)cell->count, (unsigned long long)cell->bytes,
		    (int)cell->root, cell->calls, cell->warmups, cell->checks, cell->aligns,
		    cell->captured, cell->loop_ns > 0 ? "one time for all, " : "",
		    cell->is_grouped_sends ? "Sends and Recvs, " : "");
	if (cell->wrong == BENCH_UNCHECKED)
		sink_text(sink, "not checked\n");
	else
		sink_format(sink, "%llu wrong\n", (unsigned long long)cell->wrong);
	for (int32_t rank = 0; cell->calls_of != NULL && rank < cell->nranks; rank++)
		show_calls(sink, cell, rank);
}

static void show_run(struct stage *stage, const char *name)
{
	struct bench_run run;
	char path[200];

	text_format(path, sizeof(path), "%s/%s", stage->directory, name);
	sink_format(&stage->text, "=== %s\n", name);
	if (bench_recall(&run, path) != 0)
		return;
	sink_format(&stage->text, "launcher %s, NCCL %d, CUDA %d, %d nodes%s%s, ranks on GPUs",
		    run.launcher, run.nccl_version, run.cuda_version, (int)run.nodes,
		    run.is_gpu_shared ? ", shared GPUs" : "", run.is_mps ? ", MPS" : "");
	for (int32_t i = 0; i < run.nranks; i++)
		sink_format(&stage->text, " %d", (int)run.ranks[i].device);
	sink_text(&stage->text, "\n");
	for (size_t i = 0; i < run.note_count; i++)
		sink_format(&stage->text, "note: %s\n", run.notes[i]);
	for (size_t i = 0; i < run.cell_count; i++)
		show_cell(&stage->text, &run.cells[i]);
	bench_run_release(&run);
}

/* ---- every function, mode and place ---------------------------------------------------------------- */

static const struct stage_case measured[] = {
	{ "every function, on GPUs of their own", "FAKE_GPUS=3",
	  "bench all --ranks 3 -s 3000,40 -n 3 --warmup 2 --root 1 -o @/functions.json" },
	{ "every mode, on one GPU", NULL,
	  "bench --ranks 2 --modes all -s 4K -n 7 --graph-calls 3 --align nccl --no-mps "
	  "-o @/modes.json >/dev/null" },
	{ "an NCCL without AlltoAll, Gather and Scatter",
	  "RINGSIDE_NCCL=@/libnccl-old.so.2 FAKE_GPUS=2",
	  "bench alltoall gather scatter --ranks 2 -s 4K -n 2 --warmup 0 --align none "
	  "-o @/older.json" },
	{ "types and reductions, more ranks than GPUs", "FAKE_GPUS=2",
	  "bench allreduce reduce --no-mps --ranks 3 -t int8,bfloat16,float64 -r all -s 120 -n 1 "
	  "--warmup 0 "
	  "--in-place --out-of-place -o @/types.json" },
	{ "a single rank", "FAKE_GPUS=2",
	  "bench -s 1K,2K -n 2 --ranks 1 --no-check -o @/one.json" },
	{ "less memory than was asked for", "FAKE_GPU_MEMORY=4M FAKE_GPUS=2",
	  "bench --ranks 2 -s 1M,8M,3 -n 1 -o @/memory.json" },
	{ "wrong results are counted", "FAKE_NCCL_WRONG=Broadcast:1 FAKE_GPUS=2",
	  "bench --ranks 2 broadcast allreduce -s 1K,4K -n 1 -o @/wrong.json" },
	{ "the user's algorithm", "NCCL_ALGO=Ring NCCL_PROTO=LL FAKE_GPUS=2",
	  "bench --ranks 2 -s 30000 -n 4 --percentiles --histogram --over max -o @/ring.json" },
};

static void every_function_is_measured(struct stage *stage)
{
	static const char *const names[] = { "functions.json", "modes.json", "older.json",
					     "types.json",     "one.json",   "memory.json",
					     "wrong.json",     "ring.json" };
	char from[4200], to[200];

	text_format(from, sizeof(from), "%s/tests/fake_gpu/libnccl-old.so.2", stage->build);
	text_format(to, sizeof(to), "%s/libnccl-old.so.2", stage->directory);
	if (symlink(from, to) == -1)
		abort();
	stage_run(stage, bench_main, measured, ARRAY_LENGTH(measured));
	EXPECT_THAT("output as in command_measure.txt",
		    stage_is_expected(stage, "tests/unit/bench/expected/command_measure.txt"));
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		show_run(stage, names[i]);
	EXPECT_THAT("cells as in command_cells.txt",
		    stage_is_expected(stage, "tests/unit/bench/expected/command_cells.txt"));
}

/* ---- ranks of launchers --------------------------------------------------------------------------------- */

#define TINY "bench allreduce alltoall -s 4K -n 2"
#define TORCHRUN(rank)                                                         \
	"RANK=" #rank " WORLD_SIZE=3 LOCAL_RANK=" #rank " LOCAL_WORLD_SIZE=3 " \
	"TORCHELASTIC_RUN_ID=7 FAKE_GPUS=3"
#define OPEN_MPI(rank)                                                                            \
	"OMPI_COMM_WORLD_RANK=" #rank " OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=" #rank \
	" OMPI_COMM_WORLD_LOCAL_SIZE=2 TMPDIR=@ FAKE_GPUS=2"
#define HYDRA(rank) \
	"PMI_RANK=" #rank " PMI_SIZE=2 MPI_LOCALRANKID=" #rank " MPI_LOCALNRANKS=2 FAKE_GPUS=2"
#define SLURM(rank)                                                                      \
	"SLURM_PROCID=" #rank " SLURM_NTASKS=2 SLURM_LOCALID=" #rank " SLURM_STEP_ID=0 " \
	"SLURM_JOB_ID=9 SLURM_NODEID=0 SLURM_STEP_NODELIST=node[1-2] "                   \
	"SLURM_STEP_TASKS_PER_NODE=2 FAKE_GPUS=2"

/* Ranks of a job are in succession: they run at the same time. */
static const struct stage_case launched[] = {
	{ "torchrun, rank 0", TORCHRUN(0), TINY " --meet @/torchrun -o @/torchrun.json" },
	{ "torchrun, rank 1", TORCHRUN(1), TINY " --meet @/torchrun" },
	{ "torchrun, rank 2", TORCHRUN(2), TINY " --meet @/torchrun" },
	{ "mpirun, rank 1: the parent is the same", OPEN_MPI(1), TINY },
	{ "mpirun, rank 0", OPEN_MPI(0), TINY },
	{ "mpiexec, rank 0", HYDRA(0), TINY " --meet @/hydra --json -o @/hydra.json >/dev/null" },
	{ "mpiexec, rank 1", HYDRA(1), TINY " --meet @/hydra --json" },
	{ "srun, rank 0", SLURM(0), TINY " --meet @/slurm -o @/slurm.json" },
	{ "srun, rank 1", SLURM(1), TINY " --meet @/slurm" },
	{ "rank 1 dies, rank 0 reports it", HYDRA(0) " FAKE_NCCL_DIE=1:0", TINY " --meet @/die" },
	{ "rank 1 dies", HYDRA(1) " FAKE_NCCL_DIE=1:0", TINY " --meet @/die" },
};

/* ---- MPS ------------------------------------------------------------------------------------------------ */

static const struct stage_case shared[] = {
	{ "MPS is started for ranks that share a GPU, and ended", "PATH=@/mps:/usr/bin:/bin",
	  "bench --ranks 2 -s 4K -n 1" },
	{ "MPS that cannot be started", "PATH=@/mps:/usr/bin:/bin MPS_FAIL=1",
	  "bench --ranks 2 -s 4K -n 1" },
	{ "MPS is not wanted", "PATH=@/mps:/usr/bin:/bin", "bench --ranks 2 -s 4K -n 1 --no-mps" },
	{ "MPS is not needed", "PATH=@/mps:/usr/bin:/bin FAKE_GPUS=2",
	  "bench --ranks 2 -s 4K -n 1" },
};

static const char control[] = "#!/bin/sh\n"
			      "[ -d \"$CUDA_MPS_PIPE_DIRECTORY\" ] && there=there\n"
			      "echo \"options '$*', input '$(cat)', pipe is $there\" "
			      ">>\"$0\".log\n"
			      "exit ${MPS_FAIL:-0}\n";

static void mps_is_used(struct stage *stage)
{
	char path[200], *log;
	FILE *file;

	text_format(path, sizeof(path), "%s/mps", stage->directory);
	if (mkdir(path, 0755) == -1)
		abort();
	text_format(path, sizeof(path), "%s/mps/nvidia-cuda-mps-control", stage->directory);
	file = fopen(path, "we");
	if (file == NULL || fputs(control, file) == EOF || fclose(file) != 0 ||
	    chmod(path, 0755) == -1)
		abort();
	for (size_t i = 0; i < ARRAY_LENGTH(shared); i++) {
		text_format(path, sizeof(path), "%s/mps/nvidia-cuda-mps-control.log",
			    stage->directory);
		unlink(path);
		stage_run(stage, bench_main, &shared[i], 1);
		log = stage_file(path);
		sink_format(&stage->text, "--- control\n%s", log);
		free(log);
	}
	EXPECT_THAT("MPS as in command_mps.txt",
		    stage_is_expected(stage, "tests/unit/bench/expected/command_mps.txt"));
}

/* ---- what is shown again ----------------------------------------------------------------------------- */

static const struct stage_case recalled[] = {
	{ "with a model", NULL, "bench --from tests/bench/data/h200-shared.json --model" },
	{ "the median, over the fastest rank", NULL,
	  "bench --from tests/bench/data/h200-shared.json --median --over min" },
	{ "too few sizes for a model", NULL, "bench --from @/functions.json --model --over max" },
	{ "percentiles and histograms", NULL,
	  "bench --from tests/bench/data/h200-shared.json --percentiles --histogram" },
	{ "the measurement of a health check", NULL, "bench --from tests/bench/health.json" },
	{ "wrong results are wrong again", NULL, "bench --from @/wrong.json -o @/wrong.txt" },
	{ "another kind of file", NULL, "bench --from Makefile" },
	{ "no file", NULL, "bench --from @/none.json" },
	{ "a file that cannot be written", NULL, "bench --from @/ring.json -o @/no/where.txt" },
};

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
	{ "measuring options with --from", NULL, "bench --from @/ring.json -s 1K" },
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
	every_function_is_measured(&stage);
	stage_run(&stage, bench_main, launched, ARRAY_LENGTH(launched));
	show_run(&stage, "torchrun.json");
	show_run(&stage, "hydra.json");
	show_run(&stage, "slurm.json");
	EXPECT_THAT("jobs of launchers as in command_launched.txt",
		    stage_is_expected(&stage, "tests/unit/bench/expected/command_launched.txt"));
	mps_is_used(&stage);
	stage_run(&stage, bench_main, recalled, ARRAY_LENGTH(recalled));
	EXPECT_THAT("earlier results as in command_recalled.txt",
		    stage_is_expected(&stage, "tests/unit/bench/expected/command_recalled.txt"));
	stage_run(&stage, bench_main, refused, ARRAY_LENGTH(refused));
	EXPECT_THAT("complaints as in command_refused.txt",
		    stage_is_expected(&stage, "tests/unit/bench/expected/command_refused.txt"));
	stage_run(&stage, bench_main, failing, ARRAY_LENGTH(failing));
	EXPECT_THAT("failures as in command_failing.txt",
		    stage_is_expected(&stage, "tests/unit/bench/expected/command_failing.txt"));
	sink_release(&stage.text);
	return tap_done();
}
