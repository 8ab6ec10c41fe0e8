#include "programs/agent/web_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include "common/text.h"

static enum status refuse(const char **why, const char *what)
{
	*why = what;
	return ERR_FORMAT;
}

void web_address_of(struct web_address *address, const struct sockaddr_storage *socket,
		    socklen_t length)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)socket;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)socket;

	*address = (struct web_address){ .socket = *socket, .length = length };
	address->is_unix = socket->ss_family == AF_UNIX;
	if (socket->ss_family == AF_INET)
		address->is_loopback = ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	else if (socket->ss_family == AF_INET6)
		address->is_loopback =
			IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
			(IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) && v6->sin6_addr.s6_addr[12] == 127);
}

static enum status parse_unix(struct web_address *address, const char *path, const char **why)
{
	struct sockaddr_storage socket = { .ss_family = AF_UNIX };
	struct sockaddr_un *to = (struct sockaddr_un *)&socket;

	if (path[0] != '/')
		return refuse(why, "a Unix socket needs an absolute path, like unix:/run/x.sock");
	if (!text_copy(to->sun_path, sizeof(to->sun_path), path))
		return refuse(why, "the path of a Unix socket may have 107 characters");
	web_address_of(address, &socket, sizeof(*to));
	return OK;
}

/* `host` without brackets. */
static enum status parse_inet(struct web_address *address, const char *host, bool is_v6,
			      uint16_t port, const char **why)
{
	struct sockaddr_storage socket = { 0 };
	struct sockaddr_in *v4 = (struct sockaddr_in *)&socket;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&socket;

	if (is_v6 || host[0] == '\0') {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		if (host[0] != '\0' && inet_pton(AF_INET6, host, &v6->sin6_addr) != 1)
			return refuse(why, "between the brackets stands no IPv6 address");
		web_address_of(address, &socket, sizeof(*v6));
		address->is_any = host[0] == '\0';
		return OK;
	}
	if (strcmp(host, "localhost") == 0)
		host = "127.0.0.1";
	v4->sin_family = AF_INET;
	v4->sin_port = htons(port);
	if (inet_pton(AF_INET, host, &v4->sin_addr) != 1)
		return refuse(why, "names are not looked up: give an address in numbers");
	web_address_of(address, &socket, sizeof(*v4));
	return OK;
}

enum status web_address_parse(struct web_address *address, const char *text, const char **why)
{
	const char *colon = strrchr(text, ':');
	char host[64];
	int64_t port;
	size_t length;
	bool is_v6;

	if (strncmp(text, "unix:", 5) == 0)
		return parse_unix(address, text + 5, why);
	if (colon == NULL || text_number(colon + 1, 0, 65535, &port) != OK)
		return refuse(why, "it should end in a port, like 127.0.0.1:9749");
	length = (size_t)(colon - text);
	is_v6 = text[0] == '[' && length >= 2 && text[length - 1] == ']';
	if (is_v6) {
		text++;
		length -= 2;
	}
	if (length >= sizeof(host) || (is_v6 && length == 0))
		return refuse(why, "that is no address");
	text_format(host, sizeof(host), "%.*s", (int)length, text);
	if (!is_v6 && strchr(host, ':'))
		return refuse(why, "an IPv6 address stands in brackets, like [::1]:9749");
	return parse_inet(address, host, is_v6, (uint16_t)port, why);
}

void web_address_text(const struct web_address *address, char *to, size_t size)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address->socket;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address->socket;
	char host[INET6_ADDRSTRLEN] = "?";

	if (address->is_unix) {
		text_format(to, size, "unix:%s",
			    ((const struct sockaddr_un *)&address->socket)->sun_path);
	} else if (address->socket.ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
		text_format(to, size, "[%s]:%u", host, ntohs(v6->sin6_port));
	} else {
		inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
		text_format(to, size, "%s:%u", host, ntohs(v4->sin_port));
	}
}
