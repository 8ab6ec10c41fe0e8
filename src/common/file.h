/*
 * Opening and reading files: those named by someone else (only regular files are touched), small
 * files of /proc, and new files that must not become a standard stream.
 *
 * A program with a file_opener asks it for what may be on a file system that never answers. Errno is then ETIMEDOUT.
 */
#ifndef FILE_H
#define FILE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "common/status.h"

/*
 * Opening a device can have side effects and opening a pipe can block, so the type is checked
 * first. Returns a descriptor for reading or -1 with errno: EISDIR for a directory, ELOOP for a
 * symbolic link if !may_follow, EINVAL for anything else that is not a regular file.
 */
int file_open(int directory, const char *path, bool may_follow);

/* Open the file seen before. If the path names another file now: -1 with ESTALE. */
int file_open_same(const char *path, uint64_t device, uint64_t inode);

/*
 * Open what a file of user `owner` names, for reading: the trace of a region, the region of a trace.
 * That user chooses the path and the reader may be root, so it must be an absolute path without
 * symbolic links to a regular file of the same user that is no file of the kernel and not hollow.
 * What a file of the caller names counts as named by the caller: links are followed, and it may
 * belong to anyone. A path /proc/PID/fd/N to a region's memfd is allowed. -1 with errno; *why says
 * what is wrong (static), or is NULL if it could not be opened.
 */
int file_open_for(uid_t owner, const char *path, const char **why);

/*
 * Open a regular file of anyone, for reading, that is no file of the kernel, by an absolute path
 * without symbolic links. Nothing else is opened, not even for a moment. -1 if it is not such a file.
 */
int file_open_direct(const char *path);

/* A directory, for listing it. -1 with errno. */
int file_open_directory(int directory, const char *path, bool may_follow);
DIR *file_list(const char *path);

/*
 * The text of a file of a user, as file_read_whole(), and what fstat() says about it. With is_direct only of a file that
 * file_open_direct() opens. The second one only examines it; owner -1: the caller's own path.
 */
char *file_text_of(uid_t owner, const char *path, bool is_direct, size_t most, size_t *length,
		   struct stat *st);
bool file_examine(int64_t owner, const char *path, struct stat *st);

/* strerror(), but for a file that did not answer. */
#define FILE_SILENT_WORDS "its file system does not answer"
const char *file_error_text(int error);

/* What the functions above ask for, so that somebody else can do it. */
struct file_question {
	enum file_question_kind {
		FILE_ASK_ANY = 1,  /* file_open() */
		FILE_ASK_SAME = 2, /* file_open_same() */
		FILE_ASK_FOR = 3,  /* file_open_for() */
		FILE_ASK_DIRECT = 4,
		FILE_ASK_DIRECTORY = 5,
		FILE_ASK_TEXT = 6, /* with `most` 0: only `st` */
		FILE_ASK_DIRECT_TEXT = 7,
	} kind;
	bool may_follow;
	bool has_owner; /* a user chose the path */
	int directory;	/* AT_FDCWD: none */
	uid_t owner;
	uint64_t device, inode;
	size_t most;
	const char *path;
};
struct file_answer {
	int fd;		 /* of a text: a file in memory that contains it; -1: see error */
	int error;	 /* errno */
	const char *why; /* static */
	struct stat st;	 /* of a text */
};
/* Does it, here and now. */
void file_answer(const struct file_question *question, struct file_answer *answer);
/* Who else does it; NULL: nobody. False: nobody could be asked. */
extern bool (*file_ask_other)(const struct file_question *question, struct file_answer *answer);

/*
 * Is nearly all of it a hole? A sparse file can have any size at no cost for who creates it, while
 * its reader pays for each byte. Up to 64 MiB, or four times what is stored, is fine.
 */
bool file_is_hollow(int fd);
#define FILE_HOLLOW_WORDS "it consists of holes: a sparse file much larger than its contents"

/* openat2(2) for reading, -1 with ENOSYS where there is none; `resolve` as RESOLVE_*. */
enum file_resolve {
	FILE_STAY_ON_MOUNT = 0x01, /* RESOLVE_NO_XDEV */
	FILE_NO_MAGIC_LINKS = 0x02,
	FILE_NO_LINKS = 0x04,
	FILE_BENEATH = 0x08,
	FILE_IN_ROOT = 0x10,
	FILE_CACHED = 0x20,
};
int file_open_within(int directory, const char *path, int flags, uint64_t resolve);

/* What a directory has under this name, on its own file system: no link is followed, and no other mount (EXDEV). */
int file_open_inside(int directory, const char *name, int flags);

/* "/proc/PID/fd/N", if it leads to memory of the kernel and not to a file system, which may never answer. */
int file_open_memfd(const char *path);

/* pread() all of it. ERR_TRUNCATED if the file ends before that, ERR_SYSTEM. */
enum status file_pread(int fd, void *to, size_t length, uint64_t offset);

/* The same, but the file may end earlier: *got is the number of bytes read. */
enum status file_pread_some(int fd, void *to, size_t length, uint64_t offset, size_t *got);

/*
 * The rest of a file of any kind, from its current position to its end, with a zero byte behind it
 * that *length does not count. Nothing relies on the size that the file claims: those of /proc
 * claim none, and others grow. free() it. NULL with errno: EFBIG if there are more than `most`
 * bytes (no more are read, up to the one that is too many), ENOMEM, or what read(2) failed with.
 */
char *file_read_whole(int fd, size_t most, size_t *length);

/*
 * Read the start of a small file of /proc or /sys. False (errno) and "" if it cannot be read or is
 * empty.
 */
bool file_read_text(const char *path, char *text, size_t size);

/*
 * What /proc says about a task: a pid, "self", "self/task/TID". Its state as in /proc/PID/stat (R,
 * S, D, T, Z ...) and its start time; 0 where not given. False (errno): nothing could be read.
 */
bool file_proc_stat(const char *task, char *state, uint64_t *start_ticks);
/* Its pid (of "4711/task/4712" the tid) in its own pid namespace; 0: unknown. */
uint64_t file_proc_own_pid(const char *task);
/* The user it runs for, whatever rights it has. (uint32_t)-1: unknown. */
uint32_t file_proc_user(const char *task);
/* The inodes of its pid namespace and of its mount namespace; 0: unknown. */
uint64_t file_proc_namespace(const char *task);
uint64_t file_proc_mounts(const char *task);

/*
 * Make a path absolute, for readers in another directory. False: not possible or too long;
 * unchanged.
 */
bool file_make_absolute(char *path, size_t size);

/*
 * mkdir -p. Existing directories are left alone. New ones get `mode`, or, unless `group` is
 * (gid_t)-1, access for the user and this group. Reports no errors: creating a file will. May block
 * on the disk.
 */
void file_make_directories(const char *path, mode_t mode, gid_t group);

/*
 * In a process that closed its standard streams, a new file becomes one of them, and everything
 * printed goes into it. Returns the same file with a higher number; -1 (errno) with `fd` closed if
 * there is none.
 */
static inline int fd_high(int fd)
{
	int high;

	if (fd == -1 || fd > STDERR_FILENO)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	close(fd);
	return high;
}

/*
 * If another thread can print at any moment, moving the file afterwards is too late. While a guard
 * is held, free numbers among the first three are taken by descriptors that behave like closed ones
 * (EBADF), so every file that is opened gets a higher number. Preserves errno.
 */
struct fd_guard {
	int held[STDERR_FILENO + 1];
	int count;
};

static inline struct fd_guard fd_guard_begin(void)
{
	struct fd_guard guard = { .count = 0 };
	int error = errno;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		int taken;

		if (fcntl(fd, F_GETFD) != -1)
			continue;
		taken = open("/", O_PATH | O_CLOEXEC);
		if (taken > STDERR_FILENO)
			close(taken);
		else if (taken != -1)
			guard.held[guard.count++] = taken;
	}
	errno = error;
	return guard;
}

static inline void fd_guard_end(const struct fd_guard *guard)
{
	int error = errno;

	for (int i = 0; i < guard->count; i++) {
		int flags = fcntl(guard->held[i], F_GETFL);

		/* Unless another thread has put a real stream there. */
		if (flags != -1 && flags & O_PATH)
			close(guard->held[i]);
	}
	errno = error;
}

/* openat(2), but never as a standard stream. */
static inline int fd_open_high(int dir, const char *path, int flags, mode_t mode)
{
	struct fd_guard guard = fd_guard_begin();
	int fd = fd_high(openat(dir, path, flags, mode));

	fd_guard_end(&guard);
	return fd;
}

#endif
