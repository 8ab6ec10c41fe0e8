#include "view/html_data.h"

#include <math.h>

#include "view/report_json.h"
#include "view/report_words.h"

void html_data_rounded(struct json *json, double number)
{
	double scale;

	if (!isfinite(number) || number == 0) {
		json_unsigned(json, 0);
		return;
	}
	scale = pow(10, 5 - floor(log10(fabs(number))));
	json_double(json, isfinite(scale) && scale > 0 ? round(number * scale) / scale : number);
}

void html_data_time(struct json *json, const struct timeline_report *report, const char *key,
		    uint64_t common_ns)
{
	json_key(json, key);
	if (common_ns == 0)
		json_null(json);
	else
		json_signed(json, (int64_t)(common_ns - report->start_ns));
}

static const char *rank_label(const struct timeline_report *report, uint32_t rank)
{
	return rank < report->job.rank_count ? report->job.ranks[rank].label : NULL;
}

static const char *host_name(const struct timeline_report *report, uint32_t host)
{
	return host < report->job.host_count ? report->job.hosts[host].name : NULL;
}

/* The host that is named, else the one of the rank that is. */
static const char *host_of(const struct timeline_report *report, uint32_t rank, uint32_t host)
{
	if (rank < report->job.rank_count)
		host = report->job.ranks[rank].host;
	return host_name(report, host);
}

static const char *comm_label(const struct timeline_report *report, uint32_t comm)
{
	return comm < report->job.comm_count ? report->job.comms[comm].label : NULL;
}

static void write_groups(struct json *json, const struct job *job)
{
	json_put_array(json, "groups");
	for (size_t i = 0; i < job->group_count && i < HTML_NAMES_MAX; i++) {
		const struct job_group *group = &job->groups[i];

		json_object(json);
		json_put_string(json, "name", group->name);
		json_put_unsigned(json, "ranks", group->rank_count);
		json_put_unsigned(json, "hosts", group->host_count);
		json_put_signed(json, "world_size", group->world_size);
		json_end(json);
	}
	json_end(json);
}

static void write_job(struct json *json, const struct timeline_report *report)
{
	json_put_object(json, "job");
	write_groups(json, &report->job);
	json_put_unsigned(json, "group_count", report->job.group_count);
	json_put_unsigned(json, "hosts", report->job.host_count);
	json_put_unsigned(json, "ranks", report->job.rank_count);
	json_put_unsigned(json, "comms", report->job.comm_count);
	json_key(json, "start_ms");
	if (report->has_wall)
		json_double(json, (double)report->start_ns / 1e6);
	else
		json_null(json);
	json_end(json);
}

static void write_straggler(struct json *json, const struct timeline_report *report,
			    const struct straggler *straggler)
{
	char words[REPORT_WORDS];

	json_object(json);
	report_words_straggler(report, straggler, words);
	json_put_string(json, "words", words);
	json_put_string(json, "class", straggler_class_name(straggler->class));
	json_put_string(json, "pattern", straggler_pattern_name(straggler->pattern));
	json_key(json, "rank_index");
	if (straggler->rank < report->job.rank_count)
		json_unsigned(json, straggler->rank);
	else
		json_null(json);
	json_put_string(json, "rank", rank_label(report, straggler->rank));
	json_put_string(json, "host", host_of(report, straggler->rank, straggler->host));
	json_put_string(json, "peer", rank_label(report, straggler->peer));
	json_put_signed(json, "channel", straggler->channel);
	json_put_string(json, "comm", comm_label(report, straggler->comm));
	json_put_unsigned(json, "meetings", straggler->meetings);
	json_put_unsigned(json, "last_in", straggler->last_in);
	json_put_double(json, "share_of_time", straggler->share_of_time);
	json_put_unsigned(json, "late_ns", straggler->late_ns);
	json_put_unsigned(json, "caused_ns", straggler->caused_ns);
	json_put_double(json, "slowdown", straggler->slowdown);
	json_put_double(json, "confidence", straggler->confidence);
	html_data_time(json, report, "first_ns", straggler->has_times ? straggler->first_ns : 0);
	html_data_time(json, report, "last_ns", straggler->has_times ? straggler->last_ns : 0);
	json_end(json);
}

static void write_stragglers(struct json *json, const struct timeline_report *report)
{
	const struct stragglers *stragglers = &report->stragglers;

	json_put_object(json, "stragglers");
	json_put_bool(json, "has_enough", stragglers->has_enough);
	json_put_unsigned(json, "meetings", stragglers->meetings);
	json_put_unsigned(json, "least_meetings", stragglers->least_meetings);
	json_put_unsigned(json, "explained", stragglers->explained);
	json_put_array(json, "list");
	for (size_t i = 0; i < stragglers->count; i++)
		write_straggler(json, report, &stragglers->list[i]);
	json_end(json);
	json_end(json);
}

/* What `ringside report` says, to the letter. */
static void write_words(struct json *json, const struct timeline_report *report)
{
	char words[REPORT_WORDS];
	struct sink text;

	json_put_object(json, "words");
	report_words_nccl(report->recording, words);
	json_put_string(json, "nccl", words);
	report_words_sources(&report->total, words);
	json_put_string(json, "sources", words);
	report_words_timed(&report->total, words);
	json_put_string(json, "timed", words);
	report_words_not_timed(report, words);
	json_put_string(json, "not_timed", words);
	report_words_lost(report->gpu_hours_waited, report->gpu_hours, words);
	json_put_string(json, "lost", words);
	sink_init_memory(&text);
	report_words_completeness(report, &text);
	json_put_string(json, "completeness", sink_string(&text));
	if (text.status != OK)
		json->sink->status = text.status;
	sink_release(&text);
	json_end(json);
}

/* What `ringside report --json` says, to the letter. */
static void write_answer(struct json *json, const struct timeline_report *report)
{
	json_put_object(json, "report");
	report_json_put_head(json, report);
	report_json_put_completeness(json, report);
	report_json_put_findings(json, report);
	report_json_put_waiting(json, report);
	report_json_put_alignment(json, report);
	json_put_object(json, "total");
	report_json_figures(json, &report->total, false);
	json_end(json);
	json_end(json);
}

void html_data_write(struct json *json, const struct timeline_report *report)
{
	json_object(json);
	json_put_unsigned(json, "version", HTML_DATA_VERSION);
	write_answer(json, report);
	write_words(json, report);
	write_job(json, report);
	write_stragglers(json, report);
	html_data_windows(json, report);
	html_data_points(json, report);
	html_data_histograms(json, report);
	html_data_iterations(json, report);
	html_data_tables(json, report);
	json_end(json);
}
