/* `ringside bench` under launchers, and with MPS, on the fake GPU. */
#include "tests/unit/bench/command_main.h"

#include "common/attributes.h"
#include "tests/tap.h"

#define main test_command_launched_main

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
	{ "a job of one rank may start two", "RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 FAKE_GPUS=2",
	  TINY " --ranks 2 -o @/two.json" },
	{ "or stay one", "RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 FAKE_GPUS=2",
	  TINY " --ranks 1 -o @/one.json" },
	{ "the GPU of rank 1 fails, rank 0 reports it", HYDRA(0), TINY " --meet @/fail" },
	{ "the GPU of rank 1 fails", HYDRA(1) " FAKE_CUDA_FAIL=cuMemAlloc_v2:1",
	  TINY " --meet @/fail" },
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

int main(void)
{
	struct stage stage;

	stage_open(&stage);
	stage_run(&stage, bench_main, launched, ARRAY_LENGTH(launched));
	show_run(&stage, "torchrun.json");
	show_run(&stage, "hydra.json");
	show_run(&stage, "slurm.json");
	show_run(&stage, "two.json");
	show_run(&stage, "one.json");
	EXPECT_THAT("jobs of launchers as in command_launched.txt",
		    stage_is_expected(&stage, "tests/unit/bench/expected/command_launched.txt"));
	mps_is_used(&stage);
	sink_release(&stage.text);
	return tap_done();
}
