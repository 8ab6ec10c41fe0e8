#include "recording/recording.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list_grow.h"
#include "base/text.h"
#include "region/info_text.h"
#include "region/region_read.h"
#include "recording/recording_load.h"

/* Most of what a text that names a process may have; a region's has 8 KiB. */
enum { INFO_BYTES_MAX = 1 << 16, ANCHORS_MAX = 1 << 20 };

const char *recording_life_name(enum recording_life life)
{
	switch (life) {
	case RECORDING_ALIVE:
		return "alive";
	case RECORDING_ENDED:
		return "ended";
	case RECORDING_KILLED:
		return "killed";
	default:
		return "unknown";
	}
}

const char *recording_trouble_name(enum recording_trouble_kind kind)
{
	switch (kind) {
	case RECORDING_DAMAGE:
		return "damage";
	case RECORDING_CUT:
		return "cut";
	case RECORDING_FOREIGN:
		return "foreign";
	case RECORDING_UNREADABLE:
		return "unreadable";
	case RECORDING_TOO_NEW:
		return "too_new";
	case RECORDING_NOTHING:
		return "nothing";
	}
	return "?";
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
	*recording = (struct recording){ 0 };
}

struct recording_process *recording_process_new(void)
{
	struct recording_process *process = calloc(1, sizeof(*process));

	if (process != NULL)
		process->pid = process->pid_here = process->rank = process->local_rank =
			process->world_size = -1;
	return process;
}

void recording_file_release(struct recording_file *file)
{
	free(file->path);
	free(file->archive);
	/* Whoever reads it must not change it; it is ours. */
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
	free(process->files);
	free(process->flights);
	free(process->proxies);
	free(process->comms);
	free(process->comm_index);
	free(process->totals);
	free(process->links);
	recording_totals_free(process->follow);
	free(process->anchors);
	free(process->info);
	free(process);
}

void recording_load_trouble(struct recording *recording, enum recording_trouble_kind kind,
			    const char *path, const struct recording_process *owner,
			    const char *what, ...)
{
	struct recording_trouble *trouble;
	va_list values;

	if (recording->trouble_count >= RECORDING_TROUBLES_MAX ||
	    !list_grow(&recording->troubles, recording->trouble_count,
		       sizeof(*recording->troubles))) {
		recording->troubles_left_out++;
		return;
	}
	trouble = &recording->troubles[recording->trouble_count];
	*trouble = (struct recording_trouble){
		.kind = kind, .path = strdup(path), .process = -1, .owner = owner
	};
	if (trouble->path == NULL) {
		recording->troubles_left_out++;
		return;
	}
	va_start(values, what);
	vsnprintf(trouble->what, sizeof(trouble->what), what, values);
	va_end(values);
	recording->trouble_count++;
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
	return OK;
}

enum status recording_load_anchor(struct recording_process *process, struct clock_anchor anchor)
{
	size_t count = process->anchor_count;

	if (anchor.wall_ns == 0 || count >= ANCHORS_MAX)
		return OK;
	/* The clock never steps back: an anchor from before the last one is no good. */
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

/* ---- wall time --------------------------------------------------------------------------------- */

/* The anchors of the recording, and behind them the fresh one. */
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

/* The last anchor that is not after this moment; the first when all are. */
static size_t anchor_before(const struct recording_process *process, uint64_t clock_ns)
{
	size_t at = 0;

	for (size_t from = 0, to = anchor_total(process); from < to;) {
		size_t middle = from + (to - from) / 2;

		if (anchor_at(process, middle)->clock_ns > clock_ns) {
			to = middle;
		} else {
			at = middle;
			from = middle + 1;
		}
	}
	return at;
}

/* The same by wall time, which may have been set back. */
static size_t anchor_before_wall(const struct recording_process *process, uint64_t wall_ns)
{
	size_t at = anchor_total(process);

	while (at > 0 && anchor_at(process, at - 1)->wall_ns > wall_ns)
		at--;
	return at > 0 ? at - 1 : 0;
}

/* From one clock to the other along the line through two points; the first alone when there is no other. */
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
	return process->region != NULL && region_now(process->region, now_ns);
}
