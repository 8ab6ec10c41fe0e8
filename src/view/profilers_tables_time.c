/* Accuracy, overhead and training as tables. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "common/op.h"
#include "common/text.h"
#include "view/profilers_tables.h"

static const char *mode_text(uint8_t mode)
{
	return mode ? bench_mode_name(mode) : "all";
}

static void time_cell(struct report_grid *grid, double time_ns)
{
	char text[UNITS_TEXT];

	report_grid_cell(grid, time_ns > 0 ? units_duration(text, (uint64_t)(time_ns + 0.5)) : "-");
}

static void count_cell(struct report_grid *grid, uint64_t count)
{
	char text[UNITS_TEXT];

	report_grid_cell(grid, units_count(text, count));
}

/* ---- accuracy --------------------------------------------------------------------------------- */

static void joined_cell(struct report_grid *grid, const struct profilers_accuracy *row)
{
	uint64_t joined = row->in_order + row->by_time;

	if (row->is_mean_only)
		report_grid_cell(grid, row->ratio.p50 > 0 ? "means" : "none");
	else if (joined == row->calls)
		report_grid_cell(grid, "100 %");
	else if (joined == 0)
		report_grid_cell(grid, "none");
	else
		report_grid_cellf(grid, "%.2f %%",
				  floor((double)joined / (double)row->calls * 10000) / 100);
}

static void accuracy_row(struct report_grid *grid, const struct profilers_comparison *comparison,
			 const struct profilers_accuracy *row, bool has_function)
{
	const double quantiles[] = { row->ratio.p05, row->ratio.p25, row->ratio.p50, row->ratio.p75,
				     row->ratio.p95 };
	char text[PROFILERS_SHORT_TEXT];

	report_grid_cell(grid, comparison->plugins[row->plugin].label);
	report_grid_cell(grid, mode_text(row->mode));
	if (has_function)
		report_grid_cell(grid, op_function_name(row->function));
	report_grid_cell(grid, profilers_size_text(text, row->bytes, row->bytes_to));
	if (row->source == OP_TIME_NONE)
		report_grid_cell(grid, row->is_mean_only ? "sums" : "-");
	else
		report_grid_cell(grid, op_time_source_name(row->source));
	count_cell(grid, row->calls);
	joined_cell(grid, row);
	if (row->by_time > 0)
		count_cell(grid, row->by_time);
	else
		report_grid_cell(grid, "-");
	for (size_t i = 0; i < 5; i++)
		if (row->ratio.p50 > 0 && !isnan(quantiles[i]))
			report_grid_cellf(grid, "%.3f", quantiles[i]);
		else
			report_grid_cell(grid, "-");
}

void profilers_tables_accuracy(struct report_grid *grid,
			       const struct profilers_comparison *comparison,
			       enum profilers_table which)
{
	bool has_function = which == PROFILERS_TABLE_ACCURACY_CELLS;

	report_grid_column(grid, "PLUGIN", TABLE_LEFT, 12, 0);
	report_grid_column(grid, "MODE", TABLE_LEFT, 0, 0);
	if (has_function)
		report_grid_column(grid, "OPERATION", TABLE_LEFT, 0, 0);
	report_grid_column(grid, "SIZE", TABLE_RIGHT, 0, 0);
	report_grid_column(grid, "TIMES FROM", TABLE_LEFT, 0, 2);
	report_grid_column(grid, "CALLS", TABLE_RIGHT, 0, 4);
	report_grid_column(grid, "JOINED", TABLE_RIGHT, 0, 3);
	report_grid_column(grid, "BY TIME", TABLE_RIGHT, 0, 6);
	report_grid_column(grid, "P5", TABLE_RIGHT, 0, 1);
	report_grid_column(grid, "P25", TABLE_RIGHT, 0, 5);
	report_grid_column(grid, "P50", TABLE_RIGHT, 0, 0);
	report_grid_column(grid, "P75", TABLE_RIGHT, 0, 5);
	report_grid_column(grid, "P95", TABLE_RIGHT, 0, 1);
	for (size_t i = 0; i < comparison->accuracy_count; i++)
		if ((comparison->accuracy[i].function != 0) == has_function)
			accuracy_row(grid, comparison, &comparison->accuracy[i], has_function);
}

/* ---- overhead --------------------------------------------------------------------------------- */

const char *profilers_verdict_text(const struct profilers_overhead *row)
{
	static const char *const texts[] = { [PROFILERS_NO_DIFFERENCE] = "no difference shown",
					     [PROFILERS_SLOWER] = "slower",
					     [PROFILERS_FASTER] = "faster",
					     [PROFILERS_NOT_KNOWN] = "too few runs to say" };

	return texts[profilers_verdict(row)];
}

static void interval_cell(struct report_grid *grid, const struct bench_ratio *ratio,
			  bool has_interval)
{
	if (has_interval)
		report_grid_cellf(grid, "%.3f to %.3f", ratio->low, ratio->high);
	else
		report_grid_cell(grid, "-");
}

/* "41.2 us (38.0 us to 60.1 us)": the median, and what nine of ten calls lie between, if there are so many. */
static void spread_cell(struct report_grid *grid, const struct profilers_quantiles *times)
{
	char p05[UNITS_TEXT], p50[UNITS_TEXT], p95[UNITS_TEXT];

	if (times->p50 > 0 && (isnan(times->p05) || isnan(times->p95)))
		report_grid_cell(grid, units_duration(p50, (uint64_t)(times->p50 + 0.5)));
	else if (times->p50 > 0)
		report_grid_cellf(grid, "%s (%s to %s)",
				  units_duration(p50, (uint64_t)(times->p50 + 0.5)),
				  units_duration(p05, (uint64_t)(times->p05 + 0.5)),
				  units_duration(p95, (uint64_t)(times->p95 + 0.5)));
	else
		report_grid_cell(grid, "-");
}

static void ratio_cells(struct report_grid *grid, const struct profilers_overhead *row,
			bool has_times)
{
	if (row == NULL) {
		for (unsigned int i = 0; i < (has_times ? 5 : 3); i++)
			report_grid_cell(grid, "-");
		return;
	}
	if (has_times) {
		spread_cell(grid, &row->without_ns);
		spread_cell(grid, &row->with_ns);
	}
	report_grid_cellf(grid, "%.3f", row->ratio.ratio);
	interval_cell(grid, &row->ratio, row->has_interval);
	report_grid_cell(grid, profilers_verdict_text(row));
}

/* The same on the other clock; NULL: it was not taken. */
static const struct profilers_overhead *on_host(const struct profilers_comparison *comparison,
						const struct profilers_overhead *row)
{
	for (size_t i = 0; i < comparison->overhead_count; i++) {
		const struct profilers_overhead *other = &comparison->overhead[i];

		if (other->clock == BENCH_ISSUE && other->plugin == row->plugin &&
		    other->mode == row->mode && other->function == row->function &&
		    other->bytes == row->bytes)
			return other;
	}
	return NULL;
}

static void overhead_row(struct report_grid *grid, const struct profilers_comparison *comparison,
			 const struct profilers_overhead *row, enum profilers_table which)
{
	bool has_times = which == PROFILERS_TABLE_OVERHEAD_CELLS;
	char text[PROFILERS_SHORT_TEXT];

	report_grid_cell(grid, comparison->plugins[row->plugin].label);
	report_grid_cell(grid, mode_text(row->mode));
	if (has_times)
		report_grid_cell(grid, op_function_name(row->function));
	if (which != PROFILERS_TABLE_OVERHEAD)
		report_grid_cell(grid, profilers_size_text(text, row->bytes, 0));
	ratio_cells(grid, row, has_times);
	ratio_cells(grid, on_host(comparison, row), has_times);
	count_cell(grid, row->runs);
	count_cell(grid, row->calls);
}

static bool is_overhead_shown(const struct profilers_overhead *row, enum profilers_table which)
{
	if (row->clock != BENCH_GPU)
		return false;
	if (which == PROFILERS_TABLE_OVERHEAD)
		return row->function == 0 && row->bytes == 0;
	if (which == PROFILERS_TABLE_OVERHEAD_BY_SIZE)
		return row->function == 0 && row->bytes != 0;
	return row->function != 0 && row->bytes != 0;
}

static void ratio_columns(struct report_grid *grid, bool is_host, bool has_times)
{
	unsigned int rank = is_host ? 3 : 0;

	if (has_times) {
		report_grid_column(grid, is_host ? "HOST WITHOUT" : "GPU WITHOUT", TABLE_RIGHT, 0,
				   rank + 2);
		report_grid_column(grid, is_host ? "HOST WITH" : "GPU WITH", TABLE_RIGHT, 0,
				   rank + 2);
	}
	report_grid_column(grid, is_host ? "HOST" : "GPU", TABLE_RIGHT, 0, rank);
	report_grid_column(grid, "95 % INTERVAL", TABLE_RIGHT, 0, rank);
	report_grid_column(grid, "VERDICT", TABLE_LEFT, 0, rank + 1);
}

void profilers_tables_overhead(struct report_grid *grid,
			       const struct profilers_comparison *comparison,
			       enum profilers_table which)
{
	bool has_times = which == PROFILERS_TABLE_OVERHEAD_CELLS;

	report_grid_column(grid, "PLUGIN", TABLE_LEFT, 12, 0);
	report_grid_column(grid, "MODE", TABLE_LEFT, 0, 0);
	if (has_times)
		report_grid_column(grid, "OPERATION", TABLE_LEFT, 0, 0);
	if (which != PROFILERS_TABLE_OVERHEAD)
		report_grid_column(grid, "SIZE", TABLE_RIGHT, 0, 0);
	ratio_columns(grid, false, has_times);
	ratio_columns(grid, true, has_times);
	report_grid_column(grid, "RUNS", TABLE_RIGHT, 0, 6);
	report_grid_column(grid, "CALLS", TABLE_RIGHT, 0, 7);
	for (size_t i = 0; i < comparison->overhead_count; i++)
		if (is_overhead_shown(&comparison->overhead[i], which))
			overhead_row(grid, comparison, &comparison->overhead[i], which);
}

/* ---- training --------------------------------------------------------------------------------- */

static void recorded_cell(struct report_grid *grid, const struct profilers_train *row,
			  uint64_t issued, uint64_t recorded)
{
	char a[UNITS_TEXT], b[UNITS_TEXT];

	if (row->plugin == 0)
		report_grid_cell(grid, "-");
	else if (!row->is_read)
		report_grid_cell(grid, row->runs ? "not readable" : "failed");
	else if (!row->is_counted)
		report_grid_cellf(grid, "%s of unknown", units_count(a, recorded));
	else
		report_grid_cellf(grid, "%s of %s", units_count(a, recorded),
				  units_count(b, issued));
}

static void note_functions(struct report_grid *grid, const struct profilers_train *row)
{
	for (uint8_t function = 0; function < OP_FUNCTIONS; function++) {
		char a[UNITS_TEXT], b[UNITS_TEXT];

		if (row->is_read && row->is_counted &&
		    row->recorded[function] != row->issued[function])
			report_grid_note(grid, "%s: %s recorded of %s", op_function_name(function),
					 units_count(a, row->recorded[function]),
					 units_count(b, row->issued[function]));
	}
	if (row->has_comm && !row->is_comm_by_time)
		report_grid_note(
			grid,
			"communication of all epochs, and before and behind them, is included");
	if (row->problem[0] != '\0')
		report_grid_note(grid, "%s", row->problem);
}

static void training_row(struct report_grid *grid, const struct profilers_comparison *comparison,
			 const struct profilers_train *row)
{
	uint64_t issued = 0, recorded = 0;

	for (size_t i = 0; i < OP_FUNCTIONS; i++) {
		issued += row->issued[i];
		recorded += row->recorded[i];
	}
	report_grid_cell(grid, comparison->plugins[row->plugin].label);
	time_cell(grid, row->epoch_ns);
	time_cell(grid, row->has_comm ? row->comm_ns : 0);
	if (row->has_comm)
		report_grid_cellf(grid, "%.1f %%", row->comm_share * 100);
	else
		report_grid_cell(grid, "-");
	recorded_cell(grid, row, issued, recorded);
	if (row->is_read)
		count_cell(grid, row->untimed);
	else
		report_grid_cell(grid, "-");
	if (row->slowdown.ratio > 0)
		report_grid_cellf(grid, "%.3f", row->slowdown.ratio);
	else
		report_grid_cell(grid, "-");
	if (row->slowdown.ratio > 0 && !row->has_interval)
		report_grid_cell(grid, "too few runs");
	else
		interval_cell(grid, &row->slowdown, row->has_interval);
	report_grid_cellf(grid, "%" PRIu32 " x %" PRIu32, row->runs, row->epochs);
	note_functions(grid, row);
}

void profilers_tables_training(struct report_grid *grid,
			       const struct profilers_comparison *comparison)
{
	report_grid_column(grid, "PLUGIN", TABLE_LEFT, 12, 0);
	report_grid_column(grid, "EPOCH", TABLE_RIGHT, 0, 0);
	report_grid_column(grid, "COMMUNICATION", TABLE_RIGHT, 0, 1);
	report_grid_column(grid, "SHARE", TABLE_RIGHT, 0, 3);
	report_grid_column(grid, "RECORDED", TABLE_RIGHT, 0, 0);
	report_grid_column(grid, "NO TIME", TABLE_RIGHT, 0, 5);
	report_grid_column(grid, "SLOW-DOWN", TABLE_RIGHT, 0, 2);
	report_grid_column(grid, "95 % INTERVAL", TABLE_RIGHT, 0, 2);
	report_grid_column(grid, "RUNS X EPOCHS", TABLE_RIGHT, 0, 4);
	for (size_t i = 0; i < comparison->training_count; i++)
		training_row(grid, comparison, &comparison->training[i]);
}
