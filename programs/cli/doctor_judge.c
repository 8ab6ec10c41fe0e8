/* From what was read to verdicts. */
#include <errno.h>
#include <string.h>

#include "common/text.h"
#include "doctor/coverage.h"
#include "doctor/prom.h"
#include "doctor/setup.h"
#include "doctor/slow.h"
#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_memory.h"
#include "programs/cli/cli_progress.h"
#include "programs/cli/doctor_case.h"

static void must(enum status status)
{
	if (status == ERR_NO_SPACE)
		cli_no_memory();
}

/* ---- slowness -------------------------------------------------------------------------------- */

static enum status make_report(struct doctor_case *look, struct timeline_report *report)
{
	struct timeline_options wanted = TIMELINE_OPTIONS_INIT;
	struct cli_progress progress;
	enum status status;

	cli_progress_start(&progress, "doctor", "operations",
			   cli_input_operations(&look->asked_for));
	wanted.custom_by[wanted.custom_count++] = BASELINE_BY;
	wanted.progress = cli_progress_fraction;
	wanted.progress_context = &progress;
	status = timeline_report_make(report, &look->asked_for, NULL, &wanted);
	cli_progress_end(&progress);
	return status;
}

static void judge_slowness(struct doctor_case *look)
{
	const struct doctor_options *options = look->options;
	const struct slow_options slow = {
		.baseline = look->yardstick->has_baseline ? &look->yardstick->baseline : NULL,
		.expected = look->yardstick->has_expected ? &look->yardstick->expected : NULL,
		.peak_nvlink = options->peak_nvlink,
		.peak_network = options->peak_network,
		.gpu_hour_price = options->gpu_hour_price,
	};
	struct timeline_report report;
	enum status status = make_report(look, &report);
	const char *why;

	must(status);
	if (status != OK) {
		why = status == ERR_SYSTEM ? strerror(errno) : status_text(status);
		doctor_note_failure(look, "recorded operations", why, strlen(why));
		return;
	}
	must(slow_find(&look->verdicts, &report, &slow));
	timeline_report_release(&report);
}

static void judge_sums(struct doctor_case *look)
{
	const struct slow_sums_options slow = { .gpu_hour_price = look->options->gpu_hour_price };
	const char *warning = prom_warning(look->prom);

	must(prom_slow(look->prom, &look->verdicts, &slow));
	if (warning[0] != '\0')
		doctor_note_failure(look, "Prometheus", warning, strlen(warning));
}

/* ---- what stands still ----------------------------------------------------------------------- */

/* Nobody who waits computes, as long as it lasts. */
static double hours_lost(const struct verdict *verdict)
{
	/* The one that is named lost its time as well; in a circle it is one of those that wait. */
	bool is_one_more = verdict->class != VERDICT_DEADLOCK && verdict->host[0] != '\0';

	if (!verdict_is_hang(verdict->class) || verdict->severity != VERDICT_ERROR)
		return 0;
	return (double)(verdict->victims + is_one_more) * (double)verdict->for_ns / 3.6e12;
}

static void put_price(struct doctor_case *look)
{
	for (size_t i = 0; i < look->verdicts.count; i++) {
		struct verdict *verdict = &look->verdicts.list[i];

		if (verdict->gpu_hours == 0)
			verdict->gpu_hours = hours_lost(verdict);
		if (verdict->money == 0)
			verdict->money = verdict->gpu_hours * look->options->gpu_hour_price;
	}
}

static void judge_job(struct doctor_case *look)
{
	const struct hang_options hang = {
		.hang_ns = look->options->hang_ns,
		.has_unjudged = true,
		.sources = look->sources,
		.source_count = look->source_count,
	};

	must(job_make(&look->job, &look->asked_for));
	look->has_job = true;
	must(scene_make(&look->scene, &look->job, NULL, look->options->hang_ns));
	must(hang_find(&look->verdicts, &look->job, &hang));
	if (look->prom)
		judge_sums(look);
	else
		judge_slowness(look);
}

/* What stands still looks slow, too: one cause is told once. */
static void temper_slowness(struct verdicts *verdicts)
{
	for (size_t i = 0; i < verdicts->count; i++) {
		struct verdict *slow = &verdicts->list[i];

		for (size_t j = 0; j < verdicts->count && verdict_is_slow(slow->class); j++) {
			const struct verdict *hang = &verdicts->list[j];

			if (verdict_is_hang(hang->class) && hang->severity == VERDICT_ERROR &&
			    hang->rank >= 0 &&
			    (hang->rank == slow->rank || hang->rank == slow->peer) &&
			    strcmp(hang->job, slow->job) == 0)
				slow->severity = VERDICT_NOTE;
		}
	}
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool is_trouble(const struct recording_trouble *trouble, void *context)
{
	const struct doctor_case *look = context;

	return trouble->kind != RECORDING_CUT && cli_input_is_trouble(&look->input, trouble);
}

void doctor_judge(struct doctor_case *look)
{
	const struct blind_options blind = {
		.sources = look->sources,
		.source_count = look->source_count,
		.asked = look->asked,
		.is_trouble = is_trouble,
		.context = look,
		.notes = &look->notes,
		.is_whole = look->source_count > 0 || look->prom != NULL,
	};

	if (look->asked_for.count > 0)
		judge_job(look);
	must(setup_find(&look->verdicts, look->has_log ? &look->log : NULL, &look->asked_for));
	blind_find(&look->verdicts, &look->asked_for, look->has_job ? &look->scene : NULL, &blind);
	put_price(look);
	temper_slowness(&look->verdicts);
	verdicts_sort(&look->verdicts);
}

void doctor_note_failure(struct doctor_case *look, const char *what, const char *why, size_t length)
{
	struct verdict *verdict = verdicts_add(&look->verdicts, VERDICT_BLIND, VERDICT_NOTE);

	text_copy(verdict->rule, sizeof(verdict->rule), what);
	verdict_title(verdict, "%s cannot be used", what);
	verdict_evidence(verdict, "%.*s", (int)(length < 900 ? length : 900), why);
	verdict_missing(verdict, "what would have been told by it");
}
