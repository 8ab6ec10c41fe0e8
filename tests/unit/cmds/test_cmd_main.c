/* The program itself: help, versions, unknown commands. */
#include "tests/support/command_play.h"
#include "tests/support/runner.h"
#include "tests/tap.h"

/* Bundles and completions run the program again: see tests/support/runner.h. */
int unit_program(int argc, char **argv)
{
	return cmds_main(argc, argv);
}

int main(void)
{
	static const char *const lines[] = {
		"",
		"help",
		"--help",
		"-h",
		"version",
		"--version",
		"-V",
		"version x",
		"version --help",
		"help version",
		"help help",
		"help --all",
		"help nothing",
		"help reprot",
		"reprot",
		"xyzzy",
		"help dump",
		"help hub --bad",
		"dump -h",
		"top --help",
		"hub --list-options",
		"top --list-options",
		"ls --list-options",
		NULL,
	};

	command_begin();
	command_each(lines);
	EXPECT_THAT("the program prints what is expected",
		    command_expected("tests/unit/cmds/expected/main"));
	return tap_done();
}
