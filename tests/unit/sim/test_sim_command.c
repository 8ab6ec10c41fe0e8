/*
 * Command lines of `ringside sim`, run in processes of their own: what they print, and what is in the files that
 * they write. Simulated jobs are computed with whole numbers, so every number is the same everywhere.
 */
#include "tests/tap.h"

#include <sys/mman.h>
#include <sys/wait.h>

#undef main
#define main sim_main
#include "sim/sim_main.c"
#undef main
#define main test_sim_command_main

#include "tests/support/expected_output.h"
#include "tests/support/scratch.h"
#include "tests/unit/sim/sim_files_show.h"

enum { ARGUMENTS_MAX = 64 };

/* Splits the line at its blanks. */
static int arguments_of(char *line, char *arguments[ARGUMENTS_MAX])
{
	int count = 0;

	for (char *rest, *word = strtok_r(line, " ", &rest); word;
	     word = strtok_r(NULL, " ", &rest))
		arguments[count++] = word;
	arguments[count] = NULL;
	return count;
}

/* Its output and exit code. */
static void show_command(struct sink *sink, const char *words)
{
	char line[1024], output[1 << 15], *arguments[ARGUMENTS_MAX];
	int fd = memfd_create("output", MFD_CLOEXEC), status = -1;
	ssize_t length;
	pid_t child;

	snprintf(line, sizeof(line), "ringside-sim %s", words);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		if (chdir(scratch_dir.path) == -1)
			_exit(99);
		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
		optind = 0;
		status = sim_main(arguments_of(line, arguments), arguments);
		fflush(NULL);
		_exit(status);
	}
	if (child == -1 || waitpid(child, &status, 0) != child)
		abort();
	length = pread(fd, output, sizeof(output) - 1, 0);
	close(fd);
	output[length > 0 ? length : 0] = '\0';
	sink_format(sink, "=== %s\n%s", words, output);
	if (!WIFEXITED(status))
		sink_format(sink, "signal %d\n", WTERMSIG(status));
	else if (WEXITSTATUS(status) != 0)
		sink_format(sink, "exit %d\n", WEXITSTATUS(status));
}

/* With the files that an offline job writes. */
static void show_job(struct sink *sink, const char *words, bool is_detailed)
{
	char line[1024], files[128];

	snprintf(line, sizeof(line), "--offline --seed 7 -o files --gpus 2 %s", words);
	snprintf(files, sizeof(files), "%s/files", scratch_dir.path);
	show_command(sink, line);
	show_files(sink, files, is_detailed);
}

static void expect_text(struct sink *sink, const char *name)
{
	char sentence[128], path[128];

	snprintf(sentence, sizeof(sentence), "output and files as in %s", name);
	snprintf(path, sizeof(path), "tests/unit/sim/expected/%s", name);
	EXPECT_THAT(sentence, expected_text(sink, path));
}

/* ---- healthy jobs ---------------------------------------------------------------------------- */

static void test_workloads(void)
{
	static const char *const jobs[] = {
		"--nodes 2 --iterations 1",
		"--nodes 2 --iterations 1 -w fsdp --sizes 8MiB",
		"--nodes 2 --iterations 1 -w tp-pp --sizes 1MiB",
		"--nodes 2 --iterations 1 -w moe",
		"--nodes 3 --gpus 1 --iterations 2 -w loop",
	};
	struct sink sink;

	sink_init_memory(&sink);
	for (size_t i = 0; i < ARRAY_LENGTH(jobs); i++)
		show_job(&sink, jobs[i], true);
	expect_text(&sink, "sim_workloads.txt");
}

static void test_options(void)
{
	static const char *const jobs[] = {
		"--nodes 1 --gpus 3 --iterations 1",
		"--nodes 3 --gpus 3 --iterations 1 --channels 5 --sizes 1KiB,300KiB,40MiB -w loop",
		"--nodes 5 --gpus 1 --iterations 1 -w loop --sizes 2KiB,64KiB,1MiB",
		"--nodes 2 --gpus 4 --iterations 1 -w tp-pp --tp 2 --pp 2 --sizes 1MiB,2MiB",
		"--nodes 2 --gpus 4 --iterations 1 -w tp-pp --tp 1 --pp 8 --sizes 1MiB",
		"--nodes 2 --gpus 4 --iterations 1 -w moe --ep 4 --sizes 64KiB,1MiB",
		"--nodes 2 --seconds 1s -w fsdp --sizes 512MiB",
		"--nodes 2 --seconds 300ms -w loop --rate 50 --sizes 1MiB",
		"--nodes 2 --iterations 1 -w loop --jitter 0 --clock-shift 0s",
		"--nodes 2 --iterations 1 -w loop --jitter 50 --clock-shift 1s",
		"--nodes 2 --iterations 1 -w loop --nvlink 100 --network 12.5 "
		"--nvlink-latency 3us --network-latency 20us",
		"--nodes 2 --iterations 1 -w loop --mode full --sizes 1MiB",
		"--nodes 2 --iterations 1 -w loop --attempt 2 --begin 90s",
		"--nodes 2 --iterations 1 -w loop --no-kernel",
		"--nodes 2 --iterations 40 -w loop --sizes 1KiB --kernel-sampled "
		"--sample-level 1",
		"--nodes 2 --iterations 1 -w moe --kernel-sampled",
		"--nodes 2 --iterations 1 -w moe --release 2.31 --kernel --tag world=7,ep=9",
		"--nodes 2 --iterations 1 --release 2.23",
		"--nodes 2 --iterations 1 --release 2.24",
		"--nodes 2 --iterations 1 --release 2.26 --kernel",
		"--nodes 2 --iterations 1 --release 2.27 --kernel",
		"--nodes 2 --iterations 1 --release 2.29 --kernel",
		"--nodes 2 --iterations 1 -w moe --release 2.30.7 --kernel --json",
	};
	struct sink sink;

	sink_init_memory(&sink);
	for (size_t i = 0; i < ARRAY_LENGTH(jobs); i++)
		show_job(&sink, jobs[i], false);
	expect_text(&sink, "sim_options.txt");
}

static void test_noise(void)
{
	static const char *const jobs[] = {
		"--noise compute",
		"--noise compute:percent=10,every=100ms",
		"--noise tail:percent=20,for=5ms",
		"--noise loader:every=500ms,for=50ms",
		"--noise gc:every=200ms,for=20ms",
		"--noise checkpoint:every=300ms,for=100ms",
		"--noise checkpoint:every=300ms,for=100ms,rank=2",
		"--noise evaluation:every=300ms,for=200ms",
		"--noise thermal:percent=8,every=400ms",
		"--noise gpus:percent=5",
		"--noise batches",
		"--noise batches:percent=30,per=rank",
		"--noise loss:percent=20,for=1ms",
		"--noise contention:percent=70 -w tp-pp --tp 1 --pp 2",
		"--noise experts -w moe",
		"--noise gc:every=100ms --noise loss:percent=30 --noise tail",
	};
	char line[256];
	struct sink sink;

	sink_init_memory(&sink);
	for (size_t i = 0; i < ARRAY_LENGTH(jobs); i++) {
		snprintf(line, sizeof(line), "--nodes 2 --iterations 3 --sizes 4MiB %s", jobs[i]);
		show_job(&sink, line, false);
	}
	expect_text(&sink, "sim_noises.txt");
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void test_slow(void)
{
	static const char *const jobs[] = {
		"slow-rank:rank=1",
		"slow-rank:rank=1,factor=3,at=200ms,until=300ms",
		"slow-link:from=1,to=2",
		"slow-link:from=0,to=1,factor=50",
		"degraded-network:factor=3",
		"slow-nvlink:factor=20",
		"slow-nvlink:node=1,factor=20",
		"slow-rail:rail=1",
		"slow-uplink:node=1",
		"slow-uplink:node=1,what=sending",
		"slow-uplink:node=1,what=receiving,factor=7",
		"slow-receiver:rank=2,factor=8",
		"slow-receiver:rank=2,what=wire",
		"starved:rank=3",
		"starved:rank=3,factor=2,at=150ms",
		"power-cap:factor=2",
		"never-arrives:rank=1,at=150ms,until=2s",
	};
	char line[256];
	struct sink sink;

	sink_init_memory(&sink);
	for (size_t i = 0; i < ARRAY_LENGTH(jobs); i++) {
		snprintf(line, sizeof(line), "--nodes 2 --iterations 2 -w %s --fault %s",
			 i % 2 ? "ddp --sizes 30MiB" : "fsdp --sizes 60MiB", jobs[i]);
		show_job(&sink, line, false);
	}
	show_job(&sink,
		 "--nodes 3 --iterations 1 -w loop --sizes 32KiB,8MiB --fault "
		 "slow-link:from=1,to=2,factor=10 --fault slow-rank:rank=4,factor=2",
		 false);
	expect_text(&sink, "sim_slow.txt");
}

static void test_hung(void)
{
	static const char *const jobs[] = {
		"ddp --fault never-arrives:rank=1",
		"tp-pp --fault never-arrives:rank=1,comm=pp",
		"fsdp --fault stuck-send:rank=1",
		"fsdp --fault stuck-send:rank=1,link=1",
		"loop --sizes 8MiB --fault stuck-send:rank=1,channel=0",
		"moe --fault stuck-send:rank=1,to=2",
		"tp-pp --tp 1 --pp 2 --fault stuck-send:rank=1",
		"ddp --fault mismatch:rank=2",
		"fsdp --fault mismatch:rank=0,what=function",
		"fsdp --fault mismatch:rank=3,what=datatype",
		"ddp --fault mismatch:rank=1,what=root --at 0s",
		"fsdp --fault mismatch:rank=1,what=order",
		"moe --fault deadlock:rank=0,peer=2",
		"tp-pp --fault deadlock:rank=1,peer=0",
		"fsdp --fault gpu-stuck:rank=2",
		"ddp --fault gpu-stuck:rank=2,what=not-launched",
		"moe --fault gpu-stuck:rank=2,what=not-producing,comm=world",
		"ddp --fault stop:rank=3",
		"fsdp --fault kill:rank=0",
		"fsdp --fault kill:rank=1 --release 2.26",
		"ddp --fault never-arrives:rank=1 --watchdog 20s",
		"ddp --fault never-arrives:rank=1 --hang 3s --mode full --release 2.27",
	};
	char line[256];
	struct sink sink;

	sink_init_memory(&sink);
	for (size_t i = 0; i < ARRAY_LENGTH(jobs); i++) {
		snprintf(line, sizeof(line),
			 "--nodes 2 --channels 2 --iterations 2 --kernel %s -w %s",
			 strstr(jobs[i], "--at") ? "" : "--at 300ms", jobs[i]);
		show_job(&sink, line, false);
	}
	expect_text(&sink, "sim_hung.txt");
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void test_usage(void)
{
	static const char *const lines[] = {
		"--list",
		"--nvlink x",
		"--network 0",
		"--rate 0",
		"--rate 100000 --gpus 1",
		"--rate 100000.001",
		"-w none",
		"--mode none",
		"--jitter 50 --gpus 1",
		"--jitter 50.001",
		"--jitter -1",
		"--release 2.22",
		"--release 2.31 --gpus 1",
		"--release 2",
		"--sizes 1,x",
		"--sizes 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16 --gpus 1",
		"--sizes 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
		"--clock-shift 1001ms",
		"--attempt 0",
		"--sample-level 13",
		"--tag world=1,none=2",
		"--tag world",
		"--tag world=1",
		"--offline --mode flight",
		"--offline --mode profile",
		"--offline --gpus 17",
		"--nodes 4096 --gpus 16",
		"--nodes 1 --gpus 1",
		"--nodes 64 --gpus 9",
		"--nodes 64 --gpus 8 --plugin none --threads --node-regions x",
		"--threads --fault stop:rank=1",
		"--node-processes --fault kill:rank=1",
		"--threads --processes --fault kill:rank=8",
		"--threads --fault none --fault stop:rank=1",
		"--gpus 2 --plugin /none.so --fault slow-rank:rank=1 --fault kill:rank=1",
		"-w tp-pp --gpus 8 --tp 3",
		"-w tp-pp --gpus 8 --tp 2 --pp 3",
		"-w moe --gpus 8 --ep 5",
		"--fault none:rank=1",
		"--fault nothing",
		"--fault slow-rank",
		"--fault slow-rank:rank=8",
		"--fault slow-rank:rank=1,factor=0.5",
		"--fault slow-rank:rank=1,factor=x",
		"--fault slow-rank:rank=-1",
		"--fault slow-rank:rank=1,at=2s,until=1s",
		"--fault slow-rank:rank=1,at=2s,until=2s",
		"--fault slow-rank:rank=1,node=2",
		"--fault slow-rank:rank",
		"--fault slow-link:from=1",
		"--fault slow-link:from=1,to=1",
		"--fault slow-link:from=8,to=1",
		"--fault slow-link:from=1,to=8",
		"--fault deadlock:rank=1,peer=1",
		"--fault deadlock:rank=1,peer=8",
		"--fault deadlock:rank=0,peer=1",
		"--fault degraded-network",
		"--fault slow-rail:rail=1",
		"--nodes 2 --fault slow-rail:rail=8",
		"--nodes 2 --fault slow-uplink:node=2",
		"--nodes 2 --fault slow-uplink:node=1,what=up",
		"--nodes 2 --gpus 1 --fault slow-nvlink",
		"--nodes 2 --fault slow-nvlink:node=2",
		"--fault stuck-send:rank=1,link=1,channel=1",
		"--nodes 2 --fault stuck-send:rank=1,link=9",
		"--nodes 2 --fault stuck-send:rank=1,to=99",
		"--fault mismatch:rank=1,what=size",
		"-w fsdp --fault mismatch:rank=1,what=root",
		"--fault gpu-stuck:rank=1,what=lost",
		"--fault gpu-stuck:rank=1,comm=tp",
		"--fault never-arrives:rank=1,comm=none",
		"--noise none",
		"--noise compute:percent=500 --gpus 1",
		"--noise compute:percent=500.1",
		"--noise compute:for=1s",
		"--noise gc:every=1ms --gpus 1",
		"--noise gc:every=999us",
		"--noise gc:every",
		"--noise checkpoint:rank=16384",
		"--noise checkpoint:rank=8",
		"--kernel-sampled --release 2.24",
		"--fault gpu-stuck:rank=1,what=not-launched --release 2.27",
		"--fault gpu-stuck:rank=1,comm=dp -w fsdp",
		"--fault gpu-stuck:rank=1,comm=ep -w tp-pp",
		"--fault gpu-stuck:rank=1,comm=tp -w moe",
		"--noise batches:per=node",
		"--plugin /none.so --fault none --fault none --fault none --fault none --fault "
		"none "
		"--fault none --fault none --fault none --fault none --fault none --fault none "
		"--fault none --fault none --fault none --fault none --fault none --fault none",
		"--plugin /none.so --gpus 2",
		"--offline --gpus 2 --iterations 1 -w loop -o /none/none",
		"none",
	};
	struct sink sink;

	sink_init_memory(&sink);
	for (size_t i = 0; i < ARRAY_LENGTH(lines); i++)
		show_command(&sink, lines[i]);
	expect_text(&sink, "sim_usage.txt");
}

/* What can be run and has no effect. */
static void test_notes(void)
{
	static const char *const jobs[] = {
		"--nodes 2 --iterations 1 -w loop --fault slow-link:from=0,to=2",
		"--nodes 2 --iterations 1 -w moe --fault slow-link:from=0,to=2",
		"--nodes 2 --seconds 1s -w loop --fault slow-rank:rank=0,at=1s",
		"--nodes 2 --seconds 1s -w loop --fault slow-rank:rank=0,at=999ms --fault none",
		"--nodes 1 --iterations 1 -w loop --fault stuck-send:rank=0",
		"--nodes 2 --iterations 1 -w loop --fault never-arrives:rank=0,at=100s",
		"--nodes 2 --iterations 1 -w loop --fault stuck-send:rank=0,to=1",
		"--nodes 3 --iterations 1 -w loop --fault none --fault slow-link:from=0,to=3",
		"--nodes 3 --iterations 1 -w loop --fault none --fault stuck-send:rank=0,to=1",
	};
	char line[256], files[128];
	struct sink sink;

	snprintf(files, sizeof(files), "%s/files", scratch_dir.path);
	sink_init_memory(&sink);
	for (size_t i = 0; i < ARRAY_LENGTH(jobs); i++) {
		struct sink unseen;

		sink_init_memory(&unseen);
		snprintf(line, sizeof(line), "--offline --gpus 2 -o files %s", jobs[i]);
		show_command(&sink, line);
		show_files(&unseen, files, false);
		sink_release(&unseen);
	}
	expect_text(&sink, "sim_notes.txt");
}

/* Files are not replaced. */
static void test_standard_directory(void)
{
	static const char line[] =
		"--offline --gpus 2 --iterations 1 -w loop --sizes 1KiB --seed 3";
	char files[128];
	struct sink sink;

	snprintf(files, sizeof(files), "%s/ringside-sim-3", scratch_dir.path);
	sink_init_memory(&sink);
	show_command(&sink, line);
	show_command(&sink, line);
	show_files(&sink, files, true);
	expect_text(&sink, "sim_twice.txt");
}

int main(void)
{
	unsetenv("RINGSIDE_JOB");
	scratch_make();
	test_workloads();
	test_options();
	test_noise();
	test_slow();
	test_hung();
	test_usage();
	test_notes();
	test_standard_directory();
	return tap_done();
}
