/* What several sources say about one process becomes one; who is alive; the order of all. */
#include <stdlib.h>
#include <string.h>

#include "base/list_grow.h"
#include "region/region_alive.h"
#include "region/region_open.h"
#include "recording/recording_load.h"

bool recording_load_is_same(const struct recording_process *one,
			    const struct recording_process *other)
{
	/* Without these two, equal is not the same: simulations leave them out. */
	if (one->pid <= 0 || one->start_ticks == 0)
		return false;
	return one->pid == other->pid && one->start_ticks == other->start_ticks &&
	       one->pid_namespace == other->pid_namespace && one->rank == other->rank &&
	       strcmp(one->boot_id, other->boot_id) == 0 && strcmp(one->host, other->host) == 0 &&
	       strcmp(one->job, other->job) == 0;
}

static bool has_file(const struct recording_process *process, const struct recording_file *file)
{
	for (size_t i = 0; i < process->file_count; i++)
		if (process->files[i].device == file->device &&
		    process->files[i].inode == file->inode &&
		    process->files[i].start == file->start)
			return true;
	return false;
}

static int compare_files(const void *one, const void *other)
{
	const struct recording_file *a = one, *b = other;

	if (a->first_sequence != b->first_sequence)
		return a->first_sequence < b->first_sequence ? -1 : 1;
	if (a->created_wall_ns != b->created_wall_ns)
		return a->created_wall_ns < b->created_wall_ns ? -1 : 1;
	return strcmp(a->path, b->path);
}

static enum status join_files(struct recording_process *to, struct recording_process *from)
{
	for (size_t i = 0; i < from->file_count; i++) {
		if (has_file(to, &from->files[i]))
			continue;
		if (!list_grow(&to->files, to->file_count, sizeof(*to->files)))
			return ERR_NO_SPACE;
		to->files[to->file_count++] = from->files[i];
		from->files[i] = (struct recording_file){ .path = NULL };
	}
	return OK;
}

/* The region's counts are the newest; between trace files the one with more records is. */
static bool is_newer(const struct recording_process *one, const struct recording_process *other)
{
	if ((one->region != NULL) != (other->region != NULL))
		return one->region != NULL;
	if (one->has_counts != other->has_counts)
		return one->has_counts;
	/* Two looks at one that hangs. */
	if (one->recorded == other->recorded)
		return one->counts_ns > other->counts_ns;
	return one->recorded > other->recorded;
}

static enum status join_comms(struct recording_process *to, const struct recording_process *from,
			      bool is_from_newer)
{
	enum status status = OK;

	for (size_t i = 0; i < from->comm_count && status == OK; i++) {
		const struct recording_comm *found = &from->comms[i];
		size_t before = to->comm_count;
		struct recording_comm *comm = recording_load_comm(to, found->info.id);

		if (comm == NULL)
			status = ERR_NO_SPACE;
		else if (to->comm_count > before || (is_from_newer && found->has_counts))
			*comm = *found;
		else if (!comm->has_counts && found->has_counts) {
			comm->counts = found->counts;
			comm->has_counts = true;
		}
	}
	recording_load_comms_end(to);
	return status;
}

static enum status join_anchors(struct recording_process *to, struct recording_process *from)
{
	struct clock_anchor *mine = to->anchors, *theirs = from->anchors;
	size_t my_count = to->anchor_count, their_count = from->anchor_count;
	size_t i = 0, j = 0;
	enum status status = OK;

	to->anchors = NULL;
	to->anchor_count = 0;
	while (status == OK && (i < my_count || j < their_count)) {
		bool is_mine = j >= their_count ||
			       (i < my_count && mine[i].clock_ns <= theirs[j].clock_ns);

		status = recording_load_anchor(to, is_mine ? mine[i++] : theirs[j++]);
	}
	free(mine);
	return status;
}

#define TAKE(field)                      \
	do {                             \
		to->field = from->field; \
		from->field = 0;         \
	} while (0)

static void join_region(struct recording_process *to, struct recording_process *from)
{
	TAKE(region);
	TAKE(region_path);
	TAKE(flights);
	TAKE(flight_count);
	TAKE(proxies);
	TAKE(proxy_count);
	to->filling = from->filling;
	to->is_moving = from->is_moving;
	to->drained = from->drained;
	to->ended_ns = from->ended_ns;
	to->fresh_anchor = from->fresh_anchor;
	memcpy(to->mode, from->mode, sizeof(to->mode));
}

/* Sums since the start of the process: the newest are all. */
static void join_links(struct recording_process *to, struct recording_process *from,
		       bool is_from_newer)
{
	if (from->link_count == 0 || (to->link_count > 0 && !is_from_newer))
		return;
	free(to->links);
	TAKE(links);
	TAKE(link_count);
}

static void drop_flights(struct recording_process *process)
{
	for (size_t i = 0; i < process->flight_count; i++)
		free(process->flights[i].proxies);
	free(process->flights);
	free(process->proxies);
	process->flights = NULL;
	process->proxies = NULL;
	process->flight_count = process->proxy_count = 0;
}

/* A region has all that its snapshot had, and what came after. */
static void drop_snapshot(struct recording_process *process)
{
	if (!process->is_snapshot)
		return;
	for (size_t i = 0; i < process->file_count; i++)
		recording_file_release(&process->files[i]);
	process->file_count = 0;
	drop_flights(process);
	process->is_snapshot = false;
	process->snapshot_wall_ns = 0;
}

/* Between snapshots the later one tells what is in flight; a trace that goes on behind it proves that all of
 * it is over, or has it once more. */
static void join_snapshot(struct recording_process *to, struct recording_process *from,
			  bool is_from_newer)
{
	if (is_from_newer)
		drop_flights(to);
	if (is_from_newer && from->snapshot_wall_ns != 0) {
		TAKE(flights);
		TAKE(flight_count);
		TAKE(proxies);
		TAKE(proxy_count);
		to->filling = from->filling;
		to->is_moving = from->is_moving;
	}
	if (from->snapshot_wall_ns != 0 && (is_from_newer || to->snapshot_wall_ns == 0)) {
		to->snapshot_wall_ns = from->snapshot_wall_ns;
		to->snapshot_operations = from->snapshot_operations;
		to->snapshot_life = from->snapshot_life;
		to->snapshot_state = from->snapshot_state;
	}
	to->is_snapshot &= from->is_snapshot;
}

/* Counts only ever grow. */
static void join_counts(struct recording_process *to, const struct recording_process *from,
			bool is_from_newer)
{
	for (int i = 0; i < LOST_REASONS; i++)
		if (from->lost[i] > to->lost[i])
			to->lost[i] = from->lost[i];
	for (int i = 0; i < ODD_REASONS; i++)
		if (from->odd[i] > to->odd[i])
			to->odd[i] = from->odd[i];
	if (is_from_newer) {
		to->is_final = from->is_final;
		to->counts_ns = from->counts_ns;
	}
	to->has_counts |= from->has_counts;
	if (from->recorded > to->recorded)
		to->recorded = from->recorded;
	for (int i = 0; i < OP_NAMES_INTERNED_MAX; i++)
		if (to->names[i][0] == '\0')
			memcpy(to->names[i], from->names[i], sizeof(to->names[i]));
	to->refused += from->refused;
	if (from->refused_why != NULL)
		to->refused_why = from->refused_why;
}

enum status recording_join(struct recording *recording, struct recording_process *to,
			   struct recording_process *from)
{
	bool is_from_newer = is_newer(from, to);
	enum status status;

	if (from->region != NULL)
		drop_snapshot(to);
	if (to->region != NULL)
		drop_snapshot(from);
	status = join_files(to, from);
	if (status == OK)
		status = join_comms(to, from, is_from_newer);
	if (status == OK)
		status = join_anchors(to, from);
	join_counts(to, from, is_from_newer);
	join_links(to, from, is_from_newer);
	if (to->region == NULL && from->region == NULL)
		join_snapshot(to, from, is_from_newer);
	if (to->region == NULL && from->region != NULL)
		join_region(to, from);
	if (to->info == NULL) {
		TAKE(info);
		TAKE(info_bytes);
	}
	for (size_t i = 0; i < recording->trouble_count; i++)
		if (recording->troubles[i].owner == from)
			recording->troubles[i].owner = to;
	recording_process_free(from);
	return status;
}

static int compare_numbers(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

int recording_load_order(const struct recording_process *a, const struct recording_process *b)
{
	int order = strcmp(a->job, b->job);

	if (order == 0)
		order = compare_numbers(a->rank, b->rank);
	if (order == 0)
		order = strcmp(a->host, b->host);
	if (order == 0)
		order = compare_numbers(a->pid, b->pid);
	if (order == 0)
		order = compare_numbers((int64_t)a->start_ticks, (int64_t)b->start_ticks);
	if (order == 0)
		order = strcmp(a->boot_id, b->boot_id);
	if (order == 0)
		order = compare_numbers((int64_t)a->pid_namespace, (int64_t)b->pid_namespace);
	return order;
}

static int compare_identities(const void *one, const void *other)
{
	return recording_load_order(*(struct recording_process *const *)one,
				    *(struct recording_process *const *)other);
}

/* The same file twice, under two names or named twice. */
static bool is_repeated(const struct recording_process *one, const struct recording_process *other)
{
	if (one->foreign != NULL || other->foreign != NULL)
		return recording_foreign_is_same(one, other);
	return one->region == NULL && other->region == NULL && one->file_count == 1 &&
	       other->file_count == 1 && has_file(one, &other->files[0]);
}

static enum status join_all(struct recording *recording)
{
	enum status status = OK;
	size_t kept = 0;

	for (size_t i = 0; i < recording->count; i++) {
		struct recording_process *process = recording->processes[i];

		if (kept > 0 && status == OK &&
		    (recording_load_is_same(recording->processes[kept - 1], process) ||
		     is_repeated(recording->processes[kept - 1], process)))
			status = recording_join(recording, recording->processes[kept - 1], process);
		else
			recording->processes[kept++] = process;
	}
	recording->count = kept;
	for (size_t i = 0; i < kept; i++) {
		struct recording_process *process = recording->processes[i];

		if (process->file_count > 1)
			qsort(process->files, process->file_count, sizeof(*process->files),
			      compare_files);
	}
	return status;
}

static bool is_closed(const struct recording_process *process)
{
	if (process->region != NULL)
		return process->ended_ns != 0;
	return process->file_count > 0 && process->files[process->file_count - 1].is_closed;
}

/* Of a snapshot: what was so then. Whether it runs now is another question. */
static void set_life_then(struct recording_process *process)
{
	process->life = process->snapshot_life;
	process->process_state = process->snapshot_state;
	process->pid_here = -1;
}

void recording_load_life(struct recording_process *process)
{
	struct region_identity identity = { process->host, process->boot_id,
					    process->pid > 0 ? (uint64_t)process->pid : 0,
					    process->pid_namespace, process->start_ticks };
	enum region_alive alive;
	uint64_t pid_here = 0;

	if (process->is_snapshot) {
		set_life_then(process);
		return;
	}
	if (process->pid_here > 0) {
		pid_here = (uint64_t)process->pid_here;
		alive = region_alive_still(&identity, pid_here, &process->process_state);
	} else {
		alive = region_alive(&identity, &pid_here);
		process->process_state =
			alive == REGION_ALIVE_YES ? region_process_state(pid_here) : 0;
	}
	/* Nobody else's processes need to be visible for this. */
	if (alive == REGION_ALIVE_UNKNOWN && process->region != NULL &&
	    region_is_let_go(process->region))
		alive = REGION_ALIVE_NO;
	process->pid_here = alive == REGION_ALIVE_YES ? (int64_t)pid_here : -1;
	if (is_closed(process))
		process->life = RECORDING_ENDED;
	else if (alive == REGION_ALIVE_YES)
		process->life = RECORDING_ALIVE;
	else
		process->life = alive == REGION_ALIVE_NO ? RECORDING_KILLED : RECORDING_UNKNOWN;
	/* A trace from elsewhere says nothing; its snapshot did. */
	if (process->life == RECORDING_UNKNOWN && process->snapshot_wall_ns != 0)
		set_life_then(process);
}

/* A snapshot ends with its counts: it is whole without a closing record. */
static bool is_whole(const struct recording_process *process, const struct recording_file *file)
{
	return file->is_closed ||
	       (file->is_snapshot && process->is_final && file->cut_offset == file->bytes);
}

/* A file without its end is no trouble while it is being written, or while a region has the rest. */
static void note_cuts(struct recording *recording, const struct recording_process *process)
{
	if ((process->life == RECORDING_ALIVE && !process->is_snapshot) || process->region != NULL)
		return;
	for (size_t i = 0; i < process->file_count; i++) {
		const struct recording_file *file = &process->files[i];

		if (is_whole(process, file))
			continue;
		if (file->is_snapshot) {
			recording_load_trouble(
				recording, RECORDING_CUT, file->path, process,
				"a snapshot that was cut at byte %llu: what it lacks "
				"was there",
				(unsigned long long)file->cut_offset);
			recording_load_at(recording, file->cut_offset,
					  file->bytes - file->cut_offset);
			continue;
		}
		recording_load_trouble(recording, RECORDING_CUT, file->path, process,
				       "it ends at byte %llu without its closing record: %s",
				       (unsigned long long)file->cut_offset,
				       process->life == RECORDING_KILLED
					       ? "its process was killed"
					       : "it was cut, or its process still runs elsewhere");
		recording_load_at(recording, file->cut_offset, file->bytes - file->cut_offset);
	}
}

static void note_refused(struct recording *recording, const struct recording_process *process)
{
	const char *path = process->region_path;

	if (process->refused == 0)
		return;
	if (path == NULL)
		path = process->file_count > 0 ? process->files[0].path : "";
	recording_load_trouble(recording, RECORDING_DAMAGE, path, process,
			       "%zu of its communicators, live operations and transfers are "
			       "damaged: %s",
			       process->refused, process->refused_why);
}

enum status recording_finish(struct recording *recording)
{
	enum status status;

	recording_foreign_ranks(recording);
	if (recording->count > 1)
		qsort(recording->processes, recording->count, sizeof(*recording->processes),
		      compare_identities);
	status = join_all(recording);
	for (size_t i = 0; i < recording->count; i++) {
		recording_load_life(recording->processes[i]);
		note_cuts(recording, recording->processes[i]);
		note_refused(recording, recording->processes[i]);
		for (size_t j = 0; j < recording->trouble_count; j++)
			if (recording->troubles[j].owner == recording->processes[i])
				recording->troubles[j].process = (int)i;
	}
	return status;
}
