/* Who took part, how complete it is, and the order of the parts. */
#include "view/report_json.h"

#include "common/nccl_interface.h"
#include "common/op.h"
#include "common/text.h"
#include "view/comm_json.h"
#include "view/report_key.h"
#include "view/report_words.h"

/* Kinds with nothing timed that are listed, those with most calls first. */
enum { NOT_TIMED_SHOWN = 64 };

/* ---- head ------------------------------------------------------------------------------------ */

static void put_time(struct json *json, const char *key, const char *text_key,
		     const struct timeline_report *report, uint64_t ns)
{
	char text[UNITS_TEXT];

	report_json_put_known(json, key, ns != 0, ns);
	json_put_string(json, text_key,
			ns != 0 && report->has_wall ? units_wall_time(text, ns) : NULL);
}

static void put_nccl(struct json *json, const struct recording *recording)
{
	unsigned int found = report_interfaces(recording);

	json_put_array(json, "nccl");
	for (unsigned int version = 1; version <= OP_INTERFACES; version++) {
		if (!(found & 1u << version))
			continue;
		json_object(json);
		json_put_unsigned(json, "interface", version);
		json_put_string(json, "release", op_interface_releases(version));
		json_end(json);
	}
	json_end(json);
}

void report_json_put_head(struct json *json, const struct timeline_report *report)
{
	bool is_known = report->start_ns != 0 && report->end_ns >= report->start_ns;

	json_put_string(json, "format", "ringside-report");
	json_put_unsigned(json, "version", 1);
	json_put_string(json, "ringside", RINGSIDE_VERSION);
	put_nccl(json, report->recording);
	put_time(json, "start_ns", "start", report, report->start_ns);
	put_time(json, "end_ns", "end", report, report->end_ns);
	report_json_put_known(json, "duration_ns", is_known, report->end_ns - report->start_ns);
	json_put_bool(json, "is_wall_time", report->has_wall);
	put_time(json, "since_ns", "since", report, report->since_ns);
	put_time(json, "until_ns", "until", report, report->until_ns);
	report_json_put_ratio(json, "busy_share", report->busy_ranks > 0, report->busy_share);
	report_json_put_ratio(json, "gpu_hours", report->gpu_hours > 0, report->gpu_hours);
	report_json_put_ratio(json, "gpu_hours_lost", report_knows_waiting(report, &report->total),
			      report->gpu_hours_waited);
	json_put_double(json, "quantile_error", TALLY_QUANTILE_ERROR);
}

/* ---- completeness ---------------------------------------------------------------------------- */

static void put_lost(struct json *json, const struct timeline_completeness *from)
{
	json_put_object(json, "lost");
	for (unsigned int i = 0; i < LOST_REASONS; i++)
		if (from->lost[i] > 0 && op_lost_name(i) != NULL)
			json_put_unsigned(json, op_lost_name(i), from->lost[i]);
	json_end(json);
}

void report_json_put_completeness(struct json *json, const struct timeline_report *report)
{
	const struct timeline_completeness *from = &report->completeness;

	json_put_object(json, "completeness");
	json_put_bool(json, "is_complete", from->is_complete);
	report_json_put_ratio(json, "share", from->issued > 0, from->share);
	report_json_put_known(json, "issued", from->with_counts > 0, from->issued);
	json_put_unsigned(json, "read", from->read);
	json_put_unsigned(json, "looked_at", from->looked_at);
	json_put_unsigned(json, "in_flight", from->in_flight);
	json_put_unsigned(json, "lost_operations", from->lost_operations);
	put_lost(json, from);
	json_put_unsigned(json, "overwritten", from->overwritten);
	json_put_unsigned(json, "refused", from->refused);
	json_put_unsigned(json, "damaged_blocks", from->damages);
	json_put_unsigned(json, "untimed", from->untimed);
	json_put_unsigned(json, "processes", from->processes);
	json_put_unsigned(json, "with_final_counts", from->with_counts);
	json_put_unsigned(json, "ended", from->ended);
	json_put_unsigned(json, "alive", from->alive);
	json_put_unsigned(json, "killed", from->killed);
	json_put_unsigned(json, "unknown_end", from->unknown_life);
	json_put_bool(json, "keeps_all", from->keeps_all);
	json_put_unsigned(json, "troubles", from->troubles);
	json_end(json);
}

void report_json_put_troubles(struct json *json, const struct recording *recording)
{
	json_put_array(json, "troubles");
	for (size_t i = 0; i < recording->trouble_count; i++) {
		const struct recording_trouble *trouble = &recording->troubles[i];

		json_object(json);
		json_put_string(json, "kind", recording_trouble_name(trouble->kind));
		json_put_string(json, "path", trouble->path);
		json_put_unsigned(json, "offset", trouble->offset);
		json_put_unsigned(json, "bytes", trouble->bytes);
		json_put_string(json, "what", trouble->what);
		json_end(json);
	}
	json_end(json);
	json_put_unsigned(json, "troubles_left_out", recording->troubles_left_out);
}

/* ---- who took part --------------------------------------------------------------------------- */

void report_json_put_jobs(struct json *json, const struct timeline_report *report)
{
	json_put_array(json, "jobs");
	for (size_t i = 0; i < report->job.group_count; i++) {
		const struct job_group *group = &report->job.groups[i];

		json_object(json);
		report_json_put_text(json, "name", group->name);
		report_json_put_known(json, "world_size", group->world_size > 0,
				      (uint64_t)group->world_size);
		json_put_unsigned(json, "ranks", group->rank_count);
		json_put_unsigned(json, "processes", group->process_count);
		json_put_unsigned(json, "hosts", group->host_count);
		json_end(json);
	}
	json_end(json);
}

void report_json_put_hosts(struct json *json, const struct timeline_report *report)
{
	json_put_array(json, "hosts");
	for (size_t i = 0; i < report->job.host_count; i++) {
		const struct timeline_host *host = &report->hosts[i];

		json_object(json);
		report_json_put_text(json, "name", report->job.hosts[i].name);
		json_put_unsigned(json, "ranks", report->job.hosts[i].rank_count);
		json_put_unsigned(json, "timed", host->timed);
		report_json_put_known(json, "sum_ns", host->timed > 0, host->sum_ns);
		report_json_put_known(json, "total_ns", host->timed > 0,
				      units_whole((double)host->sum_ns + host->covered_ns));
		report_json_put_known(json, "wait_ns", host->joined_ns > 0, host->wait_ns);
		report_json_put_known(json, "joined_ns", host->joined_ns > 0, host->joined_ns);
		report_json_put_known(json, "total_wait_ns", host->joined_ns > 0,
				      units_whole((double)host->wait_ns + host->covered_wait_ns));
		report_json_put_ratio(json, "busy_share", host->busy_ranks > 0, host->busy_share);
		json_end(json);
	}
	json_end(json);
}

static void put_rank_identity(struct json *json, const struct job_rank *rank)
{
	json_put_string(json, "label", rank->label);
	if (rank->rank < 0)
		json_put_null(json, "rank");
	else
		json_put_signed(json, "rank", rank->rank);
	json_put_bool(json, "is_derived", rank->is_derived);
	json_put_unsigned(json, "attempt", rank->attempt);
	json_put_unsigned(json, "job_index", rank->group);
	json_put_unsigned(json, "host_index", rank->host);
	report_json_put_known(json, "gpu", rank->gpu >= 0, (uint64_t)rank->gpu);
	report_json_put_text(json, "gpu_uuid", rank->gpu_uuid);
	report_json_put_known(json, "pid", rank->pid >= 0, (uint64_t)rank->pid);
	json_put_string(json, "state", recording_life_name(rank->life));
}

static void put_rank_clock(struct json *json, const struct align *align, uint32_t process)
{
	if (process >= align->count) {
		json_put_null(json, "clock");
		return;
	}
	json_put_object(json, "clock");
	json_put_string(json, "source", align_source_name(align->processes[process].source));
	json_put_unsigned(json, "island", align->processes[process].island);
	json_put_unsigned(json, "samples", align->processes[process].samples);
	json_put_unsigned(json, "uncertainty_ns", align->processes[process].uncertainty_ns);
	json_end(json);
}

void report_json_put_ranks(struct json *json, const struct timeline_report *report)
{
	json_put_array(json, "ranks");
	for (size_t i = 0; i < report->job.rank_count; i++) {
		const struct timeline_rank *rank = &report->ranks[i];
		bool is_joined =
			rank->joined > 0 && report->meet.complete + report->meet.partial > 0;

		json_object(json);
		put_rank_identity(json, &report->job.ranks[i]);
		json_put_bool(json, "is_shown", rank->is_shown);
		json_put_unsigned(json, "calls", rank->calls);
		json_put_unsigned(json, "in_flight", rank->open);
		json_put_unsigned(json, "timed", rank->timed);
		json_put_unsigned(json, "bytes", rank->bytes);
		report_json_put_known(json, "sum_ns", rank->timed > 0, rank->sum_ns);
		report_json_put_known(json, "total_ns", rank->timed > 0,
				      units_whole((double)rank->sum_ns + rank->covered_ns));
		report_json_put_known(json, "busy_ns", rank->is_busy_known, rank->busy_ns);
		report_json_put_known(json, "span_ns", rank->span_ns > 0, rank->span_ns);
		report_json_put_ratio(json, "busy_share", rank->is_busy_known, rank->busy_share);
		json_put_unsigned(json, "joined", rank->joined);
		report_json_put_known(json, "joined_ns", is_joined, rank->joined_ns);
		report_json_put_known(json, "wait_ns", is_joined, rank->wait_ns);
		report_json_put_known(json, "total_wait_ns", is_joined,
				      units_whole((double)rank->wait_ns + rank->covered_wait_ns));
		report_json_put_known(json, "first_ns", rank->first_ns != 0, rank->first_ns);
		report_json_put_known(json, "last_ns", rank->last_ns != 0, rank->last_ns);
		put_rank_clock(json, &report->align, report->job.ranks[i].process);
		json_end(json);
	}
	json_end(json);
}

void report_json_put_communicators(struct json *json, const struct timeline_report *report)
{
	json_put_array(json, "communicators");
	for (size_t i = 0; i < report->job.comm_count; i++) {
		const struct timeline_comm *comm = &report->comms[i];
		const struct job_comm *of = &report->job.comms[i];

		json_object(json);
		comm_json_put_identity(json, of);
		report_json_put_known(json, "missing_ranks", of->nranks > 0, of->missing);
		json_put_bool(json, "is_shown", comm->is_shown);
		json_put_unsigned(json, "complete", comm->complete);
		json_put_unsigned(json, "partial", comm->partial);
		report_json_put_known(json, "wait_ns", comm->complete + comm->partial > 0,
				      comm->wait_ns);
		report_json_put_known(json, "total_wait_ns", comm->complete + comm->partial > 0,
				      units_whole((double)comm->wait_ns * comm->scale));
		json_put_unsigned(json, "mismatches", comm->mismatches);
		report_json_put_known(json, "first_mismatch", comm->first_mismatch != 0,
				      comm->first_mismatch);
		json_end(json);
	}
	json_end(json);
}

/* ---------------------------------------------------------------------------------------------- */

void report_json_put_not_timed(struct json *json, const struct timeline_report *report)
{
	size_t shown =
		report->untimed_count < NOT_TIMED_SHOWN ? report->untimed_count : NOT_TIMED_SHOWN;

	json_put_array(json, "not_timed");
	for (size_t i = 0; i < shown; i++) {
		const struct timeline_untimed *kind = &report->untimed[i];
		const struct tally_key key = { .comm = kind->comm,
					       .function = (uint8_t)kind->names,
					       .datatype = (uint8_t)(kind->names >> 8),
					       .algorithm = (uint8_t)(kind->names >> 16),
					       .protocol = (uint8_t)(kind->names >> 24),
					       .size_class = kind->size_class };

		json_object(json);
		report_key_json(json, report, &key,
				TALLY_BY_COMM | TALLY_BY_FUNCTION | TALLY_BY_SIZE |
					TALLY_BY_DATATYPE | TALLY_BY_ALGORITHM | TALLY_BY_PROTOCOL);
		json_put_unsigned(json, "calls", kind->calls);
		json_end(json);
	}
	json_end(json);
	json_put_unsigned(json, "not_timed_left_out", report->untimed_count - shown);
}

static void put_total(struct json *json, const struct timeline_report *report)
{
	json_put_object(json, "total");
	report_json_row(json, report, &report->total, true);
	json_end(json);
}

/* The borders of all histograms, written once. */
static void put_bounds(struct json *json)
{
	json_put_array(json, "histogram_upper_ns");
	for (unsigned int i = 0; i + 1 < HISTOGRAM_BUCKETS; i++)
		json_unsigned(json, histogram_upper_ns(i));
	json_null(json);
	json_end(json);
}

void report_json(struct json *json, const struct timeline_report *report, unsigned int flags)
{
	json_object(json);
	report_json_put_head(json, report);
	report_json_put_completeness(json, report);
	report_json_put_findings(json, report);
	report_json_put_stragglers(json, report);
	put_total(json, report);
	report_json_put_not_timed(json, report);
	report_json_put_waiting(json, report);
	report_json_put_tables(json, report, flags);
	put_bounds(json);
	report_json_put_windows(json, report, flags);
	report_json_put_iterations(json, report);
	report_json_put_alignment(json, report);
	report_json_put_jobs(json, report);
	report_json_put_hosts(json, report);
	report_json_put_ranks(json, report);
	report_json_put_communicators(json, report);
	report_json_put_troubles(json, report->recording);
	json_end(json);
}
