#include "view/diff_json.h"

#include <math.h>

#include "common/attributes.h"
#include "common/text.h"
#include "view/report_json.h"

static void put_figures(struct json *json, const char *key, const struct compare_side *side)
{
	bool is_timed = side->timed > 0;

	if (!side->is_there) {
		json_put_null(json, key);
		return;
	}
	json_put_object(json, key);
	report_json_put_known(json, "calls", side->calls > 0, side->calls);
	report_json_put_known(json, "in_flight", side->calls > 0, side->open);
	json_put_unsigned(json, "timed", side->timed);
	report_json_put_known(json, "not_timed", side->calls > 0, side->not_timed);
	report_json_put_known(json, "bytes", side->calls > 0, side->bytes);
	report_json_put_known(json, "sum_ns", is_timed && side->calls > 0, side->sum_ns);
	report_json_put_known(json, "total_ns", is_timed && side->calls > 0,
			      units_whole(side->total_ns));
	report_json_put_ratio(json, "mean_ns", is_timed, side->mean_ns);
	report_json_put_known(json, "median_ns", is_timed, side->median_ns);
	report_json_put_known(json, "p99_ns", side->p99_ns > 0, side->p99_ns);
	report_json_put_ratio(json, "algbw_bytes_per_second", side->algbw > 0, round(side->algbw));
	report_json_put_ratio(json, "busbw_bytes_per_second", side->busbw > 0, round(side->busbw));
	json_put_unsigned(json, "joined", side->joined);
	report_json_put_known(json, "wait_ns", side->joined > 0, side->wait_ns);
	json_end(json);
}

static void put_key(struct json *json, uint32_t by, const struct compare_row *row)
{
	size_t part = 0;

	for (unsigned int bit = 0; bit < TALLY_BYS && part < ARRAY_LENGTH(row->key); bit++)
		if (by & 1u << bit)
			json_put_string(json, tally_by_name(bit), row->key[part++]);
}

static void put_row(struct json *json, const struct compare_row *row)
{
	put_figures(json, "a", &row->a);
	put_figures(json, "b", &row->b);
	report_json_put_ratio(json, "median_ratio", row->median_ratio > 0, row->median_ratio);
	report_json_put_ratio(json, "mean_ratio", row->mean_ratio > 0, row->mean_ratio);
	report_json_put_ratio(json, "busbw_ratio", row->busbw_ratio > 0, row->busbw_ratio);
	report_json_put_ratio(json, "ratio", row->has_interval, row->ratio);
	report_json_put_ratio(json, "ratio_low", row->has_interval, row->ratio_low);
	report_json_put_ratio(json, "ratio_high", row->has_interval, row->ratio_high);
	report_json_put_ratio(json, "samples_a", row->has_interval, row->samples_a);
	report_json_put_ratio(json, "samples_b", row->has_interval, row->samples_b);
	json_put_bool(json, "is_significant", row->is_significant);
	json_put_bool(json, "is_slower", row->is_slower);
	json_put_bool(json, "is_faster", row->is_faster);
	json_put_string(json, "verdict", diff_verdict(row));
}

static void put_side(struct json *json, const char *key, const struct diff_side *side)
{
	json_put_object(json, key);
	json_put_string(json, "path", side->path);
	if (side->report != NULL) {
		report_json_put_head(json, side->report);
		report_json_put_jobs(json, side->report);
		report_json_put_completeness(json, side->report);
		report_json_put_troubles(json, side->report->recording);
	} else {
		json_put_string(json, "format", "expected-bandwidth");
	}
	json_end(json);
}

void diff_json(struct json *json, const struct diff_side *a, const struct diff_side *b,
	       const struct compare *compare)
{
	json_object(json);
	json_put_string(json, "format", "ringside-diff");
	json_put_unsigned(json, "version", 1);
	json_put_string(json, "ringside", RINGSIDE_VERSION);
	put_side(json, "a", a);
	put_side(json, "b", b);
	report_json_put_by(json, compare->by);
	json_put_double(json, "threshold", compare->threshold);
	json_put_unsigned(json, "slower", compare->slower);
	json_put_unsigned(json, "faster", compare->faster);
	json_put_unsigned(json, "only_a", compare->only_a);
	json_put_unsigned(json, "only_b", compare->only_b);
	json_put_unsigned(json, "not_timed", compare->not_timed);
	json_put_array(json, "rows");
	for (size_t i = 0; i < compare->count; i++) {
		json_object(json);
		put_key(json, compare->by, &compare->rows[i]);
		put_row(json, &compare->rows[i]);
		json_end(json);
	}
	json_end(json);
	json_put_object(json, "total");
	put_row(json, &compare->total);
	json_end(json);
	json_end(json);
}
