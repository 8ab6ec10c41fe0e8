/* Everything that is written without enough memory: each allocation fails once, and is noticed. */
#include "tests/support/short_memory.h"

#include "common/attributes.h"
#include "output/export.h"
#include "output/json.h"
#include "output/live_json.h"
#include "output/metrics.h"
#include "output/report.h"
#include "output/viewer.h"
#include "tests/support/metrics_play.h"
#include "tests/tap.h"
#include "tests/unit/output/whole_job.h"

static struct recording recording;
static struct timeline_report report;
static struct job job;
static struct align align;

/* ---- reports ---------------------------------------------------------------------------------- */

static enum status ended(struct sink *sink, enum status status)
{
	if (status == OK)
		status = sink->status;
	sink_release(sink);
	return status;
}

/* From files; the other test of this kind has no files. */
static enum status make_report(void)
{
	struct timeline_options options = TIMELINE_OPTIONS_INIT;
	struct timeline_report again;
	enum status status;

	html_report_options(&options);
	status = timeline_report_make(&again, &recording, NULL, &options);
	if (status == OK)
		timeline_report_release(&again);
	return status;
}

static enum status write_text(void)
{
	const struct report_text_options options = { .width = 80, .has_all = true };
	struct sink sink;

	sink_init_memory(&sink);
	return ended(&sink, report_text(&sink, &report, &options));
}

static enum status write_json(void)
{
	struct sink sink;
	struct json json;

	sink_init_memory(&sink);
	json_init(&json, &sink);
	report_json(&json, &report, REPORT_JSON_WHOLE);
	return ended(&sink, OK);
}

static enum status write_page(void)
{
	struct sink sink;

	sink_init_memory(&sink);
	return ended(&sink, html_report_write(&sink, &report));
}

static enum status write_csv(void)
{
	struct sink sink;
	enum status status;

	sink_init_memory(&sink);
	status = report_csv_tally(&sink, &report, report_table(&report, "name"));
	if (status == OK)
		status = report_csv_windows(&sink, &report);
	if (status == OK)
		status = report_csv_iterations(&sink, &report);
	return ended(&sink, status);
}

static struct compare compare;
static const struct diff_side side = { "path", &report };

static enum status write_diff_text(void)
{
	const struct report_text_options options = { .width = 80, .has_all = true };
	struct sink sink;

	sink_init_memory(&sink);
	return ended(&sink, diff_text(&sink, &side, &side, &compare, &options));
}

static enum status write_diff_page(void)
{
	struct sink sink;

	sink_init_memory(&sink);
	return ended(&sink, diff_html(&sink, &side, &side, &compare, true));
}

/* ---- timelines -------------------------------------------------------------------------------- */

static enum status write_timeline(enum viewer_format format)
{
	static const struct filter everything;
	struct viewer_args about = { .count = 0 };
	struct viewer_plan plan;
	struct viewer viewer;
	struct sink sink;
	enum status status, end;

	status = viewer_plan_init(&plan, &job, &align, &everything);
	if (status != OK)
		return status;
	plan.has_details = plan.has_calls = true;
	sink_init_memory(&sink);
	status = viewer_plan_survey(&plan);
	if (status == OK)
		status = viewer_plan_join(&plan);
	if (status == OK) {
		status = viewer_init(&viewer, format, &sink, NULL, plan.origin_ns);
		if (status == OK) {
			viewer_about(&viewer, &about);
			status = viewer_plan_write(&plan, &viewer);
			end = viewer_end(&viewer);
			status = status != OK ? status : end;
		}
	}
	viewer_plan_release(&plan);
	return ended(&sink, status);
}

static enum status write_chrome(void)
{
	return write_timeline(VIEWER_JSON);
}

static enum status write_perfetto(void)
{
	return write_timeline(VIEWER_PERFETTO);
}

/* ---- tables of operations --------------------------------------------------------------------- */

struct writing {
	const struct export_format *format;
	void *writer;
	enum status status;
};

static bool put_batch(const struct op_batch *batch, enum recording_place place, void *context)
{
	struct writing *to = context;

	(void)place;
	to->status = to->format->batch(to->writer, batch);
	return to->status == OK;
}

static enum status write_table(const struct export_format *format)
{
	struct writing to = { .format = format };
	enum status status = OK, end;
	struct sink sink;

	sink_init_memory(&sink);
	to.writer = format->begin(&sink, EXPORT_ALL_COLUMNS);
	if (to.writer == NULL)
		return ended(&sink, ERR_NO_SPACE);
	for (size_t i = 0; i < recording.count && status == OK; i++) {
		format->process(to.writer, recording.processes[i]);
		status = recording_each_batch(recording.processes[i], export_words(), put_batch,
					      &to, NULL);
		status = status != OK ? status : to.status;
	}
	if (status == OK)
		format->fact(to.writer, "ringside.lost", "17");
	end = format->end(to.writer);
	return ended(&sink, status != OK ? status : end);
}

static enum status write_rows(void)
{
	return write_table(&export_csv);
}

static enum status write_lines(void)
{
	return write_table(&export_jsonl);
}

static enum status write_parquet(void)
{
	return write_table(&export_parquet);
}

/* ---- metrics ---------------------------------------------------------------------------------- */

static struct live *live;

static enum status write_metrics(void)
{
	struct metrics_agent agent = play_agent();
	struct sink sink;

	sink_init_memory(&sink);
	metrics_write(&sink, METRICS_PROTOBUF, live, &agent, -1);
	return ended(&sink, OK);
}

static void test_metrics(void)
{
	struct play play = { 0 };

	for (int rank = 0; rank < 2; rank++) {
		struct recording_process *process = play_process(&play, "train", rank);
		struct recording_comm *comm = play_comm(process, 0xabc, "dp", rank, 2);

		play_total(process, comm, OP_ALL_REDUCE, 1 << 20, 10, 1500);
		play_link(process, 1, 0, 1 - (uint32_t)rank, 3);
	}
	live = play_look(&play);
	short_memory_each("metrics", write_metrics, true);
	play_release(&play);
}

int main(void)
{
	static const struct {
		const char *what;
		enum status (*write)(void);
		bool must_notice;
	} outputs[] = {
		{ "a report", make_report, false },
		/* A sentence is left out. */
		{ "a report as text", write_text, false },
		{ "a report as JSON", write_json, true },
		{ "a report as a page", write_page, true },
		{ "a report as CSV", write_csv, true },
		{ "a comparison as text", write_diff_text, false },
		{ "a comparison as a page", write_diff_page, true },
		/* What an operation in flight waits for. */
		{ "a timeline for Chrome", write_chrome, false },
		{ "a timeline for Perfetto", write_perfetto, false },
		/* Rows whose texts find no room are tried again. */
		{ "operations as CSV", write_rows, false },
		{ "operations as JSON", write_lines, false },
		{ "operations as Parquet", write_parquet, false },
	};
	struct timeline_options options = TIMELINE_OPTIONS_INIT;

	options.custom_by[options.custom_count++] = TALLY_BY_FUNCTION | TALLY_BY_SIZE;
	html_report_options(&options);
	whole_make(&recording, 3);
	if (timeline_report_make(&report, &recording, NULL, &options) != OK ||
	    compare_make(&compare, &report, &report, 0.05) != OK ||
	    job_make(&job, &recording) != OK || align_make(&align, &job, NULL, NULL) != OK)
		abort();
	for (size_t i = 0; i < ARRAY_LENGTH(outputs); i++)
		if (outputs[i].write != write_page || html_report_has_charts())
			short_memory_each(outputs[i].what, outputs[i].write,
					  outputs[i].must_notice);
	compare_release(&compare);
	align_release(&align);
	job_release(&job);
	timeline_report_release(&report);
	recording_release(&recording);
	test_metrics();
	return tap_done();
}
