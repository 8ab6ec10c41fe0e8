/*
 * Log lines of the agent on stderr, without control bytes. In the systemd journal each begins with its priority
 * (sd-daemon(3)), elsewhere with the program's name.
 */
#ifndef AGENT_SYSTEM_H
#define AGENT_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/web.h"
#include "common/attributes.h"

/* Numbered as in syslog. */
enum agent_level {
	AGENT_ERROR = 3,
	AGENT_WARNING = 4,
	AGENT_NOTICE = 5,
	AGENT_INFO = 6,
};

/* Returns CLI_EXIT_UNKNOWN, the exit code of an agent that cannot start. */
int agent_log(enum agent_level level, const char *format, ...) PRINTF_LIKE(2, 3);

/* The notify protocol of systemd: datagrams to NOTIFY_SOCKET. Does nothing if there is none. */

/* "READY=1", "STATUS=..." */
void agent_systemd_notify(const char *format, ...) PRINTF_LIKE(1, 2);

/* Interval of WATCHDOG=1, half of the timeout; 0: no watchdog. */
uint64_t agent_systemd_watchdog_ns(void);

/*
 * Drops privileges. Only these capabilities are kept, if present; the third one with --kernel-on-demand:
 *
 *	CAP_DAC_READ_SEARCH	to read regions of other users
 *	CAP_SYS_PTRACE		to read what /proc has about processes of others: descriptors, file system, namespaces
 *				and, if a job hangs, its environment; ptrace(2) and the like are denied, but not
 *				with --stacks, whose tools read processes
 *	CAP_DAC_OVERRIDE	to write requests into regions of other users
 *
 * No privileges can be gained later: no_new_privs is set, and the bounding set is empty or, with --stacks, has the first
 * two. See agent_calls_limit(), too.
 */

struct agent_rights {
	uid_t user;		/* (uid_t)-1: unchanged */
	gid_t group;		/* (gid_t)-1: the user's own, or unchanged */
	bool must_write;	/* into regions */
	bool must_hand_on;	/* to programs: see agent_rights_hand_on() */
	bool must_read_nothing; /* no regions: no capability is kept */
};

/* Looks up the names; NULL: not given. Returns 0, or an exit code after logging an error. */
int agent_rights_find(struct agent_rights *rights, const char *user, const char *group);

/* Returns 0, or 1 after logging an error: then exit. */
int agent_rights_drop(const struct agent_rights *rights);

/* In a child: programs that it starts get the first two, which py-spy needs to read processes of other users. */
void agent_rights_hand_on(void);
/* In a child: programs that it starts get none. */
bool agent_rights_drop_all(void);

/* From now on, system calls that nothing here needs fail with EPERM, in child processes, too; is_privileged: also those
 * that read or control other processes. Requires no_new_privs. False with errno if the kernel does not do that. */
bool agent_calls_limit(bool is_privileged);

/* Listening sockets: opened here, or passed by systemd (LISTEN_FDS). */

enum { AGENT_LISTENERS_MAX = 8 };

struct agent_listener {
	int fd;
	struct web_address address;
	bool is_ours;	 /* a Unix socket whose file we created (mode 0660) and remove */
	uint64_t device; /* of that file */
	uint64_t inode;
};

struct agent_listeners {
	struct agent_listener list[AGENT_LISTENERS_MAX];
	size_t count;
};

/* Number of sockets passed by systemd, -1 if they cannot be used (logged). */
int agent_listen_inherit(struct agent_listeners *listeners);

/* `group` owns Unix sockets, (gid_t)-1: default. Returns 0, or 1 after logging an error. */
int agent_listen_open(struct agent_listeners *listeners, const struct web_address *address,
		      gid_t group);

void agent_listen_close(struct agent_listeners *listeners);

#endif
