#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "analysis/timeline_report.h"
#include "cmds/cli.h"
#include "cmds/cli_input.h"
#include "cmds/cli_output.h"
#include "cmds/commands.h"
#include "output/html_report.h"
#include "output/report.h"

enum {
	REPORT_TABLE = CLI_LONG_ONLY,
	REPORT_CSV,
	REPORT_HTML,
	REPORT_ANSWER,
	REPORT_STRICT,
};

static const struct cli_option options[] = {
	REPORT_OPTION_BY,
	{ REPORT_TABLE, "table", "NAME",
	  "one table only: name, comm, kind, function, size, algorithm, rank, source, windows, "
	  "iterations" },
	{ 'a', "all", NULL, "all rows of all tables, however many" },
	{ REPORT_ANSWER, "answer", NULL, "the first screenful only" },
	REPORT_FILTER_OPTIONS,
	{ REPORT_CSV, "csv", NULL,
	  "write a table as comma-separated values: that of --by or --table, else size" },
	CLI_OPTION_JSON,
	{ REPORT_HTML, "html", "FILE",
	  "write a page with charts, which needs nothing but a browser; the first screenful is "
	  "printed, too" },
	{ 'o', "output", "FILE", "write to this file instead of standard output" },
	{ REPORT_STRICT, "strict", NULL,
	  "refuse what is damaged, cut off or foreign: say what, and nothing else" },
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside report traces/", "where the time of a whole job went" },
	{ "ringside report traces/ --by comm,function,size --op AllReduce",
	  "one operation, by communicator and size" },
	{ "ringside report traces/ --since -5m --rank 0-7",
	  "the last five minutes of eight ranks" },
	{ "ringside report traces/ --html report.html", "a page to look at and to pass on" },
	{ "ringside report traces/ --table rank --csv -o ranks.csv",
	  "all ranks, for a spreadsheet" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "report",
	.operands = "[PATH...]",
	.about = "Says where communication time went. First the answer, in a screenful: what was "
		 "recorded and how complete it is, which communicators and operations cost most, "
		 "who "
		 "is waited for, what looks wrong and what to do about it. Then tables: by "
		 "communicator, operation and size, algorithm, rank; over time; iterations. "
		 "docs/REPORT.md explains every figure.\n" CLI_INPUT_ABOUT CLI_INPUT_NONE "\n",
	.options = options,
	.examples = examples,
};

struct request {
	struct cli_input input;
	struct report_filter chosen;
	const char *table; /* NULL: none was asked for */
	const char *path;
	const char *html; /* NULL: no page was asked for */
	bool is_json;
	bool is_csv;
	bool is_answer;
	bool is_all;
	bool is_strict;
};

/* ---- options --------------------------------------------------------------------------------- */

static int take_table(struct request *request, const char *value)
{
	const char *names[16], *nearest;
	size_t count = 0;

	for (; report_table_name(count) != NULL; count++) {
		names[count] = report_table_name(count);
		if (strcmp(names[count], value) == 0) {
			request->table = names[count];
			return 0;
		}
	}
	nearest = cli_nearest(value, names, count);
	if (nearest != NULL)
		return cli_usage(&page, "--table: there is no '%s', did you mean '%s'?", value,
				 nearest);
	return cli_usage(&page, "--table: there is no '%s'", value);
}

/* 0, or the exit code after an error was told. */
static int report_option(struct request *request, int found, const char *value)
{
	switch (found) {
	case CLI_OPERAND:
		cli_input_path(&request->input, value);
		return 0;
	case REPORT_TABLE:
		return take_table(request, value);
	case 'a':
		request->is_all = true;
		return 0;
	case 'j':
		request->is_json = true;
		return 0;
	case 'o':
		request->path = value;
		return 0;
	case REPORT_HTML:
		request->html = value;
		return 0;
	case REPORT_CSV:
		request->is_csv = true;
		return 0;
	case REPORT_ANSWER:
		request->is_answer = true;
		return 0;
	case REPORT_STRICT:
		request->is_strict = true;
		return 0;
	default:
		return report_filter_take(&request->chosen, &page, found, value);
	}
}

static int report_check(const struct request *request)
{
	if (request->is_json && request->is_csv)
		return cli_usage(&page, "--json and --csv are one too many");
	if (request->table != NULL && request->chosen.by != 0)
		return cli_usage(&page, "--table and --by are one too many");
	if (request->is_answer && (request->table != NULL || request->chosen.by != 0))
		return cli_usage(&page, "--answer has no table: leave --by and --table out");
	if (request->is_answer && (request->is_json || request->is_csv))
		return cli_usage(&page, "--answer is text: leave --json and --csv out");
	if ((request->path != NULL && request->path[0] == '\0') ||
	    (request->html != NULL && request->html[0] == '\0'))
		return cli_usage(&page, "'' is no name of a file");
	if (request->html == NULL)
		return 0;
	if (html_report_missing() != NULL)
		return cli_error("--html: %s", html_report_missing());
	if (strcmp(request->html, "-") == 0 && (request->is_json || request->is_csv) &&
	    request->path == NULL)
		return cli_usage(&page, "--html - and --%s both want standard output",
				 request->is_json ? "json" : "csv");
	return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Does the terminal show UTF-8? The first of these that is set decides, as in setlocale(). */
static bool is_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	const char *value = NULL;

	for (size_t i = 0; i < ARRAY_LENGTH(names) && (value == NULL || value[0] == '\0'); i++)
		value = getenv(names[i]);
	return value != NULL &&
	       (strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL);
}

static enum status write_json(struct sink *sink, const struct timeline_report *report)
{
	struct json json;

	json_init(&json, sink);
	report_json(&json, report, REPORT_JSON_ALL);
	json_line(&json);
	return json_status(&json);
}

/* The table asked for; NULL: windows or iterations, or none. */
static const struct tally *chosen_tally(const struct request *request,
					const struct timeline_report *report)
{
	if (request->chosen.by != 0)
		return &report->custom[0];
	if (request->table == NULL && !request->is_csv)
		return NULL;
	return report_table(report, request->table ? request->table : "size");
}

static enum status write_csv(const struct request *request, struct sink *sink,
			     const struct timeline_report *report)
{
	const struct tally *tally = chosen_tally(request, report);

	if (tally != NULL)
		return report_csv_tally(sink, report, tally);
	if (strcmp(request->table, "windows") == 0)
		return report_csv_windows(sink, report);
	return report_csv_iterations(sink, report);
}

static enum status write_table(const struct request *request, struct sink *sink,
			       const struct timeline_report *report,
			       const struct report_text_options *style)
{
	const struct tally *tally = chosen_tally(request, report);
	bool is_windows = tally == NULL && strcmp(request->table, "windows") == 0;

	if (tally != NULL)
		return report_text_table(sink, report, tally, style);
	report_text_head(sink, report, style);
	sink_text(sink, "\n");
	if (is_windows && report->windows.count > 0)
		return report_text_windows(sink, report, style);
	if (!is_windows && report->iterations.is_found)
		return report_text_iterations(sink, report, style);
	sink_text(sink, is_windows ? "Nothing has a time.\n" : "No iterations were found.\n");
	return sink->status;
}

static enum status write_text(const struct request *request, struct sink *sink,
			      const struct timeline_report *report)
{
	struct report_text_options style = {
		.width = request->path ? 0 : cli_width(),
		.has_blocks = is_utf8(),
		.has_all = request->is_all,
	};

	if (request->chosen.by != 0 || request->table != NULL)
		return write_table(request, sink, report, &style);
	if (request->is_answer || request->html != NULL)
		return report_text_answer(sink, report, &style);
	return report_text(sink, report, &style);
}

static int write_report(const struct request *request, const struct timeline_report *report,
			int exit_code)
{
	struct cli_output output;
	enum status status;

	if (cli_output_open(&output, request->path ? request->path : "-") != 0)
		return CLI_EXIT_TROUBLE;
	if (request->is_json)
		status = write_json(&output.sink, report);
	else if (request->is_csv)
		status = write_csv(request, &output.sink, report);
	else
		status = write_text(request, &output.sink, report);
	if (status == ERR_NO_SPACE && output.sink.status == OK)
		cli_no_memory();
	return cli_output_commit(&output, exit_code);
}

static int write_html(const struct request *request, const struct timeline_report *report,
		      int exit_code)
{
	struct cli_output output;
	enum status status;

	if (cli_output_open(&output, request->html) != 0)
		return CLI_EXIT_TROUBLE;
	status = html_report_write(&output.sink, report);
	if (status == ERR_NO_SPACE && output.sink.status == OK)
		cli_no_memory();
	return cli_output_commit(&output, exit_code);
}

static int write_all(const struct request *request, const struct timeline_report *report,
		     int exit_code)
{
	if (request->html != NULL)
		exit_code |= write_html(request, report, exit_code);
	/* Where the page went to standard output nothing else does. */
	if (request->html != NULL && strcmp(request->html, "-") == 0 && request->path == NULL)
		return exit_code;
	return write_report(request, report, exit_code);
}

static int report_run(struct request *request)
{
	struct timeline_options wanted = TIMELINE_OPTIONS_INIT;
	struct timeline_report report;
	int trouble, exit_code;

	trouble = report_read_troubles(&request->input, request->is_strict);
	if (trouble != 0 && (request->is_strict || request->input.recording.count == 0))
		return trouble;
	if (request->chosen.by != 0)
		wanted.custom_by[wanted.custom_count++] = request->chosen.by;
	if (request->html != NULL)
		html_report_options(&wanted);
	exit_code = report_read(&report, &request->input, &request->chosen, &wanted, &page);
	if (exit_code != 0)
		return exit_code;
	if (request->is_strict)
		exit_code = report_read_strictly(&report);
	if (exit_code == 0)
		exit_code = write_all(request, &report, trouble);
	timeline_report_release(&report);
	return exit_code;
}

int cmd_report(int argc, char **argv)
{
	struct request request = { .path = NULL };
	struct cli_args args;
	int found, exit_code = 0;

	cli_input_init(&request.input);
	report_filter_init(&request.chosen);
	cli_args_init(&args, &page, argc, argv);
	while (exit_code == 0 && (found = cli_next(&args)) != CLI_END && found != CLI_STOP)
		exit_code = report_option(&request, found, args.value);
	if (exit_code == 0 && found == CLI_STOP) {
		exit_code = args.exit_code;
		goto out;
	}
	if (exit_code == 0)
		exit_code = report_check(&request);
	if (exit_code == 0)
		exit_code = cli_input_read(&request.input, RECORDING_WITH_TRACES);
	if (exit_code == 0)
		exit_code = report_run(&request);
out:
	report_filter_release(&request.chosen);
	cli_input_release(&request.input);
	return exit_code;
}
