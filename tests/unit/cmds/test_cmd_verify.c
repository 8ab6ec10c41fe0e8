/* ringside verify: what is missing, damaged, lost or rejected, and what NCCL does not show. */
#include "tests/support/command_play.h"
#include "tests/tap.h"

/* A copy of a recording that ends early, or has other bytes in the middle. */
static void spoil(const char *from, const char *to, size_t keep, size_t at)
{
	size_t length;
	char *bytes = command_read(command_path(from), &length);

	if (at > 0)
		memcpy(bytes + at, "XXXX", 4);
	command_write(to, bytes, keep ? keep : length);
	free(bytes);
}

int main(void)
{
	static const char *const lines[] = {
		"verify traces",
		"verify --strict traces",
		"verify --json traces",
		"verify lossy",
		"verify gap",
		"verify open",
		"verify stuck",
		"verify -j stuck",
		"verify ended",
		"verify --strict ended",
		"verify carrier",
		"verify --strict carrier --rank 0",
		"verify stuck open",
		"verify lossy stuck",
		"verify damaged.ringside",
		"verify cut.ringside",
		"verify head.ringside",
		"verify traces garbage",
		"verify traces garbage nowhere",
		"verify mixed",
		"verify --json mixed",
		"verify sim",
		"verify hung",
		"verify traces --rank 1",
		"verify traces --rank 5",
		"verify empty",
		"verify --json empty",
		"verify nowhere @999999999",
		"verify --blind-spots",
		"verify minor-0.ringside newer-minor.ringside",
		"verify newer-major.ringside",
		"verify inspector-damaged.log",
		"verify comma-latency.txt",
		"verify --strict inspector-v4.3.log",
		NULL,
	};
	static const char *const kinds[] = { "traces", "lossy", "gap",	  "open",
					     "stuck",  "ended", "carrier" };
	static const char *const copies[][2] = {
		{ "tests/golden/minor-0.ringside", "minor-0.ringside" },
		{ "tests/golden/newer-minor.ringside", "newer-minor.ringside" },
		{ "tests/golden/newer-major.ringside", "newer-major.ringside" },
		{ "tests/foreign/data/inspector-damaged.log", "inspector-damaged.log" },
		{ "tests/foreign/data/inspector-v4.3.log", "inspector-v4.3.log" },
		{ "tests/foreign/data/comma-latency.txt", "comma-latency.txt" },
	};

	command_begin();
	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
		command_make(kinds[i]);
	for (size_t i = 0; i < ARRAY_LENGTH(copies); i++)
		command_copy(copies[i][0], copies[i][1]);
	command_directory("empty");
	command_directory("mixed");
	command_write_text("garbage", "neither a trace nor a log\n");
	command_write_text("mixed/README", "a note\n");
	spoil("traces/r0-nodea-999999990-4242.ringside", "damaged.ringside", 0, 700);
	spoil("traces/r0-nodea-999999990-4242.ringside", "cut.ringside", 1000, 0);
	spoil("traces/r0-nodea-999999990-4242.ringside", "head.ringside", 30, 0);
	spoil("traces/r1-nodea-999999991-4242.ringside", "mixed/one.ringside", 0, 0);
	command_sim("-o sim --nodes 1 --gpus 2 -w fsdp --iterations 2 --kernel");
	command_sim("-o hung --nodes 1 --gpus 2 --seconds 4s -f never-arrives:rank=1 --at 1s");
	command_each(lines);
	setenv("COLUMNS", "60", 1);
	command("verify lossy");
	command("verify sim");
	command("verify --blind-spots");
	EXPECT_THAT("verify prints what is expected",
		    command_expected("tests/unit/cmds/expected/verify"));
	return tap_done();
}
