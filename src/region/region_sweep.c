/*
 * Regions outlive their processes. When a process begins, it removes what others of its user left beyond
 * fixed caps: by number, by memory and by age, whatever container they ran in.
 *
 * A region of a process that may be alive is never removed. A recorder holds a lock on its region
 * (hold_lock() in region_create.c); the lock of another pid namespace can be tested as well as one of ours. A region
 * without a lock, of an older recorder or a kernel without such locks, is judged by /proc in our own pid
 * namespace, and elsewhere kept for days.
 */
#include "region/region_sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "region/region_create.h"

enum {
	KEPT = 15, /* and the one that is about to be made */
	KEPT_DAYS = 7,
	UNKNOWN_DAYS = 7,
	BEGIN_SECONDS = 60, /* no process takes longer to make its region */
	NAMES_LEAST = 64,   /* in a sweep, or a slow machine would never get anywhere */
	NAMES_MOST = 4096,
	NAME_BYTES = 64,
	DAY_SECONDS = 24 * 60 * 60,
};
#define KEPT_BYTES (UINT64_C(256) << 20)
#define SWEEP_NS (UINT64_C(20) * 1000 * 1000)
#define SECOND_NS UINT64_C(1000000000)

struct remains {
	char name[NAME_BYTES];
	enum region_owner owner;
	bool goes;
	uint64_t since_ns;   /* wall clock: found dead, or, with an unknown owner, made */
	uint64_t started_ns; /* wall clock */
	uint64_t ticks;	     /* started, by its name */
	uint64_t bytes;	     /* of memory */
};

struct remains_list {
	struct remains *list;
	size_t count, room;
};

struct region_limits region_limits_of(int dir)
{
	struct region_limits limits = { .count = KEPT,
					.bytes = KEPT_BYTES,
					.age_s = KEPT_DAYS * DAY_SECONDS,
					.unknown_age_s = UNKNOWN_DAYS * DAY_SECONDS,
					.names = NAMES_MOST,
					.time_ns = SWEEP_NS };
	struct statvfs fs;
	uint64_t size;

	/* A tmpfs without limit says that it has no blocks at all. */
	if (fstatvfs(dir, &fs) == -1 || fs.f_blocks == 0)
		return limits;
	size = (uint64_t)fs.f_blocks * fs.f_frsize;
	/* Large buffers want more where there is more; a container's 64 MiB are for NCCL. */
	if (size / 16 > limits.bytes)
		limits.bytes = size / 16;
	if (size / 4 < limits.bytes)
		limits.bytes = size / 4;
	return limits;
}

static bool is_locked(int fd)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

/* By pid and start, in our own pid namespace. */
static enum region_owner look_into_proc(uint64_t pid, uint64_t start)
{
	char path[64], text[512];
	ssize_t got;
	char *at;
	int fd;

	text_format(path, sizeof(path), "/proc/%llu/stat", (unsigned long long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return errno == ENOENT ? REGION_OWNER_GONE : REGION_OWNER_HERE;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	at = strrchr(text, ')');
	for (int field = 2; at != NULL && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at != NULL && strtoull(at + 1, NULL, 10) != start ? REGION_OWNER_GONE
								 : REGION_OWNER_HERE;
}

static enum region_owner find_owner(int fd, const struct stat *st, uint64_t pid_namespace,
				    struct region_header *header, struct remains *remains,
				    uint64_t pid)
{
	ssize_t got = pread(fd, header, sizeof(*header), 0);

	if (is_locked(fd))
		return REGION_OWNER_HERE;
	if (got != (ssize_t)sizeof(*header) || header->header_bytes == 0) {
		/* Being made, or its process was killed meanwhile. */
		*header = (struct region_header){ .magic = 0 };
		return st->st_mtime + BEGIN_SECONDS < time(NULL) ? REGION_OWNER_GONE
								 : REGION_OWNER_HERE;
	}
	/* Of a copy the inode is another one. */
	if (header->lock_inode != 0 && header->lock_inode == st->st_ino)
		return REGION_OWNER_GONE;
	if (header->pid_namespace != pid_namespace)
		return REGION_OWNER_UNKNOWN;
	return look_into_proc(pid, remains->ticks);
}

/*
 * When it was found dead: that is remembered as the file's time, which no recorder changes once the region is
 * made. How long ago its process began says nothing: one that ran for weeks may have died just now.
 */
static uint64_t found_dead(int fd, const struct stat *st, uint64_t started_ns, uint64_t now_ns)
{
	uint64_t changed_ns =
		(uint64_t)st->st_mtim.tv_sec * SECOND_NS + (uint64_t)st->st_mtim.tv_nsec;
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_NOW } };

	if (changed_ns > started_ns + BEGIN_SECONDS * SECOND_NS)
		return changed_ns;
	if (now_ns > started_ns + BEGIN_SECONDS * SECOND_NS && futimens(fd, times) == -1)
		return changed_ns;
	return now_ns;
}

static bool add(struct remains_list *all, const struct remains *remains)
{
	struct remains *list;
	size_t room = all->room == 0 ? 32 : all->room * 2;

	if (all->count == all->room) {
		list = realloc(all->list, room * sizeof(*list));
		if (list == NULL)
			return false;
		all->list = list;
		all->room = room;
	}
	all->list[all->count++] = *remains;
	return true;
}

/* False: no memory for more. */
static bool look_at(struct remains_list *all, int dir, const char *name, uint64_t pid_namespace,
		    uint64_t now_ns)
{
	struct remains remains = { .owner = REGION_OWNER_HERE };
	struct region_header header;
	unsigned long long pid, ticks;
	struct stat st;
	size_t length = strlen(name);
	int fd;

	if (length < 7 || strcmp(name + length - 7, ".region") != 0 ||
	    sscanf(name, "%llu-%llu", &pid, &ticks) != 2 ||
	    !text_copy(remains.name, sizeof(remains.name), name))
		return true;
	/* Not blocking: somebody may have put a pipe there. */
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1)
		return true;
	remains.ticks = ticks;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		remains.owner = find_owner(fd, &st, pid_namespace, &header, &remains, pid);
	if (remains.owner != REGION_OWNER_HERE) {
		remains.bytes = (uint64_t)st.st_blocks * 512;
		remains.started_ns = header.first_anchor.wall_ns;
		remains.since_ns = remains.owner == REGION_OWNER_GONE
					   ? found_dead(fd, &st, remains.started_ns, now_ns)
					   : (uint64_t)st.st_mtim.tv_sec * SECOND_NS;
	}
	close(fd);
	return remains.owner == REGION_OWNER_HERE || add(all, &remains);
}

static int compare_newest_first(const void *one, const void *other)
{
	const struct remains *a = one, *b = other;

	if (a->since_ns != b->since_ns)
		return a->since_ns < b->since_ns ? 1 : -1;
	if (a->started_ns != b->started_ns)
		return a->started_ns < b->started_ns ? 1 : -1;
	return a->ticks < b->ticks ? 1 : a->ticks > b->ticks ? -1 : 0;
}

/* Sorted, the newest first: which of those with such an owner are beyond the limits? */
static void choose(struct remains_list *all, enum region_owner owner,
		   const struct region_limits *limits, uint64_t now_ns)
{
	uint64_t age_s = owner == REGION_OWNER_GONE ? limits->age_s : limits->unknown_age_s;
	unsigned int count = 0;
	uint64_t bytes = 0;

	for (size_t i = 0; i < all->count; i++) {
		struct remains *remains = &all->list[i];
		bool is_old = remains->since_ns + age_s * SECOND_NS < now_ns;
		bool is_over = count >= limits->count || bytes + remains->bytes > limits->bytes;

		if (remains->owner != owner)
			continue;
		remains->goes = owner == REGION_OWNER_GONE ? is_old || is_over : is_old && is_over;
		if (remains->goes)
			continue;
		count++;
		bytes += remains->bytes;
	}
}

static void find_remains(struct remains_list *all, int dir, uint64_t pid_namespace,
			 const struct region_limits *limits, uint64_t until_ns)
{
	uint64_t now_ns = clock_system_ns(CLOCK_REALTIME);
	int again = fcntl(dir, F_DUPFD_CLOEXEC, 0);
	DIR *list = again == -1 ? NULL : fdopendir(again);
	struct dirent *entry;

	if (list == NULL) {
		if (again != -1)
			close(again);
		return;
	}
	rewinddir(list);
	for (unsigned int i = 0; i < limits->names && (entry = readdir(list)) != NULL; i++)
		if (!look_at(all, dir, entry->d_name, pid_namespace, now_ns) ||
		    (i >= NAMES_LEAST && clock_system_ns(CLOCK_MONOTONIC) > until_ns))
			break;
	closedir(list);
}

void region_sweep(int dir, uint64_t pid_namespace, const struct region_limits *limits)
{
	struct region_limits standard = region_limits_of(dir);
	struct remains_list all = { .count = 0 };
	uint64_t begun_ns = clock_system_ns(CLOCK_MONOTONIC), now_ns;

	limits = limits != NULL ? limits : &standard;
	/* Half of the time for looking: removing gives memory back and takes a while, too. */
	find_remains(&all, dir, pid_namespace, limits, begun_ns + limits->time_ns / 2);
	now_ns = clock_system_ns(CLOCK_REALTIME);
	if (all.count > 1)
		qsort(all.list, all.count, sizeof(*all.list), compare_newest_first);
	choose(&all, REGION_OWNER_GONE, limits, now_ns);
	choose(&all, REGION_OWNER_UNKNOWN, limits, now_ns);
	/* The oldest first, and at least one. */
	for (size_t i = all.count; i-- > 0;) {
		if (!all.list[i].goes)
			continue;
		/* Another process may have been faster: all the same. */
		unlinkat(dir, all.list[i].name, 0);
		if (clock_system_ns(CLOCK_MONOTONIC) - begun_ns > limits->time_ns)
			break;
	}
	free(all.list);
}
