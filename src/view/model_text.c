#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/op.h"
#include "common/op_layout.h"
#include "common/text.h"
#include "output/table.h"
#include "view/model_view.h"

/* ---- names ----------------------------------------------------------------------------------- */

const char *model_protocol_name(uint8_t protocol)
{
	return protocol == 0 ? "" : protocol == OP_SIMPLE ? "Simple" : op_protocol_name(protocol);
}

const char *model_source_name(uint8_t source)
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

size_t model_groups(const struct model_view *view, const struct cost_group **groups, size_t room)
{
	size_t count = 0;

	for (size_t g = 0; g < view->model->group_count && count < room; g++) {
		const struct cost_group *group = &view->model->groups[g];
		bool is_used = false;

		for (size_t l = 0; l < view->line_count; l++)
			for (size_t a = 0; a < view->lines[l].count; a++)
				is_used = is_used || view->lines[l].answers[a].group == group;
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

/* "256 times the ranks": how far it is from what was measured. Nothing where that is inside. */
static void add_factor(char to[static FAR_TEXT], double factor, bool is_more, const char *what)
{
	size_t used = strlen(to);

	if (factor > 1)
		text_format(to + used, FAR_TEXT - used,
			    is_more ? "%s%.3g times the %s" : "%s1/%.3g of the %s",
			    used > 0 ? ", " : "", factor, what);
}

static void far_text(char to[static FAR_TEXT], const struct model_view *view,
		     const struct model_line *line, const struct cost_answer *answer)
{
	const struct cost_range *range = &answer->group->range;

	add_factor(to, answer->ranks_factor, view->shape.ranks > range->ranks_most, "ranks");
	add_factor(to, answer->nodes_factor, view->shape.nodes > range->nodes_most, "nodes");
	add_factor(to, answer->bytes_factor, line->bytes > range->bytes_most, "bytes");
}

/* What the answer rests on: the end of its sentence. */
static void basis_text(char *to, size_t size, const struct model_view *view,
		       const struct model_line *line)
{
	const struct cost_answer *best = &line->answers[0];
	char far[FAR_TEXT] = "";

	to[0] = '\0';
	if (best->group->cells == 0) {
		if (view->model->hardware[0])
			text_format(to, size, ", by textbook values of %s and not by measurements",
				    view->model->hardware);
		return;
	}
	far_text(far, view, line, best);
	text_format(to, size, ", by a fit that is off by %.1f %% in the median%s%s%s",
		    best->group->median_error * 100, far[0] ? ", extrapolated to " : "", far,
		    far[0] ? " that were measured" : "");
}

static void write_sentence(struct sink *sink, const struct model_view *view, unsigned int width)
{
	const struct model_line *line = &view->lines[0];
	const struct cost_answer *best = &line->answers[0];
	char bytes[UNITS_TEXT], time[UNITS_TEXT], low[UNITS_TEXT], high[UNITS_TEXT];
	char where[80], range[2 * UNITS_TEXT + 32] = "", basis[256], text[768];

	units_bytes(bytes, line->bytes);
	snprintf(where, sizeof(where), "%d %s on %d %s", (int)view->shape.ranks,
		 view->shape.ranks == 1 ? "rank" : "ranks", (int)view->shape.nodes,
		 view->shape.nodes == 1 ? "node" : "nodes");
	if (line->count == 0) {
		snprintf(text, sizeof(text), "%s of %s over %s cannot be told: %s.",
			 op_function_name(view->function), bytes, where, line->why);
		table_wrap(sink, text, "", 0, width);
		return;
	}
	if (best->has_interval)
		snprintf(range, sizeof(range), " (%s to %s)", time_text(low, best->low_ns),
			 time_text(high, best->high_ns));
	basis_text(basis, sizeof(basis), view, line);
	snprintf(text, sizeof(text),
		 "%s of %s over %s should take %s%s: %s%s%s, algbw %.2f GB/s, busbw %.2f GB/s%s.",
		 op_function_name(view->function), bytes, where, time_text(time, best->time_ns),
		 range, cost_algorithm_name(best->algorithm), best->protocol ? " with " : "",
		 model_protocol_name(best->protocol), best->algbw, best->busbw, basis);
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

static enum status write_answers(struct sink *sink, const struct model_view *view,
				 unsigned int width)
{
	struct table *table = table_new(answer_columns, ANSWER_COLUMNS);
	enum status status;

	if (table == NULL)
		return ERR_NO_SPACE;
	for (size_t l = 0; l < view->line_count; l++)
		for (size_t a = 0; a < view->lines[l].count; a++)
			add_answer(table, &view->lines[l], a);
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
		snprintf(to, size, p == COST_CALL ? "0 (not told)" : "unknown");
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
		table_cellf(table, "%.1f %%", group->median_error * 100);
		table_cellf(table, "%.1f %%", group->worst_error * 100);
		return;
	}
	for (int i = 0; i < 3; i++)
		table_cell(table, "-");
}

static enum status write_parameters(struct sink *sink, const struct model_view *view,
				    unsigned int width)
{
	const struct cost_group *groups[COST_GROUPS_MAX];
	size_t count = model_groups(view, groups, COST_GROUPS_MAX);
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

static void remark(struct sink *sink, unsigned int width, const char *text)
{
	table_wrap(sink, text, "- ", 2, width);
}

/* "2 to 4 ranks" */
static const char *range_text(char to[static 48], int32_t least, int32_t most, const char *what)
{
	if (least == most)
		snprintf(to, 48, "%d %s%s", (int)most, what, most == 1 ? "" : "s");
	else
		snprintf(to, 48, "%d to %d %ss", (int)least, (int)most, what);
	return to;
}

/* The answer that is farthest from what was measured, in words. */
static void write_far(struct sink *sink, const struct model_view *view, unsigned int width,
		      const struct model_line *line, const struct cost_answer *answer)
{
	const struct cost_range *range = &answer->group->range;
	char ranks[48], nodes[48], least[UNITS_TEXT], most[UNITS_TEXT], text[512];
	char far[FAR_TEXT] = "";

	far_text(far, view, line, answer);
	snprintf(text, sizeof(text),
		 "%s of what was measured (%s on %s, %s to %s): up to %s. LOW and HIGH widen with "
		 "every doubling of that distance; they hold as long as the formula does",
		 answer->doublings <= 1	  ? "just outside"
		 : answer->doublings <= 4 ? "outside"
					  : "far outside",
		 range_text(ranks, range->ranks_least, range->ranks_most, "rank"),
		 range_text(nodes, range->nodes_least, range->nodes_most, "node"),
		 units_bytes(least, range->bytes_least), units_bytes(most, range->bytes_most), far);
	remark(sink, width, text);
}

static void write_beyond(struct sink *sink, const struct model_view *view, unsigned int width)
{
	const struct cost_answer *farthest = NULL;
	const struct model_line *its_line = NULL;
	unsigned int flags = 0;

	for (size_t l = 0; l < view->line_count; l++)
		for (size_t a = 0; a < view->lines[l].count; a++) {
			const struct cost_answer *answer = &view->lines[l].answers[a];

			flags |= answer->flags;
			if (answer->doublings <= (farthest ? farthest->doublings : 0))
				continue;
			farthest = answer;
			its_line = &view->lines[l];
		}
	if (farthest != NULL)
		write_far(sink, view, width, its_line, farthest);
	if (flags & COST_UNSEPARATED)
		remark(sink, width,
		       "the interval goes from \"all of the fixed time is the call\" to \"all of "
		       "it is hops\": measure with another number of ranks to narrow it");
	if (flags & COST_OTHER_FUNCTION)
		remark(sink, width,
		       "this function was not measured in enough sizes or ranks: others stand for "
		       "it; LOW and HIGH only where several of them tell how functions differ");
	if (flags & COST_OTHER_ALGORITHM)
		remark(sink, width,
		       "an algorithm that was not measured has the parameters of another one, and "
		       "no "
		       "interval");
}

static void write_fit(struct sink *sink, const struct model_view *view, unsigned int width)
{
	char text[512];

	if (view->fit == NULL)
		return;
	snprintf(text, sizeof(text),
		 "fitted to %zu of %zu cells of %zu %s (%s): with the parameters of its own "
		 "function half of them "
		 "are within %.1f %%, the worst %.1f %% off",
		 view->fit->used, view->fit->cell_count, view->file_count,
		 view->file_count == 1 ? "file" : "files", bench_mode_name(view->fit->mode),
		 view->fit->median_error * 100, view->fit->worst_error * 100);
	remark(sink, width, text);
}

static void write_remarks(struct sink *sink, const struct model_view *view, unsigned int width)
{
	const struct cost_model *model = view->model;
	char text[256];

	sink_text(sink, "\n");
	write_fit(sink, view, width);
	if (model->hardware[0]) {
		snprintf(text, sizeof(text),
			 "textbook values of %s where nothing was measured or given: a machine of "
			 "yours may differ",
			 model->hardware);
		remark(sink, width, text);
	}
	if (view->nodes_from)
		remark(sink, width, view->nodes_from);
	write_beyond(sink, view, width);
	for (size_t i = 0; i < model->note_count; i++)
		remark(sink, width, model->notes[i]);
	if (model->notes_lost > 0 || model->groups_lost > 0) {
		snprintf(text, sizeof(text), "%zu notes and %zu kinds of cells did not fit here",
			 model->notes_lost, model->groups_lost);
		remark(sink, width, text);
	}
	remark(sink, width,
	       "bandwidth in GB/s of 10^9; NVLS, CollNet and PAT are not modelled and may be "
	       "faster");
}

enum status model_text(struct sink *sink, const struct model_view *view, unsigned int width)
{
	enum status status = OK;
	bool has_answers = false;

	for (size_t l = 0; l < view->line_count; l++)
		has_answers = has_answers || view->lines[l].count > 0;
	if (view->line_count == 1 || !has_answers)
		write_sentence(sink, view, width);
	if (has_answers)
		status = write_answers(sink, view, width);
	if (status == OK && has_answers)
		status = write_parameters(sink, view, width);
	if (status == OK)
		write_remarks(sink, view, width);
	return status;
}
