/* Completions for shells, made of the options of each command. */
#include "tests/support/command_play.h"
#include "tests/tap.h"

int main(void)
{
	static const char *const lines[] = {
		"completions",
		"completions tcsh",
		"completions --help",
		"completions bash",
		"completions zsh",
		"completions fish",
		NULL,
	};

	command_begin();
	command_each(lines);
	EXPECT_THAT("completions are as expected",
		    command_expected("tests/unit/cmds/expected/completions"));
	return tap_done();
}
