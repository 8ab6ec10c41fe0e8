/* What requests carry, and addresses to listen on: escapes, encodings, host names. */
#include "serve/web.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>
#include <zlib.h>

#include "common/attributes.h"
#include "common/text.h"

static enum status address_refuse(const char **why, const char *what)
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
		return address_refuse(
			why, "a Unix socket needs an absolute path, like unix:/run/x.sock");
	if (!text_copy(to->sun_path, sizeof(to->sun_path), path))
		return address_refuse(why,
				      "the path of a Unix socket is limited to 107 characters");
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
			return address_refuse(why, "not an IPv6 address in brackets");
		web_address_of(address, &socket, sizeof(*v6));
		address->is_any = host[0] == '\0';
		return OK;
	}
	if (strcmp(host, "localhost") == 0)
		host = "127.0.0.1";
	v4->sin_family = AF_INET;
	v4->sin_port = htons(port);
	if (inet_pton(AF_INET, host, &v4->sin_addr) != 1)
		return address_refuse(why, "host names are not resolved; use a numeric address");
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
		return address_refuse(why, "port missing; use a form like 127.0.0.1:9749");
	length = (size_t)(colon - text);
	is_v6 = text[0] == '[' && length >= 2 && text[length - 1] == ']';
	if (is_v6) {
		text++;
		length -= 2;
	}
	if (length >= sizeof(host) || (is_v6 && length == 0))
		return address_refuse(why, "invalid address");
	text_format(host, sizeof(host), "%.*s", (int)length, text);
	if (!is_v6 && strchr(host, ':'))
		return address_refuse(why, "IPv6 addresses need brackets, like [::1]:9749");
	return parse_inet(address, host, is_v6, (uint16_t)port, why);
}

unsigned int web_address_port(const struct web_address *address)
{
	if (address->is_unix)
		return 0;
	return address->socket.ss_family == AF_INET6
		       ? ntohs(((const struct sockaddr_in6 *)&address->socket)->sin6_port)
		       : ntohs(((const struct sockaddr_in *)&address->socket)->sin_port);
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

static bool is_port(const char *text)
{
	return text[0] == '\0' || (text[0] == ':' && text[1] != '\0' &&
				   text[1 + strspn(text + 1, "0123456789")] == '\0');
}

static bool is_name(const char *host, const char *name)
{
	size_t length = strlen(name);

	return length > 0 && strncasecmp(host, name, length) == 0 && is_port(host + length);
}

bool web_host_is_local(const char *host, const char *own_name)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		if (is_name(host, names[i]))
			return true;
	return is_name(host, own_name);
}

/* "gzip" or "gzip;q=0.5", not "gzip;q=0" or "gzip;q=0.000". */
static bool is_wanted(const char *parameters, size_t length)
{
	const char *q = memchr(parameters, '=', length);

	if (q == NULL)
		return true;
	for (q++; q < parameters + length; q++)
		if (*q >= '1' && *q <= '9')
			return true;
	return false;
}

bool web_encoding_takes_gzip(const char *header)
{
	while (header && *header != '\0') {
		size_t length, name;

		header += strspn(header, " \t,");
		length = strcspn(header, ",");
		name = strcspn(header, " \t,;");
		if (name == 4 && strncasecmp(header, "gzip", 4) == 0)
			return is_wanted(header + name, length - name);
		header += length;
	}
	return false;
}

void *web_encoding_gzip(const void *bytes, size_t length, size_t *packed)
{
	z_stream stream = { .next_in = (void *)(uintptr_t)bytes };
	void *to, *fitting;
	size_t room;

	/* Level 1: a quarter of the size, at a quarter of the cost of the default level. */
	if (length > UINT32_MAX / 2 ||
	    deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return NULL;
	room = deflateBound(&stream, length);
	to = malloc(room);
	stream.avail_in = (unsigned int)length;
	stream.next_out = to;
	stream.avail_out = (unsigned int)room;
	if (to == NULL || deflate(&stream, Z_FINISH) != Z_STREAM_END) {
		deflateEnd(&stream);
		free(to);
		return NULL;
	}
	*packed = stream.total_out;
	deflateEnd(&stream);
	fitting = realloc(to, *packed);
	return fitting ? fitting : to;
}

static int hex_digit(char byte)
{
	static const char digits[] = "0123456789abcdef";
	const char *at =
		byte == '\0' ? NULL : strchr(digits, byte >= 'A' && byte <= 'F' ? byte + 32 : byte);

	return at ? (int)(at - digits) : -1;
}

bool web_unescape(char *to, size_t size, const char *from)
{
	size_t used = 0;

	for (; from && *from != '\0'; from++) {
		char byte = *from;

		if (byte == '%') {
			int high = hex_digit(from[1]), low = high < 0 ? -1 : hex_digit(from[2]);

			if (low < 0 || high + low == 0)
				return false;
			byte = (char)(high * 16 + low);
			from += 2;
		}
		if (used + 1 >= size)
			return false;
		to[used++] = byte;
	}
	to[used] = '\0';
	return true;
}
