/* Opening and reading files that someone else named. */
#include "common/file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include "common/attributes.h"
#include "common/order.h"
#include "common/text.h"

/* The type of a file as an errno; 0 for a regular file. */
static int refuse_kind(int fd)
{
	struct stat st;

	if (fstat(fd, &st) == -1)
		return errno;
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
		return 0;
	case S_IFDIR:
		return EISDIR;
	case S_IFLNK:
		return ELOOP;
	default:
		return EINVAL;
	}
}

/* The second open is of the file that `place` (O_PATH) refers to. Takes over `place`. */
static int open_place(int place)
{
	char again[64];
	int fd, error;

	snprintf(again, sizeof(again), "/proc/self/fd/%d", place);
	fd = open(again, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	error = errno;
	close(place);
	errno = error;
	return fd;
}

static int refuse_place(int place, int error)
{
	close(place);
	errno = error;
	return -1;
}

/* "/proc/PID/fd/N": a file that some process has open. */
static bool is_descriptor(const char *path)
{
	int end = 0;

	return sscanf(path, "/proc/%*9[0-9]/fd/%*9[0-9]%n", &end) != EOF && end != 0 &&
	       path[end] == '\0';
}

#define MOUNT_UNKNOWN UINT64_MAX

/* The mount of an open file; the kernel knows it without asking a file system. */
static uint64_t mount_of(int fd)
{
	char path[64], text[512];
	const char *at;
	ssize_t length;
	int info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	if (info == -1)
		return MOUNT_UNKNOWN;
	length = read(info, text, sizeof(text) - 1);
	close(info);
	text[length > 0 ? length : 0] = '\0';
	at = strstr(text, "mnt_id:");
	return at != NULL ? strtoull(at + strlen("mnt_id:"), NULL, 10) : MOUNT_UNKNOWN;
}

/*
 * Memory without a file (memfd_create) is all on one mount and one device of the kernel's own. A file system that a user
 * serves can give a file the name of such memory, and whoever asks it anything waits for that user.
 */
struct memory {
	uint64_t mount, device; /* device 0: unknown */
};

static struct memory find_memory(void)
{
	static struct memory known;
	/* Pairs with the release below. */
	struct memory memory = { .device = load_acquire(&known.device) };
	struct stat st;
	int fd;

	if (memory.device != 0) {
		memory.mount = load_relaxed(&known.mount);
		return memory;
	}
	fd = memfd_create("ringside-own", MFD_CLOEXEC);
	if (fd == -1 || fstat(fd, &st) == -1)
		st.st_dev = 0;
	memory = (struct memory){ fd != -1 ? mount_of(fd) : MOUNT_UNKNOWN, st.st_dev };
	store_relaxed(&known.mount, memory.mount);
	/* Pairs with the acquire above. */
	store_release(&known.device, memory.device);
	if (fd != -1)
		close(fd);
	return memory;
}

static bool is_in_memory(int place)
{
	uint64_t mount = find_memory().mount;

	return mount == MOUNT_UNKNOWN || mount_of(place) == mount;
}

static int find_memfd(const char *path)
{
	int place = open(path, O_PATH | O_CLOEXEC);

	return place != -1 && !is_in_memory(place) ? refuse_place(place, EXDEV) : place;
}

int file_open_memfd(const char *path)
{
	int place = find_memfd(path), refused;

	if (place == -1)
		return -1;
	refused = refuse_kind(place);
	return refused != 0 ? refuse_place(place, refused) : open_place(place);
}

static int open_any(int directory, const char *path, bool may_follow)
{
	int place, refused;

	/* O_PATH refers to the file without opening it. */
	place = openat(directory, path, O_PATH | O_CLOEXEC | (may_follow ? 0 : O_NOFOLLOW));
	if (place == -1)
		return -1;
	refused = refuse_kind(place);
	return refused != 0 ? refuse_place(place, refused) : open_place(place);
}

static int open_same(const char *path, uint64_t device, uint64_t inode)
{
	bool is_memory = device == find_memory().device && is_descriptor(path);
	int place = is_memory ? find_memfd(path) : open(path, O_PATH | O_CLOEXEC), refused;
	struct stat st;

	if (place == -1)
		return -1;
	refused = refuse_kind(place);
	if (refused == 0 && (fstat(place, &st) == -1 || st.st_dev != device || st.st_ino != inode))
		refused = ESTALE;
	return refused != 0 ? refuse_place(place, refused) : open_place(place);
}

/* <linux/openat2.h>, which the oldest systems that we build on do not have. */
#ifndef SYS_openat2
#define SYS_openat2 437
#endif

int file_open_within(int directory, const char *path, int flags, uint64_t resolve)
{
	struct {
		uint64_t flags, mode, resolve;
	} how = { (uint64_t)(flags | O_CLOEXEC), 0, resolve };

	return (int)syscall(SYS_openat2, directory, path, &how, sizeof(how));
}

int file_open_inside(int directory, const char *name, int flags)
{
	const uint64_t resolve = FILE_STAY_ON_MOUNT | FILE_NO_LINKS | FILE_BENEATH;
	int place = file_open_within(directory, name, O_PATH | O_NOFOLLOW, resolve), fd, error;
	char again[64];

	/* Before 5.6 and in sandboxes. */
	if (place == -1 && (errno == ENOSYS || errno == EPERM)) {
		place = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (place != -1 && mount_of(place) != mount_of(directory))
			return refuse_place(place, EXDEV);
	}
	if (place == -1 || flags == O_PATH)
		return place;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", place);
	fd = open(again, flags | O_CLOEXEC);
	error = errno;
	close(place);
	errno = error;
	return fd;
}

/* Component by component, for kernels before 5.6 and sandboxes without openat2(). */
static int open_without_links(const char *path)
{
	char name[NAME_MAX + 1];
	int place = open("/", O_PATH | O_CLOEXEC), next;

	while (place != -1) {
		size_t length;
		struct stat st;

		path += strspn(path, "/");
		length = strcspn(path, "/");
		if (length == 0)
			return place;
		if (length > NAME_MAX)
			return refuse_place(place, ENAMETOOLONG);
		memcpy(name, path, length);
		name[length] = '\0';
		path += length;
		next = openat(place, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (next == -1)
			return refuse_place(place, errno);
		close(place);
		place = next;
		if (fstat(place, &st) == -1 || S_ISLNK(st.st_mode))
			return refuse_place(place, ELOOP);
	}
	return -1;
}

/* "/proc/PID/fd/N" that leads to a region in the memory of a process. */
static bool is_memfd(const char *path)
{
	static const char wanted[] = "/memfd:ringside";
	char link[64];

	return is_descriptor(path) &&
	       readlink(path, link, sizeof(link)) >= (ssize_t)strlen(wanted) &&
	       memcmp(link, wanted, strlen(wanted)) == 0;
}

/* Reading a file of the kernel can have effects, and what it says is nobody's recording. */
static bool is_of_kernel(int place)
{
	static const uint64_t kernel_magics[] = {
		0x9fa0, 0x62656572, 0x64626720, 0x74726163, 0x27e0eb, 0x63677270, 0xcafe4a11,
	}; /* proc, sysfs, debugfs, tracefs, cgroup, cgroup2, bpf */
	struct statfs fs;

	if (fstatfs(place, &fs) == -1)
		return true;
	for (size_t i = 0; i < ARRAY_LENGTH(kernel_magics); i++)
		if ((uint64_t)fs.f_type == kernel_magics[i])
			return true;
	return false;
}

static const char *refuse_for(int place, uid_t owner)
{
	struct stat st;

	if (fstat(place, &st) == -1)
		return "it cannot be examined";
	if (!S_ISREG(st.st_mode))
		return "it is not a regular file";
	if (is_of_kernel(place))
		return "it is a file of the kernel";
	if (st.st_uid != owner && owner != geteuid())
		return "it belongs to another user";
	return NULL;
}

static int find_without_links(const char *path)
{
	int place = file_open_within(AT_FDCWD, path, O_PATH, FILE_NO_LINKS);

	if (place == -1 && (errno == ENOSYS || errno == EPERM || errno == EINVAL))
		place = open_without_links(path);
	return place;
}

static int open_direct(const char *path)
{
	int place = path[0] == '/' ? find_without_links(path) : -1;

	if (place == -1)
		return -1;
	return refuse_for(place, geteuid()) == NULL ? open_place(place)
						    : refuse_place(place, EACCES);
}

static int open_for(uid_t owner, const char *path, const char **why)
{
	bool is_memory = is_memfd(path);
	int place, fd;

	*why = NULL;
	if (path[0] != '/') {
		errno = EINVAL;
		return -1;
	}
	if (is_memory) {
		place = find_memfd(path);
	} else if (owner == geteuid()) {
		place = open(path, O_PATH | O_CLOEXEC);
	} else {
		place = find_without_links(path);
		if (place == -1 && errno == ELOOP)
			*why = "a symbolic link leads to it";
	}
	if (place == -1)
		return -1;
	*why = refuse_for(place, owner);
	if (*why != NULL)
		return refuse_place(place, EACCES);
	fd = open_place(place);
	if (fd != -1 && file_is_hollow(fd)) {
		*why = FILE_HOLLOW_WORDS;
		return refuse_place(fd, EFBIG);
	}
	return fd;
}

/*
 * Where st_blocks is 0 (some network file systems) or small (compression), there is no hole either:
 * only both together count.
 */
bool file_is_hollow(int fd)
{
	const uint64_t always = 64 << 20, per_stored = 4;
	struct stat st;
	off_t hole;

	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) || st.st_size < 0 ||
	    (uint64_t)st.st_size <= always + (uint64_t)st.st_blocks * 512 * per_stored)
		return false;
	hole = lseek(fd, 0, SEEK_HOLE);
	lseek(fd, 0, SEEK_SET);
	return hole != -1 && hole < st.st_size;
}

/* ---- asking for files ------------------------------------------------------------------------- */

bool (*file_ask_other)(const struct file_question *question, struct file_answer *answer);

static int open_text(const struct file_question *question)
{
	return question->kind == FILE_ASK_DIRECT_TEXT
		       ? open_direct(question->path)
		       : open(question->path,
			      (question->most == 0 ? O_PATH : O_RDONLY | O_NONBLOCK | O_NOCTTY) |
				      O_CLOEXEC);
}

static int write_copy(const char *text, size_t length)
{
	int fd = memfd_create("ringside-text", MFD_CLOEXEC);

	while (fd != -1 && length > 0) {
		ssize_t written = write(fd, text, length);

		if (written == -1 && errno != EINTR)
			return refuse_place(fd, errno);
		text += written > 0 ? written : 0;
		length -= written > 0 ? (size_t)written : 0;
	}
	if (fd != -1 && lseek(fd, 0, SEEK_SET) == -1)
		return refuse_place(fd, errno);
	return fd;
}

/* A copy in memory, which can be read whatever the file's own file system does from now on. */
static int copy_text(const struct file_question *question, struct stat *st)
{
	int fd = open_text(question), copy = -1, error;
	char *text = NULL;
	size_t length = 0;

	if (fd == -1 || question->most == 0)
		return fd != -1 && fstat(fd, st) == -1 ? refuse_place(fd, errno) : fd;
	if (fstat(fd, st) == 0)
		text = file_read_whole(fd, question->most, &length);
	if (text != NULL)
		copy = write_copy(text, length);
	error = errno;
	free(text);
	close(fd);
	errno = error;
	return copy;
}

void file_answer(const struct file_question *question, struct file_answer *answer)
{
	*answer = (struct file_answer){ .fd = -1 };
	errno = 0;
	switch (question->kind) {
	case FILE_ASK_ANY:
		answer->fd = open_any(question->directory, question->path, question->may_follow);
		break;
	case FILE_ASK_SAME:
		answer->fd = open_same(question->path, question->device, question->inode);
		break;
	case FILE_ASK_FOR:
		answer->fd = open_for(question->owner, question->path, &answer->why);
		break;
	case FILE_ASK_DIRECT:
		answer->fd = open_direct(question->path);
		break;
	case FILE_ASK_DIRECTORY:
		answer->fd = openat(question->directory, question->path,
				    O_RDONLY | O_DIRECTORY | O_CLOEXEC |
					    (question->may_follow ? 0 : O_NOFOLLOW));
		break;
	case FILE_ASK_TEXT:
	case FILE_ASK_DIRECT_TEXT:
		answer->fd = copy_text(question, &answer->st);
		break;
	}
	answer->error = errno;
}

/* What only this process has, and what the kernel answers itself. */
static bool is_our_own(const char *path)
{
	static const char *const begins[] = { "/proc/self/", "/dev/fd/", "/dev/std" };

	for (size_t i = 0; i < ARRAY_LENGTH(begins); i++)
		if (strncmp(path, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

static int ask(const struct file_question *question, struct file_answer *answer)
{
	if (file_ask_other == NULL || is_our_own(question->path) ||
	    !file_ask_other(question, answer))
		file_answer(question, answer);
	errno = answer->error;
	return answer->fd;
}

int file_open(int directory, const char *path, bool may_follow)
{
	struct file_answer answer;

	return ask(&(struct file_question){ .kind = FILE_ASK_ANY,
					    .directory = directory,
					    .path = path,
					    .may_follow = may_follow },
		   &answer);
}

int file_open_directory(int directory, const char *path, bool may_follow)
{
	struct file_answer answer;

	return ask(&(struct file_question){ .kind = FILE_ASK_DIRECTORY,
					    .directory = directory,
					    .path = path,
					    .may_follow = may_follow },
		   &answer);
}

DIR *file_list(const char *path)
{
	int fd = file_open_directory(AT_FDCWD, path, true);
	DIR *list = fd != -1 ? fdopendir(fd) : NULL;

	if (list == NULL && fd != -1)
		refuse_place(fd, errno);
	return list;
}

int file_open_same(const char *path, uint64_t device, uint64_t inode)
{
	struct file_answer answer;

	return ask(&(struct file_question){ .kind = FILE_ASK_SAME,
					    .directory = AT_FDCWD,
					    .path = path,
					    .device = device,
					    .inode = inode },
		   &answer);
}

int file_open_for(uid_t owner, const char *path, const char **why)
{
	struct file_answer answer;
	int fd = ask(&(struct file_question){ .kind = FILE_ASK_FOR,
					      .directory = AT_FDCWD,
					      .path = path,
					      .has_owner = true,
					      .owner = owner },
		     &answer);

	*why = answer.error == ETIMEDOUT ? FILE_SILENT_WORDS : answer.why;
	return fd;
}

int file_open_direct(const char *path)
{
	struct file_answer answer;

	return ask(&(struct file_question){ .kind = FILE_ASK_DIRECT,
					    .directory = AT_FDCWD,
					    .path = path },
		   &answer);
}

static int ask_for_text(int64_t owner, const char *path, bool is_direct, size_t most,
			struct stat *st)
{
	struct file_answer answer;
	int fd = ask(
		&(struct file_question){ .kind = is_direct ? FILE_ASK_DIRECT_TEXT : FILE_ASK_TEXT,
					 .directory = AT_FDCWD,
					 .path = path,
					 .has_owner = owner >= 0,
					 .owner = (uid_t)owner,
					 .most = most },
		&answer);

	*st = answer.st;
	return fd;
}

char *file_text_of(uid_t owner, const char *path, bool is_direct, size_t most, size_t *length,
		   struct stat *st)
{
	int fd = ask_for_text(owner, path, is_direct, most, st);
	char *text;

	if (fd == -1)
		return NULL;
	text = file_read_whole(fd, most, length);
	close(fd);
	return text;
}

bool file_examine(int64_t owner, const char *path, struct stat *st)
{
	int fd = ask_for_text(owner, path, false, 0, st);

	if (fd != -1)
		close(fd);
	return fd != -1;
}

const char *file_error_text(int error)
{
	return error == ETIMEDOUT ? FILE_SILENT_WORDS : strerror(error);
}

/* ---- reading ---------------------------------------------------------------------------------- */

enum status file_pread_some(int fd, void *to, size_t length, uint64_t offset, size_t *got)
{
	size_t done = 0;

	if (offset > INT64_MAX || length > INT64_MAX - offset)
		return ERR_TRUNCATED;
	while (done < length) {
		ssize_t now = pread(fd, (char *)to + done, length - done, (off_t)(offset + done));

		if (now == -1 && errno == EINTR)
			continue;
		if (now == -1)
			return ERR_SYSTEM;
		if (now == 0)
			break;
		done += (size_t)now;
	}
	*got = done;
	return OK;
}

enum status file_pread(int fd, void *to, size_t length, uint64_t offset)
{
	size_t got = 0;
	enum status status = file_pread_some(fd, to, length, offset, &got);

	if (status != OK)
		return status;
	return got == length ? OK : ERR_TRUNCATED;
}

char *file_read_whole(int fd, size_t most, size_t *length)
{
	size_t room = 0, used = 0;
	char *text = NULL, *more;
	ssize_t got = -1;
	int error = 0;

	while (got != 0 && error == 0) {
		if (used == room) {
			room = room == 0 ? 4096 : room * 2;
			if (room > most)
				room = most + 1;
			more = realloc(text, room + 1);
			if (more == NULL) {
				error = ENOMEM;
				break;
			}
			text = more;
		}
		got = read(fd, text + used, room - used);
		if (got > 0)
			used += (size_t)got;
		else if (got == -1 && errno != EINTR)
			error = errno;
		if (used > most)
			error = EFBIG;
	}
	if (error != 0) {
		free(text);
		errno = error;
		return NULL;
	}
	text[used] = '\0';
	*length = used;
	return text;
}

bool file_read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd == -1 ? -1 : read(fd, text, size - 1);

	text[got > 0 ? got : 0] = '\0';
	if (got == 0)
		errno = ENODATA;
	if (fd != -1)
		close(fd);
	return got > 0;
}

/* The name in field 2 can contain anything, so count fields after its last parenthesis. */
bool file_proc_stat(const char *task, char *state, uint64_t *start_ticks)
{
	char path[64], text[1024];
	const char *at;

	*state = 0;
	*start_ticks = 0;
	snprintf(path, sizeof(path), "/proc/%s/stat", task);
	if (!file_read_text(path, text, sizeof(text)))
		return false;
	at = strrchr(text, ')');
	if (at != NULL && at[1] == ' ')
		*state = at[2];
	for (int field = 2; field < 22 && at != NULL; field++)
		at = strchr(at + 1, ' ');
	*start_ticks = at != NULL ? strtoull(at + 1, NULL, 10) : 0;
	return true;
}

/* The value of "\nNAME:\t..." in a task's status; NULL: there is none. */
static char *status_value(char *text, size_t size, const char *task, const char *name)
{
	char path[64], *line;

	snprintf(path, sizeof(path), "/proc/%s/status", task);
	if (!file_read_text(path, text, size))
		return NULL;
	line = strstr(text, name);
	if (line == NULL)
		return NULL;
	line += strlen(name);
	line[strcspn(line, "\n")] = '\0';
	return line;
}

/* "NSpid:\t4711\t12": from our namespace to its own. */
uint64_t file_proc_own_pid(const char *task)
{
	char text[4096];
	const char *value = status_value(text, sizeof(text), task, "\nNSpid:");
	const char *last = value != NULL ? strrchr(value, '\t') : NULL;

	return last != NULL ? strtoull(last + 1, NULL, 10) : 0;
}

/* "Uid:\t1000\t1000\t1000\t1000": the real one first. */
uint32_t file_proc_user(const char *task)
{
	char text[4096];
	const char *value = status_value(text, sizeof(text), task, "\nUid:");

	return value != NULL ? (uint32_t)strtoul(value, NULL, 10) : UINT32_MAX;
}

/* The link's text is "pid:[4026531836]". */
static uint64_t namespace_of(const char *task, const char *kind)
{
	char path[64], link[64];
	unsigned long long inode = 0;
	const char *number;
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%s/ns/%s", task, kind);
	length = readlink(path, link, sizeof(link) - 1);
	link[length > 0 ? length : 0] = '\0';
	number = strchr(link, '[');
	return number != NULL && sscanf(number, "[%llu]", &inode) == 1 ? inode : 0;
}

uint64_t file_proc_namespace(const char *task)
{
	return namespace_of(task, "pid");
}

uint64_t file_proc_mounts(const char *task)
{
	return namespace_of(task, "mnt");
}

bool file_make_absolute(char *path, size_t size)
{
	char here[512], whole[1024];

	if (path[0] == '\0' || path[0] == '/')
		return true;
	return getcwd(here, sizeof(here)) != NULL &&
	       text_format(whole, sizeof(whole), "%s/%s", here, path) && strlen(whole) < size &&
	       text_copy(path, size, whole);
}

static void make_directory(const char *path, mode_t mode, gid_t group)
{
	int fd;

	if (mkdir(path, mode) == -1 || group == (gid_t)-1)
		return;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return;
	if (fchown(fd, (uid_t)-1, group) == 0)
		fchmod(fd, 0750);
	close(fd);
}

void file_make_directories(const char *path, mode_t mode, gid_t group)
{
	char copy[1024];

	if (path[0] == '\0' || !text_copy(copy, sizeof(copy), path))
		return;
	for (char *at = copy + 1; *at != '\0'; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		make_directory(copy, mode, group);
		*at = '/';
	}
	make_directory(copy, mode, group);
	/* Errors show when a file is created; errno must not be mistaken for the reason then. */
	errno = 0;
}
