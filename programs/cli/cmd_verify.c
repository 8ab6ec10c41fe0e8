#include <unistd.h>

#include "programs/cli/cli_commands.h"
#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_input.h"
#include "programs/cli/cli_options.h"
#include "programs/cli/verify_judge.h"
#include "programs/cli/verify_show.h"

enum { VERIFY_STRICT = CLI_LONG_ONLY, VERIFY_BLIND };

static const struct cli_option options[] = {
	CLI_OPTION_JSON,
	{ VERIFY_STRICT, "strict", NULL,
	  "take remarks for trouble: lost details, GPU times not believed, odd events" },
	{ VERIFY_BLIND, "blind-spots", NULL,
	  "only list what NCCL does not show and which kernel events are requested, release by "
	  "release; reads nothing" },
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside verify traces/", "is everything there that the job did?" },
	{ "ringside verify --json traces/ | jq .trouble", "the first trouble, or null" },
	{ "ringside verify --blind-spots", "what no profiler can see" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "verify",
	.operands = "[PATH...]",
	.about = "Adds up, per process and communicator: operations issued, recorded, timed, in "
		 "flight, lost and why, GPU times not believed, damage, whether files were closed; "
		 "and says what NCCL itself does not show. Exit code 1 and a first line with the "
		 "first trouble when anything is missing or damaged.\n" CLI_INPUT_ABOUT
			 CLI_INPUT_NONE "\n",
	.options = options,
	.examples = examples,
};

static int check(const struct cli_input *input, bool is_json, bool is_strict)
{
	struct verify verify;
	struct sink sink;
	int exit_code;

	verify_init(&verify, input, is_strict);
	sink_init_fd(&sink, STDOUT_FILENO);
	if (is_json)
		verify_show_json(&verify, &sink);
	else
		verify_show_text(&verify, &sink, cli_width());
	exit_code = verify.first_trouble ? CLI_EXIT_TROUBLE : CLI_EXIT_DONE;
	verify_release(&verify);
	return cli_finish(&sink, exit_code);
}

static int list_blind_spots(bool is_json)
{
	struct sink sink;

	sink_init_fd(&sink, STDOUT_FILENO);
	if (is_json)
		verify_blind_json(&sink);
	else
		verify_blind_text(&sink, cli_width());
	return cli_finish(&sink, CLI_EXIT_DONE);
}

int cmd_verify(int argc, char **argv)
{
	bool is_json = false, is_strict = false, is_blind = false;
	struct cli_input input;
	struct cli_args args;
	int found, exit_code;

	cli_input_init(&input);
	cli_args_init(&args, &page, argc, argv);
	while ((found = cli_next(&args)) != CLI_END && found != CLI_STOP) {
		if (found == CLI_OPERAND)
			cli_input_path(&input, args.value);
		is_json |= found == 'j';
		is_strict |= found == VERIFY_STRICT;
		is_blind |= found == VERIFY_BLIND;
	}
	if (found == CLI_STOP)
		exit_code = args.exit_code;
	else if (is_blind)
		exit_code = list_blind_spots(is_json);
	else if ((exit_code = cli_input_read(&input, RECORDING_WITH_TRACES)) == 0)
		exit_code = check(&input, is_json, is_strict);
	cli_input_release(&input);
	return exit_code;
}
