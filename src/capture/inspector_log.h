/*
 * NCCL Inspector's log: <dir>/<host>-pid<pid>.log. Lines are held in memory and written in large pieces;
 * the file ends with a whole line after every write, also on a full disk. Of what is there already
 * nothing is overwritten.
 *
 * Whoever has a log may have to wait for the disk: for a thread of the recorder's own only.
 */
#ifndef INSPECTOR_LOG_H
#define INSPECTOR_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { INSPECTOR_PATH_BYTES = 1400, INSPECTOR_LOG_BYTES = 512 * 1024 };

struct inspector_log {
	char dir[1024];
	char path[INSPECTOR_PATH_BYTES];
	int fd;		   /* -1: not open (yet) */
	uint64_t quota;	   /* most bytes, 0 any number */
	uint64_t bytes;	   /* written by us */
	bool is_torn;	   /* the file ends with half a line that could not be taken back */
	char *text;	   /* lines held: */
	size_t used;	   /*   their bytes */
	uint64_t held;	   /*   their number */
	uint64_t retry_ns; /* not before, after a write that failed; 0 none did */
	bool is_told;	   /* somebody was told that it cannot be written */
};

/* Nothing is opened yet. False: no memory. */
bool inspector_log_init(struct inspector_log *log, const char *dir, const char *host, int64_t pid,
			uint64_t quota);

/* Where the next line may be put; *room says how long it may be. */
char *inspector_log_place(struct inspector_log *log, size_t *room);
/* It is there. */
void inspector_log_add(struct inspector_log *log, size_t length);

/*
 * Write what is held, opening the file if need be. Gives back how many lines reached it; what did not is
 * still held. ERR_SYSTEM (errno), ERR_NO_SPACE, ERR_RANGE (quota; nothing will ever be written again).
 */
uint64_t inspector_log_write(struct inspector_log *log, uint64_t now_ns, enum status *status);

/* Drop what is held; how many lines that are. */
uint64_t inspector_log_drop(struct inspector_log *log);

void inspector_log_close(struct inspector_log *log);

#endif
