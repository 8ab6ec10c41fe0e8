/* Preloaded into the processes of a simulated node: its wall clock is the machine's plus the nanoseconds that the file
   $STEPPED_CLOCK holds now, as a raw 64-bit number. Whoever writes another number there steps the clock of the node. */
#include "common/attributes.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *step_ns;

__attribute__((constructor)) static void open_step(void)
{
	const char *path = getenv("STEPPED_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	void *page = mmap(NULL, sizeof(*step_ns), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (page != MAP_FAILED)
		step_ns = page;
}

static int machine_clock(clockid_t clock, struct timespec *at)
{
	static int (*real)(clockid_t, struct timespec *);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	return real(clock, at);
}

EXPORTED int clock_gettime(clockid_t clock, struct timespec *at)
{
	if (machine_clock(clock, at))
		return -1;
	if (step_ns && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
		int64_t ns = (int64_t)at->tv_sec * 1000000000 + at->tv_nsec + *step_ns;
		at->tv_sec = (time_t)(ns / 1000000000);
		at->tv_nsec = (long)(ns % 1000000000);
	}
	return 0;
}

EXPORTED int gettimeofday(struct timeval *restrict at, void *restrict zone)
{
	struct timespec now;
	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &now))
		return -1;
	*at = (struct timeval){ .tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000 };
	return 0;
}

EXPORTED time_t time(time_t *at)
{
	struct timespec now = { 0 };
	clock_gettime(CLOCK_REALTIME, &now);
	if (at)
		*at = now.tv_sec;
	return now.tv_sec;
}
