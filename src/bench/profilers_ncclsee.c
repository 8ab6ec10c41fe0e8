/*
 * ncclsee has sums by size class: a class of calls is complete or not, and its mean time can be held against the
 * mean of what was measured.
 */
#include <stdlib.h>

#include "bench/profilers_parts.h"
#include "import/ncclsee_read.h"

struct class_tally {
	struct profilers_tally tally;
	uint64_t steps;	    /* issued, but for alignment */
	uint64_t calls;	    /* measured */
	double measured_ns; /* what all steps took, by the mean of the measured calls of their cell */
	uint64_t timed_steps;
	double reported_ns;
	uint64_t first_bytes; /* of the cells in it, and whether others have another size */
	bool is_mixed;
};

struct classes {
	struct class_tally *list; /* [(rank + 1) * OP_FUNCTIONS * NCCLSEE_CLASSES ...] */
	int32_t nranks;
};

static struct class_tally *class_at(const struct classes *classes, int32_t rank, uint8_t function,
				    unsigned int size_class)
{
	return &classes->list[((size_t)(rank + 1) * OP_FUNCTIONS + function) * NCCLSEE_CLASSES +
			      size_class];
}

static void issue_cell(const struct classes *classes, const struct bench_run *bench,
		       const struct bench_cell *cell, int32_t rank)
{
	struct profilers_part parts[PROFILERS_PARTS_MAX];
	size_t count = profilers_parts_of(bench, cell, rank, parts);
	double sum_ns = 0;
	uint64_t timed = 0;

	for (uint32_t i = 0; cell->calls_of && i < cell->calls; i++) {
		sum_ns += (double)bench_cell_call(cell, rank, i)->gpu_ns;
		timed += bench_cell_call(cell, rank, i)->gpu_ns > 0;
	}
	for (size_t i = 0; i < count; i++) {
		struct profilers_key *key = &parts[i].key;
		uint64_t steps = bench_cell_steps(cell) * parts[i].per_step;
		struct class_tally *at =
			class_at(classes, rank, key->function, ncclsee_class_of(key->part_bytes));

		at->is_mixed = at->is_mixed || (at->steps && at->first_bytes != key->bytes);
		at->first_bytes = key->bytes;
		at->tally.issued += steps;
		at->steps += steps;
		at->calls += timed;
		if (timed) {
			at->timed_steps += steps;
			at->measured_ns += sum_ns / (double)timed * (double)steps;
		}
	}
	class_at(classes, rank, OP_ALL_REDUCE, 0)->tally.issued += cell->aligns;
}

static void take_profile(const struct classes *classes, const struct bench_run *bench,
			 const struct ncclsee_profile *profile, bool is_swapped)
{
	int32_t rank = profilers_rank_of_pid(bench, NULL, profile->pid);

	for (size_t i = 0; i < profile->row_count; i++) {
		const struct ncclsee_row *row = &profile->rows[i];
		uint8_t function = is_swapped ? ncclsee_other_label(row->function) : row->function;
		struct class_tally *at = class_at(classes, rank, function, row->size_class);

		at->tally.recorded += row->calls;
		at->tally.untimed += row->has_time ? 0 : row->calls;
		at->reported_ns += row->total_ns;
	}
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Do the names fit what was issued better when Reduce and ReduceScatter change places? */
static bool is_swapped(const struct classes *classes, const struct profilers_trial *trial)
{
	uint64_t as_written = 0, swapped = 0;

	for (size_t i = 0; i < trial->profile_count; i++) {
		const struct ncclsee_profile *profile = &trial->profiles[i];
		int32_t rank = profilers_rank_of_pid(trial->bench, NULL, profile->pid);

		for (size_t j = 0; j < profile->row_count; j++) {
			const struct ncclsee_row *row = &profile->rows[j];
			uint8_t other = ncclsee_other_label(row->function);

			as_written += apart(row->calls,
					    class_at(classes, rank, row->function, row->size_class)
						    ->tally.issued);
			swapped += apart(
				row->calls,
				class_at(classes, rank, other, row->size_class)->tally.issued);
		}
	}
	return swapped < as_written;
}

static enum status add_mean(struct profilers *work, const struct profilers_ratios *like,
			    const struct class_tally *at)
{
	struct profilers_ratios key = *like, *ratios;
	bool is_whole = at->tally.recorded == at->tally.issued;

	if (at->calls == 0)
		return OK;
	key.source = OP_TIME_SOURCES;
	ratios = profilers_ratios_of(work, &key);
	if (ratios == NULL)
		return ERR_NO_SPACE;
	ratios->calls += at->calls;
	/* Alignment, several sizes and loss: then the means are not of the same calls. */
	if (at->tally.issued != at->steps || at->timed_steps != at->steps ||
	    (at->is_mixed && !is_whole) || at->tally.recorded == 0 || at->tally.untimed > 0)
		return OK;
	ratios = profilers_ratios_of(work, like);
	if (ratios == NULL ||
	    !profilers_ratios_add(ratios, at->reported_ns / (double)at->tally.recorded /
						  (at->measured_ns / (double)at->steps)))
		return ERR_NO_SPACE;
	return OK;
}

static enum status add_class(struct profilers *work, const struct profilers_trial *trial,
			     const struct classes *classes, struct profilers_complete *row,
			     unsigned int size_class)
{
	const struct class_tally *at = class_at(classes, row->rank, row->function, size_class);
	const struct profilers_tally *tally = &at->tally;
	struct profilers_ratios like = { .plugin = (uint8_t)trial->plugin,
					 .mode = row->mode,
					 .function = row->function,
					 .is_mean_only = true };
	struct profilers_complete *added;

	if (tally->issued == 0 && tally->recorded == 0)
		return OK;
	ncclsee_class_bounds(size_class, &row->bytes, &row->bytes_to);
	row->is_align = tally->issued > 0 && at->steps == 0;
	row->counts = (struct profilers_counts){ .issued = tally->issued,
						 .recorded = tally->recorded,
						 .untimed = tally->untimed };
	if (tally->issued > tally->recorded)
		row->counts.missing = tally->issued - tally->recorded;
	else
		row->counts.excess = tally->recorded - tally->issued;
	added = profilers_list_add(&work->complete, PROFILERS_ROWS_MAX);
	if (added == NULL)
		return ERR_NO_SPACE;
	*added = *row;
	like.bytes = row->bytes;
	like.bytes_to = row->bytes_to;
	return add_mean(work, &like, at);
}

enum status profilers_take_ncclsee(struct profilers *work, const struct profilers_trial *trial,
				   uint8_t mode)
{
	const struct bench_run *bench = trial->bench;
	struct classes classes = { .nranks = bench->nranks };
	enum status status = OK;
	bool is_other;

	classes.list = calloc(((size_t)bench->nranks + 1) * OP_FUNCTIONS * NCCLSEE_CLASSES,
			      sizeof(*classes.list));
	if (classes.list == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < bench->cell_count; i++)
		for (int32_t rank = 0; rank < bench->nranks; rank++)
			issue_cell(&classes, bench, &bench->cells[i], rank);
	is_other = is_swapped(&classes, trial);
	for (size_t i = 0; i < trial->profile_count; i++)
		take_profile(&classes, bench, &trial->profiles[i], is_other);
	if (is_other)
		profilers_note(work,
			       "%s writes Reduce under the name ReduceScatter and the other way "
			       "round: read so, because the calls then fit",
			       work->out.plugins[trial->plugin].label);
	for (int32_t rank = -1; rank < bench->nranks; rank++)
		for (uint8_t function = 0; function < OP_FUNCTIONS; function++)
			for (unsigned int i = 0; i < NCCLSEE_CLASSES && status == OK; i++) {
				struct profilers_complete row = { .plugin = (uint8_t)trial->plugin,
								  .mode = mode,
								  .rank = rank,
								  .function = function };

				status = add_class(work, trial, &classes, &row, i);
			}
	free(classes.list);
	return status;
}
