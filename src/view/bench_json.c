/* The order of keys is part of the format: bench_read() has to know sizes before it reads what they count. */
#include "view/bench_json.h"

#include <math.h>
#include <string.h>

#include "bench/bench_stats.h"
#include "common/op.h"
#include "view/bench_text.h"

/* ---- pieces ---------------------------------------------------------------------------------- */

static void put_text(struct json *json, const char *key, const char *field, size_t size)
{
	char text[sizeof(((struct bench_run *)NULL)->command)];

	if (key != NULL)
		json_key(json, key);
	json_string(json, bench_text_clean(text, field, size));
}

#define PUT_TEXT(json, key, field) put_text(json, key, field, sizeof(field))

/* 0 is "not told". */
static void put_name(struct json *json, const char *key, enum op_name_table table, uint8_t number)
{
	json_put_string(json, key, number != 0 ? op_name(table, number) : NULL);
}

/* ---- the run --------------------------------------------------------------------------------- */

static void put_members(struct json *json, const struct bench_run *run)
{
	json_put_array(json, "members");
	for (int32_t i = 0; i < run->nranks; i++) {
		const struct bench_rank *rank = &run->ranks[i];

		json_object(json);
		PUT_TEXT(json, "host", rank->host);
		json_put_signed(json, "node", rank->node);
		json_put_signed(json, "device", rank->device);
		json_put_signed(json, "pid", rank->pid);
		PUT_TEXT(json, "gpu_name", rank->gpu_name);
		PUT_TEXT(json, "gpu_uuid", rank->gpu_uuid);
		PUT_TEXT(json, "pci", rank->pci);
		json_put_unsigned(json, "memory_bytes", rank->memory_bytes);
		json_end(json);
	}
	json_end(json);
}

static void put_head(struct json *json, const struct bench_run *run)
{
	json_put_string(json, "format", "ringside-bench");
	json_put_unsigned(json, "version", 1);
	json_put_signed(json, "ranks", run->nranks);
	json_put_signed(json, "nodes", run->nodes);
	json_put_signed(json, "nccl_version", run->nccl_version);
	json_put_signed(json, "cuda_version", run->cuda_version);
	json_put_bool(json, "gpu_shared", run->is_gpu_shared);
	json_put_bool(json, "mps", run->is_mps);
	json_put_unsigned(json, "started_ns", run->started_ns);
	PUT_TEXT(json, "launcher", run->launcher);
	PUT_TEXT(json, "plugin", run->plugin);
	PUT_TEXT(json, "nccl_path", run->nccl_path);
	PUT_TEXT(json, "command", run->command);
	json_put_array(json, "notes");
	for (size_t i = 0; i < run->note_count; i++)
		PUT_TEXT(json, NULL, run->notes[i]);
	json_end(json);
	json_put_unsigned(json, "notes_lost", run->notes_lost);
}

/* ---- a result -------------------------------------------------------------------------------- */

static void put_figures(struct json *json, const struct bench_cell *cell,
			const struct bench_figures *figures)
{
	json_put_object(json, "figures");
	json_put_double(json, "mean_ns", figures->mean);
	json_put_double(json, "deviation_ns", figures->deviation);
	json_put_double(json, "min_ns", figures->least);
	json_put_double(json, "p05_ns", figures->p05);
	json_put_double(json, "p25_ns", figures->p25);
	json_put_double(json, "p50_ns", figures->p50);
	json_put_double(json, "p75_ns", figures->p75);
	json_put_double(json, "p90_ns", figures->p90);
	json_put_double(json, "p95_ns", figures->p95);
	json_put_double(json, "p99_ns", figures->p99);
	json_put_double(json, "max_ns", figures->most);
	json_put_double(json, "algbw_gbs", bench_algbw(cell, figures->p50));
	json_put_double(json, "busbw_gbs", bench_busbw(cell, figures->p50));
	json_end(json);
}

/* The first keys are those of a table of expected bandwidth. */
static void put_what(struct json *json, const struct bench_cell *cell, double median_ns)
{
	json_put_string(json, "function", op_name(OP_NAMES_FUNCTION, cell->function));
	json_put_unsigned(json, "bytes", cell->bytes);
	json_put_unsigned(json, "time_ns", (uint64_t)llround(fmin(median_ns, 1e18)));
	put_name(json, "datatype", OP_NAMES_DATATYPE, cell->datatype);
	json_put_bool(json, "in_place", cell->is_in_place);
	json_put_signed(json, "ranks", cell->nranks);
	json_put_unsigned(json, "count", cell->count);
	json_put_string(json, "redop", bench_redop_name(cell->redop));
	json_put_signed(json, "root", cell->root);
	json_put_string(json, "mode", bench_mode_name(cell->mode));
	put_name(json, "algorithm", OP_NAMES_ALGORITHM, cell->algorithm);
	put_name(json, "protocol", OP_NAMES_PROTOCOL, cell->protocol);
	put_name(json, "chosen_algorithm", OP_NAMES_ALGORITHM, cell->chosen_algorithm);
	put_name(json, "chosen_protocol", OP_NAMES_PROTOCOL, cell->chosen_protocol);
	json_put_bool(json, "grouped_sends", cell->is_grouped_sends);
	if (cell->wrong == BENCH_UNCHECKED)
		json_put_null(json, "wrong");
	else
		json_put_unsigned(json, "wrong", cell->wrong);
	json_put_unsigned(json, "calls", cell->calls);
	json_put_unsigned(json, "warmups", cell->warmups);
	json_put_unsigned(json, "checks", cell->checks);
	json_put_unsigned(json, "aligns", cell->aligns);
	json_put_unsigned(json, "captured", cell->captured);
	json_put_unsigned(json, "loop_ns", cell->loop_ns);
	json_put_array(json, "peers");
	for (int32_t rank = 0; cell->peers != NULL && rank < cell->nranks; rank++)
		json_signed(json, cell->peers[rank]);
	json_end(json);
}

static void put_calls(struct json *json, const struct bench_cell *cell)
{
	static const struct {
		const char *key;
		size_t offset;
	} columns[] = {
		{ "begin_ns", offsetof(struct bench_call, begin_ns) },
		{ "gpu_ns", offsetof(struct bench_call, gpu_ns) },
		{ "issue_ns", offsetof(struct bench_call, issue_ns) },
		{ "done_ns", offsetof(struct bench_call, done_ns) },
	};

	json_put_array(json, "per_rank");
	for (int32_t rank = 0; cell->calls_of != NULL && rank < cell->nranks; rank++) {
		json_object(json);
		for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
			json_put_array(json, columns[i].key);
			for (uint32_t call = 0; call < cell->calls; call++) {
				const char *at = (const char *)bench_cell_call(cell, rank, call);
				uint64_t value;

				memcpy(&value, at + columns[i].offset, sizeof(value));
				json_unsigned(json, value);
			}
			json_end(json);
		}
		json_end(json);
	}
	json_end(json);
}

/* Does it hold together? Whoever reads it will ask, too. */
static bool is_cell_sound(const struct bench_run *run, const struct bench_cell *cell)
{
	bool has_calls = cell->mode != BENCH_LOOP && cell->calls > 0;

	return cell->function != 0 && op_name(OP_NAMES_FUNCTION, cell->function) != NULL &&
	       cell->mode > 0 && cell->mode < BENCH_MODES && cell->redop < BENCH_REDOPS &&
	       cell->nranks >= 1 && cell->nranks <= run->nranks && cell->root >= -1 &&
	       cell->root < cell->nranks && (cell->calls_of != NULL) == has_calls;
}

static enum status put_cell(struct json *json, const struct bench_run *run,
			    const struct bench_cell *cell)
{
	struct bench_figures figures;
	enum status status;

	if (!is_cell_sound(run, cell))
		return ERR_RANGE;
	status = bench_cell_figures(cell, BENCH_OVER_MEAN, &figures);
	if (status != OK)
		return status;
	/* A line each: a text of gigabytes can be looked at. */
	sink_byte(json->sink, '\n');
	json_object(json);
	put_what(json, cell, figures.p50);
	put_figures(json, cell, &figures);
	put_calls(json, cell);
	json_end(json);
	return OK;
}

enum status bench_json_put(struct json *json, const struct bench_run *run)
{
	enum status status = run->nranks >= 1 && run->ranks != NULL ? OK : ERR_RANGE;

	if (status != OK)
		return status;
	json_object(json);
	put_head(json, run);
	put_members(json, run);
	json_put_array(json, "results");
	for (size_t i = 0; i < run->cell_count && status == OK; i++)
		status = put_cell(json, run, &run->cells[i]);
	json_end(json);
	json_end(json);
	return status;
}

enum status bench_json_write(struct sink *sink, const struct bench_run *run)
{
	enum status status;
	struct json json;

	json_init(&json, sink);
	status = bench_json_put(&json, run);
	if (status != OK)
		return status;
	json_line(&json);
	return json_status(&json);
}
