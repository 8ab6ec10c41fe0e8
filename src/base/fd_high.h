/* Descriptors that stay open for long. */
#ifndef FD_HIGH_H
#define FD_HIGH_H

#include <fcntl.h>
#include <unistd.h>

/* In a process that closed its standard streams a new file becomes one of them, and whatever anybody
 * prints then goes into it. Give back the same file under a higher number; -1 (errno) when there is
 * none, with `fd` closed. */
static inline int fd_high(int fd)
{
	int high;

	if (fd == -1 || fd > STDERR_FILENO)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	close(fd);
	return high;
}

#endif
