/* ringside diff and ringside baseline: two runs, and a run that is kept for later. */
#include "tests/support/command_play.h"
#include "tests/tap.h"

int main(void)
{
	static const char *const lines[] = {
		"diff fast slow",
		"diff slow fast",
		"diff fast fast",
		"diff --all fast slow",
		"diff --by function fast slow",
		"diff --by rank,function --all fast slow",
		"diff --threshold 300% fast slow",
		"diff --threshold 0% fast fast",
		"diff --threshold 5 fast slow",
		"diff --threshold x% fast slow",
		"diff --threshold -1% fast slow",
		"diff --json fast slow",
		"diff --json --html fast slow",
		"diff fast slow -o out.txt",
		"diff fast slow -o nowhere/x",
		"diff fast slow -o ''",
		"diff fast",
		"diff fast slow fast",
		"diff",
		"diff fast nowhere",
		"diff nowhere slow",
		"diff fast empty",
		"diff fast other",
		"diff fast slow --rank 0",
		"diff fast slow --op Broadcast",
		"diff fast slow --comm nobody",
		"diff fast slow --since 200ms",
		"diff fast slow --by nothing",
		"diff --strict fast mixed",
		"diff fast mixed",
		"diff base.json slow",
		"diff nccl-tests.txt loop",
		"diff loop nccl-tests.txt --by rank --all",
		"diff nccl-tests.txt loop --threshold 1%",
		"diff nccl-tests.txt loop --threshold 1000%",
		"diff nccl-tests.txt loop --op Broadcast",
		"diff nccl-tests.txt loop --json",
		"diff nccl-tests.json loop",
		"diff nccl-tests.txt nccl-tests.txt",
		"diff nccl-tests-old.txt loop",
		"diff all_gather_perf.txt loop",
		"diff nccl-tests.txt nowhere",
		"baseline save fast -o base.json",
		"baseline save fast -o base.json --json",
		"baseline save -q fast -o base.json",
		"baseline save slow -o - --rank 0",
		"baseline save fast",
		"baseline save -o x",
		"baseline save nowhere -o x",
		"baseline save fast -o nowhere/x",
		"baseline save fast -o ''",
		"baseline save fast -o x --comm nobody",
		"baseline save fast -o x --op Broadcast",
		"baseline save empty -o x",
		"baseline save stuck -o x",
		"baseline",
		"baseline show fast",
		"baseline show base.json",
		"baseline show --json base.json",
		"baseline show garbage",
		"baseline show",
		"baseline show base.json base.json",
		"baseline safe fast",
		"doctor slow --baseline base.json",
		"doctor fast --baseline base.json",
		"doctor fast --baseline garbage",
		"doctor fast --baseline nowhere",
		NULL,
	};

	command_begin();
	command_play.most_json = 60;
	command_directory("empty");
	command_directory("mixed");
	command_make("stuck");
	command_write_text("garbage", "neither a trace nor a log\n");
	command_write_text("mixed/README", "a note\n");
	command_copy("tests/foreign/data/nccl-tests-all-reduce.txt", "nccl-tests.txt");
	command_copy("tests/foreign/data/nccl-tests.json", "nccl-tests.json");
	command_copy("tests/foreign/data/nccl-tests-old.txt", "nccl-tests-old.txt");
	command_copy("tests/foreign/data/nccl-tests-old.txt", "all_gather_perf.txt");
	command_sim("-o loop --nodes 1 --gpus 8 -w loop --seconds 2s");
	command_sim("-o fast --nodes 2 --gpus 2 --iterations 12 --kernel --seed 1");
	command_sim("-o slow --nodes 2 --gpus 2 --iterations 12 --kernel --seed 1 --network 10");
	command_sim("-o mixed --nodes 2 --gpus 2 --iterations 4 --kernel --seed 1");
	command_sim("-o other --nodes 1 --gpus 2 -w fsdp --iterations 2 --kernel --seed 1");
	command_each(lines);
	command_show("out.txt");
	EXPECT_THAT("diff and baseline print what is expected",
		    command_expected("tests/unit/cmds/expected/diff"));
	return tap_done();
}
