/*
 * Scans the processes of this host repeatedly.
 *
 * When is a search worthwhile? inotify on the directory shows when a recorder's directory appears,
 * and inotify on those shows when a region does. /dev/shm is shared: data loaders create thousands
 * of files there. Their events are read and ignored; if there are too many, we stop watching that
 * directory for a while, but not the recorders' own directories.
 */
#include "recording/watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/file_opener.h"
#include "common/hash.h"
#include "common/status.h"
#include "common/text.h"
#include "format/region_read.h"
#include "recording/recording.h"

/* What inotify cannot show (memfds, containers, a directory created later) is found at most this late. */
#define WATCH_SEARCH_NS (10 * SECOND_NS)
/* A region's name exists before its content. */
#define WATCH_SETTLE_NS (3 * SECOND_NS)

static inline uint64_t watch_changed_ns(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * SECOND_NS + (uint64_t)st->st_mtim.tv_nsec;
}

enum {
	NAMES_MAX = 1 << 14,	/* listed to find these: */
	DIRECTORIES_MAX = 1024, /* others are searched every WATCH_SEARCH_NS */
	STRANGERS_MAX = 2000,	/* events between two scans */
	BATCHES_MAX = 64,	/* reads of the queue at a time: a flood must not keep us here */
	EVENTS = IN_CREATE | IN_MOVED_TO | IN_ATTRIB,
	COMMS_COMPARED = 8, /* of a dead process: its world and what was made first */
};
#define QUIET_NS (60 * SECOND_NS)

static const char *directory_of(const struct watch *watch)
{
	return watch->settings.directory != NULL ? watch->settings.directory
						 : REGION_FIND_DIRECTORY;
}

static void watch_notify_init(struct watch *watch)
{
	watch->directory_watch = -1;
	watch->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
}

static void watch_notify_release(struct watch *watch)
{
	if (watch->inotify != -1)
		close(watch->inotify);
	watch->inotify = -1;
	watch->directory_watch = -1;
}

int watch_fd(const struct watch *watch)
{
	return watch->inotify;
}

static bool is_recorders(const char *name)
{
	static const char begin[] = "ringside-", end[] = ".region";
	size_t length = strlen(name);

	return strncmp(name, begin, strlen(begin)) == 0 ||
	       (length >= strlen(end) && strcmp(name + length - strlen(end), end) == 0);
}

static void heed_event(struct watch *watch, const struct inotify_event *event, const char *name)
{
	if (event->mask & IN_IGNORED) {
		if (event->wd == watch->directory_watch)
			watch->directory_watch = -1;
		return;
	}
	if (event->mask & IN_Q_OVERFLOW || event->wd != watch->directory_watch ||
	    is_recorders(name))
		watch->must_search = true;
	else
		watch->strangers++;
}

bool watch_heed(struct watch *watch)
{
	_Alignas(struct inotify_event) char bytes[8192];
	struct inotify_event event;
	ssize_t got = 1;

	for (int i = 0; i < BATCHES_MAX && watch->inotify != -1 && got > 0; i++) {
		got = read(watch->inotify, bytes, sizeof(bytes));
		for (ssize_t at = 0; at + (ssize_t)sizeof(event) <= got;
		     at += (ssize_t)(sizeof(event) + event.len)) {
			memcpy(&event, bytes + at, sizeof(event));
			/*
			 * The kernel terminates the name within event.len; without a name it is 0.
			 */
			heed_event(watch, &event, event.len ? bytes + at + sizeof(event) : "");
		}
	}
	return watch->must_search || watch->inotify == -1;
}

/* What is mounted there may never answer. */
static void listen_to(struct watch *watch, int directory, const char *name)
{
	int place = file_open_inside(directory, name, O_PATH);
	char path[64];

	if (place == -1)
		return;
	text_format(path, sizeof(path), "/proc/self/fd/%d", place);
	inotify_add_watch(watch->inotify, path, EVENTS | IN_ONLYDIR);
	close(place);
}

/* Adding an existing watch changes nothing, so no list is needed. Links are not followed. */
static void listen_below(struct watch *watch, const char *directory)
{
	DIR *list = opendir(directory);
	struct dirent *entry;
	int count = 0, names = 0;

	while (list != NULL && count < DIRECTORIES_MAX && names++ < NAMES_MAX &&
	       (entry = readdir(list)) != NULL) {
		if (strncmp(entry->d_name, "ringside-", strlen("ringside-")) != 0)
			continue;
		listen_to(watch, dirfd(list), entry->d_name);
		count++;
	}
	if (list != NULL)
		closedir(list);
}

/* Watch where regions can appear: the directory, and recorders' directories in it. */
static void watch_notify_listen(struct watch *watch, uint64_t now_ns)
{
	const char *directory = directory_of(watch);

	if (watch->inotify == -1)
		return;
	if (watch->strangers > STRANGERS_MAX && watch->directory_watch != -1) {
		inotify_rm_watch(watch->inotify, watch->directory_watch);
		watch->directory_watch = -1;
		watch->quiet_until_ns = now_ns + QUIET_NS;
	}
	watch->strangers = 0;
	if (watch->directory_watch == -1 && now_ns >= watch->quiet_until_ns)
		watch->directory_watch =
			inotify_add_watch(watch->inotify, directory, EVENTS | IN_ONLYDIR);
	listen_below(watch, directory);
}

/*
 * From files to processes. A file is identified by device, inode, size and time of change. One that
 * was examined before and put aside costs only a stat(2) from then on.
 */

enum {
	NEW_MAX = 256,	     /* processes added per scan; the next scan continues */
	LIST_EFFORT = 16000, /* of a search per scan, or between two: see region_search_step() */
	TABLES_MAX = 128 * 1024 * 1024, /* bytes of tables of new regions per scan */
	FILE_EFFORT = 16 * 1024,	/* of opening or reading one, in bytes, whatever its size */
	LOOKUPS_MAX =
		4, /* searches for a process of another pid namespace per scan: each goes through /proc */
	PAST_MAX = 65536,  /* files put aside */
	SEARCH_SHARE = 50, /* searching files takes at most this share of our time: 1/50 */
	PROCESS_SHARE =
		1000, /* ... and searching all processes for memfds and containers: 1/1000 */
};

/* ---- identifying files ----------------------------------------------------------------------- */

static bool is_same_inode(const struct watch_file *one, const struct watch_file *other)
{
	return one->device == other->device && one->inode == other->inode;
}

static bool is_same_file(const struct watch_file *one, const struct watch_file *other)
{
	return is_same_inode(one, other) && one->size == other->size &&
	       one->changed_ns == other->changed_ns;
}

static struct watch_file file_of(const struct stat *st, enum region_place_kind kind)
{
	return (struct watch_file){ .device = st->st_dev,
				    .inode = st->st_ino,
				    .size = (uint64_t)st->st_size,
				    .changed_ns = watch_changed_ns(st),
				    .owner = st->st_uid,
				    .kind = kind,
				    .is_there = true };
}

/* The inode of a file that we hold open is not reused. That of a dead one's may be. */
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

/* Do not follow this file (again), without a message. */
static enum status watch_put_aside(struct watch *watch, const struct watch_file *file)
{
	if (watch->past_count >= PAST_MAX)
		return OK;
	if (!list_grow(&watch->past, watch->past_count, sizeof(*watch->past)))
		return ERR_NO_SPACE;
	watch->past[watch->past_count] = *file;
	watch->past[watch->past_count++].is_there = true;
	return OK;
}

static enum status refuse_file(struct watch *watch, const char *path, const struct watch_file *file,
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

/* Was it put aside, and is it unchanged? */
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

/* What this search can find has to be found again, or it is gone. */
static void marks_clear(struct watch *watch, bool with_processes)
{
	for (size_t i = 0; i < watch->past_count; i++)
		watch->past[i].is_there =
			watch->past[i].kind != REGION_PLACE_FILE && !with_processes;
	for (size_t i = 0; i < watch->refused_count; i++)
		watch->refused[i].file.is_there =
			watch->refused[i].file.kind != REGION_PLACE_FILE && !with_processes;
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

/* ---- users ----------------------------------------------------------------------------------- */

/*
 * Of a process: what it takes itself; of a communicator: ranks, history, and its part of an answer; of a total, which is
 * the source of most metrics: its part of an answer.
 */
enum { PROCESS_BYTES = 4096, COMM_BYTES = 6144, TOTAL_BYTES = 1024 };

/* NULL: no memory. */
static struct watch_owner *owner_of(struct watch *watch, uint32_t uid)
{
	for (size_t i = 0; i < watch->owner_count; i++)
		if (watch->owners[i].uid == uid)
			return &watch->owners[i];
	if (!list_grow(&watch->owners, watch->owner_count, sizeof(*watch->owners)))
		return NULL;
	watch->owners[watch->owner_count] = (struct watch_owner){ .uid = uid };
	return &watch->owners[watch->owner_count++];
}

/* Count what a process takes now. */
static void account(struct watch *watch, size_t index)
{
	const struct recording_process *process = watch->recording.processes[index];
	struct watch_process *own = &watch->processes[index];
	struct watch_owner *owner = owner_of(watch, own->file.owner);
	uint64_t bytes = PROCESS_BYTES + recording_process_bytes(process) +
			 process->comm_count * COMM_BYTES + process->total_count * TOTAL_BYTES;

	/* It was added when the process came. */
	owner->bytes += bytes - own->bytes;
	watch->bytes += bytes - own->bytes;
	own->bytes = bytes;
}

static const struct watch_owner *largest_owner(const struct watch *watch)
{
	const struct watch_owner *most = NULL;

	for (size_t i = 0; i < watch->owner_count; i++)
		if (most == NULL || watch->owners[i].bytes > most->bytes)
			most = &watch->owners[i];
	return most;
}

static int worth_of(const struct watch *watch, size_t index)
{
	if (watch->processes[index].died_ns != 0)
		return 0;
	return watch->recording.processes[index]->life == RECORDING_ALIVE ? 2 : 1;
}

/* Which of two processes of a user is left out first? */
static bool is_worth_less(const struct watch *watch, size_t one, size_t other)
{
	int a = worth_of(watch, one), b = worth_of(watch, other);

	return a != b ? a < b : watch->processes[one].seen_ns >= watch->processes[other].seen_ns;
}

/* ---- new processes --------------------------------------------------------------------------- */

/* Insert at its place in the order. Takes over the process in every case. */
static enum status insert_process(struct watch *watch, struct recording_process *process,
				  const struct watch_process *own)
{
	struct recording *recording = &watch->recording;
	struct watch_owner *owner = owner_of(watch, own->file.owner);
	size_t at = recording->count;

	if (owner == NULL || !list_grow(&watch->processes, recording->count, sizeof(*own)) ||
	    !list_grow(&recording->processes, recording->count, sizeof(*recording->processes))) {
		recording_process_free(process);
		return ERR_NO_SPACE;
	}
	while (at > 0 && recording_start_order(recording->processes[at - 1], process) > 0) {
		recording->processes[at] = recording->processes[at - 1];
		watch->processes[at] = watch->processes[at - 1];
		at--;
	}
	recording->processes[at] = process;
	watch->processes[at] = *own;
	recording->count++;
	watch->generation++;
	owner->count++;
	account(watch, at);
	return OK;
}

/*
 * A copy of a region is not another process. One that ended its recording may have begun a new one.
 */
static bool is_known_process(const struct watch *watch, const struct recording_process *process)
{
	for (size_t i = 0; i < watch->recording.count; i++)
		if (watch->processes[i].died_ns == 0 &&
		    recording_load_is_same(watch->recording.processes[i], process))
			return true;
	return false;
}

/*
 * Recorders mark the files of dead processes with the time at which they found them: that is a new
 * time of change, and no new process. Returns the one that it belongs to.
 */
static struct watch_process *find_buried(struct watch *watch,
					 const struct recording_process *process,
					 const struct watch_file *file)
{
	if (process->life != RECORDING_ENDED && process->life != RECORDING_KILLED)
		return NULL;
	for (size_t i = 0; i < watch->recording.count; i++)
		if (watch->processes[i].died_ns != 0 &&
		    is_same_inode(&watch->processes[i].file, file) &&
		    recording_load_is_same(watch->recording.processes[i], process))
			return &watch->processes[i];
	return NULL;
}

/* How long ago it was last active: by its own clock, or by the wall clock, which may have been set since. 0 if unknown. */
static uint64_t watch_quiet_for_ns(const struct recording_process *process)
{
	uint64_t now_ns, last_ns = process->ended_ns, wall_ns = 0;

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
	if (recording_now(process, &now_ns) && now_ns >= last_ns)
		return now_ns - last_ns;
	now_ns = clock_system_ns(CLOCK_REALTIME);
	if (!recording_wall_ns(process, last_ns, &wall_ns) || wall_ns > now_ns)
		return 0;
	return now_ns - wall_ns;
}

/*
 * Was it killed while a process that lives here has a communicator with it? Then that one waits for it, and what it did
 * last explains why, however long the job hangs.
 */
static bool is_missed(const struct watch *watch, const struct recording_process *process)
{
	if (process->life != RECORDING_KILLED)
		return false;
	for (size_t i = 0; i < watch->recording.count; i++) {
		const struct recording_process *other = watch->recording.processes[i];

		if (other->life != RECORDING_ALIVE || other->owner != process->owner)
			continue;
		for (size_t a = 0; a < other->comm_count; a++)
			for (size_t b = 0; b < process->comm_count && b < COMMS_COMPARED; b++)
				if (process->comms[b].info.hash != 0 &&
				    process->comms[b].info.hash == other->comms[a].info.hash)
					return true;
	}
	return false;
}

static bool is_wanted(struct watch *watch, const struct recording_process *process)
{
	const char *host = watch->settings.only_host;

	if (host != NULL && strcmp(host, process->host) != 0) {
		text_copy(watch->other_host, sizeof(watch->other_host), process->host);
		return false;
	}
	/* Found dead: recorders leave some regions behind, including old ones. */
	return process->life == RECORDING_ALIVE || process->life == RECORDING_UNKNOWN ||
	       watch_quiet_for_ns(process) < watch->settings.keep_ns || is_missed(watch, process);
}

/* Bytes of what was copied to load it. */
static uint64_t tables_of(const struct region *region)
{
	uint64_t bytes = 0;

	for (unsigned int part = REGION_NAMES; part <= REGION_LINKS; part++)
		if (part != REGION_RING && part != REGION_DETAILS)
			bytes += (uint64_t)region->header.parts[part].count *
				 region->header.parts[part].stride;
	return bytes;
}

static enum status follow_process(struct watch *watch, struct recording_process *process,
				  const struct watch_file *file, uint64_t now_ns)
{
	struct watch_process own = { .file = *file, .seen_ns = now_ns, .life_ns = now_ns }, *buried;
	enum status status;

	process->owner = file->owner;
	recording_load_life(process);
	watch->tables += tables_of(process->region);
	if (process->life == RECORDING_UNKNOWN)
		watch->tables += TABLES_MAX / LOOKUPS_MAX;
	buried = find_buried(watch, process, file);
	if (buried != NULL) {
		buried->file = *file;
		recording_process_free(process);
		return OK;
	}
	if (!is_wanted(watch, process)) {
		recording_process_free(process);
		return watch_put_aside(watch, file);
	}
	if (recording_is_forged(process)) {
		status = refuse_file(watch, process->region_path, file,
				     "claims to be of a process of another user");
		recording_process_free(process);
		return status;
	}
	if (is_known_process(watch, process)) {
		status = refuse_file(watch, process->region_path, file,
				     "claims to be of a process with another region (a copy?)");
		recording_process_free(process);
		return status;
	}
	/* Whoever had the name first keeps it. */
	if (!watch->settings.is_any_owner)
		recording_keep_apart(process, watch->recording.processes, watch->recording.count);
	return insert_process(watch, process, &own);
}

static enum status take_in(struct watch *watch, int fd, const char *path,
			   const struct watch_file *file, uint64_t now_ns)
{
	struct watch_owner *owner = owner_of(watch, file->owner);
	struct recording_process *process = NULL;
	size_t count = watch->recording.count;
	struct recording aside;
	enum status status;

	if (owner == NULL)
		return ERR_NO_SPACE;
	recording_init(&aside);
	errno = 0;
	status = recording_region_load(&aside, fd, path, &process);
	watch->tables += FILE_EFFORT;
	/* How much of it was read before it failed is not known. */
	if (status != OK)
		watch->tables += file->size < TABLES_MAX / LOOKUPS_MAX ? file->size
								       : TABLES_MAX / LOOKUPS_MAX;
	if (status == OK)
		status = follow_process(watch, process, file, now_ns);
	else if (status == ERR_SYSTEM && (errno == EMFILE || errno == ENFILE)) {
		owner->processes++;
		status = OK;
	} else if (status != ERR_NO_SPACE) {
		status = refuse_file(watch, path, file,
				     aside.trouble_count > 0 ? aside.troubles[0].what
							     : "cannot be read");
	}
	/* The list of users may have moved. */
	owner_of(watch, file->owner)->in_vain += watch->recording.count == count;
	recording_release(&aside);
	return status;
}

static bool is_one_too_many(const struct watch *watch, const struct watch_owner *owner)
{
	return owner->is_full || owner->count >= WATCH_OWNER_MAX ||
	       owner->in_vain >= WATCH_OWNER_IN_VAIN ||
	       watch->recording.count >= WATCH_PROCESSES_MAX;
}

/* A file that was found: new, or known and put aside. */
static enum status look_at(struct watch *watch, const struct region_place *place, uint64_t now_ns)
{
	struct watch_file file = file_of(&place->st, place->kind);
	struct watch_owner *owner;
	enum status status = OK;
	struct stat st;
	int fd;

	if (is_followed(watch, &file) || is_aside(watch, &file))
		return OK;
	owner = owner_of(watch, file.owner);
	if (owner == NULL)
		return ERR_NO_SPACE;
	if (is_one_too_many(watch, owner)) {
		owner->processes++;
		return OK;
	}
	fd = region_place_open(place);
	if (fd == -1) {
		owner->processes += errno == EMFILE || errno == ENFILE;
		return OK;
	}
	if (fstat(fd, &st) == 0) {
		file = file_of(&st, place->kind);
		watch->taken++;
		status = take_in(watch, fd, place->path, &file, now_ns);
	}
	close(fd);
	return status;
}

/* ---------------------------------------------------------------------------------------------- */

static bool watch_search_is_due(const struct watch *watch, uint64_t now_ns)
{
	if (now_ns < watch->earliest_ns)
		return false;
	return watch->inotify == -1 || watch->must_search || now_ns < watch->settle_until_ns ||
	       now_ns >= watch->next_search_ns;
}

static uint64_t later_of(uint64_t one, uint64_t other)
{
	return one > other ? one : other;
}

/* ---- leaving --------------------------------------------------------------------------------- */

/* Remove a process from the list, which frees it. */
static void watch_forget(struct watch *watch, size_t index)
{
	struct recording *recording = &watch->recording;
	size_t after = recording->count - index - 1;
	struct watch_owner *owner = owner_of(watch, watch->processes[index].file.owner);

	owner->count--;
	owner->bytes -= watch->processes[index].bytes;
	watch->bytes -= watch->processes[index].bytes;
	recording_process_free(recording->processes[index]);
	memmove(&recording->processes[index], &recording->processes[index + 1],
		after * sizeof(*recording->processes));
	memmove(&watch->processes[index], &watch->processes[index + 1],
		after * sizeof(*watch->processes));
	recording->count--;
	watch->generation++;
}

/* Leave processes out until the limits are kept; *reading: index of the one being read, which moves with the list. */
static enum status make_room(struct watch *watch, size_t *reading)
{
	const struct watch_owner *most = largest_owner(watch);

	while (most != NULL &&
	       (most->bytes > WATCH_OWNER_BYTES_MAX || watch->bytes > WATCH_BYTES_MAX)) {
		size_t least = SIZE_MAX;
		struct watch_file file;
		bool was_dead;

		for (size_t i = 0; i < watch->recording.count; i++)
			if (watch->processes[i].file.owner == most->uid &&
			    (least == SIZE_MAX || is_worth_less(watch, i, least)))
				least = i;
		file = watch->processes[least].file;
		was_dead = watch->processes[least].died_ns != 0;
		owner_of(watch, most->uid)->is_full = true;
		watch_forget(watch, least);
		*reading -= least <= *reading;
		/* Of one that lives the file is left out from the next search on. */
		if (was_dead && watch_put_aside(watch, &file) != OK)
			return ERR_NO_SPACE;
		watch->must_search |= !was_dead;
		most = largest_owner(watch);
	}
	return OK;
}

/* ---- searching ------------------------------------------------------------------------------- */

bool watch_is_searching(const struct watch *watch)
{
	return watch->search != NULL;
}

static enum status begin_search(struct watch *watch, uint64_t now_ns)
{
	const struct region_search_limits limits = { WATCH_OWNER_FILES, WATCH_OWNER_DESCRIPTORS,
						     WATCH_OWNER_MOUNTS };

	/* Start watching first, so that nothing that comes from now on is missed. */
	watch_notify_listen(watch, now_ns);
	if (watch->must_search)
		watch->settle_until_ns = now_ns + WATCH_SETTLE_NS;
	watch->must_search = false;
	watch->next_search_ns = now_ns + WATCH_SEARCH_NS;
	watch->has_processes = now_ns >= watch->next_processes_ns;
	watch->is_listed = watch->is_second = false;
	watch->next_place = 0;
	watch->search_ns = watch->search_cpu_ns = 0;
	for (size_t i = 0; i < watch->owner_count; i++) {
		struct watch_owner *owner = &watch->owners[i];

		owner->in_vain = 0;
		owner->processes = 0;
		/* With some distance to the limit, or processes would come and go at every search. */
		owner->is_full &= owner->bytes > WATCH_OWNER_BYTES_MAX / 4 * 3 ||
				  watch->bytes > WATCH_BYTES_MAX / 4 * 3;
	}
	return region_search_new(&watch->search, watch->settings.directory, watch->has_processes,
				 &limits);
}

static void end_search(struct watch *watch)
{
	region_search_free(watch->search);
	watch->search = NULL;
}

static enum status list_more(struct watch *watch)
{
	uint64_t began_ns = clock_system_ns(CLOCK_MONOTONIC);
	uint64_t cpu_ns = clock_system_ns(CLOCK_PROCESS_CPUTIME_ID);
	enum status status = region_search_step(watch->search, LIST_EFFORT, &watch->is_listed);

	watch->search_ns += clock_system_ns(CLOCK_MONOTONIC) - began_ns;
	watch->search_cpu_ns += clock_system_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
	return status;
}

bool watch_search_more(struct watch *watch)
{
	if (watch->search == NULL || watch->is_listed)
		return false;
	/* The next scan begins another search. */
	if (list_more(watch) != OK)
		end_search(watch);
	return watch->search != NULL && !watch->is_listed;
}

/*
 * How long to wait after a search. On a busy machine a short one may take seconds, in which others run: that is no reason
 * to miss new processes for minutes.
 */
static uint64_t pause_after(const struct watch *watch, uint64_t share)
{
	uint64_t pause_ns = watch->search_ns * share;

	if (pause_ns > WATCH_SEARCH_NS)
		pause_ns = WATCH_SEARCH_NS;
	return later_of(pause_ns, watch->search_cpu_ns * share);
}

static void note_listed(struct watch *watch, uint64_t now_ns)
{
	watch->unreadable = region_search_places(watch->search)->unreadable;
	marks_clear(watch, watch->has_processes);
	if (watch->has_processes)
		watch->next_processes_ns =
			now_ns + later_of(WATCH_SEARCH_NS, pause_after(watch, PROCESS_SHARE));
	else
		watch->earliest_ns = now_ns + pause_after(watch, SEARCH_SHARE);
}

static struct recording_left_out *left_out_of(struct recording *recording, uint32_t uid)
{
	for (size_t i = 0; i < recording->left_out_count; i++)
		if (recording->left_out[i].owner == uid)
			return &recording->left_out[i];
	if (!list_grow(&recording->left_out, recording->left_out_count,
		       sizeof(*recording->left_out)))
		return NULL;
	recording->left_out[recording->left_out_count] =
		(struct recording_left_out){ .owner = uid };
	return &recording->left_out[recording->left_out_count++];
}

static enum status note_silent(struct watch *watch)
{
	struct file_opener_silent silent[WATCH_SILENT_MAX];
	size_t count = file_opener_silent(silent, ARRAY_LENGTH(silent));

	for (size_t i = 0; i < count; i++) {
		struct recording_left_out *left_out =
			silent[i].is_user ? left_out_of(&watch->recording, silent[i].uid) : NULL;

		if (silent[i].is_user && left_out == NULL)
			return ERR_NO_SPACE;
		if (left_out != NULL)
			left_out->is_silent = true;
	}
	return OK;
}

/* What was found and is not followed, by user. */
static enum status note_left_out(struct watch *watch)
{
	const struct region_places *places = region_search_places(watch->search);
	struct recording_left_out *left_out;

	watch->recording.left_out_count = 0;
	watch->left_out = 0;
	for (size_t i = 0; i < watch->owner_count; i++) {
		if (watch->owners[i].processes == 0)
			continue;
		left_out = left_out_of(&watch->recording, watch->owners[i].uid);
		if (left_out == NULL)
			return ERR_NO_SPACE;
		left_out->processes = watch->owners[i].processes;
		watch->left_out += watch->owners[i].processes;
	}
	for (size_t i = 0; i < places->owner_count; i++) {
		if (places->owners[i].directories_left_out == 0)
			continue;
		left_out = left_out_of(&watch->recording, places->owners[i].uid);
		if (left_out == NULL)
			return ERR_NO_SPACE;
		left_out->directories = places->owners[i].directories_left_out;
	}
	return note_silent(watch);
}

static bool may_take_more(const struct watch *watch)
{
	return watch->taken < NEW_MAX && watch->tables < TABLES_MAX;
}

/* Examine what was listed, for one step; *is_over: all of it. */
static enum status look_at_places(struct watch *watch, uint64_t effort, bool *is_over)
{
	const struct region_places *places = region_search_places(watch->search);
	uint64_t until = watch->tables + effort;
	enum status status = OK;
	size_t unused = 0;

	while (watch->next_place < places->count && status == OK && may_take_more(watch) &&
	       watch->tables < until) {
		status = look_at(watch, &places->list[watch->next_place++], watch->look_ns);
		if (status == OK)
			status = make_room(watch, &unused);
	}
	*is_over = watch->next_place == places->count;
	if (!*is_over || watch->searches > 0 || watch->is_second)
		return status;
	/* Whether somebody misses a dead process shows when all that live are known. Later ones were seen alive. */
	watch->past_count = 0;
	watch->is_second = true;
	watch->next_place = 0;
	for (size_t i = 0; i < watch->owner_count; i++)
		watch->owners[i].processes = watch->owners[i].in_vain = 0;
	*is_over = false;
	return status;
}

/* Find and add new processes, for one step; *is_over: this scan does no more of it. */
static enum status watch_search(struct watch *watch, uint64_t effort, bool *is_over)
{
	bool is_complete = false;
	enum status status = OK;

	if (watch->search == NULL)
		status = begin_search(watch, watch->look_ns);
	if (status == OK && !watch->is_listed)
		status = list_more(watch);
	if (status == OK && watch->is_listed) {
		if (watch->next_place == 0 && !watch->is_second)
			note_listed(watch, watch->look_ns);
		status = look_at_places(watch, effort, &is_complete);
	}
	*is_over = status != OK || is_complete || !watch->is_listed || !may_take_more(watch);
	if (status == OK && is_complete) {
		marks_sweep(watch);
		watch->searches++;
		status = note_left_out(watch);
	}
	if (is_complete || status != OK)
		end_search(watch);
	if (status == ERR_NO_SPACE)
		watch->must_search = true;
	return status == ERR_NO_SPACE ? status : OK;
}

/*
 * A scan: search if that is due, then one process after the other.
 *
 *	found --> read at every scan --> gone: read once more, file closed --> forgotten after keep_ns
 *	   \--> refused (damaged) or put aside (dead for long, other host): a stat(2) per search
 *
 * Idle processes are not read again, see recording_stands_still(). That cannot see everything
 * (transfers on behalf of other processes), so everything is read every WATCH_SEARCH_NS.
 */

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
	free(watch->owners);
	end_search(watch);
	watch_notify_release(watch);
	*watch = (struct watch){ .inotify = -1, .directory_watch = -1 };
}

/* Whether it runs is unknown, but its file was deleted: then it is over, or as good as. */
static bool is_deleted(const struct watch *watch, size_t index)
{
	const struct region *region = watch->recording.processes[index]->region;
	struct stat st;

	return watch->processes[index].file.kind != REGION_PLACE_MEMFD && region != NULL &&
	       region->fd > 0 && fstat(region->fd, &st) == 0 && st.st_nlink == 0;
}

static bool is_gone(const struct watch *watch, size_t index)
{
	enum recording_life life = watch->recording.processes[index]->life;

	if (life == RECORDING_ENDED || life == RECORDING_KILLED)
		return true;
	return life == RECORDING_UNKNOWN && is_deleted(watch, index);
}

/* A process that was not found is searched for again, a few per scan. */
static bool is_lookup_due(struct watch *watch, struct watch_process *own, uint64_t now_ns)
{
	if (now_ns - own->life_ns < WATCH_SEARCH_NS || watch->lookups >= LOOKUPS_MAX)
		return false;
	watch->lookups++;
	own->life_ns = now_ns;
	return true;
}

static unsigned int refresh_flags(struct watch *watch, size_t index, unsigned int flags,
				  uint64_t now_ns)
{
	const struct recording_process *process = watch->recording.processes[index];
	struct watch_process *own = &watch->processes[index];
	bool is_full_due = own->full_ns == 0 || now_ns - own->full_ns >= WATCH_SEARCH_NS;
	unsigned int refresh = 0;

	if (flags & WATCH_TOTALS)
		refresh |= RECORDING_REFRESH_TOTALS;
	if (!is_full_due && (!(flags & WATCH_TOTALS) || process->total_count > 0))
		refresh |= RECORDING_REFRESH_MOVED;
	if (process->life == RECORDING_UNKNOWN && !is_lookup_due(watch, own, now_ns))
		refresh |= RECORDING_REFRESH_SAME_LIFE;
	return refresh;
}

/* Remember the file as it is now, to recognize it when it is found again. */
static void file_settle(struct watch_process *own, const struct recording_process *process)
{
	struct stat st;

	if (process->region == NULL || process->region->fd <= 0 ||
	    fstat(process->region->fd, &st) == -1)
		return;
	own->file.size = (uint64_t)st.st_size;
	own->file.changed_ns = watch_changed_ns(&st);
}

/* It may have written more between our last read and its end. */
static enum status bury_process(struct watch *watch, size_t index, unsigned int flags,
				uint64_t now_ns)
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
	/* Found dead: it died some time ago. 0 means alive. */
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
	/* Also after a failure: a file that stays truncated is not read in full at every scan. */
	if (!(refresh & RECORDING_REFRESH_MOVED))
		own->full_ns = now_ns;
	return is_gone(watch, index) ? bury_process(watch, index, flags, now_ns) : OK;
}

static enum status forget_old(struct watch *watch, uint64_t now_ns)
{
	for (size_t i = watch->recording.count; i-- > 0;) {
		struct watch_process *own = &watch->processes[i];
		struct watch_file file = own->file;

		if (own->died_ns == 0 || now_ns - own->died_ns < watch->settings.keep_ns ||
		    is_missed(watch, watch->recording.processes[i]))
			continue;
		watch_forget(watch, i);
		/* Its file may still be there. */
		if (watch_put_aside(watch, &file) != OK)
			return ERR_NO_SPACE;
	}
	return OK;
}

/* Which run a process belongs to shows when it has communicators, and when others have died. */
static enum status find_runs(struct watch *watch)
{
	uint64_t state = hash_word(4, watch->generation);
	enum status status;

	for (size_t i = 0; i < watch->recording.count; i++)
		state = hash_word(state, watch->recording.processes[i]->comm_count);
	if (state == watch->runs_state)
		return OK;
	status = recording_find_runs(&watch->recording);
	if (status == OK)
		watch->runs_state = state;
	return status;
}

void watch_look_begin(struct watch *watch, unsigned int flags, uint64_t now_ns)
{
	watch->looks++;
	watch->lookups = 0;
	watch->taken = 0;
	watch->tables = 0;
	watch->look_flags = flags;
	watch->look_ns = now_ns;
	watch->next_process = 0;
	watch_heed(watch);
	watch->must_find = watch->search != NULL || watch_search_is_due(watch, now_ns);
}

/* Of reading a process. Large tables with little in them have to be read, too. */
static uint64_t effort_of(const struct watch *watch, size_t index)
{
	const struct region *region = watch->recording.processes[index]->region;
	uint64_t bytes = watch->processes[index].bytes, tables = region ? tables_of(region) : 0;

	if (watch->processes[index].died_ns != 0)
		return 1;
	return FILE_EFFORT + (bytes > tables ? bytes : tables);
}

static enum status read_more(struct watch *watch, uint64_t effort)
{
	size_t *at = &watch->next_process;
	enum status status = OK;

	for (uint64_t done = 0; *at < watch->recording.count && done < effort && status == OK;
	     ++*at) {
		status = read_process(watch, *at, watch->look_flags, watch->look_ns);
		account(watch, *at);
		done += effort_of(watch, *at);
		if (status == OK)
			status = make_room(watch, at);
	}
	return status;
}

enum status watch_look_step(struct watch *watch, uint64_t effort, bool *is_over)
{
	enum status status = OK;
	bool is_searched = true;

	*is_over = false;
	if (watch->must_find) {
		status = watch_search(watch, effort, &is_searched);
		watch->must_find = !is_searched;
	} else {
		status = read_more(watch, effort);
		*is_over = watch->next_process == watch->recording.count;
	}
	if (status == OK && *is_over)
		status = forget_old(watch, watch->look_ns);
	if (status == OK && *is_over)
		status = find_runs(watch);
	*is_over |= status != OK;
	return status;
}

enum status watch_look_at(struct watch *watch, unsigned int flags, uint64_t now_ns)
{
	enum status status = OK;
	bool is_over = false;

	watch_look_begin(watch, flags, now_ns);
	while (!is_over)
		status = watch_look_step(watch, UINT64_MAX / 2, &is_over);
	return status;
}

enum status watch_look(struct watch *watch, unsigned int flags)
{
	return watch_look_at(watch, flags, clock_system_ns(CLOCK_MONOTONIC));
}
