/* The sockets on which clients come: opened here, or handed over by systemd (LISTEN_FDS). */
#ifndef AGENT_LISTEN_H
#define AGENT_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "programs/agent/web_address.h"

enum { AGENT_LISTENERS_MAX = 8 };

struct agent_listener {
	int fd;
	struct web_address address;
	bool is_ours;	 /* a Unix socket whose file we made (mode 0660), and remove */
	uint64_t device; /* of that file */
	uint64_t inode;
};

struct agent_listeners {
	struct agent_listener list[AGENT_LISTENERS_MAX];
	size_t count;
};

/* Sockets that systemd opened for us: how many, -1 when they are no use (said in a line). */
int agent_listen_inherit(struct agent_listeners *listeners);

/* `group` owns Unix sockets, (gid_t)-1: as it comes. Gives back 0, or 1 when a line was said. */
int agent_listen_open(struct agent_listeners *listeners, const struct web_address *address,
		      gid_t group);

void agent_listen_close(struct agent_listeners *listeners);

#endif
