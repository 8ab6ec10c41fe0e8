/*
 * Creating a region, and removing old ones.
 *
 * Regions outlive their processes. A process that starts removes what others of its user left
 * beyond fixed caps on number, memory and age, whatever container they ran in.
 *
 * A region of a process that may be alive is never removed. A recorder holds a lock on its region
 * (hold_lock()), which can be tested from any pid namespace. A region without a lock, from an older
 * recorder or a kernel without such locks, is judged by /proc if it is of our own pid namespace,
 * and otherwise kept for days.
 */
#include "format/region_create.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/order.h"
#include "common/text.h"

enum { REGION_SHARE = 16, REGION_SHRINK_STEPS = 4 };

enum region_owner {
	REGION_OWNER_GONE = 0,	  /* for certain */
	REGION_OWNER_HERE = 1,	  /* alive, or possibly about to be */
	REGION_OWNER_UNKNOWN = 2, /* holds no lock, and its pid namespace is not ours */
};

enum {
	KEPT = 15, /* plus the one about to be created */
	KEPT_DAYS = 7,
	UNKNOWN_DAYS = 7,
	BEGIN_SECONDS = 60, /* no process takes longer to create its region */
	NAMES_LEAST = 64,   /* in a sweep, otherwise a slow machine would never make progress */
	NAMES_MOST = 4096,
	NAME_BYTES = 64,
	DAY_SECONDS = 24 * 60 * 60,
};
#define KEPT_BYTES (UINT64_C(256) << 20)
#define SWEEP_NS (UINT64_C(20) * 1000 * 1000)

struct remains {
	char name[NAME_BYTES];
	enum region_owner owner;
	bool goes;
	uint64_t since_ns;   /* wall clock: found dead, or, with an unknown owner, created */
	uint64_t started_ns; /* wall clock */
	uint64_t ticks;	     /* start time according to its name */
	uint64_t bytes;	     /* of memory */
};

struct remains_list {
	struct remains *list;
	size_t count;
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

	/* A tmpfs without a limit reports no blocks at all. */
	if (fstatvfs(dir, &fs) == -1 || fs.f_blocks == 0)
		return limits;
	size = (uint64_t)fs.f_blocks * fs.f_frsize;
	/* Large buffers need more where there is more; the 64 MiB of a container are for NCCL. */
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

/* By pid and start time, in our own pid namespace. */
static enum region_owner look_into_proc(uint64_t pid, uint64_t start)
{
	uint64_t started;
	char name[24], state;

	text_format(name, sizeof(name), "%llu", (unsigned long long)pid);
	if (!file_proc_stat(name, &state, &started))
		return errno == ENOENT ? REGION_OWNER_GONE : REGION_OWNER_HERE;
	return started != 0 && started != start ? REGION_OWNER_GONE : REGION_OWNER_HERE;
}

static enum region_owner find_owner(int fd, const struct stat *st, uint64_t pid_namespace,
				    struct region_header *header, struct remains *remains,
				    uint64_t pid)
{
	ssize_t got = pread(fd, header, sizeof(*header), 0);

	if (is_locked(fd))
		return REGION_OWNER_HERE;
	if (got != (ssize_t)sizeof(*header) || header->header_bytes == 0) {
		/*
		 * Being created, or its process was killed while creating it. The time alone does
		 * not tell: the clock may have been set forward since.
		 */
		*header = (struct region_header){ .magic = 0 };
		return st->st_mtime + BEGIN_SECONDS < time(NULL)
			       ? look_into_proc(pid, remains->ticks)
			       : REGION_OWNER_HERE;
	}
	/* A copy of the file has a different inode. */
	if (header->lock_inode != 0 && header->lock_inode == st->st_ino)
		return REGION_OWNER_GONE;
	if (header->pid_namespace != pid_namespace)
		return REGION_OWNER_UNKNOWN;
	return look_into_proc(pid, remains->ticks);
}

/*
 * When it was found dead. That is stored as the file's modification time, which no recorder changes
 * once the region is created. The start time of its process means nothing: one that ran for weeks
 * may have died just now.
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

static bool remains_add(struct remains_list *all, const struct remains *remains)
{
	if (!list_grow(&all->list, all->count, sizeof(*all->list)))
		return false;
	all->list[all->count++] = *remains;
	return true;
}

/* False: no memory for more. */
static bool remains_look_at(struct remains_list *all, int dir, const char *name,
			    uint64_t pid_namespace, uint64_t now_ns)
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
	/* Non-blocking, because the name may be a pipe. */
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
	return remains.owner == REGION_OWNER_HERE || remains_add(all, &remains);
}

static int compare_newest_first(const void *one, const void *other)
{
	const struct remains *a = one, *b = other;

	return ORDER(b->since_ns, a->since_ns) ?:
	       ORDER(b->started_ns, a->started_ns) ?:
	       ORDER(b->ticks, a->ticks);
}

/* Sorted, the newest first: which of those with such an owner exceed the limits? */
static void remains_choose(struct remains_list *all, enum region_owner owner,
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
		if (!remains_look_at(all, dir, entry->d_name, pid_namespace, now_ns) ||
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
	/* Half of the time for searching: removing takes a while, too. */
	find_remains(&all, dir, pid_namespace, limits, begun_ns + limits->time_ns / 2);
	now_ns = clock_system_ns(CLOCK_REALTIME);
	if (all.count > 1)
		qsort(all.list, all.count, sizeof(*all.list), compare_newest_first);
	remains_choose(&all, REGION_OWNER_GONE, limits, now_ns);
	remains_choose(&all, REGION_OWNER_UNKNOWN, limits, now_ns);
	/* The oldest first, and at least one. */
	for (size_t i = all.count; i-- > 0;) {
		if (!all.list[i].goes)
			continue;
		/* It makes no difference if another process was faster. */
		unlinkat(dir, all.list[i].name, 0);
		if (clock_system_ns(CLOCK_MONOTONIC) - begun_ns > limits->time_ns)
			break;
	}
	free(all.list);
}

enum { PART_ALIGN = 64 };

/* Slots at full size; shrinking halves all but info and names. */
static const struct {
	uint32_t count;
	uint32_t stride;
} full_size[REGION_PARTS] = {
	[REGION_COMMS] = { 512, sizeof(struct region_comm) },
	[REGION_LIVE] = { 4096, sizeof(struct region_live) },
	[REGION_PROXIES] = { 8192, sizeof(struct region_proxy) },
	[REGION_PEERS] = { 8192, sizeof(struct region_peer) },
	[REGION_TOTALS] = { 1024, sizeof(struct region_total) },
	[REGION_LINKS] = { 4096, sizeof(struct region_link) },
};

/* The largest power of two of slots that fits into `bytes`. */
static uint32_t ring_slots(uint64_t bytes, uint32_t stride, int shrink)
{
	uint64_t slots = (bytes >> shrink) / stride;

	if (slots == 0)
		return 0;
	if (slots > 1u << 30)
		slots = 1u << 30;
	return 1u << (63 - __builtin_clzll(slots));
}

static uint64_t place_part(struct region_part *part, uint64_t offset, uint32_t count,
			   uint32_t stride)
{
	part->offset = offset;
	part->count = count;
	part->stride = stride;
	offset += (uint64_t)count * stride;
	return (offset + PART_ALIGN - 1) & ~(uint64_t)(PART_ALIGN - 1);
}

/* Place the parts one after the other; returns the total size. */
static uint64_t place_parts(struct region_part parts[REGION_PARTS],
			    const struct region_request *request, int shrink)
{
	uint64_t at = REGION_HEADER_BYTES;

	at = place_part(&parts[REGION_INFO], at, 1, REGION_INFO_BYTES);
	at = place_part(&parts[REGION_NAMES], at, OP_NAMES_INTERNED_MAX,
			sizeof(struct region_name));
	for (int i = REGION_COMMS; i <= REGION_TOTALS; i++)
		at = place_part(&parts[i], at, full_size[i].count >> shrink, full_size[i].stride);
	at = place_part(&parts[REGION_RING], at,
			ring_slots(request->ring_bytes, OP_RECORD_BYTES, shrink), OP_RECORD_BYTES);
	at = place_part(&parts[REGION_DETAILS], at,
			ring_slots(request->detail_bytes, OP_DETAIL_BYTES, shrink),
			OP_DETAIL_BYTES);
	at = place_part(&parts[REGION_LINKS], at, full_size[REGION_LINKS].count >> shrink,
			full_size[REGION_LINKS].stride);
	return (at + 4095) & ~UINT64_C(4095);
}

static void use_parts(struct region_writer *writer, const struct region_part *parts)
{
	char *base = (char *)writer->header;

	memcpy(writer->header->parts, parts, sizeof(writer->header->parts));
	writer->info = base + parts[REGION_INFO].offset;
	writer->names = (void *)(base + parts[REGION_NAMES].offset);
	writer->comms = (void *)(base + parts[REGION_COMMS].offset);
	writer->live = (void *)(base + parts[REGION_LIVE].offset);
	writer->proxies = (void *)(base + parts[REGION_PROXIES].offset);
	writer->peers = (void *)(base + parts[REGION_PEERS].offset);
	writer->totals = (void *)(base + parts[REGION_TOTALS].offset);
	writer->ring = (void *)(base + parts[REGION_RING].offset);
	writer->details = (void *)(base + parts[REGION_DETAILS].offset);
	writer->links = (void *)(base + parts[REGION_LINKS].offset);
	writer->comm_count = parts[REGION_COMMS].count;
	writer->live_count = parts[REGION_LIVE].count;
	writer->proxy_count = parts[REGION_PROXIES].count;
	writer->peer_count = parts[REGION_PEERS].count;
	writer->total_count = parts[REGION_TOTALS].count;
	writer->link_count = parts[REGION_LINKS].count;
	writer->ring_count = parts[REGION_RING].count;
	writer->detail_count = parts[REGION_DETAILS].count;
}

/*
 * Open or create `path` as a directory that belongs to this user and that no one else can write to:
 * 0700, or 0750 with a group. Returns a descriptor, or -1 with *why set.
 */
static int region_own_directory(const char *path, gid_t group, const char **why)
{
	mode_t mode = group == (gid_t)-1 ? 0700 : 0750;
	struct stat st;
	int fd;

	if (mkdir(path, mode) == -1 && errno != EEXIST) {
		*why = errno == ENOENT	? "the parent directory does not exist"
		       : errno == EROFS ? "the file system is read-only"
					: "cannot be created";
		return -1;
	}
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1) {
		*why = errno == ELOOP || errno == ENOTDIR ? "a symbolic link or not a directory"
							  : "cannot be opened";
		return -1;
	}
	if (fstat(fd, &st) == -1) {
		*why = "its owner is unknown";
		close(fd);
		return -1;
	}
	if (st.st_uid != geteuid()) {
		*why = "owned by another user";
		close(fd);
		return -1;
	}
	/* mkdir applied the umask; an existing directory may be more open or lack the group. */
	if (group != (gid_t)-1 && fchown(fd, (uid_t)-1, group) == -1)
		mode = 0700;
	if (fchmod(fd, mode) == -1) {
		*why = errno == EROFS ? "the file system is read-only"
				      : "cannot set its permissions";
		close(fd);
		return -1;
	}
	return fd;
}

/*
 * The recorder holds a lock on its region while it lives, so that processes in other pid
 * namespaces, which cannot see it, can test the lock. It belongs to the open file, which the
 * mapping keeps open after close(2): it needs no descriptor, nothing that the job closes releases
 * it, and the kernel drops it when the process ends or calls exec. For fork see
 * region_leave_to_parent(). Returns the inode; 0: no lock.
 */
static uint64_t hold_lock(int fd)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct stat st;

	if (fcntl(fd, F_OFD_SETLK, &whole) == -1 || fstat(fd, &st) == -1)
		return 0;
	return st.st_ino;
}

static int create_file(int dir, const struct region_request *request, char *name, size_t size)
{
	int fd = -1;

	/*
	 * Only a process of another pid namespace that shares the directory can have taken the
	 * name.
	 */
	for (int attempt = 0; fd == -1 && attempt < 8; attempt++) {
		text_format(name, size, attempt == 0 ? "%llu-%llu.region" : "%llu-%llu-%d.region",
			    (unsigned long long)request->pid,
			    (unsigned long long)request->start_ticks, attempt);
		fd = fd_open_high(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				  0600);
		if (fd == -1 && errno != EEXIST)
			return -1;
	}
	if (fd != -1 && request->group != (gid_t)-1 && fchown(fd, (uid_t)-1, request->group) == 0)
		fchmod(fd, 0640);
	return fd;
}

static bool map_shared(struct region_writer *writer, int fd, uint64_t bytes)
{
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);

	if (base == MAP_FAILED)
		return false;
	writer->header = base;
	writer->bytes = bytes;
	return true;
}

static const char too_little_space[] = "too little space";

/*
 * Space is reserved now: a full tmpfs is an error here and never a SIGBUS in a callback. Returns
 * NULL, or why not.
 */
static const char *fill_file(struct region_writer *writer, int fd, uint64_t bytes)
{
	int error = posix_fallocate(fd, 0, (off_t)bytes);

	if (error != 0)
		return error == ENOSPC || error == EDQUOT || error == EFBIG
			       ? too_little_space
			       : "no space can be reserved";
	return map_shared(writer, fd, bytes) ? NULL : "cannot be mapped";
}

/* NULL if there is room. A tmpfs without a limit reports no blocks at all. */
static const char *find_room(int dir, uint64_t bytes)
{
	struct statvfs fs;

	if (fstatvfs(dir, &fs) == -1)
		return "its free space is unknown";
	return fs.f_blocks == 0 || bytes <= (uint64_t)fs.f_bavail * fs.f_frsize / REGION_SHARE
		       ? NULL
		       : too_little_space;
}

static bool create_in_directory(struct region_writer *writer, const struct region_request *request,
				struct region_part parts[REGION_PARTS])
{
	const char *why = request->why_not;
	char name[128];
	int dir = why != NULL ? -1 : region_own_directory(request->dir, request->group, &why);

	if (dir == -1) {
		text_format(writer->reason, sizeof(writer->reason), "%.96s: %s", request->dir, why);
		return false;
	}
	region_sweep(dir, request->pid_namespace, NULL);
	for (int shrink = 0; shrink <= REGION_SHRINK_STEPS && !writer->header; shrink++) {
		uint64_t bytes = place_parts(parts, request, shrink);
		const char *trouble = find_room(dir, bytes);
		int fd;

		if (trouble != NULL) {
			why = trouble;
			continue;
		}
		fd = create_file(dir, request, name, sizeof(name));
		if (fd == -1) {
			why = "cannot create a file in it";
			break;
		}
		/*
		 * Before anything is written to it, so that a region that looks unfinished is
		 * locked.
		 */
		writer->lock_inode = hold_lock(fd);
		trouble = fill_file(writer, fd, bytes);
		if (trouble == NULL) {
			writer->kind = shrink ? REGION_KIND_SHM_SMALL : REGION_KIND_SHM;
		} else {
			why = trouble;
			unlinkat(dir, name, 0);
		}
		close(fd);
	}
	close(dir);
	if (writer->kind != REGION_KIND_SHM)
		text_format(writer->reason, sizeof(writer->reason), "%.96s: %s", request->dir, why);
	if (writer->header)
		text_format(writer->path, sizeof(writer->path), "%s/%s", request->dir, name);
	return writer->header != NULL;
}

static bool create_memfd(struct region_writer *writer, const struct region_request *request,
			 struct region_part parts[REGION_PARTS])
{
	uint64_t bytes = place_parts(parts, request, 2);
	int fd = fd_high(memfd_create("ringside", MFD_CLOEXEC));

	if (fd == -1)
		return false;
	if (fill_file(writer, fd, bytes) != NULL) {
		close(fd);
		return false;
	}
	writer->fd = fd;
	writer->kind = REGION_KIND_MEMFD;
	text_format(writer->path, sizeof(writer->path), "/proc/%llu/fd/%d",
		    (unsigned long long)request->pid, fd);
	return true;
}

static bool create_private(struct region_writer *writer, const struct region_request *request,
			   struct region_part parts[REGION_PARTS])
{
	uint64_t bytes = place_parts(parts, request, REGION_SHRINK_STEPS);
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (base == MAP_FAILED)
		return false;
	writer->header = base;
	writer->bytes = bytes;
	writer->kind = REGION_KIND_PRIVATE;
	return true;
}

enum status region_create(struct region_writer *writer, const struct region_request *request)
{
	struct region_part parts[REGION_PARTS] = { { 0, 0, 0 } };
	/* Covers everything opened on the way: the directory, other regions, /proc. */
	struct fd_guard guard = fd_guard_begin();
	struct region_header *header;
	bool is_made;

	*writer = (struct region_writer){ .fd = -1 };
	is_made = create_in_directory(writer, request, parts) ||
		  create_memfd(writer, request, parts) || create_private(writer, request, parts);
	fd_guard_end(&guard);
	if (!is_made)
		return ERR_NO_SPACE;
	use_parts(writer, parts);
	header = writer->header;
	header->major = REGION_MAJOR;
	header->minor = REGION_MINOR;
	header->byte_order = REGION_BYTE_ORDER;
	header->header_bytes = REGION_HEADER_BYTES;
	header->total_bytes = writer->bytes;
	header->pid = request->pid;
	header->pid_namespace = request->pid_namespace;
	header->start_ticks = request->start_ticks;
	header->kind = writer->kind;
	header->lock_inode = writer->lock_inode;
	return OK;
}

void region_discard(struct region_writer *writer)
{
	if (writer->header == NULL)
		return;
	if (writer->kind == REGION_KIND_SHM || writer->kind == REGION_KIND_SHM_SMALL)
		unlink(writer->path);
	munmap(writer->header, writer->bytes);
	if (writer->fd != -1)
		close(writer->fd);
	*writer = (struct region_writer){ .fd = -1 };
}

void region_publish(struct region_writer *writer)
{
	/* R1: pairs with the acquire of readers that map the region, or with their read(2). */
	store_release(&writer->header->magic, REGION_MAGIC);
}

void region_leave_to_parent(struct region_writer *writer)
{
	if (writer->header == NULL || writer->lock_inode == 0)
		return;
	/*
	 * In one step, so that a callback always finds memory. If this fails, the region seems
	 * alive while this child lives, which is harmless.
	 */
	if (mmap(writer->header, writer->bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED)
		writer->lock_inode = 0;
}
