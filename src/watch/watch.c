/*
 * A look: search where that is due, then one process after the other.
 *
 *	found --> read at every look --> gone: read once more, its file closed --> forgotten after keep_ns
 *	   \--> refused (damaged) or put aside (dead for long, other host): a stat(2) per search
 *
 * Who stood still is not read again, see recording_stands_still(). For what that cannot see (transfers
 * on behalf of other processes) all of it is read every WATCH_SEARCH_NS.
 */
#include "watch/watch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "recording/recording_load.h"
#include "watch/watch_parts.h"

enum status watch_init(struct watch *watch, const struct watch_settings *settings)
{
	*watch = (struct watch){ .settings = *settings, .must_search = true };
	recording_init(&watch->recording);
	watch_notify_init(watch);
	return OK;
}

void watch_release(struct watch *watch)
{
	recording_release(&watch->recording);
	for (size_t i = 0; i < watch->refused_count; i++)
		free(watch->refused[i].path);
	free(watch->refused);
	free(watch->processes);
	free(watch->past);
	watch_notify_release(watch);
	*watch = (struct watch){ .inotify = -1, .directory_watch = -1 };
}

uint64_t watch_quiet_for_ns(const struct recording_process *process)
{
	uint64_t now_ns = clock_system_ns(CLOCK_REALTIME), last_ns = process->ended_ns, wall_ns = 0;

	if (process->anchor_count > 0 &&
	    process->anchors[process->anchor_count - 1].clock_ns > last_ns)
		last_ns = process->anchors[process->anchor_count - 1].clock_ns;
	for (size_t i = 0; i < process->comm_count; i++) {
		const struct comm_counts *counts = &process->comms[i].counts;

		if (counts->last_issue_ns > last_ns)
			last_ns = counts->last_issue_ns;
		if (counts->last_done_ns > last_ns)
			last_ns = counts->last_done_ns;
	}
	if (!recording_wall_ns(process, last_ns, &wall_ns) || wall_ns > now_ns)
		return 0;
	return now_ns - wall_ns;
}

void watch_forget(struct watch *watch, size_t index)
{
	struct recording *recording = &watch->recording;
	size_t after = recording->count - index - 1;

	recording_process_free(recording->processes[index]);
	memmove(&recording->processes[index], &recording->processes[index + 1],
		after * sizeof(*recording->processes));
	memmove(&watch->processes[index], &watch->processes[index + 1],
		after * sizeof(*watch->processes));
	recording->count--;
	watch->generation++;
}

/* Nobody can say whether it runs. Its file was deleted: then that is over, or as good as. */
static bool is_deleted(const struct watch *watch, size_t index)
{
	const struct region *region = watch->recording.processes[index]->region;
	struct stat st;

	return !watch->processes[index].file.is_memfd && region != NULL && region->fd > 0 &&
	       fstat(region->fd, &st) == 0 && st.st_nlink == 0;
}

static bool is_gone(const struct watch *watch, size_t index)
{
	enum recording_life life = watch->recording.processes[index]->life;

	if (life == RECORDING_ENDED || life == RECORDING_KILLED)
		return true;
	return life == RECORDING_UNKNOWN && is_deleted(watch, index);
}

static unsigned int refresh_flags(const struct watch *watch, size_t index, unsigned int flags,
				  uint64_t now_ns)
{
	const struct recording_process *process = watch->recording.processes[index];
	const struct watch_process *own = &watch->processes[index];
	bool is_full_due = own->full_ns == 0 || now_ns - own->full_ns >= WATCH_SEARCH_NS;
	unsigned int refresh = 0;

	if (flags & WATCH_TOTALS)
		refresh |= RECORDING_REFRESH_TOTALS;
	if (!is_full_due && (!(flags & WATCH_TOTALS) || process->total_count > 0))
		refresh |= RECORDING_REFRESH_MOVED;
	if (process->life == RECORDING_UNKNOWN && !is_full_due)
		refresh |= RECORDING_REFRESH_SAME_LIFE;
	return refresh;
}

/* As it is left: so it is known again when it is found the next time. */
static void file_settle(struct watch_process *own, const struct recording_process *process)
{
	struct stat st;

	if (process->region == NULL || process->region->fd <= 0 ||
	    fstat(process->region->fd, &st) == -1)
		return;
	own->file.size = (uint64_t)st.st_size;
	own->file.changed_ns = watch_changed_ns(&st);
}

/* Its last words may have come after we read and before it was gone. */
static enum status bury(struct watch *watch, size_t index, unsigned int flags, uint64_t now_ns)
{
	struct recording_process *process = watch->recording.processes[index];
	struct watch_process *own = &watch->processes[index];
	enum recording_life life = process->life;
	enum status status = recording_refresh(
		process, RECORDING_REFRESH_SAME_LIFE |
				 (flags & WATCH_TOTALS ? RECORDING_REFRESH_TOTALS : 0));
	uint64_t quiet_ns = own->read_ns == own->seen_ns ? watch_quiet_for_ns(process) : 0;

	if (status == ERR_NO_SPACE)
		return status;
	if (life == RECORDING_KILLED && process->life != RECORDING_ENDED)
		process->life = life;
	file_settle(own, process);
	recording_rest(process);
	/* Found dead: it was so for some time. 0 means alive. */
	own->died_ns = now_ns > quiet_ns ? now_ns - quiet_ns : 1;
	own->died_ns += own->died_ns == 0;
	watch->generation++;
	return OK;
}

static enum status read_process(struct watch *watch, size_t index, unsigned int flags,
				uint64_t now_ns)
{
	struct watch_process *own = &watch->processes[index];
	unsigned int refresh = refresh_flags(watch, index, flags, now_ns);
	enum status status;

	if (own->died_ns != 0)
		return OK;
	status = recording_refresh(watch->recording.processes[index], refresh);
	if (status == ERR_NO_SPACE)
		return status;
	if (status == OK) {
		own->read_ns = now_ns;
		own->failures = 0;
	} else {
		own->failures++;
	}
	/* Also when it failed: a file that stays cut is not read in full at every look. */
	if (!(refresh & RECORDING_REFRESH_MOVED))
		own->full_ns = now_ns;
	return is_gone(watch, index) ? bury(watch, index, flags, now_ns) : OK;
}

static enum status forget_old(struct watch *watch, uint64_t now_ns)
{
	for (size_t i = watch->recording.count; i-- > 0;) {
		struct watch_process *own = &watch->processes[i];
		struct watch_file file = own->file;

		if (own->died_ns == 0 || now_ns - own->died_ns < watch->settings.keep_ns)
			continue;
		watch_forget(watch, i);
		/* Its file may still be there. */
		if (watch_put_aside(watch, &file) != OK)
			return ERR_NO_SPACE;
	}
	return OK;
}

enum status watch_look_at(struct watch *watch, unsigned int flags, uint64_t now_ns)
{
	enum status status = OK;

	watch->looks++;
	watch_heed(watch);
	if (watch_search_is_due(watch, now_ns))
		status = watch_search(watch, now_ns);
	for (size_t i = 0; i < watch->recording.count && status == OK; i++)
		status = read_process(watch, i, flags, now_ns);
	return status == OK ? forget_old(watch, now_ns) : status;
}

enum status watch_look(struct watch *watch, unsigned int flags)
{
	return watch_look_at(watch, flags, clock_system_ns(CLOCK_MONOTONIC));
}
