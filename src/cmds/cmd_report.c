/* `ringside report`: options and forms of output; hangs and slowness are the doctor's verdicts. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "analysis/timeline_report.h"
#include "cli/cli.h"
#include "cli/cli_input.h"
#include "cmds/commands.h"
#include "cmds/torch_trace.h"
#include "common/text.h"
#include "doctor/doctor.h"
#include "doctor/verdict.h"
#include "output/report.h"

struct request {
	struct cli_input input;
	struct report_filter chosen;
	struct torch_traces merge;
	const char *table; /* NULL: not given */
	const char *path;
	const char *html; /* NULL: not given */
	bool is_json;
	bool is_csv;
	bool is_answer;
	bool is_all;
	bool is_strict;
};

/* `table` is the request's text. */
static int take_table(const struct cli_said *said)
{
	const char *names[16], *nearest;
	size_t count = 0;

	for (; report_table_name(count) != NULL; count++) {
		names[count] = report_table_name(count);
		if (strcmp(names[count], said->value) == 0) {
			*(const char **)said->target = names[count];
			return 0;
		}
	}
	nearest = cli_nearest(said->value, names, count);
	if (nearest != NULL)
		return cli_usage(said->page, "--table: unknown table '%s', did you mean '%s'?",
				 said->value, nearest);
	return cli_usage(said->page, "--table: unknown table '%s'", said->value);
}

static const struct cli_option options[] = {
	REPORT_OPTION_BY(struct request),
	{ 0, "table", "NAME",
	  "print only this table: name, comm, kind, function, size, algorithm, rank, source, "
	  "windows, "
	  "iterations, links",
	  CLI_CALL(struct request, table, take_table) },
	{ 'a', "all", NULL, "print all rows of all tables", CLI_FLAG(struct request, is_all) },
	{ 0, "answer", NULL, "print only the first screenful",
	  CLI_FLAG(struct request, is_answer) },
	REPORT_FILTER_OPTIONS(struct request),
	TORCH_OPTION_MERGE(struct request, "measures exposed communication"),
	{ 0, "csv", NULL, "write a table as CSV: that of --by or --table, else size",
	  CLI_FLAG(struct request, is_csv) },
	CLI_OPTION_JSON(struct request),
	{ 0, "html", "FILE",
	  "write a self-contained HTML page with charts; the first screenful is printed, too",
	  CLI_TEXT(struct request, html) },
	REPORT_OPTION_OUTPUT(struct request),
	REPORT_OPTION_STRICT(struct request),
	CLI_OPTIONS_SHOWING,
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside report traces/", "summarize a whole job" },
	{ "ringside report traces/ --by comm,function,size --op AllReduce",
	  "one operation, by communicator and size" },
	{ "ringside report traces/ --since -5m --rank 0-7",
	  "the last five minutes of eight ranks" },
	{ "ringside report traces/ --table iterations --merge kineto-0.json.gz",
	  "how much communication computation did not hide" },
	{ "ringside report traces/ --html report.html", "an HTML page to share" },
	{ "ringside report traces/ --table rank --csv -o ranks.csv",
	  "all ranks, for a spreadsheet" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "report",
	.operands = "[PATH...]",
	.about = "Summarizes where communication time went. The first screenful is the answer: "
		 "what was recorded and how complete it is, the most expensive communicators and "
		 "operations, stragglers, and findings with what to do about them. Tables follow: "
		 "by communicator, operation and size, algorithm and rank; over time; iterations. "
		 "docs/REPORT.md explains every figure.\n" CLI_INPUT_ABOUT CLI_INPUT_NONE "\n",
	.options = options,
	CLI_OPERANDS(struct request, input, cli_input_take),
	.examples = examples,
};

/* ---- options --------------------------------------------------------------------------------- */

static int report_check(void *context)
{
	const struct request *request = context;

	if (request->is_json && request->is_csv)
		return cli_usage(&page, "--json and --csv exclude each other");
	if (request->table != NULL && request->chosen.by != 0)
		return cli_usage(&page, "--table and --by exclude each other");
	if (request->is_answer && (request->table != NULL || request->chosen.by != 0))
		return cli_usage(&page, "--answer has no table: leave --by and --table out");
	if (request->is_answer && (request->is_json || request->is_csv))
		return cli_usage(&page, "--answer is text: leave --json and --csv out");
	if ((request->path != NULL && request->path[0] == '\0') ||
	    (request->html != NULL && request->html[0] == '\0'))
		return cli_usage(&page, "the file name is empty");
	if (request->html == NULL)
		return CLI_GO_ON;
	if (html_report_missing() != NULL)
		return cli_error("--html: %s", html_report_missing());
	if (strcmp(request->html, "-") == 0 && (request->is_json || request->is_csv) &&
	    request->path == NULL)
		return cli_usage(&page, "--html - and --%s cannot both use standard output",
				 request->is_json ? "json" : "csv");
	return CLI_GO_ON;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Does the terminal support UTF-8? The first of these variables that is set decides, as in setlocale(). */
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
	report_json(&json, report, REPORT_JSON_WHOLE);
	json_line(&json);
	return json_status(&json);
}

/* The requested table; NULL: windows or iterations, or none. */
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
	if (strcmp(request->table, "links") == 0)
		return report_csv_links(sink, report);
	return report_csv_iterations(sink, report);
}

static enum status write_table(const struct request *request, struct sink *sink,
			       const struct timeline_report *report,
			       const struct report_text_options *style)
{
	const struct tally *tally = chosen_tally(request, report);
	bool is_windows = tally == NULL && strcmp(request->table, "windows") == 0;
	bool is_links = tally == NULL && strcmp(request->table, "links") == 0;

	if (tally != NULL)
		return report_text_table(sink, report, tally, style);
	report_text_head(sink, report, style);
	sink_text(sink, "\n");
	if (is_windows && report->windows.count > 0)
		return report_text_windows(sink, report, style);
	if (!is_windows && !is_links && report->iterations.is_found)
		return report_text_iterations(sink, report, style);
	if (is_links && report->wires.count > 0)
		return report_text_links(sink, report, style);
	if (is_links) {
		sink_text(sink, "Nothing was sent over the network, or only a part of the "
				"recording is shown.\n");
		return sink->status;
	}
	sink_text(sink, is_windows ? "No operation has a time.\n" : "No iterations were found.\n");
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
	const char *path = request->path ? request->path : "-";
	struct cli_output output;
	enum status status;
	int failed;

	failed = request->is_json || request->is_csv ? cli_output_open(&output, path)
						     : cli_output_open_text(&output, path);
	if (failed != 0)
		return failed;
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
	int failed = cli_output_open(&output, request->html);

	if (failed != 0)
		return failed;
	status = html_report_write(&output.sink, report);
	if (status == ERR_NO_SPACE && output.sink.status == OK)
		cli_no_memory();
	return cli_output_commit(&output, exit_code);
}

static int write_all(const struct request *request, const struct timeline_report *report,
		     int exit_code)
{
	if (request->html != NULL)
		exit_code = write_html(request, report, exit_code);
	/* If the page went to standard output, print nothing else there. */
	if (request->html != NULL && strcmp(request->html, "-") == 0 && request->path == NULL)
		return exit_code;
	return write_report(request, report, exit_code);
}

/* ---- hangs: the doctor's verdict --------------------------------------------------------------- */

enum { HANGS_SHOWN = 5 };

static bool has_open_end(const struct recording *recording)
{
	for (size_t i = 0; i < recording->count; i++)
		if (recording->processes[i]->life != RECORDING_ENDED)
			return true;
	return false;
}

static uint32_t rank_of(const struct job *job, const struct verdict *verdict)
{
	for (uint32_t i = 0; i < job->rank_count && verdict->rank_label[0] != '\0'; i++)
		if (strcmp(job->ranks[i].label, verdict->rank_label) == 0 &&
		    strcmp(job->hosts[job->ranks[i].host].name, verdict->host) == 0)
			return i;
	return UINT32_MAX;
}

static void add_hang(struct timeline_report *report, const struct verdict *verdict)
{
	bool is_split = verdict->class == VERDICT_MISMATCH;
	struct finding *finding = findings_add_first(
		&report->findings, is_split ? FINDINGS_MISMATCH : FINDINGS_HUNG,
		verdict->severity == VERDICT_ERROR ? FINDINGS_ERROR : FINDINGS_WARNING,
		verdict->title);

	finding->rank = rank_of(&report->job, verdict);
	finding->count = verdict->victims;
	finding->cost_ns = (uint64_t)(verdict_hours_hung(verdict) * 3.6e12);
	text_append(finding->text, sizeof(finding->text), "%s Confidence: %s.",
		    verdict->evidence.count > 0 ? verdict->evidence.list[0] : "",
		    verdict_confidence_percent(verdict->confidence).text);
	text_format(finding->hint, sizeof(finding->hint),
		    "`ringside doctor` on the same files shows all evidence and the next steps.");
	report->gpu_hours_hung += verdict_hours_hung(verdict);
}

/* In something at the end, and that was not long enough for a hang. */
static void demote_open(struct findings *findings)
{
	for (size_t i = 0; i < findings->count; i++) {
		struct finding *finding = &findings->list[i];
		char title[sizeof(finding->title)];
		const char *what = strstr(finding->title, "stuck in ");

		if (finding->kind != FINDINGS_HUNG || what == NULL)
			continue;
		text_copy(title, sizeof(title), what + strlen("stuck in "));
		finding->severity = FINDINGS_NOTE;
		text_format(finding->title, sizeof(finding->title), "%llu %s in %s",
			    (unsigned long long)finding->count,
			    text_which(finding->count, "rank was", "ranks were"), title);
		finding->hint[0] = '\0';
	}
}

static void use_verdicts(struct timeline_report *report, struct verdicts *verdicts)
{
	size_t hangs = 0;

	verdicts_sort(verdicts);
	for (size_t i = 0; i < verdicts->count; i++)
		hangs += verdict_is_hang(verdicts->list[i].class) && !verdicts->list[i].is_allowed;
	if (hangs == 0) {
		demote_open(&report->findings);
		findings_sort(&report->findings);
		return;
	}
	findings_drop(&report->findings, FINDINGS_HUNG);
	if (verdicts->list[0].class == VERDICT_MISMATCH)
		findings_drop(&report->findings, FINDINGS_MISMATCH);
	/* The most serious one is added last, before the others. */
	for (size_t i = verdicts->count < HANGS_SHOWN ? verdicts->count : HANGS_SHOWN; i-- > 0;)
		if (verdict_is_hang(verdicts->list[i].class) && !verdicts->list[i].is_allowed)
			add_hang(report, &verdicts->list[i]);
}

/* The findings of the operations alone say who was stuck, but not why. */
static void judge_end(struct request *request, struct timeline_report *report)
{
	const struct hang_options hang = { .has_job_limits = true, .has_unjudged = true };
	struct verdicts verdicts;
	struct job job;
	enum status status;

	if (report->until_ns != 0 || !has_open_end(report->recording))
		return;
	verdicts_init(&verdicts);
	status = recording_find_flights(&request->input.recording);
	if (status == OK)
		status = job_make(&job, report->recording);
	if (status == OK) {
		status = hang_find(&verdicts, &job, &hang);
		job_release(&job);
	}
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	if (status == OK)
		use_verdicts(report, &verdicts);
	verdicts_release(&verdicts);
}

/* ---- slowness: the doctor's verdict ------------------------------------------------------------ */

/* Do the findings name somebody already? They come from the same comparison of ranks. */
static bool has_culprit(const struct findings *findings)
{
	for (size_t i = 0; i < findings->count; i++) {
		enum findings_kind kind = findings->list[i].kind;

		if (findings->list[i].severity >= FINDINGS_WARNING &&
		    (kind == FINDINGS_SLOW_RANK || kind == FINDINGS_SLOW_HOST ||
		     kind == FINDINGS_SLOW_LINK || kind == FINDINGS_NETWORK))
			return true;
	}
	return false;
}

static void add_slower(struct timeline_report *report, const struct verdict *verdict)
{
	struct finding *finding = findings_add_first(&report->findings, FINDINGS_SLOWER,
						     FINDINGS_WARNING, verdict->title);

	finding->rank = rank_of(&report->job, verdict);
	finding->count = verdict->victims;
	finding->cost_ns = (uint64_t)(verdict->gpu_hours * 3.6e12);
	text_append(finding->text, sizeof(finding->text), "%s Confidence: %s.",
		    verdict->evidence.count > 0 ? verdict->evidence.list[0] : "",
		    verdict_confidence_percent(verdict->confidence).text);
	text_format(finding->hint, sizeof(finding->hint),
		    "`ringside doctor` on the same files shows all evidence and the next steps.");
}

/*
 * A job that became slower, and nobody is named: the doctor says so, and why as far as that shows. Ranks and
 * iterations are compared, so only for a report about all of the job.
 */
static void judge_speed(struct timeline_report *report, const struct filter *filter)
{
	const struct slow_options slow = { .baseline = NULL };
	struct verdicts verdicts;
	enum status status;

	if (!filter_is_empty(filter) || has_culprit(&report->findings))
		return;
	verdicts_init(&verdicts);
	status = slow_find(&verdicts, report, &slow);
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	verdicts_sort(&verdicts);
	for (size_t i = verdicts.count; status == OK && i-- > 0;)
		if (verdict_is_slow(verdicts.list[i].class) &&
		    verdicts.list[i].severity >= VERDICT_WARNING)
			add_slower(report, &verdicts.list[i]);
	verdicts_release(&verdicts);
}

static int report_run(void *context)
{
	struct request *request = context;
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
	/* Only for judge_speed(): the last one, and not shown. */
	wanted.custom_by[wanted.custom_count++] = BASELINE_BY;
	exit_code = torch_traces_open(&request->merge, &request->input.recording);
	if (exit_code != 0)
		return exit_code;
	exit_code = report_read(&report, &request->input, &request->chosen, &wanted, &page);
	if (exit_code != 0)
		return exit_code;
	judge_end(request, &report);
	judge_speed(&report, &request->chosen.filter);
	report.custom_count--;
	torch_traces_measure(&request->merge, &report);
	/* Files without a readable operation. */
	if (trouble == 0 && report.completeness.read == 0)
		trouble = CLI_EXIT_UNKNOWN;
	if (request->is_strict)
		exit_code = report_read_strictly(&report);
	if (exit_code == 0)
		exit_code = write_all(request, &report, trouble);
	report.custom_count++;
	timeline_report_release(&report);
	return exit_code;
}

int cmd_report(int argc, char **argv)
{
	struct request request = { .path = NULL };
	int exit_code = cli_input_command(&page, &request, RECORDING_WITH_TRACES, report_check,
					  report_run, argc, argv);

	report_filter_release(&request.chosen);
	torch_traces_release(&request.merge);
	return exit_code;
}
