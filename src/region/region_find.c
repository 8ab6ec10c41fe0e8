/*
 * Two places: files below a directory, and memfds of running processes. Every name that is met is
 * somebody else's choice, so it is only ever handed back to the kernel, relative to an open directory.
 */
#include "region/region_find.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/file_open.h"
#include "region/region_layout.h"

enum { PLACES_MAX = 1 << 16 };

static enum status add_place(struct region_places *places, const char *path, const struct stat *st,
			     uint64_t holder)
{
	struct region_place *list;

	if (places->count == PLACES_MAX)
		return OK;
	if ((places->count & (places->count - 1)) == 0) {
		size_t room = places->count == 0 ? 1 : places->count * 2;

		list = realloc(places->list, room * sizeof(*list));
		if (list == NULL)
			return ERR_NO_SPACE;
		places->list = list;
	}
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
		/* Links, directories and devices are not ours; what is gone is gone. */
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
	/* Processes that were forked hold the same memfd: one of them is enough. */
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
		/* Other users' processes are not ours to look into: that is the usual case. */
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
