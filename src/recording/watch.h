/*
 * The processes of this machine as they come, run and go: what the agent and `top` look at.
 *
 *	watch_init(&watch, &settings);
 *	for (;;) {
 *		poll(watch_fd(&watch) or a second);
 *		watch_look(&watch, WATCH_TOTALS);
 *		live_look(&live, &watch.recording, ...);
 *	}
 *	watch_release(&watch);
 *
 * Reads, never writes. A file that is hostile, cut or foreign costs itself: it is noted once and left
 * alone until it changes. A dead process is known by its identity (boot id, pid namespace, pid, start
 * time), keeps its last state for settings.keep_ns and is forgotten then.
 */
#ifndef WATCH_H
#define WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "recording/recording.h"

enum {
	WATCH_PROCESSES_MAX = 4096,
	WATCH_OWNER_MAX = 1024, /* of these, with files of one user: nobody crowds the others out */
	WATCH_REFUSED_MAX = 1024, /* more are tried again at every search */
};

struct watch_settings {
	const char *directory; /* where regions are; NULL: REGION_FIND_DIRECTORY */
	uint64_t keep_ns;      /* a dead process's last state is kept so long */
	const char *only_host; /* who calls itself otherwise is passed over; NULL: nobody is */
};

/* Which file this is. One that was put aside is tried again when one of the four changes. */
struct watch_file {
	uint64_t device;
	uint64_t inode;
	uint64_t size;
	uint64_t changed_ns;
	uint32_t owner; /* user */
	bool is_memfd;
	bool is_there; /* in the search under way */
};

/* What is known of a process beside its recording. */
struct watch_process {
	struct watch_file file;
	uint64_t seen_ns;  /* monotonic: first look */
	uint64_t died_ns;  /* monotonic: first look at which it was gone; 0: it was not */
	uint64_t read_ns;  /* monotonic: the last look that could read it */
	uint64_t full_ns;  /* the same, all of it, whether it had moved or not */
	uint64_t failures; /* looks that could not, since */
};

/* A file that cannot be followed. */
struct watch_refused {
	struct watch_file file;
	char *path;
	char why[120];
	bool is_told; /* for whoever tells people about it, once */
};

struct watch {
	struct watch_settings settings;
	/* recording.processes[i] belongs to processes[i]; by job, rank, host, pid as after
	 * recording_finish(). Only changed by watch_look(). */
	struct recording recording;
	struct watch_process *processes;
	struct watch_refused *refused;
	size_t refused_count;
	size_t unreadable; /* files and directories that we may not read, at the last look */
	size_t left_out;   /* processes beyond the limits above, at the last search */
	uint64_t looks;
	uint64_t generation; /* changes whenever a process came, went or died */
	int inotify;	     /* -1: none; then every look searches */
	bool must_search;

	/* Its own. */
	struct watch_file *past; /* not followed on purpose: dead for long, or of another host */
	size_t past_count;
	int directory_watch;	  /* of inotify, on the directory; -1 none */
	uint64_t strangers;	  /* events about others' files since the last look */
	uint64_t settle_until_ns; /* a new region gets its magic some time after its name */
	uint64_t next_search_ns;  /* something may have been overlooked: search at this time */
	uint64_t earliest_ns;	  /* no search before: the last one was long */
	uint64_t next_memfds_ns;
	uint64_t quiet_until_ns; /* the directory is too busy to be listened to */
};

/* ERR_SYSTEM, ERR_NO_SPACE. The texts of settings are borrowed. Release in every case. */
enum status watch_init(struct watch *watch, const struct watch_settings *settings);
void watch_release(struct watch *watch);

/* Becomes readable when a process may have come; -1 when the system has none to spare. Others use the
 * directory, too: ask watch_heed() whether it is worth a look. */
int watch_fd(const struct watch *watch);

/* Take what watch_fd() has to say. True: a process may have come. */
bool watch_heed(struct watch *watch);

/* Search anew where that is needed, read every living process anew (those that stood still cost one
 * read of their header and counts), forget who was dead for long enough. ERR_NO_SPACE (memory) alone is
 * a failure; everything is then as it was or newer. */
enum watch_flag { WATCH_TOTALS = 1u << 0 /* totals and links, too */ };
enum status watch_look(struct watch *watch, unsigned int flags);

#define WATCH_SECOND_NS UINT64_C(1000000000)

/* watch_look() at a time of the caller's choice, which never goes back. */
enum status watch_look_at(struct watch *watch, unsigned int flags, uint64_t now_ns);

#endif
