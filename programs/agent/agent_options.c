#include "programs/agent/agent_options.h"

#include <stdlib.h>
#include <unistd.h>

#include "cmds/cli.h"
#include "common/text.h"
#include "programs/agent/agent_hook.h"
#include "programs/agent/agent_page.h"
#include "programs/sim/sim_parse.h"

#define SECOND_NS UINT64_C(1000000000)

static int take_listen(struct agent_options *options, const char *text)
{
	const char *why;

	if (options->listen_count == AGENT_LISTENERS_MAX)
		return cli_usage(&agent_page, "--listen may be said %d times", AGENT_LISTENERS_MAX);
	if (web_address_parse(&options->listen[options->listen_count], text, &why) != OK)
		return cli_usage(&agent_page, "--listen %s: %s", text, why);
	options->listen_count++;
	return -1;
}

static int take_time(const char *name, const char *text, uint64_t least_ns, uint64_t *ns)
{
	uint64_t value;

	if (sim_parse_duration(text, &value) != OK)
		return cli_usage(&agent_page, "--%s %s is not a time like 30s, 5m or 500ms", name,
				 text);
	if (value < least_ns)
		return cli_usage(&agent_page, "--%s %s is less than %us", name, text,
				 (unsigned int)(least_ns / SECOND_NS));
	*ns = value;
	return -1;
}

static int take_host(struct agent_options *options, const char *text)
{
	if (text[0] == '\0' || !text_copy(options->host, sizeof(options->host), text))
		return cli_usage(&agent_page, "--host '%s' is no name of a machine", text);
	options->watch.only_host = options->host;
	return -1;
}

static int take_hook(struct agent_options *options, const char *text)
{
	if (text[0] != '/')
		return cli_usage(&agent_page, "--hook %s is not the whole path of a program", text);
	options->hook = text;
	return -1;
}

static int take_kernel_time(struct agent_options *options, const char *text)
{
	int code = take_time("kernel-time", text, SECOND_NS, &options->kernel_ns);

	if (code == -1 && options->kernel_ns > 60 * SECOND_NS)
		return cli_usage(&agent_page, "--kernel-time %s is more than 1m", text);
	return code;
}

static int take(struct agent_options *options, int found, const char *value)
{
	switch (found) {
	case 'l':
		return take_listen(options, value);
	case AGENT_OPTION_WEB:
		options->web_config = value;
		return -1;
	case AGENT_OPTION_TEXTFILE:
		options->textfile = value;
		return -1;
	case AGENT_OPTION_INTERVAL:
		return take_time("interval", value, SECOND_NS, &options->interval_ns);
	case AGENT_OPTION_DIRECTORY:
		options->watch.directory = value;
		return -1;
	case AGENT_OPTION_KEEP:
		return take_time("keep", value, 0, &options->watch.keep_ns);
	case AGENT_OPTION_HANG:
		return take_time("hang", value, SECOND_NS, &options->limits.hang_ns);
	case AGENT_OPTION_LAG:
		return take_time("lag", value, SECOND_NS, &options->limits.lag_ns);
	case AGENT_OPTION_HOOK:
		return take_hook(options, value);
	case AGENT_OPTION_HOOK_TIME:
		return take_time("hook-time", value, SECOND_NS, &options->hook_ns);
	case AGENT_OPTION_KERNEL:
		options->has_kernel = true;
		return -1;
	case AGENT_OPTION_KERNEL_TIME:
		return take_kernel_time(options, value);
	case AGENT_OPTION_HOST:
		return take_host(options, value);
	case AGENT_OPTION_USER:
		options->user = value;
		return -1;
	case AGENT_OPTION_GROUP:
		options->group = value;
		return -1;
	default:
		return cli_usage(&agent_page, "'%s' is not expected", value);
	}
}

int agent_options_parse(struct agent_options *options, int argc, char **argv)
{
	struct cli_args args;
	int found, code;

	*options = (struct agent_options){
		.interval_ns = 15 * SECOND_NS,
		.hook_ns = AGENT_HOOK_TIMEOUT_NS,
		.kernel_ns = 10 * SECOND_NS,
		.watch = { .directory = getenv("RINGSIDE_SHM"), .keep_ns = 300 * SECOND_NS },
		.limits = live_limits_default(),
	};
	if (gethostname(options->host, sizeof(options->host) - 1) == -1)
		options->host[0] = '\0';
	cli_args_init(&args, &agent_page, argc, argv);
	while ((found = cli_next(&args)) != CLI_END) {
		if (found == CLI_STOP)
			return args.exit_code;
		code = take(options, found, args.value);
		if (code != -1)
			return code;
	}
	return -1;
}
