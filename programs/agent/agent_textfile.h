/*
 * Files for node-exporter's textfile collector: one per process, written beside and renamed, so that no
 * reader sees half of one.
 *
 *	ringside-<uuid of the gpu, or gpu and its number>-<pid>-<start>.prom
 *
 * Whatever has such a name in the directory is ours: leftovers go at the start, the file of a process that is
 * forgotten goes at the next round, and all go at the end, or node-exporter would show them for ever.
 */
#ifndef AGENT_TEXTFILE_H
#define AGENT_TEXTFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "doctor/live.h"

enum { AGENT_TEXTFILE_NAME = 128 };

struct agent_textfile {
	const char *directory; /* borrowed; NULL: nothing is written */
	int fd;
	uint64_t interval_ns;
	uint64_t next_ns; /* monotonic */
	size_t count;	  /* files that are there */
	bool is_failing;  /* said already */
};

/* Gives back 0, or 1 when a line was said. */
int agent_textfile_open(struct agent_textfile *to, const char *directory, uint64_t interval_ns);
/* Removes the files, too. */
void agent_textfile_close(struct agent_textfile *to);

/* Write all, remove those of processes that are no more. */
void agent_textfile_write(struct agent_textfile *to, const struct live *live, uint64_t now_ns);

/* The name for one process; only letters that a name may have, whatever the process says. */
void agent_textfile_name(const struct recording_process *process,
			 char name[static AGENT_TEXTFILE_NAME]);

/* Is it the name of such a file, or of one that was being written? */
bool agent_textfile_is_ours(const char *name);

#endif
