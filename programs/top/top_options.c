#include "programs/top/top_options.h"

#include <stdlib.h>

#include "cmds/cli.h"
#include "programs/sim/sim_parse.h"
#include "programs/top/top_page.h"
#include "programs/top/top_view.h"

static int take_interval(struct top_options *options, const char *text)
{
	uint64_t ns;

	if (sim_parse_duration(text, &ns) != OK)
		return cli_usage(&top_page, "--interval %s is not a time like 1s or 500ms", text);
	if (ns < TOP_INTERVAL_LEAST_NS || ns > TOP_INTERVAL_MOST_NS)
		return cli_usage(&top_page, "--interval %s is not between 200ms and 60s", text);
	options->interval_ns = ns;
	return -1;
}

int top_options_parse(struct top_options *options, int argc, char **argv)
{
	struct cli_args args;
	int found, code;

	*options = (struct top_options){ .interval_ns = 1000000000,
					 .directory = getenv("RINGSIDE_SHM") };
	cli_args_init(&args, &top_page, argc, argv);
	while ((found = cli_next(&args)) != CLI_END) {
		if (found == CLI_STOP)
			return args.exit_code;
		code = -1;
		if (found == TOP_OPTION_INTERVAL)
			code = take_interval(options, args.value);
		else if (found == TOP_OPTION_ONCE)
			options->is_once = true;
		else if (found == TOP_OPTION_DIRECTORY)
			options->directory = args.value;
		else
			code = cli_usage(&top_page, "'%s' is not expected", args.value);
		if (code != -1)
			return code;
	}
	return -1;
}
