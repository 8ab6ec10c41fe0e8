#include "programs/agent/agent_listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/text.h"
#include "programs/agent/agent_log.h"

enum { FIRST_INHERITED = 3, BACKLOG = 256, SOCKET_MODE = 0660 };

static const char *path_of(const struct web_address *address)
{
	return ((const struct sockaddr_un *)&address->socket)->sun_path;
}

/* ---- Unix sockets ------------------------------------------------------------------------------ */

/* The file of a socket that nobody listens on any more is in the way. Anything else stays. */
static void remove_stale(const struct web_address *address)
{
	const char *path = path_of(address);
	struct stat st;
	int fd;

	if (lstat(path, &st) == -1 || !S_ISSOCK(st.st_mode))
		return;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return;
	if (connect(fd, (const struct sockaddr *)&address->socket, address->length) == -1 &&
	    errno == ECONNREFUSED)
		unlink(path);
	close(fd);
}

static bool own_file(struct agent_listener *listener, gid_t group)
{
	const char *path = path_of(&listener->address);
	struct stat st;

	if (lstat(path, &st) == -1)
		return false;
	listener->is_ours = true;
	listener->device = st.st_dev;
	listener->inode = st.st_ino;
	return (group == (gid_t)-1 || lchown(path, (uid_t)-1, group) == 0) &&
	       chmod(path, SOCKET_MODE) == 0;
}

/* ---- opening ----------------------------------------------------------------------------------- */

static bool prepare(const struct agent_listener *listener)
{
	int one = 1, only_v6 = !listener->address.is_any;

	if (listener->address.is_unix)
		return true;
	if (listener->address.socket.ss_family == AF_INET6 &&
	    setsockopt(listener->fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof(only_v6)) == -1)
		return false;
	return setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0;
}

/* A machine without IPv6 still has all its IPv4 addresses. */
static int open_socket(struct web_address *address)
{
	int kind = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
	int fd = socket(address->socket.ss_family, kind, 0);
	struct sockaddr_in *v4 = (struct sockaddr_in *)&address->socket;
	uint16_t port;

	if (fd != -1 || errno != EAFNOSUPPORT || !address->is_any)
		return fd;
	port = ((struct sockaddr_in6 *)&address->socket)->sin6_port;
	address->socket = (struct sockaddr_storage){ 0 };
	v4->sin_family = AF_INET;
	v4->sin_port = port;
	address->length = sizeof(*v4);
	return socket(AF_INET, kind, 0);
}

/* With port 0 the system chose one: what is it? */
static void ask_address(struct agent_listener *listener)
{
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);

	if (getsockname(listener->fd, (struct sockaddr *)&bound, &length) == 0)
		web_address_of(&listener->address, &bound, length);
}

int agent_listen_open(struct agent_listeners *listeners, const struct web_address *address,
		      gid_t group)
{
	struct agent_listener *listener = &listeners->list[listeners->count];
	char text[160];

	web_address_text(address, text, sizeof(text));
	*listener = (struct agent_listener){ .address = *address };
	listener->fd = open_socket(&listener->address);
	if (listener->fd == -1)
		return agent_log(AGENT_ERROR, "cannot listen on %s: %s", text, strerror(errno));
	listeners->count++;
	if (address->is_unix)
		remove_stale(address);
	if (!prepare(listener) ||
	    bind(listener->fd, (struct sockaddr *)&listener->address.socket,
		 listener->address.length) == -1 ||
	    (address->is_unix && !own_file(listener, group)) || listen(listener->fd, BACKLOG) == -1)
		return agent_log(AGENT_ERROR, "cannot listen on %s: %s%s", text, strerror(errno),
				 errno == EADDRINUSE ? "; choose another with --listen" : "");
	if (!address->is_unix)
		ask_address(listener);
	return 0;
}

int agent_listen_inherit(struct agent_listeners *listeners)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	int64_t number, count;

	if (pid == NULL || fds == NULL || text_number(pid, 1, INT32_MAX, &number) != OK ||
	    number != getpid())
		return 0;
	if (text_number(fds, 0, AGENT_LISTENERS_MAX, &count) != OK) {
		agent_log(AGENT_ERROR, "LISTEN_FDS=%s: at most %d sockets are taken over", fds,
			  AGENT_LISTENERS_MAX);
		return -1;
	}
	for (int i = 0; i < (int)count; i++) {
		struct agent_listener *listener = &listeners->list[listeners->count];
		int is_listening = 0, fd = FIRST_INHERITED + i;
		socklen_t length = sizeof(is_listening);

		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &length) == -1 ||
		    !is_listening || fcntl(fd, F_SETFD, FD_CLOEXEC) == -1 ||
		    fcntl(fd, F_SETFL, O_NONBLOCK) == -1) {
			agent_log(AGENT_ERROR, "LISTEN_FDS: descriptor %d is no listening socket",
				  fd);
			return -1;
		}
		*listener = (struct agent_listener){ .fd = fd };
		ask_address(listener);
		listeners->count++;
	}
	return (int)count;
}

void agent_listen_close(struct agent_listeners *listeners)
{
	for (size_t i = 0; i < listeners->count; i++) {
		struct agent_listener *listener = &listeners->list[i];
		const char *path = path_of(&listener->address);
		struct stat st;

		/* Another agent may have put its own in our place. */
		if (listener->is_ours && lstat(path, &st) == 0 && st.st_dev == listener->device &&
		    st.st_ino == listener->inode)
			unlink(path);
		close(listener->fd);
	}
	listeners->count = 0;
}
