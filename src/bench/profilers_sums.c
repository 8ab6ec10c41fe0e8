/*
 * Time per call with a plugin divided by the time without. For one function, size and mode it comes from
 * bench_ratio_of(), with its interval. Over several of them it is the geometric mean: for each pair of runs the
 * mean of the logarithms of the ratios of medians, and over the pairs Student's interval, because runs differ more
 * than calls.
 */
#include "bench/profilers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "common/attributes.h"
#include "common/op.h"
#include "common/text.h"
#include "import/foreign.h"
#include "recording/recording.h"

enum { RUNS_FOR_INTERVAL = 3, SUMS_MAX = 1 << 14, SUM_KINDS = 4 };

/* Ratios of one or several cells, run by run. */
struct sum {
	struct profilers_overhead row;
	double logs[PROFILERS_RUNS_MAX];
	uint32_t cells[PROFILERS_RUNS_MAX];
};

static bool is_sample(const struct profilers_sample *a, const struct profilers_sample *b)
{
	return a->plugin == b->plugin && a->mode == b->mode && a->function == b->function &&
	       a->clock == b->clock && a->run == b->run && a->bytes == b->bytes;
}

static enum status add_times(struct profilers *work, const struct profilers_sample *like,
			     const struct bench_cell *cell)
{
	struct profilers_sample *list = work->samples.items, *sample = NULL;
	double *values;

	for (size_t i = work->samples.count; i-- > 0 && sample == NULL;)
		if (is_sample(&list[i], like))
			sample = &list[i];
	if (sample == NULL) {
		sample = profilers_list_add(&work->samples, PROFILERS_ROWS_MAX);
		if (sample == NULL)
			return ERR_NO_SPACE;
		*sample = *like;
	}
	values = realloc(sample->values, (sample->count + cell->calls) * sizeof(*values));
	if (values == NULL)
		return ERR_NO_SPACE;
	sample->values = values;
	sample->count +=
		bench_call_times(cell, like->clock, BENCH_OVER_MEAN, values + sample->count);
	return OK;
}

enum status profilers_take_times(struct profilers *work, const struct profilers_trial *trial)
{
	static const uint8_t clocks[] = { BENCH_GPU, BENCH_ISSUE };
	enum status status = OK;

	for (size_t i = 0; i < trial->bench->cell_count; i++) {
		const struct bench_cell *cell = &trial->bench->cells[i];

		for (size_t j = 0; j < 2 && cell->calls_of && status == OK; j++) {
			struct profilers_sample like = { .plugin = (uint8_t)trial->plugin,
							 .mode = cell->mode,
							 .function = cell->function,
							 .clock = clocks[j],
							 .run = trial->run,
							 .bytes = cell->bytes };

			status = add_times(work, &like, cell);
		}
	}
	return status;
}

static struct profilers_quantiles profilers_quantiles_of(double *values, size_t count)
{
	struct bench_figures figures = bench_figures_of(values, count);

	return (struct profilers_quantiles){ figures.p05, figures.p25, figures.p50, figures.p75,
					     figures.p95 };
}

/* A plugin's samples with the same key as `like`, by run; returns how many. */
static size_t find_runs(const struct profilers *work, const struct profilers_sample *like,
			uint8_t plugin, const struct profilers_sample *runs[PROFILERS_RUNS_MAX])
{
	const struct profilers_sample *list = work->samples.items;
	struct profilers_sample wanted = *like;
	size_t count = 0;

	memset(runs, 0, PROFILERS_RUNS_MAX * sizeof(*runs));
	wanted.plugin = plugin;
	for (size_t i = 0; i < work->samples.count; i++) {
		wanted.run = list[i].run;
		if (is_sample(&list[i], &wanted) && list[i].count > 0) {
			runs[wanted.run] = &list[i];
			count++;
		}
	}
	return count;
}

/* All values of the runs; NULL: out of memory. */
static double *pool_samples(const struct bench_sample *samples, size_t runs, size_t *count)
{
	double *values;
	size_t used = 0;

	for (size_t i = 0; i < runs; i++)
		used += samples[i].count;
	values = malloc((used ? used : 1) * sizeof(*values));
	if (values == NULL)
		return NULL;
	*count = used;
	used = 0;
	for (size_t i = 0; i < runs; i++) {
		memcpy(values + used, samples[i].values, samples[i].count * sizeof(*values));
		used += samples[i].count;
	}
	return values;
}

static enum status quantiles_of(const struct bench_sample *samples, size_t runs,
				struct profilers_quantiles *quantiles, size_t *count)
{
	double *values = pool_samples(samples, runs, count);

	if (values == NULL)
		return ERR_NO_SPACE;
	*quantiles = profilers_quantiles_of(values, *count);
	free(values);
	return OK;
}

static struct sum *sum_of(struct profilers_list *sums, const struct profilers_overhead *key)
{
	struct sum *list = sums->items, *added;

	for (size_t i = 0; i < sums->count; i++)
		if (list[i].row.clock == key->clock && list[i].row.plugin == key->plugin &&
		    list[i].row.mode == key->mode && list[i].row.function == key->function &&
		    list[i].row.bytes == key->bytes)
			return &list[i];
	added = profilers_list_add(sums, SUMS_MAX);
	if (added)
		added->row = *key;
	return added;
}

/* Adds to the totals over functions, over sizes, over both, and also over modes. */
static enum status add_log(struct profilers_list *sums, const struct profilers_overhead *cell,
			   size_t run, double log_ratio, uint64_t calls)
{
	struct profilers_overhead keys[SUM_KINDS];

	for (size_t i = 0; i < SUM_KINDS; i++) {
		struct sum *sum;

		keys[i] =
			(struct profilers_overhead){ .plugin = cell->plugin, .clock = cell->clock };
		keys[i].mode = i < 3 ? cell->mode : 0;
		keys[i].function = i == 1 ? cell->function : 0;
		keys[i].bytes = i == 0 ? cell->bytes : 0;
		sum = sum_of(sums, &keys[i]);
		if (sum == NULL)
			return ERR_NO_SPACE;
		sum->logs[run] += log_ratio;
		sum->cells[run]++;
		sum->row.calls += calls;
	}
	return OK;
}

static double median_of(const struct profilers_sample *sample)
{
	struct bench_sample one = { sample->values, sample->count };
	struct profilers_quantiles quantiles = { 0 };
	size_t count;

	return quantiles_of(&one, 1, &quantiles, &count) == OK ? quantiles.p50 : 0;
}

/* Pairs of runs of one cell; 0: none. */
static size_t pair_runs(const struct profilers_sample *with[PROFILERS_RUNS_MAX],
			const struct profilers_sample *without[PROFILERS_RUNS_MAX],
			size_t numbers[PROFILERS_RUNS_MAX])
{
	size_t pairs = 0;

	for (size_t i = 0; i < PROFILERS_RUNS_MAX; i++)
		if (with[i] && without[i] && median_of(with[i]) > 0 && median_of(without[i]) > 0)
			numbers[pairs++] = i;
	return pairs;
}

static enum status make_cell(struct profilers *work, const struct profilers_sample *like,
			     struct profilers_list *rows, struct profilers_list *sums)
{
	const struct profilers_sample *with[PROFILERS_RUNS_MAX], *without[PROFILERS_RUNS_MAX];
	struct bench_sample a[PROFILERS_RUNS_MAX], b[PROFILERS_RUNS_MAX];
	size_t numbers[PROFILERS_RUNS_MAX], pairs, count;
	struct profilers_overhead row = { .plugin = like->plugin,
					  .mode = like->mode,
					  .function = like->function,
					  .clock = like->clock,
					  .bytes = like->bytes,
					  .cells = 1 };
	struct profilers_overhead *added;
	enum status status = OK;

	find_runs(work, like, like->plugin, with);
	find_runs(work, like, 0, without);
	pairs = pair_runs(with, without, numbers);
	if (pairs == 0)
		return OK;
	for (size_t i = 0; i < pairs && status == OK; i++) {
		const struct profilers_sample *one = with[numbers[i]], *other = without[numbers[i]];

		a[i] = (struct bench_sample){ one->values, one->count };
		b[i] = (struct bench_sample){ other->values, other->count };
		status = add_log(sums, &row, numbers[i], log(median_of(one) / median_of(other)),
				 one->count);
	}
	row.runs = (uint32_t)pairs;
	row.has_interval = pairs >= RUNS_FOR_INTERVAL;
	if (status == OK)
		status = bench_ratio_of(a, b, pairs, like->bytes + like->function, &row.ratio);
	if (status == OK)
		status = quantiles_of(b, pairs, &row.without_ns, &count);
	if (status == OK)
		status = quantiles_of(a, pairs, &row.with_ns, &count);
	if (status != OK)
		return status;
	row.calls = count;
	if (!row.has_interval)
		row.ratio.low = row.ratio.high = 0;
	added = profilers_list_add(rows, PROFILERS_ROWS_MAX);
	if (added)
		*added = row;
	return added ? OK : ERR_NO_SPACE;
}

static void finish_sum(struct sum *sum)
{
	double mean = 0, squares = 0, values[PROFILERS_RUNS_MAX], half;
	uint32_t most = 0, runs = 0;

	for (size_t i = 0; i < PROFILERS_RUNS_MAX; i++)
		most = sum->cells[i] > most ? sum->cells[i] : most;
	/* Skips runs that lack some cells: they would be compared with complete ones. */
	for (size_t i = 0; i < PROFILERS_RUNS_MAX; i++)
		if (sum->cells[i] == most)
			values[runs++] = sum->logs[i] / most;
	for (uint32_t i = 0; i < runs; i++)
		mean += values[i] / runs;
	for (uint32_t i = 0; i < runs; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	sum->row.runs = runs;
	sum->row.cells = most;
	sum->row.ratio.ratio = exp(mean);
	sum->row.has_interval = runs >= RUNS_FOR_INTERVAL;
	if (!sum->row.has_interval)
		return;
	half = stats_student_quantile(0.025, runs - 1) * sqrt(squares / (runs - 1) / runs);
	sum->row.ratio.low = exp(mean - half);
	sum->row.ratio.high = exp(mean + half);
}

static int by_clock(const void *left, const void *right)
{
	const struct profilers_overhead *a = left, *b = right;

	return ORDER(a->clock, b->clock) ?: ORDER(a->plugin, b->plugin)
		?: ORDER(a->mode, b->mode) ?: ORDER(a->function, b->function)
		?: ORDER(a->bytes, b->bytes);
}

/* Whether this is the first sample of its plugin, mode, function, size and clock. The others are other runs. */
static bool is_first(const struct profilers *work, size_t at)
{
	const struct profilers_sample *list = work->samples.items;
	struct profilers_sample wanted = list[at];

	for (size_t i = 0; i < at; i++) {
		wanted.run = list[i].run;
		if (is_sample(&list[i], &wanted))
			return false;
	}
	return true;
}

static enum status profilers_make_overhead(struct profilers *work)
{
	struct profilers_list rows = { .size = sizeof(struct profilers_overhead) };
	struct profilers_list sums = { .size = sizeof(struct sum) };
	const struct profilers_sample *list = work->samples.items;
	struct profilers_overhead *row;
	enum status status = OK;

	for (size_t i = 0; i < work->samples.count && status == OK; i++)
		if (list[i].plugin > 0 && is_first(work, i))
			status = make_cell(work, &list[i], &rows, &sums);
	for (size_t i = 0; i < sums.count && status == OK; i++) {
		finish_sum((struct sum *)sums.items + i);
		row = profilers_list_add(&rows, PROFILERS_ROWS_MAX);
		if (row)
			*row = ((struct sum *)sums.items)[i].row;
		else
			status = ERR_NO_SPACE;
	}
	profilers_list_release(&sums);
	if (rows.count > 1)
		qsort(rows.items, rows.count, rows.size, by_clock);
	free(work->out.overhead);
	work->out.overhead = rows.items;
	work->out.overhead_count = rows.count;
	return status;
}

enum profilers_verdict profilers_verdict(const struct profilers_overhead *row)
{
	if (!row->has_interval)
		return PROFILERS_NOT_KNOWN;
	if (row->ratio.low > 1)
		return PROFILERS_SLOWER;
	return row->ratio.high < 1 ? PROFILERS_FASTER : PROFILERS_NO_DIFFERENCE;
}

/*
 * Training: calls counted by the preloaded counter and calls recorded, communication time as reported by the plugin
 * relative to the epochs' time, and the slowdown of epochs.
 */

static bool is_allowed(const struct profilers *work, const struct profilers_training *training)
{
	if (training->plugin >= work->out.plugin_count || training->run >= PROFILERS_RUNS_MAX ||
	    training->output < PROFILERS_READ || training->output >= PROFILERS_OUTPUTS)
		return false;
	return training->output == PROFILERS_FAILED ||
	       (training->ranks > 0 && training->epochs > 0 &&
		training->epochs <= PROFILERS_EPOCHS_MAX);
}

enum status profilers_training(struct profilers *work, const struct profilers_training *training)
{
	struct profilers_training *added;

	if (!is_allowed(work, training))
		return ERR_RANGE;
	added = profilers_list_add(&work->trainings, PROFILERS_ROWS_MAX);
	if (added == NULL)
		return ERR_NO_SPACE;
	*added = *training;
	added->problem = NULL;
	if (work->out.nranks == 0)
		work->out.nranks = training->ranks;
	if (training->problem)
		text_copy(work->problems[training->plugin], PROFILERS_TEXT_BYTES,
			  training->problem);
	return OK;
}

/* The first one warms up, if there are others. */
static uint32_t first_compared(const struct profilers_training *training)
{
	return training->epochs > 1;
}

/* Time span of the compared epochs; false: unknown. */
static bool epochs_span(const struct profilers_training *training, uint64_t *from, uint64_t *to)
{
	uint32_t first = first_compared(training), last = training->epochs - 1;

	if (training->epochs == 0 || training->epochs > PROFILERS_EPOCHS_MAX ||
	    training->epoch_begin_ns[first] == 0 || training->epoch_begin_ns[last] == 0)
		return false;
	*from = training->epoch_begin_ns[first];
	*to = training->epoch_begin_ns[last] + training->epoch_ns[last];
	return true;
}

/* Operations of one rank, function and size class: all, or those within the epochs. */
struct kind {
	uint64_t calls;
	uint64_t timed;
	uint64_t sum_ns;
};

struct record_walk {
	struct profilers_training *training;
	const struct recording_process *process;
	uint64_t from;
	uint64_t to;
	struct kind (*kinds)[2];  /* of the process, by kind_of(): all, and within the epochs */
	double all_ns, inside_ns; /* of operations: all, and within the epochs */
	bool is_by_time;	  /* the time of all of them is known */
};

enum { SIZE_CLASSES = 1 << 7, KINDS = OP_FUNCTIONS * SIZE_CLASSES };

static size_t kind_of(const struct op_record *op)
{
	size_t function = op->function < OP_FUNCTIONS ? op->function : 0;

	return function * SIZE_CLASSES + op_size_class(op->bytes) % SIZE_CLASSES;
}

/* If not all are timed, the mean of the timed ones is used for all of the kind. */
static double time_of(const struct kind *kind, const struct kind *like)
{
	return like->timed ? (double)like->sum_ns / (double)like->timed * (double)kind->calls : 0;
}

static void end_process(struct record_walk *walk)
{
	for (size_t i = 0; i < KINDS; i++) {
		const struct kind *all = &walk->kinds[i][0], *inside = &walk->kinds[i][1];

		walk->all_ns += time_of(all, all);
		walk->inside_ns += time_of(inside, inside->timed ? inside : all);
	}
	memset(walk->kinds, 0, KINDS * sizeof(*walk->kinds));
}

static bool is_in_epochs(struct record_walk *walk, const struct op_record *op)
{
	uint64_t wall_ns, clock_ns = op->issue_ns ? op->issue_ns : op->done_ns;

	if (clock_ns == 0 || !recording_wall_ns(walk->process, clock_ns, &wall_ns)) {
		walk->is_by_time = false;
		return false;
	}
	return wall_ns >= walk->from && wall_ns < walk->to;
}

static bool take_op(const struct op_record *op, enum recording_place place, void *context)
{
	struct record_walk *walk = context;
	struct profilers_training *training = walk->training;
	uint64_t duration_ns = op_duration_ns(op);
	struct kind *kinds = walk->kinds[kind_of(op)];
	bool is_timed = duration_ns > 0;
	int sets;

	(void)place;
	if (op->state == OP_CAPTURED)
		return true;
	training->recorded[op->function < OP_FUNCTIONS ? op->function : 0]++;
	training->untimed += !is_timed;
	training->comm_ops += is_timed;
	/* Operations without any timestamp are ignored here. */
	if (!is_timed && op->issue_ns == 0 && op->done_ns == 0)
		sets = 1;
	else
		sets = is_in_epochs(walk, op) ? 2 : 1;
	for (int i = 0; i < sets; i++) {
		kinds[i].calls++;
		kinds[i].timed += is_timed;
		kinds[i].sum_ns += duration_ns;
	}
	return true;
}

enum status profilers_training_take(struct profilers_training *training,
				    const struct recording *recording)
{
	struct record_walk walk = { .training = training };
	enum status status = OK;

	walk.kinds = calloc(KINDS, sizeof(*walk.kinds));
	if (walk.kinds == NULL)
		return ERR_NO_SPACE;
	walk.is_by_time = epochs_span(training, &walk.from, &walk.to);
	for (size_t i = 0; i < recording->count && status == OK; i++) {
		walk.process = recording->processes[i];
		status = recording_each_op(walk.process, take_op, &walk, NULL);
		end_process(&walk);
	}
	free(walk.kinds);
	training->has_comm = training->comm_ops > 0;
	training->is_comm_by_time = training->has_comm && walk.is_by_time;
	training->comm_ns = (uint64_t)(training->is_comm_by_time ? walk.inside_ns : walk.all_ns);
	return status;
}

void profilers_training_take_ncclsee(struct profilers_training *training,
				     const struct ncclsee_profile *profiles, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < profiles[i].row_count; j++) {
			const struct ncclsee_row *row = &profiles[i].rows[j];

			training->recorded[row->function] += row->calls;
			training->untimed += row->has_time ? 0 : row->calls;
			training->comm_ns += (uint64_t)row->total_ns;
			training->comm_ops += row->has_time ? row->calls : 0;
		}
	training->has_comm = training->comm_ops > 0;
	training->is_comm_by_time = false;
}

/* Epochs of a plugin's runs, without the first of each; `values` has room for all. */
static size_t take_epochs(const struct profilers *work, size_t plugin,
			  struct bench_sample samples[PROFILERS_RUNS_MAX], double *values)
{
	const struct profilers_training *list = work->trainings.items;
	size_t used = 0;

	memset(samples, 0, PROFILERS_RUNS_MAX * sizeof(*samples));
	for (size_t i = 0; i < work->trainings.count; i++) {
		const struct profilers_training *one = &list[i];
		size_t from = used;

		if (one->plugin != plugin || one->output == PROFILERS_FAILED ||
		    samples[one->run].count > 0)
			continue;
		for (uint32_t epoch = first_compared(one); epoch < one->epochs; epoch++)
			values[used++] = (double)one->epoch_ns[epoch];
		samples[one->run] = (struct bench_sample){ values + from, used - from };
	}
	return used;
}

static enum status slow_down(struct profilers_train *row,
			     const struct bench_sample with[PROFILERS_RUNS_MAX],
			     const struct bench_sample without[PROFILERS_RUNS_MAX])
{
	struct bench_sample a[PROFILERS_RUNS_MAX], b[PROFILERS_RUNS_MAX];
	enum status status;
	size_t pairs = 0;

	for (size_t i = 0; i < PROFILERS_RUNS_MAX; i++)
		if (with[i].count > 0 && without[i].count > 0) {
			a[pairs] = with[i];
			b[pairs++] = without[i];
		}
	if (pairs == 0 || row->plugin == 0)
		return OK;
	status = bench_ratio_of(a, b, pairs, 1, &row->slowdown);
	row->has_interval = status == OK && pairs >= RUNS_FOR_INTERVAL;
	if (!row->has_interval)
		row->slowdown.low = row->slowdown.high = 0;
	return status == ERR_RANGE ? OK : status;
}

struct sums {
	double comm_ns;
	double epochs_ns; /* of all ranks */
	double epochs;	  /* likewise */
};

static void add_training(struct profilers_train *row, const struct profilers_training *one,
			 struct sums *sums)
{
	bool is_judged = one->output == PROFILERS_READ || one->output == PROFILERS_SILENT;

	row->failed += one->output == PROFILERS_FAILED;
	if (one->output == PROFILERS_FAILED)
		return;
	row->is_counted = one->is_counted && (row->runs == 0 || row->is_counted);
	row->runs++;
	row->silent += one->output == PROFILERS_SILENT;
	row->unreadable += one->output == PROFILERS_UNREADABLE;
	row->epochs = one->epochs;
	row->ranks = one->ranks;
	row->is_read = row->is_read || is_judged;
	/* Issued and recorded are of the same runs. */
	for (size_t i = 0; i < OP_FUNCTIONS && (is_judged || row->plugin == 0); i++) {
		row->issued[i] += one->issued[i];
		row->recorded[i] += one->recorded[i];
	}
	row->untimed += one->untimed;
	if (!one->has_comm)
		return;
	row->is_comm_by_time = !row->has_comm || row->is_comm_by_time;
	row->is_comm_by_time = row->is_comm_by_time && one->is_comm_by_time;
	row->has_comm = true;
	sums->comm_ns += (double)one->comm_ns;
	for (uint32_t i = one->is_comm_by_time ? first_compared(one) : 0; i < one->epochs; i++) {
		sums->epochs += one->ranks;
		sums->epochs_ns += (double)one->epoch_ns[i] * one->ranks;
	}
}

static enum status make_row(struct profilers *work, size_t plugin, double *values,
			    const struct bench_sample *without, struct profilers_train *row)
{
	const struct profilers_training *list = work->trainings.items;
	struct bench_sample with[PROFILERS_RUNS_MAX];
	struct sums sums = { 0 };
	enum status status;
	size_t count;

	row->plugin = (uint8_t)plugin;
	for (size_t i = 0; i < work->trainings.count; i++)
		if (list[i].plugin == plugin)
			add_training(row, &list[i], &sums);
	if (plugin == 0)
		row->is_read = false;
	text_copy(row->problem, sizeof(row->problem), work->problems[plugin]);
	if (sums.epochs > 0)
		row->comm_ns = sums.comm_ns / sums.epochs;
	if (sums.epochs_ns > 0)
		row->comm_share = sums.comm_ns / sums.epochs_ns;
	count = take_epochs(work, plugin, with, values);
	status = slow_down(row, with, without);
	row->epoch_ns = profilers_quantiles_of(values, count).p50;
	return status;
}

static enum status profilers_make_training(struct profilers *work)
{
	size_t room = work->trainings.count * PROFILERS_EPOCHS_MAX;
	struct bench_sample without[PROFILERS_RUNS_MAX];
	double *values, *baseline;
	enum status status = OK;

	if (work->trainings.count == 0)
		return OK;
	work->out.training = calloc(work->out.plugin_count, sizeof(*work->out.training));
	values = malloc(2 * room * sizeof(*values));
	if (values == NULL || work->out.training == NULL) {
		free(values);
		return ERR_NO_SPACE;
	}
	baseline = values + room;
	take_epochs(work, 0, without, baseline);
	for (size_t plugin = 0; plugin < work->out.plugin_count && status == OK; plugin++) {
		struct profilers_train *row = &work->out.training[work->out.training_count];

		status = make_row(work, plugin, values, without, row);
		/* Plugins without a training have no row. */
		if (row->runs + row->failed > 0)
			work->out.training_count++;
		else
			memset(row, 0, sizeof(*row));
	}
	free(values);
	return status;
}

/* Combines what was collected job by job into rows. */

static int by_grain(const void *left, const void *right)
{
	const struct profilers_complete *a = left, *b = right;

	return ORDER(a->plugin, b->plugin) ?: ORDER(a->mode, b->mode) ?: ORDER(a->rank, b->rank)
		?: ORDER(a->function, b->function) ?: ORDER(b->is_align, a->is_align)
		?: ORDER(a->bytes, b->bytes) ?: ORDER(a->bytes_to, b->bytes_to);
}

/* Merges rows of several runs. */
static void make_complete(struct profilers *work)
{
	struct profilers_complete *list = work->complete.items;
	size_t kept = 0;

	if (work->complete.count > 1)
		qsort(list, work->complete.count, sizeof(*list), by_grain);
	for (size_t i = 0; i < work->complete.count; i++)
		if (kept > 0 && by_grain(&list[kept - 1], &list[i]) == 0)
			profilers_counts_add(&list[kept - 1].counts, &list[i].counts);
		else
			list[kept++] = list[i];
	work->out.complete = list;
	work->out.complete_count = kept;
	work->complete = (struct profilers_list){ .size = sizeof(*list) };
}

static int by_row(const void *left, const void *right)
{
	const struct profilers_accuracy *a = left, *b = right;

	return ORDER(a->plugin, b->plugin) ?: ORDER(a->mode, b->mode)
		?: ORDER(a->function, b->function) ?: ORDER(a->bytes, b->bytes)
		?: ORDER(a->bytes_to, b->bytes_to) ?: ORDER(a->source, b->source);
}

/* The same over all functions. */
static enum status add_over_functions(struct profilers *work)
{
	size_t single = work->ratios.count;

	for (size_t i = 0; i < single; i++) {
		struct profilers_ratios one = ((struct profilers_ratios *)work->ratios.items)[i];
		struct profilers_ratios like = { .plugin = one.plugin,
						 .mode = one.mode,
						 .source = one.source,
						 .is_mean_only = one.is_mean_only,
						 .bytes = one.bytes,
						 .bytes_to = one.bytes_to };
		struct profilers_ratios *all =
			one.function ? profilers_ratios_of(work, &like) : NULL;

		if (one.function == 0)
			continue;
		if (all == NULL)
			return ERR_NO_SPACE;
		all->calls += one.calls;
		all->in_order += one.in_order;
		all->by_time += one.by_time;
		for (size_t j = 0; j < one.count; j++)
			if (!profilers_ratios_add(all, one.values[j]))
				return ERR_NO_SPACE;
	}
	return OK;
}

static bool is_same_calls(const struct profilers_ratios *a, const struct profilers_ratios *b)
{
	return a->plugin == b->plugin && a->mode == b->mode && a->function == b->function &&
	       a->bytes == b->bytes && a->bytes_to == b->bytes_to;
}

/* One row per source; calls without any source get their own row. */
static enum status add_accuracy(struct profilers *work, const struct profilers_ratios *calls,
				struct profilers_list *rows)
{
	struct profilers_ratios *list = work->ratios.items;
	bool is_any = false;

	for (size_t i = 0; i <= work->ratios.count; i++) {
		struct profilers_ratios *ratios = i < work->ratios.count ? &list[i] : NULL;
		struct profilers_accuracy *row;

		if (ratios && (ratios->count == 0 || !is_same_calls(ratios, calls)))
			continue;
		if (ratios == NULL && is_any)
			continue;
		row = profilers_list_add(rows, PROFILERS_ROWS_MAX);
		if (row == NULL)
			return ERR_NO_SPACE;
		is_any = true;
		row->plugin = calls->plugin;
		row->mode = calls->mode;
		row->function = calls->function;
		row->is_mean_only = calls->is_mean_only;
		row->bytes = calls->bytes;
		row->bytes_to = calls->bytes_to;
		row->calls = calls->calls;
		if (ratios == NULL)
			continue;
		row->source = ratios->source;
		row->in_order = ratios->in_order;
		row->by_time = ratios->by_time;
		row->ratio = profilers_quantiles_of(ratios->values, ratios->count);
	}
	return OK;
}

static enum status make_accuracy(struct profilers *work)
{
	struct profilers_list rows = { .size = sizeof(struct profilers_accuracy) };
	enum status status = add_over_functions(work);

	for (size_t i = 0; i < work->ratios.count && status == OK; i++) {
		const struct profilers_ratios *ratios =
			(struct profilers_ratios *)work->ratios.items + i;

		if (ratios->source == OP_TIME_SHOWN_SOURCES)
			status = add_accuracy(work, ratios, &rows);
	}
	if (rows.count > 1)
		qsort(rows.items, rows.count, rows.size, by_row);
	work->out.accuracy = rows.items;
	work->out.accuracy_count = rows.count;
	return status;
}

static int by_plugin(const void *left, const void *right)
{
	const struct profilers_jobs *a = left, *b = right;

	return ORDER(a->plugin, b->plugin) ?: ORDER(a->mode, b->mode);
}

static void make_jobs(struct profilers *work)
{
	struct profilers_jobs *list = work->jobs.items;

	if (work->jobs.count > 1)
		qsort(list, work->jobs.count, sizeof(*list), by_plugin);
	for (size_t i = 0; i < work->jobs.count; i++) {
		uint32_t runs = list[i].read + list[i].silent + list[i].unreadable;

		work->out.runs = runs > work->out.runs ? runs : work->out.runs;
	}
	work->out.jobs = list;
	work->out.job_count = work->jobs.count;
	work->jobs = (struct profilers_list){ .size = sizeof(*list) };
}

enum status profilers_finish(struct profilers *work, struct profilers_comparison *comparison)
{
	enum status status;

	make_jobs(work);
	make_complete(work);
	status = make_accuracy(work);
	if (status == OK)
		status = profilers_make_overhead(work);
	if (status == OK)
		status = profilers_make_training(work);
	*comparison = work->out;
	profilers_comparison_init(&work->out);
	return status;
}
