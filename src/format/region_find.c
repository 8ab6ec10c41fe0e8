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

/* The pid of a process in its own namespace: the last number of NSpid. */
static uint64_t own_pid_of(const char *pid)
{
	char path[64], text[4096];
	char *line, *last;

	text_format(path, sizeof(path), "/proc/%s/status", pid);
	if (!file_read_text(path, text, sizeof(text)))
		return 0;
	line = strstr(text, "\nNSpid:");
	if (line == NULL)
		return 0;
	line += strlen("\nNSpid:");
	line[strcspn(line, "\n")] = '\0';
	last = strrchr(line, '\t');
	return last != NULL ? strtoull(last + 1, NULL, 10) : 0;
}

static bool is_the_process(const char *pid, const struct region_identity *identity)
{
	char state;

	return file_proc_namespace(pid) == identity->pid_namespace &&
	       own_pid_of(pid) == identity->pid &&
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
	if (strcmp(boot_id, identity->boot_id) != 0)
		return is_host_here(identity->host) ? REGION_ALIVE_NO : REGION_ALIVE_UNKNOWN;
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
	CONTAINERS_MAX = 1 << 13,   /* mount namespaces */
	CONTAINER_ENTRIES = 1 << 17 /* of a directory in a container */
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

/* One search. */
struct search {
	struct region_places *places;
	const char *directory;
	uint64_t *namespaces; /* mount namespaces seen, ours first */
	size_t namespace_count;
	struct mount *mounts; /* directories seen, ours first */
	size_t mount_count;
};

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

/* One entry of a directory that may be a region. */
static enum status look_at(struct region_places *places, int directory, const char *parent,
			   const char *name, enum region_place_kind kind)
{
	char path[PATH_MAX];
	enum status status = OK;
	struct stat st;
	int fd = kind == REGION_PLACE_FILE
			 ? file_open(directory, name, false)
			 : open_path_fd(file_open_within(directory, name, O_PATH,
							 FILE_STAY_ON_MOUNT | FILE_NO_LINKS |
								 FILE_BENEATH));

	if (fd == -1) {
		/* Links, directories and devices are not regions; entries may also disappear. */
		places->unreadable += errno == EACCES || errno == EPERM;
		return OK;
	}
	if (!begins_as_region(fd) || fstat(fd, &st) == -1)
		places->foreign++;
	else if (!has_place(places, &st) && text_format(path, sizeof(path), "%s/%s", parent, name))
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

static DIR *list_directory(int directory, const char *name, enum region_place_kind kind)
{
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

	return list_descriptor(
		kind == REGION_PLACE_FILE
			? openat(directory, name, flags)
			: file_open_within(directory, name, flags,
					   FILE_STAY_ON_MOUNT | FILE_NO_LINKS | FILE_BENEATH));
}

/* All files of a recorder's own directory. */
static enum status look_into(struct region_places *places, int directory, const char *parent,
			     const char *name, enum region_place_kind kind)
{
	char path[PATH_MAX];
	enum status status = OK;
	struct dirent *entry;
	DIR *list = list_directory(directory, name, kind);
	size_t entries = 0;

	if (list == NULL) {
		places->unreadable += errno == EACCES || errno == EPERM;
		return OK;
	}
	if (text_format(path, sizeof(path), "%s/%s", parent, name))
		while (status == OK && (entry = readdir(list)) != NULL) {
			if (kind == REGION_PLACE_CONTAINER && entries++ == CONTAINER_ENTRIES) {
				places->unreadable++;
				break;
			}
			if (entry->d_name[0] != '.')
				status = look_at(places, dirfd(list), path, entry->d_name, kind);
		}
	closedir(list);
	return status;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static enum status look_through(struct region_places *places, DIR *list, const char *path,
				enum region_place_kind kind)
{
	enum status status = OK;
	struct dirent *entry;
	size_t entries = 0;

	while (status == OK && (entry = readdir(list)) != NULL) {
		if (kind == REGION_PLACE_CONTAINER && entries++ == CONTAINER_ENTRIES) {
			places->unreadable++;
			break;
		}
		if (strncmp(entry->d_name, "ringside-", strlen("ringside-")) == 0)
			status = look_into(places, dirfd(list), path, entry->d_name, kind);
		else if (ends_with(entry->d_name, ".region"))
			status = look_at(places, dirfd(list), path, entry->d_name, kind);
	}
	return status;
}

static enum status find_files(struct region_places *places, const char *directory)
{
	enum status status;
	DIR *list = opendir(directory);

	if (list == NULL) {
		places->unreadable += errno == EACCES;
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? OK : ERR_SYSTEM;
	}
	status = look_through(places, list, directory, REGION_PLACE_FILE);
	closedir(list);
	return status;
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
	fd = file_open(AT_FDCWD, path, true);
	if (fd == -1) {
		places->unreadable++;
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

static enum status find_memfds(struct region_places *places, const char *pid)
{
	enum status status = OK;
	struct dirent *entry;
	char path[64];
	DIR *list;

	text_format(path, sizeof(path), "/proc/%s/fd", pid);
	/* Usually fails for processes of other users, which we may not inspect. */
	list = opendir(path);
	while (list != NULL && status == OK && (entry = readdir(list)) != NULL)
		if (entry->d_name[0] != '.')
			status = look_at_descriptor(places, dirfd(list), pid, entry->d_name);
	if (list != NULL)
		closedir(list);
	return status;
}

/* ---- containers ------------------------------------------------------------------------------ */

static enum status add_namespace(struct search *search, uint64_t namespace)
{
	if (!list_grow(&search->namespaces, search->namespace_count, sizeof(*search->namespaces)))
		return ERR_NO_SPACE;
	search->namespaces[search->namespace_count++] = namespace;
	return OK;
}

static bool has_namespace(const struct search *search, uint64_t namespace)
{
	for (size_t i = 0; i < search->namespace_count; i++)
		if (search->namespaces[i] == namespace)
			return true;
	return false;
}

static enum status add_mount(struct search *search, uint64_t device, uint64_t inode)
{
	if (!list_grow(&search->mounts, search->mount_count, sizeof(*search->mounts)))
		return ERR_NO_SPACE;
	search->mounts[search->mount_count++] = (struct mount){ device, inode };
	return OK;
}

/* Containers of a pod share one /dev/shm, and services of the host have that of the host. */
static bool has_mount(const struct search *search, uint64_t device, uint64_t inode)
{
	for (size_t i = 0; i < search->mount_count; i++)
		if (search->mounts[i].device == device && search->mounts[i].inode == inode)
			return true;
	return false;
}

/* Is a tmpfs with this device among the mounts of a process? */
static bool is_tmpfs(const char *pid, uint64_t device)
{
	char path[64], *line = NULL;
	unsigned int major_number, minor_number;
	bool is_found = false;
	const char *type;
	size_t size = 0;
	FILE *mounts;

	text_format(path, sizeof(path), "/proc/%s/mountinfo", pid);
	mounts = fopen(path, "re");
	/* ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS [FIELD...] - TYPE SOURCE OPTIONS */
	while (mounts != NULL && !is_found && getline(&line, &size, mounts) > 0) {
		if (sscanf(line, "%*u %*u %u:%u", &major_number, &minor_number) != 2 ||
		    makedev(major_number, minor_number) != device)
			continue;
		type = strstr(line, " - ");
		is_found = type != NULL && strncmp(type, " - tmpfs ", strlen(" - tmpfs ")) == 0;
	}
	free(line);
	if (mounts != NULL)
		fclose(mounts);
	return is_found;
}

static int open_root(const char *pid)
{
	char path[64];

	text_format(path, sizeof(path), "/proc/%s/root", pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The directory as a process sees it; -1 if it is ours, was seen before or is not a tmpfs. */
static int open_other_directory(struct search *search, const char *pid, enum status *status)
{
	int root = open_root(pid), place, fd = -1;
	uint64_t device, inode;

	if (root == -1)
		return -1;
	place = file_open_within(root, search->directory, O_PATH | O_DIRECTORY,
				 FILE_IN_ROOT | FILE_NO_MAGIC_LINKS | FILE_NO_LINKS | FILE_CACHED);
	close(root);
	if (place == -1)
		return -1;
	if (stat_quietly(place, &device, &inode) && !has_mount(search, device, inode)) {
		*status = add_mount(search, device, inode);
		if (*status == OK && is_tmpfs(pid, device))
			fd = openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	close(place);
	return fd;
}

static enum status find_in_container(struct search *search, const char *pid)
{
	uint64_t namespace = file_proc_mounts(pid);
	enum status status = OK;
	char path[PATH_MAX];
	DIR *list;

	if (namespace == 0 || has_namespace(search, namespace))
		return OK;
	if (search->namespace_count == CONTAINERS_MAX) {
		search->places->unreadable++;
		return OK;
	}
	status = add_namespace(search, namespace);
	if (status != OK)
		return status;
	list = list_descriptor(open_other_directory(search, pid, &status));
	if (list == NULL)
		return status;
	if (text_format(path, sizeof(path), "/proc/%s/root%s", pid, search->directory))
		status = look_through(search->places, list, path, REGION_PLACE_CONTAINER);
	closedir(list);
	return status;
}

/* What is ours was searched already. */
static enum status begin_search(struct search *search)
{
	struct stat st;
	enum status status = add_namespace(search, file_proc_mounts("self"));

	if (status == OK && stat(search->directory, &st) == 0)
		status = add_mount(search, st.st_dev, st.st_ino);
	return status;
}

static enum status find_in_processes(struct region_places *places, const char *directory)
{
	struct search search = { .places = places, .directory = directory };
	enum status status = begin_search(&search);
	struct dirent *process;
	DIR *proc = opendir("/proc");

	while (proc != NULL && status == OK && (process = readdir(proc)) != NULL) {
		if (!isdigit((unsigned char)process->d_name[0]))
			continue;
		status = find_memfds(places, process->d_name);
		if (status == OK && directory[0] == '/')
			status = find_in_container(&search, process->d_name);
	}
	if (proc != NULL)
		closedir(proc);
	free(search.namespaces);
	free(search.mounts);
	return status;
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
	int fd = place->kind == REGION_PLACE_CONTAINER
			 ? open_in_container(place)
			 : file_open(AT_FDCWD, place->path, place->kind == REGION_PLACE_MEMFD);

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

enum status region_find_files(struct region_places *places, const char *directory)
{
	enum status status;

	*places = (struct region_places){ 0 };
	status = find_files(places, directory != NULL ? directory : REGION_FIND_DIRECTORY);
	sort_places(places);
	return status;
}

enum status region_find(struct region_places *places, const char *directory)
{
	enum status status = region_find_files(places, directory);

	if (status == OK)
		status = find_in_processes(places,
					   directory != NULL ? directory : REGION_FIND_DIRECTORY);
	sort_places(places);
	return status;
}

void region_find_release(struct region_places *places)
{
	for (size_t i = 0; i < places->count; i++)
		free(places->list[i].path);
	free(places->list);
	*places = (struct region_places){ 0 };
}
