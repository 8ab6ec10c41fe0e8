#include <errno.h>
#include <string.h>

#include "analysis/align.h"
#include "analysis/filter.h"
#include "analysis/job.h"
#include "programs/cli/cli_commands.h"
#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_input.h"
#include "programs/cli/cli_memory.h"
#include "programs/cli/cli_options.h"
#include "programs/cli/cli_output.h"
#include "programs/cli/cli_progress.h"
#include "programs/cli/trace_timeline.h"
#include "programs/cli/trace_window.h"
#include "view/viewer_plan.h"

enum {
	TRACE_OUTPUT = 'o',
	TRACE_FORMAT = CLI_LONG_ONLY,
	TRACE_GZIP,
	TRACE_AROUND,
	TRACE_WINDOW,
	TRACE_SINCE,
	TRACE_UNTIL,
	TRACE_RANK,
	TRACE_COMM,
	TRACE_CALLS,
	TRACE_NO_DETAILS,
};

static const struct cli_option options[] = {
	{ TRACE_OUTPUT, "output", "FILE",
	  "the file to write: .json or .pftrace, either with .gz behind it; - is standard output" },
	{ TRACE_FORMAT, "format", "FORMAT",
	  "json (Perfetto, chrome://tracing, speedscope) or perfetto (its own format, less than "
	  "half the size), whatever the file is called" },
	{ TRACE_GZIP, "gzip", NULL, "compress, whatever the file is called" },
	{ TRACE_AROUND, "around", "OP",
	  "show what was under way around an operation: COMM:NUMBER, RANK:NUMBER or "
	  "RANK:COMM:NUMBER; a communicator by its name or hash" },
	{ TRACE_WINDOW, "window", "TIME",
	  "how long a stretch: after --since, before --until, around the operation (1s), or the "
	  "end" },
	{ TRACE_SINCE, "since", "TIME",
	  "from here on: 30s after the start, -30s before the end, a time of day, "
	  "2026-01-31T14:03:10Z" },
	{ TRACE_UNTIL, "until", "TIME", "up to here" },
	{ TRACE_RANK, "rank", "RANKS", "only these ranks, like 0-7,12" },
	{ TRACE_COMM, "comm", "COMM",
	  "only this communicator, by its name or hash; may be said several times" },
	{ TRACE_CALLS, "calls", NULL, "also show calls on the host, from issue to launch" },
	{ TRACE_NO_DETAILS, "no-details", NULL,
	  "leave out what channels and transfers did (mode full records it)" },
	{ 'j', "json", NULL, "write what the file holds as JSON to standard output" },
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside trace traces/ -o job.pftrace",
	  "the whole job, to be opened in ui.perfetto.dev" },
	{ "ringside trace traces/ -o job.json.gz --around world:1234 --window 2s",
	  "two seconds around the 1234th operation on communicator world" },
	{ "ringside trace traces/ -o end.json --window 5s --rank 0-15",
	  "the last five seconds of 16 ranks: where it hangs" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "trace",
	.operands = "[PATH...] -o FILE",
	.about =
		"Writes a timeline for a trace viewer: a process per rank, a track per "
		"communicator, each operation with all that is known of it, waiting for the last "
		"rank shaded, arrows from Send to Recv and from those who waited to the one they "
		"waited for, bandwidth as a counter. Ranks are put on one time by the collectives "
		"they met in; how well that went is said. docs/VIEWER.md explains what there is to "
		"see.\n" CLI_INPUT_ABOUT CLI_INPUT_NONE "\n",
	.options = options,
	.examples = examples,
};

struct trace {
	struct cli_input input;
	struct trace_target target;
	struct trace_window window;
	struct filter filter;
	struct cli_progress progress;
	bool is_aligned; /* the first of the four walks is over */
	bool has_calls;
	bool has_details;
};

static int take_format(struct trace *trace, const char *value)
{
	if (strcmp(value, "json") == 0)
		trace->target.format = VIEWER_JSON;
	else if (strcmp(value, "perfetto") == 0)
		trace->target.format = VIEWER_PERFETTO;
	else
		return cli_usage(&page, "--format '%s' is neither json nor perfetto", value);
	return 0;
}

static int take_time(struct filter_time *time, const char *option, const char *value)
{
	if (filter_parse_time(time, value) == OK)
		return 0;
	return cli_usage(&page,
			 "--%s '%s' is no time like 30s, -30s, 14:03:10 or 2026-01-31T14:03:10Z",
			 option, value);
}

static int take_ranks(struct trace *trace, const char *value)
{
	if (filter_add_ranks(&trace->filter, value) == OK)
		return 0;
	return cli_usage(&page, "--rank '%s' is no list of ranks like 0-7,12", value);
}

static int take_comm(struct trace *trace, const char *value)
{
	if (trace->filter.comm_count == FILTER_COMMS_MAX)
		return cli_usage(&page, "--comm: more than %d communicators", FILTER_COMMS_MAX);
	trace->filter.comms[trace->filter.comm_count++] = value;
	return 0;
}

/* 0, or the exit code after an error was told. */
static int take_option(struct trace *trace, int found, const char *value)
{
	switch (found) {
	case CLI_OPERAND:
		cli_input_path(&trace->input, value);
		return 0;
	case TRACE_OUTPUT:
		trace->target.path = value;
		return 0;
	case TRACE_FORMAT:
		return take_format(trace, value);
	case TRACE_GZIP:
		trace->target.is_gzip = true;
		return 0;
	case TRACE_AROUND:
		trace->window.around = value;
		return 0;
	case TRACE_WINDOW:
		return trace_window_width(&trace->window, &page, value);
	case TRACE_SINCE:
		return take_time(&trace->window.since, "since", value);
	case TRACE_UNTIL:
		return take_time(&trace->window.until, "until", value);
	case TRACE_RANK:
		return take_ranks(trace, value);
	case TRACE_COMM:
		return take_comm(trace, value);
	case TRACE_CALLS:
		trace->has_calls = true;
		return 0;
	case TRACE_NO_DETAILS:
		trace->has_details = false;
		return 0;
	default:
		trace->target.is_json = true;
		return 0;
	}
}

static int check_options(struct trace *trace)
{
	struct trace_target *target = &trace->target;
	bool has_limits = trace->window.since.base != FILTER_NO_TIME ||
			  trace->window.until.base != FILTER_NO_TIME;

	if (target->path == NULL)
		return cli_usage(&page, "where to? Say -o FILE");
	if (!trace_timeline_guess(target))
		return cli_usage(&page,
				 "'%s' does not say which format: end it in .json or .pftrace, or "
				 "say --format",
				 target->path);
	if (strcmp(target->path, "-") == 0 && target->is_json)
		return cli_usage(&page, "--json and -o - both want standard output");
	if (cli_output_is_terminal(target->path) &&
	    (target->is_gzip || target->format == VIEWER_PERFETTO))
		return cli_usage(&page, "no terminal can show this format: say -o FILE");
	if (trace->window.around && has_limits)
		return cli_usage(&page, "--around cannot be had with --since or --until");
	if (trace->window.width_ns > 0 && trace->window.since.base != FILTER_NO_TIME &&
	    trace->window.until.base != FILTER_NO_TIME)
		return cli_usage(&page, "--window, --since and --until are one too many");
	return 0;
}

static bool show_progress(double fraction, void *context)
{
	struct trace *trace = context;
	double all = trace->is_aligned ? 0.25 + 0.75 * fraction : 0.25 * fraction;

	cli_progress_at(&trace->progress, (uint64_t)(all * (double)trace->progress.total));
	return true;
}

static int told(enum status status)
{
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	return cli_error("cannot read: %s",
			 status == ERR_SYSTEM ? strerror(errno) : status_text(status));
}

static int show_plan(struct trace *trace, struct viewer_plan *plan, int exit_code)
{
	enum status status;
	int failed;

	plan->has_details = trace->has_details;
	plan->has_calls = trace->has_calls;
	plan->progress = show_progress;
	plan->progress_context = trace;
	status = viewer_plan_survey(plan);
	cli_progress_hide(&trace->progress);
	if (status != OK)
		return told(status);
	failed = trace_window_apply(&trace->window, plan);
	if (failed)
		return failed;
	status = viewer_plan_join(plan);
	cli_progress_hide(&trace->progress);
	if (status != OK)
		return told(status);
	if (plan->expected == 0)
		return cli_error("no operation to show; nothing was written");
	trace_timeline_warn(plan, &trace->target);
	return trace_timeline_write(plan, &trace->target, exit_code, &trace->progress);
}

static int show_job(struct trace *trace, const struct job *job, int exit_code)
{
	struct viewer_plan plan;
	struct align align;
	uint64_t operations = 0;
	enum status status;

	for (size_t i = 0; i < job->recording->count; i++)
		operations += job->recording->processes[i]->recorded;
	cli_progress_start(&trace->progress, "trace", "operations", operations);
	status = align_make(&align, job, show_progress, trace);
	if (status != OK)
		return told(status);
	trace->is_aligned = true;
	status = viewer_plan_init(&plan, job, &align, &trace->filter);
	if (status == OK) {
		exit_code = show_plan(trace, &plan, exit_code);
		viewer_plan_release(&plan);
	} else {
		exit_code = told(status);
	}
	align_release(&align);
	return exit_code;
}

static int show(struct trace *trace)
{
	/* How each process's recording ends, the timeline shows. */
	bool is_trouble = cli_input_complain(&trace->input, false);
	struct job job;
	enum status status;
	int exit_code;

	if (trace->input.recording.count == 0)
		return is_trouble ? CLI_EXIT_TROUBLE : cli_input_nothing();
	status = job_make(&job, &trace->input.recording);
	if (status != OK)
		return told(status);
	exit_code = show_job(trace, &job, is_trouble ? CLI_EXIT_TROUBLE : CLI_EXIT_DONE);
	cli_progress_end(&trace->progress);
	job_release(&job);
	return exit_code;
}

int cmd_trace(int argc, char **argv)
{
	struct trace trace = { .has_details = true };
	struct cli_args args;
	int found, exit_code = 0;

	cli_input_init(&trace.input);
	cli_args_init(&args, &page, argc, argv);
	while (exit_code == 0 && (found = cli_next(&args)) != CLI_END) {
		if (found == CLI_STOP) {
			cli_input_release(&trace.input);
			return args.exit_code;
		}
		exit_code = take_option(&trace, found, args.value);
	}
	if (exit_code == 0)
		exit_code = check_options(&trace);
	if (exit_code == 0)
		exit_code = cli_input_read(&trace.input, RECORDING_WITH_TRACES);
	if (exit_code == 0)
		exit_code = show(&trace);
	cli_input_release(&trace.input);
	return exit_code;
}
