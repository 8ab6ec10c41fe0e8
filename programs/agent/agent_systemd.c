#include "programs/agent/agent_systemd.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/text.h"

void agent_systemd_notify(const char *format, ...)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	char message[512];
	va_list values;
	socklen_t length;
	int fd;

	if (path == NULL || (path[0] != '/' && path[0] != '@') ||
	    !text_copy(to.sun_path, sizeof(to.sun_path), path))
		return;
	va_start(values, format);
	vsnprintf(message, sizeof(message), format, values);
	va_end(values);
	length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	/* An abstract name begins with a 0, and ends where it ends. */
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	else
		length++;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return;
	sendto(fd, message, strlen(message), MSG_NOSIGNAL, (struct sockaddr *)&to, length);
	close(fd);
}

uint64_t agent_systemd_watchdog_ns(void)
{
	const char *interval = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	int64_t us, for_pid;

	if (interval == NULL || text_number(interval, 1, INT64_MAX / 1000, &us) != OK)
		return 0;
	if (pid && (text_number(pid, 1, INT32_MAX, &for_pid) != OK || for_pid != getpid()))
		return 0;
	return (uint64_t)us * 1000 / 2;
}
