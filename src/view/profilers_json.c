#include "view/profilers_json.h"

#include "bench/bench_result.h"
#include "bench/profilers_read.h"
#include "common/op.h"
#include "output/json.h"

static void put_function(struct json *json, uint8_t function)
{
	json_key(json, "function");
	json_string(json, function ? op_function_name(function) : NULL);
}

static void put_mode(struct json *json, uint8_t mode)
{
	json_key(json, "mode");
	json_string(json, mode ? bench_mode_name(mode) : NULL);
}

/* Sizes that are not known, and classes without an end: null. */
static void put_bytes(struct json *json, const char *key, uint64_t bytes)
{
	if (bytes == UINT64_MAX)
		json_put_null(json, key);
	else
		json_put_unsigned(json, key, bytes);
}

static void put_quantiles(struct json *json, const char *key,
			  const struct profilers_quantiles *quantiles)
{
	json_put_array(json, key);
	json_double(json, quantiles->p05);
	json_double(json, quantiles->p25);
	json_double(json, quantiles->p50);
	json_double(json, quantiles->p75);
	json_double(json, quantiles->p95);
	json_end(json);
}

static void put_ratio(struct json *json, const char *key, const struct bench_ratio *ratio,
		      bool has_interval)
{
	json_put_array(json, key);
	json_double(json, ratio->ratio);
	if (has_interval) {
		json_double(json, ratio->low);
		json_double(json, ratio->high);
	}
	json_end(json);
}

static void put_lines(struct json *json, const char *key, const char lines[][PROFILERS_TEXT_BYTES],
		      size_t count)
{
	json_put_array(json, key);
	for (size_t i = 0; i < count; i++)
		json_string(json, lines[i]);
	json_end(json);
}

static void put_head(struct json *json, const struct profilers_comparison *comparison)
{
	json_put_string(json, "format", PROFILERS_FORMAT);
	json_put_unsigned(json, "version", PROFILERS_FORMAT_VERSION);
	json_put_string(json, "command", comparison->command);
	json_put_string(json, "host", comparison->host);
	json_put_string(json, "gpu", comparison->gpu);
	json_put_signed(json, "nccl_version", comparison->nccl_version);
	json_put_signed(json, "cuda_version", comparison->cuda_version);
	json_put_signed(json, "ranks", comparison->nranks);
	json_put_signed(json, "nodes", comparison->nodes);
	json_put_bool(json, "gpu_shared", comparison->is_gpu_shared);
	json_put_bool(json, "mps", comparison->is_mps);
	json_put_unsigned(json, "started_ns", comparison->started_ns);
	json_put_unsigned(json, "runs", comparison->runs);
	json_put_unsigned(json, "calls", comparison->calls);
	put_lines(json, "notes", comparison->notes, comparison->note_count);
	put_lines(json, "not_run", comparison->not_run, comparison->not_run_count);
	json_put_unsigned(json, "notes_lost", comparison->notes_lost);
	json_put_array(json, "plugins");
	for (size_t i = 0; i < comparison->plugin_count; i++) {
		json_object(json);
		json_put_string(json, "label", comparison->plugins[i].label);
		json_put_string(json, "path", comparison->plugins[i].path);
		json_put_string(json, "kind", profilers_kind_name(comparison->plugins[i].kind));
		json_end(json);
	}
	json_end(json);
}

static void put_job(struct json *json, const struct profilers_jobs *row)
{
	json_object(json);
	json_put_unsigned(json, "plugin", row->plugin);
	put_mode(json, row->mode);
	json_put_unsigned(json, "read", row->read);
	json_put_unsigned(json, "silent", row->silent);
	json_put_unsigned(json, "unreadable", row->unreadable);
	json_put_unsigned(json, "failed", row->failed);
	json_put_bool(json, "tells_lost", row->tells_lost);
	json_put_unsigned(json, "lost", row->lost);
	json_put_string(json, "problem", row->problem);
	json_end(json);
}

static void put_complete(struct json *json, const struct profilers_complete *row)
{
	json_object(json);
	json_put_unsigned(json, "plugin", row->plugin);
	put_mode(json, row->mode);
	put_function(json, row->function);
	json_put_bool(json, "align", row->is_align);
	json_put_signed(json, "rank", row->rank);
	put_bytes(json, "bytes", row->bytes);
	put_bytes(json, "bytes_to", row->bytes_to);
	json_put_unsigned(json, "issued", row->counts.issued);
	json_put_unsigned(json, "recorded", row->counts.recorded);
	json_put_unsigned(json, "untimed", row->counts.untimed);
	json_put_unsigned(json, "missing", row->counts.missing);
	json_put_unsigned(json, "excess", row->counts.excess);
	json_end(json);
}

static void put_accuracy(struct json *json, const struct profilers_accuracy *row)
{
	json_object(json);
	json_put_unsigned(json, "plugin", row->plugin);
	put_mode(json, row->mode);
	put_function(json, row->function);
	json_put_string(json, "source", op_time_source_name(row->source));
	json_put_bool(json, "mean_only", row->is_mean_only);
	put_bytes(json, "bytes", row->bytes);
	put_bytes(json, "bytes_to", row->bytes_to);
	json_put_unsigned(json, "calls", row->calls);
	json_put_unsigned(json, "in_order", row->in_order);
	json_put_unsigned(json, "by_time", row->by_time);
	put_quantiles(json, "ratio", &row->ratio);
	json_end(json);
}

static void put_overhead(struct json *json, const struct profilers_overhead *row)
{
	json_object(json);
	json_put_unsigned(json, "plugin", row->plugin);
	put_mode(json, row->mode);
	put_function(json, row->function);
	json_put_string(json, "clock", row->clock == BENCH_GPU ? "gpu" : "host");
	json_put_unsigned(json, "bytes", row->bytes);
	json_put_unsigned(json, "runs", row->runs);
	json_put_unsigned(json, "cells", row->cells);
	json_put_unsigned(json, "calls", row->calls);
	put_ratio(json, "ratio", &row->ratio, row->has_interval);
	put_quantiles(json, "with_ns", &row->with_ns);
	put_quantiles(json, "without_ns", &row->without_ns);
	json_end(json);
}

static void put_functions(struct json *json, const char *key, const uint64_t counts[OP_FUNCTIONS])
{
	json_put_array(json, key);
	for (uint8_t function = 0; function < OP_FUNCTIONS; function++) {
		if (counts[function] == 0)
			continue;
		json_object(json);
		put_function(json, function);
		json_put_unsigned(json, "calls", counts[function]);
		json_end(json);
	}
	json_end(json);
}

static void put_training(struct json *json, const struct profilers_train *row)
{
	json_object(json);
	json_put_unsigned(json, "plugin", row->plugin);
	json_put_unsigned(json, "runs", row->runs);
	json_put_unsigned(json, "silent", row->silent);
	json_put_unsigned(json, "unreadable", row->unreadable);
	json_put_unsigned(json, "failed", row->failed);
	json_put_unsigned(json, "epochs", row->epochs);
	json_put_signed(json, "ranks", row->ranks);
	json_put_bool(json, "counted", row->is_counted);
	json_put_bool(json, "judged", row->is_read);
	json_put_bool(json, "has_comm", row->has_comm);
	json_put_bool(json, "comm_by_time", row->is_comm_by_time);
	put_functions(json, "issued", row->issued);
	put_functions(json, "recorded", row->recorded);
	json_put_unsigned(json, "untimed", row->untimed);
	json_put_double(json, "epoch_ns", row->epoch_ns);
	json_put_double(json, "comm_ns", row->comm_ns);
	json_put_double(json, "comm_share", row->comm_share);
	put_ratio(json, "slowdown", &row->slowdown, row->has_interval);
	json_put_string(json, "problem", row->problem);
	json_end(json);
}

enum status profilers_json_write(struct sink *sink, const struct profilers_comparison *comparison)
{
	struct json json;

	json_init(&json, sink);
	json_object(&json);
	put_head(&json, comparison);
	json_put_array(&json, "jobs");
	for (size_t i = 0; i < comparison->job_count; i++)
		put_job(&json, &comparison->jobs[i]);
	json_end(&json);
	json_put_array(&json, "completeness");
	for (size_t i = 0; i < comparison->complete_count; i++)
		put_complete(&json, &comparison->complete[i]);
	json_end(&json);
	json_put_array(&json, "accuracy");
	for (size_t i = 0; i < comparison->accuracy_count; i++)
		put_accuracy(&json, &comparison->accuracy[i]);
	json_end(&json);
	json_put_array(&json, "overhead");
	for (size_t i = 0; i < comparison->overhead_count; i++)
		put_overhead(&json, &comparison->overhead[i]);
	json_end(&json);
	json_put_array(&json, "training");
	for (size_t i = 0; i < comparison->training_count; i++)
		put_training(&json, &comparison->training[i]);
	json_end(&json);
	json_end(&json);
	json_line(&json);
	return json_status(&json);
}
