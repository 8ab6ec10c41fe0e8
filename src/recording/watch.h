/*
 * Follows the processes of this host as they come, run and go, for the agent and `top`.
 *
 *	watch_init(&watch, &settings);
 *	for (;;) {
 *		poll(watch_fd(&watch) or a second);
 *		watch_look(&watch, WATCH_TOTALS);
 *		live_look(&live, &watch.recording, ...);
 *	}
 *	watch_release(&watch);
 *
 * Reads, never writes. A hostile, truncated or foreign file affects only itself: it is noted once
 * and ignored until it changes. A process is recognized by its identity (boot id, pid namespace,
 * pid, start time). When it dies, its last state is kept for settings.keep_ns and then forgotten.
 */
#ifndef WATCH_H
#define WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "format/region_read.h"
#include "recording/recording.h"

/*
 * What is followed is limited, in total and per user, so that no user crowds out others. Memory is what processes take in
 * the recording, and what analysis and answers take for their communicators; the time of a scan is proportional to it.
 * Beyond a limit, processes of the user are left out who has the most: dead ones first, then those of which nobody knows
 * whether they run, then the newest. They are counted in recording.left_out, and found again once there is room.
 */
enum {
	WATCH_PROCESSES_MAX = 4096,
	WATCH_OWNER_MAX = 1024,
	WATCH_BYTES_MAX = 64 * 1024 * 1024,
	WATCH_OWNER_BYTES_MAX = 32 * 1024 * 1024,
	WATCH_OWNER_FILES = 4096, /* opened in a search; of its processes' descriptors: */
	WATCH_OWNER_DESCRIPTORS = 65536,
	WATCH_OWNER_MOUNTS =
		32768, /* effort of reading lists of mounts in a search: 370 containers of 60 mounts */
	WATCH_SILENT_MAX = 64,
	WATCH_OWNER_IN_VAIN = 64, /* files read in a search that turn out to be none to follow */
	WATCH_REFUSED_MAX = 1024, /* more are retried at every search */
};

struct watch_settings {
	const char *directory; /* where regions are; NULL: REGION_FIND_DIRECTORY */
	uint64_t keep_ns;      /* how long to keep the last state of a dead process */
	const char *only_host; /* skip processes with another hostname; NULL: none */
	bool is_any_owner;     /* processes of different users may be of one job */
};

/* Identifies a file. One that was put aside is retried when one of the four changes. */
struct watch_file {
	uint64_t device;
	uint64_t inode;
	uint64_t size;
	uint64_t changed_ns;
	uint32_t owner; /* uid */
	enum region_place_kind kind;
	bool is_there; /* seen in the current search */
};

/* What is known about a process besides its recording. */
struct watch_process {
	struct watch_file file;
	uint64_t seen_ns;  /* monotonic: first scan */
	uint64_t died_ns;  /* monotonic: first scan after it died; 0: alive */
	uint64_t read_ns;  /* monotonic: last scan that could read it */
	uint64_t full_ns;  /* the same, reading everything, moved or not */
	uint64_t failures; /* failed scans since */
	uint64_t life_ns;  /* the same, searching for it: see is_lookup_due() */
	uint64_t bytes;	   /* counted against the limits */
};

struct watch_owner {
	uint32_t uid;
	size_t count; /* of processes followed */
	uint64_t bytes;
	bool is_full;	  /* processes were left out for lack of room: no new ones until there is */
	uint32_t in_vain; /* in the current search */
	size_t processes; /* left out in the current search */
};

/* A file that cannot be followed. */
struct watch_refused {
	struct watch_file file;
	char *path;
	char why[120];
	bool is_told; /* it was reported to the user */
};

struct watch {
	struct watch_settings settings;
	/*
	 * recording.processes[i] belongs to processes[i]; ordered by job, rank, host, pid as after
	 * recording_finish(). Only changed by watch_look().
	 */
	struct recording recording;
	struct watch_process *processes;
	struct watch_refused *refused;
	size_t refused_count;
	size_t unreadable;    /* files and directories we may not read, at the last scan */
	size_t left_out;      /* processes beyond the limits above, at the last search */
	char other_host[256]; /* of a process that only_host excludes; "" none so far */
	uint64_t looks;
	uint64_t generation; /* changes whenever a process comes, goes or dies */
	int inotify;	     /* -1: none; then every scan searches */
	bool must_search;

	/* Private. */
	struct region_search *search; /* under way; NULL: none */
	bool is_listed;		      /* it has found everything */
	bool is_second;		      /* the first search examines everything twice */
	bool has_processes;	      /* it includes those of processes */
	uint64_t search_ns;	      /* that it has taken */
	uint64_t search_cpu_ns;	      /* of the processor */
	uint64_t searches;	      /* completed */
	size_t next_place;	      /* of what it found: to be examined */
	struct watch_owner *owners;
	size_t owner_count;
	uint64_t bytes;		 /* of all processes */
	uint32_t lookups;	 /* in this scan */
	size_t taken;		 /* new files opened in this scan */
	uint64_t tables;	 /* bytes of their tables, about */
	unsigned int look_flags; /* of this scan */
	uint64_t look_ns;	 /* monotonic: when it began */
	bool must_find;		 /* it still has to search */
	size_t next_process;	 /* that it reads */
	struct watch_file *past; /* not followed on purpose: dead for long, or of another host */
	size_t past_count;
	int directory_watch;	  /* inotify watch on the directory; -1: none */
	uint64_t strangers;	  /* events about other files since the last scan */
	uint64_t settle_until_ns; /* a new region gets its magic some time after its name */
	uint64_t next_search_ns;  /* search at this time, in case something was missed */
	uint64_t earliest_ns;	  /* no search before this: the last one took long */
	uint64_t next_processes_ns;
	uint64_t quiet_until_ns; /* the directory is too busy to watch */
	uint64_t runs_state;	 /* of all processes, when their runs were determined */
};

/* ERR_SYSTEM, ERR_NO_SPACE. The texts of settings are borrowed. Release in every case. */
enum status watch_init(struct watch *watch, const struct watch_settings *settings);
void watch_release(struct watch *watch);

/*
 * Becomes readable when a process may have come; -1 if inotify is not available. Other programs use
 * the directory, too: watch_heed() says whether a scan is worthwhile.
 */
int watch_fd(const struct watch *watch);

/* Process the events of watch_fd(). True: a process may have come. */
bool watch_heed(struct watch *watch);

/*
 * A search of a directory with many files takes several scans. While one is under way, more of it can be done between
 * scans: nothing but the search changes then. False: it needs a scan to go on, or there is none.
 */
bool watch_is_searching(const struct watch *watch);
bool watch_search_more(struct watch *watch);

/*
 * Scan: search where needed, read every living process again (idle ones cost one read of their
 * header and counts), forget those that have been dead long enough. Fails only with ERR_NO_SPACE
 * (memory); everything is then as it was or newer.
 */
enum watch_flag { WATCH_TOTALS = 1u << 0 /* totals and links, too */ };
enum status watch_look(struct watch *watch, unsigned int flags);

/* watch_look() at a time chosen by the caller, which never goes back. */
enum status watch_look_at(struct watch *watch, unsigned int flags, uint64_t now_ns);

/*
 * The same in steps, for a program with other things to do. Between two steps the recording is neither the old nor the
 * new one: nobody may use it, and what points into it, before the scan is over.
 *
 *	watch_look_begin(&watch, WATCH_TOTALS, now_ns);
 *	do
 *		status = watch_look_step(&watch, effort, &is_over);
 *	while (!is_over);
 */
void watch_look_begin(struct watch *watch, unsigned int flags, uint64_t now_ns);
/* `effort`: about as many bytes of tables and processes are read, and at least one file or process. A failure ends the scan. */
enum status watch_look_step(struct watch *watch, uint64_t effort, bool *is_over);

#endif
