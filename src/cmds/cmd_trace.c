/* `ringside trace`: a timeline for trace viewers. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analysis/align.h"
#include "analysis/filter.h"
#include "analysis/job.h"
#include "cli/cli.h"
#include "cli/cli_input.h"
#include "cmds/commands.h"
#include "cmds/torch_trace.h"
#include "common/clock.h"
#include "common/text.h"
#include "output/gzip_sink.h"
#include "output/json.h"
#include "output/sink.h"
#include "output/viewer.h"

/* The time window of `ringside trace`. */

struct trace_window {
	const char *around; /* NULL: not asked for */
	uint64_t width_ns;  /* 0: not asked for */
	struct filter_time since;
	struct filter_time until;
};

/* The output of `ringside trace`, and its summary. */

struct trace_target {
	const char *path; /* "-": standard output */
	enum viewer_format format;
	bool is_gzip;
	bool is_json; /* the summary, on stdout */
	struct torch_traces *merge;
};

/* A duration like "2s". `target` is a struct trace_window. */
static int trace_window_width(const struct cli_said *said)
{
	struct trace_window *window = said->target;
	struct filter_time time = { FILTER_NO_TIME, 0 };

	if (filter_parse_time(&time, said->value) != OK || time.base != FILTER_FROM_START ||
	    time.ns == 0)
		return cli_usage(said->page, "--window '%s' is not a duration like 2s or 500ms",
				 said->value);
	window->width_ns = time.ns;
	return 0;
}

static uint64_t common_ns(const struct viewer_plan *plan, const struct filter_time *time)
{
	switch (time->base) {
	case FILTER_FROM_START:
		return plan->first_ns + time->ns;
	case FILTER_FROM_END:
		return plan->last_ns > time->ns ? plan->last_ns - time->ns : 0;
	case FILTER_TIME_OF_DAY:
		return filter_time_of_day(time->ns, plan->first_ns, plan->last_ns);
	case FILTER_WALL:
		return time->ns;
	case FILTER_NO_TIME:
		break;
	}
	return 0;
}

static bool is_name(const struct viewer_plan *plan, const char *text)
{
	for (size_t i = 0; i < plan->job->comm_count; i++)
		if (strcmp(plan->job->comms[i].name, text) == 0 ||
		    strcmp(plan->job->comms[i].label, text) == 0)
			return true;
	return false;
}

static bool is_comm(const struct viewer_plan *plan, const char *text)
{
	struct filter filter = { .comms = { text }, .comm_count = 1 };

	for (size_t i = 0; i < plan->job->comm_count; i++)
		if (filter_has_comm(&filter, &plan->job->comms[i]))
			return true;
	return false;
}

/*
 * COMM:NUMBER, RANK:NUMBER or RANK:COMM:NUMBER. Names may contain colons and look like ranks, and the first digit of
 * a hash looks like a rank: names take precedence over ranks, and ranks over hashes.
 */
static bool parse_around(const struct viewer_plan *plan, char *text, struct viewer_find *find)
{
	char *number = strrchr(text, ':');
	char *comm = strchr(text, ':');
	int64_t value;

	if (number == NULL || text_number(number + 1, 1, INT64_MAX, &value) != OK)
		return false;
	find->number = (uint64_t)value;
	find->rank = -1;
	*number = '\0';
	if (!is_name(plan, text)) {
		if (comm == number && text_number(text, 0, INT32_MAX, &find->rank) == OK)
			return true;
		if (comm != number) {
			*comm = '\0';
			find->comm = comm + 1;
			return is_comm(plan, find->comm) &&
			       text_number(text, 0, INT32_MAX, &find->rank) == OK;
		}
	}
	find->comm = text;
	return is_comm(plan, text);
}

static int complain_of_many(const struct viewer_plan *plan, const struct viewer_find *find,
			    const char *around)
{
	char list[256] = "";
	size_t at = 0;

	for (size_t i = 0; i < find->comm_count && i < VIEWER_FIND_COMMS; i++) {
		const struct job_comm *comm = &plan->job->comms[find->comms[i]];

		text_format(list + at, sizeof(list) - at, "%s0x%016llx", i > 0 ? ", " : "",
			    (unsigned long long)comm->hash);
		at += strlen(list + at);
	}
	return cli_error("--around %s: %zu communicators have it (%s%s); use a hash or "
			 "RANK:COMM:NUMBER",
			 around, find->comm_count, list,
			 find->comm_count > VIEWER_FIND_COMMS ? ", ..." : "");
}

static int apply_around(const struct trace_window *window, struct viewer_plan *plan)
{
	uint64_t half_ns = (window->width_ns ? window->width_ns : SECOND_NS) / 2;
	struct viewer_find find = { .rank = -1 };
	char text[256];
	enum status status;

	if (!text_copy(text, sizeof(text), window->around) || !parse_around(plan, text, &find))
		return cli_error(
			"--around '%s' is not an operation of this recording: use COMM:NUMBER (a "
			"communicator's name or hash), RANK:NUMBER or RANK:COMM:NUMBER",
			window->around);
	status = viewer_find(plan, &find);
	if (status != OK)
		return cli_error("cannot read: %s", status_reason(status));
	if (find.count == 0)
		return cli_error("--around %s: no such operation is recorded, or it has no time",
				 window->around);
	if (find.comm_count > 1)
		return complain_of_many(plan, &find, window->around);
	plan->from_ns = find.start_ns > half_ns ? find.start_ns - half_ns : 0;
	plan->to_ns = find.end_ns + half_ns;
	return 0;
}

/* Sets the window of the plan, after its survey. Returns 0, or the exit code after an error was reported. */
static int trace_window_apply(const struct trace_window *window, struct viewer_plan *plan)
{
	if (window->around)
		return apply_around(window, plan);
	if (window->since.base != FILTER_NO_TIME)
		plan->from_ns = common_ns(plan, &window->since);
	if (window->until.base != FILTER_NO_TIME)
		plan->to_ns = common_ns(plan, &window->until);
	if (window->width_ns == 0)
		return 0;
	/* From the given time; without one, the end of the recording. */
	if (window->since.base != FILTER_NO_TIME)
		plan->to_ns = plan->from_ns + window->width_ns;
	else if (window->until.base != FILTER_NO_TIME)
		plan->from_ns = plan->to_ns > window->width_ns ? plan->to_ns - window->width_ns : 0;
	else if (plan->last_ns > window->width_ns)
		plan->from_ns = plan->last_ns - window->width_ns;
	return 0;
}

/* Measured sizes of an operation with its waiting and arrows, and of a detail. */
enum {
	JSON_OP_BYTES = 1300,
	JSON_DETAIL_BYTES = 210,
	PERFETTO_OP_BYTES = 480,
	PERFETTO_DETAIL_BYTES = 90,
	GZIP_RATIO = 10,
};

#define LARGE_BYTES (UINT64_C(300) << 20)

/* By the path's suffix; false if it has no known one. "x.json.gz" is JSON in gzip. */
static bool trace_timeline_guess(struct trace_target *target)
{
	static const struct {
		const char *suffix;
		enum viewer_format format;
	} known[] = {
		{ ".json", VIEWER_JSON },
		{ ".pftrace", VIEWER_PERFETTO },
		{ ".perfetto-trace", VIEWER_PERFETTO },
	};
	size_t length = strlen(target->path);

	if (length > 3 && strcmp(target->path + length - 3, ".gz") == 0) {
		target->is_gzip = true;
		length -= 3;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(known); i++) {
		size_t suffix = strlen(known[i].suffix);

		if (length > suffix &&
		    strncmp(target->path + length - suffix, known[i].suffix, suffix) == 0) {
			if (target->format == 0)
				target->format = known[i].format;
			return true;
		}
	}
	return target->format != 0;
}

/* Warns if the file will be too large for viewers, with options to reduce it. */
static void trace_timeline_warn(const struct viewer_plan *plan, const struct trace_target *target)
{
	bool is_json = target->format == VIEWER_JSON;
	uint64_t bytes = plan->expected * (is_json ? JSON_OP_BYTES : PERFETTO_OP_BYTES);
	char size[UNITS_TEXT];

	if (plan->has_details)
		bytes += plan->expected_details *
			 (is_json ? JSON_DETAIL_BYTES : PERFETTO_DETAIL_BYTES);
	if (bytes < LARGE_BYTES)
		return;
	cli_error(
		"the file will be about %s%s; viewers are slow beyond a few hundred MiB. Reduce it "
		"with --around, --window, --rank, --comm%s%s",
		units_bytes(size, bytes), target->is_gzip ? " before compression" : "",
		plan->has_details && plan->expected_details > 0 ? ", --no-details" : "",
		is_json ? ", --format perfetto" : "");
}

/* "aligned by collectives, within 3.2 us", and what is not aligned. */
static void alignment_text(const struct viewer_plan *plan, char *text, size_t size)
{
	const struct align *align = plan->align;
	size_t aligned = align->count - align->unaligned;
	char within[UNITS_TEXT];
	size_t at;

	if (align->count < 2) {
		text_copy(text, size, "one process: nothing to align");
		return;
	}
	if (aligned < 2) {
		text_copy(text, size, "not aligned: placed by wall clocks");
		return;
	}
	units_duration(within, align->worst_uncertainty_ns);
	if (align->worst_uncertainty_ns == 0)
		text_copy(text, size, "one machine, one clock");
	else
		text_format(text, size, "aligned by collectives, within %s", within);
	at = strlen(text);
	if (align->unaligned > 0)
		text_format(
			text + at, size - at,
			"; %u of %zu processes share no collective and are placed by wall clocks",
			(unsigned int)align->unaligned, align->count);
	else if (align->island_count > 1)
		text_format(text + at, size - at,
			    "; %u groups of processes share no collective and are placed by wall "
			    "clocks",
			    (unsigned int)align->island_count);
}

static void trace_about(const struct viewer_plan *plan, const struct torch_traces *merge,
			struct viewer *viewer)
{
	struct viewer_args args = { .count = 0 };
	char text[256], merged[256], start[UNITS_TEXT];

	alignment_text(plan, text, sizeof(text));
	viewer_arg_text(&args, "written_by", "ringside " RINGSIDE_VERSION);
	viewer_arg_text(&args, "start", units_wall_time(start, plan->origin_ns));
	viewer_arg_unsigned(&args, "processes", plan->recording->count);
	viewer_arg_unsigned(&args, "operations", plan->expected);
	viewer_arg_text(&args, "alignment", text);
	viewer_arg_unsigned(&args, "alignment_uncertainty_ns", plan->align->worst_uncertainty_ns);
	viewer_arg_unsigned(&args, "processes_not_aligned", plan->align->unaligned);
	viewer_arg_unsigned(&args, "operations_not_joined", plan->meet.left_out);
	if (merge->count > 0) {
		viewer_arg_unsigned(&args, "torch_traces", merge->count);
		torch_trace_clock_text(&merge->list[0], merged, sizeof(merged));
		viewer_arg_text(&args, "torch_clock", merged);
	}
	viewer_about(viewer, &args);
}

static void summary_text(const struct viewer_plan *plan, const struct viewer *viewer,
			 const struct trace_target *target)
{
	const struct viewer_tally *tally = &plan->tally;
	char count[UNITS_TEXT], other[UNITS_TEXT], text[256];

	fprintf(stderr, "%s: %llu process%s, %s operations, %llu in flight\n", target->path,
		(unsigned long long)viewer->counts.processes,
		viewer->counts.processes == 1 ? "" : "es", units_count(count, tally->shown),
		(unsigned long long)tally->in_flight);
	if (tally->timed + tally->in_flight < tally->shown)
		fprintf(stderr, "timed: %s of %s operations; the others show their call\n",
			units_count(count, tally->timed),
			units_count(other, tally->shown - tally->in_flight));
	alignment_text(plan, text, sizeof(text));
	fprintf(stderr, "time: %s\n", text);
	if (tally->missing > 0)
		fprintf(stderr, "missing: %s recorded operations were overwritten\n",
			units_count(count, tally->missing));
	if (tally->nowhere + tally->crowded > 0)
		fprintf(stderr,
			"shown as instants: %s operations without any time, %s without a free "
			"track\n",
			units_count(count, tally->nowhere), units_count(other, tally->crowded));
	if (tally->details_out > 0)
		fprintf(stderr, "not shown: %s details without a time\n",
			units_count(count, tally->details_out));
	for (size_t i = 0; i < target->merge->count; i++) {
		const struct torch_trace *one = &target->merge->list[i];

		torch_trace_clock_text(one, text, sizeof(text));
		fprintf(stderr, "%s: %s slices; %s\n", one->path, units_count(count, one->slices),
			text);
		if (one->left_out + one->about.too_long + one->about.unusable > 0)
			fprintf(stderr,
				"%s: not shown: %s counters, arrows and events without a place, %s "
				"damaged or too long\n",
				one->path, units_count(count, one->left_out),
				units_count(other, one->about.too_long + one->about.unusable));
	}
	if (plan->meet.left_out > 0)
		fprintf(stderr, "not matched, out of memory: %s operations; they show no waiting\n",
			units_count(count, plan->meet.left_out));
}

static void put_merged(struct json *json, const struct torch_traces *merge)
{
	char text[256];

	json_put_array(json, "torch_traces");
	for (size_t i = 0; i < merge->count; i++) {
		const struct torch_trace *one = &merge->list[i];
		const struct recording_process *process = one->owner;

		torch_trace_clock_text(one, text, sizeof(text));
		json_object(json);
		json_put_string(json, "file", one->path);
		json_put_known(json, "rank", process->rank >= 0, (uint64_t)process->rank);
		json_put_unsigned(json, "pid", (uint64_t)process->pid);
		json_put_unsigned(json, "slices", one->slices);
		json_put_unsigned(json, "left_out", one->left_out);
		json_put_unsigned(json, "unusable", one->about.unusable + one->about.too_long);
		json_put_string(json, "clock", text);
		json_put_unsigned(json, "compared", one->compared);
		json_put_unsigned(json, "agreed", one->agreed);
		json_put_signed(json, "offset_ns", one->offset_ns);
		json_put_known(json, "within_ns", one->clock != TORCH_CLOCK_WALL, one->within_ns);
		json_end(json);
	}
	json_end(json);
}

static int summary_json(const struct viewer_plan *plan, const struct viewer *viewer,
			const struct trace_target *target, int exit_code)
{
	const struct viewer_tally *tally = &plan->tally;
	const struct viewer_counts *counts = &viewer->counts;
	char text[256];
	struct sink sink;
	struct json json;

	sink_init_fd(&sink, STDOUT_FILENO);
	json_init(&json, &sink);
	alignment_text(plan, text, sizeof(text));
	json_object(&json);
	json_put_string(&json, "file", target->path);
	json_put_string(&json, "format", target->format == VIEWER_JSON ? "json" : "perfetto");
	json_put_unsigned(&json, "start_ns", plan->origin_ns);
	json_put_unsigned(&json, "span_ns", plan->end_ns - plan->origin_ns);
	json_put_unsigned(&json, "processes", counts->processes);
	json_put_unsigned(&json, "tracks", counts->tracks);
	json_put_unsigned(&json, "operations", tally->shown);
	json_put_unsigned(&json, "operations_read", tally->read);
	json_put_unsigned(&json, "timed", tally->timed);
	json_put_unsigned(&json, "seen", tally->seen);
	json_put_unsigned(&json, "called", tally->called);
	json_put_unsigned(&json, "in_flight", tally->in_flight);
	json_put_unsigned(&json, "nowhere", tally->nowhere);
	json_put_unsigned(&json, "crowded", tally->crowded);
	json_put_unsigned(&json, "waiting", tally->waiting);
	json_put_unsigned(&json, "details", tally->details);
	json_put_unsigned(&json, "details_out", tally->details_out);
	json_put_unsigned(&json, "missing", tally->missing);
	json_put_unsigned(&json, "refused", tally->refused);
	json_put_unsigned(&json, "not_joined", plan->meet.left_out);
	json_put_unsigned(&json, "slices", counts->slices);
	json_put_unsigned(&json, "arrows", counts->tails);
	json_put_unsigned(&json, "instants", counts->instants);
	json_put_unsigned(&json, "values", counts->values);
	json_put_string(&json, "alignment", text);
	json_put_unsigned(&json, "alignment_uncertainty_ns", plan->align->worst_uncertainty_ns);
	json_put_unsigned(&json, "processes_not_aligned", plan->align->unaligned);
	if (target->merge->count > 0)
		put_merged(&json, target->merge);
	json_finish(&json);
	return cli_finish(&sink, exit_code);
}

/* Writes the timeline to an open output. *failed: the exit code of an error that was reported, else 0. */
static enum status write_timeline(struct viewer_plan *plan, const struct trace_target *target,
				  struct sink *sink, struct viewer *viewer, int *failed)
{
	struct gzip_sink gzip = { .stream = NULL };
	bool has_wall = plan->align->count > 0 &&
			plan->align->processes[plan->align->reference].source != ALIGN_NOTHING;
	enum status status, end;

	if (target->is_gzip && gzip_sink_open(&gzip, sink) != OK)
		return ERR_NO_SPACE;
	status = viewer_init(viewer, target->format, target->is_gzip ? &gzip.plain : sink,
			     target->is_gzip ? &gzip : NULL, has_wall ? plan->origin_ns : 0);
	if (status == OK) {
		trace_about(plan, target->merge, viewer);
		status = viewer_plan_write(plan, viewer);
		if (status == OK)
			*failed = torch_traces_write(target->merge, plan, viewer);
		end = viewer_end(viewer);
		/* Errors of the output are reported by the output. */
		if (status == OK && sink->status == OK)
			status = end;
	}
	gzip_sink_close(&gzip);
	return status;
}

/* Call after viewer_plan_join(). Returns exit_code, or 1 after an error was reported. */
static int trace_timeline_write(struct viewer_plan *plan, const struct trace_target *target,
				int exit_code, struct cli_progress *progress)
{
	struct cli_output output;
	struct viewer viewer;
	enum status status;
	int failed = cli_output_open(&output, target->path);

	if (failed != 0)
		return failed;
	status = write_timeline(plan, target, &output.sink, &viewer, &failed);
	cli_progress_end(progress);
	if (status != OK) {
		cli_output_discard(&output);
		return cli_cannot_read(status);
	}
	if (failed != 0) {
		cli_output_discard(&output);
		return failed;
	}
	/* No summary of a file that was not written. */
	if (cli_output_commit(&output, CLI_EXIT_DONE) != CLI_EXIT_DONE)
		return CLI_EXIT_UNKNOWN;
	if (plan->tally.refused > 0)
		exit_code |= cli_error("%llu records or blocks are damaged and not shown; "
				       "'ringside verify' has details",
				       (unsigned long long)plan->tally.refused);
	summary_text(plan, &viewer, target);
	return target->is_json ? summary_json(plan, &viewer, target, exit_code) : exit_code;
}

struct trace {
	struct cli_input input;
	struct trace_target target;
	struct trace_window window;
	struct report_filter chosen; /* its times are those of the window */
	struct torch_traces merge;
	struct cli_progress progress;
	bool is_aligned; /* the first of the four walks is done */
	bool has_calls;
	bool has_details;
};

/* `format` is an enum viewer_format. */
static int take_format(const struct cli_said *said)
{
	enum viewer_format *to = said->target;

	if (strcmp(said->value, "json") != 0 && strcmp(said->value, "perfetto") != 0)
		return cli_usage(said->page, "--format '%s' is neither json nor perfetto",
				 said->value);
	*to = said->value[0] == 'j' ? VIEWER_JSON : VIEWER_PERFETTO;
	return 0;
}

static const struct cli_option options[] = {
	{ 'o', "output", "FILE",
	  "file to write: .json or .pftrace, optionally .gz; - for standard output",
	  CLI_TEXT(struct trace, target.path) },
	{ 0, "format", "FORMAT",
	  "json (Perfetto, chrome://tracing, speedscope) or perfetto (its own format, less than "
	  "half the size), regardless of the file name",
	  CLI_CALL(struct trace, target.format, take_format) },
	{ 0, "gzip", NULL, "compress, regardless of the file name",
	  CLI_FLAG(struct trace, target.is_gzip) },
	{ 0, "around", "OP",
	  "show what happened around an operation: COMM:NUMBER, RANK:NUMBER or "
	  "RANK:COMM:NUMBER; a communicator by its name or hash",
	  CLI_TEXT(struct trace, window.around) },
	{ 0, "window", "TIME",
	  "length of the window: after --since, before --until, around the operation (default 1s), "
	  "or at the end",
	  CLI_CALL(struct trace, window, trace_window_width) },
	CLI_OPTIONS_READING(struct trace),
	{ 0, "calls", NULL, "also show host calls, from issue to launch",
	  CLI_FLAG(struct trace, has_calls) },
	{ 0, "no-details", NULL, "leave out channels and transfers (recorded by mode full)",
	  CLI_CLEAR(struct trace, has_details) },
	TORCH_OPTION_MERGE(struct trace, "shown as tracks of its rank"),
	{ 'j', "json", NULL, "also describe the file as JSON on standard output",
	  CLI_FLAG(struct trace, target.is_json) },
	CLI_OPTION_QUIET,
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside trace traces/ -o job.pftrace",
	  "the whole job, to be opened in ui.perfetto.dev" },
	{ "ringside trace traces/ -o job.json.gz --around world:1234 --window 2s",
	  "two seconds around the 1234th operation on communicator world" },
	{ "ringside trace traces/ -o end.json --window 5s --rank 0-15",
	  "the last five seconds of 16 ranks: where it hangs" },
	{ "ringside trace traces/ -o both.pftrace --merge kineto-0.json.gz",
	  "with what torch.profiler recorded of one rank" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "trace",
	.operands = "[PATH...] -o FILE",
	.about = "Writes a timeline for a trace viewer: a process per rank, a track per "
		 "communicator, every operation with all its fields, waiting for the last rank "
		 "shaded, arrows from Send to Recv and from waiting ranks to the straggler, "
		 "bandwidth as a counter. Rank clocks are aligned using shared collectives; the "
		 "alignment error is printed. docs/EXPORT.md explains what to look "
		 "for.\n" CLI_INPUT_ABOUT CLI_INPUT_NONE "\n",
	.options = options,
	CLI_OPERANDS(struct trace, input, cli_input_take),
	.examples = examples,
};

static int check_options(void *context)
{
	struct trace *trace = context;
	struct trace_target *target = &trace->target;
	bool has_limits = trace->chosen.filter.since.base != FILTER_NO_TIME ||
			  trace->chosen.filter.until.base != FILTER_NO_TIME;

	/* The plan has one window, on the common time of all ranks. */
	trace->window.since = trace->chosen.filter.since;
	trace->window.until = trace->chosen.filter.until;
	trace->chosen.filter.since.base = trace->chosen.filter.until.base = FILTER_NO_TIME;
	if (target->path == NULL)
		return cli_usage(&page, "no output file: use -o FILE");
	if (!trace_timeline_guess(target))
		return cli_usage(&page,
				 "'%s' does not say which format: end it in .json or .pftrace, or "
				 "say --format",
				 target->path);
	if (strcmp(target->path, "-") == 0 && target->is_json)
		return cli_usage(&page, "--json and -o - cannot both use standard output");
	if (cli_output_is_terminal(target->path) &&
	    (target->is_gzip || target->format == VIEWER_PERFETTO))
		return cli_usage(&page, "this format is not for a terminal: use -o FILE");
	if (trace->window.around && has_limits)
		return cli_usage(&page, "--around cannot be combined with --since or --until");
	if (trace->window.width_ns > 0 && trace->window.since.base != FILTER_NO_TIME &&
	    trace->window.until.base != FILTER_NO_TIME)
		return cli_usage(&page, "--window, --since and --until cannot be combined");
	return CLI_GO_ON;
}

static bool show_progress(double fraction, void *context)
{
	struct trace *trace = context;
	double all = trace->is_aligned ? 0.25 + 0.75 * fraction : 0.25 * fraction;

	cli_progress_at(&trace->progress, (uint64_t)(all * (double)trace->progress.total));
	return true;
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
		return cli_cannot_read(status);
	failed = trace_window_apply(&trace->window, plan);
	if (failed)
		return failed;
	status = viewer_plan_join(plan);
	cli_progress_hide(&trace->progress);
	if (status != OK)
		return cli_cannot_read(status);
	torch_traces_widen(&trace->merge, plan);
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
		return cli_cannot_read(status);
	trace->is_aligned = true;
	cli_progress_hide(&trace->progress);
	torch_traces_join(&trace->merge, job->recording, &align);
	status = viewer_plan_init(&plan, job, &align, &trace->chosen.filter);
	if (status == OK) {
		exit_code = show_plan(trace, &plan, exit_code);
		viewer_plan_release(&plan);
	} else {
		exit_code = cli_cannot_read(status);
	}
	align_release(&align);
	return exit_code;
}

static int trace_show(void *context)
{
	struct trace *trace = context;
	/* The timeline shows how each recording ends. */
	int exit_code = cli_input_complain(&trace->input, false), failed;
	struct job job;
	enum status status;

	if (trace->input.recording.count == 0)
		return exit_code;
	failed = torch_traces_open(&trace->merge, &trace->input.recording);
	if (failed != 0)
		return failed;
	failed = cli_input_choose(&trace->input, &trace->chosen, &page);
	if (failed != 0)
		return failed;
	status = job_make(&job, &trace->input.recording);
	if (status != OK)
		return cli_cannot_read(status);
	exit_code = show_job(trace, &job, exit_code);
	cli_progress_end(&trace->progress);
	job_release(&job);
	return exit_code;
}

int cmd_trace(int argc, char **argv)
{
	struct trace trace = { .has_details = true };
	int exit_code;

	trace.target.merge = &trace.merge;
	exit_code = cli_input_command(&page, &trace, RECORDING_WITH_TRACES, check_options,
				      trace_show, argc, argv);
	torch_traces_release(&trace.merge);
	return exit_code;
}
