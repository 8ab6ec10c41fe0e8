/* Finds regions on this host and the processes that wrote them. */
#include "format/region_read.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/text.h"
#include "format/region_layout.h"

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
 * Two places: files in a directory, and memfds of running processes. Other users choose the names,
 * so a name is only ever passed back to the kernel, relative to an open directory.
 */

enum { PLACES_MAX = 1 << 16 };

static enum status add_place(struct region_places *places, const char *path, const struct stat *st,
			     uint64_t holder)
{
	struct region_place *list;

	if (places->count == PLACES_MAX)
		return OK;
	if (!list_grow(&places->list, places->count, sizeof(*places->list)))
		return ERR_NO_SPACE;
	list = &places->list[places->count];
	*list = (struct region_place){
		.path = strdup(path), .device = st->st_dev, .inode = st->st_ino, .holder = holder
	};
	if (list->path == NULL)
		return ERR_NO_SPACE;
	places->count++;
	return OK;
}

static bool has_place(const struct region_places *places, const struct stat *st)
{
	for (size_t i = 0; i < places->count; i++)
		if (places->list[i].device == st->st_dev && places->list[i].inode == st->st_ino)
			return true;
	return false;
}

static bool begins_as_region(int fd)
{
	uint64_t magic;

	return file_pread(fd, &magic, sizeof(magic), 0) == OK && magic == REGION_MAGIC;
}

/* One entry of a directory that may be a region. */
static enum status look_at(struct region_places *places, int directory, const char *parent,
			   const char *name)
{
	char path[PATH_MAX];
	enum status status = OK;
	struct stat st;
	int fd = file_open(directory, name, false);

	if (fd == -1) {
		/* Links, directories and devices are not regions; entries may also disappear. */
		places->unreadable += errno == EACCES || errno == EPERM;
		return OK;
	}
	if (!begins_as_region(fd) || fstat(fd, &st) == -1)
		places->foreign++;
	else if (!has_place(places, &st) && text_format(path, sizeof(path), "%s/%s", parent, name))
		status = add_place(places, path, &st, 0);
	close(fd);
	return status;
}

static DIR *list_directory(int directory, const char *name)
{
	int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *list = fd != -1 ? fdopendir(fd) : NULL;

	if (list == NULL && fd != -1)
		close(fd);
	return list;
}

/* All files of a recorder's own directory. */
static enum status look_into(struct region_places *places, int directory, const char *parent,
			     const char *name)
{
	char path[PATH_MAX];
	enum status status = OK;
	struct dirent *entry;
	DIR *list = list_directory(directory, name);

	if (list == NULL) {
		places->unreadable += errno == EACCES || errno == EPERM;
		return OK;
	}
	if (text_format(path, sizeof(path), "%s/%s", parent, name))
		while (status == OK && (entry = readdir(list)) != NULL)
			if (entry->d_name[0] != '.')
				status = look_at(places, dirfd(list), path, entry->d_name);
	closedir(list);
	return status;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static enum status find_files(struct region_places *places, const char *directory)
{
	enum status status = OK;
	struct dirent *entry;
	DIR *list = opendir(directory);

	if (list == NULL) {
		places->unreadable += errno == EACCES;
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? OK : ERR_SYSTEM;
	}
	while (status == OK && (entry = readdir(list)) != NULL) {
		if (strncmp(entry->d_name, "ringside-", strlen("ringside-")) == 0)
			status = look_into(places, dirfd(list), directory, entry->d_name);
		else if (ends_with(entry->d_name, ".region"))
			status = look_at(places, dirfd(list), directory, entry->d_name);
	}
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
		status = add_place(places, path, &st, strtoull(pid, NULL, 10));
	close(fd);
	return status;
}

static enum status find_memfds(struct region_places *places)
{
	enum status status = OK;
	struct dirent *process, *entry;
	char path[64];
	DIR *proc = opendir("/proc");
	DIR *list;

	while (proc != NULL && status == OK && (process = readdir(proc)) != NULL) {
		if (!isdigit((unsigned char)process->d_name[0]) ||
		    !text_format(path, sizeof(path), "/proc/%s/fd", process->d_name))
			continue;
		/* Usually fails for processes of other users, which we may not inspect. */
		list = opendir(path);
		while (list != NULL && status == OK && (entry = readdir(list)) != NULL)
			if (entry->d_name[0] != '.')
				status = look_at_descriptor(places, dirfd(list), process->d_name,
							    entry->d_name);
		if (list != NULL)
			closedir(list);
	}
	if (proc != NULL)
		closedir(proc);
	return status;
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
		status = find_memfds(places);
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
