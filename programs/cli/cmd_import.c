#include <unistd.h>

#include "common/text.h"
#include "programs/cli/cli_commands.h"
#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_input.h"
#include "programs/cli/cli_options.h"
#include "programs/cli/cli_output.h"
#include "programs/cli/cli_progress.h"
#include "programs/cli/import_log.h"
#include "view/json.h"

enum { IMPORT_STRICT = CLI_LONG_ONLY, IMPORT_FORCE };

static const struct cli_option options[] = {
	{ 'o', "output", "DIR", "directory for the trace files; made when it is not there" },
	{ IMPORT_FORCE, "force", NULL, "write into a directory that has files, and replace them" },
	{ IMPORT_STRICT, "strict", NULL, "write nothing when any line or file cannot be read" },
	CLI_OPTION_JSON,
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside import nccl-inspector-4711/ -o traces/", "NCCL Inspector's logs of a job" },
	{ "ringside import node*/latency-*.txt.gz -o traces/", "what CoMMA wrote, packed" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "import",
	.operands = "PATH...",
	.about = "Turns logs that other tools wrote into trace files, one per process, which all "
		 "commands read: NCCL Inspector's (v4.0 to v4.4) and CoMMA's latency files, plain "
		 "or gzip. What a file is shows in its content. The reading commands take such "
		 "logs directly, too; trace files are smaller and faster. docs/FOREIGN.md says "
		 "what becomes what, and what these logs do not have.\n"
		 "PATH is a log, or a directory with all that is below it. Lines that cannot be "
		 "read are named and skipped; the exit code is then 1.\n",
	.options = options,
	.examples = examples,
};

struct request {
	const char *output;
	bool is_forced;
	bool is_strict;
	bool is_json;
};

/* ---- what was done --------------------------------------------------------------------------- */

static void say_json(struct sink *sink, const struct request *request,
		     const struct import_totals *totals)
{
	struct json json;

	json_init(&json, sink);
	json_object(&json);
	json_put_string(&json, "output", request->output);
	json_put_unsigned(&json, "logs", totals->logs);
	json_put_unsigned(&json, "files", totals->files);
	json_put_unsigned(&json, "bytes", totals->bytes);
	json_put_unsigned(&json, "communicators", totals->comms);
	json_put_unsigned(&json, "operations", totals->operations);
	json_put_unsigned(&json, "details", totals->details);
	json_put_unsigned(&json, "dropped_operations", totals->dropped);
	json_put_unsigned(&json, "not_recorded_operations", totals->not_recorded);
	json_put_unsigned(&json, "dropped_details", totals->dropped_details);
	json_put_unsigned(&json, "skipped_details", totals->skipped_details);
	json_put_unsigned(&json, "untimed_operations", totals->untimed);
	json_put_unsigned(&json, "coarse_operations", totals->coarse);
	json_put_unsigned(&json, "damaged_lines", totals->damaged);
	json_put_unsigned(&json, "ignored_lines", totals->ignored);
	json_end(&json);
	json_line(&json);
}

static void say_if(struct sink *sink, uint64_t count, const char *what)
{
	char text[UNITS_TEXT];

	if (count > 0)
		sink_format(sink, "  %s %s\n", units_count(text, count), what);
}

static void say_text(struct sink *sink, const struct request *request,
		     const struct import_totals *totals)
{
	char operations[UNITS_TEXT], comms[UNITS_TEXT];

	sink_format(sink, "%s operations of %zu processes, %s communicators, from %zu logs to %s\n",
		    units_count(operations, totals->operations), totals->files,
		    units_count(comms, totals->comms), totals->logs, request->output);
	say_if(sink, totals->details, "details of channels and transfers");
	say_if(sink, totals->dropped, "operations are missing: their recorder dropped them");
	say_if(sink, totals->not_recorded,
	       "operations are missing: NCCL counted them, their recorder did not write them (too "
	       "small, not finished, or lost)");
	say_if(sink, totals->dropped_details, "details are missing: their recorder dropped them");
	say_if(sink, totals->skipped_details,
	       "details were left out: they are on another clock than their operations");
	say_if(sink, totals->untimed, "operations have no duration");
	say_if(sink, totals->coarse,
	       "operations ended at a time that is not known, before they were written");
	say_if(sink, totals->damaged, "lines could not be read");
	say_if(sink, totals->ignored, "lines are not about operations");
	sink_format(sink, "  not known: %swhen they were %s; datatypes, counts, roots%s\n",
		    totals->is_without_algorithms ? "algorithms and protocols; " : "",
		    totals->is_inspector ? "issued" : "done on the GPU",
		    totals->is_comma ? "; how many ranks communicators have" : "");
}

/* ---- doing it -------------------------------------------------------------------------------- */

static int import_all(const struct cli_input *input, const struct request *request,
		      struct cli_tree *tree, struct import_totals *totals)
{
	const struct recording *recording = &input->recording;
	struct cli_progress progress;
	struct import import = { .tree = tree, .progress = &progress };
	int exit_code = 0;

	cli_progress_start(&progress, "import", "operations", 0);
	for (size_t i = 0; i < recording->foreign_path_count && exit_code == 0; i++)
		exit_code = import_log(&import, recording->foreign_paths[i]);
	cli_progress_end(&progress);
	import_release(&import);
	*totals = import.totals;
	if (exit_code != 0)
		return exit_code;
	if (totals->damaged > 0 && request->is_strict)
		return cli_error("nothing is written: %llu lines cannot be read",
				 (unsigned long long)totals->damaged);
	if (totals->operations == 0)
		return cli_error("nothing is written: no operation is in these files");
	return 0;
}

/* Told only when there is some: a directory without recordings of our own is as it should be. */
static bool complain(const struct cli_input *input)
{
	const struct recording *recording = &input->recording;

	for (size_t i = 0; i < recording->trouble_count; i++)
		if (cli_input_is_trouble(input, &recording->troubles[i]))
			return cli_input_complain(input, true);
	return false;
}

static int import_input(const struct cli_input *input, const struct request *request)
{
	bool is_trouble = complain(input);
	struct import_totals totals;
	struct cli_tree tree;
	struct sink sink;
	int exit_code;

	if (input->recording.foreign_path_count == 0)
		return is_trouble ? CLI_EXIT_TROUBLE
				  : cli_error("no log of another tool is there: nothing to import");
	if (is_trouble && request->is_strict)
		return cli_error("nothing is written: not all files can be read");
	if (cli_tree_open(&tree, request->output, request->is_forced ? CLI_OUTPUT_FORCE : 0) != 0)
		return CLI_EXIT_TROUBLE;
	exit_code = import_all(input, request, &tree, &totals);
	if (exit_code != 0) {
		cli_tree_discard(&tree);
		return exit_code;
	}
	exit_code = totals.damaged > 0 || is_trouble ? CLI_EXIT_TROUBLE : CLI_EXIT_DONE;
	if (cli_tree_commit(&tree, 0) != 0)
		return CLI_EXIT_TROUBLE;
	sink_init_fd(&sink, STDOUT_FILENO);
	if (request->is_json)
		say_json(&sink, request, &totals);
	else
		say_text(&sink, request, &totals);
	return cli_finish(&sink, exit_code);
}

int cmd_import(int argc, char **argv)
{
	struct request request = { 0 };
	struct cli_input input;
	struct cli_args args;
	int found, exit_code = 0;

	cli_input_init(&input);
	cli_args_init(&args, &page, argc, argv);
	while ((found = cli_next(&args)) != CLI_END && found != CLI_STOP) {
		if (found == CLI_OPERAND)
			cli_input_path(&input, args.value);
		else if (found == 'o')
			request.output = args.value;
		else if (found == 'j')
			request.is_json = true;
		else if (found == IMPORT_FORCE)
			request.is_forced = true;
		else if (found == IMPORT_STRICT)
			request.is_strict = true;
	}
	if (found == CLI_STOP)
		exit_code = args.exit_code;
	else if (input.path_count == 0)
		exit_code = cli_usage(&page, "no log is given");
	else if (request.output == NULL)
		exit_code = cli_usage(&page, "no directory is given: -o DIR");
	else if ((exit_code = cli_input_read(&input,
					     RECORDING_LIST_FOREIGN | RECORDING_TRACES_ALONE)) == 0)
		exit_code = import_input(&input, &request);
	cli_input_release(&input);
	return exit_code;
}
