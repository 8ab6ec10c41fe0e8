/*
 * A disk that misbehaves on demand, and a group database that does not answer. The executable's own
 * pwrite(), open() and others are found before libc's by every library loaded later, and so by the
 * plugin: no preloading is needed.
 */
#ifndef PROCESS_DISK_H
#define PROCESS_DISK_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/order.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int is_frozen;	/* writes beyond `room` block; with no error set */
	int is_waiting; /* one is blocked */
	int error;	/* the result of a write beyond `room` */
	int slices; /* at most this many bytes per write, 0: any; every other one is interrupted */
	uint64_t room;
	uint64_t writes;
	const char *dead; /* access to a path that begins like this blocks; "": none */
	int is_group_dead;
} disk = { .lock = PTHREAD_MUTEX_INITIALIZER,
	   .changed = PTHREAD_COND_INITIALIZER,
	   .room = UINT64_MAX,
	   .dead = "" };

static inline void disk_freeze(void)
{
	store_relaxed(&disk.is_frozen, 1);
}

/* Wait until a write is blocked. */
static inline void disk_await(void)
{
	pthread_mutex_lock(&disk.lock);
	while (!disk.is_waiting)
		pthread_cond_wait(&disk.changed, &disk.lock);
	pthread_mutex_unlock(&disk.lock);
}

static inline void disk_thaw(void)
{
	pthread_mutex_lock(&disk.lock);
	store_relaxed(&disk.is_frozen, 0);
	pthread_cond_broadcast(&disk.changed);
	pthread_mutex_unlock(&disk.lock);
}

static void disk_wait(uint64_t end)
{
	if (!load_relaxed(&disk.is_frozen) || end <= disk.room)
		return;
	pthread_mutex_lock(&disk.lock);
	disk.is_waiting = 1;
	pthread_cond_broadcast(&disk.changed);
	while (load_relaxed(&disk.is_frozen))
		pthread_cond_wait(&disk.changed, &disk.lock);
	disk.is_waiting = 0;
	pthread_mutex_unlock(&disk.lock);
}

/* Everything that was dead answers. */
static inline void disk_revive(void)
{
	pthread_mutex_lock(&disk.lock);
	disk.dead = "";
	disk.is_group_dead = 0;
	pthread_cond_broadcast(&disk.changed);
	pthread_mutex_unlock(&disk.lock);
}

static void disk_reach(const char *path)
{
	pthread_mutex_lock(&disk.lock);
	while (disk.dead[0] != '\0' && strncmp(path, disk.dead, strlen(disk.dead)) == 0)
		pthread_cond_wait(&disk.changed, &disk.lock);
	pthread_mutex_unlock(&disk.lock);
}

typedef ssize_t disk_pwrite_fn(int, const void *, size_t, off_t);
typedef int disk_fallocate_fn(int, int, off_t, off_t);

EXPORTED ssize_t pwrite(int fd, const void *from, size_t size, off_t offset)
{
	static disk_pwrite_fn *real;

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "pwrite");
	disk_wait((uint64_t)offset + size);
	add_relaxed(&disk.writes, 1);
	if (disk.error != 0 && (uint64_t)offset + size > disk.room) {
		/* Like a real one: what still fits is written. */
		if ((uint64_t)offset < disk.room)
			return real(fd, from, disk.room - (uint64_t)offset, offset);
		errno = disk.error;
		return -1;
	}
	if (disk.slices != 0) {
		if (load_relaxed(&disk.writes) % 2 == 0) {
			errno = EINTR;
			return -1;
		}
		if (size > (size_t)disk.slices)
			size = (size_t)disk.slices;
	}
	return real(fd, from, size, offset);
}

EXPORTED int fallocate(int fd, int mode, off_t offset, off_t size)
{
	static disk_fallocate_fn *real;

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "fallocate");
	if (disk.error != 0 && (uint64_t)offset + (uint64_t)size > disk.room) {
		errno = disk.error;
		return -1;
	}
	return real(fd, mode, offset, size);
}

typedef int disk_mkdir_fn(const char *, mode_t);
typedef int disk_open_fn(const char *, int, ...);
typedef int disk_openat_fn(int, const char *, int, ...);
typedef int disk_getgrnam_fn(const char *, struct group *, char *, size_t, struct group **);

EXPORTED int mkdir(const char *path, mode_t mode)
{
	static disk_mkdir_fn *real;

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "mkdir");
	disk_reach(path);
	return real(path, mode);
}

static mode_t disk_mode(int flags, va_list values)
{
	return flags & (O_CREAT | __O_TMPFILE) ? va_arg(values, mode_t) : 0;
}

EXPORTED int open(const char *path, int flags, ...)
{
	static disk_open_fn *real;
	va_list values;
	mode_t mode;

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "open");
	va_start(values, flags);
	mode = disk_mode(flags, values);
	va_end(values);
	disk_reach(path);
	return real(path, flags, mode);
}

EXPORTED int openat(int dir, const char *path, int flags, ...)
{
	static disk_openat_fn *real;
	va_list values;
	mode_t mode;

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "openat");
	va_start(values, flags);
	mode = disk_mode(flags, values);
	va_end(values);
	disk_reach(path);
	return real(dir, path, flags, mode);
}

EXPORTED int getgrnam_r(const char *name, struct group *entry, char *buffer, size_t size,
			struct group **found)
{
	static disk_getgrnam_fn *real;

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "getgrnam_r");
	pthread_mutex_lock(&disk.lock);
	while (disk.is_group_dead)
		pthread_cond_wait(&disk.changed, &disk.lock);
	pthread_mutex_unlock(&disk.lock);
	return real(name, entry, buffer, size, found);
}

#endif
