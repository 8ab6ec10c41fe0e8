/* `ringside baseline`: saves how fast transfers were, and shows what was saved. */
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_input.h"
#include "cmds/commands.h"
#include "output/report.h"

struct request {
	const char *verb;
	struct cli_input input;
	struct report_filter chosen;
	const char *output;
	bool is_json;
};

/* The verb, then PATHs. */
static int take_word(const struct cli_said *said)
{
	struct request *request = said->target;

	if (request->verb == NULL)
		request->verb = said->value;
	else
		cli_input_path(&request->input, said->value);
	return 0;
}

static const struct cli_option options[] = {
	{ 'o', "output", "FILE", "file to write; - for standard output",
	  CLI_TEXT(struct request, output) },
	CLI_OPTION_JSON(struct request),
	REPORT_FILTER_OPTIONS(struct request),
	CLI_OPTIONS_SHOWING,
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside baseline save traces/ -o good.json", "save how fast the job was today" },
	{ "ringside doctor traces-of-tomorrow/ --baseline good.json",
	  "compare a later run with it" },
	{ "ringside baseline show good.json", "print a baseline" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "baseline",
	.operands = "save PATH... -o FILE | show FILE",
	.about = "Saves how fast transfers were, by communicator, operation, size, algorithm and "
		 "protocol and without waiting, in a small JSON file. 'ringside doctor --baseline "
		 "FILE' compares a job with it. Several PATHs can be the ranks of one job or "
		 "several runs, which are merged. docs/REPORT.md explains the file.\n"
		 "'show' prints what such a file holds; with --json the checked file "
		 "itself.\n" CLI_INPUT_ABOUT "\n",
	.options = options,
	.operand = take_word,
	.examples = examples,
};

static void write_json(struct sink *sink, const struct baseline *baseline)
{
	struct json json;

	json_init(&json, sink);
	baseline_json(&json, baseline);
	json_line(&json);
}

/* ---- save ------------------------------------------------------------------------------------ */

/* Returns 0, or the exit code after an error was reported; *trouble: exit code of problems with single files. */
static int baseline_compute(struct request *request, struct baseline *baseline, int *trouble)
{
	struct timeline_options wanted = TIMELINE_OPTIONS_INIT;
	struct timeline_report report;
	enum status status;
	int exit_code;

	exit_code = cli_input_read(&request->input, RECORDING_WITH_TRACES);
	if (exit_code != 0)
		return exit_code;
	*trouble = report_read_troubles(&request->input, false);
	if (request->input.recording.count == 0)
		return *trouble;
	wanted.custom_by[wanted.custom_count++] = BASELINE_BY;
	wanted.without_windows = true;
	exit_code = report_read(&report, &request->input, &request->chosen, &wanted, &page);
	if (exit_code != 0)
		return exit_code;
	status = baseline_make(baseline, &report);
	timeline_report_release(&report);
	if (status != OK)
		cli_no_memory();
	if (baseline->left_out > 0)
		cli_note("%zu kinds of transfers left out: baseline is full", baseline->left_out);
	if (baseline->count > 0)
		return 0;
	baseline_release(baseline);
	return cli_error("no operation with a duration: nothing to save");
}

static int say_saved(const struct request *request, const struct baseline *baseline, int exit_code)
{
	struct sink sink;

	if (cli_is_quiet())
		return exit_code;
	sink_init_fd(&sink, STDOUT_FILENO);
	sink_format(&sink, "%s: baseline of %zu %s\n", request->output, baseline->count,
		    text_which(baseline->count, "kind of transfer", "kinds of transfers"));
	return cli_finish(&sink, exit_code);
}

static int baseline_save(struct request *request)
{
	struct baseline baseline;
	struct cli_output output;
	int trouble = 0, exit_code;

	if (request->input.path_count == 0)
		return cli_usage(&page, "nothing to save: pass a PATH");
	if (request->output == NULL || request->output[0] == '\0')
		return cli_usage(&page, "no output file: use -o FILE");
	exit_code = baseline_compute(request, &baseline, &trouble);
	if (exit_code != 0)
		return exit_code;
	exit_code = cli_output_open(&output, request->output);
	if (exit_code == 0) {
		write_json(&output.sink, &baseline);
		exit_code = cli_output_commit(&output, trouble);
		if (exit_code == trouble && strcmp(request->output, "-") != 0)
			exit_code = say_saved(request, &baseline, exit_code);
	}
	baseline_release(&baseline);
	return exit_code;
}

/* ---- show ------------------------------------------------------------------------------------ */

static int baseline_print(const struct request *request)
{
	struct baseline baseline;
	struct cli_output output;
	int exit_code;

	if (request->input.path_count != 1)
		return cli_usage(&page, "show needs one FILE");
	exit_code = baseline_file_read(&baseline, request->input.paths[0]);
	if (exit_code != 0)
		return exit_code;
	exit_code = cli_output_open(&output, request->output ? request->output : "-");
	if (exit_code == 0) {
		if (request->is_json)
			write_json(&output.sink, &baseline);
		else if (baseline_text(&output.sink, &baseline,
				       request->output ? 0 : cli_width()) == ERR_NO_SPACE)
			cli_no_memory();
		exit_code = cli_output_commit(&output, CLI_EXIT_DONE);
	}
	baseline_release(&baseline);
	return exit_code;
}

static int baseline_run(struct request *request)
{
	if (request->verb == NULL)
		return cli_usage(&page, "no command: use save or show");
	if (strcmp(request->verb, "save") == 0)
		return baseline_save(request);
	if (strcmp(request->verb, "show") == 0)
		return baseline_print(request);
	return cli_usage(&page, "'%s' is neither save nor show", request->verb);
}

int cmd_baseline(int argc, char **argv)
{
	struct request request = { .verb = NULL };
	int exit_code;

	cli_input_init(&request.input);
	exit_code = cli_parse(&page, &request, argc, argv);
	if (exit_code == CLI_GO_ON)
		exit_code = baseline_run(&request);
	report_filter_release(&request.chosen);
	cli_input_release(&request.input);
	return exit_code;
}
