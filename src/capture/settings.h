/* What the user asked for: RINGSIDE_* variables, read once, in the first init. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "region/region_layout.h"

enum settings_switch { SWITCH_OFF = 0, SWITCH_ON = 1, SWITCH_AUTO = 2 };

struct settings {
	bool is_disabled;
	enum region_mode mode;
	char dir[512];	  /* pattern for trace files' directory */
	char shm[256];	  /* where the region's directory lies */
	uint64_t buffer;  /* bytes for rings */
	uint64_t quota;	  /* bytes of trace file; 0 none */
	char job[128];	  /* "" unset */
	char labels[512]; /* as given, checked */
	gid_t group;	  /* (gid_t)-1: none */
	enum settings_switch kernel, proxy, steps, launch;
	char complaints[4096]; /* one line per wrong setting, "" none */
};

void settings_read(struct settings *settings);

#endif
