/* `ringside bench model`: how long an operation should take, and what that rests on. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "bench/bench_command.h"
#include "bench/bench_plan.h"
#include "bench/cost_model.h"
#include "cli/cli.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "common/text.h"
#include "output/table.h"

/* `ringside model`: predicts how long operations should take, and shows what the prediction is based on. */

/* One size: all algorithms, the fastest one that NCCL has first. */
struct model_line {
	uint64_t bytes;
	struct cost_answer answers[COST_ALGORITHMS];
	size_t count;
	const char *why; /* count 0: the reason */
};

/* The parsed command line of `ringside model`. */

enum { MODEL_FILES_MAX = 64 };

struct model_options {
	uint8_t function;	/* 0: not set */
	struct bench_plan plan; /* only its sizes are used */
	bool has_sizes;
	int32_t ranks; /* 0: not set */
	int32_t nodes;
	int32_t nics;
	uint8_t mode; /* enum bench_mode; 0: not set */
	enum cost_algorithm algorithm;
	uint8_t protocol;
	const char *hardware; /* NULL: none */
	const char *files[MODEL_FILES_MAX];
	size_t file_count;
	double value[COST_PARAMETERS]; /* in the model's units */
	bool has_value[COST_PARAMETERS];
	bool is_json;
};

struct request {
	struct model_options options;
	struct bench_run runs[MODEL_FILES_MAX];
	size_t run_count;
	struct cost_model model;
	struct cost_fit fit;
	bool has_fit;
	struct cost_shape shape;
	char nodes_from[128]; /* how the number of nodes was determined; "": given */
	struct model_line *lines;
	size_t line_count;
};

/* ---- names ----------------------------------------------------------------------------------- */

/* "LL128"; "" for none. */
static const char *model_protocol_name(uint8_t protocol)
{
	return protocol == 0 ? "" : protocol == OP_SIMPLE ? "Simple" : op_protocol_name(protocol);
}

/* "fit", "hand", "textbook"; "unknown" */
static const char *model_source_name(uint8_t source)
{
	switch (source) {
	case COST_FROM_FIT:
		return "fit";
	case COST_BY_HAND:
		return "hand";
	case COST_FROM_HARDWARE:
		return "textbook";
	default:
		return "unknown";
	}
}

/* The groups that the answers use, each once, in the model's order; returns how many. */
static size_t model_groups(const struct request *request, const struct cost_group **groups,
			   size_t room)
{
	size_t count = 0;

	for (size_t g = 0; g < request->model.group_count && count < room; g++) {
		const struct cost_group *group = &request->model.groups[g];
		bool is_used = false;

		for (size_t l = 0; l < request->line_count; l++)
			for (size_t a = 0; a < request->lines[l].count; a++)
				is_used = is_used || request->lines[l].answers[a].group == group;
		if (is_used)
			groups[count++] = group;
	}
	return count;
}

static const char *time_text(char to[static UNITS_TEXT], double ns)
{
	return units_duration(to, ns > 0 && ns < 1e19 ? (uint64_t)llround(ns) : 0);
}

/* ---- the sentence ---------------------------------------------------------------------------- */

enum { FAR_TEXT = 160 };

/* "256x the ranks": distance from the measured range. Adds nothing if inside. */
static void add_factor(char to[static FAR_TEXT], double factor, bool is_more, const char *what)
{
	char number[32];

	if (factor <= 1)
		return;
	snprintf(number, sizeof(number), factor < 999.5 ? "%.3g" : "%.0f", factor);
	text_append(to, FAR_TEXT, is_more ? "%s%sx the %s" : "%s1/%s of the %s", to[0] ? ", " : "",
		    number, what);
}

static void far_text(char to[static FAR_TEXT], const struct request *request,
		     const struct model_line *line, const struct cost_answer *answer)
{
	const struct cost_range *range = &answer->group->range;

	add_factor(to, answer->ranks_factor, request->shape.ranks > range->ranks_most, "ranks");
	add_factor(to, answer->nodes_factor, request->shape.nodes > range->nodes_most, "nodes");
	add_factor(to, answer->bytes_factor, line->bytes > range->bytes_most, "bytes");
}

/* What the answer is based on: the end of its sentence. */
static void basis_text(char *to, size_t size, const struct request *request,
		       const struct model_line *line)
{
	const struct cost_answer *best = &line->answers[0];
	char far[FAR_TEXT] = "";

	to[0] = '\0';
	if (best->group->cells == 0) {
		if (request->model.hardware[0])
			text_format(to, size,
				    ", based on textbook values of %s, not on "
				    "measurements",
				    request->model.hardware);
		return;
	}
	far_text(far, request, line, best);
	text_format(to, size, ", based on a fit with a median error of %.1f%%%s%s%s",
		    best->group->median_error * 100, far[0] ? ", extrapolated to " : "", far,
		    far[0] ? " of the measured range" : "");
}

static void write_sentence(struct sink *sink, const struct request *request, unsigned int width)
{
	const struct model_line *line = &request->lines[0];
	const struct cost_answer *best = &line->answers[0];
	char bytes[UNITS_TEXT], time[UNITS_TEXT], low[UNITS_TEXT], high[UNITS_TEXT];
	char where[80], range[2 * UNITS_TEXT + 32] = "", basis[256], text[768];

	units_bytes(bytes, line->bytes);
	snprintf(where, sizeof(where), "%d %s on %d %s", (int)request->shape.ranks,
		 request->shape.ranks == 1 ? "rank" : "ranks", (int)request->shape.nodes,
		 request->shape.nodes == 1 ? "node" : "nodes");
	if (line->count == 0) {
		snprintf(text, sizeof(text), "no prediction for %s of %s over %s: %s.",
			 op_function_name(request->options.function), bytes, where, line->why);
		table_wrap(sink, text, "", 0, width);
		return;
	}
	if (best->has_interval)
		snprintf(range, sizeof(range), " (%s to %s)", time_text(low, best->low_ns),
			 time_text(high, best->high_ns));
	basis_text(basis, sizeof(basis), request, line);
	snprintf(text, sizeof(text),
		 "%s of %s over %s should take %s%s: %s%s%s, algbw %.2f GB/s, busbw %.2f GB/s%s.",
		 op_function_name(request->options.function), bytes, where,
		 time_text(time, best->time_ns), range, cost_algorithm_name(best->algorithm),
		 best->protocol ? " with " : "", model_protocol_name(best->protocol), best->algbw,
		 best->busbw, basis);
	table_wrap(sink, text, "", 0, width);
}

/* ---- answers --------------------------------------------------------------------------------- */

static const struct table_column answer_columns[] = {
	{ "SIZE", TABLE_RIGHT, 0 },    { "ALGORITHM", TABLE_LEFT, 0 },
	{ "PROTOCOL", TABLE_LEFT, 0 }, { "TIME", TABLE_RIGHT, 0 },
	{ "LOW", TABLE_RIGHT, 0 },     { "HIGH", TABLE_RIGHT, 0 },
	{ "ALGBW", TABLE_RIGHT, 0 },   { "BUSBW", TABLE_RIGHT, 0 },
	{ "LATENCY", TABLE_RIGHT, 0 }, { "TRANSFER", TABLE_RIGHT, 0 },
	{ "HOPS IN", TABLE_RIGHT, 0 }, { "HOPS OUT", TABLE_RIGHT, 0 },
};

enum { ANSWER_COLUMNS = sizeof(answer_columns) / sizeof(answer_columns[0]) };

static void add_answer(struct table *table, const struct model_line *line, size_t index)
{
	const struct cost_answer *answer = &line->answers[index];
	char text[UNITS_TEXT];

	table_cell(table, index == 0 ? units_bytes(text, line->bytes) : "");
	table_cellf(table, "%s%s", cost_algorithm_name(answer->algorithm),
		    answer->flags & COST_NOT_IN_NCCL ? " (not in NCCL)" : "");
	table_cell(table, answer->protocol ? model_protocol_name(answer->protocol) : "-");
	table_cell(table, time_text(text, answer->time_ns));
	table_cell(table, answer->has_interval ? time_text(text, answer->low_ns) : "-");
	table_cell(table, answer->has_interval ? time_text(text, answer->high_ns) : "-");
	table_cellf(table, "%.2f", answer->algbw);
	table_cellf(table, "%.2f", answer->busbw);
	table_cell(table, time_text(text, answer->latency_ns));
	table_cell(table, time_text(text, answer->transfer_ns));
	table_cellf(table, "%.0f", answer->work.hops[COST_INSIDE]);
	table_cellf(table, "%.0f", answer->work.hops[COST_BETWEEN]);
}

static enum status write_answers(struct sink *sink, const struct request *request,
				 unsigned int width)
{
	struct table *table = table_new(answer_columns, ANSWER_COLUMNS);
	enum status status;

	if (table == NULL)
		return ERR_NO_SPACE;
	for (size_t l = 0; l < request->line_count; l++)
		for (size_t a = 0; a < request->lines[l].count; a++)
			add_answer(table, &request->lines[l], a);
	sink_text(sink, "\n");
	status = table_write(table, sink, width);
	table_free(table);
	return status;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static void parameter_text(char *to, size_t size, const struct cost_group *group, int p)
{
	char time[UNITS_TEXT];
	bool is_time = p == COST_TIME_INSIDE || p == COST_TIME_BETWEEN;

	if (group->source[p] == 0 && group->inseparable & 1u << p)
		snprintf(to, size, "with latency");
	else if (group->source[p] == 0 && is_time && group->faster & 1u << (p - COST_TIME_INSIDE))
		snprintf(to, size, "fast enough");
	else if (group->source[p] == 0)
		snprintf(to, size, p == COST_CALL ? "0 (unknown)" : "unknown");
	else if (!is_time)
		snprintf(to, size, "%s %s", time_text(time, group->value[p]),
			 model_source_name(group->source[p]));
	else if (group->value[p] <= 0)
		snprintf(to, size, "unlimited %s", model_source_name(group->source[p]));
	else
		snprintf(to, size, "%.2f GB/s %s", 1 / group->value[p],
			 model_source_name(group->source[p]));
}

static const struct table_column group_columns[] = {
	{ "PARAMETERS", TABLE_LEFT, 0 },  { "CALL", TABLE_RIGHT, 0 },
	{ "LATENCY IN", TABLE_RIGHT, 0 }, { "LATENCY OUT", TABLE_RIGHT, 0 },
	{ "LINK IN", TABLE_RIGHT, 0 },	  { "NIC OUT", TABLE_RIGHT, 0 },
	{ "CELLS", TABLE_RIGHT, 0 },	  { "ERROR", TABLE_RIGHT, 0 },
	{ "WORST", TABLE_RIGHT, 0 },
};

enum { GROUP_COLUMNS = sizeof(group_columns) / sizeof(group_columns[0]) };

static void add_group(struct table *table, const struct cost_group *group)
{
	char text[64], from[UNITS_TEXT], to[UNITS_TEXT], range[2 * UNITS_TEXT + 8] = "";

	if (group->bytes_to > 0)
		snprintf(range, sizeof(range), ", %s to %s", units_bytes(from, group->bytes_from),
			 units_bytes(to, group->bytes_to));
	table_cellf(table, "%s%s%s%s%s%s", group->function ? op_function_name(group->function) : "",
		    group->function && group->algorithm ? " " : "",
		    group->algorithm ? cost_algorithm_name(group->algorithm)
				     : (group->function ? "" : "all"),
		    group->protocol ? " " : "", model_protocol_name(group->protocol), range);
	for (int p = 0; p < COST_PARAMETERS; p++) {
		parameter_text(text, sizeof(text), group, p);
		table_cell(table, text);
	}
	if (group->cells > 0) {
		table_cellf(table, "%zu", group->cells);
		table_cellf(table, "%.1f%%", group->median_error * 100);
		table_cellf(table, "%.1f%%", group->worst_error * 100);
		return;
	}
	for (int i = 0; i < 3; i++)
		table_cell(table, "-");
}

static enum status write_parameters(struct sink *sink, const struct request *request,
				    unsigned int width)
{
	const struct cost_group *groups[COST_GROUPS_MAX];
	size_t count = model_groups(request, groups, COST_GROUPS_MAX);
	struct table *table = table_new(group_columns, GROUP_COLUMNS);
	enum status status;

	if (table == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < count; i++)
		add_group(table, groups[i]);
	if (count > 0)
		sink_text(sink, "\n");
	status = table_write(table, sink, width);
	table_free(table);
	return status;
}

/* ---- what to keep in mind -------------------------------------------------------------------- */

static void model_remark(struct sink *sink, unsigned int width, const char *text)
{
	table_wrap(sink, text, "- ", 2, width);
}

/* "2-4 ranks" */
static const char *range_text(char to[static 48], int32_t least, int32_t most, const char *what)
{
	if (least == most)
		snprintf(to, 48, "%d %s%s", (int)most, what, most == 1 ? "" : "s");
	else
		snprintf(to, 48, "%d-%d %ss", (int)least, (int)most, what);
	return to;
}

/* The answer farthest from the measured range, in words. */
static void write_far(struct sink *sink, const struct request *request, unsigned int width,
		      const struct model_line *line, const struct cost_answer *answer)
{
	const struct cost_range *range = &answer->group->range;
	char ranks[48], nodes[48], least[UNITS_TEXT], most[UNITS_TEXT], text[512];
	char far[FAR_TEXT] = "";

	far_text(far, request, line, answer);
	snprintf(text, sizeof(text),
		 "%s the measured range (%s on %s, %s to %s): up to %s. LOW and HIGH widen with "
		 "every doubling of that distance and assume that the formula holds",
		 answer->doublings <= 1	  ? "just outside"
		 : answer->doublings <= 4 ? "outside"
					  : "far outside",
		 range_text(ranks, range->ranks_least, range->ranks_most, "rank"),
		 range_text(nodes, range->nodes_least, range->nodes_most, "node"),
		 units_bytes(least, range->bytes_least), units_bytes(most, range->bytes_most), far);
	model_remark(sink, width, text);
}

static void write_beyond(struct sink *sink, const struct request *request, unsigned int width)
{
	const struct cost_answer *farthest = NULL;
	const struct model_line *its_line = NULL;
	unsigned int flags = 0;

	for (size_t l = 0; l < request->line_count; l++)
		for (size_t a = 0; a < request->lines[l].count; a++) {
			const struct cost_answer *answer = &request->lines[l].answers[a];

			flags |= answer->flags;
			if (answer->doublings <= (farthest ? farthest->doublings : 0))
				continue;
			farthest = answer;
			its_line = &request->lines[l];
		}
	if (farthest != NULL)
		write_far(sink, request, width, its_line, farthest);
	if (flags & COST_UNSEPARATED)
		model_remark(
			sink, width,
			"the interval ranges from \"all fixed time is in the call\" to \"all of it "
			"is in the hops\": measure with another number of ranks to narrow it");
	if (flags & COST_OTHER_FUNCTION)
		model_remark(
			sink, width,
			"this function was not measured in enough sizes or ranks: parameters of "
			"other functions are used; LOW and HIGH only if several of them show how "
			"functions differ");
	if (flags & COST_OTHER_ALGORITHM)
		model_remark(
			sink, width,
			"an algorithm that was not measured uses the parameters of another one and "
			"has no interval");
}

static void write_fit(struct sink *sink, const struct request *request, unsigned int width)
{
	char text[512];

	if (!request->has_fit)
		return;
	snprintf(text, sizeof(text),
		 "fitted to %zu of %zu cells of %zu %s (%s): with the parameters of its own "
		 "function, half of them are within %.1f%%, the worst is off by %.1f%%",
		 request->fit.used, request->fit.cell_count, request->options.file_count,
		 request->options.file_count == 1 ? "file" : "files",
		 bench_mode_name(request->fit.mode), request->fit.median_error * 100,
		 request->fit.worst_error * 100);
	model_remark(sink, width, text);
}

static void write_remarks(struct sink *sink, const struct request *request, unsigned int width)
{
	const struct cost_model *model = &request->model;
	char text[256];

	sink_text(sink, "\n");
	write_fit(sink, request, width);
	if (model->hardware[0]) {
		snprintf(text, sizeof(text),
			 "textbook values of %s for everything not measured or given; your "
			 "hardware may differ",
			 model->hardware);
		model_remark(sink, width, text);
	}
	if (request->nodes_from[0])
		model_remark(sink, width, request->nodes_from);
	write_beyond(sink, request, width);
	for (size_t i = 0; i < model->note_count; i++)
		model_remark(sink, width, model->notes[i]);
	if (model->notes_lost > 0 || model->groups_lost > 0) {
		snprintf(text, sizeof(text), "%zu notes and %zu kinds of cells are not shown",
			 model->notes_lost, model->groups_lost);
		model_remark(sink, width, text);
	}
	model_remark(sink, width,
		     "bandwidth in GB/s (10^9 bytes); NVLS, CollNet and PAT are not modeled and "
		     "may be faster");
}

/* A sentence, tables and notes. `width` as for tables. ERR_NO_SPACE. */
static enum status model_text(struct sink *sink, const struct request *request, unsigned int width)
{
	enum status status = OK;
	bool has_answers = false;

	for (size_t l = 0; l < request->line_count; l++)
		has_answers = has_answers || request->lines[l].count > 0;
	if (request->line_count == 1 || !has_answers)
		write_sentence(sink, request, width);
	if (has_answers)
		status = write_answers(sink, request, width);
	if (status == OK && has_answers)
		status = write_parameters(sink, request, width);
	if (status == OK)
		write_remarks(sink, request, width);
	return status;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void put_links(struct json *json, const char *key, const double values[COST_LINKS])
{
	json_put_object(json, key);
	json_put_double(json, cost_link_name(COST_INSIDE), values[COST_INSIDE]);
	json_put_double(json, cost_link_name(COST_BETWEEN), values[COST_BETWEEN]);
	json_end(json);
}

static void put_answer(struct json *json, const struct cost_answer *answer, bool is_best)
{
	json_object(json);
	json_put_string(json, "algorithm", cost_algorithm_name(answer->algorithm));
	json_put_text_or_null(json, "protocol", model_protocol_name(answer->protocol));
	json_put_bool(json, "is_best", is_best);
	json_put_bool(json, "is_in_nccl", !(answer->flags & COST_NOT_IN_NCCL));
	json_put_double(json, "time_ns", answer->time_ns);
	json_put_known_double(json, "low_ns", answer->has_interval, answer->low_ns);
	json_put_known_double(json, "high_ns", answer->has_interval, answer->high_ns);
	json_put_double(json, "algbw_gbs", answer->algbw);
	json_put_double(json, "busbw_gbs", answer->busbw);
	json_put_double(json, "call_ns", answer->call_ns);
	json_put_double(json, "latency_ns", answer->latency_ns);
	json_put_double(json, "transfer_ns", answer->transfer_ns);
	json_put_double(json, "steps", answer->work.steps);
	json_put_double(json, "step_bytes", answer->work.step_bytes);
	put_links(json, "hops", answer->work.hops);
	put_links(json, "link_bytes", answer->work.bytes);
	put_links(json, "fill_bytes", answer->work.fill);
	json_put_object(json, "beyond");
	json_put_double(json, "ranks", answer->ranks_factor);
	json_put_double(json, "nodes", answer->nodes_factor);
	json_put_double(json, "bytes", answer->bytes_factor);
	json_put_double(json, "doublings", answer->doublings);
	json_end(json);
	json_put_bool(json, "is_other_function", answer->flags & COST_OTHER_FUNCTION);
	json_put_bool(json, "is_other_algorithm", answer->flags & COST_OTHER_ALGORITHM);
	json_put_bool(json, "is_unseparated", answer->flags & COST_UNSEPARATED);
	json_end(json);
}

static void put_lines(struct json *json, const struct request *request)
{
	json_put_array(json, "sizes");
	for (size_t l = 0; l < request->line_count; l++) {
		const struct model_line *line = &request->lines[l];

		json_object(json);
		json_put_unsigned(json, "bytes", line->bytes);
		json_put_string(json, "why_not", line->count ? NULL : line->why);
		json_put_array(json, "answers");
		for (size_t a = 0; a < line->count; a++)
			put_answer(json, &line->answers[a], a == 0);
		json_end(json);
		json_end(json);
	}
	json_end(json);
}

/* ---- what they rest on ----------------------------------------------------------------------- */

static void put_parameter(struct json *json, const struct cost_group *group, int p)
{
	static const char *const keys[COST_PARAMETERS] = {
		[COST_CALL] = "call_ns",
		[COST_LATENCY_INSIDE] = "latency_inside_ns",
		[COST_LATENCY_BETWEEN] = "latency_between_ns",
		[COST_TIME_INSIDE] = "bandwidth_inside_gbs",
		[COST_TIME_BETWEEN] = "bandwidth_between_gbs",
	};
	double value = group->value[p];

	json_put_object(json, keys[p]);
	if (p >= COST_TIME_INSIDE)
		value = value > 0 ? 1 / value : 0;
	json_put_known_double(json, "value",
			      group->source[p] != 0 && (p < COST_TIME_INSIDE || value > 0), value);
	json_put_string(json, "source", model_source_name(group->source[p]));
	json_put_bool(json, "is_inseparable", group->inseparable & 1u << p);
	json_end(json);
}

static void put_group(struct json *json, const struct cost_group *group)
{
	json_object(json);
	json_put_string(json, "function",
			group->function ? op_function_name(group->function) : NULL);
	json_put_string(json, "algorithm",
			group->algorithm ? cost_algorithm_name(group->algorithm) : NULL);
	json_put_text_or_null(json, "protocol", model_protocol_name(group->protocol));
	for (int p = 0; p < COST_PARAMETERS; p++)
		put_parameter(json, group, p);
	json_put_unsigned(json, "cells", group->cells);
	if (group->cells > 0) {
		json_put_double(json, "median_error", group->median_error);
		json_put_double(json, "worst_error", group->worst_error);
		json_put_object(json, "measured");
		json_put_unsigned(json, "bytes_least", group->range.bytes_least);
		json_put_unsigned(json, "bytes_most", group->range.bytes_most);
		json_put_signed(json, "ranks_least", group->range.ranks_least);
		json_put_signed(json, "ranks_most", group->range.ranks_most);
		json_put_signed(json, "nodes_least", group->range.nodes_least);
		json_put_signed(json, "nodes_most", group->range.nodes_most);
		json_end(json);
	}
	json_end(json);
}

static void put_cells(struct json *json, const struct cost_fit *fit)
{
	json_put_array(json, "cells");
	for (size_t i = 0; i < fit->cell_count; i++) {
		const struct cost_cell *cell = &fit->cells[i];

		json_object(json);
		json_put_unsigned(json, "file", cell->run);
		json_put_unsigned(json, "cell", cell->cell);
		json_put_string(json, "why_not", cell->is_used ? NULL : cell->why);
		json_put_double(json, "measured_ns", cell->measured_ns);
		if (cell->is_used) {
			json_put_double(json, "expected_ns", cell->expected_ns);
			json_put_double(json, "error", cell->error);
		}
		json_end(json);
	}
	json_end(json);
}

static void put_fit(struct json *json, const struct request *request)
{
	const struct cost_fit *fit = &request->fit;

	if (!request->has_fit) {
		json_put_null(json, "fit");
		return;
	}
	json_put_object(json, "fit");
	json_put_array(json, "files");
	for (size_t i = 0; i < request->options.file_count; i++)
		json_string(json, request->options.files[i]);
	json_end(json);
	json_put_string(json, "mode", bench_mode_name(fit->mode));
	json_put_unsigned(json, "cells_used", fit->used);
	json_put_double(json, "median_error", fit->median_error);
	json_put_double(json, "worst_error", fit->worst_error);
	put_cells(json, fit);
	json_end(json);
}

/* One object: docs/BENCH.md documents its keys. */
static void model_json(struct json *json, const struct request *request)
{
	const struct cost_group *groups[COST_GROUPS_MAX];
	size_t count = model_groups(request, groups, COST_GROUPS_MAX);
	const struct cost_model *model = &request->model;

	json_object(json);
	json_put_string(json, "format", "ringside-model");
	json_put_unsigned(json, "version", 1);
	json_put_string(json, "function", op_function_name(request->options.function));
	json_put_signed(json, "ranks", request->shape.ranks);
	json_put_signed(json, "nodes", request->shape.nodes);
	json_put_signed(json, "nics", request->shape.rails);
	json_put_string(json, "hardware", model->hardware[0] ? model->hardware : NULL);
	put_lines(json, request);
	json_put_array(json, "parameters");
	for (size_t i = 0; i < count; i++)
		put_group(json, groups[i]);
	json_end(json);
	put_fit(json, request);
	json_put_array(json, "notes");
	for (size_t i = 0; i < model->note_count; i++)
		json_string(json, model->notes[i]);
	if (request->nodes_from[0])
		json_string(json, request->nodes_from);
	json_end(json);
	json_put_unsigned(json, "notes_lost", model->notes_lost);
	json_end(json);
}

/* ---- numbers --------------------------------------------------------------------------------- */

struct unit {
	const char *name;
	double factor;
};

/* A number with a unit from the table; "" is the default unit. False: not a valid number. */
static bool number_of(const char *text, const struct unit *units, size_t count, double *value)
{
	char *end;
	double number = strtod(text, &end);

	if (end == text || !isfinite(number) || number < 0 || text[0] == '-' || text[0] == '+')
		return false;
	while (*end == ' ')
		end++;
	for (size_t i = 0; i < count; i++)
		if (strcasecmp(end, units[i].name) == 0) {
			*value = number * units[i].factor;
			return true;
		}
	return false;
}

static bool duration_of(const char *text, double *ns)
{
	static const struct unit units[] = {
		{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }
	};

	return number_of(text, units, sizeof(units) / sizeof(units[0]), ns);
}

/* "Gb/s" is bits and "GB/s" bytes, so case matters. */
static bool bandwidth_of(const char *text, double *gbs)
{
	static const struct unit units[] = {
		{ "", 1 },	 { "GB/s", 1 },	    { "MB/s", 1e-3 },
		{ "TB/s", 1e3 }, { "Gb/s", 0.125 }, { "Gbit/s", 0.125 }
	};
	char *end;

	(void)strtod(text, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(end, units[i].name) == 0)
			return number_of(text, &units[i], 1, gbs) && *gbs > 0;
	return false;
}

/* ---- values by hand -------------------------------------------------------------------------- */

static void model_put_value(struct model_options *options, enum cost_parameter parameter,
			    double value)
{
	options->value[parameter] = value;
	options->has_value[parameter] = true;
}

/* One "inside=3us" of a list. */
static bool take_link(struct model_options *options, const char *item, bool is_latency)
{
	const char *equals = strchr(item, '=');
	enum cost_link link;
	double value;

	if (equals == NULL)
		return false;
	if (strncmp(item, "inside=", 7) == 0)
		link = COST_INSIDE;
	else if (strncmp(item, "between=", 8) == 0)
		link = COST_BETWEEN;
	else
		return false;
	if (is_latency ? !duration_of(equals + 1, &value) : !bandwidth_of(equals + 1, &value))
		return false;
	model_put_value(
		options,
		(enum cost_parameter)((is_latency ? COST_LATENCY_INSIDE : COST_TIME_INSIDE) + link),
		is_latency ? value : 1 / value);
	return true;
}

static int take_links(const struct cli_said *said)
{
	bool is_latency = said->option->name[0] == 'l';
	char item[64];

	for (const char *at = said->value;; at++) {
		size_t length = strcspn(at, ",");

		snprintf(item, sizeof(item), "%.*s", (int)(length < 63 ? length : 63), at);
		if (!take_link(said->target, item, is_latency))
			return cli_usage(said->page, "'%s' is not a %s: use %s", item,
					 is_latency ? "latency" : "bandwidth",
					 is_latency ? "inside=3us or between=15us"
						    : "inside=370GB/s or between=400Gb/s");
		at += length;
		if (*at == '\0')
			return 0;
	}
}

/* ---- words ----------------------------------------------------------------------------------- */

static int take_count(const struct cli_said *said)
{
	int64_t number;

	if (text_number(said->value, 1, BENCH_RANKS_MAX, &number) != OK)
		return cli_usage(said->page, "--%s '%s': expected a number from 1 to %d",
				 said->option->name, said->value, BENCH_RANKS_MAX);
	*(int32_t *)said->target = (int32_t)number;
	return 0;
}

static int take_protocol(const struct cli_said *said)
{
	struct model_options *options = said->target;
	static const char *const names[OP_PROTOCOLS] = { "", "LL", "LL128", "Simple" };

	if (cli_one_value(said->page, "protocols", said->value) != 0)
		return CLI_EXIT_USAGE;
	for (uint8_t protocol = 1; protocol < OP_PROTOCOLS; protocol++)
		if (strcasecmp(said->value, names[protocol]) == 0) {
			options->protocol = protocol;
			return 0;
		}
	return cli_usage(said->page, "--protocols '%s': expected LL, LL128 or Simple", said->value);
}

static int take_algorithm(const struct cli_said *said)
{
	struct model_options *options = said->target;

	if (cli_one_value(said->page, "algorithms", said->value) != 0)
		return CLI_EXIT_USAGE;
	options->algorithm = cost_algorithm_find(said->value);
	if (options->algorithm != COST_ANY)
		return 0;
	return cli_usage(said->page,
			 "--algorithms '%s': expected ring, tree, double-tree or direct",
			 said->value);
}

static int take_file(const struct cli_said *said)
{
	struct model_options *options = said->target;

	if (options->file_count == MODEL_FILES_MAX)
		return cli_usage(said->page, "--from: more than %d files", MODEL_FILES_MAX);
	options->files[options->file_count++] = said->value;
	return 0;
}

static int take_operand(const struct cli_said *said)
{
	struct model_options *options = said->target;
	char problem[256];

	if (options->function == 0) {
		struct bench_plan plan;

		plan_init(&plan);
		if (plan_functions(&plan, said->value, problem, sizeof(problem)) != 0) {
			/* "all" is only for measuring. */
			char *all = strstr(problem, " and all");

			if (all != NULL)
				*all = '\0';
			return cli_usage(said->page, "%s", problem);
		}
		if (plan.function_count != 1)
			return cli_usage(said->page, "'%s': name only one function", said->value);
		options->function = plan.functions[0];
		return 0;
	}
	if (options->has_sizes)
		return cli_usage(said->page, "unexpected operand '%s'", said->value);
	if (plan_sizes(&options->plan, said->value, problem, sizeof(problem)) != 0)
		return cli_usage(said->page, "%s", problem);
	options->has_sizes = true;
	return 0;
}

static int take_mode(const struct cli_said *said)
{
	struct model_options *options = said->target;

	if (cli_one_value(said->page, "modes", said->value) != 0)
		return CLI_EXIT_USAGE;
	options->mode = (uint8_t)bench_mode_find(said->value);
	if (options->mode != 0)
		return 0;
	return cli_usage(said->page, "--modes '%s': expected blocking, back-to-back, graph or loop",
			 said->value);
}

static int take_call(const struct cli_said *said)
{
	struct model_options *options = said->target;
	double value;

	if (!duration_of(said->value, &value))
		return cli_usage(said->page, "--call '%s': expected a time, e.g. 8us", said->value);
	model_put_value(options, COST_CALL, value);
	return 0;
}

static const struct cli_option page_options[] = {
	{ 'R', "ranks", "N", "number of ranks", CLI_CALL(struct model_options, ranks, take_count) },
	{ 0, "nodes", "N",
	  "number of nodes (default: as many ranks per node as measured, or as the hardware has)",
	  CLI_CALL(struct model_options, nodes, take_count) },
	{ 0, "nics", "N", "NICs per node (default: one per rank)",
	  CLI_CALL(struct model_options, nics, take_count) },
	{ 0, "from", "FILE",
	  "fit the parameters to a JSON result of 'ringside bench'; can be repeated",
	  CLI_CALL_ALL(take_file) },
	{ 0, "modes", "MODE",
	  "which measurements to use: blocking, back-to-back, graph or loop (default: blocking if "
	  "present)",
	  CLI_CALL_ALL(take_mode) },
	{ 0, "latency", "LIST", "latency of a hop: inside=3us,between=15us",
	  CLI_CALL_ALL(take_links) },
	{ 0, "bandwidth", "LIST",
	  "bandwidth per direction of a GPU's links inside a node and of a NIC: "
	  "inside=370GB/s,between=48GB/s",
	  CLI_CALL_ALL(take_links) },
	{ 0, "call", "TIME", "fixed time per call in addition to its hops: 8us",
	  CLI_CALL_ALL(take_call) },
	{ 0, "hardware", "NAME", "textbook values: a100-ib, h100-ib, b200-ib or pcie4-eth",
	  CLI_TEXT(struct model_options, hardware) },
	{ 0, "algorithms", "NAME", "only this one: ring, tree, double-tree or direct",
	  CLI_CALL_ALL(take_algorithm) },
	{ 0, "protocols", "NAME", "only this one: LL, LL128 or Simple",
	  CLI_CALL_ALL(take_protocol) },
	CLI_OPTION_JSON(struct model_options),
	CLI_OPTION_END,
};

static const struct cli_example page_examples[] = {
	{ "ringside model allreduce 8G --ranks 512 --hardware h100-ib",
	  "textbook prediction for 64 nodes with 8 GPUs each" },
	{ "ringside model allreduce 8G --ranks 512 --from 2nodes.json --from 4nodes.json",
	  "prediction from your own measurements" },
	{ "ringside model allgather 1K..1G*4 --ranks 16 --nodes 2 --latency "
	  "inside=3us,between=15us "
	  "--bandwidth inside=370,between=48",
	  "a table over sizes, with your own parameters" },
	{ NULL, NULL },
};

static const struct cli_page model_page = {
	.name = "model",
	.operands = "FUNCTION SIZE",
	.about = "Predicts how long an NCCL operation should take, with a model of ring, tree, "
		 "double tree and direct transfers that has latency and bandwidth per hop inside a "
		 "node and between nodes. Parameters are fitted to measurements, given by hand, or "
		 "textbook values; the answer shows where they come from and the error of the fit. "
		 "Parameters that were neither measured nor given are never guessed.\n"
		 "SIZE is the message size in bytes as nccl-tests counts it: one, a list or a "
		 "range, e.g. 8G, 1K,1M,1G or 1K..1G*4. docs/BENCH.md derives the formulas.\n",
	.options = page_options,
	.operand = take_operand,
	.examples = page_examples,
};

static int model_check_options(const struct model_options *options)
{
	bool has_value = false;

	for (int p = COST_LATENCY_INSIDE; p < COST_PARAMETERS; p++)
		has_value = has_value || options->has_value[p];
	if (options->function == 0 || !options->has_sizes)
		return cli_usage(&model_page, "expected a function and a size, e.g. allreduce 8G");
	if (options->ranks == 0)
		return cli_usage(&model_page, "number of ranks missing: use --ranks N");
	if (options->nodes > options->ranks)
		return cli_usage(&model_page, "%d nodes for only %d ranks", (int)options->nodes,
				 (int)options->ranks);
	if (options->file_count == 0 && options->hardware == NULL && !has_value)
		return cli_usage(&model_page,
				 "no parameters: use --from FILE (written by 'ringside bench "
				 "--json'), --latency and --bandwidth, or --hardware NAME");
	return 0;
}

/* 0, or the exit code after help or an error message. */
static int model_options_read(struct model_options *options, int argc, char **argv, bool *is_over)
{
	int exit_code;

	memset(options, 0, sizeof(*options));
	plan_init(&options->plan);
	exit_code = cli_parse(&model_page, options, argc, argv);
	*is_over = true;
	if (exit_code != CLI_GO_ON)
		return exit_code;
	exit_code = model_check_options(options);
	*is_over = exit_code != 0;
	return exit_code;
}

static void request_free(struct request *request)
{
	for (size_t i = 0; i < request->run_count; i++)
		bench_run_release(&request->runs[i]);
	if (request->has_fit)
		cost_fit_release(&request->fit);
	free(request->lines);
	free(request);
}

/* ---- parameters ------------------------------------------------------------------------------ */

static int read_runs(struct request *request)
{
	for (size_t i = 0; i < request->options.file_count; i++) {
		int exit_code = bench_recall(&request->runs[i], request->options.files[i]);

		if (exit_code != 0)
			return exit_code;
		request->run_count++;
	}
	return 0;
}

static int fit_runs(struct request *request)
{
	const struct cost_fit_options options = { .over = BENCH_OVER_MEAN,
						  .mode = request->options.mode,
						  .rails = request->options.nics };
	const struct bench_run *pointers[MODEL_FILES_MAX];
	struct cost_model *model = &request->model;
	enum status status;

	if (request->run_count == 0)
		return 0;
	for (size_t i = 0; i < request->run_count; i++)
		pointers[i] = &request->runs[i];
	status = cost_fit(model, &request->fit, pointers, request->run_count, &options);
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	request->has_fit = true;
	if (status == OK)
		return 0;
	return cli_error(
		"%s%s: %s", request->options.files[0], request->run_count > 1 ? " and others" : "",
		model->note_count ? model->notes[model->note_count - 1] : "nothing to fit");
}

static int find_hardware(struct request *request)
{
	char names[256] = "";

	if (request->options.hardware == NULL ||
	    cost_model_hardware(&request->model, request->options.hardware))
		return 0;
	for (size_t i = 0; cost_hardware(i) != NULL; i++)
		text_append(names, sizeof(names), "%s%s", i > 0 ? ", " : "",
			    cost_hardware(i)->name);
	return cli_usage(&model_page, "--hardware '%s': expected one of %s",
			 request->options.hardware, names);
}

/* Measured values first, then textbook values for what is missing; values given by hand override both. */
static int find_parameters(struct request *request)
{
	int exit_code;

	cost_model_init(&request->model);
	exit_code = read_runs(request);
	if (exit_code == 0)
		exit_code = fit_runs(request);
	if (exit_code == 0)
		exit_code = find_hardware(request);
	for (int p = 0; p < COST_PARAMETERS && exit_code == 0; p++)
		if (request->options.has_value[p] &&
		    cost_model_set(&request->model, (enum cost_parameter)p,
				   request->options.value[p]) != OK)
			exit_code = cli_usage(&model_page, "%s is out of range",
					      cost_parameter_name((enum cost_parameter)p));
	return exit_code;
}

/* ---- where ----------------------------------------------------------------------------------- */

static int32_t nodes_for(int32_t ranks, int32_t local)
{
	return (ranks + local - 1) / local;
}

/* As many ranks per node as in the largest measurement. */
static int32_t measured_local(const struct request *request)
{
	int32_t local = 0, most = 0;

	for (size_t r = 0; r < request->run_count; r++)
		for (size_t c = 0; c < request->runs[r].cell_count; c++) {
			struct cost_shape shape =
				cost_shape_of(&request->runs[r], &request->runs[r].cells[c], 0);

			if (shape.ranks < most)
				continue;
			most = shape.ranks;
			local = (shape.ranks + shape.nodes - 1) / shape.nodes;
		}
	return local;
}

static int32_t hardware_local(const char *name)
{
	for (size_t i = 0; cost_hardware(i) != NULL; i++)
		if (strcmp(cost_hardware(i)->name, name) == 0)
			return cost_hardware(i)->ranks_a_node;
	return 0;
}

static int find_shape(struct request *request)
{
	const struct model_options *options = &request->options;
	struct cost_shape *shape = &request->shape;
	bool is_measured = request->run_count > 0;
	int32_t local = 0;

	shape->ranks = options->ranks;
	shape->nodes = options->nodes;
	if (shape->nodes == 0) {
		local = is_measured	    ? measured_local(request)
			: options->hardware ? hardware_local(options->hardware)
					    : 0;
		if (local == 0)
			return cli_usage(&model_page, "number of nodes unknown: use --nodes N");
		shape->nodes = nodes_for(shape->ranks, local);
		snprintf(request->nodes_from, sizeof(request->nodes_from),
			 "%d %s: %d %s per node, as %s; use --nodes for other numbers",
			 (int)shape->nodes, shape->nodes == 1 ? "node" : "nodes", (int)local,
			 local == 1 ? "rank" : "ranks",
			 is_measured ? "measured" : "this hardware has");
	}
	shape->rails = options->nics	      ? options->nics
		       : request->model.rails ? request->model.rails
					      : nodes_for(shape->ranks, shape->nodes);
	return 0;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void find_line(const struct request *request, struct model_line *line)
{
	const struct model_options *options = &request->options;

	if (options->algorithm == COST_ANY && options->protocol == 0) {
		line->count = cost_predict_all(&request->model, options->function, &request->shape,
					       line->bytes, line->answers, &line->why);
		return;
	}
	for (int algorithm = COST_RING; algorithm < COST_ALGORITHMS; algorithm++) {
		struct cost_answer *answer = &line->answers[line->count];
		const char *why = NULL;

		if (options->algorithm != COST_ANY &&
		    options->algorithm != (enum cost_algorithm)algorithm)
			continue;
		if (cost_predict(&request->model, options->function, (enum cost_algorithm)algorithm,
				 options->protocol, &request->shape, line->bytes, answer, &why))
			line->count++;
		else if (line->why == NULL || options->algorithm != COST_ANY)
			line->why = why;
	}
}

/* 1 if no size has an answer. */
static int find_answers(struct request *request)
{
	const struct bench_plan *plan = &request->options.plan;
	int exit_code = CLI_EXIT_UNKNOWN;

	request->lines = cli_realloc(NULL, plan->size_count * sizeof(*request->lines));
	memset(request->lines, 0, plan->size_count * sizeof(*request->lines));
	request->line_count = plan->size_count;
	for (size_t i = 0; i < request->line_count; i++) {
		request->lines[i].bytes = plan->sizes[i];
		find_line(request, &request->lines[i]);
		if (request->lines[i].count > 0)
			exit_code = CLI_EXIT_DONE;
	}
	return exit_code;
}

static int model_show(const struct request *request, int exit_code)
{
	struct sink sink;
	struct json json;

	sink_init_fd(&sink, STDOUT_FILENO);
	if (request->options.is_json) {
		json_init(&json, &sink);
		model_json(&json, request);
		json_line(&json);
	} else if (model_text(&sink, request, cli_width()) == ERR_NO_SPACE) {
		cli_no_memory();
	}
	return cli_finish(&sink, exit_code);
}

int bench_model(int argc, char **argv)
{
	struct request *request = cli_realloc(NULL, sizeof(*request));
	bool is_over;
	int exit_code;

	memset(request, 0, sizeof(*request));
	exit_code = model_options_read(&request->options, argc, argv, &is_over);
	if (!is_over)
		exit_code = find_parameters(request);
	if (!is_over && exit_code == 0)
		exit_code = find_shape(request);
	if (!is_over && exit_code == 0)
		exit_code = model_show(request, find_answers(request));
	request_free(request);
	return exit_code;
}
