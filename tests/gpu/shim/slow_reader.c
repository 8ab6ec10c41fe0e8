/*
 * A slow reader of sockets, for LD_PRELOAD: limits what a process receives over TCP in pieces of 16 KiB or more to
 * SLOW_READER_BYTES_PER_S. NCCL receives without blocking and tries again if there is nothing, so it gets EAGAIN.
 * Its sockets get a small window, otherwise the kernel would buffer everything that NCCL sends ahead and its peer
 * would never notice. To the peer it looks like a slow link.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

enum { LARGE_BYTES = 16 << 10, PIECE_BYTES = 64 << 10, WINDOW_BYTES = 64 << 10, SOCKETS = 1024 };

static ssize_t (*real_recv)(int fd, void *buffer, size_t size, int flags);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t bytes_per_s;
static uint64_t free_ns; /* nothing before this time */
static char is_narrow[SOCKETS];

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

__attribute__((constructor)) static void prepare(void)
{
	const char *text = getenv("SLOW_READER_BYTES_PER_S");

	*(void **)&real_recv = dlsym(RTLD_NEXT, "recv");
	bytes_per_s = text ? strtoull(text, NULL, 10) : 0;
}

/* Whether it is time for the next piece. */
static int may_read(void)
{
	int is_free;

	pthread_mutex_lock(&lock);
	is_free = now_ns() >= free_ns;
	pthread_mutex_unlock(&lock);
	return is_free;
}

static void note(size_t bytes)
{
	uint64_t now = now_ns();

	pthread_mutex_lock(&lock);
	if (free_ns < now)
		free_ns = now;
	free_ns += bytes * 1000000000u / bytes_per_s;
	pthread_mutex_unlock(&lock);
}

static void narrow(int fd)
{
	int bytes = WINDOW_BYTES;

	if (fd < 0 || fd >= SOCKETS || is_narrow[fd])
		return;
	is_narrow[fd] = 1;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

ssize_t recv(int fd, void *buffer, size_t size, int flags)
{
	ssize_t got;

	if (real_recv == NULL)
		prepare(); /* another constructor ran before ours */
	if (bytes_per_s == 0 || size < LARGE_BYTES || !(flags & MSG_DONTWAIT))
		return real_recv(fd, buffer, size, flags);
	narrow(fd);
	if (!may_read()) {
		errno = EAGAIN;
		return -1;
	}
	got = real_recv(fd, buffer, size < PIECE_BYTES ? size : PIECE_BYTES, flags);
	if (got > 0)
		note((size_t)got);
	return got;
}
