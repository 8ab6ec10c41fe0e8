/* What a communicator is for. A rank has at most one of each; all but the first are split from it. */
#ifndef SIM_ROLE_H
#define SIM_ROLE_H

enum sim_role {
	SIM_WORLD = 0,
	SIM_TENSOR = 1,
	SIM_PIPELINE = 2,
	SIM_DATA = 3,
	SIM_EXPERT = 4,
	SIM_ROLES = 5,
};

/* "world", "tp", "pp", "dp", "ep"; also how communicators' names begin. */
const char *sim_role_name(int role);
/* -1: no such. */
int sim_role_find(const char *name);

#endif
