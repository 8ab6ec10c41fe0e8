/* A comparison as tables and sentences. */
#include "bench/profilers.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/op.h"
#include "common/text.h"

static const char *mode_text(uint8_t mode)
{
	return mode ? bench_mode_name(mode) : "all";
}

static void time_cell(struct report_grid *grid, double time_ns)
{
	char text[UNITS_TEXT];

	report_grid_cell(grid, time_ns > 0 ? units_duration(text, (uint64_t)(time_ns + 0.5)) : "-");
}

static void grid_count(struct report_grid *grid, uint64_t count)
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
		report_grid_cell(grid, "100%");
	else if (joined == 0)
		report_grid_cell(grid, "none");
	else
		report_grid_cellf(grid, "%.2f%%",
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
	grid_count(grid, row->calls);
	joined_cell(grid, row);
	if (row->by_time > 0)
		grid_count(grid, row->by_time);
	else
		report_grid_cell(grid, "-");
	for (size_t i = 0; i < 5; i++)
		if (row->ratio.p50 > 0 && !isnan(quantiles[i]))
			report_grid_cellf(grid, "%.3f", quantiles[i]);
		else
			report_grid_cell(grid, "-");
}

static void profilers_tables_accuracy(struct report_grid *grid,
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
	report_grid_column(grid, "MATCHED", TABLE_RIGHT, 0, 3);
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

/* "slower", "faster", "no significant difference", "too few runs". */
static const char *profilers_verdict_text(const struct profilers_overhead *row)
{
	static const char *const texts[] = { [PROFILERS_NO_DIFFERENCE] =
						     "no significant difference",
					     [PROFILERS_SLOWER] = "slower",
					     [PROFILERS_FASTER] = "faster",
					     [PROFILERS_NOT_KNOWN] = "too few runs" };

	return texts[profilers_verdict(row)];
}

static void interval_cell(struct report_grid *grid, const struct bench_ratio *ratio,
			  bool has_interval)
{
	if (has_interval)
		report_grid_cellf(grid, "%.3f-%.3f", ratio->low, ratio->high);
	else
		report_grid_cell(grid, "-");
}

/* "41.2 us (38.0 us to 60.1 us)": the median, and the range of nine of ten calls if there are enough. */
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

/* The same row for the other clock; NULL: not measured. */
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
	grid_count(grid, row->runs);
	grid_count(grid, row->calls);
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
	report_grid_column(grid, "95% INTERVAL", TABLE_RIGHT, 0, rank);
	report_grid_column(grid, "VERDICT", TABLE_LEFT, 0, rank + 1);
}

static void profilers_tables_overhead(struct report_grid *grid,
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
		report_grid_note(grid, "includes communication outside the compared epochs");
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
		report_grid_cellf(grid, "%.1f%%", row->comm_share * 100);
	else
		report_grid_cell(grid, "-");
	recorded_cell(grid, row, issued, recorded);
	if (row->is_read)
		grid_count(grid, row->untimed);
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

static void profilers_tables_training(struct report_grid *grid,
				      const struct profilers_comparison *comparison)
{
	report_grid_column(grid, "PLUGIN", TABLE_LEFT, 12, 0);
	report_grid_column(grid, "EPOCH", TABLE_RIGHT, 0, 0);
	report_grid_column(grid, "COMMUNICATION", TABLE_RIGHT, 0, 1);
	report_grid_column(grid, "SHARE", TABLE_RIGHT, 0, 3);
	report_grid_column(grid, "RECORDED", TABLE_RIGHT, 0, 0);
	report_grid_column(grid, "NO TIME", TABLE_RIGHT, 0, 5);
	report_grid_column(grid, "SLOW-DOWN", TABLE_RIGHT, 0, 2);
	report_grid_column(grid, "95% INTERVAL", TABLE_RIGHT, 0, 2);
	report_grid_column(grid, "RUNS X EPOCHS", TABLE_RIGHT, 0, 4);
	for (size_t i = 0; i < comparison->training_count; i++)
		training_row(grid, comparison, &comparison->training[i]);
}

/* Completeness, and texts shared by all tables. */

enum { SIZES_MAX = 256, RANKS_SHOWN = 64 };

static const struct {
	const char *title;
	const char *words;
} tables[PROFILERS_TABLES] = {
	[PROFILERS_TABLE_COMPLETE] = { "Completeness: share of issued calls that were recorded",
				       "Over all runs whose output could be read; includes "
				       "warm-up, checks and the AllReduces that align ranks. NO "
				       "TIME: recorded without a duration. REPORTED LOST: losses "
				       "reported by the plugin itself." },
	[PROFILERS_TABLE_BY_FUNCTION] = { "Completeness by operation", "" },
	[PROFILERS_TABLE_BY_SIZE] = { "Completeness by size", "Measured sizes; +N: N more were "
							      "recorded than issued." },
	[PROFILERS_TABLE_BY_RANK] = { "Completeness by rank", "" },
	[PROFILERS_TABLE_ACCURACY] = { "Accuracy: reported time / measured time of the same call",
				       "Measured between CUDA events around the call on the same "
				       "rank. Below 1 for small messages: a kernel's time does not "
				       "include its launch. TIMES FROM: kernel_gpu is the kernel "
				       "on the GPU's clock, cuda_event the time between CUDA "
				       "events around its launch, proxy the network proxy thread, "
				       "host the host's clock. MATCHED: calls that have a record "
				       "with a "
				       "time; BY TIME: of these, matched by the time of the call, "
				       "because some records are missing." },
	[PROFILERS_TABLE_OVERHEAD] = { "Overhead: time per call with the plugin / time without",
				       "Ratio of medians, geometric mean over operations and "
				       "sizes, with the 95% interval over pairs of runs. GPU: "
				       "between CUDA events; HOST: inside the call, on the calling "
				       "thread." },
	[PROFILERS_TABLE_OVERHEAD_BY_SIZE] = { "Overhead by size",
					       "The page (--html) and the JSON have each operation "
					       "and size separately, with the spread of its calls "
					       "with and without the plugin." },
	[PROFILERS_TABLE_TRAINING] = { "Training: DenseNet-121",
				       "Calls as counted between program and NCCL; communication "
				       "time as reported by the plugin; the first epoch of each "
				       "run is not compared." },
	[PROFILERS_TABLE_ACCURACY_CELLS] = { "Accuracy by operation and size", "" },
	[PROFILERS_TABLE_OVERHEAD_CELLS] = { "Overhead by operation and size",
					     "Times are medians of single calls, with their 5% and "
					     "95% percentiles in parentheses. 95% interval: runs "
					     "are resampled, and calls within them; 5 of 100 such "
					     "intervals miss by chance." },
};

const char *profilers_table_title(enum profilers_table which)
{
	return tables[which].title;
}

const char *profilers_table_words(enum profilers_table which)
{
	return tables[which].words;
}

const char *profilers_size_text(char to[static PROFILERS_SHORT_TEXT], uint64_t bytes,
				uint64_t bytes_to)
{
	char from_text[UNITS_TEXT], to_text[UNITS_TEXT];

	if (bytes == PROFILERS_BYTES_UNKNOWN)
		text_copy(to, PROFILERS_SHORT_TEXT, "unknown size");
	else if (bytes_to == 0)
		text_copy(to, PROFILERS_SHORT_TEXT, units_bytes(from_text, bytes));
	else if (bytes_to == UINT64_MAX)
		text_format(to, PROFILERS_SHORT_TEXT, "from %s", units_bytes(from_text, bytes));
	else
		text_format(to, PROFILERS_SHORT_TEXT, "%s to %s", units_bytes(from_text, bytes),
			    units_bytes(to_text, bytes_to));
	return to;
}

static const char *no_share_text(const struct profilers_comparison *comparison,
				 const struct profilers_which *which)
{
	const struct profilers_jobs *jobs = profilers_jobs_of(
		comparison, (unsigned int)which->plugin, (unsigned int)which->mode);

	if (jobs == NULL)
		return "not run";
	return jobs->read + jobs->unreadable > 0 ? "not readable" : "failed";
}

/* "100%" means all, nothing is rounded up to it; "not readable", "failed", "not run". */
static const char *profilers_share_text(char to[static PROFILERS_SHORT_TEXT],
					const struct profilers_comparison *comparison,
					const struct profilers_which *which)
{
	struct profilers_counts counts = profilers_counts(comparison, which);
	char excess[UNITS_TEXT + 4] = "", count[UNITS_TEXT];

	if (!profilers_is_judged(comparison, (unsigned int)which->plugin,
				 (unsigned int)which->mode))
		return no_share_text(comparison, which);
	if (counts.issued == 0 && counts.recorded == 0)
		return "-";
	if (counts.excess > 0)
		snprintf(excess, sizeof(excess), " +%s", units_count(count, counts.excess));
	if (counts.issued == 0)
		text_copy(to, PROFILERS_SHORT_TEXT, excess + 1);
	else if (counts.missing == 0)
		text_format(to, PROFILERS_SHORT_TEXT, "100%%%s", excess);
	else
		text_format(to, PROFILERS_SHORT_TEXT, "%.2f%%%s",
			    floor(profilers_share(&counts) * 10000) / 100, excess);
	return to;
}

/* Appends known parts, separated by commas. */
static void add_words(char *to, size_t size, const char *words)
{
	if (words[0] != '\0')
		text_append(to, size, "%s%s", to[0] ? ", " : "", words);
}

const char *profilers_place_text(char to[static PROFILERS_PLACE_TEXT],
				 const struct profilers_comparison *comparison)
{
	int32_t nccl = comparison->nccl_version, cuda = comparison->cuda_version;
	char words[160];

	to[0] = '\0';
	text_format(words, sizeof(words), "%s%s%s", comparison->gpu,
		    comparison->gpu[0] && comparison->host[0] ? " on " : "", comparison->host);
	add_words(to, PROFILERS_PLACE_TEXT, words);
	text_format(words, sizeof(words), "%" PRId32 " %s%s%s", comparison->nranks,
		    text_which((uint64_t)comparison->nranks, "rank", "ranks"),
		    comparison->is_gpu_shared ? " sharing one GPU" : "",
		    comparison->is_mps ? " (MPS)" : "");
	if (comparison->nranks > 0)
		add_words(to, PROFILERS_PLACE_TEXT, words);
	text_format(words, sizeof(words), "NCCL %d.%d.%d", nccl / 10000, nccl / 100 % 100,
		    nccl % 100);
	if (nccl > 0)
		add_words(to, PROFILERS_PLACE_TEXT, words);
	text_format(words, sizeof(words), "CUDA %d.%d", cuda / 1000, cuda % 1000 / 10);
	if (cuda > 0)
		add_words(to, PROFILERS_PLACE_TEXT, words);
	return to[0] ? to : "unknown host";
}

const char *profilers_amount_text(char to[static PROFILERS_PLACE_TEXT],
				  const struct profilers_comparison *comparison)
{
	char calls[UNITS_TEXT], when[UNITS_TEXT];

	/* Seconds are precise enough. */
	units_wall_time(when, comparison->started_ns);
	text_copy(when + strcspn(when, "."), 2, "Z");
	if (comparison->calls == 0)
		return comparison->training_count ? "training only" : "no job was run";
	text_format(to, PROFILERS_PLACE_TEXT,
		    "%" PRIu32 " %s each, alternating; %s measured calls per rank in total; "
		    "started %s",
		    comparison->runs, text_which(comparison->runs, "run", "runs"),
		    units_count(calls, comparison->calls),
		    comparison->started_ns ? when : "at an unknown time");
	return to;
}

/* ---- plugin x mode ---------------------------------------------------------------------------- */

static const char *jobs_text(char to[static PROFILERS_SHORT_TEXT],
			     const struct profilers_jobs *jobs)
{
	const struct {
		uint32_t count;
		const char *name;
	} parts[] = { { jobs->read, "read" },
		      { jobs->silent, "without output" },
		      { jobs->unreadable, "not readable" },
		      { jobs->failed, "failed" } };

	to[0] = '\0';
	for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
		if (parts[i].count > 0)
			text_append(to, PROFILERS_SHORT_TEXT, "%s%" PRIu32 " %s", to[0] ? ", " : "",
				    parts[i].count, parts[i].name);
	return to;
}

static void complete_row(struct report_grid *grid, const struct profilers_comparison *comparison,
			 const struct profilers_jobs *jobs)
{
	struct profilers_which which = PROFILERS_WHICH_ALL;
	struct profilers_counts counts;
	char text[PROFILERS_SHORT_TEXT];
	bool is_judged = profilers_is_judged(comparison, jobs->plugin, jobs->mode);

	which.plugin = jobs->plugin;
	which.mode = jobs->mode;
	counts = profilers_counts(comparison, &which);
	report_grid_cell(grid, comparison->plugins[jobs->plugin].label);
	report_grid_cell(grid, bench_mode_name(jobs->mode));
	report_grid_cell(grid, profilers_share_text(text, comparison, &which));
	if (is_judged) {
		grid_count(grid, counts.issued);
		grid_count(grid, counts.recorded);
		grid_count(grid, counts.missing);
		grid_count(grid, counts.excess);
		grid_count(grid, counts.untimed);
	} else {
		for (unsigned int i = 0; i < 5; i++)
			report_grid_cell(grid, "-");
	}
	if (jobs->tells_lost)
		grid_count(grid, jobs->lost);
	else
		report_grid_cell(grid, "-");
	report_grid_cell(grid, jobs_text(text, jobs));
	if (jobs->problem[0] != '\0')
		report_grid_note(grid, "%s", jobs->problem);
}

static void fill_complete(struct report_grid *grid, const struct profilers_comparison *comparison)
{
	report_grid_column(grid, "PLUGIN", TABLE_LEFT, 12, 0);
	report_grid_column(grid, "MODE", TABLE_LEFT, 0, 0);
	report_grid_column(grid, "COMPLETE", TABLE_RIGHT, 0, 0);
	report_grid_column(grid, "ISSUED", TABLE_RIGHT, 0, 2);
	report_grid_column(grid, "RECORDED", TABLE_RIGHT, 0, 1);
	report_grid_column(grid, "MISSING", TABLE_RIGHT, 0, 3);
	report_grid_column(grid, "SURPLUS", TABLE_RIGHT, 0, 4);
	report_grid_column(grid, "NO TIME", TABLE_RIGHT, 0, 5);
	report_grid_column(grid, "REPORTED LOST", TABLE_RIGHT, 0, 6);
	report_grid_column(grid, "JOBS", TABLE_LEFT, 0, 7);
	for (size_t i = 0; i < comparison->job_count; i++)
		if (comparison->jobs[i].plugin > 0)
			complete_row(grid, comparison, &comparison->jobs[i]);
}

/* ---- a row for each function, size or rank, a column for each mode ----------------------------- */

static bool has_mode(const struct profilers_comparison *comparison, unsigned int mode)
{
	for (size_t i = 0; i < comparison->job_count; i++)
		if (comparison->jobs[i].mode == mode)
			return true;
	return false;
}

static void mode_columns(struct report_grid *grid, const struct profilers_comparison *comparison,
			 const char *title, enum table_align align)
{
	static const char *const titles[BENCH_MODES] = { [BENCH_BLOCKING] = "BLOCKING",
							 [BENCH_BACK_TO_BACK] = "BACK-TO-BACK",
							 [BENCH_GRAPH] = "GRAPH",
							 [BENCH_LOOP] = "LOOP" };

	report_grid_column(grid, "PLUGIN", TABLE_LEFT, 12, 0);
	report_grid_column(grid, title, align, 0, 0);
	for (unsigned int mode = 1; mode < BENCH_MODES; mode++)
		if (has_mode(comparison, mode))
			report_grid_column(grid, titles[mode], TABLE_RIGHT, 0, 0);
}

/* No row if this plugin has nothing in any mode. */
static void mode_cells(struct report_grid *grid, const struct profilers_comparison *comparison,
		       const struct profilers_which *row, const char *name)
{
	struct profilers_which which = *row;
	struct profilers_counts counts = profilers_counts(comparison, row);
	char text[PROFILERS_SHORT_TEXT];

	if (counts.issued == 0 && counts.recorded == 0)
		return;
	report_grid_cell(grid, comparison->plugins[row->plugin].label);
	report_grid_cell(grid, name);
	for (unsigned int mode = 1; mode < BENCH_MODES; mode++) {
		which.mode = (int)mode;
		if (has_mode(comparison, mode))
			report_grid_cell(grid, profilers_share_text(text, comparison, &which));
	}
}

static void fill_by_function(struct report_grid *grid,
			     const struct profilers_comparison *comparison)
{
	mode_columns(grid, comparison, "OPERATION", TABLE_LEFT);
	for (size_t plugin = 1; plugin < comparison->plugin_count; plugin++)
		for (unsigned int function = 0; function < OP_FUNCTIONS; function++) {
			struct profilers_which which = PROFILERS_WHICH_ALL;

			which.plugin = (int)plugin;
			which.function = (int)function;
			mode_cells(grid, comparison, &which, op_function_name((uint8_t)function));
		}
}

struct sizes {
	uint64_t from[SIZES_MAX];
	uint64_t to[SIZES_MAX];
	size_t count;
};

/* Sizes are ascending within a function only, so each is inserted at its position. */
static void add_size(struct sizes *sizes, uint64_t from, uint64_t to)
{
	size_t at = 0;

	while (at < sizes->count &&
	       (sizes->from[at] < from || (sizes->from[at] == from && sizes->to[at] < to)))
		at++;
	if (sizes->count == SIZES_MAX ||
	    (at < sizes->count && sizes->from[at] == from && sizes->to[at] == to))
		return;
	memmove(&sizes->from[at + 1], &sizes->from[at], (sizes->count - at) * sizeof(uint64_t));
	memmove(&sizes->to[at + 1], &sizes->to[at], (sizes->count - at) * sizeof(uint64_t));
	sizes->from[at] = from;
	sizes->to[at] = to;
	sizes->count++;
}

static void fill_by_size(struct report_grid *grid, const struct profilers_comparison *comparison)
{
	char text[PROFILERS_SHORT_TEXT];

	mode_columns(grid, comparison, "SIZE", TABLE_RIGHT);
	for (size_t plugin = 1; plugin < comparison->plugin_count; plugin++) {
		struct profilers_which which = PROFILERS_WHICH_ALL;
		struct sizes sizes = { .count = 0 };

		for (size_t i = 0; i < comparison->complete_count; i++)
			if (comparison->complete[i].plugin == plugin &&
			    !comparison->complete[i].is_align)
				add_size(&sizes, comparison->complete[i].bytes,
					 comparison->complete[i].bytes_to);
		which.plugin = (int)plugin;
		which.is_any_size = false;
		for (size_t i = 0; i < sizes.count; i++) {
			which.bytes = sizes.from[i];
			which.bytes_to = sizes.to[i];
			profilers_size_text(text, which.bytes, which.bytes_to);
			mode_cells(grid, comparison, &which, text);
		}
	}
}

static void fill_by_rank(struct report_grid *grid, const struct profilers_comparison *comparison)
{
	int32_t shown = comparison->nranks < RANKS_SHOWN ? comparison->nranks : RANKS_SHOWN;
	char name[PROFILERS_SHORT_TEXT];

	mode_columns(grid, comparison, "RANK", TABLE_RIGHT);
	for (size_t plugin = 1; plugin < comparison->plugin_count; plugin++) {
		struct profilers_which which = PROFILERS_WHICH_ALL;

		which.plugin = (int)plugin;
		for (int32_t rank = 0; rank < shown; rank++) {
			which.rank = rank;
			text_format(name, sizeof(name), "%" PRId32, rank);
			mode_cells(grid, comparison, &which, name);
		}
		if (shown < comparison->nranks && grid->table.used > 0)
			report_grid_note(grid, "and %" PRId32 " more ranks: use --json to get them",
					 comparison->nranks - shown);
	}
}

void profilers_table_fill(struct report_grid *grid, const struct profilers_comparison *comparison,
			  enum profilers_table which)
{
	switch (which) {
	case PROFILERS_TABLE_COMPLETE:
		fill_complete(grid, comparison);
		break;
	case PROFILERS_TABLE_BY_FUNCTION:
		fill_by_function(grid, comparison);
		break;
	case PROFILERS_TABLE_BY_SIZE:
		fill_by_size(grid, comparison);
		break;
	case PROFILERS_TABLE_BY_RANK:
		fill_by_rank(grid, comparison);
		break;
	case PROFILERS_TABLE_ACCURACY:
	case PROFILERS_TABLE_ACCURACY_CELLS:
		profilers_tables_accuracy(grid, comparison, which);
		break;
	case PROFILERS_TABLE_TRAINING:
		profilers_tables_training(grid, comparison);
		break;
	default:
		profilers_tables_overhead(grid, comparison, which);
	}
}

enum { INTERVAL_TEXT = 96 };

/* Appends a part, after `glue` if it is not the first. */
static void sentence_add(char to[static PROFILERS_SHORT_SENTENCE], const char *glue,
			 const char *text)
{
	text_append(to, PROFILERS_SHORT_SENTENCE, "%s%s", glue, text);
}

static void add_complete(char to[static PROFILERS_SHORT_SENTENCE],
			 const struct profilers_comparison *comparison, size_t plugin)
{
	const char *glue = "calls recorded: ";
	char share[PROFILERS_SHORT_TEXT];

	for (unsigned int mode = 1; mode < BENCH_MODES; mode++) {
		struct profilers_which which = PROFILERS_WHICH_ALL;

		if (profilers_jobs_of(comparison, (unsigned int)plugin, mode) == NULL)
			continue;
		which.plugin = (int)plugin;
		which.mode = (int)mode;
		sentence_add(to, glue, profilers_share_text(share, comparison, &which));
		sentence_add(to, " (", bench_mode_name(mode));
		sentence_add(to, ")", "");
		glue = ", ";
	}
}

/* Over all functions and sizes; mode 0: over all modes, too. */
static const struct profilers_overhead *overhead_over_all(
	const struct profilers_comparison *comparison, size_t plugin, unsigned int mode,
	uint8_t clock)
{
	for (size_t i = 0; i < comparison->overhead_count; i++) {
		const struct profilers_overhead *row = &comparison->overhead[i];

		if (row->plugin == plugin && row->clock == clock && row->mode == mode &&
		    row->function == 0 && row->bytes == 0)
			return row;
	}
	return NULL;
}

static void add_ratio(char to[static PROFILERS_SHORT_SENTENCE], const char *what, double ratio,
		      const char *interval)
{
	char text[160];

	text_format(text, sizeof(text), "%s %.3fx (%s)", what, ratio, interval);
	sentence_add(to, to[0] == '\0' ? "" : "; ", text);
}

static const char *interval_text(char to[static INTERVAL_TEXT],
				 const struct profilers_overhead *row)
{
	if (row->has_interval)
		text_format(to, INTERVAL_TEXT, "%.3f-%.3f: %s", row->ratio.low, row->ratio.high,
			    profilers_verdict_text(row));
	else
		text_copy(to, INTERVAL_TEXT, profilers_verdict_text(row));
	return to;
}

/* A single mode may show what the combination of all modes hides. */
static void add_overhead(char to[static PROFILERS_SHORT_SENTENCE],
			 const struct profilers_comparison *comparison, size_t plugin,
			 uint8_t clock)
{
	const struct profilers_overhead *row = overhead_over_all(comparison, plugin, 0, clock);
	char interval[INTERVAL_TEXT], text[INTERVAL_TEXT + 64];

	if (row == NULL)
		return;
	add_ratio(to, clock == BENCH_GPU ? "GPU time per call" : "host time in the call",
		  row->ratio.ratio, interval_text(interval, row));
	for (unsigned int mode = 1; mode < BENCH_MODES; mode++) {
		const struct profilers_overhead *one =
			overhead_over_all(comparison, plugin, mode, clock);
		enum profilers_verdict verdict = one ? profilers_verdict(one) : PROFILERS_NOT_KNOWN;

		if ((verdict != PROFILERS_SLOWER && verdict != PROFILERS_FASTER) ||
		    verdict == profilers_verdict(row))
			continue;
		text_format(text, sizeof(text), "%s %.3fx (%s)", bench_mode_name(mode),
			    one->ratio.ratio, interval_text(interval, one));
		sentence_add(to, ", ", text);
	}
}

static void add_training_calls(char to[static PROFILERS_SHORT_SENTENCE],
			       const struct profilers_train *row)
{
	char text[2 * UNITS_TEXT + 64], a[UNITS_TEXT], b[UNITS_TEXT];
	uint64_t issued = 0, recorded = 0;

	for (size_t i = 0; i < OP_FUNCTIONS; i++) {
		issued += row->issued[i];
		recorded += row->recorded[i];
	}
	if (!row->is_read || !row->is_counted)
		return;
	text_format(text, sizeof(text), "calls of the training recorded: %s of %s",
		    units_count(a, recorded), units_count(b, issued));
	sentence_add(to, to[0] == '\0' ? "" : "; ", text);
}

static void add_training(char to[static PROFILERS_SHORT_SENTENCE],
			 const struct profilers_comparison *comparison, size_t plugin)
{
	for (size_t i = 0; i < comparison->training_count; i++) {
		const struct profilers_train *row = &comparison->training[i];
		char interval[INTERVAL_TEXT] = "too few runs";

		if (row->plugin != plugin)
			continue;
		add_training_calls(to, row);
		if (row->has_interval)
			text_format(interval, sizeof(interval), "%.3f-%.3f: %s", row->slowdown.low,
				    row->slowdown.high,
				    row->slowdown.low > 1    ? "slower"
				    : row->slowdown.high < 1 ? "faster"
							     : "no significant difference");
		if (row->slowdown.ratio > 0)
			add_ratio(to, "time per epoch", row->slowdown.ratio, interval);
	}
}

const char *profilers_short(char to[static PROFILERS_SHORT_SENTENCE],
			    const struct profilers_comparison *comparison, size_t plugin)
{
	to[0] = '\0';
	add_complete(to, comparison, plugin);
	add_overhead(to, comparison, plugin, BENCH_GPU);
	add_overhead(to, comparison, plugin, BENCH_ISSUE);
	add_training(to, comparison, plugin);
	return to;
}

static void write_head(struct sink *sink, const struct profilers_comparison *comparison,
		       unsigned int width)
{
	char text[PROFILERS_PLACE_TEXT];

	table_wrap(sink, "Comparison of NCCL profilers", "", 0, width);
	if (comparison->command[0] != '\0')
		table_wrap(sink, comparison->command, "  $ ", 4, width);
	table_wrap(sink, profilers_place_text(text, comparison), "  ", 2, width);
	table_wrap(sink, profilers_amount_text(text, comparison), "  ", 2, width);
	for (size_t i = 1; i < comparison->plugin_count; i++) {
		const struct profilers_plugin *plugin = &comparison->plugins[i];

		sink_format(sink, "  %s: %s (output: %s)\n", plugin->label, plugin->path,
			    profilers_kind_name(plugin->kind));
	}
}

static void write_short(struct sink *sink, const struct profilers_comparison *comparison,
			unsigned int width)
{
	char text[PROFILERS_SHORT_SENTENCE], first[PROFILERS_SHORT_TEXT + 8];

	sink_text(sink, "\nSummary\n\n");
	for (size_t i = 1; i < comparison->plugin_count; i++) {
		text_format(first, sizeof(first), "- %s: ", comparison->plugins[i].label);
		profilers_short(text, comparison, i);
		table_wrap(sink, text[0] != '\0' ? text : "no results", first, 2, width);
	}
}

static enum status write_table(struct sink *sink, const struct profilers_comparison *comparison,
			       enum profilers_table which, unsigned int width)
{
	struct report_grid grid;
	enum status status = OK;

	report_grid_init(&grid);
	profilers_table_fill(&grid, comparison, which);
	if (grid.table.used > 0 || grid.table.is_broken) {
		sink_format(sink, "\n%s\n\n", profilers_table_title(which));
		status = report_grid_write(&grid, sink, width, NULL);
		if (profilers_table_words(which)[0] != '\0') {
			sink_text(sink, "\n");
			table_wrap(sink, profilers_table_words(which), "", 0, width);
		}
	}
	report_grid_release(&grid);
	return status;
}

/* A figure, and the tables with its numbers, up to but excluding `end`. */
static const struct {
	enum profilers_figure figure;
	enum profilers_table first;
	enum profilers_table end;
} text_parts[] = {
	{ PROFILERS_FIGURE_COMPLETE, PROFILERS_TABLE_COMPLETE, PROFILERS_TABLE_ACCURACY },
	{ PROFILERS_FIGURE_ACCURACY, PROFILERS_TABLE_ACCURACY, PROFILERS_TABLE_OVERHEAD },
	{ PROFILERS_FIGURE_OVERHEAD, PROFILERS_TABLE_OVERHEAD, PROFILERS_TABLE_TRAINING },
	{ PROFILERS_FIGURE_TRAINING, PROFILERS_TABLE_TRAINING, PROFILERS_TABLE_ACCURACY_CELLS },
};

static enum status write_part(struct sink *sink, const struct profilers_comparison *comparison,
			      size_t part, unsigned int width)
{
	enum profilers_figure figure = text_parts[part].figure;
	enum status status = OK;

	if (profilers_figure_is_there(comparison, figure)) {
		sink_format(sink, "\n%s\n", profilers_figure_title(figure));
		status = profilers_figure_text(sink, comparison, figure, width);
		sink_text(sink, "\n");
		table_wrap(sink, profilers_figure_words(figure), "", 0, width);
	}
	for (unsigned int i = text_parts[part].first; i < text_parts[part].end && status == OK; i++)
		status = write_table(sink, comparison, i, width);
	return status;
}

static void write_lines(struct sink *sink, const char *title,
			const char lines[][PROFILERS_TEXT_BYTES], size_t count, unsigned int width)
{
	if (count > 0)
		sink_format(sink, "\n%s\n\n", title);
	for (size_t i = 0; i < count; i++)
		table_wrap(sink, lines[i], "- ", 2, width);
}

enum status profilers_text_write(struct sink *sink, const struct profilers_comparison *comparison,
				 unsigned int width)
{
	enum status status = OK;

	write_head(sink, comparison, width);
	write_short(sink, comparison, width);
	for (size_t i = 0; i < ARRAY_LENGTH(text_parts) && status == OK; i++)
		status = write_part(sink, comparison, i, width);
	write_lines(sink, "Not run", comparison->not_run, comparison->not_run_count, width);
	write_lines(sink, "Notes", comparison->notes, comparison->note_count, width);
	if (comparison->notes_lost > 0)
		sink_format(sink, "- and %zu more notes that did not fit\n",
			    comparison->notes_lost);
	return status != OK ? status : sink->status;
}
