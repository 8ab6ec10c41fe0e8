/* ringside ps: operations in flight, what they wait for, and who is missing. */
#include "tests/support/command_play.h"
#include "tests/tap.h"

int main(void)
{
	static const char *const lines[] = {
		"ps stuck",
		"ps --all stuck",
		"ps -j stuck",
		"ps ended",
		"ps carrier",
		"ps -j carrier",
		"ps --dead carrier",
		"ps hang",
		"ps -a hang",
		"ps hang --rank 1-2",
		"ps absent",
		"ps --all absent --rank 3 --comm world",
		"ps absent --rank 3",
		"ps absent --comm world",
		"ps absent --comm nobody",
		"ps absent --rank 77",
		"ps absent --job other",
		"ps absent --run 2",
		"ps untimed",
		"ps --all untimed --rank 0",
		"ps -q untimed",
		"ps moe",
		"ps calm",
		"ps nowhere",
		"ps stuck nowhere",
		"ps --since 1s stuck",
		NULL,
	};

	command_begin();
	command_make("stuck");
	command_make("ended");
	command_make("carrier");
	command_sim(
		"-o hang --kernel --nodes 2 --gpus 2 --iterations 20 -f stuck-send:rank=1 --at 1s");
	command_sim("-o absent --nodes 1 --gpus 8 -w fsdp --seconds 2s -f never-arrives:rank=5 "
		    "--at 500ms");
	command_sim("-o untimed --nodes 1 --gpus 2 --no-kernel --seconds 2s -f gpu-stuck:rank=1 "
		    "--at 200ms");
	command_sim(
		"-o moe --nodes 2 --gpus 2 -w moe --seconds 4s -f never-arrives:rank=0 --at 1s");
	command_sim("-o calm --nodes 1 --gpus 2 --iterations 2");
	command_each(lines);
	setenv("COLUMNS", "72", 1);
	command("ps stuck");
	command("ps hang");
	EXPECT_THAT("ps prints what is expected", command_expected("tests/unit/cmds/expected/ps"));
	return tap_done();
}
