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
#ifndef AGENT_RIGHTS_H
#define AGENT_RIGHTS_H

#include <stdbool.h>
#include <sys/types.h>

struct agent_rights {
	uid_t user;	 /* (uid_t)-1: stay who we are */
	gid_t group;	 /* (gid_t)-1: the user's own, or stay */
	bool must_write; /* into regions */
};

/* Look the names up; NULL: not given. Gives back 0, or an exit code when a line was said. */
int agent_rights_find(struct agent_rights *rights, const char *user, const char *group);

/* Gives back 0, or 1 when a line was said: then do not go on. */
int agent_rights_drop(const struct agent_rights *rights);

#endif
