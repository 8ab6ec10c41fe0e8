#include "view/baseline_json.h"

static void put_row(struct json *json, const struct baseline_row *row)
{
	json_object(json);
	json_put_string(json, "comm_name", row->comm_name);
	json_put_string(json, "kind", row->kind);
	json_put_string(json, "function", row->function);
	json_put_string(json, "size", row->size);
	json_put_string(json, "algorithm", row->algorithm);
	json_put_string(json, "protocol", row->protocol);
	json_put_signed(json, "nranks", row->nranks > 0 ? row->nranks : 0);
	json_put_signed(json, "nnodes", row->nnodes > 0 ? row->nnodes : 0);
	json_put_unsigned(json, "calls", row->calls);
	json_put_unsigned(json, "communicators", row->comms);
	json_put_bool(json, "is_joined", row->is_joined);
	json_put_double(json, "busbw_bytes_per_second", row->busbw);
	json_put_double(json, "mean_ns", row->mean_ns);
	json_put_double(json, "median_ns", row->median_ns);
	json_put_double(json, "p10_ns", row->p10_ns);
	json_put_double(json, "p99_ns", row->p99_ns);
	json_put_double(json, "wire_ns", row->wire_ns);
	json_put_double(json, "consume_ns", row->consume_ns);
	json_put_double(json, "log_mean", row->log_mean);
	json_put_double(json, "log_deviation", row->log_deviation);
	json_put_double(json, "samples", row->samples);
	json_end(json);
}

void baseline_json(struct json *json, const struct baseline *baseline)
{
	json_object(json);
	json_put_string(json, "format", "ringside-baseline");
	json_put_unsigned(json, "version", BASELINE_VERSION);
	json_put_string(json, "ringside", RINGSIDE_VERSION);
	json_put_string(json, "job", baseline->job);
	json_put_unsigned(json, "jobs", baseline->jobs);
	json_put_unsigned(json, "ranks", baseline->ranks);
	json_put_unsigned(json, "recorded_until_wall_ns", baseline->saved_wall_ns);
	json_put_double(json, "wait_share", baseline->wait_share);
	json_put_unsigned(json, "iterations", baseline->iterations);
	json_put_unsigned(json, "iteration_operations", baseline->iteration_ops);
	json_put_double(json, "iteration_median_ns", baseline->iteration_ns);
	json_put_double(json, "iteration_busy_median_ns", baseline->iteration_busy_ns);
	json_put_array(json, "rows");
	for (size_t i = 0; i < baseline->count; i++)
		put_row(json, &baseline->rows[i]);
	json_end(json);
	json_end(json);
}
