#include "view/health_json.h"

#include "common/op.h"
#include "output/json.h"
#include "view/bench_json.h"
#include "view/health_text.h"

/* Unknown is never a number. */
static void put_known(struct json *json, const char *key, double value)
{
	if (value > 0)
		json_put_double(json, key, value);
	else
		json_put_null(json, key);
}

static void put_index(struct json *json, const char *key, int32_t value)
{
	if (value >= 0)
		json_put_signed(json, key, value);
	else
		json_put_null(json, key);
}

static void put_findings(struct json *json, const struct health *health)
{
	json_put_array(json, "findings");
	for (size_t i = 0; i < health->finding_count; i++) {
		const struct health_finding *one = &health->findings[i];
		bool has_link = one->kind != HEALTH_WRONG_RESULTS &&
				one->kind != HEALTH_SLOW_COLLECTIVE &&
				one->kind != HEALTH_GOT_SLOWER;

		json_object(json);
		json_put_string(json, "kind", health_finding_name(one->kind));
		json_put_string(json, "confidence", health_confidence_name(one->confidence));
		json_put_string(json, "link", has_link ? health_link_key(one->link) : NULL);
		json_put_string(json, "function",
				one->function != 0 ? op_function_name(one->function) : NULL);
		put_index(json, "rank", one->rank);
		put_index(json, "peer", one->peer);
		put_index(json, "node", one->node);
		json_put_double(json, "value", one->value);
		put_known(json, "usual", one->usual);
		put_known(json, "ratio", one->ratio);
		json_put_string(json, "text", one->text);
		json_put_string(json, "advice", one->advice[0] != '\0' ? one->advice : NULL);
		json_end(json);
	}
	json_end(json);
	json_put_unsigned(json, "findings_left_out", health->findings_lost);
}

static void put_pair_of(struct json *json, const char *key, const struct health *health,
			size_t index)
{
	if (index >= health->pair_count) {
		json_put_null(json, key);
		return;
	}
	json_put_array(json, key);
	json_signed(json, health->pairs[index].first);
	json_signed(json, health->pairs[index].second);
	json_end(json);
}

static void put_links(struct json *json, const struct health *health)
{
	json_put_array(json, "links");
	for (unsigned int link = 0; link < HEALTH_LINKS; link++) {
		const struct health_kind *kind = &health->kinds[link];

		if (kind->pairs == 0 && kind->latency_pairs == 0)
			continue;
		json_object(json);
		json_put_string(json, "link", health_link_key((enum health_link)link));
		json_put_unsigned(json, "pairs", kind->pairs);
		put_known(json, "median_gbs", kind->median);
		put_known(json, "least_gbs", kind->least);
		put_known(json, "most_gbs", kind->most);
		json_put_double(json, "spread_gbs", kind->spread);
		put_known(json, "expected_gbs", kind->expected);
		put_pair_of(json, "slowest", health, kind->slowest);
		json_put_unsigned(json, "slow_pairs", kind->slow_pairs);
		json_put_unsigned(json, "latency_pairs", kind->latency_pairs);
		put_known(json, "latency_median_ns", kind->latency_median_ns);
		json_put_double(json, "latency_spread_ns", kind->latency_spread_ns);
		put_pair_of(json, "latest", health, kind->latest);
		json_put_unsigned(json, "late_pairs", kind->late_count);
		json_end(json);
	}
	json_end(json);
}

static void put_collectives(struct json *json, const struct health *health)
{
	json_put_array(json, "collectives");
	for (size_t i = 0; i < health->collective_count; i++) {
		const struct health_collective *one = &health->collectives[i];

		json_object(json);
		json_put_string(json, "function", op_function_name(one->function));
		json_put_unsigned(json, "bytes", one->bytes);
		put_known(json, "time_ns", one->time_ns);
		put_known(json, "busbw_gbs", one->busbw);
		put_known(json, "expected_gbs", one->expected);
		json_put_bool(json, "is_slow", one->is_slow);
		json_end(json);
	}
	json_end(json);
}

static void put_pairs(struct json *json, const struct health *health)
{
	json_put_unsigned(json, "pairs_all", health->pairs_all);
	json_put_array(json, "pairs");
	for (size_t i = 0; i < health->pair_count; i++) {
		const struct health_pair *pair = &health->pairs[i];

		json_object(json);
		json_put_signed(json, "first", pair->first);
		json_put_signed(json, "second", pair->second);
		json_put_string(json, "link", health_link_key(pair->link));
		put_known(json, "bandwidth_gbs", pair->bandwidth);
		json_put_unsigned(json, "bytes", pair->bytes);
		put_known(json, "latency_ns", pair->latency_ns);
		json_put_unsigned(json, "latency_bytes", pair->latency_bytes);
		json_put_bool(json, "is_slow", pair->is_slow);
		json_put_bool(json, "is_late", pair->is_late);
		json_end(json);
	}
	json_end(json);
}

enum status health_json(struct sink *sink, const struct health *health, const struct bench_run *run)
{
	enum status status;
	struct json json;

	json_init(&json, sink);
	json_object(&json);
	json_put_string(&json, "format", "ringside-health");
	json_put_unsigned(&json, "version", 1);
	json_put_string(&json, "verdict", health_verdict_name(health->verdict));
	json_put_string(&json, "sentence", health->sentence);
	json_put_signed(&json, "exit_code", health->exit_code);
	json_put_bool(&json, "is_checked", health->is_checked);
	put_findings(&json, health);
	put_links(&json, health);
	put_collectives(&json, health);
	put_pairs(&json, health);
	json_put_array(&json, "not_judged");
	for (size_t i = 0; i < health->reason_count; i++)
		json_string(&json, health->reasons[i]);
	json_end(&json);
	json_key(&json, "run");
	status = bench_json_put(&json, run);
	json_end(&json);
	json_line(&json);
	return status != OK ? status : json_status(&json);
}
