/* One cell after the other: which can be measured here, in which order, and what rank 0 keeps of them. */
#include <stdlib.h>

#include "common/op.h"
#include "common/op_layout.h"
#include "common/text.h"
#include "programs/bench/bench_inside.h"

enum { FLOAT8_MAJOR = 9 };

static bool is_float8(uint8_t datatype)
{
	return datatype == OP_FLOAT8_E4M3 || datatype == OP_FLOAT8_E5M2;
}

/* Can it be measured? Alike on all ranks; a note says why not. */
static bool is_possible(struct bench_job *job, const struct bench_cell *cell,
			const struct bench_layout *layout, bool has_layout)
{
	const char *function = op_function_name(cell->function);
	const char *datatype = op_datatype_name(cell->datatype);
	char size[UNITS_TEXT];

	if (nccl_type_of(&job->nccl, cell->datatype) < 0) {
		job_note(job, "left out: this NCCL has no %s", datatype);
		return false;
	}
	if (is_float8(cell->datatype) && layout_is_reduction(cell->function) &&
	    job->least_major < FLOAT8_MAJOR) {
		job_note(job, "left out: NCCL reduces %s on GPUs since Hopper only", datatype);
		return false;
	}
	if (cell->is_in_place && !layout_has_in_place(cell->function)) {
		job_note(job, "left out: %s in place; its buffers must be two", function);
		return false;
	}
	if (!has_layout) {
		job_note(job, "left out: %s of %s; that is no element for each rank", function,
			 units_bytes(size, cell->bytes));
		return false;
	}
	if (layout->whole_count * op_datatype_bytes(cell->datatype) <= job->room_bytes)
		return true;
	job_note(job, "left out: sizes above %s, for which there are no buffers",
		 units_bytes(size, job->room_bytes));
	return false;
}

static int work_init(struct job_cell *work, struct bench_job *job, const struct bench_cell *like)
{
	int rank = job->place->rank;
	struct bench_cell *cell = &work->cell;
	bool has_layout;

	*work = (struct job_cell){ .job = job, .cell = *like, .takes_part = true };
	cell->nranks = job->place->nranks;
	cell->calls_of = NULL;
	cell->wrong = BENCH_UNCHECKED;
	cell->warmups = cell->calls = cell->checks = cell->aligns = cell->captured = 0;
	cell->loop_ns = 0;
	cell->chosen_algorithm = cell->chosen_protocol = 0;
	if (!layout_is_reduction(cell->function))
		cell->redop = BENCH_NO_REDOP;
	if (!layout_is_rooted(cell->function))
		cell->root = -1;
	else if (cell->root < 0 || cell->root >= cell->nranks)
		return job_fail(job, "root %d is no rank of %d", cell->root, cell->nranks);
	has_layout = layout_of(&work->layout, cell, rank);
	if (!is_possible(job, cell, &work->layout, has_layout))
		return 1;
	if (cell->function == OP_SEND_RECV)
		work->takes_part = layout_send_peer(cell, rank) >= 0;
	cell->count = work->layout.count;
	cell->bytes = work->layout.bytes;
	cell->is_grouped_sends = issue_is_grouped(job, cell->function);
	if (cell->is_grouped_sends)
		job_note(job, "this NCCL has no %s: it is made of Sends and Recvs in a group",
			 op_function_name(cell->function));
	return 0;
}

/* What the measured calls left, where that can still be told; then one call for it. */
static int work_check(struct job_cell *work)
{
	uint64_t wrong = 0, more = 0;

	if (!work->job->plan->is_checked)
		return 0;
	if (layout_is_repeatable(&work->cell) && fill_check(work, &wrong) < 0)
		return -1;
	if (fill_buffers(work) < 0 || hub_meet(work->job->hub) < 0)
		return -1;
	if (measure_unmeasured(work) < 0 || fill_check(work, &more) < 0)
		return -1;
	work->cell.checks = 1;
	work->cell.wrong = wrong > more ? wrong : more;
	return 0;
}

/* What one rank says of its cell, beside its calls. */
struct cell_share {
	uint64_t wrong;
	uint64_t loop_ns;
};

static void shares_add(struct bench_cell *cell, const struct cell_share *shares, int nranks)
{
	uint64_t loop_ns = 0;

	cell->wrong = BENCH_UNCHECKED;
	for (int i = 0; i < nranks; i++) {
		loop_ns += shares[i].loop_ns;
		if (shares[i].wrong != BENCH_UNCHECKED)
			cell->wrong = (cell->wrong == BENCH_UNCHECKED ? 0 : cell->wrong) +
				      shares[i].wrong;
	}
	cell->loop_ns = loop_ns / (uint64_t)nranks;
}

/* Whose results are wrong helps more than how many are. */
static void wrong_note(struct bench_job *job, const struct bench_cell *cell,
		       const struct cell_share *shares)
{
	int first = -1, ranks = 0;
	char size[UNITS_TEXT], others[32] = "";

	for (int i = 0; i < cell->nranks; i++)
		if (shares[i].wrong != 0 && shares[i].wrong != BENCH_UNCHECKED) {
			first = first < 0 ? i : first;
			ranks++;
		}
	if (ranks == 0)
		return;
	if (ranks > 1)
		text_format(others, sizeof(others), " and %d more", ranks - 1);
	job_note(job, "wrong results on rank %d%s: %s of %s %s", first, others,
		 op_function_name(cell->function), units_bytes(size, cell->bytes),
		 op_datatype_name(cell->datatype));
}

static int gather_shares(struct job_cell *work)
{
	struct bench_job *job = work->job;
	struct cell_share share = { work->cell.wrong, work->cell.loop_ns }, *shares = NULL;
	int status;

	if (job->run) {
		shares = calloc((size_t)job->place->nranks, sizeof(*shares));
		if (shares == NULL)
			return job_fail(job, "out of memory");
	}
	status = hub_gather(job->hub, &share, sizeof(share), shares);
	if (status == 0 && shares) {
		shares_add(&work->cell, shares, job->place->nranks);
		wrong_note(job, &work->cell, shares);
	}
	free(shares);
	return status;
}

static int gather_all(struct job_cell *work)
{
	struct bench_job *job = work->job;
	struct bench_cell *kept = NULL;
	uint32_t calls = work->cell.mode == BENCH_LOOP ? 0 : work->cell.calls;

	if (gather_shares(work) < 0)
		return -1;
	if (job->run) {
		kept = bench_run_add_cell(job->run, &work->cell);
		if (kept == NULL)
			return job_fail(job, "no memory for %u calls of %d ranks", calls,
					job->place->nranks);
	}
	if (calls == 0)
		return 0;
	return hub_gather(job->hub, work->calls, calls * sizeof(*work->calls),
			  kept ? kept->calls_of : NULL);
}

int bench_job_measure(struct bench_job *job, const struct bench_cell *cell)
{
	struct job_cell work;
	int status = work_init(&work, job, cell);

	if (status != 0)
		return status < 0 ? -1 : 0;
	if (job->comm == NULL)
		return job_fail(job, "there is no communicator to measure with");
	status = fill_buffers(&work) < 0 || hub_meet(job->hub) < 0 ? -1 : measure_cell(&work);
	if (status == 0 && (work_check(&work) < 0 || gather_all(&work) < 0))
		status = -1;
	free(work.calls);
	return status;
}

struct walk {
	struct bench_job *job;
	bench_told_fn told;
	void *context;
};

static int walk_measure(const struct walk *walk, const struct bench_cell *cell)
{
	struct bench_job *job = walk->job;
	size_t before = job->run ? job->run->cell_count : 0;
	int status = bench_job_measure(job, cell);

	if (status < 0)
		return -1;
	if (status > 0)
		job_note(job, "left out: %s, which NCCL refuses with this algorithm or protocol",
			 op_function_name(cell->function));
	if (walk->told && job->run && job->run->cell_count > before)
		walk->told(walk->context, job->run);
	return 0;
}

static int walk_sizes(const struct walk *walk, struct bench_cell *cell)
{
	const struct bench_plan *plan = walk->job->plan;

	for (size_t i = 0; i < plan->size_count; i++)
		for (int is_in_place = 0; is_in_place < 2; is_in_place++) {
			if (!(plan->places & (is_in_place ? PLAN_IN_PLACE : PLAN_OUT_OF_PLACE)))
				continue;
			cell->bytes = plan->sizes[i];
			cell->is_in_place = is_in_place;
			if (walk_measure(walk, cell) < 0)
				return -1;
		}
	return 0;
}

/* A function that does not reduce is measured once, whatever operations there are. */
static int walk_function(const struct walk *walk, struct bench_cell *cell)
{
	const struct bench_plan *plan = walk->job->plan;
	size_t redops = layout_is_reduction(cell->function) ? plan->redop_count : 1;

	for (size_t t = 0; t < plan->datatype_count; t++)
		for (size_t r = 0; r < redops; r++)
			for (size_t m = 0; m < plan->mode_count; m++) {
				cell->datatype = plan->datatypes[t];
				cell->redop = plan->redops[r];
				cell->mode = plan->modes[m];
				if (walk_sizes(walk, cell) < 0)
					return -1;
			}
	return 0;
}

int bench_job_measure_all(struct bench_job *job, bench_told_fn told, void *context)
{
	struct walk walk = { job, told, context };
	struct bench_cell cell = { 0 };

	for (size_t i = 0; i < job->plan->function_count; i++) {
		cell.function = job->plan->functions[i];
		cell.root = job->plan->root;
		if (walk_function(&walk, &cell) < 0)
			return -1;
	}
	bench_job_choices(job);
	return 0;
}
