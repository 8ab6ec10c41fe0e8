#include "programs/sim/sim_role.h"

#include <string.h>

static const char *const names[SIM_ROLES] = { "world", "tp", "pp", "dp", "ep" };

const char *sim_role_name(int role)
{
	return role >= 0 && role < SIM_ROLES ? names[role] : "?";
}

int sim_role_find(const char *name)
{
	for (int role = 0; role < SIM_ROLES; role++)
		if (strcmp(names[role], name) == 0)
			return role;
	return -1;
}
