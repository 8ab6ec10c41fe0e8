/* Makes a report: job, scan of all operations, completeness, common time. */
#include "analysis/timeline_report.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/scan.h"
#include "common/attributes.h"
#include "common/clock.h"

static enum status set_up_tables(struct timeline_report *report,
				 const struct timeline_options *options)
{
	tally_init(&report->by_comm, TALLY_BY_COMM, 0);
	tally_init(&report->by_comm_name, TALLY_BY_GROUP | TALLY_BY_COMM_NAME | TALLY_BY_KIND, 0);
	tally_init(&report->by_function, TALLY_BY_FUNCTION, 0);
	tally_init(&report->by_size, TALLY_BY_FUNCTION | TALLY_BY_SIZE, 0);
	tally_init(&report->by_algorithm,
		   TALLY_BY_FUNCTION | TALLY_BY_ALGORITHM | TALLY_BY_PROTOCOL, 0);
	tally_init(&report->by_rank, TALLY_BY_RANK, 0);
	tally_init(&report->by_kind, TALLY_BY_KIND | TALLY_BY_FUNCTION, 0);
	tally_init(&report->by_source, TALLY_BY_SOURCE, 0);
	for (size_t i = 0; i < options->custom_count && i < TIMELINE_CUSTOM_MAX; i++)
		tally_init(&report->custom[report->custom_count++], options->custom_by[i], 0);
	report->ranks = calloc(report->job.rank_count + 1, sizeof(*report->ranks));
	report->hosts = calloc(report->job.host_count + 1, sizeof(*report->hosts));
	report->comms = calloc(report->job.comm_count + 1, sizeof(*report->comms));
	return report->ranks && report->hosts && report->comms ? OK : ERR_NO_SPACE;
}

static void sort_tables(struct timeline_report *report)
{
	tally_sort(&report->by_comm, TALLY_BY_TIME_SPENT);
	tally_sort(&report->by_comm_name, TALLY_BY_TIME_SPENT);
	tally_sort(&report->by_function, TALLY_BY_TIME_SPENT);
	tally_sort(&report->by_size, TALLY_BY_KEY);
	tally_sort(&report->by_algorithm, TALLY_BY_KEY);
	tally_sort(&report->by_rank, TALLY_BY_KEY);
	tally_sort(&report->by_kind, TALLY_BY_TIME_SPENT);
	tally_sort(&report->by_source, TALLY_BY_KEY);
	for (size_t i = 0; i < report->custom_count; i++)
		tally_sort(&report->custom[i], report->custom[i].by & TALLY_BY_SIZE
						       ? TALLY_BY_KEY
						       : TALLY_BY_TIME_SPENT);
}

/* ---- completeness ---------------------------------------------------------------------------- */

static void count_life(struct timeline_completeness *to, enum recording_life life)
{
	to->ended += life == RECORDING_ENDED;
	to->alive += life == RECORDING_ALIVE;
	to->killed += life == RECORDING_KILLED;
	to->unknown_life += life == RECORDING_UNKNOWN;
}

static void count_process(struct timeline_completeness *to, const struct recording_process *process)
{
	bool is_kept = !process->is_snapshot &&
		       (strcmp(process->mode, "trace") == 0 || strcmp(process->mode, "full") == 0);

	to->processes++;
	to->snapshots += process->is_snapshot;
	to->with_counts += process->has_counts && process->is_final;
	to->keeps_all = to->keeps_all && is_kept;
	count_life(to, process->life);
	to->without_end_mark += process->foreign != NULL && process->life == RECORDING_UNKNOWN;
	for (size_t i = 0; i < process->comm_count; i++)
		if (process->comms[i].has_counts)
			to->issued += process->comms[i].counts.issued;
	/* Operations without communicator, or while recording or events were off, are in no other counter. */
	to->issued += op_lost_unseen(process->lost);
	for (unsigned int i = 0; i < LOST_REASONS; i++) {
		to->lost[i] += process->lost[i];
		if (op_lost_is_whole(i))
			to->lost_operations += process->lost[i];
	}
}

static void judge_completeness(struct timeline_report *report)
{
	struct timeline_completeness *to = &report->completeness;
	const struct recording *recording = report->recording;

	to->keeps_all = recording->count > 0;
	for (size_t p = 0; p < recording->count; p++)
		count_process(to, recording->processes[p]);
	to->troubles = recording->trouble_count + recording->troubles_left_out;
	if (!to->keeps_all && to->issued > to->read + to->lost_operations)
		to->overwritten = to->issued - to->read - to->lost_operations;
	to->is_complete = to->with_counts == to->processes && to->processes > 0 &&
			  to->issued == to->read && to->lost_operations == 0 && to->refused == 0 &&
			  to->damages == 0 && to->troubles == 0;
	to->share = to->is_complete ? 1 : 0;
	if (!to->is_complete && to->issued > 0)
		to->share = to->read < to->issued ? (double)to->read / (double)to->issued : 1;
}

/* ---- ranks and hosts ------------------------------------------------------------------------- */

static void choose_ranks(struct timeline_report *report, const struct filter *filter)
{
	for (size_t r = 0; r < report->job.rank_count; r++)
		report->ranks[r].is_shown = filter_has_rank(filter, report->job.ranks[r].rank);
	for (size_t c = 0; c < report->job.comm_count; c++)
		report->comms[c].is_shown = filter_has_comm(filter, &report->job.comms[c]);
}

/* The union of the timed calls, extrapolated to the others in proportion to their estimated durations. */
static double busy_share_of(const struct timeline_rank *rank)
{
	double scale = rank->sum_ns ? 1 + rank->covered_ns / (double)rank->sum_ns : 1;
	double share = rank->span_ns ? scale * (double)rank->busy_ns / (double)rank->span_ns : 0;

	return share < 1 ? share : 1;
}

static void sum_ranks(struct timeline_report *report)
{
	double share_sum = 0;

	for (size_t r = 0; r < report->job.rank_count; r++) {
		struct timeline_rank *rank = &report->ranks[r];
		struct timeline_host *host = &report->hosts[report->job.ranks[r].host];

		rank->busy_share = busy_share_of(rank);
		rank->is_busy_known =
			rank->timed > 0 && rank->span_ns > 0 && !report->job.ranks[r].is_partial;
		if (!rank->is_shown)
			continue;
		host->ranks++;
		host->busy_ranks += rank->is_busy_known;
		host->timed += rank->timed;
		host->wait_ns += rank->wait_ns;
		host->joined_ns += rank->joined_ns;
		host->sum_ns += rank->sum_ns;
		host->covered_ns += rank->covered_ns;
		host->covered_wait_ns += rank->covered_wait_ns;
		host->busy_share += rank->busy_share;
		if (report->job.ranks[r].is_counted)
			report->gpu_hours += (double)rank->span_ns / HOUR_NS;
		report->gpu_hours_waited +=
			((double)rank->wait_ns + rank->covered_wait_ns) / HOUR_NS;
		report->busy_ranks += rank->is_busy_known;
		share_sum += rank->busy_share;
	}
	for (size_t h = 0; h < report->job.host_count; h++)
		if (report->hosts[h].busy_ranks > 0)
			report->hosts[h].busy_share /= report->hosts[h].busy_ranks;
	report->busy_share = report->busy_ranks ? share_sum / (double)report->busy_ranks : 0;
}

/* ---------------------------------------------------------------------------------------------- */

static void keep_counts(struct timeline_report *report, struct scan *scan)
{
	for (size_t c = 0; c < report->job.comm_count; c++) {
		const struct match_comm *from = &scan->matches.comms[c];
		struct timeline_comm *to = &report->comms[c];

		to->complete = from->complete;
		to->partial = from->partial;
		to->wait_ns = from->wait_ns;
		to->mismatches = from->differing;
		to->first_mismatch = from->first_difference;
	}
	report->memory_bytes = scan->matches.slot_count * sizeof(struct match_slot) +
			       scan->matches.part_count * sizeof(struct match_part);
	report->matches = scan->matches;
	report->matches.comms = NULL;
	report->matches.edges = NULL;
	report->matches.edge_count = 0;
}

/* ---- common time ----------------------------------------------------------------------------- */

static enum status place_in_time(struct timeline_report *report, const struct scan *scan)
{
	enum status status = align_solve(&report->align, &report->job, scan->matches.edges,
					 scan->matches.edge_count);

	if (status != OK)
		return status;
	for (size_t r = 0; r < report->job.rank_count; r++) {
		struct timeline_rank *rank = &report->ranks[r];
		uint32_t process = report->job.ranks[r].process;

		rank->first_ns = align_ns(&report->align, process, rank->first_ns);
		rank->last_ns = align_ns(&report->align, process, rank->last_ns);
		if (rank->last_ns == 0 || !rank->is_shown)
			continue;
		if (report->start_ns == 0 || rank->first_ns < report->start_ns)
			report->start_ns = rank->first_ns;
		if (rank->last_ns > report->end_ns)
			report->end_ns = rank->last_ns;
	}
	for (size_t p = 0; p < report->recording->count; p++)
		report->has_wall =
			report->has_wall || report->recording->processes[p]->anchor_count;
	return OK;
}

static uint64_t called_ns(const struct iterations_op *op)
{
	return op->issue_ns ? op->issue_ns : op->done_ns;
}

static int by_call(const void *left, const void *right)
{
	uint64_t a = called_ns(left), b = called_ns(right);

	return ORDER(a, b);
}

/*
 * Records come in the order in which they were finished, calls were made in the order of their issue:
 * nearly the same. Each is inserted close to its place; if that is far away, all are sorted.
 */
static void sort_by_call(struct iterations_op *ops, size_t count)
{
	enum { FAR = 1024 };

	for (size_t i = 1; i < count; i++) {
		struct iterations_op op = ops[i];
		size_t to = i;

		while (to > 0 && i - to < FAR && called_ns(&ops[to - 1]) > called_ns(&op)) {
			ops[to] = ops[to - 1];
			to--;
		}
		ops[to] = op;
		if (i - to == FAR) {
			qsort(ops, count, sizeof(*ops), by_call);
			return;
		}
	}
}

/* The operations of one communicator run one after the other. */
static enum status set_floors(struct scan *scan)
{
	uint32_t first = scan->job->first_seat[scan->iteration_process];
	uint32_t seats = scan->job->first_seat[scan->iteration_process + 1] - first;
	uint64_t *done_ns = calloc(seats + 1, sizeof(*done_ns));

	if (done_ns == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < scan->iteration_count; i++) {
		struct iterations_op *op = &scan->iteration_ops[i];
		uint64_t *before = &done_ns[op->comm - first];

		op->floor_ns = *before;
		if (op->done_ns > *before)
			*before = op->done_ns;
	}
	free(done_ns);
	return OK;
}

static enum status find_iterations(struct timeline_report *report, struct scan *scan)
{
	struct iterations *iterations = &report->iterations;
	enum status status;

	if (scan->iteration_process == UINT32_MAX)
		return OK;
	sort_by_call(scan->iteration_ops, scan->iteration_count);
	status = set_floors(scan);
	if (status == OK)
		status = iterations_find(iterations, scan->iteration_ops, scan->iteration_count);
	iterations->is_cut = scan->is_iteration_cut;
	for (size_t i = 0; status == OK && i < iterations->count; i++) {
		struct iteration *iteration = &iterations->list[i];

		iteration->start_ns =
			align_ns(&report->align, scan->iteration_process, iteration->start_ns);
		iteration->end_ns =
			align_ns(&report->align, scan->iteration_process, iteration->end_ns);
		iteration->called_ns =
			align_ns(&report->align, scan->iteration_process, iteration->called_ns);
		iteration->next_called_ns = align_ns(&report->align, scan->iteration_process,
						     iteration->next_called_ns);
	}
	return status;
}

static enum status report_judge(struct timeline_report *report, struct scan *scan)
{
	const struct timeline_options *options = scan->options;
	enum status status = place_in_time(report, scan);

	if (status == OK && !options->without_windows)
		status = windows_make(&report->windows, report, &scan->matches, scan->locals,
				      options->windows ? options->windows : WINDOWS_DEFAULT);
	/* The search for stragglers needs their length. */
	if (status == OK)
		status = find_iterations(report, scan);
	if (status == OK && !options->without_joins)
		status = straggler_find(&report->stragglers, report, &scan->matches, &scan->links);
	if (status == OK && !options->without_joins)
		status = paces_make(&report->paces, &scan->matches, &scan->links);
	return status;
}

static enum status report_fill(struct timeline_report *report, struct scan *scan)
{
	enum status status = scan_run(scan);

	if (status == OK)
		status = match_finish(&scan->matches);
	if (status == OK)
		status = scan_add_waiting(scan);
	if (status == OK)
		status = scan_add_estimates(scan);
	if (status != OK)
		return status;
	judge_completeness(report);
	sum_ranks(report);
	status = report_judge(report, scan);
	if (status != OK)
		return status;
	sort_tables(report);
	keep_counts(report, scan);
	if (scan->options->progress != NULL &&
	    !scan->options->progress(1, scan->options->progress_context))
		return ERR_GONE;
	return findings_make(&report->findings, report, scan);
}

enum status timeline_report_make(struct timeline_report *report, const struct recording *recording,
				 const struct filter *filter,
				 const struct timeline_options *options)
{
	static const struct filter everything;
	static const struct timeline_options plain;
	struct scan *scan = calloc(1, sizeof(*scan));
	enum status status;

	*report = (struct timeline_report){ .recording = recording };
	filter = filter ? filter : &everything;
	options = options ? options : &plain;
	status = scan ? job_make(&report->job, recording) : ERR_NO_SPACE;
	if (status == OK)
		status = set_up_tables(report, options);
	if (status == OK) {
		choose_ranks(report, filter);
		status = scan_init(scan, report, filter, options);
	}
	if (status == OK)
		status = report_fill(report, scan);
	if (status == OK)
		status = wires_make(&report->wires, &report->job, filter);
	if (scan != NULL)
		scan_release(scan);
	free(scan);
	if (status != OK)
		timeline_report_release(report);
	return status;
}

void timeline_report_release(struct timeline_report *report)
{
	struct tally *const tables[] = { &report->by_comm,	&report->by_comm_name,
					 &report->by_function,	&report->by_size,
					 &report->by_algorithm, &report->by_rank,
					 &report->by_kind,	&report->by_source };

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		tally_release(tables[i]);
	for (size_t i = 0; i < report->custom_count; i++)
		tally_release(&report->custom[i]);
	tally_row_release(&report->total);
	free(report->ranks);
	free(report->hosts);
	free(report->comms);
	free(report->untimed);
	wires_release(&report->wires);
	paces_release(&report->paces);
	align_release(&report->align);
	stragglers_release(&report->stragglers);
	windows_release(&report->windows);
	iterations_release(&report->iterations);
	findings_release(&report->findings);
	job_release(&report->job);
	*report = (struct timeline_report){ .recording = NULL };
}

struct units_text timeline_time(const struct timeline_report *report, uint64_t ns, const char *zone)
{
	uint64_t after_ns = ns > report->start_ns ? ns - report->start_ns : 0;
	struct units_text to;

	if (report->has_wall)
		units_clock(to.text, recording_past_wall(report->recording, ns));
	else
		units_duration(to.text, after_ns);
	text_append(to.text, sizeof(to.text), "%s", report->has_wall ? zone : " after the start");
	return to;
}
