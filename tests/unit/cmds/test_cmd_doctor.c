/* ringside doctor on recordings and logs: what it prints, what it refuses. */
#include "tests/support/command_play.h"
#include "tests/tap.h"

static void recordings(void)
{
	static const char *const lines[] = {
		"doctor absent",
		"doctor --all absent",
		"doctor --json absent",
		"doctor absent --hang 1m",
		"doctor absent --rank 2",
		"doctor absent --rank 1",
		"doctor absent --comm world",
		"doctor absent --comm nobody",
		"doctor absent --job nothing",
		"doctor network",
		"doctor --all stopped",
		"doctor calm",
		"doctor -a calm",
		"doctor slow",
		"doctor slow --since 2s",
		"doctor slow --until 2s",
		"doctor slow --gpu-hour-price 2.5",
		"doctor again",
		"doctor again --run 1",
		"doctor again --run all",
		"doctor again --run 7",
		"doctor absent calm",
		"doctor stuck",
		"doctor open",
		"doctor lossy",
		"doctor absent nowhere",
		"doctor calm nowhere",
		"doctor nowhere",
		"doctor empty",
		"doctor garbage",
		"doctor damaged",
		"doctor calm --peak nvlink=450,net=50",
		"doctor calm --peak net=0.5",
		"doctor calm --expected nccl-tests.txt",
		"doctor calm --expected garbage",
		"doctor calm --expected nowhere",
		"doctor --runbooks http://wiki/books absent",
		NULL,
	};
	size_t length;
	char *bytes;

	command_make("stuck");
	command_make("open");
	command_make("lossy");
	command_directory("empty");
	command_write_text("garbage", "neither a trace nor a log\n");
	command_copy("tests/foreign/data/nccl-tests-all-reduce.txt", "nccl-tests.txt");
	bytes = command_read(command_path("lossy/r0-nodea-999999990-4242.ringside"), &length);
	memcpy(bytes + 700, "XXXX", 4);
	command_write("damaged", bytes, length);
	free(bytes);
	command_sim("-o absent --nodes 1 --gpus 4 --seconds 30s --seed 1 -f never-arrives:rank=2 "
		    "--at 5s");
	command_sim("-o network --nodes 2 --gpus 2 --seconds 30s --kernel -f stuck-send:rank=1 "
		    "--at 1s");
	command_sim(
		"-o stopped --nodes 1 --gpus 2 --seconds 30s --kernel -f gpu-stuck:rank=1 --at 1s");
	command_sim("-o slow --nodes 1 --gpus 4 --seconds 30s --seed 1 -f "
		    "slow-rank:rank=2,factor=3 --kernel");
	command_sim("-o calm --nodes 2 --gpus 2 --seconds 10s --seed 1");
	command_sim("-o again --nodes 1 --gpus 2 --seconds 30s --seed 3 -f never-arrives:rank=1 "
		    "--at 5s");
	command_sim("-o again --nodes 1 --gpus 2 --iterations 1 --seed 3 --attempt 2 --begin 100s");
	command_each(lines);
	EXPECT_THAT("verdicts on recordings", command_expected("tests/unit/cmds/expected/doctor"));
}

static void logs(void)
{
	static const char *const lines[] = {
		"doctor --log info-0.dbg info-1.dbg info-2.dbg info-3.dbg",
		"doctor --log trace-0.dbg trace-1.dbg --json",
		"doctor --all --log trace-0.dbg trace-1.dbg",
		"doctor --all --json --log trace-0.dbg",
		"doctor calm --log info-0.dbg",
		"doctor --all calm --log info-0.dbg --log info-1.dbg",
		"doctor --log nowhere.dbg",
		"doctor --log nowhere.dbg info-0.dbg",
		"doctor --log garbage",
		"doctor --log empty.dbg",
		"doctor --log empty",
		"doctor info-0.dbg",
		"doctor --watch --log info-0.dbg",
		NULL,
	};
	static const char *const copies[][2] = {
		{ "tests/nccllog/info-4ranks-29630.dbg", "info-0.dbg" },
		{ "tests/nccllog/info-4ranks-29631.dbg", "info-1.dbg" },
		{ "tests/nccllog/info-4ranks-29632.dbg", "info-2.dbg" },
		{ "tests/nccllog/info-4ranks-29633.dbg", "info-3.dbg" },
		{ "tests/nccllog/trace-2ranks-29679.dbg", "trace-0.dbg" },
		{ "tests/nccllog/trace-2ranks-29680.dbg", "trace-1.dbg" },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(copies); i++)
		command_copy(copies[i][0], copies[i][1]);
	command_write_text("empty.dbg", "");
	command_each(lines);
	EXPECT_THAT("verdicts on logs", command_expected("tests/unit/cmds/expected/doctor-logs"));
}

static void refusals(void)
{
	static const char *const lines[] = {
		"doctor calm --peak ''",
		"doctor calm --peak nvlink=0",
		"doctor calm --peak nvlink=1000001",
		"doctor calm --peak nvlink=1x",
		"doctor calm --peak wifi=1",
		"doctor calm --peak net=1,",
		"doctor calm --hang 100ms",
		"doctor calm --hang 99ms",
		"doctor calm --hang 86401s",
		"doctor calm --hang x",
		"doctor calm --gpu-hour-price x",
		"doctor calm --agents node1",
		"doctor --agents ''",
		"doctor --agents @nowhere",
		"doctor --agents @empty.list",
		"doctor --agents 'node[1-'",
		"doctor --agents node1 --slurm 1",
		"doctor --slurm x",
		"doctor --slurm 12_",
		"doctor --slurm 12_3x",
		"doctor --slurm 12-3",
		"doctor --slurm "
		"123456789012345678901234567890123456789012345678901234567890123456789",
		"doctor --prometheus prometheus:9090",
		"doctor --prometheus 'http://a?b'",
		"doctor --prometheus http://a --since 5s",
		"doctor --prometheus http://a --until 5s",
		"doctor --prometheus http://a calm",
		"doctor --window 3s",
		"doctor --past 0s",
		"doctor --watch calm",
		"doctor --interval 199ms",
		"doctor --timeout 9ms",
		"doctor --parallel 0",
		"doctor --parallel 1025",
		"doctor --parallel x",
		"doctor --ras x calm",
		"doctor --bad",
		NULL,
	};

	command_write_text("empty.list", "\n");
	command_each(lines);
	EXPECT_THAT("what the doctor refuses",
		    command_expected("tests/unit/cmds/expected/doctor-refusals"));
}

/* Slurm's squeue is a script of ours. */
static void slurm_jobs(void)
{
	static const struct {
		const char *script, *line;
	} cases[] = {
		{ "echo '4711|4711|PENDING|'", "doctor --slurm 4711" },
		{ "echo '4711|4711|RUNNING|node[1-'", "doctor --slurm 4711" },
		{ "echo '4711_1|4712|RUNNING|node1'; echo '4711_2|4713|RUNNING|node2'",
		  "doctor --slurm 4711" },
		{ "echo '4711|RUNNING|node1'", "doctor --slurm 4711" },
		{ "printf '4711|4711|RUNNING|node1'", "doctor --slurm 4711" },
		{ "true", "doctor --slurm 4711" },
		{ "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1",
		  "doctor --slurm 4711+1" },
		{ "echo 'no controller' >&2; exit 1", "doctor --slurm 4711_3" },
		{ "yes '4711|4711|PENDING|' | head -c 4300000", "doctor --slurm 4711" },
	};
	char path[4096];

	snprintf(path, sizeof(path), "%s:%s", command_path("bin"), getenv("PATH"));
	command_directory("bin");
	setenv("PATH", path, 1);
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		char script[512];

		snprintf(script, sizeof(script), "#!/bin/sh\n%s\n", cases[i].script);
		command_write_text("bin/squeue", script);
		chmod(command_path("bin/squeue"), 0755);
		command(cases[i].line);
	}
	EXPECT_THAT("jobs of Slurm", command_expected("tests/unit/cmds/expected/doctor-slurm"));
}

int main(void)
{
	command_begin();
	command_play.most_json = 90;
	recordings();
	logs();
	refusals();
	slurm_jobs();
	return tap_done();
}
