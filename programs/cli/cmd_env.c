#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "programs/cli/cli_commands.h"
#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_job.h"
#include "programs/cli/cli_options.h"
#include "view/json.h"
#include "view/sink.h"

static const struct cli_option options[] = {
	CLI_JOB_OPTIONS,
	CLI_OPTION_JSON,
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "eval \"$(ringside env -m trace -o traces)\"",
	  "in a job script, before the line that starts the ranks" },
	{ "ringside env --json", "the same variables for a program" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "env",
	.operands = "",
	.about = "Prints one 'export' line per variable that 'ringside run' would set, for shells "
		 "that know export (sh, bash, zsh). Nothing is changed.\n",
	.options = options,
	.examples = examples,
};

/* In single quotes nothing is special but the quote itself. */
static void write_quoted(struct sink *sink, const char *text)
{
	sink_text(sink, "'");
	for (; *text != '\0'; text++) {
		if (*text == '\'')
			sink_text(sink, "'\\''");
		else
			sink_write(sink, text, 1);
	}
	sink_text(sink, "'");
}

static void write_export(struct sink *sink, const struct cli_variable *variable)
{
	sink_format(sink, "export %s=", variable->name);
	if (variable->is_appended)
		sink_format(sink, "\"${%s:+$%s:}\"", variable->name, variable->name);
	write_quoted(sink, variable->value);
	sink_text(sink, "\n");
}

static void write_json(struct sink *sink, const struct cli_job *job)
{
	struct json json;

	json_init(&json, sink);
	json_object(&json);
	for (size_t i = 0; i < job->count; i++) {
		const struct cli_variable *variable = &job->variables[i];
		const char *before = variable->is_appended ? getenv(variable->name) : NULL;
		struct sink joined;

		sink_init_memory(&joined);
		if (before && before[0])
			sink_format(&joined, "%s:", before);
		sink_text(&joined, variable->value);
		json_put_string(&json, variable->name, sink_string(&joined));
		sink_release(&joined);
	}
	json_end(&json);
	json_line(&json);
}

int cmd_env(int argc, char **argv)
{
	static struct cli_job job;
	bool is_json = false;
	struct cli_args args;
	struct sink sink;
	int found, failed = 0;

	cli_job_init(&job);
	cli_args_init(&args, &page, argc, argv);
	while (failed == 0 && (found = cli_next(&args)) != CLI_END) {
		if (found == CLI_STOP)
			return args.exit_code;
		if (found == CLI_OPERAND)
			return cli_usage(&page, "'%s' is not expected", args.value);
		if (found == 'j')
			is_json = true;
		else
			failed = cli_job_take(&job, &page, found, args.value);
	}
	if (failed == 0)
		failed = cli_job_complete(&job);
	if (failed)
		return failed;
	sink_init_fd(&sink, STDOUT_FILENO);
	if (is_json)
		write_json(&sink, &job);
	for (size_t i = 0; i < job.count && !is_json; i++)
		write_export(&sink, &job.variables[i]);
	return cli_finish(&sink, CLI_EXIT_DONE);
}
