/* Completeness, and words that all tables share. */
#include "view/profilers_tables.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/op.h"
#include "common/text.h"

enum { SIZES_MAX = 256, RANKS_SHOWN = 64 };

static const struct {
	const char *title;
	const char *words;
} tables[PROFILERS_TABLES] = {
	[PROFILERS_TABLE_COMPLETE] = { "Completeness: calls recorded of calls issued",
				       "Over all runs whose output could be read; warm-up, checks "
				       "and the "
				       "AllReduces that keep ranks together are calls, too. NO "
				       "TIME: recorded "
				       "without a duration. TELLS LOST: what the plugin itself "
				       "says it lost." },
	[PROFILERS_TABLE_BY_FUNCTION] = { "Completeness by operation", "" },
	[PROFILERS_TABLE_BY_SIZE] = { "Completeness by size", "Measured sizes; +N: so many more "
							      "were recorded than issued." },
	[PROFILERS_TABLE_BY_RANK] = { "Completeness by rank", "" },
	[PROFILERS_TABLE_ACCURACY] = { "Accuracy: reported time over measured time of the same "
				       "call",
				       "Measured between CUDA events around the call on the same "
				       "rank. Below 1 for small messages: a kernel's time has no "
				       "launch in it. TIMES FROM: kernel_gpu is the kernel by the "
				       "GPU's clock, proxy what the thread that feeds the network "
				       "saw, host the host's clock. "
				       "JOINED: calls that were found among the records and have "
				       "a time there; BY TIME: of these, found by when they were "
				       "issued, because not all are there." },
	[PROFILERS_TABLE_OVERHEAD] = { "Overhead: time per call with the plugin over time without",
				       "Ratio of medians, geometric mean over operations and "
				       "sizes, with the 95 "
				       "% interval over pairs of runs. GPU: between CUDA events; "
				       "HOST: inside the "
				       "call, on the calling thread." },
	[PROFILERS_TABLE_OVERHEAD_BY_SIZE] = { "Overhead by size",
					       "Each operation and size by itself, with the spread "
					       "of its calls with and without the plugin, is on "
					       "the page (--html) and in the JSON." },
	[PROFILERS_TABLE_TRAINING] = { "Training: DenseNet-121",
				       "Calls as a counter between program and NCCL saw them; "
				       "communication "
				       "time as the plugin reports it; the first epoch of each run "
				       "is not "
				       "compared." },
	[PROFILERS_TABLE_ACCURACY_CELLS] = { "Accuracy by operation and size", "" },
	[PROFILERS_TABLE_OVERHEAD_CELLS] = { "Overhead by operation and size",
					     "Times are medians of single calls, in brackets 5 % "
					     "and 95 % of them. 95 % interval: runs resampled, and "
					     "calls within them; of a hundred such intervals five "
					     "miss by chance." },
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
		text_copy(to, PROFILERS_SHORT_TEXT, "size not told");
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

const char *profilers_share_text(char to[static PROFILERS_SHORT_TEXT],
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
		text_format(to, PROFILERS_SHORT_TEXT, "100 %%%s", excess);
	else
		text_format(to, PROFILERS_SHORT_TEXT, "%.2f %%%s",
			    floor(profilers_share(&counts) * 10000) / 100, excess);
	return to;
}

/* What is known, with commas between. */
static void add_words(char *to, size_t size, const char *words)
{
	size_t used = strlen(to);

	if (words[0] != '\0')
		text_format(to + used, size - used, "%s%s", used ? ", " : "", words);
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
	return to[0] ? to : "nothing is known about the machine";
}

const char *profilers_amount_text(char to[static PROFILERS_PLACE_TEXT],
				  const struct profilers_comparison *comparison)
{
	char calls[UNITS_TEXT], when[UNITS_TEXT];

	/* Seconds are fine enough. */
	units_wall_time(when, comparison->started_ns);
	text_copy(when + strcspn(when, "."), 2, "Z");
	if (comparison->calls == 0)
		return comparison->training_count ? "training alone" : "no job was run";
	text_format(to, PROFILERS_PLACE_TEXT,
		    "%" PRIu32 " %s of each, alternating; %s measured calls of each rank in all; "
		    "begun %s",
		    comparison->runs, text_which(comparison->runs, "run", "runs"),
		    units_count(calls, comparison->calls),
		    comparison->started_ns ? when : "at an unknown time");
	return to;
}

/* ---- plugin x mode ---------------------------------------------------------------------------- */

static void count_cell(struct report_grid *grid, uint64_t count)
{
	char text[UNITS_TEXT];

	report_grid_cell(grid, count ? units_count(text, count) : "0");
}

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
	size_t used = 0;

	to[0] = '\0';
	for (size_t i = 0; i < 4; i++)
		if (parts[i].count > 0 && used < PROFILERS_SHORT_TEXT) {
			text_format(to + used, PROFILERS_SHORT_TEXT - used, "%s%" PRIu32 " %s",
				    used ? ", " : "", parts[i].count, parts[i].name);
			used = strlen(to);
		}
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
		count_cell(grid, counts.issued);
		count_cell(grid, counts.recorded);
		count_cell(grid, counts.missing);
		count_cell(grid, counts.excess);
		count_cell(grid, counts.untimed);
	} else {
		for (unsigned int i = 0; i < 5; i++)
			report_grid_cell(grid, "-");
	}
	if (jobs->tells_lost)
		count_cell(grid, jobs->lost);
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
	report_grid_column(grid, "TOO MANY", TABLE_RIGHT, 0, 4);
	report_grid_column(grid, "NO TIME", TABLE_RIGHT, 0, 5);
	report_grid_column(grid, "TELLS LOST", TABLE_RIGHT, 0, 6);
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

/* Nothing of this plugin in any mode: no row. */
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

/* In the order of rows: ascending within a function, so they are inserted at their place. */
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
		if (shown < comparison->nranks && grid->used > 0)
			report_grid_note(grid, "and %" PRId32 " more ranks: --json has them",
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
