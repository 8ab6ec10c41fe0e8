/*
 * From the files of this machine to processes. A file is known by device, inode, size and time of
 * change; one that was looked at before and put aside costs a stat(2) from then on.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file_open.h"
#include "base/list_grow.h"
#include "base/text.h"
#include "recording/recording_load.h"
#include "region/region_find.h"
#include "watch/watch_parts.h"

enum {
	NEW_MAX = 256,	    /* processes that one look takes in; the next look goes on */
	PAST_MAX = 65536,   /* files put aside */
	SEARCH_SHARE = 50,  /* of our time, searching files takes at most one part in so many */
	MEMFD_SHARE = 1000, /* and going through all descriptors of all processes */
};

/* ---- which file is it ------------------------------------------------------------------------ */

static bool is_same_inode(const struct watch_file *one, const struct watch_file *other)
{
	return one->device == other->device && one->inode == other->inode;
}

static bool is_same_file(const struct watch_file *one, const struct watch_file *other)
{
	return is_same_inode(one, other) && one->size == other->size &&
	       one->changed_ns == other->changed_ns;
}

static struct watch_file file_of(const struct stat *st, bool is_memfd)
{
	return (struct watch_file){ .device = st->st_dev,
				    .inode = st->st_ino,
				    .size = (uint64_t)st->st_size,
				    .changed_ns = watch_changed_ns(st),
				    .owner = st->st_uid,
				    .is_memfd = is_memfd,
				    .is_there = true };
}

/* Whose file we hold open, nobody else gets its inode. That of a dead one's may be given again. */
static bool is_followed(const struct watch *watch, const struct watch_file *file)
{
	for (size_t i = 0; i < watch->recording.count; i++) {
		const struct watch_process *own = &watch->processes[i];

		if (own->died_ns == 0 ? is_same_inode(&own->file, file)
				      : is_same_file(&own->file, file))
			return true;
	}
	return false;
}

/* ---- put aside ------------------------------------------------------------------------------- */

enum status watch_put_aside(struct watch *watch, const struct watch_file *file)
{
	if (watch->past_count >= PAST_MAX)
		return OK;
	if (!list_grow(&watch->past, watch->past_count, sizeof(*watch->past)))
		return ERR_NO_SPACE;
	watch->past[watch->past_count] = *file;
	watch->past[watch->past_count++].is_there = true;
	return OK;
}

static enum status refuse(struct watch *watch, const char *path, const struct watch_file *file,
			  const char *why)
{
	struct watch_refused *refused;

	if (watch->refused_count >= WATCH_REFUSED_MAX)
		return watch_put_aside(watch, file);
	if (!list_grow(&watch->refused, watch->refused_count, sizeof(*refused)))
		return ERR_NO_SPACE;
	refused = &watch->refused[watch->refused_count];
	*refused = (struct watch_refused){ .file = *file, .path = strdup(path) };
	if (refused->path == NULL)
		return ERR_NO_SPACE;
	text_copy(refused->why, sizeof(refused->why), why);
	watch->refused_count++;
	return OK;
}

/* Was it put aside, and is it still as it was then? */
static bool is_aside(struct watch *watch, const struct watch_file *file)
{
	for (size_t i = 0; i < watch->past_count; i++)
		if (is_same_file(&watch->past[i], file)) {
			watch->past[i].is_there = true;
			return true;
		}
	for (size_t i = 0; i < watch->refused_count; i++)
		if (is_same_file(&watch->refused[i].file, file)) {
			watch->refused[i].file.is_there = true;
			return true;
		}
	return false;
}

/* What this search can see has to be seen again, or it is gone. */
static void marks_clear(struct watch *watch, bool with_memfds)
{
	for (size_t i = 0; i < watch->past_count; i++)
		watch->past[i].is_there = watch->past[i].is_memfd && !with_memfds;
	for (size_t i = 0; i < watch->refused_count; i++)
		watch->refused[i].file.is_there = watch->refused[i].file.is_memfd && !with_memfds;
}

static void marks_sweep(struct watch *watch)
{
	size_t kept = 0;

	for (size_t i = 0; i < watch->past_count; i++)
		if (watch->past[i].is_there)
			watch->past[kept++] = watch->past[i];
	watch->past_count = kept;
	kept = 0;
	for (size_t i = 0; i < watch->refused_count; i++) {
		if (watch->refused[i].file.is_there)
			watch->refused[kept++] = watch->refused[i];
		else
			free(watch->refused[i].path);
	}
	watch->refused_count = kept;
}

/* ---- a new one ------------------------------------------------------------------------------- */

/* At its place in the order. Takes the process over in every case. */
static enum status insert(struct watch *watch, struct recording_process *process,
			  const struct watch_process *own)
{
	struct recording *recording = &watch->recording;
	size_t at = recording->count;

	if (!list_grow(&watch->processes, recording->count, sizeof(*own)) ||
	    !list_grow(&recording->processes, recording->count, sizeof(*recording->processes))) {
		recording_process_free(process);
		return ERR_NO_SPACE;
	}
	while (at > 0 && recording_load_order(recording->processes[at - 1], process) > 0) {
		recording->processes[at] = recording->processes[at - 1];
		watch->processes[at] = watch->processes[at - 1];
		at--;
	}
	recording->processes[at] = process;
	watch->processes[at] = *own;
	recording->count++;
	watch->generation++;
	return OK;
}

/* A copy of a region is not another process. One that ended its recording may have begun a new one. */
static bool is_known_process(const struct watch *watch, const struct recording_process *process)
{
	for (size_t i = 0; i < watch->recording.count; i++)
		if (watch->processes[i].died_ns == 0 &&
		    recording_load_is_same(watch->recording.processes[i], process))
			return true;
	return false;
}

static bool is_wanted(const struct watch *watch, const struct recording_process *process)
{
	const char *host = watch->settings.only_host;

	if (host != NULL && strcmp(host, process->host) != 0)
		return false;
	/* Found dead: recorders leave some for us to find, old ones among them. */
	return process->life == RECORDING_ALIVE || process->life == RECORDING_UNKNOWN ||
	       watch_quiet_for_ns(process) < watch->settings.keep_ns;
}

/* Is the process somebody else's than the file? Whoever can write a file can write into it that it is of
 * any process. True only when both are known. */
static bool is_forged(const struct recording_process *process, const struct watch_file *file)
{
	char path[64], line[256];
	unsigned int real = 0, effective = 0;
	bool is_found = false;
	FILE *status;

	if (process->life != RECORDING_ALIVE || process->pid_here <= 0)
		return false;
	text_format(path, sizeof(path), "/proc/%lld/status", (long long)process->pid_here);
	status = fopen(path, "re");
	while (status != NULL && !is_found && fgets(line, sizeof(line), status) != NULL)
		is_found = sscanf(line, "Uid: %u %u", &real, &effective) == 2;
	if (status != NULL)
		fclose(status);
	return is_found && file->owner != real && file->owner != effective;
}

static enum status welcome(struct watch *watch, struct recording_process *process,
			   const struct watch_file *file, uint64_t now_ns)
{
	struct watch_process own = { .file = *file, .seen_ns = now_ns };
	enum status status;

	recording_load_life(process);
	if (!is_wanted(watch, process)) {
		recording_process_free(process);
		return watch_put_aside(watch, file);
	}
	if (is_forged(process, file)) {
		status = refuse(watch, process->region_path, file,
				"it says to be of a process that belongs to another user");
		recording_process_free(process);
		return status;
	}
	if (is_known_process(watch, process)) {
		status = refuse(watch, process->region_path, file,
				"it says to be of a process that has another region: a copy?");
		recording_process_free(process);
		return status;
	}
	return insert(watch, process, &own);
}

/* Tables more than twice as large as any recorder makes: whoever made that wants our memory and time. */
static bool is_oversized(int fd)
{
	static const struct {
		uint32_t count, stride;
	} most[REGION_PARTS] = {
		[REGION_NAMES] = { 2 * OP_NAMES_INTERNED_MAX, 2 * sizeof(struct region_name) },
		[REGION_COMMS] = { 1024, 2 * sizeof(struct region_comm) },
		[REGION_LIVE] = { 8192, 2 * sizeof(struct region_live) },
		[REGION_PROXIES] = { 16384, 2 * sizeof(struct region_proxy) },
		[REGION_TOTALS] = { 2048, 2 * sizeof(struct region_total) },
		[REGION_LINKS] = { 8192, 2 * sizeof(struct region_link) },
	};
	struct region region;
	bool is_over = false;

	if (region_open_fd(&region, fd, NULL) != OK)
		return false;
	for (int i = 0; i < REGION_PARTS; i++)
		is_over |= most[i].count != 0 && (region.header.parts[i].count > most[i].count ||
						  region.header.parts[i].stride > most[i].stride);
	region_close(&region);
	return is_over;
}

static enum status take_in(struct watch *watch, int fd, const char *path,
			   const struct watch_file *file, uint64_t now_ns)
{
	struct recording_process *process = NULL;
	struct recording aside;
	enum status status;

	if (is_oversized(fd))
		return refuse(watch, path, file,
			      "its tables are larger than a recorder makes them");
	recording_init(&aside);
	errno = 0;
	status = recording_region_load(&aside, fd, path, &process);
	if (status == OK)
		status = welcome(watch, process, file, now_ns);
	else if (status == ERR_SYSTEM && (errno == EMFILE || errno == ENFILE)) {
		watch->left_out++;
		status = OK;
	} else if (status != ERR_NO_SPACE) {
		status = refuse(watch, path, file,
				aside.trouble_count > 0 ? aside.troubles[0].what
							: "it cannot be read");
	}
	recording_release(&aside);
	return status;
}

static bool is_one_too_many(const struct watch *watch, const struct watch_file *file)
{
	size_t count = 0;

	for (size_t i = 0; i < watch->recording.count; i++)
		count += watch->processes[i].file.owner == file->owner;
	return count >= WATCH_OWNER_MAX || watch->recording.count >= WATCH_PROCESSES_MAX;
}

/* One that was found: new, or known and put aside. */
static enum status look_at(struct watch *watch, const struct region_place *place, size_t *taken,
			   uint64_t now_ns)
{
	enum status status = OK;
	struct watch_file file;
	struct stat st;
	int fd;

	if (fstatat(AT_FDCWD, place->path, &st, place->holder != 0 ? 0 : AT_SYMLINK_NOFOLLOW) == -1)
		return OK;
	file = file_of(&st, place->holder != 0);
	if (is_followed(watch, &file) || is_aside(watch, &file))
		return OK;
	if (is_one_too_many(watch, &file)) {
		watch->left_out++;
		return OK;
	}
	if (*taken >= NEW_MAX) {
		watch->must_search = true;
		return OK;
	}
	fd = file_open(AT_FDCWD, place->path, place->holder != 0);
	if (fd == -1) {
		watch->left_out += errno == EMFILE || errno == ENFILE;
		return OK;
	}
	/* Names change hands: only what was found is taken in. */
	if (fstat(fd, &st) == 0 && st.st_dev == place->device && st.st_ino == place->inode) {
		file = file_of(&st, place->holder != 0);
		(*taken)++;
		status = take_in(watch, fd, place->path, &file, now_ns);
	}
	close(fd);
	return status;
}

/* ---------------------------------------------------------------------------------------------- */

bool watch_search_is_due(const struct watch *watch, uint64_t now_ns)
{
	if (now_ns < watch->earliest_ns)
		return false;
	return watch->inotify == -1 || watch->must_search || now_ns < watch->settle_until_ns ||
	       now_ns >= watch->next_search_ns;
}

static uint64_t later(uint64_t one, uint64_t other)
{
	return one > other ? one : other;
}

static enum status find(struct watch *watch, struct region_places *places, bool *with_memfds,
			uint64_t now_ns)
{
	uint64_t began_ns = clock_system_ns(CLOCK_MONOTONIC), took_ns;
	enum status status;

	*with_memfds = now_ns >= watch->next_memfds_ns;
	status = *with_memfds ? region_find(places, watch->settings.directory)
			      : region_find_files(places, watch->settings.directory);
	took_ns = clock_system_ns(CLOCK_MONOTONIC) - began_ns;
	if (*with_memfds)
		watch->next_memfds_ns = now_ns + later(WATCH_SEARCH_NS, took_ns * MEMFD_SHARE);
	else
		watch->earliest_ns = now_ns + took_ns * SEARCH_SHARE;
	return status;
}

enum status watch_search(struct watch *watch, uint64_t now_ns)
{
	struct region_places places;
	bool with_memfds;
	enum status status;
	size_t taken = 0;

	/* Listen first: what comes from now on is heard. */
	watch_notify_listen(watch, now_ns);
	if (watch->must_search)
		watch->settle_until_ns = now_ns + WATCH_SETTLE_NS;
	watch->must_search = false;
	watch->next_search_ns = now_ns + WATCH_SEARCH_NS;
	status = find(watch, &places, &with_memfds, now_ns);
	watch->unreadable = places.unreadable;
	watch->left_out = 0;
	if (status == OK)
		marks_clear(watch, with_memfds);
	for (size_t i = 0; i < places.count && status == OK; i++)
		status = look_at(watch, &places.list[i], &taken, now_ns);
	if (status == OK)
		marks_sweep(watch);
	else if (status == ERR_NO_SPACE)
		watch->must_search = true;
	region_find_release(&places);
	return status == ERR_NO_SPACE ? status : OK;
}
