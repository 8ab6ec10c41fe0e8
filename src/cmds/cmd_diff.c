/* `ringside diff`: two runs, or a run and what is expected of it. */
#include <stdlib.h>
#include <string.h>

#include "analysis/compare.h"
#include "cli/cli.h"
#include "cli/cli_input.h"
#include "cmds/commands.h"
#include "cmds/torch_trace.h"
#include "output/report.h"

enum { DIFF_BY = TALLY_BY_COMM_NAME | TALLY_BY_FUNCTION | TALLY_BY_SIZE };

#define DIFF_THRESHOLD_DEFAULT 0.05

struct side {
	struct cli_input input;
	struct timeline_report report;
	struct expected expected;
	struct torch_traces merge;
	bool has_report;
	bool has_expected;
};

struct request {
	struct side sides[2];
	size_t path_count;
	const char *paths[2];
	struct report_filter chosen;
	struct torch_traces merge;
	double threshold;
	const char *path;
	bool is_json;
	bool is_html;
	bool is_all;
	bool is_strict;
};

/* "5%", "5", "2.5%": of the duration. `threshold` is a double. */
static int take_threshold(const struct cli_said *said)
{
	char *end = NULL;
	double percent = strtod(said->value, &end);

	while (*end == ' ')
		end++;
	if (*end == '%')
		end++;
	if (end == said->value || *end != '\0' || !(percent >= 0) || percent > 1000)
		return cli_usage(said->page, "--threshold '%s' is not a percentage like 5%%",
				 said->value);
	*(double *)said->target = percent / 100;
	return 0;
}

static int take_path(const struct cli_said *said)
{
	struct request *request = said->target;

	if (request->path_count == ARRAY_LENGTH(request->paths))
		return cli_usage(said->page,
				 "unexpected argument '%s': only two runs can be compared",
				 said->value);
	request->paths[request->path_count++] = said->value;
	return 0;
}

static const struct cli_option options[] = {
	REPORT_OPTION_BY(struct request),
	{ 0, "threshold", "SHARE", "accept this much slowdown, like 5% (default)",
	  CLI_CALL(struct request, threshold, take_threshold) },
	{ 'a', "all", NULL, "print all rows", CLI_FLAG(struct request, is_all) },
	REPORT_FILTER_OPTIONS(struct request),
	TORCH_OPTION_MERGE(struct request, "measures exposed communication of its run"),
	CLI_OPTION_JSON(struct request),
	{ 0, "html", NULL, "write an HTML page to share", CLI_FLAG(struct request, is_html) },
	REPORT_OPTION_OUTPUT(struct request),
	REPORT_OPTION_STRICT(struct request),
	CLI_OPTIONS_SHOWING,
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside diff before/ after/", "is anything slower than before?" },
	{ "ringside diff before/ after/ --by function,size --threshold 10%",
	  "for CI: exit code 1 when an operation got more than 10% slower" },
	{ "ringside diff before/ after/ --html -o diff.html", "a page for the ticket" },
	{ "ringside diff all_reduce_perf.txt run/ --op AllReduce",
	  "compare with results of nccl-tests" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "diff",
	.operands = "A B",
	.about = "Compares two runs: the same communicators, operations and sizes side by side, "
		 "how much longer their transfers take in B, the 95% confidence interval, and "
		 "whether that is more than noise. Waiting for late ranks is left out where ranks "
		 "can be matched, and shown separately. The exit code is 0 if nothing is slower by "
		 "more than the threshold, 1 if something is, 3 if it could not tell. "
		 "docs/REPORT.md explains how it is decided.\n"
		 "A and B are each a trace file, a directory of trace files, a region or @PID. One "
		 "of them can be output of nccl-tests or 'ringside bench': then transfers are "
		 "compared, without waiting.\n",
	.options = options,
	.operand = take_path,
	.examples = examples,
};

/* ---- two reports ----------------------------------------------------------------------------- */

static void diff_release(struct request *request)
{
	for (size_t i = 0; i < ARRAY_LENGTH(request->sides); i++) {
		if (request->sides[i].has_report)
			timeline_report_release(&request->sides[i].report);
		torch_traces_release(&request->sides[i].merge);
		if (request->sides[i].has_expected)
			expected_release(&request->sides[i].expected);
		cli_input_release(&request->sides[i].input);
	}
	report_filter_release(&request->chosen);
	torch_traces_release(&request->merge);
}

/* Returns 0, or the exit code after an error was reported; *trouble: exit code of problems with single files. */
static int read_side(struct request *request, size_t which, int *trouble)
{
	struct timeline_options wanted = TIMELINE_OPTIONS_INIT;
	struct side *side = &request->sides[which];
	int exit_code, told;

	cli_input_path(&side->input, request->paths[which]);
	exit_code = cli_input_read(&side->input, RECORDING_WITH_TRACES);
	if (exit_code != 0)
		return exit_code;
	told = report_read_troubles(&side->input, request->is_strict);
	*trouble |= told;
	if (told != 0 && (request->is_strict || side->input.recording.count == 0))
		return told;
	wanted.custom_by[wanted.custom_count++] = request->chosen.by;
	/* Iterations determine how many calls are independent samples. */
	wanted.without_windows = true;
	exit_code = report_read(&side->report, &side->input, &request->chosen, &wanted, &page);
	if (exit_code != 0)
		return exit_code;
	side->has_report = true;
	return request->is_strict ? report_read_strictly(&side->report) : 0;
}

/* Two runs are always two jobs; and a row has room for a limited number of fields. */
static int diff_check(struct request *request)
{
	const size_t most = ARRAY_LENGTH(((struct compare_row *)NULL)->key);

	if (request->path_count < ARRAY_LENGTH(request->paths))
		return cli_usage(&page, "nothing to compare: pass A and B");
	if (request->path != NULL && request->path[0] == '\0')
		return cli_usage(&page, "the file name is empty");
	if (request->is_json && request->is_html)
		return cli_usage(&page, "--json and --html exclude each other");
	if (request->chosen.by == 0)
		request->chosen.by = DIFF_BY;
	if (request->chosen.by & TALLY_BY_GROUP)
		return cli_usage(&page, "--by job: the two runs are two jobs; leave it out");
	if ((size_t)__builtin_popcount(request->chosen.by) > most)
		return cli_usage(&page, "--by: more than %zu parts", most);
	return 0;
}

static struct diff_side shown_side(const struct request *request, size_t which)
{
	const struct side *side = &request->sides[which];

	return (struct diff_side){ request->paths[which], side->has_report ? &side->report : NULL };
}

static enum status write_diff(const struct request *request, struct sink *sink,
			      const struct compare *compare)
{
	const struct diff_side a = shown_side(request, 0), b = shown_side(request, 1);
	const struct report_text_options style = {
		.width = request->path ? 0 : cli_width(),
		.has_all = request->is_all,
	};
	struct json json;

	if (request->is_html)
		return diff_html(sink, &a, &b, compare, request->is_all);
	if (!request->is_json)
		return diff_text(sink, &a, &b, compare, &style);
	json_init(&json, sink);
	diff_json(&json, &a, &b, compare);
	json_line(&json);
	return json_status(&json);
}

/* One side can be output of nccl-tests. Returns 0, or the exit code after an error was reported. */
static int find_expected(struct request *request)
{
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_LENGTH(request->sides); i++) {
		enum diff_expected_found found =
			diff_expected_read(&request->sides[i].expected, request->paths[i]);

		if (found == DIFF_EXPECTED_BAD)
			return CLI_EXIT_UNKNOWN;
		request->sides[i].has_expected = found == DIFF_EXPECTED_FOUND;
		count += request->sides[i].has_expected;
		if (request->sides[i].has_expected)
			diff_expected_warn(&request->sides[i].expected, request->paths[i]);
	}
	if (count == ARRAY_LENGTH(request->sides))
		return cli_error("both are files of expected bandwidths: one must be a run");
	if (count > 0)
		request->chosen.by = diff_expected_by(request->chosen.by);
	return 0;
}

static int merge_sides(struct request *request)
{
	struct side *a = &request->sides[0], *b = &request->sides[1];
	int exit_code;

	if (request->merge.count == 0)
		return 0;
	if (a->has_expected || b->has_expected)
		return cli_usage(&page, "--merge needs two recordings");
	exit_code = torch_traces_split(&request->merge, &a->input.recording, &b->input.recording,
				       &a->merge, &b->merge);
	if (exit_code == 0)
		exit_code = torch_traces_open(&a->merge, &a->input.recording);
	if (exit_code == 0)
		exit_code = torch_traces_open(&b->merge, &b->input.recording);
	if (exit_code != 0)
		return exit_code;
	torch_traces_measure(&a->merge, &a->report);
	torch_traces_measure(&b->merge, &b->report);
	return 0;
}

static int read_sides(struct request *request, int *trouble)
{
	int exit_code = find_expected(request);

	for (size_t i = 0; i < ARRAY_LENGTH(request->sides) && exit_code == 0; i++)
		if (!request->sides[i].has_expected)
			exit_code = read_side(request, i, trouble);
	return exit_code == 0 ? merge_sides(request) : exit_code;
}

static enum status diff_make(const struct request *request, struct compare *compare)
{
	const struct side *a = &request->sides[0], *b = &request->sides[1];
	enum status status;
	size_t left_out;

	if (!a->has_expected && !b->has_expected)
		return compare_make(compare, &a->report, &b->report, request->threshold);
	status = diff_expected_make(compare, a->has_expected ? &b->report : &a->report,
				    a->has_expected ? &a->expected : &b->expected,
				    request->threshold, b->has_expected, &left_out);
	if (status == OK && left_out > 0)
		cli_note("%zu kinds of operations not compared: no expected bandwidth", left_out);
	return status;
}

static int exit_code_of(const struct compare *compare)
{
	switch (compare_answer(compare)) {
	case COMPARE_SLOWER:
		return CLI_EXIT_TROUBLE;
	case COMPARE_UNKNOWN:
		return CLI_EXIT_UNKNOWN;
	case COMPARE_SAME:
		break;
	}
	return CLI_EXIT_DONE;
}

static int diff_run(struct request *request)
{
	const char *path = request->path ? request->path : "-";
	struct cli_output output;
	struct compare compare;
	enum status status;
	int trouble = 0, exit_code;

	exit_code = read_sides(request, &trouble);
	if (exit_code != 0)
		return exit_code;
	status = diff_make(request, &compare);
	if (status != OK)
		cli_no_memory();
	trouble = cli_exit_join(trouble, exit_code_of(&compare));
	exit_code = request->is_json || request->is_html ? cli_output_open(&output, path)
							 : cli_output_open_text(&output, path);
	if (exit_code != 0) {
		compare_release(&compare);
		return exit_code;
	}
	status = write_diff(request, &output.sink, &compare);
	compare_release(&compare);
	if (status == ERR_NO_SPACE && output.sink.status == OK)
		cli_no_memory();
	return cli_output_commit(&output, trouble);
}

int cmd_diff(int argc, char **argv)
{
	struct request request = { .threshold = DIFF_THRESHOLD_DEFAULT };
	int exit_code;

	for (size_t i = 0; i < ARRAY_LENGTH(request.sides); i++)
		cli_input_init(&request.sides[i].input);
	exit_code = cli_parse(&page, &request, argc, argv);
	if (exit_code == CLI_GO_ON) {
		exit_code = diff_check(&request);
		if (exit_code == 0)
			exit_code = diff_run(&request);
	}
	diff_release(&request);
	return exit_code;
}
