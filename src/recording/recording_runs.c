/*
 * Runs of a job. torchrun restarts workers, Slurm requeues jobs, users press ^C and start again: the
 * name stays. Processes of different runs never met, so nothing may be compared between them.
 *
 *	1. Processes that share a communicator belong together.
 *	2. Such components are taken in order of their start. One whose ranks were all in the current
 *	   run, in processes that ended before, begins a new run; so does one that starts after all
 *	   of the current run have ended.
 *
 * Two processes of the same rank that live at the same time do not make two runs: a job may restart
 * single ranks. If it is unknown when a process started, its job has one run.
 *
 * Times are those of the wall clock, which may be set back between two runs. Processes of one boot of
 * one machine share a clock that is never set, so theirs are the times of that one.
 */
#include "recording/recording.h"

#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/op.h"
#include "common/union_find.h"

/* Clocks of hosts may differ by this much. */
#define CLOCKS_NS (UINT64_C(2) * 1000 * 1000 * 1000)

struct member {
	struct recording_process *process;
	uint64_t start_ns;
	uint64_t end_ns; /* UINT64_MAX: it lives, or unknown */
	int64_t rank;	 /* -1: unknown */
	uint32_t component;
	uint64_t component_start_ns;
};

/* A rank of a communicator. */
struct seat {
	uint64_t hash;
	int32_t nranks;
	int32_t rank;
	uint32_t turn; /* how many processes had it before */
	uint32_t member;
};

struct runs {
	struct member *members;
	size_t count;
	struct seat *seats;
	size_t seat_count;
	uint32_t *by_rank; /* members of the current run, by rank; a hash table, 0: free */
	size_t rank_slots;
};

static uint64_t start_of(const struct recording_process *process, bool is_shared)
{
	return is_shared ? process->anchors[0].clock_ns : process->started_wall_ns;
}

static uint64_t end_of(const struct recording_process *process, bool is_shared)
{
	uint64_t last_ns = recording_last_ns(process), wall_ns;

	if (process->life == RECORDING_ALIVE || last_ns == 0)
		return UINT64_MAX;
	if (is_shared)
		return last_ns;
	return recording_wall_ns(process, last_ns, &wall_ns) ? wall_ns : UINT64_MAX;
}

static bool share_clock(struct recording_process *const *processes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (processes[i]->boot_id[0] == '\0' || processes[i]->anchor_count == 0 ||
		    strcmp(processes[i]->boot_id, processes[0]->boot_id) != 0)
			return false;
	return true;
}

/* Without a launcher, the rank in the largest communicator. */
static int64_t rank_of(const struct recording_process *process)
{
	const struct comm_info *largest = NULL;

	if (process->rank >= 0)
		return process->rank;
	for (size_t i = 0; i < process->comm_count; i++)
		if (largest == NULL || process->comms[i].info.nranks > largest->nranks)
			largest = &process->comms[i].info;
	return largest ? largest->rank : -1;
}

/* ---- components ------------------------------------------------------------------------------- */

static int by_place(const void *left, const void *right)
{
	const struct seat *a = left, *b = right;

	return ORDER(a->hash, b->hash) ?:
	       ORDER(a->nranks, b->nranks) ?:
	       ORDER(a->rank, b->rank) ?:
	       ORDER(a->member, b->member);
}

static int by_turn(const void *left, const void *right)
{
	const struct seat *a = left, *b = right;

	return ORDER(a->hash, b->hash) ?: ORDER(a->nranks, b->nranks) ?: ORDER(a->turn, b->turn);
}

static bool overlap(const struct member *a, const struct member *b)
{
	return (a->end_ns == UINT64_MAX || b->start_ns <= a->end_ns + CLOCKS_NS) &&
	       (b->end_ns == UINT64_MAX || a->start_ns <= b->end_ns + CLOCKS_NS);
}

/* Members are sorted by start: those that had a rank of a communicator first come first. */
static enum status find_components(struct runs *runs)
{
	size_t count = 0;
	bool is_repeated = false;
	uint32_t *parents;

	for (size_t m = 0; m < runs->count; m++)
		count += runs->members[m].process->comm_count;
	runs->seats = calloc(count + 1, sizeof(*runs->seats));
	parents = malloc((runs->count + 1) * sizeof(*parents));
	if (runs->seats == NULL || parents == NULL) {
		free(parents);
		return ERR_NO_SPACE;
	}
	union_find_init(parents, (uint32_t)runs->count);
	for (uint32_t m = 0; m < runs->count; m++) {
		const struct recording_process *process = runs->members[m].process;

		for (size_t i = 0; i < process->comm_count; i++)
			if (process->comms[i].info.hash != 0)
				runs->seats[runs->seat_count++] =
					(struct seat){ .hash = process->comms[i].info.hash,
						       .nranks = process->comms[i].info.nranks,
						       .rank = process->comms[i].info.rank,
						       .member = m };
	}
	qsort(runs->seats, runs->seat_count, sizeof(*runs->seats), by_place);
	for (size_t s = 1; s < runs->seat_count; s++) {
		struct seat *seat = &runs->seats[s];

		if (seat[-1].hash == seat->hash && seat[-1].nranks == seat->nranks &&
		    seat[-1].rank == seat->rank) {
			seat->turn = seat[-1].turn + (seat[-1].member != seat->member);
			is_repeated |= seat->turn > 0;
		}
	}
	qsort(runs->seats, runs->seat_count, sizeof(*runs->seats), by_turn);
	for (size_t s = 1; s < runs->seat_count; s++) {
		const struct seat *seat = &runs->seats[s];

		if (seat[-1].hash == seat->hash && seat[-1].nranks == seat->nranks &&
		    seat[-1].turn == seat->turn &&
		    (!is_repeated ||
		     overlap(&runs->members[seat[-1].member], &runs->members[seat->member])))
			union_find_join(parents, seat[-1].member, seat->member);
	}
	/* The root is the first of its component, and started first. */
	for (uint32_t m = 0; m < runs->count; m++) {
		runs->members[m].component = union_find_root(parents, m);
		runs->members[m].component_start_ns =
			runs->members[runs->members[m].component].start_ns;
	}
	free(parents);
	return OK;
}

/* ---- runs ------------------------------------------------------------------------------------- */

static uint32_t *slot_of(struct runs *runs, int64_t rank)
{
	size_t at = (size_t)((uint64_t)rank * UINT64_C(0x9e3779b97f4a7c15) >> 32) &
		    (runs->rank_slots - 1);

	while (runs->by_rank[at] != 0 && runs->members[runs->by_rank[at] - 1].rank != rank)
		at = (at + 1) & (runs->rank_slots - 1);
	return &runs->by_rank[at];
}

/* Members [first, end) are a component. Does it continue the run that ends at run_end_ns? */
static bool continues(struct runs *runs, size_t first, size_t end, uint64_t run_end_ns)
{
	size_t shared = 0, gone = 0;

	for (size_t m = first; m < end; m++) {
		const struct member *member = &runs->members[m];
		uint32_t before = member->rank >= 0 ? *slot_of(runs, member->rank) : 0;

		if (before == 0)
			continue;
		shared++;
		gone += runs->members[before - 1].end_ns != UINT64_MAX &&
			runs->members[before - 1].end_ns <= member->start_ns + CLOCKS_NS;
	}
	if (shared > 0)
		return gone * 2 <= shared;
	return run_end_ns == UINT64_MAX ||
	       runs->members[first].component_start_ns <= run_end_ns + CLOCKS_NS;
}

static int by_start(const void *left, const void *right)
{
	const struct member *a = left, *b = right;

	return ORDER(a->start_ns, b->start_ns) ?: recording_load_order(a->process, b->process);
}

static int by_component(const void *left, const void *right)
{
	const struct member *a = left, *b = right;

	return ORDER(a->component_start_ns, b->component_start_ns) ?:
	       ORDER(a->component, b->component) ?:
	       ORDER(a->start_ns, b->start_ns);
}

static size_t end_of_component(const struct runs *runs, size_t first)
{
	size_t end = first;

	while (end < runs->count && runs->members[end].component == runs->members[first].component)
		end++;
	return end;
}

static void number_runs(struct runs *runs)
{
	uint64_t run_end_ns = 0;
	uint32_t run = 0;

	for (size_t first = 0, end; first < runs->count; first = end) {
		end = end_of_component(runs, first);
		if (run == 0 || !continues(runs, first, end, run_end_ns)) {
			memset(runs->by_rank, 0, runs->rank_slots * sizeof(*runs->by_rank));
			run_end_ns = 0;
			run++;
		}
		for (size_t m = first; m < end; m++) {
			struct member *member = &runs->members[m];

			member->process->run = run;
			if (member->rank >= 0)
				*slot_of(runs, member->rank) = (uint32_t)m + 1;
			if (member->end_ns > run_end_ns)
				run_end_ns = member->end_ns;
		}
	}
}

/* A run is over if all of it ended before the last one began. */
static void mark_earlier(struct runs *runs)
{
	uint32_t last = runs->members[runs->count - 1].process->run;
	uint64_t last_start_ns = UINT64_MAX, end_ns = 0;

	for (size_t m = 0; m < runs->count; m++)
		if (runs->members[m].process->run == last &&
		    runs->members[m].start_ns < last_start_ns)
			last_start_ns = runs->members[m].start_ns;
	/* Members are sorted by run. */
	for (size_t first = 0, end; first < runs->count; first = end) {
		uint32_t run = runs->members[first].process->run;

		end_ns = 0;
		for (end = first; end < runs->count && runs->members[end].process->run == run;
		     end++)
			if (runs->members[end].end_ns > end_ns)
				end_ns = runs->members[end].end_ns;
		for (size_t m = first; m < end; m++) {
			runs->members[m].process->runs = last;
			runs->members[m].process->is_earlier_run =
				run != last && end_ns != UINT64_MAX &&
				end_ns <= last_start_ns + CLOCKS_NS;
		}
	}
}

/* Processes [first, first + count) of the recording are those of a job. */
static enum status find_runs(struct recording_process **processes, size_t count)
{
	struct runs runs = { .count = count, .rank_slots = 64 };
	enum status status = ERR_NO_SPACE;
	bool is_shared = share_clock(processes, count);

	while (runs.rank_slots < 2 * count)
		runs.rank_slots *= 2;
	runs.members = calloc(count, sizeof(*runs.members));
	runs.by_rank = calloc(runs.rank_slots, sizeof(*runs.by_rank));
	if (runs.members == NULL || runs.by_rank == NULL)
		goto out;
	status = OK;
	for (size_t i = 0; i < count; i++) {
		processes[i]->run = processes[i]->runs = 1;
		processes[i]->is_earlier_run = false;
	}
	for (size_t i = 0; i < count; i++) {
		if (processes[i]->started_wall_ns == 0 && processes[i]->anchor_count > 0)
			processes[i]->started_wall_ns = processes[i]->anchors[0].wall_ns;
		runs.members[i] = (struct member){ .process = processes[i],
						   .start_ns = start_of(processes[i], is_shared),
						   .end_ns = end_of(processes[i], is_shared),
						   .rank = rank_of(processes[i]) };
		if (runs.members[i].start_ns == 0)
			goto out;
	}
	qsort(runs.members, count, sizeof(*runs.members), by_start);
	status = find_components(&runs);
	if (status != OK)
		goto out;
	qsort(runs.members, count, sizeof(*runs.members), by_component);
	number_runs(&runs);
	mark_earlier(&runs);
out:
	free(runs.members);
	free(runs.seats);
	free(runs.by_rank);
	return status;
}

enum status recording_find_runs(struct recording *recording)
{
	enum status status = OK;

	for (size_t first = 0, end; first < recording->count && status == OK; first = end) {
		const char *job = recording->processes[first]->job;

		for (end = first + 1; end < recording->count; end++)
			if (strcmp(recording->processes[end]->job, job) != 0)
				break;
		status = find_runs(recording->processes + first, end - first);
	}
	return status;
}
