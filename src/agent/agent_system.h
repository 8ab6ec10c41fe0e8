/*
 * What the agent has to say: one line each on stderr, without control bytes. Under systemd's journal each
 * begins with its priority as sd-daemon(3) has it, elsewhere with the program's name.
 */
#ifndef AGENT_SYSTEM_H
#define AGENT_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/web.h"
#include "common/attributes.h"

/* As syslog numbers them. */
enum agent_level {
	AGENT_ERROR = 3,
	AGENT_WARNING = 4,
	AGENT_NOTICE = 5,
	AGENT_INFO = 6,
};

/* Returns CLI_EXIT_UNKNOWN, the exit code of an agent that cannot start. */
int agent_log(enum agent_level level, const char *format, ...) PRINTF_LIKE(2, 3);

/* systemd's notify protocol, by hand: datagrams to NOTIFY_SOCKET. Silent where there is none. */

/* "READY=1", "STATUS=..." */
void agent_systemd_notify(const char *format, ...) PRINTF_LIKE(1, 2);

/* How often it wants to hear WATCHDOG=1, half of what it tolerates; 0: it does not ask. */
uint64_t agent_systemd_watchdog_ns(void);

/*
 * Giving up what is not needed. Of all capabilities two are of use, and a third with --kernel-on-demand. They are
 * kept when we have them:
 *
 *	CAP_DAC_READ_SEARCH	to read other users' regions, which are theirs alone
 *	CAP_SYS_PTRACE		to find regions that are no files, among a process's open descriptors
 *	CAP_DAC_OVERRIDE	to write a request into other users' regions
 *
 * Nothing is gained later: no_new_privs is set and the bounding set is emptied.
 */

struct agent_rights {
	uid_t user;	 /* (uid_t)-1: stay who we are */
	gid_t group;	 /* (gid_t)-1: the user's own, or stay */
	bool must_write; /* into regions */
};

/* Look the names up; NULL: not given. Gives back 0, or an exit code when a line was said. */
int agent_rights_find(struct agent_rights *rights, const char *user, const char *group);

/* Gives back 0, or 1 when a line was said: then do not go on. */
int agent_rights_drop(const struct agent_rights *rights);

/* The sockets on which clients come: opened here, or handed over by systemd (LISTEN_FDS). */

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
