/* A recording in memory: its parts, merging the sources of one process, and its clocks. */
#include "recording/recording.h"
#include "recording/recording_internal.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/attributes.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/owned_name.h"
#include "common/search.h"
#include "common/status.h"
#include "common/text.h"
#include "format/region_read.h"

/* Limit for a text that describes a process; that of a region has 8 KiB. */
enum { INFO_BYTES_MAX = 1 << 16, ANCHORS_MAX = 1 << 20 };

const char *recording_life_name(enum recording_life life)
{
	static const char *const names[] = { "unknown", "alive", "ended", "killed" };

	return names[life < ARRAY_LENGTH(names) ? life : RECORDING_UNKNOWN];
}

const char *recording_trouble_name(enum recording_trouble_kind kind)
{
	static const char *const names[] = { "?",	   "damage",  "cut",	"foreign",
					     "unreadable", "too_new", "nothing" };

	return names[kind < ARRAY_LENGTH(names) ? kind : 0];
}

void recording_init(struct recording *recording)
{
	*recording = (struct recording){ 0 };
}

void recording_release(struct recording *recording)
{
	for (size_t i = 0; i < recording->count; i++)
		recording_process_free(recording->processes[i]);
	for (size_t i = 0; i < recording->trouble_count; i++)
		free(recording->troubles[i].path);
	for (size_t i = 0; i < recording->foreign_path_count; i++)
		free(recording->foreign_paths[i]);
	for (size_t i = 0; i < recording->note_count; i++) {
		free(recording->notes[i].path);
		free(recording->notes[i].text);
	}
	free(recording->notes);
	free(recording->foreign_paths);
	free(recording->processes);
	free(recording->troubles);
	free(recording->left_out);
	if (recording->shown != NULL)
		recording_hide_past(recording);
	*recording = (struct recording){ 0 };
}

struct recording_process *recording_process_new(void)
{
	struct recording_process *process = calloc(1, sizeof(*process));

	if (process != NULL)
		process->owner = process->pid = process->pid_here = process->rank =
			process->local_rank = process->world_size = -1;
	return process;
}

static void recording_file_release(struct recording_file *file)
{
	free(file->path);
	free(file->archive);
	/* Const for readers, but allocated by us. */
	free((void *)(uintptr_t)file->memory);
	*file = (struct recording_file){ .path = NULL };
}

void recording_process_free(struct recording_process *process)
{
	if (process == NULL)
		return;
	for (size_t i = 0; i < process->file_count; i++)
		recording_file_release(&process->files[i]);
	for (size_t i = 0; i < process->flight_count; i++)
		free(process->flights[i].proxies);
	if (process->region != NULL)
		region_close(process->region);
	free(process->region);
	free(process->region_path);
	recording_foreign_free(process->foreign);
	for (size_t i = 0; i < process->where_count; i++)
		free(process->wheres[i].text);
	free(process->wheres);
	free(process->stack);
	free(process->files);
	free(process->flights);
	free(process->proxies);
	free(process->comms);
	free(process->comm_index);
	free(process->totals);
	free(process->links);
	recording_totals_free(process->follow);
	recording_past_free(process->past);
	free(process->shifts);
	free(process->anchors);
	free(process->info);
	free(process);
}

void recording_load_trouble(struct recording *recording, enum recording_trouble_kind kind,
			    const char *path, const struct recording_process *process,
			    const char *what, ...)
{
	bool is_cut = kind == RECORDING_CUT;
	size_t listed =
		is_cut ? recording->cut_count : recording->trouble_count - recording->cut_count;
	struct recording_trouble *trouble;
	va_list values;

	if (listed >= RECORDING_TROUBLES_MAX ||
	    !list_grow(&recording->troubles, recording->trouble_count,
		       sizeof(*recording->troubles))) {
		recording->troubles_left_out++;
		recording->cuts_left_out += is_cut;
		return;
	}
	trouble = &recording->troubles[recording->trouble_count];
	*trouble = (struct recording_trouble){ .kind = kind,
					       .path = strdup(path),
					       .process = process };
	if (trouble->path == NULL) {
		recording->troubles_left_out++;
		recording->cuts_left_out += is_cut;
		return;
	}
	va_start(values, what);
	vsnprintf(trouble->what, sizeof(trouble->what), what, values);
	va_end(values);
	recording->trouble_count++;
	recording->cut_count += is_cut;
}

void recording_load_at(struct recording *recording, uint64_t offset, uint64_t bytes)
{
	struct recording_trouble *trouble;

	if (recording->trouble_count == 0 || recording->troubles_left_out > 0)
		return;
	trouble = &recording->troubles[recording->trouble_count - 1];
	trouble->offset = offset;
	trouble->bytes = bytes;
}

enum status recording_load_keep(struct recording *recording, struct recording_process *process)
{
	if (!list_grow(&recording->processes, recording->count, sizeof(*recording->processes))) {
		recording_process_free(process);
		return ERR_NO_SPACE;
	}
	recording->processes[recording->count++] = process;
	return OK;
}

enum status recording_load_info(struct recording_process *process, const char *text, size_t bytes)
{
	int64_t number;

	if (process->info != NULL || bytes == 0)
		return OK;
	if (bytes > INFO_BYTES_MAX)
		bytes = INFO_BYTES_MAX;
	process->info = malloc(bytes);
	if (process->info == NULL)
		return ERR_NO_SPACE;
	memcpy(process->info, text, bytes);
	process->info_bytes = bytes;
	info_get(text, bytes, "host", process->host, sizeof(process->host));
	info_get(text, bytes, "boot_id", process->boot_id, sizeof(process->boot_id));
	info_get(text, bytes, "job", process->job, sizeof(process->job));
	info_get(text, bytes, "mode", process->mode, sizeof(process->mode));
	process->pid = info_get_number(text, bytes, "pid", -1);
	process->rank = info_get_number(text, bytes, "rank", -1);
	process->local_rank = info_get_number(text, bytes, "local_rank", -1);
	process->world_size = info_get_number(text, bytes, "world_size", -1);
	number = info_get_number(text, bytes, "pid_namespace", 0);
	process->pid_namespace = number > 0 ? (uint64_t)number : 0;
	number = info_get_number(text, bytes, "start_ticks", 0);
	process->start_ticks = number > 0 ? (uint64_t)number : 0;
	number = info_get_number(text, bytes, "interface", 0);
	process->interface = number > 0 && number < 1000 ? (uint32_t)number : 0;
	number = info_get_number(text, bytes, "started_wall_ns", 0);
	process->started_wall_ns = number > 0 ? (uint64_t)number : 0;
	number = info_get_number(text, bytes, "heartbeat_ns", 0);
	process->heartbeat_ns = number > 0 ? (uint64_t)number : 0;
	recording_load_wheres(process);
	return OK;
}

enum status recording_load_anchor(struct recording_process *process, struct clock_anchor anchor)
{
	size_t count = process->anchor_count;

	if (anchor.wall_ns == 0 || count >= ANCHORS_MAX)
		return OK;
	/* The clock never steps back, so an anchor from before the last one is invalid. */
	if (count > 0 && process->anchors[count - 1].clock_ns >= anchor.clock_ns)
		return OK;
	if (!list_grow(&process->anchors, count, sizeof(*process->anchors)))
		return ERR_NO_SPACE;
	process->anchors[process->anchor_count++] = anchor;
	return OK;
}

const char *recording_name(const struct recording_process *process, enum op_name_table table,
			   uint8_t number)
{
	const char *name = op_name(table, number);

	if (name == NULL && number >= OP_NAME_INTERNED &&
	    number < OP_NAME_INTERNED + OP_NAMES_INTERNED_MAX)
		name = process->names[number - OP_NAME_INTERNED];
	return name != NULL && name[0] != '\0' ? name : "?";
}

bool recording_info(const struct recording_process *process, const char *key, char *value,
		    size_t size)
{
	return info_get(process->info, process->info_bytes, key, value, size);
}

bool recording_info_path(const struct recording_process *process, const char *key, char *path,
			 size_t size)
{
	return info_get_path(process->info, process->info_bytes, key, path, size);
}

bool recording_info_next(const struct recording_process *process, size_t *at, char *key,
			 size_t key_size, char *value, size_t value_size)
{
	return info_next(process->info, process->info_bytes, at, key, key_size, value, value_size);
}

uint64_t recording_hang_after_ns(const struct recording_process *process)
{
	int64_t seconds;
	char text[24];

	if (!recording_info(process, "hang_after_s", text, sizeof(text)) ||
	    text_number(text, 1, RECORDING_HANG_AFTER_MOST_S, &seconds) != OK)
		return 0;
	return (uint64_t)seconds * 1000000000;
}

/* ---- wall time --------------------------------------------------------------------------------- */

/* The anchors of the recording, followed by the fresh one. */
static size_t anchor_total(const struct recording_process *process)
{
	size_t count = process->anchor_count;
	bool is_fresh = process->fresh_anchor.wall_ns != 0 &&
			(count == 0 ||
			 process->fresh_anchor.clock_ns > process->anchors[count - 1].clock_ns);

	return count + is_fresh;
}

static const struct clock_anchor *anchor_at(const struct recording_process *process, size_t at)
{
	return at < process->anchor_count ? &process->anchors[at] : &process->fresh_anchor;
}

/* The last anchor that is not after this moment; the first if all are. */
static size_t anchor_before(const struct recording_process *process, uint64_t clock_ns)
{
	size_t after =
		SEARCH_FIRST(i, anchor_total(process), anchor_at(process, i)->clock_ns > clock_ns);

	return after > 0 ? after - 1 : 0;
}

/* The same by wall time, which may have been set back. */
static size_t anchor_before_wall(const struct recording_process *process, uint64_t wall_ns)
{
	size_t at = anchor_total(process);

	while (at > 0 && anchor_at(process, at - 1)->wall_ns > wall_ns)
		at--;
	return at > 0 ? at - 1 : 0;
}

/* Convert along the line through two points; with only the first if there is no other. */
static uint64_t interpolate(uint64_t ns, uint64_t from, uint64_t to, uint64_t next_from,
			    uint64_t next_to, bool has_next)
{
	__extension__ typedef unsigned __int128 wide;

	if (!has_next || ns < from)
		return to + (ns - from);
	return to + (uint64_t)((wide)(ns - from) * (next_to - to) / (next_from - from));
}

bool recording_wall_ns(const struct recording_process *process, uint64_t clock_ns,
		       uint64_t *wall_ns)
{
	size_t count = anchor_total(process), at = anchor_before(process, clock_ns);
	const struct clock_anchor *before, *after;
	bool is_steady;

	if (count == 0)
		return false;
	before = anchor_at(process, at);
	after = anchor_at(process, at + 1 < count ? at + 1 : at);
	is_steady = clock_anchors_are_steady(before, after);
	if (!is_steady && after == &process->fresh_anchor && after != before &&
	    clock_ns > before->clock_ns + (after->clock_ns - before->clock_ns) / 2)
		before = after;
	*wall_ns = interpolate(clock_ns, before->clock_ns, before->wall_ns, after->clock_ns,
			       after->wall_ns, is_steady);
	return true;
}

bool recording_clock_ns(const struct recording_process *process, uint64_t wall_ns,
			uint64_t *clock_ns)
{
	size_t count = anchor_total(process), at = anchor_before_wall(process, wall_ns);
	const struct clock_anchor *before, *after;

	if (count == 0)
		return false;
	before = anchor_at(process, at);
	after = anchor_at(process, at + 1 < count ? at + 1 : at);
	if (wall_ns < before->wall_ns && before->wall_ns - wall_ns >= before->clock_ns)
		*clock_ns = 1;
	else
		*clock_ns = interpolate(wall_ns, before->wall_ns, before->clock_ns, after->wall_ns,
					after->clock_ns, clock_anchors_are_steady(before, after));
	return true;
}

bool recording_now(const struct recording_process *process, uint64_t *now_ns)
{
	return process->region != NULL && !process->is_copy && region_now(process->region, now_ns);
}

/* ---- the last sign of life -------------------------------------------------------------------- */

static void keep_later(uint64_t *latest, uint64_t ns)
{
	if (ns > *latest)
		*latest = ns;
}

uint64_t recording_last_ns(const struct recording_process *process)
{
	/* A region's counts are taken when it is read: that says nothing about the process. */
	uint64_t latest = process->region ? 0 : process->counts_ns;

	keep_later(&latest, process->ended_ns);
	keep_later(&latest, process->alive_ns);
	for (size_t i = 0; i < process->anchor_count; i++)
		keep_later(&latest, process->anchors[i].clock_ns);
	for (size_t i = 0; i < process->comm_count; i++) {
		keep_later(&latest, process->comms[i].counts.last_issue_ns);
		keep_later(&latest, process->comms[i].counts.last_done_ns);
		keep_later(&latest, process->comms[i].info.finalize_ns);
	}
	for (size_t i = 0; i < process->flight_count; i++) {
		const struct recording_flight *flight = &process->flights[i];

		keep_later(&latest, flight->op.active_ns);
		keep_later(&latest, flight->op.done_ns);
		for (size_t j = 0; j < flight->proxy_count; j++)
			keep_later(&latest, flight->proxies[j].proxy.since_ns);
	}
	return latest;
}

/* A trace thread writes an anchor every ten seconds, even if nothing happens. */
bool recording_end_is_known(const struct recording_process *process)
{
	bool has_thread = strcmp(process->mode, op_mode_name(REGION_MODE_TRACE)) == 0 ||
			  strcmp(process->mode, op_mode_name(REGION_MODE_FULL)) == 0;

	if (process->life == RECORDING_ENDED)
		return true;
	if (process->region != NULL)
		return process->heartbeat_ns != 0 && process->alive_ns != 0;
	if (process->is_snapshot && process->life == RECORDING_KILLED)
		return process->heartbeat_ns != 0 || has_thread;
	return process->counts_ns != 0;
}

/*
 * The communicators of a process. There can be very many, in any order, and a trace refers to each
 * many times. So they are in a hash table while loading and are sorted at the end.
 */

enum { COMMS_MAX = 1 << 24 };

/* Room for at least twice as many, a power of two. */
static size_t index_size(size_t count)
{
	size_t size = 64;

	while (size < count * 2 + 2)
		size *= 2;
	return size;
}

/* The index entry of this id: its own, or the free one where it belongs. */
static uint32_t *index_place(const struct recording_process *process, size_t size, uint32_t id)
{
	size_t at = (size_t)hash_word(id, id) & (size - 1);

	while (process->comm_index[at] != 0 &&
	       process->comms[process->comm_index[at] - 1].info.id != id)
		at = (at + 1) & (size - 1);
	return &process->comm_index[at];
}

/* Rebuilt whenever the number of communicators requires a larger one. */
static bool index_make(struct recording_process *process, size_t size)
{
	uint32_t *index = calloc(size, sizeof(*index));

	if (index == NULL)
		return false;
	free(process->comm_index);
	process->comm_index = index;
	for (size_t i = 0; i < process->comm_count; i++)
		*index_place(process, size, process->comms[i].info.id) = (uint32_t)i + 1;
	return true;
}

struct recording_comm *recording_load_comm(struct recording_process *process, uint32_t id)
{
	size_t size = index_size(process->comm_count);
	uint32_t *place;

	if (process->comm_index == NULL && !index_make(process, size))
		return NULL;
	place = index_place(process, size, id);
	if (*place != 0)
		return &process->comms[*place - 1];
	if (process->comm_count >= COMMS_MAX ||
	    !list_grow(&process->comms, process->comm_count, sizeof(*process->comms)))
		return NULL;
	process->comms[process->comm_count] =
		(struct recording_comm){ .info = { .id = id, .rank = -1, .gpu = -1 } };
	*place = (uint32_t)process->comm_count + 1;
	process->comm_count++;
	if (index_size(process->comm_count) != size &&
	    !index_make(process, index_size(process->comm_count))) {
		process->comm_count--;
		*place = 0;
		return NULL;
	}
	return &process->comms[process->comm_count - 1];
}

static int compare_comms(const void *one, const void *other)
{
	const struct recording_comm *a = one, *b = other;

	return ORDER(a->info.id, b->info.id);
}

void recording_load_comms_end(struct recording_process *process)
{
	free(process->comm_index);
	process->comm_index = NULL;
	if (process->comm_count > 1)
		qsort(process->comms, process->comm_count, sizeof(*process->comms), compare_comms);
}

const struct recording_comm *recording_comm(const struct recording_process *process, uint32_t id)
{
	const struct recording_comm wanted = { .info = { .id = id } };

	if (process->comm_count == 0)
		return NULL;
	return bsearch(&wanted, process->comms, process->comm_count, sizeof(*process->comms),
		       compare_comms);
}

uint64_t recording_last_call_ns(const struct recording_process *process)
{
	uint64_t last_ns = 0;

	for (size_t i = 0; i < process->comm_count; i++)
		if (process->comms[i].counts.last_issue_ns > last_ns)
			last_ns = process->comms[i].counts.last_issue_ns;
	return last_ns;
}

/* Merging the sources of one process, determining which processes are alive, and sorting all. */

bool recording_load_is_same(const struct recording_process *one,
			    const struct recording_process *other)
{
	/* Without these, equal does not mean the same: simulations leave them out. */
	if (one->pid <= 0 || (one->start_ticks == 0 && one->started_wall_ns == 0))
		return false;
	/* Without /proc, the moment at which recording began tells processes apart. */
	if (one->start_ticks == 0 && one->started_wall_ns != other->started_wall_ns)
		return false;
	if (one->owner != other->owner && one->owner >= 0 && other->owner >= 0)
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

	return ORDER(a->first_sequence, b->first_sequence) ?:
	       ORDER(a->created_wall_ns, b->created_wall_ns) ?:
	       strcmp(a->path, b->path);
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

/* The region's counts are the latest; between trace files those with more records. */
static bool is_newer(const struct recording_process *one, const struct recording_process *other)
{
	if ((one->region != NULL) != (other->region != NULL))
		return one->region != NULL;
	if (one->has_counts != other->has_counts)
		return one->has_counts;
	/* Two scans of a hung process. */
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
	to->alive_ns = from->alive_ns;
	to->heartbeat_ns = from->heartbeat_ns;
	to->is_copy = from->is_copy;
	to->times_read_ns = from->times_read_ns;
	to->fresh_anchor = from->fresh_anchor;
	memcpy(to->mode, from->mode, sizeof(to->mode));
}

/* Totals since the start of the process: the latest ones include everything. */
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

/* A region has everything that its snapshot had, and what came after. */
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

/*
 * Between snapshots the later one says what is in flight. A trace that continues after it either
 * proves that all of it is over or contains it again.
 */
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
		to->times_read_ns = from->times_read_ns;
	}
	if (from->snapshot_wall_ns != 0 && (is_from_newer || to->snapshot_wall_ns == 0)) {
		to->snapshot_wall_ns = from->snapshot_wall_ns;
		to->snapshot_operations = from->snapshot_operations;
		to->snapshot_life = from->snapshot_life;
		to->snapshot_state = from->snapshot_state;
		to->is_undated = from->is_undated;
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
	if (to->owner < 0)
		to->owner = from->owner;
	if (to->info == NULL) {
		TAKE(info);
		TAKE(info_bytes);
	}
	for (size_t i = 0; i < recording->trouble_count; i++)
		if (recording->troubles[i].process == from)
			recording->troubles[i].process = to;
	recording_process_free(from);
	return status;
}

int recording_load_order(const struct recording_process *a, const struct recording_process *b)
{
	return strcmp(a->job, b->job) ?:
	       ORDER(a->rank, b->rank) ?:
	       strcmp(a->host, b->host) ?:
	       ORDER(a->pid, b->pid) ?:
	       ORDER((int64_t)a->start_ticks, (int64_t)b->start_ticks) ?:
	       strcmp(a->boot_id, b->boot_id) ?:
	       ORDER((int64_t)a->pid_namespace, (int64_t)b->pid_namespace) ?:
	       ORDER(a->owner, b->owner);
}

static int compare_identities(const void *one, const void *other)
{
	return recording_load_order(*(struct recording_process *const *)one,
				    *(struct recording_process *const *)other);
}

int recording_start_order(const struct recording_process *a, const struct recording_process *b)
{
	return strcmp(a->job, b->job) ?:
	       ORDER(a->rank, b->rank) ?:
	       (a->rank >= 0 ? ORDER(a->started_wall_ns, b->started_wall_ns) : 0) ?:
	       recording_load_order(a, b);
}

static int compare_runs(const void *one, const void *other)
{
	const struct recording_process *a = *(struct recording_process *const *)one;
	const struct recording_process *b = *(struct recording_process *const *)other;

	return strcmp(a->job, b->job) ?: ORDER(a->run, b->run) ?: recording_start_order(a, b);
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

/* The state at the time of a snapshot. Whether it runs now is a different question. */
static void set_life_then(struct recording_process *process)
{
	process->life = process->snapshot_life;
	process->process_state = process->snapshot_state;
	process->pid_here = -1;
}

enum { CONTAINER_ID = 64, CONTAINER_ID_SHOWN = 12, POD_UID = 36 };

static size_t hex_digits(const char *text)
{
	return strspn(text, "0123456789abcdef");
}

/* 8-4-4-4-12 hexadecimal digits, joined by '-', or by '_' in the name of a slice. */
static bool take_pod_uid(const char *text, char pod_uid[40])
{
	static const size_t groups[] = { 8, 4, 4, 4, 12 };
	const char *at = text;

	for (size_t i = 0; i < ARRAY_LENGTH(groups); i++) {
		if (i > 0 && *at != '-' && *at != '_')
			return false;
		at += i > 0;
		if (hex_digits(at) != groups[i])
			return false;
		at += groups[i];
	}
	text_format(pod_uid, 40, "%.*s", POD_UID, text);
	for (char *one = pod_uid; *one != '\0'; one++)
		if (*one == '_')
			*one = '-';
	return true;
}

void recording_container(const char *cgroups, char container_id[16], char pod_uid[40])
{
	size_t length;

	container_id[0] = pod_uid[0] = '\0';
	for (const char *at = cgroups; *at != '\0'; at += length > 0 ? length : 1) {
		length = hex_digits(at);
		if (length == CONTAINER_ID)
			text_format(container_id, 16, "%.*s", CONTAINER_ID_SHOWN, at);
	}
	for (const char *at = strstr(cgroups, "pod"); at != NULL; at = strstr(at + 1, "pod"))
		if (take_pod_uid(at + 3, pod_uid))
			break;
}

/* Once, when it is found alive. */
static void read_container(struct recording_process *process)
{
	char path[64], text[4096];

	if (process->pid_here <= 0)
		return;
	text_format(path, sizeof(path), "/proc/%lld/cgroup", (long long)process->pid_here);
	if (file_read_text(path, text, sizeof(text)))
		recording_container(text, process->container_id, process->pod_uid);
}

void recording_load_life(struct recording_process *process)
{
	struct region_identity identity = { process->host, process->boot_id,
					    process->pid > 0 ? (uint64_t)process->pid : 0,
					    process->pid_namespace, process->start_ticks };
	const bool is_known = process->pid_here > 0;
	enum region_alive alive;
	uint64_t pid_here = 0;

	if (process->is_snapshot) {
		set_life_then(process);
		return;
	}
	if (is_known) {
		pid_here = (uint64_t)process->pid_here;
		alive = region_alive_still(&identity, pid_here, &process->process_state);
	} else {
		alive = region_alive(&identity, &pid_here);
		process->process_state =
			alive == REGION_ALIVE_YES ? region_process_state(pid_here) : 0;
	}
	/* This does not require its process to be visible. */
	if (alive == REGION_ALIVE_UNKNOWN && process->region != NULL &&
	    region_is_let_go(process->region))
		alive = REGION_ALIVE_NO;
	process->pid_here = alive == REGION_ALIVE_YES ? (int64_t)pid_here : -1;
	if (!is_known)
		read_container(process);
	if (is_closed(process))
		process->life = RECORDING_ENDED;
	else if (alive == REGION_ALIVE_YES)
		process->life = RECORDING_ALIVE;
	else
		process->life = alive == REGION_ALIVE_NO ? RECORDING_KILLED : RECORDING_UNKNOWN;
	/* A trace from another host does not say; its snapshot did. */
	if (process->life == RECORDING_UNKNOWN && process->snapshot_wall_ns != 0)
		set_life_then(process);
}

/* Its process is gone, but ended or wrote on after it was read: what was read is from when it lived. */
static bool was_read_alive(const struct recording_process *process)
{
	const struct recording_file *last;
	uint64_t ended_ns = 0;
	struct stat st;

	if (process->region != NULL)
		return region_pread(process->region, &ended_ns, sizeof(ended_ns),
				    offsetof(struct region_header, ended_ns)) == OK &&
		       ended_ns != 0;
	if (process->file_count == 0)
		return false;
	last = &process->files[process->file_count - 1];
	return last->archive == NULL && last->memory == NULL && lstat(last->path, &st) == 0 &&
	       st.st_ino == last->inode && (uint64_t)st.st_size > last->bytes;
}

void recording_load_life_once(struct recording_process *process)
{
	recording_load_life(process);
	if (process->life == RECORDING_KILLED && was_read_alive(process))
		process->life = RECORDING_ALIVE;
}

/* A snapshot ends with its counts: it is complete without a closing record. */
static bool is_whole(const struct recording_process *process, const struct recording_file *file)
{
	return file->is_closed ||
	       (file->is_snapshot && process->is_final && file->cut_offset == file->bytes);
}

/* A truncated file is not trouble while it is being written, or if a region has the rest. */
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
				"snapshot truncated at byte %llu: the rest is missing",
				(unsigned long long)file->cut_offset);
			recording_load_at(recording, file->cut_offset,
					  file->bytes - file->cut_offset);
			continue;
		}
		recording_load_trouble(recording, RECORDING_CUT, file->path, process,
				       "ends at byte %llu without its closing record: %s",
				       (unsigned long long)file->cut_offset,
				       process->life == RECORDING_KILLED
					       ? "its process was killed"
					       : "truncated, or its process still runs elsewhere");
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

/* ---- owners ----------------------------------------------------------------------------------- */

bool recording_is_forged(const struct recording_process *process)
{
	char path[64], line[256];
	unsigned int real = 0, effective = 0;
	bool is_found = false;
	FILE *status;

	/* Root may have started it and given up its rights; nobody else makes files of root. */
	if (process->life != RECORDING_ALIVE || process->pid_here <= 0 || process->owner <= 0 ||
	    process->region == NULL)
		return false;
	text_format(path, sizeof(path), "/proc/%lld/status", (long long)process->pid_here);
	status = fopen(path, "re");
	while (status != NULL && !is_found && fgets(line, sizeof(line), status) != NULL)
		is_found = sscanf(line, "Uid: %u %u", &real, &effective) == 2;
	if (status != NULL)
		fclose(status);
	return is_found && process->owner != real && process->owner != effective;
}

static void drop_forged(struct recording *recording)
{
	size_t kept = 0;

	for (size_t i = 0; i < recording->count; i++) {
		struct recording_process *process = recording->processes[i];

		if (!recording_is_forged(process)) {
			recording->processes[kept++] = process;
			continue;
		}
		recording_load_trouble(recording, RECORDING_DAMAGE, process->region_path, NULL,
				       "claims to be of a process of another user");
		for (size_t j = 0; j < recording->trouble_count; j++)
			if (recording->troubles[j].process == process)
				recording->troubles[j].process = NULL;
		recording_process_free(process);
	}
	recording->count = kept;
}

static void show_owner(struct recording_process *process)
{
	char name[sizeof(process->job)];

	text_copy(name, sizeof(name), process->job);
	owned_name_make(process->job, sizeof(process->job), name, process->owner);
}

/* As another file or agent may have named it, and what no other may look like. */
static void name_without_others(struct recording_process *process)
{
	owned_name_strip(process->job, process->owner);
	if (owned_name_is_taken(process->job, process->owner))
		show_owner(process);
}

static bool are_apart(const struct recording_process *one, const struct recording_process *other)
{
	return one->owner >= 0 && other->owner >= 0 && one->owner != other->owner;
}

bool recording_is_job(const struct recording_process *process, const char *name)
{
	return owned_name_is(process->job, process->owner, name);
}

void recording_keep_apart(struct recording_process *process, struct recording_process *const *list,
			  size_t count)
{
	name_without_others(process);
	for (size_t i = 0; i < count; i++)
		if (are_apart(process, list[i]) && strcmp(process->job, list[i]->job) == 0) {
			show_owner(process);
			return;
		}
}

/*
 * Who had the name first? A living process cannot lie about its start: the kernel confirmed it. The
 * others say what they like, so they come after those.
 */
static bool is_before(const struct recording_process *one, const struct recording_process *other)
{
	bool is_sure = one->pid_here > 0, is_other_sure = other->pid_here > 0;

	if (is_sure != is_other_sure)
		return is_sure;
	if (is_sure && one->start_ticks != other->start_ticks)
		return one->start_ticks < other->start_ticks;
	if (one->started_wall_ns != other->started_wall_ns)
		return one->started_wall_ns < other->started_wall_ns;
	return one->owner < other->owner;
}

/* Processes [first, end) have the same job. Its first owner keeps the name. */
static void separate_job(struct recording *recording, size_t first, size_t end)
{
	struct recording_process *before = NULL, **list = recording->processes;

	for (size_t i = first; i < end; i++)
		if (list[i]->owner >= 0 && (before == NULL || is_before(list[i], before)))
			before = list[i];
	for (size_t i = first; i < end; i++) {
		if (before == NULL || !are_apart(list[i], before))
			continue;
		show_owner(list[i]);
		recording->owners_apart++;
	}
}

static void sort_by_identity(struct recording *recording)
{
	if (recording->count > 1)
		qsort(recording->processes, recording->count, sizeof(*recording->processes),
		      compare_identities);
}

/*
 * Joining ranks relies on the names of jobs and on hashes of communicators, and everybody can read
 * both in an agent's metrics. So one user's process could be taken for a rank of another user's job.
 */
static void separate_owners(struct recording *recording)
{
	if (recording->is_any_owner)
		return;
	for (size_t i = 0; i < recording->count; i++)
		name_without_others(recording->processes[i]);
	sort_by_identity(recording);
	for (size_t first = 0, end; first < recording->count; first = end) {
		for (end = first + 1; end < recording->count; end++)
			if (strcmp(recording->processes[end]->job,
				   recording->processes[first]->job) != 0)
				break;
		separate_job(recording, first, end);
	}
	sort_by_identity(recording);
}

static bool has_process(const struct recording *recording, const struct recording_process *process)
{
	for (size_t i = 0; i < recording->count; i++)
		if (recording->processes[i] == process)
			return true;
	return false;
}

enum status recording_finish(struct recording *recording)
{
	enum status status;

	recording_foreign_dates(recording);
	recording_foreign_ranks(recording);
	if (recording->count > 1)
		qsort(recording->processes, recording->count, sizeof(*recording->processes),
		      compare_identities);
	status = join_all(recording);
	for (size_t i = 0; i < recording->count; i++)
		recording_load_life_once(recording->processes[i]);
	drop_forged(recording);
	separate_owners(recording);
	recording_foreign_join(recording);
	if (status == OK)
		status = recording_find_runs(recording);
	if (recording->count > 1)
		qsort(recording->processes, recording->count, sizeof(*recording->processes),
		      compare_runs);
	for (size_t i = 0; i < recording->count; i++) {
		note_cuts(recording, recording->processes[i]);
		note_refused(recording, recording->processes[i]);
	}
	for (size_t i = 0; i < recording->trouble_count; i++)
		if (!has_process(recording, recording->troubles[i].process))
			recording->troubles[i].process = NULL;
	return status;
}
