/* The user's settings: RINGSIDE_* variables and NCCL Inspector's, read once in the first init. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/nccl_interface.h"
#include "format/inspector_write.h"
#include "format/region_layout.h"

/* Interval: write only when a communicator ends, the process ends or the buffer is full. */
#define INSPECTOR_AT_END INT64_C(-1)

/* NCCL Inspector's own variables, NCCL_INSPECTOR_*: docs/IMPORT.md describes each. */
struct inspector_settings {
	bool is_on;
	bool is_prom;	 /* metrics instead of lines */
	bool is_verbose; /* lines with events */
	struct inspector_filter filter;
	int64_t interval_us; /* least time between two writes, or INSPECTOR_AT_END */
	char dir[512];	     /* may be relative to the working directory */
	char job[128];	     /* "": unknown */
};

#define SETTINGS_SHM "/dev/shm" /* default for RINGSIDE_SHM */

enum settings_switch { SWITCH_OFF = 0, SWITCH_ON = 1, SWITCH_AUTO = 2 };

/* Where GPU times come from, and of which operations. */
enum settings_times {
	TIMES_AUTO = 0,	  /* CUDA events around a share of the launches */
	TIMES_ALL = 1,	  /* ... around every launch */
	TIMES_OFF = 2,	  /* none */
	TIMES_KERNEL = 3, /* NCCL's kernel events, of every operation */
};

/* ... and of launches in CUDA graphs, which pay at every replay. */
enum settings_graphs {
	GRAPHS_SOME = 0, /* large ones, within a budget */
	GRAPHS_ALL = 1,
	GRAPHS_NONE = 2,
};

struct settings {
	bool is_disabled;
	enum region_mode mode;
	char dir[512];		 /* pattern of the directory for trace files */
	char shm[256];		 /* where the region's directory is */
	uint64_t buffer;	 /* bytes for rings */
	uint64_t quota;		 /* byte limit of the trace file; 0: none */
	bool has_quota;		 /* set by the user: applies to Inspector's log, too */
	char job[128];		 /* "": not set */
	char labels[512];	 /* as given, checked */
	int64_t hang_after_s;	 /* how long ranks may wait before an alert; 0: not set */
	gid_t group;		 /* (gid_t)-1: none */
	bool is_environment_off; /* do not record variables */
	enum settings_switch proxy, steps, launch;
	enum settings_times times;
	enum settings_graphs graphs;
	bool is_launch_disturbed; /* NCCL_LAUNCH_MODE=GROUP or CUDA_LAUNCH_BLOCKING=1 */
	uint64_t heartbeat_ns;	  /* between two signs of life; 0: none are given */
	struct inspector_settings inspector;
	char complaints[4096]; /* one line per bad setting, "": none */
};

/* "auto", "all", "off", "kernel" */
const char *times_name(enum settings_times times);
/* "graphs", "no-graphs"; "": a choice of them */
const char *graphs_name(enum settings_graphs graphs);

void settings_read(struct settings *settings);

/*
 * Is this absolute path in the memory of /dev/shm, where nothing blocks: below it, on the same file
 * system, without links and ".."? The end of the path need not exist.
 */
bool settings_is_memory(const char *path);

/* The value of a variable; NULL if unset or empty. */
const char *settings_variable(const char *name);

/* Which events to request from NCCL, and where times come from; decided once, in the first init. */
struct mask_choice {
	int mask;
	enum kernel_events kernel; /* on, off or absent */
	char kernel_reason[320];   /* why, and at what cost */
	enum settings_times times; /* what is in effect */
	enum settings_graphs graphs;
	char times_reason[320]; /* why; "": nothing to say */
};

/* Free bytes in /dev/shm; 0 if there is none. */
uint64_t mask_free_shm_bytes(void);

struct mask_choice mask_choose(unsigned int interface, const struct settings *settings,
			       uint64_t free_shm_bytes);

#endif
