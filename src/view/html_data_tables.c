/*
 * Tables, histograms and dots, all from tallies. A table is its columns' names and one array per row:
 * thousands of rows without thousands of names.
 */
#include "view/html_data.h"

#include <string.h>

#include "common/op.h"
#include "common/text.h"

typedef void write_key(struct json *json, const struct timeline_report *report,
		       const struct tally_row *row);

struct data_table {
	const char *name;
	const struct tally *tally;
	size_t most;		/* rows */
	const char *columns[8]; /* of the key; NULL ends them */
	write_key *key;
};

static const char *const measures[] = {
	"calls",  "timed",     "estimated", "not_timed", "bytes",  "total_ns", "algbw",	    "busbw",
	"min_ns", "median_ns", "mean_ns",   "p99_ns",	 "max_ns", "wait_ns",  "joined_ns",
};

static void number_or_null(struct json *json, bool is_known, uint64_t number)
{
	if (is_known)
		json_unsigned(json, number);
	else
		json_null(json);
}

/* 0 is "not known". */
static void rate_or_null(struct json *json, double rate)
{
	if (rate > 0)
		html_data_rounded(json, rate);
	else
		json_null(json);
}

/* In the order of measures[]. What is not known is null; totals are estimates where not all were timed. */
static void write_measures(struct json *json, const struct tally_row *row)
{
	bool is_timed = row->timed > 0, is_joined = row->joined_ns > 0;

	json_unsigned(json, row->calls);
	json_unsigned(json, row->timed);
	json_unsigned(json, row->covered);
	json_unsigned(json, tally_not_timed(row));
	json_unsigned(json, row->bytes);
	number_or_null(json, row->timed + row->covered > 0, units_whole(tally_total_ns(row)));
	rate_or_null(json, tally_algbw(row));
	rate_or_null(json, tally_busbw(row));
	number_or_null(json, is_timed, row->min_ns);
	number_or_null(json, is_timed, tally_quantile_ns(row, 0.5));
	number_or_null(json, is_timed, (uint64_t)tally_mean_ns(row));
	number_or_null(json, row->timed >= TALLY_P99_LEAST, tally_quantile_ns(row, 0.99));
	number_or_null(json, is_timed, row->max_ns);
	number_or_null(json, is_joined, units_whole(tally_total_wait_ns(row)));
	number_or_null(json, is_joined, units_whole(tally_total_joined_ns(row)));
}

static const char *function_name(const struct timeline_report *report, const struct tally_row *row)
{
	return job_name(&report->job, OP_NAMES_FUNCTION, row->key.function);
}

static void key_comm(struct json *json, const struct timeline_report *report,
		     const struct tally_row *row)
{
	const struct job_comm *comm = &report->job.comms[row->key.comm];

	json_string(json, comm->label);
	json_string(json, job_comm_kind_name(comm->kind));
	json_signed(json, comm->nranks);
	json_signed(json, comm->nnodes);
	json_unsigned(json, comm->missing);
}

static size_t count_alike(const struct job *job, const struct tally_row *row)
{
	const struct job_comm *first = &job->comms[row->key.comm];
	size_t count = 0;

	for (size_t i = 0; i < job->comm_count; i++) {
		const struct job_comm *comm = &job->comms[i];

		count += comm->group == row->key.group && comm->kind == row->key.kind &&
			 strcmp(comm->name, first->name) == 0;
	}
	return count;
}

static void key_comm_name(struct json *json, const struct timeline_report *report,
			  const struct tally_row *row)
{
	const struct job_comm *comm = &report->job.comms[row->key.comm];
	size_t alike = count_alike(&report->job, row);

	json_string(json, alike == 1 ? comm->label : comm->name);
	json_string(json, job_comm_kind_name(row->key.kind));
	json_unsigned(json, alike);
}

static void key_function(struct json *json, const struct timeline_report *report,
			 const struct tally_row *row)
{
	json_string(json, function_name(report, row));
}

static void key_size(struct json *json, const struct timeline_report *report,
		     const struct tally_row *row)
{
	json_string(json, function_name(report, row));
	json_unsigned(json, row->key.size_class);
}

static void key_algorithm(struct json *json, const struct timeline_report *report,
			  const struct tally_row *row)
{
	json_string(json, function_name(report, row));
	json_string(json, job_name(&report->job, OP_NAMES_ALGORITHM, row->key.algorithm));
	json_string(json, job_name(&report->job, OP_NAMES_PROTOCOL, row->key.protocol));
}

static void key_rank(struct json *json, const struct timeline_report *report,
		     const struct tally_row *row)
{
	const struct job_rank *rank = &report->job.ranks[row->key.rank];

	json_string(json, rank->label);
	json_string(json, report->job.hosts[rank->host].name);
	json_signed(json, rank->gpu);
	json_string(json, recording_life_name(rank->life));
	if (report->ranks[row->key.rank].is_busy_known)
		html_data_rounded(json, report->ranks[row->key.rank].busy_share);
	else
		json_null(json);
}

static void write_columns(struct json *json, const struct data_table *table)
{
	json_put_array(json, "columns");
	for (size_t i = 0; i < ARRAY_LENGTH(table->columns) && table->columns[i]; i++)
		json_string(json, table->columns[i]);
	for (size_t i = 0; i < ARRAY_LENGTH(measures); i++)
		json_string(json, measures[i]);
	json_end(json);
}

static void write_table(struct json *json, const struct timeline_report *report,
			const struct data_table *table)
{
	const struct tally *tally = table->tally;
	size_t count = tally->count < table->most ? tally->count : table->most;

	json_put_object(json, table->name);
	write_columns(json, table);
	json_put_array(json, "rows");
	for (size_t i = 0; i < count; i++) {
		json_array(json);
		table->key(json, report, &tally->rows[i]);
		write_measures(json, &tally->rows[i]);
		json_end(json);
	}
	json_end(json);
	json_put_unsigned(json, "left_out", tally->count - count);
	json_put_bool(json, "has_other", tally->has_other);
	json_end(json);
}

void html_data_tables(struct json *json, const struct timeline_report *report)
{
	const struct data_table tables[] = {
		{ "comm_name",
		  &report->by_comm_name,
		  HTML_NAMES_MAX,
		  { "name", "kind", "alike" },
		  key_comm_name },
		{ "comm",
		  &report->by_comm,
		  HTML_ROWS_MAX,
		  { "comm", "kind", "nranks", "nnodes", "missing" },
		  key_comm },
		{ "function", &report->by_function, HTML_ROWS_MAX, { "function" }, key_function },
		{ "size", &report->by_size, HTML_ROWS_MAX, { "function", "size" }, key_size },
		{ "algorithm",
		  &report->by_algorithm,
		  HTML_ROWS_MAX,
		  { "function", "algorithm", "protocol" },
		  key_algorithm },
		{ "rank",
		  &report->by_rank,
		  HTML_RANKS_MAX,
		  { "rank", "host", "gpu", "state", "busy_share" },
		  key_rank },
	};

	json_put_object(json, "tables");
	for (size_t i = 0; i < ARRAY_LENGTH(tables); i++)
		write_table(json, report, &tables[i]);
	json_end(json);
}

static void write_histogram(struct json *json, const struct tally_row *row)
{
	json_put_unsigned(json, "calls", tally_over(row));
	json_put_unsigned(json, "timed", row->timed);
	json_put_unsigned(json, "median_ns", tally_quantile_ns(row, 0.5));
	json_key(json, "p99_ns");
	number_or_null(json, row->timed >= TALLY_P99_LEAST, tally_quantile_ns(row, 0.99));
	json_put_unsigned(json, "first", row->histogram.first);
	json_put_array(json, "counts");
	for (unsigned int i = 0; i < row->histogram.used; i++)
		json_unsigned(json, row->histogram.counts[i]);
	json_end(json);
}

static void write_histograms(struct json *json, const struct timeline_report *report,
			     const struct tally *tally)
{
	for (size_t i = 0; i < tally->count && i < HTML_HISTOGRAMS_MAX; i++) {
		const struct tally_row *row = &tally->rows[i];

		if (row->timed == 0)
			continue;
		json_object(json);
		json_put_string(json, "function", function_name(report, row));
		if (tally->by & TALLY_BY_SIZE)
			json_put_unsigned(json, "size", row->key.size_class);
		if (tally->by & TALLY_BY_KIND)
			json_put_string(json, "kind", job_comm_kind_name(row->key.kind));
		write_histogram(json, row);
		json_end(json);
	}
}

void html_data_histograms(struct json *json, const struct timeline_report *report)
{
	json_put_array(json, "histograms");
	if (report->total.timed > 0) {
		json_object(json);
		write_histogram(json, &report->total);
		json_end(json);
	}
	write_histograms(json, report, &report->by_function);
	write_histograms(json, report, &report->by_kind);
	write_histograms(json, report, &report->by_size);
	json_end(json);
}

/* The finer table when it was asked for, else the one by function and size. */
static const struct tally *points_of(const struct timeline_report *report)
{
	for (size_t i = 0; i < report->custom_count; i++)
		if (report->custom[i].by == HTML_POINTS_BY)
			return &report->custom[i];
	return &report->by_size;
}

static void write_point(struct json *json, const struct timeline_report *report,
			const struct tally_row *row, uint32_t by)
{
	const struct job *job = &report->job;
	uint64_t sized = row->calls - row->unknown_size;
	bool is_bus = tally_busbw(row) > 0;

	json_array(json);
	json_unsigned(json, row->bytes / sized);
	html_data_rounded(json, is_bus ? tally_busbw(row) : tally_algbw(row));
	json_unsigned(json, is_bus);
	json_unsigned(json, row->calls);
	json_unsigned(json, units_whole(tally_total_ns(row)));
	json_unsigned(json, row->timed);
	json_string(json, function_name(report, row));
	if (by & TALLY_BY_KIND) {
		json_string(json, job_comm_kind_name(row->key.kind));
		json_string(json, job->comms[row->key.comm].name);
		json_string(json, job_name(job, OP_NAMES_ALGORITHM, row->key.algorithm));
		json_string(json, job_name(job, OP_NAMES_PROTOCOL, row->key.protocol));
	}
	json_end(json);
}

void html_data_points(struct json *json, const struct timeline_report *report)
{
	const struct tally *tally = points_of(report);
	size_t count = 0;

	/* Rows of the finer table come sorted by time spent: what is left out matters least. */
	json_put_array(json, "points");
	for (size_t i = 0; i < tally->count && count < HTML_ROWS_MAX; i++) {
		const struct tally_row *row = &tally->rows[i];

		if (row->calls == row->unknown_size || row->bytes == 0 || row->sized_ns == 0)
			continue;
		write_point(json, report, row, tally->by);
		count++;
	}
	json_end(json);
}
