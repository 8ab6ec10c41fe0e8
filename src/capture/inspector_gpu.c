#include "capture/inspector_gpu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd_high.h"
#include "base/text.h"
#include "inspector/inspector_prom.h"

enum { PROCESSES_MOST = 64, CLEAN_MOST = 4096 };
#define NAME_START ".nccl_inspector_metrics_"

/* ---- locks ----------------------------------------------------------------------------------- */

/*
 * Such a lock belongs to the process: children do not have it, and it is gone when the process is, however
 * it ended. -1: somebody else has it (errno 0), or it cannot be had (errno).
 */
static int take_lock(const char *path, int flags)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct stat ours, there;
	int fd = fd_open_high(AT_FDCWD, path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags,
			      0600);
	int error = errno;

	if (fd == -1) {
		/* Another user's: taken. */
		errno = error == EACCES || error == ELOOP ? 0 : error;
		return -1;
	}
	if (fstat(fd, &ours) == -1 || !S_ISREG(ours.st_mode) || ours.st_uid != geteuid())
		error = 0;
	else if (fcntl(fd, F_SETLK, &whole) == -1)
		error = errno == EAGAIN || errno == EACCES ? 0 : errno;
	else if (lstat(path, &there) == 0 && there.st_ino == ours.st_ino &&
		 there.st_dev == ours.st_dev)
		return fd;
	else
		error = 0; /* its last owner left, and took the name with it */
	close(fd);
	errno = error;
	return -1;
}

/* Locks of some network file systems hold on one machine only: a lock tells whose it is. */
static void sign_lock(int lock)
{
	char host[256] = "";

	if (gethostname(host, sizeof(host) - 1) == -1 || pwrite(lock, host, strlen(host), 0) == -1)
		errno = 0;
}

/* One that nobody signed is as good as ours. */
static bool is_of_this_host(int lock)
{
	char host[256] = "", signature[256] = "";

	if (gethostname(host, sizeof(host) - 1) == -1 ||
	    pread(lock, signature, sizeof(signature) - 1, 0) == -1)
		return false;
	return signature[0] == '\0' || strcmp(signature, host) == 0;
}

/* ---- after processes that were killed -------------------------------------------------------- */

static void remove_file(const char *dir, const char *prefix, const char *name, const char *suffix)
{
	char path[INSPECTOR_GPU_PATH_BYTES];

	if (text_format(path, sizeof(path), "%s/%s%s%s", dir, prefix, name, suffix) &&
	    unlink(path) == -1)
		errno = 0;
}

/* ".nccl_inspector_metrics_X.lock" without an owner: away with all three. */
static void clean_one(const char *dir, const char *lock_name)
{
	char path[INSPECTOR_GPU_PATH_BYTES], name[INSPECTOR_PROM_NAME_BYTES];
	size_t length = strlen(lock_name);
	int lock;

	if (length < 6 || length > sizeof(name) || strcmp(lock_name + length - 5, ".lock") != 0 ||
	    !text_format(path, sizeof(path), "%s/%s", dir, lock_name))
		return;
	text_copy(name, sizeof(name), lock_name + 1);
	name[length - 6] = '\0';
	lock = take_lock(path, 0);
	if (lock == -1)
		return;
	if (is_of_this_host(lock)) {
		remove_file(dir, "", name, ".prom");
		remove_file(dir, ".", name, ".prom.draft");
		remove_file(dir, ".", name, ".lock");
	}
	close(lock);
}

void inspector_gpu_clean(const char *dir)
{
	DIR *list = opendir(dir);
	struct dirent *entry;

	for (int i = 0; list != NULL && i < CLEAN_MOST && (entry = readdir(list)) != NULL; i++)
		if (strncmp(entry->d_name, NAME_START, sizeof(NAME_START) - 1) == 0)
			clean_one(dir, entry->d_name);
	if (list != NULL)
		closedir(list);
}

/* ---- a name ---------------------------------------------------------------------------------- */

static bool name_files(struct inspector_gpu *gpu, const char *dir, uint32_t process)
{
	char name[INSPECTOR_PROM_NAME_BYTES];

	inspector_prom_name(name, gpu->uuid, process);
	return text_format(gpu->path, sizeof(gpu->path), "%s/%s", dir, name) &&
	       text_format(gpu->draft, sizeof(gpu->draft), "%s/.%s.draft", dir, name) &&
	       text_format(gpu->lock_path, sizeof(gpu->lock_path), "%s/.%.*s.lock", dir,
			   (int)(strlen(name) - strlen(".prom")), name);
}

/* A file system without locks: the number of the process is nobody else's, on this machine at least. */
static enum status claim_by_pid(struct inspector_gpu *gpu, const char *dir)
{
	gpu->process = (uint32_t)getpid();
	return name_files(gpu, dir, gpu->process) ? OK : ERR_SYSTEM;
}

enum status inspector_gpu_claim(struct inspector_gpu *gpu, const char *dir)
{
	errno = ENAMETOOLONG;
	for (uint32_t i = 1; i <= PROCESSES_MOST && name_files(gpu, dir, i); i++) {
		gpu->lock = take_lock(gpu->lock_path, O_CREAT);
		if (gpu->lock != -1) {
			sign_lock(gpu->lock);
			gpu->process = i;
			return OK;
		}
		if (errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP || errno == EINVAL)
			return claim_by_pid(gpu, dir);
		if (errno != 0)
			return ERR_SYSTEM;
		errno = EBUSY;
	}
	return ERR_SYSTEM;
}

/* ---- a file ---------------------------------------------------------------------------------- */

void inspector_gpu_begin(struct inspector_gpu *gpu, char *chunk)
{
	gpu->chunk = chunk;
	gpu->used = 0;
	gpu->offset = 0;
	gpu->status = OK;
	/* Whatever lies there is not ours to write to. */
	if (unlink(gpu->draft) == -1)
		errno = 0;
	gpu->fd = fd_open_high(AT_FDCWD, gpu->draft,
			       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (gpu->fd == -1 || fchmod(gpu->fd, 0644) == -1)
		gpu->status = ERR_SYSTEM;
}

static void write_chunk(struct inspector_gpu *gpu)
{
	size_t written = 0;

	while (written < gpu->used && gpu->status == OK) {
		ssize_t got = pwrite(gpu->fd, gpu->chunk + written, gpu->used - written,
				     (off_t)gpu->offset);

		if (got > 0) {
			written += (size_t)got;
			gpu->offset += (uint64_t)got;
		} else if (got == 0 || errno != EINTR) {
			gpu->status = ERR_SYSTEM;
		}
	}
	gpu->used = 0;
}

void inspector_gpu_add(struct inspector_gpu *gpu, const char *text, size_t length)
{
	if (gpu->used + length > INSPECTOR_CHUNK_BYTES)
		write_chunk(gpu);
	memcpy(gpu->chunk + gpu->used, text, length);
	gpu->used += length;
}

enum status inspector_gpu_publish(struct inspector_gpu *gpu)
{
	int error;

	write_chunk(gpu);
	error = errno;
	if (gpu->fd != -1 && close(gpu->fd) == -1 && gpu->status == OK) {
		gpu->status = ERR_SYSTEM;
		error = errno;
	}
	gpu->fd = -1;
	if (gpu->status == OK && rename(gpu->draft, gpu->path) == -1) {
		gpu->status = ERR_SYSTEM;
		error = errno;
	}
	if (gpu->status != OK)
		unlink(gpu->draft);
	errno = error;
	return gpu->status;
}

void inspector_gpu_leave(struct inspector_gpu *gpu)
{
	if (gpu->process == 0)
		return;
	unlink(gpu->path);
	unlink(gpu->draft);
	if (gpu->lock == -1)
		return;
	unlink(gpu->lock_path);
	close(gpu->lock);
	gpu->lock = -1;
}
