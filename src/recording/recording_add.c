/*
 * From a path to what it holds. Whatever cannot be read is noted and passed over; what the user named
 * is followed through links, what was found in a directory is not.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/tar.h"
#include "base/file_open.h"
#include "base/text.h"
#include "foreign/foreign.h"
#include "region/region_alive.h"
#include "region/region_find.h"
#include "recording/recording_load.h"
#include "trace/trace_read.h"

enum { DEPTH_MAX = 32 };

enum content { CONTENT_FOREIGN = 0, CONTENT_TRACE = 1, CONTENT_REGION = 2, CONTENT_ARCHIVE = 3 };

static enum content content_of(int fd)
{
	const uint64_t region_magic = REGION_MAGIC;
	unsigned char start[TAR_BLOCK];
	size_t got = 0;

	if (file_pread_some(fd, start, sizeof(start), 0, &got) != OK)
		return CONTENT_FOREIGN;
	if (got >= sizeof(region_magic) && memcmp(start, &region_magic, sizeof(region_magic)) == 0)
		return CONTENT_REGION;
	if (tar_is(start, got))
		return CONTENT_ARCHIVE;
	return trace_probe(start, got) ? CONTENT_TRACE : CONTENT_FOREIGN;
}

/* What was noted about a file goes where the file goes. */
static void move_troubles(struct recording *to, const struct recording *from)
{
	for (size_t i = 0; i < from->trouble_count; i++) {
		const struct recording_trouble *trouble = &from->troubles[i];

		recording_load_trouble(to, trouble->kind, trouble->path, trouble->owner, "%s",
				       trouble->what);
		recording_load_at(to, trouble->offset, trouble->bytes);
	}
	to->troubles_left_out += from->troubles_left_out;
}

static struct recording_source source_of(int fd, const char *path, const struct stat *st)
{
	return (struct recording_source){ .path = path,
					  .fd = fd,
					  .length = (size_t)st->st_size,
					  .device = st->st_dev,
					  .inode = st->st_ino };
}

/* The file that belongs to a process as well: the region of a trace, the trace of a region. What an
 * info text names is somebody's claim: no links, and the process must be the same, or it was nothing. */
static enum status add_companion(struct recording *recording, struct recording_process *process,
				 const char *key, enum content wanted)
{
	struct recording_process *other = NULL;
	char path[PATH_MAX], boot_id[40];
	enum status status = ERR_GONE;
	struct recording_source source;
	struct recording aside;
	struct stat st;
	int fd;

	region_boot_id(boot_id);
	if (!recording_info(process, key, path, sizeof(path)) || path[0] != '/' ||
	    strcmp(boot_id, process->boot_id) != 0)
		return OK;
	/* A memfd is reached through a link of /proc, which leads nowhere else. */
	fd = file_open(AT_FDCWD, path, strncmp(path, "/proc/", strlen("/proc/")) == 0);
	if (fd == -1)
		return OK;
	recording_init(&aside);
	if (fstat(fd, &st) == 0 && content_of(fd) == wanted) {
		source = source_of(fd, path, &st);
		status = wanted == CONTENT_REGION ? recording_region_load(&aside, fd, path, &other)
						  : recording_trace_load(&aside, &source, &other);
	}
	close(fd);
	if (status == OK && recording_load_is_same(process, other)) {
		move_troubles(recording, &aside);
		status = recording_join(recording, process, other);
	} else {
		recording_process_free(other);
	}
	recording_release(&aside);
	return status == ERR_NO_SPACE ? status : OK;
}

static enum status add_trace(struct recording *recording, int fd, const char *path,
			     const struct stat *st, unsigned int flags)
{
	struct recording_source source = source_of(fd, path, st);
	struct recording_process *process = NULL;
	enum status status = recording_trace_load(recording, &source, &process);

	if (status != OK)
		return status == ERR_NO_SPACE ? status : OK;
	recording->files_read++;
	/* A snapshot is of another moment than what there is now. */
	if (!(flags & RECORDING_TRACES_ALONE) && !process->is_snapshot)
		status = add_companion(recording, process, "region", CONTENT_REGION);
	if (status != OK) {
		recording_process_free(process);
		return status;
	}
	return recording_load_keep(recording, process);
}

static enum status add_region(struct recording *recording, int fd, const char *path,
			      unsigned int flags)
{
	struct recording_process *process = NULL;
	enum status status = recording_region_load(recording, fd, path, &process);

	if (status != OK)
		return status == ERR_NO_SPACE ? status : OK;
	recording->files_read++;
	if (flags & RECORDING_WITH_TRACES)
		status = add_companion(recording, process, "trace", CONTENT_TRACE);
	if (status != OK) {
		recording_process_free(process);
		return status;
	}
	return recording_load_keep(recording, process);
}

/* A region gets its magic last: until then it begins with nothing. */
static const char *foreign_words(int fd, const struct stat *st)
{
	uint64_t magic;

	if (st->st_size == 0)
		return "it is empty";
	if (file_pread(fd, &magic, sizeof(magic), 0) == OK && magic == 0)
		return "it is empty, or a region that was never finished";
	if (file_pread(fd, &magic, 2, 0) == OK && (magic & 0xffff) == 0x8b1f)
		return "it is compressed: unpack it with gunzip first";
	return "it is neither trace file nor region, nor a log that ringside knows";
}

static enum status add_file(struct recording *recording, int fd, const char *path,
			    unsigned int flags)
{
	struct recording_source source;
	enum foreign_format format;
	struct stat st;

	if (fstat(fd, &st) == -1) {
		recording_load_trouble(recording, RECORDING_UNREADABLE, path, NULL,
				       "it cannot be read: %s", strerror(errno));
		return OK;
	}
	switch (content_of(fd)) {
	case CONTENT_TRACE:
		return add_trace(recording, fd, path, &st, flags);
	case CONTENT_REGION:
		return add_region(recording, fd, path, flags);
	case CONTENT_ARCHIVE:
		source = source_of(fd, path, &st);
		return recording_archive_load(recording, &source);
	default:
		break;
	}
	format = foreign_probe_fd(fd);
	if (foreign_has_operations(format) && flags & RECORDING_LIST_FOREIGN)
		return recording_foreign_list(recording, path);
	if (foreign_has_operations(format))
		return recording_foreign_load(recording, fd, path, &st);
	recording->files_foreign++;
	if (format != FOREIGN_NONE)
		recording_load_trouble(recording, RECORDING_FOREIGN, path, NULL,
				       "it is %s: that has no operations",
				       foreign_format_name(format));
	else
		recording_load_trouble(recording, RECORDING_FOREIGN, path, NULL, "%s",
				       foreign_words(fd, &st));
	return OK;
}

static enum status add_directory(struct recording *recording, int fd, const char *path,
				 unsigned int flags, int depth);

static enum status add_entry(struct recording *recording, int directory, const char *parent,
			     const char *name, unsigned int flags, int depth)
{
	enum status status = OK;
	char path[PATH_MAX];
	int fd;

	if (!text_format(path, sizeof(path), "%s/%s", parent, name)) {
		recording_load_trouble(recording, RECORDING_UNREADABLE, parent, NULL,
				       "a name in there is too long");
		return OK;
	}
	fd = file_open(directory, name, false);
	if (fd != -1) {
		status = add_file(recording, fd, path, flags);
		close(fd);
		return status;
	}
	if (errno == EISDIR && depth < DEPTH_MAX) {
		fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd != -1)
			return add_directory(recording, fd, path, flags, depth + 1);
	}
	/* Links, sockets and the like are no recordings; what is gone is gone. */
	if (errno != ELOOP && errno != EINVAL && errno != ENOENT)
		recording_load_trouble(recording, RECORDING_UNREADABLE, path, NULL,
				       "it cannot be opened: %s", strerror(errno));
	return OK;
}

static int is_not_dot(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* Takes fd over. In the order of names, so that a recording reads the same everywhere. */
static enum status add_directory(struct recording *recording, int fd, const char *path,
				 unsigned int flags, int depth)
{
	struct dirent **entries = NULL;
	int count = scandirat(fd, ".", &entries, is_not_dot, alphasort);
	enum status status = OK;

	if (count < 0)
		recording_load_trouble(recording, RECORDING_UNREADABLE, path, NULL,
				       "it cannot be read: %s", strerror(errno));
	for (int i = 0; i < count; i++) {
		if (status == OK)
			status = add_entry(recording, fd, path, entries[i]->d_name, flags, depth);
		free(entries[i]);
	}
	free(entries);
	close(fd);
	return status;
}

/* Is this region that of the process with this pid, as either side counts? */
static bool is_of_pid(const struct recording_process *process, int64_t pid)
{
	struct region_identity identity = { process->host, process->boot_id, (uint64_t)process->pid,
					    process->pid_namespace, process->start_ticks };
	uint64_t pid_here = 0;

	if (process->pid <= 0)
		return false;
	if (region_alive(&identity, &pid_here) == REGION_ALIVE_YES)
		return (int64_t)pid_here == pid;
	return process->pid == pid;
}

static enum status add_places(struct recording *recording, const struct region_places *places,
			      unsigned int flags)
{
	enum status status = OK;

	for (size_t i = 0; i < places->count && status == OK; i++) {
		const char *path = places->list[i].path;
		int fd = file_open(AT_FDCWD, path, places->list[i].holder != 0);

		/* Gone since it was found: its process has ended and was swept away. */
		if (fd == -1)
			continue;
		status = add_file(recording, fd, path, flags);
		close(fd);
	}
	return status;
}

enum status recording_add_machine(struct recording *recording, const char *directory,
				  unsigned int flags)
{
	struct region_places places;
	enum status status =
		region_find(&places, directory != NULL ? directory : recording->directory);

	if (status == ERR_SYSTEM) {
		recording_load_trouble(recording, RECORDING_UNREADABLE,
				       directory != NULL ? directory : REGION_FIND_DIRECTORY, NULL,
				       "it cannot be read: %s", strerror(errno));
		status = OK;
	}
	if (status == OK)
		status = add_places(recording, &places, flags);
	region_find_release(&places);
	return status;
}

/* All regions are opened, those of other processes are put away again. */
static enum status add_pid(struct recording *recording, const char *path, unsigned int flags)
{
	struct recording all = { .directory = recording->directory };
	enum status status = OK;
	size_t found = 0;
	int64_t pid;

	if (text_number(path + 1, 1, INT32_MAX, &pid) != OK) {
		recording_load_trouble(recording, RECORDING_NOTHING, path, NULL,
				       "after @ comes the number of a process");
		return OK;
	}
	status = recording_add_machine(&all, NULL, flags & ~(unsigned int)RECORDING_WITH_TRACES);
	for (size_t i = 0; i < all.count && status == OK; i++) {
		struct recording_process *process = all.processes[i];

		if (!is_of_pid(process, pid))
			continue;
		if (flags & RECORDING_WITH_TRACES)
			status = add_companion(recording, process, "trace", CONTENT_TRACE);
		all.processes[i] = NULL;
		if (status == OK)
			status = recording_load_keep(recording, process);
		else
			recording_process_free(process);
		recording->files_read++;
		found++;
	}
	recording_release(&all);
	if (found == 0 && status == OK)
		recording_load_trouble(recording, RECORDING_NOTHING, path, NULL,
				       "no recording of such a process on this machine that you "
				       "may read");
	return status;
}

enum status recording_add(struct recording *recording, const char *path, unsigned int flags)
{
	enum status status;
	int fd;

	if (path[0] == '@')
		return add_pid(recording, path, flags);
	fd = file_open(AT_FDCWD, path, true);
	if (fd != -1) {
		status = add_file(recording, fd, path, flags);
		close(fd);
		return status;
	}
	if (errno == EISDIR) {
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd != -1)
			return add_directory(recording, fd, path, flags, 0);
	}
	recording_load_trouble(recording, RECORDING_UNREADABLE, path, NULL, "it cannot be read: %s",
			       errno == EINVAL ? "neither file nor directory" : strerror(errno));
	return OK;
}
