#include "programs/agent/agent_rights.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "programs/agent/agent_log.h"

#define KEPT (1u << CAP_DAC_READ_SEARCH | 1u << CAP_SYS_PTRACE)
#define KEPT_TO_WRITE (1u << CAP_DAC_OVERRIDE)
_Static_assert(CAP_DAC_READ_SEARCH < 32 && CAP_SYS_PTRACE < 32 && CAP_DAC_OVERRIDE < 32,
	       "they are in the lower word");

int agent_rights_find(struct agent_rights *rights, const char *user, const char *group)
{
	struct passwd *known_user;
	struct group *known_group;

	rights->user = (uid_t)-1;
	rights->group = (gid_t)-1;
	if (user) {
		known_user = getpwnam(user);
		if (known_user == NULL) {
			agent_log(AGENT_ERROR, "--user %s: there is no such user", user);
			return 2;
		}
		rights->user = known_user->pw_uid;
		rights->group = known_user->pw_gid;
	}
	if (group) {
		known_group = getgrnam(group);
		if (known_group == NULL) {
			agent_log(AGENT_ERROR, "--group %s: there is no such group", group);
			return 2;
		}
		rights->group = known_group->gr_gid;
	}
	return 0;
}

/* Permitted and effective are what we have of `kept`; nothing is handed on. */
static bool keep(uint32_t kept)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	if (syscall(SYS_capget, &header, data) == -1)
		return false;
	data[0].permitted &= kept;
	data[0].effective = data[0].permitted;
	data[0].inheritable = 0;
	data[1] = (struct __user_cap_data_struct){ 0 };
	return syscall(SYS_capset, &header, data) == 0;
}

/* Not all systems have all of them, and without CAP_SETPCAP none can go: then there is none to gain. */
static void empty_bounding_set(void)
{
	for (unsigned long capability = 0; capability < 64; capability++)
		prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

static bool become(const struct agent_rights *rights)
{
	bool has_group = rights->group != (gid_t)-1;

	/* Root's other groups go with root. */
	if (has_group && geteuid() == 0 && setgroups(1, &rights->group) == -1)
		return false;
	if (has_group && rights->group != getegid() &&
	    setresgid(rights->group, rights->group, rights->group) == -1)
		return false;
	if (rights->user == (uid_t)-1 || rights->user == geteuid())
		return true;
	return prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 &&
	       setresuid(rights->user, rights->user, rights->user) == 0;
}

int agent_rights_drop(const struct agent_rights *rights)
{
	empty_bounding_set();
	if (!become(rights))
		return agent_log(AGENT_ERROR, "cannot become another user: %s%s", strerror(errno),
				 geteuid() != 0 ? "; only root can" : "");
	if (!keep(KEPT | (rights->must_write ? KEPT_TO_WRITE : 0)) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return agent_log(AGENT_ERROR, "cannot give up capabilities: %s", strerror(errno));
	return 0;
}
