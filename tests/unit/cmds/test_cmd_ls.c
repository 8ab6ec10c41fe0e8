/* ringside ls: every option, every kind of input. */
#include "tests/support/command_play.h"
#include "tests/tap.h"

int main(void)
{
	static const char *const lines[] = {
		"ls traces",
		"ls --json traces",
		"ls lossy open stuck ended carrier",
		"ls -j ended --rank 1",
		"ls one two",
		"ls one two --job sim-2",
		"ls one two --rank 1,3 --job sim-1",
		"ls one two --rank 1,3",
		"ls one --comm tp-1",
		"ls one --comm tp-1 --comm pp-0 --rank 0-1",
		"ls one --rank 2 --comm tp-0",
		"ls again",
		"ls again --run 2",
		"ls again --run 1",
		"ls again --run 3",
		"ls again --run all --rank 0",
		"ls two --since 1s",
		"ls two --until 2000-01-01",
		"ls two --since 1h",
		"ls --color always lossy",
		"ls --color=sometimes lossy",
		"ls -q nowhere",
		"ls traces nowhere",
		"ls empty",
		"ls --json empty",
		"ls garbage",
		"ls garbage empty nowhere",
		"ls @999999999",
		"ls @x",
		"ls --bad",
		"ls --comm",
		NULL,
	};

	command_begin();
	command_make("traces");
	command_make("lossy");
	command_make("open");
	command_make("stuck");
	command_make("ended");
	command_make("carrier");
	command_directory("empty");
	command_write_text("garbage", "neither a trace nor a log\n");
	command_sim("-o one --nodes 1 --gpus 4 -w tp-pp --tp 2 --iterations 2 --seed 1");
	command_sim("-o two --nodes 2 --gpus 1 --iterations 2 --seed 2");
	command_sim("-o again --nodes 1 --gpus 2 --iterations 1 --seed 3");
	command_sim("-o again --nodes 1 --gpus 2 --iterations 1 --seed 3 --attempt 2 --begin 100s");
	command_each(lines);
	setenv("COLUMNS", "72", 1);
	command("ls one");
	EXPECT_THAT("ls prints what is expected", command_expected("tests/unit/cmds/expected/ls"));
	return tap_done();
}
