/* Where to listen, as the command line says it: "127.0.0.1:9749", "[::1]:9749", ":9749", "unix:/path". */
#ifndef WEB_ADDRESS_H
#define WEB_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "common/status.h"

struct web_address {
	struct sockaddr_storage socket;
	socklen_t length;
	bool is_unix;
	bool is_loopback; /* nobody but this machine reaches it */
	bool is_any;	  /* ":9749": all addresses, both families */
};

/* Addresses are numbers: no name is looked up but "localhost". ERR_FORMAT with *why (static). */
enum status web_address_parse(struct web_address *address, const char *text, const char **why);

/* The same for a socket that somebody else has bound. */
void web_address_of(struct web_address *address, const struct sockaddr_storage *socket,
		    socklen_t length);

/* "127.0.0.1:9749", "unix:/path". */
void web_address_text(const struct web_address *address, char *to, size_t size);

#endif
