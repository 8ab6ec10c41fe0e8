/* Finds regions on this host and the processes that wrote them. */
#include "format/region_read.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/file.h"
#include "common/text.h"

void region_boot_id(char boot_id[40])
{
	char text[64];

	memset(boot_id, 0, 40);
	if (!file_read_text("/proc/sys/kernel/random/boot_id", text, sizeof(text)))
		return;
	text[strcspn(text, "\n")] = '\0';
	text_copy(boot_id, 40, text);
}

/* 0 if there is no such process any more: gone or a zombie; *state is then 0. */
static uint64_t start_ticks_of(const char *pid, char *state)
{
	uint64_t start_ticks;

	file_proc_stat(pid, state, &start_ticks);
	if (*state != 0 && strchr("ZXx", *state) == NULL)
		return start_ticks;
	*state = 0;
	return 0;
}

static bool is_the_process(const char *pid, const struct region_identity *identity)
{
	char state;

	return file_proc_namespace(pid) == identity->pid_namespace &&
	       file_proc_own_pid(pid) == identity->pid &&
	       start_ticks_of(pid, &state) == identity->start_ticks;
}

/*
 * In another namespace: search those of its processes that we can see. Not finding it proves
 * nothing.
 */
static enum region_alive look_everywhere(const struct region_identity *identity, uint64_t *pid_here)
{
	enum region_alive answer = REGION_ALIVE_UNKNOWN;
	struct dirent *entry;
	DIR *proc = opendir("/proc");

	if (proc == NULL)
		return answer;
	while (answer == REGION_ALIVE_UNKNOWN && (entry = readdir(proc)) != NULL) {
		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    !is_the_process(entry->d_name, identity))
			continue;
		*pid_here = strtoull(entry->d_name, NULL, 10);
		answer = REGION_ALIVE_YES;
	}
	closedir(proc);
	return answer;
}

/* By all that identifies it. */
static enum region_alive find_here(const struct region_identity *identity, uint64_t *pid_here)
{
	char pid[24];

	if (identity->start_ticks == 0 || identity->pid_namespace == 0)
		return REGION_ALIVE_NO;
	if (identity->pid_namespace != file_proc_namespace("self"))
		return look_everywhere(identity, pid_here);
	text_format(pid, sizeof(pid), "%llu", (unsigned long long)identity->pid);
	if (!is_the_process(pid, identity))
		return REGION_ALIVE_NO;
	*pid_here = identity->pid;
	return REGION_ALIVE_YES;
}

static bool is_host_here(const char *host)
{
	char name[256] = "";

	return gethostname(name, sizeof(name) - 1) == 0 && strcmp(name, host) == 0;
}

enum region_alive region_alive(const struct region_identity *identity, uint64_t *pid_here)
{
	char boot_id[40], pid[24], state;
	uint64_t unwanted, start;

	if (pid_here == NULL)
		pid_here = &unwanted;
	region_boot_id(boot_id);
	if (boot_id[0] == '\0' || identity->boot_id[0] == '\0' || identity->pid == 0)
		return REGION_ALIVE_UNKNOWN;
	/* Containers and virtual roots may have a boot id of their own: the process itself decides. */
	if (strcmp(boot_id, identity->boot_id) != 0)
		return is_host_here(identity->host) ? find_here(identity, pid_here)
						    : REGION_ALIVE_UNKNOWN;
	if (identity->pid_namespace != 0 && identity->pid_namespace != file_proc_namespace("self"))
		return look_everywhere(identity, pid_here);
	text_format(pid, sizeof(pid), "%llu", (unsigned long long)identity->pid);
	start = start_ticks_of(pid, &state);
	if (start == 0 && access("/proc/self/stat", R_OK) == -1)
		return REGION_ALIVE_UNKNOWN;
	if (start == 0 || (identity->start_ticks != 0 && start != identity->start_ticks))
		return REGION_ALIVE_NO;
	if (identity->start_ticks == 0)
		return REGION_ALIVE_UNKNOWN;
	*pid_here = identity->pid;
	return REGION_ALIVE_YES;
}

enum region_alive region_alive_still(const struct region_identity *identity, uint64_t pid_here,
				     char *state)
{
	char pid[24];

	text_format(pid, sizeof(pid), "%llu", (unsigned long long)pid_here);
	if (start_ticks_of(pid, state) == identity->start_ticks && identity->start_ticks != 0)
		return REGION_ALIVE_YES;
	*state = 0;
	return access("/proc/self/stat", R_OK) == 0 ? REGION_ALIVE_NO : REGION_ALIVE_UNKNOWN;
}

char region_process_state(uint64_t pid_here)
{
	char pid[24], state;

	text_format(pid, sizeof(pid), "%llu", (unsigned long long)pid_here);
	start_ticks_of(pid, &state);
	return state;
}

/*
 * Three places: files in a directory, memfds of running processes, and the directory of the same
 * name in other mount namespaces. Other users choose the names, so a name is only ever passed back
 * to the kernel, relative to an open directory.
 *
 * A container's file system is built by a user. /dev may be a link, and /dev/shm a FUSE mount whose
 * server never answers. So the way to a container's directory is taken without following links and
 * only as far as the kernel has it in memory (RESOLVE_CACHED: no file system is asked), and nothing
 * in it is touched unless it is a tmpfs, which the kernel serves itself. From there on no other
 * mount is entered.
 */

enum {
	PLACES_MAX = 1 << 16,
	CONTAINERS_MAX = 1 << 13,    /* mount namespaces */
	CONTAINER_ENTRIES = 1 << 17, /* of a directory in a container */
	OWNERS_MAX = 1 << 12,	     /* users counted separately */
	EFFORT_OPEN = 16,	     /* a file, directory or process; listing a name is 1 */
	MOUNT_LINE = 1024,	     /* of a mount list; no more than this at a time: */
	MOUNT_BYTES = 512,
	MOUNTS_PER_EFFORT = 64, /* see mount_effort() */
};

/* Device and inode as the kernel knows them: a network or FUSE server is not asked. */
static bool stat_quietly(int fd, uint64_t *device, uint64_t *inode)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &st) == -1)
		return false;
	*device = makedev(st.stx_dev_major, st.stx_dev_minor);
	*inode = st.stx_ino;
	return true;
}

struct mount {
	uint64_t device, inode; /* of the directory */
};

/* A directory of regions while it is listed: first the recorders' directories in it, then its own files. */
struct listing {
	DIR *top; /* NULL: none */
	char path[PATH_MAX];
	enum region_place_kind kind;
	bool is_files;	/* the second pass */
	size_t entries; /* of this pass, or of sub */
	DIR *sub;	/* a recorder's directory; NULL: none */
	char sub_path[PATH_MAX];
	struct region_owner *sub_owner;
};

/*
 * A directory in a container while the container's list of mounts is read, up to the one that says whether it is on a
 * tmpfs.
 */
struct mount_list {
	int fd;	   /* /proc/PID/mountinfo; -1: none */
	int place; /* the directory, O_PATH */
	uint64_t device, inode;
	struct region_owner *owner;
	uint64_t lines;
	char line[MOUNT_LINE]; /* the beginning of what is not complete yet */
	size_t used;
	bool is_tail; /* the rest of a line that is too long */
};

struct region_search {
	struct region_places places;
	char directory[PATH_MAX];
	struct region_search_limits limits;
	uint64_t effort; /* of all steps */
	bool must_list_processes;
	struct listing listing;
	struct mount_list mount_list;
	DIR *proc;	  /* NULL: not begun, or over */
	DIR *descriptors; /* of a process; NULL: none */
	char pid[24];
	struct region_owner *process_owner;
	uint64_t *namespaces; /* mount namespaces seen, ours first */
	size_t namespace_count;
	struct mount *mounts; /* directories seen, ours first */
	size_t mount_count;
};

/* What a user may cost. Users beyond OWNERS_MAX share the last entry; NULL: no memory. */
static struct region_owner *owner_of(struct region_places *places, uint32_t uid)
{
	for (size_t i = 0; i < places->owner_count; i++)
		if (places->owners[i].uid == uid)
			return &places->owners[i];
	if (places->owner_count == OWNERS_MAX)
		return &places->owners[OWNERS_MAX - 1];
	if (places->owners == NULL)
		places->owners = calloc(OWNERS_MAX, sizeof(*places->owners));
	if (places->owners == NULL)
		return NULL;
	places->owners[places->owner_count] = (struct region_owner){ .uid = uid };
	return &places->owners[places->owner_count++];
}

static enum status add_place(struct region_places *places, const char *path, const struct stat *st,
			     enum region_place_kind kind)
{
	struct region_place *list;

	if (places->count == PLACES_MAX)
		return OK;
	if (!list_grow(&places->list, places->count, sizeof(*places->list)))
		return ERR_NO_SPACE;
	list = &places->list[places->count];
	*list = (struct region_place){ .path = strdup(path), .st = *st, .kind = kind };
	if (list->path == NULL)
		return ERR_NO_SPACE;
	places->count++;
	return OK;
}

static bool has_place(const struct region_places *places, const struct stat *st)
{
	for (size_t i = 0; i < places->count; i++)
		if (places->list[i].st.st_dev == st->st_dev &&
		    places->list[i].st.st_ino == st->st_ino)
			return true;
	return false;
}

static bool begins_as_region(int fd)
{
	uint64_t magic;

	return file_pread(fd, &magic, sizeof(magic), 0) == OK && magic == REGION_MAGIC;
}

/* The file that a descriptor of O_PATH refers to; takes the descriptor. */
static int open_path_fd(int place)
{
	char again[64];
	int fd, error;

	if (place == -1)
		return -1;
	text_format(again, sizeof(again), "/proc/self/fd/%d", place);
	fd = file_open(AT_FDCWD, again, true);
	error = errno;
	close(place);
	errno = error;
	return fd;
}

/* May more files of this user be opened? If not, the rest of its directory is left out. */
static bool may_open(struct region_search *search, struct region_owner *owner)
{
	return search->limits.owner_files == 0 || owner->files++ < search->limits.owner_files;
}

/* A file among those of all users: whose it is shows when it is open. */
static bool may_keep(struct region_search *search, const struct stat *st)
{
	struct region_owner *owner = owner_of(&search->places, st->st_uid);

	if (owner != NULL && may_open(search, owner))
		return true;
	if (owner != NULL && owner->directories_left_out == 0)
		owner->directories_left_out = 1;
	return false;
}

/* EXDEV: something is mounted there, which may never answer. */
static bool is_refused(int error)
{
	return error == EACCES || error == EPERM || error == EXDEV;
}

/* One entry of a directory that may be a region. */
static enum status look_at(struct region_search *search, int directory, const char *parent,
			   const char *name)
{
	struct region_places *places = &search->places;
	enum region_place_kind kind = search->listing.kind;
	char path[PATH_MAX];
	enum status status = OK;
	struct stat st;
	int fd = open_path_fd(file_open_inside(directory, name, O_PATH));

	search->effort += EFFORT_OPEN;
	if (fd == -1) {
		/* Links, directories and devices are not regions; entries may also disappear. */
		places->unreadable += is_refused(errno);
		return OK;
	}
	if (!begins_as_region(fd) || fstat(fd, &st) == -1)
		places->foreign++;
	else if ((search->listing.sub != NULL || may_keep(search, &st)) &&
		 !has_place(places, &st) && text_format(path, sizeof(path), "%s/%s", parent, name))
		status = add_place(places, path, &st, kind);
	close(fd);
	return status;
}

static DIR *list_descriptor(int fd)
{
	DIR *list = fd != -1 ? fdopendir(fd) : NULL;

	if (list == NULL && fd != -1)
		close(fd);
	return list;
}

static DIR *list_directory(int directory, const char *name)
{
	return list_descriptor(file_open_inside(directory, name, O_RDONLY | O_DIRECTORY));
}

static void begin_listing(struct region_search *search, DIR *list, const char *path,
			  enum region_place_kind kind)
{
	struct listing *listing = &search->listing;

	if (list == NULL || !text_copy(listing->path, sizeof(listing->path), path)) {
		if (list != NULL)
			closedir(list);
		return;
	}
	listing->top = list;
	listing->kind = kind;
	listing->is_files = false;
	listing->entries = 0;
}

/* A recorder's own directory: all files in it. */
static enum status enter_directory(struct region_search *search, const char *name)
{
	struct listing *listing = &search->listing;
	struct stat st;

	search->effort += EFFORT_OPEN;
	listing->sub = list_directory(dirfd(listing->top), name);
	if (listing->sub == NULL) {
		search->places.unreadable += is_refused(errno);
		return OK;
	}
	listing->sub_owner = NULL;
	if (fstat(dirfd(listing->sub), &st) == 0)
		listing->sub_owner = owner_of(&search->places, st.st_uid);
	if (listing->sub_owner != NULL &&
	    text_format(listing->sub_path, sizeof(listing->sub_path), "%s/%s", listing->path, name))
		return OK;
	closedir(listing->sub);
	listing->sub = NULL;
	return listing->sub_owner != NULL ? OK : ERR_NO_SPACE;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* The next entry of a directory, or NULL: there is none, or a container has more than is sensible. */
static const char *next_name(struct region_search *search, DIR *list)
{
	struct listing *listing = &search->listing;
	struct dirent *entry = readdir(list);

	search->effort++;
	if (entry == NULL)
		return NULL;
	if (listing->kind == REGION_PLACE_CONTAINER && listing->entries++ == CONTAINER_ENTRIES) {
		search->places.unreadable++;
		return NULL;
	}
	return entry->d_name;
}

static enum status list_more_below(struct region_search *search)
{
	struct listing *listing = &search->listing;
	const char *name = next_name(search, listing->sub);

	if (name != NULL && name[0] == '.')
		return OK;
	if (name != NULL && may_open(search, listing->sub_owner))
		return look_at(search, dirfd(listing->sub), listing->sub_path, name);
	listing->sub_owner->directories_left_out += name != NULL;
	closedir(listing->sub);
	listing->sub = NULL;
	return OK;
}

static enum status list_more(struct region_search *search)
{
	struct listing *listing = &search->listing;
	const char *name;
	bool is_recorders;

	if (listing->sub != NULL)
		return list_more_below(search);
	name = next_name(search, listing->top);
	if (name == NULL && !listing->is_files) {
		listing->is_files = true;
		listing->entries = 0;
		rewinddir(listing->top);
		return OK;
	}
	if (name == NULL) {
		closedir(listing->top);
		listing->top = NULL;
		return OK;
	}
	is_recorders = strncmp(name, "ringside-", strlen("ringside-")) == 0;
	if (is_recorders && !listing->is_files)
		return enter_directory(search, name);
	if (!is_recorders && listing->is_files && ends_with(name, ".region"))
		return look_at(search, dirfd(listing->top), listing->path, name);
	return OK;
}

static enum status look_at_descriptor(struct region_places *places, int directory, const char *pid,
				      const char *name)
{
	static const char wanted[] = "/memfd:ringside";
	char link[64], path[64];
	enum status status = OK;
	struct stat st;
	ssize_t length = readlinkat(directory, name, link, sizeof(link) - 1);
	int fd;

	if (length < (ssize_t)strlen(wanted) || memcmp(link, wanted, strlen(wanted)) != 0 ||
	    !text_format(path, sizeof(path), "/proc/%s/fd/%s", pid, name))
		return OK;
	fd = file_open_memfd(path);
	if (fd == -1) {
		places->foreign += errno == EXDEV;
		places->unreadable += errno != EXDEV;
		return OK;
	}
	/* Forked processes hold the same memfd: one of them is enough. */
	if (!begins_as_region(fd) || fstat(fd, &st) == -1)
		places->foreign++;
	else if (!has_place(places, &st))
		status = add_place(places, path, &st, REGION_PLACE_MEMFD);
	close(fd);
	return status;
}

/* ---- containers ------------------------------------------------------------------------------ */

static enum status add_namespace(struct region_search *search, uint64_t namespace)
{
	if (!list_grow(&search->namespaces, search->namespace_count, sizeof(*search->namespaces)))
		return ERR_NO_SPACE;
	search->namespaces[search->namespace_count++] = namespace;
	return OK;
}

static bool has_namespace(const struct region_search *search, uint64_t namespace)
{
	for (size_t i = 0; i < search->namespace_count; i++)
		if (search->namespaces[i] == namespace)
			return true;
	return false;
}

static enum status add_mount(struct region_search *search, uint64_t device, uint64_t inode)
{
	if (!list_grow(&search->mounts, search->mount_count, sizeof(*search->mounts)))
		return ERR_NO_SPACE;
	search->mounts[search->mount_count++] = (struct mount){ device, inode };
	return OK;
}

/* Containers of a pod share one /dev/shm, and services of the host have that of the host. */
static bool has_mount(const struct region_search *search, uint64_t device, uint64_t inode)
{
	for (size_t i = 0; i < search->mount_count; i++)
		if (search->mounts[i].device == device && search->mounts[i].inode == inode)
			return true;
	return false;
}

static int open_root(const char *pid)
{
	char path[64];

	text_format(path, sizeof(path), "/proc/%s/root", pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The directory as a process sees it; false if it is ours, was seen before, or would have to be asked for. */
static bool find_directory(struct region_search *search, struct mount_list *list)
{
	int root = open_root(search->pid);

	if (root == -1)
		return false;
	list->place =
		file_open_within(root, search->directory, O_PATH | O_DIRECTORY,
				 FILE_IN_ROOT | FILE_NO_MAGIC_LINKS | FILE_NO_LINKS | FILE_CACHED);
	close(root);
	if (list->place == -1)
		return false;
	if (stat_quietly(list->place, &list->device, &list->inode) &&
	    !has_mount(search, list->device, list->inode))
		return true;
	close(list->place);
	return false;
}

static enum status find_in_container(struct region_search *search)
{
	uint64_t namespace = file_proc_mounts(search->pid);
	struct mount_list list = { .owner = search->process_owner };
	enum status status = OK;
	char path[64];

	if (namespace == 0 || has_namespace(search, namespace))
		return OK;
	if (search->namespace_count == CONTAINERS_MAX) {
		search->places.unreadable++;
		return OK;
	}
	status = add_namespace(search, namespace);
	search->effort += EFFORT_OPEN;
	if (status != OK || !find_directory(search, &list))
		return status;
	text_format(path, sizeof(path), "/proc/%s/mountinfo", search->pid);
	list.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (list.fd == -1)
		close(list.place);
	else
		search->mount_list = list;
	return OK;
}

static void end_mount_list(struct mount_list *list)
{
	close(list->fd);
	close(list->place);
	list->fd = -1;
}

/* ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS [FIELD...] - TYPE SOURCE OPTIONS */
static bool is_mount_of(const char *line, uint64_t device)
{
	unsigned int major_number, minor_number;

	return sscanf(line, "%*u %*u %u:%u", &major_number, &minor_number) == 2 &&
	       makedev(major_number, minor_number) == device;
}

static bool is_tmpfs(const char *line)
{
	const char *type = strstr(line, " - ");

	return type != NULL && strncmp(type, " - tmpfs ", strlen(" - tmpfs ")) == 0;
}

/*
 * Mounts can be stacked on one place, and then the kernel goes through all those below it to write the path of one. So the
 * n-th line may cost it n steps.
 */
static uint64_t mount_effort(const struct mount_list *list)
{
	return 1 + list->lines / MOUNTS_PER_EFFORT;
}

static bool may_read_mounts(const struct region_search *search, const struct mount_list *list)
{
	return search->limits.owner_mounts == 0 || list->owner->uid == 0 ||
	       list->owner->mounts < search->limits.owner_mounts;
}

static void begin_container(struct region_search *search, const struct mount_list *list)
{
	int fd = openat(list->place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = list_descriptor(fd);
	char path[PATH_MAX];

	if (text_format(path, sizeof(path), "/proc/%s/root%s", search->pid, search->directory))
		begin_listing(search, directory, path, REGION_PLACE_CONTAINER);
	else if (directory != NULL)
		closedir(directory);
}

/* The lines read so far; the beginning of the next one stays. *is_over: it was found, tmpfs or not. */
static enum status take_mounts(struct region_search *search, struct mount_list *list, bool *is_over)
{
	enum status status = OK;
	char *line = list->line, *end;

	while (!*is_over && (end = memchr(line, '\n', list->used)) != NULL) {
		uint64_t effort = mount_effort(list);

		*end = '\0';
		search->effort += effort;
		list->owner->mounts += effort;
		list->lines++;
		*is_over = !list->is_tail && is_mount_of(line, list->device);
		if (*is_over)
			status = add_mount(search, list->device, list->inode);
		if (*is_over && status == OK && is_tmpfs(line))
			begin_container(search, list);
		list->is_tail = false;
		list->used -= (size_t)(end + 1 - line);
		line = end + 1;
	}
	memmove(list->line, line, list->used);
	return status;
}

static enum status next_mounts(struct region_search *search)
{
	struct mount_list *list = &search->mount_list;
	size_t room = sizeof(list->line) - list->used;
	enum status status = OK;
	bool is_over = false;
	ssize_t got;

	if (!may_read_mounts(search, list)) {
		list->owner->directories_left_out++;
		end_mount_list(list);
		return OK;
	}
	/* The line of a container's directory is short. */
	if (room == 0) {
		list->is_tail = true;
		list->used = 0;
		room = sizeof(list->line);
	}
	got = read(list->fd, list->line + list->used, room < MOUNT_BYTES ? room : MOUNT_BYTES);
	if (got > 0) {
		list->used += (size_t)got;
		status = take_mounts(search, list, &is_over);
	}
	if (got <= 0 || is_over)
		end_mount_list(list);
	return status;
}

/* ---- processes ------------------------------------------------------------------------------- */

/* What is ours was searched already. */
static enum status begin_processes(struct region_search *search)
{
	enum status status = add_namespace(search, file_proc_mounts("self"));
	struct stat st;

	search->must_list_processes = false;
	if (status == OK && stat(search->directory, &st) == 0)
		status = add_mount(search, st.st_dev, st.st_ino);
	search->proc = opendir("/proc");
	return status;
}

static enum status end_process(struct region_search *search)
{
	return search->directory[0] == '/' ? find_in_container(search) : OK;
}

/* Its descriptors first, then its container. */
static enum status next_process(struct region_search *search)
{
	struct dirent *process = readdir(search->proc);
	char path[64];

	search->effort++;
	if (process == NULL) {
		closedir(search->proc);
		search->proc = NULL;
		return OK;
	}
	if (!isdigit((unsigned char)process->d_name[0]))
		return OK;
	search->effort += EFFORT_OPEN;
	text_copy(search->pid, sizeof(search->pid), process->d_name);
	/* Its files in /proc may belong to root: a process can ask for that. */
	search->process_owner = owner_of(&search->places, file_proc_user(search->pid));
	if (search->process_owner == NULL)
		return ERR_NO_SPACE;
	text_format(path, sizeof(path), "/proc/%s/fd", search->pid);
	/* Usually fails for processes of other users, which we may not inspect. */
	search->descriptors = opendir(path);
	return search->descriptors == NULL ? end_process(search) : OK;
}

/* Services of the system have many, so root's are not limited. */
static bool may_look_at_descriptor(struct region_search *search)
{
	struct region_owner *owner = search->process_owner;

	return search->limits.owner_descriptors == 0 || owner->uid == 0 ||
	       owner->descriptors++ < search->limits.owner_descriptors;
}

static enum status next_descriptor(struct region_search *search)
{
	struct dirent *entry = readdir(search->descriptors);

	search->effort++;
	if (entry != NULL && entry->d_name[0] == '.')
		return OK;
	if (entry != NULL && may_look_at_descriptor(search))
		return look_at_descriptor(&search->places, dirfd(search->descriptors), search->pid,
					  entry->d_name);
	search->process_owner->directories_left_out += entry != NULL;
	closedir(search->descriptors);
	search->descriptors = NULL;
	return end_process(search);
}

/* A path "/proc/PID/root/...". */
static int open_in_container(const struct region_place *place)
{
	const char *pid = place->path + strlen("/proc/"), *end = strchr(pid, '/');
	int root, fd;
	uint64_t device, inode;
	char name[24];

	text_format(name, sizeof(name), "%.*s", (int)(end - pid), pid);
	root = open_root(name);
	if (root == -1)
		return -1;
	fd = file_open_within(root, end + strlen("/root"), O_PATH,
			      FILE_IN_ROOT | FILE_NO_MAGIC_LINKS | FILE_NO_LINKS | FILE_CACHED);
	close(root);
	if (fd == -1)
		return -1;
	if (!stat_quietly(fd, &device, &inode) || device != place->st.st_dev ||
	    inode != place->st.st_ino) {
		close(fd);
		errno = ESTALE;
		return -1;
	}
	return open_path_fd(fd);
}

int region_place_open(const struct region_place *place)
{
	struct stat st;
	int fd = place->kind == REGION_PLACE_CONTAINER ? open_in_container(place)
		 : place->kind == REGION_PLACE_MEMFD   ? file_open_memfd(place->path)
						       : file_open(AT_FDCWD, place->path, false);

	/* Names can be reused: only the file that was found will do. */
	if (fd == -1 ||
	    (fstat(fd, &st) == 0 && st.st_dev == place->st.st_dev && st.st_ino == place->st.st_ino))
		return fd;
	close(fd);
	errno = ESTALE;
	return -1;
}

static int compare_places(const void *one, const void *other)
{
	const struct region_place *a = one, *b = other;

	return strcmp(a->path, b->path);
}

static void sort_places(struct region_places *places)
{
	if (places->count > 1)
		qsort(places->list, places->count, sizeof(*places->list), compare_places);
}

/* ---- searching in steps ---------------------------------------------------------------------- */

enum status region_search_new(struct region_search **search, const char *directory,
			      bool with_processes, const struct region_search_limits *limits)
{
	struct region_search *made = calloc(1, sizeof(*made));
	DIR *list;

	*search = made;
	if (made == NULL)
		return ERR_NO_SPACE;
	made->limits = *limits;
	made->mount_list.fd = -1;
	made->must_list_processes = with_processes;
	directory = directory != NULL ? directory : REGION_FIND_DIRECTORY;
	if (!text_copy(made->directory, sizeof(made->directory), directory)) {
		errno = ENAMETOOLONG;
		return ERR_SYSTEM;
	}
	list = opendir(directory);
	if (list == NULL) {
		made->places.unreadable += errno == EACCES;
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? OK : ERR_SYSTEM;
	}
	begin_listing(made, list, directory, REGION_PLACE_FILE);
	return OK;
}

enum status region_search_step(struct region_search *search, uint64_t effort, bool *is_over)
{
	uint64_t until =
		effort < UINT64_MAX - search->effort ? search->effort + effort : UINT64_MAX;
	enum status status = OK;

	*is_over = false;
	while (status == OK && !*is_over && search->effort < until) {
		if (search->listing.top != NULL)
			status = list_more(search);
		else if (search->mount_list.fd != -1)
			status = next_mounts(search);
		else if (search->descriptors != NULL)
			status = next_descriptor(search);
		else if (search->proc != NULL)
			status = next_process(search);
		else if (search->must_list_processes)
			status = begin_processes(search);
		else
			*is_over = true;
	}
	if (*is_over)
		sort_places(&search->places);
	return status;
}

const struct region_places *region_search_places(const struct region_search *search)
{
	return &search->places;
}

uint64_t region_search_effort(const struct region_search *search)
{
	return search->effort;
}

static void search_close(struct region_search *search)
{
	DIR *const open[] = { search->listing.sub, search->listing.top, search->descriptors,
			      search->proc };

	for (size_t i = 0; i < ARRAY_LENGTH(open); i++)
		if (open[i] != NULL)
			closedir(open[i]);
	if (search->mount_list.fd != -1)
		end_mount_list(&search->mount_list);
	free(search->namespaces);
	free(search->mounts);
	free(search);
}

void region_search_free(struct region_search *search)
{
	if (search == NULL)
		return;
	region_find_release(&search->places);
	search_close(search);
}

enum status region_find(struct region_places *places, const char *directory)
{
	/* Some tenths of a second. */
	const struct region_search_limits patient = { .owner_mounts = 1 << 18 };
	struct region_search *search = NULL;
	enum status status = region_search_new(&search, directory, true, &patient);
	bool is_over;

	if (status == OK)
		status = region_search_step(search, UINT64_MAX, &is_over);
	*places = search != NULL ? search->places : (struct region_places){ 0 };
	if (search != NULL)
		search_close(search);
	return status;
}

void region_find_release(struct region_places *places)
{
	for (size_t i = 0; i < places->count; i++)
		free(places->list[i].path);
	free(places->list);
	free(places->owners);
	*places = (struct region_places){ 0 };
}
