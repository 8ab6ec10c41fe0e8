#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/text.h"
#include "programs/cli/cli_commands.h"
#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_input.h"
#include "programs/cli/cli_options.h"
#include "programs/cli/cli_output.h"
#include "programs/cli/export_inspector.h"
#include "programs/cli/export_job.h"
#include "programs/cli/report_filter.h"
#include "view/json.h"

enum { EXPORT_OPTION_PARTITION = CLI_LONG_ONLY, EXPORT_OPTION_ROWS, EXPORT_OPTION_FORCE };
/* A file of some 200 MB. */
enum { EXPORT_FILE_ROWS = 4 << 20 };

static const struct cli_option options[] = {
	{ 'o', "output", "FILE",
	  "write this file, or - for standard output; a name that ends with / or an existing "
	  "directory: files for each job, host and rank" },
	{ 'f', "format", "FORMAT",
	  "parquet, csv, jsonl or inspector (default: by the name of the file; parquet for "
	  "directories)" },
	{ EXPORT_OPTION_PARTITION, "partition", NULL, "write a directory, whatever its name" },
	{ EXPORT_OPTION_ROWS, "rows", "N",
	  "directories: begin another file after N operations (default 4194304)" },
	{ EXPORT_OPTION_FORCE, "force", NULL,
	  "put files into a directory that has some: those of the same job, host and rank are "
	  "replaced" },
	REPORT_FILTER_OPTIONS,
	CLI_OPTION_JSON,
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside export traces/ -o operations.parquet", "one file, for DuckDB and others" },
	{ "ringside export traces/ -o lake/", "a directory for each job, host and rank" },
	{ "ringside export traces/ -f csv -o - | head", "as text, on standard output" },
	{ "ringside export traces/ --rank 0-7 --op AllReduce --since -5m -o last.parquet",
	  "the AllReduces of eight ranks in the last five minutes" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "export",
	.operands = "[PATH...]",
	.about = "Writes recorded operations as a table, one row an operation, for other tools: "
		 "Parquet, CSV or JSON lines; or as NCCL Inspector's log. docs/EXPORT.md explains "
		 "every column, docs/QUERIES.md has queries to begin with.\n"
		 "A file appears when it is whole, in the place of an older one of its "
		 "name.\n" CLI_INPUT_ABOUT CLI_INPUT_NONE "\n",
	.options = options,
	.examples = examples,
};

static const struct export_format *const formats[] = {
	&export_parquet,
	&export_csv,
	&export_jsonl,
	&export_inspector,
};

struct request {
	struct export_job job;
	struct report_filter chosen;
	const char *format;
	bool is_json;
};

/* ---- options --------------------------------------------------------------------------------- */

static int take(struct request *request, int option, const char *value)
{
	int64_t rows;

	switch (option) {
	case 'o':
		request->job.path = value;
		break;
	case 'f':
		request->format = value;
		break;
	case 'j':
		request->is_json = true;
		break;
	case EXPORT_OPTION_PARTITION:
		request->job.is_directory = true;
		break;
	case EXPORT_OPTION_FORCE:
		request->job.is_forced = true;
		break;
	case EXPORT_OPTION_ROWS:
		if (text_number(value, 1, INT64_MAX, &rows) != OK)
			return cli_usage(&page, "--rows %s is not a number from 1 on", value);
		request->job.file_rows = (uint64_t)rows;
		break;
	default:
		return report_filter_take(&request->chosen, &page, option, value);
	}
	return 0;
}

static const struct export_format *find_format(const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(formats); i++)
		if (strcmp(formats[i]->name, name) == 0)
			return formats[i];
	return NULL;
}

static const struct export_format *format_of_file(const char *path)
{
	size_t length = strlen(path);

	for (size_t i = 0; i < ARRAY_LENGTH(formats); i++) {
		size_t suffix = strlen(formats[i]->suffix);

		if (length > suffix && strcmp(path + length - suffix, formats[i]->suffix) == 0)
			return formats[i];
	}
	return NULL;
}

static bool is_directory(const char *path)
{
	struct stat st;

	return path[0] != '\0' &&
	       (path[strlen(path) - 1] == '/' || (stat(path, &st) == 0 && S_ISDIR(st.st_mode)));
}

static int choose_format(struct request *request)
{
	struct export_job *job = &request->job;

	if (request->format != NULL) {
		job->format = find_format(request->format);
		if (job->format == NULL)
			return cli_usage(&page,
					 "--format %s is none of parquet, csv, jsonl, inspector",
					 request->format);
		return 0;
	}
	job->format = job->is_directory ? &export_parquet : format_of_file(job->path);
	if (job->format == NULL)
		return cli_usage(&page,
				 "which format for '%s'? Name it .parquet, .csv or .jsonl, or say "
				 "--format",
				 job->path);
	return 0;
}

static int check(struct request *request)
{
	struct export_job *job = &request->job;

	if (job->path == NULL)
		return cli_usage(&page, "where to? Say -o FILE, -o DIRECTORY/ or -o -");
	if (job->path[0] == '\0')
		return cli_usage(&page, "'' is no name of a file");
	if (strcmp(job->path, "-") == 0 && job->is_directory)
		return cli_usage(&page, "standard output is no directory: leave --partition out");
	job->is_directory |= is_directory(job->path);
	if (choose_format(request) != 0)
		return CLI_EXIT_USAGE;
	if (job->format->is_binary && cli_output_is_terminal(job->path))
		return cli_usage(&page, "%s is not for a terminal: say -o FILE", job->format->name);
	return 0;
}

/* ---- what was done --------------------------------------------------------------------------- */

static void write_json(struct sink *sink, const struct export_job *job)
{
	struct json json;

	json_init(&json, sink);
	json_object(&json);
	json_put_string(&json, "path", job->path);
	json_put_string(&json, "format", job->format->name);
	json_put_unsigned(&json, "files", job->files);
	json_put_unsigned(&json, "bytes", job->bytes);
	json_put_unsigned(&json, "processes", job->processes);
	json_put_unsigned(&json, "operations", job->rows);
	json_put_unsigned(&json, "timed", job->timed);
	json_put_unsigned(&json, "read", job->read);
	json_put_unsigned(&json, "issued", job->issued);
	json_put_unsigned(&json, "lost", job->lost);
	json_put_unsigned(&json, "damaged", job->damaged);
	json_put_bool(&json, "is_complete", job->is_complete);
	json_end(&json);
	json_line(&json);
}

static void write_text(struct sink *sink, const struct export_job *job)
{
	char rows[UNITS_TEXT], bytes[UNITS_TEXT], files[UNITS_TEXT], count[UNITS_TEXT];

	sink_format(sink, "%s %s of %s %s in %s", units_count(rows, job->rows),
		    text_which(job->rows, "operation", "operations"),
		    units_count(count, job->processes),
		    text_which(job->processes, "process", "processes"), job->path);
	if (job->is_directory)
		sink_format(sink, " (%s %s, %s)\n", units_count(files, job->files),
			    text_which(job->files, "file", "files"),
			    units_bytes(bytes, job->bytes));
	else if (job->bytes > 0)
		sink_format(sink, " (%s)\n", units_bytes(bytes, job->bytes));
	else
		sink_text(sink, "\n"); /* a device or a pipe */
	if (job->timed + job->captured < job->rows)
		sink_format(sink, "timed: %s of %s operations%s\n", units_count(rows, job->timed),
			    units_count(count, job->rows - job->captured),
			    job->format == &export_inspector ? "; those without a time have no line"
							     : "");
	if (job->is_complete)
		return;
	sink_text(sink, "Not every operation of the job is there");
	if (job->lost > 0)
		sink_format(sink, ", %s %s lost while recording", units_count(count, job->lost),
			    text_which(job->lost, "was", "were"));
	sink_text(sink, ": 'ringside verify' says more.\n");
}

static int run(struct request *request, const struct cli_input *input)
{
	bool is_trouble = cli_input_complain(input, true);
	struct sink sink;
	int exit_code;

	if (input->recording.count == 0)
		return is_trouble ? CLI_EXIT_TROUBLE : cli_input_nothing();
	exit_code = report_filter_check(&request->chosen, &page, &input->recording);
	if (exit_code != 0)
		return exit_code;
	request->job.filter = &request->chosen.filter;
	exit_code = export_job_run(&request->job, input);
	/* Nothing was written, and why was said; or the rows were what standard output is for. */
	if (request->job.files == 0 || strcmp(request->job.path, "-") == 0)
		return exit_code | is_trouble;
	sink_init_fd(&sink, STDOUT_FILENO);
	if (request->is_json)
		write_json(&sink, &request->job);
	else
		write_text(&sink, &request->job);
	return cli_finish(&sink, exit_code | is_trouble);
}

int cmd_export(int argc, char **argv)
{
	struct request request = { .job = { .file_rows = EXPORT_FILE_ROWS } };
	struct cli_input input;
	struct cli_args args;
	int found, exit_code = 0;

	cli_input_init(&input);
	report_filter_init(&request.chosen);
	cli_args_init(&args, &page, argc, argv);
	while (exit_code == 0 && (found = cli_next(&args)) != CLI_END && found != CLI_STOP) {
		if (found == CLI_OPERAND)
			cli_input_path(&input, args.value);
		else
			exit_code = take(&request, found, args.value);
	}
	if (exit_code == 0 && found == CLI_STOP) {
		exit_code = args.exit_code;
		goto out;
	}
	if (exit_code == 0)
		exit_code = check(&request);
	if (exit_code == 0)
		exit_code = cli_input_read(&input, RECORDING_WITH_TRACES);
	if (exit_code == 0)
		exit_code = run(&request, &input);
out:
	report_filter_release(&request.chosen);
	cli_input_release(&input);
	return exit_code;
}
