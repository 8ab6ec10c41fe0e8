/*
 * Training: calls as the preload counter saw them against those recorded, communication time as the plugin
 * reports it against the epochs' time, and how much slower epochs are.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/profilers_parts.h"
#include "common/op.h"
#include "common/text.h"
#include "import/ncclsee_read.h"
#include "recording/recording.h"

enum { RUNS_FOR_INTERVAL = 3 };

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

/* The first warms up, where there are others. */
static uint32_t first_compared(const struct profilers_training *training)
{
	return training->epochs > 1;
}

/* The epochs that are compared; false: when they were is not known. */
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

/* Operations of one rank, function and size class, all of them or those within the epochs. */
struct kind {
	uint64_t calls;
	uint64_t timed;
	uint64_t sum_ns;
};

struct taking {
	struct profilers_training *training;
	const struct recording_process *process;
	uint64_t from;
	uint64_t to;
	struct kind (*kinds)[2];  /* of the process, by kind_of(): all, within the epochs */
	double all_ns, inside_ns; /* of operations: all, within the epochs */
	bool is_by_time;	  /* of all of them it is known when they were */
};

enum { SIZE_CLASSES = 1 << 7, KINDS = OP_FUNCTIONS * SIZE_CLASSES };

static size_t kind_of(const struct op_record *op)
{
	size_t function = op->function < OP_FUNCTIONS ? op->function : 0;

	return function * SIZE_CLASSES + op_size_class(op->bytes) % SIZE_CLASSES;
}

/* Not all may be timed: the mean of those that are, for all of the kind. */
static double time_of(const struct kind *kind, const struct kind *like)
{
	return like->timed ? (double)like->sum_ns / (double)like->timed * (double)kind->calls : 0;
}

static void end_process(struct taking *taking)
{
	for (size_t i = 0; i < KINDS; i++) {
		const struct kind *all = &taking->kinds[i][0], *inside = &taking->kinds[i][1];

		taking->all_ns += time_of(all, all);
		taking->inside_ns += time_of(inside, inside->timed ? inside : all);
	}
	memset(taking->kinds, 0, KINDS * sizeof(*taking->kinds));
}

static bool is_in_epochs(struct taking *taking, const struct op_record *op)
{
	uint64_t wall_ns, clock_ns = op->issue_ns ? op->issue_ns : op->done_ns;

	if (clock_ns == 0 || !recording_wall_ns(taking->process, clock_ns, &wall_ns)) {
		taking->is_by_time = false;
		return false;
	}
	return wall_ns >= taking->from && wall_ns < taking->to;
}

static bool take_op(const struct op_record *op, enum recording_place place, void *context)
{
	struct taking *taking = context;
	struct profilers_training *training = taking->training;
	uint64_t duration_ns = op_duration_ns(op);
	struct kind *kinds = taking->kinds[kind_of(op)];
	bool is_timed = duration_ns > 0;
	int sets;

	(void)place;
	if (op->state == OP_CAPTURED)
		return true;
	training->recorded[op->function < OP_FUNCTIONS ? op->function : 0]++;
	training->untimed += !is_timed;
	training->comm_ops += is_timed;
	/* When one was that has no time at all is not known, and changes nothing for the others. */
	if (!is_timed && op->issue_ns == 0 && op->done_ns == 0)
		sets = 1;
	else
		sets = is_in_epochs(taking, op) ? 2 : 1;
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
	struct taking taking = { .training = training };
	enum status status = OK;

	taking.kinds = calloc(KINDS, sizeof(*taking.kinds));
	if (taking.kinds == NULL)
		return ERR_NO_SPACE;
	taking.is_by_time = epochs_span(training, &taking.from, &taking.to);
	for (size_t i = 0; i < recording->count && status == OK; i++) {
		taking.process = recording->processes[i];
		status = recording_each_op(taking.process, take_op, &taking, NULL);
		end_process(&taking);
	}
	free(taking.kinds);
	training->has_comm = training->comm_ops > 0;
	training->is_comm_by_time = training->has_comm && taking.is_by_time;
	training->comm_ns =
		(uint64_t)(training->is_comm_by_time ? taking.inside_ns : taking.all_ns);
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

/* Epochs of the runs of a plugin, the first of each left out; `values` has room for all. */
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

enum status profilers_make_training(struct profilers *work)
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
		/* Plugins that were not trained with have no row. */
		if (row->runs + row->failed > 0)
			work->out.training_count++;
		else
			memset(row, 0, sizeof(*row));
	}
	free(values);
	return status;
}
