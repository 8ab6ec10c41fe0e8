#include "programs/cli/trace_timeline.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"
#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_memory.h"
#include "programs/cli/cli_output.h"
#include "view/gzip_sink.h"
#include "view/json.h"

/* Measured: what an operation with its waiting and arrows takes, and a detail. */
enum {
	JSON_OP_BYTES = 1300,
	JSON_DETAIL_BYTES = 210,
	PERFETTO_OP_BYTES = 480,
	PERFETTO_DETAIL_BYTES = 90,
	GZIP_RATIO = 10,
};

#define LARGE_BYTES (UINT64_C(300) << 20)

bool trace_timeline_guess(struct trace_target *target)
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

void trace_timeline_warn(const struct viewer_plan *plan, const struct trace_target *target)
{
	bool is_json = target->format == VIEWER_JSON;
	uint64_t bytes = plan->expected * (is_json ? JSON_OP_BYTES : PERFETTO_OP_BYTES);
	char size[UNITS_TEXT];

	if (plan->has_details)
		bytes += plan->expected_details *
			 (is_json ? JSON_DETAIL_BYTES : PERFETTO_DETAIL_BYTES);
	if (bytes < LARGE_BYTES)
		return;
	cli_error("this makes about %s%s, and viewers are slow beyond a few hundred MiB: --around, "
		  "--window, --rank, --comm%s%s make it smaller",
		  units_bytes(size, bytes), target->is_gzip ? " before compression" : "",
		  plan->has_details && plan->expected_details > 0 ? ", --no-details" : "",
		  is_json ? ", --format perfetto" : "");
}

/* "aligned by collectives, within 3.2 us", and what is not. */
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
		text_format(text + at, size - at,
			    "; %u of %zu processes met nobody and are placed by wall clocks",
			    (unsigned int)align->unaligned, align->count);
	else if (align->island_count > 1)
		text_format(text + at, size - at,
			    "; %u groups of processes never met and are placed by wall clocks",
			    (unsigned int)align->island_count);
}

static void about(const struct viewer_plan *plan, struct viewer *viewer)
{
	struct viewer_args args = { .count = 0 };
	char text[256], start[UNITS_TEXT];

	alignment_text(plan, text, sizeof(text));
	viewer_arg_text(&args, "written_by", "ringside " RINGSIDE_VERSION);
	viewer_arg_text(&args, "start", units_wall_time(start, plan->origin_ns));
	viewer_arg_unsigned(&args, "processes", plan->recording->count);
	viewer_arg_unsigned(&args, "operations", plan->expected);
	viewer_arg_text(&args, "alignment", text);
	viewer_arg_unsigned(&args, "alignment_uncertainty_ns", plan->align->worst_uncertainty_ns);
	viewer_arg_unsigned(&args, "processes_not_aligned", plan->align->unaligned);
	viewer_arg_unsigned(&args, "operations_not_joined", plan->meet.left_out);
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
		fprintf(stderr, "missing: %s operations that were recorded are no longer there\n",
			units_count(count, tally->missing));
	if (tally->nowhere + tally->crowded > 0)
		fprintf(stderr,
			"shown as moments: %s operations without any time, %s too many at once\n",
			units_count(count, tally->nowhere), units_count(other, tally->crowded));
	if (tally->details_out > 0)
		fprintf(stderr, "not shown: %s details without a time\n",
			units_count(count, tally->details_out));
	if (plan->meet.left_out > 0)
		fprintf(stderr,
			"not joined, for want of memory: %s operations; they show no waiting\n",
			units_count(count, plan->meet.left_out));
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
	json_end(&json);
	json_line(&json);
	return cli_finish(&sink, exit_code);
}

/* The timeline into an output that is open. */
static enum status write_timeline(struct viewer_plan *plan, const struct trace_target *target,
				  struct sink *sink, struct viewer *viewer)
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
		about(plan, viewer);
		status = viewer_plan_write(plan, viewer);
		end = viewer_end(viewer);
		/* What is wrong with the output itself, the output tells. */
		if (status == OK && sink->status == OK)
			status = end;
	}
	gzip_sink_close(&gzip);
	return status;
}

int trace_timeline_write(struct viewer_plan *plan, const struct trace_target *target, int exit_code,
			 struct cli_progress *progress)
{
	struct cli_output output;
	struct viewer viewer;
	enum status status;

	if (cli_output_open(&output, target->path) != 0)
		return CLI_EXIT_TROUBLE;
	status = write_timeline(plan, target, &output.sink, &viewer);
	cli_progress_end(progress);
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	if (status != OK) {
		cli_output_discard(&output);
		return cli_error("cannot read: %s",
				 status == ERR_SYSTEM ? strerror(errno) : status_text(status));
	}
	/* Nothing is said of a file that is not there. */
	if (cli_output_commit(&output, CLI_EXIT_DONE) != CLI_EXIT_DONE)
		return CLI_EXIT_TROUBLE;
	if (plan->tally.refused > 0)
		exit_code |= cli_error("%llu records or blocks are damaged and not shown; "
				       "'ringside verify' says more",
				       (unsigned long long)plan->tally.refused);
	summary_text(plan, &viewer, target);
	return target->is_json ? summary_json(plan, &viewer, target, exit_code) : exit_code;
}
