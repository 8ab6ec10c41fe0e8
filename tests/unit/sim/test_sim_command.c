/*
 * Command lines of `ringside sim`: what they print, and what is in the files that
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

/* One command line, as main() runs it, in a child whose output is caught. */
static void run_line(const char *words)
{
	char line[1024], *arguments[ARGUMENTS_MAX];
	struct sim_request request = { 0 };
	bool is_over;
	int code, count;

	printf("=== %s\n", words);
	fflush(stdout);
	snprintf(line, sizeof(line), "ringside-sim %s", words);
	count = arguments_of(line, arguments);
	optind = 0;
	code = sim_request_read(&request, count, arguments, &is_over);
	if (!is_over)
		code = run(&request);
	if (code != 0)
		printf("exit %d\n", code);
	fflush(stdout);
}

enum what_to_show { OUTPUT, HASH, FILES, DETAILED_FILES };

/* Jobs are offline, and their files are shown, too. They are removed in any case. */
static void run_job(const char *words, enum what_to_show what)
{
	char line[1024], files[] = "./files";
	struct sink sink;

	snprintf(line, sizeof(line), "--offline -o files --gpus 2 %s", words);
	run_line(line);
	sink_init_memory(&sink);
	show_files(&sink, files, what == DETAILED_FILES);
	if (what == HASH)
		printf("files: 0x%016" PRIx64 "\n", hash_bytes(sink_string(&sink), sink.used));
	else if (what != OUTPUT)
		fputs(sink_string(&sink), stdout);
	fflush(stdout);
	sink_release(&sink);
}

/* Runs them in one child, because a process is expensive under sanitizers; what it prints is that of the file. */
static void expect_output(const char *name, void (*run_all)(void))
{
	int fd = memfd_create("output", MFD_CLOEXEC), status = -1;
	char sentence[128], path[128], *output;
	struct sink sink;
	off_t length;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
		if (chdir(scratch_dir.path) == -1)
			abort();
		run_all();
		_exit(0);
	}
	if (child == -1 || waitpid(child, &status, 0) != child)
		abort();
	length = lseek(fd, 0, SEEK_END);
	output = mmap(NULL, (size_t)length + 1, PROT_READ, MAP_PRIVATE, fd, 0);
	if (output == MAP_FAILED)
		abort();
	sink_init_memory(&sink);
	sink_write(&sink, output, (size_t)length);
	munmap(output, (size_t)length + 1);
	close(fd);
	if (status != 0)
		sink_format(&sink, "ended with %d\n", status);
	snprintf(sentence, sizeof(sentence), "output and files as in %s", name);
	snprintf(path, sizeof(path), "tests/unit/sim/expected/%s", name);
	EXPECT_THAT(sentence, expected_text(&sink, path));
}

static void run_seeded(const char *words, enum what_to_show what)
{
	char line[1024];

	snprintf(line, sizeof(line), "--seed 7 %s", words);
	run_job(line, what);
}

/* ---- healthy jobs ---------------------------------------------------------------------------- */

static void workloads(void)
{
	static const char *const jobs[] = {
		"--nodes 2 --iterations 1",
		"--nodes 2 --iterations 1 -w fsdp --sizes 8MiB",
		"--nodes 2 --iterations 1 -w tp-pp --sizes 1MiB",
		"--nodes 2 --iterations 1 -w moe",
		"--nodes 3 --gpus 1 --iterations 2 -w loop",
	};

	for (size_t i = 0; i < ARRAY_LENGTH(jobs); i++)
		run_seeded(jobs[i], DETAILED_FILES);
}

static void options_of_jobs(void)
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
		"--nodes 2 --iterations 40 -w loop --sizes 1KiB --rate 5000 --release 2.30",
		"--nodes 2 --iterations 1 -w loop --times all",
		"--nodes 2 --iterations 1 -w moe --times all --release 2.31",
		"--nodes 1 --seconds 4s -w fsdp --release 2.30 --fault gpu-stuck:rank=1,at=1s",
		"--nodes 2 --seconds 4s -w moe --times all --fault stuck-send:rank=1,at=1s",
		"--nodes 2 --iterations 1 -w moe --release 2.31 --kernel --tag world=7,ep=9",
		"--nodes 2 --iterations 1 --release 2.23",
		"--nodes 2 --iterations 1 --release 2.24",
		"--nodes 2 --iterations 1 --release 2.26 --kernel",
		"--nodes 2 --iterations 1 --release 2.27 --kernel",
		"--nodes 2 --iterations 1 --release 2.29 --kernel",
		"--nodes 2 --iterations 1 -w moe --release 2.30.7 --kernel --json",
	};

	for (size_t i = 0; i < ARRAY_LENGTH(jobs); i++)
		run_seeded(jobs[i], FILES);
}

static void noise(void)
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
		"--noise contention:percent=70 -w moe --nodes 4 --ep 4 --iterations 1",
		"--noise experts -w moe",
		"--noise gc:every=100ms --noise loss:percent=30 --noise tail",
	};
	char line[256];

	for (size_t i = 0; i < ARRAY_LENGTH(jobs); i++) {
		snprintf(line, sizeof(line), "--nodes 2 --iterations 3 --sizes 4MiB %s", jobs[i]);
		run_seeded(line, FILES);
	}
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void slow(void)
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

	for (size_t i = 0; i < ARRAY_LENGTH(jobs); i++) {
		snprintf(line, sizeof(line), "--nodes 2 --iterations 2 -w %s --fault %s",
			 i % 2 ? "ddp --sizes 30MiB" : "fsdp --sizes 60MiB", jobs[i]);
		run_seeded(line, FILES);
	}
	run_seeded("--nodes 3 --iterations 1 -w loop --sizes 32KiB,8MiB --fault "
		   "slow-link:from=1,to=2,factor=10 --fault slow-rank:rank=4,factor=2",
		   FILES);
}

static void hung(void)
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

	for (size_t i = 0; i < ARRAY_LENGTH(jobs); i++) {
		snprintf(line, sizeof(line),
			 "--nodes 2 --channels 2 --iterations 2 --kernel %s -w %s",
			 strstr(jobs[i], "--at") ? "" : "--at 300ms", jobs[i]);
		run_seeded(line, FILES);
	}
	/* The first rank decides how long the job runs. */
	run_seeded("--nodes 2 --channels 2 --seconds 1s --kernel --at 300ms -w loop --sizes 1MiB "
		   "--fault never-arrives:rank=0",
		   FILES);
	run_seeded("--nodes 2 --channels 2 --seconds 1s --kernel --at 300ms -w fsdp --sizes 1MiB "
		   "--fault kill:rank=0",
		   FILES);
}

/* Faults in every workload, on machines of other shapes and with other settings: only the output and a hash of the files. */
static void mixed(void)
{
	static const char *const jobs[] = {
		"--nodes 4 --gpus 1 -w fsdp --fault stuck-send:rank=2",
		"--nodes 3 --gpus 3 -w fsdp --channels 5 --fault stuck-send:rank=5,channel=3",
		"--nodes 3 --gpus 2 -w ddp --sizes 1KiB,20MiB --fault stuck-send:rank=5",
		"--nodes 3 --gpus 2 -w loop --iterations 30 --sizes 4KiB --fault stuck-send:rank=3",
		"--nodes 2 --gpus 4 -w tp-pp --tp 2 --pp 4 --fault stuck-send:rank=2",
		"--nodes 2 --gpus 4 -w tp-pp --tp 4 --pp 2 --fault stuck-send:rank=3,to=7",
		"--nodes 4 --gpus 2 -w moe --ep 8 --fault stuck-send:rank=7",
		"--nodes 2 --gpus 4 -w moe --ep 2 --fault stuck-send:rank=1,link=2",
		"--nodes 3 --gpus 2 -w tp-pp --tp 2 --pp 3 --fault never-arrives:rank=3,comm=tp",
		"--nodes 2 --gpus 4 -w tp-pp --tp 2 --pp 2 --fault never-arrives:rank=4,comm=dp",
		"--nodes 2 --gpus 4 -w moe --ep 4 --fault never-arrives:rank=6,comm=ep",
		"--nodes 2 --gpus 4 -w moe --ep 4 --fault never-arrives:rank=6,comm=world",
		"--nodes 3 --gpus 2 -w loop --iterations 30 --sizes 1KiB,8MiB --fault "
		"never-arrives:rank=4 "
		"--watchdog 5s",
		"--nodes 2 --gpus 4 -w tp-pp --tp 2 --pp 4 --fault mismatch:rank=5",
		"--nodes 2 --gpus 4 -w moe --ep 4 --fault mismatch:rank=2,what=function",
		"--nodes 3 --gpus 1 -w loop --iterations 30 --sizes 4MiB --fault "
		"mismatch:rank=1,what=datatype",
		"--nodes 3 --gpus 2 -w ddp --fault mismatch:rank=4,what=order",
		"--nodes 2 --gpus 4 -w moe --ep 4 --fault mismatch:rank=2,what=order",
		"--nodes 2 --gpus 4 -w tp-pp --tp 2 --pp 4 --fault deadlock:rank=3,peer=2",
		"--nodes 4 --gpus 2 -w moe --ep 4 --fault deadlock:rank=3,peer=1",
		"--nodes 2 --gpus 4 -w tp-pp --tp 2 --pp 2 --fault gpu-stuck:rank=6",
		"--nodes 2 --gpus 4 -w tp-pp --tp 2 --pp 2 --fault gpu-stuck:rank=6,comm=tp",
		"--nodes 2 --gpus 4 -w moe --ep 4 --fault "
		"gpu-stuck:rank=5,comm=ep,what=not-producing",
		"--nodes 3 --gpus 2 -w loop --iterations 30 --sizes 8MiB --fault "
		"gpu-stuck:rank=2,what=not-launched",
		"--nodes 2 --gpus 4 -w moe --ep 4 --fault kill:rank=5",
		"--nodes 2 --gpus 4 -w tp-pp --tp 2 --pp 4 --fault kill:rank=3 --no-kernel",
		"--nodes 2 --gpus 4 -w tp-pp --tp 2 --pp 4 --fault stop:rank=3 --mode full",
		"--nodes 2 --gpus 4 -w moe --ep 4 --fault stop:rank=0 --release 2.26",
		"--nodes 4 --gpus 2 -w moe --ep 8 --fault slow-link:from=1,to=4,factor=30",
		"--nodes 4 --gpus 2 -w tp-pp --tp 2 --pp 4 --fault slow-link:from=1,to=3,factor=30",
		"--nodes 3 --gpus 3 -w moe --ep 9 --fault slow-receiver:rank=4,factor=9",
		"--nodes 3 --gpus 3 -w tp-pp --tp 3 --pp 3 --fault "
		"slow-receiver:rank=4,what=wire,factor=9",
		"--nodes 4 --gpus 2 -w moe --ep 4 --fault starved:rank=3,factor=6",
		"--nodes 4 --gpus 2 -w loop --iterations 9 --sizes 1KiB,64KiB,16MiB --fault "
		"starved:rank=3,factor=6",
		"--nodes 4 --gpus 2 -w moe --ep 8 --fault slow-rank:rank=3,factor=4,at=150ms",
		"--nodes 2 --gpus 4 -w tp-pp --tp 2 --pp 4 --fault "
		"slow-rank:rank=3,factor=4,at=150ms",
		"--nodes 2 --gpus 4 -w moe --ep 4 --fault slow-nvlink:node=1,factor=30",
		"--nodes 4 --gpus 2 -w tp-pp --tp 1 --pp 4 --fault slow-uplink:node=2,factor=9",
		"--nodes 4 --gpus 2 -w moe --ep 4 --fault slow-rail:rail=0,factor=9",
		"--nodes 2 --gpus 4 -w moe --ep 4 --noise gc:every=100ms --fault "
		"power-cap:factor=3",
	};
	char line[512];

	for (size_t i = 0; i < ARRAY_LENGTH(jobs); i++) {
		bool is_kernel =
			strstr(jobs[i], "-kernel") == NULL && strstr(jobs[i], "2.26") == NULL;

		snprintf(line, sizeof(line), "--iterations 2 --at 300ms %s%s",
			 is_kernel ? "--kernel " : "", jobs[i]);
		run_seeded(line, HASH);
	}
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void usage(void)
{
	static const char *const lines[] = {
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
		"--sample-level 3",
		"--times never",
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
		"--kernel-sampled",
		"--times all --release 2.27",
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

	for (size_t i = 0; i < ARRAY_LENGTH(lines); i++)
		run_line(lines[i]);
}

/* What can be run and has no effect. */
static void notes(void)
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

	for (size_t i = 0; i < ARRAY_LENGTH(jobs); i++)
		run_job(jobs[i], OUTPUT);
}

/* Files are not replaced. */
static void twice(void)
{
	static const char line[] =
		"--offline --gpus 2 --iterations 1 -w loop --sizes 1KiB --seed 3";
	struct sink sink;

	run_line(line);
	run_line(line);
	sink_init_memory(&sink);
	show_files(&sink, "./ringside-sim-3", true);
	fputs(sink_string(&sink), stdout);
	fflush(stdout);
	sink_release(&sink);
}

/* The program itself. */
static void list(void)
{
	static char program[] = "ringside-sim", option[] = "--list";
	char *arguments[] = { program, option, NULL };

	optind = 0;
	if (sim_main(2, arguments) != 0)
		abort();
	fflush(stdout);
}

int main(void)
{
	unsetenv("RINGSIDE_JOB");
	scratch_make();
	expect_output("sim_workloads.txt", workloads);
	expect_output("sim_options.txt", options_of_jobs);
	expect_output("sim_noises.txt", noise);
	expect_output("sim_slow.txt", slow);
	expect_output("sim_hung.txt", hung);
	expect_output("sim_mixed.txt", mixed);
	expect_output("sim_usage.txt", usage);
	expect_output("sim_notes.txt", notes);
	expect_output("sim_twice.txt", twice);
	expect_output("sim_list.txt", list);
	return tap_done();
}
