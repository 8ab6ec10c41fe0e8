/* What the user asked for: RINGSIDE_* variables, and NCCL Inspector's; read once, in the first init. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/nccl_interface.h"
#include "format/inspector_write.h"
#include "format/region_layout.h"

/* Interval: hold back until a communicator ends, the process ends, or there is too much. */
#define INSPECTOR_AT_END INT64_C(-1)

/* NCCL Inspector's own variables, NCCL_INSPECTOR_*: docs/INSPECTOR.md says what becomes of each. */
struct inspector_settings {
	bool is_on;
	bool is_prom;	 /* metrics instead of lines */
	bool is_verbose; /* lines with events */
	struct inspector_filter filter;
	int64_t interval_us; /* at least so long between two writes, or INSPECTOR_AT_END */
	char dir[512];	     /* relative ones are the process's */
	char job[128];	     /* "" unknown */
};

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

/* Which events to ask NCCL for, and why: decided once, in the first init. Kernel events alone may be
 * switched while the job runs: hot_sample.c. */
struct mask_choice {
	int mask;		   /* without kernel events, unless they are on for good */
	enum kernel_events kernel; /* on, sampled, off or absent */
	char kernel_reason[320];   /* why, and what it costs */
};

/* What is free in /dev/shm now; 0 when there is none. */
uint64_t mask_free_shm_bytes(void);

/* Is there room for what NCCL takes in /dev/shm for kernel events of one more communicator of this
 * process, and of as many in the other processes of a node? */
bool mask_has_shm(uint64_t free_shm_bytes, uint32_t communicators);

struct mask_choice mask_choose(unsigned int interface, const struct settings *settings,
			       uint64_t free_shm_bytes);

#endif
