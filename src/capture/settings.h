/* What the user asked for: RINGSIDE_* variables, and NCCL Inspector's; read once, in the first init. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/inspector_settings.h"
#include "region/region_layout.h"

#define SETTINGS_SHM "/dev/shm" /* where regions go unless RINGSIDE_SHM says otherwise */

/* SWITCH_SAMPLE: for kernel events alone. */
enum settings_switch { SWITCH_OFF = 0, SWITCH_ON = 1, SWITCH_AUTO = 2, SWITCH_SAMPLE = 3 };

struct settings {
	bool is_disabled;
	enum region_mode mode;
	char dir[512];		 /* pattern for trace files' directory */
	char shm[256];		 /* where the region's directory lies */
	uint64_t buffer;	 /* bytes for rings */
	uint64_t quota;		 /* bytes of trace file; 0 none */
	bool has_quota;		 /* it was asked for: holds for Inspector's log, too */
	char job[128];		 /* "" unset */
	char labels[512];	 /* as given, checked */
	gid_t group;		 /* (gid_t)-1: none */
	bool is_environment_off; /* variables are not recorded */
	enum settings_switch kernel, proxy, steps, launch;
	uint64_t
		sample_after_ns; /* of calls without a CUDA graph, before kernel events are sampled */
	bool is_allgatherv_off; /* NCCL_ALLGATHERV_ENABLE=0: NCCL's counters stay right */
	struct inspector_settings inspector;
	char complaints[4096]; /* one line per wrong setting, "" none */
};

void settings_read(struct settings *settings);

/* For whoever reads a group of variables. An empty one counts as unset: NULL. */
const char *settings_variable(const char *name);
/* A wrong setting costs one line and takes the default: the job goes on. */
void settings_complain(struct settings *settings, const char *name, const char *value,
		       const char *allowed, const char *instead);

#endif
