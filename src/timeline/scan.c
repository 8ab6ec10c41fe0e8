#include "timeline/scan.h"

#include <stdlib.h>

static enum status start_process(struct scan *scan, uint32_t p)
{
	const struct job *job = scan->job;
	size_t seats = job->first_seat[p + 1] - job->first_seat[p];
	size_t count = 0;

	scan->process = p;
	scan->rank_count = 0;
	for (size_t r = job->process_rank[p]; r < job->rank_count; r++)
		count += job->ranks[r].process == p;
	scan->ranks = calloc(count + 1, sizeof(*scan->ranks));
	scan->cursors = calloc(seats * SCAN_CURSORS + 1, sizeof(*scan->cursors));
	if (scan->ranks == NULL || scan->cursors == NULL)
		return ERR_NO_SPACE;
	for (size_t r = job->process_rank[p]; scan->rank_count < count; r++) {
		struct scan_rank *rank = &scan->ranks[scan->rank_count];

		if (job->ranks[r].process != p)
			continue;
		*rank = (struct scan_rank){ .rank = (uint32_t)r,
					    .is_shown = scan->report->ranks[r].is_shown,
					    .busy = BUSY_INIT,
					    .untimed_first_ns = UINT64_MAX };
		scan->rank_count++;
	}
	scan_limits(scan, p);
	scan->local = scan->options->without_windows ? NULL : &scan->locals[p];
	scan->stretch_end_ns = scan->local != NULL ? 1 : UINT64_MAX;
	if (scan->local != NULL)
		windows_local_init(scan->local, scan->local_room);
	scan_entry_forget(scan);
	return OK;
}

static void end_process(struct scan *scan)
{
	size_t seats =
		scan->job->first_seat[scan->process + 1] - scan->job->first_seat[scan->process];

	for (size_t i = 0; scan->cursors != NULL && i < seats * SCAN_CURSORS; i++)
		meet_cursor_free(scan->cursors[i]);
	for (size_t i = 0; i < scan->rank_count; i++) {
		struct timeline_rank *rank = &scan->report->ranks[scan->ranks[i].rank];
		const struct busy *busy = &scan->ranks[i].busy;

		uint64_t first_ns = scan->ranks[i].untimed_first_ns;
		uint64_t last_ns = scan->ranks[i].untimed_last_ns;

		rank->busy_ns = busy_total_ns(busy);
		first_ns = busy->first_ns < first_ns ? busy->first_ns : first_ns;
		last_ns = busy_last_ns(busy) > last_ns ? busy_last_ns(busy) : last_ns;
		if (first_ns <= last_ns) {
			rank->span_ns = last_ns - first_ns;
			/* Of its own clock, until it is aligned. */
			rank->first_ns = first_ns;
			rank->last_ns = last_ns;
		}
	}
	if (scan->local != NULL) {
		windows_local_finish(scan->local);
		if (scan->local->status != OK)
			scan->status = scan->local->status;
	}
	free(scan->ranks);
	free(scan->cursors);
	scan->ranks = NULL;
	scan->cursors = NULL;
	scan->rank_count = 0;
}

static void add_walk(struct timeline_completeness *to, const struct recording_walk *walk)
{
	to->read += walk->in_trace + walk->in_ring + walk->in_live;
	to->refused += walk->refused;
	to->damages += walk->damages + walk->torn;
	to->untimed += walk->untimed;
}

static enum status scan_process(struct scan *scan, uint32_t p)
{
	struct recording_walk walk = { 0 };
	enum status status = start_process(scan, p), flushed;

	if (status == OK)
		status = recording_each_batch(scan->job->recording->processes[p],
					      scan_words(scan, p), scan_rows_visit, scan, &walk);
	add_walk(&scan->report->completeness, &walk);
	flushed = scan_flush(scan);
	estimate_end_process(&scan->estimate);
	end_process(scan);
	if (scan->status != OK)
		return scan->status;
	if (status == OK)
		status = flushed;
	if (status == OK)
		status = scan->meet.status != OK ? scan->meet.status : scan->links.status;
	return status;
}

enum status scan_run(struct scan *scan)
{
	for (uint32_t p = 0; p < scan->job->recording->count; p++) {
		enum status status = scan_process(scan, p);

		if (status != OK)
			return status;
	}
	return OK;
}
