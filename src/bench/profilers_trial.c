/* One job at a time: what it measured, what its plugin left, and what became of both. */
#include <stdlib.h>
#include <string.h>

#include "bench/profilers_parts.h"
#include "common/op.h"
#include "common/text.h"

static struct profilers_jobs *jobs_of(struct profilers *work, size_t plugin, uint8_t mode)
{
	struct profilers_jobs *list = work->jobs.items, *added;

	for (size_t i = 0; i < work->jobs.count; i++)
		if (list[i].plugin == plugin && list[i].mode == mode)
			return &list[i];
	added = profilers_list_add(&work->jobs, PROFILERS_ROWS_MAX);
	if (added) {
		added->plugin = (uint8_t)plugin;
		added->mode = mode;
	}
	return added;
}

static void count_job(struct profilers_jobs *jobs, const struct profilers_trial *trial)
{
	jobs->failed += trial->output == PROFILERS_FAILED;
	if (trial->output != PROFILERS_FAILED && trial->plugin == 0)
		jobs->read++;
	else {
		jobs->read += trial->output == PROFILERS_READ;
		jobs->silent += trial->output == PROFILERS_SILENT;
		jobs->unreadable += trial->output == PROFILERS_UNREADABLE;
	}
	if (trial->problem)
		text_copy(jobs->problem, sizeof(jobs->problem), trial->problem);
}

/* All cells have it; 0: they do not agree, or there are none. */
static uint8_t mode_of(const struct bench_run *bench)
{
	uint8_t mode = bench->cell_count ? bench->cells[0].mode : 0;

	for (size_t i = 1; i < bench->cell_count; i++)
		if (bench->cells[i].mode != mode)
			return 0;
	return mode < BENCH_MODES ? mode : 0;
}

static void set_place(struct profilers_comparison *out, const struct bench_run *bench)
{
	text_copy(out->host, sizeof(out->host), bench->ranks[0].host);
	text_copy(out->gpu, sizeof(out->gpu), bench->ranks[0].gpu_name);
	out->nccl_version = bench->nccl_version;
	out->cuda_version = bench->cuda_version;
	out->nranks = bench->nranks;
	out->nodes = bench->nodes;
	out->is_gpu_shared = bench->is_gpu_shared;
	out->is_mps = bench->is_mps;
	out->started_ns = bench->started_ns;
}

void profilers_place(struct profilers *work, const struct bench_run *bench)
{
	if (work->out.nranks == 0 && bench->ranks)
		set_place(&work->out, bench);
}

static void tell_place(struct profilers *work, const struct bench_run *bench)
{
	struct profilers_comparison *out = &work->out;

	if (out->calls == 0) {
		set_place(out, bench);
	} else if (out->nccl_version != bench->nccl_version || out->nranks != bench->nranks ||
		   out->is_mps != bench->is_mps || out->is_gpu_shared != bench->is_gpu_shared ||
		   strcmp(out->host, bench->ranks[0].host) != 0 ||
		   strcmp(out->gpu, bench->ranks[0].gpu_name) != 0) {
		profilers_note(work, "not all jobs ran on the same machine in the same way: their "
				     "times are not comparable");
	}
	if (bench->started_ns && bench->started_ns < out->started_ns)
		out->started_ns = bench->started_ns;
	for (size_t i = 0; i < bench->note_count; i++)
		profilers_note(work, "%s", bench->notes[i]);
	for (size_t i = 0; i < bench->cell_count; i++)
		out->calls += bench->cells[i].calls;
}

/* A plugin that changes results is worse than one that loses records. */
static void tell_wrong(struct profilers *work, const struct profilers_trial *trial)
{
	const struct bench_run *bench = trial->bench;

	for (size_t i = 0; i < bench->cell_count; i++)
		if (bench->cells[i].wrong > 0 && bench->cells[i].wrong != BENCH_UNCHECKED) {
			profilers_note(work, "%s: results of %s, %s, were wrong",
				       work->out.plugins[trial->plugin].label,
				       op_function_name(bench->cells[i].function),
				       bench_mode_name(bench->cells[i].mode));
			return;
		}
}

static enum status take_recording(struct profilers *work, const struct profilers_trial *trial,
				  uint8_t mode, struct profilers_jobs *jobs)
{
	struct profilers_list records = { .size = sizeof(struct profilers_record) };
	struct profilers_ledger ledger;
	enum status status;
	uint64_t lost;

	status = profilers_ledger_init(&ledger, trial->bench);
	if (status == OK && trial->recording && trial->output == PROFILERS_READ) {
		status = profilers_take_records(&ledger, trial->recording, &records);
		if (status == OK &&
		    profilers_take_lost(trial->recording, work->out.plugins[trial->plugin].kind,
					&lost)) {
			jobs->tells_lost = true;
			jobs->lost += lost;
		}
	}
	if (status == OK)
		status = profilers_add_complete(work, trial, mode, &ledger);
	if (status == OK)
		status = profilers_join(work, trial, mode, &ledger, &records);
	profilers_list_release(&records);
	profilers_ledger_release(&ledger);
	return status;
}

static bool is_allowed(const struct profilers *work, const struct profilers_trial *trial)
{
	const struct bench_run *bench = trial->bench;

	if (trial->plugin >= work->out.plugin_count || trial->run >= PROFILERS_RUNS_MAX ||
	    (trial->plugin > 0 &&
	     (trial->output < PROFILERS_READ || trial->output >= PROFILERS_OUTPUTS)))
		return false;
	if (trial->output == PROFILERS_FAILED)
		return trial->mode > 0 && trial->mode < BENCH_MODES;
	return bench && bench->nranks > 0 && bench->ranks && mode_of(bench) != 0;
}

enum status profilers_trial(struct profilers *work, const struct profilers_trial *trial)
{
	uint8_t kind, mode;
	struct profilers_jobs *jobs;
	enum status status = OK;

	if (!is_allowed(work, trial))
		return ERR_RANGE;
	kind = work->out.plugins[trial->plugin].kind;
	mode = trial->bench && trial->output != PROFILERS_FAILED ? mode_of(trial->bench)
								 : trial->mode;
	jobs = jobs_of(work, trial->plugin, mode);
	if (jobs == NULL)
		return ERR_NO_SPACE;
	if (trial->output != PROFILERS_FAILED && trial->plugin > 0 &&
	    trial->output != PROFILERS_UNREADABLE) {
		if (kind == PROFILERS_NCCLSEE)
			status = profilers_take_ncclsee(work, trial, mode);
		else if (kind != PROFILERS_UNKNOWN)
			status = take_recording(work, trial, mode, jobs);
	}
	if (status == OK && trial->output != PROFILERS_FAILED) {
		tell_place(work, trial->bench);
		tell_wrong(work, trial);
		status = profilers_take_times(work, trial);
	}
	if (status == OK)
		count_job(jobs, trial);
	return status;
}
