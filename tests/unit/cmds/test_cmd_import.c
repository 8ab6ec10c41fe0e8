/* ringside import: logs of other tools become trace files. */
#include "tests/support/command_play.h"
#include "tests/tap.h"

int main(void)
{
	static const char *const names[] = {
		"inspector-v4.0.log",	 "inspector-v4.1.log",	  "inspector-v4.2.log",
		"inspector-v4.3.log",	 "inspector-v4.4.log",	  "inspector-v4.0-verbose.log",
		"inspector-damaged.log", "inspector-mixed.jsonl", "comma-latency.txt",
		"comma-summary.txt",	 "nccl-tests.json",	  "nccl-tests-all-reduce.txt",
	};
	static const char *const lines[] = {
		"import logs -o out",
		"ls out",
		"import logs -o out",
		"import logs -o out --force",
		"import -q logs/inspector-v4.0.log -o quiet",
		"import --json logs/inspector-mixed.jsonl logs/inspector-v4.2.log -o json",
		"import logs/inspector-damaged.log -o damaged",
		"import --json logs/inspector-damaged.log -o damaged-json",
		"import --strict logs/inspector-damaged.log -o strict",
		"import --strict logs/inspector-v4.0.log -o strict",
		"import logs/comma-latency.txt -o comma",
		"import logs/comma-summary.txt -o summary",
		"import logs/nccl-tests-all-reduce.txt -o tests",
		"import logs/nccl-tests.json -o tests",
		"import traces -o own",
		"import nowhere -o none",
		"import nowhere logs/inspector-v4.0.log -o partly",
		"import empty -o none",
		"import garbage -o none",
		"import logs/inspector-v4.1.log",
		"import -o none",
		"import logs/inspector-v4.1.log -o garbage",
		"import logs/inspector-v4.1.log -o garbage/below",
		"import logs/inspector-v4.1.log -o new/below",
		"import logs/inspector-v4.1.log -o empty",
		NULL,
	};

	command_begin();
	command_directory("logs");
	command_directory("empty");
	command_make("traces");
	command_write_text("garbage", "neither a trace nor a log\n");
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		char from[256], to[256];

		snprintf(from, sizeof(from), "tests/foreign/data/%s", names[i]);
		snprintf(to, sizeof(to), "logs/%s", names[i]);
		command_copy(from, to);
	}
	command_each(lines);
	EXPECT_THAT("import prints what is expected",
		    command_expected("tests/unit/cmds/expected/import"));
	return tap_done();
}
