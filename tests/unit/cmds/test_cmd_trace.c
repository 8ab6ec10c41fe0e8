/* ringside trace: windows, formats, files. */
#include "tests/support/command_play.h"
#include "tests/tap.h"

int main(void)
{
	static const char *const lines[] = {
		"trace traces -o all.json",
		"trace traces -o all.json --json",
		"trace traces -o -",
		"trace sim -o sim.json",
		"trace sim -o sim.pftrace",
		"trace sim -o sim.json.gz",
		"trace sim -o sim.pftrace.gz --json",
		"trace sim -o odd --format json --gzip",
		"trace sim -o odd --format perfetto",
		"trace sim -o odd --format xml",
		"trace sim -o odd",
		"trace sim",
		"trace sim -o ''",
		"trace sim -o sim.json --calls --no-details",
		"trace full -o full.json",
		"trace full -o full.json --no-details",
		"trace sim -o some.json --around world:10",
		"trace sim -o some.json --around 1:10 --window 50ms",
		"trace sim -o some.json --around 1:world:10 --window 2ms",
		"trace sim -o some.json --around world:100000",
		"trace sim -o some.json --around nobody:1",
		"trace sim -o some.json --around 9:1",
		"trace sim -o some.json --around 1:nobody:1",
		"trace sim -o some.json --around 1",
		"trace sim -o some.json --around world:x",
		"trace sim -o some.json --around ''",
		"trace sim -o some.json --around world:10 --since 1s",
		"trace sim -o some.json --window 100ms",
		"trace sim -o some.json --since 100ms --window 100ms",
		"trace sim -o some.json --until 300ms --window 100ms",
		"trace sim -o some.json --since 100ms --until 300ms",
		"trace sim -o some.json --since 100ms --until 300ms --window 5ms",
		"trace sim -o some.json --since 1h",
		"trace sim -o some.json --window 0",
		"trace sim -o some.json --window x",
		"trace sim -o some.json --rank 1 --comm world",
		"trace sim -o some.json --rank 7",
		"trace sim -o some.json -q",
		"trace stuck -o stuck.json",
		"trace open -o open.json",
		"trace hung -o hung.json",
		"trace damaged -o damaged.json",
		"trace sim -o nowhere/x.json",
		"trace sim -o /dev/full --format json",
		"trace nowhere -o x.json",
		"trace again -o again.json",
		"trace again -o again.json --run 1",
		NULL,
	};
	size_t length;
	char *bytes;

	command_begin();
	command_play.most_json = 120;
	command_make("traces");
	command_make("stuck");
	command_make("open");
	bytes = command_read(command_path("traces/r0-nodea-999999990-4242.ringside"), &length);
	memcpy(bytes + 700, "XXXX", 4);
	command_write("damaged", bytes, length);
	free(bytes);
	command_sim("-o sim --nodes 2 --gpus 1 -w ddp --iterations 2 --seed 1 --kernel");
	command_sim("-o full --nodes 2 --gpus 1 -w ddp --iterations 1 --seed 1 --kernel -m full");
	command_sim("-o hung --nodes 1 --gpus 2 --seconds 2s -f never-arrives:rank=1 --at 500ms");
	command_sim("-o again --nodes 1 --gpus 2 --iterations 1 --seed 3");
	command_sim("-o again --nodes 1 --gpus 2 --iterations 1 --seed 3 --attempt 2 --begin 100s");
	command_each(lines);
	command_show("stuck.json");
	EXPECT_THAT("trace prints what is expected",
		    command_expected("tests/unit/cmds/expected/trace"));
	return tap_done();
}
