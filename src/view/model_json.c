#include "common/op.h"
#include "view/model_view.h"

static void put_protocol(struct json *json, uint8_t protocol)
{
	if (protocol)
		json_put_string(json, "protocol", model_protocol_name(protocol));
	else
		json_put_null(json, "protocol");
}

/* ---- answers --------------------------------------------------------------------------------- */

static void put_links(struct json *json, const char *key, const double values[COST_LINKS])
{
	json_put_object(json, key);
	json_put_double(json, cost_link_name(COST_INSIDE), values[COST_INSIDE]);
	json_put_double(json, cost_link_name(COST_BETWEEN), values[COST_BETWEEN]);
	json_end(json);
}

static void put_interval(struct json *json, const struct cost_answer *answer)
{
	if (answer->has_interval) {
		json_put_double(json, "low_ns", answer->low_ns);
		json_put_double(json, "high_ns", answer->high_ns);
	} else {
		json_put_null(json, "low_ns");
		json_put_null(json, "high_ns");
	}
}

static void put_answer(struct json *json, const struct cost_answer *answer, bool is_best)
{
	json_object(json);
	json_put_string(json, "algorithm", cost_algorithm_name(answer->algorithm));
	put_protocol(json, answer->protocol);
	json_put_bool(json, "is_best", is_best);
	json_put_bool(json, "is_in_nccl", !(answer->flags & COST_NOT_IN_NCCL));
	json_put_double(json, "time_ns", answer->time_ns);
	put_interval(json, answer);
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

static void put_lines(struct json *json, const struct model_view *view)
{
	json_put_array(json, "sizes");
	for (size_t l = 0; l < view->line_count; l++) {
		const struct model_line *line = &view->lines[l];

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
	if (group->source[p] == 0 || (p >= COST_TIME_INSIDE && value <= 0))
		json_put_null(json, "value");
	else
		json_put_double(json, "value", value);
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
	put_protocol(json, group->protocol);
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

static void put_fit(struct json *json, const struct model_view *view)
{
	const struct cost_fit *fit = view->fit;

	if (fit == NULL) {
		json_put_null(json, "fit");
		return;
	}
	json_put_object(json, "fit");
	json_put_array(json, "files");
	for (size_t i = 0; i < view->file_count; i++)
		json_string(json, view->files[i]);
	json_end(json);
	json_put_string(json, "mode", bench_mode_name(fit->mode));
	json_put_unsigned(json, "cells_used", fit->used);
	json_put_double(json, "median_error", fit->median_error);
	json_put_double(json, "worst_error", fit->worst_error);
	put_cells(json, fit);
	json_end(json);
}

void model_json(struct json *json, const struct model_view *view)
{
	const struct cost_group *groups[COST_GROUPS_MAX];
	size_t count = model_groups(view, groups, COST_GROUPS_MAX);
	const struct cost_model *model = view->model;

	json_object(json);
	json_put_string(json, "format", "ringside-model");
	json_put_unsigned(json, "version", 1);
	json_put_string(json, "function", op_function_name(view->function));
	json_put_signed(json, "ranks", view->shape.ranks);
	json_put_signed(json, "nodes", view->shape.nodes);
	json_put_signed(json, "nics", view->shape.rails);
	json_put_string(json, "hardware", model->hardware[0] ? model->hardware : NULL);
	put_lines(json, view);
	json_put_array(json, "parameters");
	for (size_t i = 0; i < count; i++)
		put_group(json, groups[i]);
	json_end(json);
	put_fit(json, view);
	json_put_array(json, "notes");
	for (size_t i = 0; i < model->note_count; i++)
		json_string(json, model->notes[i]);
	if (view->nodes_from)
		json_string(json, view->nodes_from);
	json_end(json);
	json_put_unsigned(json, "notes_lost", model->notes_lost);
	json_end(json);
}
