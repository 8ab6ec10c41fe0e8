/* Options that the agent and the hub have in common. */
#include "serve/serve.h"

#include <unistd.h>

#include "common/text.h"

void serving_options_init(struct serving_options *serving)
{
	*serving = (struct serving_options){ .hook_ns = SERVE_HOOK_TIMEOUT_NS };
	if (gethostname(serving->host, sizeof(serving->host) - 1) == -1)
		serving->host[0] = '\0';
}

int serving_take_listen(const struct cli_said *said)
{
	struct serving_options *serving = said->target;
	const char *why;

	if (serving->listen_count == SERVE_LISTENERS_MAX)
		return cli_usage(said->page, "--listen can be given at most %d times",
				 SERVE_LISTENERS_MAX);
	if (web_address_parse(&serving->listen[serving->listen_count], said->value, &why) != OK)
		return cli_usage(said->page, "--listen %s: %s", said->value, why);
	serving->listen_count++;
	return 0;
}

int serving_take_host(const struct cli_said *said)
{
	struct serving_options *serving = said->target;

	serving->is_host_given = true;
	if (said->value[0] == '\0' || !text_copy(serving->host, sizeof(serving->host), said->value))
		return cli_usage(said->page, "--host '%s' is not a host name", said->value);
	return 0;
}

int serving_take_hook(const struct cli_said *said)
{
	struct serving_options *serving = said->target;

	if (said->value[0] != '/')
		return cli_usage(said->page, "--hook %s is not an absolute path of a program",
				 said->value);
	serving->hook = said->value;
	return 0;
}
