/*
 * Against DNS rebinding: a page of some other site can make a browser connect to 127.0.0.1 under the
 * site's own name, and then read what it gets. The Host header still has that name. So whoever listens on
 * loopback answers to loopback's names and the machine's own, and to nobody else.
 */
#ifndef WEB_HOST_H
#define WEB_HOST_H

#include <stdbool.h>

/* `host` as in the header: a name or address, perhaps with a port, which does not matter (tunnels change
 * it). Allowed are localhost, 127.0.0.1, [::1] and own_name, in any case of letters. */
bool web_host_is_local(const char *host, const char *own_name);

#endif
